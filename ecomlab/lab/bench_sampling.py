"""The kernel of tiny policies against the torch sampler: the same episodes and training steps by both, in turn."""

import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from ecomlab.catalog import Shop
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.evaluation import Cells
from ecomlab.evaluation.local import BATCH, play_jobs
from ecomlab.evaluation.tasks import environments_of
from ecomlab.files import write_json
from ecomlab.lab.evaluation_tables import widened
from ecomlab.lab.provenance import versions
from ecomlab.lab.sweep import load, training_config
from ecomlab.models.batch import Rollout
from ecomlab.models.load import load_policy
from ecomlab.models.policy import Policy
from ecomlab.models.samplers.cached import Sampler
from ecomlab.models.samplers.tiny import CHOICE, TinySampler
from ecomlab.training.config import TrainConfig
from ecomlab.training.run import train

SUBJECTS = (("novice", "CART"), ("base", "CART"), ("base", "C8"))
"""Starters and collections."""
LEVELS = (0, 1, 2, 3)
"""Levels at which the quick ablation evaluates."""
SWEEP = "experiments/quick/sweep.toml"
PHASES = ("model", "environment", "logprobs", "update")
Spread = tuple[float, float, float]
"""Lowest, median and highest value of the pairs."""


@dataclass(frozen=True)
class Comparison:
    """A cost with both samplers, in seconds of the processor, which other programs on the machine do not stretch."""

    subject: str
    unit: str
    torch: Spread
    kernel: Spread
    ratio: Spread
    """The torch sampler's cost divided by the kernel's, of each pair."""

    @classmethod
    def of(cls, subject: str, unit: str, pairs: Sequence[Sequence[float]], scale: float) -> "Comparison":
        """Compare pairs (torch, kernel) of seconds; the unit is 1 / `scale` seconds."""
        both = scale * np.array(pairs)
        torch, kernel, ratio = (
            (float(values.min()), float(np.median(values)), float(values.max()))
            for values in (both[:, 0], both[:, 1], both[:, 0] / both[:, 1])
        )
        return cls(subject, unit, torch, kernel, ratio)


@dataclass(frozen=True)
class Agreement:
    """How the episodes of the kernel agree with those of the torch sampler."""

    subject: str
    episodes: int
    equal: int
    """Episodes with the same tokens."""
    gap: float
    """Largest difference of a token's log-probabilities in these."""


@dataclass(frozen=True)
class Speed:
    """Billions of floating point operations a second of the processor while sampling, and what a core has."""

    subject: str
    torch: float
    kernel: float
    core: float
    """Of a product of two dense matrices by BLAS on one thread."""


class _Timed:
    """A sampler that sums the processor's seconds spent in it."""

    def __init__(self, sampler: Sampler) -> None:
        self.sampler, self.seconds = sampler, 0.0

    @contextmanager
    def _clock(self) -> Iterator[None]:
        began = time.process_time()
        yield
        self.seconds += time.process_time() - began

    def start(self, streams: Sequence[np.random.Generator]) -> None:
        with self._clock():
            self.sampler.start(streams)

    def turn(self, rows: Sequence[int], inputs: Sequence[Sequence[int]]) -> Any:
        with self._clock():
            return self.sampler.turn(rows, inputs)


@contextmanager
def _torch_only(chosen: bool) -> Iterator[None]:
    """Let this process sample with torch, or with its fastest sampler."""
    with patch.dict(os.environ, {CHOICE: "torch" if chosen else ""}):
        yield


def _operations(model: Any, rollouts: Sequence[Rollout]) -> float:
    """Count multiplications and additions: matrices for every token, logits for sampled ones, attention."""
    config = model.config
    head = config.vocab_size * config.hidden_size
    inner = sum(p.numel() for p in model.model.layers.parameters() if p.dim() == 2)
    attended = config.num_hidden_layers * config.num_attention_heads * config.head_dim
    sizes = np.array([len(one.prompt_ids) + len(one.completion_ids) for one in rollouts], float)
    pairs = float((sizes * (sizes + 1)).sum()) / 2
    return 2.0 * (
        inner * float(sizes.sum()) + head * sum(one.sampled for one in rollouts) + 2 * attended * pairs
    )


def _core_speed(side: int = 512, repeats: int = 20) -> float:
    """Measure operations a second of the processor of a dense product in float32 by BLAS, the fastest of `repeats`."""
    a, b = (np.full((side, side), value, np.float32) for value in (0.5, 0.25))
    seconds = []
    for _ in range(repeats):
        began = time.process_time()
        a @ b
        seconds.append(time.process_time() - began)
    return float(2 * side**3 / min(seconds))


def compare_sampling(
    starter: str, collection: str, shop: Shop, pairs: int
) -> tuple[list[Comparison], Agreement, Speed]:
    """Evaluate `BATCH` held-out episodes a pair with both samplers, each time other ones, after a pair that is not
    counted: it compiles, and fills caches. Raises RuntimeError where the kernel does not play the policy."""
    envs = environments_of(collection)
    policy = load_policy(starter, shop, envs)
    samplers = []
    for torch in (True, False):
        with _torch_only(torch):
            samplers.append(_Timed(policy.sampler()))
    if not isinstance(samplers[1].sampler, TinySampler):
        raise RuntimeError(f"the kernel does not play {starter!r} here; see {CHOICE} in docs/install.md")
    a_token, an_episode, speeds, episodes, agreed, gap = [], [], [], 0, 0, 0.0
    for block in range(pairs + 1):
        jobs = Cells(envs, LEVELS, BATCH // (len(envs) * len(LEVELS)), block).jobs()
        played = [_play(policy, jobs, shop, sampler) for sampler in samplers]
        if block:
            a_token.append([one.sampling / sum(r.sampled for r in one.rollouts) for one in played])
            an_episode.append([one.whole / len(jobs) for one in played])
            speeds.append([_operations(policy.model, one.rollouts) / one.sampling for one in played])
        for theirs, ours in zip(*(one.rollouts for one in played), strict=True):
            episodes += 1
            if theirs.completion_ids == ours.completion_ids:
                agreed += 1
                gap = max(gap, *(abs(a - b) for a, b in zip(theirs.logprobs, ours.logprobs, strict=True)))
    name = f"{starter} on {collection}"
    comparisons = [
        Comparison.of(name, "us a sampled token", a_token, 1e6),
        Comparison.of(name, "ms an evaluated episode", an_episode, 1e3),
    ]
    torch_speed, kernel_speed = np.median(speeds, axis=0) / 1e9
    speed = Speed(name, float(torch_speed), float(kernel_speed), _core_speed() / 1e9)
    return comparisons, Agreement(name, episodes, agreed, gap), speed


class _Played(NamedTuple):
    """Rollouts in the order of their jobs, and the seconds of sampling and of everything."""

    rollouts: list[Rollout]
    sampling: float
    whole: float


def _play(policy: Policy, jobs: Sequence[Job], shop: Shop, timed: _Timed) -> _Played:
    began, timed.seconds = time.process_time(), 0.0
    played = list(play_jobs(policy, jobs, shop, timed))
    whole = time.process_time() - began
    return _Played([r for _, r in sorted(played, key=lambda one: jobs.index(one[0]))], timed.seconds, whole)


def step_config(out: Path, seed: int, steps: int) -> TrainConfig:
    """Configure a run of the quick ablation of `steps` steps between its first and its last, hardly evaluated."""
    return training_config(
        {
            **load(SWEEP).fixed, "schedule": "adaptive", "out": str(out), "seed": seed, "steps": steps + 2,
            "eval_every": 0, "eval_difficulties": (0,), "eval_episodes": 1,
        }
    )  # fmt: skip


def compare_steps(pairs: int, steps: int) -> tuple[Comparison, dict[str, dict[str, float]]]:
    """Time `steps` training steps of the quick ablation a pair, each pair with a seed of its own; also return each
    sampler's shares of a step by phase."""
    seconds, shares = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(pairs):
            pair = []
            for torch in (True, False):
                out, ends = Path(folder) / f"{torch}-{seed}", list[float]()

                def note(event: Mapping[str, Any], ends: list[float] = ends) -> None:
                    if event["kind"] == "step":
                        ends.append(time.process_time())

                with _torch_only(torch):
                    train(step_config(out, seed, steps), note)
                # not the first, which begins with the process's, nor the last, which ends with an evaluation
                pair.append((ends[-2] - ends[0]) / steps)
            seconds.append(pair)
        for name, torch in (("torch", True), ("kernel", False)):
            shares[name] = _shares([Path(folder) / f"{torch}-{seed}" for seed in range(pairs)])
    return Comparison.of("novice on C1", "s a training step", seconds, 1.0), shares


def _shares(runs: Sequence[Path]) -> dict[str, float]:
    """Compute the phases' shares of the time of the steps between the first and the last."""
    tables = [pd.read_csv(run / "train.csv").drop_duplicates("step").iloc[1:-1] for run in runs]
    whole = pd.concat(tables)
    total = whole.seconds.sum()
    found = {phase: float(whole[f"seconds_{phase}"].sum() / total) for phase in PHASES}
    return {**found, "other": 1 - math.fsum(found.values())}


def compare(
    shop: Shop, pairs: int, step_pairs: int, steps: int, on_progress: Callable[[str], None]
) -> dict[str, Any]:
    """Make all comparisons: {"comparisons", "agreements", "speeds", "shares"}; call `on_progress` with what is done."""
    comparisons, agreements, speeds = list[Comparison](), list[Agreement](), list[Speed]()
    shares = dict[str, dict[str, float]]()
    for starter, collection in SUBJECTS:
        found, agreement, speed = compare_sampling(starter, collection, shop, pairs)
        comparisons += found
        agreements.append(agreement)
        speeds.append(speed)
        on_progress(f"compared {starter} on {collection}")
    if step_pairs:
        found_step, shares = compare_steps(step_pairs, steps)
        comparisons.append(found_step)
    return {"comparisons": comparisons, "agreements": agreements, "speeds": speeds, "shares": shares}


def show(found: Mapping[str, Any], console: Console, json_file: Path | None = None) -> None:
    """Print what `compare` found; write it to `json_file` if given, with the versions of the libraries."""
    table = Table("policy", "cost", "torch", "kernel", "torch / kernel")
    for one in found["comparisons"]:
        cells = [f"{middle:.3g} ({low:.3g}-{high:.3g})" for low, middle, high in (one.torch, one.kernel)]
        low, middle, high = one.ratio
        table.add_row(one.subject, one.unit, *cells, f"{middle:.2f} ({low:.2f}-{high:.2f})")
    widened(console, table).print(table)  # a narrower one would cut values
    console.print("median (lowest-highest) of pairs, seconds of the processor, one core")
    for one in found["agreements"]:
        console.print(
            f"{one.subject}: {one.equal:,} of {one.episodes:,} episodes have equal tokens; their log-probabilities "
            f"differ by at most {one.gap:.1e}"
        )
    for one in found["speeds"]:
        console.print(
            f"{one.subject}: {one.torch:.1f} GFLOP/s by torch, {one.kernel:.1f} by the kernel; the limit of a core, a "
            f"dense product by BLAS, is {one.core:.0f}"
        )
    for name, phases in found["shares"].items():
        console.print(f"a step with {name}: " + ", ".join(f"{p} {100 * s:.0f}%" for p, s in phases.items()))
    if json_file is not None:
        rows = {
            name: [asdict(one) for one in found[name]] for name in ("comparisons", "agreements", "speeds")
        }
        write_json(json_file, {"versions": versions(), "clock": "cpu", **rows, "shares": found["shares"]})
        console.print(f"written to {json_file}")
