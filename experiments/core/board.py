"""Evaluate players of this repository on ecomlab-core and write their rows: `board.py [--catalog FOLDER] [PLAYER ...]`.

On the catalog of amazon.csv it is the split *real*, which refuses the starters: they know the generated shop's words.
Rows are kept in board.json beside this script, one a player, and BOARD.md is written from it. A player of somebody
else's gets its row from `ecomlab submit-check FOLDER --board experiments/core/board.json`.
"""

import argparse
import tempfile
from pathlib import Path

import ecomlab
from ecomlab.difficulty import STEPS
from ecomlab.evaluation import core
from ecomlab.lab.core_board import BOARD, add, write_board

HERE = Path(__file__).resolve().parent
STARTERS = ("novice", "singles", "base")
VARYING = ("perturbed", *STARTERS)
"""They act differently in each trial; the others have one."""
PLAYERS = (*VARYING, "reference", "courteous", "shortcut", "naive", *(f"without {kind}" for kind in STEPS))


def main() -> None:
    """Play, check, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("players", nargs="*", default=PLAYERS)
    parser.add_argument("--catalog", default=20_000, help="folder of the split real")
    asked = parser.parse_args()
    shop = ecomlab.load_shop(asked.catalog)
    real = core.split_of(shop.fingerprint) == "real"
    for player in asked.players:
        if real and player in STARTERS:
            continue
        with tempfile.TemporaryDirectory() as folder:
            trials = core.TRIALS if player in VARYING else 1
            ecomlab.evaluate(player, **{**core.TASKS, "trials": trials}, shop=shop, out=Path(folder) / "core")
            add(core.check(Path(folder) / "core", shop), HERE / BOARD, replace=True)
        write_board(HERE)
        print(player, flush=True)


if __name__ == "__main__":
    main()
