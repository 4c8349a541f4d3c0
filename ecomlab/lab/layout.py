"""Project folders for those who installed ecomlab without cloning it: notebooks, sweeps, a place for figures."""

import shutil
from importlib import resources
from pathlib import Path

from ecomlab.files import write_text
from ecomlab.lab.paths import MARK

FILES = (
    "notebooks/*.ipynb",
    "notebooks/*.py",
    "experiments/*/*.toml",
    "experiments/*/*.yaml",
    "experiments/qwen3_8b/nodes.sh",
    "experiments/qwen3_8b/bench.csv",
    "experiments/tokens/tokens.csv",
)
"""Files of a project folder, the tables being those that the plan of a run reads; the wheel holds them under
ecomlab/_layout."""


def source() -> Path:
    """Find the files in the installed wheel, or the clone that this package is in."""
    package = Path(str(resources.files("ecomlab")))
    return package / "_layout" if (package / "_layout").is_dir() else package.parent


def lay_out(folder: Path, given: Path | None = None) -> list[Path]:
    """Copy the project's files into `folder`, which must be new or empty, and return their paths.

    Raises FileExistsError rather than overwrite anything, and FileNotFoundError when there is nothing to copy.
    """
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise FileExistsError(f"{folder} exists and is not empty; name a new folder")
    given = given or source()
    found = [path for pattern in FILES for path in sorted(given.glob(pattern))]
    if not found:
        raise FileNotFoundError(f"nothing to lay out in {given}; install ecomlab again, or clone it")
    made = [folder / path.relative_to(given) for path in found]
    for path, copy in zip(found, made, strict=True):
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)  # with its mode: one of them is a program
    for made_later in ("figures", "experiments/certificate"):
        (folder / made_later).mkdir(parents=True)
    write_text(folder / MARK, "The root of an ecomlab project: relative paths start here.\n")
    return made
