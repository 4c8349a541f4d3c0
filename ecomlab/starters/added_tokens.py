"""Texts that are single tokens of the laptop policy, in addition to the shop's names."""

import json
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import TYPE_CHECKING, Any

from ecomlab.answers.status import STATUSES
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.starters.compact_renderer import RESULTS, call_text
from ecomlab.starters.compact_results import NEVER, WEEKDAYS, YES, heading
from ecomlab.starters.demonstrations import ANY, ASK
from ecomlab.starters.narrator import ASK_ALL
from ecomlab.values import MONTHS
from ecomlab.world.policy_book.rules import FACTS, RULES, Amount
from ecomlab.world.substitutes import noun

if TYPE_CHECKING:
    from ecomlab.catalog import Catalog

SORTS = ("price", "rating", "delivery")
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
    for ask in (ASK, ASK_ALL):
        yield call_text("ask_user", {**ask, "question": f" {ask['question']}"})
    yield from (
        *RESULTS,
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
