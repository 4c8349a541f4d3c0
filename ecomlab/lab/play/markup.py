"""HTML of a seat: every text that comes from products, customers and people is escaped here, and `$` is no formula."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources

from ecomlab.lab.play.seat import Call, Left, Line, Outcome, used
from ecomlab.lab.truth import Fact
from ecomlab.markup import elements
from ecomlab.markup.conversation import alone
from ecomlab.markup.elements import element, table
from ecomlab.markup.entries import Entry
from ecomlab.markup.results import Card, Result, plain
from ecomlab.task import Message


def style() -> str:
    """The style sheets of the seat, which takes its colours from JupyterLab's theme, and of the conversation in it."""
    own = resources.files("ecomlab.lab.play").joinpath("desk.css").read_text("utf-8")
    return f"<style>{elements.style()}{own}</style>"


def block(content: str, kind: str) -> str:
    """Wrap HTML so that the style sheet applies and no formula is looked for in it."""
    return f'<div class="ecomlab-seat ecomlab-{kind} mathjax_ignore tex2jax_ignore">{content}</div>'


def line(text: str, kind: str) -> str:
    """Show a text as a line of its own."""
    return block(f"<p>{escape(text)}</p>", kind)


def problem(text: str) -> str:
    """Say why nothing was done."""
    return block(f'<p role="alert">{escape(text)}</p>', "problem") if text else ""


def bug(text: str) -> str:
    """Show an error of ours whole."""
    said = "This is a mistake of ecomlab's, not yours; the message for a report:"
    return block(f'<p role="alert">{said}</p><pre>{escape(text)}</pre>', "problem")


def left(left: Left, env: str, difficulty: int, seed: int) -> str:
    """Show the budgets as two bars, with their numbers."""
    rows = "".join(
        f"<span>{name}</span><meter min=0 max={most} low={min(3, most)} value={there} "
        f'aria-label="{name} left"></meter><b>{there} of {most}</b>'
        for name, there, most in (
            ("messages left", left.messages, left.of_messages),
            ("calls left", left.calls, left.of_calls),
        )
    )
    return block(f"<h4>{escape(env)}, d = {difficulty}, seed {seed}</h4><div class=left>{rows}</div>", "left")


def lines(name: str, held: Sequence[Line]) -> str:
    """Show the cart, or the returns that were started."""
    rows = "".join(
        f"<li><b>{line.quantity} ×</b> {escape(line.title)} {_ids(line.ids)}</li>" for line in held
    )
    return block(
        f"<h4>{escape(name.capitalize())}</h4>" + (f"<ul>{rows}</ul>" if rows else "<p>nothing yet</p>"),
        "lines",
    )


def draft(calls: Sequence[Call]) -> str:
    """Show the calls that wait."""
    if not calls:
        return ""
    rows = "".join(f"<li><code>{escape(str(call))}</code></li>" for call in calls)
    said = "These calls wait and go together, in one message, with the next call or words:"
    return block(f"<p>{said}</p><ol>{rows}</ol>", "draft")


def talk(messages: Sequence[Message], job: str) -> str:
    """Show what happened, by turn, the newest in view. `job` is what the agent is told to do."""
    work = f'<p class="job"><b>Your work</b> {escape(job)}</p>'
    return block(f"<div>{work}{_turns(messages)}</div>", "talk")


def _turns(messages: Sequence[Message]) -> str:
    return element("div", alone(messages), class_="ecomlab")


def came(entry: Entry) -> str:
    """Show what came of a call beside its rows."""
    found = entry.result or Result()
    return block(f"<h4>{escape(str(entry))}</h4>{problems(found)}{facts(found.facts)}", "came")


def problems(found: Result) -> str:
    """Show what a result has to say beside its rows."""
    said = [f"<p class=error>{escape(found.error)}</p>"] * bool(found.error)
    return "".join(said + [f"<p class=notice>{escape(found.notice)}</p>"] * bool(found.notice))


def facts(values: Mapping[str, str]) -> str:
    """Show facts as a line of names and values; a text of several lines keeps them."""
    return f"<p class=facts>{escape(plain(values))}</p>" if values else ""


def card(shown: Card) -> str:
    """Show one row of a result."""
    marks = "".join(f"<mark>{escape(mark)}</mark>" for mark in shown.marks)
    return f"<div class=card><b>{escape(shown.title)}</b> {marks} {_ids(shown.ids)}{facts(shown.facts)}</div>"


def _ids(ids: Mapping[str, str]) -> str:
    return " ".join(f'<code title="{escape(name)}">{escape(value)}</code>' for name, value in ids.items())


def outcome(found: Outcome) -> str:
    """Show the reward with its parts and the reason, the truth, and how the reference player did it."""
    score = found.trajectory.score
    verdict = "unscored" if score.unscored else "correct" if score.correct else "not correct"
    style = {"unscored": "unscored", "correct": "right"}.get(verdict, "wrong")
    value = "" if score.unscored else f", reward {score.value:.3f} of at most 0.900"
    rows = [
        (part.name, f"{part.value:.3f}", f"× {part.weight:.2f}", f"= {part.adds:.3f}", part.means)
        for part in found.parts
    ]
    ended = f"The episode ended by {found.trajectory.end}."
    theirs = found.reference.score
    way = (
        f"<details><summary>How the reference player, who sees what you saw, does it: "
        f"{used(found.reference)}, reward {theirs.value:.3f}</summary>"
        f"<p>{escape(theirs.why)}</p>{_turns(found.reference.messages)}</details>"
    )
    return block(
        f'<h3 class="{style}">{verdict}{value}</h3>'
        f"<p>{escape(score.why)}. {ended}</p>{table(('part', 'value', 'weight', 'adds', 'what it is'), rows)}"
        f"<h4>What was wanted</h4>{truth(found.truth)}{way}",
        "outcome",
    )


def truth(found: Iterable[Fact]) -> str:
    """Show the truth as a table."""
    return table(("about", "when", "what"), [(fact.about, fact.what, fact.text) for fact in found])
