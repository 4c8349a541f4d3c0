"""Batched sampling from a causal language model, turn by turn, with one key-value cache kept for the whole episode.

A *row* is one conversation. `start` opens a batch of rows; `turn` appends the environment's tokens to some and samples
each row's answer up to a stop token. Rows advance in lockstep, except for a few stragglers. A token's place in the
cache is its position in its own row, so there are no gaps: padding falls beyond a row's end, where it is masked and
overwritten by the row's next real token. Rows with nothing left to do move behind the others, and are given back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from ecomlab.models.samplers.sampled import Sampled as Sampled
from ecomlab.seeding import rng

STRAGGLERS = 0.25
"""A call ends when at most this share of its rows is still generating."""
FIRST, GROWTH = 256, 1.25
"""Initial capacity of a cache in tokens per row, and its growth factor; every row has room for the longest."""
SMALL = 2**28
"""Bytes up to which a cache keeps the space of finished rows, because reallocation would cost more than it frees."""


class SamplerError(RuntimeError):
    """A backend that does not answer; the message states the way out."""


class Sampler(Protocol):
    """A generation backend (this one, vLLM, an endpoint), as `play_batch` uses it. Raises SamplerError."""

    def start(self, streams: Sequence[np.random.Generator]) -> None:
        """Open `len(streams)` new rows; row i draws its randomness from `streams[i]` alone."""

    def turn(self, rows: Sequence[int], inputs: Sequence[Sequence[int]]) -> Sequence[Sampled | None]:
        """Append `inputs[i]` to row `rows[i]` and sample its answer. Rows left out are never asked again.

        None for a row that has not finished its turn yet: ask it again, with an empty input.
        """


@dataclass(frozen=True)
class Limits:
    """Token limits at which a turn is cut off. Tool and customer tokens count only towards `context`."""

    turn: int = 256
    """Sampled tokens in one turn."""
    episode: int = 512
    """Sampled tokens in one episode."""
    context: int = 2048
    """All tokens of one episode: the physical length of the cache."""


class _RowCache:
    """Keys and values of all layers, shape (slots, heads, capacity, head size), allocated once and reused.

    Has as much of the interface of `transformers.Cache` as a decoder layer with a ready-made 4-D mask uses.
    """

    def __init__(self) -> None:
        self.layers: list[tuple[Tensor, Tensor]] = []
        self.slots = self.capacity = 0
        self._position: Tensor = torch.empty(0, 0, dtype=torch.long)
        self._row: Tensor = self._position
        self._width = 0

    @property
    def bytes(self) -> int:
        """Bytes held now."""
        return sum(keys.nbytes + values.nbytes for keys, values in self.layers)

    def resize(self, slots: int, capacity: int) -> None:
        """Resize to `slots` rows with room for `capacity` tokens, keeping the content that fits. One layer after
        another is copied."""
        if (slots, capacity) == (self.slots, self.capacity):
            return
        kept, filled = min(slots, self.slots), min(capacity, self.capacity)
        self.slots, self.capacity = slots, capacity
        for i in range(len(self.layers)):
            pair = []
            for old in self.layers[i]:
                new = self._new(old)
                new[:kept, :, :filled] = old[:kept, :, :filled]
                pair.append(new)
            self.layers[i] = (pair[0], pair[1])

    def _new(self, like: Tensor) -> Tensor:
        return like.new_zeros(self.slots, like.shape[1], self.capacity, like.shape[3])

    def at(self, position_BL: Tensor, width: int) -> None:
        """Set where the next forward pass writes: the tokens of the row at slot b go to its own positions; `width`
        columns are read."""
        self._position, self._width = position_BL, width
        self._row = torch.arange(len(position_BL), device=position_BL.device)[:, None]

    def update(self, keys: Tensor, values: Tensor, layer: int, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Store the new (B, heads, L, size) keys and values; return all that these rows have."""
        if layer == len(self.layers):
            self.layers.append((self._new(keys), self._new(values)))
        seen = []
        for store, new in zip(self.layers[layer], (keys, values), strict=True):
            store[self._row, :, self._position] = new.transpose(1, 2)
            seen.append(store[: len(self._row), :, : self._width])
        return seen[0], seen[1]

    def swap(self, a: int, b: int, width: int) -> None:
        """Exchange two rows."""
        for pair in self.layers:
            for store in pair:
                keep = store[a, :, :width].clone()
                store[a, :, :width] = store[b, :, :width]
                store[b, :, :width] = keep

    def get_seq_length(self, layer: int = 0) -> int:
        return self._width


def drawn(logp_BV: Tensor, uniforms: Sequence[float] | Tensor) -> Tensor:
    """Draw a token per row, (B,), by inverse transform sampling: each row with its own number from [0, 1)."""
    below_BV = logp_BV.double().exp().cumsum(dim=-1)
    uniform = torch.as_tensor(uniforms, dtype=torch.float64, device=below_BV.device)
    threshold = uniform[:, None] * below_BV[:, -1:]
    return (below_BV <= threshold).sum(dim=-1).clamp(max=logp_BV.shape[-1] - 1)


def read(model: Any, cache: _RowCache, ids_BL: Tensor, position_BL: Tensor, width: int) -> Tensor:
    """Feed tokens at their positions to the rows of the first slots; return the decoder's output, (B, L, hidden).
    `width` columns of the cache are read."""
    mask = torch.arange(width, device=ids_BL.device) <= position_BL[:, None, :, None]  # (B, 1, L, width)
    cache.at(position_BL, width)
    hidden: Tensor = model.get_decoder()(
        input_ids=ids_BL,
        attention_mask=mask,
        position_ids=position_BL,
        past_key_values=cache,
        use_cache=True,
    ).last_hidden_state
    return hidden


def scores(model: Any, hidden: Tensor) -> Tensor:
    """Compute logits, in float32 at least."""
    logits = model.get_output_embeddings()(hidden)
    return logits if logits.dtype == torch.float64 else logits.float()


@torch.no_grad()
def is_sampled_exactly(model: Any, context: int = 0) -> bool:
    """Tell whether `CachedSampler` samples from the model's own distribution, up to `context` tokens.

    A few tokens reveal models for which it does not: those whose layers keep more than keys and values, or whose logits
    are scaled or capped after the output layer. Sliding windows, which its mask ignores, are found in the
    configuration.
    """
    config = model.config.get_text_config()
    window, kinds = getattr(config, "sliding_window", None), getattr(config, "layer_types", None)
    if window and window < context and (kinds is None or "sliding_attention" in kinds):
        return False
    prompt, count = list(range(1, 9)), 4
    sampler = CachedSampler(model, (), Limits(count, count, 2 * len(prompt)), greedy=True)
    try:
        sampler.start([rng("sampled rightly")])
        (said,) = sampler.turn([0], [prompt])
    except FloatingPointError:  # numbers that are none are no matter of the sampler
        return True
    except Exception:  # a layer that does not take this cache may raise anything
        return False
    assert said is not None
    ids = torch.tensor([prompt + said.ids], device=model.device)
    logp = torch.log_softmax(model(ids).logits[0, len(prompt) - 1 : -1].float(), dim=-1)
    own = logp.gather(1, ids[0, len(prompt) :, None])[:, 0].tolist()
    most = 0.01 if model.dtype == torch.float32 else 0.25
    return all(abs(a - b) < most for a, b in zip(own, said.logprobs, strict=True))


class CachedSampler:
    """A sampler for any Hugging Face causal LM that takes a 4-D mask and explicit positions.

    Beyond floating-point rounding, a row's result does not depend on the other rows of the batch: it has its own
    positions, mask and random stream, of which each token takes one uniform number.
    """

    name = "torch"
    """Recorded with results: samplers of different names differ in rounding."""

    def __init__(
        self,
        model: Any,
        stop_ids: Sequence[int],
        limits: Limits | None = None,
        temperature: float = 1.0,
        greedy: bool = False,
    ) -> None:
        if temperature <= 0:
            raise ValueError(
                f"temperature must be positive, not {temperature}; pass greedy=True for greedy decoding"
            )
        self.model = model
        self.stop_ids = frozenset(stop_ids)
        self.limits = limits or Limits()
        self.temperature = temperature
        self.greedy = greedy
        self._cache: Any = _RowCache()

    def start(self, streams: Sequence[np.random.Generator]) -> None:
        """Open `len(streams)` rows; the last batch's entries in the cache are never read again."""
        rows = len(streams)
        self._streams = list(streams)
        self._slot = dict(enumerate(range(rows)))  # of a row
        self._row = list(range(rows))  # at a slot
        self._length = np.zeros(rows, dtype=np.int64)  # cached tokens, by slot
        self._pending: list[list[int]] = [[] for _ in range(rows)]  # sampled, not yet cached, by row
        self._said = [0] * rows  # sampled tokens so far, by row
        self._open: dict[int, tuple[list[int], list[float]]] = {}  # turns under way, by row
        self._make_room(0)

    @torch.no_grad()
    def turn(self, rows: Sequence[int], inputs: Sequence[Sequence[int]]) -> list[Sampled | None]:
        """Sample an answer for each of `rows` after appending `inputs`; in the order of `rows`.

        When most rows have answered, the last few (`STRAGGLERS`) are None: they continue in the next call, without
        input, beside the others' next turn.
        """
        training = self.model.training
        self.model.eval()  # otherwise layers under gradient checkpointing would ignore the cache
        try:
            return self._turn(rows, inputs)
        finally:
            self.model.train(training)

    def _turn(self, rows: Sequence[int], inputs: Sequence[Sequence[int]]) -> list[Sampled | None]:
        chunks = {row: self._pending[row] + list(new) for row, new in zip(rows, inputs, strict=True)}
        said = {row: self._open.pop(row, ([], [])) for row in rows}  # ids and log-probabilities in this turn
        stopped: set[int] = set()
        active = [row for row in rows if said[row][0] or self._fits(row, len(chunks[row]))]
        answered = len(rows) - len(active)
        self._seat(active)
        active = self._row[: len(active)]  # in the order of their slots
        while active:
            found = self._next(active, [chunks[row] for row in active])
            going = []
            for row, token, logprob in zip(active, *found, strict=True):
                ids, logprobs = said[row]
                ids.append(token)
                logprobs.append(logprob)
                chunks[row] = [token]
                if token in self.stop_ids:
                    stopped.add(row)
                elif len(ids) < self.limits.turn and self._fits(row, 1, len(ids)):
                    going.append(row)
            answered += len(active) - len(going)
            self._to_front(going)
            active = self._row[: len(going)]
            if answered and len(active) <= STRAGGLERS * len(rows):
                break
        self._open = {row: said[row] for row in active}
        for row in rows:
            self._pending[row] = said[row][0][-1:]
            if row not in self._open:
                self._said[row] += len(said[row][0])
        return [None if row in self._open else Sampled(*said[row], row not in stopped) for row in rows]

    def _fits(self, row: int, new: int, said: int = 0) -> bool:
        """Tell whether a row may read `new` tokens and sample one more."""
        cached = self._length[self._slot[row]] if row in self._slot else 0
        used = cached + new + 1
        return bool(self._said[row] + said < self.limits.episode and used <= self.limits.context)

    def _seat(self, active: Sequence[int]) -> None:
        """Assign the first slots to the rows of a turn, and none to other rows."""
        self._to_front(active)
        for row in self._row[len(active) :]:
            del self._slot[row]
        self._row, self._length = self._row[: len(active)], self._length[: len(active)]
        self._make_room(0)

    def _make_room(self, width: int) -> None:
        """Make the cache hold `width` tokens of each seated row. A large cache frees the space of other rows when it
        grows, and when they occupy half of it."""
        cache, rows, context = self._cache, len(self._row), self.limits.context
        capacity = cache.capacity or min(FIRST, context)
        if width > capacity:
            capacity = min(max(width, int(GROWTH * capacity)), context)
        slots = max(cache.slots, rows)
        if cache.bytes > SMALL and (capacity > cache.capacity or rows <= slots // 2):
            slots = rows
        cache.resize(slots, capacity)

    def _to_front(self, rows: Sequence[int]) -> None:
        """Move `rows` into the first slots with as few exchanges as possible."""
        wanted = set(rows)
        free = (slot for slot in range(len(rows)) if self._row[slot] not in wanted)
        for row in rows:
            here = self._slot[row]
            if here < len(rows):
                continue
            there = next(free)
            other = self._row[there]
            self._cache.swap(here, there, int(max(self._length[here], self._length[there], 1)))
            self._length[[here, there]] = self._length[[there, here]]
            self._row[there], self._row[here] = row, other
            self._slot[row], self._slot[other] = there, here

    def _width(self, columns: int) -> int:
        """Return the width that is read where the longest row has so many columns, padding included."""
        return min(columns, self.limits.context)

    def _next(self, rows: Sequence[int], chunks: Sequence[Sequence[int]]) -> tuple[list[int], list[float]]:
        """Feed `chunks[i]` to the row at slot i, and sample each row's next token: ids and log-probabilities."""
        return self._choose(self._read(rows, chunks), rows)

    def _read(self, rows: Sequence[int], chunks: Sequence[Sequence[int]]) -> Any:
        """Feed `chunks[i]` to the row at slot i; return the logits after each chunk's last token, (B, vocabulary).

        Padding that would lie beyond `limits.context` goes to its last column, which no real token ever has: a row that
        long is truncated before it reads its last token.
        """
        device = self.model.get_output_embeddings().weight.device
        sizes = np.array([len(chunk) for chunk in chunks])
        longest = int(sizes.max())
        ids_BL = np.zeros((len(rows), longest), dtype=np.int64)
        for i, chunk in enumerate(chunks):
            ids_BL[i, : len(chunk)] = chunk
        slots = slice(len(rows))
        start_B = torch.from_numpy(self._length[slots].copy()).to(device)
        width = self._width(int(self._length[slots].max()) + longest)
        position_BL = (start_B[:, None] + torch.arange(longest, device=device)).clamp(max=width - 1)
        if width > self._cache.capacity:
            self._make_room(width)
        hidden = read(self.model, self._cache, torch.from_numpy(ids_BL).to(device), position_BL, width)
        self._length[slots] += sizes
        last = torch.from_numpy(sizes - 1).to(device)
        return scores(self.model, hidden[torch.arange(len(rows), device=device), last])

    def _choose(self, logits_BV: Tensor, rows: Sequence[int]) -> tuple[list[int], list[float]]:
        """Choose a token per row: the likeliest, or by inverse transform sampling with the row's next random number."""
        logp_BV = torch.log_softmax(logits_BV / (1.0 if self.greedy else self.temperature), dim=-1)
        self._check(bool(torch.isnan(logp_BV).any()))
        if self.greedy:
            choice = logp_BV.argmax(dim=-1)
        else:
            choice = drawn(logp_BV, [self._streams[row].random() for row in rows])
        return choice.tolist(), logp_BV.gather(1, choice[:, None])[:, 0].tolist()

    @staticmethod
    def _check(broken: bool) -> None:
        """Raise FloatingPointError for logits that are NaN."""
        if broken:
            raise FloatingPointError(
                "the policy's logits are NaN: its training has diverged (start again with a lower lr), or its numbers "
                "overflow (try another dtype)"
            )
