"""The lab's promises: strict parameters, runs neither repeated nor lost, results that name their origin."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
import pytest
import torch
import toy_sweep
from outdated import outdated
from safetensors.torch import load_file
from toy_sweep import PARAMETERS, trained, write_notebook

from ecomlab import files, load_shop, make_task
from ecomlab.analysis import tables
from ecomlab.lab import (
    copies,
    experiment,
    notebooks,
    paths,
    provenance,
    runner,
    show,
    sweep,
)
from ecomlab.settings import ConfigError

ROOT = Path(__file__).resolve().parents[2]


def run(file, **options):
    """The exit code of a sweep with figures, and what it printed."""
    return toy_sweep.run(file, figures=file.parent / "figures", **options)


# --- parameters -----------------------------------------------------------------------------------


def test_parameters_are_read_without_running_anything(tmp_path):
    path = write_notebook(tmp_path / "a.ipynb", PARAMETERS, "raise SystemExit")
    own = {"schedule": "adaptive", "seed": 0, "pause": 0.0, "broken": "", "tables": "", "out": ""}
    assert notebooks.check(path, {"steps": 7, "rate": 1}) == own | {"steps": 7, "rate": 1}


@pytest.mark.parametrize(
    ("cell", "tags", "word"),
    [
        (PARAMETERS, (), "tagged"),
        ("seed = 0", ("parameters",), "annotated"),
        ("seed: int = int('3')", ("parameters",), "annotated"),
    ],
)
def test_notebooks_that_papermill_would_run_wrongly_are_refused(tmp_path, cell, tags, word):
    path = write_notebook(tmp_path / "a.ipynb", cell, tags=tags)
    with pytest.raises(notebooks.NotebookError, match=word):
        notebooks.check(path, {})
    with pytest.raises(notebooks.NotebookError, match="'a.ipynb'"):
        notebooks.check(tmp_path / "b.ipynb", {})


# --- sweep.toml -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('notebok = "a.ipynb"', "'notebook'"),
        ('notebook = "a.ipynb"', "seeds"),
        ('notebook = "a.ipynb"\nseeds = [0]\n[grid]\nseed = [1]', "twice"),
        ('notebook = "a.ipynb"\nseeds = [0]\n[grid]\nx = 1\n[fixed]\nx = 1', "twice"),
        ('notebook = "a.ipynb"\nseeds = [0]\n[grid]\nx = []', "grid.x"),
        ('notebook = "a.ipynb"\nseeds = [0]\nprocesses = 0', "processes"),
        ("seeds = [0", "read"),
    ],
)
def test_a_wrong_sweep_is_an_error(tmp_path, text, word):
    (tmp_path / "sweep.toml").write_text(text)
    with pytest.raises(ConfigError, match=f"sweep.toml:? .*{word}"):
        sweep.load(tmp_path / "sweep.toml")


def test_a_sweep_is_every_combination_with_every_seed(toy):
    plan = sweep.load(toy(rate=0.1))
    assert [r.id for r in plan.runs()] == ["static-low-seed0", "adaptive-seed0"]
    first = plan.runs()[0]
    assert first.folder == plan.folder.parent / "runs" / "toy" / "static-low-seed0"
    given = {"rate": 0.1, "schedule": "static-low", "seed": 0, "out": str(first.folder)}
    assert first.given == given | {"tables": str(plan.folder.parents[1])}


def test_the_quick_ablation_is_sound():
    plan = sweep.load("experiments/quick/sweep.toml")
    for job in plan.runs():
        notebooks.check(job.notebook, job.given)
    assert len(plan.runs()) == 6
    assert set(plan.grid["schedule"]) == {"static-low", "static-high", "adaptive"}
    assert plan.fixed["steps"] >= 30


def test_a_wrong_value_stops_the_sweep_before_anything_runs(toy, tmp_path):
    """All mistakes are told, each once, though every run has it."""
    code, text = run(toy(stepps=3))
    assert code == 2 and "'steps'" in text
    file = toy(steps=3)
    file.write_text(file.read_text().replace("toy.ipynb", "gone.ipynb"))
    code, text = run(file)
    assert code == 2 and "'gone.ipynb'" in text
    lines = [f'notebook = "{ROOT / "notebooks" / "run_training.ipynb"}"', "seeds = [0, 1]", "[fixed]"]
    lines += [
        "stepz = 3",
        'eval_every = "often"',
        "more = { d_type = 1 }",
        "[grid]",
        'schedule = ["adaptiv"]',
    ]
    file.write_text("\n".join(lines))
    code, text = run(file)
    assert code == 2 and len(text.splitlines()) == 4, text
    assert all(word in text for word in ("'steps'", "'often'", "'adaptive'", "'dtype'"))
    assert not (file.parent.parent / "runs").exists()


# --- runs -----------------------------------------------------------------------------------------


def test_an_ablation_runs_what_is_left_once_and_then_only_draws(toy, home):
    file = toy()
    trained(sweep.load(file).runs()[0])
    before = stamps(file.parent.parent / "runs")
    code, text = run(file)
    assert code == 0, text
    assert before.items() <= stamps(file.parent.parent / "runs").items(), "a finished run is left alone"
    train, evaluation = tables.load_experiment(file.parent)
    assert set(train.schedule) == set(evaluation.schedule) == {"static-low", "adaptive"}
    assert "0.25 → 0.45" in text  # of one seed: runs, no interval
    record = json.loads((file.parent / "provenance.json").read_text())
    made = record["runs"]["adaptive-seed0"]["parameters"]
    assert (made["schedule"], made["steps"]) == ("adaptive", 3)

    before, tabled = stamps(file.parent.parent / "runs"), (file.parent / "train.csv").stat().st_mtime_ns
    code, text = run(toy(draw=True))
    assert code == 0, text
    assert before.items() <= stamps(file.parent.parent / "runs").items()
    assert (file.parent / "figures" / "toy.pdf").is_file()
    assert (file.parent / "train.csv").stat().st_mtime_ns == tabled
    assert list(home.rglob("*")) == [], "something was written to the home directory"

    code, text = run(toy(steps=4))
    assert code == 2 and "steps was the notebook's own" in text


def stamps(folder):
    return {path: path.stat().st_mtime_ns for path in folder.glob("*/*-seed0/*")}


def test_last_policies_and_alarms_are_kept_beside_the_tables(toy):
    plan = sweep.load(toy())
    low, adaptive = plan.runs()
    trained(low)
    trained(adaptive, alarms="step 1: one\nstep 2: two\n")
    experiment.gather(plan, [low, adaptive])
    alarms = (plan.folder / "alarms.txt").read_text()
    assert alarms == "adaptive-seed0: step 1: one\nadaptive-seed0: step 2: two\n"
    folder = plan.folder / "policies" / "adaptive-seed0"
    kept = sorted(path.name for path in folder.iterdir())
    assert kept == ["config.json", "made_for.json", "model.safetensors"]
    weights = load_file(folder / "model.safetensors")["w"]
    assert weights.dtype == torch.float16 and torch.equal(weights, torch.full((4,), 7 / 3).half()), "the last"
    digest = provenance.sha256(folder / "model.safetensors")
    record = json.loads((plan.folder / "provenance.json").read_text())
    assert record["common"]["policy"] == digest, "equal weights in both runs"
    assert record["common"]["sampler"] == "tiny-1"
    before = {path: path.stat().st_mtime_ns for path in plan.folder.rglob("*") if path.is_file()}
    experiment.gather(plan, [low, adaptive])
    assert {path: path.stat().st_mtime_ns for path in before} == before, (
        "unchanged files are not written again"
    )


def test_a_failed_run_is_shown_and_the_others_go_on(toy):
    file = toy(broken="static-low", steps=1)
    code, text = run(file)
    assert code == 1
    assert "static-low-seed0 failed" in text and "[Errno 28]" in text
    assert "[Errno 28]" in run(file, dry_run=True)[1], "the grid says it until it is tried again"
    assert set(tables.load_train(file.parent / "train.csv").schedule) == {"adaptive"}


def test_a_killed_run_stops_no_other(toy, monkeypatch):
    """As where memory is short; a pool of joblib or concurrent.futures would give up all runs."""
    begin = runner.start

    def start(job, environment):
        worker = begin(job, environment)
        if job.given["schedule"] == "static-low":
            worker.kill()
        return worker

    monkeypatch.setattr(runner, "start", start)
    file = toy(steps=1)
    code, text = run(file)
    assert code == 1 and "signal 9" in text and "--processes 1" in text
    assert set(tables.load_train(file.parent / "train.csv").schedule) == {"adaptive"}


@pytest.mark.parametrize("how", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)])
def test_an_ended_ablation_leaves_no_process_and_goes_on(toy, how):
    file = toy(steps=20, pause=0.1)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ["PYTHONPATH"]])}
    process = subprocess.Popen(
        [sys.executable, "-m", "ecomlab", "sweep", str(file)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    traces = [r.folder / "trace.txt" for r in sweep.load(file).runs()]
    deadline = time.monotonic() + 60
    while not all(trace.exists() for trace in traces) and time.monotonic() < deadline:
        time.sleep(0.1)
    family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) == 4, "two workers with a kernel each"

    code, text = run(file)  # a second one beside it does no harm
    assert code == 2 and "another process" in text

    process.send_signal(how)
    said, _ = process.communicate(timeout=60)
    _, alive = psutil.wait_procs(family, timeout=20)
    assert alive == []
    if how == signal.SIGINT:
        assert process.returncode == 130 and "Traceback" not in said
        return

    code, text = run(toy(steps=20, pause=0.1))
    assert code == 0, text
    for trace in traces:
        assert trace.read_text().split() == [str(step) for step in range(20)], "no step was repeated or lost"


# --- files and words ------------------------------------------------------------------------------


def test_the_kernel_is_this_interpreter_whatever_is_installed(home):
    environment = paths.kernel_environment()
    folder = environment["JUPYTER_PATH"].split(os.pathsep)[0]
    spec = json.loads((Path(folder) / "kernels" / "python3" / "kernel.json").read_text())
    assert spec["argv"][0] == sys.executable
    assert environment["OMP_NUM_THREADS"] == "1"
    cache = os.environ["ECOMLAB_CACHE"]
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "MPLCONFIGDIR"):
        assert environment[name].startswith(cache)


def test_files_are_whole_or_not_there(tmp_path, monkeypatch):
    files.write_text(tmp_path / "a.txt", "before")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    with pytest.raises(OSError, match="full"):
        files.write_text(tmp_path / "a.txt", "after")
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "before"


def test_a_task_is_shown_with_what_nobody_is_told(shop):
    task = make_task("CART", 6, 7, shop)
    table = show.task(task).frame.reset_index()
    assert table.iloc[0, 2] == task.opening
    hidden = " ".join(table[table[""] == "withheld until asked"]["the task"])
    assert task.goal.withheld and hidden.count(": ") == len(task.goal.withheld)
    assert (table[""].str.startswith(("after ", "hearing"))).sum() == len(task.events)
    assert str(task.turns) in table["the task"].iloc[-2]


# --- locks and folders ----------------------------------------------------------------------------


def test_a_new_folder_is_laid_out_and_is_a_project_of_its_own(tmp_path, monkeypatch):
    made = paths.lay_out(tmp_path / "work")
    there = {path.relative_to(tmp_path / "work").as_posix() for path in made}
    assert {
        "notebooks/start_01_here.ipynb",
        "experiments/quick/sweep.toml",
        "experiments/qwen3_8b/c8.toml",
        "experiments/qwen3_8b/bench.csv",  # so that a run's plan is there what it is in a clone
        "experiments/tokens/tokens.csv",
    } <= there
    assert os.access(tmp_path / "work" / "experiments/qwen3_8b/nodes.sh", os.X_OK)
    assert (tmp_path / "work" / "figures").is_dir() and (tmp_path / "work/experiments/certificate").is_dir()
    monkeypatch.chdir(tmp_path / "work" / "notebooks")
    assert paths.project_root() == tmp_path / "work"
    plan = sweep.load("experiments/quick/sweep.toml")
    assert plan.file.is_relative_to(tmp_path) and plan.notebook.is_relative_to(tmp_path)
    plan.check()
    for notebook in Path().glob("*.ipynb"):
        for link in re.findall(r"\]\((\.\./[^)#]+)", notebook.read_text("utf-8")):
            assert Path(link).is_file(), f"{notebook} links to {link}"


def test_a_folder_with_something_in_it_is_not_laid_out(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    for folder in (tmp_path, tmp_path / "mine.txt"):
        with pytest.raises(FileExistsError, match="new"):
            paths.lay_out(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(FileNotFoundError, match="nothing"):
        paths.lay_out(tmp_path / "new", given=tmp_path)


# --- provenance -----------------------------------------------------------------------------------


@pytest.fixture
def clone(tmp_path):
    """A small repository laid out like ours, with one commit."""

    def git(*arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    table = "experiments/quick/train.csv"
    for name in ("ecomlab/a.py", "notebooks/x.txt", table, "README.md", "pyproject.toml"):
        files.write_text(tmp_path / name, "1")
    write_notebook(tmp_path / "notebooks" / "n.ipynb", PARAMETERS, "1 + 1")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    return tmp_path


@pytest.mark.parametrize("source", ["ecomlab/new.py", "experiments/quick/effect.py"])
def test_only_sources_make_a_commit_dirty(clone, source):
    """What made a table is one, be it a script beside it."""
    clean = provenance.commit(clone)
    assert len(clean) == 12
    (clone / "experiments" / "quick" / "train.csv").write_text("2")
    (clone / "README.md").write_text("2")
    assert provenance.commit(clone) == clean
    (clone / source).write_text("2")
    assert provenance.commit(clone) == f"{clean}-dirty"


def test_outputs_do_not_make_a_notebook_dirty_but_sources_do(clone):
    clean = provenance.commit(clone)
    path = clone / "notebooks" / "n.ipynb"
    book = nbformat.read(path, as_version=4)
    book.cells[1].outputs = [nbformat.v4.new_output("stream", text="2")]
    book.cells[1].execution_count = 1
    nbformat.write(book, path)
    assert provenance.commit(clone) == clean
    book.cells[1].source = "1 + 2"
    nbformat.write(book, path)
    assert provenance.commit(clone) == f"{clean}-dirty"


def record_of(starter="novice", envs=("CART",), size=2_000):
    made = provenance.made_with(starter, envs)
    parameters = {"starter": starter, "catalog_size": size, "catalog_seed": 0}
    return {"parameters": parameters, "catalog": load_shop(size).fingerprint, "made_with": made}


def test_a_table_made_with_what_is_shipped_is_not_outdated():
    assert list(outdated(record_of())) == []
    runs = {name: {"id": name, **record_of()} for name in ("a-seed0", "a-seed1")}
    assert list(outdated(provenance.merged(runs))) == []


def test_an_outdated_table_says_what_is_another():
    runs = {name: {"id": name, **record_of(envs=("CART", "PD"))} for name in ("a-seed0", "a-seed1")}
    runs["a-seed1"]["made_with"]["environments"]["PD"] = {"version": 1, "tasks": "x"}
    runs["a-seed1"]["made_with"]["starter"] = {"model.safetensors": "0"}
    runs["a-seed1"]["made_with"]["environments"]["GONE"] = {"version": 1, "tasks": "x"}
    runs["a-seed0"]["catalog"] = "another"
    found = list(outdated(provenance.merged(runs)))
    for said, run_id, word in zip(
        found, ["a-seed0", *["a-seed1"] * 3], ["catalog", "novice", "PD", "GONE"], strict=True
    ):
        assert said.startswith(run_id) and word in said
    assert len(list(outdated({"parameters": {}}))) == 1


def test_provenance_has_no_place_and_no_day(tmp_path):
    (tmp_path / "data.csv").write_text("a,b\n")
    record = provenance.provenance(
        {"out": str(ROOT / "figures"), "seed": 1}, catalog="f00", inputs=[tmp_path / "data.csv"]
    )
    assert record["parameters"] == {"out": "figures", "seed": 1}
    assert list(record["inputs"].values()) == [provenance.sha256(tmp_path / "data.csv")]
    assert record["catalog"] == "f00"
    assert str(ROOT) not in json.dumps(record)
    assert {"python", "numpy", "torch"} <= set(record["versions"])


def test_people_edit_copies_of_the_notebooks_that_are_renewed_until_they_are_changed(tmp_path):
    original = tmp_path / "notebooks" / "start_01.ipynb"
    files.write_text(original, "see [the board](../experiments/core/BOARD.md)")
    mine = tmp_path / copies.COPIES / "start_01.ipynb"
    assert copies.copy_notebooks(tmp_path) == []
    assert "](../../../experiments/core/BOARD.md)" in mine.read_text()
    original.write_text("second")
    assert copies.copy_notebooks(tmp_path) == [] and mine.read_text() == "second"
    mine.write_text("edited")
    assert copies.copy_notebooks(tmp_path) == []
    original.write_text("third")
    assert copies.copy_notebooks(tmp_path) == [mine] and mine.read_text() == "edited"


def test_a_kernel_of_the_lab_starts_in_the_projects_root(tmp_path, monkeypatch):
    folder = tmp_path / "runs" / "notebooks"
    folder.mkdir(parents=True)
    files.write_text(tmp_path / paths.MARK, "")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    copies.start_kernels_in_root()
    command = [
        sys.executable,
        "-m",
        "IPython",
        "--profile-dir",
        str(tmp_path / "ipython" / "profile_default"),
        "-c",
    ]
    made = subprocess.run(
        [*command, "import os; print(os.getcwd())"], cwd=folder, capture_output=True, text=True
    )
    assert made.stdout.strip() == str(tmp_path)
