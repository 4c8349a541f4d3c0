"""BUNDLE: everything on the list for a project, each thing once, within the budget (SPEC §7)."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ecomlab.catalog import Catalog, Shop
from ecomlab.catalog.lexicon import Lexicon
from ecomlab.customer.acts import Act
from ecomlab.customer.templates import Saying
from ecomlab.difficulty import Difficulty
from ecomlab.envs.answering import Answering, Wanted, withhold
from ecomlab.players.bundle import Bundler
from ecomlab.reward import Verdict
from ecomlab.seeding import rng
from ecomlab.task import Draft, Event, Need, Task, TaskError
from ecomlab.values import MONEY, Kind, money
from ecomlab.world.cart import constraints_of
from ecomlab.world.state import draw_rush, rushed
from ecomlab.world.tools import catalog as shop_tools

if TYPE_CHECKING:
    from ecomlab.episode.subtask import Job

Part = tuple[str, dict[str, Any]]
"""A product type that is needed, and what it must be like, by slot name."""
PROJECTS: Mapping[str, tuple[str, ...]] = {
    "electronics": ("our new home office", "my workplace at home", "a media room"),
    "kitchen": ("our new kitchen", "a cooking class at home", "my first kitchen"),
    "clothing": ("a new wardrobe", "our long trip", "our family trip"),
    "home": ("our new living space", "the guest room", "our new flat"),
    "sports": ("our active holiday", "our sports club", "our home gym"),
    "beauty": ("a spa evening", "my bathroom", "a gift basket"),
    "toys": ("our daycare group", "the children's room", "a birthday party"),
    "office": ("our new office", "a study room", "my freelance office"),
    "garden": ("our new garden", "the allotment", "our yard this spring"),
    "pets": ("our pet corner", "the animal shelter", "our zoo at home"),
}
"""What a customer may be up to with things of a department."""
MIXED = ("our move", "the new house", "a raffle", "a big family weekend")
_ARTICLE = re.compile(r"^an? ")
_NEXT = re.compile(r"(?:, | and )(?=an? [A-Z0-9])")


def _with_article(name: str) -> str:
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _write_list(names: Sequence[str]) -> str:
    *before, last = map(_with_article, names)
    return f"{', '.join(before)} and {last}" if before else last


def _read_list(text: str) -> list[str]:
    return [_ARTICLE.sub("", name) for name in _NEXT.split(text)]


PARTS = Kind(_write_list, r"an? [^.!?\n]+", _read_list)
"""Product types as a list: "a Yoga Mat, a Kettlebell and an Air Fryer"."""
PART = Kind(_with_article, r"an? [^.!?\n]+", lambda text: _ARTICLE.sub("", text))
THE_PART = Kind(str, r"[A-Z0-9][^.!?\n]*?", str)


class Bundle(Answering):
    id = "BUNDLE"
    version = 1
    golden = "851daf2c5080da9bcad3ed80bb31e5a9"
    axes = (
        "constraints", "p_missing", "eps_rank", "p_oos", "turn_slack", "tool_slack", "p_noise", "p_switch", "top_k",
    )  # fmt: skip
    brief = (
        "Put together the customer's shopping list: one product for each thing they need and nothing else, as they "
        "want it, that can be bought now. All of it together must not cost more than their budget."
    )
    tools = shop_tools.CATALOG
    submit = shop_tools.submit
    clerk = Bundler
    sayings: ClassVar[Mapping[str, Saying]] = {
        "budget": Saying(
            "price",
            MONEY,
            (
                "My budget is {}.",
                "I can spend {} in total.",
                "All of it together may cost {} at most.",
                "It has to stay within {}, everything included.",
            ),
        ),
        "parts": Saying(
            "parts",
            PARTS,
            ("The list also needs {}.", "Still missing from the list: {}.", "The rest of the list: {}."),
        ),
        "added": Saying(
            "parts",
            PART,
            (
                "On top of that we now need {}.",
                "It turns out we need {} too.",
                "Please put {} on the list too.",
            ),
        ),
        "dropped": Saying(
            "parts",
            THE_PART,
            (
                "You can leave out the {}.",
                "We no longer need the {}.",
                "The {} is here already, so take it off the list.",
            ),
        ),
    }
    lists = (
        "Here is the list: {}.",
        "Shopping list: {}.",
        "What we need: {}.",
        "On my list: {}.",
        "One of each, please: {}.",
    )
    intros = (
        "There is a whole list of things to find.",
        "I'm getting things together for something bigger.",
        "There is quite a lot to get at once.",
    )
    closings = (
        "",
        "",
        "",
        "Thanks!",
        "Please help me out.",
        "I'd be glad of your help.",
        "Thanks in advance!",
    )
    joins = ((", ", " and "), (", ", " and "), ("; ", "; "))

    def draw(self, key: tuple[Any, ...], axes: Difficulty, shop: Shop) -> Draft:
        random, level, catalog = rng("bundle", *key), key[2], shop.catalog
        count = min(12, 3 + level // 2)
        departments, pool = _pool(catalog, count + 1, random)
        share = draw_rush(axes.p_oos, count, random)  # on all types of the departments
        rush = {kind: share for kind in pool if share and len(_left(catalog, kind, {}, key, {kind: share}))}
        usable = [kind for kind in pool if kind in rush or len(_left(catalog, kind, {}, key, rush))]
        if len(usable) < 2:
            raise TaskError(f"too little of {', '.join(departments)} is in stock; load a larger shop")
        order = [usable[i] for i in random.permutation(len(usable)).tolist()]
        kinds, spare = order[:count], order[count : count + 1]
        hidden = [
            kind
            for kind, draw in zip(kinds, random.random(len(kinds)).tolist(), strict=True)
            if kind in kinds[math.ceil(count / 2) :] and draw < axes.p_missing
        ]
        wanted: Wanted = {}
        for i, kind in enumerate(kind for kind in kinds if kind not in hidden):
            wanted[i, "type"] = kind
            if i < axes.constraints - 1:  # the budget is one of the m constraints
                rows = _left(catalog, kind, {}, key, rush)
                name, value = _trait(catalog, int(rows[int(random.integers(len(rows)))]), random)
                wanted[i, name] = value
        if hidden:
            wanted[0, "parts"] = hidden
        slots = [(s, name, value) for (s, name), value in wanted.items()]
        withheld = withhold(slots, axes, random) | {(0, "parts")} & set(wanted)
        change = _draw_change(wanted, withheld, spare, random) if random.random() < axes.p_switch else {}
        dearest = {**wanted, **{(0, name): value for name, value in change.items() if name == "added"}}
        total, slack = _total(dearest, key, rush, catalog), 0.5 * math.exp(-level / 5)
        if total is None:
            raise AssertionError("each part was drawn with a product that is left")
        budget = 100 * math.ceil(total * (1 + slack) / 100)
        if "budget" in change:
            other = 100 * math.ceil(total * (1 + 0.4 * slack) / 100)
            change = {"budget": other if other < budget and random.random() < 0.5 else budget + 1000}
        if "budget" in change or random.random() >= axes.p_missing:
            told = withheld
        else:
            told = withheld | {(0, "budget")}
        slots.append((0, "budget", budget))
        asks = int(bool(told))
        need = Need(turns=asks + 1, asks=asks, calls=len(kinds))
        more = int("added" in change)
        events = []
        if rush:
            data = {"types": list(rush), "share": share}
            events.append(Event(0, "rush", 0, 1, len(kinds) + more, data=data))
        if change:
            events.append(Event(0, "change", 0, more, more, data={"slots": change}))
        timed = [replace(event, turn=int(random.integers(1, need.turns + 1))) for event in events]
        leads = _leads(departments, random)
        return self.draft(slots, told, {}, need, timed, leads, pool=usable)

    def occur(self, episode: "Job", event: Event) -> None:
        if event.kind == "rush":
            for kind in event.data["types"]:
                episode.world.rush(kind, event.data["share"])

    def fire(self, episode: "Job", event: Event) -> list[Act] | None:
        if event.kind == "rush":
            return [Act("check list")]
        dropped, ledger = event.data["slots"].get("dropped"), episode.kernel.ledger
        for subject in [s for (s, name), kind in episode.state.items() if name == "type" and kind == dropped]:
            for said in (ledger.stated, ledger.revealed):  # nobody repeats how it should have been
                said[:] = [slot for slot in said if slot.subject != subject or slot.name in self.sayings]
        return super().fire(episode, event)

    def read_opening(self, text: str, lexicon: Lexicon) -> Wanted:
        return super().read_opening(_NEXT.sub("; ", text), lexicon)

    def read_later(self, text: str, lexicon: Lexicon, known: Mapping[tuple[int, str], Any]) -> Wanted:
        return {
            slot: value
            for slot, value in super().read_later(text, lexicon, known).items()
            if slot[1] != "quantity"
        }

    def verify(self, episode: "Job") -> Verdict:
        wanted, world = episode.state, episode.world
        parts, budget = parts_of(wanted), wanted[0, "budget"]
        ids = list(episode.answer["product_ids"]) if episode.answer else []
        if not ids:
            return Verdict(-1.0, False, "nothing was handed in")
        left = dict(parts)
        cost = 0
        for product_id in ids:
            row = world.catalog.row(product_id)
            if row is None:
                continue
            cost += world.catalog.price_cents.item(row)
            kind = world.catalog.type_of(row).name
            usable = product_id in world.shown and world.stock(row) > 0
            if kind in left and usable and world.catalog.satisfies(row, constraints_of(kind, left[kind])):
                del left[kind]
        right = len(parts) - len(left)
        overspend = max(0, cost - budget) / budget
        correct = right == len(parts) == len(ids) and cost <= budget
        credit = min(1.0, max(-1.0, 4 * right / (len(ids) + len(parts)) - 1 - overspend))
        if correct:
            why = f"all {len(parts)} things on the list for {money(cost)} of {money(budget)}"
        else:
            why = f"{right} of {len(parts)} things on the list, {len(ids) - right} others, "
            why += f"for {money(cost)} of {money(budget)}"
            why += f" (missing: {', '.join(left)})" if left else ""
        return Verdict(credit if correct else min(credit, 0.999), correct, why, tuple(ids))

    def twin(self, task: Task, shop: Shop, random: np.random.Generator) -> Task | None:
        """Another part on the list, another trait or another budget, all still to be had."""
        wanted = self.begin(task, shop)
        rush: dict[str, float] = {}
        changes: Wanted = {}
        for event in task.events:
            if event.kind == "rush":
                rush = dict.fromkeys(event.data["types"], event.data["share"])
            else:
                changes = {(0, name): value for name, value in event.data["slots"].items()}
        hidden = [(s, name) for s, name in task.truth["withheld"]]
        for slot in [hidden[i] for i in random.permutation(len(hidden)).tolist()]:
            taken = {kind for kind, _ in parts_of(wanted)} | {changes.get((0, "added"))}
            for value in _others(
                slot, wanted, [k for k in task.truth["pool"] if k not in taken], shop.catalog
            ):
                other = {**wanted, slot: value}
                totals = [
                    _total(some, task.key, rush, shop.catalog) for some in (other, {**other, **changes})
                ]
                budget = min(other[0, "budget"], changes.get((0, "budget"), other[0, "budget"]))
                if all(total is not None and total <= budget for total in totals):
                    slots = [[s, n, v] for (s, n), v in other.items()]
                    return replace(task, truth={**task.truth, "slots": slots})
        return None


def parts_of(wanted: Mapping[tuple[int, str], Any]) -> list[Part]:
    """What is on the list: the things of the opening, those named later, and what was added or dropped."""
    parts: dict[str, dict[str, Any]] = {}
    for (subject, name), kind in wanted.items():
        if name == "type":
            parts[kind] = {
                n: value
                for (s, n), value in wanted.items()
                if s == subject and (n in ("brand", "rating", "days") or n.startswith("attr:"))
            }
    later = [*wanted.get((0, "parts"), ()), *filter(None, [wanted.get((0, "added"))])]
    parts |= {kind: {} for kind in later if kind not in parts}
    return [(kind, slots) for kind, slots in parts.items() if kind != wanted.get((0, "dropped"))]


def _pool(catalog: Catalog, least: int, random: np.random.Generator) -> tuple[list[str], list[str]]:
    """A department, sometimes with its neighbour, more where they have too few types; and the types of it."""
    of: dict[str, list[str]] = {}
    for kind in catalog.types:
        of.setdefault(kind.department, []).append(kind.name)
    names = list(of)
    start, wanted = int(random.integers(len(names))), 2 if random.random() < 0.3 else 1
    chosen: list[str] = []
    for i in range(len(names)):
        if len(chosen) >= wanted and sum(len(of[name]) for name in chosen) >= least:
            break
        chosen.append(names[(start + i) % len(names)])
    return chosen, [kind for name in chosen for kind in of[name]]


def _leads(departments: Sequence[str], random: np.random.Generator) -> tuple[str, ...]:
    """Sentences that name the project."""
    known = PROJECTS.get(departments[0], (f"my {departments[0]} project",))
    options = known if len(departments) == 1 else MIXED
    project = options[int(random.integers(len(options)))]
    return (
        f"for {project} we need {{}}.",
        f"I'm shopping for {project} and need {{}}.",
        f"it's about {project}. Please find me {{}}.",
        f"could you put together what we need for {project}? That is {{}}.",
        f"I'm in charge of {project} and still need {{}}.",
        f"I need {{}} for {project}.",
        f"please help me with {project}: I'm looking for {{}}.",
        f"what would you pick for {project}? I need {{}}.",
    )


def _trait(catalog: Catalog, row: int, random: np.random.Generator) -> tuple[str, Any]:
    """One thing that a customer may ask of a part and this product has."""
    traits: dict[str, Any] = {f"attr:{name}": value for name, value in catalog.attributes(row).items()}
    traits["brand"] = catalog.brands[catalog.brand_code.item(row)]
    traits["rating"] = catalog.rating_tenths.item(row) // 5 * 5
    traits["days"] = catalog.days.item(row)
    names = list(traits)
    name = names[int(random.integers(len(names)))]
    return name, traits[name]


def _draw_change(
    wanted: Wanted, withheld: Collection[tuple[int, str]], spare: Sequence[str], random: np.random.Generator
) -> dict[str, Any]:
    """A change of mind: another budget (its value comes later), one part more, or one part dropped."""
    open_ = {
        s for s, name in withheld if name != "parts"
    }  # dropping one of these would leave a question pointless
    able = [kind for (s, name), kind in wanted.items() if name == "type" and s not in open_]
    changes: list[dict[str, Any]] = [{"budget": 0}]
    changes += [{"added": spare[0]}] if spare else []
    changes += [{"dropped": able[int(random.integers(len(able)))]}] if able else []
    return changes[int(random.integers(len(changes)))]


def _left(
    catalog: Catalog, kind: str, slots: Mapping[str, Any], key: Sequence[Any], rush: Mapping[str, float]
) -> np.ndarray:
    """The rows of a type that are like this and in stock after the rush."""
    rows = catalog.select(constraints_of(kind, slots))
    keep = catalog.stock[rows] > 0
    if kind in rush:
        keep &= ~rushed(key, catalog, kind, rush[kind])[rows - catalog.type_rows(kind).start]
    return rows[keep]


def _total(wanted: Wanted, key: Sequence[Any], rush: Mapping[str, float], catalog: Catalog) -> int | None:
    """What the list costs at least after the rush, in cents; None when a part cannot be had."""
    total = 0
    for kind, slots in parts_of(wanted):
        rows = _left(catalog, kind, slots, key, rush)
        if not len(rows):
            return None
        total += int(catalog.price_cents[rows].min())
    return total


def _others(slot: tuple[int, str], wanted: Wanted, spare: Sequence[str], catalog: Catalog) -> list[Any]:
    """Other values that a slot might have."""
    subject, name = slot
    value = wanted[slot]
    if name == "budget":
        return [value + 1000]
    if name == "parts":
        return [[*value[:-1], kind] for kind in spare]
    if name == "rating":
        return [value - 5]
    if name == "days":
        return [value + 1]
    if name == "brand":
        return [brand for brand in catalog.brands if brand != value]
    attributes = catalog.types[catalog.type_codes[wanted[subject, "type"]]].attributes
    return [v for a in attributes if f"attr:{a.name}" == name for v in a.values if v != value]
