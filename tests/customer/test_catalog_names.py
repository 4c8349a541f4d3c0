"""Names of a real catalog are found by looking them up, and are those that compiling all of them finds."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecomlab.catalog.names import Packed, kept
from ecomlab.customer.reading import catalog_names
from ecomlab.customer.reading.catalog_names import CatalogNames, NameIndex, by_talk
from ecomlab.customer.reading.words import names, stems_of_name

PIECES = "Case Logic DSC W80 Classic Brand ONE 4 8GB O'Neil Women's Tvs Beyond X".split()
SOME = st.lists(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=3).map("-".join), max_size=12, unique=True
)


def index_of(some: list[str]) -> NameIndex:
    return NameIndex(some, catalog_names.table_of(some))


@given(SOME, st.lists(st.sampled_from(PIECES), max_size=8).map(" ".join), st.booleans())
def test_what_is_looked_up_is_what_is_compiled(some: list[str], said: str, written: bool) -> None:
    stems, parted = stems_of_name(said), by_talk(some)
    own = {name.lower(): name for name in some[::2]}
    for talk, mine in enumerate(parted):
        for within, listed in ((None, mine), ((own, own), [n for n in mine if n in own.values()])):
            compiled = names(((name, ("feature", name)) for name in listed), written)
            found = CatalogNames(index_of(some), "feature", within, bool(talk), written)
            for place in range(len(stems)):
                there = dict.fromkeys(found.at(stems, place))  # a name of two types is found twice
                assert list(there) == list(dict.fromkeys(compiled.at(stems, place)))


@pytest.fixture
def many() -> Packed:
    return Packed.of(["Case-Logic", "DSC-W80", "Classic"])


def test_an_index_of_many_names_is_kept(
    many: Packed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ECOMLAB_CACHE", str(tmp_path))
    made = np.array(kept(many, ["stems"], catalog_names.table_of))
    assert (kept(many, ["stems"], lambda names: pytest.fail("made again")) == made).all()
    stems = stems_of_name("DSC-W80 black")
    assert NameIndex(many, made).beginning(stems) == ((len(stems) - 1, ("DSC-W80",)),)


def test_names_are_looked_up_without_a_cache(
    many: Packed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ECOMLAB_CACHE", str(tmp_path / "file"))
    made = kept(many, [], catalog_names.table_of)
    assert (made == catalog_names.table_of([*many])).all()
