"""Formats that write values as a customer would, and read them back from the same text."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ecomlab import other_words

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


LOOKS = ("color", "pattern", "finish", "material", "fabric", "shape", "texture", "knit")
"""Attributes that people know when they see them; their values are ordinary words."""


@dataclass(frozen=True)
class Format:
    """A format of values: how to write a value, the pattern that finds it in text, and how to read it back.

    `others` puts a value in other words that mean the same; `pattern` and `read` know these too.
    """

    write: Callable[[Any], str]
    pattern: str
    read: Callable[[str], Any]
    others: Callable[[Any], tuple[str, ...]] = lambda _: ()
    words: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Of a closed set: the words of each value, and the value."""

    def with_words(
        self, others: Callable[[Any], tuple[str, ...]], pattern: str, read: Callable[[str], Any]
    ) -> "Format":
        """Add other words for the values, with the pattern that finds them and how they are read."""
        own = re.compile(self.pattern)
        return Format(
            self.write,
            f"{self.pattern}|{pattern}",
            lambda text: self.read(text) if own.fullmatch(text) else read(text),
            others,
        )


def money(cents: int) -> str:
    """Write cents as dollars: $30, $19.99."""
    return f"${cents // 100}" if cents % 100 == 0 else f"${cents / 100:.2f}"


def read_money(text: str) -> int:
    """Read the cents of an amount that `money` wrote."""
    dollars, _, cents = text.lstrip("$").partition(".")
    return 100 * int(dollars) + int(cents or 0)


def any_of(texts: Iterable[str]) -> str:
    """Make the pattern of any of these texts, the longest first."""
    return "|".join(map(re.escape, sorted(set(texts), key=lambda text: (-len(text), text))))


def choice(words: Mapping[Any, str]) -> Format:
    """Make the format of a closed set of values, each with the words that mean it."""
    back = {text.lower(): value for value, text in words.items()}
    if len(back) < len(words):
        raise ValueError("two values have the same words; give each its own")

    def write(value: Any) -> str:
        if value not in words:
            raise ValueError(f"there are no words for {value!r}; there are for {', '.join(map(repr, words))}")
        return words[value]

    return Format(write, any_of(words.values()), lambda text: back[text.lower()], words=dict(back))


def ranking(names: Sequence[str]) -> Format:
    """Make the format of an ordered choice of these names: ["price", "rating"] is "price, then rating"."""
    one = "|".join(map(re.escape, names))
    return Format(lambda value: ", then ".join(value), rf"(?:{one})(?:, then (?:{one}))*", _read_row)


def counted(unit: str) -> Format:
    """Make the format of a number of units: "1 day", "3 days"; in other words "three days"."""

    def with_unit(count: int, number: object) -> str:
        return f"{number} {unit}" if count == 1 else f"{number} {unit}s"

    return Format(
        lambda count: with_unit(count, count),
        rf"{other_words.NUMBER} {unit}s?",
        lambda text: other_words.read_number(text.rpartition(" ")[0]),
        lambda count: tuple(with_unit(count, words) for words in other_words.in_letters(count)),
    )


def up_to(one: Format) -> Format:
    """Make the format of a number of units that may also be fewer: "up to 3 days"; of a single one nobody says so."""
    start = "up to "
    return Format(
        lambda count: start * (count > 1) + one.write(count),
        f"(?:{start})?(?:{one.pattern})",
        lambda text: one.read(re.sub(f"(?i:^{start})", "", text)),
        lambda count: tuple(start * (count > 1) + words for words in one.others(count)),
    )


def joined(names: Sequence[str]) -> str:
    """Join names in words: "a, b and c"."""
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last


_VOWEL_FIRST = re.compile(
    r"""8|1[18](?!\d)                               # eight, eleven, eighteen
    | (?!one\b|u\b|eu|usb|u(?:ni(?!n)|[st][aeio]|biq|ku|ra)   # but: one, U, euro, USB, universal, user, utility,
        | (?-i:US|U(?!GG|NO)[A-Z]{0,3}(?![A-Za-z])))[aeiou]    # US, UPS, unlike Uno
    | (?-i:(?!HI-)[FHLMNRSX](?=[A-Z]{0,3}\d         # F5L011, LRN5C: said letter by letter,
        | [A-Z]?(?![A-Za-z]) | [B-DF-HJ-NP-TV-Z]{2}[A-Z]{0,2}(?![A-Za-z])))  # as HP and HDMI are, but not RAM
    | (?-i:[HLMNX][B-DF-HJ-NP-TV-XZ]|R[B-DFGJ-NP-TV-XZ]|F[B-DF-HJKMNP-QSTV-XZ]|S[BDFGJRSVXZ])  # MSI, RCA: no word
    | led\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Beginnings of names that begin with the sound of a vowel."""


def with_article(name: str) -> str:
    """Put "a" or "an" before a name, by its sound."""
    return f"{'an' if _VOWEL_FIRST.match(name) else 'a'} {name}"


_ORDINARY = re.compile(r"(?<![\w'])[A-Z][a-z]+(?![\w'])")
_PROPER = frozenset("Bluetooth Braille Fi Lightning Matter Thunderbolt Tritan Velcro Wi Zigbee".split())


@lru_cache(maxsize=4_096)
def in_speech(name: str) -> str:
    """Write the name of a type, or a value, as people do in a sentence: ordinary words in small letters."""
    return _ORDINARY.sub(lambda word: word[0] if word[0] in _PROPER else word[0].lower(), name)


def _day(value: str) -> str:
    """Write "03-09" as "March 9"."""
    month, day = value[-5:].split("-")
    return f"{MONTHS[int(month) - 1]} {int(day)}"


def _read_day(text: str) -> str:
    month, day = text.split()
    return f"{MONTHS.index(month) + 1:02d}-{int(day):02d}"


def _day_of_month(value: str) -> tuple[str, ...]:
    """Write "03-09" as "the 9th of March"."""
    month, day = value[-5:].split("-")
    number = int(day)
    ending = "th" if number in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return (f"the {number}{ending} of {MONTHS[int(month) - 1]}",)


def _read_day_of_month(text: str) -> str:
    _, day, _, month = text.split()
    return _read_day(f"{month} {day[:-2]}")


def _read_row(text: str) -> list[str]:
    return re.split(", then |, | and ", text)


_ARTICLE = re.compile(r"^an? ")
_NEXT_WITH_ARTICLE = re.compile(r"(?:, | and )(?=an? [A-Za-z0-9])")
"""Separator between names that have articles."""

MONEY = Format(money, r"\$\d+(?:\.\d\d)?", read_money)
"""Cents."""
NUMBER = Format(str, r"\d+", int)
DAY = Format(_day, rf"(?:{'|'.join(MONTHS)}) \d{{1,2}}", _read_day)
"""A day of some year, "MM-DD"."""
NAME = Format(str, r"[^\s.!?](?:[^.!?\n]|\.(?=\S))*?(?!\.\S)", str)
"""A name of a product type or a brand: "Levi's", "Johnson & Johnson", "de Buyer". It ends where the sentence ends."""

_ORDER = (
    r"the (?:one (?:right|between|two|three)|first one|last one|cheapest|most expensive|second|third|[a-z]+th)\b"
    r"[^.!?\n]*?"
)
"""Pattern of an order that is spoken of by others."""
FORMATS: dict[str, Format] = {
    "money": MONEY.with_words(other_words.dollars, other_words.DOLLARS, other_words.read_dollars),
    "number": NUMBER.with_words(other_words.in_letters, other_words.SPELLED, other_words.read_number),
    "day": DAY.with_words(
        _day_of_month, rf"the \d{{1,2}}(?:st|nd|rd|th) of (?:{'|'.join(MONTHS)})", _read_day_of_month
    ),
    "deadline": Format(
        lambda value: value if value in WEEKDAYS else _day(value),
        rf"{'|'.join(WEEKDAYS)}|{DAY.pattern}",
        lambda text: text if text in WEEKDAYS else _read_day(text),
    ),
    "order number": Format(str, r"[A-Z0-9]{6}", str),
    "order": Format(str, _ORDER, str),
    "name": NAME,
    "count": Format(
        lambda count: "one" if count == 1 else str(count),
        other_words.NUMBER,
        other_words.read_number,
        lambda count: other_words.in_letters(count) if count > 1 else (),
    ),
    "stars": Format(
        lambda tenths: f"{tenths / 10:.1f} stars", r"\d\.\d stars", lambda text: int(text[0] + text[2])
    ).with_words(other_words.stars, other_words.STARS, other_words.read_stars),
    "days": counted("day").with_words(other_words.days, other_words.DAYS, other_words.read_days),
    "kg": Format(lambda kilos: f"{kilos} kg", r"\d+ kg", lambda text: int(text.split()[0])).with_words(
        lambda kilos: tuple(
            f"{words} kilos" for words in (str(kilos), *other_words.in_letters(kilos)) if kilos > 1
        ),
        rf"{other_words.NUMBER} kilos",
        lambda text: other_words.read_number(text.rpartition(" ")[0]),
    ),
    "suggestions": counted("suggestion"),
    "up to suggestions": up_to(counted("suggestion")),
    "names": Format(joined, r"[A-Za-z][\w, /-]*", lambda text: re.split(", | and ", text)),
    "type": Format(in_speech, r"[A-Za-z0-9][^.!?\n]*?", str),
    "a type": Format(
        lambda name: with_article(in_speech(name)), r"an? [^.!?\n]+", lambda text: _ARTICLE.sub("", text)
    ),
    "types": Format(
        lambda names: joined([with_article(in_speech(name)) for name in names]),
        r"an? [^.!?\n]+",
        lambda text: [_ARTICLE.sub("", name) for name in _NEXT_WITH_ARTICLE.split(text)],
    ),
    "preferences": ranking(("price", "rating", "delivery")),
}
"""Formats by the name that files of phrases use."""
