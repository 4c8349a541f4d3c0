"""Run the unfinished runs of a sweep, a few processes at a time; end them all when we are ended."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from rich.console import Console
from rich.markup import escape

from ecomlab.lab.paths import kernel_environment, shown, write_json
from ecomlab.lab.progress import Bar, RunState
from ecomlab.lab.sweep import LOG, REQUEST, Run

SESSION = "=== session of run "  # a killed run's log has several
POLL_SECONDS = 0.25
GRACE_SECONDS = 5.0  # between asking a process to end and ending it


@dataclass(frozen=True)
class Failure:
    """A run that did not finish, with the end of its log."""

    run: Run
    code: int
    last_lines: str


def run_all(
    runs: Sequence[Run], processes: int, threads: int, console: Console, noun: str = "runs"
) -> list[Failure]:
    """Run what is not finished, at most `processes` at a time, each with `threads` threads; show one bar of
    `noun`.

    A failed run does not stop the others. Returns the failures in the order of `runs`. On Ctrl-C or SIGTERM
    every run is ended before KeyboardInterrupt goes on; what they had saved stays.
    """
    waiting = deque(run for run in runs if not run.finished)
    running: dict[str, tuple[Run, subprocess.Popen[bytes]]] = {}
    failures: list[Failure] = []
    finished = len(runs) - len(waiting)
    environment = kernel_environment(threads)
    with Bar(len(runs), console, noun) as bar, _terminate_as_interrupt():
        try:
            while waiting or running:
                while waiting and len(running) < processes:
                    run = waiting.popleft()
                    running[run.id] = run, start(run, environment)
                    state = RunState.read(run.folder)
                    bar.say(
                        f"{run.id}: goes on from step {state.step}" if state.step else f"{run.id}: starts"
                    )
                for run, process in list(running.values()):
                    if process.poll() is None:
                        continue
                    del running[run.id]
                    if process.returncode == 0 and run.finished:
                        finished += 1
                        bar.say(f"{run.id}: finished")
                    else:
                        failures.append(Failure(run, process.returncode, last_lines(run.folder / LOG)))
                        bar.total -= 1
                        bar.say(f"[red]{run.id}: failed[/red], see {escape(shown(run.folder / LOG))}")
                bar.update(finished, {run.id: RunState.read(run.folder) for run, _ in running.values()})
                time.sleep(POLL_SECONDS)
        finally:
            stop([process for _, process in running.values()])
    order = [run.id for run in runs]
    return sorted(failures, key=lambda failure: order.index(failure.run.id))


def start(run: Run, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start the worker of `run`, in a session of its own so that a Ctrl-C at the terminal reaches only us."""
    write_json(run.folder / REQUEST, run.request())
    with (run.folder / LOG).open("ab") as log:
        log.write(f"{SESSION}{run.id}\n".encode())
        log.flush()
        return subprocess.Popen(
            [sys.executable, "-m", "ecomlab.lab.worker", str(run.folder)],
            stdin=subprocess.PIPE,  # closes when we end, however we end: the worker then ends too
            stdout=log,
            stderr=log,
            env=environment,
            cwd=run.folder,
            start_new_session=True,
        )


def stop(workers: Sequence[subprocess.Popen[bytes]]) -> None:
    """End the workers and their kernels, and return when all of them are gone."""
    family: list[psutil.Process] = []
    for worker in workers:
        try:
            process = psutil.Process(worker.pid)
            family += [process, *process.children(recursive=True)]
        except psutil.NoSuchProcess:
            continue
    for signal_ in (psutil.Process.terminate, psutil.Process.kill):
        for process in family:
            with suppress(psutil.NoSuchProcess):
                signal_(process)
        _, family = psutil.wait_procs(family, timeout=GRACE_SECONDS)
    for worker in workers:
        worker.wait()


def last_lines(log: Path, count: int = 12) -> str:
    """The last lines that say something in the last session of a log."""
    try:
        size = log.stat().st_size
        with log.open("rb") as file:
            file.seek(max(0, size - 20_000))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join([line for line in text.rpartition(SESSION)[2].splitlines() if line.strip()][1:][-count:])


@contextmanager
def _terminate_as_interrupt() -> Iterator[None]:
    """`kill` ends us as Ctrl-C does: with the runs ended and a word on how to go on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
