"""Parts of files that are drawn anew: what stands around them stays."""

from pathlib import Path

import pytest

from ecomlab.files import replace_between

MARKS = ("<!-- begin -->", "<!-- end -->")


def test_what_stands_around_the_marks_stays(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("above\n<!-- begin -->\nold\n<!-- end -->\nbelow <!-- other -->\n", "utf-8")
    for text in ("new", "newer"):
        replace_between(page, MARKS, text)
        assert (
            page.read_text("utf-8") == f"above\n<!-- begin -->\n{text}\n<!-- end -->\nbelow <!-- other -->\n"
        )


@pytest.mark.parametrize(
    "text",
    [
        "nothing",
        "<!-- begin -->",
        "<!-- end --> <!-- begin -->",
        "<!-- begin --> <!-- end --> and <!-- end -->",
    ],
)
def test_a_page_that_lost_its_marks_is_not_touched(tmp_path: Path, text: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text, "utf-8")
    with pytest.raises(ValueError, match="put them back"):
        replace_between(page, MARKS, "new")
    assert page.read_text("utf-8") == text
