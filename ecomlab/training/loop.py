"""One training run: a frozen configuration in, tables and checkpoints out, resumed by calling it again.

    config = TrainConfig(out="experiments/runs/demo", schedule="adaptive", steps=60, seed=0)
    train(config, progress=print)

writes `train.csv` (a row per step, environment and level), `episodes.csv` (a row per held-out episode), `eval.csv`
(drawn from it), `transcripts.jsonl` (held-out failures and a few groups), `config.json`, `checkpoints/`, and last
`done.json`.
"""

import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecomlab.catalog import Shop
from ecomlab.catalog.store import CatalogError
from ecomlab.catalog.support import UnsupportedError, check_supported
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.evaluation import Cells
from ecomlab.evaluation.heldout import play_held_out, summarize
from ecomlab.evaluation.local import BATCH
from ecomlab.evaluation.transcript import Transcript
from ecomlab.evaluation.transcripts import FILE, append, trim
from ecomlab.files import lock, read_json, write_json
from ecomlab.models.batch import Clock, Rollout
from ecomlab.models.load import MERGED, is_ordinary, load_policy
from ecomlab.models.policy import MADE_FOR, Policy
from ecomlab.models.process_group import SINGLE_PROCESS, ProcessGroup
from ecomlab.models.qwen3 import check_base
from ecomlab.models.samplers.cached import Limits, OpenSampler
from ecomlab.models.samplers.vllm import VllmSampler
from ecomlab.training import checkpoints, metrics, untrained
from ecomlab.training.ahead import AHEAD, AHEAD_COLUMNS, Ahead, mirror
from ecomlab.training.config import ConfigError, RunError, TrainConfig, check_split
from ecomlab.training.distributed import OneWorker, join_processes
from ecomlab.training.health import alarms
from ecomlab.training.loggers import Log, logger
from ecomlab.training.metrics import ALARMS, DONE
from ecomlab.training.rollouts import Collection, DynamicSampling, collect
from ecomlab.training.run_transcripts import header_of, of_groups, of_rollout
from ecomlab.training.schedule import Schedule, from_json

if TYPE_CHECKING:
    from ecomlab.training.trl_trainer import DapoTrainer, Step

__all__ = ["ConfigError", "RunError", "TrainConfig", "train"]

UNSCORED = "unscored.txt"
CATALOG = "catalog.json"
"""File that says where the catalog of a run lay, and its fingerprint."""
CONSTRAINTS = {"vllm": "constraints-vllm.txt", "loggers": "constraints-loggers.txt"}
"""Pins of the extras that contradict constraints.txt (experiments/extras)."""
FREE = (
    *("out", "steps", "logger"),
    *("micro_batch", "micro_tokens", "gradient_checkpointing", "vllm_memory", "vllm_address"),
)
"""Settings that may differ where a run goes on: how far, where its metrics go, and what memory and machines ask for."""
Progress = Callable[[dict[str, Any]], None]


def train(config: TrainConfig, progress: Progress | None = None) -> Path:
    """Run `config`, or continue where it stopped, and return its folder. A finished run returns at once.

    `progress` is called after every step ({"kind": "step", "step", "steps", "rows", "seconds"}) and every
    evaluation ({"kind": "evaluation", "step", "steps", "rows"}), during one ({"kind": "evaluating", "step", "steps",
    "episodes", "of"}), and for each alarm ({"kind": "alarm", "step", "steps", "words"}).

    Raises ConfigError, PolicyError or CheckpointError before anything runs, RunError when a run cannot continue.
    """
    processes = join_processes()
    leads = processes.rank == 0  # only this process reads and writes the folder
    check_split(config, len(processes.all_gather(None)))
    _check_setting(config)
    out = checkpoints.prepare_folder(Path(config.out)) if leads else Path(config.out).absolute()
    busy = RunError(f"another process is training in {out}; wait for it, or choose another out")
    with lock(out / ".lock", busy) if leads else nullcontext(), checkpoints.plain_errors(out):
        finished = leads and _finished(out, config)
        if leads and not finished:
            _same_run(out, config)
        if processes.all_gather(finished)[0]:
            return out
        for words in config.warnings if leads else ():
            warnings.warn(words, stacklevel=2)
        shop = _load_shop(out, config, leads)
        chat = {name: getattr(config, name) for name in ("dtype", "lora_rank", "thinking")}
        policy = load_policy(config.starter, shop, config.played, **chat)
        Run(config, out, shop, policy, progress if leads and progress else lambda _: None, processes).go()
    return out


class Run:
    """The state of one run, schedule and tables, and the callbacks of its trainer."""

    def __init__(
        self,
        config: TrainConfig,
        out: Path,
        shop: Shop,
        policy: Policy,
        tell: Progress,
        processes: ProcessGroup = SINGLE_PROCESS,
    ) -> None:
        self.config, self.out, self.shop, self.policy, self.tell = config, out, shop, policy, tell
        self.processes = OneWorker(processes) if config.generation == "vllm-server" else processes
        self.leads = processes.rank == 0
        self.log = Log()
        self.history: list[dict[str, Any]] = []
        self.schedule = config.make_schedule()
        self.ordinary = is_ordinary(config.starter)
        self.limits = Limits(config.turn_tokens, config.episode_tokens, config.context_tokens)
        self.sampler: OpenSampler
        self.ahead = Ahead()
        self.player = policy
        """The policy that samples: a copy, where the trained one changes meanwhile."""
        self.waited = 0.0
        """Seconds that this step has waited for the flight."""
        self.trainer: DapoTrainer
        self.head = {"schedule": config.schedule, "collection": config.collection, "seed": config.seed}
        self.window: dict[str, tuple[int, int]] = {}

    def go(self) -> None:
        """Resume from the newest valid checkpoint, if there is one, and train to the end."""
        from ecomlab.training.trl_trainer import DapoTrainer

        config = self.config
        resume, begun = self.processes.all_gather(self._left_off() if self.leads else None)[0]
        if resume is not None:
            self.schedule = from_json(resume.extra["schedule"])
            if self.ordinary:
                check_base(resume.folder, self.policy.made_for)
        self.trainer = DapoTrainer(
            self.policy.model,
            self.policy.tokenizer,
            config,
            self._collect,
            self._after,
            self._save,
            self.processes,
            before=lambda: None if begun else self._evaluate(0),
            land=self._land,
            begin_next=self._begin_next,
        )
        if config.ahead and not config.with_vllm:
            rank = config.lora_rank
            self.player = load_policy(config.starter, self.shop, config.played, lora_rank=rank)
        self.sampler = self._training_sampler()
        if self.leads:
            self.history = metrics.whole_steps(metrics.read(self.out / "train.csv"))
        try:
            with logger(config.logger if self.leads else "none", self.out, config.to_json()) as self.log:
                self.trainer.train(resume_from_checkpoint=str(resume.folder) if resume else None)
        finally:
            self.ahead.stop()
        if self.leads:
            write_json(self.out / DONE, {"steps": config.steps, "config": config.to_json()})
        self.processes.all_gather(None)  # no process ends before everything is written

    def _sampler(self, greedy: bool = False) -> OpenSampler:
        """Make a sampler that always uses the policy's current weights."""
        if not self.config.with_vllm:
            return self.policy.sampler(self.limits, greedy)
        generation = self.trainer.vllm_generation
        return VllmSampler(generation, self.policy.renderer.stop_ids, self.limits, greedy)

    def _training_sampler(self) -> OpenSampler:
        """Make the sampler of training's rollouts."""
        return self._sampler() if self.config.with_vllm else self.player.sampler(self.limits)

    def _left_off(self) -> tuple[checkpoints.Checkpoint | None, bool]:
        """Find the newest valid checkpoint or None, and trim the tables to it; tell whether step 0 was evaluated."""
        resume = checkpoints.newest(self.out / "checkpoints")
        done = resume.step if resume else 0
        metrics.trim(self.out / "train.csv", done, metrics.TRAIN_COLUMNS)
        metrics.trim(self.out / "eval.csv", done, metrics.EVAL_COLUMNS)
        metrics.trim(self.out / AHEAD, done, AHEAD_COLUMNS)
        for name in (ALARMS, UNSCORED):
            metrics.trim_lines(self.out / name, done)
        begun = done > 0 or metrics.has_step(self.out / "eval.csv", 0)  # which is written after its episodes
        metrics.trim(self.out / "episodes.csv", done if begun else -1, metrics.EPISODE_COLUMNS)
        trim(self.out / FILE, done if begun else -1)
        return resume, begun

    def _collect(self, number: int) -> Collection:
        """Collect the rollouts of step `number` (from 0), or take them from the flight, and advance the schedule."""
        config = self.config
        self.window = {env: self.schedule.window(env) for env in config.envs}
        if config.ahead:
            collection = self._landed(number)
        else:
            # A large model's cache is freed for the update; a small one's is reused.
            sampler = self._training_sampler() if self.ordinary else self.sampler
            collection = self._play(number, self.schedule, sampler, self.processes, number)
        self.schedule = collection.schedule
        metrics.check_alive(collection)
        return collection

    def _play(
        self, number: int, schedule: Schedule, sampler: OpenSampler, processes: ProcessGroup, version: int
    ) -> Collection:
        config = self.config
        sampling = DynamicSampling(
            config.prompts_per_step,
            config.group_size,
            config.rounds,
            config.keep,  # type: ignore[arg-type]
            config.axes,
            config.early_refill,
        )
        key, renderer = ("train", config.seed, number), self.player.renderer
        return collect(schedule, sampling, key, self.shop, sampler, renderer, processes, version)

    def _land(self) -> None:
        """Wait for what is in flight: the weights that sample may change."""
        began = time.perf_counter()
        self.ahead.land()
        self.waited = time.perf_counter() - began

    def _landed(self, number: int) -> Collection:
        """Take the rollouts of step `number` from the flight, in which they begin now if they have not, as in a run's
        first step, with the current weights."""
        began = time.perf_counter()
        collection = None
        if self.leads:
            self._begin(number, number)
            collection = self.ahead.take()
        collection = self.processes.all_gather(collection)[0]
        assert collection is not None
        # of its seconds those count that the trainer had to wait
        return replace(collection, seconds={"waiting": self.waited + time.perf_counter() - began})

    def _begin_next(self, number: int) -> None:
        """Begin to play step `number` with the weights from before this step's update."""
        if self.config.ahead and self.leads and number < self.config.steps:
            self._begin(number, number - 1)

    def _begin(self, number: int, version: int) -> None:
        """Put step `number` into flight, unless it is, by the schedule and the weights of now, which are of `version`.

        The schedule has heard of every group before: levels are never stale.
        """
        if self.ahead.busy:
            return
        if self.player is not self.policy:
            mirror(self.policy.model, self.player.model)
        schedule, sampler = self.schedule, self.ahead.watched(self.sampler)
        self.ahead.begin(lambda: self._play(number, schedule, sampler, SINGLE_PROCESS, version))

    def _after(self, step: "Step") -> None:
        """Evaluate if due, and write the step's rows: all before the step's checkpoint."""
        config = self.config
        clock = Clock()
        if step.number in config.eval_steps and not step.broken:
            with clock.phase("evaluation"):
                self._evaluate(step.number)
        seconds = metrics.phases({**step.seconds, **clock.seconds}, time.perf_counter() - step.began)
        found = metrics.train_rows(step, self.window, seconds, config.mask_truncated)
        rows = [{**self.head, "step": step.number, **row} for row in found]
        if not self.leads:
            return
        metrics.append(self.out / "train.csv", rows, metrics.TRAIN_COLUMNS)
        if step.ratio is not None:
            row = {"step": step.number, "version": step.collection.version, **step.ratio}
            metrics.append(self.out / AHEAD, [row], AHEAD_COLUMNS)
        groups = list(of_groups(step.collection, step.number, config))
        self._write(groups)
        self._note(UNSCORED, step.number, metrics.unscored_reasons(step.collection))
        now = {"step": step.number, "steps": config.steps}
        self.tell({"kind": "step", **now, "rows": rows, "seconds": seconds["seconds"]})
        for words in self._alarms(rows, step.broken):
            self.tell({"kind": "alarm", **now, "words": words})
        self.log.transcripts("groups", step.number, groups)
        self.log.metrics(metrics.logged(rows))

    def _alarms(self, rows: Sequence[Mapping[str, Any]], broken: str = "") -> list[str]:
        """Check the run's health: write a step's alarms, and what breaks it off, to alarms.txt and return them."""
        (now,) = metrics.whole_steps(rows)
        found = [*([f"the run stops: {broken}"] if broken else []), *alarms(self.history, now)]
        self.history.append(now)
        self._note(ALARMS, now["step"], found)
        return found

    def _note(self, name: str, step: int, lines: Sequence[str]) -> None:
        with (self.out / name).open("a") as file:
            file.writelines(f"step {step}: {' '.join(words.split())}\n" for words in lines)

    def _write(self, transcripts: Iterable[Transcript]) -> None:
        append(self.out / FILE, header_of(self.config, self.shop.fingerprint), transcripts)

    def _evaluate(self, number: int) -> None:
        """Evaluate the policy after step `number` and write what was found; before training, take what another run of
        the same folder has found, or leave it for the next one."""
        config = self.config
        shared = None
        if number == 0 and not self.ordinary and self.processes.workers == 1:
            shared = untrained.file_of(config, self.policy, self.shop.fingerprint)
        found = untrained.recall(shared) if shared else None
        if found is None:
            found = self._play_held_out(number)
            if shared:
                untrained.keep(shared, found)
        if self.leads:
            self._write(found.failures)
            self.log.transcripts("held-out failures", number, found.failures)
            head = {**self.head, "step": number}
            whole = [{**head, **row} for row in found.episodes]
            metrics.append(self.out / "episodes.csv", whole, metrics.EPISODE_COLUMNS)
            rows = [{**head, **row} for row in summarize(found.episodes)]
            metrics.append(self.out / "eval.csv", rows, metrics.EVAL_COLUMNS)
            self.tell({"kind": "evaluation", "step": number, "steps": config.steps, "rows": rows})

    def _play_held_out(self, number: int) -> untrained.Evaluation:
        config = self.config
        self.ahead.land()
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
                self.tell({"kind": "evaluating", **now, "episodes": played, "of": mine})
            if config.transcript_failures and not rollout.score.correct:
                failures.append(of_rollout(job, rollout, number, config, {"decoding": decoding}))

        levels, tasks, axes = tuple(config.eval_difficulties), config.eval_episodes, config.eval_axes
        jobs = [
            job
            for env in config.eval_envs
            for block in config.eval_block
            for job in Cells((env,), levels, tasks, block, axes=axes).jobs()
        ]
        episodes = play_held_out(
            self.policy, jobs, self.shop, decodings=config.eval_decodings, batch=batch, processes=self.processes,
            sampler_of=lambda decoding: self._sampler(greedy=decoding == "greedy"), keep=keep,
        )  # fmt: skip
        gathered = self.processes.all_gather(failures)
        return untrained.Evaluation(episodes, [transcript for share in gathered for transcript in share])

    def _save(self, folder: Path) -> None:
        """Complete TRL's checkpoint with the step and the schedule."""
        step = int(folder.name.rpartition("-")[2]) // self.config.minibatches
        if self.config.lora_rank and not self.ordinary:
            self._save_merged(folder / MERGED)
        checkpoints.complete(
            folder, {"step": step, "schedule": self.schedule.to_json()}, self.policy.made_for
        )

    def _save_merged(self, folder: Path) -> None:
        """Save a small policy with its adapters added to its weights: it can be played, shipped and trained on."""
        merged = deepcopy(self.policy.model).merge_and_unload()
        merged.save_pretrained(folder)
        self.policy.tokenizer.save_pretrained(folder)
        write_json(folder / MADE_FOR, self.policy.made_for)


def check_model(config: TrainConfig) -> None:
    """Check that the configuration fits the model. Raises ConfigError."""
    if not is_ordinary(config.starter):
        plain = TrainConfig()
        for name in ("dtype", "thinking", "generation"):
            if getattr(config, name) != getattr(plain, name):
                raise ConfigError(
                    f"{name} = {getattr(config, name)!r} is for Hugging Face models; the starter {config.starter} "
                    f"takes only {getattr(plain, name)!r}: leave it out, or choose a starter such as Qwen/Qwen3-8B"
                )


def lacking(config: TrainConfig) -> Iterator[str]:
    """Word each package that the run needs and this machine lacks."""
    for package, needed, extra in (
        ("torchao", config.optimizer == "adamw-8bit", "gpu"),
        ("vllm", config.with_vllm, "vllm"),
        (config.logger, config.logger != "none", "loggers"),
    ):
        if needed and find_spec(package) is None:
            yield (
                f"this configuration needs {package}, which is not installed; "
                f"pip install -c {CONSTRAINTS.get(extra, 'constraints.txt')} -e '.[{extra}]' brings it"
            )


def _check_setting(config: TrainConfig) -> None:
    """Check that the configuration fits the model, the machine and the launch."""
    check_model(config)
    for words in lacking(config):
        raise ConfigError(words)
    sharded = os.environ.get("ACCELERATE_USE_FSDP") == "true" or (
        os.environ.get("ACCELERATE_DEEPSPEED_ZERO_STAGE") == "3"
    )
    if sharded and not config.with_vllm:
        raise ConfigError(
            "weights that are sharded over processes cannot sample on their own: each process would wait for the "
            "others; choose generation = 'vllm-colocate' or 'vllm-server', or launch without FSDP and ZeRO-3"
        )


def _finished(out: Path, config: TrainConfig) -> bool:
    done = read_json(out / DONE)
    return (
        done is not None and done.get("steps", 0) >= config.steps and _differs(done["config"], config) == []
    )


def _same_run(out: Path, config: TrainConfig) -> None:
    """Refuse a folder that holds a run of another configuration; more steps continue the same run."""
    before = read_json(out / "config.json")
    if before is None and (out / "config.json").exists():
        raise ConfigError(
            f"{out / 'config.json'} is damaged, so that nothing says which run the folder holds; choose another out, "
            "put the file back, or delete that folder"
        )
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
    write_json(out / "config.json", config.to_json())


def _differs(before: Mapping[str, Any], config: TrainConfig) -> list[str]:
    """List the settings in which a folder's run differs, of those that are not `FREE`; one it did not record was at its
    default. A catalog's folder may have been moved: `_load_shop` looks at what is in it."""
    now, defaults = config.to_json(), TrainConfig().to_json()
    free = {*FREE, "catalog"} if before.get("catalog") and config.catalog else set(FREE)
    return [name for name in now if name not in free and before.get(name, defaults[name]) != now[name]]


def _load_shop(out: Path, config: TrainConfig, leads: bool) -> Shop:
    """Load a run's shop, and note which one if it is a folder's. Raises ConfigError where it cannot be opened, is
    another than the run in `out` began with, or cannot carry the environments."""
    before = read_json(out / CATALOG) if leads else None
    was = (
        f"{out} was trained on the catalog {before['fingerprint']} in {before['folder']}, and "
        if before
        else ""
    )
    way = "; name the folder where the first one is with --catalog, or choose another out" if before else ""
    try:
        shop = config.load_shop()
        check_supported(shop.catalog, config.played)
    except (CatalogError, UnsupportedError) as error:
        raise ConfigError(f"{was}{error}{way}") from None
    if before and before["fingerprint"] != shop.fingerprint:
        raise ConfigError(f"{was}what is in {config.catalog} is {shop.fingerprint}{way}")
    if leads and config.catalog:
        write_json(out / CATALOG, {**config.catalog_place, "fingerprint": shop.fingerprint})
    return shop
