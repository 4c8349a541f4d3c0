"""The player of POLICY: looks a rule up in the store's policy book and applies it."""

from collections.abc import Mapping
from datetime import date
from typing import Any

from ecomlab.answers.amounts import read_amount
from ecomlab.catalog import Shop
from ecomlab.difficulty import Difficulty
from ecomlab.players.budgets import budget
from ecomlab.players.goal_player import GoalPlayer
from ecomlab.steps import may_hold
from ecomlab.task import Message, Need
from ecomlab.world.policy_book.book import Clause, decisive, holds
from ecomlab.world.policy_book.cases import FEW_FACTS, answer_of, write_answer
from ecomlab.world.policy_book.rules import RULES, WINDOW, WORKED_OUT, rule_of
from ecomlab.world.policy_book.wording import Read, read_section

_REVERSED = {"first": "last", "last": "first"}


def clause_of(read: Read, facts: Mapping[str, Any], player: GoalPlayer) -> Clause | None:
    """Find the clause of a section that decides a case, as this player does; None where it finds none. A player that
    lacks rules takes the general one."""
    if "rules" in player.lacks:
        return next((clause for clause in read.clauses if not clause["if"]), None)
    applies = [all(holds(atom, facts) != player.slip() for atom in clause["if"]) for clause in read.clauses]
    turned = len(read.clauses) > 1 and player.slip()
    number = decisive(applies, _REVERSED[read.precedence] if turned else read.precedence)
    return None if number is None else read.clauses[number]


class PolicyPlayer(GoalPlayer):
    """Searches for the rule's section, follows what it refers to, and applies the clauses to the facts."""

    def comes_to(self, given: Mapping[str, Any], today: date | None) -> dict[str, int | None]:
        return {"answer": read_amount(given.get("answer"), "cents")}

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._looked: set[tuple[str, str | None]] = set()
        self._found: dict[tuple[str, str | None], Read] = {}
        self._referred: dict[str, Read | None] = {}
        """Sections to which others refer, by title; None while one is awaited."""
        self._titles: dict[tuple[str, str | None], list[str]] = {}
        """Titles of sections left to open for a question, as the one shown does not answer it."""
        self._answers: list[tuple[str, Any]] = []
        """Rule and outcome of all clauses that were read."""
        self._asked_again = False
        self._today: date | None = None

    @staticmethod
    def need(refers: bool, question: str) -> Need:
        """Count the steps to an answer: one search of the book, another where it refers to another section, the date
        where the answer is a day, and submit."""
        return Need(2 + refers, 1 + refers + question.endswith(WORKED_OUT))

    @staticmethod
    def budget(axes: Difficulty, shop: Shop, items: int | None) -> Need:
        """Count the steps to any answer."""
        refers = may_hold(axes, "rules") and axes.branches > 1
        return budget(Need(2 + refers, 1 + 2 * refers), min(FEW_FACTS, 2 * axes.branches), axes)

    def work(self) -> Message:
        question, kind = self.get("question"), self.get("type")
        if question is None and not self._asked_again:
            self._asked_again = True
            return self.turn(self.call("ask_user", None, question="What would you like to know?"))
        if question is None:
            return self.turn(self.call("submit", None))
        if (question, kind) not in self._looked:
            self._looked.add((question, kind))
            rule = RULES[rule_of(question)]  # whose heading a shop assistant knows, but for the departments
            words = f"{rule.questions[0]} {kind or ''}" if rule is RULES[WINDOW] else rule.title
            calls = [self.call("policy_search", (question, kind), query=words)]
            if question.endswith(WORKED_OUT) and self._today is None:
                calls.append(self.call("datetime_now", "today"))
            return self.turn(*calls)
        found, titles = self._found.get((question, kind)), self._titles.get((question, kind), [])
        if found is None and titles:
            return self.turn(self.call("policy_search", (question, kind), query=titles.pop(0)))
        if found is None:
            return self.turn(self.call("submit", None))
        facts = {name: value for (_, name), value in self.known.items()}
        clause = clause_of(found, facts, self)
        if clause is not None and "see" in clause:
            if clause["see"] not in self._referred:
                self._referred[clause["see"]] = None
                return self.turn(self.call("policy_search", "referred", query=clause["see"]))
            other = self._referred[clause["see"]]
            clause = None if other is None else clause_of(other, facts, self)
        if clause is None or "then" not in clause:
            return self.turn(self.call("submit", None))
        then = clause["then"]
        if self.slip():  # a line too low
            read = [value for rule, value in self._answers if rule == found.rule]
            then = read[(read.index(then) + 1) % len(read)]
        asked = question if rule_of(question) == found.rule else found.rule  # where it has strayed
        worked = RULES[found.rule].worked if asked.endswith(WORKED_OUT) else None
        if worked is not None and worked.of not in facts:
            return self.turn(self.call("submit", None, clause=clause["id"]))
        answer = write_answer(asked, answer_of(asked, then, facts, self._today or date.min))
        if "rules" in self.contrary and answer == "yes":
            answer = "no"
        return self.turn(self.call("submit", None, answer=answer, clause=clause["id"]))

    def result(self, about: Any, result: dict[str, Any]) -> None:
        if "today" in result:
            self._today = date.fromisoformat(result["today"])
        if about is None or "sections" not in result:
            return
        plurals = {self.lexicon.types[name].plural: name for name in self.lexicon.types}
        read = [r for s in result["sections"] if (r := read_section(s["section"], s["text"], plurals))]
        self._answers += [(r.rule, c["then"]) for r in read for c in r.clauses if "then" in c]
        if about == "referred":
            self._referred |= {s["section"]: r for s, r in zip(result["sections"], read, strict=False)}
            return
        question, kind = about
        strayed = about in self._titles and not self._titles[about]  # then whatever was opened is taken
        fitting = [
            r for r in read if strayed or (r.rule == rule_of(question) and (not r.kinds or kind in r.kinds))
        ]
        if not strayed and result["others"] and self.slip() and self.slip():  # headings are read twice
            self._titles[about] = result["others"][:1]
        elif fitting:
            self._found[about] = fitting[0]
        else:
            self._titles.setdefault(about, result["others"][:1])
