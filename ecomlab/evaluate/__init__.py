"""Evaluation: held-out success of policies."""
