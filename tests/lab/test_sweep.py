"""Sweeps at scale: the grid tells the truth, a dry run touches nothing, and no run is ever executed twice at once."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from filelock import FileLock
from rich.console import Console
from toy_sweep import run

from ecomlab.lab import paths, runner, status, sweep, worker
from ecomlab.lab.status import State
from ecomlab.settings import ConfigError
from ecomlab.suggest import worded

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = {"time": "1-02:00:00", "partition": "gpu", "gpus": 2, "cpus": 8, "memory": 64}
CLUSTER["extra"] = {"account": "shop floor", "exclusive": True}


def until(condition, seconds=180):
    """Wait for `condition`; fail when it does not come."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


def tree(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def trace(job):
    return (job.folder / "trace.txt").read_text().split()


def finish(job, seconds=3600.0, steps=()):
    """The files of a finished run; a row per environment for each of `steps`."""
    job.folder.mkdir(parents=True, exist_ok=True)
    rows = [f"{step},{env},{s}" for step, s in enumerate(steps, 1) for env in ("CART", "SUB")]
    (job.folder / "train.csv").write_text("\n".join(["step,env,seconds", *rows]) + "\n")
    (job.folder / sweep.FINISHED).write_text(json.dumps({"seconds": seconds}))


# --- sweep.toml -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "word"),
    [
        ({"partition": "gpu"}, "time"),
        ({"time": "3 hours"}, "HH:MM:SS"),
        ({"time": "1:00:00", "gpu": 1}, "'gpus'"),
        ({"time": "1:00:00", "gpus": -1}, "gpus"),
        ({"time": "1:00:00", "extra": {"qos": 0.5}}, "qos"),
    ],
)
def test_a_wrong_cluster_table_is_an_error_before_anything_is_submitted(toy, table, word):
    with pytest.raises(ConfigError, match=rf"cluster\..*{word}"):
        sweep.load(toy(cluster=table))


# --- the grid -------------------------------------------------------------------------------------


def test_the_grid_says_what_is_done_running_queued_failed_and_left(toy):
    file = toy(seeds=(0, 1, 2))
    plan = sweep.load(file)
    done, running, failed, queued, begun, left = plan.runs()
    finish(done)
    for job in (running, failed, begun):
        job.folder.mkdir(parents=True)
    (failed.folder / sweep.FAILED).write_text('{"why": "OSError: the disk [is] full"}')
    (begun.folder / sweep.LOCK).touch()  # left behind by a worker that was killed
    (running.folder / "progress.json").write_text('{"step": 3, "steps": 9}')
    with FileLock(running.folder / sweep.LOCK):
        found = status.survey(plan, {queued.id: "7_0"})
        code, text = run(file, dry_run=True)
    assert code == 0 and found.state.to_dict() == {
        done.id: State.DONE, running.id: State.RUNNING, failed.id: State.FAILED, queued.id: State.QUEUED,
        begun.id: State.LEFT, left.id: State.LEFT,
    }  # fmt: skip
    assert "3/9" in text and "OSError: the disk [is] full" in text
    rows = [line.split() for line in text.splitlines()]
    assert ["static-low", "1", "0", "0", "1", "1", "1.00", "2.00"] in rows
    assert ["adaptive", "0", "1", "0", "0", "2", "0.0", "3.00"] in rows  # by all finished runs: no arm's own


def test_costs_are_what_was_spent_and_what_the_finished_runs_of_the_arm_took(toy):
    plan = sweep.load(toy(seeds=(0, 1, 2), cluster=CLUSTER, cost={"hours": 5}))
    low0, _, low1, *_ = plan.runs()
    finish(low0, seconds=3600, steps=(3600, 3600))  # two sessions: finished.json knows the last one only
    finish(low1, seconds=4 * 3600)  # and the table does not know what came before the first step
    low2 = plan.runs()[4]
    finish(low2, seconds=0, steps=(1800,))
    (low2.folder / sweep.FINISHED).unlink()  # it was ended after a step of half an hour
    found = status.survey(plan, {})
    assert found.hours[[job.id for job in (low0, low1, low2)]].tolist() == [2, 4, 0.5]
    assert found["to come"][low2.id] == 3 - 0.5
    assert found["to come"]["adaptive-seed0"] == 5 and found.estimated["adaptive-seed0"]
    text = io.StringIO()
    status.show(plan, found, Console(file=text, width=200))
    assert "13.0 GPU-hours" in text.getvalue() and "35.0 GPU-hours" in text.getvalue()


def test_a_dry_run_writes_nothing(toy, tmp_path):
    file = toy()
    before = tree(tmp_path)
    assert run(file, dry_run=True)[0] == 0
    assert tree(tmp_path) == before


@pytest.fixture
def training(tmp_path):
    """A function that writes a sweep of the training notebook and gives its file."""
    file = tmp_path / "experiments" / "x" / "sweep.toml"
    file.parent.mkdir(parents=True)

    def write(grid):
        notebook = ROOT / "notebooks" / "run_training.ipynb"
        file.write_text(f'notebook = "{notebook}"\nseeds = [0]\n[grid]\n{grid}')
        return file

    return write


def test_a_sweep_takes_lists_of_environments_axes_and_blocks(training):
    """And counts what they cost: two blocks of two environments."""
    fixed = "[fixed]\nsteps = 10\neval_every = 0\naxes = { p_missing = 0 }\neval_block = [0, 1]"
    more = f"{fixed}\n[cost]\nstep = 1.0\nepisode = 1.0"
    file = training(f'collection = ["CART,PD"]\n{more}')
    plan = sweep.load(file)
    plan.check()
    assert [job.id for job in plan.runs()] == ["CART-PD-seed0"]
    code, text = run(file, dry_run=True)
    hours = (
        10 + 2 * (2 * 5 * 2 * 96 * 2)
    ) / 3600  # evaluations, environments, levels, decodings, episodes, blocks
    assert code == 0 and f"to come: {hours:.2f} hours" in text
    code, text = run(training(f'collection = ["CART,PX"]\n{more}'), dry_run=True)
    assert code == 2 and "'PD'" in text


# --- here -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_of_two_sweeps_started_at_once_one_works_and_the_other_is_told_so(toy, tmp_path):
    file = toy(steps=10, pause=0.2)
    command = [sys.executable, "-m", "ecomlab", "sweep", str(file)]
    pipe, merged = subprocess.PIPE, subprocess.STDOUT
    both = [subprocess.Popen(command, stdout=pipe, stderr=merged, text=True) for _ in range(2)]
    said = {process.wait(120): process.communicate()[0] for process in both}
    assert set(said) == {0, 2}, said
    assert "another process" in said[2]
    for job in sweep.load(file).runs():
        assert trace(job) == [str(step) for step in range(10)]


WORKER = "import sys; from pathlib import Path; from ecomlab.lab import worker; worker.PATIENCE = {}; \
sys.exit(worker.main(Path(sys.argv[1])))"


def test_two_workers_never_execute_one_run_together(toy):
    job = sweep.load(toy(steps=5, pause=0.1)).runs()[0]
    job.folder.mkdir(parents=True)
    (job.folder / sweep.REQUEST).write_text(json.dumps(job.request()))
    environment = paths.kernel_environment()

    def start(patience):
        command = [sys.executable, "-c", WORKER.format(patience), str(job.folder)]
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=job.folder, env=environment)

    with FileLock(job.folder / sweep.LOCK):
        impatient = start(0.1)
        assert impatient.wait(60) == worker.BUSY
    assert "another process" in impatient.communicate()[1]
    assert not (job.folder / "trace.txt").exists()

    both = [start(60), start(60)]
    assert [process.wait(90) for process in both] == [0, 0]
    assert trace(job) == [str(step) for step in range(5)], "the second waited and found it finished"


# --- on a cluster ---------------------------------------------------------------------------------


def test_what_is_missing_for_a_cluster_is_said(toy, monkeypatch):
    code, text = run(toy(), on="slurm")
    assert code == 2 and "[cluster]" in text
    file = toy(cluster=CLUSTER)
    with monkeypatch.context() as m:
        m.setitem(sys.modules, "submitit", None)
        with pytest.raises(ModuleNotFoundError) as error:
            run(file, on="slurm")
    assert "ecomlab[cluster]" in worded(error.value)
    pytest.importorskip("submitit")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    code, text = run(file, on="slurm")
    assert code == 2 and "SLURM" in text
    assert [p.name for p in (file.parent.parent / "runs").rglob("*") if p.is_file()] == [".lock"]


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A pretended SLURM: sbatch keeps what it is given, squeue prints the file `queue`, both beside them."""
    pytest.importorskip("submitit")
    folder = tmp_path / "slurm"
    folder.mkdir()
    scripts = {
        "srun": "exit 1",
        "sbatch": f'cp "$1" {folder}/given.sh; test -e {folder}/refuse && echo "no such partition" >&2 && exit 1; '
        "echo Submitted batch job 42",
        "squeue": f"cat {folder}/queue",
    }
    for name, line in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def test_slurm_gets_an_array_with_what_the_table_asks_for_once(toy, slurm):
    file = toy(cluster=CLUSTER)
    runs = sweep.load(file).runs()
    code, text = run(file, on="slurm")
    assert code == 0, text
    given = (slurm / "given.sh").read_text().splitlines()
    words = "array=0-1%2 time=1560 partition=gpu gpus-per-node=2 cpus-per-task=8 mem=64GB exclusive requeue"
    asked = [*words.split(), "signal=USR2@90", "job-name=toy", "account='shop floor'"]
    assert {f"#SBATCH --{one}" for one in asked} <= set(given)
    assert any(line.startswith("export PYTHONPATH=") and str(ROOT) in line for line in given)
    assert jobs_of(runs) == ["42_0", "42_1"]

    (slurm / "given.sh").unlink()
    (slurm / "queue").write_text("42_0\n42_1\n41\n")
    assert run(file, on="slurm")[0] == 0 and not (slurm / "given.sh").exists()
    code, text = run(file)
    assert code == 2 and "job 42" in text

    (slurm / "queue").write_text("42_1\n")  # the first task was cancelled
    assert run(file, on="slurm")[0] == 0
    assert "--array" not in (slurm / "given.sh").read_text(), "one run is a plain job"

    finish(runs[0])  # and a finished run is not submitted again
    (slurm / "queue").write_text("")
    assert run(file, on="slurm")[0] == 0
    assert jobs_of(runs[1:]) == ["42"]


def jobs_of(runs):
    return [json.loads((job.folder / runner.JOB).read_text())["job"] for job in runs]


@pytest.fixture
def submitted(toy):
    """A sweep of two slow runs that was submitted to submitit's local executor, and its runs at work."""
    pytest.importorskip("submitit")
    file = toy(cluster={"time": "00:30:00"}, steps=12, pause=0.3)
    code, text = run(file, on="local")
    assert code == 0, text
    runs = sweep.load(file).runs()
    jobs = [psutil.Process(int(json.loads((job.folder / runner.JOB).read_text())["job"])) for job in runs]
    until(lambda: all((job.folder / "trace.txt").exists() for job in runs))
    yield file, runs, jobs
    family = []
    for job in jobs:
        with suppress(psutil.NoSuchProcess):  # it may end at any time
            family += [*job.children(recursive=True), job]
    for process in family:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(family, timeout=10)


@pytest.mark.slow
def test_jobs_go_on_by_themselves_and_a_second_submission_leaves_them_alone(submitted):
    file, runs, _ = submitted
    assert not any(job.finished for job in runs), "the command did not wait for them"
    before = jobs_of(runs)
    assert run(file, on="local", processes=4)[0] == 0 and jobs_of(runs) == before
    assert run(file)[0] == 2
    until(lambda: all(job.finished for job in runs))
    for job in runs:
        assert trace(job) == [str(step) for step in range(12)]
        assert "=== session of run" in (job.folder / sweep.LOG).read_text()
    assert run(file, on="local")[0] == 0 and (file.parent / "train.csv").is_file()


@pytest.mark.slow
def test_a_job_that_slurm_wants_to_end_is_requeued_and_goes_on_and_a_killed_one_is_submitted_again(submitted):
    file, runs, jobs = submitted
    asked, killed = jobs
    [task] = asked.children()
    task.send_signal(signal.SIGUSR2)  # what SLURM sends before it takes the machine back
    family = [killed, *killed.children(recursive=True)]
    killed.kill()
    killed_task = family[1]
    killed_task.kill()
    _, alive = psutil.wait_procs(family, timeout=30)
    assert alive == [], "worker and kernel end with their task"
    code, text = run(file, on="local")
    assert code == 0, text
    until(lambda: all(job.finished for job in runs))
    for job in runs:
        assert trace(job) == [str(step) for step in range(12)], "no step was repeated or lost"
        assert (job.folder / sweep.LOG).read_text().count("=== session of run") == 2


@pytest.mark.slow
def test_two_jobs_with_the_same_run_execute_it_once(submitted):
    file, runs, _ = submitted
    for job in runs:
        (job.folder / runner.JOB).unlink()  # as if nobody had noted the first submission
    # and nobody had looked at the locks
    ids = runner.submit_runs(sweep.load(file), "local", 2, runs)
    until(lambda: not any(runner.local_job_lives(i) for i in ids))
    for job in runs:
        assert job.finished and trace(job) == [str(step) for step in range(12)]
