"""Episodes: their subtasks and messages, playing and replaying them."""
