"""The reward: how its parts are computed and composed. Pure functions."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ecomlab.markup import conversation
from ecomlab.markup.elements import in_notebook
from ecomlab.markup.record import number
from ecomlab.suggest import unknown

INVALID = -1.0
"""Reward of an invalid output: malformed JSON, an unknown tool, missing or wrongly typed arguments."""


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Weights of the reward's parts."""

    task: float = 0.75
    efficiency: float = 0.15
    hallucination: float = 0.10

    def __post_init__(self) -> None:
        for name, weight in self.by_name.items():
            number = isinstance(weight, int | float) and not isinstance(weight, bool)
            if not number or not 0 <= weight < math.inf:
                raise ValueError(f"the weight of {name} must be a finite number, 0 or more, not {weight!r}")
            object.__setattr__(self, name, float(weight))

    @classmethod
    def of(cls, given: Mapping[str, float]) -> "Weights":
        """Make weights from those that are named; the others keep their defaults. Raises ValueError for other names."""
        known = [one.name for one in fields(cls)]
        for name in given:
            if name not in known:
                raise ValueError(unknown("part of the reward", name, known))
        return cls(**given)

    @property
    def by_name(self) -> dict[str, float]:
        return asdict(self)

    def compose(self, parts: Mapping[str, float]) -> float:
        """Compute the reward of the three parts: their weighted sum, clipped to [-1, 1]."""
        total = sum(weight * parts[name] for name, weight in self.by_name.items())
        return min(1.0, max(-1.0, round(total, 12)))  # rounded: 0.1 + 0.2 is 0.3


PUBLISHED = Weights()
"""Weights of the published reward."""


@dataclass(frozen=True)
class Score:
    """Reward of an episode, with its parts and the reason.

    `value` lies in [-1, 1], with the published weights at most 0.90; it is NaN when `unscored` (our own failure, BROKEN
    IS NOT WRONG). `parts` holds the named components before weighting; `correct` is the verifier's verdict.
    """

    value: float
    correct: bool
    why: str
    parts: Mapping[str, float] = field(default_factory=dict)
    unscored: bool = False
    asking: Mapping[str, int] = field(default_factory=dict)
    """Statistics beside the score: questions, slots learned from them, and questions about slots that the customer
    lacks."""
    weights: Mapping[str, float] = field(default_factory=lambda: PUBLISHED.by_name)
    """Weights of the parts by name; `invalid`, the only part of an invalid episode, has weight 1."""

    @classmethod
    def failed_by_us(cls, why: str) -> "Score":
        """Make the score of an unscored episode, which our own failure ended: counted, never a reward."""
        return cls(value=math.nan, correct=False, why=why, unscored=True)

    def _repr_html_(self) -> str:
        """Show the parts, their weights and what they add up to."""
        return in_notebook(conversation.score(self.parts, self.weights, number(self.value), self.why))


NEAR = 0.25
"""Credit for a unit of a wanted type that is not the right product in the right variant."""


def cart_credit(matched: int, near: int, got: int, wanted: int) -> float:
    """Compute r_task of a cart in [-1, 1]: `clip(2 F1 - 1 - excess, -1, 1)`, exactly 1 for the right cart, -1 if empty.

    The published formula is 2 F1 - 1; NOT GAMEABLE needs two changes. `excess` is the share of the units in the cart
    that are beyond the number wanted: without it, adding everything ever listed earns more than an honest wrong choice.
    A near unit counts `NEAR`: without it, an honest wrong choice at d = 0 earns as little as doing nothing, and less
    than picking a visit at random, which is sometimes right.
    """
    if got == 0 and wanted:
        return -1.0
    excess = max(0, got - wanted) / got if got else 0.0
    agreement = 1.0 if got + wanted == 0 else 2.0 * (matched + NEAR * near) / (got + wanted)
    return min(1.0, max(-1.0, 2.0 * agreement - 1.0 - excess))


FREE: Mapping[str, int] = {
    "summary": 1,
    "consent": 1,
    "closing": 1,
    "courtesy": 1,
    "question": 2,
    "answer": 1,
    "telling": 4,
}
"""Number of messages a job that cost no turn, by what they do: a summary, a request for consent, a closing question, a
courtesy, questions that found nothing, an answer to what the customer asked back, and answers to their questions."""


@dataclass(frozen=True)
class Talk:
    """A turn in which the customer heard the agent.

    `did` names what it did, in the words of `FREE`; `useful`: it revealed something; `asked`: the customer asked back.
    `alone`: the turn did nothing else. Beside calls talk costs no turn, so only a useful question excuses one there.
    """

    did: frozenset[str] = frozenset()
    useful: bool = False
    asked: bool = False
    alone: bool = True

    def grounds(self, answers: bool) -> Iterator[frozenset[str]]:
        """List the grounds on which the turn may be free, each a set of what must be left; `answers`: the customer had
        asked back before."""
        if self.useful:
            yield frozenset(("useful",))
        if self.alone and "telling" in self.did:
            yield frozenset(("telling",))
        if self.alone and answers:
            yield frozenset(("answer",))
        if self.alone and self.did - {"telling"}:
            yield self.did - {"telling"}
        if self.alone and "closing" in self.did:  # a further one is one more question
            yield self.did - {"closing", "telling"} | {"question"}


def free_turns(talk: Iterable[Talk], asks: int) -> int:
    """Count the turns of a job's talk that are free: useful questions, at most `asks` of them, and `FREE` messages. A
    message that does several things is free if each of them still is."""
    left, free, answers = {"useful": asks, **FREE}, 0, False
    for turn in talk:
        ground = next((one for one in turn.grounds(answers) if all(left[kind] for kind in one)), None)
        for kind in ground or ():
            left[kind] -= 1
        free += ground is not None
        answers = turn.asked
    return free


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Turns and tool calls of an episode: used, needed as it unfolded, and the slack of the budgets.

    The efficiency of a correct episode is `1 - 2 w`, w being the mean of `turn_share` and `call_share`:

        share = clip((used - excused - needed) / slack, 0, 1)

    `turns_needed` and `calls_needed` are the reference player's for the task and for the events that happened, each
    once. `excused` turns are those that the customer caused and those that are free (`free_turns`); excused turns and
    calls too are those that looked up alternatives after a stock notice, beyond what the sell-out is given.
    """

    turns: int
    excused: int
    turns_needed: int
    turn_slack: int
    calls: int
    excused_calls: int = 0
    calls_needed: int
    call_slack: int

    @property
    def turn_share(self) -> float:
        """Share of the turn slack that was used up."""
        return share_used(self.turns - self.excused, self.turns_needed, self.turn_slack)

    @property
    def call_share(self) -> float:
        """Share of the tool call slack that was used up."""
        return share_used(self.calls - self.excused_calls, self.calls_needed, self.call_slack)

    def __str__(self) -> str:
        turns, calls = max(0, self.turns - self.excused), max(0, self.calls - self.excused_calls)
        talk = f" ({self.turns} minus {self.excused} free)" if self.excused else ""
        looks = f" ({self.calls} minus {self.excused_calls} for alternatives)" if self.excused_calls else ""
        return (
            f"{turns} turns{talk} of {self.turns_needed} needed, slack {self.turn_slack}; "
            f"{calls} calls{looks} of {self.calls_needed} needed, slack {self.call_slack}"
        )


def efficiency(correct: bool, turn_share: float, tool_share: float) -> float:
    """Compute r_eff: -1 unless correct, else `1 - 2 w`, w being the mean share of turn and tool slack that was used."""
    if not correct:
        return -1.0
    return 1.0 - (min(1.0, max(0.0, turn_share)) + min(1.0, max(0.0, tool_share)))


def share_used(used: int, needed: int, slack: int) -> float:
    """Compute the share of the slack that was used beyond `needed`, in [0, 1]; without slack, any excess is 1."""
    over = max(0, used - needed)
    if slack <= 0:
        return 1.0 if over else 0.0
    return min(1.0, over / slack)


def hallucination(claimed: Sequence[object], shown: frozenset[object] | set[object]) -> float:
    """Compute r_hall: minus the share of claimed ids (or id and variant pairs) that no tool showed in this episode."""
    if not claimed:
        return 0.0
    return -sum(item not in shown for item in claimed) / len(claimed)


def ndcg(gains: Sequence[float], ideal: Sequence[float], count: int) -> float:
    """Compute the normalised discounted cumulative gain of the first `count` places, in [0, 1]: the sum of
    gain / log2(place + 1), divided by that of the best possible list (Järvelin and Kekäläinen, 2002)."""

    def discounted(values: Sequence[float]) -> float:
        return sum(value / math.log2(place + 2) for place, value in enumerate(values[:count]))

    best = discounted(ideal)
    return discounted(gains) / best if best else 0.0


@dataclass(frozen=True)
class Verdict:
    """Verdict on an end state: r_task in [-1, 1], whether it is exactly right, and why."""

    credit: float
    correct: bool
    why: str
    claims: tuple[Any, ...] = ()
    """Product ids and (product id, variant id) pairs in the cart or the answer, for the hallucination part."""

    @classmethod
    def of(cls, correct: bool, credit: float, why: str, claims: Sequence[Any] = ()) -> "Verdict":
        """Make the verdict on an answer: r_task is 1 for a correct one and at most 0.999 for any other."""
        return cls(1.0 if correct else max(-1.0, min(credit, 0.999)), correct, why, tuple(claims))


@dataclass(frozen=True)
class Fault:
    """A single fault of the world or of an answer: one of the reasons why a verdict is not `correct`."""

    kind: str
    """Kind, such as "wrong product"; `ecomlab.evaluation.mistakes` lists them."""
    place: str
    """Subject of the fault, stable from turn to turn: "item 0" for the goal's first item, else a name."""
    thing: str = ""
    """The wrong value: an id, a number of units."""
    slots: tuple[str, ...] = ()
    """Slots of the goal that it violates."""
    right: tuple[str, ...] = ()
    """Ids of the right values, if they are few."""
    words: str = ""
    step: str = ""
    """Kind of the step of thought that failed, where the audit knows it; see `ecomlab.steps`."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Key that identifies the fault from turn to turn."""
        return self.kind, self.place, self.thing


TOLERANCE = 1e-6
"""Rewards closer than this are equal: `np.std` of equal floats can exceed zero."""


def varies(values: Sequence[float]) -> bool:
    """Tell whether the scored values differ by more than `TOLERANCE`; NaN is unscored."""
    scored = [float(v) for v in values if not math.isnan(v)]
    return len(scored) > 1 and max(scored) - min(scored) > TOLERANCE
