"""The processes that share the work of one run; a single one, unless a launcher started several."""

from typing import Any, Protocol


class ProcessGroup(Protocol):
    """The processes of one run. Every one of them calls `all_gather` equally often."""

    @property
    def rank(self) -> int:
        """Number of this process, from 0; 0 leads."""

    @property
    def workers(self) -> int:
        """Number of processes that play episodes: the ranks below it."""

    def all_gather(self, mine: Any) -> list[Any]:
        """Collect every process's `mine`, in order of rank."""


class SingleProcess:
    """A process on its own."""

    rank = 0
    workers = 1

    def all_gather(self, mine: Any) -> list[Any]:
        return [mine]


SINGLE_PROCESS = SingleProcess()
