"""Sources are read whole, row by row, or to the place from which a sentence says why not."""

import gzip
import json
from collections import Counter
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import HfApi
from hypothesis import given, settings
from hypothesis import strategies as st
from ingested import amazebay_rows

from ecomlab.catalog.ingest import build_products, open_source, sources
from ecomlab.catalog.ingest.sources import Source
from ecomlab.catalog.ingest.values import WRAPPED
from ecomlab.catalog.products import open_products

NAME = "owlgebra-ai/Amazebay-catalog-2M"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that `datasets` takes for the dataset on the hub, whose two files have its exact schema."""
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


def test_a_dataset_of_the_hub_is_pinned_to_a_commit(hub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub is a stand-in that knows two commits; what is streamed and recorded is the one that a name meant."""
    commits, read, stream = {None: "c0ffee", "v1": "decaf"}, [], datasets.load_dataset_builder

    def dataset_info(self: HfApi, name: str, revision: str | None) -> SimpleNamespace:
        return SimpleNamespace(sha=commits[revision])

    def load(name: str, revision: str) -> Any:
        read.append((name, revision))
        return stream(name)

    folder = hub.parents[2]
    monkeypatch.chdir(folder.parent)  # else NAME is a folder
    monkeypatch.setattr(HfApi, "dataset_info", dataset_info)
    monkeypatch.setattr(datasets, "load_dataset_builder", load)
    newest, tagged = open_source(NAME), open_source(f"{NAME}@v1")
    with pytest.raises(ValueError, match="@v2"):
        open_source(f"{NAME}@v2")
    assert (newest.name, tagged.name) == (f"{NAME}@c0ffee", f"{NAME}@decaf")
    monkeypatch.chdir(folder)
    assert build_products(tagged, folder / "out").source == tagged.name
    assert set(read) == {(NAME, "decaf")}


def test_a_stream_that_breaks_off_says_so(hub: Path) -> None:
    (hub / "train-00001-of-00002.parquet").write_bytes(b"PAR1 and then nothing PAR1")
    rows = Source(NAME).rows()
    assert [row.number for row in islice(rows, 25)] == [*range(25)]  # these come before the rest is looked at
    with pytest.raises(ValueError, match="25 rows"):
        next(rows)


def test_only_plain_data_is_streamed(hub: Path) -> None:
    for file in hub.iterdir():
        file.unlink()
    (hub / "train.png").write_bytes(b"")
    with pytest.raises(ValueError, match="plain"):
        next(Source(NAME).rows())
    (hub / "train.png").unlink()
    (hub.parent / f"{hub.parent.name}.py").write_text("raise SystemExit('this ran')")
    with pytest.raises(ValueError, match="cannot be read"):
        next(Source(NAME).rows())


def test_an_unknown_split_is_named(hub: Path) -> None:
    with pytest.raises(ValueError, match=r"tset.*train"):
        next(Source(NAME, split="tset").rows())


HEAD = "title,price,brand\nFirst lamp,3,A\n"
SWALLOWED = {
    "cut in a quote": ('12,"Nice, lamp th\n', '"Good, lamp",6,C\nLast lamp,7,D\n', 2),
    "an inch before a row": ('"24 monitor,5,B\n', '"Good lamp",6,C\n', 1),
    "an inch before many": ('"24 monitor,5,B\n', "Lamp,6,C\n" * 6 + 'Lamp 12",7,D\n', 7),
}


@pytest.mark.parametrize("how", SWALLOWED)
def test_an_open_quote_swallows_no_rows(how: str, tmp_path: Path) -> None:
    broken, rest, count = SWALLOWED[how]
    (tmp_path / "a.csv").write_text(HEAD + broken + rest)
    rows = [*open_source(str(tmp_path / "a.csv")).rows()]
    assert [row.fault for row in rows] == ["", sources.UNCLOSED, *[""] * count]
    assert rows[1].values == {"": broken}


def test_a_quoted_field_may_take_lines_and_hold_stray_quotes(tmp_path: Path) -> None:
    lines = '"One, two\nthree, four\nfive, six",3,A\n"A shelf\n24" wide",4,B\n'
    (tmp_path / "a.csv").write_text(HEAD + lines)
    titles = [row.values["title"] for row in open_source(str(tmp_path / "a.csv")).rows()]
    assert titles == ["First lamp", "One, two\nthree, four\nfive, six", 'A shelf\n24 wide"']


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("Lampe de table;12,90;10,66\nLampadaire;24,50;20,33\nLampe murale;7,00;5,83\n", "20,33"),
        ("Modelo;36,5;37,5\nZapato negro;49,99;59,99\n", "59,99"),
        ("Desk Lamp,19.99,home;lamp\nFloor Lamp,24.50,home;lamp\n", "home;lamp"),
        ("Desk Lamp,19,5,8\nFloor Lamp,24,5,8\n", "8"),
        ("title,price\nDesk Lamp; black,19\nFloor Lamp; black,24\n", "19"),
    ],
)
def test_decimal_commas_are_no_delimiters(text: str, last: str, tmp_path: Path) -> None:
    """Where all lines have as many of them as semicolons, the comma was chosen."""
    (tmp_path / "a.csv").write_text(text)
    assert [*open_source(str(tmp_path / "a.csv")).sample()[0].values()][-1] == last


@given(st.text(alphabet='a,;"\n é', max_size=80), st.booleans())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_any_csv_keeps_every_letter(body: str, western: bool) -> None:
    """A quote that was opened, however it ends, costs none of the letters after it."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "a.csv"
        file.write_bytes(f"title,price\n{body}\n".encode("cp1252" if western else "utf-8"))
        rows = [*Source("a", (file,), ",", header=True).rows()]
    said = "".join(str(value) for row in rows for value in row.values.values())
    assert Counter(said)["a"] == body.count("a") and Counter(said)["é"] == body.count("é")
    assert all(row.fault or row.values for row in rows)


def test_a_damaged_archive_ends_with_a_reason(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress("".join(f"Lamp {n * n},{n}\n" for n in range(5_000)).encode()))
    packed[2_000:2_020] = bytes(20)
    (tmp_path / "a.csv.gz").write_bytes(packed)
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(b'[{"title": "Lamp"}]')[:-12])
    western = "title,price\n" + "".join(f"Café {n * n},{n}\n" for n in range(900))
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(western.encode("cp1252"))[:-12])
    for name in ("a.csv.gz", "b.json.gz", "c.csv.gz"):
        rows = [*open_source(str(tmp_path / name)).rows()]
        assert rows[-1].fault == sources.UNREADABLE
    assert rows[0].values == {"title": "Café 0", "price": "0"}


def test_no_name_of_a_column_reaches_a_terminal_as_a_command(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ti\x1b]0;x\x07tle,price\nBlue Lamp,3\n")
    (tmp_path / "b.jsonl").write_text('{"ti\\u001b]0;x\\u0007tle\\ud800": "Blue Lamp"}\n')
    for name in ("a.csv", "b.jsonl"):
        assert next(iter(open_source(str(tmp_path / name)).sample()[0])) == "ti]0;xtle"


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_columns_that_begin_late_are_columns_too(name: str, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"title": f"Acme X{at}Q Tripod"} for at in range(250)]
    rows += [{"price": 5 + at, "title": f"Acme Y{at}Q Tripod"} for at in range(3)]
    rows += [
        {"title": "Acme Z9Q Tripod", "price": {"amount": 7.5, "currency": "USD"}, "brand": {"name": "Acme"}}
    ]
    rows += [{"title": ["Acme Z8Q Tripod"], "price": ["6.00"]}]
    lines = [json.dumps(row) for row in rows]
    text = "\n".join(lines) if name.endswith("l") else f"[{','.join(lines)}]"
    (tmp_path / name).write_text(text)
    source = open_source(str(tmp_path / name))
    report = build_products(source, tmp_path / "out")
    products = open_products(tmp_path / "out").rows.to_pylist()
    assert [row["price_cents"] for row in products[250:]] == [500, 600, 700, 750, 600]
    assert (products[-2]["brand"], products[-1]["title"]) == ("Acme", "Acme Z8Q Tripod")
    assert report.repairs[WRAPPED] == 2


def test_a_folder_has_the_columns_of_all_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.csv").write_text("title\n" + "".join(f"Lamp {at}\n" for at in range(250)))
    (folder / "b.csv").write_text("title,price\nDesk lamp,3\nFloor lamp,4\n")
    sample = open_source(str(folder)).sample()
    assert (len(sample), sample[-1]) == (201, {"title": "Desk lamp", "price": "3"})


def test_a_json_value_that_is_no_object_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("5")
    assert [row.fault for row in open_source(str(tmp_path / "a.json")).rows()] == [sources.NOT_OBJECT]


def test_folders_named_like_files_hold_the_files(tmp_path: Path) -> None:
    part = tmp_path / "in" / "products.csv" / "part-0.csv"
    part.parent.mkdir(parents=True)
    part.write_text("title\nDesk lamp\n")
    assert open_source(str(tmp_path / "in")).files == (part,)
