"""Builds the site: executes the notebooks, once for what they are, and lets Sphinx make pages of them and of docs/.

    python docs/build.py                  # build/docs/index.html; the first time some minutes, for the notebooks
    python docs/build.py --no-notebooks   # without them

A notebook is executed again when it, the package, the tables or the figures' sources have changed.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import nbformat

from ecomlab.files import cache_folder
from ecomlab.lab import notebooks
from ecomlab.lab.provenance import commit
from ecomlab.seeding import digest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PAGES = HERE / "notebooks"
"""Executed copies, which git ignores."""
READ = ("ecomlab/**/*.py", "ecomlab/**/*.toml", "experiments/*/*.csv", "experiments/certificate/*.json")
"""What a notebook's outputs depend on, beside itself."""
GIVEN: dict[str, dict[str, Any]] = {
    "run_training": {"steps": 6, "eval_every": 3, "eval_episodes": 8, "eval_difficulties": [0, 1]},
}
"""Parameters that keep a notebook short."""


def main() -> int:
    """Build the site; return Sphinx's exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "docs")
    parser.add_argument("--no-notebooks", action="store_true", help="leave the notebooks out")
    chosen = parser.parse_args()
    shutil.rmtree(PAGES, ignore_errors=True)
    PAGES.mkdir()
    if chosen.no_notebooks:
        (PAGES / "left_out.md").write_text("# Left out of this build\n", "utf-8")
    else:
        for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
            render(notebook)
    return subprocess.call(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", HERE, chosen.out]
    )


def render(notebook: Path) -> None:
    """Put an executed copy beside the pages, from the cache where it is there, and say in it how it was made."""
    name, given = notebook.stem, GIVEN.get(notebook.stem, {})
    key = digest([notebook.read_text("utf-8"), given, _inputs()])
    kept = cache_folder() / "docs" / f"{name}-{key}.ipynb"
    if not kept.is_file():
        print(f"{name}: executing", flush=True)
        execute(notebook, given, kept)
    shutil.copyfile(kept, PAGES / notebook.name)


@cache
def _inputs() -> list[str]:
    """Digest what all notebooks read."""
    files = sorted(path for pattern in READ for path in ROOT.glob(pattern))
    return [digest(path.read_bytes().hex()) for path in files]


def execute(notebook: Path, given: dict[str, Any], kept: Path) -> None:
    """Execute a notebook in an empty folder, as a sweep does, and keep its copy with a note."""
    began, asked = time.monotonic(), dict(given)
    with tempfile.TemporaryDirectory() as folder:
        if "out" in notebooks.parameters_of(notebook):
            asked["out"] = str(Path(folder) / "out")
        with (Path(folder) / "log").open("w") as log:
            notebooks.execute(notebook, Path(folder) / "run", asked, log)
        done = nbformat.read(Path(folder) / "run" / notebooks.EXECUTED, as_version=4)
    said = ", ".join(f"`{name} = {json.dumps(value)}`" for name, value in given.items())
    how = f"at {commit()}{f' with {said}' if said else ''} in {time.monotonic() - began:.0f} s"
    note = f"*Executed {how}; `notebooks/{notebook.name}` is its source.*"
    done.cells[0].source += f"\n\n{note}"
    done.cells = [cell for cell in done.cells if "injected-parameters" not in cell.metadata.get("tags", [])]
    kept.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(done, kept)


if __name__ == "__main__":
    sys.exit(main())
