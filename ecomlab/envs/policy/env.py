"""POLICY: answer a customer's question from the store's policy book, and name the clause that decides it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from ecomlab.answers.amounts import read_clause_id
from ecomlab.catalog import Catalog, Shop
from ecomlab.customer.goals import look_up, withhold
from ecomlab.customer.templates import Phrases, Template
from ecomlab.difficulty import Difficulty
from ecomlab.envs.base import Comes, Environment
from ecomlab.envs.policy.audit import PolicyAudit
from ecomlab.envs.policy.player import PolicyPlayer
from ecomlab.envs.policy.questions import (
    ASKED,
    OTHERWISE,
    TOGETHER,
    WORKED,
    further_questions,
    worked_out,
)
from ecomlab.envs.policy.questions import QUESTIONS as ASKS
from ecomlab.reward import Verdict
from ecomlab.seeding import pick, shuffled
from ecomlab.steps import draw_kinds, draw_size, is_worked_out, may_hold
from ecomlab.task import ACT, Goal, GoalChange, Problem, Task, TaskKey
from ecomlab.tool import tool
from ecomlab.world.orders.history import today_of
from ecomlab.world.policy_book.book import (
    Book,
    deciding,
    draw_book,
    exceptions,
    section_of,
    way_of,
    ways,
    with_referred,
)
from ecomlab.world.policy_book.cases import (
    answer_of,
    draw_facts,
    draw_mentioned,
    draw_other_case,
    draw_question,
    draw_twist,
    member_of,
    read_as,
    section_on,
    write_answer,
)
from ecomlab.world.policy_book.rules import QUESTIONS, RULES, WORKED_OUT, rule_of
from ecomlab.world.state import World
from ecomlab.world.tools.catalog import catalog_get_product, catalog_search, datetime_now
from ecomlab.world.tools.policy import policy_search

WEIGHTS = {"answer": 0.5, "clause": 0.3, "section": 0.2}
"""Shares of the answer, its clause, and a clause of the right section. A number counts only beside a clause of the
right section, "yes" or a name only beside the right clause, so that a constant answer earns nothing."""

MOST = {"rules": 1 << 30, "telling": 2, "looking": 1}
"""Steps of a question at most, by kind: exceptions lead from section to section, and the answer is worked out from the
last one; what the answer comes to is asked, what it would be in another case, what another charge makes with it; the
customer looks up a fact or two."""

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
    """Submit the answer and the clause of the policy book that decides it; the conversation ends."""
    return {"submitted": True}


class Policy(Environment):
    id, version = "POLICY", 3
    brief = (
        "Answer the customer's question from the store's policy book, for the case as the customer last told it. "
        "Submit the answer to what they asked first, a number with its unit, a day, yes or no, or a name, and the id "
        "of the one clause that decides it; whatever else they ask about it, tell them. Where a clause refers to "
        "another section, a clause of that one decides. A customer who does not know a fact can look it up: tell them "
        "where, as the book says."
    )
    tools = (policy_search, catalog_search, catalog_get_product, datetime_now)
    moments = ("policy_search", ACT)
    submit, player, auditor, questions = submit, PolicyPlayer, PolicyAudit, ASKS
    phrases = Phrases.load(
        Path(__file__).with_name("phrases.toml"),
        question=Template(sentences=QUESTIONS, asked=QUESTION),
    )

    def draw(self, key: TaskKey, axes: Difficulty, shop: Shop) -> Problem:
        book, random, catalog = draw_book(key, axes, shop), key.rng("policy"), shop.catalog
        kinds = draw_kinds(axes, tuple(MOST), random, MOST)
        rules, tells = kinds.count("rules"), kinds.count("telling")
        worked = bool(rules) and is_worked_out(axes, random)
        if worked:  # one of each is enough: what else was drawn are exceptions
            rules, tells = max(1, rules + max(0, tells - 1) - 1), min(tells, 1)
        section, question = draw_question(
            book,
            rules,
            worked,
            tells,
            lambda rule: further_questions(rule, book, worked),
            member_of(key),
            random,
        )
        rule = RULES[section["rule"]]
        names = shuffled(random, further_questions(rule, book, worked))[:tells]
        names.sort(key=TOGETHER.__eq__)  # or another case might be meant of the sum
        rules += tells - len(names)
        able = [name for name in rule.together if section_of(book, name) is not None]
        other = pick(random, able) if TOGETHER in names else ""
        working = worked or not {*names}.isdisjoint(WORKED.values())
        mentioned = draw_mentioned(section, working, book, random, other)
        facts = draw_facts(section, question, book, rules, catalog, random, mentioned, member_of(key))
        product = {"type": facts.pop("type")} if "type" in facts else {}
        switching = random.random() < axes.p_switch
        twist = draw_twist(question, product | facts, book, catalog, random) if switching else {}
        asks = self._draw_asks(
            names, other, question, product | facts, twist, book, today_of(key), catalog, random
        )
        # Drawn from the end backwards, so that no clause decides more often in the end.
        facts, twist = facts | twist, {fact: facts[fact] for fact in twist}
        told = facts | {"question": question} if random.random() < 0.5 else {"question": question} | facts
        goal = replace(withhold(Goal.one(product | told), axes, random, ("question",)), asks=asks)
        last, needed = product | facts | twist, {rule.worked.of} if rule.worked and working else set[str]()
        asked = [section, *(one for one in [section_of(book, other)] if one and TOGETHER in asks)]

        def is_missed(unknown: Collection[str]) -> bool:
            left = {fact: value for fact, value in last.items() if fact not in unknown}
            ends = ([deciding(one, book, known)["id"] for one in asked] for known in (left, last))
            return next(ends) != next(ends) or not needed.isdisjoint(unknown)

        if "looking" in kinds:
            able = [fact for fact in facts if fact not in twist and fact in book["places"]]
            able = [fact for fact in able if is_missed([fact])] or able
            goal = look_up(goal, able, book, draw_size(axes, "looking", random), random)
        deep, changes = [max(map(len, ways(one, book))) - 1 for one in asked], list[GoalChange]()
        if twist:  # a changed fact needs no other section
            moment = pick(random, self.moments)
            changes.append(GoalChange(moment=moment, turns=0, calls=0, slots={"twist": "case", **twist}))
        need, leads = (
            PolicyPlayer.need(deep, question, asks, bool(goal.places)),
            "default" if product else "without",
        )
        count = exceptions(way_of(section, book, last), last) if may_hold(axes, "rules") else 0
        rules = min(count, max(1, rules))  # whoever lacks them is wrong here, though none was drawn
        steps = (
            ["rules"] * (rules + (rules > 0 and question.endswith(WORKED_OUT)))
            + ["telling"] * len(asks)
            + ["looking"] * is_missed(goal.places)
        )
        world = {"policies": book, "today": today_of(key).isoformat()}
        return Problem(goal, world, need, changes, leads, steps=tuple(steps))

    def comes_to(self, task: Task, shop: Shop) -> Comes | None:
        book, facts = task.world["policies"], task.goal.after(task.events).of()
        charges = RULES[rule_of(facts["question"])].unit == "cents"
        if not charges or facts["question"].endswith(WORKED_OUT) or task.goal.asks:
            return None  # several amounts, or none
        amount = deciding(section_on(book, facts, shop.catalog), book, facts)["then"]
        return Comes("answer", amount, amount)

    def _draw_asks(
        self,
        names: Sequence[str],
        other: str,
        question: str,
        facts: Mapping[str, Any],
        twist: Mapping[str, Any],
        book: Book,
        today: date,
        catalog: Catalog,
        random: np.random.Generator,
    ) -> dict[str, Any]:
        """Draw the questions of these names, as far as each has an answer of its own; `other` is the rule of another
        charge."""
        asks, section = dict[str, Any](), section_on(book, {**facts, "question": question}, catalog)
        for name in names:
            if name in OTHERWISE.values():
                value = draw_other_case(question, facts, [*twist], book, catalog, random)
            elif name == TOGETHER:
                value = other
            else:
                then = deciding(section, book, facts)["then"]
                value = ASKED if worked_out(question, then, facts, today) is not None else ""
            asks |= {name: value} if value else {}
        return asks

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
