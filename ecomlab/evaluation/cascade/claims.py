"""Claims that something does not exist or cannot be had, though a tool has shown it and it can."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ecomlab.customer.templates import SENTENCE_BREAK
from ecomlab.world.cart import Want
from ecomlab.world.state import World

_HAD = r"(?:available|in stock|stocked|sold(?! out)|carried|offered)\b"
_NOT = r"(?:n['’]t|not| never)"
_FORMS = (
    r"(?<!not )(?<!n['’]t )\b(?:sold out|out of stock|unavailable|discontinued)\b",
    rf"\b(?:is|are|was|were|be|it['’]s) (?:currently )?(?:not|no longer) (?:currently )?{_HAD}",
    rf"\b(?:is|are|was|were) ?{_NOT} (?:currently |longer )?{_HAD}",
    rf"\b(?:do|does|did) ?{_NOT} (?:exist|come in|have|carry|sell|stock|offer)\b",
    r"\b(?:there (?:is|are|was|were)|we have|i (?:see|found|find)|has|have) no\b",
    r"\bno such\b",
    r"\bno (?:[\w-]+ ){1,4}(?:is|are) (?:available|in stock|left)\b",
    rf"\b(?:can(?:no|['’])t|can not|could ?{_NOT}|unable to|did ?{_NOT}) (?:find|get|offer|locate)\b",
)
_DENIALS = re.compile("|".join(_FORMS), re.IGNORECASE)
"""The closed list of forms in which something is denied."""
_CUES = re.compile(
    r"\b(?:exists?|gone|lack\w*|none|nothing|nowhere|missing|impossible|match\w*|found)\b", re.IGNORECASE
)
"""Words of sentences that may deny something in a form that is not listed."""
SHORT = 3
"""Letters of a value up to which its case tells it from a part of another word."""
_BREAK = re.compile(r"(?<=[,;])\s|\s(?=(?:and|but|so|while|whereas|because|as)\s)", re.IGNORECASE)
_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|do|does|did|can\w*|could\w*|will|find|see)\b|n['’]t\b", re.IGNORECASE
)
_REPORTS = re.compile(r"\b(?:you|customer) (?:said|say|told|mentioned|wrote|asked)\b", re.IGNORECASE)
_REFERS = re.compile(r"\b(?:it|this|that|one|variants?|options?|sizes?|colou?rs?|version)\b", re.IGNORECASE)


class Claim(NamedTuple):
    """A wish that is said not to be had, in an option or altogether, and the sentence."""

    want: Want
    option: str | None
    sentence: str


def claims_in(text: str, wants: Sequence[Want], world: World) -> tuple[list[Claim], list[str]]:
    """List the wishes that a message says cannot be had, and the sentences that may say so in words of their own.

    Questions say nothing, nor does what the customer is said to have said. A sentence that names no type is about the
    only wish, where there is one and it refers to it.
    """
    claims, doubtful = list[Claim](), list[str]()
    sentences = [
        one
        for one in SENTENCE_BREAK.split(text)
        if not one.rstrip(" )\"'").endswith("?") and not _REPORTS.search(one)
    ]
    for sentence in (clause for one in sentences for clause in _clauses(one)):
        about = _named_wants(wants, sentence, world)
        if not about and len(wants) == 1 and _REFERS.search(sentence):
            about = list(wants)
        if not about:
            continue
        if _DENIALS.search(sentence):
            claims += [Claim(want, _option_in(sentence, want, world), sentence.strip()) for want in about]
        elif _CUES.search(sentence) and re.search(
            r"\b(?:not?|none|nothing|never|un\w+)\b|n['’]t\b", sentence.lower()
        ):
            doubtful.append(sentence.strip())
    return claims, doubtful


def is_false(claim: Claim, world: World) -> bool:
    """Tell whether a tool has shown what a claim denies, and it can be had or lies in the cart."""
    want, option = claim.want, claim.option
    for product_id in world.shown:
        row = world.row(product_id)
        if not world.catalog.satisfies(row, want.constraints):
            continue
        if option is None and _is_there(row, want.option, world) and _is_there(row, None, world):
            return True
        if option is not None and (product_id, option) in world.shown_pairs and _is_there(row, option, world):
            return True
    return False


def _clauses(sentence: str) -> Iterator[str]:
    """Split a sentence where each part says something of its own: "two of these are left, and that is sold out"."""
    begun = ""
    for part in _BREAK.split(sentence):
        begun += part
        if _VERB.search(part):
            yield begun
            begun = ""
    if begun:
        yield begun


def _is_there(row: int, option: str | None, world: World) -> bool:
    """Tell whether a unit can be bought or is in the cart, in this option if one is given."""
    if option is not None and option not in world.options(row):
        return False
    product_id = world.catalog.ids[row]
    held = sum(
        units
        for (one, variant), units in world.cart.items()
        if one == product_id and option in (None, variant)
    )
    return world.stock(row, option) + held > 0


def _named_wants(wants: Sequence[Want], sentence: str, world: World) -> list[Want]:
    """List the wishes whose product type a sentence names, in the singular or plural, in full or by its last word, or a
    product of it that was shown. The last word of a type that is named in full names no other: a "Building Set" is no
    "Pajama Set"."""
    catalog, lowered = world.catalog, sentence.lower()
    names = {
        want.type: (want.type.lower(), catalog.types[catalog.type_codes[want.type]].plural.lower())
        for want in wants
    }
    full = {kind for kind, both in names.items() if any(_has(name, lowered) for name in both)}
    taken = {name.split()[-1] for kind in full for name in names[kind]}
    last = {
        kind
        for kind, both in names.items()
        if any(_has(word, lowered) for word in {name.split()[-1] for name in both} - taken)
    }
    rows = (world.row(product_id) for product_id in world.shown if product_id.lower() in lowered)
    shown = {catalog.type_of(row).name for row in rows}
    return [want for want in wants if want.type in full | last | shown]


def _has(name: str, sentence: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", sentence) is not None


def _option_in(sentence: str, want: Want, world: World) -> str | None:
    """Find the option that a sentence names beside the type: one of the type's values, else the wanted one if it speaks
    of variants. A "Bird Feeder" says nothing of the birds that it is for."""
    kind = world.catalog.types[world.catalog.type_codes[want.type]]
    names = "|".join(re.escape(name) for name in (kind.plural, kind.name))
    rest = re.sub(rf"\b(?:{names})\b", " ", sentence, flags=re.IGNORECASE)
    named = sorted(_named(kind.option.values, rest), key=len)
    if named:
        return named[-1]
    speaks = re.search(
        rf"\b(?:variants?|options?|{re.escape(kind.option.name.replace('_', ' '))}s?)\b", rest.lower()
    )
    return want.option if speaks else None


def _named(values: Sequence[str], sentence: str) -> Iterator[str]:
    """Yield the values that a sentence names; short ones as they are written, for "I'm" names no size."""
    for value in values:
        flags = re.NOFLAG if len(value) <= SHORT else re.IGNORECASE
        if re.search(rf"(?<![\w'’]){re.escape(value)}(?!\w)", sentence, flags):
            yield value
