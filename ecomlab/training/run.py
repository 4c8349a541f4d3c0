"""One training run: a configuration in, tables and checkpoints out, resumed by calling it again.

    run = ecomlab.train({"out": "experiments/runs/demo", "schedule": "adaptive", "steps": 60}, progress=print)
    run.eval

The folder of a run has `train.csv` (a row per step, environment and level), `episodes.csv` (a row per held-out
episode), `eval.csv` (drawn from it), `transcripts.jsonl` (held-out failures and a few groups), `config.json`,
`checkpoints/`, and last `done.json`.
"""

import os
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecomlab.catalog import Shop
from ecomlab.catalog.store import CatalogError
from ecomlab.catalog.support import UnsupportedError, check_supported
from ecomlab.envs.registry import version_record
from ecomlab.files import lock, read_json, write_json
from ecomlab.markup.elements import in_notebook, table
from ecomlab.models.load import load_policy
from ecomlab.models.policy import Policy
from ecomlab.models.process_group import join_processes
from ecomlab.models.samplers.tiny import CHOICE
from ecomlab.training import checkpoints
from ecomlab.training.config import (
    ConfigError,
    RunError,
    TrainConfig,
    check_model,
    check_split,
    from_toml,
    lacking,
)
from ecomlab.training.loop import Loop, Progress
from ecomlab.training.metrics import DONE
from ecomlab.training.schedule import Schedule, digest_of, name_of

if TYPE_CHECKING:
    import pandas as pd

CONFIG = "config.json"
CATALOG = "catalog.json"
"""File with the location of a run's catalog, and its fingerprint."""
FREE = (
    "out", "steps", "logger", "micro_batch", "gradient_checkpointing", "environment_workers", "vllm_memory",
    "vllm_sleep", "vllm_address",
)  # fmt: skip
"""Settings that may change when a run resumes: its length, the logger, and those for memory and machines."""


@dataclass(frozen=True)
class Run:
    """A run's folder and its current content."""

    folder: Path

    @property
    def steps(self) -> "pd.DataFrame":
        """The rows of train.csv: one per step, environment and level."""
        return self._table("train.csv")

    @property
    def eval(self) -> "pd.DataFrame":
        """The rows of eval.csv: held-out success by step, environment, level, block and decoding."""
        return self._table("eval.csv")

    def policy(self) -> Policy:
        """Load the policy of the newest checkpoint. Raises RunError if there is none."""
        newest, settings = checkpoints.newest(self.folder / "checkpoints"), read_json(self.folder / CONFIG)
        if newest is None or settings is None:
            raise RunError(f"{self.folder} has no checkpoint yet; train some steps")
        needed = ("collection", "eval_collection", "catalog", "catalog_size")
        config = TrainConfig(**{name: settings[name] for name in needed if name in settings})
        return load_policy(str(newest.folder), config.load_shop(), config.played)

    def _table(self, name: str) -> "pd.DataFrame":
        import pandas as pd

        return pd.read_csv(self.folder / name, keep_default_na=False, na_values=["nan"])

    def _repr_html_(self) -> str:
        every = self.eval[["step", "env", "d", "decoding", "episodes", "success"]]
        rows = every[every.step == every.step.max()]
        return in_notebook(table(list(rows.columns), rows.round(3).to_numpy().tolist()))


def train(
    config: TrainConfig | Mapping[str, Any] | str | Path,
    progress: Progress | None = None,
    *,
    schedule: Any = None,
) -> Run:
    """Run `config`, or resume it. A finished run returns at once.

    `config` is a `TrainConfig`, a mapping of its fields, or the path of a TOML file. `schedule` replaces the schedule
    of the configuration: a class or function, called like one in a file, or a schedule object, which is copied.

    `progress` is called after every step ({"kind": "step", "step", "steps", "rows", "seconds"}) and every
    evaluation ({"kind": "evaluation", "step", "steps", "rows"}), during one ({"kind": "evaluating", "step", "steps",
    "episodes", "of"}), and for each alarm ({"kind": "alarm", "step", "steps", "words"}).

    Raises ConfigError, PolicyError or CheckpointError before anything runs, RunError when a run cannot continue.
    """
    if isinstance(config, str | Path):
        config = from_toml(Path(config))
    elif isinstance(config, Mapping):
        config = TrainConfig(**config)
    processes = join_processes()
    leads = processes.rank == 0  # only this process reads and writes the folder
    check_split(config, processes.size)
    _check_setting(config)
    which = config.schedule if schedule is None else schedule
    try:
        made = config.make_schedule(which)
        identity = _identity(config, which, made)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"schedule: {error}") from error
    out = checkpoints.prepare_folder(Path(config.out)) if leads else Path(config.out).absolute()
    busy = RunError(f"another process is training in {out}; wait for it, or choose another out")
    with lock(out / ".lock", busy) if leads else nullcontext(), checkpoints.plain_errors(out):
        finished = leads and _finished(out, identity)
        if leads and not finished:
            _same_run(out, identity)
        if processes.all_gather(finished)[0]:
            return Run(out)
        for words in config.warnings if leads else ():
            warnings.warn(words, stacklevel=2)
        shop = _load_shop(out, config, leads)
        chat = {name: getattr(config, name) for name in ("dtype", "lora_rank", "thinking")}
        policy = load_policy(config.starter, shop, config.played, **chat)
        if leads:  # not before: a refused run leaves no record
            sampler = policy.sampler().name if config.generation == "own" else "torch"
            _same_sampler(out, sampler)
            identity |= {"sampler": sampler} if sampler != "torch" else {}  # which older runs do not name
            _record(out, identity, config, shop)
        on_progress = progress if leads and progress else lambda _: None
        loop = Loop(config, shop, policy, made, identity, on_progress, processes)
        try:
            loop.go()
        except KeyboardInterrupt:  # a notebook would show a screen of the libraries' frames
            raise KeyboardInterrupt(f"the same call continues from the last checkpoint in {out}") from None
    return Run(out)


def _identity(config: TrainConfig, which: Any, made: Schedule) -> dict[str, Any]:
    """Identify the run: its settings, which tasks its environments' keys mean, and the name and digest of a custom
    schedule. The folder is no part of the identity."""
    name = name_of(which, made)
    identity = {
        **config.to_json(),
        "environments": {env: version_record(env) for env in config.played},
    }
    if name == which:
        return identity
    shown = Path(which).name if isinstance(which, str) else name
    return {**identity, "schedule": shown, "schedule_name": name, "schedule_digest": digest_of(which, made)}


def _check_setting(config: TrainConfig) -> None:
    """Check that the configuration fits the model, the machine and the launch. Raises ConfigError."""
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


def _finished(out: Path, now: Mapping[str, Any]) -> bool:
    done = read_json(out / DONE)
    return done is not None and done.get("steps", 0) >= now["steps"] and _differs(done["config"], now) == []


def _same_run(out: Path, now: Mapping[str, Any]) -> None:
    """Reject a folder that holds a run of another configuration; a larger number of steps continues the same run."""
    file = out / CONFIG
    before = read_json(file)
    if before is None and file.exists():
        raise ConfigError(
            f"{file} is damaged, so the run in the folder is unknown; choose another out, restore the file, or delete "
            "the folder"
        )
    if before is not None and (names := _differs(before, now)):
        changes = ", ".join(f"{name} = {before.get(name)!r}, now {now.get(name)!r}" for name in names)
        raise ConfigError(f"{out} holds another run ({changes}); choose another out, or delete that folder")
    if before is not None and before["steps"] > now["steps"]:
        raise ConfigError(
            f"{out} holds a run of {before['steps']} steps, more than {now['steps']}; choose another out"
        )


def _same_sampler(out: Path, now: str) -> None:
    """Reject a run that began with another sampler, since its tokens' rounding differs. Raises ConfigError."""
    before = read_json(out / CONFIG)
    was = before.get("sampler", "torch") if before else now
    if was != now:
        way = (
            f"set {CHOICE}=torch" if was == "torch" else f"unset {CHOICE}, use a CPU with AVX2, install numba"
        )
        raise ConfigError(
            f"{out} began with the sampler {was!r}, and this process would continue with {now!r}; {way}, or choose "
            "another out"
        )


def _differs(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """List the settings, `FREE` ones excepted, in which a folder's run differs; a setting that it did not record was at
    its default. A catalog's folder may have moved: `_load_shop` checks its content."""
    defaults = TrainConfig().to_json()
    free = {*FREE, "catalog"} if before.get("catalog") and now["catalog"] else set(FREE)
    names = dict.fromkeys([*now, *(["schedule_digest"] if "schedule_digest" in before else [])])
    return [n for n in names if n not in free and before.get(n, defaults.get(n)) != now.get(n)]


def _load_shop(out: Path, config: TrainConfig, leads: bool) -> Shop:
    """Load a run's shop. Raises ConfigError if the catalog cannot
    be opened, differs from the one with which the run in `out` began, or cannot carry the environments."""
    before = read_json(out / CATALOG) if leads else None
    was = way = ""
    if before:
        was = f"{out} was trained on the catalog {before['fingerprint']} in {before['folder']}, but "
        way = "; name the first one's folder with --catalog, or choose another out"
    try:
        shop = config.load_shop()
        check_supported(shop.catalog, config.played)
    except (CatalogError, UnsupportedError) as error:
        raise ConfigError(f"{was}{error}{way}") from None
    if before and before["fingerprint"] != shop.fingerprint:
        raise ConfigError(f"{was}{config.catalog or 'the generated one'} is {shop.fingerprint}{way}")
    return shop


def _record(out: Path, identity: Mapping[str, Any], config: TrainConfig, shop: Shop) -> None:
    """Write what identifies the run, and the place of its catalog if it has one."""
    write_json(out / CONFIG, identity)
    if config.catalog:
        write_json(out / CATALOG, {**config.catalog_place, "fingerprint": shop.fingerprint})
