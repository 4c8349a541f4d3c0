"""The ear: what a message tells of one question.

Every value of the asked kind that a message names is a candidate, and its clause says how it is tied to the question:
by words of the question or of the case that is asked about, by the name of the thing that it is about, by standing
where a result stands. A value that belongs to something else in the world, as the price of one line does where the
total is asked, is an answer only where no other is named and its clause is tied. For a question of yes or no the
clauses themselves are candidates: those that speak of the question's subject say it by their polarity.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Literal

from ecomlab.answers.amounts import read_amount
from ecomlab.answers.dates import day_of, days_in
from ecomlab.customer.reading.words import DAYS, MONEY, NUMBER, Known, Sentence, sentences
from ecomlab.values import MONTHS, WEEKDAYS

Kind = Literal["money", "day", "days", "count", "yes"]
"""Kinds of values that can be asked for: cents, a day as "2026-03-09", numbers of days or things, "yes" or "no"."""
WHOLE = (
    r"\btotal|all ?together|\bin all\b|\ball in\b|\ball told\b|\boverall\b|\bcomes? to\b|\bcame to\b"
    r"|\badd(?:s|ed)? up\b|\bsum\b|\bwhole\b|\bentire\b|\beverything\b|\bthe (?:order|cart|lot)\b"
    r"|\ball (?:of )?(?:it|them|the)\b|\bfull\b|\btogether\b|\bpayable\b|\bpaying\b"
)
"""Pattern of words that speak of several things as one."""

_MARKS = {"money": MONEY, "days": DAYS, "count": NUMBER}
_UNITS = {"money": "cents", "days": "days", "count": "points"}
_TABLE = re.compile(r"^[^\S\n]*\|(.+)\|\s*\n\s*\|[-:| ]+\|[^\S\n]*\n((?:[^\S\n]*\|.*(?:\n|$))+)", re.MULTILINE)
_BREAK = re.compile(
    r",\s+|;\s*|\s[-–—]\s|—|[()|]|:\s|=|\s(?=\d+\. )"
    r"|\b(?:and|(?<!everything )(?<!all )but|plus|of which|which|so|thus|hence|while|compared with)\b"
    r"|\b(?:whereas|though|although|because|since|until)\b",
    re.IGNORECASE,
)
"""What stands between two clauses."""
_LABEL = 12
"""Most words of a clause that names what the next one gives: "In all, that's $30."."""
MOST_NAMED = 15
"""Most values of a message from which one is an answer."""
_RESULT = re.compile(
    r"(?:^|\s)(?:=|so|thus|therefore|hence|makes?|gives?|brings?|means?|i get|got|answer|looking at|charged)(?:\W|$)",
    re.IGNORECASE,
)
"""Words with which a clause says what follows from others."""
_PART = re.compile(
    r"\b(?:each|apiece|alone|just|only the|per|instead|would|could|if|placed|wanted|budget|limit|save[sd]?|of which|first|second"
    r"|the most expensive|the cheapest|(?:more|less|cheaper|dearer|higher|lower) than)\b|\bnot \W*\$",
    re.IGNORECASE,
)
"""Words with which a clause speaks of something else than what is asked."""
_RANGE = re.compile(
    r"\d(?:st|nd|rd|th)?\s*(?:-|–|—|/|\bto\b|\bor\b|\band\b)\s*(?:the )?\$?\d|\bor so\b"
    r"|\b(?:at least|at most|(?<!add )(?<!adds )(?<!added )up to|(?:more|less) than|under|over)\W+\d",
    re.IGNORECASE,
)
"""Marks of a range."""
_MONTH = rf"(?:{'|'.join(f'{month[:3]}(?:{month[3:]})?' for month in MONTHS)})\b"
_DATE = re.compile(
    rf"\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?|\b\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}(?:,? \d{{4}})?"
    r"|\b\d{4}-\d\d-\d\d",
    re.IGNORECASE,
)
"""A date, whose numbers count nothing."""
_PROMISE = re.compile(
    r"\b(?:let me (?!know)|i'll|i will|i'm going to|(?:one|just a) moment|hold on)\b", re.IGNORECASE
)
"""Words of a sentence that says what the agent is about to do."""
_ASKS = re.compile(
    r"\W*(?:(?:so|and|or|but|then|also),? )?(?:is|are|was|were|do|does|did|will|would|can|could|shall|should|may|might"
    r"|has|have|what|which|who|when|where|why|how|if)\b",
    re.IGNORECASE,
)
"""Begin of a sentence that is a question as a whole."""
_AHEAD = re.compile(
    r"\bin (\w+) days?\b|\b(\w+) days? from (?:now|today)\b"
    r"|\b(tomorrow|yesterday|(?:(?<=arrives )|(?<=due )|(?<=here )|(?<=delivered )|(?<=expected )|(?<=comes ))today)\b",
    re.IGNORECASE,
)
"""A day counted from today; "today" itself is one where something arrives then."""
_SHORT_DAY = re.compile(r"(?<![\d/$.])(\d{1,2})/(\d{1,2})(?![\d/.]\d)(?!\d)")
_OF_MONTH = re.compile(r"\bthe (\d{1,2})(?:st|nd|rd|th)\b", re.IGNORECASE)
_WEEKDAY = re.compile(rf"\b(?:{'|'.join(WEEKDAYS)})\b", re.IGNORECASE)
_LONG_NAME = re.compile(rf"\b(?:{'|'.join(WEEKDAYS)}), (?:the |{'|'.join(MONTHS)})", re.IGNORECASE)
_NEAR = {"yesterday": -1, "today": 0, "tomorrow": 1}
_OTHER_THINGS = re.compile(r"\W*(?:\w+\W+)?(?:orders?|items?|lines?|products?|units?)\b|\W*of its\b", re.I)
"""What follows a number of something else than parcels."""
_BARE = 2
"""Weight of a mere yes or no."""
_CELL = 0.25
"""By how much a cell of a table is less likely an answer than a sentence with the same ties; the least of these that
is one has no other tie."""
_OTHERS = 3
"""By how much a value is less likely an answer if it belongs to something else."""
_YES = re.compile(r"\b(?:yes|yeah|yep|yup)\b", re.IGNORECASE)
_NO = re.compile(
    r"\b(?:afraid|unfortunately|sadly),? not?\b|\b(?:no|nope)\b(?=\W*(?:$|(?:it|they|that|this|not|only|"
    r"unfortunately|sorry|i'm|sadly|both|one)\b))",
    re.IGNORECASE,
)
"""Words that are an answer by themselves: "there is no delay" is none."""
_SO = re.compile(r":\W*(?:yes|yep|yeah|no|nope)\b", re.IGNORECASE)
"""A mere yes or no behind what it answers: "Complete by Sunday: no"."""
_BY = re.compile(
    r"\b(?:by|before|for|beyond|after|past|miss(?:es)?|makes?|until) (?:the )?\W*(?:\w+,? )?$", re.IGNORECASE
)
"""Words before the day that a question of yes or no is about."""
_UNHARMED = re.compile(
    r"\b(?:no|not|never|without(?: any)?|n't|won't|isn't|don't)\s+(?:be |a |any |have |to )*"
    r"(?:late|later|delay\w*|problem\w*|worr\w*|trouble|doubt|miss|just|only)\b",
    re.IGNORECASE,
)
"""Denials that deny nothing asked: "no delay", "won't be late"."""
_NOT = re.compile(
    r"\b(?:not|never|cannot|no|nope|only|nothing|none|miss(?:es)?|late|too (?:early|soon)|after|past|beyond"
    r"|unfortunately|sadly|afraid|neither|except|(?:everything|all) but)\b|n't\b",
    re.IGNORECASE,
)
_SHORT = re.compile(
    r"\b(?:it|they|that|everything|both|order)\W+(?:(?:will|does|is|can)(?:n't| not)?|won't|works?)"
    r"(?: (?:work|be possible|make it))?\W*$|\btoo late\b|\blate\b",
    re.IGNORECASE,
)
"""A clause that answers by its verb or by "late" alone: "Sadly it won't."."""
_OPEN = re.compile(r"\b(?:if|whether|asked|wanted|need|hope|hoping|see about)\b", re.IGNORECASE)
"""Words of a clause that speaks of the question without answering it."""
_PART_OF_IT = re.compile(r"\b(?:first|second|other|one of|rest|parcel|part of it)\b", re.IGNORECASE)
_NAMES = Known([])


@dataclass(frozen=True)
class Told:
    """What a message says to a question: its values, and how sure that is."""

    values: tuple[Any, ...] = ()
    sure: float = 0
    """How well its words tie it to the question; 0: it is an answer because it could be no other."""


@dataclass(frozen=True)
class _Clause:
    """A clause, where it begins in the text, the short ones before it that name what it gives, and its sentence."""

    start: int
    said: str
    label: str
    sentence: Sentence

    @property
    def words(self) -> str:
        return f"{self.label} {self.said}"


def listen(
    text: str, kind: Kind, marks: str, today: date, about: Any, case: str, beside: Collection[Any]
) -> Told:
    """Hear what a message tells of a question of this kind, whose answers have words of `marks`, and which is `about`
    a thing or a day; words of the pattern `case` tell its answer from what is told `beside` it, whose values belong
    to something else. One value is an answer, several are none. What asks tells nothing."""
    text = _TABLE.sub(_spell_out, re.sub(r"\*\*|__|`", "", text))
    clauses = _clauses(text, kind, today)
    if kind == "yes":
        found = [one for clause in clauses for one in _polarity(clause, marks, today, about)]
    else:
        found = [
            (_tie(clause, at, marks, about, case) - _OTHERS * (value in beside), value)
            for clause in clauses
            for at, value in _values(clause, kind, today)
        ]
    named = dict.fromkeys(value for _, value in found)
    if len(named) > MOST_NAMED:
        return Told(tuple(named))  # whoever tells every value has told none
    best = max((score for score, _ in found), default=-1.0)
    if best < -_CELL:
        return Told()
    return Told(tuple(dict.fromkeys(value for score, value in found if score == best)), max(0.0, best))


def _spell_out(table: re.Match[str]) -> str:
    """Write a table as lines that name each cell by its row and column."""
    lines = list[str]()
    rows = [row.strip()[1:-1] for row in table[2].strip().split("\n")]
    heads, *cells = [[cell.strip(" *_") for cell in row.split("|")] for row in (table[1], *rows)]
    for first, *others in cells:
        lines += [f"| {heads[0]}: {first}"] if re.search(r"\d", first) else []
        name = "" if re.search(r"\d", first) else first
        lines += [f"| {name} {head}: {cell}" for head, cell in zip(heads[1:], others, strict=False) if cell]
    return "\n".join([*lines, ""])


def _clauses(text: str, kind: Kind, today: date) -> Iterator[_Clause]:
    """Yield the clauses that tell something; what asks tells nothing, and amounts are not split. A short clause that
    has no value, or for a question of yes or no has a colon behind it, is a label of the next one."""
    for sentence in sentences(text, _NAMES):
        start, end, promise = sentence.start, sentence.end, _PROMISE.search(text, sentence.start, sentence.end)
        if promise:  # what follows its colon is told
            start = text.find(": ", promise.end(), end) + 1
        if (promise and not start) or (sentence.mark == "?" and _ASKS.match(text, start, end)):
            continue
        whole = [(token.start, token.end) for token in sentence.tokens if token.means]
        whole += [match.span() for one in (_LONG_NAME, _DATE) for match in one.finditer(text, start, end)]
        breaks = [
            one
            for one in _BREAK.finditer(text, start, end)
            if not any(first < one.end() and one.start() < last for first, last in whole)
        ]
        places = [(start, ""), *((one.end(), one[0].strip()) for one in breaks)]
        ends = [*(one.start() for one in breaks), end]
        pieces = [(at, text[at:last], joined) for (at, joined), last in zip(places, ends, strict=True)]
        label = ""
        for i, (at, said, joined) in enumerate(pieces[:-1] if sentence.mark == "?" else pieces):  # "$30, all right?"
            clause = _Clause(at, said, f"{label} {joined}", sentence)
            following = " ".join(pieces[i + 1][:0:-1]) if i + 1 < len(pieces) else ""
            names = _SO.match(following) if kind == "yes" else not any(_values(clause, kind, today))
            if names and len(said.split()) <= _LABEL:
                label = clause.words
            else:
                yield clause
                label = ""


def _values(clause: _Clause, kind: Kind, today: date) -> Iterator[tuple[int, Any]]:
    """Yield (place, value) for the values of a kind in a clause; a range is two."""
    said = clause.said
    found: list[tuple[int, Any]] = []
    if kind == "day":
        found = [(at, day.isoformat()) for at, day in _days(said, today)]
    else:
        dates = [match.span() for match in _DATE.finditer(said)]
        for token in clause.sentence.tokens:
            at, end = token.start - clause.start, token.end - clause.start
            bare = kind == "days" and token.stem == NUMBER and not re.match(r"\W*\w", said[end:])
            if (
                0 <= at < len(said)
                and (token.stem == _MARKS[kind] or bare)
                and not any(first <= at < last for first, last in dates)
                and not (kind == "count" and _OTHER_THINGS.match(said[end:]))
                and not re.search(r"[A-Za-z]-?$", said[:at])
                and not re.match(r"[A-Za-z]", said[end:])
            ):
                amount = read_amount(said[at:end], _UNITS["count" if bare else kind])
                found += [(at, amount)] if amount is not None else []
        near = _AHEAD.search(said) if kind == "days" and not found else None
        found += [(0, 1)] if near and (near[3] or "").lower() in ("tomorrow", "yesterday") else []
    yield from found
    if found and _RANGE.search(_SHORT_DAY.sub("", re.sub(r"\d{4}-\d{2}-\d{2}", "", said))):
        yield found[-1][0], None


def _days(said: str, today: date) -> list[tuple[int, date]]:
    """List the days that a clause names, each after its place: by date, "the 9th", weekday, or counted from today."""
    said = _SHORT_DAY.sub(r"\1/\2/" + str(today.year), said)
    found = [(at, day) for at, day in days_in(said, today) if day]
    if found:
        return found
    ahead = [today + timedelta(days=days) for days in range(1, 32)]
    for match in _OF_MONTH.finditer(said):
        found += [(match.start(), day) for day in ahead if day.day == int(match[1])][:1]
    for match in _AHEAD.finditer(said):
        number = match[1] or match[2]
        days = _NEAR[match[3].lower()] if match[3] else read_amount(number, "points")
        found += [(match.start(), today + timedelta(days=days))] if days is not None and days < 999 else []
    if not found:
        for match in _WEEKDAY.finditer(said):
            named = day_of(match[0].capitalize(), today)
            found += [(match.start(), named)] if named else []
    return found


def _tie(clause: _Clause, at: int, marks: str, about: Any, case: str) -> float:
    """Score how well a clause ties the value at a place to a question."""
    said = clause.words.lower()
    score = min(3, len({match[0] for match in re.finditer(marks, said, re.IGNORECASE)}))
    score += 2 * bool(isinstance(about, str) and re.search(rf"\b{re.escape(about.lower())}s?\b", said))
    score += 3 * bool(case and re.search(case, said)) or -2 * bool(_PART.search(clause.said))
    return score + 1.5 * bool(_RESULT.search(said)) - clause.label.endswith("(") - _CELL * ("|" in clause.label)


def _polarity(clause: _Clause, marks: str, today: date, about: Any) -> Iterator[tuple[float, str]]:
    """Yield (weight, "yes" or "no") if a clause answers: one that speaks of the question's subject before a mere yes or
    no, and of all before a part."""
    day, said = day_of(about, today) if isinstance(about, str) else None, clause.words
    plain = _UNHARMED.sub(" ", said)
    word = "no" if _NOT.search(plain) else "yes"
    spoken = re.search(marks, said, re.IGNORECASE) or (day and _speaks_of(said, day, today))
    if spoken and not _OPEN.search(said):
        part = _PART_OF_IT.search(said) and not re.search(r"\b(?:both|all|last)\b", said, re.IGNORECASE)
        yield (3 if part and word == "yes" else 4), word
    elif _NO.search(said):
        yield _BARE, "no"
    elif _YES.search(said):
        yield _BARE, "yes"
    elif _SHORT.search(plain):
        yield _BARE, word


def _speaks_of(said: str, day: date, today: date) -> bool:
    """Tell whether a clause speaks of being there by a day, or says that the day is too early."""
    return any(
        one == day and (_BY.search(said[:at]) or re.search(r"\btoo (?:early|soon)\b", said))
        for at, one in _days(said, today)
    )
