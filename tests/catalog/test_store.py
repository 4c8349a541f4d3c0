"""Catalogs on disk: a kill leaves the old one or a build that goes on, a damaged one is refused, a copy is the shop."""

import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from killing import killed_at

from ecomlab.catalog import (
    Catalog,
    CatalogError,
    Constraint,
    LexicalEmbedder,
    SearchEngine,
    Shop,
    build_shop,
    generate,
    load_shop,
    store,
)
from ecomlab.catalog import build as build_module
from ecomlab.catalog import index as index_module
from ecomlab.catalog.names import Packed
from ecomlab.catalog.shop import open_shop
from ecomlab.catalog.texts import embed_rows
from ecomlab.files import lock, read_json, write_json

TITLES = ["Koss EQ50 3-Band Stereo Equalizer", *["Kodak Black Ink 10B"] * 2, "Bücherregal 中文"]


@pytest.fixture
def small_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Approximate from 1,000 texts up, in shards of 500."""
    monkeypatch.setattr(index_module, "EXACT_UP_TO", 1_000)
    monkeypatch.setattr(index_module, "SCAN_UP_TO", 100)
    monkeypatch.setattr(build_module, "SHARD", 500)


@pytest.fixture(scope="module")
def products() -> Catalog:
    return generate(2_500, seed=3)


def with_titles(catalog: Catalog) -> Catalog:
    titles = Packed.of([f"{TITLES[row % 4]} {row // 8}" for row in range(catalog.size)])
    return Catalog.from_columns(catalog.vocabulary, catalog.columns(), titles)


def answers(shop: Shop) -> list[tuple[int, ...]]:
    return [
        shop.engine.search(shop.catalog.title(row), filters, top_k=20)
        for row in range(0, shop.catalog.size, 100)
        for filters in ((), (Constraint("price", "<=", 4_000),), (Constraint("rating", ">=", 47),))
    ]


# -- opening ----


def test_a_built_folder_is_the_shop(tmp_path: Path) -> None:
    """Also when it is moved."""
    made = load_shop(300, cache=False)
    build_shop(made.catalog, tmp_path / "shop")
    opened = load_shop(str(tmp_path / "shop"))
    assert opened is load_shop(tmp_path / "shop")
    assert opened.fingerprint == made.fingerprint and answers(opened) == answers(made)
    assert [opened.catalog.record(row) for row in range(300)] == [
        made.catalog.record(row) for row in range(300)
    ]
    assert [opened.catalog.row(name) for name in opened.catalog.ids] == list(range(300))
    assert not opened.catalog.stock.flags.writeable
    shutil.move(tmp_path / "shop", tmp_path / "there")
    assert load_shop(tmp_path / "there").fingerprint == made.fingerprint


def test_titles_are_kept_and_searched(tmp_path: Path) -> None:
    catalog = with_titles(generate(200))
    build_shop(catalog, tmp_path)
    shop = load_shop(tmp_path)
    assert list(shop.catalog.titles or ()) == list(catalog.titles or ())
    (best,) = shop.engine.search("koss equalizer 7", top_k=1)
    assert shop.catalog.titles is not None and shop.catalog.titles[best] == f"{TITLES[0]} 7"
    assert shop.catalog.fingerprint == catalog.fingerprint != generate(200).fingerprint
    other = Packed.of(["another", *list(catalog.titles or ())[1:]])
    assert (
        Catalog.from_columns(catalog.vocabulary, catalog.columns(), other).fingerprint != catalog.fingerprint
    )


def test_building_again_replaces_what_was_there(tmp_path: Path) -> None:
    build_shop(generate(200), tmp_path)
    old = load_shop(tmp_path)
    build_shop(generate(250), tmp_path)
    assert load_shop(tmp_path).catalog.size == 250
    assert old.catalog.record(199) and old.engine.search("lamp")  # who has the old one open keeps it
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 1
    told: list[str] = []
    build_shop(generate(250), tmp_path, tell=told.append)
    assert not told  # it is there


# -- damage ----


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog with titles that is searched by lists."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "EXACT_UP_TO", 100)
        build_shop(with_titles(generate(200)), out := tmp_path_factory.mktemp("listed") / "shop")
    return out


@pytest.fixture
def copy(listed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(listed, tmp_path / "shop"))


def flip(file: Path, at: int) -> None:
    """Change a bit of a file's byte."""
    raw = bytearray(file.read_bytes())
    raw[at] ^= 1
    file.write_bytes(raw)


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "missing": Path.unlink,
    "cut short": lambda file: os.truncate(file, file.stat().st_size - 1),
    "changed": lambda file: flip(file, file.stat().st_size // 2),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_each_file_must_be_as_it_was_written(damage: str, copy: Path) -> None:
    manifest = store.read_manifest(copy)
    assert {"titles.text.npy", store.EXACT, store.LISTS, store.VOCABULARY} < manifest.files.keys()
    for name in manifest.files:
        file = copy / manifest.data / name
        whole = file.read_bytes()
        DAMAGES[damage](file)
        with pytest.raises(CatalogError, match=re.escape(name)) as caught:
            open_shop(copy)
        assert "build it there again" in str(caught.value)
        file.write_bytes(whole)
    (copy / manifest.data / ".exact.faiss.123").write_bytes(b"left by a kill")
    open_shop(copy)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda folder: shutil.rmtree(folder), "no catalog in"),
        (lambda folder: folder.rename(folder.with_name("old")).with_name("shop").write_text(""), "is a file"),
        (lambda folder: (folder / store.MANIFEST).unlink(), "not finished"),
        (lambda folder: os.truncate(folder / store.MANIFEST, 300), "manifest.json is damaged"),
        (lambda folder: (folder / store.MANIFEST).write_text('{"format": 1}'), "format 1"),
        (lambda folder: change(folder, files=None), "manifest.json is damaged"),
        (lambda folder: change(folder, data="elsewhere"), "npy is missing"),
        (lambda folder: change(folder, embedder="acme"), "'acme'"),
        (lambda folder: change(folder, embedder_fingerprint="00"), "another version"),
    ],
)
def test_what_is_no_whole_catalog_is_refused(damage: Callable[[Path], Any], why: str, copy: Path) -> None:
    damage(copy)
    with pytest.raises(CatalogError, match=why) as caught:
        load_shop(copy)
    assert "build" in str(caught.value)


def change(folder: Path, **facts: Any) -> None:
    """Write other facts into a manifest."""
    write_json(folder / store.MANIFEST, (read_json(folder / store.MANIFEST) or {}) | facts)


def test_the_check_finds_what_sizes_do_not_tell(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "READ", 0)  # as if every file were large
    assert open_shop(copy, whole=True).fingerprint == open_shop(copy).fingerprint
    manifest = store.read_manifest(copy)
    for name, (size, _) in manifest.files.items():
        flip(copy / manifest.data / name, size - 1)
        with pytest.raises(CatalogError, match=re.escape(name)):
            open_shop(copy, whole=True)
        flip(copy / manifest.data / name, size - 1)


# -- building ----

STEPS = {
    "columns": (build_module, "texts_of", 1),
    "embedding": (build_module, "embed_rows", 3),
    "exact index": (index_module, "build_exact", 1),
    "lists": (index_module, "build_lists", 1),
    "manifest": (build_module, "write_json", 1),
}
"""Steps of a build: the function that is called in the midst of each, and at which call to kill."""
BETWEEN = ("exact index", "lists")
"""Steps that `make certify` alone kills: what was embedded before is kept there as it is before the manifest."""


@pytest.mark.usefixtures("small_index")
@pytest.mark.parametrize(
    "step", [pytest.param(step, marks=pytest.mark.slow) if step in BETWEEN else step for step in STEPS]
)
def test_a_killed_build_leaves_the_old_catalog_and_goes_on(
    step: str, products: Catalog, tmp_path: Path, whole: store.Manifest
) -> None:
    build_shop(generate(200), tmp_path)
    old = load_shop(tmp_path).fingerprint
    killed_at(*STEPS[step], lambda: build_shop(products, tmp_path))
    assert load_shop(tmp_path).fingerprint == old
    told: list[str] = []
    manifest = build_shop(products, tmp_path, tell=told.append)
    assert manifest == whole  # to the byte: its stamps are equal
    embedded = [line for line in told if line.startswith("embedded")]
    left = {"columns": 5, "embedding": 3}.get(step, 0)
    assert len(embedded) in (left, 5 if step == "exact index" else left)
    assert load_shop(tmp_path).catalog.fingerprint == products.fingerprint


@pytest.fixture(scope="module")
def whole(products: Catalog, tmp_path_factory: pytest.TempPathFactory) -> Iterator[store.Manifest]:
    """What a build without a kill makes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "EXACT_UP_TO", 1_000)
        patch.setattr(index_module, "SCAN_UP_TO", 100)
        patch.setattr(build_module, "SHARD", 500)
        yield build_shop(products, tmp_path_factory.mktemp("whole"))


def test_two_builds_at_a_time_are_refused(tmp_path: Path) -> None:
    with lock(tmp_path / store.LOCK, RuntimeError()):
        with pytest.raises(CatalogError, match="process"):
            build_shop(generate(200), tmp_path)
        with pytest.raises(CatalogError, match="not finished"):
            load_shop(tmp_path)


def build_with_a_helper(
    ours: Catalog, theirs: Callable[[], Catalog], out: Path, tell: build_module.Tell = lambda line: None
) -> tuple[store.Manifest, BaseException | None]:
    """Build as process 0 in this thread and as process 1 in another; return the manifest, and how the other failed."""
    given: list[Any] = [None, None]
    barrier = threading.Barrier(2, timeout=60)

    def gather(rank: int, mine: Any) -> list[Any]:
        given[rank] = mine
        barrier.wait()
        everyone = list(given)
        barrier.wait()
        return everyone

    with ThreadPoolExecutor() as pool:
        helper = pool.submit(build_module.help_build, theirs, out, LexicalEmbedder(), 1, partial(gather, 1))
        return build_shop(ours, out, tell=tell, gather=partial(gather, 0)), helper.exception(60)


@pytest.mark.parametrize("left_by_it", [0, 1])
def test_processes_share_the_embedding_and_what_one_leaves_is_not_lost(
    left_by_it: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, here, by_others = generate(200), threading.get_ident(), []
    expected = build_shop(catalog, tmp_path / "alone")

    def counted(*args: Any) -> Any:
        if threading.get_ident() != here:
            by_others.append(args)
            if len(by_others) > 2 - left_by_it:
                raise RuntimeError("the helper fails")
        return embed_rows(*args)

    monkeypatch.setattr(build_module, "SHARD", -(-expected.texts // 5))
    monkeypatch.setattr(build_module, "embed_rows", counted)
    told: list[str] = []
    out = tmp_path / "shared"
    manifest, failed = build_with_a_helper(catalog, lambda: catalog, out, told.append)
    assert manifest == expected and bool(failed) == bool(left_by_it)  # to the byte
    embedded = [line for line in told if line.startswith("embedded")]
    assert len(by_others) == 2 and len(embedded) == 3 + left_by_it  # of five shards
    assert not (out / manifest.data / "shards").exists()
    again = build_with_a_helper(catalog, lambda: pytest.fail("opened"), out)
    assert again == (expected, None)  # nothing is left to do
    _, failed = build_with_a_helper(generate(201), lambda: catalog, out)
    assert isinstance(failed, CatalogError) and "process 1 has another catalog" in str(failed)
    assert load_shop(out).catalog.size == 201


# -- the approximate index ----


@pytest.mark.usefixtures("small_index")
def test_an_approximate_index_finds_what_the_exact_one_finds(products: Catalog, tmp_path: Path) -> None:
    manifest = build_shop(products, tmp_path)
    lists = load_shop(tmp_path)
    assert manifest.index.kind == "IVF256,SQ8" and set(manifest.index.recall_at_20) == {"1", "0.5", "0.2"}
    assert min(manifest.index.recall_at_20.values()) >= 0.95
    index = lists.engine.index
    exact = Shop(
        products,
        SearchEngine(products, LexicalEmbedder(), lists.engine.texts, index_module.Index(index.exact)),
    )
    in_memory = Shop(products, SearchEngine(products, LexicalEmbedder()))
    assert exact.fingerprint != lists.fingerprint == in_memory.fingerprint
    found = wanted = 0
    for some, truth in zip(answers(lists), answers(exact), strict=True):
        assert len(some) == len(truth)
        found, wanted = found + len({*some} & {*truth}), wanted + len(truth)
    assert found / wanted >= 0.9  # equal scores at the cut may be of other products
    few = (Constraint("type", "==", "Air Fryer"),)  # so few are scanned
    for row in range(0, 2_500, 100):
        title = products.title(row)
        assert lists.engine.search(title, few, top_k=20) == exact.engine.search(title, few, top_k=20)


@pytest.mark.usefixtures("small_index")
def test_low_recall_is_refused(products: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "EFFORTS", (index_module.Effort(1, 1),))
    with pytest.raises(index_module.LowRecallError, match="95%"):
        build_shop(products, tmp_path)
    with pytest.raises(CatalogError, match="finished"):
        load_shop(tmp_path)
