"""A schedule of one's own: a bandit that draws the level whose outcomes are the most mixed."""

from ecomlab.training.schedule import Draw


class Bandit:
    """Levels are arms; an arm is worth the variance of its last outcomes, p (1 - p), because a group teaches by it."""

    def __init__(self, envs, levels=9):
        self.envs, self.mean = list(envs), [0.5] * levels

    def draw(self, rng):
        worth = [mean * (1 - mean) + 0.1 * rng.random() for mean in self.mean]
        return Draw(self.envs[int(rng.integers(len(self.envs)))], worth.index(max(worth)))

    def report(self, draw, outcomes):
        for outcome in outcomes:
            if outcome is not None:
                self.mean[draw.level] += 0.1 * (outcome - self.mean[draw.level])
        return self

    def to_json(self):
        return {"mean": self.mean}

    def from_json(self, state):
        self.mean = list(state["mean"])
        return self
