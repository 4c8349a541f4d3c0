"""Notebooks executed without a kernel, each in a fork of one process that has imported what they all import.

A run is that of a sweep: its worker checks the parameters, papermill injects them and writes the executed copy. Only
papermill's engine is another: the cells run in an IPython shell of the forked process, so that none of a test's time
goes to starting a worker and a kernel and to importing torch in it.
"""

import os
import sys
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from ecomlab.files import write_json
from ecomlab.lab.runner import last_lines
from ecomlab.lab.sweep import LOG, REQUEST, Run

FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(
    ["ecomlab.lab.worker", "papermill", "seaborn", "torch", "ecomlab.training.run", "ecomlab.lab.figures"]
)


def execute(run: Run) -> None:
    """Execute `run` in a process of its own. Fails with the end of its log."""
    write_json(run.folder / REQUEST, run.request())
    process = FORKS.Process(target=work, args=(run.folder,))
    process.start()
    process.join()
    assert process.exitcode == 0, last_lines(run.folder / LOG, count=40)


def work(folder: Path) -> None:
    """Do what a worker does with the request in `folder`, by another engine."""
    from papermill.engines import papermill_engines

    from ecomlab.lab import worker
    from ecomlab.lab.paths import kernel_environment

    os.environ.update(kernel_environment())
    with (folder / LOG).open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    papermill_engines.register(None, engine())
    sys.exit(worker.main(folder))


def engine() -> type:
    """Make papermill's engine that runs cells in this process."""
    import matplotlib
    import nbformat
    import torch
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output
    from matplotlib_inline.backend_inline import configure_inline_support
    from papermill.engines import Engine, NotebookExecutionManager
    from traitlets.config import Config

    torch.set_num_threads(1)
    matplotlib.use("module://matplotlib_inline.backend_inline")
    shell = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    configure_inline_support(shell, "inline")

    class ShellEngine(Engine):
        """Runs the cells one after the other until one fails, as a kernel does."""

        @classmethod
        def execute_managed_notebook(cls, nb_man: NotebookExecutionManager, *_: Any, **__: Any) -> None:
            for index, cell in enumerate(nb_man.nb.cells):
                nb_man.cell_start(cell, index)
                failed = cell.cell_type == "code" and cls.run(cell)
                if failed:
                    nb_man.cell_exception(cell, index)
                nb_man.cell_complete(cell, index)
                if failed:
                    break

        @staticmethod
        def run(cell: nbformat.NotebookNode) -> bool:
            """Run one cell and give it its outputs; True where it failed."""
            with capture_output() as said:
                shell.display_trap.hook = sys.displayhook  # that of capture_output, for what a cell ends in
                done = shell.run_cell(cell.source, store_history=True)
            cell.execution_count = done.execution_count
            cell.outputs = [
                nbformat.v4.new_output("stream", name=name, text=text)
                for name, text in (("stdout", said.stdout), ("stderr", said.stderr))
                if text
            ]
            cell.outputs += [
                nbformat.v4.new_output("display_data", data=shown.data, metadata=shown.metadata or {})
                for shown in said.outputs
            ]
            if error := done.error_before_exec or done.error_in_exec:
                lines = said.stdout.splitlines()  # where the shell shows a traceback
                told = {"ename": type(error).__name__, "evalue": str(error), "traceback": lines}
                cell.outputs.append(nbformat.v4.new_output("error", **told))
            return not done.success

    return ShellEngine
