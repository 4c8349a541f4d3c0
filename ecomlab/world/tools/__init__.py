"""The tools through which an agent acts on the world."""
