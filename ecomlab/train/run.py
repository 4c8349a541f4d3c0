"""One training run: a frozen configuration in, two tables and checkpoints out, resumed by calling it again.

    config = TrainConfig(out="experiments/runs/demo", schedule="adaptive", steps=60, seed=0)
    train(config, progress=print)

writes `train.csv` (a row a step and environment), `eval.csv`, `config.json`, `checkpoints/` and at the end `done.json`.
"""

import fcntl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ecomlab.catalog import Shop, load_shop
from ecomlab.collector import EVALUATION_SEEDS, Collection, Refill, collect, play_batch
from ecomlab.episode import make_task
from ecomlab.naming import unknown
from ecomlab.scheduler import from_json
from ecomlab.seeding import rng
from ecomlab.train import checkpoints, tables
from ecomlab.train.backends import Limits
from ecomlab.train.config import COLLECTIONS, DECODINGS, ConfigError, TrainConfig
from ecomlab.train.policy import Policy, load_policy

__all__ = ["COLLECTIONS", "DECODINGS", "ConfigError", "RunError", "TrainConfig", "evaluate", "train"]

Progress = Callable[[dict[str, Any]], None]


class RunError(RuntimeError):
    """A run that cannot go on; finished work is on disk."""


def train(config: TrainConfig, progress: Progress | None = None) -> Path:
    """Run `config`, or go on where it stopped; returns the folder. A finished run returns at once.

    `progress` hears a dict after every step ({"kind": "step", "step", "steps", "rows", "seconds"}) and every
    evaluation ({"kind": "evaluation", "step", "steps", "rows"}).

    Raises ConfigError, PolicyError or CheckpointError before anything runs, RunError when a run cannot go on.
    """
    tell = progress or (lambda _: None)
    out = checkpoints.prepare_folder(Path(config.out))
    with _only_one(out), checkpoints.plain_errors(out):
        if _finished(out, config):
            return out
        _same_run(out, config)
        shop = load_shop(config.catalog_size, config.catalog_seed)
        policy = load_policy(config.starter, shop, config.envs)
        Run(config, out, shop, policy, tell).go()
    return out


class Run:
    """The moving parts of one run: schedule, tables, and the trainer that calls back."""

    def __init__(self, config: TrainConfig, out: Path, shop: Shop, policy: Policy, tell: Progress) -> None:
        self.config, self.out, self.shop, self.policy, self.tell = config, out, shop, policy, tell
        self.schedule = config.make_schedule()
        self.sampler = policy.sampler(Limits(config.turn_tokens, config.episode_tokens))
        self.head = {"schedule": config.schedule, "collection": config.collection, "seed": config.seed}
        self.window: dict[str, tuple[int, int]] = {}

    def go(self) -> None:
        """Resume from the newest sound checkpoint, if any, and train to the end."""
        from ecomlab.train.dapo import DapoTrainer, Settings

        config = self.config
        resume = checkpoints.newest(self.out / "checkpoints")
        if resume is not None:
            self.schedule = from_json(resume.extra["schedule"])
        done = resume.step if resume else 0
        tables.trim(self.out / "train.csv", done)
        tables.trim(self.out / "eval.csv", done)
        if not tables.has_step(self.out / "eval.csv", 0) and not done:
            self._evaluate(0)
        settings = Settings(
            out=self.out / "checkpoints",
            seed=config.seed,
            steps=config.steps,
            prompts=config.prompts_per_step,
            group_size=config.group_size,
            minibatches=config.minibatches,
            lr=config.lr,
            max_grad_norm=config.max_grad_norm,
            checkpoint_every=config.checkpoint_every,
            token_limit=config.episode_tokens,
            overlong_buffer=config.overlong_buffer,
        )
        trainer = DapoTrainer(
            self.policy.model, self.policy.tokenizer, settings, self._collect, self._after, self._save
        )
        trainer.train(resume_from_checkpoint=str(resume.folder) if resume else None)
        tables.write_json(self.out / "done.json", {"steps": config.steps, "config": config.to_json()})

    def _collect(self, number: int) -> Collection:
        """The rollouts of step `number` (from 0); the schedule moves on."""
        config = self.config
        self.window = {env: self.schedule.window(env) for env in config.envs}
        refill = Refill(config.prompts_per_step, config.group_size, config.rounds, config.keep)  # type: ignore[arg-type]
        key = ("train", config.seed, number)
        collection = collect(self.schedule, refill, key, self.shop, self.sampler, self.policy.renderer)
        self.schedule = collection.schedule
        tables.check_alive(collection)
        return collection

    def _after(self, step: Any) -> None:
        """Write the step's rows, and evaluate where due: all before the step's checkpoint."""
        config = self.config
        rows = [
            {**self.head, "step": step.number, **tables.train_row(step, env, self.window[env])}
            for env in config.envs
        ]
        tables.append(self.out / "train.csv", rows, tables.TRAIN_COLUMNS)
        seconds = step.seconds_rollout + step.seconds_update
        self.tell(
            {"kind": "step", "step": step.number, "steps": config.steps, "rows": rows, "seconds": seconds}
        )
        if step.number == config.steps or (config.eval_every and step.number % config.eval_every == 0):
            self._evaluate(step.number)

    def _evaluate(self, number: int) -> None:
        config = self.config
        rows = [
            {**self.head, "step": number, **row}
            for env in config.envs
            for decoding in config.eval_decodings
            for row in evaluate(
                self.policy, self.shop, env, config.eval_difficulties, config.eval_episodes, decoding,
                limits=Limits(config.turn_tokens, config.episode_tokens),
            )
        ]  # fmt: skip
        tables.append(self.out / "eval.csv", rows, tables.EVAL_COLUMNS)
        self.tell({"kind": "evaluation", "step": number, "steps": config.steps, "rows": rows})

    def _save(self, folder: Path) -> None:
        """Complete TRL's checkpoint with what is ours."""
        step = int(folder.name.rpartition("-")[2]) // self.config.minibatches
        checkpoints.complete(
            folder, {"step": step, "schedule": self.schedule.to_json()}, self.policy.made_for
        )


def evaluate(
    policy: Policy,
    shop: Shop,
    env: str,
    difficulties: Sequence[int],
    episodes: int,
    decoding: str = "sampled",
    limits: Limits | None = None,
    first_seed: int = EVALUATION_SEEDS.start,
    batch: int = 128,
) -> list[dict[str, Any]]:
    """Held-out success at fixed difficulties: a row for each, with `EVAL_COLUMNS` from `env` on.

    Episode i at difficulty d is the same task with the same random stream for every policy, so that runs are paired.
    Seeds start at `first_seed`, by default where no training task has its seed.
    """
    if decoding not in DECODINGS:
        raise ConfigError(unknown("decoding", decoding, DECODINGS))
    sampler = policy.sampler(limits, greedy=decoding == "greedy")
    cells = [(d, first_seed + i) for d in difficulties for i in range(episodes)]
    rollouts = []
    for start in range(0, len(cells), batch):
        part = cells[start : start + batch]
        tasks = [make_task(env, difficulty=d, seed=seed, shop=shop) for d, seed in part]
        streams = [rng("evaluate", env, d, seed) for d, seed in part]
        rollouts += play_batch(tasks, streams, shop, sampler, policy.renderer)
    by_level = {d: [r.score for r in rollouts if r.task.difficulty == d] for d in difficulties}
    return [tables.eval_row(env, d, scores, decoding) for d, scores in by_level.items()]


@contextmanager
def _only_one(out: Path) -> Iterator[None]:
    """Hold the folder against a second process."""
    with (out / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RunError(
                f"another process is training in {out}; wait for it, or choose another out"
            ) from None
        yield


def _finished(out: Path, config: TrainConfig) -> bool:
    done = tables.read_json(out / "done.json")
    return (
        done is not None and done.get("steps", 0) >= config.steps and _differs(done["config"], config) == []
    )


def _same_run(out: Path, config: TrainConfig) -> None:
    """A folder holds one run: refuse another configuration (more steps are the same run, continued)."""
    before = tables.read_json(out / "config.json")
    if before is not None and (names := _differs(before, config)):
        was = ", ".join(f"{name} = {before.get(name)!r}" for name in names)
        now = ", ".join(f"{name} = {config.to_json()[name]!r}" for name in names)
        raise ConfigError(
            f"{out} holds another run ({was}; now {now}); choose another out, or delete that folder"
        )
    if before is not None and before["steps"] > config.steps:
        raise ConfigError(
            f"{out} holds a run of {before['steps']} steps, more than {config.steps}; choose another out"
        )
    tables.write_json(out / "config.json", config.to_json())


def _differs(before: Mapping[str, Any], config: TrainConfig) -> list[str]:
    now = replace(config).to_json()
    return [name for name in now if name not in ("out", "steps") and before.get(name) != now[name]]
