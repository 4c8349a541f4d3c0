"""Transcripts: everything that was said in a run's episodes, as JSON lines that survive a kill, and as tables of
`datasets`.

A file begins with a header, which says what the run is. Every other line is an episode, the plan that was made for the
run, or a note that it was continued with other software. Lines are only ever added.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ecomlab.evaluate.contestant import Job, Played, Usage
from ecomlab.files import lock, replacing
from ecomlab.reward import Score
from ecomlab.task import Message

if TYPE_CHECKING:
    from datasets import Dataset

FILE = "transcripts.jsonl"
FORMAT = 1
"""Version of the file's format."""
OURS = "episode"
"""Class of an unscored episode that failed in our own code."""
Key = tuple[str, int, int, int]
"""What names an episode within a run: environment, level, seed and trial."""


class TranscriptError(ValueError):
    """Transcripts that cannot be read, continued or compared; the message says why and what to do."""


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
    """Seconds from the start of the process's work to the end of this episode."""
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


# --- the file ---


@dataclass
class Log:
    """A folder's transcripts, open for more of them."""

    path: Path
    header: Mapping[str, Any]
    plan: Mapping[str, Any] | None
    """The plan that was written for the run, or None."""
    scored: set[Key]
    """Episodes that have a score: they are never played again."""
    unscored: set[Key]
    """Episodes that have been tried and have no score."""
    file: IO[str]

    def add(self, transcript: Transcript) -> None:
        """Append an episode. Raises TranscriptError for one that has a score already: it would count twice."""
        key = transcript.key
        if key in self.scored:
            raise TranscriptError(f"{self.path}: {key} has a score already; nothing was written")
        self._write("episode", transcript.to_json())
        (self.unscored if transcript.unscored else self.scored).add(key)
        if not transcript.unscored:
            self.unscored.discard(key)

    def decide(self, plan: Mapping[str, Any]) -> None:
        """Append the plan of the run, once."""
        self._write("plan", plan)
        self.plan = plan

    def _write(self, kind: str, value: Mapping[str, Any]) -> None:
        self.file.write(_line(kind, value))
        self.file.flush()


@contextmanager
def opened(folder: Path, header: Mapping[str, Any], made_with: Mapping[str, Any]) -> Iterator[Log]:
    """Open a folder's transcripts to add to them, as the only process; make both where there are none.

    A last line that a kill cut off is removed: its episode is not there. `made_with` names the software, which may
    differ from one start to the next and is then noted. Raises TranscriptError for a folder in use, a damaged file,
    and one with another header, with everything that differs.
    """
    path, header = folder / FILE, _as_json({"format": FORMAT, **header})
    with lock(
        folder / ".lock",
        TranscriptError(f"another process is writing to {folder}; wait for it, or choose another --out"),
    ):
        _cut_torn(path)
        if not path.exists() or not path.stat().st_size:
            path.write_text(_line("header", {**header, "made_with": made_with}), "utf-8", newline="\n")
        with path.open("a", encoding="utf-8", newline="\n") as file:
            log = Log(path, header, None, set(), set(), file)
            software = _load(log)
            if software != _as_json(made_with):
                log._write("continued", {"made_with": made_with})
            yield log


def _load(log: Log) -> Mapping[str, Any]:
    """Take up what the file holds; return what it was last made with. Raises TranscriptError for another header."""
    software: Mapping[str, Any] = {}
    for kind, value in lines(log.path):
        if kind == "header":
            software = value.pop("made_with", {})
            if differs := differences(value, log.header, ("there", "now")):
                raise TranscriptError(
                    f"{log.path.parent} holds another run: {'; '.join(differs)}; choose another --out, or delete "
                    "that folder"
                )
        elif kind == "continued":
            software = value["made_with"]
        elif kind == "plan":
            log.plan = value
        else:
            (log.unscored if value.unscored else log.scored).add(value.key)
    log.unscored -= log.scored
    return software


def _cut_torn(path: Path) -> None:
    """Cut off a last line that has no end."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        whole = 0
        for line in file:
            if line.endswith(b"\n"):
                whole += len(line)
        file.truncate(whole)


def lines(path: Path) -> Iterator[tuple[str, Any]]:
    """Read (kind, value) of each whole line: header, plan, continued, or episode with its transcript.

    Raises TranscriptError where there is no such file, or a line is damaged.
    """
    try:
        file = path.open(encoding="utf-8")
    except OSError as error:
        raise TranscriptError(
            f"{path}: {error.strerror}; name a folder that `ecomlab eval` wrote to"
        ) from None
    with file:
        for number, line in enumerate(file, 1):
            if not line.endswith("\n"):
                return  # cut off by a kill
            try:
                ((kind, value),) = json.loads(line).items()
                if (number == 1) != (kind == "header") or not isinstance(value, dict):
                    raise ValueError("not where a header is, or not a header")
                if kind == "header" and value["format"] != FORMAT:
                    raise TranscriptError(
                        f"{path} has format {value['format']}, this ecomlab reads {FORMAT}; read it with the ecomlab "
                        f"that it was {value.get('made_with')} made with"
                    )
                if kind == "episode":
                    value = Transcript.from_json(value)
            except (ValueError, AttributeError, KeyError, TypeError) as error:
                if isinstance(error, TranscriptError):
                    raise
                way = "it is no file of transcripts" if number == 1 else "delete it to play its episode again"
                raise TranscriptError(f"{path}: line {number} is damaged; {way}") from None
            yield kind, value


def read_header(path: Path) -> dict[str, Any]:
    """Read the header of a folder's or file's transcripts. Raises TranscriptError."""
    for _, value in lines(path_of(path)):
        return value
    raise TranscriptError(f"{path_of(path)} is empty; play it again, or name another")


def read(path: Path, every: bool = False) -> Iterator[Transcript]:
    """Read the episodes of a folder or file, in the order in which they were played.

    Of an episode that was tried several times, only the last try counts, or `every` one. Raises TranscriptError.
    """
    path, last = path_of(path), {}
    for number, (kind, value) in enumerate(lines(path)):
        if kind == "episode":
            last[value.key, value.step] = number
    for number, (kind, value) in enumerate(lines(path)):
        if kind == "episode" and (every or last[value.key, value.step] == number):
            yield value


def read_plan(path: Path) -> dict[str, Any] | None:
    """Read the last plan of a run; None if it has none."""
    plans = [value for kind, value in lines(path_of(path)) if kind == "plan"]
    return plans[-1] if plans else None


def path_of(path: Path) -> Path:
    """Return the file of transcripts: the one given, or that in the folder given."""
    return path / FILE if path.is_dir() else path


def write(path: Path, header: Mapping[str, Any], transcripts: Sequence[Transcript]) -> None:
    """Write a new file of transcripts. Raises TranscriptError where there is one."""
    if path.exists():
        raise TranscriptError(f"{path} exists; choose another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(_line("header", {"format": FORMAT, **header}))
        for transcript in transcripts:
            file.write(_line("episode", transcript.to_json()))


def append(path: Path, header: Mapping[str, Any], transcripts: Iterable[Transcript]) -> None:
    """Add episodes to a file that one process alone writes, a training run's; make it where there is none."""
    found = [_line("episode", transcript.to_json()) for transcript in transcripts]
    if not path.exists():
        write(path, header, ())
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.writelines(found)


def trim(path: Path, last: int) -> None:
    """Drop the episodes after training step `last`, and a last line that has no end."""
    if not path.exists():
        return
    _cut_torn(path)
    if not path.stat().st_size:
        return path.unlink()
    with replacing(path) as draft, draft.open("w", encoding="utf-8", newline="\n") as file:
        for kind, value in lines(path):
            if kind != "episode":
                file.write(_line(kind, value))
            elif value.step is not None and value.step <= last:
                file.write(_line(kind, value.to_json()))


def differences(
    one: Mapping[str, Any], two: Mapping[str, Any], names: tuple[str, str], under: str = ""
) -> list[str]:
    """List, in words, where two JSON objects differ: "limits.turn is 256 in A, 512 in B"."""
    found = []
    for name in [*one, *(name for name in two if name not in one)]:
        a, b, where = one.get(name), two.get(name), f"{under}{name}"
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            found += differences(a, b, names, f"{where}.")
        elif a != b:
            was, now = (
                json.dumps(value) if name in side else "missing" for value, side in ((a, one), (b, two))
            )
            found.append(f"{where} is {was} {names[0]}, {now} {names[1]}")
    return found


def _line(kind: str, value: Mapping[str, Any]) -> str:
    return json.dumps({kind: value}, allow_nan=False) + "\n"


def _as_json(value: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a value as JSON reads it: tuples become lists, keys text."""
    copied: dict[str, Any] = json.loads(json.dumps(value, allow_nan=False))
    return copied


# --- tables ---

AS_TEXT = ("axes", "parts", "asking", "wording", "faults", "usage", "notes", "header")
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
    score = {name: row[name] for name in ("correct", "why", "parts", "asking")}
    unscored = bool(row["unscored"])
    score |= {"value": None if unscored else row["reward"], "unscored": unscored}
    names = [name for name in Transcript.__dataclass_fields__ if name not in ("job", "score")]
    job = {name: row[name] for name in Job.__dataclass_fields__}
    return Transcript.from_json({**{name: row[name] for name in names}, "job": job, "score": score})


def flat(transcript: Transcript) -> dict[str, Any]:
    """Flatten an episode for a table without its messages: what reports are drawn from.

    `correct` is 1.0 or 0.0, and NaN in an unscored episode; parts, questions and slots learned are NaN where there are
    none. Tokens are named by role: `agent_prompt`, `agent_cached`, `agent_completion`.
    """
    score, scored = transcript.score, not transcript.unscored
    tokens = {
        f"{role}_{what}": getattr(used, f"{what}_tokens")
        for role, used in transcript.usage.items()
        for what in ("prompt", "cached", "completion")
    }
    return {
        **asdict(replace(transcript.job, axes={})),
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
