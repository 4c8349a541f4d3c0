"""Drawing the steps of thought of a customer who misses something: which of the visits it was, told by another one, and
demands on its replacement that must be worked out.

Each is drawn so that it excludes some of the products that fit the rest, and leaves some.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.customer.visits import exact_value
from ecomlab.difficulty import Difficulty
from ecomlab.seeding import pick, rng, shuffled
from ecomlab.slots import PRICE
from ecomlab.steps import draw_size
from ecomlab.task import Goal, Task
from ecomlab.wishes import AnyBut, Demand, IfSame, Of, OneOf, Visited
from ecomlab.world.cart import column_of, constraints_of
from ecomlab.world.substitutes import demanded, narrowed, noun, original_of, shares, similarity

LUCK = 0.1
"""Most chance with which somebody who lacks a step may still be right where it counts."""
MOST = {"reference": 1, "joint": 2, "logic": 3}
"""Most steps of a kind in one job: each is a demand of another form."""


def draw_which(
    row: int, visits: Sequence[int], axes: Difficulty, shop: Shop, random: np.random.Generator
) -> Visited | None:
    """Tell which of the visits, the newest first, a product was: by one looked at before or after it, or by its price
    among those like it."""
    size, at = draw_size(axes, "reference", random), visits.index(row)
    found: list[Visited] = []
    for way in (1, -1):
        for steps, extreme in ((way * size, False), (way * (size - 1), True)):
            start = at + steps
            if not 0 <= start < len(visits):
                continue
            base = visits[start]
            for pick_, by in (
                _extremes(base, visits, shop) if extreme else [("", _alone(base, visits, shop, random))]
            ):
                if by:
                    words = _words(by, shop, several=bool(pick_))
                    found.append(Visited(tuple(by.items()), pick_, steps, words))  # type: ignore[arg-type]
    return pick(random, found) if found else None


def _alone(
    row: int, visits: Sequence[int], shop: Shop, random: np.random.Generator, but: str = ""
) -> dict[str, Any]:
    """Describe a visit in few words, so that no other fits: {} where these do not exist; `but` a slot."""
    catalog, kind = shop.catalog, shop.catalog.type_of(row).name
    named = [name for name in ("brand", "feature") if name != but]
    for names in (*shuffled(random, [[name] for name in named]), named):
        by: dict[str, Any] = {
            "type": kind,
            **{name: exact_value(row, name, shop) for name in ("brand", "feature") if name in names},
        }
        if [one for one in visits if catalog.satisfies(one, constraints_of(kind, by))] == [row]:
            return by
    return {}


def _extremes(row: int, visits: Sequence[int], shop: Shop) -> list[tuple[str, dict[str, Any]]]:
    """List how a visit is the cheapest or the most expensive of several that a few words describe."""
    catalog, kind = shop.catalog, shop.catalog.type_of(row).name
    ways: list[dict[str, Any]] = [{}, {"brand": catalog.brand(row)}]
    ways += [{f"attr:{name}": value} for name, value in catalog.attributes(row).items()]
    found = []
    for more in ways:
        by = {"type": kind, **more}
        prices = {
            one: int(catalog.price_cents[one])
            for one in visits
            if catalog.satisfies(one, constraints_of(kind, by))
        }
        others = [price for one, price in prices.items() if one != row]
        if others and prices[row] < min(others):
            found.append(("cheapest", by))
        if others and prices[row] > max(others):
            found.append(("most expensive", by))
    return found


def _words(by: Mapping[str, Any], shop: Shop, several: bool = False) -> str:
    """Word what slots describe as a noun phrase without an article."""
    kind = shop.catalog.types[shop.catalog.type_codes[by["type"]]]
    said = [by[name] for name in ("brand", "feature") if name in by] + [kind.plural if several else kind.name]
    said += [one.say(by[f"attr:{one.name}"]) for one in kind.attributes if f"attr:{one.name}" in by]
    return " ".join(said)


def draw_demand(
    step: str,
    goal: Goal,
    rows: np.ndarray,
    visits: Sequence[int],
    axes: Difficulty,
    shop: Shop,
    random: np.random.Generator,
) -> tuple[str, Any] | None:
    """Draw a demand that takes a step of this kind, as (slot, value), which some of these `rows` meet and others do
    not; None where there is none."""
    makers = {"joint": (_matching, _price_match), "logic": (_choices, _excluded, _condition)}
    for maker in shuffled(random, makers.get(step, ())):
        made: tuple[str, Any] | None = maker(goal, rows, visits, axes, shop, random)
        if made and made[0] not in goal:
            return made
    return None


def other_demands(name: str, goal: Goal, known: Goal, rows: np.ndarray, task: Task, shop: Shop) -> list[Any]:
    """List other values that a demand of a task may have; `known` is the goal without it, which these `rows` meet."""
    visits = [row for row in map(shop.catalog.row, task.world["visits"]) if row is not None]
    drawn = (
        draw_demand(goal[name].step, known, rows, visits, task.axes, shop, rng("others", name, at, *task.key))
        for at in range(8)
    )
    values = [one[1] for one in drawn if one is not None and one[0] == name]
    return [value for n, value in enumerate(values) if value != goal[name] and value not in values[:n]]


def _free(goal: Goal, shop: Shop) -> list[str]:
    """List the slots on which there is no demand yet."""
    kind, taken = shop.catalog.type_of(original_of(goal, shop)), {c.field for _, c in demanded(goal, shop)}
    taken |= {value.slot for value in goal.of().values() if isinstance(value, Demand)}
    wish = goal.get("if")
    taken |= {
        f"attr:{one.name}" for one in kind.attributes if wish and noun(one.name) in (wish.first, wish.other)
    }
    taken |= {"brand"} if wish and "brand" in (wish.first, wish.other) else set()
    names = ["brand", *(f"attr:{name}" for name in shop.catalog.attributes(original_of(goal, shop)))]
    return [name for name in names if name not in taken]


def _parts(rows: np.ndarray, kept: np.ndarray) -> bool:
    """Tell whether a demand keeps some of the rows, and not all."""
    return bool(kept.any()) and not bool(kept.all())


def _matching(
    goal: Goal,
    rows: np.ndarray,
    visits: Sequence[int],
    axes: Difficulty,
    shop: Shop,
    random: np.random.Generator,
) -> tuple[str, Any] | None:
    """Let something be the same as of another thing that the customer looked at."""
    catalog = shop.catalog
    others = [row for row in visits if catalog.type_of(row).name != goal["type"]]
    for slot in shuffled(random, _free(goal, shop)):
        column = column_of(catalog, slot)
        for row in shuffled(random, others):
            if column[row] < 0 or not _parts(rows, column[rows] == column[row]):
                continue
            by = _alone(row, visits, shop, random, but=slot)
            if by:
                what = noun(slot.removeprefix("attr:"))
                words = f"with the same {what} as the {_words(by, shop)} I looked at"
                return "matching", Demand(slot, Of("visits", tuple(by.items())), words)
    return None


def _price_match(
    goal: Goal,
    rows: np.ndarray,
    visits: Sequence[int],
    axes: Difficulty,
    shop: Shop,
    random: np.random.Generator,
) -> tuple[str, Any] | None:
    """Let it cost no more than another thing that the customer looked at."""
    prices, original, aim = shop.catalog.price_cents, original_of(goal, shop), random.uniform(0.5, 0.8)
    able = [row for row in visits if row != original and _parts(rows, prices[rows] <= prices[row])]
    able.sort(key=lambda row: abs(float((prices[rows] <= prices[row]).mean()) - aim))
    for row in able:
        by = _alone(row, visits, shop, random)
        if by:
            words = f"the {_words(by, shop)} that I looked at"
            return "price_match", Demand(PRICE.name, Of("visits", tuple(by.items())), words)
    return None


def _choices(
    goal: Goal,
    rows: np.ndarray,
    visits: Sequence[int],
    axes: Difficulty,
    shop: Shop,
    random: np.random.Generator,
) -> tuple[str, Any] | None:
    """Name a few values of an attribute, any of which will do."""
    kind = shop.catalog.type_of(original_of(goal, shop))
    size = 1 + draw_size(axes, "logic", random)
    for one in shuffled(random, kind.attributes):
        slot = f"attr:{one.name}"
        if slot not in _free(goal, shop) or len(one.values) < 3:
            continue
        values = tuple(shuffled(random, one.values)[: min(size, len(one.values) - 1)])
        if _parts(rows, _has(rows, slot, values, shop)):
            return "choices", Demand(slot, OneOf(values), one.say(" or ".join(values)))
    return None


def _excluded(
    goal: Goal,
    rows: np.ndarray,
    visits: Sequence[int],
    axes: Difficulty,
    shop: Shop,
    random: np.random.Generator,
) -> tuple[str, Any] | None:
    """Exclude brands, or values of an attribute, that products have which fit the rest."""
    size = draw_size(axes, "logic", random)
    kind = shop.catalog.type_of(original_of(goal, shop))
    alike = rows[np.argsort(-similarity(rows, goal, shop), kind="stable")]
    for slot in shuffled(random, _free(goal, shop)):
        column = column_of(shop.catalog, slot)
        others = [
            row
            for row in alike.tolist()
            if column[row] >= 0 and column[row] != column[original_of(goal, shop)]
        ]
        held = dict.fromkeys(exact_value(row, slot, shop) for row in others)  # of the most similar ones first
        values = tuple(list(held)[:size])
        if not _parts(rows, _has(rows, slot, values, shop)):
            continue
        said = " or ".join(values)
        one = next((one for one in kind.attributes if f"attr:{one.name}" == slot), None)
        return "excluded", Demand(slot, AnyBut(values), one.say(said) if one else f"by {said}")
    return None


def _has(rows: np.ndarray, slot: str, values: Sequence[str], shop: Shop) -> np.ndarray:
    return np.array([exact_value(row, slot, shop) in values for row in rows.tolist()], bool)


def _condition(
    goal: Goal,
    rows: np.ndarray,
    visits: Sequence[int],
    axes: Difficulty,
    shop: Shop,
    random: np.random.Generator,
) -> tuple[str, Any] | None:
    """Let the price decide which of two things it has in common with what is missed; with either outcome."""
    prices = shop.catalog.price_cents
    free = [noun(slot.removeprefix("attr:")) for slot in _free(goal, shop)]
    holds = random.random() < 0.5
    for first in shuffled(random, free):
        for other in shuffled(random, [one for one in free if one != first]):
            same, rest = rows[shares(rows, first, goal, shop)], rows[shares(rows, other, goal, shop)]
            if not len(same) or not len(rest):
                continue
            dollars = prices[pick(random, same.tolist())] / 100 if holds else prices[same].min() * 0.95 / 100
            limit = 100 * (math.ceil(dollars) if holds else math.floor(dollars))
            if limit > 0 and (holds or not (prices[same] <= limit).any()):
                wish = IfSame(first, int(limit), other)
                left = narrowed(rows, goal.set_slots({"if": wish}), shop)
                if 0 < len(left) < len(rows):
                    return "if", wish
    return None


def chance_right(taken: np.ndarray, alike: np.ndarray, right: np.ndarray, best: int, count: int) -> float:
    """Compute the chance that the `count` most alike of the rows `taken`, ties broken at random, are a right choice: as
    many as there can be of the rows `right`, of which `best` is the number."""
    size = min(count, len(taken))
    if size != best or not size:
        return 0.0
    order = np.argsort(-alike, kind="stable")
    cut = alike[order[size - 1]]
    sure, tied = taken[alike > cut], taken[alike == cut]
    if not np.isin(sure, right).all():
        return 0.0
    k = size - len(sure)
    return math.comb(int(np.isin(tied, right).sum()), k) / math.comb(len(tied), k)
