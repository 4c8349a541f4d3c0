"""Imported before the tests of the lab: they import nbformat, which `notebooks` imports in less time."""

from ecomlab.lab import notebooks  # noqa: F401
