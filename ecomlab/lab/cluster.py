"""The runs of a sweep as jobs: a SLURM array through submitit, one task a run; or submitit's local executor."""

import getpass
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psutil

from ecomlab.lab import pool
from ecomlab.lab.paths import kernel_environment, read_json, shown, write_json
from ecomlab.lab.sweep import LOG, REQUEST, Run, Sweep, SweepError
from ecomlab.lab.worker import BUSY

if TYPE_CHECKING:
    from submitit.core.core import PicklingExecutor
    from submitit.helpers import DelayedSubmission

JOB = "job.json"  # in a run's folder: which job has it
SLURM, LOCAL = "slurm", "local"
REQUEUES = (
    20  # how often a run that reached its time limit goes on; then it fails, and can be submitted again
)
ENDING_SECONDS = 90  # SLURM warns a run so long before it ends it


@dataclass(frozen=True)
class Task:
    """One run as a task of a job. After a requeue it is called again and goes on from the run's last checkpoint."""

    run: Run
    threads: int

    def __call__(self) -> None:
        """Execute the run in a worker, as a local sweep does. Raises RuntimeError when it fails."""
        if self.run.finished:
            return
        worker = pool.start(self.run, kernel_environment(self.threads))
        try:
            code = worker.wait()  # submitit's handler raises through it when SLURM wants the machine back
        finally:
            pool.stop([worker])
        if code not in (0, BUSY):
            raise RuntimeError(f"{self.run.id} failed, exit code {code}; see {self.run.folder / LOG}")

    def checkpoint(self) -> "DelayedSubmission":
        """What submitit submits again when SLURM ends us: the same; the run keeps its own checkpoints."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def executor(plan: Sweep, kind: str, at_a_time: int) -> "PicklingExecutor":
    """submitit's executor with what [cluster] asks for; its own files go to `jobs` among the runs.

    Raises SweepError when submitit, SLURM or the table is missing.
    """
    asked = plan.cluster
    if asked is None:
        raise SweepError(
            f'{shown(plan.file)} has no [cluster] table; add one with at least time = "HH:MM:SS", the time '
            "that a run is granted"
        )
    try:
        import submitit
    except ImportError:
        raise SweepError(
            "submitit is not installed; pip install -c constraints.txt -e '.[cluster]' brings it"
        ) from None
    folder = plan.runs_folder / "jobs"
    if kind == LOCAL:
        local = submitit.LocalExecutor(folder, max_num_timeout=REQUEUES)
        local.update_parameters(timeout_min=asked.minutes, gpus_per_node=asked.gpus)
        return local
    try:
        slurm = submitit.SlurmExecutor(folder, max_num_timeout=REQUEUES)
    except RuntimeError:  # no srun
        raise SweepError(
            "there is no SLURM on this machine (no srun); submit from the cluster's login node, or try the "
            "sweep here with --cluster local"
        ) from None
    here = kernel_environment(plan.threads)  # for clusters that do not hand on the environment
    wanted: dict[str, Any] = {
        "job_name": plan.name,
        "time": asked.minutes,
        "cpus_per_task": asked.cpus,
        "partition": asked.partition or None,
        "gpus_per_node": asked.gpus or None,
        "mem": f"{asked.memory}GB" if asked.memory else None,
        "additional_parameters": {"requeue": True, **asked.extra},
        "array_parallelism": at_a_time,
        "signal_delay_s": ENDING_SECONDS,
        "setup": [f"export {name}={shlex.quote(here[name])}" for name in ("PYTHONPATH", "ECOMLAB_CACHE")],
    }
    slurm.update_parameters(**{name: value for name, value in wanted.items() if value is not None})
    return slurm


def submit(plan: Sweep, runs: Sequence[Run], kind: str, at_a_time: int) -> list[str]:
    """Hand `runs` to the cluster and return at once with their job ids.

    Each run's folder then says which job has it. Raises SweepError when nothing could be submitted.
    """
    jobs = executor(plan, kind, at_a_time)
    for run in runs:
        write_json(run.folder / REQUEST, run.request())
    from submitit.core.utils import FailedJobError, FailedSubmissionError

    tasks = [Task(run, plan.threads) for run in runs]
    try:
        with jobs.batch():
            submitted = [jobs.submit(task) for task in tasks]
    except (FailedJobError, FailedSubmissionError) as e:
        raise SweepError(
            f"SLURM did not take the job: {e}\nRepair [cluster] in {shown(plan.file)} and give the same "
            "command again"
        ) from e
    ids = [str(job.job_id) for job in submitted]
    for run, job in zip(runs, ids, strict=True):
        write_json(run.folder / JOB, {"cluster": kind, "job": job})
    return ids


def jobs_of(runs: Sequence[Run]) -> dict[str, str] | None:
    """The unfinished runs that a job has now, queued or running, with its id; None when SLURM cannot be asked."""
    recorded = {run.id: job for run in runs if not run.finished and (job := read_json(run.folder / JOB))}
    queue: set[str] | None = set()
    if any(job["cluster"] == SLURM for job in recorded.values()):
        queue = _queue()
    if queue is None:
        return None
    return {
        run: job["job"]
        for run, job in recorded.items()
        if (job["job"] in queue if job["cluster"] == SLURM else _local_lives(job["job"]))
    }


def _queue() -> set[str] | None:
    """The ids of all our tasks in SLURM's queue, waiting or running; None when it cannot be asked."""
    command = ["squeue", "--noheader", "--array", f"--user={getpass.getuser()}", "--format=%i"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return set(done.stdout.split())


def _local_lives(job: str) -> bool:
    """Whether the process of a local job is there; its id is the process's."""
    try:
        return any("submitit" in word for word in psutil.Process(int(job)).cmdline())
    except (psutil.Error, ValueError):
        return False


def how_to_look(plan: Sweep, kind: str, ids: Sequence[str]) -> str:
    """What to type to see, and to end, what was submitted."""
    first = ids[0].partition("_")[0]
    if kind == SLURM:
        see, end = f"squeue --job {first}", f"scancel {first}"
    else:
        see, end = f"ps {' '.join(ids)}", f"kill {' '.join(ids)}"
    log = shown(plan.runs_folder / "<run>" / LOG)
    return (
        f"progress: ecomlab sweep {shown(plan.file)} --dry-run; queue: {see}; end: {end}; logs: {log}; "
        f"submitit's own: {shown(plan.runs_folder / 'jobs')}/"
    )
