"""The clauses of a sentence of a message: where each begins, and which of them ask."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ecomlab.customer.clause_kinds import (
    ASK,
    FRAGMENT,
    PURPOSE,
    STATEMENT,
    after_of,
    concludes,
    kind_of,
)  # fmt: skip
from ecomlab.customer.word_classes import AUXILIARY, KNOW, OF, PRONOUN, SPEAKER, TAGS, WH, any_of
from ecomlab.customer.words import ITEM, Token, stem


@dataclass(frozen=True)
class Clause:
    """A clause from `start` to before `end`, and what it does."""

    start: int
    end: int
    kind: str
    guessed: bool = False
    """It is a fragment, and does what its neighbours do."""


def clauses(tokens: Sequence[Token], mark: str, polite: bool) -> list[Clause]:
    """Split a sentence into clauses; `mark` is "?" or "!" where it ends so."""
    stems = [token.stem for token in tokens]
    first = 0
    while first < len(stems) - 1 and stems[first] in OF["greeting"] and not concludes(stems[first:]):
        first += 1
    later = range(first + 1, len(stems))
    inner = {place for place in later if _is_inner(stems, place)}
    begun = (place for place in later if place in inner or _begins(stems, place, mark))
    found = []
    for start, end in pairwise([first, *begun, len(stems)]):
        ending = mark if end == len(stems) or mark == "?" else ""
        kind = PURPOSE if start in inner else kind_of(tokens[start:end], ending, polite)
        if stems[start - 1 : start + 3] == ["and", "if", "you", "have"]:
            kind = FRAGMENT  # "Which brand, and if you have other wishes?"
        found.append(Clause(start, end, kind))
    return _settled(found, tokens, mark)


def _settled(found: list[Clause], tokens: Sequence[Token], mark: str) -> list[Clause]:
    """Settle what depends on neighbours: a sentence with a question mark asks somewhere, a fragment before a colon is a
    topic, and other fragments do what the clause before them does."""
    stems, kinds = [token.stem for token in tokens], [clause.kind for clause in found]
    for place, clause in enumerate(found[:-1]):
        last = stems[clause.end - 1]
        if clause.kind == FRAGMENT and (last == ":" or (last == "," and stems[clause.start] in OF["topic"])):
            kinds[place] = PURPOSE
    if mark == "?" and ASK not in kinds:
        told = [place for place, kind in enumerate(kinds) if kind != PURPOSE]
        kinds[told[-1] if told else -1] = ASK
    _settle_pairs(found, stems, kinds, mark)
    if mark != "?" and any_of(stems[:3], "recap") and stems[-1] not in TAGS:
        kinds = [STATEMENT if kind == ASK else kind for kind in kinds]
    asking = ASK in kinds
    for place, kind in enumerate(kinds):
        if kind != FRAGMENT:
            continue
        if place:
            kinds[place] = STATEMENT if kinds[place - 1] == STATEMENT else ASK
        else:
            kinds[place] = STATEMENT if not asking and (mark == "!" or STATEMENT in kinds[1:]) else ASK
    for place, clause in enumerate(found[1:], 1):  # "one thing is missing, that is the size"
        named = clause.end - clause.start > 2 and tokens[clause.start + 2].noun
        if named and stems[clause.start : clause.start + 2] == ["that", "be"] and kinds[place - 1] == ASK:
            kinds[place] = ASK
    if set(kinds) == {PURPOSE}:
        begins = tokens[found[0].start]
        reasons = mark != "?" and (begins.stem in OF["reason"] | {"sinc"} or begins.word == "based")
        kinds = [STATEMENT if reasons else ASK] * len(kinds)
    return [
        Clause(clause.start, clause.end, kind, clause.kind == FRAGMENT)
        for clause, kind in zip(found, kinds, strict=True)
    ]


def _settle_pairs(found: Sequence[Clause], stems: Sequence[str], kinds: list[str], mark: str) -> None:
    """Settle, in `kinds`, what depends on the clause before or after."""
    for place, (clause, after) in enumerate(pairwise(found)):
        if_you = stems[clause.start : clause.start + 2] == ["if", "you"]
        asks_for = any_of(stems[clause.start + 2 : clause.end], "order", "know")
        if if_you and asks_for and _thanks(stems[after.start : after.end]):
            kinds[place] = ASK  # "If you can tell me more, that would be great."
        led = stems[after.start - 1 : after.start + 2] in ([",", "which", "be"], [",", "which", "mean"])
        pointed = any_of(stems[after.start + 2 : after.start + 3], "pointed")
        if led and not pointed and kinds[place] == STATEMENT and mark != "?":
            kinds[place + 1] = STATEMENT  # "I found ten, which is too many."
    for place, (clause, after) in enumerate(pairwise(found)):
        first, second = stems[clause.start : clause.start + 2]
        inverted = (
            kinds[place + 1] == ASK and stems[after.start - 1] == "," and stems[after.start] in AUXILIARY
        )
        if first == "when" and second not in AUXILIARY and inverted:
            kinds[place] = PURPOSE  # "When two are close, should I take the cheaper one?"
        if (
            mark == "?"
            and kinds[place] == ASK
            and first in AUXILIARY
            and stems[after.start] == stem("because")
        ):
            kinds[place + 1] = ASK  # "Is it going back because it is broken?"


def _thanks(stems: Sequence[str]) -> bool:
    """Tell whether a clause only says that something would be welcome."""
    return stems[:1] in (["that"], ["it"]) and "would" in stems and any_of(stems, "helpful")


def _is_inner(stems: Sequence[str], place: int) -> bool:
    """Tell whether "when you ..." begins here inside a question for something else."""
    after, before = after_of(stems, place), stems[:place]
    if stems[place] != "when" or after not in PRONOUN:
        return False
    if before[-1] in OF["link"] | KNOW | OF["about"]:
        return False
    return any_of(before, "question") or (before[0] in AUXILIARY and not any_of(before, "know"))


def _begins(stems: Sequence[str], place: int, mark: str) -> bool:
    """Tell whether a clause begins here."""
    here, before, after = stems[place], stems[place - 1], after_of(stems, place)
    if before == ":":
        return True
    if before == "or" and here in WH:
        return after in AUXILIARY
    if before == "," and here == stem("any") and mark == "?":
        return not WH.isdisjoint(stems[:place])  # "Which features should it have, any budget?"
    if before in OF["link"]:
        # "it left and is on its way", "the kettle and the rug have"
        goes_on = here == ITEM if mark == "?" else here in AUXILIARY and after not in PRONOUN
        goes_on = goes_on and (before != "or" or bool(mark))  # "only red or are others fine too"
        topic = here == "for" and after == ITEM and stems[place + 2 : place + 3] in ([":"], [","])
        return here not in OF["link"] and (topic or (not goes_on and _opens(here, after)))
    if here == "so":
        return after in PRONOUN
    if here == "to":
        return after in OF["aim"] and before not in OF["aimless"]
    return here in OF["reason"] or (here in OF["circumstance"] and here != "now" and after in SPEAKER)


def _opens(here: str, after: str) -> bool:
    """Tell whether a clause may begin with the word here, after a comma or a conjunction."""
    if (here, after) == ("report", "back"):
        return False  # "I will search for it and report back."
    if here in WH | OF["order"] | OF["thanks"] | AUXILIARY or here in {"let", "if"}:
        return True
    if here == stem("whether"):
        return after == "you"  # "the color of the kettle, and whether you have any wishes for the rug"
    if here in OF["preposition"] | OF["about"] and after in WH:
        return True
    if here == "so" and after in OF["order"] | OF["more"] | OF["extra"] | {"let"}:
        return True
    if here == "sinc":
        return after not in WH
    if here in OF["reason"] or (here in OF["circumstance"] and here not in {"now", "onc", "after"}):
        return after in PRONOUN or after == ITEM
    if here in {"i", "we", "you"}:
        return bool(after)
    return (here in PRONOUN or here in {ITEM, stem("everything")}) and after in AUXILIARY
