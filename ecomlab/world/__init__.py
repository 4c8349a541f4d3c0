"""The state of one episode, over the shared, immutable shop, and the tools that act on it."""
