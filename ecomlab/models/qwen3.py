"""Ordinary Qwen3 models from Hugging Face, and others with ChatML's markers, full or with LoRA, and their renderer,
which only ever appends.

`ChatRenderer` renders conversations with TRL's `qwen3_training.jinja`: system prompt with tool schemas, tool results as
JSON in <tool_response> blocks, thinking in <think> blocks that are kept. Qwen3's own template differs only in dropping
earlier thinking, which changes the beginning of a conversation as it grows. The concatenation of `open`, the policy's
tokens and `follow` equals the template's rendering of the whole conversation if the policy writes as the template does.
"""

import hashlib
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecomlab.episode.messages import invalid, parse_output
from ecomlab.files import read_json
from ecomlab.models.policy import CONFIG, DTYPES, MADE_FOR, Policy, PolicyError, serve_it
from ecomlab.models.renderer import END, START, TAGS, Message, TextRenderer
from ecomlab.suggest import unknown

if TYPE_CHECKING:
    from ecomlab.catalog import Shop

KIND = "qwen3"
"""Name of this renderer in made_for.json."""
PAD = "<|endoftext|>"
MARKERS = (START, END, PAD)
ALSO_TOKENS = TAGS
"""Further single tokens of Qwen3, which decode to ordinary text; another model writes them as text."""
THINK, THOUGHT = TAGS[:2]
ENTRIES = 1_024
"""Entries of a tensor that the digest of a base model covers, or up to twice as many."""


@cache
def template(name: str = "qwen3_training") -> str:
    """Read one of TRL's chat templates without importing TRL."""
    spec = find_spec("trl")
    assert spec and spec.submodule_search_locations
    return (Path(spec.submodule_search_locations[0]) / "chat_templates" / f"{name}.jinja").read_text()


class ChatRenderer(TextRenderer):
    """Qwen3's renderer, around its tokenizer or another one with ChatML's markers. With `thinking` the policy may think
    before it speaks. `check_trainable` raises where the markers are missing."""

    def __init__(self, tokenizer: Any, thinking: bool = False) -> None:
        super().__init__(tokenizer)
        self.thinking = thinking
        known = tokenizer.get_vocab()
        self.end_id, self.pad_id = known[END], known[PAD]
        self.stop_ids: Sequence[int] = (self.end_id, self.pad_id)
        self.marker_ids = {known[marker]: marker for marker in MARKERS}

    @property
    def markers(self) -> Iterable[str]:
        return (*super().markers, *self.tokenizer.get_added_vocab())

    def dialogue(self) -> "ChatDialogue":
        return ChatDialogue(self)

    def text(
        self, messages: Sequence[Message], tools: Sequence[Any] | None = None, speak: bool = True
    ) -> str:
        """Apply the template to messages; with `speak` add the prompt for the policy's turn."""
        rendered = self.tokenizer.apply_chat_template(
            [dict(message) for message in messages],
            tools=list(tools) if tools else None,
            chat_template=template(),
            add_generation_prompt=speak,
            enable_thinking=self.thinking,
            tokenize=False,
        )
        return str(rendered)


class ChatDialogue:
    """One episode in Qwen3's chat format; holds no state."""

    def __init__(self, renderer: ChatRenderer) -> None:
        self._renderer = renderer

    def open(self, messages: Sequence[Message], tools: Sequence[Any]) -> list[int]:
        return self._renderer.encode(self._renderer.text(self._renderer.defused(messages), tools))

    def follow(self, messages: Sequence[Message]) -> list[int]:
        messages = self._renderer.defused(messages)
        before = [{"role": "user", "content": ""}, {"role": "assistant", "content": ""}]
        said = self._renderer.text(before, speak=False)
        whole = self._renderer.text([*before, *messages])
        return self._renderer.encode(whole[said.rindex(END) + len(END) :])

    def say(self, message: Message) -> list[int]:
        asked = [{"role": "user", "content": ""}]
        whole = self._renderer.text([*asked, message], speak=False)
        return self._renderer.encode(whole[len(self._renderer.text(asked)) :].rstrip("\n"))

    def teacher(self, env: str, shop: "Shop") -> None:
        return None

    def read(self, ids: Sequence[int]) -> dict[str, Any]:
        """Parse the message in sampled ids, leaving out thinking.

        Also invalid: a turn that does not end with `<|im_end|>`, a chat marker inside a turn (it would look like
        somebody else's turn; its letters, copied from a product's name, do not), and thinking that is not closed.
        """
        text = self._renderer.decode(ids)
        if not ids or ids[-1] != self._renderer.end_id:
            return invalid(text, f"the turn does not end in {END}")
        said = self._renderer.decode(ids[:-1])
        if found := [marker for i in ids[:-1] if (marker := self._renderer.marker_ids.get(i))]:
            return invalid(text, f"{found[0]} inside a turn")
        if said.lstrip().startswith(THINK) and THOUGHT not in said:
            return invalid(text, f"thinking is not closed by {THOUGHT}")
        return parse_output(said)


def load_chat_policy(
    name: str | Path, dtype: str = "float32", lora_rank: int = 0, thinking: bool = False
) -> Policy:
    """Load a model from the local Hugging Face cache or a folder, on CPU; TRL moves it to a device.

    With `lora_rank` its weights are frozen and all linear layers but the output layer get adapters of that rank, in
    float32, with alpha twice the rank and the same initial weights in every process. A folder with a LoRA checkpoint
    gives its base model with those adapters. Raises PolicyError, for a model without ChatML's markers too.
    """
    import torch
    from transformers import AutoTokenizer

    if dtype not in DTYPES:
        raise PolicyError(unknown("dtype", dtype, DTYPES))
    record = Path(name) / MADE_FOR  # in a training checkpoint
    if record.is_file() and json.loads(record.read_text())["thinking"] != thinking:
        raise PolicyError(
            f"{name} was trained with thinking = {str(not thinking).lower()}; set it so to continue"
        )
    adapters = Path(name) / "adapter_config.json"
    base = _base(adapters) if adapters.is_file() else str(name)
    base = whole_name(base)  # adapters that are saved name it, and are read from anywhere
    with _loading(base):
        tokenizer = AutoTokenizer.from_pretrained(str(name), trust_remote_code=False)
    check_trainable(tokenizer, base)
    model, renderer = load_model(base, dtype), ChatRenderer(tokenizer, thinking)
    check_tokens(model, tokenizer, template(), base)
    tokenizer.chat_template = template()  # saved with checkpoints: a server needs the template of training
    made_for = {"renderer": KIND, "base": base, "thinking": thinking, "lora_rank": lora_rank, "dtype": dtype}
    if adapters.is_file() or lora_rank:
        made_for["base_digest"] = _base_digest(model)
    if adapters.is_file():
        check_base(Path(name), made_for)
    if torch.cuda.is_available():
        torch.backends.cuda.matmul.allow_tf32 = (
            True  # otherwise float32 adapters take as long as all the rest
        )
        # On Hopper, cuDNN plans attention anew for every shape (23 to 37 ms), and no micro-batch's comes twice.
        torch.backends.cuda.enable_cudnn_sdp(False)
    if adapters.is_file() or lora_rank:
        model = with_adapters(model, Path(name) if adapters.is_file() else None, lora_rank)
    return Policy(model.eval(), renderer, made_for)


def whole_name(name: str | Path) -> str:
    """Return the absolute path of a model's folder, or its owner/name. Raises PolicyError if it is missing."""
    base = str(name)
    if base.startswith((".", "/", "~")) and not Path(base).is_dir():
        raise PolicyError(f"there is no folder {base}; name one with a Hugging Face model, or owner/name")
    return str(Path(base).resolve()) if Path(base).is_dir() else base


def load_model(base: str, dtype: str) -> Any:
    """Load the weights from a folder or the local cache, on CPU. Raises PolicyError."""
    import torch
    from transformers import AutoModelForCausalLM

    with _loading(base):
        model, found = AutoModelForCausalLM.from_pretrained(
            base, dtype=getattr(torch, dtype), trust_remote_code=False, output_loading_info=True
        )
    if lacking := sorted(found["missing_keys"]):
        raise PolicyError(
            f"{base} lacks {len(lacking)} tensors, such as {lacking[0]}, which would be random numbers; check that its "
            f"{CONFIG} belongs to its weights, and that they are whole"
        )
    return model


def check_tokens(model: Any, tokenizer: Any, chat_template: str, base: str) -> None:
    """Raise PolicyError if the tokenizer makes tokens for which the model has no embedding. Added ones that the
    template does not write are never made here, such as Gemma 3's for images."""
    entries, added = model.get_input_embeddings().weight.shape[0], tokenizer.get_added_vocab()
    beyond = sorted(
        token
        for token, number in tokenizer.get_vocab().items()
        if number >= entries and (token not in added or token in chat_template)
    )
    if beyond:
        raise PolicyError(
            f"{base} has {entries} embeddings, and its tokenizer makes {len(beyond)} tokens beyond them, such as "
            f"{beyond[0]!r}; put the tokenizer that the model was trained with beside its weights"
        )


@contextmanager
def _loading(base: str) -> Iterator[None]:
    """Turn the various errors of the hub, safetensors and tokenizers into one message."""
    try:
        yield
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        way_out = (
            "check that the folder is a whole Hugging Face model"
            if Path(base).is_dir()
            else f"download it once with `hf download {base}` (HF_HUB_OFFLINE=0 where that is set), or name a folder "
            f"(there is no {Path.cwd() / base})"
        )
        raise PolicyError(f"{base} cannot be loaded ({type(error).__name__}: {first}); {way_out}") from error


def check_trainable(tokenizer: Any, base: str) -> None:
    """Raise PolicyError for a tokenizer without ChatML's markers."""
    absent = [token for token in MARKERS if token not in tokenizer.get_vocab()]
    if not absent:
        return
    fact = f"{base} can be neither trained nor sampled here: its tokenizer lacks {', '.join(absent)}"
    if not tokenizer.chat_template:
        raise PolicyError(
            f"{fact}, and it has no chat template to say how it takes a conversation; choose its instruct version"
        )
    raise PolicyError(f"{fact}; train a Qwen3 model or another one with these markers, or {serve_it(base)}")


def with_adapters(model: Any, saved: Path | None, rank: int) -> Any:
    """Add LoRA adapters to the model, saved ones or new ones of this rank, as `load_chat_policy` describes."""
    import torch

    try:
        from peft import LoraConfig, PeftModel, get_peft_model
    except ImportError as error:
        raise PolicyError(
            "LoRA needs peft, which is not installed; `make venv` brings it, or choose lora_rank = 0"
        ) from error
    if saved is not None:
        return PeftModel.from_pretrained(model, saved, is_trainable=True)
    lora = LoraConfig(
        r=rank, lora_alpha=2 * rank, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        # peft asks by a name that transformers is giving up
        warnings.filterwarnings("ignore", message="`is_gradient_checkpointing` is deprecated")
        torch.manual_seed(0)
        # ZeRO-3 gathers into buffers of one type (trl#6089); it keeps float32 copies of its own
        zero3 = os.environ.get("ACCELERATE_DEEPSPEED_ZERO_STAGE") == "3"
        return get_peft_model(model, lora, autocast_adapter_dtype=not zero3)


def check_base(folder: Path, made_for: Mapping[str, Any]) -> None:
    """Raise PolicyError if the adapters in `folder` were trained on other base weights than `made_for` records."""
    recorded = (read_json(folder / MADE_FOR) or {}).get("base_digest")
    if recorded is not None and recorded != made_for.get("base_digest"):
        raise PolicyError(
            f"the adapters in {folder} were trained on other weights than those of {made_for['base']} that are here; "
            "restore these, or start a new run"
        )


def _base_digest(model: Any) -> str:
    """Digest a model's weights in bfloat16: names, shapes, and `ENTRIES` entries of each, evenly spaced."""
    whole = hashlib.blake2b(digest_size=16)
    for name, parameter in model.named_parameters():
        entries = parameter.detach().flatten()
        sample = entries[:: max(1, len(entries) // ENTRIES)].bfloat16().float().numpy()
        whole.update(f"{name} {tuple(parameter.shape)}\n".encode() + sample.tobytes())
    return whole.hexdigest()


def _base(adapters: Path) -> str:
    """Read the base model of adapters: its name, or its folder. Raises PolicyError if the folder is missing."""
    base = str(json.loads(adapters.read_text())["base_model_name_or_path"])
    if (base.count("/") != 1 or base.startswith((".", "/", "~"))) and not Path(base).is_dir():
        raise PolicyError(
            f"the adapters in {adapters.parent} belong to the model in {base}, which is no folder"
            + ("" if Path(base).is_absolute() else f" in {Path.cwd()}")
            + f"; put it there, or name its folder in {adapters} as base_model_name_or_path"
        )
    return base
