"""Sweeps as data: a notebook, a grid and seeds make runs, each with a name, a folder and its parameters.

docs/cluster.md shows a sweep.toml with all fields. Run folders are experiments/runs/<name>/<run>/, where <name> is the
folder of sweep.toml. A run is finished when its folder holds finished.json, which is written last. A folder that holds
a run with other parameters is refused.
"""

import itertools
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator

from ecomlab.files import locked, read_json
from ecomlab.lab import notebooks
from ecomlab.lab.paths import project_of, project_root, resolve, shown
from ecomlab.settings import ConfigError, Strict, read_toml
from ecomlab.suggest import unknown

if TYPE_CHECKING:
    from ecomlab.training.config import TrainConfig

REQUEST, FINISHED, FAILED, LOG = "request.json", "finished.json", "failed.json", "log.txt"
LOCK = ".worker.lock"
"""Held by the process that executes the run."""
TRAINING = "run_training.ipynb"
"""Notebook whose parameters are settings of a training run."""
NO_PROJECT = "work in a clone, or in a folder that `ecomlab init FOLDER` lays out"


class SweepError(ConfigError):
    """A sweep that cannot be run. The message is for the user."""


@dataclass(frozen=True)
class Run:
    """One execution of the notebook. `given` are the parameters passed to it, `out` among them."""

    id: str
    folder: Path
    notebook: Path
    given: Mapping[str, Any]

    @property
    def finished(self) -> bool:
        return read_json(self.folder / FINISHED) is not None

    @property
    def at_work(self) -> bool:
        """True while a process executes this run, on any machine whose locks the file system shares."""
        return locked(self.folder / LOCK)

    def request(self) -> dict[str, Any]:
        """List what a worker needs, which is compared when the run is asked for again."""
        return {"id": self.id, "notebook": str(self.notebook), "parameters": dict(self.given)}

    def changed(self) -> str:
        """Describe how the folder's parameters differ from `given`: "steps was 40 and is 80"; '' if they do not."""
        before = read_json(self.folder / REQUEST)
        if before is None:
            return ""
        old, new = {**before.get("parameters", {}), "out": ""}, {**self.given, "out": ""}
        absent = "the notebook's own"
        names = [name for name in {**old, **new} if old.get(name, absent) != new.get(name, absent)]
        return ", ".join(
            f"{name} was {old.get(name, absent)} and is {new.get(name, absent)}" for name in names
        )


NotNegative = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Amount = Annotated[float, Field(ge=0)]
ProjectPath = Annotated[
    Path, AfterValidator(lambda path, info: resolve(path, project_of(info.context.parent)))
]
Values = Annotated[
    list[Any], Field(min_length=1), BeforeValidator(lambda v: v if isinstance(v, list) else [v])
]


def minutes_of(time: Any) -> int:
    """Read SLURM's "HH:MM:SS" or "D-HH:MM:SS" as minutes, rounded up. Raises ValueError."""
    found = re.fullmatch(r"(?:(\d+)-)?(\d+):([0-5]\d):([0-5]\d)", str(time))
    if not found:
        raise ValueError(f'should be "HH:MM:SS" or "D-HH:MM:SS", not {time!r}')
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return (days * 24 + hours) * 60 + minutes + (seconds > 0)


class Cluster(Strict):
    """Resources that one run asks of SLURM, memory in GB; zeros and empty strings ask for nothing."""

    minutes: Annotated[int, BeforeValidator(minutes_of), Field(alias="time", ge=1)]
    partition: str = ""
    gpus: NotNegative = 0
    cpus: Positive = 1
    memory: NotNegative = 0
    extra: dict[str, str | int | bool] = Field(default={})
    """Further sbatch options by their long names."""


class Cost(Strict):
    """Hours that a run is expected to take, or, for training runs, seconds of its parts."""

    hours: Amount = 0.0
    step: Amount = 0.0
    """A training step."""
    episode: Amount = 0.0
    """A held-out episode."""
    note: str = ""


class Sweep(Strict):
    """A checked sweep.toml."""

    notebook: ProjectPath
    seeds: Annotated[list[int], Field(min_length=1)]
    grid: dict[str, Values] = Field(default={})
    fixed: dict[str, Any] = Field(default={})
    figures: list[ProjectPath] = Field(default=[])
    processes: Positive = 2
    threads: Positive = 1
    cluster: Cluster | None = None
    cost: Cost = Cost()

    _file: Path

    def model_post_init(self, file: Path) -> None:
        """Remember the file: the context that `load` passes."""
        self._file = file

    @field_validator("grid", "fixed")
    @classmethod
    def _set_nothing_twice(cls, table: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        if twice := sorted({*table} & {"seed", "out", *info.data.get("grid", {})}):
            raise ValueError(
                f"sets {', '.join(twice)} twice: seeds has its own key, `out` is the run's folder, and what the "
                "grid varies is not fixed"
            )
        return table

    @property
    def file(self) -> Path:
        return self._file

    @property
    def folder(self) -> Path:
        """Folder of sweep.toml, where the tables go."""
        return self.file.parent

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def runs_folder(self) -> Path:
        return self.folder.parent / "runs" / self.name

    def runs(self) -> list[Run]:
        """List every run, all arms of a seed before the next seed, so that half a sweep can be compared too."""
        found = []
        for seed, values in itertools.product(self.seeds, itertools.product(*self.grid.values())):
            point = dict(zip(self.grid, values, strict=True))
            run_id = "-".join([*(_slug(v) for v in values), f"seed{seed}"])
            folder = self.runs_folder / run_id
            given = {**self.fixed, **point, "seed": seed, "out": str(folder)}
            found.append(Run(run_id, folder, self.notebook, given))
        return found

    def check(self) -> None:
        """Raise SweepError with every mistake that would stop any run, each one once."""
        runs, training = self.runs(), self.notebook.name == TRAINING
        ids = Counter(run.id for run in runs)
        found = {f"names the same run twice: {name}": "" for name, times in ids.items() if times > 1}
        try:
            for figure in self.figures:
                notebooks.parameters_of(figure)
            for run in runs:
                parameters, unfit = notebooks.fit(self.notebook, run.given)
                found |= dict.fromkeys(unfit, "")
                if training and not run.finished:
                    try:
                        training_config(parameters)
                    except ConfigError as e:
                        for words in str(e).splitlines():
                            found.setdefault(words, f"run {run.id}: ")
        except notebooks.NotebookError as e:  # a notebook that is none: the same for all runs
            found[str(e)] = ""
        if found:
            raise SweepError("\n".join(f"{shown(self.file)}: {where}{said}" for said, where in found.items()))
        for run in runs:
            if change := run.changed():
                raise SweepError(
                    f"{shown(run.folder)}/ has a run with other parameters ({change}). Move the sweep "
                    f"to another folder, or delete {shown(self.runs_folder)}/ to start again"
                )


def load(file: str | Path) -> Sweep:
    """Read and check a sweep.toml, relative to the working directory or to the project's root.

    Raises ConfigError with a line for every mistake: the file, the key and the way out.
    """
    path = Path(file).absolute() if Path(file).is_file() else resolve(file)
    if not path.is_file():
        there = sorted(p.parent.name for p in (project_root() / "experiments").glob("*/sweep.toml"))
        way_out = f"there are sweeps called {', '.join(there)}" if there else NO_PROJECT
        raise SweepError(f"no file {path}; {way_out}")
    return read_toml(path, Sweep, context=path)


def training_config(parameters: Mapping[str, Any]) -> "TrainConfig":
    """Configure a training run by its notebook's parameters. Raises ConfigError with a line for each mistake."""
    from ecomlab.training.config import TrainConfig

    known, more, found = list(TrainConfig.model_fields), parameters.get("more", {}), []
    for name in more:
        if name in parameters:
            found.append(f"more: {name} is a parameter of the notebook; set it beside `more`")
        elif name not in known:
            found.append(f"more: {unknown('setting', name, known)}")
    try:
        config = TrainConfig(**{name: v for name, v in {**more, **parameters}.items() if name in known})
    except ValueError as e:
        found += str(e).splitlines()
    if found:
        raise ConfigError("\n".join(found))
    return config


def _slug(value: Any) -> str:
    """Write a value as part of a folder's name."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", str(value)).strip("-")
