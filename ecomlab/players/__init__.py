"""Reference players, one file per environment; given the goal they are oracles, given an error rate, perturbed."""
