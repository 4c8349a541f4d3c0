"""What verifiers and prime-rl import for the id `ecomlab-training`."""

from ecomlab.bridges.verifiers import ShoppingEnv, ShoppingHarness, load_environment
from ecomlab.bridges.verifiers_training import TrainingTaskset

__all__ = ["ShoppingEnv", "ShoppingHarness", "TrainingTaskset", "load_environment"]
