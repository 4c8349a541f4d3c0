"""Where it breaks: every mistake of a trajectory, by code from state and truth: kind, cause, what became of it, and
what it led to."""
