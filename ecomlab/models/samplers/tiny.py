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


class _Panels:
    """Keys, (L, slots, heads, panels, D, 16), and values, (L, slots, heads, D / 16, positions, 16), as the kernel
    reads them, behind the interface of `_RowCache` that `CachedSampler` uses."""

    def __init__(self, config: Any) -> None:
        self._sizes = (config.num_hidden_layers, config.num_key_value_heads, config.head_dim)
        self.slots = self.capacity = 0
        self._make()

    @property
    def bytes(self) -> int:
        """Bytes held now."""
        return int(self.keys.nbytes + self.values.nbytes)

    def _make(self) -> None:
        layers, heads, size = self._sizes
        count = -(-self.capacity // 16)
        self.keys = np.zeros((layers, self.slots, heads, count, size, 16), dtype=np.float32)
        self.values = np.zeros((layers, self.slots, heads, size // 16, 16 * count, 16), dtype=np.float32)
        self.place = np.arange(self.slots)
        """Where the arrays have a slot's content."""

    def resize(self, slots: int, capacity: int) -> None:
        """Resize to `slots` rows with room for `capacity` tokens, keeping the content that fits."""
        if (slots, capacity) == (self.slots, self.capacity):
            return
        keys, values, kept = self.keys, self.values, self.place[: min(slots, self.slots)]
        self.slots, self.capacity = slots, capacity
        self._make()
        count = min(keys.shape[3], self.keys.shape[3])
        self.keys[:, : len(kept), :, :count] = keys[:, kept, :, :count]
        self.values[:, : len(kept), :, :, : 16 * count] = values[:, kept, :, :, : 16 * count]

    def swap(self, a: int, b: int, width: int) -> None:
        """Exchange two rows."""
        self.place[[a, b]] = self.place[[b, a]]


class TinySampler(CachedSampler):
    """`CachedSampler` for models that `plays` accepts: the same tokens but for rounding, several times as fast.

    A row's result does not depend on the other rows of the batch at all. Weights are read at every `start`.
    """

    name = "tiny-1"

    def __init__(self, model: Any, stop_ids: Sequence[int], limits: Limits | None = None, temperature: float = 1.0,
                 greedy: bool = False) -> None:  # fmt: skip
        super().__init__(model, stop_ids, limits, temperature, greedy)
        self._cache = _Panels(model.config)

    def start(self, streams: Sequence[np.random.Generator]) -> None:
        """Open `len(streams)` rows for the model's current weights."""
        self._weights = packed(self.model, self.limits.context)
        super().start(streams)

    def _read(self, rows: Sequence[int], chunks: Sequence[Sequence[int]]) -> Any:
        """Feed `chunks[i]` to the row at slot i; return the logits after each chunk's last token."""
        from ecomlab.models.samplers.tiny_kernel import read

        sizes = np.array([len(chunk) for chunk in chunks])
        ends = np.cumsum(sizes)
        began = self._length[: len(rows)]
        width = int((began + sizes).max())
        if width > self._cache.capacity:
            self._make_room(width)
        ids = np.array([token for chunk in chunks for token in chunk])
        if ids.min() < 0 or ids.max() >= self.model.config.vocab_size:  # the kernel would read any memory
            raise IndexError(f"token ids must be below {self.model.config.vocab_size}, not {ids.max()}")
        positions = np.arange(len(ids)) + np.repeat(began - ends + sizes, sizes)
        slots = np.repeat(self._cache.place[: len(rows)], sizes)
        logits = read(self._weights, self._cache.keys, self._cache.values, ids, slots, positions, ends - 1)
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
