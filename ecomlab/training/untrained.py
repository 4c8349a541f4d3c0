"""The evaluation of a starter before training, played once for the runs of a sweep.

Held-out tasks and their random streams are the same in every run, so runs that evaluate the same policy with the same
settings share the evaluation at step 0. The first run saves it beside the runs' folders, and the others read it.
"""

import platform
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.backends.cpu import get_cpu_capability

from ecomlab.evaluation.local import weights_digest
from ecomlab.evaluation.transcript import Transcript
from ecomlab.files import read_json, write_json
from ecomlab.models.policy import Policy
from ecomlab.seeding import digest, package_digest
from ecomlab.training.config import TrainConfig

FOLDER = ".untrained"
"""Folder beside the runs' folders."""
DECIDES = (
    "collection", "eval_collection", "eval_axes", "eval_difficulties", "eval_episodes", "eval_block", "eval_decodings",
    "reward", "turn_tokens", "episode_tokens", "context_tokens",
)  # fmt: skip
"""Settings on which the evaluation of a starter depends."""


class Evaluation(NamedTuple):
    """Held-out episodes as rows, and the transcripts of the failures among them."""

    episodes: list[dict[str, Any]]
    failures: Sequence[Transcript]


def file_of(config: TrainConfig, policy: Policy, fingerprint: str) -> Path:
    """Name the file of an evaluation by everything that determines it; `fingerprint` is the catalog's."""
    given = config.to_json()
    policy_is = [weights_digest(policy.model), policy.made_for]
    numerics = [version("torch"), torch.get_num_threads(), platform.machine(), get_cpu_capability()]
    numerics.append(policy.sampler().name)
    settings = {name: given[name] for name in DECIDES}
    key = digest([settings, policy_is, fingerprint, package_digest(), numerics])
    return Path(config.out).absolute().parent / FOLDER / f"{key}.json"


def shared(path: Path, play: Callable[[], Evaluation]) -> Evaluation:
    """Read the evaluation in a file; if there is none, or it is incomplete, `play` it and save it."""
    if kept := read_json(path):
        return Evaluation(kept["episodes"], [Transcript.from_json(each) for each in kept["failures"]])
    found = play()
    failures = [transcript.to_json() for transcript in found.failures]
    write_json(path, {"episodes": found.episodes, "failures": failures})
    return found
