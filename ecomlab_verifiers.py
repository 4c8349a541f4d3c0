"""What verifiers imports for the id `ecomlab-verifiers`: its plugins are top-level modules."""

from ecomlab.bridges.verifiers import ShoppingHarness, ShoppingTaskset, load_environment

__all__ = ["ShoppingHarness", "ShoppingTaskset", "load_environment"]
