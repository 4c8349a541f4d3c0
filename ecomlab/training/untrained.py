"""What a starter reaches before training, played once for all runs of a folder.

Held-out tasks and their random streams are the same in every run, and so is the evaluation at step 0 of runs that
evaluate the same policy alike: those of a sweep. The first run keeps it beside the runs, the others read it there.
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

import ecomlab
from ecomlab.evaluation.local import weights_digest
from ecomlab.evaluation.transcript import Transcript
from ecomlab.files import read_json, write_json
from ecomlab.models.policy import Policy
from ecomlab.seeding import digest
from ecomlab.training.config import TrainConfig

FOLDER = ".untrained"
"""Folder beside the runs' folders, a file for each way to evaluate."""
DECIDES = (
    *("eval_collection", "collection", "eval_difficulties", "eval_episodes", "eval_block", "eval_axes"),
    *("eval_decodings", "turn_tokens", "episode_tokens", "context_tokens", "transcript_failures"),
)
"""Settings on which an evaluation depends, beside policy and catalog."""


class Evaluation(NamedTuple):
    """Held-out episodes as rows, and the transcripts of the failures among them."""

    episodes: list[dict[str, Any]]
    failures: Sequence[Transcript]


def file_of(config: TrainConfig, policy: Policy, fingerprint: str) -> Path:
    """Name the file in which the evaluation of `policy` under `config` is kept; `fingerprint` is the catalog's."""
    settings = config.to_json()
    decides = {
        "settings": {name: settings[name] for name in DECIDES},
        "policy": [weights_digest(policy.model), policy.made_for],
        "catalog": fingerprint,
        "code": _code(),
        "numerics": [  # which decide about a logit's last bits
            *(version("torch"), torch.get_num_threads()),
            *(platform.machine(), get_cpu_capability()),
        ],
    }
    return Path(config.out).absolute().parent / FOLDER / f"{digest(decides)}.json"


def recall(path: Path) -> Evaluation | None:
    """Read what was kept; None if nothing was, or nothing whole."""
    kept = read_json(path)
    if kept is None:
        return None
    return Evaluation(kept["episodes"], [Transcript.from_json(each) for each in kept["failures"]])


def keep(path: Path, found: Evaluation) -> None:
    """Keep an evaluation."""
    failures = [transcript.to_json() for transcript in found.failures]
    write_json(path, {"episodes": found.episodes, "failures": failures})


@cache
def _code() -> str:
    """Digest this package's code and data, as other code may play otherwise."""
    package, whole = Path(ecomlab.__file__).parent, hashlib.blake2b(digest_size=16)
    for path in sorted(package.rglob("*")):
        if path.suffix in (".py", ".toml", ".json", ".md"):
            whole.update(f"{path.relative_to(package)}\n".encode())
            whole.update(path.read_bytes())
    return whole.hexdigest()
