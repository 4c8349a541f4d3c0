"""Policies by name: shipped ones, saved ones, and ordinary Hugging Face models.

A package adds policies by an entry point of the group `ecomlab.policies` that names a `PolicySource`, as the starters
do, or by calling `register`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ecomlab.files import read_json
from ecomlab.models.policy import CONFIG, MADE_FOR, Policy, PolicyError
from ecomlab.models.qwen3 import KIND, load_chat_policy, with_adapters
from ecomlab.suggest import unknown

if TYPE_CHECKING:
    from ecomlab.catalog import Shop

GROUP = "ecomlab.policies"
MERGED = "policy"
"""Folder in a checkpoint of a shipped policy's LoRA adapters: the whole policy, adapters added to its weights."""

SHARDS = "pytorch_model_fsdp_0"
"""Folder in a checkpoint of all weights of a sharded run: a file of each process."""


class PolicySource(Protocol):
    """A kind of policy: the folder of the shipped ones, a test for its folders, and a loader."""

    @property
    def folder(self) -> Path:
        """Folder of the shipped policies, with a subfolder for each name."""

    def reads(self, made_for: Mapping[str, Any]) -> bool:
        """Tell whether a folder with this made_for.json ({} if unreadable) holds such a policy."""

    def load(self, folder: Path, shop: "Shop", envs: Sequence[str]) -> Policy:
        """Load the policy in a folder for these environments. Raises PolicyError."""


_sources: list[PolicySource] = []


def register(source: PolicySource) -> None:
    """Add policies in this process. Registering a source again changes nothing."""
    if source not in _sources:
        _sources.append(source)


@cache
def _register_installed() -> None:
    for point in entry_points(group=GROUP):
        register(point.load())


def sources() -> list[PolicySource]:
    """List the sources that are installed or registered."""
    _register_installed()
    return list(_sources)


def load_policy(name: str | Path, shop: "Shop", envs: Sequence[str], **chat: Any) -> Policy:
    """Load a shipped policy by name, a folder with a saved policy or checkpoint, or a Hugging Face model.

    Shipped policies are in float32, on CPU; `lora_rank` in `chat` gives them new adapters. Any other folder and any
    "owner/name" is an ordinary Qwen3 model, loaded by `load_chat_policy` with `chat` (dtype, lora_rank, thinking).

    Raises PolicyError when there is no such policy, a file is damaged, or it was made for another renderer,
    tokenizer, vocabulary or environment version.
    """
    _check_holds_one(Path(name))
    if is_ordinary(name):
        return load_chat_policy(name, **chat)
    folder = policy_folder(name)
    made_for = read_json(folder / MADE_FOR) or {}
    for source in sources():
        if source.reads(made_for):
            policy = source.load(folder, shop, envs)
            rank = chat.get("lora_rank", 0)
            return replace(policy, model=with_adapters(policy.model, None, rank).eval()) if rank else policy
    raise PolicyError(
        f"{folder} does not hold a readable policy: its {MADE_FOR} is missing, damaged or of a kind that no installed "
        "package reads; restore it, or choose another policy"
    )


def made_for_environments(name: str | Path) -> list[str] | None:
    """List the environments that a policy was made for; None if unknown."""
    known = (read_json(_shipped().get(str(name), Path(name)) / MADE_FOR) or {}).get("environments")
    return list(known) if known else None


def is_ordinary(name: str | Path) -> bool:
    """Tell whether a name is an ordinary Hugging Face model: "owner/name" or a folder that no source made."""
    if str(name) in _shipped():
        return False
    folder = Path(name)
    if not folder.is_dir():
        return isinstance(name, str) and re.fullmatch(r"[\w.-]+/[\w.-]+", name) is not None
    if not (folder / MADE_FOR).exists():
        return (folder / CONFIG).exists()
    return (read_json(folder / MADE_FOR) or {}).get("renderer") == KIND


def policy_folder(name: str | Path) -> Path:
    """Find the folder of a shipped or saved policy. Raises PolicyError."""
    shipped = _shipped()
    folder = shipped.get(str(name), Path(name))
    if not folder.is_dir():
        raise PolicyError(
            f"{unknown('starter', str(name), shipped)}; a folder with a saved policy "
            "or a Hugging Face model such as Qwen/Qwen3-8B will do too"
        )
    return folder / MERGED if (folder / MERGED).is_dir() else folder


def _check_holds_one(folder: Path) -> None:
    """Raise PolicyError for a folder without a policy: a run, whose checkpoints are policies, or anything else. A
    shipped policy's name is no folder, though a run's stands there."""
    if (folder / SHARDS).is_dir() and not (folder / "model.safetensors").exists():
        raise PolicyError(
            f"the weights in {folder} are in shards; `accelerate merge-weights {folder / SHARDS} {folder}` joins them"
        )
    if str(folder) in _shipped() or not folder.is_dir() or (folder / MADE_FOR).exists():
        return
    saved = [path.parent for path in folder.glob(f"checkpoints/step-*/{MADE_FOR}")]
    if saved:
        newest = max(saved, key=lambda path: int(path.name.rpartition("-")[2]))
        raise PolicyError(f"{folder} is a run, not a policy; use {newest}")
    if not (folder / CONFIG).exists():
        if (folder / "adapter_config.json").exists():
            raise PolicyError(
                f"{folder} holds adapters without their model; merge them into it (merge_and_unload of peft), save "
                "that with its tokenizer, and name its folder"
            )
        raise PolicyError(f"no policy is in {folder}: it has neither {MADE_FOR} nor {CONFIG}")


def _shipped() -> dict[str, Path]:
    """Find the folders of the shipped policies by name."""
    return {
        folder.name: folder
        for source in reversed(sources())
        if source.folder.is_dir()
        for folder in source.folder.iterdir()
        if folder.is_dir()
    }
