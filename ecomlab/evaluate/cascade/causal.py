"""What a mistake leads to: a player's own correct beginning, with one act replaced by a wrong one, against its twin at
the same randomness. The two differ in nothing else, so the difference is the mistake's effect.

Both go on with numbers that are drawn anew. The episode in which the act was found will not do as the twin: the act was
drawn among all up to that episode's first mistake, so the sooner it went wrong afterwards, the likelier was this act.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ecomlab.episode.episode import Trajectory
from ecomlab.episode.play import act_out, reopened
from ecomlab.evaluate.cascade.edits import EDITS, Scene, calls_of, edit
from ecomlab.evaluate.cascade.forced import Forced, Runner
from ecomlab.evaluate.cascade.labels import label
from ecomlab.evaluate.cascade.mistakes import Labelled
from ecomlab.evaluate.compare import paired_interval
from ecomlab.evaluate.contestant import Job
from ecomlab.evaluate.summary import CONFIDENCE, share_interval
from ecomlab.seeding import pick, rng
from ecomlab.task import Message

if TYPE_CHECKING:
    from ecomlab.catalog import Shop

ACTS = tuple(kind for kind in EDITS if kind != "missed item")
"""Kinds of wrong acts; what is missed is none."""
LEFT_OUT = ("unscored", "no correct act to replace", "another beginning", "cannot be written")
"""Why an episode has no pair. Another beginning: up to the act, what was played again was not what was played before.
Cannot be written: the player has no way to say the wrong act, for it never saw what the act is about."""
COLUMNS = (
    "env", "d", "seed", "trial", "kind", "turn", "final", "twin_correct", "planted_correct", "twin_later",
    "planted_later", "mended", "why",
)  # fmt: skip
"""Columns of the table of pairs. `final` is 1 where the wrong act hands something in; later: further mistakes that do
not follow from an earlier one by rule; `mended` is 1 where the planted mistake was; `why` says why there is no pair."""


@dataclass(frozen=True)
class Outcome:
    """What came of a pair of episodes, with the mistake and without."""

    env: str
    d: int
    kind: str
    final: bool
    """The wrong act handed in an answer, which nobody can mend."""
    twin_correct: bool
    planted_correct: bool
    twin_later: int
    planted_later: int
    mended: bool


@dataclass(frozen=True)
class Pair:
    """An episode with a planted mistake, and its untouched twin."""

    job: Job
    kind: str
    turn: int
    final: bool
    """The wrong act handed in an answer, which nobody can mend."""
    twin: Labelled
    planted: Labelled

    @property
    def mended(self) -> bool:
        """True if what was planted did not last."""
        made = [m for m in self.planted.mistakes if m.turn == self.turn]
        return bool(made) and all(m.fate.startswith("mended") for m in made)

    @property
    def outcome(self) -> Outcome:
        """What came of it. Later mistakes are those after the planted one that no other led to by rule."""
        twin, planted = (
            sum(mistake.turn > self.turn for mistake in labelled.roots)
            for labelled in (self.twin, self.planted)
        )
        correct = self.twin.correct, self.planted.correct
        return Outcome(self.job.env, self.job.d, self.kind, self.final, *correct, twin, planted, self.mended)

    def row(self) -> dict[str, Any]:
        """Write as a row of the table."""
        found = {name: int(v) if isinstance(v, bool) else v for name, v in asdict(self.outcome).items()}
        named = {"seed": self.job.seed, "trial": self.job.trial, "turn": self.turn, "why": ""}
        return {name: {**found, **named}[name] for name in COLUMNS}


def outcome_of(row: Mapping[str, str]) -> Outcome:
    """Read a row of a pair that was written to a table."""
    flags = ("final", "twin_correct", "planted_correct", "mended")
    counts = ("d", "twin_later", "planted_later")
    read = {"env": row["env"], "kind": row["kind"], **{name: int(row[name]) for name in counts}}
    return Outcome(**read, **{name: bool(int(row[name])) for name in flags})  # type: ignore[arg-type]


@dataclass(frozen=True)
class Unpaired:
    """An episode that has no pair, and why: one of `LEFT_OUT`."""

    job: Job
    why: str

    def row(self) -> dict[str, Any]:
        """Write as a row of the table."""
        named = {"env": self.job.env, "d": self.job.d, "seed": self.job.seed, "trial": self.job.trial}
        return {**dict.fromkeys(COLUMNS, ""), **named, "why": self.why}


def measure(
    runner: Runner, jobs: Sequence[Job], shop: "Shop", kinds: Sequence[str] = ACTS
) -> Iterator[Pair | Unpaired]:
    """Play each job, draw an act of it, play its beginning again with this act and with a wrong one, and label both.

    Kind and turn are drawn evenly among the acts before the player's first mistake that can be made wrong, first the
    kind. What cannot be compared is yielded with its reason.
    """
    plans: list[tuple[Job, Trajectory, str, Forced]] = []
    for job, was in zip(jobs, runner.play(jobs, [None] * len(jobs), shop), strict=True):
        if was is None or was.score.unscored:
            yield Unpaired(job, "unscored")
            continue
        random = rng("wrong act", job.env, job.d, job.seed, job.trial)
        drawn = draw_wrong_act(was, label(was, shop), shop, kinds, random)
        if drawn is None:
            yield Unpaired(job, "no correct act to replace")
        else:
            plans.append((job, was, *drawn))
    mine = [plan[0] for plan in plans]
    own = [replace(forced, message=_turn(was, forced.turn)) for _, was, _, forced in plans]
    twins = runner.play(mine, own, shop)
    again = runner.play(mine, [plan[3] for plan in plans], shop)
    for (job, was, kind, forced), twin, planted in zip(plans, twins, again, strict=True):
        if twin is None or planted is None or twin.score.unscored or planted.score.unscored:
            yield Unpaired(job, "unscored")
        elif not all(_until(one, forced.turn) == _until(was, forced.turn) for one in (twin, planted)):
            yield Unpaired(job, "another beginning")
        elif any(
            calls_of(_turn(one, forced.turn)) != calls_of(meant)
            for one, meant in ((planted, forced.message), (twin, _turn(was, forced.turn)))
        ):
            yield Unpaired(job, "cannot be written")
        else:
            final = any(name == "submit" for name, _ in calls_of(forced.message))
            yield Pair(job, kind, forced.turn, final, label(twin, shop), label(planted, shop))


def draw_wrong_act(
    trajectory: Trajectory, labelled: Labelled, shop: "Shop", kinds: Sequence[str], random: Any
) -> tuple[str, Forced] | None:
    """Draw a kind of mistake and a message of the trajectory that is made wrong by it, before its first mistake; None
    where no act can be made wrong."""
    episode = reopened(trajectory, shop)
    first = labelled.first.turn if labelled.first else math.inf
    found: dict[str, list[Forced]] = defaultdict(list)
    able: list[tuple[str, Forced]] = []
    length, turn = 0, 0
    for message in act_out(trajectory, episode):
        _keep(able, found, episode.messages[length:])
        turn, length = turn + 1, len(episode.messages)
        able = (
            []
            if turn >= first or message.get("invalid")
            else _wrong(message, turn, kinds, Scene(episode, random))
        )
    _keep(able, found, episode.messages[length:])
    if not found:
        return None
    kind = pick(random, sorted(found))
    return kind, pick(random, found[kind])


def _wrong(message: Message, turn: int, kinds: Sequence[str], scene: Scene) -> list[tuple[str, Forced]]:
    made = ((kind, edit(message, kind, scene)) for kind in kinds) if _can_be_read(message) else ()
    return [
        (kind, Forced(turn, _spoken(one.message, one.right[1], one.wrong, scene), anew=True))
        for kind, one in made
        if one
    ]


def _can_be_read(message: Message) -> bool:
    """Tell whether the arguments of all calls are JSON objects."""
    try:
        return all(isinstance(given, dict) for _, given in calls_of(message))
    except ValueError:
        return False


def _spoken(message: Message, right: Any, wrong: Any, scene: Scene) -> Message:
    """Let the words beside a wrong call speak of the product that it takes."""
    given = wrong[0][1] if wrong else {}
    text, catalog = str(message.get("content") or ""), scene.world.catalog
    was, now = catalog.row(str(right.get("product_id"))), catalog.row(str(given.get("product_id")))
    if was is not None and now is not None:
        text = text.replace(catalog.title(was), catalog.title(now))
    return {**message, "content": text}


def _keep(able: list[tuple[str, Forced]], found: dict[str, list[Forced]], came: Sequence[Message]) -> None:
    """Keep the wrong acts of a turn in which nothing was refused: what is refused is no act."""
    if not any(m["role"] == "tool" and m["content"].startswith('{"error"') for m in came):
        for kind, forced in able:
            found[kind].append(forced)


def _until(trajectory: Trajectory, turn: int) -> list[Message]:
    """Return what was said before a turn."""
    said = [number for number, m in enumerate(trajectory.messages) if m["role"] == "assistant"]
    return trajectory.messages[: said[turn - 1]] if len(said) >= turn else trajectory.messages


def _turn(trajectory: Trajectory, turn: int) -> Message:
    """Return the message of a turn; one that says nothing where there is none."""
    said = [message for message in trajectory.messages if message["role"] == "assistant"]
    return said[turn - 1] if len(said) >= turn else {"role": "assistant", "content": ""}


def effects(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Summarize the pairs of each environment, level and kind, and of each environment and level over all kinds.

    `effect` is the success with the mistake less that without, `further` how many more mistakes follow, `mended` the
    share of planted mistakes that did not last, of those that could be mended: each with 95% bounds; the unit is the
    task.
    """
    groups: dict[tuple[str, int, str], list[Outcome]] = defaultdict(list)
    for one in outcomes:
        groups[one.env, one.d, "all"].append(one)
        groups[one.env, one.d, one.kind].append(one)
    return [
        {"env": env, "d": d, "kind": kind, **_effect(mine)} for (env, d, kind), mine in sorted(groups.items())
    ]


def _effect(found: Sequence[Outcome]) -> dict[str, float]:
    loss, low, high, _ = paired_interval([one.planted_correct - one.twin_correct for one in found])
    more, fewer, most = _mean_interval([one.planted_later - one.twin_later for one in found])
    able = [[float(one.mended)] for one in found if not one.final]
    worst, best = share_interval(able)
    return {
        "pairs": len(found),
        "twin": sum(one.twin_correct for one in found) / len(found),
        "planted": sum(one.planted_correct for one in found) / len(found),
        "effect": loss, "effect_low": low, "effect_high": high,
        "further": more, "further_low": fewer, "further_high": most,
        "mendable": len(able),
        "mended": sum(map(sum, able)) / len(able) if able else math.nan,
        "mended_low": worst, "mended_high": best,
    }  # fmt: skip


def _mean_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Compute a mean and its bounds by Student's t; they are NaN for fewer than two values."""
    from scipy.stats import ttest_1samp

    mean = sum(values) / len(values)
    if len(values) < 2 or len(set(values)) == 1:
        return mean, math.nan, math.nan
    bounds = ttest_1samp(values, 0.0).confidence_interval(CONFIDENCE)
    return mean, float(bounds.low), float(bounds.high)
