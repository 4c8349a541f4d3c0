"""What a clause of a message does: the first rule that knows tells."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ecomlab.customer.word_classes import AUXILIARY, KNOW, OF, PRONOUN, SPEAKER, WH, any_of
from ecomlab.customer.words import DAYS, ITEM, MARKS, VALUE, Token, stem

ASK, FRAGMENT, STATEMENT, PURPOSE = "ask", "fragment", "statement", "purpose"
"""What a clause does: it asks; it has no verb of its own, and does what its neighbours do; it tells; it says what
for."""
LEAD = 5
"""Words within which "I" may stand after what it speaks of."""
_DONE = frozenset({"checked", "confirmed", "sorted", "updated", "recorded", "settled", "fixed"})
"""Participles by which a speaker reports, as they are written: "check the price" asks."""
LONG = 8
"""Most words of a fragment that asks."""


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
    done_to: bool
    """It ends with what has been done to a thing."""
    whole: list[str]
    """The clause with its interjections."""


def kind_of(tokens: Sequence[Token], mark: str, polite: bool) -> str:
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
    if head.stem == "what" and noun and (mark == "!" or (mark == "." and not any_of(rest, "auxiliary"))):
        return STATEMENT  # "What a day."
    done = place < len(tokens) - 1 and any(
        one.word in _DONE and before.stem != "you" for before, one in pairwise(tokens[place:])
    )
    done_to = tokens[-1].word.endswith("ed") and any_of([tokens[-1].stem], "handled")
    opening = _Opening(
        rest, rest[0], after_of(rest, 0), head.word, head.noun, mark, polite, done, done_to, words
    )
    for rule in _RULES:
        kind = rule(opening)
        if kind is not None:
            return kind
    return FRAGMENT


def after_of(stems: Sequence[str], place: int) -> str:
    """The stem after this place; "" at the end."""
    return stems[place + 1] if place + 1 < len(stems) else ""


def concludes(words: Sequence[str]) -> bool:
    """Tell whether "so" at the beginning is no mere interjection."""
    return _aims(words) or list(words[:2]) == ["so", "you"]


def _aims(words: Sequence[str]) -> bool:
    """Tell whether words begin with what a question is for: "so I can find it", "so we do not miss it"."""
    if list(words[:1]) != ["so"] or after_of(words, 0) not in SPEAKER:
        return False
    verb, denied = after_of(words, 1), after_of(words, 2) == "not"
    if verb in OF["aiming"]:
        return not denied
    return verb in {"do", "will"} and denied and after_of(words, 3) != "know"


def _is_interjection(words: Sequence[str], place: int) -> bool:
    """Tell whether a word only stands before what is said: "so", "well", "sorry" before a question."""
    word, after = words[place], after_of(words, place)
    if word in OF["thanks"] | OF["about"]:
        return after in WH or (after in AUXILIARY and word in OF["thanks"])
    framed = not after or after in WH or after in MARKS or after in OF["framed"]
    return word in OF["interjection"] and not (word in OF["framing"] and framed)


def _by_purpose(one: _Opening) -> str | None:
    """Know what a question is for: "To find it, ...", "so that ...", "if you like"."""
    if one.word == "based" and one.second == "on":
        return PURPOSE
    if not _is_purpose(one.rest, one.first, one.second):
        return None
    if one.first in OF["circumstance"] | {"if"} and _awaits(one.rest[1:]):
        return ASK
    speaker = next((place for place, word in enumerate(one.rest) if place > 2 and word in SPEAKER), 0)
    return _of_speaker(one.rest[speaker:]) if speaker and one.first == "to" else PURPOSE


def _awaits(rest: Sequence[str]) -> bool:
    """Tell whether a condition is to be told something: "once I know where it goes", "if you tell me the make"."""
    if rest[:1] == ["you"]:
        return any_of(rest[1:2], "telling")
    return any_of(rest[:1], "speaker") and rest[1:2] == ["know"] and any_of(rest[2:5], "question")


def _is_purpose(rest: Sequence[str], first: str, second: str) -> bool:
    if first == "to":
        return second not in WH | (KNOW - OF["look"]) or (second == "know" and len(rest) < 4)
    if first in OF["circumstance"]:
        return second in {"i", "we", "that", "it", "they", "you"} or (
            first == "sinc" and any_of(rest, "auxiliary")
        )
    quoted = first == "when" and second == "you" and rest[2:3] in (["say"], ["mention"], ["tell"], ["write"])
    return quoted or first == "if" or first in OF["reason"] or list(rest[:3]) == ["in", "order", "to"]


def _by_remark(one: _Opening) -> str | None:
    """Know thanks, notes and waiting."""
    rest, first, asked = one.rest, one.first, one.mark == "?"
    if first in OF["more"] and not asked and any_of(rest, "helpful", "taken"):
        return ASK
    if "noted" in rest or (not asked and one.word.endswith(("ing", "ed")) and len(rest) == 1):
        return STATEMENT
    if not asked and (one.done or (one.whole[0] == "no" and len(rest) > 1)):
        return STATEMENT  # "List checked.", "No fee in your case."
    works = one.word.endswith("ing") and first in OF["working"]
    if not asked and (works or first in OF["almost"] or rest[-2:] == ["it", "be"]):
        return ASK if first in WH else STATEMENT  # "Adding it up.", "Almost done", "One kettle it is."
    if first in OF["polite"] and one.second in AUXILIARY and not asked:
        return STATEMENT  # "Your patience is appreciated."
    if first == "whatever" and one.second in {"else", "you"}:
        return ASK
    adds = (
        one.second == "else"
        if any_of([first], "whatever")
        else first == "ani" and any_of([one.second], "more")
    )
    if adds and after_of(rest, 1) not in {"be", "will"}:
        return ASK  # "anything else I should know", but not "anything else is up to you"
    if (
        one.word.endswith("ing")
        and not any_of([first], "whatever")
        and one.second in OF["pointer"]
        and any_of(rest, "helpful")
    ):
        return STATEMENT  # "Knowing this will help me."
    if first in WH:
        return STATEMENT if one.mark == "!" and not any_of(rest, "auxiliary") else ASK
    if first in OF["preposition"] and one.second in WH:
        return ASK
    if not asked and (rest[:2] == ["go", "to"] or (first == ITEM and len(rest) == 2 and one.done_to)):
        return STATEMENT  # "Going to add it up.", "Kettle added."
    if first in OF["thanks"]:
        return ASK if asked and len(rest) <= 3 else STATEMENT
    for_me = rest[-2:] in (["for", "me"], ["for", "us"])  # "got some more info for me"
    had = first == "get" and not asked and one.second != stem("any") and not for_me
    moment = rest[:2] == ["give", "me"] and len(rest) <= 3 and "minimum" in rest  # "gimme a min"
    wished = first == "have" and not asked and one.second not in PRONOUN  # "Have a nice day!"
    return STATEMENT if had or moment or wished else None


def _by_order(one: _Opening) -> str | None:
    """Know imperatives."""
    rest, first = one.rest, one.first
    verb = not one.noun and (len(one.word) < 5 or not one.word.endswith(("ed", "ing")))
    alone = len(rest) == 1 if one.mark == "!" else len(rest) == 2 and rest[1] == ","
    if alone and len(one.whole) > len(rest):
        return STATEMENT  # "Nice pick!", "Great picks, I have found some."
    if (first in OF["order"] and verb) or rest[:2] == ["do", "tell"]:
        return STATEMENT if any_of(rest[:4], "waiting") or one.second in SPEAKER else ASK
    if one.mark != "?" and (first == "note" or (first == "be" and any_of([one.second], "told"))):
        return STATEMENT  # "Please note that ...", "Please be advised that ..."
    if first == "let":
        begins = one.second == "us" and {"start", "begin"} & set(rest[2:4])
        return ASK if begins or {"know", "hear", "have"} & set(rest[1:4]) else STATEMENT
    if first == "feel" or rest[:2] == ["do", "not"]:
        return ASK
    if first in {"allow", "permit"}:
        return ASK if (KNOW - {"check", "see"}) & set(rest[1:5]) else STATEMENT
    if first in OF["waiting"] or first in OF["busy"]:
        return ASK if one.mark == "?" else STATEMENT
    if one.mark != "?" and first == "will" and one.second in OF["working"]:
        return STATEMENT  # "gonna add up the prices"
    return ASK if first in AUXILIARY else None


def _by_person(one: _Opening) -> str | None:
    """Know what "I", "we" and "you" begin, and what a tag ends."""
    rest, asked = one.rest, one.mark == "?"
    if one.first in SPEAKER:
        return _of_speaker(rest)
    if one.mark != "!":
        tag = len(rest) > 3 and rest[-1] in OF["pointer"] and (rest[-2] == "not" or rest[-2] in AUXILIARY)
        ends = [word for word in one.whole if word not in OF["link"]][-1:]
        if len(one.whole) > 1 and one.mark == "." and any_of(ends, "mild"):
            return STATEMENT
        if tag or (any_of(ends, "tag") and len(one.whole) > 1):
            return ASK
    if one.first != "you":
        return None
    if "better" in rest[1:4] and any_of(rest[2:5], "telling"):
        return ASK  # "You'd better tell me the size!"
    if rest[1:2] == ["want"] and rest[2:4] == ["to", "know"] and not asked:
        return STATEMENT  # "You want to know about the fee."
    if one.second == "ever" or (rest[1:3] == ["have", "not"] and any_of(rest[3:5], "untold")):
        return ASK
    if one.second == "be" and rest[2:3] == ["not"] and not asked:
        return STATEMENT
    if one.second == "be" and any_of(rest[2:4], "bidden"):
        return ASK
    if one.mark == "." and "so" in one.whole[: -len(rest)]:
        return STATEMENT  # "So you want it in red."
    if one.second == "be" and rest[2:3] in (["welcom"], ["free"]) and any_of(rest[4:6], "order", "know"):
        return ASK  # "You are welcome to state other wishes."
    if one.second in {"may", "can", "could"} and any_of(rest[2:3], "telling"):
        return ASK  # "You may describe it in your own words."
    asks = one.second in OF["yours"] or (one.second == "be" and any_of(rest[2:4], "yours"))
    announced = "will" in rest[1:3] and not any_of(rest, "question")  # "you will get your money back"
    return ASK if asks and one.mark != "!" and not announced else STATEMENT


def _of_speaker(rest: Sequence[str]) -> str:
    """Tell whether what begins with "I" or "we" asks: "I need to know ..."."""
    words = [word for word in rest[1:] if word not in OF["light"]]
    if not words:
        return FRAGMENT
    if "i" in words[1:4] and {"afraid", "regret", stem("sorry")} & set(words[:3]):
        return _of_speaker(words[words.index("i", 1) :])
    if words[:2] in (["understand", "that"], ["understand", "how"]):
        return STATEMENT
    if words[:2] == ["do", "not"] and words[3:4] == ["to"] and any_of(words[2:3], "wish"):
        return STATEMENT  # "I do not want to show you what is too dear."
    if words == ["ask"]:
        return STATEMENT  # "I only ask because ..."
    if words[0] in {"be", "appreci", "beg"} and any_of(words[:4], "polite"):
        return STATEMENT  # "I am sorry to hear that", "We appreciate your patience"
    if words[:3] == ["forgot", "to", "ask"]:
        return ASK
    if "yet" in words and {"not", "no"} & set(words):
        return ASK  # "I do not have the size yet"
    if "be" in words and any_of(words[words.index("be") + 1 :][:1], "informed"):
        return ASK
    if words[0] == "be" and any_of(words[1:5], "eager"):
        return ASK  # "I am all ears."
    if words[:2] in (["know", stem("nothing")], ["will", "take"]) and (
        any_of(words[1:], "whatever") or "all" in words
    ):
        return ASK  # "I know nothing else.", "I'll take all of it."
    questioned = any_of(words, "question")
    if "if" in words and questioned and any_of(words[words.index("if") :], "recall"):
        return ASK
    if "not" in words and any_of(words[words.index("not") :], "question") and any_of(words, "untold"):
        return ASK
    if questioned and stem("unable") in words:
        return ASK  # "I am unable to tell which order it is."
    if {"without", "unless"} & set(words) and any_of(words, "know"):
        return ASK
    if any_of(words[:4], "waiting") and not questioned:
        return STATEMENT
    if words[0] in OF["want"] and not (words[1:2] == ["to"] and not any_of(words[2:5], "know")):
        return ASK
    return ASK if words[0] in AUXILIARY and _would_ask(words, questioned) else STATEMENT


def _would_ask(words: Sequence[str], questioned: bool) -> bool:
    """Tell whether what follows "I" asks: "would like to know", "must ask", "cannot tell which"."""
    first, near, nearest = words[0], set(words[1:5]), set(words[1:6])
    if first in {"would", "should"} and words[1:2] in (["need"], ["requir"]) and words[2:3] != ["to"]:
        return True  # "I would need the date to check that."
    if first in {"would", "should"} and any_of(near, "wish"):
        return "to" not in near or not any_of([after_of(words, words.index("to"))], "serve")
    firm = first not in {"can", "could", "would", "should"}
    if firm and (OF["want"] - OF["unwanted"]) & set(words[1:3]):
        return True
    if ("to" in near and (KNOW - OF["look"]) & nearest) or ("not" in near and any_of(nearest, "know")):
        return True
    return questioned and first != "will" and bool((KNOW - OF["look"]) & nearest)


def _by_hint(one: _Opening) -> str | None:
    """Know statements that ask all the same: "it would help to know ...", "the size is still missing"."""
    words, first = set(one.rest), one.first
    if {"would", "will", "be"} & words and any_of(words, "helpful") and "not" not in words:
        pointed = first in {"it", "that"}
        return ASK if (pointed and any_of(words, "heard")) or first not in PRONOUN else None
    if first in OF["more"] | OF["extra"] and one.mark != "?" and "would" in words:
        return ASK  # "Any further detail would let me look for it."
    if one.mark != "?" and ({"not", "be"} <= words and {"have", "yet"} & words and any_of(words, "given")):
        return ASK  # "The color has not been stated."
    if {"to", "be"} <= words and {"know", "known"} & words and {"have", "must", "need"} & words:
        return ASK  # "The total has to be known."
    if first == "still" and any_of([one.second], "holding") and one.mark != "?":
        return STATEMENT
    lacks = any_of(words, "lacking") or {"remain", "to"} <= words  # "two points remain to be settled"
    if lacks and "not" not in words and first not in {"she", "he"} and not any_of(words, "speaker"):
        return ASK
    if one.rest[-1] == ":" and any_of(words, "counted") and first not in OF["pointer"] | OF["preposition"]:
        return ASK  # "Just two things left: ..."
    if one.first == "it" and one.mark != "!":
        needs = {stem("necessary"), "essenti", "vital"} & words and {"know", "learn"} & words
        if needs or stem("depend") in one.rest[:4]:
            return ASK  # "It depends on your status."
    if (
        first in OF["more"]
        and one.mark != "?"
        and {"may", "can"} & words
        and {"add", "state", "enter", "mention"} & words
    ):
        return ASK  # "Other circumstances may be added below."
    depends = {"know", "tell", "clear", stem("depend"), stem("question")} & words or {"come", "down"} <= words
    return ASK if depends and (any_of(words, "question") or stem("whether") in words) else None


def _by_verb(one: _Opening) -> str | None:
    """Know statements by their verbs, and what is left of questions."""
    rest, asked = one.rest, one.mark == "?"
    if one.first in MARKS and one.second == "or" and rest[2:3] in ([one.first], ["more"]):
        return ASK  # "Acme or Bolt, and which size"
    if not one.mark and (_inverts(rest) or ("or" in rest and rest.count(VALUE) > 1)):
        return ASK  # "style was Vintage or Durable"
    if one.first == stem("everything") and not asked and "be" in rest[2:]:
        return STATEMENT  # "Everything you asked for is in the cart."
    if one.first in OF["pointer"] or (one.first == ITEM and one.second in OF["finite"]):
        return STATEMENT
    if one.polite and not (one.first in OF["topic"] and rest[-1] == ","):
        return STATEMENT if any_of(rest, "waiting") else ASK
    if one.second in WH and any_of(rest[2:3], "auxiliary"):
        return ASK
    speaker = next((place for place, word in enumerate(rest[:LEAD]) if word in SPEAKER), 0)
    if speaker and one.first in OF["preposition"]:  # "For the kettle I do not have the size yet"
        return _of_speaker(rest[speaker:])
    if _has_verb(rest):
        return STATEMENT
    any_is = one.first == stem("any")  # "Any special look or style for it"
    if not asked and not any_is and not any_of(rest, "whatever") and _tells(rest):
        return STATEMENT
    if any_of(rest, "question") and one.mark != "!":
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
        if not (word in OF["pointer"] and rest[place - 1] in OF["preposition"])
    ]  # "the fee for that is"
    return bool(verb) and (rest[0] == ITEM or not any_of(before, "relative"))


def _tells(rest: Sequence[str]) -> bool:
    """Tell whether a clause that begins with a noun goes on with a verb of telling, before any question word."""
    end = next((place for place, word in enumerate(rest) if word in WH), len(rest))
    bound = OF["relative"] | AUXILIARY | {"to"}
    return any(rest[place] in OF["finite"] and rest[place - 1] not in bound for place in range(1, end))


_RULES: tuple[Callable[[_Opening], str | None], ...] = (
    _by_purpose, _by_remark, _by_order, _by_person, _by_hint, _by_verb,
)  # fmt: skip
