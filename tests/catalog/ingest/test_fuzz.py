"""Malformed rows and values: no traceback, no row lost without a reason, nothing unsafe in what is kept."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spoiling import SPICES

from ecomlab.catalog.ingest import open_source, prices, sources, text, values
from ecomlab.catalog.ingest.mapping import Mapping
from ecomlab.catalog.ingest.rows import RowCleaner, SetAside
from ecomlab.catalog.ingest.sources import SourceRow
from ecomlab.seeding import rng

MAPPING = Mapping.model_validate(
    {
        "columns": {
            **dict(
                zip(
                    "title id price brand rating reviews details stock days".split(), "abcdefghi", strict=True
                )
            ),
            "category": ("j",),
            "text": ("k",),
        },
        "attributes": {"color": "l", "pattern": "m"},
    }
)
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


@settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(st.sampled_from("abcdefghijklm"), anything, max_size=13))
def test_any_row_is_clean_or_set_aside(raw: dict[str, object]) -> None:
    cleaned = RowCleaner(MAPPING, "USD").clean(SourceRow(3, raw))
    if isinstance(cleaned, SetAside):
        assert cleaned.reason and cleaned.number == 3
        return
    price, rating = cleaned["price_cents"], cleaned["rating_tenths"]
    assert price is None or 0 < price < prices.MOST_CENTS
    assert rating is None or 10 <= rating <= 50
    attributes = [value for value, _ in cleaned["attributes"].values()]
    lines = "".join((*attributes, cleaned["title"], cleaned["brand"], cleaned["text"]))
    assert (
        cleaned["title"] and not set("<>\n\r\x00") & set(lines) and not set("<>\r\x00") & set(cleaned["path"])
    )
    assert isinstance(cleaned["content"], int)


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.json", "a.jsonl", "a.csv", "a.csv.gz"])
def test_a_file_of_random_bytes_is_refused_or_set_aside(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(rng("noise").integers(0, 256, 5_000).astype(np.uint8).tobytes())
    source = open_source(str(tmp_path / name))
    assert all(row.fault or row.values for row in source.rows())


def test_a_saved_dataset_names_no_files_outside_itself(tmp_path: Path) -> None:
    (tmp_path / "secret.arrow").write_bytes(b"")
    saved = tmp_path / "saved"
    saved.mkdir()
    (saved / "a.csv").touch()
    (saved / "state.json").write_text(json.dumps({"_data_files": [{"filename": "../secret.arrow"}]}))
    assert open_source(str(saved)).files == (saved / "a.csv",)


@pytest.mark.parametrize("name", ["a.pkl", "a.py", "a.npy", "a.pt"])
def test_pickles_and_scripts_are_no_catalogs(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"cos\nsystem\n")
    with pytest.raises(ValueError, match="format"):
        open_source(str(tmp_path / name))


def test_deep_nesting_ends_soon(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("[" * 100_000 + "\n" + '{"title": "Blue Lamp"}\n')
    found = list(open_source(str(tmp_path / "a.jsonl")).rows())
    assert [row.fault for row in found] == [sources.NOT_JSON, ""]
    assert values.read_json("[" * 5_000) == (None, (values.UNREAD_TABLE,))
    assert len(text.clean("<b>" + "<a " * 8_000, 2_000)[0]) <= 2_000


@pytest.mark.parametrize(
    "said",
    [
        "<|im_start|>user", "＜|im_end|＞", "&lt;|im_start|&gt;", "</tool_call>", "[INST] x [/INST]", "<<SYS>>",
        "<b><|x|></b>",
    ],
)  # fmt: skip
def test_chat_markers_are_neutralised(said: str) -> None:
    shown, repairs = text.clean(f"Lamp {said} blue")
    assert not set("<>") & set(shown) and "[INST]" not in shown
    assert repairs
    assert shown.startswith("Lamp") and shown.endswith("blue")


@pytest.mark.parametrize("cell", ["=1+1", "+A1", "-2", "@x", "\tx"])
def test_a_spreadsheet_takes_no_cell_for_a_formula(cell: str) -> None:
    assert text.inert_cell(cell) == f"'{cell}"
    assert text.inert_cell("a=1") == "a=1"
