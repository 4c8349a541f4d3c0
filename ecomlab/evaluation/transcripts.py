"""Files of transcripts: JSON lines that survive a kill.

A file begins with the run's header. Every other line is an episode, the number of tasks planned, or a note that the
run resumed with other software. Lines are only appended.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from ecomlab.evaluation.transcript import Key, Transcript
from ecomlab.files import lock, replacing
from ecomlab.reward import PUBLISHED

FILE = "transcripts.jsonl"
FORMAT = 1
"""Version of the file's format."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""Names of this machine."""


class TranscriptError(ValueError):
    """Transcripts cannot be read, resumed or compared; the message states the reason and the way out."""


@dataclass
class Log:
    """A folder's transcripts, open for appending."""

    path: Path
    header: Mapping[str, Any]
    plan: Mapping[str, Any] | None
    """The last plan of the run, or None."""
    scored: set[Key]
    """Episodes with a score, which are never played again."""
    unscored: set[Key]
    """Episodes that were played without a score."""
    file: IO[str]
    elapsed: float = 0.0
    """Seconds played in all starts, each up to its last recorded episode."""

    def add(self, transcript: Transcript) -> None:
        """Append an episode. Raises TranscriptError if it has a score already."""
        key = transcript.key
        if key in self.scored:
            raise TranscriptError(f"{self.path}: {key} has a score already; nothing was written")
        self._write("episode", transcript.to_json())
        self.elapsed = max(self.elapsed, transcript.elapsed)
        (self.unscored if transcript.unscored else self.scored).add(key)
        if not transcript.unscored:
            self.unscored.discard(key)

    def decide(self, plan: Mapping[str, Any]) -> None:
        self._write("plan", plan)
        self.plan = plan

    def _write(self, kind: str, value: Mapping[str, Any]) -> None:
        self.file.write(_line(kind, value))
        self.file.flush()


@contextmanager
def opened(folder: Path, header: Mapping[str, Any], made_with: Mapping[str, Any]) -> Iterator[Log]:
    """Open a folder's transcripts for appending, as the only process; create missing ones.

    An incomplete last line, left by a kill, is removed. `made_with` describes the software; a change of it is noted. A
    header with more tasks per cell than before is the same run. Raises TranscriptError for a folder in use, a damaged
    file, and one with another header, with all differences.
    """
    if folder.is_file():
        raise TranscriptError(f"{folder} is a file; name a folder")
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
    """Load the file into `log`, and return its last software. Raises TranscriptError for another header."""
    software: Mapping[str, Any] = {}
    for kind, value in lines(log.path):
        if kind == "header":
            software = value.pop("made_with", {})
            there, now = _comparable(_grown(value, log.header)), _comparable(log.header)
            if "conditions" in there and "conditions" in now:
                complete(there["conditions"], now["conditions"])
            if differs := differences(there, now, ("there", "now")):
                if [fact.partition(" ")[0] for fact in differs] == ["identity.code"]:
                    differs = ["the player's code was another then"]
                raise TranscriptError(
                    f"{log.path.parent} holds another run: {'; '.join(differs)}; choose another --out, or delete that "
                    "folder"
                )
        elif kind == "continued":
            software = value["made_with"]
        elif kind == "plan":
            log.plan = value
        else:
            log.elapsed = max(log.elapsed, value.elapsed)
            (log.unscored if value.unscored else log.scored).add(value.key)
    log.unscored -= log.scored
    return software


def _grown(there: Mapping[str, Any], now: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give a header the number of tasks of another one if that is larger."""
    cells, asked = there.get("cells", {}), now.get("cells", {})
    more = cells.get("tasks", 0) < asked.get("tasks", 0)
    return {**there, "cells": {**cells, "tasks": asked["tasks"]}} if more else there


def _cut_torn(path: Path) -> None:
    if not path.exists():
        return
    with path.open("rb+") as file:
        whole = 0
        for line in file:
            if line.endswith(b"\n"):
                whole += len(line)
        file.truncate(whole)


def lines(path: Path) -> Iterator[tuple[str, Any]]:
    """Read (kind, value) of each complete line: header, plan, continued, or episode with its transcript.

    Raises TranscriptError for a missing file or a damaged line.
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
                return  # incomplete, after a kill
            try:
                ((kind, value),) = json.loads(line).items()
                if (number == 1) != (kind == "header") or not isinstance(value, dict):
                    raise ValueError("a header is the first line, and only that")
                if kind == "header" and value["format"] != FORMAT:
                    made = value.get("made_with") or {}
                    version = made.get("libraries", {}).get("ecomlab", "unknown")
                    raise TranscriptError(
                        f"{path} has format {value['format']}, this ecomlab reads {FORMAT}; use the ecomlab that wrote "
                        f"it: version {version}, commit {made.get('commit', 'unknown')}"
                    )
                if kind == "episode":
                    value = Transcript.from_json(value)
            except (ValueError, AttributeError, KeyError, TypeError) as error:
                if isinstance(error, TranscriptError):
                    raise
                way = (
                    "this is no file of transcripts" if number == 1 else "delete it to play its episode again"
                )
                raise TranscriptError(f"{path}: line {number} is damaged; {way}") from None
            yield kind, value


def read_header(path: Path) -> dict[str, Any]:
    """Read the header of a folder's or file's transcripts. Raises TranscriptError."""
    for _, value in lines(path_of(path)):
        return value
    raise TranscriptError(f"{path_of(path)} is empty or being created; wait, or name another folder")


def read(path: Path, every: bool = False) -> Iterator[Transcript]:
    """Read the episodes of a folder or file, in the order of play.

    Only the last try of an episode is returned, unless `every` one is wanted. In training, all episodes are: two
    decodings play a task at the same step. Raises TranscriptError.
    """
    path, last = path_of(path), {}
    for number, (kind, value) in enumerate(lines(path)):
        if kind == "episode":
            last[value.key] = number
    for number, (kind, value) in enumerate(lines(path)):
        if kind == "episode" and (every or value.step is not None or last[value.key] == number):
            yield value


def player_of(header: Mapping[str, Any]) -> str:
    """Return the name of a run's player; of an endpoint that an old header names by its file, the model."""
    player = str(header.get("player", ""))
    return str(header["identity"]["model"]) if player.endswith(".toml") else player


def read_plan(path: Path) -> dict[str, Any] | None:
    """Read the last plan of a run, if any."""
    plans = [value for kind, value in lines(path_of(path)) if kind == "plan"]
    return plans[-1] if plans else None


def path_of(path: Path) -> Path:
    """Return the file of transcripts, given the file or its folder."""
    return path / FILE if path.is_dir() else path


def write(
    path: Path,
    header: Mapping[str, Any],
    transcripts: Sequence[Transcript],
    plan: Mapping[str, Any] | None = None,
) -> None:
    """Write a new file of transcripts. Raises TranscriptError if it exists."""
    if path.exists():
        raise TranscriptError(f"{path} exists; choose another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(_line("header", {"format": FORMAT, **header}))
        if plan is not None:
            file.write(_line("plan", plan))
        for transcript in transcripts:
            file.write(_line("episode", transcript.to_json()))


def append(path: Path, header: Mapping[str, Any], transcripts: Iterable[Transcript]) -> None:
    """Append episodes to the file of a training run, which a single process writes; create it if missing."""
    found = [_line("episode", transcript.to_json()) for transcript in transcripts]
    if not path.exists():
        write(path, header, ())
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.writelines(found)


def trim(path: Path, last: int) -> None:
    """Drop the episodes after training step `last`, and an incomplete last line."""
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
    """List the differences between two JSON objects: "limits.turn is 256 in A, 512 in B"; an object that only one has
    is not written out."""
    found = []
    for name in [*one, *(name for name in two if name not in one)]:
        a, b, where = one.get(name), two.get(name), f"{under}{name}"
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            found += differences(a, b, names, f"{where}.")
        elif a != b and (name in one) != (name in two) and isinstance(a if name in one else b, Mapping):
            found.append(f"{where} is missing {names[0] if name in two else names[1]}")
        elif a != b:
            was, now = (_brief(value) if name in side else "missing" for value, side in ((a, one), (b, two)))
            found.append(f"{where} is {was} {names[0]}, {now} {names[1]}")
    return found


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 100 else f"{text[:100]} ..."


def without_place(conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Drop from a run's conditions the catalog's folder (the fingerprint identifies it), and the port of a customer's
    endpoint on this machine (its model and settings identify it)."""
    catalog = {name: value for name, value in conditions["catalog"].items() if name != "folder"}
    found = {**conditions, "catalog": catalog}
    if isinstance(customer := conditions.get("customer"), Mapping) and "url" in customer:
        parts = urlsplit(customer["url"])
        if parts.hostname in LOOPBACK:
            found["customer"] = {**customer, "url": parts._replace(netloc=LOOPBACK[0]).geturl()}
    return found


def complete(one: dict[str, Any], two: dict[str, Any]) -> None:
    """Complete two runs' conditions by fields that older records lack: their reward has the published weights, and
    digests of scores are compared only for the environments for which both have one."""
    for conditions in (one, two):
        conditions.setdefault("reward", PUBLISHED.by_name)
    scores = [conditions.pop("scores", {}) for conditions in (one, two)]
    for conditions, mine, theirs in ((one, *scores), (two, *reversed(scores))):
        if both := {env: mine[env] for env in mine if env in theirs}:
            conditions["scores"] = both


def _comparable(header: Mapping[str, Any]) -> dict[str, Any]:
    """Drop from a header the fields without effect on the run: the player's name (its identity stays), and places."""
    kept = {name: value for name, value in header.items() if name != "player"}
    if "catalog" in header.get("conditions", ()):
        kept["conditions"] = without_place(header["conditions"])
    return kept


def _line(kind: str, value: Mapping[str, Any]) -> str:
    return json.dumps({kind: value}, allow_nan=False) + "\n"


def _as_json(value: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a value through JSON: tuples become lists, keys text."""
    copied: dict[str, Any] = json.loads(json.dumps(value, allow_nan=False))
    return copied
