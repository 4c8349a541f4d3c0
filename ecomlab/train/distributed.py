"""The processes of one run: a crew of one, unless `torchrun` or `accelerate launch` started several.

`torchrun --nproc_per_node 2 -m ecomlab train --config FILE` sets WORLD_SIZE for each; without a GPU they talk through
gloo. (`accelerate launch --cpu --num_processes 2` starts one process only.)
"""

import atexit
import gc
import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol


class Crew(Protocol):
    """The processes that work on one run. Every one of them calls `share` equally often."""

    @property
    def rank(self) -> int:
        """This process's number, from 0; 0 leads."""

    @property
    def players(self) -> int:
        """How many of them play episodes: ranks below this number."""

    def share(self, mine: Any) -> list[Any]:
        """Every process's `mine`, in order of rank."""


class Alone:
    """A crew of one."""

    rank = 0
    players = 1

    def share(self, mine: Any) -> list[Any]:
        return [mine]


ALONE = Alone()


@dataclass(frozen=True)
class Processes:
    """This process among the others. `share` waits for all of them."""

    rank: int
    players: int

    def share(self, mine: Any) -> list[Any]:
        from torch import distributed

        everyone: list[Any] = [None] * distributed.get_world_size()
        distributed.all_gather_object(everyone, mine)
        return everyone


@dataclass(frozen=True)
class OnePlays:
    """The same processes, of which only the first plays episodes."""

    crew: Crew
    players: int = 1

    @property
    def rank(self) -> int:
        return self.crew.rank

    def share(self, mine: Any) -> list[Any]:
        return self.crew.share(mine)


def join_crew() -> Crew:
    """Meet the other processes, if there are any. Call it first, once a process."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return ALONE
    import torch
    import torch.distributed.nn  # imported later, its default arguments would hold on to the process group for good
    from accelerate import PartialState

    # One process may play while the others wait: longer than the ten minutes after which NCCL gives up.
    state = PartialState(cpu=not torch.cuda.is_available(), timeout=timedelta(hours=2))
    atexit.register(_leave)
    return Processes(state.process_index, state.num_processes)


def _leave() -> None:
    """Take leave of the other processes: a thread of gloo's that is not joined by now may abort the interpreter.

    They are joined when nothing refers to the process group any more.
    """
    from torch import distributed

    gc.collect()  # finished trainers refer to it
    if distributed.is_initialized():
        distributed.destroy_process_group()
