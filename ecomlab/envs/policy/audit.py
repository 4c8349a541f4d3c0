"""The audit of POLICY: faults of an answer, and other facts of a case."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from ecomlab.answers.amounts import read_clause_id
from ecomlab.catalog import Shop
from ecomlab.envs.base import Audit
from ecomlab.reward import Fault
from ecomlab.task import Goal, Place, Task
from ecomlab.world.policy_book.book import deciding, general
from ecomlab.world.policy_book.cases import answer_of, other_values, read_as, section_on, write_answer
from ecomlab.world.policy_book.rules import RULES, rule_of
from ecomlab.world.state import World


class PolicyAudit(Audit):
    def faults(
        self, goal: Goal, world: World, answer: Mapping[str, Any] | None, first: Goal
    ) -> Sequence[Fault]:
        if not answer or not any(answer.values()):
            return [] if answer is None else [Fault("missed item", "answer", words="nothing was submitted")]
        book, facts, question = world.given["policies"], goal.of(), goal["question"]
        section, today = section_on(book, facts, world.catalog), date.fromisoformat(world.given["today"])
        clause, standard = deciding(section, book, facts), general(section)["id"]
        given, said = read_clause_id(answer.get("clause")), answer.get("answer")
        value, wanted = read_as(question, said, today), answer_of(question, clause["then"], facts, today)
        found, follows = list[Fault](), False
        if given != clause["id"]:
            words = f"{f'clause {given}' if given else 'no clause'} submitted, {clause['id']} decides"
            words += " as an exception" if given == standard else ""
            found.append(Fault("wrong clause", "clause", str(given), tuple(facts), (clause["id"],), words))
            follows = any(
                c["id"] == given and "then" in c and answer_of(question, c["then"], facts, today) == value
                for s in book["sections"]
                if s["rule"] == rule_of(question)
                for c in s["clauses"]
            )
        if value != wanted and not follows:
            words = f"{said or 'nothing'} answered, it is {write_answer(question, wanted)}"
            found.append(Fault("wrong answer", "answer", str(said), tuple(facts), words=words))
        return found

    def alternatives(self, slot: Place, goal: Goal, task: Task, shop: Shop) -> Sequence[Any]:
        """List other values of a withheld fact, if possible those that make another clause decide."""
        book, facts, name = task.world["policies"], goal.of(), slot[1]
        section = section_on(book, facts, shop.catalog)

        def clause(value: Any) -> Any:
            return deciding(section, book, {**facts, name: value})["id"]

        others = other_values(name, facts[name], section, book)
        return [value for value in others if clause(value) != clause(facts[name])] or others

    def outcomes(self, task: Task, shop: Shop) -> Mapping[str, bool]:
        goal, book = task.goal.after(task.events), task.world["policies"]
        if RULES[rule_of(goal["question"])].unit != "yes":
            return {}
        clause = deciding(section_on(book, goal.of(), shop.catalog), book, goal.of())
        return {"rules: yes": clause["then"] == "yes"}

    def chance(self, task: Task, shop: Shop) -> float:
        """Bound the chance from above by that of picking the right section: all rules are asked about equally often,
        and the position of a clause tells little."""
        return 1 / len({section["rule"] for section in task.world["policies"]["sections"]})
