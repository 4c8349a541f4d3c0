"""POLICY: answer a customer's question from the store's policy book, and name the clause that decides (SPEC §7)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from ecomlab.answers.amounts import read_amount, read_clause_id, read_name, read_yes
from ecomlab.catalog import Shop
from ecomlab.customer.acts import Act
from ecomlab.customer.nlg import ANSWERS
from ecomlab.customer.templates import Saying, Sentences
from ecomlab.difficulty import Difficulty
from ecomlab.envs.answering import Answering, withhold
from ecomlab.players.policy import Reader
from ecomlab.reward import Verdict
from ecomlab.seeding import rng
from ecomlab.task import Draft, Event, Need, Task
from ecomlab.tool import tool
from ecomlab.values import MONEY, NUMBER, choice
from ecomlab.world.policy_book.book import decide, draw_book
from ecomlab.world.policy_book.cases import (
    draw_facts,
    draw_mentioned,
    draw_question,
    draw_twist,
    other_values,
    section_on,
)
from ecomlab.world.policy_book.rules import FACTS, RULES, Rule
from ecomlab.world.state import World
from ecomlab.world.tools import catalog as shop_tools
from ecomlab.world.tools.policy import policy_search

if TYPE_CHECKING:
    from ecomlab.episode.subtask import Job

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
    golden = "56121ce066a1072ad108da11da5c6bc9"
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
    clerk = Reader
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
        section = draw_question(book, random)
        name = section["rule"]
        facts = draw_facts(section, precedence, catalog, random, draw_mentioned(section, random))
        kind = facts.pop("type", None)
        switching = bool(random.random() < axes.p_switch)
        told = {"type": kind, **facts} if kind else facts
        twist = draw_twist(name, told, book, catalog, random) if switching else {}
        if twist and "question" not in twist:
            # Drawn backwards, so that no clause decides more often in the end.
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
        section = section_on(book, facts, episode.shop.catalog)
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
        section = section_on(book, facts, shop.catalog)
        for name in [hidden[i] for i in random.permutation(len(hidden)).tolist()]:
            for value in other_values(name, facts[name], section):
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
