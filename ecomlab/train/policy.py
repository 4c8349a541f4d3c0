"""A policy on disk: weights, tokenizer, and what they were made for. A mismatch is refused, not repaired."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecomlab.core import ENVIRONMENTS
from ecomlab.naming import unknown
from ecomlab.seeding import digest
from ecomlab.train import renderer
from ecomlab.train.backends import CachedSampler, Limits
from ecomlab.train.renderer import Renderer, ShortRenderer
from ecomlab.train.tiny import vocabulary_digest

if TYPE_CHECKING:
    from ecomlab.catalog import Shop

STARTERS = Path(__file__).parent / "starters"
MADE_FOR = "made_for.json"
WEIGHTS, TOKENIZER, CONFIG = "model.safetensors", "tokenizer.json", "config.json"
RECIPE = "python -m ecomlab.train.warmstart make"


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
        "renderer": renderer.VERSION,
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


def load_policy(name: str | Path, shop: "Shop", envs: Sequence[str], **chat: Any) -> Policy:
    """The starter of that name, a folder that `save_policy` or a training checkpoint wrote, or a Hugging Face model.

    Starters come in float32, on CPU. Any other folder and any "owner/name" is an ordinary Qwen3 model, loaded by
    `qwen3.load_chat_policy` with `chat` (dtype, lora_rank, thinking).

    Raises PolicyError when there is none, a file is damaged, or it was made for another renderer, tokenizer,
    vocabulary or environment version.
    """
    if is_ordinary(name):
        from ecomlab.train.qwen3 import load_chat_policy

        return load_chat_policy(name, **chat)
    return _load_starter(starter_folder(name), shop, envs)


def made_for_environments(name: str | Path) -> list[str] | None:
    """The environments that a starter or a checkpoint was made for; None where that is not known."""
    for folder in (STARTERS / name, Path(name)):
        try:
            known = json.loads((folder / MADE_FOR).read_text()).get("environments")
        except (OSError, ValueError):
            continue
        return list(known) if known else None
    return None


def is_ordinary(name: str | Path) -> bool:
    """Whether a name is an ordinary Hugging Face model: "owner/name" or a folder, rather than one of our starters."""
    if (STARTERS / name).is_dir() and (STARTERS / name).parent == STARTERS:
        return False
    folder = Path(name)
    if not folder.is_dir():
        return isinstance(name, str) and re.fullmatch(r"[\w.-]+/[\w.-]+", name) is not None
    try:
        record = json.loads((folder / MADE_FOR).read_text())
    except (OSError, ValueError):
        return not (folder / MADE_FOR).exists() and (folder / CONFIG).exists()
    return bool(record.get("renderer") == "qwen3")


def _load_starter(folder: Path, shop: "Shop", envs: Sequence[str]) -> Policy:
    from safetensors.torch import load_file
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    try:
        record = json.loads((folder / MADE_FOR).read_text())
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_file=str(folder / TOKENIZER),
            pad_token="<|endoftext|>",
            eos_token=renderer.END,
            clean_up_tokenization_spaces=False,
        )
        config = Qwen3Config(**json.loads((folder / CONFIG).read_text()))
        weights = {key: value.float() for key, value in load_file(folder / WEIGHTS).items()}
        model = Qwen3ForCausalLM(config).float()
        missing, surplus = model.load_state_dict(weights, strict=False)
    except Exception as error:  # json, safetensors and tokenizers each have their own errors
        raise PolicyError(
            f"{folder} does not hold a readable policy ({type(error).__name__}: {error}); "
            f"restore it from git, or make it again with `{RECIPE}`"
        ) from error
    if surplus or set(missing) - {"lm_head.weight"}:
        raise PolicyError(
            f"{folder / WEIGHTS} does not fit {CONFIG}: {[*missing, *surplus][:4]}; make it again with `{RECIPE}`"
        )
    model.tie_weights()
    _check(folder, record, made_for(tokenizer, shop, envs))
    return Policy(model.eval(), ShortRenderer(tokenizer), record)


def starter_folder(name: str | Path) -> Path:
    """Where a starter lies: one of ours, or a folder. Raises PolicyError."""
    for folder in (STARTERS / name, Path(name)):
        if folder.is_dir():
            return folder
    known = sorted(p.name for p in STARTERS.iterdir() if p.is_dir()) if STARTERS.is_dir() else []
    raise PolicyError(
        f"{unknown('starter', str(name), known)}; a folder with a saved policy "
        "or a Hugging Face model such as Qwen/Qwen3-8B will do too"
    )


def _check(folder: Path, record: dict[str, Any], here: dict[str, Any]) -> None:
    """Refuse a policy that was made for something else."""
    for what in ("renderer", "tokenizer", "vocabulary"):
        if record.get(what) != here[what]:
            raise PolicyError(
                f"{folder.name} was made for {what} {record.get(what)}, this is {what} {here[what]}; "
                f"make it again with `{RECIPE}`, or use the ecomlab and the catalog that made it"
            )
    for env, now in here["environments"].items():
        then = record.get("environments", {}).get(env)
        if then is None:
            raise PolicyError(
                f"{folder.name} was not made for {env}, only for {', '.join(record.get('environments', {}))}; "
                f"choose a collection of those, or make a starter that knows {env}"
            )
        if then != now:
            raise PolicyError(
                f"{folder.name} was made for {env} version {then['version']} ({then['golden']}), this is "
                f"version {now['version']} ({now['golden']}); make it again with `{RECIPE}`"
            )
