"""An ablation from end to end: run the sweep, gather its tables, draw its figures, say what came out."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ecomlab.analysis.statistics import arm_intervals, summary
from ecomlab.analysis.tables import TableError, load_experiment
from ecomlab.lab import notebooks, sweep
from ecomlab.lab.gather import gather
from ecomlab.lab.paths import project_root, resolve, shown
from ecomlab.lab.pool import Failure, run_all
from ecomlab.lab.sweep import FINISHED, Run, Sweep, SweepError

QUICK = "experiments/quick/sweep.toml"


def run_ablation(
    sweep_file: str | Path = QUICK,
    *,
    processes: int | None = None,
    figures: str | Path = "figures",
    console: Console | None = None,
) -> int:
    """Do what is left of the sweep, then gather tables and draw figures. Returns the exit code.

    0: every run is finished; 1: something failed, which was said; 130: interrupted, and how to go on was
    said. `processes` overrides the number of runs at a time that sweep.toml gives. Figures go to the folder
    `figures`.
    """
    console = console or Console()

    def job() -> int:
        plan = sweep.load(sweep_file)
        plan.check()
        runs = plan.runs()
        left = [run for run in runs if not run.finished]
        if left:
            check_configurations(left)
        with sweep.only_one(plan.runs_folder):
            failures: list[Failure] = []
            began = time.monotonic()
            if left:
                at_a_time = min(processes or plan.processes, len(left))
                console.print(
                    f"{plan.name}: {len(runs)} runs, {len(left)} to do, {at_a_time} at a time",
                    highlight=False,
                )
                failures = run_all(runs, at_a_time, plan.threads, console)
            else:
                console.print(f"{plan.name}: all {len(runs)} runs are done; redrawing", highlight=False)
            finished = [run for run in runs if run.finished]
            if finished:
                gather(plan, finished)
                failed, pdfs = _draw(plan, resolve(figures), console)
                failures += failed
                show_results(plan, console)
                _show_figures(pdfs, console)
            if left:
                console.print(f"{(time.monotonic() - began) / 60:.1f} minutes", highlight=False)
            show_failures(failures, console)
            return 1 if failures else 0

    return guarded(job, console)


def draw_figures(
    sweep_file: str | Path | None = None, *, figures: str | Path = "figures", console: Console | None = None
) -> int:
    """Redraw the figures of one sweep, or of every sweep whose tables are there. Returns the exit code."""
    console = console or Console()

    def job() -> int:
        every = sorted((project_root() / "experiments").glob("*/sweep.toml"))
        plans = [sweep.load(file) for file in ([sweep_file] if sweep_file else every)]
        drawable = [plan for plan in plans if sweep_file or (plan.folder / "train.csv").is_file()]
        if not drawable:
            raise SweepError("no experiment has tables yet; ecomlab ablation makes those of the quick one")
        failures: list[Failure] = []
        for plan in drawable:
            load_experiment(plan.folder)
            with sweep.only_one(plan.runs_folder):
                failed, pdfs = _draw(plan, resolve(figures), console)
                failures += failed
                _show_figures(pdfs, console)
        show_failures(failures, console)
        return 1 if failures else 0

    return guarded(job, console)


def check_configurations(runs: Sequence[Run]) -> None:
    """Build every training run's configuration, so that a wrong name or number stops all before any runs."""
    for run in runs:
        if run.notebook.name != "run_training.ipynb":
            continue
        from ecomlab.train.run import TrainConfig

        effective = notebooks.check(run.notebook, run.given)
        known = {field.name for field in fields(TrainConfig)}
        try:
            TrainConfig(**{name: value for name, value in effective.items() if name in known})
        except ValueError as e:
            raise SweepError(f"run {run.id}: {e}") from e


def show_results(plan: Sweep, console: Console) -> None:
    """A row per run; from three runs an arm on, the arms with their intervals."""
    runs = summary(*load_experiment(plan.folder))
    order = {name: i for i, name in enumerate(plan.grid.get("schedule", ()))}
    runs = runs.sort_values("schedule", key=lambda names: names.map(order), kind="stable")
    title = f"{plan.name}: held-out success, mean over difficulties, first → last evaluation"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    headings = ("schedule", "seed", "steps", "window", "sampled", "greedy", "rollouts", "minutes")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "schedule" else "right")
    for run in runs.itertuples():
        sampled = f"{run.sampled_first:.2f} → {run.sampled_last:.2f}"
        greedy = f"{run.greedy_first:.2f} → {run.greedy_last:.2f}"
        window = f"{run.d_low}–{run.d_high}"
        cells = (
            run.schedule,
            run.seed,
            run.steps,
            window,
            sampled,
            greedy,
            f"{run.rollouts:,}",
            f"{run.minutes:.1f}",
        )
        table.add_row(*(str(cell).replace("nan → nan", "–") for cell in cells))
    console.print(table)
    for name, arm in arm_intervals(runs, "sampled_last").iterrows():
        if not math.isnan(arm.low):
            spread = f"{arm['mean']:.2f} [{arm.low:.2f}, {arm.high:.2f}]"
            console.print(f"{name}: {spread}, 95% t interval over {arm.runs:.0f} runs", highlight=False)
    files = [shown(plan.folder / name) for name in ("train.csv", "eval.csv")]
    console.print(f"Tables: {', '.join(files)}", highlight=False)


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


def _draw(plan: Sweep, out: Path, console: Console) -> tuple[list[Failure], list[Path]]:
    """Execute the sweep's fig_* notebooks on its tables. Returns the failures and the PDFs that were written."""
    before = _pdfs(out)
    given: dict[str, Any] = {"experiment": str(plan.folder), "out": str(out)}
    drawings = [Run(path.stem, plan.runs_folder / path.stem, path, given) for path in plan.figures]
    for drawing in drawings:
        notebooks.check(drawing.notebook, drawing.given)
        (drawing.folder / FINISHED).unlink(missing_ok=True)
    failures = run_all(drawings, 1, plan.threads, console, noun="figures") if drawings else []
    return failures, [path for path, written in _pdfs(out).items() if written != before.get(path)]


def _show_figures(pdfs: Sequence[Path], console: Console) -> None:
    for pdf in pdfs:
        console.print(f"Figure: {shown(pdf)} (.png beside it, provenance in .json)", highlight=False)


def _pdfs(folder: Path) -> dict[Path, int]:
    """When each PDF in `folder` was last written."""
    return {path: path.stat().st_mtime_ns for path in sorted(folder.glob("*.pdf"))}
