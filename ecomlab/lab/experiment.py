"""Experiments from end to end: run a sweep, gather its tables, draw its figures, print its results."""

import csv
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd
from rich.console import Console
from rich.markup import escape

from ecomlab.analysis.statistics import arm_intervals, arm_names, summary
from ecomlab.analysis.tables import load_eval, load_experiment, load_train
from ecomlab.files import lock, read_json, write_json, write_text
from ecomlab.lab import notebooks, runner, status
from ecomlab.lab.paths import project_root, resolve, shown
from ecomlab.lab.provenance import RECORD, merged, sha256
from ecomlab.lab.runner import Failure
from ecomlab.lab.sweep import FINISHED, LOG, NO_PROJECT, Run, Sweep, SweepError, load
from ecomlab.suggest import unknown
from ecomlab.training.metrics import ALARMS, DONE

TABLES = {"train.csv": load_train, "eval.csv": load_eval}
"""Tables that a run writes and a sweep joins, by name, with the functions that check them."""
POLICIES = "policies"
"""Folder beside a sweep's tables with the policies that its runs ended with, one folder a run."""


def run_sweep(
    file: str | Path,
    *,
    dry_run: bool = False,
    on: str = "",
    processes: int | None = None,
    figures: str | Path | None = None,
    console: Console | None = None,
) -> int:
    """Show the sweep's status, execute its unfinished runs, gather its tables, and draw its figures into `figures`.

    With `dry_run`, only show the status. With `on`, "slurm" or "local", submit the unfinished runs through submitit and
    return. `processes` overrides the file's number of runs at a time. Returns the exit code: 1 when a run failed, else
    0. Raises SweepError, NotebookError, TableError and OSError; the same call continues from there, after
    KeyboardInterrupt too.
    """
    console = console or Console(highlight=False)
    plan = load(file)
    plan.check()
    runs = plan.runs()
    jobs = runner.jobs_of(runs)
    if jobs is None:
        console.print("squeue does not answer: runs in SLURM's queue are counted as left")
    status.show(plan, status.survey(plan, jobs or {}), console)
    if dry_run:
        return 0
    left, at_a_time = [run for run in runs if not run.finished], processes or plan.processes
    failures = []
    with lock(plan.runs_folder / ".lock", _busy(plan.runs_folder)):
        if left and on:
            runner.submit(plan, on, at_a_time, console)
            return 0
        if left:
            failures = runner.execute(runs, console, at_a_time, plan.threads)
        if finished := [run for run in runs if run.finished]:
            gather(plan, finished)
            if figures is not None:
                failures += draw(plan.figures, plan, resolve(figures), console)
            show_results(plan, console)
    return _show_failures(failures, console)


def draw_figures(
    file: str | Path | None = None,
    *,
    figures: str | Path = "figures",
    given: Mapping[str, Any] | None = None,
    console: Console | None = None,
) -> int:
    """Redraw the figures of one sweep; by default those of every sweep that has tables, and those of no sweep (`fig_*`
    notebooks without a parameter `experiment`) that have what they read. Names the others, with the command that makes
    their tables. `given` sets parameters of the notebooks that have them. Returns and raises as `run_sweep` does."""
    console, root = console or Console(highlight=False), project_root()
    own: list[Path] = []
    drawn: list[tuple[Sweep | None, Sequence[Path]]] = [(None, own)]
    absent = {}
    for path in [] if file else sorted((root / "notebooks").glob("fig_*.ipynb")):
        parameters = notebooks.parameters_of(path)
        if "experiment" not in parameters:
            if why := _lacks(parameters):
                absent[path.stem] = why
            else:
                own.append(path)
    for plan in map(load, [file] if file else sorted((root / "experiments").glob("*/sweep.toml"))):
        if file or (plan.folder / "train.csv").is_file():
            load_experiment(plan.folder)
            drawn.append((plan, plan.figures))
        else:
            absent[plan.name] = f"`ecomlab sweep {shown(plan.file)}` makes its tables"
    drawn = [(owner, books) for owner, books in drawn if books]
    if not (file or drawn or absent):
        raise SweepError(f"no sweep and no figure in {root}; {NO_PROJECT}")
    for name, why in absent.items():
        console.print(f"not drawn: {name}; {why}", soft_wrap=True)
    known = {name for _, books in drawn for book in books for name in notebooks.parameters_of(book)}
    if unfit := [name for name in given or {} if name not in known]:
        raise notebooks.NotebookError(f"the notebooks have {unknown('parameter', unfit[0], known)}")
    failures = []
    for owner, books in drawn:
        folder = _figures_folder(owner)
        with lock(folder / ".lock", _busy(folder)):
            failures += draw(books, owner, resolve(figures), console, given or {})
    return _show_failures(failures, console)


def _lacks(parameters: Mapping[str, notebooks.Parameter]) -> str:
    """Say what a figure that belongs to no sweep reads and is not here; empty if it has all."""
    read = {name: p.default for name, p in parameters.items() if name != "out" and isinstance(p.default, str)}
    for name, path in read.items():
        if path.startswith("experiments/") and not resolve(path).exists():
            made = f"; `ecomlab certify --json {path}` makes its tables" if name == "certificate" else ""
            return f"no file {path}{made}"
    return ""


def gather(plan: Sweep, runs: Sequence[Run]) -> None:
    """Join the tables and alarms of finished `runs`, in their order, into the sweep's folder, and check the result.

    Values are copied as they were written; a line of alarms.txt begins with its run's name; provenance.json records
    where each run comes from. The policies that training runs ended with are kept beside the tables in half precision,
    if they are small. Unchanged files are not written again. Raises TableError, which names the run's own file if the
    mistake is there.
    """
    for name, check in TABLES.items():
        for run in runs:
            check(run.folder / name)
        tables = [pd.read_csv(run.folder / name, dtype=str, keep_default_na=False) for run in runs]
        text = pd.concat(tables).to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_MINIMAL)
        _write(plan.folder / name, text)
    load_experiment(plan.folder)
    if files := {run.id: run.folder / ALARMS for run in runs if (run.folder / ALARMS).is_file()}:
        told = {name: file.read_text(encoding="utf-8").splitlines() for name, file in files.items()}
        _write(plan.folder / ALARMS, "".join(f"{name}: {line}\n" for name in told for line in told[name]))
    record = merged(
        {
            run.id: {
                **(read_json(run.folder / FINISHED) or {}), **(read_json(run.folder / RECORD) or {}),
                **_trained(plan, run),
            }
            for run in runs
        }
    )  # fmt: skip
    if read_json(plan.folder / RECORD) != record:
        write_json(plan.folder / RECORD, record)


def _write(file: Path, text: str) -> None:
    """Write a text, unless the file holds it already."""
    if not file.is_file() or file.read_text(encoding="utf-8") != text:
        write_text(file, text)


def _trained(plan: Sweep, run: Run) -> dict[str, str]:
    """Keep the policy that a training run ended with in `POLICIES`, if it is small, so that it can be evaluated again
    where the run's folder is gone. Returns for the run's record its sampler, and the SHA-256 of the weights that are
    kept as `policy`."""
    done = read_json(run.folder / DONE)
    if done is None:
        return {}
    from ecomlab.training import checkpoints

    record = {"sampler": done["config"].get("sampler", "torch")}
    folder = plan.folder / POLICIES / run.id
    try:
        last = checkpoints.newest(run.folder / "checkpoints")
    except checkpoints.CheckpointError as error:
        warnings.warn(f"the policy of {run.id} is not kept: {error}", stacklevel=2)
        return record
    if last is not None and last.step == done["steps"] and checkpoints.export(last.folder, folder):
        record["policy"] = sha256(folder / checkpoints.WEIGHTS)
    return record


def draw(
    books: Sequence[Path],
    plan: Sweep | None,
    out: Path,
    console: Console,
    given: Mapping[str, Any] = MappingProxyType({}),
) -> list[Failure]:
    """Execute fig_* notebooks, on the tables of `plan` if one is given, and with those of the `given` parameters that
    they have; print the PDFs written, return the failures."""
    drawings, began = [], time.time()
    for path in books:
        declared = notebooks.parameters_of(path)
        mine = {name: value for name, value in given.items() if name in declared}
        fixed = {"experiment": str(plan.folder)} if plan else {}
        drawing = Run(path.stem, _figures_folder(plan) / path.stem, path, {**mine, **fixed, "out": str(out)})
        notebooks.check(path, drawing.given)
        (drawing.folder / FINISHED).unlink(missing_ok=True)
        drawings.append(drawing)
    failures = runner.execute(drawings, console, threads=plan.threads if plan else 1)
    for pdf in sorted(out.glob("*.pdf")):
        if pdf.stat().st_mtime >= began:
            console.print(f"Figure: {shown(pdf)} (.png beside it, provenance in .json)", soft_wrap=True)
    return failures


def show_results(plan: Sweep, console: Console) -> None:
    """Print a row per run, and the interval of every arm that has enough runs."""
    runs = summary(*load_experiment(plan.folder))
    order = {name: i for i, name in enumerate(plan.grid.get("schedule", ()))}
    runs = runs.sort_values("schedule", key=lambda names: names.map(order), kind="stable")
    rows = pd.DataFrame({"arm": arm_names(runs), "seed": runs.seed, "steps": runs.steps})
    rows["window"] = [f"{run.d_low}–{run.d_high}" for run in runs.itertuples()]
    for name in ("sampled", "greedy"):
        if runs[f"{name}_last"].notna().any():
            ends = zip(runs[f"{name}_first"], runs[f"{name}_last"], strict=True)
            rows[name] = [f"{first:.2f} → {last:.2f}" for first, last in ends]
    rows["rollouts"], rows["minutes"] = runs.rollouts.map("{:,}".format), runs.minutes.map("{:.1f}".format)
    title = f"{plan.name}: held-out success, mean over difficulties, first → last evaluation"
    status.print_table(rows, title, console)
    for name, arm in arm_intervals(runs, "sampled_last").dropna().iterrows():
        spread = f"{arm['mean']:.2f} [{arm.low:.2f}, {arm.high:.2f}]"
        console.print(f"{name}: {spread}, 95% t interval over {arm.runs:.0f} runs")
    console.print(f"Tables: {', '.join(shown(plan.folder / name) for name in TABLES)}")
    if alarms := (plan.folder / ALARMS).is_file() and (plan.folder / ALARMS).read_text(encoding="utf-8"):
        console.print(f"Alarms: {len(alarms.splitlines())} in {shown(plan.folder / ALARMS)}")
    if kept := [path for path in (plan.folder / POLICIES).rglob("*") if path.is_file()]:
        size = sum(path.stat().st_size for path in kept) / 1e6
        console.print(f"Policies: {shown(plan.folder / POLICIES)}/<run>, {size:.1f} MB")


def _figures_folder(plan: Sweep | None) -> Path:
    """Return the folder in which figure notebooks are executed, and which is locked meanwhile."""
    return plan.runs_folder if plan else project_root() / "experiments" / "runs" / "figures"


def _busy(folder: Path) -> SweepError:
    return SweepError(
        f"another process works in {shown(folder)}/ now; wait for it, or end it, and give this command again: it "
        "continues from there"
    )


def _show_failures(failures: Sequence[Failure], console: Console) -> int:
    """Print the end and the path of each failed run's log, and what to do. Returns the exit code."""
    for failure in failures:
        log = failure.run.folder / LOG
        how = f"killed by signal {-failure.code}" if failure.code < 0 else f"exit code {failure.code}"
        console.print(f"\n[red]{failure.run.id} failed[/red] ({how}); the end of {escape(shown(log))}:")
        console.print(escape(failure.last_lines or "(the log is empty)"))
        if failure.code == -9:
            console.print("The system may have run out of memory: try fewer runs at a time (--processes 1).")
    if failures:
        console.print(
            "\nRepair that and give the same command again: finished runs are kept, the others continue "
            "from their last checkpoint."
        )
    return 1 if failures else 0
