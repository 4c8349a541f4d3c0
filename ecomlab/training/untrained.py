"""The evaluation of a starter before training, played once for the runs of a sweep.

Held-out tasks and their random streams are the same in every run, so runs that evaluate the same policy with the same
settings share the evaluation at step 0. The first run saves it beside the runs' folders, and the others read it.
"""

import hashlib
import platform
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.backends.cpu import get_cpu_capability

from ecomlab.evaluation.local import weights_digest
from ecomlab.evaluation.transcript import Transcript
from ecomlab.files import read_json, write_json
from ecomlab.models.policy import Policy
from ecomlab.seeding import digest
from ecomlab.training.config import TrainConfig

FOLDER = ".untrained"
"""Folder beside the runs' folders."""


class Evaluation(NamedTuple):
    """Held-out episodes as rows, and the transcripts of the failures among them."""

    episodes: list[dict[str, Any]]
    failures: Sequence[Transcript]


def file_of(config: TrainConfig, policy: Policy, fingerprint: str) -> Path:
    """Name the file of an evaluation by everything that determines it; `fingerprint` is the catalog's."""
    decides = ("collection", "reward", "turn_tokens", "episode_tokens", "context_tokens")
    later = ("eval_every", "eval_at")
    settings = {
        name: value
        for name, value in config.to_json().items()
        if name in decides or (name.startswith("eval_") and name not in later)
    }
    policy_is = [weights_digest(policy.model), policy.made_for]
    numerics = [version("torch"), torch.get_num_threads(), platform.machine(), get_cpu_capability()]
    key = digest([settings, policy_is, fingerprint, _code(), numerics])
    return Path(config.out).absolute().parent / FOLDER / f"{key}.json"


def recall(path: Path) -> Evaluation | None:
    """Read an evaluation; None if none was saved, or the file is incomplete."""
    kept = read_json(path)
    if kept is None:
        return None
    return Evaluation(kept["episodes"], [Transcript.from_json(each) for each in kept["failures"]])


def keep(path: Path, found: Evaluation) -> None:
    """Save an evaluation."""
    failures = [transcript.to_json() for transcript in found.failures]
    write_json(path, {"episodes": found.episodes, "failures": failures})


@cache
def _code() -> str:
    """Digest the package's code and data, because changed code may play differently."""
    package, whole = Path(__file__).parents[1], hashlib.blake2b(digest_size=16)
    for path in sorted(package.rglob("*")):
        if path.suffix in (".py", ".toml", ".json", ".md"):
            whole.update(f"{path.relative_to(package)}\n".encode())
            whole.update(path.read_bytes())
    return whole.hexdigest()
