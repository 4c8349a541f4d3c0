"""Retrieval is measured against known matches."""

from pathlib import Path

import numpy as np
import pytest

from ecomlab.catalog import LexicalEmbedder, generate
from ecomlab.laws.retrieval import measure, ranks_of, read_matches


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A shop of 300 generated products, and another that names six of them in another order."""
    catalog = generate(300)
    titles = [f"{catalog.title(row)} {' '.join(catalog.attributes(row).values())}" for row in range(300)]
    wanted = range(0, 300, 50)
    turned = [" ".join(reversed(titles[row].split())) for row in wanted]
    write(tmp_path / "amazon.csv", "id|title", [f"a{row}|{title}" for row, title in enumerate(titles)])
    write(tmp_path / "walmart.csv", "id|title", [f"w{row}|{title}" for row, title in zip(wanted, turned)])
    write(tmp_path / "gt.csv", "D1|D2", [f"w{row}|a{row}" for row in wanted])
    return tmp_path


def write(file: Path, header: str, rows: list[str]) -> None:
    file.write_text("\n".join([header, *rows]), "utf-8")


def test_a_rank_is_counted_from_one() -> None:
    found = [np.array([4, 2, 9]), np.array([1]), np.array([7, 5])]
    assert ranks_of(found, np.array([9, 1, 3])).tolist() == [3, 1, np.inf]


def test_other_titles_of_the_same_products_are_found(data: Path) -> None:
    exact, lists = measure(read_matches(data), LexicalEmbedder())
    assert (exact.products, exact.queries, exact.recall_at_1, exact.mrr) == (300, 6, 1.0, 1.0)
    assert lists.index.startswith("IVF") and lists.recall_at_20 == 1.0


def test_absent_data_says_where_it_comes_from(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no amazon.csv in .*pyJedAI on GitHub .* --data"):
        read_matches(tmp_path)
