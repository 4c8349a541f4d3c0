"""Shortages in a cart: sell-outs that know no wish, and what the customer wants instead of what has run short."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.customer.goals import alternative
from ecomlab.difficulty import Difficulty
from ecomlab.seeding import pick
from ecomlab.task import LOOK, Event, Goal, GoalChange, Instead, SellOut, TaskKey
from ecomlab.world.cart import Want, constraints_of, identity_of
from ecomlab.world.state import MOST_GONE, World, draw_sell_out, line_units_left, of_products

WANTED = 3
"""Number of wanted products of a type for which a rush on it is drawn: more make rushes more frequent and smaller."""
MOST_WANTED = 4
"""Most units that are wanted of an item."""
TRIES = 16
TELLING = 4
"""Turns for a first item of which something has sold out: to look again, to tell of it, to look for what is wanted
instead, to take it. Others are done in the same turns, but for the telling."""
RETAKING = 6
"""Tool calls for each such item: two searches, what is left of three others, one more attempt to take it."""


def draw_rushes(
    goal: Goal,
    items: Sequence[int],
    axes: Difficulty,
    key: TaskKey,
    shop: Shop,
    random: np.random.Generator,
) -> tuple[list[Event], set[int]]:
    """Draw sell-outs among the types of these items, and what the customer takes instead; also return the items that
    run short. A sell-out is public randomness: it knows the type, not the product."""
    events: list[Event] = []
    short: set[int] = set()
    for item in items:
        kind = str(goal.get("type", item=item))
        share = draw_sell_out(_share(axes), WANTED, random)
        sold = SellOut(
            types=(kind,),
            share=share,
            of="options" if random.random() < axes.cart.p_option / 2 else "lines",
            few=axes.cart.p_quantity / 2,
            item=item,
            moment=LOOK,
            about=(kind,),
        )
        if not share:
            continue
        left = Left(sold, key, shop)
        other = alternative_left(goal.of(item), shop, random, left)
        if other is None:
            continue
        slots = goal.of(item)
        if left.hits(slots):
            first = not any(event.turns for event in events)
            sold = replace(sold, turns=TELLING if first else 1, calls=RETAKING)
        else:
            sold = replace(sold, turns=0)
        if left.units(slots) < slots.get("quantity", 1):
            short.add(item)
        prefers = pick(random, _preferences(item, slots, left))
        instead = Instead(item=item, prefers=prefers, slots=other, turns=0, calls=0)  # type: ignore[arg-type]
        events += [sold, instead]
    return events, short


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
    slots: Mapping[str, Any], shop: Shop, random: np.random.Generator, left: "Left | None"
) -> dict[str, Any] | None:
    """Draw another product of the type that is left in any quantity; None where too few are."""
    for _ in range(TRIES):
        to = alternative(slots, shop, random)
        if to is not None and (left is None or left.units(to) >= MOST_WANTED):
            return to
    return None


class Left:
    """What a sell-out of lines, or of their options, leaves of a type."""

    def __init__(self, sold: SellOut, key: TaskKey, shop: Shop) -> None:
        (self.kind,) = sold.types
        self.catalog = shop.catalog
        self.options = shop.catalog.types[shop.catalog.type_codes[self.kind]].option.values
        self._line = shop.catalog.lines_of(self.kind)
        self._units = line_units_left(key, shop.catalog, self.kind, sold)

    def of(self, rows: np.ndarray, option: str | None = None) -> np.ndarray:
        """Count the units left of each product, in an option if given."""
        column = 0 if option is None else 1 + self.options.index(option)
        lines = self._units[self._line[rows - self.catalog.type_rows(self.kind).start]]
        left = of_products(lines, self.catalog.option_bits[rows])
        return np.minimum(self.catalog.stock[rows], left[:, column])

    def hits(self, slots: Mapping[str, Any]) -> bool:
        """Tell whether there is less than before of a product that these slots describe."""
        rows = self._rows(slots)
        return bool((self.of(rows, slots.get("option")) < self.catalog.stock[rows]).any())

    def units(self, slots: Mapping[str, Any]) -> int:
        """Count the units left of a product that these slots describe, the one of which most are left."""
        return int(self.of(self._rows(slots), slots.get("option")).max(initial=0))

    def _rows(self, slots: Mapping[str, Any]) -> np.ndarray:
        return self.catalog.select(constraints_of(self.kind, identity_of(slots)))


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
