"""A conversation as a list of utterances and calls, from which HTML and plain text are made."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ecomlab.markup.record import Call, Step, steps_of
from ecomlab.markup.results import Result, call_in_a_line, read, read_result, result_in_lines

ASK = "ask_user"
"""The tool by which an agent speaks to the customer beside other calls: its call and result are speech."""
AGENT, CUSTOMER, TOOL = "agent", "customer", "tool"


@dataclass(frozen=True)
class Entry:
    """An utterance of the customer or the agent, or a call with its result."""

    number: int
    """Number of the turn that it belongs to; 0 is the customer's opening."""
    who: str
    text: str = ""
    call: Call | None = None
    """Of a tool."""

    @property
    def tool(self) -> str:
        return self.call.name if self.call else ""

    @property
    def result(self) -> Result | None:
        """The call's result, None for words and for a call that has none."""
        return None if self.call is None or self.call.result is None else read_result(self.call.result)

    def __str__(self) -> str:
        if self.call is None:
            return self.text
        return call_in_a_line(self.call.name, self.call.arguments) if self.call.arguments else self.call.name


def conversation(messages: Sequence[Mapping[str, Any]]) -> list[Entry]:
    """List the entries of a conversation in order, without the system prompt."""
    return [entry for step in steps_of(messages) for entry in entries_of(step)]


def entries_of(step: Step) -> Iterator[Entry]:
    """List the entries of a turn. A question by `ask_user` is the agent's words, the answer the customer's."""
    if step.text:
        yield Entry(step.number, AGENT, step.text)
    for call in step.calls:
        yield from _called(step.number, call)
    for text in step.said:
        yield Entry(step.number, CUSTOMER, text)


def _called(number: int, call: Call) -> Iterator[Entry]:
    given, result = read(call.arguments), read(call.result or "")
    question = given.get("question") if isinstance(given, Mapping) else None
    if call.name != ASK or (call.arguments and not isinstance(question, str)):
        yield Entry(number, TOOL, call=call)
        return
    if question is not None:  # an answer may stand alone, as a turn's messages have it
        yield Entry(number, AGENT, question)
    if isinstance(result, Mapping) and "customer" in result:
        yield Entry(number, CUSTOMER, str(result["customer"]))
        rest = {name: value for name, value in result.items() if name != "customer"}
        call = Call(ASK, "", json.dumps(rest, ensure_ascii=False) if rest else None)
    if call.result is not None:
        yield Entry(number, TOOL, call=call)


def lines_of(entries: Iterable[Entry]) -> Iterator[tuple[str, str]]:
    """Write entries as plain text, line by line: (who, words or call), then ("", a row of the call's result). Further
    lines of a text, such as a list's or a policy's, are lines of their own."""
    for entry in entries:
        first, *more = str(entry).splitlines() or [""]
        yield entry.who, first
        yield from (("", line) for line in more)
        if entry.call is not None and entry.call.result is not None:
            for row in result_in_lines(entry.call.result):
                yield from (("", line) for line in row.splitlines())


def as_text(entries: Iterable[Entry]) -> str:
    """Write entries as plain text, who it was in a column of its own."""
    return "\n".join(f"{who:>8}  {line}" for who, line in lines_of(entries))
