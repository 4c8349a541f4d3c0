"""What *singles* would be if no demonstration held two steps of a cart: its recipe without `PAIRS`, and its skills.

python experiments/frontier/strict.py          # eleven minutes of a core; writes skills_strict.csv beside this file
"""

from pathlib import Path

from composition import measured, played

from ecomlab.catalog import load_shop
from ecomlab.starters.recipe import PAIRS, RECIPES, make_starter

HERE = Path(__file__).resolve().parent


def main() -> None:
    shop, recipe = load_shop(), RECIPES["singles"]
    drills, phase = recipe.phases
    alone = phase.replace(cells=tuple(cell for cell in phase.cells if cell not in PAIRS))
    work = HERE / "runs/strict"
    work.mkdir(parents=True, exist_ok=True)
    policy = make_starter(shop, recipe.replace(phases=(drills, alone)), print, work)
    measured(played(policy, shop, 192, 0)).to_csv(
        HERE / "skills_strict.csv", index=False, lineterminator="\n"
    )


if __name__ == "__main__":
    main()
