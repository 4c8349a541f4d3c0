"""The reader of questions, measured on banks of questions that others wrote: `python tests/customer/test_questions.py`.

Each bank was written by agents who had seen slot names, meanings and example openings alone. `read.jsonl` may be read
and `development.jsonl` was written to learn from; `held.jsonl` is never opened: only its rates are looked at.
"""

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ecomlab import Shop, load_shop
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.catalog import ProductType
from ecomlab.customer.questions import Reader, Reading

BANKS = Path(__file__).parents[2] / "ecomlab" / "audit" / "questions"
PRODUCT = ("brand", "feature", "attr", "option", "price", "rating", "days")
SLOTS = {
    "CART": PRODUCT,
    "PD": ("brand", "attr", "price", "rating", "days", "importance"),
    "SUB": ("was_brand", "was_feature", "must", "price", "rating", "days"),
    "RETURN": ("brand", "feature", "attr", "option", "ordered", "delivered", "units", "replacement"),
    "STATUS": ("placed", "when", "place", "thing", "things", "parcels", "brand", "feature", "relation"),
    "POLICY": (
        "tier", "payment", "channel", "gift", "sale", "total", "items", "weight", "destination", "age", "opened",
        "reason",
    ),
    "BUNDLE": ("budget", "parts", "brand", "attr", "rating", "days"),
}  # fmt: skip
NAMES = {"original_brand": "was_brand", "original_feature": "was_feature"}
VALUES = {
    "tier": ("Silver member", "Gold member"), "payment": ("credit card", "invoice"), "channel": ("app", "website"),
    "gift": ("a gift", "for my own use"), "sale": ("full price", "flash sale"), "opened": ("sealed", "opened"),
    "reason": ("defective", "the wrong item"), "relation": ("after", "before"), "destination": ("Ohio", "Alaska"),
    "place": ("most recent", "second oldest"), "when": ("last week", "in March"), "thing": ("Hammock", "Perfume"),
    "parts": ("Hammock", "Perfume"), "importance": ("price", "rating"), "replacement": ("money back", "another one"),
    "must": ("color", "material"), "units": ("2", "3"), "things": ("2", "4"), "parcels": ("2", "3"),
    "items": ("5", "8"),
    "price": ("$45", "$60"), "budget": ("$45", "$60"), "total": ("$45", "$60"), "rating": ("4.0 stars", "4.5 stars"),
    "days": ("3 days", "5 days"), "age": ("3 days", "5 days"), "placed": ("May 3", "June 12"),
    "ordered": ("May 3", "June 12"), "delivered": ("May 3", "June 12"), "weight": ("9 kg", "14 kg"),
    "feature": ("Vintage", "Lightweight"), "was_feature": ("Vintage", "Lightweight"),
}  # fmt: skip
"""A right and a wrong value to put into a question; those of brands, options and attributes come from the shop."""
Judged = tuple[dict[str, Any], str, list[str], Reading, bool]
LITERAL = {
    "color": r"colou?rs?\b|shades?\b|hues?\b", "material": r"materials?\b|made (?:of|from|out)|fabric\b",
    "size": r"\bsizes?\b|how (?:big|large|small)\b|dimensions?\b|measurements?\b", "capacity": r"capacity|how much .*\bhold\b",
}  # fmt: skip
"""Attributes that a text may name without a placeholder."""


def bank(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (BANKS / f"{name}.jsonl").read_text("utf-8").splitlines()]


def judged(questions: Sequence[dict[str, Any]], shop: Shop) -> Iterator[Judged]:
    """Yield (question, its text, slots asked for, what was read, whether that agrees) of each question that some product
    type has the attributes of."""
    for number, question in enumerate(questions):
        filled = _filled(question, number, shop)
        if filled is None:
            continue
        text, asked, reader = filled
        read = reader.read(text)
        # Who asks for a date and who asks for roughly when get what the customer knows of the two.
        alike = {"placed": "when"}
        agrees = {alike.get(one.slot, one.slot) for one in read.questions} == {alike.get(s, s) for s in asked}
        yield question, text, asked, read, agrees and read.open == question["open"]


def _filled(question: dict[str, Any], number: int, shop: Shop) -> tuple[str, list[str], Reader] | None:
    """Put an item, attributes and values into a question; make the reader of such a customer. None where no product type
    has what the text names."""
    env, lexicon = question.get("sub") or question["env"], lexicon_of(shop.catalog)
    named = _attributes(question)
    if named is None:
        return None
    kinds = [kind for kind in shop.catalog.types if len(kind.attributes) > 1 and _has(kind, named, env)]
    if not kinds:
        return None
    kind = kinds[7 * number % len(kinds)]
    attributes = {a.name: a.values for a in kind.attributes}
    slots = [
        s for name in SLOTS[env] for s in ([f"attr:{a}" for a in attributes] if name == "attr" else [name])
    ]
    free = [name for name in attributes if name not in named]
    drawn = iter([*named, free[number % len(free)] if free else list(attributes)[0]])
    asked, words = [], {}
    for name in question["slots"]:
        if name == "attr":
            attribute = next(drawn)
            words.setdefault("attr", attribute.replace("_", " "))
            asked.append(f"attr:{attribute}" if attribute in attributes else "option")
        else:
            asked.append(NAMES.get(name, name))
    plural = lexicon.types[kind.name].plural
    words |= {"items": plural, "item": kind.name}
    words.setdefault("attr", next(iter(attributes)).replace("_", " "))
    known = {
        **VALUES, "option": kind.option.values,
        **dict.fromkeys(("brand", "was_brand"), shop.catalog.brands[3:5]),
        **{f"attr:{name}": values for name, values in attributes.items()},
    }  # fmt: skip
    for slot, suffix in zip(asked, ("", "2"), strict=False):
        words |= {f"value{suffix}": known[slot][0], f"wrong{suffix}": known[slot][1]}
    text = question["text"]
    for name, word in words.items():
        text = text.replace(f"{{{name}}}", str(word))
    others = [
        name for k in shop.catalog.types if k is not kind for name in (k.name, lexicon.types[k.name].plural)
    ]
    closed = {
        "brand": shop.catalog.brands, "was_brand": shop.catalog.brands, "option": kind.option.values,
        "feature": lexicon.names["feature"].values(), "was_feature": lexicon.names["feature"].values(), "thing": others,
        "parts": others, **{name: VALUES[name] for name in ("destination", "when", "place")},
        **{f"attr:{name}": values for name, values in attributes.items()},
    }  # fmt: skip
    called = {f"attr:{name}": [name.replace("_", " ")] for name in attributes}
    called |= {"option": [kind.option.name.replace("_", " ")]}
    called |= {"must": [*(name.replace("_", " ") for name in attributes), "color", "material", "size"]}
    return (
        text,
        asked,
        Reader(slots, [[kind.name, plural]], {s: closed[s] for s in slots if s in closed}, called),
    )


def _attributes(question: dict[str, Any]) -> list[str] | None:
    """Name the attributes that a question names by their own word; None where it asks for one that nothing names."""
    if "attr" in question:
        return [question[name] for name in ("attr", "attr2") if name in question]
    text = question["text"].lower()
    said = [name for name, words in LITERAL.items() if re.search(words, text)]
    wanted = question["slots"].count("attr") - text.count("{attr}")
    if wanted > 0 and "{value" not in text:
        return said[:wanted] if len(said) >= wanted else None
    if "option" in question["slots"]:
        return [name for name in said if name in ("size", "color", "material")][:1]
    return []


def _has(kind: ProductType, named: Sequence[str], env: str) -> bool:
    """Tell whether a type has what is named: as an attribute where the customer has attributes, else as its option."""
    names = {a.name for a in kind.attributes} if "attr" in SLOTS[env] else set()
    if "option" in SLOTS[env]:
        names.add(kind.option.name)
    return env in ("SUB", "STATUS", "POLICY") or set(named) <= names


def rates(questions: Sequence[dict[str, Any]], shop: Shop) -> dict[str, tuple[int, float]]:
    """Count the questions, and the share understood, by environment, by form and in all."""
    found: dict[str, list[bool]] = defaultdict(list)
    for question, *_, agrees in judged(questions, shop):
        for group in (question["env"], question["form"], "all"):
            found[group].append(agrees)
    return {group: (len(some), sum(some) / len(some)) for group, some in found.items()}


def test_most_questions_of_the_bank_that_is_read_are_understood(shop: Shop) -> None:
    assert rates(bank("read")[::4], shop)["all"][1] > 0.85


@pytest.mark.parametrize(
    ("text", "slots", "is_open"),
    [
        ("What's your budget, and do you have any other preferences?", ["price"], True),
        ("Which colours and which brands do you like", ["attr:color", "brand"], False),
        ("Thanks, I have noted your price limit and will keep to it.", [], False),
        ("Is there anything else I should know?", [], True),
        ("Do you think it will rain tomorrow?", [], False),
        ("Who makes it? By when do you need delivery?", ["brand", "days"], False),
    ],
)
def test_every_part_of_a_message_is_heard(text: str, slots: list[str], is_open: bool) -> None:
    reader = Reader(
        [*PRODUCT[:2], "attr:color", *PRODUCT[3:]], [["Tea Kettle"]], {}, {"attr:color": ["color"]}
    )
    read = reader.read(text)
    assert ([slot for slot, _ in read.slots], read.open) == (slots, is_open)


def test_the_item_that_is_named_is_the_one_asked_about() -> None:
    reader = Reader(PRODUCT, [["Tea Kettle"], ["Area Rug", "Area Rugs"]], {}, {})
    assert reader.read("Which brand of Area Rugs?").slots == (("brand", 1),)
    assert reader.read("Which brand?").slots == (("brand", -1),)


if __name__ == "__main__":
    for name in sys.argv[1:] or ("read", "development", "held"):
        found = rates(bank(name), load_shop())
        print(
            name, *(f"{group} {share:.3f} of {n}" for group, (n, share) in sorted(found.items())), sep="\n  "
        )
