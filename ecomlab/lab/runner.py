"""Execution of runs: in processes that end with this one, or as jobs of a cluster."""

import getpass
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
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
    from submitit import AutoExecutor
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
GRACE_SECONDS = 5.0
"""Seconds between asking a process to end and killing it."""


@dataclass(frozen=True)
class Failure:
    """A run that did not finish, with the end of its log."""

    run: Run
    code: int
    last_lines: str


@dataclass(frozen=True)
class ProcessExecutor:
    """Executes runs in processes of this machine, `processes` at a time with `threads` threads each, and waits."""

    processes: int
    threads: int = 1

    def execute(self, runs: Sequence[Run], console: Console) -> list[Failure]:
        """Execute the unfinished runs and show one bar. A failed run does not stop the others.

        Returns the failures in the order of `runs`. On Ctrl-C or SIGTERM every run is ended before KeyboardInterrupt is
        raised; what they saved stays. Raises SweepError when a cluster has some of them.
        """
        if taken := jobs_of(runs):
            ids = sorted({job.partition("_")[0] for job in taken.values()})
            raise SweepError(
                f"{len(taken)} of the runs are with the cluster now (job {', '.join(ids)}), such as "
                f"{next(iter(taken))}; wait for them, or end the job and give this command again"
            )
        waiting = deque(run for run in runs if not run.finished)
        running: dict[str, tuple[Run, subprocess.Popen[bytes]]] = {}
        failures: dict[str, Failure] = {}
        finished = len(runs) - len(waiting)
        environment = kernel_environment(self.threads)
        say = partial(console.print, highlight=False)
        with Bar(console) as bar, _terminate_as_interrupt():
            try:
                while waiting or running:
                    while waiting and len(running) < self.processes:
                        run = waiting.popleft()
                        running[run.id] = run, start(run, environment)
                        step = RunState.read(run.folder).step
                        say(f"{run.id}: goes on from step {step}" if step else f"{run.id}: starts")
                    for run, process in list(running.values()):
                        if process.poll() is None:
                            continue
                        del running[run.id]
                        if process.returncode == 0 and run.finished:
                            finished += 1
                            say(f"{run.id}: finished")
                        else:
                            log = run.folder / LOG
                            failures[run.id] = Failure(run, process.returncode, last_lines(log))
                            say(f"[red]{run.id}: failed[/red], see {escape(shown(log))}")
                    states = {run.id: RunState.read(run.folder) for run, _ in running.values()}
                    told = " · ".join(f"{name} {state}" for name, state in states.items())
                    ended = finished + len(failures) + sum(state.share for state in states.values())
                    bar.update(f"[{finished}/{len(runs)}] {told}", ended / len(runs))
                    time.sleep(POLL_SECONDS)
            finally:
                stop([process for _, process in running.values()])
        return [failures[run.id] for run in runs if run.id in failures]


@dataclass(frozen=True)
class ClusterExecutor:
    """Submits runs as jobs of submitit, one SLURM array as [cluster] asks or its local executor, and does not wait.

    Each run's folder then names its job. Runs that a job or a process has already are left alone.
    """

    plan: Sweep
    kind: str
    """SLURM or LOCAL."""
    at_a_time: int

    def execute(self, runs: Sequence[Run], console: Console) -> int:
        """Submit the unfinished runs and print how to follow them; return the exit code. Raises SweepError where
        nothing can be submitted."""
        unfinished = [run for run in runs if not run.finished]
        jobs = jobs_of(unfinished) or {}
        left = [run for run in unfinished if run.id not in jobs and not run.at_work]
        if taken := len(unfinished) - len(left):
            console.print(f"runs with the cluster or at work already, and left alone: {taken}")
        if self.kind == LOCAL:  # it starts all its jobs at once
            left = left[: max(0, self.at_a_time - taken)]
        if not left:
            console.print("nothing to submit now")
            return 0
        ids, runs_folder = self.submit(left), self.plan.runs_folder
        jobs_named = ", ".join(dict.fromkeys(job.partition("_")[0] for job in ids))
        console.print(
            f"submitted runs: {len(left)}, job {jobs_named}, at most {self.at_a_time} at a time; progress: "
            f"ecomlab sweep {escape(shown(self.plan.file))} --dry-run; logs: {escape(shown(runs_folder))}/RUN/{LOG}",
            highlight=False,
            soft_wrap=True,
        )
        return 0

    def submit(self, runs: Sequence[Run]) -> list[str]:
        """Submit `runs` and return their job ids. Raises SweepError when SLURM refuses them."""
        executor = self.submitits()
        for run in runs:
            write_json(run.folder / REQUEST, run.request())
        from submitit.core.utils import FailedJobError, FailedSubmissionError

        try:
            with executor.batch():
                jobs = [executor.submit(Task(run, self.plan.threads)) for run in runs]
        except (FailedJobError, FailedSubmissionError) as e:
            raise SweepError(
                f"SLURM did not take the job: {e}\nRepair [cluster] in {shown(self.plan.file)} and give the same "
                "command again"
            ) from e
        ids = [str(job.job_id) for job in jobs]
        for run, job in zip(runs, ids, strict=True):
            write_json(run.folder / JOB, {"cluster": self.kind, "job": job})
        return ids

    def submitits(self) -> "AutoExecutor":
        """Make submitit's own executor, with its files in `jobs` beside the runs. Raises SweepError."""
        asked = self.plan.cluster
        if asked is None:
            raise SweepError(
                f'{shown(self.plan.file)} has no [cluster] table; add one with at least time = "HH:MM:SS", a '
                "run's time limit"
            )
        import submitit

        limit = {f"{self.kind}_max_num_timeout": REQUEUES}
        try:
            executor = submitit.AutoExecutor(self.plan.runs_folder / "jobs", self.kind, **limit)
        except RuntimeError:  # no srun
            raise SweepError(
                "there is no SLURM on this machine (no srun); submit from the cluster's login node, or try the "
                "sweep here with --cluster local"
            ) from None
        here = kernel_environment(self.plan.threads)  # for clusters that do not pass on the environment
        executor.update_parameters(  # None asks for nothing
            name=self.plan.name,
            timeout_min=asked.minutes,
            cpus_per_task=asked.cpus,
            gpus_per_node=asked.gpus or None,
            mem_gb=asked.memory or None,
            slurm_partition=asked.partition or None,
            slurm_additional_parameters={"requeue": True, **asked.extra},
            slurm_array_parallelism=self.at_a_time,
            slurm_signal_delay_s=ENDING_SECONDS,
            slurm_setup=[f"export {n}={shlex.quote(here[n])}" for n in ("PYTHONPATH", "ECOMLAB_CACHE")],
        )
        return executor


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


def jobs_of(runs: Sequence[Run]) -> dict[str, str] | None:
    """Find the job ids of unfinished runs that are queued or running now; None when SLURM does not answer."""
    recorded = {run.id: job for run in runs if not run.finished and (job := read_json(run.folder / JOB))}
    queue: set[str] | None = set()
    if any(job["cluster"] == SLURM for job in recorded.values()):
        queue = _queue()
    if queue is None:
        return None
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


def _queue() -> set[str] | None:
    """List the ids of all our tasks in SLURM's queue, waiting or running; None when it does not answer."""
    command = ["squeue", "--noheader", "--array", f"--user={getpass.getuser()}", "--format=%i"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return set(done.stdout.split())


def start(run: Run, environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    """Start the worker of `run`, in its own session so that Ctrl-C at the terminal does not reach it."""
    write_json(run.folder / REQUEST, run.request())
    with (run.folder / LOG).open("ab") as log:
        log.write(f"{SESSION}{run.id}\n".encode())
        log.flush()
        return subprocess.Popen(
            [sys.executable, "-m", "ecomlab.lab.worker", str(run.folder)],
            stdin=subprocess.PIPE,  # closes when this process ends, however that happens; the worker then ends too
            stdout=log,
            stderr=log,
            env=environment,
            cwd=run.folder,
            start_new_session=True,
        )


def stop(workers: Sequence["subprocess.Popen[bytes]"]) -> None:
    """End the workers and their kernels, and wait until all are gone."""
    family: list[psutil.Process] = []
    for worker in workers:
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(worker.pid)
            family += [process, *process.children(recursive=True)]
    for signal_ in (psutil.Process.terminate, psutil.Process.kill):
        for process in family:
            with suppress(psutil.NoSuchProcess):
                signal_(process)
        _, family = psutil.wait_procs(family, timeout=GRACE_SECONDS)
    for worker in workers:
        worker.wait()


def last_lines(log: Path, count: int = 12) -> str:
    """Read the last non-empty lines of the last session in a log."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return "\n".join([line for line in text.rpartition(SESSION)[2].splitlines() if line.strip()][1:][-count:])


@contextmanager
def _terminate_as_interrupt() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C: end the runs and print how to continue."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
