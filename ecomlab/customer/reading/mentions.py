"""The values that a message names: what each may be a value of, of which item, and whether it is a claim."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from ecomlab.customer.reading.features import Seen
from ecomlab.customer.reading.vocabulary import CLOSED, Vocabulary
from ecomlab.customer.reading.words import AMOUNTS, ITEM, MONEY, NUMBER, THING, VALUE, Sentence, Token, stem
from ecomlab.slots import declared, slot_type

_JOINTS = frozenset(("and", "or", "&", ",", "plus"))
_TITLED = frozenset(("brand", "feature", "was_brand", "was_feature"))
"""Slots whose values stand before the name of a thing."""
_NEW = frozenset(("new", "replac", "exchang", "instead", "anoth", "swap"))
"""Stems of words about what comes in the place of something."""
_STOPS = frozenset((",", "and", ":", "item", "thing", "product", "piec"))
"""Stems after which a number counts nothing that follows."""
_RANKS = frozenset(
    ("then", "befor", "over", "rank", "sort", "order", "matter", "first", "import", "important")
)
"""Stems by which what is named is put in an order of importance."""
_THEN = frozenset(("then", "befor", "over", "first"))
"""Those by which a question does so: "Please rank price, rating and delivery" puts nothing in an order."""
_OFFERED = frozenset((
    "suggest", "best", "top", "recommend", "option", "keep", "shortlist", "pick", "idea", "altern", "choic",
    "substitut", "result",
))  # fmt: skip
"""Stems beside a number of things that are recommended."""
ALL = frozenset(("all", "both", "togeth", "total", "combin", "altogeth", "everyth", "whole"))
_SAME = frozenset(("same", "keep", "match", "ident", "must", "stai", "stay"))
"""Stems by which something is to be as it was."""
_DENIED = frozenset(("not", "without", "never", "no", "than", "instead", "neither"))
"""Stems before a value by which a message takes it back."""
_NOTHING_TO = frozenset(("difference", "problem", "matter"))
"""Words after "no" that deny nothing of what follows."""
CLAIM = 20
"""Score of a value from which on it is said of the customer's wishes: to deny what was no claim is worse than to let
one pass."""
SURE = 60
"""Score from which on a limit that is said to be lower than it is, is no thing that keeps within it."""
AWAY = 16
"""Words from which on a unit is too far from an amount to be what that is the worth of."""
REACH, NEXT = 6, 3
"""Words within which what stands before an amount, or before a bare number, tells what it counts."""


@dataclass(frozen=True)
class Said:
    """A value that a message says of an item (-1: of none that it names), and the slots that it may be a value of."""

    slots: tuple[str, ...]
    value: str
    item: int = -1
    place: int = 0
    """Number of its sentence."""
    span: tuple[int, int] = (0, 1)
    """Its words in the sentence."""
    denied: bool = False
    new: bool = False
    """Words beside it speak of what comes in the place of something."""
    asked: bool = False
    """Its sentence asks something."""
    score: int = 100
    """The model's, that it is said of the customer's wishes or case, not of what is on offer."""

    @property
    def claimed(self) -> bool:
        """True if it is said of the customer's wishes or case."""
        return self.score > CLAIM


def places(sentence: Sentence, one: Seen) -> list[tuple[int, int]]:
    """List where a sentence names values, as (start, end)."""
    found = [
        (place, place + 1)
        for place, token in enumerate(sentence.tokens)
        if token.stem == VALUE or token.stem in AMOUNTS
    ]
    words = [
        (start, end)
        for meaning, start, end in one.phrases
        if CLOSED in meaning or meaning.startswith("attr:")
    ]
    return [*found, *dict.fromkeys(words)]


def said_in(
    at: int,
    sentence: Sentence,
    one: Seen,
    vocabulary: Vocabulary,
    topic: Sequence[int],
    asked: Sequence[str],
) -> list[Said]:
    """List the values that a sentence says, the message's number `at`, which asks for these slots; `topic`: the items
    that it is about where it names none."""
    found = list[Said]()
    for place, token in enumerate(sentence.tokens):
        if not (token.stem == VALUE or token.stem in AMOUNTS or _is_one(place, sentence)):
            continue
        if token.stem != MONEY and any(of == "worth" and a <= place < b for of, a, b in one.phrases):
            continue  # "a star more is worth $10"
        denied = token.stem == VALUE and _is_denied(place, sentence)
        for item in _described(place, sentence, topic) or (-1,):
            slots = _meant(place, token, sentence, one, vocabulary, item, asked)
            if slots and slot_type(slots[0]).op == "==" and _compared(place, sentence):
                continue  # "more than 20 days ago"
            if slots:
                value = next((value for slot, value in token.means if slot == slots[0]), token.word)
                value += f" {unit_of(place, sentence)}" if slots == ("worth",) else ""
                no = denied and not slots[0].startswith("was_")
                new = bool(_NEW & {one.stem for one in sentence.tokens[max(0, place - 4) : place + 3]})
                found.append(Said(slots, value, item, at, (place, place + 1), no, new))
    stems = {token.stem for token in sentence.tokens}
    closed = sorted((phrase for phrase in one.phrases if CLOSED in phrase[0]), key=lambda phrase: phrase[1])
    ranked = {
        meaning.partition(CLOSED)[2]: span
        for meaning, *span in closed
        if meaning.startswith(f"importance{CLOSED}")
    }
    first = {"first", "most"} & stems and "importance" in asked  # "and price comes first for you?"
    ranks = stems & (_THEN if asked else _RANKS) and (not asked or "importance" in asked)
    if any(of == "give_way" for of, *_ in one.phrases):
        ranked = {}  # "you'd give up the price first"
    if ranked and (first or (len(ranked) > 1 and ranks)):
        start, end = next(iter(ranked.values()))
        found.append(Said(("importance",), ", ".join(ranked), -1, at, (start, end)))
    last = dict[str, Said]()
    for meaning, start, end in closed:
        name, _, value = meaning.partition(CLOSED)
        if name != "importance":
            no = _is_denied(start, sentence)
            if no and name in last:
                continue  # "on clearance rather than in a flash sale"
            last[f"{name} {value}" if "or" in stems else name] = Said(
                (name,), value, -1, at, (start, end), no
            )
    found += last.values()
    if "must" in vocabulary.slots and stems & _SAME:  # "in the same color"
        found += [
            Said(("must",), of.removeprefix("attr:"), -1, at, (start, end))
            for of, start, end in one.phrases
            if of.startswith("attr:") and CLOSED not in of
        ]
    return list(dict.fromkeys(found))


def about(start: int, end: int, sentence: Sentence, topic: Sequence[int]) -> tuple[int, ...]:
    """Name the items that the words between these places are about: the nearest group of names in the sentence, none
    where that is of things that tools have shown, else the topic."""
    groups: list[tuple[int, int, list[int]]] = []
    for place, token in enumerate(sentence.tokens):
        if token.stem == THING:
            groups.append((place, place + 1, []))
        elif token.stem == ITEM:
            number = int(token.means[0][1])
            between = sentence.tokens[groups[-1][1] : place] if groups else ()
            if (
                groups
                and groups[-1][2]
                and all(one.stem in _JOINTS or one.stem in ("for", "of") for one in between)
            ):
                groups[-1] = (groups[-1][0], place + 1, [*groups[-1][2], number])
            else:
                groups.append((place, place + 1, [number]))
    if not groups:
        return tuple(topic)

    def distance(group: tuple[int, int, list[int]]) -> tuple[int, int]:
        low, high, _ = group
        gap = low - end if low >= end else start - high if high <= start else 0
        words = sentence.tokens[end:low] if low >= end else sentence.tokens[high:start]
        crossed = sum(token.stem in (",", "and", "or", ":") for token in words)
        return (3 * crossed + max(0, gap), low)

    return tuple(dict.fromkeys(min(groups, key=distance)[2]))


def _described(place: int, sentence: Sentence, topic: Sequence[int]) -> tuple[int, ...]:
    """Name the items that a value describes: a brand or a word of the title the one whose name follows at once, and
    none where another follows later."""
    token = sentence.tokens[place]
    titled = token.stem == VALUE and {slot for slot, _ in token.means} <= _TITLED
    by = sentence.tokens[place - 1].stem if place else ""
    if not titled or by in ("by", "from"):
        return about(place, place + 1, sentence, topic)
    for one in sentence.tokens[place + 1 : place + 5]:
        if one.stem == ITEM:
            return (int(one.means[0][1]),)
        if one.stem in _JOINTS:
            break
    ahead = any(one.stem == ITEM for one in sentence.tokens[place + 1 :])
    return () if ahead else about(place, place + 1, sentence, topic)


def _is_denied(place: int, sentence: Sentence) -> bool:
    """Tell whether one of the three words before a value takes it back, with nothing else named between but what is
    denied with it: "neither red nor blue". "No difference for a member" denies no membership, and "no red lamp costs
    less" no color."""
    thing = any(one.stem == ITEM for one in sentence.tokens[place + 1 : place + 2])
    goes_on = any(one.stem not in _JOINTS for one in sentence.tokens[place + 2 : place + 3])
    for at in range(place - 1, max(-1, place - 4), -1):
        token = sentence.tokens[at]
        if token.stem in _DENIED:
            if token.word == "no" and thing and goes_on:
                return False
            return sentence.tokens[at + 1].word not in _NOTHING_TO
        if token.word in ("or", "nor") and at and sentence.tokens[at - 1].means:
            return _is_denied(at - 1, sentence)
        if token.means or token.stem in _JOINTS:
            return False
    return False


def _compared(place: int, sentence: Sentence) -> bool:
    """Tell whether an amount is only a bound of what is said."""
    if sentence.tokens[place].stem == VALUE:
        return False
    before = [token.word for token in sentence.tokens[max(0, place - 2) : place]]
    return bool({"than", "over", "under", "within", "least", "most"} & set(before))


def _meant(
    place: int,
    token: Token,
    sentence: Sentence,
    one: Seen,
    vocabulary: Vocabulary,
    item: int,
    asked: Sequence[str],
) -> tuple[str, ...]:
    """Name the slots that a value may be one of, in a sentence that asks for these."""
    if token.stem == VALUE:
        has = vocabulary.has[item] if 0 <= item < len(vocabulary.has) else frozenset[str]()
        slots = [slot for slot, _ in token.means]
        own = [slot for slot in slots if not slot.startswith("attr:") or slot in has or not has]
        before = sentence.tokens[place - 1].stem if place else ""
        return tuple(own or (() if before == VALUE else slots))  # "a 19 mm barrel" names no shape
    stem = NUMBER if token.stem == "one" else token.stem
    able = [
        slot
        for slot in vocabulary.slots
        if slot_type(slot).mark == stem or (stem == NUMBER and slot_type(slot).is_limit)
    ]
    after = sentence.tokens[place + 1 : place + 5]
    counted = next((it for it in after if _is_counted(it) or it.stem in _STOPS), None)
    beside = (*sentence.tokens[max(0, place - 2) : place], *sentence.tokens[place + 1 : place + 3])
    offered = bool(_OFFERED & {it.stem for it in beside}) or [it.stem for it in after[:2]] == ["of", "them"]
    units = [slot for slot in able if slot in ("quantity", "units")]
    at_once = (
        next((it for it in after if it.stem != VALUE or it is counted), None) is counted
    )  # "four red kettles"
    if "budget" in vocabulary.slots and token.word.isalpha() and at_once:  # of each, one goes without saying
        units = units or ["quantity"]
    if counted is not None and counted.stem == THING and not offered:  # whose item only the customer knows
        return ()
    if token.stem == "one":
        return tuple(units)
    if token.stem == NUMBER and "count" in able and (offered or not units):
        units = ["count"]
    recommended = offered and units == ["count"]
    if not recommended and (counted is None or not _is_counted(counted)):
        units = []
    if stem == NUMBER and units and at_once:
        return tuple(units)
    near = [slot for slot in able if _counts(place, sentence, slot, one)]
    if "worth" in near:  # "you'd pay $10 more for each extra star"
        return ("worth",)
    able = [slot for slot in able if slot != "worth"]
    near = near or [slot for slot in able if slot in asked]
    if at_once and near == ["things"]:  # three of one kind are no three things
        return ()
    if near or stem == NUMBER:
        return tuple(near[:1] or units)
    if stem == MONEY and "budget" in able:
        whole = bool(ALL & {it.stem for it in sentence.tokens})
        return ("budget",) if whole or "price" not in able or item < 0 else ("price",)
    return tuple(able[:1])


@cache
def _units() -> Mapping[str, str]:
    """Return the slots whose units have a worth, by the stems of their units and of amounts of them."""
    units = {stem(word): limit.name for limit in declared() for word in limit.gain.split()}
    return units | {limit.mark: limit.name for limit in declared() if limit.gain and limit.mark}


def unit_of(place: int, sentence: Sentence) -> str:
    """Name the slot of whose unit an amount is the worth: of the nearest unit, where "and" and other amounts are far;
    "" where none is named."""
    best = (AWAY, "")
    for at, token in enumerate(sentence.tokens):
        if token.stem in _units():
            between = sentence.tokens[min(at, place) + 1 : max(at, place)]
            crossed = sum(one.stem in (*_JOINTS, MONEY) for one in between)
            best = min(best, (abs(at - place) + AWAY // 2 * crossed, _units()[token.stem]))
    return best[1]


def _is_one(place: int, sentence: Sentence) -> bool:
    """Tell whether a word counts one thing: "one red kettle", "one of the kettles"."""
    if sentence.tokens[place].stem != "one":
        return False
    after = [it.stem for it in sentence.tokens[place + 1 : place + 6] if it.stem != VALUE]
    return after[:1] == [ITEM] or after[:3] == ["of", "the", ITEM]


def _is_counted(token: Token) -> bool:
    """Tell whether a token names something that is counted."""
    return token.stem in (ITEM, THING) or (token.stem == VALUE and token.means[0][0] in ("type", "parts"))


def _counts(place: int, sentence: Sentence, slot: str, one: Seen) -> bool:
    """Tell whether words that ask for a slot stand close before an amount, or just after it, with no other amount
    between."""
    for meaning, start, end in one.phrases:
        if meaning == slot:
            between = sentence.tokens[end:place]
            reach = REACH if sentence.tokens[place].stem != NUMBER else NEXT
            before = end <= place < end + reach and not any(token.stem in AMOUNTS for token in between)
            behind = place < start <= place + NEXT + 1 and not {ITEM, ","} & {
                token.stem for token in sentence.tokens[place:start]
            }
            if before or behind:
                return True
    return False


__all__ = ["SURE", "Said", "about", "places", "said_in"]
