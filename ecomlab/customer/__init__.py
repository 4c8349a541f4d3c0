"""The simulated customer, an agenda-based user simulator: goal state, dialogue, NLG and NLU over one set of phrases."""
