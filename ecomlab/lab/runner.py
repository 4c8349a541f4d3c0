"""Execution of runs: in processes that end with this one, or as jobs of a cluster by submitit.

The former is no library's pool. When a sweep is killed, the processes of joblib, of concurrent.futures and of
submitit's local executor go on; when one run is killed, the first two give up all others; the last starts all at once.
"""

import getpass
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from rich.console import Console
from rich.markup import escape

from ecomlab.files import read_json, write_json
from ecomlab.lab.paths import kernel_environment, shown
from ecomlab.lab.progress import Bar, RunState
from ecomlab.lab.sweep import LOG, REQUEST, Run, Sweep, SweepError
from ecomlab.lab.worker import BUSY

if TYPE_CHECKING:
    from submitit.helpers import DelayedSubmission

JOB = "job.json"
"""File in a run's folder that names its job."""
SLURM, LOCAL = "slurm", "local"
REQUEUES = 20
"""Number of times that a run continues after its time limit; then it fails, and can be submitted again."""
ENDING_SECONDS = 90
"""Seconds between SLURM's warning to a run and its end."""
SESSION = "=== session of run "
"""First words of each session in a log: a run that was killed has several."""
POLL_SECONDS = 0.25


# --- here ---


@dataclass(frozen=True)
class Failure:
    """A run that did not finish."""

    run: Run
    code: int

    @property
    def last_lines(self) -> str:
        """End of its log."""
        return last_lines(self.run.folder / LOG)


def execute(runs: Sequence[Run], console: Console, processes: int = 1, threads: int = 1) -> list[Failure]:
    """Execute the unfinished runs, `processes` at a time with `threads` threads each, and show one bar. A failed run
    does not stop the others.

    Returns the failures. All runs end with this process, however it ends, and before KeyboardInterrupt is raised; what
    they saved stays. Raises SweepError when a cluster has some of them.
    """
    if taken := jobs_of(runs):
        raise SweepError(
            f"{len(taken)} of the runs are with the cluster now, such as {next(iter(taken))} (job "
            f"{next(iter(taken.values()))}); wait for them, or end the job and give this command again"
        )
    waiting, failures = [run for run in runs if not run.finished], []
    working: dict[subprocess.Popen[bytes], Run] = {}
    environment = kernel_environment(threads)
    with Bar(console) as bar:
        try:
            while waiting or working:
                while waiting and len(working) < processes:
                    run = waiting.pop(0)
                    step = RunState.read(run.folder).step
                    working[start(run, environment)] = run
                    console.print(f"{run.id}: goes on from step {step}" if step else f"{run.id}: starts")
                for worker in [one for one in working if one.poll() is not None]:
                    run = working.pop(worker)
                    if worker.returncode == 0 and run.finished:
                        console.print(f"{run.id}: finished")
                    else:
                        failures.append(Failure(run, worker.returncode))
                        console.print(f"[red]{run.id}: failed[/red], see {escape(shown(run.folder / LOG))}")
                states = {run.id: RunState.read(run.folder) for run in working.values()}
                ended = len(runs) - len(waiting) - len(working)
                told = " · ".join(f"{name} {state}" for name, state in states.items())
                share = (ended + sum(state.share for state in states.values())) / len(runs)
                bar.update(f"[{ended}/{len(runs)}] {told}", share)
                time.sleep(POLL_SECONDS)
        finally:
            stop(working)
    return failures


def start(run: Run, environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    """Start the worker of `run`, in its own session so that Ctrl-C at the terminal does not reach it."""
    write_json(run.folder / REQUEST, run.request())
    with (run.folder / LOG).open("ab", buffering=0) as log:
        log.write(f"{SESSION}{run.id}\n".encode())
        return subprocess.Popen(
            [sys.executable, "-m", "ecomlab.lab.worker", str(run.folder)],
            stdin=subprocess.PIPE,  # closes when this process ends, however that happens; the worker then ends too
            stdout=log,
            stderr=log,
            env=environment,
            cwd=run.folder,
            start_new_session=True,
        )


def stop(workers: Iterable["subprocess.Popen[bytes]"]) -> None:
    """End the workers and their kernels, and wait for them."""
    for worker in workers:
        if worker.stdin:
            worker.stdin.close()
    for worker in workers:
        worker.wait()


def last_lines(log: Path, count: int = 12) -> str:
    """Read the last non-empty lines of the last session in a log."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return "\n".join([line for line in text.rpartition(SESSION)[2].splitlines() if line.strip()][1:][-count:])


# --- on a cluster ---


@dataclass(frozen=True)
class Task:
    """One run as a task of a job. After a requeue it is called again and continues from the run's last checkpoint."""

    run: Run
    threads: int

    def __call__(self) -> None:
        """Execute the run in a worker, as a local sweep does. Raises RuntimeError when it fails."""
        if self.run.finished:
            return
        worker = start(self.run, kernel_environment(self.threads))
        try:
            code = worker.wait()  # submitit's signal handler raises here when SLURM takes the machine back
        finally:
            stop([worker])
        if code not in (0, BUSY):
            raise RuntimeError(f"{self.run.id} failed, exit code {code}; see {self.run.folder / LOG}")

    def checkpoint(self) -> "DelayedSubmission":
        """Return what submitit submits again when SLURM ends this job: the same, as the run has its own checkpoints."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def submit(plan: Sweep, kind: str, at_a_time: int, console: Console) -> None:
    """Submit the unfinished runs of a sweep, and print how to follow them. Those that a job or a process has already
    are left alone. `kind` is SLURM, for one array as [cluster] asks, or LOCAL, for submitit's own processes.

    Raises SweepError where nothing can be submitted.
    """
    unfinished = [run for run in plan.runs() if not run.finished]
    jobs = jobs_of(unfinished) or {}
    left = [run for run in unfinished if run.id not in jobs and not run.at_work]
    if taken := len(unfinished) - len(left):
        console.print(f"runs with the cluster or at work already, and left alone: {taken}")
    if kind == LOCAL:  # submitit starts all at once
        left = left[: max(0, at_a_time - taken)]
    if not left:
        return console.print("nothing to submit now")
    ids = submit_runs(plan, kind, at_a_time, left)
    console.print(
        f"submitted runs: {len(left)}, job {', '.join(dict.fromkeys(job.partition('_')[0] for job in ids))}, at most "
        f"{at_a_time} at a time; progress: ecomlab sweep {escape(shown(plan.file))} --dry-run; logs: "
        f"{escape(shown(plan.runs_folder))}/RUN/{LOG}",
        soft_wrap=True,
    )


def submit_runs(plan: Sweep, kind: str, at_a_time: int, runs: Sequence[Run]) -> list[str]:
    """Submit `runs` and return their job ids, which each run's folder then names. Raises SweepError."""
    file, asked = shown(plan.file), plan.cluster
    if asked is None:
        raise SweepError(
            f'{file} has no [cluster] table; add one with at least time = "HH:MM:SS", a run\'s time limit'
        )
    import submitit
    from submitit.core.utils import FailedJobError, FailedSubmissionError

    try:
        limit = {f"{kind}_max_num_timeout": REQUEUES}
        executor = submitit.AutoExecutor(plan.runs_folder / "jobs", kind, **limit)
    except RuntimeError:  # no srun
        raise SweepError(
            "there is no SLURM on this machine (no srun); submit from the cluster's login node, or try the sweep here "
            "with --cluster local"
        ) from None
    here = kernel_environment(plan.threads)  # for clusters that do not pass on the environment
    executor.update_parameters(  # None asks for nothing
        name=plan.name,
        timeout_min=asked.minutes,
        cpus_per_task=asked.cpus,
        gpus_per_node=asked.gpus or None,
        mem_gb=asked.memory or None,
        slurm_partition=asked.partition or None,
        slurm_additional_parameters={"requeue": True, **asked.extra},
        slurm_array_parallelism=at_a_time,
        slurm_signal_delay_s=ENDING_SECONDS,
        slurm_setup=[f"export {n}={shlex.quote(here[n])}" for n in ("PYTHONPATH", "ECOMLAB_CACHE")],
    )
    for run in runs:
        write_json(run.folder / REQUEST, run.request())
    try:
        with executor.batch():
            jobs = [executor.submit(Task(run, plan.threads)) for run in runs]
    except (FailedJobError, FailedSubmissionError) as e:
        raise SweepError(
            f"SLURM did not take the job: {e}\nRepair [cluster] in {file} and give the same command again"
        ) from e
    for run, job in zip(runs, jobs, strict=True):
        write_json(run.folder / JOB, {"cluster": kind, "job": str(job.job_id)})
    return [str(job.job_id) for job in jobs]


def jobs_of(runs: Sequence[Run]) -> dict[str, str] | None:
    """Find the job ids of unfinished runs that are queued or running now; None when SLURM does not answer."""
    recorded = {run.id: job for run in runs if not run.finished and (job := read_json(run.folder / JOB))}
    queue: set[str] = set()
    if any(job["cluster"] == SLURM for job in recorded.values()):
        command = ["squeue", "--noheader", "--array", f"--user={getpass.getuser()}", "--format=%i"]
        try:
            told = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
        except (OSError, subprocess.SubprocessError):
            return None
        queue = set(told.split())
    return {
        run: job["job"]
        for run, job in recorded.items()
        if (job["job"] in queue if job["cluster"] == SLURM else local_job_lives(job["job"]))
    }


def local_job_lives(job: str) -> bool:
    """Tell whether a local job runs; its id is that of its process."""
    try:
        return any("submitit" in word for word in psutil.Process(int(job)).cmdline())
    except (psutil.Error, ValueError):
        return False
