"""A sheet for each of the sixty trajectories, for readers: turn by turn what the agent saw and said, and what was true.

    python experiments/cascade/readers/sheets.py

Writes sheets/NN.md for every place that is played. Neither labels by code, nor verdict, reward or player are on them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from places import HERE, SIZE, TRANSCRIPTS
from truth import Truth, truths_of

from ecomlab.catalog import Shop, load_shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.play import replay
from ecomlab.episode.record import Trajectory
from ecomlab.evaluation.evaluation import trajectory_of
from ecomlab.evaluation.transcripts import read
from ecomlab.lab.view.acting import record_of_trajectory
from ecomlab.markup.entries import AGENT, TOOL, Entry, entries_of
from ecomlab.markup.record import State, Step
from ecomlab.markup.results import Card

SHEETS = HERE / "sheets"
ENDS = {
    "submit": "The agent handed in, which ended the conversation.",
    "turns": "The agent used its last message without having handed in.",
    "patience": "The customer lost patience and left.",
    "invalid": "The agent's last message was no message: it could not be read",
    "truncated": "The agent's last message was cut off by a limit of tokens.",
}


def sheet(name: str, trajectory: Trajectory, shop: Shop) -> str:
    """Write the sheet of a trajectory."""
    task = trajectory.task
    record = record_of_trajectory(trajectory, shop, labels=())
    truths: list[list[Truth]] = []
    replay(trajectory, shop, lambda episode: truths.append(truths_of(episode)))
    jobs = [part.env for part in task.parts]
    lines = [
        f"# Trajectory {name}: {task.env}, d = {task.difficulty}",
        "",
        f"The agent's job, as it was told: {ENVIRONMENTS[task.env].brief}",
        f"It may send {task.turns} messages and make {task.calls} tool calls.",
        "",
        "## Before turn 1",
        "",
    ]
    before: State | None = None
    for step in record.steps:
        if step.number:
            lines += ["", f"## Turn {step.number}", ""]
        lines += said(step)
        was = truths[step.number - 1] if step.number else []
        lines += ["", *after(step, before, was, truths[step.number], jobs)]
        before = step.state
    return "\n".join([*lines, "", "## The end", "", ending(trajectory), ""])


def said(step: Step) -> Iterator[str]:
    """Write what was said and called in a turn, results as tables; text beside calls is read by nobody."""
    for number, entry in enumerate(entries_of(step)):
        if entry.who == TOOL:
            yield from called(entry)
            continue
        remark = entry.who == AGENT and number == 0 and bool(step.text and step.calls)
        who = (
            "Agent (a remark that nobody reads)" if remark else "Agent" if entry.who == AGENT else "Customer"
        )
        yield f"**{who}:** {' '.join(entry.text.split())}"
        yield ""


def called(entry: Entry) -> Iterator[str]:
    """Write a call and its result."""
    yield f"**Agent calls** `{str(entry).replace('`', chr(39))}`"
    yield ""
    result = entry.result
    if result is None:
        return
    for what in ("error", "notice"):
        if text := getattr(result, what):
            yield f"- {what}: {text}"
    if result.facts:
        yield "- " + "; ".join(f"{name}: {value}" for name, value in result.facts.items())
    for name, cards in result.groups:
        yield from ["", *table(name, cards)] if cards else [f"- {name}: none"]
    yield ""


def table(name: str, cards: Sequence[Card]) -> list[str]:
    """Write the rows of a result as a table."""
    rows = [
        {
            name: card.title + "".join(f" [{mark}]" for mark in card.marks),
            **{field: one for field, one in card.ids.items() if one != card.title},
            **card.facts,
        }
        for card in cards
    ]
    columns = list(dict.fromkeys(column for row in rows for column in row))
    cells = [columns, ["---"] * len(columns), *([row.get(column, "") for column in columns] for row in rows)]
    return [
        f"| {' | '.join(str(cell).replace('|', '/').replace(chr(10), ' ') for cell in row)} |"
        for row in cells
    ]


def after(
    step: Step, before: State | None, was: Sequence[Truth], now: Sequence[Truth], jobs: Sequence[str]
) -> Iterator[str]:
    """Write what a turn left behind, as far as it is another than before it."""
    state = step.state
    assert state is not None
    yield "> **Truth after this turn**" if step.number else "> **Truth (the agent sees none of this)**"
    old = before or State((), (), (), (), (), (), 0, 0, 0, 0, None, {})
    told = [*old.stated, *old.revealed]
    for name, lines in (
        ("happened", _new(state.events, old.events)),
        ("the customer said unasked", _new(state.stated, told)),
        ("the customer told what they had kept back", _new(state.revealed, told)),
        ("the customer keeps back until asked", _new(state.withheld, old.withheld)),
    ):
        if lines:
            yield f"> - {name}: {'; '.join(lines)}"
    for name, held, held_before in (
        ("cart", state.cart, old.cart),
        ("returns started", state.returns, old.returns),
    ):
        if list(held) != list(held_before):
            yield f"> - {name}: {'; '.join(map(_line, held)) or 'empty'}"
    for number, truth in enumerate(now):
        named = f" of job {number + 1} ({jobs[number]})" if len(jobs) > 1 else ""
        yield from _changed(was[number] if number < len(was) else None, truth, named)
    if step.number:
        yield (
            f"> - used: {state.turns} of {state.turn_budget} messages, {state.calls} of {state.call_budget} calls"
        )


def _changed(was: Truth | None, now: Truth, named: str) -> Iterator[str]:
    """Write what is true now of a job and was not before."""
    if was is None or was.wants != now.wants:
        yield f"> - **wanted from now on**{named}:"
        yield from (f">   - {want}" for want in now.wants)
    if now.right and (was is None or was.right != now.right):
        yield f"> - **right from now on**{named}:"
        yield from (f">   - {one}" for one in now.right)
    for about, fitting in now.fits.items():
        known = was.fits.get(about, {}) if was is not None and was.wants == now.wants else {}
        new = [one for one, left in fitting.items() if one not in known or known[one].about != left.about]
        if new:
            listed = ", ".join(f"{one} ({fitting[one].words})" for one in new)
            yield f"> - tools have shown{' also' if known else ''}{named}, as wanted for {about}: {listed}"


def _line(line: Mapping[str, Any]) -> str:
    """Write a line of the cart or of the returns."""
    rest = ", ".join(
        f"{name} {value}" for name, value in line.items() if name not in ("units", "product") and value
    )
    return f"{line['units']} x {line['product']} ({rest})"


def _new(now: Sequence[str], before: Sequence[str]) -> list[str]:
    return [one for one in now if one not in before]


def ending(trajectory: Trajectory) -> str:
    """Say how the episode ended, and nothing of how good it was."""
    text = ENDS[str(trajectory.end)]
    if trajectory.end == "truncated":  # in a message of its own, which is not recorded
        said = sum(message["role"] == "assistant" for message in trajectory.messages)
        return f"Turn {said + 1}: {text}"
    if trajectory.end == "invalid":
        return f"{text} ({trajectory.score.why.removeprefix('invalid output: ')})."
    return text


def main() -> None:
    shop = load_shop(SIZE)
    SHEETS.mkdir(exist_ok=True)
    count = 0
    for transcript in read(TRANSCRIPTS):
        name = f"{transcript.notes['place']:02}"
        text = sheet(name, trajectory_of(transcript, shop), shop)
        (SHEETS / f"{name}.md").write_text(text, "utf-8", newline="\n")
        count += 1
    print(f"{count} sheets")


if __name__ == "__main__":
    main()
