"""The generated shop: its words are apart, its rows the same everywhere, its search finds what is there."""

import math
import os
import re
import shutil
import string
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from counted import calls_in
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from ecomlab.catalog import Catalog, Constraint, LexicalEmbedder, ProductType, SearchEngine, Shop, generate
from ecomlab.catalog import load_shop as load_shop_once
from ecomlab.catalog import shop as shop_module
from ecomlab.catalog import store as store_module
from ecomlab.catalog.embed import words
from ecomlab.catalog.schema import NO_OPTION
from ecomlab.catalog.synthetic import FILE, LOOKS, product_types, vocabulary
from ecomlab.catalog.texts import document, embed_rows
from ecomlab.seeding import rng

TYPES = product_types()
DEPARTMENTS = vocabulary().departments
FEATURES = {
    name: {feature for kind in one.types.values() for feature in kind.features}
    for name, one in DEPARTMENTS.items()
}
BY_NAME = pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.name)
BY_DEPARTMENT = pytest.mark.parametrize("department", DEPARTMENTS)
KEPT_FROM_PHRASES = set("need want skip drop also plus sold under rated days any".split())


def tokens(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def within(part: str, whole: str) -> bool:
    """Whether the words of `part` stand in a row inside `whole`."""
    a, b = tokens(part), tokens(whole)
    return any(b[i : i + len(a)] == a for i in range(len(b) - len(a) + 1))


def too_near(names: set[str]) -> list[tuple[str, str]]:
    pairs = combinations(sorted(names), 2)
    return [(a, b) for a, b in pairs if Levenshtein.distance(a.lower(), b.lower(), score_cutoff=2) < 3]


@pytest.fixture(scope="module")
def shop() -> Shop:
    return load_shop_once(20_000, cache=False)


@pytest.fixture(scope="module")
def catalog(shop: Shop) -> Catalog:
    return shop.catalog


# -- words ----


def test_no_name_is_two_typos_from_another() -> None:
    assert not too_near({kind.name for kind in TYPES})
    assert not too_near({brand for department in DEPARTMENTS.values() for brand in department.brands})
    assert not too_near({*vocabulary().features})


@BY_DEPARTMENT
def test_within_a_department_no_brand_feature_or_type_is_near_another(department: str) -> None:
    brands, features = DEPARTMENTS[department].brands, FEATURES[department]
    names = [*brands, *features, *(kind.name for kind in TYPES if kind.department == department)]
    assert len(set(names)) == len(names)
    assert not too_near(set(names))


def test_no_type_is_part_of_another() -> None:
    names = [kind.name for kind in TYPES]
    assert len(set(names)) == len({kind.plural for kind in TYPES}) == len(names)
    assert not [(a, b) for a in names for b in names if a != b and within(a, b)]
    assert all(1 <= len(name.split()) <= 2 and name.istitle() for name in names)


def test_every_attribute_serves_a_type() -> None:
    entries = [entry for department in DEPARTMENTS.values() for entry in department.types.values()]
    keys = {key for entry in entries for key in (entry.option, *entry.attributes) if key}
    assert keys == set(vocabulary().attributes)
    assert {name for entry in entries for name in entry.features} == set(vocabulary().features)


def test_an_edited_vocabulary_never_reads_old_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "vocabulary.toml"
    file.write_bytes(FILE.read_bytes())
    monkeypatch.setattr(store_module, "__file__", str(tmp_path / "store.py"))
    before = store_module.cache_key(1_000, 0)
    assert store_module.cache_key(1_000, 0) == before
    file.write_text(file.read_text("utf-8").replace("Micro-USB", "Mini-USB"), "utf-8")
    assert store_module.cache_key(1_000, 0) != before


@BY_NAME
def test_a_value_says_which_attribute_it_is_of(kind: ProductType) -> None:
    attributes = (kind.option, *kind.attributes)
    assert (len(kind.option.values) >= 4 or kind.option is NO_OPTION) and 2 <= len(kind.attributes) <= 4
    assert len({a.name for a in attributes}) == len(attributes)
    values = [value for a in attributes for value in a.values]
    assert len(set(values)) == len(values)
    assert not [(a, b) for a in values for b in values if a != b and within(a, b)]
    titles = (*DEPARTMENTS[kind.department].brands, *FEATURES[kind.department])
    title_words = {word for name in (*titles, *(k.name for k in TYPES if k.department == kind.department))
                   for word in tokens(name)}  # fmt: skip
    assert not title_words & {word for value in values for word in tokens(value)}
    if "XS" in kind.option.values:
        others = {word for a in kind.attributes for value in a.values for word in tokens(value)}
        assert not {"s", "m", "l"} & others


@BY_NAME
def test_phrases_read_as_part_of_a_sentence(kind: ProductType) -> None:
    for attribute in (kind.option, *kind.attributes):
        assert attribute.phrase.count("{}") == 1
        for value in attribute.values:
            phrase = attribute.say(value)
            assert phrase[0].islower() and ";" not in phrase
            assert not KEPT_FROM_PHRASES & set(re.findall(r"[a-z]+", phrase.lower()))


# -- columns ----


def test_a_product_is_what_its_type_allows(catalog: Catalog) -> None:
    for row in range(0, catalog.size, 37):
        kind, record = catalog.type_of(row), catalog.record(row)
        assert record["title"] == catalog.title(row)
        assert record["type"] == kind.name and row in catalog.type_rows(kind.name)
        assert record["brand"] in DEPARTMENTS[kind.department].brands
        assert catalog.feature(row) in DEPARTMENTS[kind.department].types[kind.name].features
        assert list(record["attributes"]) == [a.name for a in kind.attributes]
        assert all(record["attributes"][a.name] in a.values for a in kind.attributes)
        assert catalog.row(record["product_id"]) == row
        assert all(type(value) in (str, int, float, dict) for value in record.values())


def test_the_long_tails_are_there(catalog: Catalog) -> None:
    assert 0.03 < (catalog.stock == 0).mean() < 0.05 and catalog.stock.min() == 0
    assert catalog.rating_tenths.min() >= 28 and catalog.rating_tenths.max() <= 50
    assert np.median(catalog.rating_tenths) >= 43
    assert set(np.unique(catalog.days)) == set(range(1, 8))
    assert set(np.unique(catalog.price_cents % 100)) == {0, 49, 95, 99}
    assert catalog.reviews.mean() > 3 * np.median(catalog.reviews)
    for kind in TYPES[::9]:
        rows = catalog.type_rows(kind.name)
        shares = sorted(Counter(catalog.brand_code[rows.start : rows.stop].tolist()).values())
        assert shares[-1] > 3 * shares[0]  # a few brands are everywhere, others rare
        median = np.median(catalog.price_cents[rows.start : rows.stop]) / 100
        assert abs(math.log(median / DEPARTMENTS[kind.department].types[kind.name].price)) < 0.4


@BY_NAME
def test_a_product_comes_in_some_options_of_its_type(kind: ProductType, catalog: Catalog) -> None:
    """Several products share each set, so that a task finds products that differ in all but that; sizes have no gaps,
    and only what comes in colors or finishes may have no variants."""
    rows = catalog.type_rows(kind.name)
    sets = Counter(map(catalog.options, rows))
    for own in sets:
        places = [kind.option.values.index(value) for value in own]
        assert places == sorted(places) and (2 <= len(own) <= 5 or own == ())
        assert not kind.option.ordered or not own or places == list(range(places[0], places[0] + len(own)))
    if kind.option is NO_OPTION:
        assert set(sets) == {()}
    elif kind.option.name not in LOOKS:
        assert () not in sets
    else:
        assert len(sets) <= 5 and 0.02 < sets[()] / len(rows) < 0.2
    assert catalog.shared_options(rows) == tuple(
        value for value in kind.option.values if all(value in own for own in sets)
    )


@BY_NAME
def test_values_of_an_ordered_attribute_grow(kind: ProductType) -> None:
    for attribute in (kind.option, *kind.attributes):
        numbers = [attribute.number(value) for value in attribute.values]
        amounts = [
            n * (1000 if value.endswith("TB") else 1)
            for n, value in zip(numbers, attribute.values, strict=True)
            if n
        ]
        assert not attribute.ordered or amounts == sorted(amounts), attribute
        if attribute.name == "pack":
            assert attribute.ordered and [f"{n:.0f}-Pack" for n in amounts] == list(attribute.values)


@BY_NAME
def test_what_is_bigger_or_better_costs_more(kind: ProductType, catalog: Catalog) -> None:
    """What a price is made of, brand, feature and attributes, explains nearly all of it."""
    rows = np.array(catalog.type_rows(kind.name))
    logs = np.log(catalog.price_cents[rows])
    coded = [
        catalog.brand_code[rows],
        catalog.feature_code[rows],
        *(catalog.attr[a.name][rows] for a in kind.attributes),
    ]
    known = np.concatenate([column[:, None] == np.unique(column) for column in coded], axis=1).astype(float)
    weights, *_ = np.linalg.lstsq(known, logs, rcond=None)
    assert np.std(logs - known @ weights) < 0.2
    for attribute, key in zip(
        kind.attributes, DEPARTMENTS[kind.department].types[kind.name].attributes, strict=True
    ):
        ratio, values = vocabulary().attributes[key].price, catalog.attr_values[attribute.name]
        first, last = (
            logs[catalog.attr[attribute.name][rows] == values.index(v)]
            for v in attribute.values[:: len(attribute.values) - 1]
        )
        if abs(math.log(ratio)) > 0.5:
            assert (last.mean() - first.mean()) * math.log(ratio) > 0, attribute


def test_every_type_can_be_bought_in_a_small_shop_too() -> None:
    for size in (len(TYPES), 1000, 1001):
        small = generate(size, seed=3)
        assert small.size == size
        assert all(len(small.type_rows(kind.name)) for kind in TYPES)
    thousand = generate(1000)
    assert min(len(thousand.type_rows(kind.name)) for kind in TYPES) >= 4
    with pytest.raises(ValueError, match=str(len(TYPES))):
        generate(20)


def test_nothing_can_be_written_to(catalog: Catalog) -> None:
    for column in catalog.columns().values():
        with pytest.raises(ValueError, match="read-only"):
            column[0] = column[0]
    with pytest.raises(AttributeError):
        catalog.brands = ()  # type: ignore[misc]


def test_ids_carry_no_information(catalog: Catalog) -> None:
    ids = list(catalog.ids)
    assert len(set(ids)) == catalog.size
    assert all(re.fullmatch(r"P[0-9A-HJKMNP-TV-Z]{6}", name) for name in ids)
    # neither the order of ids nor any character of them goes with what the row says
    rows = np.arange(catalog.size)
    characters = np.array([[ord(c) for c in name[1:]] for name in ids], float)
    order = np.argsort(np.argsort(ids))
    for trait in (*characters.T, order):
        for content in (rows, catalog.price_cents, catalog.stock, catalog.rating_tenths, catalog.brand_code):
            assert abs(np.corrcoef(trait, content)[0, 1]) < 4.5 / math.sqrt(catalog.size)
    other = generate(2000, seed=1)
    assert len(set(other.ids) & set(ids)) <= 3  # another seed, other ids
    assert ids[-1] == catalog.ids[-1]


@given(st.text(max_size=9) | st.text(string.ascii_uppercase + string.digits, min_size=7, max_size=7))
def test_an_unknown_id_has_no_row(catalog: Catalog, name: str) -> None:
    row = catalog.row(name)
    assert row is None or catalog.ids[row] == name


# -- constraints ----


def constraint(catalog: Catalog) -> st.SearchStrategy[Constraint]:
    names = {
        "type": [kind.name for kind in catalog.types],
        "brand": [*catalog.brands, "Nobody"],
        "feature": [*catalog.features, "Nothing"],
        **{f"attr:{name}": [*values, "None such"] for name, values in catalog.attr_values.items()},
        "attr:nonesuch": ["x"],
        "option": ["M", "Red", "Bamboo", "Nothing"],
    }
    named = st.sampled_from(sorted(names)).flatmap(
        lambda field: st.sampled_from(names[field]).map(lambda value: Constraint(field, "==", value))
    )
    order = st.sampled_from(["<=", ">="])
    numbers = {"price": st.integers(-1, 60_000), "rating": st.integers(0, 60), "days": st.integers(0, 9)}
    number = st.sampled_from(sorted(numbers)).flatmap(
        lambda field: st.builds(Constraint, st.just(field), order, numbers[field])
    )
    return named | number | number  # numbers more often: names alone leave little


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_satisfies_and_select_agree(catalog: Catalog, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(catalog.types))
    rows = catalog.type_rows(kind.name)
    wanted = data.draw(st.lists(constraint(catalog), max_size=4))
    expected = [row for row in rows if catalog.satisfies(row, wanted)]
    assert catalog.select(wanted, rows).tolist() == expected
    assert catalog.select(wanted, list(reversed(rows))).tolist() == expected[::-1]
    assert catalog.select([*wanted, Constraint("type", "==", kind.name)]).tolist() == expected
    everywhere = catalog.select(wanted)
    assert np.all(np.diff(everywhere) > 0) and set(expected) <= set(everywhere.tolist())


def test_a_product_satisfies_what_is_true_of_it(catalog: Catalog) -> None:
    for row in range(0, catalog.size, 501):
        record = catalog.record(row)
        truths = [Constraint(field, "==", record[field]) for field in ("type", "brand")]
        truths += [Constraint(f"attr:{name}", "==", value) for name, value in record["attributes"].items()]
        truths += [Constraint("price", op, round(100 * record["price"])) for op in ("<=", ">=")]
        truths += [Constraint("rating", ">=", round(10 * record["rating"]))]
        truths += [Constraint("days", "<=", record["ship_days"])]
        assert catalog.satisfies(row, truths)
        assert not catalog.satisfies(row, [*truths, Constraint("brand", "==", "Nobody")])
        assert [Constraint.from_list(truth.to_list()) for truth in truths] == truths


# -- embedding ----


def test_vectors_are_unit_rows_on_a_grid_that_float16_holds(shop: Shop) -> None:
    vectors = shop.engine.embedder.encode([document(shop.catalog, row) for row in range(0, 20_000, 199)])
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=5e-3)
    assert np.array_equal(vectors.astype(np.float16).astype(np.float32), vectors)
    exact = vectors.astype(np.float64) @ vectors.astype(np.float64).T
    assert np.array_equal(vectors @ vectors.T, exact)  # no rounding: the order of additions cannot matter
    assert not shop.engine.embedder.encode(["", "the of", "!?"]).any()


def test_adding_up_words_is_embedding_the_text(shop: Shop) -> None:
    catalog, embedder = shop.catalog, LexicalEmbedder(dim=256)
    rows = list(range(0, catalog.size, 211))
    vectors = embed_rows(catalog, embedder, rows)
    texts = [" ".join([catalog.title(row)] * 3 + [*catalog.attributes(row).values()] * 2) for row in rows]
    assert np.array_equal(vectors, embedder.encode(texts))


@given(st.lists(st.text() | st.text("ab é漢😀1.-"), min_size=1, max_size=5), st.sampled_from([16, 17, 512]))
def test_words_are_hashed_as_scikit_learn_does(texts: list[str], dim: int) -> None:
    from sklearn.feature_extraction.text import HashingVectorizer

    whole = HashingVectorizer(
        n_features=dim // 2, preprocessor=words, token_pattern=r"\S+", norm=None, dtype=np.float32
    )
    grams = HashingVectorizer(
        n_features=dim - dim // 2, preprocessor=words, analyzer="char_wb", ngram_range=(3, 4), norm=None
    )
    expected = np.hstack([part.transform(texts).toarray() for part in (whole, grams)])
    assert np.array_equal(LexicalEmbedder(dim).counts(texts), expected)


def test_any_embedder_will_do() -> None:
    class Lengths:
        name = "lengths"
        reproducible = True
        dim = 16
        fingerprint = "lengths"

        def encode(self, texts: Sequence[str]) -> np.ndarray:
            vectors = np.zeros((len(texts), 16), np.float32)
            vectors[np.arange(len(texts)), [len(text) % 16 for text in texts]] = 1
            return vectors

    small = generate(300)
    engine = SearchEngine(small, Lengths())
    text = document(small, 7)
    assert len(document(small, engine.search(text)[0])) % 16 == len(text) % 16
    assert engine.fingerprint != SearchEngine(small, LexicalEmbedder()).fingerprint


# -- search ----


def sample(catalog: Catalog, count: int = 200) -> list[tuple[int, str, str, str, list[str]]]:
    rows = rng("search quality").choice(catalog.size, count, replace=False).tolist()
    return [
        (row, catalog.features[catalog.feature_code[row]], catalog.brands[catalog.brand_code[row]],
         catalog.type_of(row).name, list(catalog.attributes(row).values()))
        for row in rows
    ]  # fmt: skip


def share_found(shop: Shop, queries: dict[int, str], *same: str) -> float:
    """The share of queries whose first hit has the row's codes in the columns `same`."""
    hits = []
    for row, query in queries.items():
        best = shop.engine.search(query, top_k=20)[0]
        hits.append(
            all(getattr(shop.catalog, name)[best] == getattr(shop.catalog, name)[row] for name in same)
        )
    return sum(hits) / len(hits)


def test_the_best_match_comes_first(shop: Shop) -> None:
    rows = sample(shop.catalog)
    title = ("brand_code", "feature_code", "type_code")
    assert share_found(shop, {r: f"{f} {b} {t}" for r, f, b, t, _ in rows}, *title) >= 0.995
    assert share_found(shop, {r: f"{b} {t}" for r, _, b, t, _ in rows}, "brand_code", "type_code") >= 0.995
    assert share_found(shop, {r: f"a {t}, please" for r, _, _, t, _ in rows}, "type_code") >= 0.995
    plural = {r: f"{b} {shop.catalog.type_of(r).plural}" for r, _, b, _, _ in rows}
    assert share_found(shop, plural, "brand_code", "type_code") >= 0.99


def test_attribute_values_tell_products_of_a_title_apart(shop: Shop) -> None:
    right = 0
    rows = sample(shop.catalog)
    for row, feature, brand, kind, values in rows:
        best = shop.engine.search(f"{feature} {brand} {kind} {' '.join(values)}", top_k=5)[0]
        right += document(shop.catalog, best) == document(shop.catalog, row)
    assert right / len(rows) >= 0.97


def test_a_typo_in_the_brand_is_forgiven(shop: Shop) -> None:
    def typo(word: str, draw: np.random.Generator) -> str:
        at, letter = int(draw.integers(1, len(word) - 1)), string.ascii_lowercase[draw.integers(26)]
        kinds = (
            word[:at] + word[at + 1 :],
            word[:at] + letter + word[at:],
            word[:at] + letter + word[at + 1 :],
        )
        return kinds[draw.integers(3)]

    queries = {r: f"{typo(b, rng('typo', r))} {t}" for r, _, b, t, _ in sample(shop.catalog)}
    assert share_found(shop, queries, "brand_code", "type_code") >= 0.95


def brute_force(shop: Shop, query: str, filters: tuple[Constraint, ...], top_k: int) -> list[int]:
    rows = shop.catalog.select(filters)
    vectors = embed_rows(shop.catalog, shop.engine.embedder, rows).astype(np.float32)
    scores = vectors @ shop.engine.embedder.encode([query])[0]
    return rows[np.lexsort((rows, -scores))][:top_k].tolist()


@pytest.mark.parametrize("top_k", [1, 20, 200, 1000])
@pytest.mark.parametrize("query", ["GreenLeaf Rustic Garden Hose", "something warm", "charger", "zzz", ""])
def test_filters_apply_before_the_cut_and_ties_go_to_the_lower_row(query: str, top_k: int) -> None:
    small = load_shop_once(1000, cache=False)
    for filters in (
        (),
        (Constraint("price", "<=", 3000),),
        (Constraint("brand", "==", "GreenLeaf"), Constraint("rating", ">=", 40)),
        (Constraint("type", "==", "Garden Hose"),),
        (Constraint("brand", "==", "Nobody"),),
    ):
        assert list(small.engine.search(query, filters, top_k=top_k)) == brute_force(
            small, query, filters, top_k
        )


def test_sorting_reorders_what_was_found(shop: Shop) -> None:
    found = shop.engine.search("wool cardigan", top_k=50)
    for sort, column, sign in (
        ("price", shop.catalog.price_cents, 1),
        ("-price", shop.catalog.price_cents, -1),
        ("rating", shop.catalog.rating_tenths, -1),
        ("delivery", shop.catalog.days, 1),
    ):
        ordered = shop.engine.search("wool cardigan", sort=[sort], top_k=50)
        assert list(ordered) == sorted(found, key=lambda row: (sign * int(column[row]), row))
    with pytest.raises(ValueError, match="'price'"):
        shop.engine.search("x", sort=["pricey"])
    with pytest.raises(ValueError, match="one"):
        shop.engine.search("x", top_k=0)


def test_within_a_type_the_keys_order_all_of_it_before_the_cut(shop: Shop) -> None:
    of_type = Constraint("type", "==", "Yoga Mat")
    rows = list(shop.catalog.type_rows("Yoga Mat"))
    best = sorted(
        rows, key=lambda row: (-int(shop.catalog.rating_tenths[row]), int(shop.catalog.price_cents[row]), row)
    )
    assert list(shop.engine.search("", [of_type], ["rating", "price"], top_k=7)) == best[:7]
    some = np.array(rows[10:40])
    found = shop.engine.search("", [of_type], ["rating", "price"], top_k=7, among=some)
    assert list(found) == [row for row in best if row in some][:7]


# -- the same everywhere ----


def probed() -> str:
    """What a shop of its own seed is, and what a search in it finds."""
    shop = load_shop_once(2_000, seed=5)
    found = shop.engine.search("GreenLeaf flower pot", (Constraint("price", "<=", 5_000),), ["price"], 30)
    return repr([shop.fingerprint, shop.catalog.record(77), found])


def test_every_process_has_the_same_shop_fresh_or_cached(cached: Path) -> None:
    """Made by a process with other hashes, another language and more threads, and read from its cache by this one."""
    elsewhere = {"PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "Asia/Tokyo", "OMP_NUM_THREADS": "2"}
    code = "import test_catalog; print(test_catalog.probed())"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **elsewhere, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
    )
    assert not run.stderr
    assert [path.name.split("-")[:2] for path in (cached / "shops").iterdir()] == [["2000", "5"]]
    assert run.stdout.strip() == probed(), "read"
    shutil.rmtree(cached)
    shop_module._SHOPS.clear()
    assert run.stdout.strip() == probed(), "made here"


def test_the_fingerprint_is_of_the_content() -> None:
    one = generate(500, seed=1)
    assert one.fingerprint == generate(500, seed=1).fingerprint
    assert one.fingerprint not in {generate(500, seed=2).fingerprint, generate(501, seed=1).fingerprint}
    columns = one.columns() | {"stock": one.stock + (np.arange(500) == 9).astype(np.int16)}
    assert Catalog.from_columns(one.vocabulary, columns).fingerprint != one.fingerprint


# -- the cache ----


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ECOMLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(shop_module, "_SHOPS", {})
    return tmp_path / "cache"


def reload(size: int = 300) -> Shop:
    shop_module._SHOPS.clear()
    return load_shop_once(size)


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("exact.faiss", "flipped"),
        ("exact.faiss", "gone"),
        ("manifest.json", "cut"),
        ("manifest.json", "gone"),
        ("texts.rows.npy", "cut"),
    ],
)
def test_a_damaged_cache_is_made_again(cached: Path, name: str, how: str) -> None:
    fingerprint = reload().fingerprint
    (file,) = (cached / "shops").rglob(name)
    data = file.read_bytes()
    if how == "gone":
        file.unlink()
    else:
        file.write_bytes(data[:-9] if how == "cut" else data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])
    if (name, how) == ("manifest.json", "gone"):  # as after a kill: the build goes on
        assert reload().fingerprint == fingerprint
    else:
        with pytest.warns(UserWarning, match="damaged"):
            assert reload().fingerprint == fingerprint
    assert file.read_bytes() == data
    assert reload().fingerprint == fingerprint  # and silent again


def test_a_cache_that_cannot_be_written_is_done_without(
    cached: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached.write_text("a file where the folder should be")
    with pytest.warns(UserWarning, match="ECOMLAB_CACHE"):
        shop = reload()
    cached.unlink()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(np, "save", full)
        with pytest.warns(UserWarning, match="space"):
            assert reload().fingerprint == shop.fingerprint
    assert list((cached / "shops").iterdir()) == []


def test_without_a_cache_nothing_is_written(cached: Path) -> None:
    load_shop_once(300, cache=False)
    assert not cached.exists()


# -- work ----


def test_a_shop_is_made_by_column_not_product_by_product() -> None:
    """Four times as many products take as many calls."""

    def calls(size: int) -> int:
        return calls_in(lambda: SearchEngine(generate(size, seed=1), LexicalEmbedder()))

    assert calls(4_000) < 1.1 * calls(1_000)


def test_people_read_products_as_a_table(shop: Shop) -> None:
    kind = TYPES[0].name
    table = shop.products(kind)
    assert set(table.type) == {kind} and len(table) == len(shop.catalog.type_rows(kind))
    found = shop.search(table.title.iloc[0], top=3)
    assert table.title.iloc[0] in set(found.title) and len(found) == 3
    assert "<table" in shop._repr_html_()
    with pytest.raises(ValueError, match="did you mean"):
        shop.products(kind.lower())
