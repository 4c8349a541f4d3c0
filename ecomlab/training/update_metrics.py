"""Metrics of one update, over the trained tokens of all minibatches, micro-batches and processes.

TRL logs the last gradient norm, and means of micro-batch means, which are NaN as soon as one process trains nothing.
"""

import math

import numpy as np
import torch
from torch import Tensor

from ecomlab.models.process_group import ProcessGroup


class UpdateMetrics:
    """One step's sums in one process; `total` adds up the processes."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = 1 - low, 1 + high
        self.sums = dict.fromkeys(("entropy", "clipped", "tokens", "gap", "gap_tokens"), 0.0)
        self.gap_max = 0.0
        self.norms: list[float] = []
        """Each minibatch's gradient norm, before clipping."""
        self._before = 0.0
        """All processes' tokens that were trained before the last call of `trained`."""

    def add(self, change: Tensor, entropies: Tensor, raised: Tensor) -> None:
        """Add trained tokens, each tensor (tokens,): log-probability minus the sampler's, entropy, and whether the
        advantage is positive. Until the first update the policy is still the one that sampled."""
        ratio = change.exp()
        clipped = torch.where(raised, ratio > self.high, ratio < self.low)
        sums: dict[str, Tensor | int] = {
            "entropy": entropies.sum(),
            "clipped": clipped.sum(),
            "tokens": len(change),
        }
        for name, value in sums.items():
            self.sums[name] += float(value)
        if not self._before and len(change):
            self.sums["gap"] += float(change.abs().sum())
            self.sums["gap_tokens"] += len(change)
            self.gap_max = max(self.gap_max, float(change.abs().max()))

    def trained(self, processes: ProcessGroup) -> bool:
        """Tell whether any process trained a token since the last call; all of them call this."""
        tokens = sum(processes.all_gather(self.sums["tokens"]))
        before, self._before = self._before, tokens
        return bool(tokens > before)

    def total(self, processes: ProcessGroup) -> dict[str, float]:
        """Compute, over all processes, entropy, clip_share, logp_gap and logp_gap_max (mean and largest `|Δ logp|`
        between sampler and trainer before the first update), and grad_norm (the largest, NaN if one is). If nothing was
        trained, grad_norm is 0 and the others are NaN."""
        gathered = processes.all_gather((self.sums, self.gap_max))
        sums = {name: sum(each[name] for each, _ in gathered) for name in self.sums}
        tokens, gap_tokens = sums["tokens"] or math.nan, sums["gap_tokens"] or math.nan
        return {
            "entropy": sums["entropy"] / tokens,
            "clip_share": sums["clipped"] / tokens,
            "grad_norm": float(np.max(self.norms)) if self.norms else math.nan,  # max() may pass over NaN
            "logp_gap": sums["gap"] / gap_tokens,
            "logp_gap_max": max(largest for _, largest in gathered) if sums["gap_tokens"] else math.nan,
        }
