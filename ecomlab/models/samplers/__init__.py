"""Samplers: backends that sample one turn of many rows at a time."""
