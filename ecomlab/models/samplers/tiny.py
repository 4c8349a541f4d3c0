"""The sampler of tiny policies on a CPU: `CachedSampler`'s turns over the compiled kernel of `tiny_kernel`."""

import logging
import os
import platform
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import torch

from ecomlab.models.samplers.cached import CachedSampler, Limits
from ecomlab.models.samplers.graphed import sampler_kind

CHOICE = "ECOMLAB_SAMPLER"
"""Environment variable; "torch" selects the torch sampler for every model."""
LARGEST = 10_000_000
"""Parameters up to which a model is read by the kernel: larger ones are bound by arithmetic, where torch is as good."""


@cache
def is_compiled_here() -> bool:
    """Tell whether the kernel runs here: with numba, on a processor with AVX2 and fused multiply-adds or on 64-bit ARM.
    If not, the reason is logged, once."""
    try:
        import numba  # noqa: F401 - it refuses a NumPy that it does not know by ImportError
        from llvmlite.binding import get_host_cpu_features
    except ImportError as error:
        return _log_torch(f"numba cannot be imported ({error})")
    features = get_host_cpu_features()
    if platform.machine() in ("arm64", "aarch64") or (features.get("avx2") and features.get("fma")):
        return True
    return _log_torch("this processor has no AVX2")


def _log_torch(reason: str) -> bool:
    logging.getLogger(__name__).warning(
        "%s: torch samples, with the same tokens but several times slower", reason
    )
    return False


def plays(model: Any) -> bool:
    """Tell whether the kernel computes this model: a small Qwen3 without adapters, in float32, on a CPU."""
    if type(model).__name__ != "Qwen3ForCausalLM":
        return False
    config, parameters = model.config, list(model.parameters())
    sizes = (config.hidden_size, config.intermediate_size, config.head_dim)
    return (
        all(p.dtype == torch.float32 and p.device.type == "cpu" for p in parameters)
        and sum(p.numel() for p in parameters) <= LARGEST
        and all(size % 16 == 0 for size in sizes)
        and set(config.layer_types) == {"full_attention"}
        and model.model.rotary_emb.rope_type == "default"
        and config.hidden_act == "silu"
        and not config.attention_bias
        and not any(type(module).__module__.startswith("peft") for module in model.modules())
        and is_compiled_here()  # last: it logs why not, which matters to no other model
    )


def packed(model: Any, context: int) -> Any:
    """Pack the current weights of a model that `plays` accepts, with the angles of `context` positions."""
    from ecomlab.models.samplers.tiny_kernel import Weights, panels

    def plain(tensor: Any) -> np.ndarray:
        return np.ascontiguousarray(tensor.detach().numpy())

    def stacked(*names: str) -> np.ndarray:
        """Stack matrices, joined side by side, by layer."""
        return np.stack(
            [
                panels(np.concatenate([plain(layer.get_submodule(name).weight) for name in names]))
                for layer in layers
            ]
        )

    def norms(name: str) -> np.ndarray:
        return np.stack([plain(layer.get_submodule(name).weight) for layer in layers])

    decoder, config = model.model, model.config
    layers = decoder.layers
    positions = np.arange(context, dtype=np.float32)
    angles = (positions[:, None] * plain(decoder.rotary_emb.inv_freq)).astype(np.float64)
    return Weights(
        embedding=plain(decoder.embed_tokens.weight),
        before=norms("input_layernorm"),
        query_norm=norms("self_attn.q_norm") * np.float32(config.head_dim**-0.5),
        key_norm=norms("self_attn.k_norm"),
        attention=stacked("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
        output=stacked("self_attn.o_proj"),
        between=norms("post_attention_layernorm"),
        feed=stacked("mlp.gate_proj", "mlp.up_proj"),
        down=stacked("mlp.down_proj"),
        norm=plain(decoder.norm.weight),
        head=panels(plain(model.lm_head.weight)),
        cosine=np.cos(angles).astype(np.float32),
        sine=np.sin(angles).astype(np.float32),
        epsilon=np.float32(config.rms_norm_eps),
    )


class _Pages:
    """The pool of pages of keys and values that the kernel reads, and which of them each row has."""

    def __init__(self, config: Any) -> None:
        from ecomlab.models.samplers.tiny_kernel import PAGE

        layers, heads, size = config.num_hidden_layers, config.num_key_value_heads, config.head_dim
        self.keys = np.empty((0, layers, heads, PAGE // 16, size, 16), dtype=np.float32)
        self.values = np.empty((0, layers, heads, size // 16, PAGE, 16), dtype=np.float32)
        self.open(0, 0)

    def open(self, rows: int, most: int) -> None:
        """Free all pages, then open `rows` rows of at most `most` pages."""
        self._free = [*reversed(range(len(self.keys)))]
        self.pages = np.zeros((rows, most), dtype=np.int64)
        self.held = np.zeros(rows, dtype=np.int64)

    def fill(self, row: int, count: int) -> None:
        """Let a row hold `count` pages. The pool grows by half, because growing copies it."""
        while self.held[row] < count:
            if not self._free:
                known = len(self.keys)
                more = max(16, known // 2)
                self.keys, self.values = (
                    np.concatenate([a, np.empty((more, *a.shape[1:]), a.dtype)])
                    for a in (self.keys, self.values)
                )
                self._free = [*reversed(range(known, known + more))]
            self.pages[row, self.held[row]] = self._free.pop()
            self.held[row] += 1

    def keep(self, rows: Sequence[int]) -> None:
        """Free the pages of all other rows."""
        for row in set(np.flatnonzero(self.held)).difference(rows):
            self._free += self.pages[row, : self.held[row]].tolist()
            self.held[row] = 0

    def swap(self, a: int, b: int, width: int) -> None:
        """Do nothing: a row keeps its pages in any slot."""


class TinySampler(CachedSampler):
    """`CachedSampler` for models that `plays` accepts: the same tokens but for rounding, several times as fast.

    A row's result does not depend on the other rows of the batch at all. Weights are read at every `start`.
    """

    name = "tiny-1"

    def __init__(self, model: Any, stop_ids: Sequence[int], limits: Limits | None = None, temperature: float = 1.0,
                 greedy: bool = False) -> None:  # fmt: skip
        super().__init__(model, stop_ids, limits, temperature, greedy)
        self._cache = _Pages(model.config)

    def start(self, streams: Sequence[np.random.Generator]) -> None:
        """Open `len(streams)` rows for the model's current weights."""
        from ecomlab.models.samplers.tiny_kernel import PAGE

        self._weights = packed(self.model, self.limits.context)
        self._cache.open(len(streams), -(-self.limits.context // PAGE))
        super().start(streams)

    def _make_room(self, width: int) -> None:
        self._cache.keep(self._row)

    def _read(self, rows: Sequence[int], chunks: Sequence[Sequence[int]]) -> Any:
        """Feed `chunks[i]` to the row at slot i; return the logits after each chunk's last token."""
        from ecomlab.models.samplers.tiny_kernel import PAGE, read

        sizes = np.array([len(chunk) for chunk in chunks])
        ends = np.cumsum(sizes)
        began = self._length[: len(rows)]
        cache = self._cache
        for row, count in zip(rows, (-(-(began + sizes) // PAGE)).tolist(), strict=True):
            cache.fill(row, count)
        ids = np.array([token for chunk in chunks for token in chunk])
        if ids.min() < 0 or ids.max() >= self.model.config.vocab_size:  # the kernel would read any memory
            raise IndexError(f"token ids must be below {self.model.config.vocab_size}, not {ids.max()}")
        positions = np.arange(len(ids)) + np.repeat(began - ends + sizes, sizes)
        owners = np.repeat(np.asarray(rows), sizes)
        logits = read(self._weights, cache.keys, cache.values, cache.pages, ids, owners, positions, ends - 1)
        self._length[: len(rows)] += sizes
        return logits

    def _choose(self, logits: Any, rows: Sequence[int]) -> tuple[list[int], list[float]]:
        from ecomlab.models.samplers.tiny_kernel import choose

        uniforms = np.array([0.0 if self.greedy else self._streams[row].random() for row in rows])
        chosen, logprobs = np.empty(len(rows), dtype=np.int64), np.empty(len(rows), dtype=np.float32)
        temperature = np.float32(1.0 if self.greedy else self.temperature)
        choose(logits, self.model.config.vocab_size, temperature, uniforms, self.greedy, chosen, logprobs)
        self._check(bool(np.isnan(logprobs).any()))
        return chosen.tolist(), logprobs.tolist()


def sampler_of(
    model: Any,
    stop_ids: Sequence[int],
    limits: Limits | None = None,
    temperature: float = 1.0,
    greedy: bool = False,
) -> CachedSampler:
    """Make the fastest sampler of this process for a model: the kernel's if it `plays` it, else torch's, on a GPU by
    graphs."""
    kind = TinySampler if os.environ.get(CHOICE) != "torch" and plays(model) else sampler_kind(model)
    return kind(model, stop_ids, limits, temperature, greedy)
