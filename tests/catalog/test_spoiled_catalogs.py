"""Folders of catalogs spoiled at random: each is refused in a sentence or works as a shop; none crashes or hangs."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
import spoiling
from ingested import shop_export, shop_folder

from ecomlab.catalog import Catalog, Titles, build_shop, generate
from ecomlab.catalog import index as index_module

CASES, MANY = 6 * len(spoiling.WAYS), 10_000


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three whole catalogs: generated with titles, generated and searched by lists, and read from a shop's export."""
    place = tmp_path_factory.mktemp("bases")
    catalog = generate(200)
    titles = Titles.of([f"{catalog.title(row)} No. {row // 2}" for row in range(200)])
    build_shop(Catalog.from_columns(catalog.vocabulary, catalog.columns(), titles), place / "titled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "EXACT_UP_TO", 200)
        build_shop(generate(400), place / "lists")
    (place / "export").mkdir()
    return [place / "titled", place / "lists", shop_folder(shop_export(), place / "export")]


def check(found: Sequence[spoiling.Outcome], count: int) -> Counter[tuple[str, str]]:
    assert [one.number for one in found] == list(range(count))
    wrong = [one for one in found if one.what not in (spoiling.REFUSED, spoiling.WORKED)]
    assert not wrong, "\n".join(map(str, wrong[:5]))
    said = [one for one in found if one.what == spoiling.REFUSED and not spoiling.is_sentence(one.said)]
    assert not said, said[:5]
    assert all(one.what == spoiling.WORKED for one in found if one.way == "nothing")
    return Counter((one.way, one.what) for one in found)


def outcomes(count: int, bases: list[Path], work: Path) -> list[spoiling.Outcome]:
    return list(spoiling.outcomes(range(count), partial(spoiling.spoil, bases), spoiling.attempt, work))


def test_spoiled_folders_are_refused_in_a_sentence_or_work(bases: list[Path], tmp_path: Path) -> None:
    counts = check(outcomes(CASES, bases, tmp_path), CASES)
    assert {way for way, what in counts if what == spoiling.REFUSED} >= {
        way.__name__ for way in spoiling.WAYS if way is not spoiling.nothing
    }
    assert sum(count for (_, what), count in counts.items() if what == spoiling.WORKED) > CASES // 20


@pytest.mark.slow
def test_ten_thousand_spoiled_folders(bases: list[Path], tmp_path: Path) -> None:
    counts = check(outcomes(MANY, bases, tmp_path), MANY)
    for way in sorted({way for way, _ in counts}):
        print(f"{way}: {counts[way, spoiling.REFUSED]} refused, {counts[way, spoiling.WORKED]} work")
