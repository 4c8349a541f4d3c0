"""What opening a folder checks though stamps vouch for it: layout, types, ranges, order, and what it may load."""

import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from spoiling import Folder, is_sentence

from ecomlab.catalog import (
    Catalog,
    CatalogError,
    Titles,
    build_shop,
    generate,
    load_shop,
)
from ecomlab.catalog import index as index_module
from ecomlab.catalog.shop import open_shop
from ecomlab.catalog.validate import validate

SIZE = 200


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog with titles that is searched by lists."""
    out, catalog = tmp_path_factory.mktemp("whole") / "shop", generate(SIZE)
    titles = Titles.of([f"{catalog.title(row)} No. {row}" for row in range(SIZE)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "EXACT_UP_TO", 100)
        build_shop(Catalog.from_columns(catalog.vocabulary, catalog.columns(), titles), out)
    return out


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Folder:
    shutil.copytree(whole, tmp_path / "shop")
    return Folder(tmp_path / "shop")


Spoil = Callable[[Folder], object]


def column(name: str, row: int | slice, value: Any) -> Spoil:
    """Write a value into a column."""

    def spoil(folder: Folder) -> None:
        array = np.load(folder.data / f"{name}.npy")
        array[row] = value
        np.save(folder.data / f"{name}.npy", array)

    return spoil


def days(make: Callable[[np.ndarray], np.ndarray], name: str = "column.days") -> Spoil:
    """Write a column as another array."""

    def spoil(folder: Folder) -> None:
        path = folder.data / f"{name}.npy"
        np.save(path, make(np.load(path)), allow_pickle=True)

    return spoil


def patch(name: str, at: int, new: bytes | Callable[[Folder], bytes]) -> Spoil:
    """Write bytes into a file, from its end where `at` is negative."""

    def spoil(folder: Folder) -> None:
        raw, piece = bytearray((folder.data / name).read_bytes()), new(folder) if callable(new) else new
        start = at if at >= 0 else len(raw) + at
        raw[start : start + len(piece)] = piece
        (folder.data / name).write_bytes(bytes(raw))

    return spoil


def words(change: Callable[[Any], Any]) -> Spoil:
    """Change the vocabulary."""

    def spoil(folder: Folder) -> None:
        path = folder.data / "vocabulary.json"
        said = json.loads(path.read_text("utf-8"))
        change(said)
        path.write_text(json.dumps(said), "utf-8")

    return spoil


def titles(made: Any, name: str = "title", **options: Any) -> Spoil:
    """Write other titles."""

    def spoil(folder: Folder) -> None:
        table, settings = pa.table({name: made}), pa.ipc.IpcWriteOptions(**options)
        with pa.ipc.new_file(str(folder.data / "titles.arrow"), table.schema, options=settings) as file:
            file.write_table(table)

    return spoil


def offsets_out_of_the_file(folder: Folder) -> None:
    """Let the last title end far behind the file."""
    raw = bytearray((folder.data / "titles.arrow").read_bytes())
    lengths = [len(f"{title}".encode()) for title in Titles.open(folder.data / "titles.arrow")]
    at = raw.index(struct.pack("<2i", 0, lengths[0])) + 4 * SIZE
    assert struct.unpack_from("<i", raw, at) == (sum(lengths),)
    struct.pack_into("<i", raw, at, 2**31 - 9)
    (folder.data / "titles.arrow").write_bytes(bytes(raw))


def last_but_one(folder: Folder) -> bytes:
    """The number before the last one of the last list."""
    (last,) = struct.unpack("<q", (folder.data / "lists.faiss").read_bytes()[-8:])
    return struct.pack("<q", (last + 1) % SIZE)


def ids_exchanged(folder: Folder) -> None:
    column("by_id.rows", 0, np.load(folder.data / "by_id.rows.npy")[1])(folder)


SPOILED: dict[str, tuple[Spoil, str]] = {
    "another type": (days(lambda days: days.astype("<i4")), "<i4"),
    "bytes in another order": (days(lambda reviews: reviews.astype(">i4"), "column.reviews"), "no array"),
    "a pickle": (days(lambda _: np.array([{}] * SIZE)), "no array"),
    "two dimensions": (days(lambda days: days[:, None]), "no array"),
    "a header that is code": (patch("column.days.npy", 10, b"{'descr': exit(), "), "no array"),
    "more rows": (days(lambda _: np.ones(SIZE + 1, np.int8)), "201"),
    "a brand that is not there": (column("column.brand_code", 3, 30_000), "30000"),
    "a code below none": (column("column.feature_code", 3, -2), "-2"),
    "a rating above five": (column("column.rating_tenths", 3, 51), "51"),
    "no price": (column("column.price_cents", 3, 0), "price_cents"),
    "an id that speaks": (column("column.packed_ids", 3, b"<|x|>"), "id"),
    "an id with a hole": (column("column.packed_ids", 3, b"P\0A"), "id"),
    "ids exchanged": (ids_exchanged, "by_id"),
    "a row out of the columns": (column("by_id.rows", 0, SIZE), "200"),
    "a text without rows": (column("texts.starts", 1, 0), "texts.starts"),
    "rows of another text": (column("texts.rows", slice(0, 2), [1, 0]), "texts.rows"),
    "a dimension": (patch("exact.faiss", 4, struct.pack("<i", 256)), "layout"),
    "many vectors": (patch("exact.faiss", 8, struct.pack("<q", 2**30)), "layout"),
    "no vectors": (patch("exact.faiss", 8, struct.pack("<q", 0)), "exact.faiss"),
    "another metric": (patch("exact.faiss", 33, struct.pack("<i", 1)), "layout"),
    "another kind": (patch("exact.faiss", 0, b"IHNf"), "kind"),
    "lists that are vectors": (
        lambda folder: shutil.copy(folder.data / "exact.faiss", folder.data / "lists.faiss"),
        "kind",
    ),
    "a vector out of the lists": (patch("lists.faiss", -8, struct.pack("<q", 2**40)), "vector"),
    "a vector twice": (patch("lists.faiss", -8, last_but_one), "two lists"),
    "an endless centre": (patch("lists.faiss", 118, struct.pack("<f", float("inf"))), "lists.faiss"),
    "another column": (titles(["Lamp"] * SIZE, name="name"), "columns"),
    "titles by number": (titles(pa.array(["Lamp"] * SIZE).dictionary_encode()), "columns"),
    "no title": (titles(pa.array([None] * SIZE, pa.string())), "lacks"),
    "packed titles": (titles(["Lamp" * 900] * SIZE, compression="zstd"), "packed"),
    "endless titles": (titles(["L" * 9_000] * SIZE), "9,000"),
    "fewer titles": (titles(["Lamp"] * 9), "200"),
    "titles out of the file": (offsets_out_of_the_file, "titles.arrow"),
    "a brand that speaks": (patch("brands.txt", 0, b"\x1b[2J"), "control character"),
    "a brand that is a chat marker": (patch("brands.txt", 0, b"<|B|>"), "marker"),
    "a brand of two lines": (patch("brands.txt", 2, b"\n"), "line"),
    "a brand in no letters": (patch("brands.txt", 0, b"\xff"), "utf-8"),
    "brands out of the file": (days(lambda starts: starts * 9, "brands.starts"), "divided"),
    "fewer brands": (words(lambda said: said.__setitem__("brands", 3)), "brands.starts"),
    "a value of no column": (words(lambda said: said["types"][0][3][1][1].append("Purple")), "column"),
    "a phrase without a place": (words(lambda said: said["types"][0][3][0].__setitem__(2, "blue")), "phrase"),
    "a number for yes or no": (
        words(lambda said: said["types"][0][3][1].__setitem__(3, 7.5)),
        "types.0.3.1.3",
    ),
    "more in the vocabulary": (words(lambda said: said.__setitem__("run", "x.py")), "'run'"),
    "a type that is gone": (words(lambda said: said["types"].pop()), "belong|type_code"),
}


@pytest.mark.parametrize("case", SPOILED)
def test_stamps_do_not_make_a_catalog(case: str, folder: Folder) -> None:
    spoil, why = SPOILED[case]
    spoil(folder)
    folder.vouch()
    with pytest.raises(CatalogError, match=why) as caught:
        open_shop(folder.out)
    assert is_sentence(str(caught.value))


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda folder: shutil.rmtree(folder.out), "no catalog"),
        (lambda folder: folder.manifest.unlink(), "not finished"),
        (lambda folder: folder.manifest.write_text("{"), "damaged"),
        (lambda folder: folder.manifest.write_text("[" * 100_000), "damaged"),
        (lambda folder: folder.manifest.write_text('{"format": 9}'), "format 9"),
        (lambda folder: (folder.data / "titles.arrow").write_bytes(b"ARROW1"), "titles.arrow"),
        (lambda folder: (folder.data / "exact.faiss").unlink(), "exact.faiss"),
        (days(np.zeros_like), "column.days.npy"),
    ],
)
def test_what_is_no_whole_catalog_is_refused(damage: Spoil, why: str, folder: Folder) -> None:
    damage(folder)
    with pytest.raises(CatalogError, match=why):
        open_shop(folder.out)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"embedder": "settings.toml"}, "model"),
        ({"embedder": "/tmp/x.toml"}, "model"),
        ({"embedder": "../elsewhere"}, "model"),
        ({"embedder": '{"model": "x.toml"}'}, "model"),
        ({"embedder": '{"model": "a/b", "trust_remote_code": true}'}, "trust_remote_code"),
        ({"embedder": "l" * 3_000}, "embedder"),
        ({"products": 201}, "200"),
        ({"texts": 2**40}, "texts"),
        ({"versions": {str(number): "1" for number in range(99)}}, "versions"),
        ({"run": "x.py"}, "run"),
        ({"data": "../elsewhere"}, "data"),
        ({"embedder": "acme"}, "'acme'"),
        ({"embedder_fingerprint": "00"}, "version"),
    ],
)
def test_a_manifest_names_nothing_else(change: dict[str, Any], why: str, folder: Folder) -> None:
    folder.change(**change)
    with pytest.raises(CatalogError, match=why):
        open_shop(folder.out)


@pytest.mark.parametrize(
    "which", ["manifest.json", "column.days.npy", "exact.faiss", "vocabulary.json", "data"]
)
@pytest.mark.parametrize("what", ["a link", "a pipe", "a folder"])
def test_what_is_no_plain_file_is_not_opened(which: str, what: str, folder: Folder, tmp_path: Path) -> None:
    path = {"manifest.json": folder.manifest, "data": folder.data}.get(which, folder.data / which)
    path.replace(tmp_path / "aside")
    if what == "a link":
        path.symlink_to(tmp_path / "aside")
    elif what == "a pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(CatalogError):
        open_shop(folder.out)


def test_what_does_not_belong_there_is_refused_and_drafts_are_not(folder: Folder) -> None:
    (folder.data / ".exact.faiss.123").write_bytes(b"left by a kill")
    open_shop(folder.out)
    (folder.data / "model.pkl").write_bytes(b"")
    with pytest.raises(CatalogError, match="model.pkl"):
        open_shop(folder.out)


def test_a_link_in_a_build_writes_nothing_elsewhere(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("kept")
    folder.manifest.unlink()
    (folder.out / ".lock").unlink(missing_ok=True)
    (folder.out / ".lock").symlink_to(tmp_path / "precious")
    with pytest.raises(CatalogError, match="finished"):
        load_shop(folder.out)
    with pytest.raises(CatalogError, match="link"):
        build_shop(generate(SIZE), folder.out)
    key = build_shop(generate(SIZE), tmp_path / "first").data
    (tmp_path / "second" / key).mkdir(parents=True)
    (tmp_path / "second" / key / "column.days.npy").symlink_to(tmp_path / "precious")
    with pytest.raises(CatalogError, match="link"):
        build_shop(generate(SIZE), tmp_path / "second")
    assert (tmp_path / "precious").read_text() == "kept"


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (days(lambda days: days + (np.arange(SIZE) == 3).astype(np.int8)), "fingerprint"),
        (titles([f"Lamp {row}" for row in range(SIZE)]), "fingerprint"),
        (patch("exact.faiss", -2, b"\x01\x3c"), "embedder|texts"),
        (patch("exact.faiss", -190_000, bytes(190_000)), "texts"),
        (patch("lists.faiss", -SIZE * 8, b"\x07"), "lists"),
    ],
)
def test_the_full_check_finds_what_ranges_do_not(spoil: Spoil, why: str, folder: Folder) -> None:
    spoil(folder)
    folder.vouch()
    assert validate(folder.out).catalog.size == SIZE
    with pytest.raises(CatalogError, match=why):
        validate(folder.out, full=True)


def test_a_whole_catalog_passes_the_full_check(whole: Path, tmp_path: Path) -> None:
    assert validate(whole, full=True).fingerprint == load_shop(whole).fingerprint
    build_shop(generate(SIZE), tmp_path)
    assert validate(tmp_path, full=True).catalog.fingerprint == generate(SIZE).fingerprint
