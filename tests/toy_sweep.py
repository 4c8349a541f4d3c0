"""What tests of sweeps share: a toy notebook, sweeps of it, and what a run leaves behind."""

import io
import json
import os
from pathlib import Path

import nbformat
import pytest
import torch
from fake_tables import eval_rows, train_rows
from rich.console import Console
from safetensors.torch import save_file

from ecomlab import files
from ecomlab.lab import experiment
from ecomlab.training import checkpoints

ROOT = Path(__file__).resolve().parents[1]

PARAMETERS = """
schedule: str = "adaptive"
seed: int = 0
steps: int = 3
rate: float = 0.5
pause: float = 0.0  # seconds a step
broken: str = ""  # the schedule that fails
tables: str = ""  # folder of the rows of all runs
out: str = ""
"""
WORK = """
import time
from pathlib import Path
from ecomlab.lab import progress

folder = Path(out)
report = progress.watch(folder)
done = folder / "trace.txt"
for step in range(len(done.read_text().split()) if done.exists() else 0, steps):
    time.sleep(pause)
    with done.open("a") as file:
        file.write(f"{step} ")
    report({"step": step + 1, "steps": steps})
if broken == schedule:
    raise OSError(28, "No space left on device")
for name in ("train.csv", "eval.csv"):
    head, *rows = (Path(tables) / name).read_text().splitlines(keepends=True)
    mine = [row for row in rows if row.startswith(f"{schedule},C1,{seed},")]
    (folder / name).write_text("".join([head, *mine]))
"""


FIGURE = """
from pathlib import Path
Path(out).mkdir(exist_ok=True)
(Path(out) / "toy.pdf").write_bytes(Path(experiment, "train.csv").read_bytes())
"""


def run(file, **options):
    """The exit code of a sweep, and what it printed."""
    text = io.StringIO()
    try:
        code = experiment.run_sweep(file, console=Console(file=text, width=200), **options)
    except (ValueError, OSError) as error:  # which the command prints
        return 2, f"{text.getvalue()}{error}\n"
    return code, text.getvalue()


def write_notebook(path, *sources, tags=("parameters",)):
    cells = [nbformat.v4.new_code_cell(source.strip()) for source in sources]
    cells[0].metadata["tags"] = list(tags)
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


@pytest.fixture
def home(tmp_path, tmp_path_factory, monkeypatch):
    """An empty home and a cache elsewhere; kernels and workers import what we import, the fake tables too."""
    for name in [n for n in os.environ if n.startswith(("JUPYTER_", "IPYTHON", "MPL", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ECOMLAB_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    here = [str(ROOT), str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(here))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def toy(tmp_path, home):
    """A function that writes a sweep of two quick schedules and gives its file."""
    folder = tmp_path / "experiments" / "toy"
    folder.mkdir(parents=True)
    notebook = write_notebook(tmp_path / "toy.ipynb", PARAMETERS, WORK)
    seeds_of_all = (0, 1, 2)
    for name, rows in (("train.csv", train_rows(seeds_of_all)), ("eval.csv", eval_rows(seeds_of_all))):
        rows.to_csv(tmp_path / name, index=False)
    figure = write_notebook(tmp_path / "fig_toy.ipynb", 'experiment: str = ""\nout: str = ""', FIGURE)

    def write(draw=False, cluster=None, cost=None, seeds=(0,), **fixed):
        fixed = {"tables": str(tmp_path), **fixed}
        lines = [f'notebook = "{notebook}"', f"seeds = {list(seeds)}", "processes = 2"]
        lines += [f'figures = ["{figure}"]'] if draw else []
        tables = {name: table for name, table in (("cluster", cluster), ("cost", cost)) if table}
        lines += [f"{name} = {in_toml(table)}" for name, table in tables.items()]
        lines += ["[grid]", 'schedule = ["static-low", "adaptive"]', "[fixed]"]
        lines += [f"{name} = {in_toml(value)}" for name, value in fixed.items()]
        (folder / "sweep.toml").write_text("\n".join(lines))
        return folder / "sweep.toml"

    return write


def in_toml(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {in_toml(v)}" for name, v in value.items()) + " }"
    return json.dumps(value)


def trained(run, steps=2, alarms="", size=4):
    """What a training run leaves in its folder: tables, alarms, two sealed checkpoints, the mark of its end."""
    run.folder.mkdir(parents=True)
    for name, rows in (("train.csv", train_rows((0,))), ("eval.csv", eval_rows((0,)))):
        rows[rows.schedule == run.given["schedule"]].to_csv(run.folder / name, index=False)
    (run.folder / "alarms.txt").write_text(alarms)
    for step in (1, 2):
        checkpoint = run.folder / "checkpoints" / f"checkpoint-{2 * step}"
        checkpoint.mkdir(parents=True)
        save_file({"w": torch.full((size,), step + 1 / 3)}, checkpoint / "model.safetensors")
        (checkpoint / "config.json").write_text("{}")
        (checkpoint / "optimizer.pt").write_bytes(b"large")
        checkpoints.complete(checkpoint, {"step": step, "schedule": {}}, {"renderer": 3})
    files.write_json(run.folder / "done.json", {"steps": steps, "config": {"sampler": "tiny-1"}})
    files.write_json(run.folder / "finished.json", {"id": run.id, "commit": "c0ffee"})
