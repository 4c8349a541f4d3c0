"""The cache folder, atomic writes of small files, and locks that end with their process."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def cache_folder() -> Path:
    """Return $ECOMLAB_CACHE, by default ~/.cache/ecomlab, the only folder that is written to without request."""
    chosen = os.environ.get("ECOMLAB_CACHE")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "ecomlab"


def read_json(path: Path) -> dict[str, Any] | None:
    """Read the object in a file; None if the file is missing or holds no complete object."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write `value` as indented JSON."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file atomically: a kill or a full disk never leaves half of it. Creates the folder."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8", newline="\n")


def file_digest(path: Path) -> str:
    """Return the BLAKE2b digest of a file, of 16 bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Provide a draft beside `path` that replaces it at the end, unless an exception is raised. Creates the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def lock(path: Path, busy: Exception, wait: float = 0.0) -> Iterator[None]:
    """Hold the lock `path` for this process; raise `busy` if another process still holds it after `wait` seconds (-1:
    wait forever). The operating system releases it when the process ends in any way. The file itself stays.
    """
    from filelock import FileLock, Timeout  # imports logging and more, which no start needs

    path.parent.mkdir(parents=True, exist_ok=True)
    held = FileLock(path)
    try:
        held.acquire(timeout=wait)
    except Timeout:
        raise busy from None
    try:
        yield
    finally:
        held.release()


def locked(path: Path) -> bool:
    """Tell whether a process holds the lock `path` now, on any machine whose locks the file system shares."""
    from filelock import FileLock, Timeout

    if path.is_symlink() or not path.is_file():  # a lock is emptied when it is opened: not what a link names
        return False
    try:
        with FileLock(path, timeout=0):
            return False
    except Timeout:
        return True
    except OSError:  # another user's file, which we may not open
        return False
