"""Weights in this process: any policy plays jobs in lockstep, as a contestant or for the tables of training."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from ecomlab.evaluation.contestant import (
    Job,
    Usage,
    customer_identity,
    customer_notes,
    customer_usage,
    note_turn,
)
from ecomlab.evaluation.faults import faults_of_rollout
from ecomlab.evaluation.transcript import Transcript
from ecomlab.models.batch import Named, Rollout, play_each
from ecomlab.models.environment_pool import EnvironmentPool, WorkerError, pool_of, workers_for
from ecomlab.reward import PUBLISHED, Weights
from ecomlab.seeding import rng
from ecomlab.suggest import raised, unknown

if TYPE_CHECKING:
    from ecomlab.catalog import Shop
    from ecomlab.customer.llm import Chat
    from ecomlab.models.policy import Policy
    from ecomlab.models.samplers.cached import Limits, Sampler

DECODINGS = ("sampled", "greedy")
BATCH = 128
"""Concurrent episodes of a small policy."""


def check_decoding(name: str) -> str:
    """Return the name of a decoding. Raises ValueError if it is unknown."""
    if name not in DECODINGS:
        raise ValueError(unknown("decoding", name, DECODINGS))
    return name


def play_jobs(
    policy: "Policy",
    jobs: Sequence[Job],
    shop: "Shop",
    sampler: "Sampler",
    *,
    batch: int = BATCH,
    pool: EnvironmentPool | None = None,
    customer: "Chat | None" = None,
    strict: bool = False,
    weights: Weights = PUBLISHED,
) -> Iterator[tuple[Job, Rollout]]:
    """Play jobs of any environments and levels, `batch` at a time, and yield each as soon as it is over.

    A job has the same task and the same random stream in any batch and for every policy, so that results are paired.
    The workers of `pool` play the episodes. `customer` words the customers; `strict` episodes end at the first format
    error; `weights` are the reward's. Raises the errors of the sampler, and WorkerError.
    """
    for start in range(0, len(jobs), batch):
        chunk = jobs[start : start + batch]
        starts = [Named(job.env, job.d, job.seed, job.axes, weights) for job in chunk]
        streams = [stream_of(job) for job in chunk]
        played = play_each(starts, streams, shop, sampler, policy.renderer, None, pool, customer, strict)
        for number, rollout in played:
            yield chunk[number], rollout


def stream_of(job: Job) -> Any:
    """Return the random stream of a job."""
    return rng("evaluate", job.env, job.d, job.seed, *([job.trial] if job.trial else []))


def transcript_of(
    job: Job,
    rollout: Rollout,
    context: int,
    *,
    notes: Mapping[str, Any] | None = None,
    step: int | None = None,
) -> Transcript:
    """Record a rollout; `context` is the token limit of its whole episode."""
    turns, noted, unscored = _turns(rollout), dict(notes or {}), ""
    usage = {"agent": replace(sum(turns, Usage()), seconds=sum(rollout.seconds))}
    if rollout.score.unscored:
        unscored = "task" if rollout.task is None else "bug"
        noted["why"] = rollout.score.why
    if rollout.trajectory is not None:
        usage |= customer_usage(rollout.trajectory)
        noted |= customer_notes(rollout.trajectory)
        said = sum(message["role"] == "assistant" for message in rollout.trajectory.messages)
        given = said + (rollout.end == "truncated") - len(turns)  # first turns that the policy did not sample
        for turn in (*[Usage()] * given, *turns):
            note_turn(noted, turn)
    faults = faults_of_rollout(rollout, context)
    return Transcript.of(job, rollout.trajectory, usage, faults, unscored, noted, step=step)


def _turns(rollout: Rollout) -> list[Usage]:
    """Count the tokens of each turn as an endpoint does: its prompt is the whole conversation before it."""
    turns, read, place = list[Usage](), 0, 0
    mask, seconds = rollout.mask, iter(rollout.seconds)
    while place < len(mask) and rollout.sampled:
        if not mask[place]:
            place += 1
            continue
        end = next((i for i in range(place, len(mask)) if not mask[i]), len(mask))
        prompt = len(rollout.prompt_ids) + place
        turns.append(Usage(1, prompt, read, end - place, seconds=next(seconds, 0.0)))
        read, place = prompt + end - place, end
    return turns


class LocalContestant:
    """A policy of this process as a contestant."""

    def __init__(
        self,
        name: str,
        policy: "Policy",
        decoding: str = "sampled",
        temperature: float = 1.0,
        limits: "Limits | None" = None,
        batch: int = BATCH,
        customer: "Chat | None" = None,
        strict: bool = False,
        environment_workers: int = 0,
    ) -> None:
        """`name` is for the record, `batch` the number of concurrent episodes, `customer` an endpoint that words the
        customers; `strict` episodes end at the first format error. `environment_workers` processes play the
        environments; 0: `workers_for` the device.

        Raises ValueError for an unknown decoding, and a temperature that is not positive.
        """
        from ecomlab.models.samplers.cached import Limits
        from ecomlab.models.samplers.tiny import sampler_of

        if temperature <= 0:
            raise ValueError(f"temperature must be positive, not {temperature}; for 0 use greedy decoding")
        self.name, self.policy = name, policy
        self.decoding, self.temperature, self.batch = check_decoding(decoding), temperature, batch
        self.limits, self.customer, self.strict = limits or Limits(), customer, strict
        self.environment_workers = environment_workers
        self.sampler = sampler_of(
            policy.model, policy.renderer.stop_ids, self.limits, temperature, greedy=decoding == "greedy"
        )
        self._digest = weights_digest(policy.model)

    @property
    def identity(self) -> Mapping[str, Any]:
        """Name, digest of all weights, the environments and catalog they were made for, decoding and limits."""
        sampling: dict[str, Any] = {"temperature": self.temperature} if self.decoding == "sampled" else {}
        if self.sampler.name != "torch":  # which older records do not name
            sampling["sampler"] = self.sampler.name
        return {
            "kind": "local",
            "model": self.name,
            "weights": self._digest,
            "made_for": dict(self.policy.made_for),
            "decoding": self.decoding,
            **sampling,
            "limits": asdict(self.limits),
            "strict": self.strict,
            **customer_identity(self.customer),
        }

    @property
    def device(self) -> str:
        """The device of the weights."""
        return str(next(self.policy.model.parameters()).device)

    def play(self, jobs: Sequence[Job], shop: "Shop") -> Iterator[Transcript]:
        """Play the jobs, a batch at a time. If the model fails, the running episodes of the batch are unscored. Raises
        WorkerError."""
        workers = 1 if self.customer else self.environment_workers or workers_for(self.device)
        options: dict[str, Any] = {"customer": self.customer, "strict": self.strict}
        with pool_of(workers, shop, self.policy.renderer) as pool:
            for start in range(0, len(jobs), self.batch):
                chunk = jobs[start : start + self.batch]
                left = list(chunk)
                try:
                    for job, rollout in play_jobs(
                        self.policy, chunk, shop, self.sampler, batch=self.batch, pool=pool, **options
                    ):
                        left.remove(job)
                        yield transcript_of(job, rollout, self.limits.context)
                except WorkerError:
                    raise  # every later batch would fail too
                except Exception as error:  # out of memory, NaN logits, a lost backend
                    for job in left:
                        yield Transcript.of(job, None, unscored="sampler", notes={"why": raised(error)})


def weights_digest(model: Any) -> str:
    """Digest every tensor of a model: names, types, shapes and bytes, as hexadecimal text."""
    import torch

    whole = hashlib.blake2b(digest_size=16)
    for name, tensor in sorted(model.state_dict().items()):
        whole.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        whole.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return whole.hexdigest()
