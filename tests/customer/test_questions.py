"""The reader of questions, measured on banks of questions that others wrote: `python tests/customer/test_questions.py`.

Each bank was written by agents who had seen slot names, meanings and example openings alone. The reader was
made on all of them but `fifth.jsonl` and `tenth.jsonl`, which are never opened: only their rates are looked at.
"""

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ecomlab import Shop, load_shop
from ecomlab.catalog import ProductType
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.customer.phrasing import messages, phrases
from ecomlab.customer.questions import Question, Reader, Reading
from ecomlab.customer.words import DROPPED, stem

BANKS = Path(__file__).parents[2] / "ecomlab" / "laws" / "questions"
PRODUCT = ("brand", "feature", "attr", "option", "price", "rating", "days", "quantity")
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
    "size": r"\bsizes?\b|how (?:big|large|small)\b|dimensions?\b|measurements?\b",
    "capacity": r"capacity|how much .*\bhold\b",
}  # fmt: skip
"""Attributes that a text may name without a placeholder."""


def bank(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (BANKS / f"{name}.jsonl").read_text("utf-8").splitlines()]


def judged(questions: Sequence[dict[str, Any]], shop: Shop) -> Iterator[Judged]:
    """Yield (question, its text, slots asked for, what was read, whether that agrees) where a product type fits."""
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
    """Put an item, attributes and values into a question; make the reader of such a customer.

    None where no product type has what the text names.
    """
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
    drawn = iter([*named, free[number % len(free)] if free else next(iter(attributes))])
    asked: list[str] = []
    words: dict[str, str] = {}
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


@pytest.mark.parametrize(
    ("name", "least"),
    [("read", 0.965), ("development", 0.955), ("second", 0.975), ("third", 0.955), ("held", 0.96)],
)
def test_most_questions_of_the_banks_are_understood(shop: Shop, name: str, least: float) -> None:
    share = rates(bank(name), shop)["all"][1]  # by itself, so that a failure does not print the bank
    assert share > least


def test_values_beside_a_question_are_read(shop: Shop) -> None:
    either = [q for q in bank("read") if q["form"] in ("either", "yesno") and "{value}" in q["text"]]
    found = [
        VALUES[slot][0].lower() in [value.lower() for value in one.values]
        for _, text, _, read, agrees in judged(either, shop)
        for one in read.questions
        if agrees
        and (slot := one.slot) in ("price", "budget", "total", "rating", "feature", "place", "when", "thing")
        and VALUES[slot][0].lower() in text.lower()
    ]
    assert len(found) > 20
    assert sum(found) / len(found) > 0.95


def customer(env: str) -> Reader:
    """A customer who has two items."""
    slots = [
        s for name in SLOTS[env] for s in (["attr:color", "attr:capacity"] if name == "attr" else [name])
    ]
    values = {
        "brand": ["BasilForge", "BlazeTempo"], "feature": ["Vintage", "Lightweight"], "attr:color": ["Red", "Ivory"],
        "thing": ["Hammock"], "parts": ["Hammock"], "place": ["most recent", "second oldest"],
    }  # fmt: skip
    called = {
        "attr:color": ["color"],
        "attr:capacity": ["capacity"],
        "option": ["size"],
        "must": ["color", "size"],
    }
    return Reader(slots, [["Tea Kettle", "Tea Kettles"], ["Area Rug", "Area Rugs"]], values, called)


def asked(env: str, text: str) -> list[str]:
    """Name the slots that a message asks for, and "+" where it asks for anything else."""
    read = customer(env).read(text)
    return [*(one.slot for one in read.questions), *(["+"] if read.open else [])]


def test_a_question_names_its_items_and_values() -> None:
    read = customer("CART").read(
        "Is the $55 limit for each Tea Kettle or for all three together? And the Area Rug's capacity or color?"
    )
    assert read.questions == (
        Question("price", 0, ("$55",), scope=True),
        Question("attr:capacity", 1),
        Question("attr:color", 1),
    )
    both = customer("CART").read("What size should the Tea Kettle and the Area Rug have?")
    assert both.questions == (Question("option", 0), Question("option", 1))
    assert customer("CART").read("Which brand?").questions == (Question("brand", -1),)


@pytest.mark.parametrize(
    ("env", "text", "slot", "values"),
    [
        ("CART", "Should it be Ivory or red?", "attr:color", ("Ivory", "Red")),
        ("CART", "The one by BasilForge?", "brand", ("BasilForge",)),
        ("CART", "Would four stars be enough?", "rating", ("four stars",)),
        ("CART", "Could it cost twenty dollars?", "price", ("twenty dollars",)),
        ("POLICY", "Did you use a gift card?", "payment", ("gift card",)),
        ("POLICY", "Has it been more than 30 days since it came?", "age", ("30 days",)),
        ("PD", "What counts more, price or rating?", "importance", ("price", "rating")),
        ("SUB", "Must the color stay the same?", "must", ("color",)),
    ],
)  # fmt: skip
def test_values_make_a_yes_or_no_question_or_a_choice(
    env: str, text: str, slot: str, values: tuple[str, ...]
) -> None:
    assert [(one.slot, one.values) for one in customer(env).read(text).questions] == [(slot, values)]


def test_what_else_a_message_says() -> None:
    reader = customer("RETURN")
    assert reader.read("Your return has been started.").done
    assert not reader.read("Which brand is it?").done
    assert reader.read("Shall I submit?").agree
    assert reader.read("Is that okay?").agree
    assert reader.read("I would go for this one. Is that what you want?").agree
    assert not reader.read("Is it the red one?").agree
    assert reader.read("Which one do you mean?").which
    assert reader.read("Unfortunately the Area Rug is sold out.").unavailable == (1,)
    assert reader.read("There are only two left.").unavailable == (-1,)
    assert not reader.read("What color is the Area Rug?").unavailable
    assert not reader.read("I will look it up.").asks


def test_nonsense_is_quoted_and_asks_for_nothing() -> None:
    read = customer("CART").read("Which brand? Does your cat like jazz?")
    assert [one.slot for one in read.questions] == ["brand"]
    assert read.unclear == ("Does your cat like jazz?",)
    assert len(customer("CART").read(f"Could you {'blorp the snarf ' * 9}?").unclear[0]) <= 60


@pytest.mark.parametrize(
    "text",
    [
        "do u even lift", "Zxcv the Tea Kettle blorp", "The the cart of the of which?", "Who painted the Mona Lisa?",
        "Tell me, are you a trapeze artist?", "Kindly state the horizon of your latest sneeze.",
        "The list on a list lists the list.", "tracking tracking please", "A lamp ate the purple trombone.",
        "Un momento por favor, mein Freund.", "I would like the kettle whether", "The user seems to want a kettle.",
        "What color is the sound of your order?", "Do you ever get lonely?", "who taught your kettle to dance",
        "Blurg snizzle.", "Does the parcel sleep at night?",
    ],
)  # fmt: skip
def test_what_is_foreign_to_a_shop_or_no_sentence_is_asked_back(text: str) -> None:
    read = customer("CART").read(text)
    assert read.asks and read.unclear == (text,)
    assert not read.questions and not read.open


@pytest.mark.parametrize(
    "text",
    [
        "No worries at all, happens to the best of us.", "brb", "Okay okay, got it.", "Adding it up.",
        "Shall I send you the tracking link by text message?", "Hope you have a lovely evening.",
        "I'll have a look at the shelves now, back in a sec.", "Almost done, two more to go",
        "Your patience is much appreciated.", "I found ten kettles, which is too many to list.",
        "Our team will be in touch.", "Lovely weather today!", "hang on, just loading the reviews",
        "Based on your wishes, this one scores best on reviews.", "I'm happy to help you with your order today!",
        "So sorry to hear that it broke.", "Shall I go ahead and place the order?", "Is everything in order?",
        "You're not asking about the one from May, I see.",
        "Good news, it can be returned until March 1.", "The fee for that is $7.99.", "Knowing this helps me a lot.",
    ],
)  # fmt: skip
def test_remarks_courtesies_and_small_talk_ask_nothing(text: str) -> None:
    for env in ("CART", "RETURN"):
        read = customer(env).read(text)
        assert not read.questions and not read.open and not read.unclear, env


def test_threads_stem_as_one_does() -> None:
    words = (
        "running colours relational happily quickly generously charging delivered nationality".split() * 200
    )
    plain = stem.__wrapped__  # without its cache
    expected = [plain(word) for word in words]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: [plain(word) for word in words], range(8)))
    finally:
        sys.setswitchinterval(before)
    assert all(one == expected for one in found)


def test_a_reader_is_cheap_once_its_vocabulary_is_known() -> None:
    from counted import calls_in  # not where this file is run as a script

    text = "What's your budget for the Tea Kettle, and do you have any other preferences?"
    customer("CART").read(text)
    assert calls_in(lambda: customer("CART").read(text)) < 10_000  # the first one takes fifty times as many


def test_no_phrase_holds_a_word_that_is_left_out() -> None:
    files = phrases(), messages()
    texts = [t for words in files[0].slots.values() for t in (*words.strong, *words.weak)]
    texts += [t for some in (*files[1].open.values(), *files[1].says.values()) for t in some]
    words = {word for text in texts for part in text.split() for word in part.lstrip("&!").split("|")}
    assert not words & DROPPED


@pytest.mark.parametrize(
    "text",
    [
        "There are dozens, so a bit more to go on would be lovely.", "You are welcome to state other wishes.",
        "I'm all ears.", "Any further hint would help me.", "How would you know the right one if you saw it?",
        "Hit me with whatever you've got.",
    ],
)  # fmt: skip
def test_open_questions_in_other_shapes(text: str) -> None:
    assert customer("CART").read(text).open


def test_each_item_of_a_question_has_its_own_topic() -> None:
    read = customer("CART").read
    pairs = [
        (one.slot, one.item)
        for one in read("For the kettle: which brand, and for the rug: which color?").questions
    ]
    assert pairs == [("brand", 0), ("attr:color", 1)]
    both = [(one.slot, one.item) for one in read("Which color for the kettle and the rug?").questions]
    assert both == [("attr:color", 0), ("attr:color", 1)]
    beside = read("Which features should the kettle have, any budget?")
    assert [one.slot for one in beside.questions] == ["price"] and beside.open


def test_a_day_that_is_to_come_is_about_the_replacement() -> None:
    assert asked("RETURN", "When should the new one arrive?") == ["replacement"]
    assert asked("RETURN", "Is there a delivery deadline for the replacement?") == ["replacement"]
    assert asked("RETURN", "When was the kettle delivered?") == ["delivered"]


if __name__ == "__main__":
    for name in sys.argv[1:] or ("read", "development", "second", "third", "held"):
        found = rates(bank(name), load_shop())
        print(
            name, *(f"{group} {share:.3f} of {n}" for group, (n, share) in sorted(found.items())), sep="\n  "
        )
