"""Samplers: one turn of many rows at a time, token for token."""
