"""Policies: loading, rendering and sampling."""
