"""The cache of generated shops: one folder each, written atomically and read only if unchanged since."""

import hashlib
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np

from ecomlab.seeding import digest

MANIFEST: Final = "manifest.json"
HASH_UP_TO: Final = 256 << 20  # bytes; larger files are checked by size alone, to avoid reading them whole


def cache_folder() -> Path:
    """Return $ECOMLAB_CACHE, by default ~/.cache/ecomlab, the only place written to."""
    chosen = os.environ.get("ECOMLAB_CACHE")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "ecomlab"


def cache_key(*parts: Any) -> str:
    """Name a folder by `parts`, this package's code and data, and libraries: an edited generator reads no old files."""
    here = sorted(path for path in Path(__file__).parent.iterdir() if path.suffix in (".py", ".toml"))
    sources = [hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest() for path in here]
    return digest([parts, sources, [version(name) for name in ("numpy", "scikit-learn")]], 12)


def save(folder: Path, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> None:
    """Write `arrays` as .npy files and `facts` into `folder`, atomically; warn if that fails."""
    draft: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        for name, array in arrays.items():
            np.save(draft / f"{name}.npy", array, allow_pickle=False)
        files = {path.name: _stamp(path) for path in sorted(draft.iterdir())}
        (draft / MANIFEST).write_text(json.dumps({"files": files, "facts": dict(facts)}), "utf-8")
        if folder.exists():  # another process was quicker, or it is damaged: the newer one stays
            folder.rename(draft / "replaced")
        draft.rename(folder)
        shutil.rmtree(folder / "replaced", ignore_errors=True)
    except OSError as error:
        if draft is not None:
            shutil.rmtree(draft, ignore_errors=True)
        warnings.warn(
            f"the catalog was made but not cached: cannot write {folder.parent} ({error.strerror or error}). "
            "Everything works, but each process makes its own; set ECOMLAB_CACHE to a writable folder with room.",
            stacklevel=3,
        )


def load(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
    """Load arrays (memory-mapped, read-only) and facts of `folder`; None if missing or, with a warning, if damaged."""
    if not folder.exists():
        return None
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        arrays = {}
        for name, stamp in manifest["files"].items():
            path = folder / name
            if _stamp(path) != stamp:
                raise ValueError(f"{name} is not what was written")
            arrays[path.stem] = np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)
        return arrays, manifest["facts"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        warn_damaged(folder, error)
        return None


def warn_damaged(folder: Path, error: object) -> None:
    """Warn that a cached catalog is damaged and will be made again."""
    warnings.warn(f"the cached catalog in {folder} is damaged ({error}); it is made again", stacklevel=3)


def _stamp(path: Path) -> list[Any]:
    size = path.stat().st_size
    if size > HASH_UP_TO:
        return [size, ""]
    with path.open("rb") as file:
        return [size, hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()]
