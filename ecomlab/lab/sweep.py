"""A sweep is data: a notebook, a grid and seeds become runs, each with a name, a folder and its parameters.

    notebook = "notebooks/run_training.ipynb"     # from the project's root
    seeds = [0, 1]
    processes = 2                                 # runs at a time, each with `threads` threads (default 1)
    figures = ["notebooks/fig_difficulty_growth.ipynb"]

    [fixed]                                       # the same in every run
    steps = 40

    [grid]                                        # every combination
    schedule = ["static-low", "adaptive"]

[cluster] and [cost] are described in `ecomlab.lab.resources`.

Run folders are experiments/runs/<name>/<run>/, where <name> is the folder that sweep.toml lies in. A run is
finished when its folder holds finished.json, which is written last; a folder with a run of
other parameters than are asked for now is refused.
"""

import fcntl
import itertools
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ecomlab.lab import notebooks
from ecomlab.lab.paths import project_root, read_json, resolve, shown
from ecomlab.lab.resources import Cluster, Cost, cluster_from, cost_from
from ecomlab.suggest import unknown

REQUEST, FINISHED, FAILED, LOG = "request.json", "finished.json", "failed.json", "log.txt"
LOCK = ".worker.lock"  # held by the process that executes the run


class SweepError(Exception):
    """A sweep that cannot be run as asked. The message is for the user."""


@dataclass(frozen=True)
class Run:
    """One execution of the notebook. `given` are the parameters handed to it, `out` among them."""

    id: str
    folder: Path
    notebook: Path
    given: Mapping[str, Any]

    @property
    def finished(self) -> bool:
        return read_json(self.folder / FINISHED) is not None

    def request(self) -> dict[str, Any]:
        """What a worker needs to know, and what is compared when the run is asked for again."""
        return {
            "id": self.id,
            "notebook": str(self.notebook),
            "folder": str(self.folder),
            "parameters": dict(self.given),
        }

    def changed(self) -> str:
        """How the folder's parameters differ from those asked for: "steps was 40 and is 80"; '' if not."""
        before = read_json(self.folder / REQUEST)
        if not isinstance(before, dict):
            return ""
        old, new = {**before.get("parameters", {}), "out": ""}, {**self.given, "out": ""}
        absent = "the notebook's own"
        names = [name for name in {**old, **new} if old.get(name, absent) != new.get(name, absent)]
        return ", ".join(
            f"{name} was {old.get(name, absent)} and is {new.get(name, absent)}" for name in names
        )


@dataclass(frozen=True)
class Sweep:
    """A checked sweep.toml."""

    name: str
    file: Path
    notebook: Path
    seeds: tuple[int, ...]
    grid: Mapping[str, tuple[Any, ...]]
    fixed: Mapping[str, Any]
    figures: tuple[Path, ...] = ()
    processes: int = 2
    threads: int = 1
    cluster: Cluster | None = None
    cost: Cost = field(default_factory=Cost)

    @property
    def folder(self) -> Path:
        """Where the tables go: the folder of sweep.toml."""
        return self.file.parent

    @property
    def runs_folder(self) -> Path:
        return self.folder.parent / "runs" / self.name

    def runs(self) -> list[Run]:
        """Every run, all arms of a seed before the next seed: half a sweep can be compared too."""
        found = []
        for seed, values in itertools.product(self.seeds, itertools.product(*self.grid.values())):
            point = dict(zip(self.grid, values, strict=True))
            run_id = "-".join([*(_slug(v) for v in values), f"seed{seed}"])
            folder = self.runs_folder / run_id
            given = {**self.fixed, **point, "seed": seed, "out": str(folder)}
            found.append(Run(run_id, folder, self.notebook, given))
        return found

    def check(self) -> None:
        """Raise SweepError or NotebookError for anything that would fail in every run, before any starts."""
        runs = self.runs()
        ids = [run.id for run in runs]
        if twice := sorted({i for i in ids if ids.count(i) > 1}):
            raise SweepError(f"{shown(self.file)} names the same run twice: {', '.join(twice)}")
        for run in runs:
            notebooks.check(run.notebook, run.given)
        for figure in self.figures:
            notebooks.parameters_of(figure)
        for run in runs:
            if change := run.changed():
                raise SweepError(
                    f"{shown(run.folder)}/ has a run with other parameters ({change}). Give the sweep "
                    f"another folder, or delete {shown(self.runs_folder)}/ to start again"
                )


def load(file: str | Path) -> Sweep:
    """Read and check a sweep.toml, named from here or from the project's root.

    Raises SweepError that names the file, the key and the way out.
    """
    path = Path(file).absolute() if Path(file).is_file() else resolve(file)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        there = [p.parent.name for p in (project_root() / "experiments").glob("*/sweep.toml")]
        raise SweepError(
            f"no file {shown(path)}; there are sweeps called {', '.join(sorted(there)) or 'nothing yet'}"
        ) from None
    except (OSError, tomllib.TOMLDecodeError) as e:
        raise SweepError(f"{shown(path)} cannot be read: {e}") from e
    keys = {
        "notebook": str,
        "seeds": list,
        "figures": list,
        "processes": int,
        "threads": int,
        "fixed": dict,
        "grid": dict,
        "cluster": dict,
        "cost": dict,
    }
    for key, value in table.items():
        if key not in keys:
            raise SweepError(f"{shown(path)} has {unknown('key', key, keys)}")
        if not isinstance(value, keys[key]):
            raise SweepError(f"{shown(path)}: {key} is a {keys[key].__name__}, not {value!r}")
    if "notebook" not in table or not table.get("seeds"):
        raise SweepError(f'{shown(path)} needs notebook = "notebooks/….ipynb" and seeds = [0, 1, …]')
    grid = {name: tuple(v) if isinstance(v, list) else (v,) for name, v in table.get("grid", {}).items()}
    fixed = table.get("fixed", {})
    if empty := [name for name, values in grid.items() if not values]:
        raise SweepError(f"{shown(path)}: the grid's {empty[0]} has no values")
    if taken := sorted({"seed", "out"} & ({*grid} | {*fixed}) | {*grid} & {*fixed}):
        raise SweepError(
            f"{shown(path)} sets {', '.join(taken)} twice: seeds has its own key, `out` is the run's folder"
        )
    if not all(type(seed) is int for seed in table["seeds"]):
        raise SweepError(f"{shown(path)}: seeds are whole numbers, not {table['seeds']}")
    if min(table.get("processes", 1), table.get("threads", 1)) < 1:
        raise SweepError(f"{shown(path)}: processes and threads are at least 1")
    try:
        cluster = cluster_from(table["cluster"]) if "cluster" in table else None
        cost = cost_from(table.get("cost", {}), cluster)
    except ValueError as e:
        raise SweepError(f"{shown(path)}: {e}") from e
    return Sweep(
        name=path.parent.name,
        file=path,
        notebook=resolve(table["notebook"]),
        seeds=tuple(table["seeds"]),
        grid=grid,
        fixed=fixed,
        figures=tuple(resolve(f) for f in table.get("figures", [])),
        processes=table.get("processes", 2),
        threads=table.get("threads", 1),
        cluster=cluster,
        cost=cost,
    )


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Hold `folder` for this process; a killed one lets go. Raises SweepError when another process has it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock")
        lock.acquire(timeout=0)
    except Timeout:
        raise SweepError(
            f"another process works in {shown(folder)}/ now; let it finish (this command then goes on from "
            "there), or end it and run this again"
        ) from None
    except OSError as e:
        raise SweepError(
            f"cannot write to {shown(folder)}/: {e.strerror}; make it writable, or clone elsewhere"
        ) from e
    try:
        yield
    finally:
        lock.release()


def at_work(run: Run) -> bool:
    """Whether a process executes `run` now, on any machine whose locks the file system shares. Writes nothing."""
    try:
        with (run.folder / LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _slug(value: Any) -> str:
    """A value as part of a folder's name."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", str(value)).strip("-")
