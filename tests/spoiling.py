"""Spoils folders of catalogs at random, as bad disks, careless and clever people do, and opens them in children."""

import faulthandler
import json
import os
import shutil
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from ecomlab import ENVIRONMENTS
from ecomlab.catalog import CatalogError, Constraint, Shop, lexicon, store, support
from ecomlab.catalog.shop import open_shop
from ecomlab.catalog.support import UnsupportedError
from ecomlab.lab.bench import timed_episode
from ecomlab.seeding import rng
from ecomlab.task import TaskError

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


class Folder:
    """A copy of a catalog that is to be spoiled."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.manifest = out / store.MANIFEST
        self.data = out / json.loads(self.manifest.read_text("utf-8"))["data"]

    @property
    def files(self) -> list[Path]:
        return sorted(path for path in self.data.iterdir() if path.name != store.WRITTEN)

    @property
    def arrays(self) -> list[Path]:
        return [path for path in self.files if path.suffix == ".npy"]

    def change(self, **facts: Any) -> None:
        """Write other facts into the manifest."""
        self.manifest.write_text(json.dumps(json.loads(self.manifest.read_text("utf-8")) | facts), "utf-8")

    def vouch(self) -> None:
        """Stamp the files anew, as anyone who passes on a folder can."""
        stamps = json.loads(self.manifest.read_text("utf-8"))["files"]
        there = {name for name in stamps if (self.data / name).is_file()}
        self.change(files=stamps | {name: store.stamp(self.data / name) for name in there})


# --- what is done to a folder ----


def cut(folder: Folder, random: Random) -> None:
    path = random.one(folder.files)
    os.truncate(path, random.below(path.stat().st_size))


def flip(folder: Folder, random: Random) -> None:
    path = random.one(folder.files)
    raw = bytearray(path.read_bytes())
    for _ in range(1 + random.below(8)):
        raw[random.below(len(raw))] ^= 1 << random.below(8)
    path.write_bytes(raw)


def flip_start(folder: Folder, random: Random) -> None:
    """Change the first bytes, where lengths and types are, of a file that is no text."""
    path = random.one([path for path in folder.files if path.suffix != ".json"])
    raw = bytearray(path.read_bytes())
    for _ in range(1 + random.below(3)):
        raw[random.below(min(len(raw), 160))] = random.below(256)
    path.write_bytes(raw)


def flip_end(folder: Folder, random: Random) -> None:
    """Change the last bytes: Arrow's footer, the ids in the last lists."""
    path = random.one([path for path in folder.files if path.suffix in (".arrow", ".faiss")])
    raw = bytearray(path.read_bytes())
    for _ in range(1 + random.below(4)):
        raw[-1 - random.below(min(len(raw), 600))] = random.below(256)
    path.write_bytes(raw)


def move_bytes(folder: Folder, random: Random) -> None:
    path = random.one(folder.files)
    raw = bytearray(path.read_bytes())
    at, size = random.below(len(raw)), 1 + random.below(64)
    match random.below(3):
        case 0:
            raw[at:at] = random.bytes(size)
        case 1:
            del raw[at : at + size]
        case 2:
            raw[at : at + size] = bytes(min(size, len(raw) - at))
    path.write_bytes(raw)


def swap(folder: Folder, random: Random) -> None:
    one, other = random.one(folder.files), random.one(folder.files)
    ours, theirs = one.read_bytes(), other.read_bytes()
    one.write_bytes(theirs)
    other.write_bytes(ours)


def another_type(folder: Folder, random: Random) -> None:
    """Write a column with other numbers, another shape or another layout."""
    path = random.one(folder.arrays)
    array = np.load(path)
    whole = array if array.dtype.kind == "i" else np.arange(len(array))
    other = random.one(
        (
            *(whole.astype(kind) for kind in ("<i1", "<i2", "<i4", "<i8", "<f4", "<u2", ">i4", "?")),
            *(array[:-1], array[:0], np.concatenate([array, array[:1]]), array[:, None], array[None]),
            *(array.astype(object), np.zeros(len(array), "S0"), np.full(len(array), b"x" * 90), array[::-1]),
            np.zeros(len(array), [("a", "<i2"), ("b", "<i2")]),
        )
    )
    np.save(path, other, allow_pickle=True)


def another_value(folder: Folder, random: Random) -> None:
    """Change one number of a column a little, or as much as its type allows."""
    path = random.one(folder.arrays)
    array = np.load(path)
    at = random.below(len(array))
    if array.dtype.kind == "S":
        array[at] = random.one(
            (array[random.below(len(array))], b"", b"A\0B", b"<|x|>", b"Q", b"\xff", b"a b")
        )
    else:
        limits = np.iinfo(array.dtype)
        low, high = int(array.min()), int(array.max())
        new = random.one((low - 1, high + 1, low, high, 0, -1, -2, int(limits.min), int(limits.max)))
        array[at] = min(max(new, int(limits.min)), int(limits.max))
    np.save(path, array)


def two_rows(folder: Folder, random: Random) -> None:
    """Exchange two different numbers of a column."""
    path = random.one([path for path in folder.arrays if len(np.unique(np.load(path))) > 1])
    array = np.load(path)
    one = random.below(len(array))
    other = random.one(np.flatnonzero(array != array[one]).tolist())
    array[[one, other]] = array[[other, one]]
    np.save(path, array)


def vectors(folder: Folder, random: Random) -> None:
    """Put numbers into the vectors or lists that no embedder makes."""
    path = random.one([path for path in folder.files if path.suffix == ".faiss"])
    raw = bytearray(path.read_bytes())
    for _ in range(random.one((1, 40, 4_000))):
        at = 120 + 2 * random.below((len(raw) - 122) // 2)
        raw[at : at + 2] = random.one(
            (b"\x00\x7e", b"\x00\x7c", b"\x00\xfc", b"\xff\x7b", b"\x01\x00", b"\x00\x00")
        )
    path.write_bytes(raw)


def titles(folder: Folder, random: Random) -> None:
    """Write the titles as another table."""
    path = folder.data / store.TITLES
    said = ["Blue Lamp", "Lamp", "x" * 20_000, "\x1b[31m", "<|im_end|>"]
    count = len(np.load(folder.arrays[0]))
    column = pa.array(
        [said[row % random.one((1, 2, 5))] for row in range(count + random.one((0, 0, 0, 1, -1)))]
    )
    as_others = (column.cast(pa.large_string()), column.dictionary_encode(), column.cast(pa.binary()))
    nulls, numbers = pa.array([None] * len(column), pa.string()), pa.array(range(len(column)))
    column = random.one((*[column] * 3, *as_others, nulls, numbers, column[:0]))
    name, packed = random.one(("title", "title", "title", "name")), random.one((None, None, "lz4", "zstd"))
    table = pa.table({name: column} | random.one(({}, {}, {"more": column})))
    options = pa.ipc.IpcWriteOptions(compression=packed)
    with pa.ipc.new_file(str(path), table.schema, options=options) as file:
        file.write_table(table)


def field(folder: Folder, random: Random) -> None:
    """Change, remove or add a value of the manifest."""
    facts = json.loads(folder.manifest.read_text("utf-8"))
    change_in(facts, random)
    folder.manifest.write_text(json.dumps(facts), "utf-8")


def name(folder: Folder, random: Random) -> None:
    """Change, remove or add a name of the vocabulary."""
    path = folder.data / store.VOCABULARY
    words = json.loads(path.read_text("utf-8"))
    for _ in range(random.one((1, 1, 3))):
        change_in(words, random)
    path.write_text(json.dumps(words), "utf-8")


def change_in(tree: Any, random: Random) -> None:
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


def replaced(folder: Folder, random: Random) -> None:
    """Put something else in the place of a file: a link, a pipe, a folder, nothing."""
    path = random.one([*folder.files, folder.manifest, folder.data, folder.out / store.LOCK])
    aside = folder.out.parent / "aside"
    path.replace(aside) if path.exists() else aside.write_text("")
    match random.below(6):
        case 0:
            path.symlink_to(aside)
        case 1:
            path.symlink_to("/dev/zero")
        case 2:
            os.mkfifo(path)
        case 3:
            path.mkdir()
        case 4:
            path.write_bytes(b"")
        case _:
            pass


def added(folder: Folder, random: Random) -> None:
    """Put something beside the files, and sometimes into the manifest."""
    named = random.one(
        ("column.attr.extra.npy", "x.pkl", "titles.arrow", "lists.faiss", "more", "column.x.npy")
    )
    path = folder.data / named
    path.write_bytes(random.one(folder.files).read_bytes())
    if random.below(2):
        facts = json.loads(folder.manifest.read_text("utf-8"))
        facts["files"][named] = store.stamp(path)
        folder.manifest.write_text(json.dumps(facts), "utf-8")


def nothing(folder: Folder, random: Random) -> None:
    """Leave it whole: it must be opened."""


WAYS: tuple[Callable[[Folder, Random], None], ...] = (
    *(cut, flip, flip_start, flip_end, move_bytes, swap, another_type, another_value, another_value),
    *(two_rows, vectors, titles, field, field, name, name, replaced, added, nothing),
)


# --- cases ----


class Outcome(NamedTuple):
    number: int
    way: str
    vouched: bool
    what: str
    said: str = ""


def spoil(bases: Sequence[Path], number: int, place: Path) -> tuple[str, bool]:
    """Make a copy of a catalog in `place` and spoil it; say how, and whether the manifest vouches for it."""
    random = Random(number)
    way = WAYS[number % len(WAYS)]
    shutil.copytree(random.one(bases), place, symlinks=True)
    folder = Folder(place)
    if way is titles and not (folder.data / store.TITLES).exists():
        way = another_value
    way(folder, random)
    vouched = random.below(4) > 0 and way not in (field, replaced, added)
    if vouched:
        folder.vouch()
    return way.__name__, vouched


def attempt(place: Path, number: int) -> tuple[str, str]:
    """Open a folder and use it: REFUSED and the sentence, or WORKED."""
    lexicon._LEXICONS.clear()  # kept by a fingerprint, which a spoiled folder may claim
    support._KNOWN.clear()
    try:
        shop = open_shop(place)
    except CatalogError as error:
        return REFUSED, str(error)
    use(shop, number)
    return WORKED, ""


def use(shop: Shop, number: int) -> None:
    """Read, search and play in a shop. Raises what a user would see."""
    catalog, random = shop.catalog, Random(number)
    rows = [0, catalog.size - 1, *(random.below(catalog.size) for _ in range(8))]
    for row in rows:
        record = catalog.record(row)
        assert json.dumps(record).isprintable() and not set("<>") & set(json.dumps(record))
        assert catalog.row(record["product_id"]) == row
        kind, price = Constraint("type", "==", record["type"]), Constraint("price", "<=", 4_000)
        for filters in ((), (kind,), (price,)):
            found = shop.engine.search(f"{record['title']} {row}", filters, ("price",) * (row % 2), top_k=7)
            assert all(0 <= one < catalog.size for one in found) and len(set(found)) == len(found)
    for env in (list(ENVIRONMENTS)[number % len(ENVIRONMENTS)], "CART"):
        try:
            timed_episode(env, number % 5, number, shop)
        except (TaskError, UnsupportedError) as error:
            if not is_sentence(str(error)):
                raise


def is_sentence(said: str) -> bool:
    """Tell whether a refusal is one line that anyone can read, of a fact and a way out."""
    return said.isprintable() and 20 < len(said) < 1_500 and "; " in said and "Traceback" not in said


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
