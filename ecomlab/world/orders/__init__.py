"""Order histories, and how customers refer to orders and their lines."""
