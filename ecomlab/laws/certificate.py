"""The certificate: results of all players in every environment at every difficulty, which `laws` judges."""

import json
import math
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import TypeAdapter

from ecomlab.catalog import Shop, load_shop
from ecomlab.catalog.support import unsupported
from ecomlab.customer.llm import Chat, Wording
from ecomlab.difficulty import STEPS
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode
from ecomlab.episode.play import finish
from ecomlab.episode.record import Trajectory
from ecomlab.laws import attackers, opening_leaks, talkers
from ecomlab.laws.counterfactual import Comparison, compare
from ecomlab.laws.leaks import LEVELS, Leak, measure
from ecomlab.laws.listeners import listeners, shotgun_teller
from ecomlab.laws.talkers import Talked
from ecomlab.laws.tool_introspection import drawn, reference_player
from ecomlab.players.base import Perturbation
from ecomlab.seeding import digest, package_digest, rng
from ecomlab.task import Message, Player, Task
from ecomlab.world.plain import with_amounts

SLIP_RATE = 0.2
"""Share of the perturbed player's decisions that go wrong."""
BESIDE = ("joint",)
"""Kinds of steps of which no contrary belief decides: a list without the cheapest may meet demands across parts too."""
RIGHT = {"solver": "oracle", "fair": "reference player", "courteous": "courteous player"}
"""Players whose misses are listed, with their names in words."""
EXACT = (*RIGHT, "noisy", "shortcut")
"""Players of every task."""
CHAINED = 4
"""Divisor of the number of tasks of the other players for an environment whose jobs are tested by themselves: a
journey's tasks and attackers are several times as many and as long."""
HELD = 40
"""Most tasks of a cell in which a player is tried that lacks a kind of step, is contrary to it or tells everything: so
many show by themselves that a share is at most 20%, and all levels are judged together."""
FIRST_SEED = 1_000_000
"""First of the seeds that certificates use and nothing else does."""
T = TypeVar("T")
Call = TypeVar("Call", bound=tuple[Any, ...])


@dataclass(frozen=True)
class Row:
    """Results of one environment at one difficulty: shares in [0, 1], rewards as (mean, standard deviation, n).

    `solver` is the oracle, `fair` the reference player, `noisy` the perturbed one; `blind` and `positional` attack.
    """

    env: str
    d: int
    seeds: int
    others: int
    """Seeds of every player but oracle, reference and perturbed player."""
    solver: float
    fair: float
    noisy: float
    naive: float
    blind: dict[str, float]
    positional: dict[str, float]
    chance: float
    turns: float
    """Mean turns of the reference player."""
    reward: float
    """Mean reward of the reference player."""
    rewards: dict[str, tuple[float, float, int]] = field(default_factory=dict)
    failed: tuple[float, float, int] = (0.0, 0.0, 0)
    """Rewards of the perturbed player's failed episodes."""
    misses: list[str] = field(default_factory=list)
    """Misses of oracle and reference player, each with its reason."""
    jobs: int = 1
    """Maximum number of goals in one task."""
    courteous: float = math.nan
    """Share of the courteous player, on as many seeds as the reference player."""
    shortcut: float = math.nan
    """Share of the player that takes no step of thought, on as many seeds as the reference player."""
    steps: dict[str, float] = field(default_factory=dict)
    """By kind of step: how many of them count in a task, on average."""
    lacking: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By kind of step: how many of the tasks in which it counts the player that lacks this kind alone solves, and the
    number of these tasks."""
    contrary: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By kind of step: how many of the tasks with a trap of it the player solves that believes the plain choice to be
    always wrong, and the number of these tasks."""
    shotgun: tuple[int, int] = (0, 0)
    """How many of the tasks in which a customer asks something are solved by telling everything, and their number."""
    outcomes: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By trap: how often what it is called is so, and the number of these traps."""
    refused: dict[str, int] = field(default_factory=dict)
    """Number of tasks that cannot be drawn from this catalog, by reason; no other count includes them. If the catalog
    cannot carry the environment, all tasks are here, and nothing else in the row is measured."""

    @classmethod
    def of_refused(cls, env: str, d: int, refused: dict[str, int]) -> "Row":
        """Make the row of a cell without a task."""
        shares: dict[str, Any] = dict.fromkeys(
            ("solver", "fair", "noisy", "naive", "chance", "turns", "reward"), math.nan
        )
        return cls(env, d, seeds=0, others=0, blind={}, positional={}, refused=refused, **shares)

    def to_json(self) -> dict[str, Any]:
        """Write as a JSON object; what is not measured is null."""
        return {name: None if one != one else one for name, one in asdict(self).items()}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Row":
        """Read the row that `to_json` wrote."""
        known = {name: math.nan if one is None else one for name, one in value.items()}
        return TypeAdapter(cls).validate_python(known)


@dataclass(frozen=True, slots=True)
class Played:
    """The part of a trajectory that a certificate needs; tens of thousands of whole ones would fill the memory."""

    correct: bool
    value: float
    turns: int
    how: str
    """The seed, and how the episode ended, in words."""
    submitted: tuple[str, ...]
    """The arguments of every submit, as JSON."""

    @classmethod
    def of(cls, trajectory: Trajectory) -> "Played":
        calls = [call for message in trajectory.messages for call in message.get("tool_calls", ())]
        submitted = [c["function"]["arguments"] for c in calls if c["function"]["name"] == "submit"]
        score = trajectory.score
        how = f"seed {trajectory.task.seed}: {trajectory.end}: {score.why}"
        return cls(score.correct, score.value, trajectory.turns, how, tuple(submitted))


def players(env_id: str, shop: Shop) -> dict[str, Callable[[Episode, int], Player]]:
    """Make the factories of all players by name; those of attackers begin with their group."""
    env = ENVIRONMENTS[env_id]
    made: dict[str, Callable[[Episode, int], Player]] = {
        "solver": lambda episode, seed: env.oracle(episode),
        "fair": lambda episode, seed: reference_player(env_id, shop),
        "courteous": lambda episode, seed: env.reference_player(shop, courteous=True),
        "noisy": lambda episode, seed: reference_player(
            env_id, shop, Perturbation(rng("noisy", env_id, seed), SLIP_RATE)
        ),
        "shortcut": lambda episode, seed: env.reference_player(shop, lacks=STEPS),
        "naive": lambda episode, seed: attackers.naive(env)(seed),
    }
    by_place = attackers.positional(env, shop) | listeners(env, shop)
    for kind, group in (("blind", attackers.blind(env)), ("positional", by_place)):
        for name, factory in group.items():
            made[f"{kind}: {name}"] = lambda episode, seed, factory=factory: factory(seed)  # type: ignore[misc]
    return made


def certify_cell(
    env_id: str, d: int, seeds: int, others: int, shop: Shop, customer: Callable[[int], Chat] | None = None
) -> Row:
    """Play `seeds` tasks with oracle, reference and perturbed player, `others` of them with all other players; fewer if
    some cannot be drawn from the catalog. `customer` makes the endpoint that rewords the customer, by the task's seed;
    without it the templates are used."""
    env = ENVIRONMENTS[env_id]
    count = max(seeds, others)
    tasks, refused = drawn(env_id, d, range(FIRST_SEED, FIRST_SEED + count), shop)
    if not tasks:
        return Row.of_refused(env_id, d, refused)
    seeds, others = min(seeds, len(tasks)), min(others, len(tasks))

    def play_all(make: Callable[[Episode, int], Player], count: int) -> Iterator[Played]:
        for task in tasks[:count]:
            episode = Episode(task, shop, wording=Wording(customer(task.seed)) if customer else None)
            yield Played.of(finish(make(episode, task.seed), episode))

    played = {
        name: list(play_all(make, seeds if name in EXACT else others))
        for name, make in players(env_id, shop).items()
    }
    traps = [outcomes_of(task, shop) for task in tasks[:seeds]]

    def solved(make: Callable[[], Player], held: Sequence[Task]) -> tuple[int, int]:
        held = held[:HELD]
        return sum(finish(make(), Episode(task, shop)).score.correct for task in held), len(held)

    steps = Counter(kind for task in tasks[:seeds] for kind in task.steps)
    player = partial(env.reference_player, shop)
    lacking = {
        kind: solved(partial(player, lacks=(kind,)), [t for t in tasks[:seeds] if kind in t.steps])
        for kind in steps
    }
    with_trap: dict[str, list[Task]] = {}
    for task, some in zip(tasks, traps, strict=False):
        for kind in dict.fromkeys(kind for kind, _, _ in some if kind not in BESIDE):
            with_trap.setdefault(kind, []).append(task)
    contrary = {kind: solved(partial(player, contrary=(kind,)), held) for kind, held in with_trap.items()}
    asked = [task for task in tasks[:seeds] if _asks(task, shop)]
    ends = [(f"{kind}: {what}", so) for some in traps for kind, what, so in some]
    outcomes = {name: (ends.count((name, True)), n) for name, n in Counter(n for n, _ in ends).items()}
    commonest = _commonest(played["fair"])
    played["blind: the most common answer"] = [
        *play_all(lambda episode, seed: lambda messages, tools: commonest, others)
    ]
    share = {name: _mean([p.correct for p in ps]) for name, ps in played.items()}
    chances = [env.audit.chance(task, shop) for task in tasks[:others]]
    if not all(0 <= chance <= 1 for chance in chances):
        raise ValueError(f"{env_id}.chance must be a probability, not {min(chances)} to {max(chances)}")
    return Row(
        env=env_id,
        d=d,
        seeds=seeds,
        others=others,
        **{name: share[name] for name in (*EXACT, "naive")},
        blind={n.partition(": ")[2]: s for n, s in share.items() if n.startswith("blind: ")},
        positional={n.partition(": ")[2]: s for n, s in share.items() if n.startswith("positional: ")},
        chance=_mean(chances),
        turns=_mean([p.turns for p in played["fair"]]),
        reward=_mean([p.value for p in played["fair"]]),
        rewards={n: _spread([p.value for p in ps]) for n, ps in played.items() if ":" in n},
        failed=_spread([p.value for p in played["noisy"] if not p.correct]),
        jobs=max(len(task.parts) for task in tasks),
        steps={kind: number / seeds for kind, number in steps.items()},
        lacking=lacking,
        contrary=contrary,
        shotgun=solved(partial(shotgun_teller, env, shop), asked),
        outcomes=outcomes,
        misses=[f"{who} missed {p.how}" for n, who in RIGHT.items() for p in played[n] if not p.correct],
        refused=refused,
    )


def _asks(task: Task, shop: Shop) -> bool:
    """Tell whether the customer asks for something, in the end, that there is an answer to."""
    world = Episode(task, shop).world
    ends = [(ENVIRONMENTS[part.env].questions, part.goal.after(part.events)) for part in task.parts]
    return any(
        asked.slot in goal.asks and asked.value(goal, world) is not None
        for questions, goal in ends
        for asked in questions
    )


def outcomes_of(task: Task, shop: Shop) -> list[tuple[str, str, bool]]:
    """List (kind of step, what it may come to, whether it is so) of every trap of a task and its subtasks."""
    found = []
    for part in task.parts:
        settled = replace(part, goal=with_amounts(part.goal))
        for name, so in ENVIRONMENTS[part.env].audit.outcomes(settled, shop).items():
            kind, _, what = name.partition(", ")[0].partition(": ")
            found.append((kind, what, so))
    return found


def _commonest(played: Sequence[Played]) -> Message:
    """Combine the reference player's most frequent value of each field: the best constant answer there is."""
    said = [json.loads(arguments) for p in played for arguments in p.submitted]
    names = dict.fromkeys(name for arguments in said for name in arguments)
    best = {
        name: json.loads(Counter(json.dumps(a.get(name)) for a in said if name in a).most_common(1)[0][0])
        for name in names
    }
    return attackers.calls(("submit", best))


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else 0.0


def _spread(values: Sequence[float]) -> tuple[float, float, int]:
    if not values:
        return 0.0, 0.0, 0
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0, len(values)


def certify(
    envs: Iterable[str],
    levels: Iterable[int],
    seeds: int,
    others: int,
    catalog: str | int = 20_000,
    workers: int | None = None,
    kept: Path | None = None,
) -> Iterator[Row]:
    """Compute a row for every environment and level in parallel, and yield each when done. Of `others` tasks, if fewer
    than `seeds`, chains of jobs get a quarter. `catalog` is a folder or a number of generated products; rows are kept
    in the file `kept`, if given."""
    fewer = max(1, others // CHAINED) if others < seeds else others
    attacked = {env_id: fewer if ENVIRONMENTS[env_id].composes else others for env_id in envs}
    cells = [(env_id, d, seeds, count, catalog) for env_id, count in attacked.items() for d in levels]
    yield from (row for _, row in _resumed("row", Row, _cell, cells, workers, kept))


def find_leaks(
    envs: Sequence[str], tasks: int, workers: int | None, catalog: str | int, kept: Path | None
) -> tuple[list[Leak], list[Comparison]]:
    """Measure leaks and compare counterfactuals, for all environments that the catalog can carry in parallel and over
    `tasks` tasks per level. What is found of an environment is kept in the file `kept` as rows are."""
    calls = _carried(envs, tasks, catalog)
    found = dict(_resumed("leaks", tuple[list[Leak], list[Comparison]], _leaks, calls, workers, kept))
    both = [found[call] for call in calls]
    return [leak for leaks, _ in both for leak in leaks], [one for _, ones in both for one in ones]


def find_contradictions(
    envs: Sequence[str], episodes: int, workers: int | None, catalog: str | int, kept: Path | None
) -> list[Talked]:
    """Let talkative players play so many `episodes` of each environment that the catalog can carry, in parallel, and
    compare the customers' lines. What is found is kept in the file `kept` as rows are."""
    calls = _carried(envs, episodes, catalog)
    found = dict(_resumed("talked", Talked, _talked, calls, workers, kept))
    return [found[call] for call in calls]


def _carried(envs: Sequence[str], count: int, catalog: str | int) -> list[tuple[str, int, str | int]]:
    """List the calls for the environments that the catalog can carry."""
    off = unsupported(load_shop(catalog).catalog)
    return [(env_id, count, catalog) for env_id in envs if env_id not in off]


def _resumed(
    what: str,
    kind: Any,
    function: Callable[..., T],
    calls: Sequence[Call],
    workers: int | None,
    kept: Path | None,
) -> Iterator[tuple[Call, T]]:
    """Yield (arguments, result) of each call, whose last argument is the catalog. Results, of type `kind`, are kept in
    the file `kept` under the name `what`, and not computed again for the same code, shop and arguments."""
    code, results = package_digest(), TypeAdapter[T](kind)
    # Loaded here, so that the workers find it in the cache.
    keys = {
        call: digest([what, call[:-1], code, load_shop(call[-1]).fingerprint, SLIP_RATE]) for call in calls
    }
    known = _kept(kept, what)
    yield from ((call, results.validate_python(known[key])) for call, key in keys.items() if key in known)
    left = [call for call, key in keys.items() if key not in known]
    for call, result in _computed(function, left, workers):
        if kept:
            record = {"key": keys[call], what: results.dump_python(result, mode="json")}
            with kept.open("a") as file:
                file.write("\n" + json.dumps(record))
        yield call, result


def _talked(env_id: str, episodes: int, catalog: str | int) -> Talked:
    seeds = range(talkers.FIRST_SEED, talkers.FIRST_SEED + episodes)
    return Talked.of(env_id, talkers.check(env_id, seeds, catalog))


def _computed(
    function: Callable[..., T], calls: Sequence[Call], workers: int | None
) -> Iterator[tuple[Call, T]]:
    """Yield (arguments, result) of each call when it is done, in parallel for more than one worker."""
    workers = min(len(calls), workers or os.cpu_count() or 1)
    if workers <= 1:
        yield from ((call, function(*call)) for call in calls)
        return
    end_silently = (signal.SIGINT, signal.SIG_DFL)  # on Ctrl-C, which reaches workers too
    with ProcessPoolExecutor(
        workers, get_context("spawn"), initializer=signal.signal, initargs=end_silently
    ) as pool:
        running = {pool.submit(function, *call): call for call in calls}
        try:
            yield from ((running[future], future.result()) for future in as_completed(running))
        except BaseException:  # else leaving the pool would play all other cells in vain
            pool.shutdown(cancel_futures=True)
            raise


def _leaks(env_id: str, tasks: int, catalog: str | int) -> tuple[list[Leak], list[Comparison]]:
    shop, seeds = load_shop(catalog), range(FIRST_SEED, FIRST_SEED + tasks)
    # What is only drawn, not played, is drawn more often.
    found = measure(env_id, shop, seeds=tasks) + opening_leaks.opening_leaks(env_id, shop, seeds=3 * tasks)
    return found, [compare(env_id, d, seeds, shop) for d in LEVELS]


def _cell(env_id: str, d: int, seeds: int, others: int, catalog: str | int) -> Row:
    return certify_cell(env_id, d, seeds, others, load_shop(catalog))


def _kept(path: Path | None, what: str) -> dict[str, Any]:
    """Read the results saved under the name `what`, by key; that of a truncated line is computed again."""
    found: dict[str, Any] = {}
    for line in path.read_text().splitlines() if path and path.exists() else ():
        try:
            record = json.loads(line)
            found[record["key"]] = record[what]
        except (ValueError, KeyError, TypeError):
            continue
    return found
