"""Order histories, and how orders and their lines are spoken of."""
