"""The processes that share the work of a run: one, unless a launcher started several."""

from typing import Any, Protocol


class ProcessGroup(Protocol):
    """The processes of one run, all of which call `all_gather` equally often."""

    @property
    def rank(self) -> int:
        """Index of this process, from 0; process 0 leads."""

    @property
    def workers(self) -> int:
        """Number of processes that play episodes: those of lower rank."""

    def all_gather(self, mine: Any) -> list[Any]:
        """Collect the `mine` of every process, in order of rank."""


class SingleProcess:
    """A single process."""

    rank = 0
    workers = 1

    def all_gather(self, mine: Any) -> list[Any]:
        return [mine]


SINGLE_PROCESS = SingleProcess()
