"""What two switches save in a training step of the laptop policy, each against its being off, in one run.

`python experiments/bench/throughput.py OUT.json [STEPS]` plays the rollouts of STEPS steps (4) of *novice* on cart
building, d = 0 to 4, once in rounds and once with `early_refill`, in turn, and compares

1. processor seconds, forward passes of the sampler and those of them that carry at most four rows, and how many
   rollouts have the same tokens, and the same log-probabilities to the last bit;
2. from those rollouts' lengths, backward passes and tokens in them, padding included, with `micro_batch` = 4, and with
   `micro_tokens` of as many tokens as the largest of those passes has.

Wall time is not measured: other programs use the machine too.
"""

import json
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ecomlab.catalog import load_shop
from ecomlab.models.batch import Rollout
from ecomlab.models.load import load_policy
from ecomlab.models.samplers.cached import CachedSampler
from ecomlab.training.rollouts import Collection, DynamicSampling, collect
from ecomlab.training.schedule import make_schedule
from ecomlab.training.trl_trainer import by_tokens

FEW, MICRO_BATCH = 4, 4


class Counting(CachedSampler):
    """The own sampler, which counts its forward passes by how many rows each carries."""

    rows: list[int]

    def _read(self, rows: Sequence[int], *rest: Any) -> Any:
        self.rows.append(len(rows))
        return super()._read(rows, *rest)


def passes(rollouts: Sequence[Rollout]) -> dict[str, tuple[int, int]]:
    """Count backward passes and their tokens, padding included, by rows and by tokens."""
    sizes = [(len(r.prompt_ids), len(r.completion_ids)) for r in rollouts]

    def padded(part: Sequence[int]) -> int:
        return len(part) * sum(max(sizes[i][end] for i in part) for end in (0, 1))

    rows = [list(range(i, min(i + MICRO_BATCH, len(sizes)))) for i in range(0, len(sizes), MICRO_BATCH)]
    tokens = by_tokens(sizes, range(len(sizes)), max(map(padded, rows)))
    return {
        name: (len(parts), sum(map(padded, parts))) for name, parts in (("rows", rows), ("tokens", tokens))
    }


def main(out: Path, steps: int = 4) -> None:
    shop = load_shop(20_000, 0)
    policy = load_policy("novice", shop, ["CART"])
    sampler = Counting(policy.model, policy.renderer.stop_ids)
    schedule = make_schedule("static-0-4", ["CART"])
    table: list[dict[str, Any]] = []
    for step in range(steps):
        found: dict[bool, Collection] = {}
        row: dict[str, Any] = {"step": step}
        for early in (False, True):
            sampler.rows = []
            began = time.process_time()
            sampling = DynamicSampling(early_refill=early)
            found[early] = collect(schedule, sampling, ("throughput", step), shop, sampler, policy.renderer)
            row["early_refill" if early else "rounds"] = {
                "cpu_seconds": time.process_time() - began,
                "passes": len(sampler.rows),
                "few": sum(rows <= FEW for rows in sampler.rows),
            }
        one, two = found[False], found[True]
        tasks = [[g.rollouts[0].task and g.rollouts[0].task.digest() for g in c.groups] for c in (one, two)]
        assert tasks[0] == tasks[1], "the same tasks in the same order"
        pairs = list(zip(*([r for g in c.groups for r in g.rollouts] for c in (one, two)), strict=True))
        row["rollouts"] = {
            "all": len(pairs),
            "same_tokens": sum(a.completion_ids == b.completion_ids for a, b in pairs),
            "same_log_probabilities": sum(a.logprobs == b.logprobs for a, b in pairs),
        }
        row |= {"groups": len(one.groups), "kept": len(one.kept), "drawn_in": one.rounds}
        row["backward"] = passes([r for g in one.kept for r in g.rollouts])
        table.append(row)
        print(json.dumps(row), flush=True)
    out.write_text(
        json.dumps({"processor": platform.processor(), "ratios": ratios(table), "steps": table}, indent=1)
        + "\n"
    )
    print(json.dumps(ratios(table), indent=1))


def ratios(table: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Divide what a switch leaves by what there is without it, summed over steps."""

    def share(after: Sequence[float], before: Sequence[float]) -> float:
        return round(sum(after) / sum(before), 3)

    both = {
        name: [(row["early_refill"][name], row["rounds"][name]) for row in table]
        for name in ("cpu_seconds", "passes", "few")
    }
    found = {f"early_refill: {name}": share(*zip(*pairs, strict=True)) for name, pairs in both.items()}
    for i, name in enumerate(("passes", "tokens")):
        found[f"micro_tokens: {name}"] = share(
            [row["backward"]["tokens"][i] for row in table], [row["backward"]["rows"][i] for row in table]
        )
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
