"""SUB: for a product that is sold out, the most similar compatible ones that can be bought (SPEC §7)."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.customer.goals import VISITS, draw_row, draw_visits, half_gone
from ecomlab.customer.nlg import ANSWERS
from ecomlab.customer.templates import Saying
from ecomlab.difficulty import Difficulty
from ecomlab.envs.answering import Answering, Wanted, withhold
from ecomlab.players.substitution import Substitutor, identity, titled
from ecomlab.reward import Verdict
from ecomlab.seeding import rng
from ecomlab.task import Draft, Event, Need, Task, TaskError
from ecomlab.values import MONEY, NAME, Kind
from ecomlab.world.cart import constraints_of
from ecomlab.world.state import PAGE, draw_rush
from ecomlab.world.substitutes import LIMITS, noun, requirements, similarity, stages_of
from ecomlab.world.tools import catalog as shop_tools

if TYPE_CHECKING:
    from ecomlab.episode.subtask import Job

TELLING = (
    "works_with", "power", "wattage", "voltage", "size", "capacity", "charge", "layout", "connector", "video", "speed",
    "storage", "grip", "skin", "hair", "age", "opacity", "weight", "terrain", "season",
)  # fmt: skip
"""Attributes that decide whether something can do another's job, the first mattering most."""
MOST_SOFT = 2
"""Attributes that count for similarity; where a type has more, the others must be the same."""
TRIES = 128


def _write_nouns(nouns: Sequence[str]) -> str:
    *before, last = nouns
    return f"{', '.join(before)} and {last}" if before else last


NOUN_ROW = Kind(_write_nouns, r"[A-Za-z][\w, /-]*", lambda text: re.split(", | and ", text))
"""Attributes in a customer's words: "power, cable and color"."""
STARS = Kind(lambda tenths: f"{tenths / 10:.1f} stars", r"\d\.\d stars", lambda text: int(text[0] + text[2]))
DAYS = Kind(
    lambda days: "1 day" if days == 1 else f"{days} days", r"\d+ days?", lambda text: int(text.split()[0])
)
COUNT = Kind(
    lambda count: "1 suggestion" if count == 1 else f"{count} suggestions",
    r"\d+ suggestions?",
    lambda text: int(text.split()[0]),
)


class Substitution(Answering):
    id = "SUB"
    version = 1
    golden = "33161c9582821e36ec387504aefe278d"
    axes = (
        "constraints", "p_missing", "eps_rank", "p_oos", "turn_slack", "tool_slack", "p_noise", "p_switch", "top_k",
        "k_rec", "history",
    )  # fmt: skip
    brief = (
        "A product that the customer looked at lately is sold out. Find replacements that can be bought now, as many "
        "as they want. A replacement is of the same type, has the same attributes where the customer insists on it, "
        "and satisfies all their other demands. Of those, hand in the most similar: the ones that have the most in "
        "common with the sold-out product, counting its brand and its remaining attributes."
    )
    tools = shop_tools.named(shop_tools.user_get_visit_history) | shop_tools.CATALOG
    submit = shop_tools.submit
    clerk = Substitutor
    sayings: ClassVar[Mapping[str, Saying]] = {
        "was_brand": Saying(
            "brand",
            NAME,
            ("The one I saw was made by {}.", "The sold-out one was by {}.", "The maker was {}."),
        ),
        "was_feature": Saying(
            "feature",
            NAME,
            ("It was the {} kind.", "It was the {} one, I remember.", "It had {} in its name."),
        ),
        "must": Saying(
            "details feature option",
            NOUN_ROW,
            (
                "It must have the same {}.",
                "I insist on the same {}.",
                "Please keep the same {}.",
                "It is no use to me without the same {}.",
            ),
        ),
        "price": Saying(
            "price",
            MONEY,
            ("It may cost {} at most.", "I won't pay more than {} for it.", "Nothing above {}, please."),
        ),
        "rating": Saying(
            "rating",
            STARS,
            (
                "It should have at least {}.",
                "I only trust things with {} or more.",
                "Nothing below {}, please.",
            ),
        ),
        "days": Saying(
            "delivery",
            DAYS,
            ("It has to be here within {}.", "I can wait {} at most.", "Delivery may take {}, not more."),
        ),
        "count": Saying(
            "quantity",
            COUNT,
            ("Please give me {}.", "I'd like {} to pick from.", "{} would be fine."),
        ),
    }
    leads = (
        "lately I looked at {}, and now it is sold out.",
        "I had my eye on {}, but it's gone.",
        "the other day I saw {} here. Now it's sold out, what else is there?",
        "I wanted to buy {}, but there is none left.",
        "I was about to order {} when it sold out.",
        "what comes closest to {}? I looked at it some days ago and now it's out of stock.",
        "could you find me something like {}? It's sold out.",
        "my mother chose {}, and of course it's sold out now.",
        "I need a stand-in for {}. I saw it here, it's not available any more.",
        "too bad, I should have bought {} right away. What could I take in its place?",
    )
    closings = (
        "",
        "",
        "",
        "Thanks!",
        "Please help me out.",
        "I'm open to ideas.",
        "I'd be glad of your help.",
    )
    intros = (
        "Something sold out before I could order it.",
        "I was too slow with something.",
        "Something that I had chosen is gone.",
    )
    acts: ClassVar[Mapping[str, Sequence[str]]] = {
        **ANSWERS,
        "elaborate": ("What I saw was {item}.", "I had chosen {item}."),
        "remind": ("As I said, what I saw was {item}.", "As I said, I had chosen {item}."),
    }

    def draw(self, key: tuple[Any, ...], axes: Difficulty, shop: Shop) -> Draft:
        random, catalog = rng("substitution", *key), shop.catalog
        share = draw_rush(axes.p_oos, axes.k_rec, random)
        for attempt in range(TRIES):
            # Enough for a choice, where the shop has it; the visits will take some of them.
            enough = max(2, round((axes.k_rec + 2) * (1 - 2 * attempt / TRIES)))
            kind = catalog.types[int(random.integers(len(catalog.types)))].name
            row = draw_row(catalog.type_rows(kind), shop, random)
            if row is None:
                continue
            # A small shop has too little of any type for such a rush; then less of it sells out. With nine products a
            # type (1,000 in all) some four can stand in, whatever the level: there the list cannot grow with it, nor
            # can demands leave much out, and d hardly makes it harder.
            rush = {"type": kind, "share": share * min(1.0, 2 * (1 - attempt / TRIES))}
            events = [Event(0, "rush", 0, 0, 0, data=rush)] if share else []
            hard = _draw_hard(catalog.attributes(row), random)
            if not hard:
                continue
            wanted: Wanted = {
                (0, "type"): kind,
                **_words(shop, row, random),
                (0, "must"): list(map(noun, hard)),
            }
            if min(map(len, stages_of(wanted, row, events, (), key, shop))) < enough:
                continue
            visits, gone = _draw_visits(wanted, row, axes, key, shop, random)
            if min(map(len, stages_of(wanted, row, events, gone, key, shop))) > 0:
                break
        else:
            raise TaskError("nothing of this shop can be replaced; load a larger shop")
        left = stages_of(wanted, row, events, gone, key, shop)[-1]
        wanted |= {(0, name): limit for name, limit in _draw_limits(kind, left, axes, shop, random).items()}
        change = _draw_change(wanted, random)
        if change and random.random() < axes.p_switch:
            events.append(Event(0, "change", 0, 0, 0, data={"slots": change}))
        stages = stages_of(wanted, row, events, gone, key, shop)
        while events and min(map(len, stages)) == 0:  # it must stay possible
            stages = stages_of(wanted, row, events := events[:-1], gone, key, shop)
        wanted[0, "count"] = min(axes.k_rec, axes.top_k, *map(len, stages))
        changed = {name for event in events if event.kind == "change" for name in event.data["slots"]}
        slots = [(s, name, value) for (s, name), value in wanted.items()]
        told = ("count", "brand", "feature")
        withheld = withhold(
            slots, axes, random, lambda _, name: name.startswith("attr:") or name in (*told, *changed)
        )
        # Of the words that name the sold-out product, `_draw_visits` has withheld some already.
        withheld = {slot for slot in withheld if not slot[1].startswith("was_")}
        withheld |= {slot for slot in wanted if slot[1].startswith("was_")}
        pages = math.ceil(wanted[0, "count"] / PAGE)
        asks, chain = int(bool(withheld)), 1 + (pages > 1)
        looks = sum(
            titled(catalog.title(catalog.row(visit) or 0), identity({n: v for (_, n), v in wanted.items()}))
            for visit in visits
        )
        searches = pages * 2 ** (1 + len(catalog.attributes(row)) - len(hard))
        need = Need(turns=asks + 2 + chain, asks=asks, calls=1 + looks + searches)
        timed = [
            replace(event, turn=int(random.integers(1, need.turns + 1)), chain=chain, calls=searches)
            for event in events
        ]
        world = {"visits": visits, "gone": gone}
        return self.draft(slots, withheld, world, need, timed, original=catalog.ids[row])

    def verify(self, episode: "Job") -> Verdict:
        wanted, world, catalog = episode.state, episode.world, episode.shop.catalog
        count, original = wanted[0, "count"], world.row(episode.task.truth["original"])
        ids = list(episode.answer["product_ids"]) if episode.answer else []
        if not ids:
            return Verdict(-1.0, False, "no replacement was handed in")
        candidates = world.in_stock(catalog.select(requirements(wanted, original, episode.shop)))
        candidates = candidates[candidates != original]
        best = np.sort(similarity(candidates, wanted, original, episode.shop))[::-1][:count]
        compatible = requirements(wanted, original, episode.shop, limits=False)
        good: dict[int, bool] = {}
        for product_id in ids:
            row = catalog.row(product_id)
            if row is None or row == original or product_id not in world.shown or not world.stock(row):
                continue
            if catalog.satisfies(row, compatible):
                good[row] = catalog.satisfies(row, requirements(wanted, original, episode.shop))
        alike = similarity(np.array(list(good), int), wanted, original, episode.shop)
        limits = [c for c in requirements(wanted, original, episode.shop) if c not in compatible]
        met = sum(np.mean([catalog.satisfies(row, (c,)) for c in limits]) if limits else 1.0 for row in good)
        correct = (
            len(ids) == len(good) == count and all(good.values()) and int(alike.sum()) == int(best.sum())
        )
        # One more than the number of equal entries: being compatible counts for something too.
        similar = min(1.0, float((alike + 1).sum() / max(1, (best + 1).sum())))
        weight = min(0.8, max(0.4, 0.4 + 0.05 * episode.task.difficulty))
        share = weight * similar + (1 - weight) * min(1.0, float(met) / count)
        credit = 2 * share * min(1.0, count / len(ids)) - 1
        if correct:
            why = f"these {count} are compatible, and none that can be had is more similar"
        else:
            why = (
                f"{len(ids)} replacements of {count} asked for, {len(good)} of them compatible and in stock, "
                f"{sum(good.values())} as the customer wants; {int(alike.sum())} equal entries in all, "
                f"{int(best.sum())} in the best choice"
            )
        return Verdict(1.0 if correct else max(-1.0, min(credit, 0.999)), correct, why, tuple(ids))

    def chance(self, task: Task, shop: Shop) -> float:
        """Right by position alone: as many visits as are asked for, when all of the best happen to be among them."""
        wanted, original = self.begin(task, shop), shop.catalog.row(task.truth["original"]) or 0
        rows = stages_of(wanted, original, (), task.world["gone"], task.key, shop)[0]
        alike = similarity(rows, wanted, original, shop)
        count, visits = wanted[0, "count"], [shop.catalog.row(visit) for visit in task.world["visits"]]
        cut = int(np.sort(alike)[::-1][count - 1])
        above, level = set(rows[alike > cut].tolist()), set(rows[alike == cut].tolist())
        if not above <= set(visits):
            return 0.0
        return math.comb(len(level & set(visits)), count - len(above)) / math.comb(len(visits), count)

    def twin(self, task: Task, shop: Shop, random: np.random.Generator) -> Task | None:
        """Another sold-out visit, another attribute that must be the same or another limit, with as many to be had."""
        wanted, gone = self.begin(task, shop), task.world["gone"]
        original = shop.catalog.row(task.truth["original"]) or 0
        hidden = [name for _, name in task.truth["withheld"]]
        for name in [hidden[i] for i in random.permutation(len(hidden)).tolist()]:
            for row, value in _others(name, wanted, original, gone, shop):
                other = {**wanted, (0, name): value}
                if row != original:
                    other |= {slot: _was(shop, row, slot[1]) for slot in wanted if slot[1].startswith("was_")}
                if (
                    min(map(len, stages_of(other, row, task.events, gone, task.key, shop)))
                    >= wanted[0, "count"]
                ):
                    truth = {
                        **task.truth,
                        "slots": [[s, n, v] for (s, n), v in other.items()],
                        "original": shop.catalog.ids[row],
                    }
                    return replace(task, truth=truth)
        return None


def _draw_hard(attributes: Mapping[str, str], random: np.random.Generator) -> list[str]:
    """Attributes that must be the same: half of the time one that decides whether the thing can do its job, else any,
    so that it cannot be guessed without listening."""
    able = [
        name
        for name in attributes
        if re.fullmatch(NOUN_ROW.pattern, noun(name)) and not re.search(", | and ", noun(name))
    ]
    telling = [name for name in TELLING if name in able]
    if not able:
        return []
    first = telling[0] if telling else able[0]
    if random.random() < 0.5:
        first = able[int(random.integers(len(able)))]
    others = [name for name in able if name != first]
    least = max(0, len(attributes) - 1 - MOST_SOFT)
    more = max(least, int(len(others) > 1 and random.random() < 0.25))
    chosen = {first, *(others[i] for i in random.permutation(len(others))[:more].tolist())}
    return [name for name in attributes if name in chosen]


def _was(shop: Shop, row: int, name: str) -> str:
    """A name of the sold-out product: its brand or its feature."""
    catalog = shop.catalog
    if name.endswith("brand"):
        return catalog.brands[catalog.brand_code.item(row)]
    return catalog.features[catalog.feature_code.item(row)]


def _words(shop: Shop, row: int, random: np.random.Generator) -> Wanted:
    """How the customer names the product: by brand and feature, sometimes by an attribute as well."""
    words: Wanted = {(0, name): _was(shop, row, name) for name in ("brand", "feature")}
    attributes = list(shop.catalog.attributes(row).items())
    if attributes and random.random() < 0.4:
        name, value = attributes[int(random.integers(len(attributes)))]
        words[0, f"attr:{name}"] = value
    return words


def _draw_visits(
    wanted: Wanted, row: int, axes: Difficulty, key: tuple[Any, ...], shop: Shop, random: np.random.Generator
) -> tuple[list[str], list[str]]:
    """The customer's visits, and which are sold out: half of each type's, those first that fit what is stated.

    The words that are withheld, brand or feature, leave `wanted` under these names and come back as "was_brand" and
    "was_feature": said later, they need sentences that tell them from what the replacement should be.
    """
    catalog, kind = shop.catalog, wanted[0, "type"]
    slots = {name: value for (_, name), value in wanted.items() if name != "must"}
    drawn = random.random(2) < axes.p_missing
    hidden = [name for name, hit in zip(("brand", "feature"), drawn.tolist(), strict=True) if hit]
    told = {name: value for name, value in slots.items() if name not in hidden}
    others = [
        catalog.types[i].name
        for i in random.permutation(len(catalog.types))[: VISITS * axes.history].tolist()
    ]
    visits = draw_visits(
        [{"row": row, "slots": slots}], [told], [n for n in others if n != kind], axes, key, shop
    )
    for name in hidden:
        wanted[0, f"was_{name}"] = wanted.pop((0, name))
    rows = np.array([catalog.row(visit) for visit in visits], int)
    fitting = set(catalog.select(constraints_of(kind, told), np.sort(rows)).tolist())
    return visits, half_gone(visits, key, shop, lambda r: (r != row, r not in fitting))


def _draw_limits(
    kind: str, rows: np.ndarray, axes: Difficulty, shop: Shop, random: np.random.Generator
) -> dict[str, int]:
    """m - 1 further demands, drawn so that they exclude some of these rows and leave enough to choose from."""
    catalog, limits = shop.catalog, {}
    columns = {"price": catalog.price_cents, "rating": -catalog.rating_tenths, "days": catalog.days}
    for name in [LIMITS[i] for i in random.permutation(len(LIMITS))[: axes.constraints - 1].tolist()]:
        keep = min(len(rows), max(axes.k_rec + 1, round(len(rows) * random.uniform(0.4, 0.75))))
        edge = int(np.sort(columns[name][rows])[keep - 1])
        limits[name] = {"price": 100 * math.ceil(edge / 100), "rating": -edge, "days": edge}[name]
        rows = catalog.select(constraints_of(kind, {name: limits[name]})[1:], rows)
    return {name: limits[name] for name in LIMITS if name in limits}


def _draw_change(wanted: Wanted, random: np.random.Generator) -> dict[str, Any]:
    """Another limit; stricter ones may leave nothing and are then not meant."""
    names = [name for name in LIMITS if (0, name) in wanted]
    if not names:
        return {}
    name = names[int(random.integers(len(names)))]
    value = wanted[0, name]
    if name == "price":
        other = 100 * max(1, round(value * (0.85 if random.random() < 0.5 else 1.25) / 100))
        return {name: other if other != value else value + 100}
    if name == "rating":
        return {name: max(0, value - 2 - int(random.integers(4)))}
    return {name: max(1, value - 1) if value > 1 and random.random() < 0.5 else value + 1}


def _others(
    name: str, wanted: Wanted, original: int, gone: Sequence[str], shop: Shop
) -> list[tuple[int, Any]]:
    """(original, value) pairs that a withheld slot might have instead."""
    value, catalog = wanted[0, name], shop.catalog
    if name.startswith("was_"):
        told = {n: v for (_, n), v in wanted.items() if n in ("brand", "feature") or n.startswith("attr:")}
        rows = catalog.select(
            constraints_of(wanted[0, "type"], told), sorted(catalog.row(g) or 0 for g in gone)
        )
        fitting = [row for row in rows.tolist() if row != original]
        return [(row, _was(shop, row, name)) for row in fitting]
    if name == "must":
        attributes = catalog.attributes(original)
        return [(original, [noun(other)]) for other in attributes if [noun(other)] != value]
    step = {"price": 500, "rating": -2, "days": 1}[name]
    return [(original, value + step)]
