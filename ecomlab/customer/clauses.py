"""The clauses of a sentence of stems, and which of them ask."""

from collections.abc import Sequence
from dataclasses import dataclass

from ecomlab.customer.words import ITEM, MARKS, Token, stem

ASK, FRAGMENT, STATEMENT, PURPOSE = "ask", "fragment", "statement", "purpose"
"""What a clause does: it asks; it has no verb of its own, and does what its neighbours do; it tells; it says what for."""


def _stems(words: str) -> frozenset[str]:
    return frozenset(map(stem, words.split()))


WH = _stems("whereabouts what which who whose whom when where why how")
_AUXILIARY = _stems("be do have can could will would shall should may might must")
_PREPOSITION = _stems(
    "at by for from in into of on to under until up till upon with within since through about out via"
)
_SPEAKER = _stems("i we")
_PRONOUN = _stems("i we you it they he she there this that these those")
_LINKS = frozenset({",", ":", "and", "or", "but", "plus"})
_INTERJECTION = _stems(
    "hi hello hey ok okay so and but or great oh ah aw aww well alright right also then now hm hmm just cool lovely plus yes "
    "no , : lol haha hehe no perfect sure certainly next first firstly second secondly finally last lastly again good "
    "ooh phew fine wonderful super nice excellent thing yeah yep yup wow ha haha"
)
_ORDER = _stems(
    "tell say name give state specify indicate provide share confirm mention list describe rank advise inform choose pick "
    "remind enter select explain put order count sort spill elaborate clarify send help drop shout submit supply write "
    "complete fill chip throw point outline detail jog answer repeat set remember recall"
)
"""Verbs of imperatives that ask."""
_KNOW = _stems(
    "know tell hear learn confirm specify clarify ask find understand check say verify establish see sure idea"
)
_WANT = _stems(
    "need require want wonder ask enquire inquire miss lack request appreciate must value seek curious eager guess "
    "assume suppose presume take trust gather understand beg"
)
_WISH = _stems("like love appreciate want need be prefer value welcome require ask know")
_OF_YOU = _stems(
    "good okay ok fine sure happy after mean want need like prefer look after seek wish buy pay think would will got ask say remember"
)
_GREETING = _stems(
    "hi hello hey dear customer sir madam wait oh ok okay ooh lol haha hm hmm right so well , ah aw um er"
)
_TOPIC = _stems("concerning regarding about for as on turning next back moving coming now")
_THANKS = _stems(
    "thank thanks sorry apology noted understood gotcha sure welcome cheers ta congratulation glad happy"
)
_ABOUT = _stems("me us roughly approximately about around remember recall of idea")
_WAITING = _stems("wait hold bear minute moment second sec tick")
_TAG = _stems("nah not right correct yes yeah yep no huh innit eh true ok okay")
_REASON = _stems("because although though whereas unless")
_AIM = _stems(
    "help make narrow find avoid ensure identify locate determine proceed complete finish get place process finalize"
)
_HELPFUL = _stems(
    "help helpful useful handy appreciate appreciated welcome great good nice enough grateful glad lovely perfect plenty"
)
_POINTS = _stems("here it they that this there these those he she")
_FINITE = _stems(
    "remain depend distinguish vary differ cover want happen sell leave left send go read hear cost arrive come fit ship go include contain look match have meet seem sell offer weigh take make sound"
)


@dataclass(frozen=True)
class Clause:
    """A clause from `start` to before `end`, and what it does."""

    start: int
    end: int
    kind: str


def clauses(tokens: Sequence[Token], mark: str, polite: bool) -> list[Clause]:
    """Split a sentence into clauses; `mark` is "?" or "!" where it ends so."""
    stems = [token.stem for token in tokens]
    first = 0
    while first < len(stems) - 1 and stems[first] in _GREETING:
        first += 1
    inner = {place for place in range(first + 1, len(stems)) if _is_inner(stems, place)}
    begun = (place for place in range(first + 1, len(stems)) if place in inner or _begins(stems, place, mark))
    starts = [first, *begun, len(stems)]
    found = []
    for start, end in zip(starts, starts[1:], strict=False):
        last = end == len(stems)
        if start in inner:
            found.append(Clause(start, end, PURPOSE))
            continue
        found.append(
            Clause(start, end, _kind(tokens[start:end], mark if last or mark == "?" else "", polite))
        )
    return _settled(found, stems, mark)


def _settled(found: list[Clause], stems: Sequence[str], mark: str) -> list[Clause]:
    """Settle the clauses whose kind depends on others: a sentence with a question mark asks somewhere, and fragments do what
    the clause before them does."""
    kinds = [clause.kind for clause in found]
    for place, clause in enumerate(found[:-1]):
        named = stems[clause.start] in _TOPIC and stems[clause.end - 1] == ","
        if clause.kind == FRAGMENT and (named or stems[clause.end - 1] == ":"):
            kinds[place] = PURPOSE  # the topic of what follows
    if mark == "?" and ASK not in kinds:
        for place in reversed(range(len(kinds))):
            if kinds[place] != PURPOSE:
                kinds[place] = ASK
                break
        else:
            kinds[-1] = ASK
    asking = ASK in kinds
    for place, kind in enumerate(kinds):
        if kind == FRAGMENT:
            before = kinds[place - 1] if place else ASK
            before = ASK if before == PURPOSE else before
            kinds[place] = ASK if asking and before != STATEMENT else before
            if not place:
                told = not asking and (mark == "!" or STATEMENT in kinds[1:])
                kinds[place] = STATEMENT if told else ASK
    if set(kinds) == {PURPOSE}:
        kinds = [ASK] * len(kinds)
    return [Clause(clause.start, clause.end, kind) for clause, kind in zip(found, kinds, strict=True)]


def _is_inner(stems: Sequence[str], place: int) -> bool:
    """Tell whether "when you ..." begins here inside a question for something else."""
    after = stems[place + 1] if place + 1 < len(stems) else ""
    before = stems[:place]
    if stems[place] != "when" or after not in _PRONOUN or before[-1] in _LINKS | _KNOW | _ABOUT:
        return False
    return bool(WH & set(before)) or before[0] in _AUXILIARY and not _KNOW & set(before)


def _begins(stems: Sequence[str], place: int, mark: str) -> bool:
    """Tell whether a clause begins here."""
    here, before = stems[place], stems[place - 1]
    after = stems[place + 1] if place + 1 < len(stems) else ""
    if before == ":":
        return True
    if before == "or" and here in WH:
        return after in _AUXILIARY
    if before in _LINKS:
        verb = (
            here in _AUXILIARY
            and mark != "?"
            and stems[place + 1 : place + 2] not in ([one] for one in _PRONOUN)
        )
        return here not in _LINKS and not verb and _opens(stems, place)
    if here in _REASON:
        return True
    if here == "so":
        return after in _PRONOUN
    if here in _stems("before since as while after once"):
        return after in _SPEAKER
    if here == "to":
        return after in _AIM and before not in _stems(
            "me us want like need have i you order try be allow way"
        )
    return False


def _opens(stems: Sequence[str], place: int) -> bool:
    """Tell whether a clause may begin with the word here, after a comma or a conjunction."""
    here = stems[place]
    after = stems[place + 1] if place + 1 < len(stems) else ""
    if here in WH or here in _ORDER or here in _THANKS or here == "let":
        return True
    if here in _PREPOSITION and after in WH:
        return True
    if here == "so" and (after in _ORDER or after == stem("any")):
        return True
    if here in _stems("if so as since before while") or here in _REASON:
        return after in _PRONOUN or after == ITEM or here == "if"
    if here in _AUXILIARY:
        return True
    if here in {"i", "we", "you"}:
        return bool(after)
    if here in _PRONOUN or here in {ITEM, stem("everything")}:
        return after in _AUXILIARY
    return False


def _kind(tokens: Sequence[Token], mark: str, polite: bool) -> str:
    """Tell what a clause does, by its first words."""
    words = [token.stem for token in tokens]
    place = 0
    while place < len(words) and words[place] in _INTERJECTION and not _is_frame(words, place):
        place += 1
    rest = list(words[place:])
    if not rest:
        return FRAGMENT if not words or mark == "?" else STATEMENT
    first, second = rest[0], rest[1] if len(rest) > 1 else ""
    if _is_purpose(rest):
        speaker = next((place for place, word in enumerate(rest) if place > 2 and word in _SPEAKER), 0)
        return _of_speaker(rest[speaker:]) if speaker and first == "to" else PURPOSE
    if (
        first in _stems("any further other additional")
        and mark != "?"
        and (_HELPFUL | _stems("stated noted allow")) & set(rest)
    ):
        return ASK
    if "noted" in rest or mark != "?" and tokens[place].word.endswith("ing") and len(rest) == 1:
        return STATEMENT
    if first in WH:
        exclaimed = mark == "!" and not _AUXILIARY & set(rest)
        return STATEMENT if exclaimed else ASK
    if first in _PREPOSITION and second in WH:
        return ASK
    if first in _THANKS:
        return ASK if mark == "?" and len(rest) <= 3 else STATEMENT
    if first == "have" and mark != "?" and second not in _PRONOUN:
        return STATEMENT
    if (
        first == "get"
        and second != stem("any")
        and mark != "?"
        or rest[:2] == ["give", "me"]
        and len(rest) <= 3
        and "minimum" in rest
    ):
        return STATEMENT
    orders = not tokens[place].noun and not tokens[place].word.endswith(("ed", "ing"))
    if first in _ORDER and orders or first == "do" and second == _tell:
        return STATEMENT if _WAITING & set(rest[:4]) or second in _SPEAKER else ASK
    if rest[:2] == ["let", "us"] and {"start", "begin"} & set(rest[2:4]):
        return ASK
    if first == "let":
        return ASK if {"know", "hear", "have"} & set(rest[1:4]) else STATEMENT
    if first == "feel" or rest[:2] == ["do", "not"]:
        return ASK
    if first in {"allow", "permit"}:
        return ASK if _KNOW & set(rest[1:5]) - {"check", "see"} else STATEMENT
    if first in _WAITING or first in {"allow", "permit", "look", "check", "search", "found", "done"}:
        return ASK if mark == "?" else STATEMENT
    if first in _AUXILIARY:
        return ASK
    if first in _SPEAKER:
        return _of_speaker(rest)
    if (
        mark != "!"
        and len(rest) > 3
        and (rest[-3] in _AUXILIARY and rest[-2] == "not" or rest[-2] in _AUXILIARY)
        and rest[-1] in _POINTS
    ):
        return ASK
    if words and words[-1] in _TAG and len(words) > 1 and mark != "!":
        return ASK
    if first == "you" and _stems("request ask invite") & set(rest[2:4]) and second == "be":
        return ASK
    if first == "you":
        aims = second == "be" and bool(_OF_YOU & set(rest[2:4]))
        return ASK if (second in _OF_YOU or aims) and mark != "!" and not _announced(rest) else STATEMENT
    if _asks_inside(rest):
        return ASK
    if first == ITEM and second in _FINITE:
        return STATEMENT
    if first in _POINTS:
        return STATEMENT
    if polite:
        return STATEMENT if _WAITING & set(rest) else ASK
    if second in WH and rest[2:3] and rest[2] in _AUXILIARY:
        return ASK
    if _tells(rest):
        return STATEMENT
    more = bool(_stems("whatever anything else") & set(rest))
    question = next((place for place, word in enumerate(rest) if word in WH), len(rest))
    if not more and mark != "?" and _is_told(rest[:question]):
        return STATEMENT
    if WH & set(rest) and mark != "!":
        return ASK
    if mark != "?":
        speaker = next((place for place, word in enumerate(rest[:7]) if word in _SPEAKER), 0)
        if speaker:
            return _of_speaker(rest[speaker:])
        if len(rest) > LONG and not {",", "and", "or"} & set(rest):
            return STATEMENT
    return FRAGMENT


LONG = 8
"""Most words of a fragment that asks."""


_tell = stem("tell")
_RELATIVE = _stems("whatever that which who what you i we anything whichever if whether")


def _tells(rest: Sequence[str]) -> bool:
    """Tell whether a clause that begins with a noun has a verb of its own: not one of "the price that you would pay"."""
    verbs = [place for place, word in enumerate(rest) if word in _AUXILIARY]
    return bool(verbs) and (rest[0] == ITEM or not _RELATIVE & set(rest[: verbs[0]]))


def _is_told(rest: Sequence[str]) -> bool:
    """Tell whether a clause that begins with a noun goes on with a verb of telling, not one of "the price you want"."""
    return any(
        word in _FINITE and word != "cost" and rest[place - 1] not in _RELATIVE | _AUXILIARY | {"to"}
        for place, word in enumerate(rest)
        if place
    )


def _is_frame(words: Sequence[str], place: int) -> bool:
    """Tell whether an interjection's word is none here: "first" before a verb, "to" before a question word."""
    after = words[place + 1] if place + 1 < len(words) else ""
    return words[place] in {
        "to",
        "no",
        "or",
        "last",
        "next",
        "second",
        "first",
        "with",
        "thing",
        "start",
    } and (
        after in WH or after in MARKS or place == len(words) - 1 or after in {"one", "order", "more", "than"}
    )


def _is_purpose(rest: Sequence[str]) -> bool:
    """Tell whether a clause says what for, or under which condition."""
    first, second = rest[0], rest[1] if len(rest) > 1 else ""
    if first in _REASON or rest[:3] == ["in", "order", "to"]:
        return True
    if first == "to":
        return (
            second not in WH
            and second not in _KNOW - {"find", stem("ensure")}
            or second == "know"
            and len(rest) < 4
        )
    if first == "if":
        return True
    if first in _stems("so as since before while after once now"):
        return second in {"i", "we", "that", "it", "they", "you"} and rest[:2] != ["as", "to"]
    return first == "when" and second == "you" and rest[2:3] in (["say"], ["mention"], ["tell"], ["write"])


def _of_speaker(rest: Sequence[str]) -> str:
    """Tell whether what begins with "I" or "we" asks: "I need to know ..."."""
    words = [word for word in rest[1:] if word not in _stems("still only once now then there any")]
    if not words:
        return FRAGMENT
    first = words[0]
    if "i" in words[1:4] and {"afraid", "sorri"} & set(words[:3]):
        return _of_speaker(words[words.index("i", 1) :])
    if "if" in words and _stems("remember tell say") & set(words[words.index("if") :]) and WH & set(words):
        return ASK
    if (
        "not" in words
        and WH & set(words[words.index("not") :])
        and _stems("say mention tell state") & set(words)
    ):
        return ASK
    if {"without", "unless"} & set(words) and _KNOW & set(words):
        return ASK
    if _WAITING & set(words[:4]) and not WH & set(words):
        return STATEMENT
    if first in _WANT and not (words[1:2] == ["to"] and not _KNOW & set(words[2:5])):
        return ASK
    if first in _AUXILIARY:
        rest_of = words[1:5]
        if first in {"would", "should"} and _WISH & set(rest_of):
            return STATEMENT if set(rest_of) & _stems("help thank inform look check") else ASK
        if set(rest_of[:2]) & _WANT - _stems("look value take understand see") and first not in {
            "can",
            "could",
            "would",
            "should",
        }:
            return ASK
        if "to" in rest_of and _KNOW & set(words[1:6]) - _stems("check find see"):
            return ASK
        if "not" in rest_of and _KNOW & set(words[1:6]):
            return ASK
        if WH & set(words) and _KNOW - _stems("see find check") & set(words[1:6]) and first != "will":
            return ASK
    return STATEMENT


def _announced(rest: Sequence[str]) -> bool:
    """Tell whether "you" begins an announcement: "you will get your money back"."""
    return "will" in rest[1:3] and not WH & set(rest)


def _asks_inside(rest: Sequence[str]) -> bool:
    """Tell whether a statement asks all the same: "it would help to know ...", "any hint is welcome"."""
    words = set(rest)
    if {"would", "will", "be"} & words and _HELPFUL & words:
        return (
            rest[0] in {"it", "that"}
            and bool({"know", "have", "if", "hear"} & words)
            or rest[0] not in _PRONOUN
        )
    if _stems("still missing need required lack") & words and not {"i", "we"} & words:
        return "not" not in words
    return bool(WH & words and _stems("know tell depend question") & words)
