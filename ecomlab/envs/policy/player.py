"""The player of POLICY: looks a rule up in the store's policy book and applies it."""

from typing import Any

from ecomlab.catalog import Shop
from ecomlab.difficulty import Difficulty
from ecomlab.players.budgets import budget
from ecomlab.players.goal_player import GoalPlayer
from ecomlab.task import Goal, Message, Need
from ecomlab.world.policy_book.book import Clause, decisive, holds
from ecomlab.world.policy_book.cases import LEAST_FACTS
from ecomlab.world.policy_book.rules import RULES, WINDOW, Rule
from ecomlab.world.policy_book.wording import read_section


class PolicyPlayer(GoalPlayer):
    """Searches for the rule's section and applies its clauses to the facts."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._looked: set[tuple[str, str | None]] = set()
        self._found: dict[tuple[str, str | None], tuple[Rule, str, list[Clause]]] = {}
        self._titles: dict[tuple[str, str | None], list[str]] = {}
        """Titles of sections left to open for a question, as the one shown does not answer it."""
        self._answers: list[str] = []
        """Outcomes of all clauses that were read."""
        self._asked_again = False

    @staticmethod
    def need(goal: Goal) -> Need:
        """Count the steps to an answer: one search of the book, and submit."""
        return Need(2, 1)

    @staticmethod
    def budget(axes: Difficulty, shop: Shop, items: int | None) -> Need:
        """Count the steps to any answer; another question takes another search."""
        return budget(Need(2, 1), LEAST_FACTS + axes.branches, axes, (axes.p_switch, 1, 1))

    def work(self) -> Message:
        question, kind = self.get("question"), self.get("type")
        if question is None and not self._asked_again:
            self._asked_again = True
            return self.turn(self.call("ask_user", None, question="What would you like to know?"))
        if question is None:
            return self.turn(self.call("submit", None))
        if (question, kind) not in self._looked:
            self._looked.add((question, kind))
            rule = RULES[question]  # whose heading a shop assistant knows, but for what the departments sell
            words = f"{rule.questions[0]} {kind or ''}" if question == WINDOW else rule.title
            return self.turn(self.call("policy_search", (question, kind), query=words))
        found, titles = self._found.get((question, kind)), self._titles.get((question, kind), [])
        if found is None and titles:
            return self.turn(self.call("policy_search", (question, kind), query=titles.pop(0)))
        if found is None:
            return self.turn(self.call("submit", None))
        rule, precedence, clauses = found
        facts = {name: value for (_, name), value in self.known.items()}
        applies = [all(holds(atom, facts) != self.slip() for atom in clause["if"]) for clause in clauses]
        if len(clauses) > 1 and self.slip():
            precedence = {"first": "last", "last": "first"}[precedence]
        number = decisive(applies, precedence)
        if number is None:
            return self.turn(self.call("submit", None))
        clause = clauses[number]
        answer = rule.kind.write(clause["then"])
        if self.slip():  # a line too low
            answer = self._answers[(self._answers.index(answer) + 1) % len(self._answers)]
        return self.turn(self.call("submit", None, answer=answer, clause=clause["id"]))

    def result(self, about: Any, result: dict[str, Any]) -> None:
        if about is None or "sections" not in result:
            return
        question, kind = about
        plurals = {self.lexicon.types[name].plural: name for name in self.lexicon.types}
        read = [r for s in result["sections"] if (r := read_section(s["section"], s["text"], plurals))]
        self._answers += [RULES[r[0]].kind.write(clause["then"]) for r in read for clause in r[3]]
        strayed = about in self._titles and not self._titles[about]  # then whatever was opened is taken
        fitting = [r for r in read if strayed or (r[0] == question and (not r[1] or kind in r[1]))]
        if not strayed and result["others"] and self.slip() and self.slip():  # headings are read twice
            self._titles[about] = result["others"][:1]
        elif fitting:
            name, _, precedence, clauses = fitting[0]
            self._found[about] = (RULES[name], precedence, clauses)
        else:
            self._titles.setdefault(about, result["others"][:1])
