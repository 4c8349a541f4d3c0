"""No two lines of a customer contradict: every line is read back by the forms that rendered it."""

import pytest

from ecomlab import ENVIRONMENTS, Shop
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.laws import talkers
from ecomlab.laws.consistency import Claim, Line, Record, Words

EPISODES = 18
"""Episodes of an environment."""
BRAND = Words("Do you prefer a certain brand?", ("brand",))
DAYS = Words("About the Desk Lamp: when do you need it?", ("days",), "Desk Lamp")
THREE = Words("So three Tea Kettles, is that right?", claims=(Claim("Tea Kettle", "quantity", 3),))
BUDGET = Words("So your budget is $60, is that right?", claims=(Claim("", "budget", 6000),))
NAMED = Words("Do you mean the order of May 3?", thing="order of May 3")

POWER_BANK, BOTTLE = "I need a Power Bank.", "I'd like to return a Water Bottle."
KETTLE, CHEAP = "I need a Tea Kettle.", "I'd like the Tea Kettle for $30 or less."
HEADSET = "Where is my order with a Headset?"
INSTEAD = "I checked my notes, and I need the Coffee Maker in White instead."
CORRECTION = "Sorry, I meant the order I placed right after the one I asked about."


def kinds(env: str, shop: Shop, opening: str, lines: list[str | tuple[Words, str]]) -> list[str]:
    """Kinds of the contradictions in what a customer says; every sentence must be read."""
    said = [Line(line) if isinstance(line, str) else Line(line[1], after=line[0]) for line in lines]
    record = Record(ENVIRONMENTS[env].phrases, lexicon_of(shop.catalog))
    found = [bad.kind for line in (Line(opening, opening=True), *said) for bad in record.take(line)]
    assert not record.unread
    return found


PLANTED = [
    ("two values", "CART", "I need a Coffee Maker in Red.", ["I'd like the Coffee Maker in White."]),
    (
        "no wish",
        "SUB",
        POWER_BANK,
        ["The new one needs the same battery capacity. As for the charge, I don't mind."],
    ),
    (
        "no wish",
        "RETURN",
        BOTTLE,
        ["I'd like another one in Turquoise. I couldn't say anything about the color."],
    ),
    (
        "no wish",
        "RETURN",
        BOTTLE,
        ["As for when I ordered it, I couldn't say.", "I ordered it on October 3."],
    ),
    (
        "no wish",
        "BUNDLE",
        "I need a Wall Clock delivered within 3 days.",
        ["I'm flexible about the delivery time."],
    ),
    ("no wish", "CART", KETTLE, [(BRAND, "I don't mind."), "I'd like the Tea Kettle by KettleMoor."]),
    ("all said", "RETURN", BOTTLE, ["That's all I know.", "I ordered it on October 3."]),
    ("all said", "CART", f"{KETTLE} That's all.", [CHEAP]),
    ("more, and", "CART", KETTLE, ["I have a few more wishes.", "That's all I'd like."]),
    ("affirmed", "CART", "I need some Tea Kettles.", [(THREE, "Correct."), "I'd like 4 Tea Kettles."]),
    ("affirmed", "CART", "I need 4 Tea Kettles.", [(THREE, "Okay, go ahead.")]),
    (
        "denied",
        "BUNDLE",
        f"{KETTLE} My limit is $60 for everything together.",
        [(BUDGET, "That's not right.")],
    ),
    ("dropped", "CART", KETTLE, ["Actually, skip the Tea Kettle.", CHEAP]),
    ("yes and no", "STATUS", HEADSET, [(NAMED, "Yes, that one."), (NAMED, "No, not that one.")]),
]
EXCUSED = [
    ("CART", "I need a Coffee Maker in Red.", [INSTEAD] * 2),
    ("CART", f"{KETTLE} That's all.", ["I forgot to say: the Tea Kettle for $30 or less."]),
    ("CART", "I need 4 Tea Kettles.", [(THREE, "Not quite, I need 4 Tea Kettles.")]),
    ("CART", "I need a Tea Kettle delivered within 3 days, and a Desk Lamp.", [(DAYS, "I don't mind.")]),
    ("CART", KETTLE, ["Actually, skip the Tea Kettle.", "Also add a Tea Kettle, please."]),
    ("SUB", "I need a Power Bank in Black.", ["For the color, anything goes."]),
    ("STATUS", HEADSET, [(NAMED, "Yes, that one."), CORRECTION, (NAMED, "No, not that one.")]),
]


@pytest.mark.parametrize(("kind", "env", "opening", "lines"), PLANTED)
def test_a_planted_contradiction_is_found(
    kind: str, env: str, opening: str, lines: list[str | tuple[Words, str]], big_shop: Shop
) -> None:
    (found,) = set(kinds(env, big_shop, opening, lines))
    assert found.startswith(kind)


@pytest.mark.parametrize(("env", "opening", "lines"), EXCUSED)
def test_what_can_both_hold_is_no_contradiction(
    env: str, opening: str, lines: list[str | tuple[Words, str]], big_shop: Shop
) -> None:
    assert kinds(env, big_shop, opening, lines) == []


@pytest.fixture(scope="module")
def talks() -> list[talkers.Found]:
    """Episodes of every environment and level with every talkative player."""
    seeds = range(talkers.FIRST_SEED, talkers.FIRST_SEED + EPISODES)
    return [found for env in ENVIRONMENTS for found in talkers.check(env, seeds)]


def test_every_line_is_read_back(talks: list[talkers.Found]) -> None:
    assert len({found.task.split(maxsplit=3)[3] for found in talks}) == len(talkers.TALKERS)
    assert sum(found.lines for found in talks) > 5 * len(talks)
    assert [text for found in talks for text in found.unread] == []


def test_no_customer_contradicts_themselves(talks: list[talkers.Found]) -> None:
    found = [f"{one.task}: {bad}" for one in talks for bad in one.contradictions]
    assert not found, "\n".join(found)
