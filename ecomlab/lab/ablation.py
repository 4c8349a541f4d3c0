"""An ablation from end to end: run the sweep, gather its tables, draw its figures, say what came out."""

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ecomlab.analysis.statistics import arm_intervals, arm_names, summary
from ecomlab.analysis.tables import load_experiment
from ecomlab.lab import notebooks, sweep
from ecomlab.lab.batch import guarded, prepare, show_failures, work
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
        plan, runs = prepare(sweep_file)
        left = [run for run in runs if not run.finished]
        with sweep.only_one(plan.runs_folder):
            began = time.monotonic()
            failures = work(plan, runs, processes or plan.processes, console)
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
    """Redraw the figures of one sweep; without one, those of every sweep whose tables are there, and those that
    belong to no sweep: `fig_*` notebooks without a parameter `experiment`. Returns the exit code."""
    console = console or Console()

    def job() -> int:
        every = sorted((project_root() / "experiments").glob("*/sweep.toml"))
        plans = [sweep.load(file) for file in ([sweep_file] if sweep_file else every)]
        drawable = [plan for plan in plans if sweep_file or (plan.folder / "train.csv").is_file()]
        others = [] if sweep_file else _of_no_sweep()
        if not drawable and not others:
            raise SweepError("no experiment has tables yet; ecomlab ablation makes those of the quick one")
        failures: list[Failure] = []
        if others:
            runs_folder = project_root() / "experiments" / "runs" / "figures"
            with sweep.only_one(runs_folder):
                failed, pdfs = _execute(others, {}, runs_folder, resolve(figures), 1, console)
                failures += failed
                _show_figures(pdfs, console)
        for plan in drawable:
            load_experiment(plan.folder)
            with sweep.only_one(plan.runs_folder):
                failed, pdfs = _draw(plan, resolve(figures), console)
                failures += failed
                _show_figures(pdfs, console)
        show_failures(failures, console)
        return 1 if failures else 0

    return guarded(job, console)


def show_results(plan: Sweep, console: Console) -> None:
    """A row per run; from three runs an arm on, the arms with their intervals."""
    runs = summary(*load_experiment(plan.folder))
    order = {name: i for i, name in enumerate(plan.grid.get("schedule", ()))}
    runs = runs.sort_values("schedule", key=lambda names: names.map(order), kind="stable")
    title = f"{plan.name}: held-out success, mean over difficulties, first → last evaluation"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    headings = ("arm", "seed", "steps", "window", "sampled", "greedy", "rollouts", "minutes")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "arm" else "right")
    for run in runs.assign(arm=arm_names(runs)).itertuples():
        sampled = f"{run.sampled_first:.2f} → {run.sampled_last:.2f}"
        greedy = f"{run.greedy_first:.2f} → {run.greedy_last:.2f}"
        window = f"{run.d_low}–{run.d_high}"
        cells = (
            run.arm,
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


def _draw(plan: Sweep, out: Path, console: Console) -> tuple[list[Failure], list[Path]]:
    """Execute the sweep's fig_* notebooks on its tables. Returns the failures and the PDFs that were written."""
    given = {"experiment": str(plan.folder)}
    return _execute(plan.figures, given, plan.runs_folder, out, plan.threads, console)


def _execute(
    books: Sequence[Path],
    given: Mapping[str, Any],
    runs_folder: Path,
    out: Path,
    threads: int,
    console: Console,
) -> tuple[list[Failure], list[Path]]:
    """Execute fig_* notebooks with `given`. Returns the failures and the PDFs that were written."""
    before = _pdfs(out)
    drawings = [Run(path.stem, runs_folder / path.stem, path, {**given, "out": str(out)}) for path in books]
    for drawing in drawings:
        notebooks.check(drawing.notebook, drawing.given)
        (drawing.folder / FINISHED).unlink(missing_ok=True)
    failures = run_all(drawings, 1, threads, console, noun="figures") if drawings else []
    return failures, [path for path, written in _pdfs(out).items() if written != before.get(path)]


def _of_no_sweep() -> list[Path]:
    """The figures that need no experiment."""
    every = sorted((project_root() / "notebooks").glob("fig_*.ipynb"))
    return [path for path in every if "experiment" not in notebooks.parameters_of(path)]


def _show_figures(pdfs: Sequence[Path], console: Console) -> None:
    for pdf in pdfs:
        console.print(f"Figure: {shown(pdf)} (.png beside it, provenance in .json)", highlight=False)


def _pdfs(folder: Path) -> dict[Path, int]:
    """When each PDF in `folder` was last written."""
    return {path: path.stat().st_mtime_ns for path in sorted(folder.glob("*.pdf"))}
