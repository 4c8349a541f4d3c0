"""The store's policy book: rules, clauses, and the cases brought to them."""
