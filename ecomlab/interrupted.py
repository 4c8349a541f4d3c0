"""Ctrl-C in a command: one line that says what is kept and how to go on, from the first import to the last step."""

import os
import signal
import sys
from types import FrameType

CODE = 130
"""Exit code of a command that was interrupted."""
KEPT = {
    "train": "the run goes on from its last checkpoint with the same command",
    "certify": "with --json, cells that are finished are kept, and the same command goes on with the others",
    "eval": "episodes that are played are kept, and the same command goes on with the others",
    "catalog": "rows that are cleaned, texts that are embedded are kept, and the same command goes on with the others",
    "frontier": "episodes that are played are kept, and the same command goes on",
    "sweep": "runs that are finished are kept, and the same command goes on with the others",
}
"""What is kept of an interrupted command, in words; of others there is nothing to keep."""


def line() -> str:
    """Say what is kept of the command in `sys.argv`."""
    command = next((word for word in sys.argv[1:] if word[:1] != "-"), "")
    return f"interrupted; {KEPT.get(command, 'nothing was kept, and the same command begins anew')}"


def provide() -> None:
    """Let Ctrl-C during an import end the process with that line; elsewhere it raises KeyboardInterrupt as ever.

    An import makes other errors of that exception, and libraries in C++ abort. Where Ctrl-C is ignored it stays so.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)


def _stop(number: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, f"{line()}\n".encode())
            os._exit(CODE)
        frame = frame.f_back
    raise KeyboardInterrupt
