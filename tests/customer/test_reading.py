"""The reader of messages: what each does, asks for and says, of which item."""

import pytest

from ecomlab import ENVIRONMENTS, Shop
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.customer.reading.model import model
from ecomlab.customer.reading.reading import Question, Reading, marked, read
from ecomlab.customer.reading.vocabulary import Vocabulary, asks, vocabulary_of
from ecomlab.customer.reading.words import _DROPPED, THINGS
from ecomlab.customer.templates import Phrases, Template
from ecomlab.values import NAME

KETTLE, RUG = 0, 1


def vocabulary(shop: Shop, env: str = "CART", *types: str) -> Vocabulary:
    return vocabulary_of(
        ENVIRONMENTS[env].phrases, lexicon_of(shop.catalog), types or ("Tea Kettle", "Area Rug")
    )


def heard(text: str, shop: Shop, env: str = "CART", *types: str) -> Reading:
    return read(text, vocabulary(shop, env, *types))


def asked(reading: Reading) -> list[tuple[str, int]]:
    return [(one.slot, one.item) for one in reading.questions]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Which brand should the kettle be, and what may the rug cost?", [("brand", KETTLE), ("price", RUG)]),
        ("What quantity of the kettle and of the rug?", [("quantity", KETTLE), ("quantity", RUG)]),
        ("Which brand, and how soon do you need it?", [("brand", -1), ("days", -1)]),
        ("I have found three kettles.", []),
        ("I'll look for the rug now.", []),
        ("The return has been started, and the label is on its way.", []),
    ],
)
def test_a_message_asks_for_slots_of_items(
    text: str, expected: list[tuple[str, int]], big_shop: Shop
) -> None:
    assert sorted(asked(heard(text, big_shop))) == sorted(expected)


def test_a_value_is_asked_of_the_item_that_it_stands_by(big_shop: Shop) -> None:
    read = heard("Does the kettle cost $20 and the rug $30?", big_shop)
    assert read.questions == (Question("price", KETTLE, ("$20",)), Question("price", RUG, ("$30",)))


def test_words_for_an_attribute_mean_the_one_that_the_item_has(big_shop: Shop) -> None:
    types = ("Wheelbarrow", "Patio Umbrella")
    for text, slot in (
        ("What size of wheelbarrow?", "attr:capacity"),
        ("What size of umbrella?", "attr:diameter"),
    ):
        assert [one.slot for one in heard(text, big_shop, "BUNDLE", *types).questions] == [slot]


def test_an_open_question_is_of_the_items_that_it_names(big_shop: Shop) -> None:
    read = heard("Do you have any other wishes for the rug?", big_shop)
    assert (read.open, read.open_items, read.questions) == (True, (RUG,), ())


def test_a_summary_says_values_of_items(big_shop: Shop) -> None:
    read = heard("So you want two kettles by BasilForge and a rug for at most $90, right?", big_shop)
    assert "SUMMARY" in read.acts and "judge" in read.calls_for
    assert {(one.slots[0], one.value, one.item) for one in read.said} == {
        ("quantity", "two", KETTLE), ("brand", "BasilForge", KETTLE), ("price", "$90", RUG),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "claimed"),
    [
        ("So you want a kettle by BasilForge, right?", True),
        ("Got it, a BasilForge kettle.", True),
        ("Do you need a BasilForge kettle?", True),
        ("I could offer you a kettle by BasilForge for $30.", False),
        ("There is also a BasilForge kettle in stock.", False),
    ],
)
def test_a_value_is_claimed_of_a_wish_or_said_of_what_is_there(
    text: str, claimed: bool, big_shop: Shop
) -> None:
    assert {one.claimed for one in heard(text, big_shop).mentions if one.slots == ("brand",)} == {claimed}


@pytest.mark.parametrize(
    ("text", "names"), [("Shall I go ahead?", False), ("Shall I order the kettle?", True)]
)
def test_consent_is_asked_for_blankly_or_by_name(text: str, names: bool, big_shop: Shop) -> None:
    read = heard(text, big_shop)
    assert ("CONSENT" in read.acts, read.names, read.questions) == (True, names, ())


def test_one_of_several_things_is_to_be_chosen(big_shop: Shop) -> None:
    names = {0: ["HearthMint Kettle"], 1: ["BasilForge Kettle"]}
    text = "I found two:\n1. the HearthMint Kettle\n2. the BasilForge Kettle\nWhich one would you like?"
    there = marked(text, names)
    assert [there.count(chr(ord(THINGS) + number)) for number in names] == [1, 1]
    assert read(there, vocabulary(big_shop)).which


@pytest.mark.parametrize(
    ("text", "act", "group"),
    [
        ("Could you say that again?", "REPEAT", "repeat"),
        ("What's your e-mail address?", "IDENTITY", "identity"),
        ("What is the reason for that?", "WHY", "why"),
        ("Unfortunately the rug is sold out.", "BAD", ""),
        ("Hello, welcome to our shop!", "GREET", ""),
        ("I'm sorry for the confusion.", "APOLOGISE", ""),
        ("Thank you very much!", "THANK", ""),
        ("Flurb the zint?", "NONSENSE", "back"),
        ("Zxcv qwrt blorp snizzle.", "NONSENSE", "back"),
        ("...", "NONSENSE", "back"),
    ],
)
def test_a_message_does_what_it_says(text: str, act: str, group: str, big_shop: Shop) -> None:
    read = heard(text, big_shop)
    assert act in read.acts and read.calls_for == ({group} if group else frozenset())
    assert bool(read.unclear) == (group == "back")


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("Unfortunately the rug is sold out.", (RUG,)), ("The kettle and the rug are both sold out.", (KETTLE, RUG)),
        ("I'm afraid it is sold out.", (-1,)), ("Which rug would you like?", ()),
    ],
)  # fmt: skip
def test_bad_news_of_stock_is_heard_of_the_items_that_it_names(
    text: str, items: tuple[int, ...], big_shop: Shop
) -> None:
    assert heard(text, big_shop).unavailable == items


def test_a_slot_of_a_users_own_is_heard_by_its_words_without_weights(big_shop: Shop) -> None:
    own = Template(NAME, ("engraved with {}",), asked=("engraving", "engraved"))
    phrases = Phrases.of(["I want a gift {}."], engraving=own)
    known = vocabulary_of(phrases, lexicon_of(big_shop.catalog), ["Tea Kettle"])
    assert "engraving" not in model().kinds
    for text in ("Which engraving would you like?", "What should be engraved on the kettle?"):
        assert [one.slot for one in read(text, known).questions] == ["engraving"]
    assert not read("The engraving is done.", known).questions


def test_no_phrase_holds_a_word_that_is_left_out() -> None:
    file = asks()
    texts = [text for some in (*file.slots.values(), *file.attributes.values()) for text in some]
    texts += [text for values in file.values.values() for some in values.values() for text in some]
    words = {word for text in texts for part in text.split() for word in part.split("|")}
    assert not words & _DROPPED


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("Got it: no BasilForge kettle.", True),
        ("Got it: no rug, a BasilForge kettle.", False),
        ("Got it: no BasilForge kettle, no rug.", True),
        ("No BasilForge kettle costs less.", False),
        ("Any brand rather than BasilForge for the kettle, then.", True),
        ("Noted, a BasilForge kettle, for no more than $30.", False),
        ("So a kettle without red or BasilForge on it, right?", True),
        ("Noted, that makes no difference for a BasilForge kettle.", False),
    ],
)
def test_a_word_takes_back_the_value_behind_it_and_no_other(text: str, denied: bool, big_shop: Shop) -> None:
    assert [one.denied for one in heard(text, big_shop).mentions if one.slots == ("brand",)] == [denied]


@pytest.mark.parametrize(
    ("text", "act"),
    [
        ("Which color should the kettle be?", "SET"),
        ("Does the kettle have to be red?", "CHECK"),
        ("Should the kettle be red or blue?", "CHOICE"),
        ("May I ask how much the kettle may cost?", "SET"),
    ],
)
def test_kinds_of_questions_are_told_apart(text: str, act: str, big_shop: Shop) -> None:
    read = heard(text, big_shop)
    assert read.acts & {"SET", "CHECK", "CHOICE", "CONSENT"} == {act}


def test_what_no_customer_has_is_foreign(big_shop: Shop) -> None:
    assert heard("Noted. Do you have pets at home?", big_shop).foreign
    assert not heard("What should the kettle cost?", big_shop).foreign
