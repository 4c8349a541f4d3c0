"""A person in the agent's seat: what they may do, as plain data, and the terminal and the widget that show it."""
