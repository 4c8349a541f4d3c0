"""What buyers write about products, and what a customer may demand of it.

The reviews of a product follow from its id, its type and its rating: they are the same in every task, and are drawn
only where something reads them. `reviews.toml` holds the topics of each type, and the sentences.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from ecomlab.catalog import Catalog
from ecomlab.reward import Fault
from ecomlab.seeding import pick, rng
from ecomlab.settings import Strict, read_toml
from ecomlab.slots import NO_RATING, RATING
from ecomlab.task import Goal
from ecomlab.values import Format, any_of
from ecomlab.wishes import Said
from ecomlab.world.faults import named
from ecomlab.world.state import World

REVIEWS = (5, 9)
"""Fewest and most reviews of a product."""
P_TOPIC = 0.45
"""Chance that a review says something of a topic of its type."""
P_MENTION = 0.15
"""Chance that such a review names the topic without a verdict."""
P_GOOD = 0.6
"""Share of products of which the good verdict on a topic is true."""
P_MAKER = 0.4
"""Share of products whose maker praises them, whatever is true of them."""
P_VERIFIED, P_RECENT = 0.6, 0.5
TRUE = (0.35, 0.65, 0.85)
"""Chance that a review says what is true, by how many of two it is: of a verified buyer, and of this year."""
BY = ("all", "verified", "recent")
"""The reviewers that a customer may go by."""


class _Lines(Strict):
    said: tuple[str, ...]
    held: tuple[str, ...]

    @property
    def every(self) -> tuple[str, ...]:
        return self.said + self.held

    def at(self, number: int, held: bool) -> str:
        """Return the line of this number, counted round and round, of those of held-out tasks or of the others."""
        lines = self.held if held else self.said
        return lines[number % len(lines)]


class _Verdict(_Lines):
    phrase: str


class _Topic(Strict):
    types: tuple[str, ...] = ()
    """None: every type."""
    maker: tuple[str, ...]
    mentions: _Lines
    verdicts: dict[str, _Verdict]
    """The good one first."""


class _File(Strict):
    who: dict[str, tuple[str, str]]
    nothing: _Lines
    topics: dict[str, _Topic]


@cache
def _file() -> _File:
    return read_toml(Path(__file__).with_suffix(".toml"), _File)


@cache
def topics_of(kind: str) -> tuple[str, ...]:
    """List the topics on which buyers of a type write."""
    return tuple(name for name, topic in _file().topics.items() if kind in topic.types or not topic.types)


@dataclass(frozen=True)
class Sentence:
    """A sentence of a review; `number` picks its words."""

    topic: str
    """ "" where it says nothing of a topic."""
    verdict: str
    """ "" where it names the topic alone."""
    number: int = 0

    def words(self, held: bool) -> str:
        """Word the sentence, for a held-out task or another."""
        if not self.topic:
            return _file().nothing.at(self.number, held)
        topic = _file().topics[self.topic]
        return (topic.verdicts[self.verdict] if self.verdict else topic.mentions).at(self.number, held)


@dataclass(frozen=True)
class Review:
    """A buyer's review of a product."""

    sentences: tuple[Sentence, ...]
    stars: int
    verified: bool
    recent: bool
    """Of this year."""
    month: float
    """Share of its year, or of what has passed of this one, at which it was written."""

    def date(self, today: str) -> str:
        """Write the month of the review, as of the day "YYYY-MM-DD": "2026-01"."""
        year, months = int(today[:4]), int(today[5:7])
        if not self.recent:
            year, months = year - 1, 12
        return f"{year}-{1 + int(self.month * months):02d}"

    def record(self, today: str, held: bool) -> dict[str, Any]:
        """Return what a tool shows of the review."""
        text = " ".join(one.words(held) for one in self.sentences)
        return {"date": self.date(today), "stars": self.stars, "verified": self.verified, "text": text}


@lru_cache(maxsize=50_000)
def drawn(product_id: str, kind: str, tenths: int) -> tuple[str, tuple[Review, ...]]:
    """Draw the maker's words ("" for none) and the reviews of a product with this rating (tenths)."""
    random, topics = rng("reviews", product_id, kind), topics_of(kind)
    true: dict[str, str] = {}
    for topic in topics:
        good, *bad = _file().topics[topic].verdicts
        true[topic] = good if random.random() < P_GOOD else pick(random, bad)
    praised = _file().topics[pick(random, topics)].maker
    maker = pick(random, praised) if random.random() < P_MAKER else ""
    stars = 3.5 if tenths == NO_RATING else tenths / RATING.scale
    begin = int(random.integers(1000))
    numbers = defaultdict[tuple[str, str], Iterator[int]](
        lambda: count(begin)
    )  # a list begins anew at its end
    reviews = range(int(random.integers(REVIEWS[0], REVIEWS[1] + 1)))
    return maker, tuple(_review(true, stars, numbers, random) for _ in reviews)


def _review(
    true: Mapping[str, str],
    stars: float,
    numbers: Mapping[tuple[str, str], Iterator[int]],
    random: np.random.Generator,
) -> Review:
    verified, recent = bool(random.random() < P_VERIFIED), bool(random.random() < P_RECENT)
    sentences, bad = [], 0
    for topic, verdict in true.items():
        if random.random() >= P_TOPIC:
            continue
        if random.random() >= TRUE[verified + recent]:
            verdict = pick(random, [other for other in _file().topics[topic].verdicts if other != verdict])
        verdict = "" if random.random() < P_MENTION else verdict
        bad += bool(verdict) and verdict != next(iter(_file().topics[topic].verdicts))
        sentences.append(Sentence(topic, verdict, next(numbers[topic, verdict])))
    if not sentences:
        sentences = [Sentence("", "", next(numbers["", ""]))]
    given = round(min(5.0, max(1.0, stars + 0.4 - 1.8 * bad + random.normal(0, 0.7))))
    return Review(tuple(sentences), given, verified, recent, float(random.random()))


def reviews_of(row: int, catalog: Catalog) -> tuple[Review, ...]:
    """Return the reviews of a product."""
    return shown_of(row, catalog)[1]


def shown_of(row: int, catalog: Catalog) -> tuple[str, tuple[Review, ...]]:
    """Return a product's maker's words, and its reviews."""
    return drawn(catalog.ids[row], catalog.type_of(row).name, int(catalog.rating_tenths[row]))


@cache
def _meanings() -> dict[str, tuple[str, str]]:
    """Topic and verdict of each sentence that tells one."""
    return {
        text: (topic, verdict)
        for topic, one in _file().topics.items()
        for verdict, lines in one.verdicts.items()
        for text in lines.every
    }


def read_review(record: Mapping[str, Any], year: str) -> Review:
    """Read what a tool shows of a review in this year."""
    found = [
        Sentence(topic, verdict) for text, (topic, verdict) in _meanings().items() if text in record["text"]
    ]
    return Review(tuple(found), record["stars"], record["verified"], record["date"].startswith(year), 0.0)


def meets(said: Said, reviews: Sequence[Review]) -> bool:
    """Tell whether reviews say what is demanded."""
    return all(_claimed(*claim, reviews) for claim in said.claims)


def _claimed(topic: str, verdict: str, by: str, reviews: Sequence[Review]) -> bool:
    heard = [one for one in reviews if one.verified or by != "verified"]
    heard = [one for one in heard if one.recent or by != "recent"]
    told = [one.verdict for review in heard for one in review.sentences if one.topic == topic and one.verdict]
    so = told.count(verdict)
    return so > len(told) - so if verdict == good_of(topic) else not so


@cache
def good_of(topic: str) -> str:
    """Return the good verdict on a topic."""
    return next(iter(_file().topics[topic].verdicts))


def kept(said: Said, rows: np.ndarray, catalog: Catalog) -> np.ndarray:
    """Keep the rows, of one type, whose reviews say what is demanded."""
    return rows[np.all(claimed(said.claims, rows, catalog), axis=0)]


def claimed(claims: Sequence[tuple[str, str, str]], rows: np.ndarray, catalog: Catalog) -> np.ndarray:
    """Tell by claim and row, of one type, whether the reviews say what the claim demands."""
    if not len(rows):
        return np.ones((len(claims), 0), bool)
    kind = catalog.type_of(int(rows[0])).name
    span = catalog.type_rows(kind)
    known, at = [_known(catalog.fingerprint, kind, len(span), claim) for claim in claims], rows - span.start
    unknown = np.any([one[at] < 0 for one in known], axis=0)
    for row in rows[unknown].tolist():
        reviews, place = reviews_of(row, catalog), row - span.start
        for claim, one in zip(claims, known, strict=True):
            if one[place] < 0:
                one[place] = _claimed(*claim, reviews)
    return np.array([one[at] > 0 for one in known])


@lru_cache(maxsize=10_000)  # drawing a task asks for the same ones many times
def _known(fingerprint: str, kind: str, size: int, claim: tuple[str, str, str]) -> np.ndarray:
    """Whether the reviews of each product of a type say what a claim demands: 1 or 0, -1 where nobody has asked."""
    return np.full(size, -1, np.int8)


def faults(product_ids: Sequence[str], goal: Goal, world: World) -> list[Fault]:
    """List the products of whose reviews a goal demands something that they do not say."""
    said: Said | None = goal.get("said")
    rows = {product_id: world.catalog.row(product_id) for product_id in product_ids if said}
    return [
        Fault(
            "wrong product",
            f"place {place}",
            product_id,
            ("said",),
            words=f"{named(product_id, world.catalog)} is not one {_write(said)}",
            step="evidence",
        )
        for place, (product_id, row) in enumerate(rows.items())
        if said and row is not None and not meets(said, reviews_of(row, world.catalog))
    ]


# In the customer's words: "that more verified buyers call quiet than loud".


@cache
def _claims() -> dict[str, tuple[str, str, str]]:
    """Every demand of one claim, by its words."""
    return {
        verdict.phrase.format(who=who, nobody=nobody): (name, told, by)
        for name, topic in _file().topics.items()
        for told, verdict in topic.verdicts.items()
        for by, (who, nobody) in _file().who.items()
    }


def claims_on(kind: str) -> list[tuple[str, str, str]]:
    """List the claims that may be demanded of a type's reviews."""
    return [claim for claim in _claims().values() if claim[0] in topics_of(kind)]


_AND = " and "


def _write(said: Said) -> str:
    words = {claim: text for text, claim in _claims().items()}
    return _AND.join(words[claim] for claim in said.claims)


def _read(text: str) -> Said:
    first, *rest = text.split(f"{_AND}that ")
    return Said(tuple(_claims()[one] for one in (first, *(f"that {one}" for one in rest))))


@cache
def reviews_format() -> Format:
    """Make the format of what reviews must say."""
    one = f"(?:{any_of(_claims())})"
    return Format(_write, f"{one}(?:{_AND}{one})*", _read)
