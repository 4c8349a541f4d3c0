"""Episodes: subtasks, messages, playing and replaying."""
