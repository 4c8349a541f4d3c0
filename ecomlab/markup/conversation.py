"""A record as HTML: the outcome of the episode, then each turn with the state after it and the reward earned."""

from collections.abc import Mapping, Sequence
from typing import Any

from ecomlab.markup.elements import Html, element, joined, pairs, table
from ecomlab.markup.entries import ASK, entries_of
from ecomlab.markup.record import Call, Label, Record, State, Step, steps_of
from ecomlab.markup.results import WIDTH, arguments_in_a_line, read_result, result_in_a_line, result_in_full

SMALLEST = 0.0005
"""Smallest change of a part of the reward that is shown."""


def episode(record: Record) -> Html:
    """Show a whole episode."""
    parts = [_head(record)]
    if record.system:
        folded = element("summary", "instructions to the agent")
        parts.append(element("details", folded, element("p", record.system, class_="text"), class_="system"))
    return element("article", *parts, turns(record.steps, record.labels), class_="episode")


def turns(steps: Sequence[Step], labels: Sequence[Label] = ()) -> Html:
    """Show turns in order, each beside the state after it and its labels. Labels of a turn that was cut off, and is not
    recorded, come last."""
    last = max((step.number for step in steps), default=0)
    unrecorded = [Step(turn) for turn in sorted({label.turn for label in labels if label.turn > last})]
    every = [*steps, *unrecorded]
    before = [None, *(step.state for step in every[:-1])]
    shown = [
        _turn(step, was, [label for label in labels if label.turn == step.number])
        for step, was in zip(every, before, strict=True)
    ]
    return element("ol", *shown, class_="turns")


def alone(messages: Sequence[Mapping[str, Any]]) -> Html:
    """Show messages alone."""
    return element("div", turns(steps_of(messages)), class_="alone")


def score(parts: Mapping[str, float], weights: Mapping[str, float], reward: float | None, why: str) -> Html:
    """Show a reward: its parts, their weights and contributions, and the reason."""
    rows: list[list[object]] = [
        [name, f"{value:.3f}", f"{weights.get(name, 1.0):.2f}", _signed(value * weights.get(name, 1.0))]
        for name, value in parts.items()
    ]
    total = "unscored" if reward is None else _signed(reward)
    return joined(
        [
            table(
                ["reward", "value", "weight", "adds"],
                [*rows, ["together", "", "", total]],
                class_="table score",
            ),
            element("p", why, class_="text"),
        ]
    )


def _head(record: Record) -> Html:
    verdict = {True: "correct", False: "not correct", None: "unscored"}[record.correct]
    made: list[Html] = [
        element("h2", record.title),
        element(
            "p",
            element("strong", verdict, class_=f"verdict {verdict.replace(' ', '-')}"),
            f" · reward {record.reward:.3f}" if record.reward is not None else "",
            f" · ended by {record.end}" if record.end else "",
        ),
    ]
    if record.note:
        made.append(element("p", record.note, class_="note", role="note"))
    if record.parts or record.why:
        made.append(score(record.parts, record.weights, record.reward, record.why))
    if record.facts:
        made.append(pairs({name: value for name, value in record.facts.items() if value not in (None, "")}))
    return element("header", *made)


def _turn(step: Step, before: State | None, labels: Sequence[Label]) -> Html:
    said = [_call(entry.call) if entry.call else _speech(entry.who, entry.text) for entry in entries_of(step)]
    beside = [*map(_label, labels), *([_state(step.state, before)] if step.state else [])]
    opening = "opening" if step.state else ""  # a few messages from the middle may begin like one
    spent = [
        f"{step.tokens:,} tokens" if step.tokens else "",
        f"{step.seconds:.1f} s" if step.seconds >= 0.05 else "",
    ]
    number = element(
        "span",
        f"turn {step.number}" if step.number else opening,
        *(element("small", words) for words in spent if words),
        class_="number",
    )
    body = element("div", *said, class_="said")
    aside = element("aside", *beside) if beside else None
    return element("li", number, body, aside, class_="turn wrong" if labels else "turn")


def _speech(who: str, text: str) -> Html:
    return element("div", element("b", who), element("p", text, class_="text"), class_=f"speech {who}")


def _call(call: Call) -> Html:
    """Show a call, folded; of `ask_user`, which is shown as speech, only what came with the answer."""
    result = read_result(call.result or "")
    if call.name == ASK and not call.arguments and not result.error:
        return result_in_full(call.result or "")
    summary = element(
        "summary",
        element("code", call.name or "result"),
        f" {arguments_in_a_line(call.arguments)}" if call.arguments else "",
        element("span", f" → {result_in_a_line(call.result)}", class_="error" if result.error else "outcome"),
    )
    full = [result_in_full(call.arguments)] if len(call.arguments) > WIDTH else []
    full += [result_in_full(call.result)] if call.result is not None else []
    return element("details", summary, *full, class_="call")


def _label(label: Label) -> Html:
    return element(
        "p", element("strong", label.kind), f": {label.words}" if label.words else "", class_="label"
    )


def _state(state: State, before: State | None) -> Html:
    """Show what a turn changed, and in one line what stayed the same."""
    made: list[Html | None] = [
        _earned(state, before),
        _lines("stated", _new(state.stated, [*before.stated, *before.revealed] if before else ())),
        _lines("revealed", _new(state.revealed, before.revealed if before else ())),
        _lines("withheld", state.withheld) if before is None else None,
        _lines("happened", _new(state.events, before.events if before else ())),
        _held("cart", state.cart, before.cart if before else ()),
        _held("returns", state.returns, before.returns if before else ()),
    ]
    standing = [
        f"messages {state.turns} of {state.turn_budget}",
        f"calls {state.calls} of {state.call_budget}",
    ]
    standing += [f"still withheld {len(state.withheld)}"] if before and state.withheld else []
    standing += [f"reward {state.reward:.3f} if it ended here"] if state.reward is not None else []
    made.append(element("p", " · ".join(standing), class_="quiet"))
    return joined(made)


def _earned(state: State, before: State | None) -> Html | None:
    """Say which parts of the reward a turn earned or lost; None if it did neither."""
    if before is None or state.reward is None or before.reward is None:
        return None
    names = dict.fromkeys((*before.parts, *state.parts))
    changes = {name: state.parts.get(name, 0.0) - before.parts.get(name, 0.0) for name in names}
    changes = {name: change for name, change in changes.items() if abs(change) >= SMALLEST}
    if not changes:
        return None
    change = state.reward - before.reward
    if "invalid" in changes:  # it takes the place of every other part
        changes = {"invalid output": change}
    words = ", ".join(f"{name} {_signed(part)}" for name, part in changes.items())
    sign = "gained" if change > 0 else "lost"
    return element(
        "p", element("strong", f"{sign} {abs(change):.3f}", class_=sign), f" ({words})", class_="reward"
    )


def _lines(name: str, lines: Sequence[str]) -> Html | None:
    if not lines:
        return None
    listed = element("ul", *(element("li", line) for line in lines))
    return element("div", element("b", name), listed, class_=name)


def _held(
    name: str, lines: Sequence[Mapping[str, object]], before: Sequence[Mapping[str, object]]
) -> Html | None:
    """Show the lines of the cart or of returns: a table if they changed, else their number."""
    if list(lines) == list(before):
        return element("p", f"{name} as before, lines: {len(lines)}", class_="quiet") if lines else None
    if not lines:
        return element("p", f"{name} now empty", class_="quiet")
    names = list(lines[0])
    rows = [[line.get(one) for one in names] for line in lines]
    return joined(
        [element("p", name, class_="caption"), table([one.replace("_", " ") for one in names], rows)]
    )


def _new(now: Sequence[str], before: Sequence[str]) -> list[str]:
    return [line for line in now if line not in before]


def _signed(value: float) -> str:
    return f"{value:+.3f}"
