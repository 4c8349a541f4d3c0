"""The loop of a training run: it plays, trains, evaluates and writes, step after step, and resumes."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecomlab.catalog import Shop
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.evaluation import Cells
from ecomlab.evaluation.heldout import play_held_out, summarize
from ecomlab.evaluation.local import BATCH
from ecomlab.evaluation.transcript import Transcript
from ecomlab.evaluation.transcripts import FILE, append, trim
from ecomlab.files import write_json
from ecomlab.models.batch import Clock, Rollout
from ecomlab.models.environment_pool import EnvironmentPool, pool_of, workers_for
from ecomlab.models.load import MERGED, SHARDS, is_ordinary
from ecomlab.models.policy import MADE_FOR, Policy, device_of
from ecomlab.models.process_group import SINGLE_PROCESS, ProcessGroup
from ecomlab.models.qwen3 import check_base
from ecomlab.models.samplers.cached import Limits, Sampler
from ecomlab.models.samplers.vllm import VllmSampler
from ecomlab.training import checkpoints, metrics, untrained
from ecomlab.training.config import TrainConfig
from ecomlab.training.health import alarms
from ecomlab.training.loggers import Log, logger
from ecomlab.training.metrics import ALARMS, DONE
from ecomlab.training.rollouts import Collection, DynamicSampling, collect
from ecomlab.training.run_transcripts import header_of, of_groups, of_rollout
from ecomlab.training.schedule import Schedule, windows
from ecomlab.training.stopping import Stopped, StopRequest

if TYPE_CHECKING:
    from ecomlab.training.trl_trainer import DapoTrainer, Step

UNSCORED = "unscored.txt"
Progress = Callable[[dict[str, Any]], None]


class Loop:
    """The state of one run, schedule and tables, and the callbacks of its trainer."""

    def __init__(
        self,
        config: TrainConfig,
        shop: Shop,
        policy: Policy,
        schedule: Schedule,
        identity: Mapping[str, Any],
        on_progress: Progress,
        processes: ProcessGroup = SINGLE_PROCESS,
    ) -> None:
        """`identity` is what config.json holds."""
        self.config, self.out, self.shop, self.policy = config, Path(config.out).absolute(), shop, policy
        self.schedule, self.identity, self.on_progress = schedule, identity, on_progress
        # With a server, the first process plays for all.
        self.processes = replace(processes, workers=1) if config.generation == "vllm-server" else processes
        self.leads = processes.rank == 0
        self.log = Log()
        self.history: list[dict[str, Any]] = []
        self.ordinary = is_ordinary(config.starter)
        self.limits = Limits(config.turn_tokens, config.episode_tokens, config.context_tokens)
        self.sampler: Sampler
        self.pool: EnvironmentPool | None = None
        self.trainer: DapoTrainer
        name = identity.get("schedule_name", config.schedule)
        self.head = {"schedule": name, "collection": config.collection, "seed": config.seed}
        self.windows: dict[str, tuple[int, int]] = {}

    def go(self) -> None:
        """Resume from the newest valid checkpoint, if there is one, and train to the end."""
        from ecomlab.training.trl_trainer import DapoTrainer, Hooks

        config = self.config
        resume, begun = self.processes.all_gather(self._left_off() if self.leads else None)[0]
        if resume is not None:
            self.schedule = self.schedule.from_json(resume.extra["schedule"])
            if self.ordinary:
                check_base(resume.folder, self.policy.made_for)
        stop = StopRequest()

        def before() -> None:
            if not begun:
                self._evaluate(0)
                if asked := stop.among(self.processes):
                    raise Stopped(asked, 0)

        hooks = Hooks(self._collect, self._after, self._save, before, lambda: stop.among(self.processes) > 0)
        self.trainer = DapoTrainer(self.policy, config, hooks, self.processes)
        self.sampler = self._sampler()
        if self.leads:
            self.history = metrics.whole_steps(metrics.read(self.out / "train.csv"))
        with (
            stop,
            logger(config.logger if self.leads else "none", self.out, config.to_json()) as self.log,
            pool_of(self._workers(), self.shop, self.policy.renderer) as self.pool,
        ):
            self.trainer.train(resume.folder if resume else None)
        asked = stop.among(self.processes)
        if asked and self.trainer.number < config.steps:
            raise Stopped(asked, self.trainer.number)
        if self.leads:
            write_json(self.out / DONE, {"steps": config.steps, "config": self.identity})
        self.processes.all_gather(None)  # no process ends before everything is written

    def _workers(self) -> int:
        """Number of this process's environment workers: 1 for a process that plays nothing."""
        if self.processes.rank >= self.processes.workers:
            return 1
        return self.config.environment_workers or workers_for(device_of(None, self.ordinary))

    def _sampler(self, greedy: bool = False) -> Sampler:
        """Make a sampler that always uses the policy's current weights."""
        if not self.config.with_vllm:
            return self.policy.sampler(self.limits, greedy)
        generation = self.trainer.vllm_generation
        return VllmSampler(generation, self.policy.renderer.stop_ids, self.limits, greedy)

    def _left_off(self) -> tuple[checkpoints.Checkpoint | None, bool]:
        """Find the newest valid checkpoint or None, trim the tables to it, and return whether step 0 was evaluated."""
        resume = checkpoints.newest(self.out / "checkpoints")
        done = resume.step if resume else 0
        metrics.trim(self.out / "train.csv", done, metrics.TRAIN_COLUMNS)
        metrics.trim(self.out / "eval.csv", done, metrics.EVAL_COLUMNS)
        for name in (ALARMS, UNSCORED):
            metrics.trim_lines(self.out / name, done)
        begun = done > 0 or bool(metrics.read(self.out / "eval.csv"))  # which is written after its episodes
        metrics.trim(self.out / "episodes.csv", done if begun else -1, metrics.EPISODE_COLUMNS)
        trim(self.out / FILE, done if begun else -1)
        return resume, begun

    def _collect(self, number: int) -> Collection:
        """Collect the rollouts of step `number` (from 0) and advance the schedule."""
        config = self.config
        self.windows = windows(self.schedule, config.envs)
        # A large model's cache is freed for the update; a small one's is reused.
        sampler = self._sampler() if self.ordinary else self.sampler
        sampling = DynamicSampling(
            config.prompts_per_step,
            config.group_size,
            config.rounds,
            config.keep,  # type: ignore[arg-type]
            config.axes,
            config.reward,
            config.envs,
        )
        key = ("train", config.seed, number)
        collection = collect(
            self.schedule, sampling, key, self.shop, sampler, self.policy.renderer, self.processes, self.pool
        )
        self.schedule = collection.schedule
        metrics.check_alive(collection)
        return collection

    def _after(self, step: "Step") -> None:
        """Evaluate if due, and write the step's rows: all before the step's checkpoint."""
        config = self.config
        clock = Clock()
        if step.number in config.eval_steps and not step.broken:
            with clock.phase("evaluation"):
                self._evaluate(step.number)
        seconds = metrics.phases({**step.seconds, **clock.seconds}, time.perf_counter() - step.began)
        found = metrics.train_rows(step, self.windows, seconds, config.mask_truncated)
        rows = [{**self.head, "step": step.number, **row} for row in found]
        if not self.leads:
            return
        metrics.append(self.out / "train.csv", rows, metrics.TRAIN_COLUMNS)
        groups = list(of_groups(step.collection, step.number, config))
        self._write(groups)
        self._note(UNSCORED, step.number, metrics.unscored_reasons(step.collection))
        now = {"step": step.number, "steps": config.steps}
        self.on_progress({"kind": "step", **now, "rows": rows, "seconds": seconds["seconds"]})
        for words in self._alarms(rows, step.broken):
            self.on_progress({"kind": "alarm", **now, "words": words})
        self.log.transcripts("groups", step.number, groups)
        self.log.metrics(metrics.logged(rows))

    def _alarms(self, rows: Sequence[Mapping[str, Any]], broken: str = "") -> list[str]:
        """Check the run's health: write a step's alarms, and the reason if the run stops, to alarms.txt and return
        them."""
        (now,) = metrics.whole_steps(rows)
        found = [*([f"the run stops: {broken}"] if broken else []), *alarms(self.history, now)]
        self.history.append(now)
        self._note(ALARMS, now["step"], found)
        return found

    def _note(self, name: str, step: int, lines: Sequence[str]) -> None:
        with (self.out / name).open("a") as file:
            file.writelines(f"step {step}: {' '.join(words.split())}\n" for words in lines)

    def _write(self, transcripts: Iterable[Transcript]) -> None:
        append(self.out / FILE, header_of(self.config, self.shop.fingerprint, self.identity), transcripts)

    def _evaluate(self, number: int) -> None:
        """Evaluate the policy after step `number` and write the result. Before training, runs in sibling folders share
        it."""
        config, play = self.config, partial(self._play_held_out, number)
        if number == 0 and not self.ordinary and self.processes.workers == 1:
            found = untrained.shared(untrained.file_of(config, self.policy, self.shop.fingerprint), play)
        else:
            found = play()
        if self.leads:
            self._write(found.failures)
            self.log.transcripts("held-out failures", number, found.failures)
            head = {**self.head, "step": number}
            whole = [{**head, **row} for row in found.episodes]
            metrics.append(self.out / "episodes.csv", whole, metrics.EPISODE_COLUMNS)
            rows = [{**head, **row} for row in summarize(found.episodes)]
            metrics.append(self.out / "eval.csv", rows, metrics.EVAL_COLUMNS)
            self.on_progress({"kind": "evaluation", "step": number, "steps": config.steps, "rows": rows})

    def _play_held_out(self, number: int) -> untrained.Evaluation:
        config = self.config
        if config.with_vllm:
            self.trainer.sync()
        # As many at a time as in training: they fit into memory.
        batch = config.rollouts_per_step // self.processes.workers if self.ordinary else BATCH
        failures: list[Transcript] = []
        played, mine = 0, config.evaluation_episodes // self.processes.workers

        def keep(job: Job, rollout: Rollout, decoding: str) -> None:
            nonlocal played
            played += 1
            if played % batch == 0:
                now = {"step": number, "steps": config.steps}
                self.on_progress({"kind": "evaluating", **now, "episodes": played, "of": mine})
            if not rollout.score.correct:
                failures.append(of_rollout(job, rollout, number, config, {"decoding": decoding}))

        levels = tuple(config.eval_difficulties)
        jobs = [
            job
            for env in config.eval_envs
            for block in config.eval_block
            for job in Cells((env,), levels, config.eval_episodes, block, axes=config.eval_axes).jobs()
        ]
        episodes = play_held_out(
            self.policy, jobs, self.shop, decodings=config.eval_decodings, batch=batch, pool=self.pool,
            processes=self.processes,
            sampler_of=lambda decoding: self._sampler(greedy=decoding == "greedy"), keep=keep, weights=config.reward,
        )  # fmt: skip
        if config.with_vllm:
            self.trainer.rest()
        gathered = self.processes.all_gather(failures)
        return untrained.Evaluation(episodes, [transcript for share in gathered for transcript in share])

    def _save(self, folder: Path) -> None:
        """Complete TRL's checkpoint with the step and the schedule."""
        step = int(folder.name.rpartition("-")[2]) // self.config.minibatches
        if self.config.lora_rank and not self.ordinary:
            self._save_merged(folder / MERGED)
        if (folder / SHARDS).is_dir():  # beside which TRL saves no description of the policy
            self.policy.model.config.save_pretrained(folder)
            self.policy.tokenizer.save_pretrained(folder)
        checkpoints.complete(
            folder, {"step": step, "schedule": self.schedule.to_json()}, self.policy.made_for
        )

    def _save_merged(self, folder: Path) -> None:
        """Save a small policy with its adapters added to its weights: it can be played, shipped and trained on."""
        merged = deepcopy(self.policy.model).merge_and_unload()
        merged.save_pretrained(folder)
        self.policy.tokenizer.save_pretrained(folder)
        write_json(folder / MADE_FOR, self.policy.made_for)
