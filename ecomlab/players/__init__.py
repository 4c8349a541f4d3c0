"""Reference players, one file per environment: with the goal they are oracles, with an error rate perturbed players."""
