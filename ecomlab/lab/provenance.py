"""Provenance of results: commit, effective parameters, versions, catalog; no dates, no machine names."""

import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ecomlab.files import read_json, write_json
from ecomlab.lab.paths import project_of, project_root, resolve

SOURCES = (
    "ecomlab",
    "notebooks",
    "experiments/*/sweep.toml",
    "experiments/*.py",  # in any folder
    "pyproject.toml",
    "constraints.txt",
)
"""Files that can change a result. Changed outputs (tables, figures) and prose do not make a commit dirty."""
RECORD = "provenance.json"
LIBRARIES = (
    "ecomlab",
    "numpy",
    "numba",
    "torch",
    "transformers",
    "trl",
    "faiss-cpu",
    "faiss-gpu",
    "matplotlib",
    "seaborn",
)


def provenance(
    parameters: Mapping[str, Any], *, catalog: str | None = None, inputs: Iterable[Path] = (), **more: Any
) -> dict[str, Any]:
    """Make the JSON record that is saved beside a result.

    `catalog` is the fingerprint of the catalog; `inputs` are the files that were read, recorded by their SHA-256.
    Further keywords are recorded as they are.
    """
    root = project_root()
    return {
        "commit": commit(),
        "parameters": {name: _relative(value, root) for name, value in parameters.items()},
        "catalog": catalog,
        "inputs": {_relative(str(path), root): sha256(path) for path in inputs},
        "versions": versions(),
        **more,
    }


def write(folder: str | Path, parameters: Mapping[str, Any], **known: Any) -> None:
    """Write `provenance(parameters, **known)` to `folder`/provenance.json."""
    write_json(resolve(folder) / RECORD, provenance(parameters, **known))


def made_with(starter: str, envs: Iterable[str]) -> dict[str, Any]:
    """Name what a table of policies was made with: `starter`, by the SHA-256 of its weights, and the environments, by
    version and by the digest of their first tasks.

    A model that is not in a folder is named alone: its repository may change what it holds.
    """
    from ecomlab.envs.registry import version_record
    from ecomlab.models.load import policy_folder
    from ecomlab.models.policy import PolicyError

    try:
        weights = sorted(policy_folder(starter).glob("*.safetensors"))
    except PolicyError:
        weights = []
    return {
        "starter": {path.name: sha256(path) for path in weights} or starter,
        "environments": {env: version_record(env) for env in envs},
    }


def read(folder: str | Path) -> dict[str, Any]:
    """Read the record in `folder`/provenance.json; empty if there is none."""
    return read_json(resolve(folder) / RECORD) or {}


def merged(records: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Merge the runs' records: what they have in common once, and for each run what is its own."""
    common = _common(list(records.values()))
    return {"common": common, "runs": {name: _beyond(record, common) for name, record in records.items()}}


def commit(root: Path | None = None) -> str:
    """Return the commit of the sources, with `-dirty` if they differ from it; 'unknown' where git cannot tell.

    `root` is by default the project, outside of one the clone of this package. A notebook that differs from the
    committed one only in its outputs is not dirty.
    """
    root = root or project_of(Path.cwd()) or Path(__file__).resolve().parents[2]
    head = _git(root, "rev-parse", "--short=12", "HEAD")
    if not head or not _git(root, "ls-files", "--", *SOURCES):  # no repository, or another project's
        return "unknown"
    # git's filter takes a second a notebook, and in a new clone git asks it of all, whenever it is asked; outputs are
    # seen to below
    listed = _git(
        root,
        *("-c", "filter.nbstripout.clean="),
        *("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", *SOURCES),
    )
    if listed is None:
        return f"{head.strip()}-dirty"
    changed = [line[3:] for line in listed.split("\0") if line]
    changed = [name for name in changed if not name.endswith((".pyc", ".ipynb_checkpoints/"))]
    return head.strip() + ("" if all(_same_notebook(root, name) for name in changed) else "-dirty")


def versions() -> dict[str, str]:
    """List the installed versions of Python and of the libraries that results depend on, and the platform."""
    found = {"python": platform.python_version(), "platform": f"{platform.system()} {platform.machine()}"}
    for name in LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def sha256(path: Path) -> str:
    """Compute a file's SHA-256, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _common(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Keep what is equal in all records, nested ones included."""
    found = {}
    for key, value in records[0].items():
        others: list[Any] = [record.get(key) for record in records]
        if all(other == value for other in others):
            found[key] = value
        elif all(isinstance(other, dict) for other in others):
            found[key] = _common(others)
    return found


def _beyond(record: dict[str, Any], common: dict[str, Any]) -> dict[str, Any]:
    """Keep what `record` holds beyond `common`."""
    own = {}
    for key, value in record.items():
        if key not in common:
            own[key] = value
        elif value != common[key]:
            own[key] = _beyond(value, common[key])
    return own


def _relative(value: Any, root: Path) -> Any:
    """Make a path inside the project relative to its root, so that clones agree."""
    if isinstance(value, Path):
        value = str(value)
    if isinstance(value, str) and value.startswith(f"{root}{os.sep}"):
        return Path(value).relative_to(root).as_posix()
    return value


def _same_notebook(root: Path, name: str) -> bool:
    """Tell whether the file is a notebook whose cells have the same sources and tags as in HEAD."""
    if not name.endswith(".ipynb"):
        return False
    try:
        texts = (root / name).read_text(encoding="utf-8"), _git(root, "show", f"HEAD:./{name}") or ""
        here, there = (
            [
                (cell["cell_type"], "".join(cell["source"]), cell["metadata"].get("tags", []))
                for cell in json.loads(text)["cells"]
            ]
            for text in texts
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return here == there


def _git(root: Path, *arguments: str) -> str | None:
    """Run git without taking its lock; None if there is no git, no repository or no permission."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    environment = {**inherited, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    command = ["git", "-C", str(root), *arguments]
    try:
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=20, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
