"""Batches: a sweep from its file to finished runs and joined tables, here or on a cluster."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from ecomlab.analysis.tables import TableError
from ecomlab.lab import cluster, grid, notebooks, sweep
from ecomlab.lab.gather import gather
from ecomlab.lab.grid import State
from ecomlab.lab.paths import shown
from ecomlab.lab.pool import Failure, run_all
from ecomlab.lab.sweep import Run, Sweep, SweepError
from ecomlab.suggest import unknown


def run_sweep(
    file: str | Path,
    *,
    dry_run: bool = False,
    on: str = "",
    processes: int | None = None,
    console: Console | None = None,
) -> int:
    """Show the sweep's grid, do what is left of it and gather its tables. Returns the exit code, as `run_ablation`.

    With `dry_run` the grid is all: nothing is started or written, and what keeps the sweep from starting is
    said. `on` is "slurm" or "local": what is left is submitted through submitit, and the command returns.
    `processes` overrides the number of runs at a time that the file gives.
    """
    console = console or Console()

    def job() -> int:
        plan = sweep.load(file)
        plan.check()
        runs = plan.runs()
        absent = check_configurations([run for run in runs if not run.finished])
        grid.show(plan, grid.survey(plan, runs, _jobs(runs, console)), console)
        if dry_run:
            if absent:
                console.print(f"It cannot start yet: {_waits(absent)}.", highlight=False, soft_wrap=True)
            return 0
        _refuse(absent)
        with sweep.only_one(plan.runs_folder):
            at_a_time = processes or plan.processes
            if on and not all(run.finished for run in runs):
                return _submit(plan, runs, on, at_a_time, console)
            failures = work(plan, runs, at_a_time, console, "gathering their tables")
            if finished := [run for run in runs if run.finished]:
                gather(plan, finished)
                files = [shown(plan.folder / name) for name in ("train.csv", "eval.csv")]
                console.print(f"Tables of {len(finished)} runs: {', '.join(files)}", highlight=False)
        show_failures(failures, console)
        return 1 if failures else 0

    return guarded(job, console)


def prepare(file: str | Path) -> tuple[Sweep, list[Run]]:
    """The checked sweep and its runs. Raises what `guarded` words when any of them could not run."""
    plan = sweep.load(file)
    plan.check()
    runs = plan.runs()
    _refuse(check_configurations([run for run in runs if not run.finished]))
    return plan, runs


def work(
    plan: Sweep, runs: Sequence[Run], at_a_time: int, console: Console, then: str = "redrawing"
) -> list[Failure]:
    """Do the unfinished ones of `runs` in processes here; `then` says what comes when there are none.

    The caller holds the folder (`sweep.only_one`). Raises SweepError when a cluster has some of them.
    """
    left = [run for run in runs if not run.finished]
    if not left:
        console.print(f"{plan.name}: all {len(runs)} runs are done; {then}", highlight=False)
        return []
    if taken := cluster.jobs_of(left):
        ids = sorted({job.partition("_")[0] for job in taken.values()})
        raise SweepError(
            f"{len(taken)} of the runs are with the cluster now (job {', '.join(ids)}), such as "
            f"{next(iter(taken))}; wait for them, or end the job and give this command again"
        )
    at_a_time = min(at_a_time, len(left))
    console.print(f"{plan.name}: {len(runs)} runs, {len(left)} to do, {at_a_time} at a time", highlight=False)
    return run_all(runs, at_a_time, plan.threads, console)


def check_configurations(runs: Sequence[Run]) -> dict[str, list[str]]:
    """Build every training run's configuration, so that a wrong name or number stops all before any runs.

    Collections may name environments that this version does not have: returned by collection, no error.
    """
    absent: dict[str, list[str]] = {}
    for run in runs:
        if run.notebook.name != "run_training.ipynb":
            continue
        from ecomlab.envs.registry import COLLECTIONS, ENVIRONMENTS
        from ecomlab.train.config import TrainConfig

        effective = notebooks.check(run.notebook, run.given)
        known = set(TrainConfig.model_fields)
        values = {name: value for name, value in effective.items() if name in known} | effective.get(
            "more", {}
        )
        for name in values:
            if name not in known:
                raise SweepError(f"run {run.id}: more: {unknown('setting', name, known)}")
        collection = values.get("collection", "")
        if missing := [env for env in COLLECTIONS.get(collection, ()) if env not in ENVIRONMENTS]:
            absent[collection] = missing
            values["collection"] = next(c for c in COLLECTIONS if c not in absent)  # to check all the rest
        try:
            TrainConfig(**values)
        except ValueError as e:
            raise SweepError(f"run {run.id}: {e}") from e
    return absent


def show_failures(failures: Sequence[Failure], console: Console) -> None:
    """The end of each failed run's log, where the rest is, and the way out."""
    for failure in failures:
        log = failure.run.folder / sweep.LOG
        how = f"killed by signal {-failure.code}" if failure.code < 0 else f"exit code {failure.code}"
        console.print(
            f"\n[red]{failure.run.id} failed[/red] ({how}); the end of {escape(shown(log))}:", highlight=False
        )
        console.print(escape(failure.last_lines or "(the log is empty)"), highlight=False)
        if failure.code == -9:
            console.print("The system may have run out of memory: try fewer runs at a time (--processes 1).")
    if failures:
        console.print(
            "\nRepair that and give the same command again: finished runs are kept, the others go on "
            "from their last checkpoint.",
            highlight=False,
        )


def guarded(job: Callable[[], int], console: Console) -> int:
    """Run `job`; turn what can be expected to go wrong into a message and an exit code."""
    try:
        return job()
    except KeyboardInterrupt:
        console.print(
            "\nInterrupted. All runs have ended; finished runs are kept, the others go on from their last "
            "checkpoint when you give the same command again.",
            highlight=False,
        )
        return 130
    except (SweepError, notebooks.NotebookError, TableError) as e:
        console.print(f"[red]{escape(str(e))}[/red]", highlight=False)
    except ImportError as e:
        missing = f"{e.name or e} cannot be imported; `make venv` or pip install 'ecomlab[cpu]' brings it"
        console.print(f"[red]{escape(missing)}[/red]", highlight=False)
    except OSError as e:
        what = (f"{shown(e.filename)}: " if e.filename else "") + (e.strerror or str(e))
        way_out = "Finished runs are kept; with room and permission to write, give the same command again."
        console.print(f"[red]{escape(what)}[/red]. {way_out}", highlight=False)
    return 1


def _submit(plan: Sweep, runs: Sequence[Run], on: str, at_a_time: int, console: Console) -> int:
    """Submit the unfinished runs that nobody has; say the job and how to look."""
    statuses = grid.survey(plan, runs, _jobs(runs, console))
    taken = [s.run for s in statuses if s.state in (State.RUNNING, State.QUEUED)]
    left = [s.run for s in statuses if s.state in (State.LEFT, State.FAILED)]
    if taken:
        many = "run is" if len(taken) == 1 else "runs are"
        console.print(f"{len(taken)} {many} with the cluster or at work already, and left alone")
    if on == cluster.LOCAL:  # it starts all at once what it is given
        left = left[: max(0, at_a_time - len(taken))]
    if not left:
        console.print("nothing to submit now")
        return 0
    ids = cluster.submit(plan, left, on, at_a_time)
    many = "1 run" if len(left) == 1 else f"{len(left)} runs"
    jobs = ", ".join(dict.fromkeys(job.partition("_")[0] for job in ids))
    console.print(f"submitted {many} as job {jobs}, at most {at_a_time} at a time", highlight=False)
    console.print(escape(cluster.how_to_look(plan, on, ids)), highlight=False, soft_wrap=True)
    return 0


def _jobs(runs: Sequence[Run], console: Console) -> dict[str, str]:
    found = cluster.jobs_of(runs)
    if found is None:
        console.print("squeue does not answer: runs that wait in SLURM's queue are counted as left")
    return found or {}


def _refuse(absent: Mapping[str, Sequence[str]]) -> None:
    if absent:
        raise SweepError(f"{_waits(absent)}; take those collections out, or see the grid with --dry-run")


def _waits(absent: Mapping[str, Sequence[str]]) -> str:
    from ecomlab.envs.registry import ENVIRONMENTS

    envs = dict.fromkeys(env for missing in absent.values() for env in missing)
    return (
        f"collection{'s' * (len(absent) > 1)} {', '.join(absent)} need{'s' * (len(absent) == 1)} "
        f"{', '.join(envs)}, which this version does not have (there are {', '.join(ENVIRONMENTS)})"
    )
