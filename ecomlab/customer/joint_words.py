"""Formats of the demands across the parts of a shopping list: what stands in the gap of their sentences."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from ecomlab.slots import DAYS, RATING
from ecomlab.values import FORMATS, Format, any_of, joined
from ecomlab.world.joint import GiveWay, PartWorth, Same, Together, Total
from ecomlab.world.substitutes import NOUNS, noun

_THINGS = r"the [^.!?\n]+?"
_NEXT = re.compile(r"(?:, | and )(?=the [A-Z0-9])")
_MONEY = r"\$\d+(?:\.\d\d)?"
_WEEKDAYS = any_of(("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"))
_GAINS = {RATING.name: "extra star", DAYS.name: "day sooner"}
"""One unit of a slot for the better."""
_ATTRIBUTES = {words: name for name, words in NOUNS.items()}


def _the(kinds: Sequence[str]) -> str:
    return joined([f"the {kind}" for kind in kinds])


def _kinds(text: str) -> tuple[str, ...]:
    return tuple(part.removeprefix("the ") for part in _NEXT.split(text))


def _format(write: Callable[[Any], str], pattern: str, make: Callable[..., Any]) -> Format:
    """Make a format whose value is made of the pattern's groups."""
    whole = re.compile(pattern)

    def read(text: str) -> Any:
        match = whole.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} does not fit")
        return make(*match.groups())

    return Format(write, re.sub(r"\((?!\?)", "(?:", pattern), read)


def _same(things: str, name: str) -> Same:
    if name == "brand":
        return Same(_kinds(things), "brand")
    return Same(_kinds(things), f"attr:{_ATTRIBUTES.get(name, name.replace(' ', '_'))}")


def _same_words(wish: Same) -> str:
    name = noun(wish.of.removeprefix("attr:"))
    before = {"brand": "by", "color": "in"}.get(name, "with")
    return f"{_the(wish.items)} {before} the same {name}"


def _worth(terms: str, kind: str) -> PartWorth:
    by_gain = {gain: name for name, gain in _GAINS.items()}
    found = re.findall(rf"({_MONEY}) more for each ({any_of(by_gain)})", terms)
    return PartWorth(kind, tuple((by_gain[gain], FORMATS["money"].read(cents)) for cents, gain in found))


def _worth_words(wish: PartWorth) -> str:
    money = FORMATS["money"].write
    terms = [f"{money(cents)} more for each {_GAINS[name]}" for name, cents in wish.terms]
    return f"{joined(terms)} on the {wish.type}"


_TERM = rf"{_MONEY} more for each (?:{any_of(_GAINS.values())})"
JOINT_FORMATS = {
    "same": _format(_same_words, rf"({_THINGS}) (?:by|in|with) the same ([a-z][a-z ]*?)", _same),
    "subtotal": _format(
        lambda wish: f"{FORMATS['money'].write(wish.limit)} for {_the(wish.items)} together",
        rf"({_MONEY}) for ({_THINGS}) together",
        lambda limit, things: Total(_kinds(things), FORMATS["money"].read(limit)),
    ),
    "arrival": _format(
        lambda wish: f"{_the(wish.items)} by {wish.day}",
        rf"({_THINGS}) by ((?:{_WEEKDAYS}) the \d{{1,2}}(?:st|nd|rd|th))",
        lambda things, day: Together(_kinds(things), day),
    ),
    "worth": _format(_worth_words, rf"({_TERM}(?: and {_TERM})?) on the ([^.!?\n]+?)", _worth),
    "give_way": _format(
        lambda wish: ", then ".join(f"the {kind}" for kind in wish.items),
        rf"({_THINGS})",
        lambda things: GiveWay(tuple(kind.removeprefix("the ") for kind in things.split(", then "))),
    ),
}
"""By the name that files of phrases use."""
