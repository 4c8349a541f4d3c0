"""Malformed files: no traceback, no row lost without a reason, nothing unsafe in what is kept."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ingested import MESSY, VARIANTS, amazebay_rows

from ecomlab.catalog.ingest import build_products, guess, open_source, prices, text, values
from ecomlab.catalog.ingest.mapping import Mapping
from ecomlab.catalog.ingest.rows import CleanRow, RowCleaner, SetAside
from ecomlab.catalog.ingest.sources import SourceRow
from ecomlab.catalog.products import open_products
from ecomlab.seeding import rng

SPICES = (
    b'"', b"\x00", b"\xff\xfe", b"\r", b"{", b"[" * 50, b"\\u0000", b"\\ud800", b"<|im_start|>", b"<script>", b";;;;",
    b",", b"=1+1", b"\xf0\x9f\x92\xa9", b"NaN", b"1e999", b"-1", b"9" * 400, b"null", b"</tool_call>", b"\n\n", b"'",
    b"../../x",
)  # fmt: skip
MAPPING = Mapping.model_validate(
    {
        "columns": {
            "title": "a", "id": "b", "price": "c", "brand": "d", "rating": "e", "reviews": "f", "details": "g",
            "stock": "h",
            "days": "i", "category": ("j",), "text": ("k",),
        },
        "attributes": {"color": "l", "pattern": "m"},
    }
)  # fmt: skip
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=60)
    | st.sampled_from([s.decode("latin-1") for s in SPICES]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def spoiled(number: int) -> tuple[str, bytes]:
    """Make a file of some format with random bytes cut out, doubled, changed and put in."""
    random = rng("spoiled files", number)
    name, whole = (
        ("a.csv", MESSY),
        ("b.csv", VARIANTS.encode()),
        ("c.jsonl", "".join(json.dumps(row) + "\n" for row in amazebay_rows()[:8]).encode()),
        ("d.json", json.dumps(amazebay_rows()[:8]).encode()),
    )[number % 4]
    raw = bytearray(whole)
    for _ in range(int(random.integers(1, 12))):
        at = int(random.integers(len(raw) + 1))
        match int(random.integers(4)):
            case 0:
                del raw[at : at + int(random.integers(40))]
            case 1:
                raw[at:at] = raw[at : at + 60]
            case 2:
                raw[at:at] = SPICES[int(random.integers(len(SPICES)))]
            case 3:
                raw[at : at + 1] = bytes([int(random.integers(256))])
    return name, bytes(raw)


def ingest(number: int, folder: Path) -> bool:
    """Ingest a spoiled file; tell whether it was read rather than refused with a sentence."""
    name, raw = spoiled(number)
    (folder / name).write_bytes(raw)
    source = open_source(str(folder / name))
    try:
        report = build_products(source, folder / "out", guess(source.sample()))
    except (UnicodeError, pa.ArrowException):  # are ValueErrors too, and no sentences of ours
        raise AssertionError(f"file {number} is refused by a library") from None
    except ValueError:  # no title column, no row at all
        return False
    assert report.rows == report.kept + report.repaired + report.set_aside
    rows = open_products(folder / "out").rows.to_pylist()
    assert len(rows) == report.products
    assert len({row["id"] for row in rows}) == len(rows)
    said = json.dumps(rows, ensure_ascii=False)
    assert not set("<>\x00") & set(said)
    assert all(row["title"] and row["stock"] >= 0 and row["days"] >= 0 for row in rows)
    assert {path.name for path in folder.iterdir()} == {name, "out"}  # nothing is written elsewhere
    return True


def test_spoiled_files_are_read_or_refused_in_words(tmp_path: Path) -> None:
    read = []
    for number in range(24):
        folder = tmp_path / str(number)
        folder.mkdir()
        read.append(ingest(number, folder))
    assert sum(read) >= 18


@pytest.mark.slow
def test_two_thousand_spoiled_files(tmp_path: Path) -> None:
    read = 0
    for number in range(2_000):
        folder = tmp_path / str(number)
        folder.mkdir()
        read += ingest(number, folder)
        shutil.rmtree(folder)
    print(f"{read} files read, {2_000 - read} refused in words")
    assert read >= 1_200  # of the first 1,042 it was 766


def clean_any(raw: dict[str, object]) -> None:
    cleaned = RowCleaner(MAPPING, "USD").clean(SourceRow(3, raw))
    if isinstance(cleaned, SetAside):
        assert cleaned.reason and cleaned.number == 3
        return
    assert isinstance(cleaned, CleanRow) and cleaned.title
    assert cleaned.price_cents is None or 0 < cleaned.price_cents < prices.MOST_CENTS
    assert cleaned.rating_tenths is None or 10 <= cleaned.rating_tenths <= 50
    shown = [
        cleaned.title,
        cleaned.brand,
        cleaned.text,
        *cleaned.path,
        *(f.value for f in cleaned.attributes.values()),
    ]
    assert not set("<>\n\r\x00") & set("".join(shown))
    assert isinstance(cleaned.content, int)


rows = st.dictionaries(st.sampled_from("abcdefghijklm"), anything, max_size=13)


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(rows)
def test_any_row_is_clean_or_set_aside(raw: dict[str, object]) -> None:
    clean_any(raw)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(rows)
def test_ten_thousand_rows_are_clean_or_set_aside(raw: dict[str, object]) -> None:
    clean_any(raw)


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.json", "a.jsonl", "a.csv", "a.csv.gz"])
def test_a_file_of_random_bytes_is_refused_or_set_aside(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(rng("noise").integers(0, 256, 5_000).astype(np.uint8).tobytes())
    source = open_source(str(tmp_path / name))
    assert all(row.fault or row.values for row in source.rows())


def test_a_saved_dataset_cannot_name_files_outside_itself(tmp_path: Path) -> None:
    (tmp_path / "secret.arrow").write_bytes(b"")
    saved = tmp_path / "saved"
    saved.mkdir()
    (saved / "state.json").write_text(json.dumps({"_data_files": [{"filename": "../secret.arrow"}]}))
    with pytest.raises(ValueError, match="outside itself"):
        open_source(str(saved))
    (saved / "state.json").unlink()
    os.symlink(tmp_path / "secret.arrow", saved / "link.arrow")
    with pytest.raises(ValueError, match="outside itself"):
        open_source(str(saved))


def test_pickles_and_scripts_are_no_catalogs(tmp_path: Path) -> None:
    for name in ("a.pkl", "a.py", "a.npy", "a.pt"):
        (tmp_path / name).write_bytes(b"cos\nsystem\n")
        with pytest.raises(ValueError, match="no format that can be read"):
            open_source(str(tmp_path / name))


def test_deep_nesting_and_endless_lines_end_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ecomlab.catalog.ingest import sources

    monkeypatch.setattr(sources, "LONGEST_LINE", 10_000)
    (tmp_path / "a.jsonl").write_text("[" * 100_000 + "\n" + '{"title": "Blue Lamp"}\n' + "x" * 50_000)
    found = list(open_source(str(tmp_path / "a.jsonl")).rows())
    assert [row.fault for row in found] == [sources.TOO_LONG, "", sources.TOO_LONG]
    assert values.read_json("[" * 5_000) == (None, (values.UNREAD_TABLE,))
    assert values.read_list(" " * 900_000 + "x") == [
        "x"
    ]  # an hour, if each blank looked for the end of the blanks
    assert len(text.clean("<b>" + "<a " * 8_000, 2_000)[0]) <= 2_000


@pytest.mark.parametrize(
    "said",
    [
        "<|im_start|>user",
        "＜|im_end|＞",
        "&lt;|im_start|&gt;",
        "</tool_call>",
        "[INST] x [/INST]",
        "<<SYS>>",
        "<b><|x|></b>",
    ],
)
def test_chat_markers_are_neutralised(said: str) -> None:
    shown, repairs = text.clean(f"Lamp {said} blue")
    assert not set("<>") & set(shown) and "[INST]" not in shown
    assert repairs
    assert shown.startswith("Lamp") and shown.endswith("blue")


@pytest.mark.parametrize("cell", ["=1+1", "+A1", "-2", "@x", "\tx"])
def test_a_spreadsheet_takes_no_cell_for_a_formula(cell: str) -> None:
    assert text.inert_cell(cell) == f"'{cell}"
    assert text.inert_cell("a=1") == "a=1"
