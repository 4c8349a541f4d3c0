"""The player of POLICY: looks a rule up in the store's policy book and applies it."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from ecomlab.answers.amounts import read_amount
from ecomlab.catalog import Shop
from ecomlab.difficulty import Difficulty
from ecomlab.envs.policy.questions import OTHERWISE, QUESTIONS, TOGETHER, WORKED, other_case, worked_out
from ecomlab.players.budgets import budget
from ecomlab.players.goal_player import GoalPlayer
from ecomlab.steps import may_hold
from ecomlab.task import Message, Need
from ecomlab.world.policy_book.book import Clause, decisive, holds, levels
from ecomlab.world.policy_book.cases import FEW_FACTS, answer_of, write_answer
from ecomlab.world.policy_book.places import TITLE
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
    """Searches for the rule's section, follows what it refers to, applies the clauses to the facts, and answers the
    customer's questions."""

    tells = QUESTIONS

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
    def need(deep: Sequence[int], question: str, asks: Mapping[str, Any], looks: bool) -> Need:
        """Count the steps to an answer: a search of the book for each section that is asked about, others for those to
        which these refer, so `deep`, the date where an answer may be a day, another one where the customer looks
        something up, and submit."""
        dated = question.endswith(WORKED_OUT) or WORKED["day"] in asks
        return Need(2 + max(deep) + looks, len(deep) + sum(deep) + dated + looks)

    @staticmethod
    def budget(axes: Difficulty, shop: Shop, items: int | None) -> Need:
        """Count the steps to any answer."""
        deep, looks, dated = levels(axes), may_hold(axes, "looking"), may_hold(axes, "rules")
        sections = 1 + may_hold(axes, "telling")
        work = Need(2 + deep + 2 * looks, sections * (1 + deep) + dated + looks)
        return budget(work, min(FEW_FACTS, 2 * axes.branches), axes)

    def work(self) -> Message:
        question, kind = self.get("question"), self.get("type")
        if question is None and not self._asked_again:
            self._asked_again = True
            return self.turn(self.call("ask_user", None, question="What would you like to know?"))
        if question is None:
            return self.turn(self.call("submit", None))
        also = self.asks.get(TOGETHER)
        sought = [(question, kind), *([(also, None)] if also else [])]
        new = [about for about in sought if about not in self._looked]
        self._looked |= {*new}
        calls = []
        for about in new:
            rule = RULES[rule_of(about[0])]  # whose heading a shop assistant knows, but for the departments
            words = f"{rule.questions[0]} {kind or ''}" if rule is RULES[WINDOW] else rule.title
            calls.append(self.call("policy_search", about, query=words))
        if calls:
            dated = question.endswith(WORKED_OUT) or WORKED["day"] in self.asks
            if dated and self._today is None:
                calls.append(self.call("datetime_now", "today"))
            return self.turn(*calls)
        for about in sought:
            if about not in self._found and self._titles.get(about):
                return self.turn(self.call("policy_search", about, query=self._titles[about].pop(0)))
        found, *further = [self._found.get(about) for about in sought]
        if found is None:
            return self.turn(self.call("submit", None))
        facts = {name: value for (_, name), value in self.known.items()}
        decided = {"": self._decide(found, facts)}
        for name in OTHERWISE.values():
            if name in self.asks:
                decided[name] = self._decide(found, other_case(self.asks[name], facts))
        if also and further[0] is not None and further[0].rule == rule_of(also):
            decided[TOGETHER] = self._decide(further[0], facts)
        titles = list(dict.fromkeys(one for one in decided.values() if isinstance(one, str)))
        if titles:
            self._referred |= dict.fromkeys(titles)
            return self.turn(*(self.call("policy_search", "referred", query=title) for title in titles))
        clause = decided.pop("")
        if clause is None or isinstance(clause, str) or "then" not in clause:
            return self.turn(self.call("submit", None))
        strayed = found.rule != rule_of(question)  # and has no answer of the kind that is asked for
        told = None if strayed else self._tell(question, clause, decided, facts)
        if told is not None:
            return told
        then = clause["then"]
        if self.slip():  # a line too low
            read = [value for rule, value in self._answers if rule == found.rule]
            then = read[(read.index(then) + 1) % len(read)]
        asked = found.rule if strayed else question
        worked = RULES[found.rule].worked if asked.endswith(WORKED_OUT) else None
        if worked is not None and worked.of not in facts:
            return self.turn(self.call("submit", None, clause=clause["id"]))
        answer = write_answer(asked, answer_of(asked, then, facts, self._today or date.min))
        if "rules" in self.contrary and answer == "yes":
            answer = "no"
        return self.turn(self.call("submit", None, answer=answer, clause=clause["id"]))

    def _decide(self, read: Read, facts: Mapping[str, Any]) -> Clause | str | None:
        """Find the clause that decides, or the title of the section that is to be read first."""
        clause = clause_of(read, facts, self)
        if clause is None or "see" not in clause:
            return clause
        if clause["see"] not in self._referred:
            return str(clause["see"])
        other = self._referred[clause["see"]]
        return None if other is None else self._decide(other, facts)

    def _tell(
        self, question: str, clause: Clause, others: Mapping[str, Any], facts: Mapping[str, Any]
    ) -> Message | None:
        """Answer the customer's questions; who lacks the step names the first value of the kind: the total, today, or
        the answer as it is."""
        today, values = self._today or date.min, dict[str, Any]()
        lacks = "telling" in self.lacks
        for name in self.asks:
            if name in (*OTHERWISE.values(), TOGETHER):
                other = clause if lacks else others.get(name)
                values[name] = other.get("then") if other is not None else None
                if name == TOGETHER and not lacks and values[name] is not None:
                    values[name] += clause["then"]
            elif lacks:
                values[name] = today.isoformat() if name == WORKED["day"] else facts.get("total")
            elif RULES[rule_of(question)].worked.of in facts:  # type: ignore[union-attr]
                values[name] = worked_out(question, clause["then"], facts, today)
        return self.answer({name: value for name, value in values.items() if value is not None})

    def result(self, about: Any, result: dict[str, Any]) -> None:
        if "today" in result:
            self._today = date.fromisoformat(result["today"])
        if about is None or "sections" not in result:
            return
        if about == TITLE:
            self.read_places(result["sections"])
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
