"""The transcript of one episode: its job, everything that was said, how it ended and what it earned."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ecomlab.evaluation.contestant import Job, Played, Usage
from ecomlab.reward import Score
from ecomlab.task import Message

OURS = "episode"
"""Class of an unscored episode that failed in our own code."""
Key = tuple[str, int, int, int]
"""What names an episode within a run: environment, level, seed and trial."""


@dataclass(frozen=True)
class Transcript:
    """One episode: its job, everything that was said, how it ended and what it earned."""

    job: Job
    task: str
    """Digest of the task, which the job, the environment's version and the catalog name; "" if none could be drawn."""
    messages: Sequence[Message]
    end: str | None
    score: Score
    turns: int
    calls: int
    strict: bool = False
    wording: Sequence[Mapping[str, Any]] = ()
    """What a model that words the customer was asked and answered, in order, by which a replay needs no model."""
    faults: tuple[str, ...] = ()
    unscored: str = ""
    """Class of the failure that is not the model's; "" for a scored episode."""
    usage: Mapping[str, Usage] = field(default_factory=dict)
    elapsed: float = 0.0
    """Seconds that the run had played, in all its starts, when this episode ended."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    step: int | None = None
    """Training step after which the episode was played; None outside of training."""

    @classmethod
    def of(cls, played: Played, elapsed: float = 0.0, step: int | None = None) -> "Transcript":
        """Record an episode. What is unscored for any reason has no score (BROKEN IS NOT WRONG)."""
        made, score = played.trajectory, Score.failed_by_us("it was not played")
        if made is not None:
            score = made.score
        unscored = played.unscored or (OURS if score.unscored else "")
        if unscored and not score.unscored:
            score = Score.failed_by_us(score.why)
        return cls(
            job=played.job,
            task=made.task.digest() if made else "",
            messages=made.messages if made else (),
            end=made.end if made else None,
            score=score,
            turns=made.turns if made else 0,
            calls=made.calls if made else 0,
            strict=made.strict if made else False,
            wording=made.wording if made else (),
            faults=tuple(played.faults),
            unscored=unscored,
            usage=dict(played.usage),
            elapsed=elapsed,
            notes=dict(played.notes),
            step=step,
        )

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
