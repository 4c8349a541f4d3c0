"""The record of one evaluated episode, and its line in a file."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ecomlab.episode.record import Trajectory
from ecomlab.evaluation.contestant import Job, Usage
from ecomlab.reward import Score
from ecomlab.task import Message

OURS = "episode"
"""Class of an unscored episode that failed in our own code."""
Key = tuple[str, int, int, int]
"""What names an episode within a run: environment, level, seed and trial."""


@dataclass(frozen=True, repr=False)
class Transcript:
    """One episode: its job, messages, end and score, what it cost, or the reason why it is unscored."""

    job: Job
    task: str
    """Digest of the task; "" if none could be drawn."""
    messages: Sequence[Message]
    end: str | None
    score: Score
    turns: int
    calls: int
    strict: bool = False
    wording: Sequence[Mapping[str, Any]] = ()
    """Exchanges with the model that words the customer, in order; a replay takes its answers from here."""
    faults: tuple[str, ...] = ()
    """Classes of the model's own format errors, in order: malformed call, empty answer, refusal, length, context."""
    unscored: str = ""
    """Class of the infrastructure error, such as "connection" or "rate limit"; "" for a scored episode."""
    usage: Mapping[str, Usage] = field(default_factory=dict)
    """By role: "agent"; "customer" where a model words the customer; "probe" for the endpoint's first request."""
    elapsed: float = 0.0
    """Seconds that the run had played, in all its starts, when this episode ended."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Further facts as JSON values, such as a customer's rewrites or finish reasons."""
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
        """Record an episode; no trajectory means that it could not begin. An unscored episode never has a score, for
        whatever reason it is unscored."""
        score = trajectory.score if trajectory else Score.failed_by_us("it was not played")
        unscored = unscored or (OURS if score.unscored else "")
        if unscored and not score.unscored:
            score = Score.failed_by_us(score.why)
        return cls(
            job=job,
            task=trajectory.task.digest() if trajectory else "",
            messages=trajectory.messages if trajectory else (),
            end=trajectory.end if trajectory else None,
            score=score,
            turns=trajectory.turns if trajectory else 0,
            calls=trajectory.calls if trajectory else 0,
            strict=trajectory.strict if trajectory else False,
            wording=trajectory.wording if trajectory else (),
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
        """The reason why an unscored episode has no score."""
        return str(self.notes.get("why") or self.score.why)

    @property
    def key(self) -> Key:
        return key_of(self.job)

    def to_json(self) -> dict[str, Any]:
        """Write as a JSON object, NaN as null, from which `from_json` makes an equal transcript."""
        score = {**asdict(self.score), "value": None if self.score.unscored else self.score.value}
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        usage = {role: asdict(used) for role, used in self.usage.items()}
        return {
            **values, "job": asdict(self.job), "score": score, "messages": list(self.messages), "usage": usage,
            "wording": list(self.wording), "faults": list(self.faults),
        }  # fmt: skip

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Transcript":
        """Read what `to_json` wrote. Raises KeyError, TypeError or ValueError for anything else."""
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
    """Name a job within its run."""
    return job.env, job.d, job.seed, job.trial
