"""POLICY: answer a customer's question from the store's policy book, and name the clause that decides it."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ecomlab.answers.amounts import read_clause_id
from ecomlab.catalog import Shop
from ecomlab.customer.goals import withhold
from ecomlab.customer.templates import Phrases, Template
from ecomlab.difficulty import Difficulty
from ecomlab.envs.base import Environment
from ecomlab.envs.policy.audit import PolicyAudit
from ecomlab.envs.policy.player import PolicyPlayer
from ecomlab.reward import Verdict
from ecomlab.seeding import pick
from ecomlab.steps import draw_kinds, is_worked_out
from ecomlab.task import ACT, Goal, GoalChange, Problem, TaskKey
from ecomlab.tool import tool
from ecomlab.world.orders.history import today_of
from ecomlab.world.policy_book.book import deciding, draw_book, general, with_referred
from ecomlab.world.policy_book.cases import (
    answer_of,
    draw_facts,
    draw_mentioned,
    draw_question,
    draw_twist,
    member_of,
    read_as,
    section_on,
    write_answer,
)
from ecomlab.world.policy_book.rules import QUESTIONS, RULES, rule_of
from ecomlab.world.state import World
from ecomlab.world.tools.catalog import catalog_get_product, catalog_search, datetime_now
from ecomlab.world.tools.policy import policy_search

WEIGHTS = {"answer": 0.5, "clause": 0.3, "section": 0.2}
"""Shares of the answer, its clause, and a clause of the right section. A number counts only beside a clause of the
right section, "yes" or a name only beside the right clause, so that a constant answer earns nothing."""

MOST = 3
"""Steps of a question at most: an exception decides, in another section, and the answer is worked out from it."""

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
        Field(
            description='The answer: a number with its unit, such as "15 days", a day, "yes" or "no", or a name.'
        ),
    ] = None,
    clause: Annotated[
        str | None, Field(description='The id of the clause that decides, such as "C-123".')
    ] = None,
) -> dict[str, Any]:
    """Hand in the answer and the clause of the policy book that decides it; the conversation ends."""
    return {"submitted": True}


class Policy(Environment):
    id, version = "POLICY", 3
    brief = (
        "Answer the customer's question from the store's policy book, for the case as the customer last told it. Hand "
        "in the answer, a number with its unit, a day, yes or no, or a name, and the id of the one clause that decides "
        "it. Where a clause refers to another section, a clause of that one decides."
    )
    tools = (policy_search, catalog_search, catalog_get_product, datetime_now)
    moments = ("policy_search", ACT)
    submit, player, auditor = submit, PolicyPlayer, PolicyAudit
    phrases = Phrases.load(
        Path(__file__).with_name("phrases.toml"),
        question=Template(sentences=QUESTIONS, asked=QUESTION),
    )

    def draw(self, key: TaskKey, axes: Difficulty, shop: Shop) -> Problem:
        book, random, catalog = draw_book(key, axes, shop), key.rng("policy"), shop.catalog
        steps = draw_kinds(axes, ("rules",), random, {"rules": MOST})
        worked = bool(steps) and is_worked_out(axes, random)
        section, question = draw_question(book, len(steps) > 1, worked, random)
        mentioned = draw_mentioned(section, question, book, random)
        facts = draw_facts(section, question, book, len(steps), catalog, random, mentioned, member_of(key))
        if deciding(section, book, facts) is general(section):
            steps = []
        product = {"type": facts.pop("type")} if "type" in facts else {}
        switching = random.random() < axes.p_switch
        twist = draw_twist(question, product | facts, book, catalog, random) if switching else {}
        # Drawn from the end backwards, so that no clause decides more often in the end.
        facts, twist = facts | twist, {fact: facts[fact] for fact in twist}
        told = facts | {"question": question} if random.random() < 0.5 else {"question": question} | facts
        goal = withhold(Goal.one(product | told), axes, random, ("question",))
        refers, changes = len(with_referred(section, book)) > 1, []
        if twist:  # a changed fact needs no other section
            moment = pick(random, self.moments)
            changes.append(GoalChange(moment=moment, turns=0, calls=0, slots={"twist": "case", **twist}))
        need, leads = PolicyPlayer.need(refers, question), "default" if product else "without"
        world = {"policies": book, "today": today_of(key).isoformat()}
        return Problem(goal, world, need, changes, leads, steps=tuple(steps))

    def verify(self, goal: Goal, world: World, answer: Mapping[str, Any], first: Goal) -> Verdict:
        """Judge the answer together with its clause: a number beside the wrong clause is right by luck, and a "yes"
        without a clause would be right every other time."""
        book, facts, question = world.given["policies"], goal.of(), goal["question"]
        section, today = section_on(book, facts, world.catalog), date.fromisoformat(world.given["today"])
        clause = deciding(section, book, facts)
        named = read_clause_id(answer.get("clause"))
        by_clause = named == clause["id"]
        in_section = named in [c["id"] for one in with_referred(section, book) for c in one["clauses"]]
        wanted = answer_of(question, clause["then"], facts, today)
        numeric = RULES[rule_of(question)].numeric
        right = read_as(question, answer.get("answer"), today) == wanted
        right = right and (by_clause or (numeric and in_section))
        share = WEIGHTS["answer"] * right + WEIGHTS["clause"] * by_clause + WEIGHTS["section"] * in_section
        correct = right and by_clause
        why = f"{write_answer(question, wanted)}, by clause {named}"
        why = why if correct else self.reasons(goal, world, answer, first)
        return Verdict.of(correct, round(2 * share - 1, 6), why)
