"""Files of transcripts: JSON lines that survive a kill.

A file begins with a header, which says what the run is. Every other line is an episode, the plan that was made for the
run, or a note that it was continued with other software. Lines are only ever added.
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
    """Transcripts that cannot be read, continued or compared; the message says why and what to do."""


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
    elapsed: float = 0.0
    """Seconds that all starts together have played, to the last episode that each recorded."""

    def add(self, transcript: Transcript) -> None:
        """Append an episode. Raises TranscriptError for one that has a score already: it would count twice."""
        key = transcript.key
        if key in self.scored:
            raise TranscriptError(f"{self.path}: {key} has a score already; nothing was written")
        self._write("episode", transcript.to_json())
        self.elapsed = max(self.elapsed, transcript.elapsed)
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
    differ from one start to the next and is then noted. A header that asks for more tasks of each cell than the one
    that is there, and has no budget, is taken for the same run. Raises TranscriptError for a folder in use, a damaged
    file, and one with another header, with everything that differs.
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
            there, now = _comparable(_grown(value, log.header)), _comparable(log.header)
            if "conditions" in there and "conditions" in now:
                complete(there["conditions"], now["conditions"])
            if differs := differences(there, now, ("there", "now")):
                raise TranscriptError(
                    f"{log.path.parent} holds another run: {'; '.join(differs)}; choose another --out, or delete "
                    "that folder"
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
    """Give a header the tasks that are asked for now, where these are more and no budget chose them."""
    cells, asked = there.get("cells", {}), now.get("cells", {})
    if cells.get("budget") is not None or cells.get("tasks", 0) >= asked.get("tasks", 0):
        return there
    return {**there, "cells": {**cells, "tasks": asked["tasks"]}}


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
                    made = value.get("made_with") or {}
                    version = made.get("libraries", {}).get("ecomlab", "unknown")
                    raise TranscriptError(
                        f"{path} has format {value['format']}, this ecomlab reads {FORMAT}; read it with the ecomlab "
                        f"that wrote it: version {version}, commit {made.get('commit', 'unknown')}"
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
    raise TranscriptError(
        f"{path_of(path)} is empty, or its first line is being written; wait for it, or name another folder"
    )


def read(path: Path, every: bool = False) -> Iterator[Transcript]:
    """Read the episodes of a folder or file, in the order in which they were played.

    Of an episode that was tried several times, only the last try counts, or `every` one. In training nothing is tried
    again: a task is played by two decodings at a step. Raises TranscriptError.
    """
    path, last = path_of(path), {}
    for number, (kind, value) in enumerate(lines(path)):
        if kind == "episode":
            last[value.key] = number
    for number, (kind, value) in enumerate(lines(path)):
        if kind == "episode" and (every or value.step is not None or last[value.key] == number):
            yield value


def player_of(header: Mapping[str, Any]) -> str:
    """Name the player of a run; in old headers, an endpoint by its model and not by its file."""
    player = str(header.get("player", ""))
    return str(header["identity"]["model"]) if player.endswith(".toml") else player


def read_plan(path: Path) -> dict[str, Any] | None:
    """Read the last plan of a run; None if it has none."""
    plans = [value for kind, value in lines(path_of(path)) if kind == "plan"]
    return plans[-1] if plans else None


def path_of(path: Path) -> Path:
    """Return the file of transcripts: the one given, or that in the folder given."""
    return path / FILE if path.is_dir() else path


def write(
    path: Path,
    header: Mapping[str, Any],
    transcripts: Sequence[Transcript],
    plan: Mapping[str, Any] | None = None,
) -> None:
    """Write a new file of transcripts. Raises TranscriptError where there is one."""
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
    """List, in words, where two JSON objects differ: "limits.turn is 256 in A, 512 in B"; of an object that only one of
    them has, no more than that."""
    found = []
    for name in [*one, *(name for name in two if name not in one)]:
        a, b, where = one.get(name), two.get(name), f"{under}{name}"
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            found += differences(a, b, names, f"{where}.")
        elif a != b and (name in one) != (name in two) and isinstance(a if name in one else b, Mapping):
            found.append(f"{where} is missing {names[0] if name in two else names[1]}")
        elif a != b:
            was, now = (
                json.dumps(value) if name in side else "missing" for value, side in ((a, one), (b, two))
            )
            found.append(f"{where} is {was} {names[0]}, {now} {names[1]}")
    return found


def without_place(conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out of a run's conditions the folder of its catalog, which the fingerprint identifies, and the port of a
    customer's endpoint on this machine, which its model and settings identify."""
    catalog = {name: value for name, value in conditions["catalog"].items() if name != "folder"}
    found = {**conditions, "catalog": catalog}
    if isinstance(customer := conditions.get("customer"), Mapping) and "url" in customer:
        parts = urlsplit(customer["url"])
        if parts.hostname in LOOPBACK:
            found["customer"] = {**customer, "url": parts._replace(netloc=LOOPBACK[0]).geturl()}
    return found


def complete(one: dict[str, Any], two: dict[str, Any]) -> None:
    """Complete two runs' conditions by what older records do not have: their reward had the published weights, and
    digests of scores are compared only if both have them, for the environments of both."""
    for conditions in (one, two):
        conditions.setdefault("reward", PUBLISHED.by_name)
    scores = [conditions.pop("scores", {}) for conditions in (one, two)]
    for conditions, mine, theirs in ((one, *scores), (two, *reversed(scores))):
        if both := {env: mine[env] for env in mine if env in theirs}:
            conditions["scores"] = both


def _comparable(header: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out of a header what says nothing of the run: the name of the player, whose identity stays, and places."""
    kept = {name: value for name, value in header.items() if name != "player"}
    if "catalog" in header.get("conditions", ()):
        kept["conditions"] = without_place(header["conditions"])
    return kept


def _line(kind: str, value: Mapping[str, Any]) -> str:
    return json.dumps({kind: value}, allow_nan=False) + "\n"


def _as_json(value: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a value as JSON reads it: tuples become lists, keys text."""
    copied: dict[str, Any] = json.loads(json.dumps(value, allow_nan=False))
    return copied
