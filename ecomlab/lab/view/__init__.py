"""Watching episodes: records of what happened in each turn, in notebooks and as one file for a browser."""
