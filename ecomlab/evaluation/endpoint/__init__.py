"""Models behind OpenAI-compatible chat endpoints, as contestants."""
