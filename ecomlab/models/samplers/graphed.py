"""The sampler on a GPU: every decoding step is one replayed CUDA graph, and LoRA's adapters are merged.

Launched one by one from Python, the kernels of a step of an 8B take 0.1 s on any card, and half as much again with
adapters; the card itself needs about a tenth of that. A graph keeps shapes and addresses: therefore rows and widths are
rounded up, inputs and outputs have places of their own, and graphs are dropped when the cache or the weights move. On a
CPU the same steps run uncaptured, for tests.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ecomlab.models.samplers import merged
from ecomlab.models.samplers.cached import SMALL, CachedSampler, Limits, drawn, read, scores

WIDTH, WIDTHS = 128, 8
"""Widths are multiples of `WIDTH`, and at most `WIDTHS` of them lie between a number and its double: every one costs a
graph for each number of rows."""
FIRST = 1024
"""Initial capacity of the cache in tokens per row. It grows by doubling, because that drops all graphs."""


def sampler_kind(model: Any) -> type[CachedSampler]:
    """Return the kind of torch sampler for where the model is now."""
    return GraphedSampler if model.device.type == "cuda" else CachedSampler


class GraphedSampler(CachedSampler):
    """`CachedSampler` with graphs: the same tokens but for rounding. Prompts and tool results are read without one.

    Adapters are merged at every `start`, into a copy of the layers that have them; further changes of the weights are
    not sampled from before the next.
    """

    name = "graphed-1"

    def __init__(
        self,
        model: Any,
        stop_ids: Sequence[int],
        limits: Limits | None = None,
        temperature: float = 1.0,
        greedy: bool = False,
    ) -> None:
        super().__init__(model, stop_ids, limits, temperature, greedy)
        self._adapters = model if hasattr(model, "get_base_model") else None
        self._steps: dict[tuple[int, int], _Step] = {}  # by rows and width
        self._places: list[int] = []

    def start(self, streams: Sequence[np.random.Generator]) -> None:
        """Open `len(streams)` rows for the model's current weights."""
        if self._adapters is not None:
            if self.model is self._adapters:
                self.model = merged.plain_copy(self._adapters)
            merged.merge(self._adapters, self.model)
        places = [parameter.data_ptr() for parameter in self.model.parameters()]
        if places != self._places:
            self._places, self._steps = places, {}
        super().start(streams)

    def _width(self, columns: int) -> int:
        unit = max(WIDTH, (1 << (columns - 1).bit_length()) // (2 * WIDTHS))
        return min(-(-columns // unit) * unit, self.limits.context)

    def _rows(self, count: int) -> int:
        """Round a number of rows up to a power of two, but not beyond all rows of the batch."""
        return min(1 << (count - 1).bit_length(), len(self._streams)) if count else 0

    def _make_room(self, width: int) -> None:
        """Make the cache hold `width` tokens of each seated row. A large one frees the space of other rows when it
        grows."""
        cache, rows, capacity = self._cache, self._rows(len(self._row)), self._cache.capacity or FIRST
        if rows <= cache.slots and width <= cache.capacity:
            return
        capacity *= 2 if width > capacity else 1
        slots = rows if cache.bytes > SMALL else max(rows, cache.slots)
        self._steps = {}
        cache.resize(slots, min(max(width, capacity), self.limits.context))

    def _next(self, rows: Sequence[int], chunks: Sequence[Sequence[int]]) -> tuple[list[int], list[float]]:
        if any(len(chunk) != 1 for chunk in chunks):
            return super()._next(rows, chunks)
        count = len(rows)
        given = np.zeros((3, self._rows(count)))
        # Further rows of the graph write behind their own end, wherever that is: some go on in the next turn.
        length = self._length[: given.shape[1]]
        given[1, : len(length)] = length
        width = self._width(int(length[:count].max()) + 1)
        self._make_room(max(width, int(length.max()) + 1))
        given[0, :count] = [token for (token,) in chunks]
        if not self.greedy:
            given[2, :count] = [self._streams[row].random() for row in rows]
        token, logprob, broken = self._step(given.shape[1], width)(given)[:, :count]
        self._length[:count] += 1
        self._check(bool(broken.any()))
        return token.astype(int).tolist(), logprob.tolist()

    def _step(self, rows: int, width: int) -> "_Step":
        if (rows, width) not in self._steps:
            temperature = None if self.greedy else self.temperature
            pool: Any = next((step.pool for step in self._steps.values()), None)
            self._steps[rows, width] = _Step(self.model, self._cache, rows, width, temperature, pool)
        return self._steps[rows, width]


class _Step:
    """A decoding step of the first `rows` slots that reads `width` columns, between tensors that stay in place."""

    def __init__(
        self, model: Any, cache: Any, rows: int, width: int, temperature: float | None, pool: Any
    ) -> None:
        """`temperature` None stands for greedy decoding; graphs share the memory of a `pool`, as one runs at a time."""
        self.model, self.cache, self.width, self.temperature = model, cache, width, temperature
        device = model.get_output_embeddings().weight.device
        self.given_3B = torch.zeros(3, rows, dtype=torch.float64, device=device)
        self._run, self.pool = self.run, pool
        if device.type == "cuda":
            self._run, self.pool = captured(self.run, pool)

    def __call__(self, given_3B: np.ndarray) -> np.ndarray:
        """Read a token of each row at its position and choose the next with its uniform number: from (ids, positions,
        numbers), make (ids, log-probabilities, whether they are NaN), each for all rows."""
        self.given_3B.copy_(torch.from_numpy(given_3B))
        found: np.ndarray = self._run().cpu().numpy()
        return found

    def run(self) -> Tensor:
        ids_B, position_B = self.given_3B[:2].long()
        hidden = read(self.model, self.cache, ids_B[:, None], position_B[:, None], self.width)
        logp_BV = torch.log_softmax(scores(self.model, hidden[:, -1]) / (self.temperature or 1.0), dim=-1)
        token_B = logp_BV.argmax(-1) if self.temperature is None else drawn(logp_BV, self.given_3B[2])
        logp_B = logp_BV.gather(1, token_B[:, None])[:, 0]
        return torch.stack([token_B.double(), logp_B.double(), torch.isnan(logp_BV).any(-1).double()])


@cache
def _side_stream(device: int) -> Any:
    return torch.cuda.Stream(device)


def captured(run: Callable[[], Tensor], pool: Any) -> tuple[Callable[[], Tensor], Any]:
    """Capture `run` as a CUDA graph in the memory of `pool`, a new one if None; return its replay, and the pool.

    It runs once before, so that what is made at first use is there; therefore it must give the same when repeated.
    """
    stream, graph = _side_stream(torch.cuda.current_device()), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run()
    torch.cuda.current_stream().wait_stream(stream)
    with torch.cuda.graph(graph, pool=pool, stream=stream):
        found = run()

    def replay() -> Tensor:
        graph.replay()
        return found

    return replay, graph.pool()
