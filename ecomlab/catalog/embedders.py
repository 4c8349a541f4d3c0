"""Embedders by name, and sentence models: texts in batches of equal length, pooled to unit vectors, on CPU or GPU."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from pydantic import Field, ValidationError

from ecomlab.assets import AssetError, find, named
from ecomlab.catalog.embed import Embedder, LexicalEmbedder
from ecomlab.seeding import digest
from ecomlab.settings import Strict, read_toml
from ecomlab.suggest import mistakes, unknown

MINILM: Final = "all-MiniLM-L6-v2"
MINILM_SHAPE: Final = {
    "vocab_size": 30_522,
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1_536,
}
STEP: Final = 16
"""Texts are padded to a multiple of this many tokens, by their own length alone: with what else is in a batch, and with
the number of texts in it, a text's vector does not change."""
VERSION: Final = 1


class SentenceSettings(Strict):
    """A sentence model and how it is used; a catalog's manifest keeps it as JSON, to embed queries alike."""

    model: str
    """Model id on the hub, or a folder."""
    revision: str | None = None
    """Commit on the hub."""
    pooling: Literal["mean", "cls"] = "mean"
    max_tokens: int = Field(default=256, ge=8, le=65_536)
    """Tokens of a text that are read."""
    batch_tokens: int = Field(default=4_096, ge=512, le=1 << 24)
    """Tokens in a batch."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"


class SentenceEmbedder:
    """A transformer as an embedder. Loaded at the first text; never runs code that comes with a model.

    Its vectors may differ by the last bits between devices: a catalog keeps those it was built with.
    """

    reproducible = False

    def __init__(self, settings: SentenceSettings) -> None:
        if Path(settings.model).is_dir():  # a catalog that remembers it is opened from anywhere
            settings = settings.model_copy(update={"model": str(Path(settings.model).resolve())})
        self.settings = settings

    @property
    def name(self) -> str:
        """The settings as JSON; the model's name alone where they are its defaults."""
        plain = SentenceSettings(model=self.settings.model)
        return (
            self.settings.model
            if self.settings == plain
            else self.settings.model_dump_json(exclude_defaults=True)
        )

    @property
    def dim(self) -> int:
        """Numbers in a vector, known before the weights are loaded."""
        return int(self._config.hidden_size)

    @cached_property
    def _config(self) -> Any:
        from transformers import AutoConfig, BertConfig

        if self.settings.model == MINILM:
            return BertConfig(**MINILM_SHAPE)
        return AutoConfig.from_pretrained(
            self.settings.model, revision=self.settings.revision, trust_remote_code=False
        )

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the weights and of what changes vectors; the size of batches does not."""
        about = self.settings.model_dump(exclude={"model", "revision", "batch_tokens"})
        return digest(["sentence", VERSION, STEP, self._weights_digest(), about], 8)

    def __repr__(self) -> str:
        return f"SentenceEmbedder({self.settings.model})"

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Embed texts: float32 (n, dim), one unit row per text, zero for one without tokens.

        Raises ValueError for a model that cannot be loaded, and for one whose numbers overflow.
        """
        vectors = np.zeros((len(texts), self.dim), np.float32)
        tokens = self.token_ids(texts)
        for numbers, width in self._batches([len(ids) for ids in tokens]):
            vectors[numbers] = self._pooled([tokens[number] for number in numbers], width)
        if not np.isfinite(vectors).all():  # an index never finds such a vector again
            raise ValueError(
                f"{self.settings.model} overflows in {self.settings.dtype}; set dtype to bfloat16 or float32"
            )
        return vectors

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens that are read of each text."""
        return [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]

    def _batches(self, lengths: Sequence[int]) -> Iterator[tuple[list[int], int]]:
        """Group texts of one padded length: their numbers and that length, shortest first."""
        by_width: dict[int, list[int]] = {}
        for number, length in enumerate(lengths):
            by_width.setdefault(-(-length // STEP) * STEP, []).append(number)
        by_width.pop(0, None)  # without words or marks of its own: a zero row
        for width, numbers in sorted(by_width.items()):
            size = max(1, self.settings.batch_tokens // width)
            for start in range(0, len(numbers), size):
                yield numbers[start : start + size], width

    def _pooled(self, tokens: Sequence[Sequence[int]], width: int) -> np.ndarray:
        import torch

        ids = torch.tensor([[*text, *[0] * (width - len(text))] for text in tokens])
        mask = (torch.arange(width) < torch.tensor([[len(text)] for text in tokens])).long()
        device = next(self._model.parameters()).device
        with torch.inference_mode():
            mask = mask.to(device)
            states = self._model(input_ids=ids.to(device), attention_mask=mask).last_hidden_state.float()
            pooled = states[:, 0]
            if self.settings.pooling == "mean":
                pooled = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
            return np.asarray(torch.nn.functional.normalize(pooled, dim=1).cpu().numpy())

    # --- loading ---

    def _files(self) -> tuple[Path, Path]:
        """Paths of weights and tokenizer. Raises ValueError."""
        if self.settings.model == MINILM:
            try:
                return find("minilm"), find("minilm-tokenizer")
            except AssetError as error:
                raise AssetError(str(error).replace("get minilm-tokenizer", "get minilm")) from None
        from transformers.utils import cached_file

        found = []
        for file in ("model.safetensors", "tokenizer.json"):
            try:
                path = cached_file(self.settings.model, file, revision=self.settings.revision)
            except (OSError, ValueError) as error:
                raise ValueError(
                    f"no {file} of {self.settings.model!r} on this machine or on the hub "
                    f"({str(error).splitlines()[0]}); name a folder that holds the model, or {MINILM}"
                ) from None
            found.append(Path(path))
        return found[0], found[1]

    def _weights_digest(self) -> str:
        if self.settings.model == MINILM:
            return named("minilm").sha256  # what `find` checks
        with self._files()[0].open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self._files()[1]))
        tokenizer.no_padding()
        tokenizer.enable_truncation(self.settings.max_tokens)
        return tokenizer

    @cached_property
    def _model(self) -> Any:
        import torch
        from safetensors.torch import load_file
        from transformers import MODEL_MAPPING

        weights, _ = self._files()
        model, found = MODEL_MAPPING[type(self._config)].from_pretrained(
            None, config=self._config, state_dict=load_file(weights), output_loading_info=True
        )
        if lacking := sorted(key for key in found["missing_keys"] if not key.startswith("pooler.")):
            raise ValueError(
                f"{weights} lacks {lacking[0]} and {len(lacking) - 1} more tensors, which would be random numbers; "
                "name a model that is whole"
            )
        device = "cpu"
        if torch.cuda.is_available():
            from accelerate import PartialState

            device = PartialState().device
        return model.to(device=device, dtype=getattr(torch, self.settings.dtype)).eval()


def usual_embedder(name: str = "") -> Embedder:
    """Make the embedder with this name; where none is named MiniLM if its weights are on this machine, else lexical."""
    there = all(named(asset).path.is_file() for asset in ("minilm", "minilm-tokenizer"))
    return embedder_named(name or ("minilm" if there else "lexical"))


def embedder_named(name: str) -> Embedder:
    """Make an embedder: "lexical", "minilm", a model id or a folder with a model, a TOML file of `SentenceSettings` or
    those as JSON. Nothing is loaded or looked for yet. Raises ValueError."""
    if name == "lexical":
        return LexicalEmbedder()
    if name in ("minilm", MINILM):
        return SentenceEmbedder(SentenceSettings(model=MINILM))
    if name.endswith(".toml"):
        return SentenceEmbedder(read_toml(Path(name), SentenceSettings))
    if name.startswith("{"):
        try:
            return SentenceEmbedder(SentenceSettings.model_validate_json(json.dumps(json.loads(name))))
        except ValidationError as error:
            raise ValueError("; ".join(mistakes(error, SentenceSettings))) from None
    if "/" in name:
        return SentenceEmbedder(SentenceSettings(model=name))
    raise ValueError(
        unknown("embedder", name, ("lexical", "minilm"))
        + "; or a model id as owner/name, a folder, a TOML file"
    )
