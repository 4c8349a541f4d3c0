"""Leaks before any question, in openings, budgets and limits, which SILENT forbids.

`openings` measures whether the words and the silence of an opening, or the budgets of turns and calls, tell what will
happen, and whether the budgets tell how much is withheld. `outcomes` measures whether they tell what the traps that
wait come to. `bounds` measures whether the limits that a customer states single out the product or the parts that they
withhold. Tasks are drawn, not played.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.customer.nlu import is_complete
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.laws.leaks import LEVELS, Features, Leak, Lists, auc_of, tasks_at
from ecomlab.slots import limits_in
from ecomlab.task import Event, Goal, GoalChange, Task
from ecomlab.wishes import Of, wishes_in
from ecomlab.world.cart import constraints_of
from ecomlab.world.plain import AtFirst, plain
from ecomlab.world.shopping_list import least_total, parts_of

BLOCK = 20
"""Tasks that look alike, among which those in which something happens are to be told from the others."""
SMALL_BLOCK = 4
"""The same for traps, which few tasks hold: of four, half and half, every one counts about as often."""
RARE = 0.05
"""Share of openings that a word must be in, and be absent from, to be counted."""
Case = tuple[Any, Features, bool]
"""(what looks alike, features, whether it is so)."""


def opening_leaks(env_id: str, shop: Shop, levels: Iterable[int] = LEVELS, seeds: int = 400) -> list[Leak]:
    """Measure all leaks before any question, on `seeds` tasks per level."""
    tasks = tasks_at(env_id, shop, levels, seeds)
    return [*openings(env_id, tasks), *outcomes(env_id, tasks, shop), *bounds(env_id, tasks, shop)]


def openings(env_id: str, tasks: Sequence[Task]) -> list[Leak]:
    """Measure what openings and budgets tell of what will happen, and budgets of how much is withheld.

    Tasks are compared with those of the same level whose opening shows as many items of the same environment: a journey
    begins with any, and says so. Those of journeys have as many subtasks. Items are compared with those of such tasks
    that have wishes of the same classes: nothing that a condition is about, or another item's brand, sells out.
    """
    kinds = sorted({kind for task in tasks for event in task.parts[0].events for kind in _kinds(event)})
    alike = [_alike(task) for task in tasks]
    said, budgets = [_opening(task) for task in tasks], [_budgets(task) for task in tasks]
    by_item = [(task, list(_items(task))) for task in _by_item(tasks)]
    wanted: list[tuple[str, list[Case], str]] = []
    for kind in kinds:
        happens = [_happens(task, kind) for task in tasks]
        for by, features in (("opening", said), ("budgets", budgets)):
            cases = list(zip(alike, features, happens, strict=True))
            wanted.append((f"{by}: {kind}", cases, "what will happen"))
        items = [
            ((_alike(task), _entangled(task.parts[0].goal, item)), features, _happens(task, kind, item))
            for task, described in by_item
            for item, features in described
        ]
        wanted.append((f"what is said of an item: {kind}", items, "what will happen"))
    hidden = [sum(len(part.goal.withheld) for part in task.parts) for task in tasks]
    for most in sorted({int(n) for n in np.quantile(hidden, (0.25, 0.5, 0.75))}):
        cases = list(zip(alike, budgets, (n > most for n in hidden), strict=True))
        wanted.append((f"budgets: more than {most} withheld", cases, "how much is withheld"))
    found = [_measured(env_id, *one, of=len(wanted)) for one in wanted]
    return [leak for leak in found if leak is not None]


def outcomes(env_id: str, tasks: Sequence[Task], shop: Shop) -> list[Leak]:
    """Measure what openings, with every word and amount in them, and budgets tell of what a trap comes to.

    Tasks are compared with those that look alike and whose openings hold wishes of the same classes. What an amount is
    beside the usual price of a type is no feature: that is a fact of the shop, and who knows it all knows the outcomes.
    """
    words = [Counter(re.findall(r"[a-z]+", task.opening.lower())) for task in tasks]
    among = Counter(word for said in words for word in said)
    common = {word for word, n in among.items() if RARE <= n / len(tasks) <= 1 - RARE}
    cases: dict[str, list[Case]] = {}
    for task, said in zip(tasks, words, strict=True):
        first = task.parts[0]
        features = {**_opening(task), **_budgets(task), **_amounts(task.opening)}
        features |= {f"word {word}": float(n) for word, n in said.items() if word in common}
        wishes = tuple(sorted(type(wish).__name__ for wish in wishes_in(first.goal.slots).values()))
        for name, so in ENVIRONMENTS[first.env].audit.outcomes(first, shop).items():
            what = name.partition(", ")[0]
            cases.setdefault(what, []).append(((_alike(task), wishes), features, so))
    found = [
        _measured(env_id, f"opening: {what}", some, "what a trap comes to", len(cases), SMALL_BLOCK)
        for what, some in cases.items()
    ]
    return [leak for leak in found if leak is not None]


def _amounts(opening: str) -> Features:
    """Describe the amounts of money and other numbers of an opening."""
    money, numbers = (
        [float(one) for one in re.findall(pattern, opening)]
        for pattern in (r"\$(\d+(?:\.\d\d)?)", r"(?<![$\d.])(\d+(?:\.\d+)?)")
    )
    found = {"amounts": float(len(money)), "numbers": float(len(numbers))}
    for name, some in (("amount", money), ("number", numbers)):
        found |= {f"least {name}": min(some), f"most {name}": max(some)} if some else {}
    return found


def bounds(env_id: str, tasks: Sequence[Task], shop: Shop) -> list[Leak]:
    """Measure whether the limits that are stated tell which of the visits that fit is wanted, or which parts of a
    shopping list are withheld."""
    visits: Lists = []
    parts: Lists = []
    for number, task in enumerate(tasks):
        visits += [(number, *case) for case in _among_visits(task, shop)]
        parts += [(number, *case) for case in _among_parts(task, shop)]
    found = (
        auc_of(env_id, "limits: visits", visits),
        auc_of(env_id, "budget: parts", parts, "what is withheld"),
    )
    return [leak for leak in found if leak is not None]


def _measured(
    env_id: str, kind: str, cases: Iterable[Case], what: str, of: int, size: int = BLOCK
) -> Leak | None:
    """Measure how well features tell which cases are so, among those that look alike."""
    blocks: dict[Any, list[list[tuple[Features, bool]]]] = {}
    for alike, features, so in cases:
        mine = blocks.setdefault(alike, [[]])
        if len(mine[-1]) == size:
            mine.append([])
        mine[-1].append((features, so))
    full = [block for mine in blocks.values() for block in mine if len({so for _, so in block}) == 2]
    lists = [(n, [features for features, _ in b], [so for _, so in b]) for n, b in enumerate(full)]
    return auc_of(env_id, kind, lists, what, of)


def _alike(task: Task) -> tuple[int, str, int, int]:
    """Return the level, the environment that the opening is of, how many items it shows, and how many subtasks the
    budgets are for: the more of them, the more is withheld in all."""
    first = task.parts[0]
    return task.difficulty, first.env, len(first.goal.items), len(task.parts)


def _opening(task: Task) -> Features:
    """Describe the opening: its length, whether it says that this is all, and which slots it states how often."""
    said = task.parts[0].goal.said()
    names = [slot.name.partition(":")[0] for slot in said]
    return {
        "complete": float(is_complete(task.opening)),
        "words": float(len(task.opening.split())),
        "stated": float(len(said)),
        **{f"stated {name}": float(names.count(name)) for name in names},
    }


def _budgets(task: Task) -> Features:
    return {"turns": float(task.turns), "calls": float(task.calls)}


def _by_item(tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks that begin with an environment in which something may happen to one item or another. To a
    shopping list it happens as a whole, which is known."""
    about = {(task.parts[0].env, event.item) for task in tasks for event in task.parts[0].events}
    items = Counter(env for env, _ in about)
    return [task for task in tasks if items[task.parts[0].env] > 1]


def _items(task: Task) -> Iterator[tuple[int, Features]]:
    """Describe each of several items by what is stated of it."""
    goal = task.parts[0].goal
    said = goal.said()
    for item in goal.items if len(goal.items) > 1 else ():
        names = [slot.name.partition(":")[0] for slot in said if slot.item == item]
        yield item, {"stated": float(len(names)), **{f"stated {n}": float(names.count(n)) for n in names}}


def _entangled(goal: Goal, item: int) -> tuple[str, ...]:
    """List the classes of an item's wishes, and of those of others that name its type."""
    kind = goal.get("type", item=item)
    wishes = wishes_in(goal.slots).items()
    named = [w for (of, _), w in wishes if of != item and isinstance(w, Of) and w.described["type"] == kind]
    return (*sorted(type(w).__name__ for (of, _), w in wishes if of == item), *("named" for _ in named[:1]))


def _happens(task: Task, kind: str, item: int | None = None) -> bool:
    """Tell whether something of this kind happens, to this item if one is given."""
    return any(kind in _kinds(event) and item in (None, event.item) for event in task.parts[0].events)


def _kinds(event: Event) -> list[str]:
    """Name what an event is: any, of its class, and the way in which a goal changes."""
    way = [f"{type(event).__name__} {event.how}"] if isinstance(event, GoalChange) else []
    return ["any event", type(event).__name__, *way]


def _among_visits(task: Task, shop: Shop) -> Iterator[tuple[list[Features], list[bool]]]:
    """Yield the visits that fit all that is stated of an item, by how far the stated limits are from them."""
    catalog = shop.catalog
    for part in task.parts:
        rows = [row for visit in part.world.get("visits", ()) if (row := catalog.row(visit)) is not None]
        for item in part.goal.items if "cart" in ENVIRONMENTS[part.env].acts_on else ():
            slots = plain(part.goal, AtFirst(shop, part.world)).of(item)
            hidden, own = part.goal.withheld, part.goal.of(item)
            told = {
                name: value
                for name, value in slots.items()
                if (item, name if name in own else "if")
                not in hidden  # a condition comes to slots of its own
            }
            limits = limits_in(told)
            stated, meant = (constraints_of(slots["type"], some) for some in (told, slots))
            fits = [row for row in rows if catalog.satisfies(row, stated)]
            wanted = [catalog.satisfies(row, meant) for row in fits]
            if limits and any(wanted) and not all(wanted):
                far = [
                    {limit.name: catalog.column(limit).item(row) / max(1, value) for limit, value in limits}
                    for row in fits
                ]
                yield far, wanted


def _among_parts(task: Task, shop: Shop) -> Iterator[tuple[list[Features], list[bool]]]:
    """Yield the types that a list might have and does not name, by what the stated budget leaves for them."""
    for part in task.parts:
        goal, pool = part.goal, part.notes.get("pool", ())
        if (0, "parts") not in goal.withheld or (0, "budget") in goal.withheld or "budget" not in goal:
            continue
        named = parts_of({place: v for place, v in goal.slots.items() if place != (0, "parts")})
        others = [kind for kind in pool if kind not in dict(named)]
        left = goal["budget"] - (least_total(named, shop.catalog, None) or 0)
        least = {kind: least_total([(kind, {})], shop.catalog, None) or 0 for kind in others}
        count = len(goal["parts"])
        about = {"count": float(count), "d": float(task.difficulty)}
        rows = [
            {**about, "left": float(left - count * price), "share": price / max(1, left)}
            for price in least.values()
        ]
        wanted = [kind in goal["parts"] for kind in others]
        if any(wanted) and not all(wanted):
            yield rows, wanted
