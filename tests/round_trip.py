"""The round trip of the bank of utterances: a frame is said with real slots and read back as the same act and slots."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.catalog.lexicon import Lexicon, lexicon_of
from ecomlab.customer import nlu
from ecomlab.customer.acts import Act
from ecomlab.customer.fillers import full
from ecomlab.customer.nlg import Speaker
from ecomlab.customer.noise import noised
from ecomlab.customer.templates import WISHES, Phrases, Template
from ecomlab.customer.utterances import Form
from ecomlab.seeding import pick, rng, shuffled
from ecomlab.task import Goal
from ecomlab.values import FORMATS
from ecomlab.wishes import AMOUNT_FORMAT, Demand, If, Said, Visited
from ecomlab.world.joint import GiveWay, Same, Together, Total
from ecomlab.world.ranking import Worth
from ecomlab.world.reviews import claims_on, reviews_format
from ecomlab.world.unmet import GIVE_WAY

NAMED = "SonicWave Compact Headset"
"""What stands for {seen} where an act names a product."""
SLOTS_NAMED = ("the color", "the delivery time", "the style and the price", "how it was ordered")
SEEN = {
    "correct": (f"the {NAMED}", "3 Headsets"),
    "indifferent to": SLOTS_NAMED,
    "wrong about": SLOTS_NAMED,
    "ask where": SLOTS_NAMED,
    "back": ("my cart", "the recommendations"),
    "name": ("Dana Miller",),
    "email": ("dana.miller@example.com",),
    "ask back": ("sooner rather than later", "Tuesday-ish?"),
}
"""What stands for it otherwise."""
SEVERAL = frozenset(("correct", "add", "exchange", "replace", "another line"))
"""Acts that tell how many of an item there are."""
_LEADING = frozenset(("", "no", "not this one"))
"""Readings of a lead-in that do no harm."""
_WORDS = re.compile(r"\{\}|[a-z0-9']+")


def frames(phrases: Phrases) -> Iterator[tuple[str, Form]]:
    """Yield (name in the bank, form) of all that is said, but for sentences made in code."""
    for kind, forms in phrases.acts.items():
        yield from ((kind, form) for form in forms)
    for kind, leading in phrases.before.items():
        yield from ((f"before {kind}", form) for form in leading)
    for kind, leads in phrases.leads.items():
        yield from ((f"opening {kind}", form) for form in leads)
    for name, slot in phrases.slots.items():
        said = dict.fromkeys(form for some in slot.bank.values() for form in some)
        yield from ((f"slot {name}", form) for form in said)


def same_words(form: Form) -> str:
    """Write the words of a form as forms are compared: without case, punctuation, contractions, courtesy and the names
    of fields."""
    words = _WORDS.findall(full(re.sub(r"[\[\]]", "", form.open)))
    return " ".join(word for word in words if word != "please")


def described(shop: Shop, random: np.random.Generator, phrases: Phrases, kind: str = "") -> dict[str, Any]:
    """Describe a product in all the words that there are for one, but not those that make sentences of their own."""
    catalog = shop.catalog
    rows = catalog.type_rows(kind) if kind else range(catalog.size)
    row = rows[int(random.integers(len(rows)))]
    found, record = catalog.type_of(row), catalog.record(row)
    slots: dict[str, Any] = {"type": found.name, "brand": record["brand"]}
    slots["feature"] = catalog.features[catalog.feature_code[row]]
    if found.option.values:
        slots["option"] = pick(random, found.option.values)
    slots |= {f"attr:{name}": value for name, value in record["attributes"].items()}
    price, rating, days = (int(random.integers(*bounds)) for bounds in ((1, 60), (30, 50), (1, 15)))
    slots |= {"price": 500 * price, "rating": rating, "days": days}
    return {name: value for name, value in slots.items() if name not in phrases.slots}


def act_of(kind: str, form: Form, slots: Mapping[str, Any], number: int, random: np.random.Generator) -> Act:
    """Make an act of this kind about `number` of such an item, with what the form holds."""
    about = {name: value for name, value in slots.items() if name != "type"}
    if kind in SEVERAL and (number > 1 or kind == "correct"):
        about["quantity"] = number
    if not form.fields & {"wanted", "item", "details"}:
        about = {}
    counted = number if "number" in form.fields or kind == "correct" else 0
    return Act(kind, slots["type"], about, seen=pick(random, SEEN.get(kind, (NAMED,))), number=counted)


def value_of(name: str, slot: Template, shop: Shop, random: np.random.Generator) -> Any:
    """Draw a value of a slot with sentences of its own."""
    for known, made in {
        "money": int(random.integers(1, 900)) * 100,
        "number": int(random.integers(2, 40)),
        "day": f"{int(random.integers(1, 13)):02d}-{int(random.integers(1, 29)):02d}",
        "deadline": pick(random, ["Sunday", "03-09", "11-21"]),
        "order": "the last one with a lamp before the second cheapest of my last 8 orders",
        "order number": "K7PQ2X",
        "name": pick(random, shop.catalog.brands),
        "count": int(random.integers(1, 8)),
        "stars": int(random.integers(20, 50)),
        "days": int(random.integers(1, 46)),
        "kg": int(random.integers(2, 31)),
        "suggestions": int(random.integers(1, 8)),
        "up to suggestions": int(random.integers(1, 8)),
        "names": ["color", "material"],
        "type": pick(random, shop.catalog.types).name,
        "a type": pick(random, shop.catalog.types).name,
        "types": [kind.name for kind in shop.catalog.types[:3]],
        "preferences": ["rating", "price"],
    }.items():
        if slot.format is FORMATS[known]:
            return made
    if slot.format is AMOUNT_FORMAT:
        return int(random.integers(1, 900)) * 100
    if slot.format is reviews_format():
        claims = claims_on(pick(random, shop.catalog.types).name)
        return Said(tuple(shuffled(random, claims)[: int(random.integers(1, 3))]))
    if slot.format is GIVE_WAY:
        return ["price", "attr:works_with", "days"]
    wish = next((kind for kind, known in WISHES.items() if slot.format is known), "")
    if wish:
        items = tuple(pick(random, shop.catalog.types[n::3]).name for n in range(3))
        kind = pick(random, shop.catalog.types)
        cents = (100 * random.integers(1, 200, 2)).tolist()
        return {
            "Same": Same(items, pick(random, ("brand", "attr:color", "attr:works_with"))),
            "Total": Total(items, cents[0], cents[1] > cents[0]),
            "Together": Together(items, pick(random, ("Saturday the 21st", "Monday the 2nd"))),
            "Worth": Worth((("rating", cents[0]), ("days", cents[1])), pick(random, ("", items[0]))),
            "GiveWay": GiveWay(items),
            "If": If(kind.name, "", "", cents[0], None, ("in blue", "in red")),
            "Demand": Demand("", None, "in blue"),
            "Visited": Visited((("type", kind.name),), "cheapest", pick(random, (1, -3)), kind.plural),
        }[wish]
    if name == "replacement":
        another = [["brand", pick(random, shop.catalog.brands)], ["attr:color", "Green"], ["price", 4500]]
        return pick(random, [another, []])
    words = slot.format.pattern.split("|")
    return slot.format.read(re.sub(r"\\(.)", r"\1", pick(random, words)))


def saying(kind: str, form: Form, phrases: Phrases) -> Phrases:
    """Copy phrases so that an act is said in this form alone, and read as before."""
    made = replace(phrases, acts={**phrases.acts, kind: (form,)})
    made.__dict__["words"] = phrases.words
    return made


def fault(name: str, form: Form, phrases: Phrases, shop: Shop, p_noise: float = 0.0, count: int = 1) -> str:
    """Say a frame of the bank, of `count` items, and read it; return what goes wrong, "" if nothing does."""
    random, lexicon = rng("frame", name, form.text, p_noise, count), lexicon_of(shop.catalog)
    first, _, rest = name.partition(" ")
    if first == "slot":
        return _fault_of_slot(rest, form, phrases, shop, p_noise, random)
    if first == "opening":
        return _fault_of_opening(rest or "default", form, phrases, shop, p_noise, count, random)
    if first == "before":
        return _fault_of_lead_in(form, phrases, lexicon)
    act = act_of(name, form, described(shop, random, phrases), count, random)
    said = Speaker(saying(name, form, phrases), lexicon, p_noise, ("frame", form.text, count)).say([act])
    undone = nlu.plain(said, phrases, lexicon)
    if not p_noise and undone != said:
        return f"taken for other words: {said!r} for {undone!r}"
    if told := nlu.read_slots(said, phrases, lexicon):
        return f"read as slots: {told} in {said!r}"
    read = nlu.read_acts(said, phrases, lexicon)
    if [one.kind for one in read] != [name]:
        return f"read as {', '.join(one.kind or 'nothing' for one in read)}: {said!r}"
    if "seen" in form.fields and not p_noise:
        seen = read[0].fields["seen"]
        if seen not in (act.seen, act.seen[:1].upper() + act.seen[1:] if "@" not in act.seen else ""):
            return f"reads {seen!r} for {act.seen!r}: {said!r}"
    effect, mentions = phrases.effects.get(name), nlu.read_message(said, phrases, lexicon)
    if effect is None or not act.type or not form.fields & {"wanted", "item", "type", "number"}:
        return f"names {mentions[0].type}: {said!r}" if mentions and mentions[0].type else ""
    counted = {"quantity": count} if "number" in form.fields else {}
    expected = [(effect, act.type, dict(act.slots) | counted)]
    heard = [(one.effect, one.type, one.slots) for one in mentions]
    return f"read as {heard}, not {expected}: {said!r}" if heard != expected else ""


def _fault_of_slot(
    name: str, form: Form, phrases: Phrases, shop: Shop, p_noise: float, random: np.random.Generator
) -> str:
    slot, lexicon = phrases.slots[name], lexicon_of(shop.catalog)
    told = slot.match(form.text)
    value = told[1] if told and "{}" not in form.text else value_of(name, slot, shop, random)
    pieces = noised(slot.word(form.text, value), p_noise, phrases.words, lexicon, random)
    said = "".join(piece.text for piece in (pieces if p_noise else slot.word(form.text, value)))
    said = f"Hello. {said[:1].upper()}{said[1:]} Thanks!"
    read = nlu.read_slots(said, phrases, lexicon)
    if read != [(name, value)]:
        return f"read as {read}, not {[(name, value)]}: {said!r}"
    rest = [one.text for one in nlu.read_acts(said, phrases, lexicon)]
    return "" if rest == ["Hello.", "Thanks!"] else f"leaves {rest} of {said!r}"


def _fault_of_opening(
    kind: str,
    form: Form,
    phrases: Phrases,
    shop: Shop,
    p_noise: float,
    count: int,
    random: np.random.Generator,
) -> str:
    """Say an opening of one item, or with a list or further items of three, with and without all that is wanted."""
    lexicon, several = lexicon_of(shop.catalog), 3 if kind in ("list", "also") else 1
    types = random.permutation(len(shop.catalog.types))[:several].tolist()
    items = [described(shop, random, phrases, shop.catalog.types[i].name) for i in types]
    items = [item | ({"quantity": count} if count > 1 else {}) for item in items]
    lead = kind if form.fields and kind not in ("list", "also") else "default"
    others = {"list": {"also": ()}, "also": {}}.get(kind, {})  # without "also" it is a list
    made = replace(phrases, leads={**phrases.leads, **others, kind: (form,)})
    made.__dict__.update(words=phrases.words, _openings=phrases._openings)
    for hidden in (frozenset[str](), frozenset(("feature",))):
        told = [{name: value for name, value in item.items() if name not in hidden} for item in items]
        slots = {(i, name): value for i, item in enumerate(items) for name, value in item.items()}
        goal = Goal(slots, frozenset(place for place in slots if place[1] in hidden))
        said = Speaker(made, lexicon, p_noise, ("frame", form.text, count)).opening(
            goal, lead, gaps={"project": "our new apartment"}
        )
        undone = nlu.plain(said, phrases, lexicon, opening=True)
        if not p_noise and undone != said:
            return f"taken for other words: {said!r} for {undone!r}"
        if slots_told := nlu.read_slots(said, phrases, lexicon, opening=True):
            return f"read as slots: {slots_told} in {said!r}"
        read = [{"type": one.type, **one.slots} for one in nlu.read_opening(said, phrases, lexicon)]
        if read != (told if "items" in form.fields or lead == "default" else []):
            return f"read as {read}, not {told}: {said!r}"
        if nlu.is_complete(said) == bool(hidden):
            return f"says whether this is all: {said!r}"
    return ""


def _fault_of_lead_in(form: Form, phrases: Phrases, lexicon: Lexicon) -> str:
    name, slot = next((one for one in phrases.slots.items() if one[1].bank), ("", None))
    value = {"importance": ["price", "rating"], "budget": 12300}.get(name)
    if slot is None or value is None:
        return ""  # said elsewhere
    sentence = slot.telling(value)[0].text.replace("{}", slot.format.write(value))
    inside = form.text.endswith(":") and not sentence.startswith(("I ", "I'"))
    said = f"{form.text} {sentence[:1].lower() if inside else sentence[:1]}{sentence[1:]}"
    undone = nlu.plain(said, phrases, lexicon)
    read = nlu.read_slots(said, phrases, lexicon)
    if undone != said or read != [(name, value)]:
        return f"read as {read}, not {[(name, value)]}: {said!r}"
    kinds = {one.kind for one in nlu.read_acts(said, phrases, lexicon)} - _LEADING
    kinds = {kind for kind in kinds if phrases.effects.get(kind) != "set"}
    mentions = nlu.read_message(said, phrases, lexicon)
    return f"read as {', '.join(kinds) or mentions}: {said!r}" if kinds or mentions else ""
