"""What a sweep.toml says of machines: [cluster], what a run asks of SLURM, and [cost], what a run is expected to take.

[cluster]
time = "12:00:00"                     # of one run between requeues: HH:MM:SS or D-HH:MM:SS
partition = "gpu"
gpus = 1
cpus = 16
memory = 128                          # GB
extra = { account = "shop" }          # further sbatch options by their long names

[cost]
gpus = 1                              # that a run holds; default: the cluster's
hours = 6.5                           # of a run; or, for training runs, its parts in seconds:
# step = 70.0                         # a training step
# episode = 0.8                       # a held-out episode
note = "measured on ..."              # printed with every estimate
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ecomlab.suggest import unknown

TAKEN = (
    *("array", "cpus-per-task", "error", "gpus-per-node", "job-name", "mem", "nodes", "ntasks-per-node"),
    *("open-mode", "output", "partition", "signal", "time"),
)
"""What `extra` must not set: the other keys do, or submitit needs it for itself."""


@dataclass(frozen=True)
class Cluster:
    """What one run asks of SLURM; zeros and empty strings ask for nothing. Raises ValueError."""

    time: str
    partition: str = ""
    gpus: int = 0
    cpus: int = 1
    memory: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.minutes < 1:
            raise ValueError(f"[cluster] time is at least a minute, not {self.time!r}")
        _not_negative("cluster", self, "gpus", "memory")
        if self.cpus < 1:
            raise ValueError(f"[cluster] cpus is at least 1, not {self.cpus}")
        for name, value in self.extra.items():
            if name.replace("_", "-") in TAKEN:
                raise ValueError(f"[cluster] extra sets {name}, which the sweep sets itself; take it out")
            if value is not True and type(value) not in (str, int):
                raise ValueError(f"[cluster] extra's {name} is a text, a whole number or true, not {value!r}")

    @property
    def minutes(self) -> int:
        found = re.fullmatch(r"(?:(\d+)-)?(\d+):([0-5]\d):([0-5]\d)", self.time)
        if not found:
            raise ValueError(f'[cluster] time is "HH:MM:SS" or "D-HH:MM:SS", not {self.time!r}')
        days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
        return (days * 24 + hours) * 60 + minutes + (seconds > 0)


@dataclass(frozen=True)
class Estimate:
    """Hours of one run before any was measured, and the arithmetic in words."""

    hours: float
    how: str


@dataclass(frozen=True)
class Cost:
    """What a run is expected to take. Raises ValueError."""

    gpus: int = 0
    hours: float = 0.0
    step: float = 0.0
    episode: float = 0.0
    note: str = ""

    def __post_init__(self) -> None:
        _not_negative("cost", self, "gpus", "hours", "step", "episode")
        if self.hours and (self.step or self.episode):
            raise ValueError("[cost] has both hours and its parts, step and episode; give one of the two")
        if self.episode and not self.step:
            raise ValueError("[cost] has episode without step: seconds of a training step; add it")

    def estimate(self, parameters: Mapping[str, Any]) -> Estimate | None:
        """For a run with these effective parameters; None when the file says nothing.

        Raises ValueError when the parts are asked for and the notebook is not one that trains.
        """
        if self.hours:
            return Estimate(self.hours, f"{self.hours:g} h")
        if not self.step:
            return None
        try:
            steps, seconds = parameters["steps"], parameters["steps"] * self.step
            how = f"{steps} steps × {self.step:g} s"
            if self.episode:
                evaluations, episodes, words = _evaluation(parameters)
                seconds += evaluations * episodes * self.episode
                how += f" + {evaluations} evaluations × {words} × {self.episode:g} s"
        except KeyError as e:
            raise ValueError(
                f"[cost] counts steps and episodes, but the notebook has no parameter {e}; give hours instead"
            ) from None
        return Estimate(seconds / 3600, how)


def cluster_from(table: Mapping[str, Any]) -> Cluster:
    """The checked [cluster] table. Raises ValueError."""
    keys = {"time": str, "partition": str, "gpus": int, "cpus": int, "memory": int, "extra": dict}
    _check("cluster", table, keys)
    if "time" not in table:
        raise ValueError('[cluster] needs time = "HH:MM:SS", the time that SLURM grants a run')
    return Cluster(**table)


def cost_from(table: Mapping[str, Any], cluster: Cluster | None) -> Cost:
    """The checked [cost] table; a run's GPUs are the cluster's if only that says. Raises ValueError."""
    _check("cost", table, {"gpus": int, "hours": float, "step": float, "episode": float, "note": str})
    if cluster is None:
        return Cost(**table)
    gpus = table.get("gpus", cluster.gpus)
    if gpus != cluster.gpus:
        raise ValueError(f"[cost] counts {gpus} GPUs a run and [cluster] asks for {cluster.gpus}; give one")
    return Cost(**{**table, "gpus": gpus})


def _evaluation(parameters: Mapping[str, Any]) -> tuple[int, int, str]:
    """How many evaluations a run has, the episodes of each, and those in words."""
    from ecomlab.envs.registry import COLLECTIONS

    every, steps = parameters["eval_every"], parameters["steps"]
    evaluations = 1 + (-(-steps // every) if every else 1)  # before training, every so often, at the end
    factors = {
        "environments": len(COLLECTIONS.get(parameters["collection"], ("",))),
        "difficulties": len(parameters["eval_difficulties"]),
        "decodings": len(parameters["eval_decodings"]),
        "episodes": parameters["eval_episodes"],
    }
    product = 1
    for factor in factors.values():
        product *= factor
    words = " × ".join(f"{n} {name[:-1] if n == 1 else name}" for name, n in factors.items())
    return evaluations, product, f"({words})"


def _check(name: str, table: Mapping[str, Any], keys: Mapping[str, type]) -> None:
    for key, value in table.items():
        if key not in keys:
            raise ValueError(f"[{name}] has {unknown('key', key, keys)}")
        wanted = keys[key]
        if type(value) is not wanted and not (wanted is float and type(value) is int):
            raise ValueError(f"[{name}] {key} is {NOUNS[wanted]}, not {value!r}")


NOUNS: dict[type, str] = {
    str: "a text in quotes",
    int: "a whole number",
    float: "a number",
    dict: "a table { … }",
}


def _not_negative(name: str, settings: Any, *keys: str) -> None:
    for key in keys:
        if getattr(settings, key) < 0:
            raise ValueError(f"[{name}] {key} is not below 0, unlike {getattr(settings, key)}")
