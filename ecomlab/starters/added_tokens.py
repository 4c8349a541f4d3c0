"""Texts that are single tokens of the laptop policy, in addition to the shop's names."""

import json
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import TYPE_CHECKING, Any

from ecomlab.answers.status import STATUSES
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.starters.compact_renderer import RESULTS, call_text
from ecomlab.starters.compact_results import MORE, NEVER, OTHERS, YES, heading
from ecomlab.starters.demonstrations import ANY
from ecomlab.starters.questions import all_questions
from ecomlab.values import MONTHS, WEEKDAYS
from ecomlab.world.policy_book.rules import FACTS, RULES, Amount
from ecomlab.world.substitutes import noun

if TYPE_CHECKING:
    from ecomlab.catalog import Catalog

SORTS = ("price", "rating", "delivery")
NOTICES = (
    "Stock has changed: some",
    " have sold out.",
    "Two tool calls are left.",
    "Two messages are left.",
)
"""Notices of the shop."""
NEWS = (
    " I'm sorry, the",
    " I'm sorry, there",
    " is sold out. What would you like instead?",
    " left. What would you like instead?",
)
"""Words in which a demonstrator tells the customer what has sold out."""
NUMBERS = 100
"""Numbers below this are single tokens."""


def tools_of(environments: Sequence[str]) -> list[dict[str, Any]]:
    """List the schemas of all tools of these environments, including `submit` and `ask_user`."""
    from ecomlab.episode.episode import ask_user

    tools = [ask_user]
    for env in map(ENVIRONMENTS.__getitem__, environments):
        tools += [*env.tools, env.submit]
    return list({json.dumps(t.schema, sort_keys=True): t.schema for t in tools}.values())


def whole_texts(catalog: "Catalog") -> list[str]:
    """List every text that becomes a single token."""
    return list(dict.fromkeys(_texts(catalog)))


def _texts(catalog: "Catalog") -> Iterator[str]:
    yield from (call_text("ask_user", {"question": f" {question}"}) for question in all_questions())
    yield from (
        *RESULTS,
        *NOTICES,
        *NEWS,
        OTHERS,
        MORE,
        f" {ANY}",
        YES,
        NEVER,
        '{"',
        " returned",
        " declined",
        " and",
        " or",
        " at least",
        " below",
    )
    yield from (f" {word}" for word in (*STATUSES, *MONTHS, *WEEKDAYS))
    yield from (f" {number}" for number in range(NUMBERS))
    yield from (f" {json.dumps(list(order))}" for order in permutations(SORTS))
    yield f" {json.dumps(SORTS[:1])}"
    yield from (f" {', then '.join(order)}" for order in permutations(SORTS))
    yield from map(heading, RULES)
    for name, fact in FACTS.items():
        yield f" {name}"
        yield from () if isinstance(fact, Amount) else (f" {value}" for value in fact.words)
    yield " replacement my money back"
    for env in ENVIRONMENTS.values():
        yield from (f" {name}" for name in env.phrases.slots)
    for attribute in sorted({a.name for kind in catalog.types for a in (kind.option, *kind.attributes)}):
        yield f" {attribute}"
        yield f" {noun(attribute)}"
        yield f'{attribute}": "'
