"""A policy on disk: weights, tokenizer, and what they were made for."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.models.renderer import Renderer
from ecomlab.models.samplers.cached import CachedSampler, Limits
from ecomlab.seeding import digest
from ecomlab.starters import compact_renderer
from ecomlab.starters.tiny_qwen3 import vocabulary_digest

if TYPE_CHECKING:
    from ecomlab.catalog import Shop


MADE_FOR = "made_for.json"


WEIGHTS, TOKENIZER, CONFIG = "model.safetensors", "tokenizer.json", "config.json"


class PolicyError(ValueError):
    """A policy that cannot be used here; the message says why and what to do."""


@dataclass(frozen=True)
class Policy:
    """A model with its way of writing conversations."""

    model: Any
    renderer: Renderer
    made_for: dict[str, Any]
    """Versions of renderer, tokenizer and environments, and the shop's vocabulary."""

    @property
    def tokenizer(self) -> Any:
        return self.renderer.tokenizer

    def sampler(self, limits: Limits | None = None, greedy: bool = False) -> CachedSampler:
        """A sampler on this policy's weights as they are at each moment."""
        return CachedSampler(self.model, self.renderer.stop_ids, limits, greedy=greedy)


def made_for(tokenizer: Any, shop: "Shop", envs: Sequence[str]) -> dict[str, Any]:
    """What a policy depends on: it plays these environments, in a shop with these words, through this renderer."""
    return {
        "renderer": compact_renderer.VERSION,
        "tokenizer": tokenizer_digest(tokenizer),
        "vocabulary": vocabulary_digest(shop.catalog),
        "catalog": shop.catalog.fingerprint,
        "environments": {
            env: {"version": ENVIRONMENTS[env].version, "golden": ENVIRONMENTS[env].golden} for env in envs
        },
    }


def tokenizer_digest(tokenizer: Any) -> str:
    """Identifies a tokenizer by its whole definition."""
    return digest(json.loads(tokenizer.backend_tokenizer.to_str()), size=8)


def save_policy(folder: Path, policy: Policy, **notes: Any) -> None:
    """Write a starter: half-precision weights, tokenizer, configuration, and what it was made for (with `notes`)."""
    import torch
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    state = policy.model.state_dict()
    tied = {"lm_head.weight"} if policy.model.config.tie_word_embeddings else set()
    weights = {
        name: value.to(torch.float16).contiguous() for name, value in state.items() if name not in tied
    }
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
    policy.tokenizer.backend_tokenizer.save(str(folder / TOKENIZER), pretty=False)
    config = policy.model.config.to_diff_dict()
    (folder / CONFIG).write_text(json.dumps(config, indent=1, sort_keys=True) + "\n")
    libraries = {name: version(name) for name in ("torch", "transformers", "tokenizers")}
    record = {**policy.made_for, **notes, "libraries": libraries}
    (folder / MADE_FOR).write_text(json.dumps(record, indent=1) + "\n")
