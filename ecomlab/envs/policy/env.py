"""POLICY: answer a customer's question from the store's policy book, and name the clause that decides it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ecomlab.answers.amounts import read_answer, read_clause_id
from ecomlab.catalog import Shop
from ecomlab.customer.goals import withhold
from ecomlab.customer.templates import Phrases, Template
from ecomlab.difficulty import Difficulty
from ecomlab.envs.base import Environment
from ecomlab.envs.policy.audit import PolicyAudit
from ecomlab.envs.policy.player import PolicyPlayer
from ecomlab.reward import Verdict
from ecomlab.seeding import pick
from ecomlab.task import ACT, Goal, GoalChange, Problem, TaskKey
from ecomlab.tool import tool
from ecomlab.world.policy_book.book import decide, draw_book
from ecomlab.world.policy_book.cases import draw_facts, draw_mentioned, draw_question, draw_twist, section_on
from ecomlab.world.policy_book.rules import RULES
from ecomlab.world.state import World
from ecomlab.world.tools.catalog import catalog_get_product, catalog_search, datetime_now
from ecomlab.world.tools.policy import policy_search

WEIGHTS = {"answer": 0.5, "clause": 0.3, "section": 0.2}
"""Shares of the answer, its clause, and a clause of the right section. A number counts only beside a clause of the
right section, "yes" or a name only beside the right clause, so that a constant answer earns nothing."""

QUESTION = (
    "your question",
    "the question",
    "would you like to know",
    "do you want to know",
    "can I look up for you",
)
"""Words of an agent's question about the customer's question."""


@tool
def submit(
    world: World,
    answer: Annotated[
        str | None,
        Field(description='The answer: a number with its unit, such as "15 days", "yes" or "no", or a name.'),
    ] = None,
    clause: Annotated[
        str | None, Field(description='The id of the clause that decides, such as "C-123".')
    ] = None,
) -> dict[str, Any]:
    """Hand in the answer and the clause of the policy book that decides it; the conversation ends."""
    return {"submitted": True}


class Policy(Environment):
    id, version = "POLICY", 2
    brief = (
        "Answer the customer's question from the store's policy book, for the case as the customer last told it. Hand "
        "in the answer, a number with its unit, yes or no, or a name, and the id of the one clause that decides it."
    )
    tools = (policy_search, catalog_search, catalog_get_product, datetime_now)
    moments = ("policy_search", ACT)
    submit, player, auditor = submit, PolicyPlayer, PolicyAudit
    phrases = Phrases.load(
        Path(__file__).with_name("phrases.toml"),
        question=Template(sentences={name: rule.questions for name, rule in RULES.items()}, asked=QUESTION),
    )

    def draw(self, key: TaskKey, axes: Difficulty, shop: Shop) -> Problem:
        book, random, catalog = draw_book(key, axes, shop), key.rng("policy"), shop.catalog
        section = draw_question(book, random)
        mentioned = draw_mentioned(section, random)
        facts = draw_facts(section, book["precedence"], catalog, random, mentioned)
        product = {"type": facts.pop("type")} if "type" in facts else {}
        switching = random.random() < axes.p_switch
        twist = draw_twist(section["rule"], product | facts, book, catalog, random) if switching else {}
        if twist and "question" not in twist:
            # Drawn from the end backwards, so that no clause decides more often in the end.
            facts, twist = facts | twist, {fact: facts[fact] for fact in twist}
        question = {"question": section["rule"]}
        told = facts | question if random.random() < 0.5 else question | facts
        goal = withhold(Goal.one(product | told), axes, random, ("question",))
        need, changes = PolicyPlayer.need(goal), []
        if twist:
            again = int("question" in twist)  # a changed fact needs no other section
            slots = {"twist": "question" if again else "case", **twist}
            moment = pick(random, self.moments)
            changes.append(GoalChange(moment=moment, turns=again, calls=again, slots=slots))
        return Problem(goal, {"policies": book}, need, changes, "default" if product else "without")

    def verify(self, goal: Goal, world: World, answer: Mapping[str, Any], first: Goal) -> Verdict:
        """Judge the answer together with its clause: a number beside the wrong clause is right by luck, and a "yes"
        without a clause would be right every other time."""
        book, facts = world.given["policies"], goal.of()
        rule, section = RULES[goal["question"]], section_on(book, facts, world.catalog)
        clause = section["clauses"][decide(section, book["precedence"], facts)]
        named = read_clause_id(answer.get("clause"))
        found = read_answer(answer.get("answer"), rule.unit, rule.values)
        by_clause = named == clause["id"]
        in_section = named in [c["id"] for c in section["clauses"]]
        right = found == clause["then"] and (by_clause or (rule.numeric and in_section))
        share = WEIGHTS["answer"] * right + WEIGHTS["clause"] * by_clause + WEIGHTS["section"] * in_section
        correct = right and by_clause
        why = f"{rule.kind.write(clause['then'])}, by clause {named}"
        why = why if correct else self.reasons(goal, world, answer, first)
        return Verdict.of(correct, round(2 * share - 1, 6), why)
