"""What the documentation's site is built with: annotated episodes, the gallery, and the check of the whole site."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from ecomlab import Shop
from ecomlab.lab.figures import as_latex

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


def test_a_figure_is_shown_with_its_caption_alternative_text_numbers_and_source(
    tool: ModuleType, tmp_path: Path
) -> None:
    text = "50% of #1 & #2: .08 [.06, .10] ± x_1 × 3 ≤ 4 – a–b…"
    for ending, held in (
        (".png", ""),
        (".tex", as_latex(text)),
        (".txt", "Two lines.\n"),
        (".json", '{"commit": "abc", "inputs": {"experiments/quick/train.csv": "0"}}'),
        (".arms.csv", "arm,mean\nadaptive,0.5\n"),
    ):
        (tmp_path / f"one{ending}").write_text(held, "utf-8")
    page = tool.extras.shown(tmp_path / "one.png")
    assert text in page and ":alt: Two lines." in page
    assert "| arm | mean |\n| --- | --- |\n| adaptive | 0.5 |" in page and "{download}`arms.csv" in page
    assert "abc" in page and "`experiments/quick/train.csv`" in page and "{download}`tex" in page
