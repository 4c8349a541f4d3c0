"""CART: put exactly the products, variants and quantities that the customer wants into the cart (SPEC §7)."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ecomlab.catalog import Constraint, Shop
from ecomlab.core import Draft, Environment, Event, Fault, Need, Player, Slips, Task, Verdict
from ecomlab.customer.ledger import Slot
from ecomlab.customer.lexicon import lexicon_of
from ecomlab.customer.words import Act
from ecomlab.difficulty import Difficulty
from ecomlab.players.shopper import FairShopper, KnowingShopper
from ecomlab.reward import cart_credit
from ecomlab.seeding import rng
from ecomlab.tooling import RefusedError, tool
from ecomlab.world import tools as shop_tools
from ecomlab.world.overlay import Shortage, World, options_of

if TYPE_CHECKING:
    from ecomlab.episode import Episode

PLENTY = 8
"""Stock from which a product may be wanted: more than any quantity asked for."""
TRIES = 64
LOOKALIKES = 0.2
"""Share of decoys in the visit history that are of a wanted type."""


@dataclass(frozen=True)
class Want:
    """What the customer wants now: so many units of any product in the class, in that option (None: any or none)."""

    subject: int
    type: str
    slots: Mapping[str, Any]
    """The class by slot name: products that the customer's words cannot tell apart are one class."""
    option: str | None
    quantity: int

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        return constraints_of(self.type, self.slots)


@tool
def submit(world: World, done: bool = True) -> dict[str, Any]:
    """Hand in the cart as it is; the conversation ends."""
    if not done:
        raise RefusedError("nothing was handed in; call submit with done true when the cart is right")
    return {"submitted": True}


class Cart(Environment):
    id = "CART"
    version = 1
    golden = "2163558d78b3ebda50b9b8c22df9cbb0"
    axes = (
        "constraints",
        "p_missing",
        "eps_rank",
        "p_oos",
        "turn_slack",
        "tool_slack",
        "p_noise",
        "p_switch",
        "top_k",
        "history",
    )
    brief = "Put exactly what the customer wants into the cart: product, variant and quantity."
    tools = shop_tools.named(
        shop_tools.catalog_search,
        shop_tools.catalog_get_variants,
        shop_tools.cart_add,
        shop_tools.cart_remove,
        shop_tools.cart_set_quantity,
        shop_tools.cart_view,
        shop_tools.user_get_visit_history,
    )
    submit = submit

    def draw(self, key: tuple[Any, ...], axes: Difficulty, shop: Shop) -> Draft:
        level = key[2]
        random = rng("cart", *key)
        count = min(5, 1 + level // 3)
        types = [shop.catalog.types[i] for i in random.permutation(len(shop.catalog.types))]
        names = [t.name for t in types if len(shop.catalog.type_rows(t.name)) > 0]
        items = [_draw_item(name, axes, level, key, shop, random) for name in names[:count]]
        sold_out = [i for i in range(count) if random.random() < axes.p_oos]
        switching = bool(random.random() < axes.p_switch)
        free = [i for i in range(count) if i not in sold_out]
        switch = (
            _draw_switch(items, free, names[count:], axes, level, key, shop, random) if switching else None
        )
        # What sells out is talked about, and shows in the tools: nothing about it may be withheld (law 8). A
        # product or option that will be exchanged is said in full for the same reason.
        fixed = {
            *sold_out,
            *([switch.subject] if switch and switch.kind in ("option", "replace", "add") else []),
        }
        withheld = [
            [i, name]
            for i, item in enumerate(items)
            for name in item["slots"]
            if i not in fixed and name not in ("type", "quantity") and random.random() < axes.p_missing
        ]
        asks = int(bool(withheld))
        optional = any("option" in item["slots"] for item in items)
        need = Need(
            turns=asks + 2 + optional, asks=asks, calls=2 * count + sum("option" in i["slots"] for i in items)
        )
        events = [_draw_shortage(i, items, count, need, key, shop, random) for i in sold_out]
        if switch:
            events.append(replace(switch, turn=int(random.integers(1, need.turns + 1))))
        happening = tuple(sorted((e for e in events if e), key=lambda e: (e.turn, e.subject)))
        told = [
            {name: value for name, value in item["slots"].items() if [i, name] not in withheld}
            for i, item in enumerate(items)
        ]
        visits = _draw_visits(items, told, axes, key, shop)
        truth = {"items": [item["slots"] for item in items], "withheld": withheld}
        return Draft(told, not withheld, {"visits": visits}, truth, need, happening)

    def begin(self, task: Task, shop: Shop) -> list[Want]:
        return [_want(i, slots) for i, slots in enumerate(task.truth["items"])]

    def slots(self, task: Task) -> tuple[list[Slot], list[Slot]]:
        hidden = {(subject, name) for subject, name in task.truth["withheld"]}
        every = [
            Slot(i, name, value)
            for i, slots in enumerate(task.truth["items"])
            for name, value in slots.items()
            if name != "type"
        ]
        return [s for s in every if (s.subject, s.name) not in hidden], [
            s for s in every if (s.subject, s.name) in hidden
        ]

    def type_name(self, episode: "Episode", subject: int) -> str:
        items = episode.task.truth["items"]
        if subject < len(items):
            return str(items[subject]["type"])
        return next(want.type for want in episode.state if want.subject == subject)

    def occur(self, episode: "Episode", event: Event) -> None:
        if event.kind == "shortage":
            data = event.data
            constraints = tuple(Constraint.from_list(c) for c in data["constraints"])
            episode.world.shortages.append(Shortage(constraints, data["option"], data["left"]))

    def heard(self, episode: "Episode", event: Event) -> bool:
        constraints = tuple(Constraint.from_list(c) for c in event.data["constraints"])
        return any(
            option == event.data["option"] and episode.world.catalog.satisfies(row, constraints)
            for row, option in episode.world.touched
        )

    def fire(self, episode: "Episode", event: Event) -> list[Act] | None:
        wants: list[Want] = episode.state
        if event.kind == "add":
            added = _want(event.subject, event.data["slots"])
            wants.append(added)
            episode.kernel.ledger.restate(event.subject, _without_type(event.data["slots"]))
            return [Act("add", added.type, _without_type(event.data["slots"]))]
        want = next((w for w in wants if w.subject == event.subject), None)
        if want is None:
            return None
        held = match(wants, episode.world).held[wants.index(want)]
        if event.kind == "shortage":
            return self._sold_out(episode, want, event.data, held)
        said = self._change(episode, want, event.kind, event.data, 0)
        return [replace(act, kind="exchange") if act.kind == "replace" else act for act in said]

    def _sold_out(
        self, episode: "Episode", want: Want, data: Mapping[str, Any], held: int
    ) -> list[Act] | None:
        """Units already in the cart stay valid; for the rest the customer says what they then want."""
        rest = want.quantity - held
        if rest <= 0:
            return None
        reaction = data["reaction"]
        if reaction == "quantity":
            news = Act("only left", want.type, number=data["left"])
            left = {"quantity": min(want.quantity, held + data["left"])}
            self._change(episode, want, "quantity", left, 0)
            return [news, Act("settle quantity", want.type, number=left["quantity"])]
        news = Act("sold out", want.type, {"option": data["option"]} if data["option"] else {})
        said = self._change(episode, want, reaction, data, held)
        settled = {
            "drop": [Act("give up", want.type)],
            "option": [Act("settle option", want.type, said[0].slots)],
        }
        return [news, *settled.get(reaction, said)]

    def _change(
        self, episode: "Episode", want: Want, kind: str, data: Mapping[str, Any], held: int
    ) -> list[Act]:
        """Change a want (`held` units of it stay as they are) and say so; the ledger hears it too."""
        wants: list[Want] = episode.state
        ledger = episode.kernel.ledger
        at = wants.index(want)
        kept = [replace(want, quantity=held)] if held else []
        rest = want.quantity - held
        if kind == "quantity":
            wants[at] = replace(want, quantity=data["quantity"])
            ledger.restate(want.subject, {"quantity": data["quantity"]})
            return [Act("quantity", want.type, number=data["quantity"])]
        if kind == "option":
            wants[at : at + 1] = [*kept, replace(want, option=data["to"], quantity=rest)]
            ledger.restate(want.subject, {"option": data["to"]})
            return [Act("option", want.type, {"option": data["to"]})]
        ledger.forget(want.subject)
        if kind == "drop":
            wants[at : at + 1] = kept
            return [Act("drop", want.type)]
        slots = {**data["to"], "quantity": rest} if rest > 1 else dict(data["to"])
        wants[at : at + 1] = [*kept, _want(want.subject, slots)]
        ledger.restate(want.subject, _without_type(slots))
        return [Act("replace", want.type, _without_type(slots))]

    def faults(self, episode: "Episode") -> list[Fault]:
        wants: list[Want] = episode.state
        world = episode.world
        matched = match(wants, world)
        found: list[Fault] = []
        for (product_id, variant), extra in matched.extra.items():
            row = world.row(product_id)
            mine = [w for w in wants if w.type == world.catalog.type_of(row).name]
            if not mine:
                title = world.catalog.title(row)
                found.append(Fault(Act("not wanted", seen=title)))
                continue
            found.append(_fault(mine, world, row, variant, extra))
        blamed = {fault.subject for fault in found}
        for want, held in zip(wants, matched.held, strict=True):
            if 0 < held < want.quantity and want.subject not in blamed:
                act = Act("wrong quantity", want.type, seen=str(held), number=want.quantity)
                found.append(Fault(act, subject=want.subject))
        first = {fault.thing: fault for fault in reversed(found)}
        return list(reversed(first.values()))

    def missing(self, episode: "Episode") -> list[Act]:
        held = match(episode.state, episode.world).held
        return [Act("missing", w.type) for w, h in zip(episode.state, held, strict=True) if h == 0]

    def verify(self, episode: "Episode") -> Verdict:
        wants: list[Want] = episode.state
        world = episode.world
        matched = match(wants, world)
        got, units = sum(world.cart.values()), sum(want.quantity for want in wants)
        right = sum(matched.held)
        correct = right == got == units
        claims: list[Any] = [product_id for product_id, _ in world.cart]
        claims += [line for line in world.cart if line[1] is not None]
        if correct:
            why = f"the cart holds exactly the {units} units wanted"
        else:
            why = f"{right} of {units} wanted units are in the cart" + (
                f", {got - right} others" if got > right else ""
            )
            faults = [f"{f.act.kind}: {f.act.type or f.act.seen}" for f in self.faults(episode)]
            faults += [f"missing: {act.type}" for act in self.missing(episode)]
            why += f" ({'; '.join(faults)})" if faults else ""
        return Verdict(cart_credit(right, matched.near, got, units), correct, why, tuple(claims))

    def solver(self, episode: "Episode") -> Player:
        def truth() -> Iterator[tuple[str, dict[str, Any]]]:
            for want in episode.state:
                slots = {**want.slots, "quantity": want.quantity}
                yield want.type, {**slots, "option": want.option} if want.option else slots

        return KnowingShopper(truth)

    def fair_player(self, shop: Shop, slips: Slips | None = None) -> Player:
        return FairShopper(lexicon_of(shop.catalog), slips)

    def chance(self, task: Task, shop: Shop) -> float:
        """Picking as many visits as there are items, one unit each, without an option."""
        visits, items = task.world["visits"], task.truth["items"]
        if any(slots.get("quantity", 1) != 1 or "option" in slots for slots in items):
            return 0.0
        share = 1.0
        rows = [row for row in map(shop.catalog.row, visits) if row is not None]
        for number, slots in enumerate(items):
            wanted = _want(0, slots).constraints
            share *= (number + 1) * sum(shop.catalog.satisfies(row, wanted) for row in rows)
            share /= max(1, len(rows) - number)
        return min(1.0, share)

    def twin(self, task: Task, shop: Shop, random: np.random.Generator) -> Task | None:
        """Another option, or another product from the visits that fits all that was stated."""
        items = [dict(slots) for slots in task.truth["items"]]
        changed = False
        for i, slots in enumerate(items):
            hidden = [name for subject, name in task.truth["withheld"] if subject == i]
            if "option" in hidden:
                values = next(t for t in shop.catalog.types if t.name == slots["type"]).option.values
                others = [o for o in options_of(task.key, values, slots["type"]) if o != slots["option"]]
                slots["option"] = others[int(random.integers(len(others)))]
                changed = True
            identity = [name for name in hidden if name != "option"]
            stated = {n: v for n, v in slots.items() if n not in hidden}
            for product_id in task.world["visits"] if identity else ():
                row = shop.catalog.row(product_id)
                if row is None or not shop.catalog.satisfies(row, constraints_of(slots["type"], stated)):
                    continue
                other = _slot_values(shop, row, identity, slots)
                if other is not None and any(other[name] != slots[name] for name in identity):
                    slots.update(other)
                    changed = True
                    break
        return replace(task, truth={**task.truth, "items": items}) if changed else None


@dataclass(frozen=True)
class Match:
    """How cart and wants agree: units held per want, and units of each line that nobody wants."""

    held: list[int]
    extra: dict[tuple[str, str | None], int]
    near: int
    """Extra units that are of a type of which units are still wanted."""


def match(wants: Sequence[Want], world: World) -> Match:
    """Assign cart lines to wants, those that name an option first. Exact: classes of different types are disjoint."""
    held = [0] * len(wants)
    left = dict(world.cart)
    order = sorted(range(len(wants)), key=lambda i: wants[i].option is None)
    for i in order:
        want = wants[i]
        for line, units in left.items():
            if want.option not in (None, line[1]) or units == 0:
                continue
            row = world.row(line[0])
            if world.catalog.satisfies(row, want.constraints):
                taken = min(units, want.quantity - held[i])
                held[i] += taken
                left[line] -= taken
    extra = {line: units for line, units in left.items() if units}
    lacking: Counter[str] = Counter()
    for want, units in zip(wants, held, strict=True):
        lacking[want.type] += want.quantity - units
    spare: Counter[str] = Counter()
    for (product_id, _), units in extra.items():
        spare[world.catalog.type_of(world.row(product_id)).name] += units
    return Match(held, extra, (lacking & spare).total())


def constraints_of(type_name: str, slots: Mapping[str, Any]) -> tuple[Constraint, ...]:
    """The class of products that these slots describe."""
    made = [Constraint("type", "==", type_name)]
    for name, value in slots.items():
        if name in ("brand", "feature") or name.startswith("attr:"):
            made.append(Constraint(name, "==", value))
        elif name in ("price", "days"):
            made.append(Constraint(name, "<=", value))
        elif name == "rating":
            made.append(Constraint(name, ">=", value))
    return tuple(made)


def _want(subject: int, slots: Mapping[str, Any]) -> Want:
    identity = {n: v for n, v in slots.items() if n not in ("type", "option", "quantity")}
    return Want(subject, slots["type"], identity, slots.get("option"), slots.get("quantity", 1))


def _without_type(slots: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in slots.items() if name != "type"}


def _fault(mine: list[Want], world: World, row: int, variant: str | None, extra: int) -> Fault:
    """What is wrong with `extra` units of a product whose type is wanted."""
    for want in mine:
        if world.catalog.satisfies(row, want.constraints):
            if want.option not in (None, variant):
                slot = Slot(want.subject, "option", want.option)
                kind = "wrong option" if variant else "no option"
                act = Act(kind, want.type, {"option": want.option}, seen=variant or "")
                return Fault(act, (slot,), want.subject)
            act = Act("wrong quantity", want.type, seen=str(want.quantity + extra), number=want.quantity)
            return Fault(act, subject=want.subject)
    want = mine[0]
    broken = {
        c.field: want.slots[c.field]
        for c in want.constraints
        if c.field != "type" and not world.catalog.satisfies(row, (c,))
    }
    slots = tuple(Slot(want.subject, name, value) for name, value in broken.items())
    act = Act("wrong product", want.type, broken, seen=f"The {world.catalog.title(row)}")
    return Fault(act, slots, want.subject)


def _draw_row(rows: range, shop: Shop, random: np.random.Generator, other_than: str = "") -> int | None:
    """A product of these rows that is well in stock, of another brand if one is named. None if tries run out."""
    for _ in range(TRIES):
        row = rows[int(random.integers(len(rows)))]
        if (
            shop.catalog.stock[row] >= PLENTY
            and shop.catalog.brands[shop.catalog.brand_code[row]] != other_than
        ):
            return int(row)
    return None


def _draw_item(
    type_name: str,
    axes: Difficulty,
    level: int,
    key: tuple[Any, ...],
    shop: Shop,
    random: np.random.Generator,
) -> dict[str, Any]:
    """A product to be wanted, as slots: m constraints (its type is the first), an option, a quantity."""
    rows = shop.catalog.type_rows(type_name)
    row = _draw_row(rows, shop, random)
    row = rows[int(random.integers(len(rows)))] if row is None else row
    slots = describe(shop, row, axes.constraints, random)
    if level > 1 and random.random() < 1 / (1 + math.exp(-(level - 2) / 1.5)):
        slots["option"] = _other_option(type_name, key, shop, random)
    if random.random() < min(0.5, 0.1 * level):
        slots["quantity"] = int(random.integers(2, 5))
    return {"slots": slots, "row": row}


def describe(shop: Shop, row: int, constraints: int, random: np.random.Generator) -> dict[str, Any]:
    """A product in a customer's slots: type, brand, feature, then its other properties in random order."""
    record = shop.catalog.record(row)
    cap = 5 * math.ceil(record["price"] * 1.1 / 5) * 100
    rest: dict[str, Any] = {f"attr:{name}": value for name, value in record["attributes"].items()}
    rest |= {"price": cap, "rating": round(record["rating"] * 10) // 5 * 5, "days": record["ship_days"]}
    names = list(rest)
    shuffled = [names[i] for i in random.permutation(len(names))]
    catalog = shop.catalog
    slots = {"type": record["type"], "brand": record["brand"]}
    slots["feature"] = catalog.features[catalog.feature_code[row]]
    slots |= {name: rest[name] for name in shuffled}
    return dict(list(slots.items())[: max(1, constraints)])


def _slot_values(
    shop: Shop, row: int, names: Sequence[str], like: Mapping[str, Any]
) -> dict[str, Any] | None:
    """These slots as another product has them; None where it lacks one. Bounds stay: they hold or they do not."""
    record = shop.catalog.record(row)
    values: dict[str, Any] = {}
    for name in names:
        if name == "brand":
            values[name] = record["brand"]
        elif name == "feature":
            values[name] = shop.catalog.features[shop.catalog.feature_code[row]]
        elif name.startswith("attr:"):
            if name[5:] not in record["attributes"]:
                return None
            values[name] = record["attributes"][name[5:]]
        else:
            values[name] = like[name]
    return values


def _other_option(
    type_name: str, key: tuple[Any, ...], shop: Shop, random: np.random.Generator, than: str | None = None
) -> str:
    values = next(t for t in shop.catalog.types if t.name == type_name).option.values
    options = [option for option in options_of(key, values, type_name) if option != than]
    return options[int(random.integers(len(options)))]


def _alternative(slots: Mapping[str, Any], shop: Shop, random: np.random.Generator) -> dict[str, Any] | None:
    """A named alternative: another brand's product of the type, by brand and feature."""
    row = _draw_row(shop.catalog.type_rows(slots["type"]), shop, random, slots.get("brand", ""))
    return None if row is None else describe(shop, row, 3, random)


def _draw_shortage(
    i: int,
    items: Sequence[Mapping[str, Any]],
    count: int,
    need: Need,
    key: tuple[Any, ...],
    shop: Shop,
    random: np.random.Generator,
) -> Event | None:
    """An item sells out after a turn in which it could have been seen, before the fair player's last two turns."""
    slots = items[i]["slots"]
    option, quantity = slots.get("option"), slots.get("quantity", 1)
    reactions = ["replace"]
    reactions += ["option"] if option else []
    reactions += ["quantity"] if quantity > 1 else []
    reactions += ["drop"] if count > 1 and i > 0 else []  # the first item stays, so that a cart is left
    reaction = reactions[int(random.integers(len(reactions)))]
    data: dict[str, Any] = {"reaction": reaction, "option": option, "left": 0}
    data["constraints"] = [c.to_list() for c in constraints_of(slots["type"], _want(i, slots).slots)]
    chain, calls = 1, 3
    if reaction == "option":
        data["to"] = _other_option(slots["type"], key, shop, random, than=option)
    elif reaction == "quantity":
        data["left"] = int(random.integers(1, quantity))
    elif reaction == "replace":
        data["to"] = _alternative(slots, shop, random)
        if data["to"] is None:
            return None
        chain = 2
    silent = bool(random.random() < 0.5)
    turn = int(random.integers(1, need.turns))
    return Event(turn, "shortage", i, chain, calls, silent, data)


def _draw_switch(
    items: Sequence[Mapping[str, Any]],
    free: Sequence[int],
    spare_types: Sequence[str],
    axes: Difficulty,
    level: int,
    key: tuple[Any, ...],
    shop: Shop,
    random: np.random.Generator,
) -> Event | None:
    """The customer changes their mind once, about an item that does not sell out. The turn is set later."""
    kinds = ["add"] if spare_types else []
    kinds += ["quantity", "replace"] if free else []
    kinds += ["option"] if any("option" in items[i]["slots"] for i in free) else []
    kinds += ["drop"] if any(i > 0 for i in free) else []
    if not kinds:
        return None
    kind = kinds[int(random.integers(len(kinds)))]
    if kind == "add":
        slots = _draw_item(spare_types[0], axes, level, key, shop, random)["slots"]
        return Event(0, "add", len(items), 3 if "option" in slots else 2, 3, data={"slots": slots})
    able = [
        i for i in free if (kind != "option" or "option" in items[i]["slots"]) and (kind != "drop" or i > 0)
    ]
    i = able[int(random.integers(len(able)))]
    slots = items[i]["slots"]
    if kind == "quantity":
        before = slots.get("quantity", 1)
        others = [q for q in range(1, 5) if q != before]
        return Event(0, kind, i, 1, 1, data={"quantity": others[int(random.integers(len(others)))]})
    if kind == "option":
        return Event(
            0, kind, i, 1, 3, data={"to": _other_option(slots["type"], key, shop, random, slots["option"])}
        )
    if kind == "drop":
        return Event(0, kind, i, 1, 1)
    to = _alternative(slots, shop, random)
    return None if to is None else Event(0, kind, i, 2, 3, data={"to": to})


def _draw_visits(
    items: Sequence[Mapping[str, Any]],
    told: Sequence[Mapping[str, Any]],
    axes: Difficulty,
    key: tuple[Any, ...],
    shop: Shop,
) -> list[str]:
    """Targets among decoys, three times the history's length, shuffled; some decoys are of wanted types.

    Where something that identifies a product is withheld, a decoy that fits all that was stated is among them if
    one is found: the list must not tell them apart (law 8).
    """
    random = rng("visits", *key)
    catalog = shop.catalog
    rows = [item["row"] for item in items]
    for item, stated in zip(items, told, strict=True):
        if len(stated) < len(item["slots"]):
            wanted = constraints_of(stated["type"], _want(0, stated).slots)
            pool = catalog.type_rows(stated["type"])
            for _ in range(TRIES):
                row = pool[int(random.integers(len(pool)))]
                if row not in rows and catalog.satisfies(row, wanted):
                    rows.append(row)
                    break
    length = min(3 * axes.history, catalog.size)
    for _ in range(10 * length):
        if len(rows) >= length:
            break
        near = random.random() < LOOKALIKES
        pool = (
            catalog.type_rows(items[int(random.integers(len(items)))]["slots"]["type"])
            if near
            else range(catalog.size)
        )
        row = pool[int(random.integers(len(pool)))]
        if row not in rows:
            rows.append(row)
    return [catalog.ids[rows[i]] for i in random.permutation(len(rows))]
