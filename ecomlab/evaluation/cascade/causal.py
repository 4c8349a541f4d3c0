"""What a mistake leads to: a player's own correct beginning, with one act replaced by a wrong one, against its twin at
the same randomness. The two differ in nothing else, so the difference is the mistake's effect.

Both go on with numbers that are drawn anew. The episode in which the act was found will not do as the twin: the act was
drawn among all up to that episode's first mistake, so the sooner it went wrong afterwards, the likelier was this act.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ecomlab.episode.play import act_out, reopened
from ecomlab.episode.record import Trajectory
from ecomlab.evaluation.cascade.edits import EDITS, Scene, calls_of, edit
from ecomlab.evaluation.cascade.forced import Forced, Runner
from ecomlab.evaluation.cascade.labels import label
from ecomlab.evaluation.cascade.mistakes import Labelled
from ecomlab.evaluation.compare import paired_interval
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.summary import CONFIDENCE, share_interval
from ecomlab.seeding import pick, rng
from ecomlab.task import Message

if TYPE_CHECKING:
    from ecomlab.catalog import Shop

ACTS = tuple(kind for kind in EDITS if kind != "missed item")
"""Kinds of wrong acts; what is missed is none."""
LEFT_OUT = (
    "unscored", "no correct act to replace", "no act to make wrong so", "another beginning", "cannot be written",
)  # fmt: skip
"""Why a task has no pair of a kind. No act to make wrong so: of its correct acts, only other kinds of mistakes can be
made. Another beginning: up to the act, what was played again was not what was played before. Cannot be written: the
player has no way to say the wrong act, for it never saw what the act is about."""
COLUMNS = (
    "env", "d", "seed", "trial", "kind", "turn", "final", "twin_correct", "planted_correct", "twin_later",
    "planted_later", "mended", "why",
)  # fmt: skip
"""Columns of the table of pairs. `final` is 1 where the wrong act hands something in; later: further mistakes that do
not follow from an earlier one by rule; `mended` is 1 where the planted mistake was; `why` says why there is no pair of
this kind."""


@dataclass(frozen=True)
class Outcome:
    """What came of a pair of episodes, with the mistake and without."""

    env: str
    d: int
    seed: int
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
        correct, job = (self.twin.correct, self.planted.correct), self.job
        return Outcome(job.env, job.d, job.seed, self.kind, self.final, *correct, twin, planted, self.mended)

    def row(self) -> dict[str, Any]:
        """Write as a row of the table."""
        found = {name: int(v) if isinstance(v, bool) else v for name, v in asdict(self.outcome).items()}
        named = {"trial": self.job.trial, "turn": self.turn, "why": ""}
        return {name: {**found, **named}[name] for name in COLUMNS}


def outcome_of(row: Mapping[str, str]) -> Outcome:
    """Read a row of a pair that was written to a table."""
    flags = ("final", "twin_correct", "planted_correct", "mended")
    counts = ("d", "seed", "twin_later", "planted_later")
    read = {"env": row["env"], "kind": row["kind"], **{name: int(row[name]) for name in counts}}
    return Outcome(**read, **{name: bool(int(row[name])) for name in flags})  # type: ignore[arg-type]


@dataclass(frozen=True)
class Unpaired:
    """A task that has no pair of a kind, and why: one of `LEFT_OUT`."""

    job: Job
    kind: str
    why: str

    def row(self) -> dict[str, Any]:
        """Write as a row of the table."""
        job = self.job
        named = {"env": job.env, "d": job.d, "seed": job.seed, "trial": job.trial, "kind": self.kind}
        return {**dict.fromkeys(COLUMNS, ""), **named, "why": self.why}


@dataclass(frozen=True)
class _Plan:
    """A wrong act that is to be planted: in which job, in what was played of it."""

    number: int
    job: Job
    was: Trajectory
    kind: str
    forced: Forced

    @property
    def at(self) -> tuple[int, int]:
        """The job's number and the turn: kinds in one turn have one untouched twin."""
        return self.number, self.forced.turn


def measure(
    runner: Runner, jobs: Sequence[Job], shop: "Shop", kinds: Sequence[str] = ACTS
) -> Iterator[Pair | Unpaired]:
    """Play each job, draw an act of it for each kind of mistake, play the beginning again with this act and with a
    wrong one, and label both.

    Each kind has its pair in every job in which it can be planted; its turn is drawn evenly among the acts before the
    player's first mistake that can be made wrong so. What cannot be compared is yielded with its kind and the reason:
    of each job and kind comes one pair, or one reason.
    """
    plans: list[_Plan] = []
    for number, (job, was) in enumerate(zip(jobs, runner.play(jobs, [None] * len(jobs), shop), strict=True)):
        if was is None or was.score.unscored:
            yield from (Unpaired(job, kind, "unscored") for kind in kinds)
            continue
        # Of all kinds, so that the reason does not hang on which others are asked for.
        drawn = draw_wrong_acts(was, label(was, shop), shop, ACTS, job)
        why = "no act to make wrong so" if drawn else "no correct act to replace"
        yield from (Unpaired(job, kind, why) for kind in kinds if kind not in drawn)
        plans += [_Plan(number, job, was, kind, drawn[kind]) for kind in kinds if kind in drawn]
    # Twins first, each once: it is the same whatever the kind that is planted in its turn.
    own = {plan.at: plan for plan in plans}
    kept = [replace(plan.forced, message=_turn(plan.was, plan.forced.turn)) for plan in own.values()]
    played = runner.play([plan.job for plan in own.values()], kept, shop)
    twins = dict(zip(own, played, strict=True))
    again = runner.play([plan.job for plan in plans], [plan.forced for plan in plans], shop)
    labels: dict[tuple[int, int], Labelled] = {}
    for plan, planted in zip(plans, again, strict=True):
        twin, turn = twins[plan.at], plan.forced.turn
        if twin is None or planted is None or twin.score.unscored or planted.score.unscored:
            yield Unpaired(plan.job, plan.kind, "unscored")
        elif not all(_until(one, turn) == _until(plan.was, turn) for one in (twin, planted)):
            yield Unpaired(plan.job, plan.kind, "another beginning")
        elif any(
            calls_of(_turn(one, turn)) != calls_of(meant)
            for one, meant in ((planted, plan.forced.message), (twin, _turn(plan.was, turn)))
        ):
            yield Unpaired(plan.job, plan.kind, "cannot be written")
        else:
            final = any(name == "submit" for name, _ in calls_of(plan.forced.message))
            if plan.at not in labels:
                labels[plan.at] = label(twin, shop)
            yield Pair(plan.job, plan.kind, turn, final, labels[plan.at], label(planted, shop))


def draw_wrong_acts(
    trajectory: Trajectory, labelled: Labelled, shop: "Shop", kinds: Sequence[str], job: Job
) -> dict[str, Forced]:
    """Draw, for each kind of mistake, a message of the trajectory before its first mistake that is made wrong by it;
    kinds by which no act can be made wrong are left out.

    The numbers of each kind are its own: what is drawn of one does not hang on which others are asked for.
    """
    randoms = {kind: rng("wrong act", job.env, job.d, job.seed, job.trial, kind) for kind in kinds}
    episode = reopened(trajectory, shop)
    first = labelled.first.turn if labelled.first else math.inf
    found: dict[str, list[Forced]] = defaultdict(list)
    able: list[tuple[str, Forced]] = []
    length, turn = 0, 0
    for message in act_out(trajectory, episode):
        _keep(able, found, episode.messages[length:])
        turn, length = turn + 1, len(episode.messages)
        able = []
        if turn < first and not message.get("invalid") and _can_be_read(message):
            made = ((kind, _wrong(message, turn, kind, Scene(episode, randoms[kind]))) for kind in kinds)
            able = [(kind, forced) for kind, forced in made if forced]
    _keep(able, found, episode.messages[length:])
    return {kind: pick(randoms[kind], found[kind]) for kind in kinds if found[kind]}


def _wrong(message: Message, turn: int, kind: str, scene: Scene) -> Forced | None:
    one = edit(message, kind, scene)
    return Forced(turn, _spoken(one.message, one.right[1], one.wrong, scene), anew=True) if one else None


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

    `effect` is the success with the mistake less that without, `further` how many more mistakes follow; in the row over
    all kinds those of a task are averaged first. `mended` is the share of planted mistakes that did not last, of all
    that could be mended. Each has 95% bounds, over tasks.
    """
    return [
        {"env": env, "d": d, "kind": kind, **_effect(mine)}
        for (env, d, kind), mine in sorted(_groups(outcomes).items())
    ]


def _groups(outcomes: Sequence[Outcome]) -> dict[tuple[str, int, str], list[Outcome]]:
    """Group by environment, level and kind, and by environment and level over all kinds."""
    groups: dict[tuple[str, int, str], list[Outcome]] = defaultdict(list)
    for one in outcomes:
        groups[one.env, one.d, "all"].append(one)
        groups[one.env, one.d, one.kind].append(one)
    return groups


def _by_task(found: Sequence[Outcome], value: Callable[[Outcome], float]) -> dict[int, list[float]]:
    """List a value of the pairs of each task, by its seed."""
    tasks: dict[int, list[float]] = defaultdict(list)
    for one in found:
        tasks[one.seed].append(float(value(one)))
    return tasks


def _means(found: Sequence[Outcome], value: Callable[[Outcome], float]) -> dict[int, float]:
    """Average a value over the pairs of each task, by its seed."""
    return {seed: sum(values) / len(values) for seed, values in _by_task(found, value).items()}


def _effect(found: Sequence[Outcome]) -> dict[str, float]:
    twin, planted = (
        list(_means(found, value).values())
        for value in (lambda one: one.twin_correct, lambda one: one.planted_correct)
    )
    loss, low, high, _ = paired_interval([one - other for one, other in zip(planted, twin, strict=True)])
    further = _means(found, lambda one: one.planted_later - one.twin_later)
    more, fewer, most = _mean_interval(list(further.values()))
    able = [one for one in found if not one.final]
    worst, best = share_interval(list(_by_task(able, lambda one: one.mended).values()))
    return {
        "pairs": len(found),
        "tasks": len(twin),
        "twin": sum(twin) / len(twin),
        "planted": sum(planted) / len(planted),
        "effect": loss, "effect_low": low, "effect_high": high,
        "further": more, "further_low": fewer, "further_high": most,
        "mendable": len(able),
        "mended": sum(one.mended for one in able) / len(able) if able else math.nan,
        "mended_low": worst, "mended_high": best,
    }  # fmt: skip


def gains(one: Sequence[Outcome], other: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Compare two players by their pairs of the same tasks and kinds: the first's less the second's.

    For each environment, level and kind, and over all kinds, whose differences are averaged within the task: `mended`
    is the share of planted mistakes that did not last, `effect` the success with the mistake less that without, each
    with 95% bounds over the tasks of which both have a pair. Levels and kinds that only one has are left out.
    """
    against = {(pair.env, pair.d, pair.seed, pair.kind): pair for pair in other}
    both = [pair for pair in one if (pair.env, pair.d, pair.seed, pair.kind) in against]
    return [
        {
            "env": env,
            "d": d,
            "kind": kind,
            **_gain([(pair, against[env, d, pair.seed, pair.kind]) for pair in mine]),
        }
        for (env, d, kind), mine in sorted(_groups(both).items())
    ]


def _gain(found: Sequence[tuple[Outcome, Outcome]]) -> dict[str, float]:
    mended: dict[int, list[float]] = defaultdict(list)
    effect: dict[int, list[float]] = defaultdict(list)
    for one, other in found:
        effect[one.seed].append(_loss(one) - _loss(other))
        if not one.final and not other.final:
            mended[one.seed].append(one.mended - other.mended)
    row: dict[str, float] = {"tasks": len(effect), "mendable": len(mended)}
    # A difference of effects lies in [-2, 2]: halved, it is one that the interval is made for.
    for name, tasks, most in (("mended", mended, 1), ("effect", effect, 2)):
        halves = [sum(values) / len(values) / most for values in tasks.values()]
        bounds = paired_interval(halves)[:3] if halves else (math.nan,) * 3
        row |= dict(zip((name, f"{name}_low", f"{name}_high"), (most * v for v in bounds), strict=True))
    return row


def _loss(one: Outcome) -> int:
    return one.planted_correct - one.twin_correct


def _mean_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Compute a mean and its bounds by Student's t; they are NaN for fewer than two values."""
    from scipy.stats import ttest_1samp

    mean = sum(values) / len(values)
    if len(values) < 2 or len(set(values)) == 1:
        return mean, math.nan, math.nan
    bounds = ttest_1samp(values, 0.0).confidence_interval(CONFIDENCE)
    return mean, float(bounds.low), float(bounds.high)
