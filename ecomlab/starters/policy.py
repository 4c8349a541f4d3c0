"""The starters on disk: weights, tokenizer and what they were made for; a mismatch is refused."""

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecomlab.envs.registry import version_record
from ecomlab.models.policy import CONFIG, MADE_FOR, Policy, PolicyError
from ecomlab.models.renderer import END
from ecomlab.seeding import digest
from ecomlab.starters.compact_renderer import VERSION, ShortRenderer
from ecomlab.starters.demonstrations import teacher
from ecomlab.starters.tiny_qwen3 import PAD, vocabulary_digest

if TYPE_CHECKING:
    from ecomlab.catalog import Shop

WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
RECIPE = "python -m ecomlab.starters.recipe make"


class Starters:
    """The source of policies that use the compact renderer."""

    folder = Path(__file__).parent / "weights"

    def reads(self, made_for: Mapping[str, Any]) -> bool:
        return isinstance(made_for.get("renderer"), int)  # the compact renderer's version

    def load(self, folder: Path, shop: "Shop", envs: Sequence[str]) -> Policy:
        """Load a starter, float32, on CPU. Raises PolicyError."""
        from safetensors.torch import load_file
        from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

        try:
            record = json.loads((folder / MADE_FOR).read_text())
            tokenizer = PreTrainedTokenizerFast(
                tokenizer_file=str(folder / TOKENIZER),
                pad_token=PAD,
                eos_token=END,
                clean_up_tokenization_spaces=False,
            )
            config = Qwen3Config(**json.loads((folder / CONFIG).read_text()))
            weights = {key: value.float() for key, value in load_file(folder / WEIGHTS).items()}
            model = Qwen3ForCausalLM(config).float()
            missing, surplus = model.load_state_dict(weights, strict=False)
        except Exception as error:  # json, safetensors and tokenizers raise errors of their own
            raise PolicyError(
                f"{folder} does not hold a readable policy ({type(error).__name__}: {error}); "
                f"restore it from git, or make it again with `{RECIPE}`"
            ) from error
        if surplus or set(missing) - {"lm_head.weight"}:
            wrong = [*missing, *surplus][:4]
            raise PolicyError(
                f"{folder / WEIGHTS} does not fit {CONFIG}: {wrong}; make it again with `{RECIPE}`"
            )
        model.tie_weights()
        _check(folder, record, made_for(tokenizer, shop, envs))
        return Policy(model.eval(), ShortRenderer(tokenizer, teacher), record)


STARTERS = Starters()


def made_for(tokenizer: Any, shop: "Shop", envs: Sequence[str]) -> dict[str, Any]:
    """Record what a starter depends on: renderer, tokenizer, the shop's vocabulary, and environments."""
    return {
        "renderer": VERSION,
        "tokenizer": tokenizer_digest(tokenizer),
        "vocabulary": vocabulary_digest(shop.catalog),
        "catalog": shop.catalog.fingerprint,
        "environments": {env: version_record(env) for env in envs},
    }


def tokenizer_digest(tokenizer: Any) -> str:
    """Digest a tokenizer's whole definition."""
    return digest(json.loads(tokenizer.backend_tokenizer.to_str()), size=8)


def save_policy(folder: Path, policy: Policy, **notes: Any) -> None:
    """Save a starter: half-precision weights, tokenizer, configuration, and what it was made for with `notes`."""
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


def _check(folder: Path, record: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    """Refuse a starter that was made for something else."""
    for what in ("renderer", "tokenizer"):
        if record.get(what) != here[what]:
            raise PolicyError(
                f"{folder.name} was made for {what} {record.get(what)}, this is {what} {here[what]}; "
                f"make it again with `{RECIPE}`, or use the ecomlab and the catalog that made it"
            )
    if record.get("vocabulary") != here["vocabulary"]:
        raise PolicyError(
            f"{folder.name} knows the words of the generated catalog alone; play an endpoint, an ordinary model or the "
            "reference player on another, or leave out --catalog"
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
                f"{folder.name} was made for tasks of {env} that are others now ({then}, now {now}); "
                f"make it again with `{RECIPE}`"
            )
