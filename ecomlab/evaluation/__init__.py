"""Evaluation of policies on held-out tasks."""
