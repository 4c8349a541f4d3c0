"""Copies of the notebooks for people to edit, so that no sweep executes an unfinished thought.

`python -m ecomlab.lab.copies` brings those in `COPIES` up to date; `make lab` opens them, with kernels that start in
the project's root, so that relative paths mean in a notebook what they mean in the documentation.
"""

import os
from pathlib import Path

from ecomlab.files import read_json, write_json, write_text
from ecomlab.lab.paths import project_root, shown
from ecomlab.seeding import digest

COPIES = Path("experiments/runs/notebooks")
"""Not committed."""
START_UP = """\
import os
from ecomlab.lab.paths import project_root
os.chdir(project_root())
del os, project_root
"""
"""What a kernel executes first."""


def copy_notebooks(root: Path) -> list[Path]:
    """Copy the project's notebooks to `COPIES`, but keep copies that were edited or run since; return those of them
    whose notebook has changed meanwhile."""
    folder, outdated = root / COPIES, list[Path]()
    record = folder / ".copied.json"
    copied = read_json(record) or {}
    for notebook in sorted((root / "notebooks").glob("*.ipynb")):
        text = notebook.read_text(encoding="utf-8").replace(
            "](../", "](../../../"
        )  # links of the other depth
        copy = folder / notebook.name
        if copy.exists() and digest(copy.read_text(encoding="utf-8")) != copied.get(notebook.name):
            outdated += [copy] if digest(text) != copied.get(notebook.name) else []
        else:
            write_text(copy, text)
            copied[notebook.name] = digest(text)
    write_json(record, copied)
    return outdated


def start_kernels_in_root() -> None:
    """Write `START_UP` where IPython looks for it: in the folder that `make lab` names, which sweeps do not use."""
    if folder := os.environ.get("IPYTHONDIR"):
        write_text(Path(folder) / "profile_default" / "startup" / "00-ecomlab.py", START_UP)


if __name__ == "__main__":
    start_kernels_in_root()
    for file in copy_notebooks(project_root()):
        print(f"{shown(file)} is of an older notebook and was changed; delete it to get the new one")
