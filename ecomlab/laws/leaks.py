"""Leaks, which SILENT forbids, in what tools show.

`measure` finds ids, places in lists, lists' lengths, flags or contents that tell what is wanted, by a classifier's AUC.
Wanted is what the reference player submits or acts on, what would do as well, and what the goal means without saying
it. Candidates are all ids of a kind in the same declared list, except in ranked lists, whose order may mean something.
Where a tool tells the status of items, candidates are those of the same status as a wanted one, and as much in stock:
undelivered items are never returned and tend to be new, but that is no secret.

`told` finds withheld values that a tool shows as they are. It sees what counterfactuals cannot where the environment's
`alternatives` keep the world that was drawn for the first goal. What openings and budgets tell is in `opening_leaks`.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.customer.reading.reading import RANKS
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode
from ecomlab.episode.play import play
from ecomlab.episode.record import Trajectory
from ecomlab.laws.counterfactual import Prober
from ecomlab.laws.tool_introspection import (
    calls,
    drawn,
    ids_of,
    looks,
    records,
    reference_player,
    results,
    wants_words,
)
from ecomlab.seeding import rng
from ecomlab.slots import LIMITS
from ecomlab.task import Task
from ecomlab.world.cart import wants_of
from ecomlab.world.plain import AtFirst, plain

LEVELS = (0, 4, 8, 12)
FIRST_SEED = 3_000_000
CHARACTERS = 8
FEWEST = 15
"""Tasks in each half that must have a list of a kind for it to be judged."""
BOOTSTRAPS = 10_000
ALWAYS = 0.75
"""Share of tasks above which a place counts as revealing a slot's value."""
PROBES = 12
"""Turns in which tools are probed for withheld values."""
MOST = 8
"""Maximum number of values at a place that can reveal one."""


WORDS = ("first", "second")
"""Words of a row's longest text that are counted: in a product's title its brand and what comes next."""

OPEN = frozenset(["parcel"])
"""Fields that openly show what is possible: lines of a parcel that has not arrived are never returned."""

Features = dict[str, float]
Lists = list[tuple[int, list[Features], list[bool]]]
"""(number of the task, features of the candidates, whether each is wanted) by list."""


@dataclass(frozen=True)
class Leak:
    """A classifier's success in telling wanted from unwanted ids of one kind, with a 99% interval over tasks."""

    env: str
    kind: str
    """The tool and the field."""
    lists: int
    candidates: int
    auc: float
    low: float
    high: float
    what: str = "what is wanted"
    """The leaked information."""

    @property
    def leaks(self) -> bool:
        """True if the interval lies above one half: the classifier does better than chance."""
        return self.low > 0.5


def measure(env_id: str, shop: Shop, levels: Iterable[int] = LEVELS, seeds: int = 120) -> list[Leak]:
    """Measure the leaks of each kind of id that an environment's tools list, over `seeds` tasks per level: by places,
    by contents, and of what is meant but never said."""
    kinds: dict[str, Lists] = {}
    for number, task in enumerate(tasks_at(env_id, shop, levels, seeds)):
        trajectory = play(reference_player(env_id, shop), task, shop)
        for kind, rows, labels in _judged(trajectory, shop) if trajectory.score.correct else ():
            kinds.setdefault(kind, []).append((number, rows, labels))
    found = (auc_of(env_id, kind, lists) for kind, lists in sorted(kinds.items()))
    return [leak for leak in found if leak is not None]


def tasks_at(env_id: str, shop: Shop, levels: Iterable[int], seeds: int) -> list[Task]:
    """Draw `seeds` tasks of each level."""
    numbers = range(FIRST_SEED, FIRST_SEED + seeds)
    return [task for d in levels for task in drawn(env_id, d, numbers, shop)[0]]


def _judged(trajectory: Trajectory, shop: Shop) -> Iterator[tuple[str, list[Features], list[bool]]]:
    """Yield (kind, features of the candidates, whether each is wanted) of every list that has both kinds."""
    task, env_id = trajectory.task, trajectory.task.env
    shown, stock = _shown(trajectory, shop), Episode(task, shop).world.stock
    status = _statuses(env_id, shown)

    def states(ids: Sequence[str], listed: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Status of each, and what of its type is in stock: sold-out products are never bought, others not replaced.
        Of what is no product, such as a variant, it counts what its row says."""
        seen: list[tuple[str, bool, str | None]] = []
        for value, entry in zip(ids, listed, strict=True):
            row = shop.catalog.row(value)
            here = bool(entry.get("stock")) if row is None else stock(row) > 0
            seen.append((value, here, None if row is None else shop.catalog.type_of(row).name))
        short = {kind for _, here, kind in seen if not here}
        return [(status.get(value), here, kind in short) for value, here, kind in seen]

    unsaid = {str(value) for part in task.parts for value in part.goal.unsaid.values()}
    wants = [
        want
        for part in task.parts
        if "cart" in ENVIRONMENTS[part.env].acts_on
        for want in wants_of(plain(part.goal, AtFirst(shop, part.world)))
    ]

    # What a goal ranks is submitted by these numbers, and says so.
    ranks = any(name in RANKS for part in task.parts for _, name in part.goal.slots)
    ranked = frozenset(limit.shown for limit in LIMITS if limit.sort) if ranks else frozenset()

    def would_do(value: str) -> bool:
        row = shop.catalog.row(value)
        return row is not None and any(shop.catalog.satisfies(row, want.constraints) for want in wants)

    for kind, ids, listed, own in _candidates(env_id, shown):
        if not own and any(shop.catalog.row(value) is None for value in ids):
            continue  # an option's value: one that a journey's cart wants too would mark a line that nobody wants
        handed = {*_wanted(trajectory), *filter(would_do, ids)} - unsaid
        found = states(ids, listed)
        for label, wanted in (("", handed), (", meant", unsaid)):
            alike = {state for state, value in zip(found, ids, strict=True) if value in wanted}
            kept = [i for i, state in enumerate(found) if state in alike]
            labels = [ids[i] in wanted for i in kept]
            if any(labels) and not all(labels):
                places = _features(ids, listed)
                yield f"{kind}{label}", [places[i] for i in kept], labels
                # What is handed in instead of something that is meant follows from it by content.
                if wanted is unsaid or not unsaid:
                    rows = [listed[i] for i in kept]
                    found_in = content([ids[i] for i in kept], rows, shop, ranked)
                    yield f"{kind}{label}, content", found_in, labels


def _shown(trajectory: Trajectory, shop: Shop) -> list[tuple[str, Any]]:
    """List (tool, result) of all results that non-acting tools showed or would have shown."""
    seen = (*results(trajectory.messages), *_looked_up(trajectory.task, shop))
    looking = {tool.name for tool in looks(ENVIRONMENTS[trajectory.task.env])}
    return [(name, result) for name, result in seen if name in looking]


def _candidates(
    env_id: str, shown: Iterable[tuple[str, Any]]
) -> Iterator[tuple[str, list[str], list[Mapping[str, Any]], bool]]:
    """Yield ("tool: id", ids in order, their rows, whether the ids are the rows' own) of every unranked list once.

    Where a call lists the ids, their order is the caller's; they are sorted.
    """
    seen, tools = set(), ENVIRONMENTS[env_id].offered
    for name, result in shown:
        echoes = any(one.annotation == list[str] for one in tools[name].arguments.model_fields.values())
        for ids, rows in tools[name].rows(result) if not tools[name].ranked else ():
            for field in ids:
                listed = [row for row in rows if row.get(field) is not None]
                listed = sorted(listed, key=lambda row: str(row[field])) if echoes else listed
                values = [str(row[field]) for row in listed]
                if (name, field, *values) not in seen:
                    seen.add((name, field, *values))
                    yield f"{name}: {field}", values, [*listed], field == ids[0]


def _statuses(env_id: str, shown: Iterable[tuple[str, Any]]) -> dict[str, str]:
    env = ENVIRONMENTS[env_id]
    tools, ids, found = env.offered, ids_of(env), dict[str, str]()
    for name, result in shown:
        if (tell := tools[name].tells) in result:
            found |= {str(result[i]): str(result[tell]) for i in ids & result.keys()}
    return found


def _looked_up(task: Task, shop: Shop) -> Iterator[tuple[str, Any]]:
    """Call the tools that list or show something with all ids that any of them showed; return the results."""
    episode = Episode(replace(task, calls=10_000, turns=10_000), shop)
    env = episode.env
    useful = [tool for tool in looks(env) if (tool.lists or tool.tells) and not wants_words(tool, env)]
    asked: set[str] = set()
    while not episode.done:
        met = [record for _, result in results(episode.messages) for record in records(result)] or [{}]
        known = [(tool, record) for tool in useful for record in met if all(map(record.get, tool.required))]
        named = [(tool.name, {name: record[name] for name in tool.required}) for tool, record in known]
        found = {json.dumps(call): call for call in named}
        if found.keys() <= asked:
            break
        episode.act(calls(*(call for key, call in found.items() if key not in asked)))
        asked |= found.keys()
    return results(episode.messages)


def _wanted(trajectory: Trajectory) -> Iterator[str]:
    """Yield the values that the reference player submits or acts with."""
    looking = {tool.name for tool in looks(ENVIRONMENTS[trajectory.task.env])} | {"ask_user"}
    for message in trajectory.messages:
        for call in message.get("tool_calls", ()):
            if call["function"]["name"] not in looking:
                for value in json.loads(call["function"]["arguments"]).values():
                    yield from (str(entry) for entry in (value if isinstance(value, list) else [value]))


def _features(ids: list[str], rows: Sequence[Mapping[str, Any]]) -> list[Features]:
    """Describe each id by its place, its place from the end, the list's length, its row's flags (read as a binary
    number, and how many rows share them) and its last characters."""
    names = sorted({n for row in rows for n, value in row.items() if isinstance(value, bool)})
    flags = [[row.get(name) is True for name in names] for row in rows]
    marks = [float(sum(2**k for k, flag in enumerate(row) if flag)) for row in flags]
    return [
        {
            "place": float(i),
            "from the end": float(len(ids) - i),
            "length": float(len(ids)),
            "flags": marks[i],
            "with these flags": float(flags.count(flags[i])),
            **{f"character {k}": float(ord(c)) for k, c in enumerate(value[-CHARACTERS:].rjust(CHARACTERS))},
        }
        for i, value in enumerate(ids)
    ]


def content(
    ids: Sequence[str], rows: Sequence[Mapping[str, Any]], shop: Shop, decided: frozenset[str] = frozenset()
) -> list[Features]:
    """Describe each row by what is in it, a product's also by what can be looked up: numbers and their ranks, the
    lengths of texts, and in how many rows of its kind (texts that end in the same word) each value or word occurs.
    Fields by which the customer `decided` are left out."""
    full = [{**_product(value, shop), **row} for value, row in zip(ids, rows, strict=True)]
    texts = [
        max((v for v in row.values() if isinstance(v, str)), key=len, default="").split() for row in full
    ]
    kinds = [words[-1] if words else "" for words in texts]
    found: list[Features] = [{"length": float(len(" ".join(words)))} for words in texts]
    for kind in set(kinds):
        mine = [i for i, own in enumerate(kinds) if own == kind]
        for k, name in enumerate(WORDS):
            said = [texts[i][k] if len(texts[i]) > k else None for i in mine]
            for i, word in zip(mine, said, strict=True):
                found[i][f"rows with its {name} word"] = 0.0 if word is None else float(said.count(word))
        for name in {name for i in mine for name in full[i]} - OPEN - decided:
            values = [full[i].get(name) for i in mine]
            for i, value in zip(mine, values, strict=True):
                if isinstance(value, int | float):
                    less = sum(other < value for other in values if isinstance(other, int | float))
                    found[i] |= {name: float(value), f"rank by {name}": less / len(mine)}
                if not isinstance(value, dict | list):
                    found[i][f"rows with its {name}"] = float(values.count(value))
    return found


def _product(value: str, shop: Shop) -> dict[str, Any]:
    """Look up a product's record, its attributes by name; empty for the id of anything else."""
    row = shop.catalog.row(value)
    if row is None:
        return {}
    record = shop.catalog.record(row)
    # The order of attributes is the same for all products of a type; their names differ between types.
    attributes = {f"attribute {k}": text for k, text in enumerate(record["attributes"].values())}
    return {name: value for name, value in record.items() if not isinstance(value, dict)} | attributes


def told(env_id: str, shop: Shop, levels: Iterable[int] = LEVELS, seeds: int = 30) -> list[str]:
    """Describe the places where a tool, whatever it is asked, shows the value of a withheld slot as it is.

    A place is one if it holds the value in most tasks, and the value of the task before in fewer: what a tool shows to
    everybody tells nothing.
    """
    shown: dict[tuple[str, str, str], list[tuple[Any, list[Any]]]] = {}
    for task in tasks_at(env_id, shop, levels, seeds):
        places = _places(task, shop)
        for goal in (part.goal for part in task.parts):
            for slot in goal.said(withheld=True):
                for (tool, path), values in places.items():
                    kind = slot.name.partition(":")[0]  # attributes of all types together
                    shown.setdefault((kind, tool, path), []).append((slot.value, values))
    found = []
    for (name, tool, path), tasks in shown.items():
        own = sum(_holds(values, value) for value, values in tasks)
        others = sum(_holds(values, tasks[i - 1][0]) for i, (_, values) in enumerate(tasks))
        if len(tasks) >= FEWEST and own > ALWAYS * len(tasks) > others:
            found.append(f"{tool} shows the withheld {name!r} at {path} in {own} of {len(tasks)} tasks")
    return found


def _holds(values: list[Any], wanted: Any) -> bool:
    """Tell whether the wanted value, or all of a list of them, is among the values shown."""
    several = wanted if isinstance(wanted, list) else [wanted]
    return all(str(value) in map(str, values) for value in several)


def _places(task: Task, shop: Shop) -> dict[tuple[str, str], list[Any]]:
    """Collect the values at each place of a tool's results, by (tool, path), as far as all results of the tool agree:
    in a declared list only what all its rows agree on, for its rows are what there is to choose from."""
    episode = Episode(replace(task, calls=10_000, turns=PROBES), shop)
    prober, tools = Prober(episode.env, rng("told", task.seed)), episode.env.offered
    while not episode.done:
        episode.act(prober(episode.messages, episode.tools))
    agreed: dict[tuple[str, str], list[Any]] = {}
    for name, result in results(episode.messages):
        if "error" not in result:
            places: dict[str, list[Any]] = {}
            for path, value in _scalars(result):
                places.setdefault(path, []).append(value)
            for path, values in places.items():
                listed = any(path.startswith(f"{one}[") for one in tools[name].lists)
                distinct = list(dict.fromkeys(map(str, values)))
                kept = distinct if len(distinct) <= (1 if listed else MOST) else []
                before = agreed.get((name, path), kept)
                agreed[name, path] = [value for value in before if value in kept]
    return agreed


def _scalars(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (path, value) of every scalar in a result; places in lists are not told apart."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _scalars(inner, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list):
        for inner in value:
            yield from _scalars(inner, f"{path}[]")
    elif value is not None:
        yield path, value


def auc_of(env_id: str, kind: str, lists: Lists, what: str = "what is wanted", of: int = 1) -> Leak | None:
    """Fit gradient-boosted trees to half of the tasks and measure the AUC on the other half; None if there are too few
    tasks. The interval is wider where this is one of several measurements.

    The AUC is taken within lists, because a longer list may hold more wanted entries, which is no leak. The interval is
    a bootstrap over the tasks. Not cross-validated: folds that judge each other put chance below one half more often
    than the interval says, as a surplus in one fold is a deficit in the others.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    tasks = {number for number, _, _ in lists}
    if min(sum(number % 2 == half for number in tasks) for half in (0, 1)) < FEWEST:
        return None
    learned, judged = ([entry for entry in lists if entry[0] % 2 == half] for half in (0, 1))
    names = sorted({name for _, rows, _ in learned for row in rows for name in row})

    def matrix(some: Lists) -> list[list[float]]:
        return [[row.get(name, math.nan) for name in names] for _, rows, _ in some for row in rows]

    model = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=8, random_state=0)
    model.fit(matrix(learned), [label for _, _, labels in learned for label in labels])
    scores = iter(model.predict_proba(matrix(judged))[:, 1].tolist())
    by_task: dict[int, list[float]] = {}
    for number, _, labels in judged:
        by_task.setdefault(number, []).append(_auc(labels, list(islice(scores, len(labels)))))
    means = np.array([np.mean(values) for values in by_task.values()])
    drawn = means[rng("leaks", len(means)).integers(len(means), size=(BOOTSTRAPS, len(means)))].mean(axis=1)
    low, high = np.quantile(drawn, (0.005 / of, 1 - 0.005 / of)).tolist()
    size = sum(len(labels) for _, _, labels in lists)
    return Leak(env_id, kind, len(lists), size, float(means.mean()), low, high, what)


def _auc(labels: Sequence[bool], scores: Sequence[float]) -> float:
    """Compute the share of pairs of a wanted and an unwanted candidate in which the wanted one has the higher score;
    equal scores count half. Lists are short and many: sklearn's checks of its arguments would take most of the time."""
    scored, wanted = np.array(scores), np.array(labels, bool)
    ahead = scored[wanted][:, None] - scored[~wanted]
    return float(((ahead > 0) + 0.5 * (ahead == 0)).mean())
