"""Difficulty schedules: pure functions from (state, outcomes) to the next state, adaptive or static, one interface.

The adaptive rule is RLVE's, kept per environment: difficulties are drawn uniformly from a window
[low, high]; only rollouts at `high` count; once a step ends with at least `tau_num` of them, a share correct of at
least `tau_acc` raises `high` by one; the counts restart either way, and `low` follows so that the window spans at most
`d_delta` levels. No window ever moves down. With `check_every="group"` the check comes after every group instead, so
that a window can move within a step.

    schedule = make_schedule("adaptive", ["CART"])
    env = schedule.draw_environment(stream)
    d = schedule.draw(env, stream)
    schedule = schedule.report(env, d, [True, False, None])     # None: unscored, not counted
    schedule = schedule.end_step()
    assert from_json(json.loads(json.dumps(schedule.to_json()))) == schedule
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np

from ecomlab.suggest import unknown

CHECKS = ("step", "group")
"""When the adaptive rule decides: at the end of a step, or after every group."""
NAMED_RANGES = {"static-low": (0, 1), "static-high": (6, 12)}


class Schedule(Protocol):
    """The interface of schedules. States are frozen: `report` returns the next one."""

    @property
    def name(self) -> str:
        """The name by which `make_schedule` makes it."""

    @property
    def envs(self) -> tuple[str, ...]:
        """The collection's environments."""

    def draw_environment(self, rng: np.random.Generator) -> str:
        """Draw one of `envs`, uniformly."""

    def draw(self, env: str, rng: np.random.Generator) -> int:
        """Draw a difficulty for `env`, uniformly from its window."""

    def report(self, env: str, d: int, outcomes: Iterable[bool | np.bool_ | None]) -> "Schedule":
        """Return the state after rollouts of `env` at `d`: True is correct, False not, None unscored (not counted)."""

    def end_step(self) -> "Schedule":
        """Return the state after a training step whose groups were all reported."""

    def window(self, env: str) -> tuple[int, int]:
        """Return the lowest and the highest difficulty that `draw` can return now."""

    def to_json(self) -> dict[str, Any]:
        """Return the whole state as JSON values, from which `from_json` makes an equal schedule."""


@dataclass(frozen=True)
class Window:
    """One environment's window, and the rollouts counted at its upper edge since the last check."""

    low: int = 0
    high: int = 0
    attempts: int = 0
    correct: int = 0


class _Uniform:
    """Uniform draws from `envs`, and from an environment's window."""

    envs: tuple[str, ...]

    def draw_environment(self, rng: np.random.Generator) -> str:
        return self.envs[int(rng.integers(len(self.envs)))]

    def draw(self, env: str, rng: np.random.Generator) -> int:
        return int(rng.integers(*self.window(env), endpoint=True))

    def window(self, env: str) -> tuple[int, int]:
        raise NotImplementedError


@dataclass(frozen=True)
class Adaptive(_Uniform):
    """RLVE's adaptive window per environment. Make one with `Adaptive.start` or `make_schedule("adaptive", envs)`."""

    envs: tuple[str, ...]
    windows: tuple[Window, ...]
    tau_acc: float = 0.9
    tau_num: int = 64
    d_delta: int = 4
    check_every: str = "step"

    name = "adaptive"

    def __post_init__(self) -> None:
        _check_envs(self.envs)
        if len(self.windows) != len(self.envs):
            raise ValueError(f"{len(self.windows)} windows for {len(self.envs)} environments; give one each")
        if not 0 < self.tau_acc <= 1:
            raise ValueError(f"tau_acc is a share in (0, 1], not {self.tau_acc}")
        if self.tau_num < 1 or self.d_delta < 1:
            raise ValueError(f"tau_num and d_delta are at least 1, not {self.tau_num} and {self.d_delta}")
        if self.check_every not in CHECKS:
            raise ValueError(unknown("time to check", self.check_every, CHECKS))
        for env, w in zip(self.envs, self.windows, strict=True):
            _check_range(w.low, w.high)
            if w.high - w.low + 1 > self.d_delta:
                raise ValueError(
                    f"{env}'s window [{w.low}, {w.high}] is wider than d_delta = {self.d_delta} levels"
                )
            undecided = w.attempts < self.tau_num or self.check_every == "step"  # within one they may be more
            if not (0 <= w.correct <= w.attempts and undecided):
                raise ValueError(
                    f"{env} cannot have {w.correct} correct of {w.attempts} with tau_num = {self.tau_num}"
                )

    @classmethod
    def start(
        cls,
        envs: Sequence[str],
        low: int = 0,
        high: int = 0,
        *,
        tau_acc: float = 0.9,
        tau_num: int = 64,
        d_delta: int = 4,
        check_every: str = "step",
    ) -> Self:
        """Make the state before any outcome: every environment at [low, high]."""
        return cls(tuple(envs), (Window(low, high),) * len(envs), tau_acc, tau_num, d_delta, check_every)

    def report(self, env: str, d: int, outcomes: Iterable[bool | np.bool_ | None]) -> "Adaptive":
        at, scored = _index(self.envs, env), _scored(outcomes)
        window = self.windows[at]
        if d != window.high or not scored:
            return self
        window = replace(window, attempts=window.attempts + len(scored), correct=window.correct + sum(scored))
        if self.check_every == "group":
            window = self._checked(window)
        return replace(self, windows=(*self.windows[:at], window, *self.windows[at + 1 :]))

    def end_step(self) -> "Adaptive":
        return replace(self, windows=tuple(map(self._checked, self.windows)))

    def _checked(self, window: Window) -> Window:
        """Decide about a window that has enough rollouts at its upper edge; leave any other as it is."""
        if window.attempts < self.tau_num:
            return window
        high = window.high + (window.correct / window.attempts >= self.tau_acc)
        return Window(max(window.low, high - self.d_delta + 1), high)

    def window(self, env: str) -> tuple[int, int]:
        window = self.windows[_index(self.envs, env)]
        return window.low, window.high

    def to_json(self) -> dict[str, Any]:
        settings = {name: getattr(self, name) for name in ("tau_acc", "tau_num", "d_delta", "check_every")}
        windows = {
            e: [w.low, w.high, w.attempts, w.correct] for e, w in zip(self.envs, self.windows, strict=True)
        }
        return {"name": self.name, "envs": list(self.envs), **settings, "windows": windows}


@dataclass(frozen=True)
class Static(_Uniform):
    """A range that never moves, the same for every environment."""

    envs: tuple[str, ...]
    low: int
    high: int

    def __post_init__(self) -> None:
        _check_envs(self.envs)
        _check_range(self.low, self.high)

    @property
    def name(self) -> str:
        named = {span: name for name, span in NAMED_RANGES.items()}
        return named.get((self.low, self.high), f"static-{self.low}-{self.high}")

    def report(self, env: str, d: int, outcomes: Iterable[bool | np.bool_ | None]) -> "Static":
        _index(self.envs, env)
        _scored(outcomes)
        return self

    def end_step(self) -> "Static":
        return self

    def window(self, env: str) -> tuple[int, int]:
        _index(self.envs, env)
        return self.low, self.high

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "envs": list(self.envs)}


def make_schedule(
    name: str,
    envs: Sequence[str],
    *,
    tau_acc: float = 0.9,
    tau_num: int = 64,
    d_delta: int = 4,
    initial_difficulty: int = 0,
    check_every: str = "step",
) -> Adaptive | Static:
    """Make the schedule called `name` at its start: adaptive, static-low (U[0, 1]), static-high (U[6, 12]), static-A-B.

    The settings are the adaptive rule's (in a run, tau_num is 8 × group size by default); static ranges ignore them.
    `initial_difficulty` is the upper edge of the first window, which spans `d_delta` levels, fewer at the bottom.
    """
    if name == "adaptive":
        low, high = max(0, initial_difficulty - d_delta + 1), initial_difficulty
        return Adaptive.start(
            envs, low, high, tau_acc=tau_acc, tau_num=tau_num, d_delta=d_delta, check_every=check_every
        )
    if name in NAMED_RANGES:
        return Static(tuple(envs), *NAMED_RANGES[name])
    if match := re.fullmatch(r"static-(\d+)-(\d+)", name):
        return Static(tuple(envs), int(match[1]), int(match[2]))
    known = ["adaptive", *NAMED_RANGES]
    raise ValueError(f"{unknown('schedule', name, known)}, and any range as 'static-3-5'")


def from_json(state: dict[str, Any]) -> Adaptive | Static:
    """Restore the schedule that `to_json` saved, exactly. Raises ValueError that says what is wrong with `state`."""
    try:
        name, envs = state["name"], state["envs"]
        if name != "adaptive":
            return make_schedule(name, envs)
        settings = {key: state[key] for key in ("tau_acc", "tau_num", "d_delta")}
        settings["check_every"] = state.get("check_every", "group")  # as it was when states did not say
        return Adaptive(tuple(envs), tuple(Window(*state["windows"][env]) for env in envs), **settings)
    except (KeyError, TypeError) as e:
        raise ValueError(
            f"not a saved schedule: {type(e).__name__} {e}; was this written by Schedule.to_json?"
        ) from e


def _check_envs(envs: tuple[str, ...]) -> None:
    if not envs or len(set(envs)) != len(envs):
        raise ValueError(f"a schedule needs one or more distinct environments, not {list(envs)}")


def _check_range(low: int, high: int) -> None:
    if not 0 <= low <= high:
        raise ValueError(f"a difficulty range needs 0 <= low <= high, not [{low}, {high}]")


def _index(envs: tuple[str, ...], env: str) -> int:
    if env not in envs:
        raise ValueError(f"in this schedule {unknown('environment', env, envs)}")
    return envs.index(env)


def _scored(outcomes: Iterable[bool | np.bool_ | None]) -> list[bool]:
    """Keep the outcomes that were scored. Raises TypeError for a reward, which would count as true."""
    given = list(outcomes)
    for outcome in given:
        if outcome is not None and not isinstance(outcome, bool | np.bool_):
            raise TypeError(
                f"an outcome is True, False or None (unscored), not {outcome!r}; a reward is no verdict"
            )
    return [bool(outcome) for outcome in given if outcome is not None]
