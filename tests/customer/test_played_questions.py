"""Questions that people put in played dialogues and that were once misheard, and the groups of their kind."""

import pytest
from test_questions import asked, customer

from ecomlab import Shop
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.customer.hearing import Reading, reader_of
from ecomlab.envs.registry import ENVIRONMENTS


@pytest.mark.parametrize(
    ("env", "text", "slots"),
    [
        ("CART", "Is the $55 limit for each Tea Kettle or for all three together?", "price"),
        ("CART", "What exactly are you looking for in the Tea Kettles and the Area Rug?", "+"),
        ("BUNDLE", "Is anything missing?", "parts"), ("CART", "What specs should it have?", "+"),
        ("PD", "Is it urgent?", "days"), ("SUB", "Which one was it exactly?", "+"),
        ("POLICY", "Are you one of our Gold or Onyx members?", "tier"),
        ("PD", "Which of price, rating and delivery comes first for you?", "importance"),
        ("POLICY", "Was it reduced, and are you a member?", "sale tier"),
        ("RETURN", "Who is it made by, and when did you get it?", "brand delivered"),
        ("POLICY", "Has it been more than 30 days since it came?", "age"), ("POLICY", "Have you used it?", "opened"),
        ("POLICY", "How large is the order?", "items"), ("RETURN", "Which version is it?", "option"),
        ("RETURN", "You bought two of these kettles - shall I take back both or just one?", "units"),
        ("STATUS", "Do you remember roughly when you placed it?", "when"),
        ("CART", "Noted, three stars. And the size?", "option"),
        ("CART", "We only lack the color now.", "attr:color"), ("CART", "Price limit: $40?", "price"),
        ("CART", "Reviews are all over the place on this one. What's the lowest you'd accept?", "rating"),
        ("CART", "Just two things left: your price limit, and the size.", "price option"),
        ("CART", "Could you give me the following?\n- Maximum price\n- Size", "price option"),
        ("CART", "any other requirements", "+"), ("CART", "need them within how many days", "days"),
        ("CART", "For the kettle I don't have a price limit yet.", "price"),
        ("CART", "You haven't told me what the rug may cost.", "price"),
        ("RETURN", "Was the order placed in February?", "ordered"),
        ("RETURN", "I see a kettle by BasilForge. Is this the item you mean?", "brand"),
        ("STATUS", "Parcels: 2 or 3?", "parcels"), ("POLICY", "No. of articles?", "items"),
        ("BUNDLE", "Budget? Plus other wishes.", "budget +"), ("CART", "Who do you fancy?", "brand"),
        ("PD", "Does a low price come before everything else?", "importance"),
        ("PD", "Does cheap beat fast?", "importance"), ("SUB", "rating, price, anything?", "rating price +"),
        ("STATUS", "How many different bits were in there? What's one of them?", "things thing"),
        ("CART", "Which exact sizes and colors would you like?", "option attr:color"),
        ("PD", "Should I look for the cheapest, the best rated or the fastest?", "importance"),
        ("PD", "Would you rather save money or get it sooner?", "importance"),
        ("POLICY", "Are you Gold or Silver, and did you pay by credit card?", "tier payment"),
        ("POLICY", "Is it still in its original packaging, and are you a member?", "opened tier"),
        ("RETURN", "Could you tell me roughly when you ordered it, or who it is made by?", "ordered brand"),
        ("STATUS", "When was it and what was in it?", "when thing"),
        ("STATUS", "Was it placed earlier or later than that one?", "relation"),
        ("CART", "Thanks, I have noted your price limit and will keep to it.", ""),
        ("CART", "To proceed, I need a bit more information:\n1. the maximum price\n2. the color", "price attr:color"),
        ("CART", "I'll check delivery times now.", ""),
        ("CART", "This deadline of yours, does it hold for everything, or only for the Tea Kettle?", "days"),
        ("PD", "Which brand? And the rest?", "brand +"),
        ("SUB", "Please state the maker of the original and what has to stay the same.", "was_brand must"),
        ("POLICY", "What's the deal with your Tea Kettle?", "+"),
        ("STATUS", "Would you be so kind as to describe the order in question?", "+"),
        ("RETURN", "When should the new one arrive?", "replacement"),
        ("RETURN", "Is there a delivery deadline for the replacement?", "replacement"),
        ("RETURN", "When was the kettle delivered?", "delivered"), ("RETURN", "What is your budget?", "replacement"),
        ("RETURN", "Do you want a refund or another one?", "replacement"),
        ("CART", "Which features should the kettle have, any budget?", "price +"),
    ],
)  # fmt: skip
def test_questions_of_people_are_heard(env: str, text: str, slots: str) -> None:
    assert list(dict.fromkeys(asked(env, text))) == slots.split()
    assert not customer(env).read(text).unclear


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("Only 2 Tea Kettles left!", (0,)), ("We only have two of these kettles left.", (0,)),
        ("Two red rugs are left.", ()), ("We've run out of the rug.", (1,)),
        ("The rug isn't available in that size.", (1,)), ("The kettle and the rug are both gone.", (0, 1)),
        ("The kettle, the rug are sold out.", (0, 1)), ("The rug has gone.", (1,)), ("There are none left.", (-1,)),
        ("There aren't enough kettles.", (0,)), ("There's 1 in stock but you want 2.", (-1,)),
        ("We couldn't find the kettle in stock.", (0,)), ("The kettle is no longer available.", (0,)),
        ("Stock is down to 1 for the kettle.", (0,)), ("Is there anything left to add?", ()),
        ("What's left on your list?", ()), ("Which kettle is available in time?", ()),
        ("How is it going with the kettle?", ()), ("Is it going back because it broke?", ()),
        ("One question left: which brand?", ()),
    ],
)  # fmt: skip
def test_shortages_are_heard_of_every_item_that_is_named(text: str, items: tuple[int, ...]) -> None:
    assert customer("CART").read(text).unavailable == items


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("How many of each do you need?", [-1]), ("Is it just one kettle and one rug?", [0, 1]),
        ("What quantity of the Tea Kettle and of the Area Rug?", [0, 1]), ("And how many rugs?", [1]),
        ("Are you after one or several?", [-1]), ("Should I add two kettles?", [0]),
        ("How many do you want of the kettle and how many of the rug?", [0, 1]), ("The rug: 1, 2, 3?", [1]),
        ("How many stars should the rug have?", []), ("In how many days do you need it?", []),
        ("Which of the two rugs do you mean?", []), ("Is the limit for one kettle or for all of them?", []),
        ("So two kettles and a rug. What brand of rug?", []), ("Just 2 rugs are left. Is that fine?", []),
    ],
)  # fmt: skip
def test_a_cart_is_asked_for_quantities(text: str, items: list[int]) -> None:
    asked = customer("CART").read(text).questions
    assert [one.item for one in asked if one.slot == "quantity"] == items


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        ("Which brand of kettle? And the rug?", [("brand", 0), ("brand", 1)]),
        ("For the kettle: which brand, and for the rug: which color?", [("brand", 0), ("attr:color", 1)]),
        ("Which color for the kettle and the rug?", [("attr:color", 0), ("attr:color", 1)]),
        ("What may the kettle cost? Same question for the rug.", [("price", 0), ("price", 1)]),
        ("Four stars for the kettle, got it. Which brand should the rug be?", [("brand", 1)]),
        ("You want a kettle under $40. How soon?", [("days", 0)]),
        ("Nice pick! Which brand?", [("brand", -1)]),
        ("Price checked.", []),
        ("The price has not been stated.", [("price", -1)]),
    ],
)
def test_what_only_repeats_asks_nothing_and_what_carries_on_asks_the_same(
    text: str, slots: list[tuple[str, int]]
) -> None:
    read = customer("CART").read(text)
    assert [(one.slot, one.item) for one in read.questions] == slots
    assert not read.open
    assert not read.unclear


@pytest.mark.parametrize(
    ("text", "slots", "item"),
    [
        ("Any wishes for the rug, like a brand, a price, a rating or a delivery date?", set(), 1),
        ("Any wishes for the rug, like a brand or a price?", {"brand", "price"}, None),
        ("And the rug, how should that be?", set(), 1),
        ("Should it cost $20, $30 or something else?", {"price"}, None),
        ("Shall I leave out everything over $20?", {"price"}, None),
    ],
)
def test_examples_are_no_questions_and_some_openings_are_no_open_ones(
    text: str, slots: set[str], item: int | None
) -> None:
    read = customer("CART").read(text)
    assert {one.slot for one in read.questions} == slots
    assert read.open == (item is not None)
    assert read.open_items == (() if item is None else (item,))


@pytest.mark.parametrize(
    "text", ["Is this the set you meant?", "Is that the one?", "Did I get that right?", "Would that be fine?",
             "Are the other details still right?"],
)  # fmt: skip
def test_whether_it_is_the_one_is_asked_for_nothing_else(text: str) -> None:
    read = customer("RETURN").read(text)
    assert read.which or read.agree
    assert not read.questions
    assert not read.open


def test_bracketed_dates_in_short_are_dates() -> None:
    read = customer("RETURN").read(
        "I see one from (Oct 7, two units) and one from (Sept. 6). Which one was it?"
    )
    assert {one.slot: one.values for one in read.questions}["ordered"] == ("Oct 7", "Sept. 6")


def read_by(env: str, types: list[str], text: str, shop: Shop) -> Reading:
    """Read a message to a customer of an environment, who has items of these types."""
    return reader_of(ENVIRONMENTS[env].phrases, lexicon_of(shop.catalog), types).read(text)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("Anything specific for the kettle and the rug - brand, color?", (0, 1)),
        ("May I enquire what you require of the Tea Kettle and of the Area Rug?", (0, 1)),
        ("Rug, kettle: any wishes?", (1, 0)), ("What should the kettle be like? And the rug?", (0, 1)),
        ("The rug is settled. What should the kettle be like?", (0,)), ("Anything else I should know?", ()),
        ("What brand should the kettle be, and whether you have any wishes for the rug?", (1,)),
        ("Any brand you like for the kettle, and if you have wishes for the rug?", (1,)),
    ],
)  # fmt: skip
def test_an_open_question_is_of_every_item_that_it_names(text: str, items: tuple[int, ...]) -> None:
    read = customer("CART").read(text)
    assert read.open
    assert read.open_items == items


@pytest.mark.parametrize(
    "text",
    ["Anything specific for the kettle and the rug - brand, color?",
     "Tell me about the kettle and the rug first: any brand or color?"],
)  # fmt: skip
def test_what_a_list_of_items_leads_to_is_asked_of_each(text: str) -> None:
    read = customer("CART").read(text)
    assert [(one.slot, one.item) for one in read.questions] == [
        ("brand", 0), ("brand", 1), ("attr:color", 0), ("attr:color", 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("env", "kind", "text", "slots"),
    [
        ("PD", "Dress Shirt", "which fit, size and colour are you after?", "attr:fit attr:size attr:color"),
        ("CART", "Dress Shirt", "There's one left in Zebra. Does that fit you?", ""),
        ("CART", "Dress Shirt", "How should it fit?", "attr:fit"),
        ("SUB", "Dress Shirt", "do you care which size they come in?", "attr:size"),
        ("SUB", "Dress Shirt", "Does the size have to stay the same?", "attr:size must"),
        ("SUB", "Keyboard", "mechanical or membrane, full size or something smaller?", "attr:layout"),
        ("BUNDLE", "Keyboard", "Do you want clicky or silent switches?", "attr:switches"),
        ("CART", "Dress Shirt", "What size do you wear?", "option"),
        ("CART", "Wall Clock", "I'll put you down for two clocks, okay?", "quantity"),
        ("CART", "Wall Clock", "The clock should be brass, right?", "attr:finish"),
        ("CART", "Wall Clock", "Price limit: $40?", "price"),
        ("CART", "Wall Clock", "Please send me:\n1. your maximum price\n2. the finish", "price attr:finish"),
    ],
)
def test_options_and_values_to_confirm_are_heard_as_the_slots_that_the_customer_has(
    env: str, kind: str, text: str, slots: str, big_shop: Shop
) -> None:
    read = read_by(env, [kind], text, big_shop)
    assert [one.slot for one in read.questions] == slots.split()
    assert not read.unclear


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        ("Any color or size you like for the umbrella?", [("attr:color", 1), ("attr:diameter", 1)]),
        ("What size of wheelbarrow?", [("attr:capacity", 0)]),
        ("Which scent for the perfume?", [("attr:note", 2)]),
        ("Which scent for the shampoo?", [("attr:scent", 3)]),
        ("Which scent do you like?", [("attr:note", -1)]),  # a wish for an option is nobody's here
    ],
)
def test_words_for_an_attribute_mean_the_one_that_the_item_has(
    text: str, slots: list[tuple[str, int]], big_shop: Shop
) -> None:
    types = ["Wheelbarrow", "Patio Umbrella", "Perfume", "Shampoo"]
    read = read_by("BUNDLE", types, text, big_shop)
    assert [(one.slot, one.item) for one in read.questions] == slots


def test_numbers_share_the_unit_of_the_last(big_shop: Shop) -> None:
    types = ["Rocking Horse", "Table Lamp", "Baking Tray", "Wall Clock"]
    text = "For the clock, would you like 30, 40 or 60 cm across, and is there a price you would like to stay under?"
    read = read_by("CART", types, text, big_shop)
    assert [(one.slot, one.item, one.values) for one in read.questions] == [
        ("option", 3, ("30 cm", "40 cm", "60 cm")),
        ("price", 3, ()),
    ]


@pytest.mark.parametrize("env", ["CART", "SUB", "BUNDLE", "POLICY"])
@pytest.mark.parametrize(
    ("text", "agree"),
    [
        ("I found these:\n1. SonicWave Compact - $123.99, 4.6 stars, 2 days\n2. BoltEdge Keyboard - $99.50, 4.2 stars\n"
         "Does this list work for you, or would you like me to adjust anything?", True),
        ("1. SonicWave Compact - $123.99, 4.6 stars, 2 days", False),
        ("Opened now, OK. That changes it: 15 days from delivery.", False), ("Total $62.95. OK?", True),
        ("I'll finish this list and then come back to your keyboards, all right?", True), ("Good like that?", True),
        ("Afterwards I will return to your dress shirts, agreed?", True),
        ("That is the whole list. Does everything look right?", True),
        ("Please be advised that prices may change.", False), ("I beg your pardon for the delay.", False),
    ],
)  # fmt: skip
def test_lists_results_and_offers_ask_for_no_more_than_assent(
    env: str, text: str, agree: bool, big_shop: Shop
) -> None:
    types = ["Keyboard", "Wall Clock", "Jacket"] if env in ("CART", "BUNDLE") else ["Keyboard"]
    read = read_by(env, types, text, big_shop)
    assert not (read.questions or read.open or read.unclear)
    assert read.agree == agree
