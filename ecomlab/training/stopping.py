"""A run that is asked to end: it finishes the step, saves it, and stops."""

import signal
import threading
from types import FrameType
from typing import Any, Self

from ecomlab.models.process_group import ProcessGroup
from ecomlab.training.config import RunError

SIGNALS = (signal.SIGTERM, *([signal.SIGUSR1] if hasattr(signal, "SIGUSR1") else []))
"""SIGTERM is what SLURM, Kubernetes and `kill` send. torch's launcher passes it on and gives its processes 30 seconds;
SIGUSR1 (`sbatch --signal=USR1@600`) leaves it alone."""


class Stopped(RunError):
    """A run that ended on a signal, `number`, after a step that is saved."""

    def __init__(self, number: int, step: int) -> None:
        super().__init__(
            f"stopped by {signal.Signals(number).name} after step {step}, which is saved; the same command continues"
        )
        self.code = 128 + number


class StopRequest:
    """Notes the first of `SIGNALS` within its context. The second one acts as if there were no context.

    Only the main thread can receive signals; in another, the context does nothing.
    """

    number = 0
    """The signal, or 0."""

    def __enter__(self) -> Self:
        main = threading.current_thread() is threading.main_thread()
        self._before: dict[int, Any] = {s: signal.signal(s, self._note) for s in SIGNALS} if main else {}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, _: FrameType | None) -> None:
        self.number = number
        self.__exit__()

    def among(self, processes: ProcessGroup) -> int:
        """Return the signal that any process received, or 0; all of them call this."""
        return max(processes.all_gather(self.number))
