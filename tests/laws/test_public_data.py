"""The public Walmart-Amazon benchmark, whose files are not ours to copy."""

import os
from pathlib import Path

import pytest

from ecomlab.catalog.ingest import build_products, guess, open_source
from ecomlab.catalog.products import open_products
from ecomlab.catalog.real import catalog_of
from ecomlab.catalog.support import unsupported

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
FOLDER = "ECOMLAB_PUBLIC_DATA"


def test_the_public_catalog_carries_every_environment(tmp_path: Path) -> None:
    if FOLDER not in os.environ:
        pytest.skip(
            f"set {FOLDER} to a folder with amazon.csv: data/ccer/D8 of AI-team-UoA/pyJedAI on GitHub"
        )
    source = open_source(str(Path(os.environ[FOLDER]) / "amazon.csv"))
    report = build_products(source, tmp_path / "out", guess(source.sample()))
    assert (report.rows, report.set_aside) == (22_074, 0)
    assert unsupported(catalog_of(open_products(tmp_path / "out"))) == {}
