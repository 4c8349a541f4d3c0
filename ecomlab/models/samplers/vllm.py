"""Sampling by vLLM, on a server or beside the trainer, through TRL's `VLLMGeneration`, which sends it our weights.

vLLM draws its own random numbers, and its tokens depend on the rest of the batch: a run with vLLM can be resumed, but
not repeated token by token. Every turn sends the whole conversation; an engine's prefix cache makes that cheap, and is
emptied with every new set of weights. Of several engines behind one address each turn may meet another, which reads the
conversation anew.
"""

import functools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ecomlab.models.samplers.cached import Limits, Sampled, SamplerError

PATIENCE = 900.0
"""Maximum seconds of a server for one turn of a batch."""
RESETS, PAUSE = 10, 3.0
"""Maximum number of attempts to empty the prefix cache, which fails while requests run, and seconds between them."""


class VllmSampler:
    """A `Sampler` on a `VLLMGeneration` of TRL, or anything with its interface.

    In server mode only the main process may sample; colocated, every process samples from its own engine. The weights
    are those of the last `sync_weights`.
    """

    def __init__(
        self, generation: Any, stop_ids: Sequence[int], limits: Limits | None = None, greedy: bool = False
    ) -> None:
        self.generation = generation
        self.stop_ids = tuple(stop_ids)
        self.limits = limits or Limits()
        self.greedy = greedy
        self._ids: list[list[int]] = []
        self._said: list[int] = []

    def start(self, streams: Sequence[np.random.Generator]) -> None:
        """Open `len(streams)` rows. The streams are not used: vLLM draws its own random numbers."""
        self._ids = [[] for _ in streams]
        self._said = [0] * len(streams)

    def turn(self, rows: Sequence[int], inputs: Sequence[Sequence[int]]) -> list[Sampled]:
        """Sample an answer for each of `rows`; none is left unfinished.

        Raises SamplerError when vLLM does not answer at all. An answer without usable log-probabilities is our failure
        and leaves that row's episode unscored.
        """
        for row, new in zip(rows, inputs, strict=True):
            self._ids[row] += new
        room = {row: self._room(row) for row in rows}
        asked = [row for row in rows if room[row] > 0]
        said = {row: Sampled([], [], truncated=True) for row in rows}
        if asked:
            most = max(room[row] for row in asked)
            for row, answer in zip(asked, self._ask([self._ids[row] for row in asked], most), strict=True):
                said[row] = self._cut(*answer, room[row])
        for row in rows:
            self._ids[row] += said[row].ids
            self._said[row] += len(said[row].ids)
        return [said[row] for row in rows]

    def _room(self, row: int) -> int:
        """Count the tokens this row may still sample in this turn."""
        limits = self.limits
        return min(limits.turn, limits.episode - self._said[row], limits.context - len(self._ids[row]))

    def _cut(self, ids: list[int], logprobs: Sequence[Any] | None, room: int) -> Sampled:
        """Cut a row's answer at its own limit."""
        kept = list(ids[:room])
        truncated = not kept or kept[-1] not in self.stop_ids
        if not kept:
            return Sampled([], [], True, failure="vLLM returned no token")
        nothing = [0.0] * len(kept)
        if logprobs is None or len(logprobs) != len(ids):
            return Sampled(kept, nothing, truncated, failure="vLLM returned no log-probabilities")
        chosen = [_number(entry) for entry in logprobs[:room]]
        if any(np.isnan(chosen)):
            return Sampled(kept, nothing, truncated, failure="vLLM returned log-probabilities that are NaN")
        return Sampled(kept, chosen, truncated)

    def _ask(self, prompts: list[list[int]], most: int) -> list[tuple[list[int], Sequence[Any] | None]]:
        """Request ids and log-probabilities for each prompt."""
        generation = self.generation
        more = {"stop_token_ids": list(self.stop_ids)}
        temperature = 0.0 if self.greedy else 1.0
        try:
            if generation.mode == "server":
                answer = generation.vllm_client.generate(
                    prompts=prompts, n=1, temperature=temperature, top_p=1.0, top_k=0, min_p=0.0,
                    repetition_penalty=1.0, max_tokens=most, logprobs=0, generation_kwargs=more,
                )  # fmt: skip
                ids, logprobs = answer["completion_ids"], answer["logprobs"]
            else:
                before = generation.generation_kwargs
                generation.generation_kwargs = {
                    **before, **more, "max_tokens": most, "temperature": temperature,
                }  # fmt: skip
                try:
                    _, ids, logprobs, _ = generation.generate(prompts=prompts, images=None, num_generations=1)
                finally:
                    generation.generation_kwargs = before
        except Exception as error:  # requests, vLLM and its engine raise errors of their own
            raise SamplerError(
                f"{_who(generation)} failed ({type(error).__name__}: {error}); {way_out(generation.mode)}"
            ) from error
        if len(ids) != len(prompts):
            raise SamplerError(
                f"{_who(generation)} answered {len(ids)} of {len(prompts)} prompts; {way_out(generation.mode)}"
            )
        return list(zip(ids, logprobs if logprobs is not None else [None] * len(ids), strict=True))


def _number(entry: Any) -> float:
    """Read the sampled token's log-probability, which vLLM may give as [value], with None for "not a number"."""
    value = entry[0] if isinstance(entry, list | tuple) else entry
    return float("nan") if value is None else float(value)


def limit_patience(generation: Any, seconds: float = PATIENCE) -> None:
    """Make requests to a server fail after `seconds` without an answer; TRL's client would wait forever. It would also
    send such a request again, while the server still works on the first: only connections that failed and answers that
    were errors are tried again.
    """
    if generation.mode == "server" and hasattr(generation, "vllm_client"):
        session = generation.vllm_client.session
        session.request = functools.partial(session.request, timeout=seconds)
        for adapter in session.adapters.values():
            adapter.max_retries = adapter.max_retries.new(read=0)


def insist_on_resets(generation: Any, pause: float = PAUSE) -> None:
    """Raise SamplerError if vLLM does not empty its prefix cache after new weights, after `RESETS` attempts `pause`
    seconds apart. TRL ignores the answer, and results of the old weights would pass for those of the new."""
    server = generation.mode == "server"
    if server and not hasattr(generation, "vllm_client"):  # which only the main process has
        return
    engine = generation.vllm_client if server else generation.llm
    ask = functools.partial(_reset_server, engine) if server else engine.reset_prefix_cache

    def reset() -> None:
        for left in reversed(range(RESETS)):
            if ask() is not False:
                return
            time.sleep(pause if left else 0)
        raise SamplerError(
            f"{_who(generation)} keeps the prefix cache of older weights, as requests seem to be running; "
            f"{way_out(generation.mode)}"
        )

    engine.reset_prefix_cache = reset


class Sleep:
    """Memory of a colocated vLLM, given back while the policy is trained.

    TRL's own sleep mode ends every call, so that each turn of an episode would send all weights again. Here the engine
    sleeps when it is told to, and wakes with the next `sync_weights`; asleep, it has no weights.
    """

    def __init__(self, generation: Any) -> None:
        """Take over a `VLLMGeneration` that has been started with `enable_sleep_mode`, which is asleep."""
        self.engine, self.send = generation.llm, generation.sync_weights
        self.asleep = True
        generation.enable_sleep_mode = False
        generation.sync_weights = self.wake

    def wake(self) -> None:
        """Send the weights, after making room for them if the engine is asleep."""
        if self.asleep:
            torch.cuda.empty_cache()
            self.engine.wake_up(tags=["weights"])
        self.send()
        if self.asleep:
            self.engine.wake_up(tags=["kv_cache"])
        self.asleep = False

    def sleep(self) -> None:
        """Drop weights, keys and values (vLLM's level 2)."""
        if not self.asleep:
            self.engine.sleep(level=2)
        self.asleep = True


def _reset_server(client: Any) -> Any:
    """Ask a server to empty its prefix cache and return whether it did."""
    # Of several engines only the first one's answer comes back; where requests are reset too, a failure raises.
    answer = client.session.post(f"{client.base_url}/reset_prefix_cache?reset_running_requests=true")
    answer.raise_for_status()
    return answer.json().get("success")


def _who(generation: Any) -> str:
    return (
        f"the vLLM server at {generation.server_base_url}"
        if generation.mode == "server"
        else "the colocated vLLM"
    )


def way_out(mode: str) -> str:
    """State the way out after a failure of vLLM, on a server or colocated."""
    first = (
        "start it again with the line that `ecomlab train --dry-run` prints"
        if mode == "server"
        else "if memory ran out, lower vllm_memory or micro_batch"
    )
    return f"{first}, then run again: the run goes on from its last checkpoint"
