"""Shortages in a cart: sell-outs that know no wish, and what the customer wants instead of what has run short."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.customer import goals
from ecomlab.difficulty import Difficulty
from ecomlab.seeding import pick, shuffled
from ecomlab.task import LOOK, Event, Goal, GoalChange, Instead, SellOut
from ecomlab.world.cart import Want, constraints_of, identity_of, is_exact
from ecomlab.world.sell_outs import MOST_GONE, MOST_SOLD, draw_sell_out
from ecomlab.world.state import World

WANTED = 3
"""Number of wanted products of a type for which a rush on it is drawn: more make rushes more frequent and smaller."""
MOST_WANTED = 4
"""Most units that are wanted of an item."""
COMPARED = 4
"""Number of visits among which something sells out, or all that fit what is stated."""
MOST_ALIKE = 16
"""Most products of the same description that sell out together."""
MOST_FITTING = 2 * MOST_SOLD
"""Most products that sell out together of those that fit what is stated."""
MOST_LEFT = 3
"""Most units left of something that has sold out but for a few."""
TRIES = 16
TELLING = 4
"""Turns for a first item of which something has sold out: to look again, to tell of it, to look for what is wanted
instead, to take it. Others are done in the same turns, but for the telling."""
RETAKING = 6
"""Tool calls for each such item: two searches, what is left of three others, one more attempt to take it."""


def draw_rushes(
    goal: Goal,
    items: Sequence[int],
    visits: Sequence[str],
    axes: Difficulty,
    shop: Shop,
    random: np.random.Generator,
) -> tuple[list[Event], set[int]]:
    """Draw sell-outs among these items of a cart, and what the customer takes instead; also return the items that run
    short. A sell-out is public randomness: it knows no more of the item than the opening states."""
    events: list[Event] = []
    short: set[int] = set()
    for item in items:
        slots = goal.of(item)
        sold = _draw_rush(goal, item, visits, axes, shop, random)
        other = sold and alternative_left(slots, shop, random, Left(sold, shop))
        if not sold or not other:
            continue
        left = Left(sold, shop)
        turns, calls = 0, 1
        if left.hits(slots):
            turns, calls = 1 if any(event.turns for event in events) else TELLING, RETAKING
        if left.units(slots) < slots.get("quantity", 1):
            short.add(item)
        prefers = pick(random, _preferences(item, slots, left))
        instead = Instead(item=item, prefers=prefers, slots=other, turns=0, calls=0)  # type: ignore[arg-type]
        events += [replace(sold, item=item, turns=turns, calls=calls), instead]
    return events, short


def _draw_rush(
    goal: Goal,
    item: int,
    visits: Sequence[str],
    axes: Difficulty,
    shop: Shop,
    random: np.random.Generator,
) -> SellOut | None:
    """Draw the sell-out of an item: of some of the visited products of its type, each with all that the same words
    describe, or of some of their options; None if nothing sells out.

    They are those that fit what the opening states, of which any may be wanted, and a few that do not.
    """
    catalog, slots = shop.catalog, goal.of(item)
    kind = str(slots["type"])
    options = catalog.types[catalog.type_codes[kind]].option.values
    share, of_options = draw_sell_out(_share(axes), WANTED, random), random.random() < axes.cart.p_option / 2
    of_options, count = of_options and bool(options), max(1, len(options))
    names = [name for name in slots if is_exact(name)]
    stated = {name: slots[name] for name in names if (item, name) not in goal.withheld}
    of_type = goals.that_fit(visits, {"type": kind}, shop)
    fitting = set(goals.that_fit(visits, {"type": kind, **stated}, shop))
    others = [row for row in shuffled(random, of_type) if row not in fitting][
        : max(0, COMPARED - len(fitting))
    ]
    left, sold = dict[tuple[str, str | None], int](), 0
    for row in [*shuffled(random, sorted(fitting)), *others]:
        hit, few = random.random(count) < share, random.random(count) < axes.cart.p_quantity / 2
        units = np.where(few, random.integers(1, MOST_LEFT + 1, count), 0).tolist()
        if not (hit.any() if of_options else hit[0]):
            continue
        alike = catalog.select(
            constraints_of(kind, goals.slot_values(shop, row, names, slots) or {})
        ).tolist()
        most = MOST_FITTING if row in fitting else MOST_SOLD
        if len(alike) > MOST_ALIKE or sold + len(alike) > most:
            continue
        sold += len(alike)
        for one in alike:
            product_id = catalog.ids[one]
            own = [i for i, option in enumerate(options) if option in catalog.options(one)]
            if of_options:
                left |= {(product_id, options[i]): units[i] for i in own if hit[i]}
            if not of_options or (own and hit[own].all()):  # a product is what its options are
                left[product_id, None] = sum(units[i] for i in own) if of_options else units[0]
    if not left:
        return None
    listed = tuple((product_id, option, count) for (product_id, option), count in left.items())
    return SellOut(types=(kind,), left=listed, moment=LOOK, about=(kind,))


def rush_chance(axes: Difficulty) -> float:
    """Compute the probability that something of a wanted type sells out."""
    return 1 - (1 - _share(axes)) ** WANTED


def _share(axes: Difficulty) -> float:
    """Compute the share of a type to sell out, so that a wanted item runs short with probability p_oos: some sell-outs
    hit options of which none is wanted, some leave as many units as are wanted."""
    draws = axes.cart
    options = 1 - draws.p_option / 2 * (1 - draws.p_option)
    units = 1 - draws.p_quantity / 2 * (1 - draws.p_quantity * 2 / 3)
    return min(MOST_GONE, axes.p_oos / (options * units))


def _preferences(item: int, slots: Mapping[str, Any], left: "Left") -> list[str]:
    """List what a customer may want instead of an item."""
    others = [option for option in left.options if option != slots.get("option")]
    able = {
        "option": "option" in slots
        and any(left.units({**slots, "option": o}) >= MOST_WANTED for o in others),
        "quantity": 0 < left.units(slots) < slots.get("quantity", 1),
        "drop": item > 0,  # the first item stays, so that a cart is left
    }
    return ["replace", *(name for name, can in able.items() if can)]


def alternative_left(
    slots: Mapping[str, Any], shop: Shop, random: np.random.Generator, left: "Left"
) -> dict[str, Any] | None:
    """Draw another product of the type that is left in any quantity, or where there are few of each in the one that is
    wanted; None where too few are."""
    least = max(slots.get("quantity", 1), min(MOST_WANTED, shop.catalog.least_stock(slots["type"])))
    for _ in range(TRIES):
        to = goals.alternative(slots, shop, random)
        if to is not None and left.units(to) >= least:
            return to
    return None


class Left:
    """What a sell-out leaves of a type."""

    def __init__(self, sold: SellOut, shop: Shop) -> None:
        (self.kind,) = sold.types
        self.catalog = shop.catalog
        self.options = shop.catalog.types[shop.catalog.type_codes[self.kind]].option.values
        self._left = {(product_id, option): units for product_id, option, units in sold.left}

    def hits(self, slots: Mapping[str, Any]) -> bool:
        """Tell whether there is less than before of a product that these slots describe."""
        return any(
            (product_id, option) in self._left
            for product_id in self._ids(slots)
            for option in (None, slots.get("option"))
        )

    def units(self, slots: Mapping[str, Any]) -> int:
        """Count the units left of a product that these slots describe, the one of which most are left."""
        most, wanted = 0, {**identity_of(slots), **({"option": slots["option"]} if "option" in slots else {})}
        for row in self.catalog.select(constraints_of(self.kind, wanted)).tolist():
            product_id, stock = self.catalog.ids[row], self.catalog.stock.item(row)
            limits = [self._left.get((product_id, option), stock) for option in (None, slots.get("option"))]
            most = max(most, min(stock, *limits))
        return most

    def _ids(self, slots: Mapping[str, Any]) -> list[str]:
        rows = self.catalog.select(constraints_of(self.kind, identity_of(slots)))
        return [self.catalog.ids[row] for row in rows.tolist()]


def instead(event: Instead, want: Want, goal: Goal, world: World) -> GoalChange | None:
    """Choose what the customer wants instead of an item that has run short; None if it has not.

    What was in the cart when it happened stays wanted: a customer who had some takes as many as they can get. Nothing
    that the agent buys afterwards changes the answer.
    """
    have = _units(want, want.option, world)
    if have >= want.quantity:
        return None
    if have and (event.prefers == "quantity" or _kept(want, world)):
        return GoalChange(item=want.item, slots={"quantity": have})
    if event.prefers == "option":
        kind = world.catalog.types[world.catalog.type_codes[want.type]]
        for option in kind.option.values:
            if option != want.option and _units(want, option, world) >= want.quantity:
                return GoalChange(item=want.item, slots={"option": option})
    if event.prefers == "drop" and len(goal.items) > 1:
        return GoalChange(item=want.item, how="drop")
    several = {"quantity": want.quantity} if want.quantity > 1 else {}
    return GoalChange(item=want.item, how="replace", slots={**event.slots, **several})


def _units(want: Want, option: str | None, world: World) -> int:
    """Count the units that the customer can have of what is wanted, in this option, with those in the cart: of the
    product of which there are most."""
    most = 0
    for row in world.catalog.select(want.constraints).tolist():
        lines = [(p, v) for p, v in world.cart if p == world.catalog.ids[row] and option in (None, v)]
        most = max(most, world.stock(row, option) + sum(world.cart[line] for line in lines))
    return most


def _kept(want: Want, world: World) -> bool:
    """Tell whether some of what is wanted was in the cart when something sold out."""
    return any(
        want.option in (None, variant) and world.catalog.satisfies(world.row(product_id), want.constraints)
        for product_id, variant in world.kept
    )
