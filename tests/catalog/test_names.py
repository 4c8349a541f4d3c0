"""Names that are packed and looked up are those that tuples and dicts of them would give."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz import fuzz

from ecomlab.catalog import Catalog, Constraint, Shop, build_shop
from ecomlab.catalog.lexicon import CUTOFF, Lexicon
from ecomlab.catalog.names import SPLIT, Packed, by_lower_case
from ecomlab.catalog.shop import open_shop

NAMES = st.lists(st.text("aAbBé-'19İK", min_size=1, max_size=6), max_size=9, unique_by=str.lower)
"""Some change their length in lower case."""


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("ECOMLAB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@given(NAMES, NAMES, st.data())
def test_packed_names_are_found_as_in_a_dict(
    names: list[str], others: list[str], data: st.DataObject
) -> None:
    packed = Packed.of(names)
    assert [*packed] == names == [packed[code] for code in range(len(names))]
    codes = {name: code for code, name in enumerate(names)}
    asked = [*names, *others]
    assert [packed.get(name, -2) for name in asked] == [codes.get(name, -2) for name in asked]
    some = np.array(sorted(data.draw(st.sets(st.sampled_from(range(len(names)))))) if names else [], np.int32)
    for of in (None, some):
        held, found = by_lower_case(tuple(names), of), by_lower_case(packed, of)
        assert [*found] == [*held] and len(found) == len(held)
        assert [found.get(name.lower()) for name in asked] == [held.get(name.lower()) for name in asked]
    for how, pattern in SPLIT.items():
        words = {word for name in names for word in pattern.findall(name.lower())}
        assert all(
            packed.has(how, word) == (word in words)
            for name in asked
            for word in pattern.findall(name.lower())
        )


@given(NAMES, st.text("abé-1", min_size=1, max_size=6))
def test_no_similar_name_is_passed_over(names: list[str], word: str) -> None:
    near = {name.lower() for name in names if fuzz.ratio(word, name.lower()) >= CUTOFF}
    assert near <= {*(Packed.of(names).near(word, CUTOFF) if names else [])}


@pytest.fixture(scope="module")
def pair(big_shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> tuple[Catalog, Catalog]:
    """A real catalog whose names are held, and the same whose names are looked up in its folder."""
    big_catalog, random = big_shop.catalog, np.random.default_rng(7)
    features = tuple(f"{name}-{n}" for n in range(20) for name in big_catalog.features)
    made = replace(
        big_catalog,
        features=features,
        feature_code=random.integers(0, len(features), big_catalog.size).astype(np.int32),
        titles=Packed.of([big_catalog.title(row) for row in range(big_catalog.size)]),
        drawable=tuple(kind.name for kind in big_catalog.types),
    )
    folder: Path = tmp_path_factory.mktemp("many") / "shop"
    build_shop(made, folder)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("ecomlab.catalog.names.MANY", 1)
        return made, open_shop(folder).catalog


def test_a_catalog_of_many_names_is_that_of_few(pair: tuple[Catalog, Catalog]) -> None:
    few, many = pair
    assert isinstance(many.features, Packed) and isinstance(few.features, tuple)
    del vars(many)["fingerprint"]
    assert many.fingerprint == few.fingerprint
    for kind, name in (("brand", few.brands[3]), ("feature", few.features[9])):
        for wanted in (Constraint(kind, "==", name), Constraint(kind, "not in", (name, "None"))):
            assert (many.select([wanted]) == few.select([wanted])).all()
    held, looked = Lexicon(few), Lexicon(many)
    for word in ("amberalcove", "Amberalcov", "ultra-slim-7", "the", "wireless", "size", "q", "seven"):
        for at in ("words", "parts", "spoken"):
            assert (word in getattr(held, at)) == (word in getattr(looked, at))
        for of in few.types[:9]:
            for kind in ("brand", "feature"):
                assert held.nearest(kind, word, of.name) == looked.nearest(kind, word, of.name)
                assert held.nearest(kind, word) == looked.nearest(kind, word)
                assert {**held.within(of.name)[kind]} == {**looked.within(of.name)[kind]}
