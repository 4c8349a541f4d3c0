"""A dataset of the hub is streamed as plain data: whole, or with the sentence that says why not."""

from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ingested import amazebay_rows

from ecomlab.catalog.ingest import build_products, open_source
from ecomlab.catalog.ingest.sources import Source

NAME = "owlgebra-ai/Amazebay-catalog-2M"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that `datasets` takes for the dataset on the hub, whose two files have its exact schema."""
    assert open_source(NAME) == Source(NAME)
    monkeypatch.chdir(tmp_path)
    data = tmp_path / NAME / "data"
    data.mkdir(parents=True)
    rows = amazebay_rows()
    pq.write_table(pa.Table.from_pylist(rows[:25]), data / "train-00000-of-00002.parquet")
    pq.write_table(pa.Table.from_pylist(rows[25:]), data / "train-00001-of-00002.parquet")
    return data


def test_a_dataset_of_the_hub_is_streamed(hub: Path) -> None:
    source = Source(NAME)
    assert [row.values for row in source.rows()] == amazebay_rows()
    report = build_products(source, hub.parents[2] / "out")
    assert (report.rows, report.set_aside, report.source) == (40, 2, NAME)


def test_a_stream_that_breaks_off_says_so(hub: Path) -> None:
    (hub / "train-00001-of-00002.parquet").write_bytes(b"PAR1 and then nothing PAR1")
    rows = Source(NAME).rows()
    assert [row.number for row in islice(rows, 25)] == [*range(25)]  # these come before the rest is looked at
    with pytest.raises(ValueError, match="broke off after 25 rows.*The same command goes on"):
        next(rows)


def test_only_plain_data_is_streamed(hub: Path) -> None:
    for file in hub.iterdir():
        file.unlink()
    (hub / "train.png").write_bytes(b"")
    with pytest.raises(ValueError, match="is no plain data"):
        next(Source(NAME).rows())
    (hub / "train.png").unlink()
    (hub.parent / f"{hub.parent.name}.py").write_text("raise SystemExit('this ran')")
    with pytest.raises(ValueError, match="cannot be reached"):
        next(Source(NAME).rows())


def test_an_unknown_split_is_named(hub: Path) -> None:
    with pytest.raises(ValueError, match=r"tset.*train"):
        next(Source(NAME, split="tset").rows())
