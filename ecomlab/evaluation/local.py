"""Local weights as a contestant; any policy that `load_policy` knows is played in lockstep."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Any

from ecomlab.evaluation.contestant import Job, Played, Usage
from ecomlab.evaluation.customers import customer_identity, customer_notes, customer_usage
from ecomlab.evaluation.faults import faults_of_rollout
from ecomlab.evaluation.heldout import BATCH, check_decoding
from ecomlab.models.batch import Rollout, draw_task, play_each
from ecomlab.seeding import rng
from ecomlab.suggest import raised

if TYPE_CHECKING:
    from ecomlab.catalog import Shop
    from ecomlab.customer.llm import Chat
    from ecomlab.models.policy import Policy
    from ecomlab.models.samplers.cached import Limits


class LocalContestant:
    """Weights in this process: any policy that `load_policy` knows. A job has the same random stream in any batch."""

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
    ) -> None:
        """`name` is for the record; `temperature` is that of sampling, `batch` the number of episodes at once,
        `customer` an endpoint that words the customers; `strict` episodes end with the first format error.

        Raises ValueError for an unknown decoding, and a temperature that is not positive.
        """
        from ecomlab.models.samplers.cached import CachedSampler, Limits

        if temperature <= 0:
            raise ValueError(f"temperature must be positive, not {temperature}; use greedy decoding instead")
        self.name, self.policy = name, policy
        self.decoding, self.temperature, self.at_once = check_decoding(decoding), temperature, batch
        self.limits, self.customer, self.strict = limits or Limits(), customer, strict
        self.sampler = CachedSampler(
            policy.model, policy.renderer.stop_ids, self.limits, temperature, greedy=decoding == "greedy"
        )
        self._digest = weights_digest(policy.model)

    @property
    def identity(self) -> Mapping[str, Any]:
        """The name, a digest of all weights, what they were made for or loaded as, decoding and limits."""
        sampling = {"temperature": self.temperature} if self.decoding == "sampled" else {}
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
        """The device that holds the weights."""
        return str(next(self.policy.model.parameters()).device)

    def play(self, jobs: Sequence[Job], shop: "Shop") -> Iterator[Played]:
        """Play the jobs, a batch at a time, and yield each episode as soon as it is over. A model that fails costs
        those of its batch that are not: they are unscored."""
        left = iter(jobs)
        while chunk := list(islice(left, self.at_once)):
            yield from self._play(chunk, shop)

    def _play(self, jobs: Sequence[Job], shop: "Shop") -> Iterator[Played]:
        tasks = [draw_task(job.env, job.d, job.seed, shop, job.axes) for job in jobs]
        streams = [stream_of(job) for job in jobs]
        rollouts = play_each(
            tasks, streams, shop, self.sampler, self.policy.renderer, None, self.customer, self.strict
        )
        left = dict(enumerate(jobs))
        while left:
            try:
                number, rollout = next(rollouts)
            except Exception as error:  # out of memory, logits that are NaN, a backend that is gone
                for job in left.values():
                    yield Played(job, None, unscored="sampler", notes={"why": raised(error)})
                return
            yield self._played(left.pop(number), rollout)

    def _played(self, job: Job, rollout: Rollout) -> Played:
        usage = {"agent": _usage(rollout)}
        if rollout.trajectory is None:
            kind = "task" if rollout.task is None else "bug"
            return Played(job, None, usage, unscored=kind, notes={"why": rollout.score.why})
        failed = {"why": rollout.score.why} if rollout.score.unscored else {}
        return Played(
            job=job,
            trajectory=rollout.trajectory,
            usage=usage | customer_usage(rollout.trajectory),
            faults=faults_of_rollout(rollout, self.limits.context),
            unscored="bug" if failed else "",
            notes={**failed, **customer_notes(rollout.trajectory)},
        )


def weights_digest(model: Any) -> str:
    """Digest every tensor of a model: names, types, shapes and bytes, as hexadecimal text."""
    import torch

    whole = hashlib.blake2b(digest_size=16)
    for name, tensor in sorted(model.state_dict().items()):
        whole.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        whole.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return whole.hexdigest()


def stream_of(job: Job) -> Any:
    """Make the random stream of a job; the first trial's is that of `play_held_out`."""
    return rng("evaluate", job.env, job.d, job.seed, *([job.trial] if job.trial else []))


def _usage(rollout: Rollout) -> Usage:
    """Count a rollout's tokens as an endpoint would: every turn's prompt is the whole conversation before it."""
    usage, read, place = Usage(seconds=rollout.seconds), 0, 0
    mask = rollout.mask
    while place < len(mask) and rollout.sampled:
        if not mask[place]:
            place += 1
            continue
        end = next((i for i in range(place, len(mask)) if not mask[i]), len(mask))
        prompt = len(rollout.prompt_ids) + place
        usage += Usage(1, prompt, cached_tokens=read, completion_tokens=end - place)
        read, place = prompt + end - place, end
    return usage
