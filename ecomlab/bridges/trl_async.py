"""TRL's asynchronous trainer, whose rollouts a stream of ecomlab draws and plays.

    worker = StreamWorker(stream, renderer, sampler)
    AsyncGRPOTrainer(model, args=config, train_dataset=NO_ROWS, rollout_worker=worker, callbacks=[SaveStream(stream)])

The trainer takes packing, limits of staleness and weight sync from TRL. `ServedSampler` samples from its vLLM server;
`LocalWeights` is for a policy in this process: pass it as `weight_transfer`, and the policy's own sampler. Groups that
were played and not trained when a run stopped stay reported and are not played again.
"""

import queue
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np
from datasets import Dataset
from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

from ecomlab.models.batch import Rollout, play_batch
from ecomlab.models.policy import Policy
from ecomlab.models.renderer import Renderer
from ecomlab.models.samplers.cached import Limits, Sampler
from ecomlab.models.samplers.vllm import VllmSampler
from ecomlab.seeding import rng
from ecomlab.training.objective import group_advantages
from ecomlab.training.stream import Stream

NO_ROWS = Dataset.from_dict({"prompt": [""]})
"""Stands for a data set, which the trainer asks for and never reads."""


class StreamWorker:
    """TRL's `RolloutWorkerProtocol`: plays `groups` of the stream at once in a thread, and queues those with non-zero
    advantage. The trainer's `max_steps` ends the run."""

    def __init__(
        self,
        stream: Stream,
        renderer: Renderer,
        sampler: Sampler,
        *,
        group_size: int = 8,
        groups: int = 4,
        waiting: int = 64,
    ) -> None:
        """`waiting` is the most samples in the queue before play pauses."""
        self.stream, self.renderer, self.sampler = stream, renderer, sampler
        self.group_size, self.groups, self.waiting = group_size, groups, waiting
        self.rollout_buffer: queue.Queue[RolloutSample] = queue.Queue()
        self.metrics_queue: queue.Queue[dict[str, float]] = queue.Queue()
        self.playing = threading.Lock()
        """Held while a batch is played: whoever changes the weights in this process takes it."""
        self._version, self._beat = 0, time.monotonic()
        self._error: Exception | None = None
        self._numbers = count()
        self._stopped, self._thread = threading.Event(), threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def update_model_version(self, model_version: int) -> None:
        self._version = model_version

    def check_health(self, stale_after_s: float) -> None:
        if self._error is not None:
            raise RuntimeError("the rollouts stopped") from self._error
        if time.monotonic() - self._beat > stale_after_s:
            raise RuntimeError(f"no group was played for {stale_after_s:.0f} s")

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                if self.rollout_buffer.qsize() >= self.waiting:
                    self._beat = time.monotonic()
                    self._stopped.wait(0.05)
                    continue
                with self.playing:
                    self._play()
                self._beat = time.monotonic()
        except Exception as error:  # raised to the trainer by check_health
            self._error = error

    def _play(self) -> None:
        """Play some groups in one batch, report them, and queue what trains."""
        version, tickets = self._version, [self.stream.next_group() for _ in range(self.groups)]
        starts = [start for start in map(self.stream.start, tickets) for _ in range(self.group_size)]
        streams = [
            rng("sample", *self.stream.key, *t.place, c) for t in tickets for c in range(self.group_size)
        ]
        rollouts = play_batch(starts, streams, self.stream.shop, self.sampler, self.renderer)
        for i, ticket in enumerate(tickets):
            number = next(self._numbers)
            group = rollouts[i * self.group_size : (i + 1) * self.group_size]
            self.stream.report(ticket, [rollout.score for rollout in group])
            self.metrics_queue.put({f"level/{ticket.draw.env}": float(ticket.draw.level)})
            for rollout, advantage in zip(
                group, group_advantages([r.score.value for r in group]), strict=True
            ):
                if advantage:
                    self.rollout_buffer.put(_sample(rollout, float(advantage), version, number))


def _sample(rollout: Rollout, advantage: float, version: int, group: int) -> RolloutSample:
    messages = [*rollout.trajectory.messages] if rollout.trajectory else []
    prompt = len(rollout.prompt_ids)
    return RolloutSample(
        prompt=messages[:2],
        completion=messages[2:],
        input_ids=np.array(rollout.prompt_ids + rollout.completion_ids),
        completion_mask=np.array([0] * prompt + rollout.mask),
        old_log_probs=np.array([0.0] * prompt + rollout.logprobs, np.float32),
        advantage=advantage,
        model_version=version,
        group_id=group,
        metrics={"reward": rollout.score.value, "correct": float(rollout.score.correct)},
        enqueued_at=time.time(),
    )


class LocalWeights:
    """TRL's `WeightTransferProtocol` for a policy in this process, between the batches that it plays."""

    def __init__(self, policy: Policy, worker: StreamWorker) -> None:
        self.policy, self.worker = policy, worker

    def init_weight_transfer(self) -> None: ...

    def pause(self) -> None:
        self.worker.playing.acquire()

    def send_weights(self, iterator: Iterator[tuple[str, Any]]) -> None:
        own = dict(self.policy.model.named_parameters())
        for name, value in iterator:
            own[name].data.copy_(value)

    def resume(self) -> None:
        self.worker.playing.release()

    def destroy(self) -> None: ...


class ServedSampler(VllmSampler):
    """Samples from `vllm serve`, the server of TRL's asynchronous trainer, in token ids."""

    def __init__(
        self,
        base_url: str,
        model: str,
        stop_ids: Sequence[int],
        limits: Limits | None = None,
        patience: float = 900.0,
    ) -> None:
        """`patience` is the most seconds for a turn of all rows."""
        from openai import OpenAI  # of the extra endpoint

        super().__init__(None, stop_ids, limits)
        self.model, self.client = (
            model,
            OpenAI(base_url=f"{base_url}/v1", api_key="-", timeout=patience, max_retries=2),
        )

    def _ask(self, prompts: list[list[int]], most: int) -> list[tuple[list[int], Sequence[Any] | None]]:
        more = {"stop_token_ids": list(self.stop_ids), "return_token_ids": True, "skip_special_tokens": False}
        answer = self.client.completions.create(
            model=self.model, prompt=prompts, max_tokens=most, temperature=1.0, top_p=1.0, logprobs=0, extra_body=more
        )  # fmt: skip
        return [
            (choice.token_ids, choice.logprobs and choice.logprobs.token_logprobs)
            for choice in answer.choices
        ]
