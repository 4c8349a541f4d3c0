"""A stream of training tasks: what a trainer of any kind plugs in. It draws by a schedule and hears the outcomes::

    stream = Stream("adaptive", "C8", seed=0)
    ticket = stream.next_group()                                # a task of training, for a group of rollouts
    episodes = [stream.open(ticket) for _ in range(8)]          # messages in, messages out
    ...
    stream.report(ticket, [episode.score() for episode in episodes])
    state = stream.state()                                      # JSON, from which `restore` goes on

`open_tokens` plays in token ids instead. No held-out task can come out of a stream: a ticket with another seed than
those of `TRAINING_SEEDS` cannot be made.
"""

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ecomlab.catalog import load_shop
from ecomlab.episode.episode import Episode
from ecomlab.evaluation.planting import planted_turns
from ecomlab.evaluation.tasks import Axes, axes_of, check_axes, environments_of
from ecomlab.files import write_json
from ecomlab.models.batch import Plays, Rollout, Start, draw_task
from ecomlab.reward import PUBLISHED, Score, Weights
from ecomlab.seeding import TRAINING_SEEDS, rng
from ecomlab.suggest import whole
from ecomlab.training.schedule import (
    Draw,
    Factory,
    Schedule,
    ScheduleError,
    end_step,
    make_schedule,
    report,
    windows,
)

if TYPE_CHECKING:
    from ecomlab.catalog import Shop
    from ecomlab.models.renderer import Renderer
    from ecomlab.models.samplers.cached import Sampled

Place = tuple[Any, int, int]
"""Step, round within the step, and number within the round."""
Outcome = Score | bool | np.bool_ | None


@dataclass(frozen=True)
class Ticket:
    """What a group of rollouts plays: a draw, a training seed, and the draw's place in the stream. It travels as
    JSON."""

    draw: Draw
    seed: int
    place: Place

    def __post_init__(self) -> None:
        if self.seed not in TRAINING_SEEDS:
            raise ValueError(f"{self.seed} is no training seed: those are below {TRAINING_SEEDS.stop}")

    def to_json(self) -> dict[str, Any]:
        draw = {**vars(self.draw), "overrides": dict(self.draw.overrides)}
        return {**draw, "seed": self.seed, "place": list(self.place)}

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> "Ticket":
        draw = Draw(**{entry.name: state[entry.name] for entry in fields(Draw) if entry.name in state})
        step, number, index = state["place"]
        return cls(draw, state["seed"], (step, number, index))


class Stream:
    """Draws tickets from a schedule, opens their episodes, and hears their outcomes; safe to use from several threads.

    Tickets may be reported in any order. What was drawn and not reported when `state` was taken is drawn first by
    whoever restores it, so that a resumed run draws what an uninterrupted one draws.
    """

    def __init__(
        self,
        schedule: str | Factory | Schedule = "adaptive",
        envs: str | Sequence[str] = "C8",
        *,
        seed: int = 0,
        groups_per_step: int | None = 8,
        axes: Axes | None = None,
        weights: Weights = PUBLISHED,
        shop: "Shop | int | None" = None,
        key: Sequence[Any] | None = None,
        step: Any = 0,
        **settings: Any,
    ) -> None:
        """`schedule` is a name, a class or function, called with the environments and `settings`, or an object, which
        is used itself; `envs` a collection or environments; `axes` are overridden in all tasks, but for what a draw
        overrides. The schedule's step ends once `groups_per_step` tickets were reported; None: by `end_step`. Of
        adaptive's settings `tau_num`, the rollouts at the window's edge that a decision takes, is 64; the articles have
        8 times the group's size. `shop` is a shop or a number of generated products, which are loaded when they are
        needed. `key` names the randomness, by default as in `ecomlab train` with this seed; `step` is the first step's
        number. Raises ValueError."""
        if groups_per_step is not None and whole(groups_per_step, "groups_per_step") < 1:
            raise ValueError(f"groups_per_step is at least 1, or None, not {groups_per_step}")
        self.envs = tuple(environments_of(envs if isinstance(envs, str) else ",".join(envs)))
        if isinstance(schedule, str | type) or not hasattr(schedule, "draw"):
            try:
                schedule = make_schedule(schedule, self.envs, **settings)
            except TypeError as error:
                raise ScheduleError(f"the schedule {schedule!r} takes no such setting: {error}") from error
        self.schedule = cast(Schedule, schedule)
        self.groups_per_step, self.axes, self.weights = groups_per_step, dict(axes or {}), weights
        check_axes(self.axes, self.envs)
        self.key = ("train", whole(seed, "a seed")) if key is None else tuple(key)
        self._shop, self._lock = shop, threading.RLock()
        self._place: Place = (step, 0, 0)
        self._reported = 0
        self._waiting: dict[Place, Ticket] = {}
        self._again: list[Ticket] = []

    @property
    def shop(self) -> "Shop":
        """The shop of its tasks."""
        if self._shop is None or isinstance(self._shop, int):
            self._shop = load_shop() if self._shop is None else load_shop(self._shop)
        return self._shop

    def windows(self) -> dict[str, tuple[int, int]]:
        """Return the window of levels of each environment now; none for a schedule without windows."""
        return windows(self.schedule, self.envs)

    def next_group(self) -> Ticket:
        """Draw what the next group plays. Raises ScheduleError for a draw that cannot be played."""
        with self._lock:
            if self._again:
                return self._again.pop(0)
            random = rng("draw", *self.key, *self._place)
            draw = self.schedule.draw(random)
            if not isinstance(draw, Draw):
                raise ScheduleError(f"a schedule's draw returned {draw!r}; return a Draw(env, level)")
            draw.check(self.envs)
            ticket = Ticket(
                draw, int(random.integers(TRAINING_SEEDS.start, TRAINING_SEEDS.stop)), self._place
            )
            self._waiting[ticket.place] = ticket
            step, number, index = self._place
            last = index + 1 == self.groups_per_step
            self._place = (step + 1, 0, 0) if last else (step, number, index + 1)
            return ticket

    def start(self, ticket: Ticket) -> Start | Exception:
        """Draw a ticket's task, as `draw_task`."""
        draw = ticket.draw
        overrides = {**axes_of(self.axes, draw.env), **draw.overrides}
        task = draw_task(draw.env, draw.level, ticket.seed, self.shop, overrides)
        if isinstance(task, Exception):
            return task
        first = partial(planted_turns, kind=draw.planted) if draw.planted else ()
        return Start(task, self.weights, draw.given, first)

    def open(self, ticket: Ticket, strict: bool = False) -> Episode:
        """Open an episode, given turns played. Raises what the environment raised if its task could not be drawn: the
        outcome to report is None then."""
        start = self.start(ticket)
        if isinstance(start, Exception):
            raise start
        episode = Episode(start.task, self.shop, strict=strict, weights=self.weights)
        for message in start.turns(self.shop):
            episode.act(message)
        return episode

    def open_tokens(self, ticket: Ticket, renderer: "Renderer", strict: bool = False) -> "TokenEpisode":
        """Open an episode that is played in token ids. It is over at once, unscored, if its task could not be drawn."""
        return TokenEpisode(self.start(ticket), self.shop, renderer, strict)

    def report(self, ticket: Ticket, outcomes: Iterable[Outcome]) -> None:
        """Report the outcomes of all of a ticket's rollouts to the schedule. Raises KeyError for a ticket that waits
        for none, ValueError without outcomes, and what the schedule raises; the ticket waits on then."""
        found = [_verdict(outcome) for outcome in outcomes]
        if not found:
            raise ValueError("a group has outcomes: True, False or None (unscored) for each rollout")
        with self._lock:
            if self._waiting.get(ticket.place) != ticket:
                raise KeyError(f"the group at {ticket.place} was not drawn here, or has been reported")
            self.schedule = report(self.schedule, ticket.draw, found)
            del self._waiting[ticket.place]
            self._reported += 1
            if self._reported == self.groups_per_step:
                self.schedule, self._reported = end_step(self.schedule), 0

    def next_round(self) -> None:
        """Begin another round of the same step, in place of groups that taught nothing."""
        self._place = (self._place[0], self._place[1] + 1, 0)

    def end_step(self) -> None:
        """End the schedule's step."""
        with self._lock:
            self.schedule, self._place, self._reported = (
                end_step(self.schedule),
                (self._place[0] + 1, 0, 0),
                0,
            )

    def state(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        with self._lock:
            waiting = [ticket.to_json() for ticket in self._waiting.values()]
            counts = {"place": list(self._place), "reported": self._reported}
            return {"of": self._made(), "schedule": self.schedule.to_json(), **counts, "waiting": waiting}

    def _made(self) -> dict[str, Any]:
        """Say what the stream was made with, as far as its draws depend on it."""
        name = getattr(self.schedule, "name", None) or type(self.schedule).__name__
        made = {"schedule": name, "envs": list(self.envs), "key": list(self.key), "axes": self.axes}
        return {**made, "groups_per_step": self.groups_per_step}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state of a stream that was made alike. Raises ValueError for one that was not."""
        if not isinstance(state, Mapping) or not {"of", "schedule", "place", "reported", "waiting"} <= set(
            state
        ):
            raise ValueError("this is no stream's state: give what state() returned, as a dict")
        mine = json.loads(json.dumps(self._made()))
        if wrong := [
            f"{n} = {was!r}, here {mine.get(n)!r}" for n, was in state["of"].items() if was != mine.get(n)
        ]:
            raise ValueError(
                f"the state is of another stream ({'; '.join(wrong)}); make this one as that one"
            )
        with self._lock:
            self.schedule = self.schedule.from_json(state["schedule"])
            self._place, self._reported = tuple(state["place"]), state["reported"]
            self._again = [Ticket.from_json(one) for one in state["waiting"]]
            self._waiting = {ticket.place: ticket for ticket in self._again}


@dataclass
class _Open:
    ticket: Ticket
    begun: int = 0
    outcomes: list[Outcome] = field(default_factory=list)


class Groups:
    """A stream's groups by names that a caller chooses, for engines in which every rollout begins and ends on its own.
    A group is reported once `size` of its rollouts have ended; after that its name begins another. With a file `kept`
    the stream goes on from the state in it, and its state is written there after every report."""

    def __init__(self, stream: Stream, size: int, kept: Path | None = None) -> None:
        if whole(size, "a group's size") < 1:
            raise ValueError(f"a group has at least one rollout, not {size}")
        self.stream, self.size, self.kept = stream, size, kept
        if kept is not None and kept.exists():
            stream.restore(json.loads(kept.read_text()))
        self._open: dict[str, _Open] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Count the groups that have begun and not been reported."""
        return len(self._open)

    def begin(self, name: str) -> Ticket:
        """Begin a rollout of a group, which is drawn if it is new. Raises ValueError once all have begun."""
        with self._lock:
            if name not in self._open:
                self._open[name] = _Open(self.stream.next_group())
            group = self._open[name]
            if group.begun == self.size:
                raise ValueError(
                    f"all {self.size} rollouts of group {name!r} have begun: give the next a new name"
                )
            group.begun += 1
            return group.ticket

    def open(self, name: str) -> tuple[Ticket, Episode]:
        """Begin a rollout and open its episode. If its task cannot be drawn, it has ended without an outcome, and what
        the environment raised is raised."""
        ticket = self.begin(name)
        try:
            return ticket, self.stream.open(ticket)
        except Exception:
            self.end(name, None)
            raise

    def end(self, name: str, outcome: Outcome) -> None:
        """Note how a rollout ended; None if it was left unfinished."""
        with self._lock:
            group = self._open[name]
            group.outcomes.append(outcome)
            if len(group.outcomes) == self.size:
                self.stream.report(self._open.pop(name).ticket, group.outcomes)
                if self.kept is not None:
                    write_json(self.kept, self.stream.state())


class TokenEpisode:
    """One episode in token ids: `reads` are the ids that the policy reads next, the whole prompt at first, and
    `context` all ids up to its next turn; `rollout` is what there is to train on, once it is over."""

    def __init__(
        self, start: Start | Exception, shop: "Shop", renderer: "Renderer", strict: bool = False
    ) -> None:
        self.renderer = renderer
        self._plays = Plays(shop, renderer)
        self.reads: list[int] = []
        self.context: list[int] = []
        self.rollout: Rollout | None = None
        self._came(self._plays.open({0: start}, strict)[0])
        self.prompt = list(self.context)

    @property
    def done(self) -> bool:
        return self.rollout is not None

    def act(self, sampled: "Sampled") -> None:
        """Play one turn of the policy: its ids with the stop token, and their log-probabilities."""
        if self.done:
            raise RuntimeError("the episode is over")
        self.context += sampled.ids
        self._came(self._plays.answer({0: sampled}, 0.0)[0])

    def _came(self, came: list[int] | Rollout) -> None:
        self.reads, self.rollout = ([], came) if isinstance(came, Rollout) else (came, None)
        self.context += self.reads


def _verdict(outcome: Outcome) -> Any:
    """Read correctness; None for an unscored rollout."""
    return (None if outcome.unscored else outcome.correct) if isinstance(outcome, Score) else outcome
