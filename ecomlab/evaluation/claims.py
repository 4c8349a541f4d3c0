"""Unfounded claims of an agent: that something is not available, and ids that no tool has shown."""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ecomlab.customer.templates import SENTENCE_BREAK
from ecomlab.envs.base import Environment
from ecomlab.laws.tool_introspection import ids_of, records, taken
from ecomlab.tool import Tool
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
"""Closed list of denials."""
_CUES = re.compile(
    r"\b(?:exists?|gone|lack\w*|none|nothing|nowhere|missing|impossible|match\w*|found)\b", re.IGNORECASE
)
"""Words of sentences that may be other denials."""
SHORT = 3
"""Maximum length of a value that is matched case-sensitively, such as the size M."""
_BREAK = re.compile(r"(?<=[,;])\s|\s(?=(?:and|but|so|while|whereas|because|as)\s)", re.IGNORECASE)
_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|do|does|did|can\w*|could\w*|will|find|see)\b|n['’]t\b", re.IGNORECASE
)
_REPORTS = re.compile(r"\b(?:you|customer) (?:said|say|told|mentioned|wrote|asked)\b", re.IGNORECASE)
_REFERS = re.compile(r"\b(?:it|this|that|one|variants?|options?|sizes?|colou?rs?|version)\b", re.IGNORECASE)


class Claim(NamedTuple):
    """A claim that a wanted product is not available, in an option or at all."""

    want: Want
    option: str | None
    sentence: str


def claims_in(text: str, wants: Sequence[Want], world: World) -> tuple[list[Claim], list[str]]:
    """List the denied wishes of a message, and the sentences that may deny one in other words.

    Questions and quotations of the customer deny nothing. A sentence without a product type is about the only wish, if
    it refers to it ("it", "this size").
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
    """Tell whether a tool has shown the denied product, and it is in stock or in the cart."""
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
    """Split a sentence into parts with verbs of their own: "two of these are left, and that is sold out"."""
    begun = ""
    for part in _BREAK.split(sentence):
        begun += part
        if _VERB.search(part):
            yield begun
            begun = ""
    if begun:
        yield begun


def _is_there(row: int, option: str | None, world: World) -> bool:
    """Tell whether a unit can be bought or is in the cart, in a given option, if any."""
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
    """List the wishes that a sentence names: by product type (singular or plural, in full or by its last word), or by
    the id of a shown product of the type. The last word of a type named in full names no other type: a "Building Set"
    is no "Pajama Set"."""
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
    """Find the option that a sentence names outside the type's name: one of the type's values, else the wanted option
    if the sentence mentions variants. A "Clay Kit" names no clay."""
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
    """Yield the values that a sentence names; short ones match case-sensitively, because "I'm" names no size."""
    for value in values:
        flags = re.NOFLAG if len(value) <= SHORT else re.IGNORECASE
        if re.search(rf"(?<![\w'’]){re.escape(value)}(?!\w)", sentence, flags):
            yield value


Pair = tuple[str, str]
"""A product id and a variant."""


class Unseen(NamedTuple):
    """An id, or a pair of product and variant, that a call used before a tool had shown it."""

    kind: str
    place: str
    thing: str
    words: str
    cause: str = ""


class Shown:
    """Ids that tools had shown, and the customer's words, before the agent's last message."""

    def __init__(self, env: Environment) -> None:
        self._fields = ids_of(env)
        self._tools: dict[str, Tool] = {**env.offered, env.submit.name: env.submit}
        self._takes = {name: taken(tool, env) for name, tool in self._tools.items()}
        self.ids: set[str] = set()
        self.texts: list[str] = []
        """All tool results, as JSON text."""
        self.products: set[str] = set()
        self.pairs: set[Pair] = set()
        self.said = ""
        self._blamed: set[str | Pair] = set()

    def read(self, results: Sequence[str], said: Sequence[str], world: World) -> None:
        """Read the outcome of a turn: tool results as JSON text, and the customer's messages."""
        self.texts += results
        for result in map(json.loads, results):
            for record in records(result):
                self.ids |= {str(record[name]) for name in self._fields & record.keys()}
        self.products |= world.shown
        own = {(product_id, variant) for product_id, variant in world.cart if variant is not None}
        self.pairs |= world.shown_pairs | own
        self.said += "\n" + "\n".join(said).lower()

    def any_of(self, ids: Collection[str]) -> bool:
        return any(one in text for text in self.texts for one in ids)

    def unseen(self, calls: Sequence[tuple[str, Mapping[str, Any]]], world: World) -> Iterator[Unseen]:
        """Yield the unseen ids, and unseen pairs of product and variant, of these calls, each once per episode.

        A variant that only the customer named is a pair with that cause.
        """
        for name, arguments in calls:
            for field, value in self._used(name, arguments, world):
                known = self.products if field == "product_id" else self.ids
                if value not in known and value not in self._blamed:
                    self._blamed.add(value)
                    words = f"{name} was called with {value}, which no tool had shown"
                    yield Unseen("unseen id", value, value, words)
            product_id, variant = arguments.get("product_id"), arguments.get("variant_id")
            if not (isinstance(product_id, str) and isinstance(variant, str) and product_id in self.products):
                continue
            if (pair := (product_id, variant)) not in self.pairs | self._blamed:
                self._blamed.add(pair)
                cause = "said by the customer" if variant.lower() in self.said else ""
                words = f"{name} was called with {product_id} in {variant}, which no tool had shown"
                yield Unseen("unseen pair", product_id, f"{product_id} {variant}", words, cause)

    def _used(self, name: str, arguments: Mapping[str, Any], world: World) -> Iterator[tuple[str, str]]:
        """Yield (field, id) of each id among the arguments: arguments that take one, and texts that are a product
        id."""
        takes = self._takes.get(name, {})
        for argument, value in arguments.items():
            field = takes.get(argument, "")
            for one in value if isinstance(value, list) else [value]:
                if not isinstance(one, str) or not one or field == "variant_id":
                    continue
                if field or (
                    name in self._tools and argument != "query" and world.catalog.row(one) is not None
                ):
                    yield field or "product_id", one
