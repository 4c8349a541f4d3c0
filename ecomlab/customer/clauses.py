"""The clauses of a sentence of a message, and what each does: which of them ask.

The classes of words are data: `clauses.toml`.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from ecomlab.customer.words import DAYS, ITEM, MARKS, Token, stem
from ecomlab.data import Strict, read_toml

ASK, FRAGMENT, STATEMENT, PURPOSE = "ask", "fragment", "statement", "purpose"
"""What a clause does: it asks; it has no verb of its own, and does what its neighbours do; it tells; it says what
for."""
LEAD = 5
"""Words within which "I" may stand after what it speaks of."""
_DONE = frozenset({"checked", "confirmed", "sorted", "updated", "recorded", "settled", "fixed"})
"""Participles by which a speaker reports, as they are written: "check the price" asks."""
LONG = 8
"""Most words of a fragment that asks."""


class _Words(Strict):
    """Schema of the file of word classes."""

    question: tuple[str, ...]
    auxiliary: tuple[str, ...]
    preposition: tuple[str, ...]
    speaker: tuple[str, ...]
    pronoun: tuple[str, ...]
    pointer: tuple[str, ...]
    relative: tuple[str, ...]
    link: tuple[str, ...]
    greeting: tuple[str, ...]
    interjection: tuple[str, ...]
    framing: tuple[str, ...]
    framed: tuple[str, ...]
    thanks: tuple[str, ...]
    waiting: tuple[str, ...]
    tag: tuple[str, ...]
    mild: tuple[str, ...]
    holding: tuple[str, ...]
    reason: tuple[str, ...]
    circumstance: tuple[str, ...]
    aim: tuple[str, ...]
    aimless: tuple[str, ...]
    topic: tuple[str, ...]
    order: tuple[str, ...]
    know: tuple[str, ...]
    look: tuple[str, ...]
    about: tuple[str, ...]
    light: tuple[str, ...]
    want: tuple[str, ...]
    unwanted: tuple[str, ...]
    wish: tuple[str, ...]
    serve: tuple[str, ...]
    yours: tuple[str, ...]
    bidden: tuple[str, ...]
    helpful: tuple[str, ...]
    heard: tuple[str, ...]
    lacking: tuple[str, ...]
    more: tuple[str, ...]
    taken: tuple[str, ...]
    whatever: tuple[str, ...]
    finite: tuple[str, ...]
    untold: tuple[str, ...]
    aiming: tuple[str, ...]
    telling: tuple[str, ...]
    polite: tuple[str, ...]
    informed: tuple[str, ...]
    counted: tuple[str, ...]
    recall: tuple[str, ...]
    busy: tuple[str, ...]
    given: tuple[str, ...]
    doubled: tuple[str, ...]
    working: tuple[str, ...]
    almost: tuple[str, ...]
    eager: tuple[str, ...]
    extra: tuple[str, ...]
    pointed: tuple[str, ...]


_OF = {
    name: frozenset(map(stem, words))
    for name, words in read_toml(Path(__file__).with_name("clauses.toml"), _Words).model_dump().items()
}
WH, AUXILIARY, SPEAKER, TAGS, _PRONOUN = (
    _OF[name] for name in ("question", "auxiliary", "speaker", "tag", "pronoun")
)
_KNOW = _OF["know"]
_JOINING = ("question", "auxiliary", "preposition", "pronoun", "pointer", "relative", "link", "reason")
FUNCTION = frozenset({"one", "each"}).union(*(_OF[name] for name in _JOINING))
"""Stems of words that only join others."""
REPEATED = frozenset().union(*(_OF[name] for name in ("greeting", "thanks", "waiting", "doubled")))
"""Stems of words that people say twice: "okay okay", "very very"."""


def class_words() -> frozenset[str]:
    """Stems of the words of all classes."""
    return frozenset().union(*_OF.values())


def _any(words: Collection[str], *names: str) -> bool:
    """Tell whether a word of one of these classes is among the words."""
    return any(not _OF[name].isdisjoint(words) for name in names)


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
    while first < len(stems) - 1 and stems[first] in _OF["greeting"] and not _concludes(stems[first:]):
        first += 1
    later = range(first + 1, len(stems))
    inner = {place for place in later if _is_inner(stems, place)}
    begun = (place for place in later if place in inner or _begins(stems, place, mark))
    found = []
    for start, end in pairwise([first, *begun, len(stems)]):
        ending = mark if end == len(stems) or mark == "?" else ""
        kind = PURPOSE if start in inner else _kind(tokens[start:end], ending, polite)
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
        if clause.kind == FRAGMENT and (last == ":" or (last == "," and stems[clause.start] in _OF["topic"])):
            kinds[place] = PURPOSE
    if mark == "?" and ASK not in kinds:
        told = [place for place, kind in enumerate(kinds) if kind != PURPOSE]
        kinds[told[-1] if told else -1] = ASK
    for place, (clause, after) in enumerate(pairwise(found)):
        if stems[clause.start : clause.start + 2] == ["if", "you"] and _thanks(
            stems[after.start : after.end]
        ):
            asks_for = _any(stems[clause.start + 2 : clause.end], "order", "know")
            kinds[place] = (
                ASK if asks_for else kinds[place]
            )  # "If you can tell me more, that would be great."
        led = stems[after.start - 1 : after.start + 2] in ([",", "which", "be"], [",", "which", "mean"])
        pointed = _any(stems[after.start + 2 : after.start + 3], "pointed")
        if led and not pointed and kinds[place] == STATEMENT and mark != "?":
            kinds[place + 1] = STATEMENT  # "I found ten, which is too many."
    for place, (clause, after) in enumerate(pairwise(found)):
        checks = kinds[place] == ASK and stems[clause.start] in AUXILIARY
        if mark == "?" and checks and stems[after.start] == stem("because"):
            kinds[place + 1] = ASK  # "Is it going back because it is broken?"
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
        reasons = mark != "?" and (begins.stem in _OF["reason"] | {"sinc"} or begins.word == "based")
        kinds = [STATEMENT if reasons else ASK] * len(kinds)
    return [
        Clause(clause.start, clause.end, kind, clause.kind == FRAGMENT)
        for clause, kind in zip(found, kinds, strict=True)
    ]


def _thanks(stems: Sequence[str]) -> bool:
    """Tell whether a clause only says that something would be welcome."""
    return stems[:1] in (["that"], ["it"]) and "would" in stems and _any(stems, "helpful")


def _is_inner(stems: Sequence[str], place: int) -> bool:
    """Tell whether "when you ..." begins here inside a question for something else."""
    after, before = _after(stems, place), stems[:place]
    if stems[place] != "when" or after not in _PRONOUN:
        return False
    if before[-1] in _OF["link"] | _KNOW | _OF["about"]:
        return False
    return _any(before, "question") or (before[0] in AUXILIARY and not _any(before, "know"))


def _after(stems: Sequence[str], place: int) -> str:
    return stems[place + 1] if place + 1 < len(stems) else ""


def _begins(stems: Sequence[str], place: int, mark: str) -> bool:
    """Tell whether a clause begins here."""
    here, before, after = stems[place], stems[place - 1], _after(stems, place)
    if before == ":":
        return True
    if before == "or" and here in WH:
        return after in AUXILIARY
    if before == "," and here == stem("any") and mark == "?":
        return not WH.isdisjoint(stems[:place])  # "Which features should it have, any budget?"
    if before in _OF["link"]:
        # "it left and is on its way", "the kettle and the rug have"
        goes_on = here == ITEM if mark == "?" else here in AUXILIARY and after not in _PRONOUN
        topic = here == "for" and after == ITEM and stems[place + 2 : place + 3] in ([":"], [","])
        return here not in _OF["link"] and (topic or (not goes_on and _opens(here, after)))
    if here == "so":
        return after in _PRONOUN
    if here == "to":
        return after in _OF["aim"] and before not in _OF["aimless"]
    return here in _OF["reason"] or (here in _OF["circumstance"] and here != "now" and after in SPEAKER)


def _opens(here: str, after: str) -> bool:
    """Tell whether a clause may begin with the word here, after a comma or a conjunction."""
    if (here, after) == ("report", "back"):
        return False  # "I will search for it and report back."
    if here in WH | _OF["order"] | _OF["thanks"] | AUXILIARY or here in {"let", "if"}:
        return True
    if here == stem("whether"):
        return after == "you"  # "the color of the kettle, and whether you have any wishes for the rug"
    if here in _OF["preposition"] | _OF["about"] and after in WH:
        return True
    if here == "so" and after in _OF["order"] | _OF["more"] | _OF["extra"]:
        return True
    if here == "sinc":
        return after not in WH
    if here in _OF["reason"] or (here in _OF["circumstance"] and here not in {"now", "onc", "after"}):
        return after in _PRONOUN or after == ITEM
    if here in {"i", "we", "you"}:
        return bool(after)
    return (here in _PRONOUN or here in {ITEM, stem("everything")}) and after in AUXILIARY


@dataclass(frozen=True)
class _Opening:
    """A clause without the interjections before it."""

    rest: list[str]
    first: str
    second: str
    word: str
    """The first word as it is written."""
    noun: bool
    """The first word follows an article."""
    mark: str
    polite: bool
    """Its sentence says please."""
    done: bool
    """A participle says what the speaker has done."""
    whole: list[str]
    """The clause with its interjections."""


def _kind(tokens: Sequence[Token], mark: str, polite: bool) -> str:
    """Tell what a clause does, by the first rule that knows."""
    words = [token.stem for token in tokens]
    if _aims(words):
        return PURPOSE
    place = 0
    while place < len(words) and _is_interjection(words, place):
        place += 1
    rest = words[place:]
    if not rest:
        return FRAGMENT if not words or mark == "?" else STATEMENT
    head = tokens[place]
    noun = any(one.noun or one.stem == DAYS for one in tokens[place + 1 : place + 2])
    if head.stem == "what" and noun and mark in {".", "!"} and not _any(rest, "auxiliary"):
        return STATEMENT  # "What a day."
    done = place < len(tokens) - 1 and any(
        one.word in _DONE and before.stem != "you" for before, one in pairwise(tokens[place:])
    )
    opening = _Opening(rest, rest[0], _after(rest, 0), head.word, head.noun, mark, polite, done, words)
    for rule in _RULES:
        kind = rule(opening)
        if kind is not None:
            return kind
    return FRAGMENT


def _concludes(words: Sequence[str]) -> bool:
    """Tell whether "so" at the beginning is no mere interjection."""
    return _aims(words) or list(words[:2]) == ["so", "you"]


def _aims(words: Sequence[str]) -> bool:
    """Tell whether words begin with what a question is for: "so I can find it", "so we do not miss it"."""
    if list(words[:1]) != ["so"] or _after(words, 0) not in SPEAKER:
        return False
    verb, denied = _after(words, 1), _after(words, 2) == "not"
    if verb in _OF["aiming"]:
        return not denied
    return verb in {"do", "will"} and denied and _after(words, 3) != "know"


def _is_interjection(words: Sequence[str], place: int) -> bool:
    """Tell whether a word only stands before what is said: "so", "well", "sorry" before a question."""
    word, after = words[place], _after(words, place)
    if word in _OF["thanks"] | _OF["about"]:
        return after in WH or (after in AUXILIARY and word in _OF["thanks"])
    framed = not after or after in WH or after in MARKS or after in _OF["framed"]
    return word in _OF["interjection"] and not (word in _OF["framing"] and framed)


def _by_purpose(one: _Opening) -> str | None:
    """Know what a question is for: "To find it, ...", "so that ...", "if you like"."""
    if one.word == "based" and one.second == "on":
        return PURPOSE
    if not _is_purpose(one.rest, one.first, one.second):
        return None
    if one.first in _OF["circumstance"] | {"if"} and _awaits(one.rest[1:]):
        return ASK
    speaker = next((place for place, word in enumerate(one.rest) if place > 2 and word in SPEAKER), 0)
    return _of_speaker(one.rest[speaker:]) if speaker and one.first == "to" else PURPOSE


def _awaits(rest: Sequence[str]) -> bool:
    """Tell whether a condition is to be told something: "once I know where it goes", "if you tell me the make"."""
    if rest[:1] == ["you"]:
        return _any(rest[1:2], "telling")
    return _any(rest[:1], "speaker") and rest[1:2] == ["know"] and _any(rest[2:5], "question")


def _is_purpose(rest: Sequence[str], first: str, second: str) -> bool:
    if first == "to":
        return second not in WH | (_KNOW - _OF["look"]) or (second == "know" and len(rest) < 4)
    if first in _OF["circumstance"]:
        return second in {"i", "we", "that", "it", "they", "you"} or (
            first == "sinc" and _any(rest, "auxiliary")
        )
    quoted = first == "when" and second == "you" and rest[2:3] in (["say"], ["mention"], ["tell"], ["write"])
    return quoted or first == "if" or first in _OF["reason"] or list(rest[:3]) == ["in", "order", "to"]


def _by_remark(one: _Opening) -> str | None:
    """Know thanks, notes and waiting."""
    rest, first, asked = one.rest, one.first, one.mark == "?"
    if first in _OF["more"] and not asked and _any(rest, "helpful", "taken"):
        return ASK
    if "noted" in rest or (not asked and one.word.endswith(("ing", "ed")) and len(rest) == 1):
        return STATEMENT
    if not asked and (one.done or (one.whole[0] == "no" and len(rest) > 1)):
        return STATEMENT  # "List checked.", "No fee in your case."
    works = one.word.endswith("ing") and first in _OF["working"]
    if not asked and (works or first in _OF["almost"] or rest[-2:] == ["it", "be"]):
        return ASK if first in WH else STATEMENT  # "Adding it up.", "Almost done", "One kettle it is."
    if first in _OF["polite"] and one.second in AUXILIARY and not asked:
        return STATEMENT  # "Your patience is appreciated."
    if first == "whatever" and one.second in {"else", "you"}:
        return ASK
    adds = (
        one.second == "else" if _any([first], "whatever") else first == "ani" and _any([one.second], "more")
    )
    if adds and _after(rest, 1) not in {"be", "will"}:
        return ASK  # "anything else I should know", but not "anything else is up to you"
    if (
        one.word.endswith("ing")
        and not _any([first], "whatever")
        and one.second in _OF["pointer"]
        and _any(rest, "helpful")
    ):
        return STATEMENT  # "Knowing this will help me."
    if first in WH:
        return STATEMENT if one.mark == "!" and not _any(rest, "auxiliary") else ASK
    if first in _OF["preposition"] and one.second in WH:
        return ASK
    if first in _OF["thanks"]:
        return ASK if asked and len(rest) <= 3 else STATEMENT
    had = first == "get" and not asked and one.second != stem("any")
    moment = rest[:2] == ["give", "me"] and len(rest) <= 3 and "minimum" in rest  # "gimme a min"
    wished = first == "have" and not asked and one.second not in _PRONOUN  # "Have a nice day!"
    return STATEMENT if had or moment or wished else None


def _by_order(one: _Opening) -> str | None:
    """Know imperatives."""
    rest, first = one.rest, one.first
    verb = not one.noun and (len(one.word) < 5 or not one.word.endswith(("ed", "ing")))
    if len(rest) == 1 and one.mark == "!" and len(one.whole) > 1:
        return STATEMENT  # "Nice pick!"
    if (first in _OF["order"] and verb) or rest[:2] == ["do", "tell"]:
        return STATEMENT if _any(rest[:4], "waiting") or one.second in SPEAKER else ASK
    if first == "let":
        begins = one.second == "us" and {"start", "begin"} & set(rest[2:4])
        return ASK if begins or {"know", "hear", "have"} & set(rest[1:4]) else STATEMENT
    if first == "feel" or rest[:2] == ["do", "not"]:
        return ASK
    if first in {"allow", "permit"}:
        return ASK if (_KNOW - {"check", "see"}) & set(rest[1:5]) else STATEMENT
    if first in _OF["waiting"] or first in _OF["busy"]:
        return ASK if one.mark == "?" else STATEMENT
    return ASK if first in AUXILIARY else None


def _by_person(one: _Opening) -> str | None:
    """Know what "I", "we" and "you" begin, and what a tag ends."""
    rest, asked = one.rest, one.mark == "?"
    if one.first in SPEAKER:
        return _of_speaker(rest)
    if one.mark != "!":
        tag = len(rest) > 3 and rest[-1] in _OF["pointer"] and (rest[-2] == "not" or rest[-2] in AUXILIARY)
        ends = [word for word in one.whole if word not in _OF["link"]][-1:]
        if len(one.whole) > 1 and one.mark == "." and _any(ends, "mild"):
            return STATEMENT
        if tag or (_any(ends, "tag") and len(one.whole) > 1):
            return ASK
    if one.first != "you":
        return None
    if rest[1:2] == ["want"] and rest[2:4] == ["to", "know"] and not asked:
        return STATEMENT  # "You want to know about the fee."
    if one.second == "ever" or (rest[1:3] == ["have", "not"] and _any(rest[3:5], "untold")):
        return ASK
    if one.second == "be" and rest[2:3] == ["not"] and not asked:
        return STATEMENT
    if one.second == "be" and _any(rest[2:4], "bidden"):
        return ASK
    if one.mark == "." and "so" in one.whole[: -len(rest)]:
        return STATEMENT  # "So you want it in red."
    if one.second == "be" and rest[2:3] in (["welcom"], ["free"]) and _any(rest[4:6], "order", "know"):
        return ASK  # "You are welcome to state other wishes."
    if one.second in {"may", "can", "could"} and _any(rest[2:3], "telling"):
        return ASK  # "You may describe it in your own words."
    asks = one.second in _OF["yours"] or (one.second == "be" and _any(rest[2:4], "yours"))
    announced = "will" in rest[1:3] and not _any(rest, "question")  # "you will get your money back"
    return ASK if asks and one.mark != "!" and not announced else STATEMENT


def _of_speaker(rest: Sequence[str]) -> str:
    """Tell whether what begins with "I" or "we" asks: "I need to know ..."."""
    words = [word for word in rest[1:] if word not in _OF["light"]]
    if not words:
        return FRAGMENT
    if "i" in words[1:4] and {"afraid", stem("sorry")} & set(words[:3]):
        return _of_speaker(words[words.index("i", 1) :])
    if words[:2] in (["understand", "that"], ["understand", "how"]):
        return STATEMENT
    if words[0] in {"be", "appreci"} and _any(words[:4], "polite"):
        return STATEMENT  # "I am sorry to hear that", "We appreciate your patience"
    if words[:3] == ["forgot", "to", "ask"]:
        return ASK
    if "yet" in words and {"not", "no"} & set(words):
        return ASK  # "I do not have the size yet"
    if "be" in words and _any(words[words.index("be") + 1 :][:1], "informed"):
        return ASK
    if words[0] == "be" and _any(words[1:5], "eager"):
        return ASK  # "I am all ears."
    if words[:2] in (["know", stem("nothing")], ["will", "take"]) and (
        _any(words[1:], "whatever") or "all" in words
    ):
        return ASK  # "I know nothing else.", "I'll take all of it."
    questioned = _any(words, "question")
    if "if" in words and questioned and _any(words[words.index("if") :], "recall"):
        return ASK
    if "not" in words and _any(words[words.index("not") :], "question") and _any(words, "untold"):
        return ASK
    if {"without", "unless"} & set(words) and _any(words, "know"):
        return ASK
    if _any(words[:4], "waiting") and not questioned:
        return STATEMENT
    if words[0] in _OF["want"] and not (words[1:2] == ["to"] and not _any(words[2:5], "know")):
        return ASK
    return ASK if words[0] in AUXILIARY and _would_ask(words, questioned) else STATEMENT


def _would_ask(words: Sequence[str], questioned: bool) -> bool:
    """Tell whether what follows "I" asks: "would like to know", "must ask", "cannot tell which"."""
    first, near, nearest = words[0], set(words[1:5]), set(words[1:6])
    if first in {"would", "should"} and words[1:2] in (["need"], ["requir"]) and words[2:3] != ["to"]:
        return True  # "I would need the date to check that."
    if first in {"would", "should"} and _any(near, "wish"):
        return "to" not in near or not _any([_after(words, words.index("to"))], "serve")
    firm = first not in {"can", "could", "would", "should"}
    if firm and (_OF["want"] - _OF["unwanted"]) & set(words[1:3]):
        return True
    if ("to" in near and (_KNOW - _OF["look"]) & nearest) or ("not" in near and _any(nearest, "know")):
        return True
    return questioned and first != "will" and bool((_KNOW - _OF["look"]) & nearest)


def _by_hint(one: _Opening) -> str | None:
    """Know statements that ask all the same: "it would help to know ...", "the size is still missing"."""
    words, first = set(one.rest), one.first
    if {"would", "will", "be"} & words and _any(words, "helpful") and "not" not in words:
        pointed = first in {"it", "that"}
        return ASK if (pointed and _any(words, "heard")) or first not in _PRONOUN else None
    if first in _OF["more"] | _OF["extra"] and one.mark != "?" and "would" in words:
        return ASK  # "Any further detail would let me look for it."
    if one.mark != "?" and ({"not", "have", "be"} <= words and _any(words, "given")):
        return ASK  # "The color has not been stated."
    if {"to", "be"} <= words and {"know", "known"} & words and {"have", "must", "need"} & words:
        return ASK  # "The total has to be known."
    if first == "still" and _any([one.second], "holding") and one.mark != "?":
        return STATEMENT
    lacks = _any(words, "lacking") or {"remain", "to"} <= words  # "two points remain to be settled"
    if lacks and "not" not in words and first not in {"she", "he"} and not _any(words, "speaker"):
        return ASK
    if one.rest[-1] == ":" and _any(words, "counted") and first not in _OF["pointer"] | _OF["preposition"]:
        return ASK  # "Just two things left: ..."
    if one.first == "it" and one.mark != "!":
        needs = {stem("necessary"), "essenti", "vital"} & words and {"know", "learn"} & words
        if needs or stem("depend") in one.rest[:4]:
            return ASK  # "It depends on your status."
    if (
        first in _OF["more"]
        and one.mark != "?"
        and {"may", "can"} & words
        and {"add", "state", "enter", "mention"} & words
    ):
        return ASK  # "Other circumstances may be added below."
    depends = {"know", "tell", "clear", stem("depend"), stem("question")} & words
    return ASK if depends and _any(words, "question") else None


def _by_verb(one: _Opening) -> str | None:
    """Know statements by their verbs, and what is left of questions."""
    rest, asked = one.rest, one.mark == "?"
    if one.first in MARKS and one.second == "or" and rest[2:3] in ([one.first], ["more"]):
        return ASK  # "Acme or Bolt, and which size"
    if not one.mark and _inverts(rest):
        return ASK
    if one.first in _OF["pointer"] or (one.first == ITEM and one.second in _OF["finite"]):
        return STATEMENT
    if one.polite and not (one.first in _OF["topic"] and rest[-1] == ","):
        return STATEMENT if _any(rest, "waiting") else ASK
    if one.second in WH and _any(rest[2:3], "auxiliary"):
        return ASK
    speaker = next((place for place, word in enumerate(rest[:LEAD]) if word in SPEAKER), 0)
    if speaker and one.first in _OF["preposition"]:  # "For the kettle I do not have the size yet"
        return _of_speaker(rest[speaker:])
    if _has_verb(rest):
        return STATEMENT
    if not asked and not _any(rest, "whatever") and _tells(rest):
        return STATEMENT
    if _any(rest, "question") and one.mark != "!":
        return ASK
    if asked:
        return None
    speaker = next((place for place, word in enumerate(rest[:7]) if word in SPEAKER), 0)
    if speaker:
        return _of_speaker(rest[speaker:])
    return STATEMENT if len(rest) > LONG and not {",", "and", "or"} & set(rest) else None


def _inverts(rest: Sequence[str]) -> bool:
    """Tell whether a verb before its pronoun asks after a noun: "for the color do you want red"."""
    verb = next((place for place, word in enumerate(rest) if place and word in AUXILIARY), 0)
    asks = rest[verb + 1 : verb + 2] in (["you"], ["it"], ["that"], ["they"]) and len(rest) > verb + 2
    return bool(verb) and asks and rest[0] not in SPEAKER


def _has_verb(rest: Sequence[str]) -> bool:
    """Tell whether a clause that begins with a noun has a verb of its own, unlike "the price that you would pay"."""
    verb = next((place for place, word in enumerate(rest) if word in AUXILIARY), 0)
    before = [
        word
        for place, word in enumerate(rest[:verb])
        if not (word in _OF["pointer"] and rest[place - 1] in _OF["preposition"])
    ]  # "the fee for that is"
    return bool(verb) and (rest[0] == ITEM or not _any(before, "relative"))


def _tells(rest: Sequence[str]) -> bool:
    """Tell whether a clause that begins with a noun goes on with a verb of telling, before any question word."""
    end = next((place for place, word in enumerate(rest) if word in WH), len(rest))
    bound = _OF["relative"] | AUXILIARY | {"to"}
    return any(rest[place] in _OF["finite"] and rest[place - 1] not in bound for place in range(1, end))


_RULES: tuple[Callable[[_Opening], str | None], ...] = (
    _by_purpose, _by_remark, _by_order, _by_person, _by_hint, _by_verb,
)  # fmt: skip
