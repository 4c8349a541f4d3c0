"""Tests of the lab; a package, for its conftest is not the only one."""
