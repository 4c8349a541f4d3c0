"""Does training adapters alone cost anything? Held-out success with LoRA minus that with all weights.

    ecomlab sweep experiments/lora/all/sweep.toml
    ecomlab sweep experiments/lora/lora/sweep.toml
    python experiments/lora/effect.py                               # writes effect.csv beside this file

A row per evaluation, decoding and difficulty ("mean": over all of them): the mean over seeds of both arms and of their
difference, paired by seed, with its 95% interval. Both arms have played equally many rollouts, which is checked.
"""

import sys
from pathlib import Path

import pandas as pd

from ecomlab.analysis import statistics, tables

HERE = Path(__file__).resolve().parent


def main(folder: Path = HERE, one: str = "lora", other: str = "all") -> None:
    loaded = {arm: tables.load_experiment(folder / arm) for arm in (one, other)}
    played = {arm: train.groupby(["seed", "step"]).rollouts.sum() for arm, (train, _) in loaded.items()}
    if not played[one].equals(played[other]):
        raise SystemExit("the arms have not played equally many rollouts; finish both sweeps")
    success = pd.concat({arm: by_cell(evaluation) for arm, (_, evaluation) in loaded.items()}, axis=1)
    rows = []
    for (step, decoding, d), cell in success.groupby(level=["step", "decoding", "d"]):
        apart = (cell[one] - cell[other]).to_numpy()
        low, high = statistics.t_bounds(apart)
        rows.append(
            {
                "step": step,
                "decoding": decoding,
                "d": d,
                "seeds": len(apart),
                one: cell[one].mean(),
                other: cell[other].mean(),
                "difference": apart.mean(),
                "low": low,
                "high": high,
            }
        )
    table = pd.DataFrame(rows).round(4)
    table.to_csv(folder / "effect.csv", index=False)
    print(table[table.d == "mean"].to_string(index=False))


def by_cell(evaluation: pd.DataFrame) -> pd.Series:
    """Success by step, decoding, level (and "mean") and seed, over blocks of equal size."""
    keys = ["step", "decoding", "d", "seed"]
    cells = evaluation.groupby(keys).success.mean()
    means = cells.groupby(["step", "decoding", "seed"]).mean().reset_index().assign(d="mean").set_index(keys)
    return pd.concat([cells.reset_index().astype({"d": str}).set_index(keys).success, means.success])


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]), *sys.argv[2:])
