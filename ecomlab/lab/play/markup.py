"""HTML of a seat: every text that comes from products, customers and people is escaped, and `$` is no formula."""

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from ecomlab.lab.play.seat import Left, Outcome
from ecomlab.markup import conversation, elements
from ecomlab.markup.elements import Html, element, joined, table
from ecomlab.markup.entries import Entry
from ecomlab.markup.record import number
from ecomlab.markup.results import Card, Result, plain
from ecomlab.task import Message


def style() -> str:
    """Read the style sheets of the seat, which takes its colours from JupyterLab's theme, and of the conversation."""
    own = resources.files("ecomlab.lab.play").joinpath("desk.css").read_text("utf-8")
    return f"<style>{elements.style()}{own}</style>"


def block(kind: str, *children: Any) -> str:
    """Wrap HTML so that the style sheet applies and no formula is looked for in it."""
    return element("div", *children, class_=f"ecomlab-seat ecomlab-{kind} mathjax_ignore tex2jax_ignore")


def line(text: str, kind: str) -> str:
    """Show a text as a line of its own."""
    return block(kind, element("p", text))


def problem(text: str) -> str:
    """Say why nothing was done; a traceback is shown as it is."""
    return block("problem", element("pre" if "\n" in text else "p", text, role="alert"))


def left(left: Left) -> str:
    """Show the budgets as two bars, with their numbers."""
    bars = []
    for name, there, most in (
        ("messages left", left.messages, left.of_messages),
        ("calls left", left.calls, left.of_calls),
    ):
        limits = {"min": 0, "max": most, "low": min(3, most), "value": there, "aria-label": name}
        bars += [element("span", name), element("meter", **limits), element("b", f"{there} of {most}")]
    return block("left", element("div", *bars, class_="left"))


def listed(title: str, lines: Sequence[object], kind: str) -> str:
    """Show lines below a title: the cart, the returns, or the calls that wait."""
    return block(kind, element("h4", title), element("ul", *(element("li", one) for one in lines)))


def talk(messages: Sequence[Message], job: str) -> str:
    """Show what happened, by turn, the newest in view. `job` is what the agent is told to do."""
    work = element("p", element("b", "Your work"), f" {job}", class_="job")
    return block("talk", element("div", work, _turns(messages)))


def came(entry: Entry) -> str:
    """Show what came of a call beside its rows."""
    found = entry.result or Result()
    told = [
        element("p", text, class_=kind)
        for kind, text in (("error", found.error), ("notice", found.notice), ("facts", plain(found.facts)))
        if text
    ]
    return block("came", element("h4", entry), *told)


def card(shown: Card) -> str:
    """Show one row of a result."""
    marks = joined(element("mark", mark) for mark in shown.marks)
    facts = element("p", plain(shown.facts), class_="facts") if shown.facts else None
    row = element("div", element("b", shown.title), " ", marks, " ", _ids(shown.ids), facts, class_="card")
    return block("result", row)


def outcome(found: Outcome) -> str:
    """Show the reward with its parts and the reason, the truth, and how the reference player did it."""
    score, theirs = found.trajectory.score, found.reference
    verdict = "unscored" if score.unscored else "correct" if score.correct else "not correct"
    style = {"unscored": "unscored", "correct": "right"}.get(verdict, "wrong")
    value = "" if score.unscored else f", reward {score.value:.3f} of at most 0.900"
    way = f"The reference player, who sees what you saw: reward {theirs.score.value:.3f}"
    return block(
        "outcome",
        element("h3", verdict + value, class_=style),
        conversation.score(score.parts, score.weights, number(score.value), score.why),
        element("h4", "What was wanted"),
        table(("about", "when", "what"), [(fact.about, fact.what, fact.text) for fact in found.truth]),
        element("details", element("summary", way), _turns(theirs.messages)),
    )


def _turns(messages: Sequence[Message]) -> Html:
    return element("div", conversation.alone(messages), class_="ecomlab")


def _ids(ids: Mapping[str, str]) -> Html:
    return joined((element("code", value, title=name) for name, value in ids.items()), " ")
