"""Leaks (law 8): whether ids, places in lists or the lists' lengths tell what is wanted, judged by a classifier's AUC.

What is wanted is what the fair player hands in, buys or sends back in the end. The candidates are all ids of the same
kind in the same list of a tool's result, search results left out: their order is a ranking and may say something. Where
a tool tells the status of such things, they are those of a wanted one's status: nothing is sent back that has not been
delivered, and it is the newest orders that have not, but that is said openly and no secret.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from ecomlab.audit.surface import calls
from ecomlab.catalog import Shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode, Trajectory, make_task
from ecomlab.episode.play import play
from ecomlab.seeding import rng
from ecomlab.task import Message, Task

RANKED = ("catalog_search", "catalog_rerank", "policy_search")
"""Tools whose results are in an order of relevance."""
ACTS = ("submit", "cart_add", "return_initiate")
"""Tools by which the fair player says what it takes to be wanted."""
FIRST_SEED = 3_000_000
CHARACTERS = 8
FEWEST = 15
"""Tasks with a list of a kind, in each half, from which it is judged."""
BOOTSTRAPS = 1_000


@dataclass(frozen=True)
class Leak:
    """How well a classifier tells wanted from unwanted things of one kind, with a 99% interval over tasks."""

    env: str
    kind: str
    """The tool and the field."""
    lists: int
    candidates: int
    auc: float
    low: float
    high: float

    @property
    def leaks(self) -> bool:
        """Whether the interval lies above one half: it does better than chance."""
        return self.low > 0.5


def measure(env_id: str, shop: Shop, levels: Iterable[int] = (0, 4, 8, 12), seeds: int = 120) -> list[Leak]:
    """One row for each kind of id that this environment's tools list, over `seeds` tasks a level."""
    kinds: dict[str, list[tuple[int, list[list[float]], list[bool]]]] = {}
    number = 0
    for d in levels:
        for seed in range(seeds):
            task = make_task(env_id, d, FIRST_SEED + seed, shop)
            trajectory = play(ENVIRONMENTS[env_id].fair_player(shop), task, shop)
            if trajectory.score.correct:
                wanted, results = set(_wanted(trajectory)), _shown(trajectory, shop)
                status = _statuses(results)
                for kind, ids in _candidates(results):
                    alike = {status.get(value) for value in ids if value in wanted}
                    kept = [i for i, value in enumerate(ids) if status.get(value) in alike]
                    labels = [ids[i] in wanted for i in kept]
                    if any(labels) and not all(labels):
                        features = _features(ids)
                        kinds.setdefault(kind, []).append((number, [features[i] for i in kept], labels))
            number += 1
    found = []
    for kind, lists in sorted(kinds.items()):
        tasks = {number for number, _, _ in lists}
        if min(sum(number % 2 == half for number in tasks) for half in (0, 1)) >= FEWEST:
            sizes = [len(labels) for _, _, labels in lists]
            found.append(Leak(env_id, kind, len(lists), sum(sizes), *_auc(lists)))
    return found


def _shown(trajectory: Trajectory, shop: Shop) -> list[tuple[str, Any]]:
    """(tool, result) of all that the tools showed or would have shown, what is ranked left out."""
    results = (*_results(trajectory.messages), *_looked_up(trajectory.task, shop))
    return [(name, result) for name, result in results if name not in RANKED and name not in ACTS]


def _candidates(results: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    """(kind, ids in order) of every list of things with ids, each list once."""
    seen = set()
    for name, result in results:
        for kind, ids in _lists(result, name):
            if (kind, tuple(ids)) not in seen:
                seen.add((kind, tuple(ids)))
                yield kind, ids


def _statuses(results: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """By id, the status that a tool tells of a thing."""
    records = [record for _, result in results for record in _records(result) if "status" in record]
    return {
        str(record[key]): str(record["status"]) for record in records for key in record if key.endswith("_id")
    }


def _results(messages: Iterable[Message]) -> Iterator[tuple[str, Any]]:
    """(tool, result) of every tool result."""
    for message in messages:
        if message["role"] == "tool":
            yield message["name"], json.loads(message["content"])


def _looked_up(task: Task, shop: Shop) -> list[tuple[str, Any]]:
    """What the tools show that take no argument, and those that take one id, for each id that the first ones showed."""
    episode = Episode(replace(task, calls=10_000, turns=10_000), shop)
    tools = {schema["function"]["name"]: schema["function"]["parameters"] for schema in episode.tools}
    required = {
        name: parameters.get("required", []) for name, parameters in tools.items() if name not in ACTS
    }
    episode.act(calls(*((name, {}) for name, needs in required.items() if not needs)))
    shown = [entry for _, result in _results(episode.messages) for entry in _records(result)]
    for name, needs in required.items():
        if len(needs) == 1 and needs[0].endswith("_id"):
            ids = dict.fromkeys(entry[needs[0]] for entry in shown if needs[0] in entry)
            for value in ids:
                if not episode.done:
                    episode.act(calls((name, {needs[0]: value})))
    return list(_results(episode.messages))


def _records(result: Any) -> Iterator[dict[str, Any]]:
    """Every object in a result."""
    if isinstance(result, dict):
        yield result
        for value in result.values():
            yield from _records(value)
    elif isinstance(result, list):
        for entry in result:
            yield from _records(entry)


def _wanted(trajectory: Trajectory) -> Iterator[str]:
    for message in trajectory.messages:
        for call in message.get("tool_calls", ()):
            if call["function"]["name"] in ACTS:
                for value in json.loads(call["function"]["arguments"]).values():
                    yield from (str(entry) for entry in (value if isinstance(value, list) else [value]))


def _lists(result: Any, name: str) -> Iterator[tuple[str, list[str]]]:
    """("tool: field", ids in order) of every list of records that have an id."""
    if isinstance(result, dict):
        for value in result.values():
            yield from _lists(value, name)
    elif isinstance(result, list):
        fields = [
            key
            for key in (result[0] if result and isinstance(result[0], dict) else ())
            if key.endswith("_id")
        ]
        for field in fields:
            yield f"{name}: {field}", [str(entry[field]) for entry in result if entry.get(field) is not None]
        for entry in result:
            yield from _lists(entry, name)


def _features(ids: list[str]) -> list[list[float]]:
    """Of each id: its place, its place from the end, the list's length, its last characters."""
    codes = [[float(ord(c)) for c in value[-CHARACTERS:].rjust(CHARACTERS)] for value in ids]
    return [[float(i), float(len(ids) - i), float(len(ids)), *code] for i, code in enumerate(codes)]


def _auc(lists: list[tuple[int, list[list[float]], list[bool]]]) -> tuple[float, float, float]:
    """Mean AUC within lists of gradient-boosted trees, learned from one half of the tasks and judged on the other, and
    its 99% bootstrap interval over the tasks judged.

    Within lists, because a longer list may well hold more that is wanted: what matters is to tell which. Not
    cross-validated: where folds are judged by each other, chance comes out below one half more often than its interval
    says, since what is too many in one fold is too few in the others.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    learned, judged = ([entry for entry in lists if entry[0] % 2 == half] for half in (0, 1))
    model = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=8, random_state=0)
    model.fit(
        [row for _, rows, _ in learned for row in rows],
        [label for _, _, labels in learned for label in labels],
    )
    scores = iter(model.predict_proba([row for _, rows, _ in judged for row in rows])[:, 1].tolist())
    by_task: dict[int, list[float]] = {}
    for number, _, labels in judged:
        by_task.setdefault(number, []).append(float(roc_auc_score(labels, list(islice(scores, len(labels))))))
    means = np.array([np.mean(values) for values in by_task.values()])
    drawn = means[rng("leaks", len(means)).integers(len(means), size=(BOOTSTRAPS, len(means)))].mean(axis=1)
    low, high = np.quantile(drawn, (0.005, 0.995)).tolist()
    return float(means.mean()), low, high
