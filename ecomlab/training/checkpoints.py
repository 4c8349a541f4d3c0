"""Checkpoints sealed with digests: TRL saves weights and optimizer, ecomlab adds the schedule and the step.

A checkpoint gets its name, `step-14`, last: a folder that a kill cut short still has TRL's name, which counts optimizer
steps, and is ignored. If a checkpoint's files differ from its seal, it is reported as damaged and the previous one is
used.
"""

import errno
import hashlib
import json
import math
import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ecomlab.files import replacing, write_json
from ecomlab.models.environment_pool import WorkerError
from ecomlab.models.load import MERGED
from ecomlab.models.policy import CONFIG, MADE_FOR
from ecomlab.models.samplers.cached import SamplerError
from ecomlab.training.config import RunError

SEAL = "ecomlab.json"
WEIGHTS = "model.safetensors"
DESCRIBING = (
    CONFIG, MADE_FOR, "generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
    "added_tokens.json", "chat_template.jinja",
)  # fmt: skip
"""Files of a policy beside its weights."""
NAME = "step-"
"""Begins the name of a checkpoint's folder, before the number of the step after which it was saved."""
LAST = 2
"""Checkpoints that a run keeps."""
LARGE, BLOCKS, BLOCK = 2**28, 256, 2**20
"""Size above which a seal covers only `BLOCKS` blocks of `BLOCK` bytes: an 8B model and its optimizer have tens of
gigabytes."""
LARGEST = 4_000_000
"""Maximum size of half-precision weights that `export` saves, in bytes: the laptop policies have 1.1 and 2.1 MB, so the
policies of a sweep of twenty runs can be committed."""


class CheckpointError(RunError):
    """No checkpoint of a run can be read."""


@dataclass(frozen=True)
class Checkpoint:
    """A valid checkpoint: its folder, the step after which it was saved, and what ecomlab added to TRL's files."""

    folder: Path
    step: int
    extra: dict[str, Any]


def complete(folder: Path, extra: Mapping[str, Any], made_for: Mapping[str, Any]) -> None:
    """Add `extra` (`step` and `schedule`) to TRL's checkpoint in `folder`, seal it and give it its name; delete those
    before the `LAST`."""
    write_json(folder / MADE_FOR, made_for)
    found = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != SEAL)
    files = {str(path.relative_to(folder)): _digest(path) for path in found}
    write_json(folder / SEAL, {**extra, "files": files})
    named = folder.with_name(f"{NAME}{extra['step']}")
    if named.exists():
        shutil.rmtree(named)
    folder.rename(named)
    for old in in_order(folder.parent)[LAST:]:
        shutil.rmtree(old)


def in_order(root: Path) -> list[Path]:
    """List the folders of checkpoints under `root`, the newest first."""
    return sorted(root.glob(f"{NAME}*"), key=_number, reverse=True)


def newest(root: Path) -> Checkpoint | None:
    """Find the newest valid checkpoint under `root`, or None.

    Deletes those after it, with a warning if one is damaged. Raises CheckpointError when all are damaged.
    """
    damaged: list[str] = []
    folders = in_order(root)
    for folder in folders:
        reason = _damage(folder)
        if reason is None:
            extra = json.loads((folder / SEAL).read_text())
            if damaged:
                warnings.warn(f"{damaged[0]}; resuming from {folder.name}", stacklevel=2)
            for other in folders:
                if _number(other) > _number(folder):
                    shutil.rmtree(other)
            return Checkpoint(folder, int(extra["step"]), extra)
        damaged.append(f"checkpoint {folder} is damaged: {reason}")
    if damaged:
        raise CheckpointError(
            f"{damaged[0]}; no valid one is left: delete {root.parent} to start that run again"
        )
    return None


def export(checkpoint: Path, folder: Path) -> bool:
    """Save a checkpoint's policy in half precision for `load_policy`, without optimizer and random states. If a small
    policy's adapters are trained, the merged policy is saved.

    Returns False and writes nothing if the weights exceed `LARGEST` bytes in half precision or are not in a single
    file, as with adapters. Files that are already equal are not rewritten.
    """
    from safetensors import safe_open
    from safetensors.torch import load_file, save

    checkpoint = checkpoint / MERGED if (checkpoint / MERGED).is_dir() else checkpoint
    source = checkpoint / WEIGHTS
    if not source.is_file():
        return False
    with safe_open(source, "pt") as file:
        numbers = sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    if 2 * numbers > LARGEST:
        return False
    halves = {name: tensor.half().contiguous() for name, tensor in load_file(source).items()}
    contents = {
        name: (checkpoint / name).read_bytes() for name in DESCRIBING if (checkpoint / name).is_file()
    }
    for name, content in {**contents, WEIGHTS: save(halves, {"format": "pt"})}.items():
        target = folder / name
        if not target.is_file() or target.read_bytes() != content:
            with replacing(target) as draft:
                draft.write_bytes(content)
    return True


def _damage(folder: Path) -> str | None:
    """Describe the damage of a sealed checkpoint; None if it is intact."""
    try:
        files = json.loads((folder / SEAL).read_text())["files"]
    except (ValueError, KeyError, TypeError, OSError) as error:
        return f"its seal {SEAL} cannot be read ({error})"
    for name, expected in files.items():
        if not (folder / name).exists():
            return f"{name} is missing"
        if _digest(folder / name) != expected:
            return f"{name} has changed since it was written"
    return None


def prepare_folder(out: Path) -> Path:
    """Make the run's folder, check that it is writable and return its absolute path. Raises RunError."""
    out = out.absolute()
    try:
        (out / "checkpoints").mkdir(parents=True, exist_ok=True)
        probe = out / ".writable"
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        raise RunError(f"cannot write to {out} ({error.strerror or error}); choose another out") from None
    return out


@contextmanager
def plain_errors(out: Path) -> Iterator[None]:
    """Turn a full disk, whichever library notices it, and a dead sampler or worker into RunError."""
    try:
        yield
    except RunError:
        raise
    except (SamplerError, WorkerError) as error:
        raise RunError(str(error)) from error
    except Exception as error:
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        if full or shutil.disk_usage(out).free < 1_000_000:
            raise RunError(
                f"the disk of {out} is full; free space and run again: the run resumes from its last checkpoint"
            ) from error
        raise


def _number(folder: Path) -> int:
    digits = folder.name.rpartition("-")[2]
    return int(digits) if digits.isdigit() else -1


def _digest(path: Path) -> str:
    """Digest a file: all of it, or for a large file its size and `BLOCKS` blocks spread over it, because the other
    processes wait. A truncated file or a missing part is always detected; in a large file one changed byte may not
    be."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if size <= LARGE:
            return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
        whole = hashlib.blake2b(str(size).encode(), digest_size=16)
        for number in range(BLOCKS):
            file.seek((size - BLOCK) * number // (BLOCKS - 1))
            whole.update(file.read(BLOCK))
        return f"{BLOCKS} blocks: {whole.hexdigest()}"
