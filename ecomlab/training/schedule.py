"""Schedules draw the tasks of a training step. Any object with the methods of `Schedule` is one.

A schedule returns a `Draw` for each group and gets the outcomes::

    class Bandit:
        def __init__(self, envs): ...               # the environments of the run
        def draw(self, rng): return Draw(env, level)
        def report(self, draw, outcomes): ...       # True: correct, False: not, None: unscored; returns the next state
        def to_json(self): ...                      # the state as JSON values
        def from_json(self, state): ...             # the schedule in that state

`end_step`, `window` and `name` are optional. The adaptive rule is RLVE's, kept per environment: levels are drawn
uniformly from a window [low, high]; only rollouts at `high` count; once a step ends with at least `tau_num` of them, a
share correct of at least `tau_acc` raises `high` by one; the counts restart either way, and `low` follows so that the
window spans at most `d_delta` levels. No window ever moves down. With `check_every="group"` the check comes after every
group instead, so that a window can move within a step.
"""

import inspect
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np

from ecomlab import own_code
from ecomlab.evaluation.planting import PLANTABLE
from ecomlab.evaluation.tasks import check_axes
from ecomlab.seeding import digest
from ecomlab.suggest import unknown, whole

CHECKS = ("step", "group")
"""When the adaptive rule decides: at the end of a step, or after every group."""
Outcomes = Iterable[bool | np.bool_ | None]
"""True is correct, False is not, None is unscored."""


class ScheduleError(ValueError):
    """A schedule that cannot be made, or whose draw cannot be played."""


@dataclass(frozen=True)
class Draw:
    """One group's task: an environment, a level, overrides of the level's axes, and the share of given turns."""

    env: str
    level: int
    overrides: Mapping[str, float] = field(default_factory=dict)
    """Fields of `Difficulty` with other values than the level's, as `make_task(overrides=)` takes them."""
    given: float = 0.0
    """Share of the needed turns that the reference player plays first, in [0, 1). They are not trained."""
    planted: str = ""
    """A kind of mistake with which given turns end, in place of a share: one of `evaluation.planting.PLANTABLE`. A task
    that offers no opportunity is played from its beginning."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", whole(self.level, "a level"))
        if not 0 <= self.given < 1:
            raise ValueError(f"given is a share in [0, 1), not {self.given}")
        if self.planted and self.given:
            raise ValueError(f"given turns end by a share or in a mistake, not by both: {self}")
        if self.planted and self.planted not in PLANTABLE:
            raise ValueError(unknown("mistake to plant", self.planted, PLANTABLE))

    def check(self, envs: Collection[str]) -> None:
        """Raise ScheduleError if its environment is not in `envs`, or an override does not move its environment."""
        try:
            if self.env not in envs:
                raise ValueError(unknown("environment", self.env, envs))
            check_axes(self.overrides, [self.env])
        except ValueError as error:
            raise ScheduleError(f"{self} cannot be played: {error}") from None


class Schedule(Protocol):
    """The interface of schedules. `report` and `end_step` return the next state: a new object, or `self` after changes
    in place. Optional: `end_step() -> Schedule`, called after a step whose groups were all reported; `window(env) ->
    (low, high)`, the levels that `draw` can return now; `name`, by default that of the class."""

    def draw(self, rng: np.random.Generator) -> Draw:
        """Draw the next group's task. All randomness comes from `rng`, so that runs can be repeated."""

    def report(self, draw: Draw, outcomes: Outcomes) -> "Schedule":
        """Return the schedule after a group of `draw` ended with these outcomes."""

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON values, from which `from_json` makes an equal schedule."""

    def from_json(self, state: Mapping[str, Any]) -> "Schedule":
        """Return this schedule in a saved state."""


def end_step(schedule: Schedule) -> Schedule:
    """Return the schedule after a step has ended."""
    end = getattr(schedule, "end_step", None)
    return schedule if end is None else _next(end(), schedule)


def report(schedule: Schedule, draw: Draw, outcomes: Outcomes) -> Schedule:
    """Return the schedule after a group's outcomes."""
    return _next(schedule.report(draw, outcomes), schedule)


def windows(schedule: Schedule, envs: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return the window of each environment; none for a schedule without windows."""
    window = getattr(schedule, "window", None)
    return {} if window is None else {env: window(env) for env in envs}


def _next(found: Any, before: Schedule) -> Schedule:
    if found is None:
        raise ScheduleError(f"{type(before).__name__} returned no schedule; return the next one, or self")
    return found


# --- the built-in ones ---


@dataclass(frozen=True)
class Window:
    """One environment's window, and the rollouts counted at its upper edge since the last check."""

    low: int = 0
    high: int = 0
    attempts: int = 0
    correct: int = 0


class _Uniform:
    """Draw an environment uniformly, and a level uniformly from its window."""

    envs: tuple[str, ...]

    def draw(self, rng: np.random.Generator) -> Draw:
        env = self.envs[int(rng.integers(len(self.envs)))]
        return Draw(env, int(rng.integers(*self.window(env), endpoint=True)))

    def window(self, env: str) -> tuple[int, int]:
        raise NotImplementedError


@dataclass(frozen=True)
class Adaptive(_Uniform):
    """RLVE's adaptive window per environment. Make one with `Adaptive.start`."""

    envs: tuple[str, ...]
    windows: tuple[Window, ...]
    tau_acc: float = 0.9
    tau_num: int = 64
    d_delta: int = 4
    check_every: str = "step"

    name = "adaptive"

    def __post_init__(self) -> None:
        _check_envs(self.envs)
        if not 0 < self.tau_acc <= 1:
            raise ValueError(f"tau_acc is a share in (0, 1], not {self.tau_acc}")
        if self.tau_num < 1 or self.d_delta < 1:
            raise ValueError(f"tau_num and d_delta are at least 1, not {self.tau_num} and {self.d_delta}")
        if self.check_every not in CHECKS:
            raise ValueError(unknown("time to check", self.check_every, CHECKS))
        for window in self.windows:
            _check_range(window.low, window.high)

    @classmethod
    def start(
        cls,
        envs: Sequence[str],
        *,
        initial_difficulty: int = 0,
        tau_acc: float = 0.9,
        tau_num: int = 64,
        d_delta: int = 4,
        check_every: str = "step",
    ) -> Self:
        """Make the state before any outcome. `initial_difficulty` is the upper edge of the first window, which spans
        `d_delta` levels, fewer at the bottom."""
        first = Window(max(0, initial_difficulty - d_delta + 1), initial_difficulty)
        return cls(tuple(envs), (first,) * len(envs), tau_acc, tau_num, d_delta, check_every)

    def report(self, draw: Draw, outcomes: Outcomes) -> "Adaptive":
        at, scored = _index(self.envs, draw.env), _scored(outcomes)
        window = self.windows[at]
        if draw.level != window.high or not scored:
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
        windows = zip(self.envs, self.windows, strict=True)
        return {"windows": {env: [w.low, w.high, w.attempts, w.correct] for env, w in windows}}

    def from_json(self, state: Mapping[str, Any]) -> "Adaptive":
        return replace(self, windows=tuple(Window(*state["windows"][env]) for env in self.envs))


NAMED_RANGES = {"static-low": (0, 1), "static-high": (6, 12)}
RANGE = r"static-(\d+)-(\d+)"


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

    def report(self, draw: Draw, outcomes: Outcomes) -> "Static":
        return self

    def window(self, env: str) -> tuple[int, int]:
        return self.low, self.high

    def to_json(self) -> dict[str, Any]:
        return {}

    def from_json(self, state: Mapping[str, Any]) -> "Static":
        return self


Factory = Callable[..., Schedule]
"""Makes a schedule at its start: takes the environments, and settings as keywords."""


def _range(low: int, high: int) -> Factory:
    return lambda envs: Static(tuple(envs), low, high)


SCHEDULES: dict[str, Factory] = {
    "adaptive": Adaptive.start,
    **{name: _range(*span) for name, span in NAMED_RANGES.items()},
}
"""Schedules by name. `factory_of` also takes any range, such as static-3-5, and FILE.py:NAME."""


# --- by name, from a file, or as an object ---


def make_schedule(which: "str | Factory | Schedule", envs: Sequence[str], **settings: Any) -> Schedule:
    """Make a schedule at its start. `which` is a name (`factory_of`), a class or function, called with the environments
    and `settings`, or a schedule, which is copied. Raises ScheduleError for an object that lacks a method."""
    if isinstance(which, str):
        which = factory_of(which)
    if isinstance(which, type) or not hasattr(which, "draw"):
        if not callable(which):
            raise ScheduleError(f"{which!r} is no schedule: give a name, a class, a function or an object")
        try:
            inspect.signature(which).bind_partial(tuple(envs))
        except TypeError:
            name = getattr(which, "__name__", which)
            raise ScheduleError(f"{name} must take the environments: def __init__(self, envs)") from None
        made = which(tuple(envs), **settings)
    else:
        made = deepcopy(which)
    needed = ("draw", "report", "to_json", "from_json")
    if lacks := [name for name in needed if not callable(getattr(made, name, None))]:
        raise ScheduleError(
            f"{type(made).__name__} has no {', '.join(lacks)}; a schedule needs {', '.join(needed)}"
        )
    try:
        json.dumps(made.to_json())
    except TypeError as error:
        raise ScheduleError(f"the state of {type(made).__name__} is no JSON: {error}") from None
    return made


def factory_of(name: str) -> Factory:
    """Find the factory of a schedule: a name in `SCHEDULES`, a range such as static-3-5, or FILE.py:NAME for a custom
    class or function. Raises ScheduleError."""
    if name in SCHEDULES:
        return SCHEDULES[name]
    if match := re.fullmatch(RANGE, name):
        return _range(int(match[1]), int(match[2]))
    if not own_code.is_named(name):
        known = unknown("schedule", name, SCHEDULES)
        raise ScheduleError(f"{known}, any range as 'static-3-5', and FILE.py:NAME for one of your own")
    try:
        found: Factory = own_code.named(name)
    except ValueError as error:
        raise ScheduleError(str(error)) from error
    return found


def settings_of(which: "str | Factory | Schedule", known: Mapping[str, Any]) -> dict[str, Any]:
    """Select the `known` settings for which a schedule's factory has a parameter."""
    factory = factory_of(which) if isinstance(which, str) else which
    if not callable(factory):
        return {}
    return {name: known[name] for name in inspect.signature(factory).parameters if name in known}


def name_of(which: "str | Factory | Schedule", made: Schedule) -> str:
    """Name a schedule for tables and figures, by its attribute `name` or its class. A custom schedule never gets the
    name of a built-in one, even if it inherits from it."""
    if isinstance(which, str) and not own_code.is_named(which):
        return which
    name = getattr(made, "name", None) or type(made).__name__
    if name not in SCHEDULES and not re.fullmatch(RANGE, name):
        return str(name)
    if type(made) not in (Adaptive, Static):
        return type(made).__name__
    return (
        which.rpartition(":")[2]
        if isinstance(which, str)
        else getattr(which, "__name__", type(made).__name__)
    )


def digest_of(which: "str | Factory | Schedule", made: Schedule) -> str:
    """Digest the source of a custom schedule: its file, or its class and factory. Return "" for a built-in schedule,
    and if no source is available."""
    if isinstance(which, str):
        return digest(own_code.file_of(which).read_text("utf-8")) if own_code.is_named(which) else ""
    sources = [own_code.source_of(thing) for thing in (type(made), which)]
    return digest(sources) if all(sources) else ""


def _check_envs(envs: tuple[str, ...]) -> None:
    if not envs or len(set(envs)) != len(envs):
        raise ValueError(f"a schedule needs one or more distinct environments, not {list(envs)}")


def _check_range(low: int, high: int) -> None:
    if not 0 <= low <= high:
        raise ValueError(f"a difficulty range needs 0 <= low <= high, not [{low}, {high}]")


def _index(envs: Sequence[str], env: str) -> int:
    if env not in envs:
        raise ValueError(f"in this schedule {unknown('environment', env, envs)}")
    return envs.index(env)


def _scored(outcomes: Outcomes) -> list[bool]:
    """Keep the outcomes that were scored. Raises TypeError for a reward, which would count as true."""
    given = list(outcomes)
    for outcome in given:
        if outcome is not None and not isinstance(outcome, bool | np.bool_):
            raise TypeError(
                f"outcomes must be True, False or None (unscored), got {outcome!r} (pass correctness, not reward)"
            )
    return [bool(outcome) for outcome in given if outcome is not None]
