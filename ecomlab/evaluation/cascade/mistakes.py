"""What is known of a mistake, and of a trajectory whose mistakes are labelled; both are JSON as well."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

WORLD = (
    "wrong product", "unwanted item", "wrong variant", "wrong quantity", "wrong line", "wrong order", "wrong status",
    "wrong date", "wrong outcome", "wrong answer", "wrong clause", "not the best", "sold out", "over budget",
    "stale wish", "missed item", "dropped job",
)  # fmt: skip
"""Kinds of mistakes that stand in the world or in what was handed in, until they are mended."""
ACTS = (
    "ignored correction", "claims absence", "unseen id", "unseen pair", "wasted turn", "out of calls",
)  # fmt: skip
"""Kinds of mistakes that are over once they are made."""
TERMINAL = {
    "invalid": "invalid output",
    "truncated": "cut off",
    "turns": "out of turns",
    "patience": "patience lost",
}
"""Kinds of mistakes that end an episode, by the end."""
KINDS = (*WORLD, *ACTS, *TERMINAL.values())

CAUSES = ("stale", "forgotten", "unasked", "not found", "mis-selected", "misread")
"""Causes of the kinds in `WORLD`, by the first that applies: an event changed what is wanted; it was right before; what
it breaks had not been told; told, and no tool had shown what fits; shown; told, and there was nothing to find."""
PASSED = "passed"
FATES = (
    "mended alone", "mended after a correction", "overtaken", "given up", "persisted", PASSED, "ended the episode",
)  # fmt: skip
"""What becomes of a mistake. Overtaken: the customer changed their mind and it is none any more. Passed: it was over
once it was made."""


@dataclass(frozen=True)
class Mistake:
    """An act of the agent after which the world, or what it says of it, departs from what the customer wants now and
    has told, or would tell for the asking."""

    turn: int
    """Number of the assistant message, from 1."""
    kind: str
    place: str = ""
    """What it is about, the same from turn to turn: "item 0" for the goal's first item, else a name."""
    cause: str = ""
    fate: str = PASSED
    job: int = 0
    """Number of the subtask in a journey."""
    thing: str = ""
    """What is there instead of what is wanted: an id, a number of units."""
    slots: tuple[str, ...] = ()
    """Slots of the goal that it breaks."""
    parent: int | None = None
    """Number, in the trajectory, of the mistake that led to this one by rule; None of a first mistake."""
    until: int | None = None
    """Turn at whose end it was mended or overtaken."""
    words: str = ""

    def to_json(self) -> dict[str, Any]:
        """Write as a JSON object."""
        return {**asdict(self), "slots": list(self.slots)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Mistake":
        """Read what `to_json` wrote."""
        return cls(**{**value, "slots": tuple(value["slots"])})


@dataclass(frozen=True)
class Labelled:
    """The mistakes of a trajectory, in order: by turn, within one by call, text, end."""

    env: str
    d: int
    seed: int
    turns: int
    """Assistant messages."""
    needed: int
    """Turns that the reference player needs for the task as it unfolded."""
    end: str | None
    correct: bool
    unscored: bool
    """Our own failure ended it: its mistakes up to there count for nothing (BROKEN IS NOT WRONG)."""
    mistakes: tuple[Mistake, ...] = ()
    doubtful: tuple[tuple[int, str], ...] = ()
    """(turn, sentence) that may deny that something exists, in words that are not on the closed list."""

    @property
    def first(self) -> Mistake | None:
        """The first mistake; None without any."""
        return self.mistakes[0] if self.mistakes else None

    @property
    def roots(self) -> tuple[Mistake, ...]:
        """Mistakes that no other one led to by rule."""
        return tuple(mistake for mistake in self.mistakes if mistake.parent is None)

    @property
    def standing(self) -> tuple[Mistake, ...]:
        """Mistakes in the world or the answer that nobody mended: none exactly where the end is as wanted."""
        lasting = (*WORLD, "unseen id")  # which may have been handed in
        return tuple(m for m in self.mistakes if m.kind in lasting and m.fate in ("persisted", "given up"))

    def to_json(self) -> dict[str, Any]:
        """Write as a JSON object."""
        return {
            **{name: getattr(self, name) for name in self.__dataclass_fields__},
            "mistakes": [mistake.to_json() for mistake in self.mistakes],
            "doubtful": [list(one) for one in self.doubtful],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Labelled":
        """Read what `to_json` wrote. Raises KeyError or TypeError for anything else."""
        mistakes = tuple(map(Mistake.from_json, value["mistakes"]))
        doubtful = tuple((turn, text) for turn, text in value["doubtful"])
        return cls(**{**value, "mistakes": mistakes, "doubtful": doubtful})
