"""One run in a process of its own: `python -m ecomlab.lab.worker FOLDER`, started by `ecomlab.lab.runner`.

FOLDER holds request.json. The process ends when its standard input closes, that is, when the process that started it
ends in whatever way.
"""

import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil

from ecomlab.files import lock, read_json, write_json
from ecomlab.lab.notebooks import NotebookError, check, execute
from ecomlab.lab.paths import shown
from ecomlab.lab.provenance import provenance
from ecomlab.lab.sweep import FAILED, FINISHED, LOCK, LOG, REQUEST

PATIENCE = 60.0
"""Seconds to wait for another worker: that of a killed sweep may still be ending."""
BUSY = 75
"""Exit code: another process has the run; nothing was done."""


class BusyError(Exception):
    """Another process executes the run."""


def main(folder: Path) -> int:
    """Execute the request in `folder`, writing finished.json last. Returns 0 when it is finished.

    A finished run is not executed again. If another process executes it, this one waits for at most `PATIENCE` and
    returns BUSY. Raises NotebookError for a failure, which failed.json keeps until the next try.
    """
    try:
        with lock(folder / LOCK, BusyError(), PATIENCE):
            if read_json(folder / FINISHED) is None:  # else another process did while this one waited
                (folder / FAILED).unlink(missing_ok=True)
                _execute(folder)
    except BusyError:
        print(f"another process executes {shown(folder)}/; this one did nothing", file=sys.stderr)
        return BUSY
    return 0


def _execute(folder: Path) -> None:
    request = read_json(folder / REQUEST) or {}
    notebook = Path(request["notebook"])
    began = time.monotonic()
    try:
        effective = check(notebook, request["parameters"])
        record = {"id": request["id"], "notebook": notebook.name, **provenance(effective)}
        with (folder / LOG).open("a", encoding="utf-8", buffering=1) as log:
            execute(notebook, folder, request["parameters"], log)
    except NotebookError as error:
        write_json(folder / FAILED, {"why": str(error).strip().splitlines()[-1]})
        raise
    write_json(folder / FINISHED, {**record, "seconds": round(time.monotonic() - began, 1)})


def end_with_parent() -> None:
    """End this process, its kernel and all that the kernel started when standard input closes."""

    def wait() -> None:
        while os.read(0, 1):  # not sys.stdin: its lock would be held when the interpreter ends
            pass
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                process.kill()  # what a run saves is whole at any time
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    end_with_parent()
    try:
        sys.exit(main(Path(sys.argv[1])))
    except NotebookError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
