"""Schedules of the study, beside the built-in window and ranges: `schedule = "experiments/frontier/schedules.py:NAME"`.

Each is a frozen state whose `draw` takes all randomness from the run's generator. Levels are 0 to TOP.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ecomlab.training.schedule import Draw, Outcomes

TOP = 6
"""Highest level that any of them draws; what lies above is held out."""


def _share(outcomes: Outcomes) -> float | None:
    """Compute the share correct of the scored outcomes; None without any."""
    scored = [bool(outcome) for outcome in outcomes if outcome is not None]
    return sum(scored) / len(scored) if scored else None


@dataclass(frozen=True)
class Target:
    """AdaRFT (arXiv:2504.05520): a target level that moves so that success is near one half."""

    envs: tuple[str, ...]
    at: tuple[float, ...]
    step: float = 0.5
    """Levels by which a group of all right or all wrong moves the target; AdaRFT's eta."""
    slope: float = 2.0
    """AdaRFT's alpha: how sharply a move depends on the distance from one half."""

    name = "target"

    @classmethod
    def start(cls, envs: Sequence[str]) -> Self:
        return cls(tuple(envs), (0.0,) * len(envs))

    def draw(self, rng: np.random.Generator) -> Draw:
        at = int(rng.integers(len(self.envs)))
        low = int(self.at[at])
        return Draw(self.envs[at], low + int(rng.random() < self.at[at] - low))

    def report(self, draw: Draw, outcomes: Outcomes) -> Self:
        share, at = _share(outcomes), self.envs.index(draw.env)
        if share is None:
            return self
        moved = float(np.clip(self.at[at] + self.step * np.tanh(self.slope * (share - 0.5)), 0, TOP))
        return replace(self, at=(*self.at[:at], moved, *self.at[at + 1 :]))

    def to_json(self) -> dict[str, Any]:
        return {"at": dict(zip(self.envs, self.at, strict=True))}

    def from_json(self, state: Mapping[str, Any]) -> Self:
        return replace(self, at=tuple(state["at"][env] for env in self.envs))


@dataclass(frozen=True)
class Learnability:
    """Levels by p(1 - p) (LILO, arXiv:2502.12272; SFL, arXiv:2408.15099), p drawn from a posterior that forgets."""

    envs: tuple[str, ...]
    counts: tuple[tuple[tuple[float, float], ...], ...]
    """By environment and level: correct and wrong, each group discounted by `keep`."""
    keep: float = 0.9

    name = "learnability"

    @classmethod
    def start(cls, envs: Sequence[str]) -> Self:
        return cls(tuple(envs), (((1.0, 1.0),) * (TOP + 1),) * len(envs))

    def draw(self, rng: np.random.Generator) -> Draw:
        at = int(rng.integers(len(self.envs)))
        p = np.array([rng.beta(*pair) for pair in self.counts[at]])
        return Draw(self.envs[at], int(np.argmax(p * (1 - p))))

    def report(self, draw: Draw, outcomes: Outcomes) -> Self:
        share, at = _share(outcomes), self.envs.index(draw.env)
        if share is None:
            return self
        scored, levels = sum(outcome is not None for outcome in outcomes), [*self.counts[at]]
        right, wrong = levels[draw.level]
        levels[draw.level] = (
            1 + self.keep * (right - 1) + share * scored,
            1 + self.keep * (wrong - 1) + (1 - share) * scored,
        )
        return replace(self, counts=(*self.counts[:at], tuple(levels), *self.counts[at + 1 :]))

    def to_json(self) -> dict[str, Any]:
        return {"counts": {env: list(map(list, c)) for env, c in zip(self.envs, self.counts, strict=True)}}

    def from_json(self, state: Mapping[str, Any]) -> Self:
        counts = (tuple((pair[0], pair[1]) for pair in state["counts"][env]) for env in self.envs)
        return replace(self, counts=tuple(counts))


@dataclass(frozen=True)
class Prefix:
    """Wanted levels from the start; the demonstrator plays the first turns, as many as bring success near one half.

    A level's two cuts enclose that share: each of its groups is played from one of them, and moves it. One group in
    `whole` is played from its beginning; it moves nothing unless a cut is there too.
    """

    envs: tuple[str, ...]
    cuts: tuple[tuple[tuple[float, float], ...], ...]
    """By environment and level: a lower and a higher share of given turns."""
    whole: float = 0.25
    apart: float = 0.25
    """Least distance of the two cuts; a move halves what lies between a cut and where it could be."""

    name = "prefix"

    @classmethod
    def start(cls, envs: Sequence[str]) -> Self:
        return cls(tuple(envs), (((0.0, 0.75),) * (TOP + 1),) * len(envs))

    def draw(self, rng: np.random.Generator) -> Draw:
        at, level = int(rng.integers(len(self.envs))), int(rng.integers(TOP + 1))
        side, from_start = int(rng.integers(2)), rng.random() < self.whole
        return Draw(self.envs[at], level, given=0.0 if from_start else self.cuts[at][level][side])

    def report(self, draw: Draw, outcomes: Outcomes) -> Self:
        share, at = _share(outcomes), self.envs.index(draw.env)
        levels = [*self.cuts[at]]
        low, high = levels[draw.level]
        if share is None or draw.given not in (low, high):
            return self
        middle = (low + high) / 2
        if share >= 0.5:  # less need be given
            high, low = (middle, low) if draw.given == high else (high, low / 2)
        else:
            low, high = (middle, high) if draw.given == low else (low, (high + 0.95) / 2)
        if high - low < self.apart:
            centre = float(np.clip((low + high) / 2, self.apart / 2, 0.95 - self.apart / 2))
            low, high = centre - self.apart / 2, centre + self.apart / 2
        levels[draw.level] = (low, high)
        return replace(self, cuts=(*self.cuts[:at], tuple(levels), *self.cuts[at + 1 :]))

    def to_json(self) -> dict[str, Any]:
        return {"cuts": {env: list(map(list, c)) for env, c in zip(self.envs, self.cuts, strict=True)}}

    def from_json(self, state: Mapping[str, Any]) -> Self:
        cuts = (tuple((pair[0], pair[1]) for pair in state["cuts"][env]) for env in self.envs)
        return replace(self, cuts=tuple(cuts))


class Unmoved:
    """A schedule that nothing moves."""

    def report(self, draw: Draw, outcomes: Outcomes) -> Self:
        return self

    def to_json(self) -> dict[str, Any]:
        return {}

    def from_json(self, state: Mapping[str, Any]) -> Self:
        return self


@dataclass(frozen=True)
class Recovery(Unmoved):
    """All levels, evenly. Half of the carts are without options, and there the demonstrator's first turns are given,
    which end in a mistake."""

    planted: str = "wrong quantity"

    name = "recovery"

    @classmethod
    def start(cls, envs: Sequence[str]) -> Self:
        _only_carts(cls.name, envs)
        return cls()

    def draw(self, rng: np.random.Generator) -> Draw:
        level = int(rng.integers(TOP + 1))
        if rng.random() < 0.5:
            return Draw("CART", level)
        return Draw("CART", level, {"cart.p_option": 0.0}, planted=self.planted)


class RecoveryControl(Recovery):
    """The control of `Recovery`: the same carts from their beginnings."""

    name = "recovery-control"

    @classmethod
    def start(cls, envs: Sequence[str]) -> Self:
        return replace(super().start(envs), planted="")


@dataclass(frozen=True)
class Singles(Unmoved):
    """One step at a time: a second item, an option or a quantity, alone."""

    name = "singles"

    @classmethod
    def start(cls, envs: Sequence[str]) -> Self:
        _only_carts(cls.name, envs)
        return cls()

    def draw(self, rng: np.random.Generator) -> Draw:
        which = list(SKILLS)[int(rng.integers(len(SKILLS)))]
        return Draw("CART", 0, {which: 2.0 if which == "cart.items" else 1.0})


def _only_carts(name: str, envs: Sequence[str]) -> None:
    if tuple(envs) != ("CART",):
        raise ValueError(f"{name} knows the steps of CART alone, not {list(envs)}")


SKILLS = {
    "cart.items": (1.0, 2.0, 3.0, 4.0, 5.0),
    "cart.p_option": (0.0, 0.25, 0.5, 0.75, 1.0),
    "cart.p_quantity": (0.0, 0.25, 0.5, 0.75, 1.0),
}
"""Sizes of each single step of a cart, smallest first."""


@dataclass(frozen=True)
class Skillwise:
    """A window over the size of each step, as automatic domain randomization (arXiv:1910.07113) has for parameters.

    Half of the groups hold one step alone, at the upper edge of its window, and move it: with `enough` rollouts of
    which at least `tau` are right it opens to the next size. The other half draws every step from its window.
    """

    tops: tuple[int, ...] = (1,) * len(SKILLS)
    """Upper edge of each window, an index of its sizes."""
    seen: tuple[tuple[int, int], ...] = ((0, 0),) * len(SKILLS)
    """Rollouts at the upper edge of each window since it moved, and those correct."""
    moves: tuple[int, ...] = tuple(range(len(SKILLS)))
    """The window that a step's tasks move."""
    tau: float = 0.7
    enough: int = 64

    name = "skill-wise"

    @classmethod
    def start(cls, envs: Sequence[str]) -> Self:
        _only_carts(cls.name, envs)
        return cls()

    def _alone(self, which: int) -> dict[str, float]:
        sizes = list(SKILLS.values())
        return {
            name: sizes[i][self.tops[i] if i == which else 0] for i, name in enumerate(SKILLS)
        }  # fmt: skip

    def draw(self, rng: np.random.Generator) -> Draw:
        which, alone = int(rng.integers(len(SKILLS))), rng.random() < 0.5
        sizes = [int(rng.integers(top, endpoint=True)) for top in self.tops]
        together = {name: SKILLS[name][size] for name, size in zip(SKILLS, sizes, strict=True)}
        return Draw("CART", 0, self._alone(which) if alone else together)

    def report(self, draw: Draw, outcomes: Outcomes) -> Self:
        share = _share(outcomes)
        which = next((i for i in range(len(SKILLS)) if draw.overrides == self._alone(i)), None)
        if share is None or which is None:
            return self
        scored, moved = sum(outcome is not None for outcome in outcomes), self.moves[which]
        tops, seen = [*self.tops], [*self.seen]
        seen[which] = (seen[which][0] + scored, seen[which][1] + round(share * scored))
        if seen[which][0] >= self.enough:
            tops[moved] += seen[which][1] / seen[which][0] >= self.tau and tops[moved] + 1 < len(
                [*SKILLS.values()][moved]
            )
            seen[which] = (0, 0)
        return replace(self, tops=tuple(tops), seen=tuple(seen))

    def to_json(self) -> dict[str, Any]:
        return {"tops": list(self.tops), "seen": list(map(list, self.seen))}

    def from_json(self, state: Mapping[str, Any]) -> Self:
        seen = tuple((pair[0], pair[1]) for pair in state["seen"])
        return replace(self, tops=tuple(state["tops"]), seen=seen)


class SkillwiseShuffled(Skillwise):
    """The control of `Skillwise`: a step's tasks move the window of the next one."""

    name = "skill-wise-shuffled"

    @classmethod
    def start(cls, envs: Sequence[str]) -> Self:
        return replace(super().start(envs), moves=tuple((i + 1) % len(SKILLS) for i in range(len(SKILLS))))


target, learnability, prefix, singles = Target.start, Learnability.start, Prefix.start, Singles.start
recovery, recovery_control = Recovery.start, RecoveryControl.start
skill_wise, skill_wise_shuffled = Skillwise.start, SkillwiseShuffled.start
