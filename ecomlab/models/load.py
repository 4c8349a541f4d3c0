"""A policy on disk: weights, tokenizer, and what they were made for. A mismatch is refused, not repaired."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecomlab.models.policy import (
    CONFIG,
    MADE_FOR,
    TOKENIZER,
    WEIGHTS,
    Policy,
    PolicyError,
    made_for,
)
from ecomlab.models.renderer import END
from ecomlab.starters.compact_renderer import ShortRenderer
from ecomlab.suggest import unknown

if TYPE_CHECKING:
    from ecomlab.catalog import Shop

STARTERS = Path(__file__).parents[1] / "starters" / "weights"
RECIPE = "python -m ecomlab.starters.recipe make"


def load_policy(name: str | Path, shop: "Shop", envs: Sequence[str], **chat: Any) -> Policy:
    """The starter of that name, a folder that `save_policy` or a training checkpoint wrote, or a Hugging Face model.

    Starters come in float32, on CPU. Any other folder and any "owner/name" is an ordinary Qwen3 model, loaded by
    `qwen3.load_chat_policy` with `chat` (dtype, lora_rank, thinking).

    Raises PolicyError when there is none, a file is damaged, or it was made for another renderer, tokenizer,
    vocabulary or environment version.
    """
    if is_ordinary(name):
        from ecomlab.models.qwen3 import load_chat_policy

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
            eos_token=END,
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
