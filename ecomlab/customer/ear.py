"""The ear: what a message tells of one question.

Every value of the asked kind that a message names is a candidate. Its clause says how well it is tied to what was
asked: by the words of the question, by the name of the thing that the question is about, by standing where a result
stands; a clause of something else ("each", "for just the lamp") unties it. For a question of yes or no the clauses
themselves are candidates: the one that speaks of the question's subject says it by its polarity.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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
    r"|\ball (?:of )?(?:it|them|the)\b|\bfull\b|\btogether\b"
)
"""Pattern of words that speak of several things as one."""

_MARKS = {"money": MONEY, "days": DAYS, "count": NUMBER}
_UNITS = {"money": "cents", "days": "days", "count": "points"}
_BREAK = re.compile(
    r",\s+|;\s*|\s[-–—]\s|—|[()|]|:\s|=|\s(?=\d+\. )"
    r"|\b(?:and|(?<!everything )(?<!all )but|plus|of which|which|so|thus|therefore|hence|while)\b"
    r"|\b(?:whereas|though|although|because|since|until)\b",
    re.IGNORECASE,
)
"""What stands between two clauses."""
MOST_NAMED = 15
"""Most values of a message from which one is an answer."""
_BARE = 2
"""Weight of a mere yes or no."""
_LABEL = 9
"""Most words of a clause that names what the next one gives: "In all, that's $30."."""
_FOLLOWS = re.compile(r"^(?:=|so|thus|therefore|hence)$", re.IGNORECASE)
_RESULT = re.compile(
    r"\b(?:makes?|gives?|brings?|means?|i (?:get|got)|answer|looking at|charged)\b|\band got\b", re.IGNORECASE
)
"""Words with which a clause says what follows from others."""
_PART = re.compile(
    r"\b(?:each|apiece|alone|just|only the|per|instead|would|could|if|wanted|budget|limit|save[sd]?"
    r"|the most expensive|the cheapest|(?:more|less|cheaper|dearer|higher|lower) than|not \W*\$)\b|\bnot \W*\$",
    re.IGNORECASE,
)
"""Words with which a clause speaks of something else than what is asked."""
_PART_LABEL = re.compile(r"\b(?:each|alone|just|first|second)\b", re.IGNORECASE)
_LIMIT = re.compile(r"\bby (?:\w+day, )?(?:the )?\W*$", re.IGNORECASE)
"""Words before a day that is a limit rather than the day itself."""
_OF_A_THING = re.compile(r"\b(?:for|at|with) \W*$", re.IGNORECASE)
_RANGE = re.compile(
    r"\d(?:st|nd|rd|th)?\s*(?:-|–|—|/|\bto\b|\bor\b|\band\b)\s*(?:the )?\$?\d"
    r"|\b(?:at least|at most|(?<!add )(?<!adds )(?<!added )up to)\b"
    r"|\b(?:no more than|no less than|(?<!\d )(?<!dollars )(?:more|less) than|under|over|or so)\b",
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
_LONG_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
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
_PLACED = re.compile(
    r"\b(?:placed|ordered|bought|purchased|(?:order|one) (?:of|from)|from)(?: on)?(?: the)? (?:[A-Z]\w+day, )?$",
    re.IGNORECASE,
)
"""Words before the day on which an order was placed."""
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
_YES = re.compile(r"\b(?:yes|yeah|yep|yup)\b", re.IGNORECASE)
_NO = re.compile(
    r"\b(?:afraid|unfortunately|sadly),? not?\b|\b(?:no|nope)\b(?=\W*(?:$|(?:it|they|that|this|not|only|"
    r"unfortunately|sorry|i'm|sadly|both|one)\b))",
    re.IGNORECASE,
)
"""Words that are an answer by themselves: "there is no delay" is none."""
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
_LATE = re.compile(r"\b(?:too late|late)\b", re.IGNORECASE)
_SHORT = re.compile(
    r"\b(?:it|they|that|everything|both|order)\W+(?:(?:will|does|is|can)(?:n't| not)?|won't|works?)"
    r"(?: (?:work|be possible|make it))?\W*$",
    re.I,
)
"""A clause that answers by its verb alone: "Sadly it won't."."""
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
    """A clause, from place to place of the message, the words that name what it gives, and how it is joined."""

    start: int
    end: int
    said: str
    label: str = ""
    joined: str = ""
    aside: bool = False
    """It stands in brackets."""


def listen(text: str, kind: Kind, marks: str, today: date, about: Any = None, case: str = "") -> Told:
    """Hear what a message tells of a question of this kind, whose answers have words of `marks`, and which is `about`
    a thing or a day; words of the pattern `case` tell its answer from what is told beside it. One value is an answer,
    several are none. What asks tells nothing."""
    found: list[tuple[float, Any]] = []
    bare: list[tuple[float, Any]] = []
    for sentence in sentences(text, _NAMES):
        start = _after_promise(text, sentence)
        if start is None or (sentence.mark == "?" and _ASKS.match(text, start, sentence.end)):
            continue
        places = [(token.start, token.end) for token in sentence.tokens if token.means]
        places += [match.span() for match in _LONG_NAME.finditer(text, start, sentence.end)]
        clauses = _clauses(text, start, sentence.end, places)
        clauses = clauses[:-1] if sentence.mark == "?" else clauses  # "That's $30, is that all right?"
        if kind == "yes":
            found += _polarities(clauses, marks, today, about)
            continue
        for clause, values in _with_values(clauses, sentence, text, kind, today):
            found += [(_tie(clause, text, at, marks, about, case), value) for at, value in values]
        if kind == "days":
            tokens = [
                one
                for one in sentence.tokens
                if one.stem == NUMBER
                and one.start >= start
                and not re.match(r"\W*\w", text[one.end : sentence.end])
            ]
            bare += [(0.0, read_amount(text[one.start : one.end], "points")) for one in tokens]
    found = found or bare
    named = dict.fromkeys(value for _, value in found)
    both = kind == "yes" and len({value for score, value in found if score == _BARE}) > 1
    if both or len(named) > MOST_NAMED:
        return Told(tuple(named))  # whoever tells every value has told none
    best = max((score for score, _ in found), default=0.0)
    if best < 0:
        return Told()
    return Told(tuple(dict.fromkeys(value for score, value in found if score == best)), max(0.0, best))


def _after_promise(text: str, sentence: Sentence) -> int | None:
    """Find where a sentence begins to tell something: after the colon of a promise; None for a mere promise."""
    promise = _PROMISE.search(text, sentence.start, sentence.end)
    if promise is None:
        return sentence.start
    colon = text.find(": ", promise.end(), sentence.end)
    return None if colon < 0 else colon + 1


def _clauses(text: str, start: int, end: int, whole: Sequence[tuple[int, int]]) -> list[_Clause]:
    """Split a sentence into clauses; an amount is not split."""
    found, joined, aside = list[_Clause](), "", False
    for match in _BREAK.finditer(text, start, end):
        if any(first < match.end() and match.start() < last for first, last in whole):
            continue
        found.append(_Clause(start, match.start(), text[start : match.start()], "", joined, aside))
        start, joined = match.end(), match[0].strip()
        aside = joined == "(" or (aside and joined != ")")
    found.append(_Clause(start, end, text[start:end], "", joined, aside))
    return [clause for clause in found if clause.said.strip(" *_-") or clause.joined]


def _with_values(
    clauses: Sequence[_Clause], sentence: Sentence, text: str, kind: Kind, today: date
) -> Iterator[tuple[_Clause, list[tuple[int, Any]]]]:
    """Yield each clause that holds values, with their places; short ones before it that hold none are its label."""
    label, ties = "", ""
    for clause in clauses:
        values = list(_values(text, sentence, clause, kind, today))
        ties += f" {clause.joined}" if _FOLLOWS.match(clause.joined) else ""
        if values:
            yield replace(clause, label=label, joined=ties), values
            label = ties = ""
        elif len(clause.said.split()) <= _LABEL:
            label = f"{label} {clause.said}"
        else:
            label = ""


def _values(
    text: str, sentence: Sentence, clause: _Clause, kind: Kind, today: date
) -> Iterator[tuple[int, Any]]:
    """Yield (place, value) for the values of a kind in a clause; a range is two."""
    if kind == "day":
        found: list[tuple[int, Any]] = [
            (clause.start + at, day.isoformat())
            for at, day in _days(clause.said, today)
            if not _PLACED.search(clause.said[:at])
        ]
    else:
        dates = [match.span() for match in _DATE.finditer(text)]
        tokens = [
            one
            for one in sentence.tokens
            if one.stem == _MARKS[kind]
            and not any(first <= one.start < last for first, last in dates)
            and clause.start <= one.start < clause.end
            and not re.search(r"[A-Za-z]$", text[clause.start : one.start])
            and not re.match(r"[A-Za-z]", text[one.end : clause.end])
        ]
        amounts = [(one.start, read_amount(text[one.start : one.end], _UNITS[kind])) for one in tokens]
        found = [(at, amount) for at, amount in amounts if amount is not None]
        if kind == "days" and not found:
            near = _AHEAD.search(clause.said)
            word = near[3].lower() if near and near[3] else ""
            found = [(clause.start, 1)] if word in ("tomorrow", "yesterday") else []
    yield from found
    if found and _RANGE.search(_SHORT_DAY.sub("", _LONG_DAY.sub("", clause.said))):
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


def _tie(clause: _Clause, text: str, at: int, marks: str, about: Any, case: str) -> float:
    """Score how well a clause ties the value at a place to a question."""
    said = f"{clause.label} {clause.said}".lower()
    score = min(3, len({match[0] for match in re.finditer(marks, said, re.IGNORECASE)}))
    score += 2 * bool(isinstance(about, str) and re.search(rf"\b{re.escape(about.lower())}s?\b", said))
    score += bool(clause.joined) or bool(_RESULT.search(said))
    if case and re.search(case, said):
        score += 3
    elif _PART.search(clause.said) or _PART_LABEL.search(clause.label):
        score -= 2
    score -= clause.aside
    before = text[clause.start : at]
    return score - 0.5 * bool(_OF_A_THING.search(before)) - bool(_LIMIT.search(before))


def _polarities(
    clauses: Sequence[_Clause], marks: str, today: date, about: Any
) -> Iterator[tuple[float, str]]:
    """Yield (weight, "yes" or "no") for the clauses that answer: those that speak of the question's subject before a
    mere yes or no, and of all before a part."""
    day = day_of(about, today) if isinstance(about, str) else None
    label = ""
    for clause in clauses:
        said = f"{label} {clause.said}"
        answers = any(pattern.search(said) for pattern in (_YES, _NO, _SHORT))
        label = said if _is_label(clause, clauses) and not answers else ""
        if label:
            continue
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
        elif _SHORT.search(plain) or _LATE.search(plain):
            yield _BARE, word


def _is_label(clause: _Clause, clauses: Sequence[_Clause]) -> bool:
    """Tell whether a clause ends in a colon after which the answer stands: "Complete by Sunday: no"."""
    following = clauses[clauses.index(clause) + 1 :]
    return bool(following) and following[0].joined == ":" and len(clause.said.split()) <= _LABEL


def _speaks_of(said: str, day: date, today: date) -> bool:
    """Tell whether a clause speaks of being there by a day, or says that the day is too early."""
    return any(
        one == day and (_BY.search(said[:at]) or re.search(r"\btoo (?:early|soon)\b", said))
        for at, one in _days(said, today)
    )
