"""Policies: their loading, rendering and sampling."""
