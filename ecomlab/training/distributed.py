"""The processes of one run, started by `torchrun` or `accelerate launch`.

`torchrun --nproc_per_node 2 -m ecomlab train --config FILE` sets WORLD_SIZE for each; without a GPU they communicate
through gloo. (`accelerate launch --cpu --num_processes 2` starts one process only.)
"""

import atexit
import gc
import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from ecomlab.models.process_group import SINGLE_PROCESS, ProcessGroup


@dataclass(frozen=True)
class TorchProcesses:
    """The process group of torch.distributed, seen from one process. `all_gather` waits for all of them."""

    rank: int
    workers: int

    def all_gather(self, mine: Any) -> list[Any]:
        from torch import distributed

        everyone: list[Any] = [None] * distributed.get_world_size()
        distributed.all_gather_object(everyone, mine)
        return everyone


@dataclass(frozen=True)
class OneWorker:
    """A process group in which only the first process plays episodes."""

    processes: ProcessGroup
    workers: int = 1

    @property
    def rank(self) -> int:
        return self.processes.rank

    def all_gather(self, mine: Any) -> list[Any]:
        return self.processes.all_gather(mine)


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
    return TorchProcesses(state.process_index, state.num_processes)


def _leave() -> None:
    """Leave the process group, so that gloo's threads end; otherwise they may abort the interpreter's exit."""
    from torch import distributed

    gc.collect()  # finished trainers refer to it
    if distributed.is_initialized():
        distributed.destroy_process_group()
