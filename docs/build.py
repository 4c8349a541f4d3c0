"""Builds the site: executes the notebooks, once for what they are, plays the annotated episodes, and lets Sphinx make
pages of them and of docs/; then checks what holds of the whole site (docs/site_check.py).

    python docs/build.py                  # build/docs/index.html; the first time some minutes, for the notebooks
    python docs/build.py --no-notebooks   # without them

A notebook is executed again when it, the package, the tables or the figures' sources have changed.
"""

import argparse
import io
import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
from rich.console import Console

from ecomlab.files import cache_folder, read_json
from ecomlab.lab import notebooks, runner
from ecomlab.lab.provenance import commit
from ecomlab.lab.sweep import FAILED, FINISHED, Run
from ecomlab.seeding import digest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))

import annotated  # noqa: E402
import site_check  # noqa: E402

SITE = ROOT / "build" / "docs"
NOTEBOOKS = sorted(
    (ROOT / "notebooks").glob("*.ipynb"), key=lambda path: (not path.stem.startswith("start"), path)
)
"""Those that teach come first."""
PAGES = HERE / "notebooks"
"""Executed copies, which git ignores."""
RUNS = ROOT / "build" / "notebooks"
"""Where they are executed: within the clone, whose tables they read."""
READ = (
    "ecomlab/**/*.py", "ecomlab/**/*.toml", "experiments/*/*.csv", "experiments/certificate/*.json",
    "experiments/cascade/*.json", "experiments/serve_base/*.json", "ecomlab/starters/weights/*/*", "notebooks/*.py",
    "docs/build.py",
)  # fmt: skip
"""What an executed copy depends on, beside its notebook."""
GIVEN: dict[str, dict[str, Any]] = {
    "run_training": {"steps": 6, "eval_every": 3, "eval_episodes": 8, "eval_difficulties": [0, 1]},
}
"""Parameters that keep a notebook short."""


def main() -> int:
    """Build the site; return Sphinx's exit code, or 1 for a site that does not hold or lacks a notebook's outputs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=SITE)
    parser.add_argument("--no-notebooks", action="store_true", help="list the notebooks by title only")
    chosen = parser.parse_args()
    shutil.rmtree(PAGES, ignore_errors=True)
    PAGES.mkdir()
    failed = False
    if chosen.no_notebooks:
        (PAGES / "index.md").write_text(names(), "utf-8")
    else:
        found = {path.stem: render(path) for path in NOTEBOOKS}
        (PAGES / "index.md").write_text(contents(found), "utf-8")
        failed = any(one.metadata.executed["failed"] for one in found.values())
    annotated.write(HERE / "episodes")
    shutil.rmtree(
        SITE, ignore_errors=True
    )  # pages that are no more would stay; another folder is not ours to empty
    made = subprocess.call(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", HERE, chosen.out]
    )
    wrong = site_check.problems(chosen.out)
    for problem in wrong:
        print(problem, file=sys.stderr)
    print(site_check.counted(chosen.out))
    return made or int(failed or bool(wrong))


def render(notebook: Path) -> nbformat.NotebookNode:
    """Put an executed copy beside the pages, from the cache where it is there, and return it."""
    name, given = notebook.stem, GIVEN.get(notebook.stem, {})
    key = digest([notebook.read_text("utf-8"), given, _inputs()])
    kept = cache_folder() / "docs" / f"{name}-{key}.ipynb"
    if kept.is_file():
        done = nbformat.read(kept, as_version=4)
    else:
        print(f"{name}: executing", flush=True)
        done = execute(notebook, given)
        if not done.metadata.executed["failed"]:
            kept.parent.mkdir(parents=True, exist_ok=True)
            nbformat.write(done, kept)
    nbformat.write(done, PAGES / notebook.name)
    return done


@cache
def _inputs() -> list[str]:
    """Digest what all notebooks read."""
    files = sorted(path for pattern in READ for path in ROOT.glob(pattern))
    return [digest(path.read_bytes().hex()) for path in files]


def execute(notebook: Path, given: dict[str, Any]) -> nbformat.NotebookNode:
    """Execute a notebook in a folder of its own, as a sweep does; return its copy with a note on how it was made. One
    that fails, such as for want of a table, comes back without outputs, and the note says why."""
    folder, asked = RUNS / notebook.stem, dict(given)
    shutil.rmtree(folder, ignore_errors=True)
    if "out" in notebooks.parameters_of(notebook):
        asked["out"] = str(folder / "out")
    run = Run(notebook.stem, folder, notebook, asked)
    failures = runner.execute([run], Console(file=io.StringIO()))
    for failure in failures:
        print(f"{notebook.stem} failed:\n{failure.last_lines}", file=sys.stderr)
    done = nbformat.read(notebook if failures else folder / notebooks.EXECUTED, as_version=4)
    seconds = 0.0 if failures else read_json(folder / FINISHED)["seconds"]
    failed = (read_json(folder / FAILED) or {}).get("why", "its process ended") if failures else ""
    how = {"seconds": seconds, "commit": commit(), "given": given, "failed": failed}
    done.metadata["executed"] = how
    done.cells[0].source += f"\n\n*{in_words(how)}; `notebooks/{notebook.name}` is its source.*"
    done.cells = [cell for cell in done.cells if "injected-parameters" not in cell.metadata.get("tags", [])]
    return done


def in_words(how: dict[str, Any]) -> str:
    """Say at which commit, with which parameters and in which time a notebook was executed, or why it was not."""
    if how["failed"]:
        return f"Not executed: {how['failed']}"
    said = ", ".join(f"`{name} = {json.dumps(value)}`" for name, value in how["given"].items())
    return f"Executed at {how['commit']}{f' with {said}' if said else ''} in {how['seconds']:.0f} s"


def names() -> str:
    """Write the page that lists the notebooks of a site without them."""
    lines = [
        "# Notebooks",
        "",
        "This site was built without them; `make lab` opens them.",
        "",
        "| notebook | | file |",
        "|---|---|---|",
    ]
    for path in NOTEBOOKS:
        title, claim = nbformat.read(path, as_version=4).cells[0].source.split("\n\n")[:2]
        lines.append(f"| {title.removeprefix('# ')} | {claim} | `notebooks/{path.name}` |")
    return "\n".join([*lines, ""])


def contents(found: dict[str, nbformat.NotebookNode]) -> str:
    """Write the page that lists the notebooks: what each claims, and how it was executed."""
    lines = [
        "# Notebooks",
        "",
        "They are committed without outputs. What follows is one execution of each, from top to bottom, on the machine "
        "that built this site, kept until the notebook or what it reads changes; "
        f"all together took {sum(one.metadata.executed.seconds for one in found.values()):.0f} s.",
        "",
        "| notebook | | seconds | other parameters than its own |",
        "|---|---|--:|---|",
    ]
    for name, one in found.items():
        title, claim = one.cells[0].source.split("\n\n")[:2]
        how = one.metadata.executed
        other = "<br>".join(f"`{parameter} = {json.dumps(value)}`" for parameter, value in how.given.items())
        seconds = f"not executed: {how.failed}" if how.failed else f"{how.seconds:.0f}"
        lines.append(f"| [{title.removeprefix('# ')}]({name}.ipynb) | {claim} | {seconds} | {other} |")
    return "\n".join([*lines, "", "```{toctree}", ":hidden:", "", *found, "```", ""])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print(
            "\ninterrupted; notebooks that were executed are kept, and the same command goes on with the others",
            file=sys.stderr,
        )
        sys.exit(130)
