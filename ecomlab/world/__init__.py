"""What an episode may touch: an overlay on the shared, immutable shop."""
