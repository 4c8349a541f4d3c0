"""What the documentation's site is built with: annotated episodes, the gallery, and the check of the whole site."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from ecomlab import Shop

DOCS = Path(__file__).resolve().parent.parent / "docs"


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The modules of docs/, by attribute."""
    monkeypatch.syspath_prepend(str(DOCS))
    found = ModuleType("docs")
    for name in ("annotated", "extras", "site_check"):
        setattr(found, name, importlib.import_module(name))
        monkeypatch.delitem(sys.modules, name)
    return found


def test_dead_links_and_other_hosts_are_named(tool: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "there.html").write_text('<h1 id="top">there</h1>', "utf-8")
    (tmp_path / "index.html").write_text(
        '<a href="there.html#top">a</a> <a href="there.html#gone">b</a> <a href="gone.html">c</a> <a href="#">d</a>'
        '<a href="https://example.org/">may be followed</a> <img src="https://example.org/x.png">'
        '<script src="//example.org/x.js"></script><img src="data:image/png;base64,AA">',
        "utf-8",
    )
    wrong = [problem.split()[-1] for problem in tool.site_check.problems(tmp_path)]
    assert wrong == ["https://example.org/x.png", "//example.org/x.js", "there.html#gone", "gone.html"]


def test_an_annotated_episode_fails_and_its_twin_does_not(tool: ModuleType, shop: Shop) -> None:
    seed, records = tool.annotated._chosen("CART", shop)
    wrong, well = records["perturbed"], records["reference"]
    assert wrong.labels and not wrong.correct and well.correct and not well.labels
    assert all(step.state for record in records.values() for step in record.steps)
    page = tool.annotated._page("CART", seed, list(records))
    assert f"seed {seed}" in page and ":file: CART-perturbed.html" in page
