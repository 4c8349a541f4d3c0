"""The audit of POLICY: faults of an answer, and other facts of a case."""

from collections.abc import Mapping, Sequence
from typing import Any

from ecomlab.answers.amounts import read_answer, read_clause_id
from ecomlab.catalog import Shop
from ecomlab.envs.base import Audit
from ecomlab.reward import Fault
from ecomlab.task import Goal, Place, Task
from ecomlab.world.policy_book.book import decide
from ecomlab.world.policy_book.cases import other_values, section_on
from ecomlab.world.policy_book.rules import RULES
from ecomlab.world.state import World


class PolicyAudit(Audit):
    def faults(
        self, goal: Goal, world: World, answer: Mapping[str, Any] | None, first: Goal
    ) -> Sequence[Fault]:
        if not answer or not any(answer.values()):
            return [] if answer is None else [Fault("missed item", "answer", words="nothing was submitted")]
        book, facts = world.given["policies"], goal.of()
        rule, section = RULES[goal["question"]], section_on(book, facts, world.catalog)
        clause = section["clauses"][decide(section, book["precedence"], facts)]
        given, said = read_clause_id(answer.get("clause")), answer.get("answer")
        value = read_answer(said, rule.unit, rule.values)
        found, follows = list[Fault](), False
        if given != clause["id"]:
            words = f"{f'clause {given}' if given else 'no clause'} submitted, {clause['id']} decides"
            found.append(Fault("wrong clause", "clause", str(given), tuple(facts), (clause["id"],), words))
            follows = any(
                c["id"] == given and c["then"] == value for s in book["sections"] for c in s["clauses"]
            )
        if value != clause["then"] and not follows:
            words = f"{said or 'nothing'} answered, it is {rule.kind.write(clause['then'])}"
            found.append(Fault("wrong answer", "answer", str(said), tuple(facts), words=words))
        return found

    def alternatives(self, slot: Place, goal: Goal, task: Task, shop: Shop) -> Sequence[Any]:
        """List other values of a withheld fact, if possible those that make another clause decide."""
        book, facts, name = task.world["policies"], goal.of(), slot[1]
        section = section_on(book, facts, shop.catalog)

        def deciding(value: Any) -> int:
            return decide(section, book["precedence"], {**facts, name: value})

        others = other_values(name, facts[name], section)
        return [value for value in others if deciding(value) != deciding(facts[name])] or others

    def chance(self, task: Task, shop: Shop) -> float:
        """Bound the chance from above by that of picking the right section: all rules are asked about equally often,
        and the position of a clause tells little."""
        return 1 / len({section["rule"] for section in task.world["policies"]["sections"]})
