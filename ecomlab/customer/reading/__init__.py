"""Reading of messages to the customer: mentions, acts and claims, computed once for each text."""
