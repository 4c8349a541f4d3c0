"""The processes of one run as `torchrun` or `accelerate launch` starts them.

`torchrun --nproc_per_node 2 -m ecomlab train --config FILE` sets WORLD_SIZE for each; without a GPU they talk through
gloo. (`accelerate launch --cpu --num_processes 2` starts one process only.)
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
    """This process among those of torch.distributed. `all_gather` waits for all of them."""

    rank: int
    workers: int

    def all_gather(self, mine: Any) -> list[Any]:
        from torch import distributed

        everyone: list[Any] = [None] * distributed.get_world_size()
        distributed.all_gather_object(everyone, mine)
        return everyone


@dataclass(frozen=True)
class OneWorker:
    """The same processes, of which only the first plays episodes."""

    processes: ProcessGroup
    workers: int = 1

    @property
    def rank(self) -> int:
        return self.processes.rank

    def all_gather(self, mine: Any) -> list[Any]:
        return self.processes.all_gather(mine)


def join_processes() -> ProcessGroup:
    """Meet the other processes, if there are any. Call it first, once a process."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return SINGLE_PROCESS
    import torch
    import torch.distributed.nn  # imported later, its default arguments would hold on to the process group for good
    from accelerate import PartialState

    # One process may play while the others wait: longer than the ten minutes after which NCCL gives up.
    state = PartialState(cpu=not torch.cuda.is_available(), timeout=timedelta(hours=2))
    atexit.register(_leave)
    return TorchProcesses(state.process_index, state.num_processes)


def _leave() -> None:
    """Leave the process group: a thread of gloo's that is not joined by now may abort the interpreter.

    They are joined when nothing refers to the process group any more.
    """
    from torch import distributed

    gc.collect()  # finished trainers refer to it
    if distributed.is_initialized():
        distributed.destroy_process_group()
