"""The displayed record of an episode: plain values, from its messages alone or with the state after each turn."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol


class Scored(Protocol):
    """Fields of a score that a record needs."""

    @property
    def value(self) -> float: ...
    @property
    def correct(self) -> bool: ...
    @property
    def why(self) -> str: ...
    @property
    def parts(self) -> Mapping[str, float]: ...
    @property
    def unscored(self) -> bool: ...


@dataclass(frozen=True)
class Call:
    """A tool call: its arguments as the agent wrote them, its result as text, None if it has none."""

    name: str
    arguments: str
    result: str | None = None


@dataclass(frozen=True)
class Label:
    """A finding in a turn, such as a mistake of the agent: its kind and its description."""

    turn: int
    """Number of the turn, from 1; 0 is the opening."""
    kind: str
    words: str = ""


@dataclass(frozen=True)
class State:
    """State of an episode after a turn."""

    cart: Sequence[Mapping[str, Any]]
    """Lines, each by the names of its columns."""
    returns: Sequence[Mapping[str, Any]]
    """Lines of orders that are being sent back, likewise."""
    stated: Sequence[str]
    """Wishes that the customer has stated unasked so far, in words."""
    revealed: Sequence[str]
    """Withheld wishes that they have revealed since."""
    withheld: Sequence[str]
    """Wishes that they still withhold."""
    events: Sequence[str]
    """Events so far, in words."""
    turns: int
    """Messages used, without those that did not count."""
    turn_budget: int
    calls: int
    """Tool calls used."""
    call_budget: int
    reward: float | None
    """Reward if the episode ended here; None if it is unscored."""
    parts: Mapping[str, float]
    """Its parts, weighted: they add up to the reward."""


@dataclass(frozen=True)
class Step:
    """A turn: what the agent said and called, and what the customer said after it. The first is the opening."""

    number: int
    text: str = ""
    calls: Sequence[Call] = ()
    said: Sequence[str] = ()
    state: State | None = None
    tokens: int = 0
    """Sampled by the agent; 0 if they were not recorded."""
    seconds: float = 0.0
    """Waited for the agent; 0 if they were not recorded."""


@dataclass(frozen=True)
class Record:
    """An episode as it is displayed."""

    title: str
    """Name of the episode: environment, difficulty, seed, player."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Further facts, by name."""
    correct: bool | None = None
    """None for an unscored episode."""
    end: str | None = None
    reward: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    """Named parts of the reward, before they are weighted."""
    weights: Mapping[str, float] = field(default_factory=dict)
    why: str = ""
    system: str = ""
    """The agent's instructions."""
    steps: Sequence[Step] = ()
    labels: Sequence[Label] = ()
    note: str = ""
    """Why something is missing."""

    @classmethod
    def of(
        cls,
        title: str,
        messages: Sequence[Mapping[str, Any]],
        end: str | None,
        score: Scored,
        weights: Mapping[str, float],
    ) -> "Record":
        """Make the record of an episode from its messages and score alone."""
        return cls(
            title=title,
            correct=None if score.unscored else score.correct,
            end=end,
            reward=number(score.value),
            parts=dict(score.parts),
            weights=dict(weights),
            why=score.why,
            system=system_of(messages),
            steps=steps_of(messages),
        )

    def to_json(self) -> dict[str, Any]:
        """Write as a JSON object."""
        return asdict(self)


def number(value: float) -> float | None:
    """Replace NaN, which JSON lacks, by None."""
    return None if math.isnan(value) else value


def system_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the agent's instructions, "" where there are none."""
    return next((text_of(message) for message in messages if message["role"] == "system"), "")


def steps_of(messages: Sequence[Mapping[str, Any]]) -> list[Step]:
    """Group messages by turn: an assistant's message, its calls' results, and what the customer said until the next.

    What comes before the first assistant message is step 0, the opening. A result without its call stands alone.
    """
    steps: list[Step] = []
    for message in messages:
        role = message["role"]
        if role == "assistant":
            calls = tuple(
                Call(made.get("name", ""), _as_text(made.get("arguments"))) for made in _functions(message)
            )
            steps.append(Step(steps[-1].number + 1 if steps else 1, text_of(message), calls))
            waiting = [made.get("id") for made in message.get("tool_calls") or ()]
        elif role in ("tool", "user"):
            if not steps:
                steps, waiting = [Step(0)], []
            steps[-1] = _answered(steps[-1], message, waiting)
    return steps


def _answered(step: Step, message: Mapping[str, Any], waiting: Sequence[Any]) -> Step:
    text = text_of(message)
    if message["role"] == "user":
        return replace(step, said=(*step.said, text))
    called = message.get("tool_call_id")
    for number, call in enumerate(step.calls):
        if number < len(waiting) and waiting[number] == called and call.result is None:
            answered = replace(call, result=text)
            return replace(step, calls=(*step.calls[:number], answered, *step.calls[number + 1 :]))
    return replace(step, calls=(*step.calls, Call(str(message.get("name", "")), "", text)))


def _functions(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (made.get("function") or {} for made in message.get("tool_calls") or ())


def text_of(message: Mapping[str, Any]) -> str:
    """Return a message's text; content in parts is joined."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, Mapping))
    return _as_text(content)


def _as_text(value: Any) -> str:
    return "" if value is None else str(value)
