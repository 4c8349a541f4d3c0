"""Fixtures of the lab's tests."""

from toy_sweep import home, toy  # noqa: F401
