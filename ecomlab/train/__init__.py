"""Training: configuration, schedule, rollouts, objective, the loop."""
