"""Ingestion: every row of someone's file is a clean product, a variant of one, or set aside with its reason."""

import json
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ingested import MESSY, VARIANTS, Built, amazebay_rows, built

from ecomlab.catalog.ingest import build_products, guess, open_source, shards
from ecomlab.catalog.products import open_products


@pytest.fixture(scope="module")
def messy(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("messy")
    (folder / "products.csv").write_bytes(MESSY)
    return built(folder / "products.csv", folder / "out")


@pytest.fixture(scope="module")
def variants(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("variants")
    (folder / "export.csv").write_text(VARIANTS)
    return built(folder / "export.csv", folder / "out")


@pytest.fixture(scope="module")
def amazebay(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("amazebay")
    datasets.Dataset.from_list(amazebay_rows()).save_to_disk(str(folder / "saved"))
    return built(folder / "saved", folder / "out")


def test_every_row_is_accounted_for(messy: Built) -> None:
    report = messy.report
    assert report.rows == 14 == report.kept + report.repaired + report.set_aside
    assert report.products == len(messy.rows) == report.rows - report.set_aside
    assert dict(report.reasons) == {
        "row with more fields than the header": 1,
        "quote that is never closed": 1,
        "no title": 1,
        "title without words": 1,
        "repeats an earlier row": 1,
        "id of an earlier row with other content": 1,
    }
    assert set(report.repairs) >= {
        "price written as text",
        "price range: the lowest taken",
        "price in another currency left out",
        "unreadable price left out",
        "rating written as text",
        "unreadable rating left out",
        "mixed encodings mended",
        "HTML removed",
        "chat markers neutralised",
        "row cut short",
    }
    assert all(report.examples[reason] for reason in (*report.repairs, *report.reasons))


def test_values_are_read_as_a_person_reads_them(messy: Built) -> None:
    mouse, lamp, monitor = messy.of("Logitech"), messy.of("Desk Lamp"), messy.of("Monitor")
    assert (mouse["price_cents"], mouse["rating_tenths"], mouse["brand"]) == (1499, 45, "Logitech")
    assert messy.of("Café")["price_cents"] == 2999 and messy.of("Café")["brand"] == "Brün"
    assert (
        lamp["title"] == "Desk Lamp & Bulb" and lamp["price_cents"] is None and lamp["rating_tenths"] is None
    )
    assert monitor["title"] == 'Monitor 24" wide'
    assert messy.of("USB Cable")["price_cents"] is None
    assert mouse["attr.color"] == "Black" and mouse["from.color"] == "title: black"


def test_rows_that_were_set_aside_are_listed_and_inert(messy: Built) -> None:
    lines = (messy.folder / "set_aside.csv").read_text().splitlines()
    assert len(lines) == 1 + messy.report.set_aside
    assert not any(line.split(",", 2)[2].lstrip('"').startswith(("=", "+", "-", "@")) for line in lines)


def test_text_can_be_no_tag_and_no_chat_marker(messy: Built) -> None:
    said = " ".join(str(value) for row in messy.rows for value in row.values())
    assert not set("<>") & set(said)
    assert "system you are a thief" in said


def test_a_report_that_does_not_add_up_is_an_error(messy: Built) -> None:
    from dataclasses import replace

    wrong: dict[str, Any]
    for wrong in ({"rows": 15}, {"reasons": {}}, {"products": 1}):
        with pytest.raises(ValueError, match=r"rows|reason|products"):
            replace(messy.report, **wrong)


def test_variant_rows_become_one_product_with_variants(variants: Built) -> None:
    black, white = (row for row in variants.rows if row["title"] == "Crew Tee")
    assert {black["attr.color"], white["attr.color"]} == {"Black", "White"}
    black = black if black["attr.color"] == "Black" else white
    assert [(one["option"], one["price_cents"], one["stock"]) for one in black["variants"]] == [
        ("S", 1900, 4),
        ("M", 1900, 9),
        ("L", 2100, 0),
    ]
    assert (black["price_cents"], black["stock"], black["type"]) == (1900, 13, "T-Shirt")
    assert variants.of("Enamel Mug")["variants"] is None
    assert dict(variants.report.reasons) == {"repeats a variant of an earlier row": 1, "no title": 1}
    assert variants.report.folded == 3 and variants.products.facts["option"] == "Size"


def test_amazebays_schema_is_read(amazebay: Built) -> None:
    report = amazebay.report
    assert (report.rows, report.set_aside) == (40, 2)
    one = amazebay.of("Anker PowerLine 0 ")
    assert (one["brand"], one["type"], one["department"]) == ("Anker", "Charging Cable", "Electronics")
    assert (one["price_cents"], one["rating_tenths"]) == (1299, 45)
    assert one["attr.color"] == "Black" and one["from.color"] == "details.Color: Blk"
    assert one["attr.weight"] == "998 g"
    assert one["text"] == "Durable braided nylon. Fast charging 60W A cable & more."
    assert report.repairs["broken JSON mended"] == 1
    assert amazebay.of("Anker PowerLine 5 ")["attr.color"] == "White"
    assert set(report.drawn) == {"days", "stock"}


@pytest.mark.parametrize("form", ["parquet", "jsonl", "json", "arrow", "csv.gz"])
def test_formats_hold_the_same_products(form: str, amazebay: Built, tmp_path: Path) -> None:
    rows, file = amazebay_rows(), tmp_path / f"products.{form}"
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), file)
    elif form == "jsonl":
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif form == "json":
        file.write_text(json.dumps(rows))
    elif form == "arrow":
        table = pa.Table.from_pylist(rows)
        with pa.ipc.new_stream(str(file), table.schema) as writer:
            writer.write_table(table)
    else:
        table = pa.Table.from_pylist(rows).to_pandas()
        table.to_csv(file, index=False)
    found = built(file, tmp_path / "out")
    kept = ("id", "title", "brand", "price_cents", "rating_tenths", "attr.color", "type", "days", "stock")
    assert [[row[name] for name in kept] for row in found.rows] == [
        [row[name] for name in kept] for row in amazebay.rows
    ]


def test_what_is_drawn_hangs_on_the_id_alone(amazebay: Built, tmp_path: Path) -> None:
    rows = amazebay_rows()[10:20]
    file = tmp_path / "some.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in reversed(rows)))
    few = {row["id"]: (row["days"], row["stock"]) for row in built(file, tmp_path / "out").rows}
    all_of_them = {row["id"]: (row["days"], row["stock"]) for row in amazebay.rows}
    assert few == {one: all_of_them[one] for one in few} and len(few) == 10


def test_a_build_that_was_killed_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SHARD", 10)
    file = tmp_path / "products.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in amazebay_rows()))
    whole = built(file, tmp_path / "whole")

    class Killed(BaseException):
        pass

    def kill(rows: int) -> None:
        if rows == 20:
            raise Killed

    source, out = open_source(str(file)), tmp_path / "out"
    with pytest.raises(Killed):
        build_products(source, out, progress=kill)
    with pytest.raises(ValueError, match="holds no products"):
        open_products(out)
    cleaned: list[int] = []
    write = shards._write

    def counted(batch: list[Any], *more: Any) -> None:
        cleaned.append(len(batch))
        write(batch, *more)

    monkeypatch.setattr(shards, "_write", counted)
    report = build_products(source, out)
    assert cleaned == [10, 10]  # the first two shards are there
    assert report == whole.report
    assert open_products(out).rows.equals(whole.products.rows)


def test_a_mapping_names_columns_that_are_there(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("what,cost\nBlue wool socks for men,3\nRed wool hat for kids,4\n")
    mapping = guess(open_source(str(file)).sample())
    assert mapping.columns.title == "what" and mapping.columns.price == ""
    wrong = mapping.model_copy(update={"attributes": {"cosst": "cosst"}})
    with pytest.raises(ValueError, match="did you mean 'cost'"):
        build_products(open_source(str(file)), tmp_path / "out", wrong)
