"""Transcripts as tables: `datasets` and Parquet with everything, and flat rows without messages."""

import json
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.tasks import write_axes
from ecomlab.evaluation.transcript import Transcript
from ecomlab.evaluation.transcripts import TranscriptError

if TYPE_CHECKING:
    from datasets import Dataset

AS_TEXT = ("axes", "parts", "weights", "asking", "wording", "faults", "usage", "notes", "header")
"""Columns with JSON as text: `datasets`' own type for JSON, which messages have, cuts numbers to ten digits."""


def to_dataset(header: Mapping[str, Any], transcripts: Iterable[Transcript]) -> "Dataset":
    """Make a table of `datasets` with a row per episode, from which `from_dataset` makes the same transcripts.

    The header stands in every row, so that tables of several runs can be joined; Parquet stores it once.
    """
    from datasets import Dataset, Features, Json, Value

    types = {
        "env": "string", "d": "int64", "seed": "int64", "trial": "int64", "step": "int64", "task": "string",
        "end": "string", "correct": "bool", "reward": "float64", "why": "string", "unscored": "string",
        "turns": "int64", "calls": "int64", "strict": "bool", "elapsed": "float64", **dict.fromkeys(AS_TEXT, "string"),
    }  # fmt: skip
    features = Features({**{name: Value(kind) for name, kind in types.items()}, "messages": Json()})
    return Dataset.from_list([_row(transcript, header) for transcript in transcripts], features=features)


def from_dataset(table: "Dataset") -> tuple[dict[str, Any], list[Transcript]]:
    """Read the header and the transcripts of a table that `to_dataset` made. Raises TranscriptError for another one,
    and for a table of several runs."""
    if missing := sorted({"env", "seed", "messages", *AS_TEXT} - set(table.column_names)):
        raise TranscriptError(f"this is not a table of transcripts: it has no column {', '.join(missing)}")
    headers = set(table["header"])
    if len(headers) != 1:
        raise TranscriptError(
            f"the table holds {len(headers)} runs, not one; filter it by its column header, run by run"
        )
    return json.loads(headers.pop()), [_transcript(row) for row in table]


def _row(transcript: Transcript, header: Mapping[str, Any]) -> dict[str, Any]:
    value = transcript.to_json()
    job, score = value.pop("job"), value.pop("score")
    del score["unscored"], score["value"]
    row = {**job, **value, **score, "reward": transcript.score.value, "header": dict(header)}
    return row | {name: json.dumps(row[name]) for name in AS_TEXT}


def _transcript(row: Mapping[str, Any]) -> Transcript:
    row = {**row, **{name: json.loads(row[name]) for name in AS_TEXT}}
    score = {name: row[name] for name in ("correct", "why", "parts", "weights", "asking")}
    unscored = bool(row["unscored"])
    score |= {"value": None if unscored else row["reward"], "unscored": unscored}
    names = [name for name in Transcript.__dataclass_fields__ if name not in ("job", "score")]
    job = {name: row[name] for name in Job.__dataclass_fields__}
    return Transcript.from_json({**{name: row[name] for name in names}, "job": job, "score": score})


def flat(transcript: Transcript) -> dict[str, Any]:
    """Flatten an episode into a row without its messages.

    `correct` is 1.0 or 0.0, and NaN in an unscored episode; parts, questions and slots learned are NaN where there are
    none. Tokens are named by role: `agent_prompt`, `agent_cached`, `agent_completion`; NaN where none were reported.
    """
    score, scored = transcript.score, not transcript.unscored
    tokens = {
        f"{role}_{what}": getattr(used, f"{what}_tokens") if used.told else math.nan
        for role, used in transcript.usage.items()
        for what in ("prompt", "cached", "completion")
    }
    return {
        **vars(transcript.job),
        "axes": write_axes(transcript.job.axes),
        "correct": float(score.correct) if scored else math.nan,
        "end": transcript.end,
        "reward": score.value,
        **{
            f"reward_{part}": score.parts.get(part, math.nan)
            for part in ("task", "efficiency", "hallucination")
        },
        "turns": transcript.turns if scored else math.nan,
        "calls": transcript.calls if scored else math.nan,
        "questions": score.asking.get("questions", math.nan),
        "learned": score.asking.get("learned", math.nan),
        "faults": "; ".join(transcript.faults),
        "unscored": transcript.unscored,
        **tokens,
    }
