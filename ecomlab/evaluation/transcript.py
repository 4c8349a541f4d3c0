"""The record of one evaluated episode, and its line in a file."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ecomlab.episode.record import Trajectory
from ecomlab.evaluation.contestant import Job, Usage
from ecomlab.evaluation.tasks import write_axes
from ecomlab.reward import Score
from ecomlab.task import Message

PARTS = ("task", "efficiency", "hallucination")
"""Parts of a score that a table has."""
OURS = "episode"
"""Class of an episode that is unscored because our own code failed."""
Key = tuple[str, int, int, int]
"""Key of an episode within a run: environment, level, seed and trial."""


@dataclass(frozen=True, repr=False)
class Transcript:
    """One episode: job, messages, end, score (or the reason for none) and usage."""

    job: Job
    task: str
    """Digest of the task; "" if it could not be drawn."""
    messages: Sequence[Message]
    end: str | None
    score: Score
    turns: int
    calls: int
    strict: bool = False
    wording: Sequence[Mapping[str, Any]] = ()
    """Exchanges with the model that words the customer, in order; a replay reads its answers here."""
    faults: tuple[str, ...] = ()
    """Classes of the model's own format errors, in order: malformed call, empty answer, refusal, length, context."""
    unscored: str = ""
    """Class of the infrastructure error, such as "connection" or "rate limit"; "" for a scored episode."""
    usage: Mapping[str, Usage] = field(default_factory=dict)
    """By role: "agent", and "customer" if a model words the customer."""
    elapsed: float = 0.0
    """Seconds played in all starts of the run when this episode ended."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Further facts as JSON values, such as finish reasons."""
    step: int | None = None
    """Training step after which the episode was played; None outside training."""

    @classmethod
    def of(
        cls,
        job: Job,
        trajectory: Trajectory | None,
        usage: Mapping[str, Usage] | None = None,
        faults: Sequence[str] = (),
        unscored: str = "",
        notes: Mapping[str, Any] | None = None,
        step: int | None = None,
    ) -> "Transcript":
        """Record an episode; without a trajectory, one that could not begin. An unscored episode never has a score."""
        score = trajectory.score if trajectory else Score.failed_by_us("it was not played")
        unscored = unscored or (OURS if score.unscored else "")
        if unscored and not score.unscored:
            score = Score.failed_by_us(score.why)
        played: dict[str, Any] = {"messages": (), "end": None, "turns": 0, "calls": 0}
        if trajectory:
            copied = "messages", "end", "turns", "calls", "strict", "wording"
            played = {name: getattr(trajectory, name) for name in copied}
        return cls(
            job=job,
            task=trajectory.task.digest() if trajectory else "",
            score=score,
            **played,
            faults=tuple(faults),
            unscored=unscored,
            usage=dict(usage or {}),
            notes=dict(notes or {}),
            step=step,
        )

    def __repr__(self) -> str:
        job, found = self.job, self.unscored or f"reward {self.score.value:.3f}"
        why = self.why_unscored if self.unscored else self.score.why
        return f"<{job.env} d = {job.d}, seed {job.seed}, trial {job.trial}: {found}, {why}>"

    @property
    def why_unscored(self) -> str:
        return str(self.notes.get("why") or self.score.why)

    @property
    def key(self) -> Key:
        return key_of(self.job)

    def to_json(self) -> dict[str, Any]:
        """Write as a JSON object, NaN as null; `from_json` reverses it."""
        score = {**asdict(self.score), "value": None if self.score.unscored else self.score.value}
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        usage = {role: asdict(used) for role, used in self.usage.items()}
        return {
            **values, "job": asdict(self.job), "score": score, "messages": list(self.messages), "usage": usage,
            "wording": list(self.wording), "faults": list(self.faults),
        }  # fmt: skip

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Transcript":
        """Read the output of `to_json`. Raises KeyError, TypeError or ValueError for anything else."""
        score = dict(value["score"])
        return cls(
            **{
                **value,
                "job": Job(**value["job"]),
                "score": Score(**{**score, "value": math.nan if score["value"] is None else score["value"]}),
                "faults": tuple(value["faults"]),
                "usage": {role: Usage(**used) for role, used in value["usage"].items()},
            }
        )


def key_of(job: Job) -> Key:
    return job.env, job.d, job.seed, job.trial


def flat(transcript: Transcript) -> dict[str, Any]:
    """Flatten an episode into a row without its messages.

    `correct` is 1.0 or 0.0, and NaN in an unscored episode; missing parts, questions and slots learned are NaN. Tokens
    are named by role: `agent_prompt`, `agent_cached`, `agent_completion`; NaN if the server reported none.
    """
    score, scored = transcript.score, not transcript.unscored
    tokens = {
        f"{role}_{what}": getattr(used, f"{what}_tokens") if used.is_reported else math.nan
        for role, used in transcript.usage.items()
        for what in ("prompt", "cached", "completion")
    }
    return {
        **vars(transcript.job),
        "axes": write_axes(transcript.job.axes),
        "correct": float(score.correct) if scored else math.nan,
        "end": transcript.end,
        "reward": score.value,
        **{f"reward_{part}": score.parts.get(part, math.nan) for part in PARTS},
        "turns": transcript.turns if scored else math.nan,
        "calls": transcript.calls if scored else math.nan,
        "questions": score.asking.get("questions", math.nan),
        "learned": score.asking.get("learned", math.nan),
        "faults": "; ".join(transcript.faults),
        "unscored": transcript.unscored,
        **tokens,
    }
