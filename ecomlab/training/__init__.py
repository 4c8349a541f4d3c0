"""Training: configuration, schedule, rollouts, objective, the loop."""

import ecomlab.starters  # noqa: F401  a run starts from one; without an installed entry point this registers them
