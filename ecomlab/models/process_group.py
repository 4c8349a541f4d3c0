"""The processes that share the work of a run: one, unless `torchrun` or `accelerate launch` started several.

`torchrun --nproc_per_node 2 -m ecomlab train --config FILE` sets WORLD_SIZE for each; without a GPU they communicate
through gloo. (`accelerate launch --cpu --num_processes 2` starts one process only.)
"""

import atexit
import gc
import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Any


@dataclass(frozen=True)
class ProcessGroup:
    """The processes of one run, seen from one of them. All of them call `all_gather` equally often."""

    rank: int = 0
    """Index of this process; process 0 leads."""
    size: int = 1
    """Number of processes."""
    workers: int = 1
    """Number of processes that play episodes: those of lower rank."""

    def all_gather(self, mine: Any) -> list[Any]:
        """Collect the `mine` of every process, in order of rank. Waits for all of them."""
        if self.size == 1:
            return [mine]
        from torch import distributed

        everyone: list[Any] = [None] * self.size
        distributed.all_gather_object(everyone, mine)
        return everyone


SINGLE_PROCESS = ProcessGroup()


def join_processes() -> ProcessGroup:
    """Join the run's other processes, if there are any. Call this first, once per process."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return SINGLE_PROCESS
    import torch
    import torch.distributed.nn  # imported later, its default arguments would keep the process group alive
    from accelerate import PartialState

    # One process may play while the others wait: longer than the ten minutes after which NCCL gives up.
    state = PartialState(cpu=not torch.cuda.is_available(), timeout=timedelta(hours=2))
    atexit.register(_leave)
    return ProcessGroup(state.process_index, state.num_processes, state.num_processes)


def _leave() -> None:
    """Leave the process group, so that gloo's threads end; otherwise they may abort the interpreter's exit."""
    from torch import distributed

    gc.collect()  # finished trainers refer to it
    if distributed.is_initialized():
        distributed.destroy_process_group()
