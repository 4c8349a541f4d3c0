"""The ear: what a message tells of one question.

Every value of the asked kind that a message names is a candidate, and its clause says how it is tied to the question:
by words of the question or of the case that is asked about, by the name of the thing that it is about, by standing
where a result stands. A value that belongs to something else in the world, as the price of one line does where the
total is asked, is next to none. For a question of yes or no the clauses themselves are candidates: those that speak of
all that was asked about say it by their polarity.
"""

import re
from collections.abc import Collection, Iterator
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
    r"\btotal|all? ?together|\bin all\b|\ball in\b|\ball told\b|\boverall\b|\bcomes? to\b|\bcame to\b"
    r"|\badd(?:s|ed)? up\b|\bsum\b|\bwhole\b|\bentire\b|\beverything\b|\bthe (?:order|cart|lot)\b"
    r"|\ball (?:of )?(?:it|them|the)\b|\bfull\b|\btogether\b|\bpayable\b|\bpaying\b"
)
"""Pattern of words that speak of several things as one."""

_MARKS = {"money": MONEY, "days": DAYS, "count": NUMBER}
_UNITS = {"money": "cents", "days": "days", "count": "points"}
_MONTH = rf"(?:{'|'.join(f'{month[:3]}(?:{month[3:]})?' for month in MONTHS)})"
_BREAK = re.compile(
    rf",\s+(?!\d{{4}}\b|(?:the \d|{_MONTH} \d))"
    r"|;\s*|\s[-–—]\s|—|[()|]|:\s|=|\s(?=\d+\. )"
    r"|\b(?:and|(?<!everything )(?<!all )but|plus|of which|which|so|thus|hence|while)\b"
    r"|\b(?:compared with|instead of|rather than|whereas|though|although|because|since|until)\b",
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
    r"\b(?:each|apiece|alone|just|only the|per|instead|would|could|if|placed|wanted|budget|limit|save[sd]?|of which"
    r"|first|second|(?:more|less|cheaper|dearer|higher|lower) than)\b|\bnot \W*\$",
    re.IGNORECASE,
)
"""Words with which a clause speaks of something else than what is asked."""
_RANGE = re.compile(
    r"\d(?:st|nd|rd|th)?\s*(?:-|–|—|/|\bto\b|\bor\b|\band\b)\s*(?:the )?\$?\d|\bor so\b"
    r"|\b(?:at least|at most|(?<!add )(?<!adds )(?<!added )up to|(?:more|less) than|under|over)\W+\d",
    re.IGNORECASE,
)
"""Marks of a range."""
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
_NEAR = {"yesterday": -1, "today": 0, "tomorrow": 1}
_DAY = re.compile(
    rf"\bthe (?P<th>\d{{1,2}})(?:st|nd|rd|th)\b|\bin (?P<ahead>\w+) days?\b|\b(?P<hence>\w+) days? from (?:now|today)\b"
    r"|\b(?P<near>tomorrow|yesterday|(?<=arrives )today|(?<=due )today|(?<=delivered )today|(?<=expected )today)\b"
    rf"|\b(?P<weekday>{'|'.join(WEEKDAYS)})\b",
    re.IGNORECASE,
)
"""A day without its date; "today" is one where something arrives then."""
_A_YEAR = 1900
"""Least number that counts neither days nor parcels."""
_IN_A_NAME = re.compile(rf"(?:[A-Za-z]-?|\d{{4}}-(?:\d\d-)?|\b{_MONTH} )$", re.IGNORECASE)
"""What stands before a number that is a part of a name or a date."""
_OF_OTHERS = re.compile(
    r"\W*(?:\w+\W+)?(?:orders?|items?|lines?|products?|units?)\b|\W*of its\b", re.IGNORECASE
)
"""What follows a number of something else than parcels."""
_BARE = 2
"""Weight of a mere yes or no."""
_OTHERS = 3
"""By how much a value is less likely an answer if it belongs to something else."""
_MERE = re.compile(
    r"\b(?:yes|yeah|yep|yup)\b|\b(?:afraid|unfortunately|sadly),? not?\b|\b(?:no|nope)\b(?=\W*(?:$|(?:it|they|that"
    r"|this|not|only|unfortunately|sorry|i'm|sadly|both|one)\b))|\blate\b"
    r"|\b(?:it|they|that|everything|both|order)\W+(?:(?:will|does|is|can)(?:n't| not)?|won't|works?)"
    r"(?: (?:work|be possible|make it))?\W*$",
    re.IGNORECASE,
)
"""An answer by itself, "there is no delay" is none; or by its verb alone: "Sadly it won't."."""
_BY = re.compile(
    r"\b(?:by|before|for|beyond|after|past|miss(?:es)?|makes?|until) (?:the )?\W*(?:\w+,? )?$", re.IGNORECASE
)
"""Words before the day that a question of yes or no is about."""
_NOT = re.compile(
    r"\b(?:not|never|cannot|no|nope|only|nothing|none|miss(?:es)?|too (?:early|soon)|(?<!not be )(?<!n't be )late"
    r"|after|past|beyond|unfortunately|sadly|afraid|neither|except|(?:everything|all) but)\b"
    r"(?! (?:delay|problem|worr|doubt|later|just))"
    r"|n't\b(?! (?:be (?:any )?(?:late|delay)|worry))",
    re.IGNORECASE,
)
"""Denials; "no delay" and "won't be late" deny nothing that was asked."""
_OPEN = re.compile(r"\b(?:if|whether|asked|wanted|need|hope|hoping|see about)\b", re.IGNORECASE)
"""Words of a clause that speaks of the question without answering it."""
_OF_ALL = re.compile(
    r"^(?!.*\b(?:first|other|one (?:of|parcel)|the rest|(?:part|some|most) of)\b(?!.*\b(?:both|all|last)\b))"
    r".*\b(?:yes|yep|yeah|it|all|everything|both|order|orders|last|they|whole|complete|parcels|that|those|you|you'll)\b",
    re.IGNORECASE | re.DOTALL,
)
"""Words of a clause that speaks of all that was asked about: that a part will be there says nothing of the rest."""
_NAMES = Known([])


@dataclass(frozen=True)
class Told:
    """What a message says to a question: its values, and how sure that is."""

    values: tuple[Any, ...] = ()
    sure: float = 0
    """How well its words tie it to the question; 0: it is an answer because it could be no other."""


@dataclass(frozen=True)
class _Clause:
    """A clause, where it begins in the text, its sentence up to its end, and the short clauses before it that name what
    it gives."""

    start: int
    said: str
    so_far: str
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
    text = re.sub(r"\*\*|__|`", "", text)
    clauses = _clauses(text, kind, today)
    if kind == "yes":
        found = [one for clause in clauses for one in _polarity(clause, marks, today, about)]
    else:
        found = [
            (_tie(clause, marks, about, case), value)
            for clause in clauses
            for value in _values(clause, kind, today)
        ]
        alone = bool(case) and all(value in beside for _, value in found)  # another case may come to the same
        found = [(score - (1 if alone else _OTHERS) * (value in beside), value) for score, value in found]
    named = dict.fromkeys(value for _, value in found)
    if len(named) > MOST_NAMED:
        return Told(tuple(named))  # whoever tells every value has told none
    best = max((score for score, value in found if value is not None), default=-1.0)
    if best < 0:
        return Told()
    return Told(tuple(dict.fromkeys(value for score, value in found if score == best)), best)


def _clauses(text: str, kind: Kind, today: date) -> Iterator[_Clause]:
    """Yield the clauses that tell something; what asks tells nothing, and amounts are not split. A short clause that
    has no value, or for a question of yes or no has a colon behind it, is a label of the next one."""
    for sentence in sentences(text, _NAMES):
        start, end, promise = (
            sentence.start,
            sentence.end,
            _PROMISE.search(text, sentence.start, sentence.end),
        )
        if promise:  # what stands before it, or after its colon, is told
            colon = text.find(": ", promise.end(), end)
            start, end = (
                (colon + 1, end) if colon >= 0 else (start, start if kind == "yes" else promise.start())
            )
        if sentence.mark == "?" and _ASKS.match(text, start, end):
            continue
        whole = [(token.start, token.end) for token in sentence.tokens if token.means]
        places, joined = [start], [""]
        for one in _BREAK.finditer(text, start, end):
            if not any(first < one.end() and one.start() < last for first, last in whole):
                places += [one.start(), one.end()]
                joined.append(one[0].strip())
        pieces = [text[first:last] for first, last in zip(places[::2], [*places[1::2], end], strict=True)]
        label = ""
        for i, said in enumerate(pieces[:-1] if sentence.mark == "?" else pieces):  # "$30, all right?"
            at = places[2 * i]
            clause = _Clause(at, said, text[start : at + len(said)], f"{label} {joined[i]}", sentence)
            if kind == "yes":
                names = joined[i + 1 : i + 2] == [":"] and bool(_MERE.match(pieces[i + 1].strip()))
            else:
                names = not _values(clause, kind, today)
            if names and len(said.split()) <= _LABEL:
                label = clause.words
            else:
                yield clause
                label = ""


def _values(clause: _Clause, kind: Kind, today: date) -> list[Any]:
    """List the values of a kind in a clause; a range is several."""
    said, found = clause.said, list[Any]()
    for token in clause.sentence.tokens if kind != "day" else ():
        at, end = token.start - clause.start, token.end - clause.start
        bare = kind == "days" and token.stem == NUMBER and not re.match(r"\W*\w", said[end:])
        cents = kind == "money" and bool(re.fullmatch(r"[\d,]*\d\.\d\d", said[max(0, at) : end]))
        meant = bare or cents or token.stem == _MARKS[kind]
        if 0 <= at < len(said) and meant and not _IN_A_NAME.search(said[:at]):
            amount = read_amount(said[at:end], _UNITS["count" if bare else kind])
            of_others = kind == "count" and _OF_OTHERS.match(said, end)
            found += [] if of_others or (kind != "money" and (amount or 0) >= _A_YEAR) else [amount]
    if kind == "day":
        found = [day.isoformat() for _, day in _days(said, today)]
    elif kind == "days" and not found and re.search(r"\b(?:tomorrow|yesterday)\b", said, re.IGNORECASE):
        found = [1]
    found = [value for value in found if value is not None]
    return [*found, None] if found and _RANGE.search(re.sub(r"\d+([-/])\d+\1\d+", "", said)) else found


def _days(said: str, today: date) -> list[tuple[int, date]]:
    """List the days that a clause names, each after its place: by date, "the 9th", counted from today, or weekday."""
    found = [(at, day) for at, day in days_in(said, today) if day]
    matches = () if found else list(_DAY.finditer(said))
    for match in [one for one in matches if not one["weekday"]] or matches:
        number = match["ahead"] or match["hence"]
        if match["th"]:
            ahead = (today + timedelta(days=days) for days in range(1, 32))
            day = next((day for day in ahead if day.day == int(match["th"])), None)
        elif match["weekday"]:
            day = day_of(match["weekday"].capitalize(), today)
        else:
            days = read_amount(number, "points") if number else _NEAR[match["near"].lower()]
            day = None if days is None or days > 999 else today + timedelta(days=days)
        found += [(match.start(), day)] if day else []
    return found


def _tie(clause: _Clause, marks: str, about: Any, case: str) -> float:
    """Score how well a clause ties its values to a question."""
    said = clause.words.lower()
    score = min(3, len({match[0] for match in re.finditer(marks, said, re.IGNORECASE)}))
    score += 2 * bool(isinstance(about, str) and re.search(rf"\b{re.escape(about.lower())}s?\b", said))
    score += 3 * bool(case and re.search(case, said)) or -2 * bool(
        _PART.search(re.sub(marks, "", clause.said, flags=re.IGNORECASE))
    )
    return score + 1.5 * bool(_RESULT.search(said)) - clause.label.endswith("(")


def _polarity(clause: _Clause, marks: str, today: date, about: Any) -> Iterator[tuple[float, str]]:
    """Yield (weight, "yes" or "no") if a clause answers: one that speaks of the question's subject before a mere yes or
    no."""
    day, said = day_of(about, today) if isinstance(about, str) else None, clause.words
    word = "no" if _NOT.search(said) else "yes"
    spoken = re.search(marks, said, re.IGNORECASE) or any(
        one == day and (_BY.search(said[:at]) or "too" in said) for at, one in _days(said, today)
    )
    if spoken and not _OPEN.search(said) and (word == "no" or _OF_ALL.search(clause.so_far)):
        yield 2 * _BARE, word
    elif _MERE.search(said):
        yield _BARE, word
