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
from spoiling import Folder

from ecomlab import cli
from ecomlab.catalog import Catalog, CatalogError, Titles, build_shop, generate, load_shop
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


def column(folder: Folder, name: str, row: int | slice, value: Any) -> None:
    path = folder.data / f"{name}.npy"
    array = np.load(path)
    array[row] = value
    np.save(path, array)


def recast(folder: Folder, name: str, kind: str) -> None:
    path = folder.data / f"{name}.npy"
    np.save(path, np.load(path).astype(kind))


def patch(folder: Folder, name: str, at: int, new: bytes) -> None:
    raw = bytearray((folder.data / name).read_bytes())
    at = at if at >= 0 else len(raw) + at
    raw[at : at + len(new)] = new
    (folder.data / name).write_bytes(bytes(raw))


def words(folder: Folder, change: Callable[[Any], Any]) -> None:
    path = folder.data / "vocabulary.json"
    said = json.loads(path.read_text("utf-8"))
    change(said)
    path.write_text(json.dumps(said), "utf-8")


def table(folder: Folder, columns: Any, **options: Any) -> None:
    made = pa.table(columns)
    settings = pa.ipc.IpcWriteOptions(**options)
    with pa.ipc.new_file(str(folder.data / "titles.arrow"), made.schema, options=settings) as file:
        file.write_table(made)


def offsets_out_of_the_file(folder: Folder) -> None:
    """Let the last title end far behind the file."""
    raw = bytearray((folder.data / "titles.arrow").read_bytes())
    lengths = [len(f"{title}".encode()) for title in Titles.open(folder.data / "titles.arrow")]
    at = raw.index(struct.pack("<2i", 0, lengths[0])) + 4 * SIZE
    assert struct.unpack_from("<i", raw, at) == (sum(lengths),)
    struct.pack_into("<i", raw, at, 2**31 - 9)
    (folder.data / "titles.arrow").write_bytes(bytes(raw))


SPOILED: dict[str, tuple[Callable[[Folder], Any], str]] = {
    "another type": (lambda f: recast(f, "column.days", "<i4"), "column.days.npy holds 200 numbers of type <i4"),
    "bytes in another order": (lambda f: recast(f, "column.reviews", ">i4"), "column.reviews.npy is no array"),
    "a pickle": (
        lambda f: np.save(f.data / "column.days.npy", np.array([{}] * SIZE), allow_pickle=True),
        "column.days.npy is no array that a build writes",
    ),
    "two dimensions": (
        lambda f: np.save(f.data / "column.days.npy", np.ones((SIZE, 1), np.int8)),
        "column.days.npy is no array that a build writes",
    ),
    "a header that is code": (
        lambda f: patch(f, "column.days.npy", 10, b"{'descr': exit(), "),
        "column.days.npy is no array",
    ),
    "more rows": (
        lambda f: np.save(f.data / "column.days.npy", np.ones(SIZE + 1, np.int8)),
        "column.days.npy holds 201 numbers",
    ),
    "a brand that is not there": (lambda f: column(f, "column.brand_code", 3, 30_000), "brand_code has 30000"),
    "a code below none": (lambda f: column(f, "column.feature_code", 3, -2), "feature_code has -2"),
    "a rating above five": (lambda f: column(f, "column.rating_tenths", 3, 51), "rating_tenths has 51"),
    "no price": (lambda f: column(f, "column.price_cents", 3, 0), "price_cents has 0"),
    "an id that speaks": (lambda f: column(f, "column.packed_ids", 3, b"<|x|>"), "an id is empty, or has a"),
    "an id with a hole": (lambda f: column(f, "column.packed_ids", 3, b"P\0A"), "an id is empty, or has a"),
    "ids exchanged": (
        lambda f: column(f, "by_id.rows", 0, np.load(f.data / "by_id.rows.npy")[1]),
        "by_id names another row",
    ),
    "a row out of the columns": (lambda f: column(f, "by_id.rows", 0, SIZE), "by_id.rows has 200"),
    "a text without rows": (lambda f: column(f, "texts.starts", 1, 0), "texts.starts does not divide"),
    "rows of another text": (
        lambda f: column(f, "texts.rows", slice(0, 2), [1, 0]),
        "texts.rows has a row at another text",
    ),
    "a dimension": (lambda f: patch(f, "exact.faiss", 4, struct.pack("<i", 256)), "exact.faiss has not the layout"),
    "many vectors": (lambda f: patch(f, "exact.faiss", 8, struct.pack("<q", 2**30)), "exact.faiss has not the layout"),
    "no vectors": (lambda f: patch(f, "exact.faiss", 8, struct.pack("<q", 0)), "exact.faiss says that it has 0"),
    "another metric": (lambda f: patch(f, "exact.faiss", 33, struct.pack("<i", 1)), "exact.faiss has not the layout"),
    "another kind": (lambda f: patch(f, "exact.faiss", 0, b"IHNf"), "exact.faiss is no index of the kind"),
    "lists that are vectors": (
        lambda f: shutil.copy(f.data / "exact.faiss", f.data / "lists.faiss"),
        "lists.faiss is no index of the kind",
    ),
    "a vector out of the lists": (
        lambda f: patch(f, "lists.faiss", -8, struct.pack("<q", 2**40)),
        "lists.faiss names a vector that is not there",
    ),
    "a vector twice": (
        lambda f: patch(f, "lists.faiss", -8, struct.pack("<q", last_but_one(f))),
        "lists.faiss has a vector in two lists, and another in none",
    ),
    "an endless centre": (
        lambda f: patch(f, "lists.faiss", 118, struct.pack("<f", float("inf"))),
        "lists.faiss holds a number that is endless",
    ),
    "another column": (lambda f: table(f, {"name": ["Lamp"] * SIZE}), "titles.arrow has other columns"),
    "titles by number": (
        lambda f: table(f, {"title": pa.array(["Lamp"] * SIZE).dictionary_encode()}),
        "titles.arrow has other columns",
    ),
    "no title": (lambda f: table(f, {"title": pa.array([None] * SIZE, pa.string())}), "titles.arrow lacks a title"),
    "packed titles": (
        lambda f: table(f, {"title": ["Lamp" * 900] * SIZE}, compression="zstd"),
        "titles.arrow is packed",
    ),
    "endless titles": (lambda f: table(f, {"title": ["L" * 9_000] * SIZE}), "has a title of 9,000 bytes"),
    "fewer titles": (lambda f: table(f, {"title": ["Lamp"] * 9}), "there are 9 titles for 200 products"),
    "titles out of the file": (offsets_out_of_the_file, "titles.arrow is no table of titles"),
    "a brand that speaks": (
        lambda f: words(f, lambda said: said["brands"].__setitem__(0, "\x1b[2J")),
        "brands: name 0 holds a tag, a chat marker or a control character",
    ),
    "a brand twice": (
        lambda f: words(f, lambda said: said["brands"].__setitem__(0, said["brands"][1])),
        "two of the brands have one name",
    ),
    "a value of no column": (
        lambda f: words(f, lambda said: said["types"][0][3][1][1].append("Purple")),
        "that no column has",
    ),
    "a phrase without a place": (
        lambda f: words(f, lambda said: said["types"][0][3][0].__setitem__(2, "blue")),
        "or a phrase without {}",
    ),
    "an endless price": (
        lambda f: words(f, lambda said: said["types"][0].__setitem__(4, [float("inf"), 1.0])),
        "types.0.4.0: should be a finite number",
    ),
    "more in the vocabulary": (
        lambda f: words(f, lambda said: said.__setitem__("run", "x.py")),
        "no key 'run'",
    ),
    "a type that is gone": (
        lambda f: words(f, lambda said: said["types"].pop()),
        "is missing, or does not belong|type_code has",
    ),
}  # fmt: skip


def last_but_one(folder: Folder) -> int:
    """The number before the last one of the last list."""
    raw = (folder.data / "lists.faiss").read_bytes()
    (last,) = struct.unpack("<q", raw[-8:])
    return (last + 1) % SIZE


@pytest.mark.parametrize("case", SPOILED)
def test_stamps_do_not_make_a_catalog(case: str, folder: Folder) -> None:
    spoil, why = SPOILED[case]
    spoil(folder)
    folder.vouch()
    with pytest.raises(CatalogError, match=why) as caught:
        open_shop(folder.out)
    assert "; build it there again, or copy it again" in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"embedder": "settings.toml"}, "neither lexical nor a model"),
        ({"embedder": "/tmp/x.toml"}, "neither lexical nor a model"),
        ({"embedder": "../elsewhere"}, "neither lexical nor a model"),
        ({"embedder": '{"model": "x.toml"}'}, "neither lexical nor a model"),
        ({"embedder": '{"model": "a/b", "trust_remote_code": true}'}, "no key 'trust_remote_code'"),
        ({"embedder": "l" * 3_000}, r"damaged \(embedder\)"),
        ({"products": 201}, "holds 200 numbers"),
        ({"texts": 2**40}, r"damaged \(texts\)"),
        ({"versions": {str(number): "1" for number in range(99)}}, r"damaged \(versions\)"),
        ({"run": "x.py"}, r"damaged \(run\)"),
    ],
)
def test_a_manifest_names_nothing_else(change: dict[str, Any], why: str, folder: Folder) -> None:
    facts = json.loads(folder.manifest.read_text("utf-8")) | change
    folder.manifest.write_text(json.dumps(facts), "utf-8")
    with pytest.raises(CatalogError, match=why):
        open_shop(folder.out)


def test_an_embedder_of_another_dimension_is_refused(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    from ecomlab.catalog import LexicalEmbedder, shop

    facts = json.loads(folder.manifest.read_text("utf-8"))
    facts["embedder_fingerprint"] = LexicalEmbedder(64).fingerprint
    folder.manifest.write_text(json.dumps(facts), "utf-8")
    monkeypatch.setattr(shop, "embedder_named", lambda name: LexicalEmbedder(64))
    with pytest.raises(
        CatalogError, match="has vectors of 512 numbers and lexical makes 64; build it there again"
    ):
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
    with pytest.raises(CatalogError, match="is damaged|is not finished"):
        open_shop(folder.out)


def test_what_does_not_belong_there_is_refused_and_drafts_are_not(folder: Folder) -> None:
    (folder.data / ".exact.faiss.123").write_bytes(b"left by a kill")
    open_shop(folder.out)
    (folder.data / "model.pkl").write_bytes(b"")
    with pytest.raises(CatalogError, match="'model.pkl' does not belong there"):
        open_shop(folder.out)


def test_a_lock_that_is_a_link_empties_nothing(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("kept")
    folder.manifest.unlink()
    (folder.out / ".lock").unlink(missing_ok=True)
    (folder.out / ".lock").symlink_to(tmp_path / "precious")
    with pytest.raises(CatalogError, match="is not finished"):
        load_shop(folder.out)
    with pytest.raises(CatalogError, match="is a link, and a build writes no files elsewhere; remove it"):
        build_shop(generate(SIZE), folder.out)
    assert (tmp_path / "precious").read_text() == "kept"


def test_a_build_into_links_writes_nothing_elsewhere(whole: Path, tmp_path: Path) -> None:
    key = build_shop(generate(SIZE), tmp_path / "first").data
    (tmp_path / "precious").write_text("kept")
    (tmp_path / "shop" / key).mkdir(parents=True)
    (tmp_path / "shop" / key / "column.days.npy").symlink_to(tmp_path / "precious")
    with pytest.raises(CatalogError, match="is a link"):
        build_shop(generate(SIZE), tmp_path / "shop")
    assert (tmp_path / "precious").read_text() == "kept"


def test_what_could_not_be_opened_is_not_written(tmp_path: Path) -> None:
    catalog = generate(SIZE)
    columns = catalog.columns() | {"packed_ids": np.char.replace(catalog.packed_ids, b"P", b"<")}
    with pytest.raises(CatalogError, match="cannot be kept in a folder .*an id is empty, or has a character"):
        build_shop(Catalog.from_columns(catalog.vocabulary, columns), tmp_path)


def test_vectors_that_are_none_find_less_and_break_nothing(folder: Folder) -> None:
    raw = bytearray((folder.data / "exact.faiss").read_bytes())
    raw[-2 * 512 * 190 :] = b"\x00\x7e" * (512 * 190)  # NaN in all but ten
    (folder.data / "exact.faiss").write_bytes(bytes(raw))
    folder.vouch()
    engine = open_shop(folder.out).engine
    for lists, most in ((engine.index.lists, 20), (None, 10)):
        engine.index.lists = lists
        found = engine._search_now("lamp", (), (), 20)
        assert len(found) <= most and len(set(found)) == len(found) and set(found) <= set(range(SIZE))
    with pytest.raises(CatalogError, match="a vector has a number that no embedder makes"):
        validate(folder.out, full=True)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda f: column(f, "column.days", 3, 1 + np.load(f.data / "column.days.npy")[3]), "of its fingerprint"),
        (lambda f: table(f, {"title": [f"Lamp {row}" for row in range(SIZE)]}), "of its fingerprint"),
        (lambda f: patch(f, "exact.faiss", -2, b"\x01\x3c"), "a number that no embedder makes|not those of the"),
        (lambda f: patch(f, "exact.faiss", -190_000, bytes(190_000)), "not those of the products' texts"),
        (lambda f: patch(f, "lists.faiss", -SIZE * 8, b"\x07"), "vectors or lists are not what was written"),
    ],
)  # fmt: skip
def test_the_full_check_finds_what_ranges_do_not(
    spoil: Callable[[Folder], Any], why: str, folder: Folder
) -> None:
    spoil(folder)
    folder.vouch()
    assert validate(folder.out).catalog.size == SIZE
    with pytest.raises(CatalogError, match=why):
        validate(folder.out, full=True)


def test_a_whole_catalog_passes_the_full_check(whole: Path, tmp_path: Path) -> None:
    assert validate(whole, full=True).fingerprint == load_shop(whole).fingerprint
    build_shop(generate(SIZE), tmp_path)
    assert validate(tmp_path, full=True).catalog.fingerprint == generate(SIZE).fingerprint


def test_the_command_says_what_is_whole_and_what_is_not(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["ecomlab", "catalog", "check", str(folder.out)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert not end.value.code and "whole: 200 products" in capsys.readouterr().out
    column(folder, "column.days", 3, 1 + np.load(folder.data / "column.days.npy")[3])
    folder.vouch()
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2 and "not those of its fingerprint" in capsys.readouterr().err
