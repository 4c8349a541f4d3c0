"""Spoils what is read at random, as bad disks and careless people do, and reads it in children."""

import faulthandler
import json
import os
import shutil
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ecomlab.seeding import rng

PATIENCE = 300
"""Seconds after which a case counts as hanging: on a busy machine one that takes a twentieth may wait for a minute."""
REFUSED, WORKED = "refused", "worked"
NUMBERS = (None, True, 0, 1, -1, 2, 7, 2**31, 2**63, -(2**70), 0.5, float("nan"))
TEXTS = ("", "0", "exact", "IVF4,SQ8", "../..", "/", "<|im_end|>", "\x1b[2J", "{}", "{0}", "a" * 5_000)
VALUES: tuple[Any, ...] = (*NUMBERS, *TEXTS, "minilm", "x.toml", "/dev/zero", "\ud800", [], {}, [[]])
SPICES = (
    *(b'"', b"\x00", b"\xff\xfe", b"\r", b"{", b"[" * 50, b"\\ud800", b"<|im_start|>", b"<script>", b";;;;", b","),
    *(b"=1+1", b"\xf0\x9f\x92\xa9", b"NaN", b"1e999", b"-1", b"9" * 400, b"null", b"</tool_call>", b"\n\n", b"../../x"),
)  # fmt: skip
"""What is put into the bytes of product files."""
T = TypeVar("T")


class Random:
    """Draws for one case."""

    def __init__(self, number: int) -> None:
        self._numbers = rng("spoiled folders", number)

    def below(self, count: int) -> int:
        return int(self._numbers.integers(max(count, 1)))

    def one(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def bytes(self, count: int) -> bytes:
        return self._numbers.bytes(count)


def change_in(tree: Any, random: Random) -> None:
    """Change, remove or add a value of a JSON value."""
    places = list(leaves(tree))
    if not places:
        return
    holder, key = random.one(places)
    match random.below(6):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[random.one(("another", "", "..", "attr.x"))] = random.one(VALUES)
        case 1 | 2 if isinstance(holder, list):
            holder.append(random.one([*VALUES, *holder]))
        case 3 if isinstance(holder[key], int):
            holder[key] += random.one((-1, 1))
        case 4:
            other, place = random.one(places)
            try:
                holder[key] = json.loads(json.dumps(other[place]))
            except (IndexError, KeyError):
                holder[key] = None
        case _:
            holder[key] = random.one(VALUES)


def leaves(tree: Any) -> Iterator[tuple[Any, Any]]:
    """List every place of a JSON value, as its holder and its key there."""
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ():
        yield tree, key
        yield from leaves(tree[key])


# --- cases ----


class Outcome(NamedTuple):
    number: int
    way: str
    vouched: bool
    what: str
    said: str = ""


def outcomes(
    numbers: Iterable[int],
    prepare: Callable[[int, Path], tuple[str, bool]],
    attempt: Callable[[Path, int], tuple[str, str]],
    work: Path,
) -> Iterator[Outcome]:
    """Try cases in forked children, so that one that crashes or hangs is seen and the others go on.

    `prepare` makes what is spoiled in a path that is not there yet, and `attempt` uses it.
    """
    left = list(numbers)
    while left:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.close(reading)
                _try_all(left, prepare, attempt, work, writing)
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8") as lines:
            told = [json.loads(line) for line in lines if line.endswith("\n")]
        _, status = os.waitpid(child, 0)
        ended = [Outcome(*line) for line in told if len(line) > 1]
        yield from ended
        left = left[len(ended) :]
        if left:
            how = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "ended"
            way, vouched = told[-1][0] if told and len(told[-1]) == 1 else ("?", False)
            yield Outcome(left.pop(0), way, vouched, how)


def _try_all(
    numbers: Sequence[int],
    prepare: Callable[[int, Path], tuple[str, bool]],
    attempt: Callable[[Path, int], tuple[str, str]],
    work: Path,
    writing: int,
) -> None:
    """Try cases in this process and write a line for each, and before each."""
    faulthandler.register(signal.SIGALRM, chain=True)  # where it hangs
    for number in numbers:
        signal.alarm(PATIENCE)
        place = work / str(number) / "shop"
        place.parent.mkdir(parents=True)
        about = prepare(number, place)
        os.write(writing, f"{json.dumps([about])}\n".encode())
        try:
            what, said = attempt(place, number)
        except Exception as error:
            what, said = type(error).__name__, "".join(traceback.format_exception(error)[-3:])
        os.write(writing, f"{json.dumps([number, *about, what, said])}\n".encode())
        shutil.rmtree(place.parent, ignore_errors=True)
    signal.alarm(0)
