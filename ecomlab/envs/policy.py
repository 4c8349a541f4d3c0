"""POLICY: answer a customer's question from the store's policy book, and name the clause that decides (SPEC §7)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from ecomlab.answering import Answering, withhold
from ecomlab.answers import read_amount, read_clause_id, read_name, read_yes
from ecomlab.catalog import Catalog, Shop
from ecomlab.core import Draft, Event, Message, Need, Task, Verdict
from ecomlab.customer.sayings import MONEY, NUMBER, Saying, Sentences, choice
from ecomlab.customer.words import ANSWERS, Act
from ecomlab.difficulty import Difficulty
from ecomlab.players.clerk import Clerk
from ecomlab.seeding import rng
from ecomlab.tooling import tool
from ecomlab.world import tools as shop_tools
from ecomlab.world.overlay import World
from ecomlab.world.policies import (
    Clause,
    Section,
    decide,
    decisive,
    draw_book,
    holds,
    policy_search,
    read_section,
    relevant,
    section_of,
)
from ecomlab.world.rules import FACTS, RULES, WINDOW, Amount, Rule

if TYPE_CHECKING:
    from ecomlab.episode import Job

LEAST_FACTS = 3
"""Facts that a customer mentions at least, whether they matter or not."""
WEIGHTS = {"answer": 0.5, "clause": 0.3, "section": 0.2}
"""How r_task counts the answer, its clause, and a clause of the right section. An answer counts only beside a clause of
the right section, "yes" or a name only beside the right clause: a constant answer earns nothing."""


@tool
def submit(
    world: World,
    answer: Annotated[
        str | float | int | None,
        Field(description='The answer: a number with its unit, such as "15 days", "yes" or "no", or a name.'),
    ] = None,
    clause: Annotated[
        str | None, Field(description='The id of the clause that decides, such as "C-123".')
    ] = None,
) -> dict[str, Any]:
    """Hand in the answer and the clause of the policy book that decides it; the conversation ends."""
    return {"submitted": True}


class PolicyClerk(Clerk):
    """Finds the rule's section with the words of the question and applies its clauses to the facts."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._looked: set[tuple[str, str | None]] = set()
        self._found: dict[tuple[str, str | None], tuple[Rule, str, list[Clause]]] = {}
        self._answers: list[str] = []
        """What the clauses say that were read."""
        self._asked_again = False

    def work(self) -> Message:
        question, kind = self.get("question"), self.get("type")
        if question is None and not self._asked_again:
            self._asked_again = True
            return self.turn(
                self.call("ask_user", None, question="What would you like to know?", about=["details"])
            )
        if question is None:
            return self.turn(self.call("submit", None))
        if (question, kind) not in self._looked:
            self._looked.add((question, kind))
            words = RULES[question].questions[0] + (f" {kind}" if kind and question == WINDOW else "")
            return self.turn(self.call("policy_search", (question, kind), query=words))
        found = self._found.get((question, kind))
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
        read = [read_section(s["section"], s["text"], plurals) for s in result["sections"]]
        self._answers += [RULES[r[0]].kind.write(clause["then"]) for r in read if r for clause in r[3]]
        fitting = [r for r in read if r and r[0] == question and (not r[1] or kind in r[1])]
        others = [r for r in read if r and r not in fitting]
        chosen = others if others and self.slip() and self.slip() else fitting  # headings are read twice
        if chosen:
            name, _, precedence, clauses = chosen[0]
            self._found[question, kind] = (RULES[name], precedence, clauses)


_SAID: Mapping[str, tuple[str, Sequence[str], Mapping[str, str]]] = {
    "tier": (
        "situation",
        ("I'm {}.", "By the way, I'm {}.", "Just so you know, I'm {}."),
        {
            "none": "not a member",
            "Silver": "a Silver member",
            "Gold": "a Gold member",
            "Onyx": "an Onyx member",
        },
    ),
    "payment": (
        "order",
        ("Payment is by {}.", "As for payment, that's by {}.", "I'm paying by {}."),
        {"card": "credit card", "gift card": "gift card", "transfer": "bank transfer", "invoice": "invoice"},
    ),
    "destination": (
        "delivery",
        ("The address is in {}.", "We live in {}.", "My address is in {}."),
        {name: name for name in FACTS["destination"].words},  # type: ignore[union-attr]
    ),
    "channel": (
        "order",
        ("I placed the order {}.", "The order was placed {}.", "It was ordered {}."),
        {
            "app": "in your app",
            "web": "on your website",
            "store": "in one of your stores",
            "phone": "by phone",
        },
    ),
    "opened": (
        "situation",
        ("The box {}.", "As for the box, it {}.", "The box it came in {}."),
        {"opened": "has been opened", "sealed": "is still sealed"},
    ),
    "gift": (
        "situation",
        ("The order is {}.", "What I ordered is {}.", "It's {}."),
        {"gift": "a gift", "own": "for my own use"},
    ),
    "sale": (
        "price",
        ("It's sold {}.", "It was {}.", "I saw it {}."),
        {"clearance": "on clearance", "flash": "in a flash sale", "full": "at full price"},
    ),
    "reason": (
        "situation",
        ("The reason is {}.", "My reason is {}.", "As for the reason, it's {}."),
        {
            "defect": "a defect",
            "wrong": "that you sent the wrong item",
            "late": "that it was delivered late",
            "mind": "that I changed my mind about it",
        },
    ),
}


class Policy(Answering):
    id = "POLICY"
    version = 1
    golden = "70bb11bf5a956fe87c97f93413806167"
    # eps_rank and top_k only through the catalog, which an agent may look at and does not need.
    axes = (
        "p_missing", "eps_rank", "turn_slack", "tool_slack", "p_noise", "p_switch", "top_k", "branches",
    )  # fmt: skip
    brief = (
        "Answer the customer's question from the store's policy book, for the case as the customer last told it. Hand "
        "in the answer, a number with its unit, yes or no, or a name, and the id of the one clause that decides it."
    )
    tools = shop_tools.named(
        policy_search, shop_tools.catalog_search, shop_tools.catalog_get_product, shop_tools.datetime_now
    )
    submit = submit
    clerk = PolicyClerk
    sayings: ClassVar[Mapping[str, Saying]] = {
        "question": Sentences("details", {name: rule.questions for name, rule in RULES.items()}),
        **{name: Saying(topic, choice(said), tuple(forms)) for name, (topic, forms, said) in _SAID.items()},
        "total": Saying(
            "price", MONEY, ("The order comes to {}.", "The total is {}.", "It comes to {} in total.")
        ),
        "age": Saying(
            "order",
            NUMBER,
            ("It arrived {} days ago.", "It was delivered {} days ago.", "I've had it for {} days."),
        ),
        "weight": Saying(
            "details", NUMBER, ("The parcel weighs {} kg.", "It weighs {} kg.", "The weight is {} kg.")
        ),
        "items": Saying(
            "quantity",
            NUMBER,
            ("There are {} items in the order.", "The order has {} items.", "It's {} items in all."),
        ),
        "twist": Sentences(
            "situation",
            {
                "case": (
                    "Same question, but one thing is different.",
                    "And what if one thing were different?",
                    "Sorry, I got one thing wrong.",
                    "Wait, I just checked again.",
                ),
                "question": (
                    "Actually, that was not what I wanted to know.",
                    "Sorry, I meant to ask something else.",
                    "Forget that, my real question is another one.",
                    "Let me ask something else instead.",
                ),
            },
        ),
    }
    acts: ClassVar[Mapping[str, Sequence[str]]] = {
        **ANSWERS,
        "indifferent": ("I can't tell you that.", "I don't know about that, sorry."),
        "nothing": (
            "That is all I can tell you.",
            "I have told you all I know.",
            "There is nothing more I can say.",
        ),
    }
    leads = (
        "I have a question about {}.",
        "it's about {}.",
        "I'd like to know something about {}.",
        "can you look something up for me? It's about {}.",
        "I need some information on {}.",
        "quick question about {}.",
        "I'm asking about {}.",
        "my question is about {}.",
        "I am not sure what your rules say about {}.",
        "this is about {}.",
    )
    leads_without: ClassVar[Sequence[str]] = (
        "I have a question about my order.",
        "can you look up a rule for me?",
        "I'd like to know something about your rules.",
        "quick question.",
        "could you check your policy for me?",
        "I need some information.",
        "I am not sure what your rules say.",
        "there is something I want to know.",
        "I was told that you know your rules by heart.",
    )
    """How an opening begins that is about no product."""
    closings = (
        "",
        "",
        "",
        "Thanks!",
        "I'd like to be sure.",
        "Please look it up for me.",
        "I can't find it in your terms.",
    )
    intros = (
        "Let me ask about the fine print.",
        "Something in your terms is not clear to me.",
        "I need to know what your store's policy is.",
    )

    def draw(self, key: tuple[Any, ...], axes: Difficulty, shop: Shop) -> Draft:
        book = draw_book(key, axes, shop)
        random, catalog, precedence = rng("policy", *key), shop.catalog, book["precedence"]
        rules = list(dict.fromkeys(section["rule"] for section in book["sections"]))
        name = rules[int(random.integers(len(rules)))]
        section = _ask_about(name, book, random)
        facts = _draw_facts(section, precedence, catalog, random, _mentioned(section, random))
        kind = facts.pop("type", None)
        switching = bool(random.random() < axes.p_switch)
        told = {"type": kind, **facts} if kind else facts
        twist = _draw_twist(name, told, book, axes, catalog, random) if switching else {}
        if (
            twist and "question" not in twist
        ):  # drawn backwards, so that no clause decides more often in the end
            facts, twist = {**facts, **twist}, {fact: facts[fact] for fact in twist}
        slots = [(0, fact, value) for fact, value in facts.items()]
        slots.insert(len(slots) if random.random() < 0.5 else 0, (0, "question", name))
        if kind:
            slots.insert(0, (0, "type", kind))
        withheld = withhold(slots, axes, random, lambda s, slot: slot == "question" or slot in twist)
        asks = int(bool(withheld))
        need, events = Need(turns=asks + 1, asks=asks, calls=1), []
        if twist:
            again = int("question" in twist)  # another fact needs no other section
            turn = int(random.integers(1, need.turns + 1))
            events.append(Event(turn, "twist", 0, again, again, data={"slots": list(twist.items())}))
        leads = self.leads if kind else self.leads_without
        return self.draft(slots, withheld, {"policies": book}, need, events, leads)

    def fire(self, episode: "Job", event: Event) -> list[Act]:
        """Another case, or another question: said without "I changed my mind", which is about wishes."""
        slots = dict(event.data["slots"])
        episode.state.update({(0, name): value for name, value in slots.items()})
        episode.kernel.ledger.restate(0, slots)
        return [Act("twist", slots={"twist": "question" if "question" in slots else "case", **slots})]

    def verify(self, episode: "Job") -> Verdict:
        """The clause is asked for in every case: a number that is right by the wrong clause is right by luck, and a
        "yes" without a clause would be right every other time."""
        book = episode.task.world["policies"]
        facts = {name: value for (_, name), value in episode.state.items()}
        rule = RULES[facts["question"]]
        section = _section(book, facts, episode.shop.catalog)
        clause = section["clauses"][decide(section, book["precedence"], facts)]
        given = episode.answer or {}
        named, answer = read_clause_id(given.get("clause")), read_answer(given.get("answer"), rule)
        by_clause = named == clause["id"]
        in_section = named in [c["id"] for c in section["clauses"]]
        right = answer == clause["then"] and (by_clause or (rule.numeric and in_section))
        share = WEIGHTS["answer"] * right + WEIGHTS["clause"] * by_clause + WEIGHTS["section"] * in_section
        correct = right and by_clause
        said = rule.kind.write(clause["then"])
        if correct:
            why = f"{said}, by clause {named}"
        elif not given:
            why = "nothing was handed in"
        else:
            what = "right" if answer == clause["then"] else f"{'not read' if answer is None else 'wrong'}"
            why = f"the answer is {what} ({said}), the clause is {named or 'not named'} ({clause['id']})"
        return Verdict(1.0 if correct else round(2 * share - 1, 6), correct, why)

    def chance(self, task: Task, shop: Shop) -> float:
        """At most: one section of all, every rule being asked for as often as another; of its clauses, position tells
        little."""
        return 1 / len({section["rule"] for section in task.world["policies"]["sections"]})

    def twin(self, task: Task, shop: Shop, random: np.random.Generator) -> Task | None:
        """Another value of a withheld fact, one that changes the answer if there is one."""
        hidden = [name for _, name in task.truth["withheld"]]
        facts = {name: value for _, name, value in task.truth["slots"]}
        book, found = task.world["policies"], None
        section = _section(book, facts, shop.catalog)
        for name in [hidden[i] for i in random.permutation(len(hidden)).tolist()]:
            for value in _others(name, facts[name], section):
                other = {**facts, name: value}
                if found is None or (
                    decide(section, book["precedence"], facts) == decide(section, book["precedence"], found)
                ):
                    found = other
        if found is None:
            return None
        slots = [[s, name, found[name]] for s, name, _ in task.truth["slots"]]
        return replace(task, truth={**task.truth, "slots": slots})


def read_answer(answer: Any, rule: Rule) -> Any:
    """The answer to a question about that rule as its value; None when it is none."""
    if rule.numeric:
        return read_amount(answer, rule.unit)
    return read_yes(answer) if rule.unit == "yes" else read_name(answer, [str(name) for name in rule.values])


def _section(book: Mapping[str, Any], facts: Mapping[str, Any], catalog: Catalog) -> Section:
    """The section that rules on the question asked."""
    department = ""
    if facts["question"] == WINDOW:
        department = catalog.types[catalog.type_codes[facts["type"]]].department
    found = section_of(book, facts["question"], department)
    if found is None:
        raise LookupError(f"the book has no section on {facts['question']}")
    return found


def _ask_about(name: str, book: Mapping[str, Any], random: np.random.Generator) -> Section:
    """A section of that rule: of return windows there are several."""
    some = [section for section in book["sections"] if section["rule"] == name]
    return some[int(random.integers(len(some)))]


def _mentioned(section: Section, random: np.random.Generator) -> list[str]:
    """The facts a customer tells: all that matter, the product where the rule may ask for it, and some that do not."""
    rule, matter = RULES[section["rule"]], relevant(section)
    others = [name for name in rule.facts if name not in (*matter, "type")]
    order = [others[i] for i in random.permutation(len(others)).tolist()]
    spare = max(LEAST_FACTS - len([name for name in matter if name != "type"]), int(random.integers(2)))
    told = [*(name for name in matter if name != "type"), *order[:spare]]
    told = [told[i] for i in random.permutation(len(told)).tolist()]
    return ["type", *told] if "type" in rule.facts else told


def _draw_facts(
    section: Section,
    precedence: str,
    catalog: Catalog,
    random: np.random.Generator,
    names: Sequence[str],
    known: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A case in which a clause decides that is drawn first, so that none decides more often than another; values lie
    near the limits. What is `known` stays; where no such case turns up, another clause decides."""
    wanted = int(random.integers(len(section["clauses"])))
    facts: dict[str, Any] = {}
    for _ in range(40):
        facts = {name: _draw_value(name, section, catalog, random) for name in names}
        for atom in section["clauses"][wanted]["if"]:
            facts[atom[0]] = _fulfil(atom, random)
        facts |= known or {}
        if decide(section, precedence, facts) == wanted:
            break
    return facts


def _draw_value(name: str, section: Section, catalog: Catalog, random: np.random.Generator) -> Any:
    limits = [atom[2] for clause in section["clauses"] for atom in clause["if"] if atom[0] == name]
    if name == "type":
        if section["department"]:
            kinds = [kind.name for kind in catalog.types if kind.department == section["department"]]
        elif limits and random.random() < 0.5:
            kinds = [kind for some in limits for kind in some]
        else:
            kinds = [kind.name for kind in catalog.types]
        return kinds[int(random.integers(len(kinds)))]
    about = FACTS[name]
    if isinstance(about, Amount):
        limits = limits or [about.limits[int(random.integers(len(about.limits)))]]
        return _fulfil(
            [name, (">=", "<")[int(random.integers(2))], limits[int(random.integers(len(limits)))]], random
        )
    values = list(about.words)
    return values[int(random.integers(len(values)))]


def _fulfil(atom: Sequence[Any], random: np.random.Generator) -> Any:
    """A value that a condition holds for; of a number, often one that only just does."""
    name, op, value = atom
    if op == "in":
        return value[int(random.integers(len(value)))]
    about = FACTS[name]
    further = int(random.integers(4)) * about.limits.step if isinstance(about, Amount) else 0
    return value + further if op == ">=" else max(2, value - 1 - further)


def _draw_twist(
    name: str,
    facts: Mapping[str, Any],
    book: Mapping[str, Any],
    axes: Difficulty,
    catalog: Catalog,
    random: np.random.Generator,
) -> dict[str, Any]:
    """The slots of a follow-up: one fact is another so that another clause decides, or the question is another one,
    with the facts that it needs and the customer has not thought of."""
    section = _section(book, {**facts, "question": name}, catalog)
    before = decide(section, book["precedence"], facts)
    matter = [fact for fact in relevant(section) if fact != "type"]
    for _ in range(20 if matter and random.random() < 0.7 else 0):
        fact = matter[int(random.integers(len(matter)))]
        value = _draw_value(fact, section, catalog, random)
        if decide(section, book["precedence"], {**facts, fact: value}) != before:
            return {fact: value}
    rules = [
        rule
        for rule in dict.fromkeys(s["rule"] for s in book["sections"])
        if rule != name and ("type" in facts or "type" not in RULES[rule].facts)
    ]
    other = rules[int(random.integers(len(rules)))]
    section = _section(book, {**facts, "question": other}, catalog)
    drawn = _draw_facts(section, book["precedence"], catalog, random, relevant(section), facts)
    return {"question": other, **{fact: value for fact, value in drawn.items() if fact not in facts}}


def _others(name: str, value: Any, section: Section) -> list[Any]:
    """Other values that a fact might have."""
    about = FACTS[name]
    if not isinstance(about, Amount):
        return [other for other in about.words if other != value]
    limits = [atom[2] for clause in section["clauses"] for atom in clause["if"] if atom[0] == name]
    return [other for limit in (*limits, value + 1) for other in (limit, max(2, limit - 1)) if other != value]
