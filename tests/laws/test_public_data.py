"""What needs the public Walmart-Amazon benchmark, whose files are not ours to copy: it says where they come from."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ecomlab.catalog.ingest import build_products, guess, open_source
from ecomlab.catalog.products import open_products
from ecomlab.catalog.real import catalog_of
from ecomlab.catalog.support import unsupported
from ecomlab.laws.retrieval import WITHOUT, public_data

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
FOLDER = "ECOMLAB_PUBLIC_DATA"


def test_a_folder_without_the_files_is_named(tmp_path: Path) -> None:
    (tmp_path / "amazon.csv").write_text("id,title\n")
    assert public_data(tmp_path, "amazon.csv") == tmp_path
    with pytest.raises(SystemExit, match=r"holds no gt\.csv: .*pyJedAI"):
        public_data(tmp_path, "amazon.csv", "gt.csv")
    with pytest.raises(SystemExit) as ended:
        public_data(None, "amazon.csv")
    assert str(ended.value).startswith(WITHOUT)


@pytest.mark.parametrize("script", ["catalog_retrieval/measure.py", "catalog_ingest/sold.py"])
def test_a_script_without_data_says_where_it_comes_from(script: str) -> None:
    run = subprocess.run([sys.executable, EXPERIMENTS / script], capture_output=True, text=True)
    assert run.returncode and "pyJedAI" in run.stderr and "Traceback" not in run.stderr


def test_the_public_catalog_carries_every_environment(tmp_path: Path) -> None:
    if FOLDER not in os.environ:
        pytest.skip(f"set {FOLDER} to a folder with amazon.csv: {WITHOUT}")
    source = open_source(str(Path(os.environ[FOLDER]) / "amazon.csv"))
    report = build_products(source, tmp_path / "out", guess(source.sample()))
    assert (report.rows, report.set_aside) == (22_074, 0)
    assert unsupported(catalog_of(open_products(tmp_path / "out"))) == {}
