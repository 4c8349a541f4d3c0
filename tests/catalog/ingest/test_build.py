"""Ingestion: every row of someone's file is a clean product, a variant of one, or set aside with its reason."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ingested import MESSY, VARIANTS, Built, amazebay_rows, built
from killing import killed_at

from ecomlab.catalog.ingest import build, build_products, guess, open_source
from ecomlab.catalog.ingest.fold import Family, axes, fold
from ecomlab.catalog.products import open_products
from ecomlab.seeding import rng


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


def lines_of(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_every_row_is_accounted_for(messy: Built) -> None:
    report = messy.report
    assert report.rows == 14 == report.kept + report.repaired + report.set_aside
    assert report.products == len(messy.rows) == report.rows - report.set_aside
    assert list(report.reasons.values()) == [1] * 6 and len(report.repairs) >= 10
    assert all(report.examples[reason] for reason in (*report.repairs, *report.reasons))


def test_rows_that_were_set_aside_are_listed_and_inert(messy: Built) -> None:
    lines = (messy.folder / "set_aside.csv").read_text().splitlines()
    assert len(lines) == 1 + messy.report.set_aside
    assert not any(line.split(",", 2)[2].lstrip('"').startswith(("=", "+", "-", "@")) for line in lines)


def test_text_can_be_no_tag_and_no_chat_marker(messy: Built) -> None:
    said = " ".join(str(value) for row in messy.rows for value in row.values())
    assert not set("<>") & set(said)
    assert "system you are a thief" in said


def test_the_report_says_what_was_not_used_and_in_what_prices_are(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "title,brand,price,Colour,Warehouse\n"
        "Acme Desk Lamp,Acme,5 EUR,as pictured,7\n"
        "Acme Red Blue Lamp,Acme,6 EUR,,8\n"
        "Acme Red Blue Desk Lamp,Acme,7 EUR,blk,8\n"
    )
    report = built(tmp_path / "a.csv", tmp_path / "out").report
    assert (report.currency, report.unused) == ("EUR", ("Warehouse",))
    assert list(report.dropped.values()) == [1, 1]  # no normal form, and two values in a title


@pytest.mark.parametrize("wrong", [{"rows": 15}, {"reasons": {}}, {"products": 1}])
def test_a_report_that_does_not_add_up_is_an_error(wrong: dict[str, Any], messy: Built) -> None:
    with pytest.raises(ValueError, match="rows|reason|products"):
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
    assert list(variants.report.reasons.values()) == [1, 1]  # repeats a variant; has no title
    assert variants.report.folded == 3 and variants.products.facts["option"] == "size"
    assert (black["option"], variants.of("Enamel Mug")["option"]) == ("size", None)


def test_no_row_of_one_id_is_lost_without_a_reason() -> None:
    """Whatever repeats: a row is a product, a variant of one or set aside, and only for what another row says too."""
    random = rng("rows of one id")
    for _ in range(60):
        # one id, a title and three attributes
        said = [["1", *(str(n) for n in random.integers(0, 3, 4))] for _ in range(12)]
        values = [["" if one == "0" else one for one in row[2:]] for row in said]
        rows: list[dict[str, Any]] = [
            {
                "number": at,
                "source_id": row[0],
                "parent": "",
                "title": row[1],
                "content": int("".join(row)),
                "options": own if any(own) else [],
                "option_names": ["", "", ""],
                "hidden": False,
                "attributes": {},
                "stock": None,
                "price_cents": None,
                "surcharge_cents": None,
                "path": "",
                "kind": "",
            }
            for at, (row, own) in enumerate(zip(said, values))
        ]
        names = ("color", "size", "style")
        products, aside = fold(rows, names, axes([Family(rows, names)]))
        placed = [
            row for one in products for row in {one["number"], *(each["row"] for each in one["variants"])}
        ]
        away = {row["number"]: reason for row, reason in aside}
        assert len(placed) == len({*placed}) and {*placed} | {*away} == {*range(12)}
        assert not {*placed} & {*away}
        for row, reason in away.items():
            assert reason != "repeats an earlier row" or said[row] in said[:row]


def test_the_id_of_a_product_hangs_on_no_later_row_of_its_source_id(tmp_path: Path) -> None:
    header, first = "SKU,Title,Price,Color,Size", "1,Acme Crew Tee,10,Sea Mist,S"
    rest = ["1,Acme Crew Tee,12,Black,M", *(f"{at},Acme Clock {at},9,,S" for at in range(10, 20))]
    ids = []
    for at, lines in enumerate(([first, *rest], [first])):
        (tmp_path / f"{at}.csv").write_text("\n".join([header, *lines]) + "\n")
        ids.append(built(tmp_path / f"{at}.csv", tmp_path / f"out{at}").of("Acme Crew Tee")["id"])
    assert ids[0] == ids[1]


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
        file.write_text(lines_of(rows))
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
    file.write_text(lines_of(rows[::-1]))
    few = {row["id"]: (row["days"], row["stock"]) for row in built(file, tmp_path / "out").rows}
    all_of_them = {row["id"]: (row["days"], row["stock"]) for row in amazebay.rows}
    assert few == {one: all_of_them[one] for one in few} and len(few) == 10


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """What a build without a kill makes."""
    file = tmp_path_factory.mktemp("whole") / "products.jsonl"
    file.write_text(lines_of(amazebay_rows()))
    return built(file, file.with_name("out"))


STEPS = {
    "rows": (build.Spool, "add", 20),
    "products": (build, "drawn_days", 2),
    "report": (build, "write_report", 1),
    "facts": (build, "save_facts", 1),
}
"""Steps of a build: the function that is called in the midst of each, and at which call to kill."""


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_build_leaves_the_old_products_and_nothing_half_written(
    step: str, whole: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "CHUNK", 20)
    out = tmp_path / "out"
    (tmp_path / "old.jsonl").write_text(json.dumps(amazebay_rows()[0]) + "\n")
    old = built(tmp_path / "old.jsonl", out).rows
    file = whole.folder.with_name("products.jsonl")
    killed_at(*STEPS[step], lambda: built(file, out))
    assert open_products(out).rows.to_pylist() == old
    again = built(file, out)
    assert again.report == whole.report
    assert again.products.rows.equals(whole.products.rows)
    left, wanted = ([path.name.partition("-")[0] for path in at.iterdir()] for at in (out, whole.folder))
    assert sorted(left) == sorted(wanted)  # and nothing half written


def test_a_build_neither_writes_over_its_source_nor_reads_itself(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "products.json").write_text(json.dumps(amazebay_rows()[:3]))
    with pytest.raises(ValueError, match="lies"):
        build_products(open_source(str(own / "products.json")), own)
    (own / "more.csv").write_text("title\nBlue Lamp\n")
    with pytest.raises(ValueError, match="lies"):
        build_products(open_source(str(own)), own / "catalog")
    assert {path.name for path in own.iterdir()} == {"products.json", "more.csv"}
    (own / "products-2024.arrow").touch()
    (tmp_path / "a.csv").write_text("title\nBlue Lamp\n")
    built(tmp_path / "a.csv", own)
    assert (own / "products-2024.arrow").exists()  # named much like our table, and not ours


def test_a_mapping_names_columns_that_are_there(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("title,cost\nBlue wool socks for men,3\nRed wool hat for kids,4\n")
    mapping = guess(open_source(str(file)).sample())
    assert mapping.columns.title == "title" and mapping.columns.price == ""
    wrong = mapping.model_copy(update={"attributes": {"cosst": "cosst"}})
    with pytest.raises(ValueError, match="'cost'"):
        build_products(open_source(str(file)), tmp_path / "out", wrong)
