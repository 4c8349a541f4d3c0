"""The reader of questions: what a message asks for, of which item, with which values, and what asks for nothing."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from counted import calls_in

from ecomlab.customer.phrasing import messages, phrases
from ecomlab.customer.questions import Question, Reader
from ecomlab.customer.words import DROPPED, stem

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
