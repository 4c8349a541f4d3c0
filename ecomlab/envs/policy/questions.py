"""The questions that customers ask about an answer: what it comes to for them, and what it would be in another case."""

import re
from collections.abc import Callable, Collection, Mapping
from datetime import date, timedelta
from typing import Any

from ecomlab.customer.ear import WHOLE, Kind
from ecomlab.customer.telling import Asked
from ecomlab.task import Goal
from ecomlab.world.policy_book.book import Book, deciding, section_of
from ecomlab.world.policy_book.cases import answer_of, section_on
from ecomlab.world.policy_book.rules import RULES, WORKED_OUT, Rule, rule_of
from ecomlab.world.state import World

ASKED = "so"
"""Value of a question about the case as it is."""
WORKED = {"day": "ask_day", "cents": "ask_dollars"}
"""Question for what is worked out from an answer, by its unit."""
OTHERWISE = {"days": "ask_if_days", "cents": "ask_if_cost"}
"""Question for the answer in another case, by its unit."""
TOGETHER = "ask_with"
"""Question for what a charge and that of another rule, which its value names, come to."""


def further_questions(rule: Rule, book: Book, worked: bool) -> list[str]:
    """List the questions that may be asked beside one on a rule; `worked`: what is worked out is the answer itself."""
    found = [WORKED[rule.worked.unit]] if rule.worked and not worked else []
    found += [OTHERWISE[rule.unit]] if rule.unit in OTHERWISE else []
    return found + [TOGETHER] * any(section_of(book, name) is not None for name in rule.together)


def other_case(value: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of the other case that a question names."""
    fact, _, other = value.partition(" ")
    return {**facts, fact: other}


def _value(slot: str) -> Callable[[Goal, World], Any]:
    def value(goal: Goal, world: World) -> Any:
        book, facts, today = world.given["policies"], goal.of(), date.fromisoformat(world.given["today"])
        asked, question = goal.asks[slot], goal["question"]
        section = section_on(book, facts, world.catalog)
        if slot in OTHERWISE.values():
            return deciding(section, book, other_case(asked, facts))["then"]
        if slot == TOGETHER:
            also = section_on(book, {**facts, "question": asked}, world.catalog)
            return sum(deciding(one, book, facts)["then"] for one in (section, also))
        return worked_out(question, deciding(section, book, facts)["then"], facts, today)

    return value


def _beside(slot: str) -> Callable[[Goal, World], Collection[Any]]:
    """Make what finds the customer's own answer, and from what another is worked out."""

    def beside(goal: Goal, world: World) -> Collection[Any]:
        book, facts = world.given["policies"], goal.of()
        if slot in OTHERWISE.values():
            return [deciding(section_on(book, facts, world.catalog), book, facts)["then"], facts.get("age")]
        if slot == TOGETHER:  # each of the two charges
            sections = (
                section_on(book, {**facts, "question": name}, world.catalog)
                for name in (facts["question"], goal.asks[slot])
            )
            return [deciding(section, book, facts)["then"] for section in sections]
        if slot == "ask_dollars":
            return [facts["total"]]
        return [(date.fromisoformat(world.given["today"]) - timedelta(days=facts["age"])).isoformat()]

    return beside


def worked_out(question: str, then: Any, facts: Mapping[str, Any], today: date) -> Any:
    """Work out what an answer comes to, in cents or as a day; None where there is no such day."""
    found = answer_of(rule_of(question) + WORKED_OUT, then, facts, today)
    return found.isoformat() if isinstance(found, date) else found


def unit_of(question: str) -> str:
    """Return the unit of what may be worked out from an answer; "" for nothing."""
    worked = RULES[rule_of(question)].worked
    return worked.unit if worked else ""


_CASES = {
    "none": r"(?:\bnot|n't|\bnon|\bno|\bwithout)\W+(?:an? )?member", "card": r"\bcredit card",
    "own": r"(?:\bnot|n't|\bno)\W+(?:an? |be )*gift", "web": r"\b(?:website|web|online)\b",
}  # fmt: skip
"""Patterns of facts that are said in other words than their name."""


def named_case(value: str) -> str:
    """Write the pattern of words that name the other case."""
    fact = value.partition(" ")[2]
    words = _CASES.get(fact, rf"\b{re.escape(fact.lower())}")
    return rf"\bin that case\b|{words}"


def _both(value: str) -> str:
    """Write the pattern of words that name a charge together with another one, of this rule."""
    return rf"{WHOLE}|\b(?:with|adding|plus)\b[^,.;]*\b{re.escape(RULES[value].title.split()[0].lower())}"


def _asked(slot: str, kind: Kind, answer: str, marks: str) -> Asked:
    cases = {**dict.fromkeys(OTHERWISE.values(), named_case), TOGETHER: _both}
    return Asked(slot, kind, _value(slot), answer, marks, beside=_beside(slot), case=cases.get(slot))


QUESTIONS = (
    _asked("ask_day", "day", "The last day is {}.", r"\blast day\b|\buntil\b|\bby\b|\blatest\b|\bdeadline\b"),
    _asked(
        "ask_dollars",
        "money",
        "In dollars that's {}.",
        r"\bdollars\b|\bthat's\b|\bcomes? to\b|\bamounts? to\b",
    ),
    _asked(
        "ask_if_days", "days", "In that case it would be {}.", r"\bin that case\b|\bwould\b|\binstead\b|'d\b"
    ),
    _asked(TOGETHER, "money", "Together that's {}.", WHOLE),
    _asked(
        "ask_if_cost", "money", "In that case it would be {}.", r"\bin that case\b|\bwould\b|\binstead\b|'d\b"
    ),
)
