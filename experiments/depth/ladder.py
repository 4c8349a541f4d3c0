"""Success by level of players that are models: the starters, a small chat model, strong models that played by hand.

    python experiments/depth/ladder.py play novice base experiments/smollm2/endpoint.toml --tasks 10
    python experiments/depth/ladder.py table
    python experiments/depth/ladder.py again

The first evaluates players on held-out tasks and writes their rows to ladder.csv beside this file. The second prints,
for these and for the rounds of played/episodes.csv, success by level and d50, the level at which a fitted logistic
crosses one half, with its 95% interval of likelihood; of the rounds also what decided the losses. The third plays the
kept steps of the last round again by today's code and lists the episodes that end otherwise: for tasks of that version.
"""

import argparse
import csv
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import log_expit
from scipy.stats import chi2

import ecomlab

HERE = Path(__file__).parent
TABLE, PLAYED = HERE / "ladder.csv", HERE / "played" / "episodes.csv"
LEVELS = (2, 6, 12, 20)
MIDDLES, WIDTHS = np.arange(-10, 60.25, 0.25), np.geomspace(0.5, 30, 40)
"""Grid of d50 and of the levels over which success falls from .73 to .5."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["play", "table", "again"])
    parser.add_argument("players", nargs="*")
    parser.add_argument("--tasks", type=int, default=10)
    asked = parser.parse_args()
    if asked.command == "play":
        for player in asked.players:
            play(player, asked.tasks)
    elif asked.command == "table":
        print_table()
    else:
        play_again()


def play_again() -> None:
    """Play the kept steps of the last round, and list what ends otherwise than it did."""
    shop, rows = ecomlab.load_shop(), {one["episode"]: one for one in csv.DictReader(PLAYED.open())}
    for line in PLAYED.with_name("fourth.jsonl").open():
        kept = json.loads(line)
        episode = ecomlab.Episode(ecomlab.make_task(kept["env"], kept["d"], kept["seed"], shop), shop)
        for step in kept["steps"]:
            if not episode.done:
                episode.act(step)
        ends = episode.score() if episode.done else None
        if ends is None or ends.correct != (rows[kept["episode"]]["right"] == "1"):
            print(kept["episode"], ends.why if ends else "is not over")


def play(player: str, tasks: int) -> None:
    """Evaluate a player in every environment, and put its rows in place of earlier ones."""
    report = ecomlab.evaluate(player, env="C8", difficulty=LEVELS, tasks=tasks)
    cells = report.episodes.groupby(["env", "d"]).correct.agg(episodes="count", right="sum").reset_index()
    rows = cells.astype({"right": int}).assign(
        player=Path(player).parent.name if player.endswith(".toml") else player
    )
    kept = pd.read_csv(TABLE) if TABLE.exists() else rows[:0]
    pd.concat([kept[~kept.player.isin(rows.player)], rows]).to_csv(TABLE, index=False)


def d50(levels: np.ndarray, right: np.ndarray) -> tuple[float, float, float]:
    """Estimate the level at which success crosses one half: float64 levels (n,), bool right (n,) -> estimate and the
    bounds of what a likelihood ratio does not reject; a bound at the grid's end (-10 or 60) says there is none."""
    away = (MIDDLES[:, None, None] - levels) / WIDTHS[:, None]
    fit = np.where(right, log_expit(away), log_expit(-away)).sum(2).max(1)
    left = MIDDLES[fit >= fit.max() - chi2.ppf(0.95, 1) / 2]
    return float(MIDDLES[fit.argmax()]), float(left[0]), float(left[-1])


def print_table() -> None:
    """Print a line per player and environment, and of what was played by hand the causes of losses."""
    rows: list[tuple[str, str, int, bool]] = []
    for cell in pd.read_csv(TABLE).itertuples() if TABLE.exists() else ():
        outcomes = [True] * cell.right + [False] * (cell.episodes - cell.right)
        rows += [(cell.player, cell.env, cell.d, outcome) for outcome in outcomes]
    played = list(csv.DictReader(PLAYED.open()))
    rows += [(one["round"], one["env"], int(one["d"]), one["right"] == "1") for one in played]
    frame = pd.DataFrame(rows, columns=["player", "env", "d", "right"])
    frame = pd.concat([frame.assign(env="all"), frame])
    for (player, env), some in frame.groupby(["player", "env"], sort=False):
        shares = ", ".join(f"d = {d}: {one.sum()} of {len(one)}" for d, one in some.groupby("d").right)
        middle, low, high = d50(some.d.to_numpy(float), some.right.to_numpy(bool))
        print(f"{player} {env}: {shares}; d50 {middle:g} [{low:g}, {high:g}]")
    for name in dict.fromkeys(one["round"] for one in played):
        causes = Counter(one["cause"] for one in played if one["round"] == name and one["right"] == "0")
        print(f"{name}: losses by cause: {dict(causes)}")


if __name__ == "__main__":
    main()
