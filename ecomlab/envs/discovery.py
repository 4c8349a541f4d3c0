"""PD: recommend the k best products of a type under the customer's constraints and order of preferences (SPEC §7)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ecomlab.catalog import Constraint, Shop
from ecomlab.customer.goals import draw_row
from ecomlab.customer.templates import Saying
from ecomlab.difficulty import Difficulty
from ecomlab.envs.answering import Answering, Wanted, withhold
from ecomlab.players.discovery import Discoverer
from ecomlab.reward import Verdict, ndcg
from ecomlab.seeding import rng
from ecomlab.task import Draft, Event, Need, Task, TaskError
from ecomlab.values import Kind, ranking
from ecomlab.world.cart import constraints_of
from ecomlab.world.state import PAGE, World, draw_rush, rushed
from ecomlab.world.tools import catalog as shop_tools

if TYPE_CHECKING:
    from ecomlab.episode.subtask import Job

PREFERENCES = ("price", "rating", "delivery")
"""What a customer may care about: each a key of `catalog_search`'s sort."""
COUNT = Kind(
    lambda count: "one" if count == 1 else str(count),
    r"one|\d+",
    lambda text: 1 if text == "one" else int(text),
)
BOUNDS = {"price": "price", "rating": "rating", "days": "delivery"}
"""Slots that bound a preference."""


class Discovery(Answering):
    id = "PD"
    version = 1
    golden = "a4d43892f8b735bc78c5f2adcfa0161b"
    axes = (
        "constraints", "p_missing", "eps_rank", "p_oos", "turn_slack", "tool_slack", "p_noise", "p_switch", "top_k",
        "k_rec",
    )  # fmt: skip
    brief = (
        "Recommend products that satisfy everything the customer asks for and can be bought now, as many as they want "
        "to see, the best of them by what matters most to the customer; where that is equal, by what comes next."
    )
    tools = shop_tools.CATALOG
    submit = shop_tools.submit
    clerk = Discoverer
    sayings: ClassVar[Mapping[str, Saying]] = {
        "count": Saying(
            "quantity",
            COUNT,
            ("Show me the best {}.", "I'd like to see the best {}.", "Please tell me the best {}."),
        ),
        "importance": Saying(
            "importance",
            ranking(PREFERENCES),
            ("What matters most to me is {}.", "My priorities are {}.", "I'd choose by {}."),
        ),
    }
    leads = (
        "I'm looking for {}.",
        "can you recommend {}?",
        "which one would you suggest? I need {}.",
        "I'd like some advice, I'm after {}.",
        "what do you have if I want {}?",
        "help me choose {}, please.",
        "I need a present for my sister: {}.",
        "I am thinking about {}.",
    )
    closings = (
        "",
        "",
        "",
        "Thanks!",
        "Please help me out.",
        "I'm curious what you find.",
        "Thanks in advance!",
    )
    intros = (
        "There is something I can't decide on.",
        "With one thing, I don't know what to pick.",
        "There's so much choice in your shop.",
    )

    def draw(self, key: tuple[Any, ...], axes: Difficulty, shop: Shop) -> Draft:
        random, level = rng("discovery", *key), key[2]
        kind = shop.catalog.types[int(random.integers(len(shop.catalog.types)))].name
        row = draw_row(shop.catalog.type_rows(kind), shop, random)
        if row is None:
            raise TaskError(f"no {kind} of this shop is well in stock; load a larger shop")
        limits = _limits(shop, row, axes, level, random)
        weights = random.gamma(
            1.0, size=len(PREFERENCES)
        )  # extra mass on what the customer constrains (SPEC §6)
        weights += [2.0 * any(BOUNDS.get(name) == dim for name in limits) for dim in PREFERENCES]
        order = [PREFERENCES[i] for i in np.argsort(-weights).tolist()]
        wanted: Wanted = {
            (0, "type"): kind,
            **{(0, n): v for n, v in limits.items()},
            (0, "importance"): order,
        }
        share, switching = draw_rush(axes.p_oos, axes.k_rec, random), random.random() < axes.p_switch
        events = [Event(0, "rush", 0, 1, 0, data={"type": kind, "share": share})] if share else []
        change = _draw_change(shop, row, limits, order, random)
        if switching and change:
            events.append(Event(0, "change", 0, 1, 0, data={"slots": change}))
        changed = {name for event in events if event.kind == "change" for name in event.data["slots"]}
        stages = _stages(wanted, events, key, shop)
        while events and min(map(len, stages)) == 0:  # it must stay possible
            stages = _stages(wanted, events := events[:-1], key, shop)
        count = min(axes.k_rec, axes.top_k, *map(len, stages))
        slots = [(s, name, value) for (s, name), value in wanted.items()] + [(0, "count", count)]
        withheld = withhold(slots, axes, random, lambda s, name: name == "count" or name in changed)
        asks, pages = int(bool(withheld)), math.ceil(count / PAGE)
        need = Need(turns=asks + 1, asks=asks, calls=pages)
        timed = [
            replace(event, turn=int(random.integers(1, need.turns + 1)), calls=pages) for event in events
        ]
        return self.draft(slots, withheld, {}, need, timed, weights=weights.round(6).tolist())

    def verify(self, episode: "Job") -> Verdict:
        wanted, world = episode.state, episode.world
        level, count = episode.task.difficulty, wanted[0, "count"]
        ids = list(episode.answer["product_ids"]) if episode.answer else []
        if not ids:
            return Verdict(-1.0, False, "nothing was recommended")
        rows = [world.catalog.row(product_id) for product_id in ids]
        feasible = world.in_stock(world.catalog.select(_constraints(wanted)))
        ordered, places = _places(feasible, wanted[0, "importance"], episode.shop)
        better = {row: int(place) for row in set(rows) for place in places[ordered == row]}
        gains: list[float] = []
        good: set[int] = set()
        for product_id, row in zip(ids, rows, strict=True):
            usable = row in better and row not in good and product_id in world.shown
            gains.append(float(max(0, count - better[row])) if usable and row is not None else 0.0)
            if usable and row is not None:
                good.add(row)
        worst = max((better[row] for row in good), default=0)
        above = sum(better[row] < worst for row in good)
        best = len(good) == count and int((places < worst).sum()) == above
        correct = best and len(ids) == count
        ideal = np.maximum(0, count - places[:count]).tolist()
        # The same product again, or one that no tool has shown, recommends nothing.
        known = [
            row if product_id in world.shown and product_id not in ids[:i] else None
            for i, (product_id, row) in enumerate(zip(ids, rows, strict=True))
        ]
        shares = [_share_met(row, wanted, world) for row in known] + [0.0] * (count - len(ids))
        in_stock = sum(row is not None and world.stock(row) > 0 for row in known) / max(count, len(ids))
        alpha = 4 + level // 4
        met = 2 * float(np.mean(shares)) ** alpha - 1
        ranked = 2 * ndcg(gains, ideal, count) * min(1.0, count / len(ids)) - 1
        credit = WEIGHTS["rank"] * ranked + WEIGHTS["met"] * met + WEIGHTS["stock"] * (2 * in_stock - 1)
        if correct:
            why = f"these are the {count} best by {', then '.join(wanted[0, 'importance'])}"
        else:
            why = f"{len(ids)} recommended of {count} asked for, {len(good)} of them usable, {above} beyond doubt"
            if len(good) == count:
                why += "; better ones were left out"
        return Verdict(1.0 if correct and ranked > 0.999 else min(credit, 0.999), correct, why, tuple(ids))

    def twin(self, task: Task, shop: Shop, random: np.random.Generator) -> Task | None:
        """Other withheld constraints or preferences under which as many products are there to be found."""
        wanted = self.begin(task, shop)
        hidden = [name for _, name in task.truth["withheld"]]
        for name in [hidden[i] for i in random.permutation(len(hidden)).tolist()]:
            for value in _others(name, wanted[0, name], wanted[0, "type"], shop):
                other = {**wanted, (0, name): value}
                if min(map(len, _stages(other, task.events, task.key, shop))) >= wanted[0, "count"]:
                    slots = [[s, n, v] for (s, n), v in other.items()]
                    return replace(task, truth={**task.truth, "slots": slots})
        return None


WEIGHTS = {"rank": 0.5, "met": 0.4, "stock": 0.1}
"""How nDCG, satisfaction and stock mix in r_task (SPEC §7 leaves it open)."""


def _limits(
    shop: Shop, row: int, axes: Difficulty, level: int, random: np.random.Generator
) -> dict[str, Any]:
    """Constraints that a product satisfies, as a shopper says them: price always, m - 1 others, with numeric slack.

    As many as leave k_rec products to choose from, after a rush as well: a list of one is no recommendation.
    """
    catalog, slack = shop.catalog, 0.5 * math.exp(-level / 5)
    kind = catalog.type_of(row).name
    values: dict[str, Any] = {
        "rating": math.floor(catalog.rating_tenths.item(row) * (1 - slack / 2) / 5) * 5,
        "days": catalog.days.item(row) + round(4 * slack),
        "brand": catalog.brands[catalog.brand_code.item(row)],
    }
    values |= {f"attr:{name}": value for name, value in catalog.attributes(row).items()}
    names = list(values)
    rows = catalog.select(constraints_of(kind, {}))
    rows, enough = rows[catalog.stock[rows] > 0], math.ceil(axes.k_rec / max(0.1, 1 - axes.p_oos))
    limits: dict[str, Any] = {}
    for name in [names[i] for i in random.permutation(len(names)).tolist()]:
        narrower = catalog.select(constraints_of(kind, {name: values[name]})[1:], rows)
        if len(limits) < axes.constraints - 1 and len(narrower) >= min(enough, len(rows)):
            limits[name], rows = values[name], narrower
    prices = np.sort(catalog.price_cents[rows])
    dearest = max(catalog.price_cents.item(row) * (1 + slack), prices[min(enough, len(prices)) - 1].item())
    return {"price": 500 * math.ceil(dearest / 500), **limits}


def _draw_change(
    shop: Shop, row: int, limits: Mapping[str, Any], order: Sequence[str], random: np.random.Generator
) -> dict[str, Any]:
    """A change of mind: a bound moved so that the drawn product still passes, an attribute dropped for another, or what
    matters most."""
    kinds = [name for name in limits if name in BOUNDS] + ["importance"]
    name = kinds[int(random.integers(len(kinds)))]
    if name == "importance":
        return {"importance": [*order[1:], order[0]]}
    if name == "rating":
        return {"rating": max(0, limits["rating"] - 5)}
    if name == "days":
        return {"days": limits["days"] + 1}
    floor = 500 * math.ceil(shop.catalog.price_cents.item(row) / 500)
    return {"price": floor if floor < limits["price"] else limits["price"] + 1000}


def _constraints(wanted: Mapping[tuple[int, str], Any]) -> tuple[Constraint, ...]:
    return constraints_of(
        wanted[0, "type"], {name: value for (_, name), value in wanted.items() if name != "type"}
    )


def _stages(wanted: Wanted, events: Sequence[Event], key: tuple[Any, ...], shop: Shop) -> list[np.ndarray]:
    """The rows that can be recommended before, between and after the events, in whichever order they fall."""
    catalog = shop.catalog
    slots = [wanted]
    gone = [np.zeros(len(catalog.type_rows(wanted[0, "type"])), bool)]
    for event in events:
        if event.kind == "change":
            slots.append({**wanted, **{(0, name): value for name, value in event.data["slots"].items()}})
        else:
            gone.append(rushed(key, catalog, event.data["type"], event.data["share"]))
    stages = []
    for some in slots:
        rows = catalog.select(_constraints(some))
        rows = rows[catalog.stock[rows] > 0]
        stages += [rows[~mask[rows - catalog.type_rows(wanted[0, "type"]).start]] for mask in gone]
    return stages


def _places(rows: np.ndarray, importance: Sequence[str], shop: Shop) -> tuple[np.ndarray, np.ndarray]:
    """These rows by the order of preferences, and how many come before each; equal ones share a place."""
    ordered = shop.engine.ordered(rows, importance)
    keys = np.array([shop.engine.rank_key(ordered, name) for name in importance])
    differs = np.any(keys[:, 1:] != keys[:, :-1], axis=0)
    return ordered, np.maximum.accumulate(np.arange(len(ordered)) * np.r_[True, differs][: len(ordered)])


def _share_met(row: int | None, wanted: Wanted, world: World) -> float:
    """The share of the constraints that a product satisfies; 0 for what is no product."""
    if row is None:
        return 0.0
    constraints = _constraints(wanted)
    return sum(world.catalog.satisfies(row, (c,)) for c in constraints) / len(constraints)


def _place(record: Mapping[str, Any], preference: str) -> float:
    """Smaller the better a record that a tool shows is in this respect."""
    if preference == "rating":
        return -float(record["rating"])
    return float(record["price" if preference == "price" else "ship_days"])


def _others(name: str, value: Any, kind: str, shop: Shop) -> list[Any]:
    """Other values that a slot might have."""
    if name == "importance":
        return [[*value[1:], value[0]], [value[1], value[0], *value[2:]]]
    if name == "price":
        return [value + 500, value - 500]
    if name == "rating":
        return [value - 5, value + 5]
    if name == "days":
        return [value + 1]
    if name == "brand":
        return [brand for brand in shop.catalog.brands if brand != value]
    attribute = next(
        a for a in shop.catalog.types[shop.catalog.type_codes[kind]].attributes if f"attr:{a.name}" == name
    )
    return [other for other in attribute.values if other != value]
