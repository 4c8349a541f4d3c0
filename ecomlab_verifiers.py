"""What verifiers imports for the id `ecomlab-verifiers`: its plugins are top-level modules."""

from ecomlab.bridges.verifiers import ShoppingEnv, ShoppingHarness, ShoppingTaskset, load_environment

__all__ = ["ShoppingEnv", "ShoppingHarness", "ShoppingTaskset", "load_environment"]
