"""Who acts: the planner behind solver, fair and noisy players, and the blind attackers of law 3."""
