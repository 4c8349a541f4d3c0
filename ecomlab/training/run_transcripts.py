"""Transcripts of a training run: a few groups every so many steps, and the held-out episodes that were not correct."""

from collections.abc import Iterator, Mapping
from typing import Any

from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.evaluation import TRAINING, environment_of
from ecomlab.evaluation.local import transcript_of
from ecomlab.evaluation.transcript import Transcript
from ecomlab.models.batch import Rollout
from ecomlab.seeding import rng, shuffled
from ecomlab.training.config import TrainConfig
from ecomlab.training.rollouts import Collection

GROUPS = 2
"""Number of groups of a step that are written."""


def header_of(
    config: TrainConfig, fingerprint: str, identity: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Make the header of the run's transcripts; `identity` is the content of its config.json."""
    return {
        "kind": TRAINING,
        "player": config.starter,
        "identity": dict(identity or config.to_json()),
        "conditions": {
            "environments": {env: environment_of(env) for env in config.played},
            "catalog": {**config.catalog_place, "fingerprint": fingerprint},
            "reward": config.reward.by_name,
        },
    }


def of_groups(collection: Collection, step: int, config: TrainConfig) -> Iterator[Transcript]:
    """Choose groups of a step at random, discarded ones too, and make their transcripts; the rollouts of a group are
    numbered as trials. Yields nothing if the step is not due."""
    if not config.transcripts_every or step % config.transcripts_every:
        return
    chosen = shuffled(rng("transcripts", config.seed, step), range(len(collection.groups)))
    for number in sorted(chosen[:GROUPS]):
        group = collection.groups[number]
        notes: dict[str, Any] = {"group": number, "effective": group.effective(config.keep)}  # type: ignore[arg-type]
        notes |= {name: given for name in ("given", "planted") if (given := getattr(group.draw, name))}
        for trial, rollout in enumerate(group.rollouts):
            if rollout.task is not None:
                job = Job(
                    group.draw.env, group.draw.level, rollout.task.seed, trial, dict(rollout.task.overrides)
                )
                yield of_rollout(job, rollout, step, config, notes)


def of_rollout(
    job: Job, rollout: Rollout, step: int, config: TrainConfig, notes: Mapping[str, Any]
) -> Transcript:
    """Record a rollout of a training run."""
    return transcript_of(job, rollout, config.context_tokens, notes=notes, step=step)
