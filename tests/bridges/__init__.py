"""Tests of the bridges; a package, for one of its modules has the name of another test."""
