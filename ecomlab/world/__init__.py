"""The state of one episode, laid over the shared, immutable shop, and the tools that act on it."""
