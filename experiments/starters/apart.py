"""What of base's gain over the first recipe comes from seeing mistakes, from more carts, from more demonstrations.

    python experiments/starters/apart.py --work /tmp/apart        # hours on one core; goes on where it stopped
    python experiments/starters/apart.py --work /tmp/apart --arm base    # one arm: several can run beside each other
    python experiments/starters/apart.py --work /tmp/x --tokens .3 --episodes 4 --out /tmp/x.csv    # a check

Each arm is the first stage of base's recipe without one of the three, or without all, at the same number of tokens,
a part of that stage's. Writes apart.csv once every arm is there: held-out success by arm, environment, level, decoding;
beside it apart.json, which says what it was made with: another base that ships has another recipe.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from ecomlab import Shop, load_shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.evaluation.evaluation import Cells
from ecomlab.evaluation.heldout import play_held_out, summarize
from ecomlab.files import write_json, write_text
from ecomlab.lab.provenance import made_with, provenance
from ecomlab.models.load import load_policy
from ecomlab.starters.policy import save_policy
from ecomlab.starters.recipe import ALL, RECIPES, Recipe, make_starter, shrunk

HERE = Path(__file__).resolve().parent
FEWER = 0.7
"""The first recipe's number of different demonstrations a token, as a share of base's."""
TOKENS = 10.0
"""Millions of tokens an arm."""
CART_LEVELS = (0, 1, 2, 3, 4)
CATALOG = {"catalog_size": 20_000, "catalog_seed": 0}


def without_mistakes(recipe: Recipe) -> Recipe:
    """Demonstrate the last phase's tasks without mistakes."""
    *before, last = recipe.phases
    return recipe.replace(phases=(*before, last.replace(slip_rate=0.0)))


def with_fewer_carts(recipe: Recipe) -> Recipe:
    """Give the last phase as many carts, and as large ones, as the phase before it has."""
    *before, last = recipe.phases
    (cart,) = (cell for cell in ALL if cell.env == "CART")
    cells = tuple(cart if cell.env == "CART" else cell for cell in last.cells)
    return recipe.replace(phases=(*before, last.replace(cells=cells)))


def with_fewer_demonstrations(recipe: Recipe) -> Recipe:
    """Show fewer different demonstrations after the drills, more often."""
    drills, *phases = recipe.phases
    fewer = (phase.replace(episodes=round(FEWER * phase.episodes)) for phase in phases)
    return recipe.replace(phases=(drills, *fewer))


def arms(recipe: Recipe) -> Mapping[str, Recipe]:
    """Take the three apart."""
    return {
        "base": recipe,
        "without mistakes": without_mistakes(recipe),
        "with fewer carts": with_fewer_carts(recipe),
        "with fewer demonstrations": with_fewer_demonstrations(recipe),
        "without all three": without_mistakes(with_fewer_carts(with_fewer_demonstrations(recipe))),
    }


def success_of(arm: str, recipe: Recipe, shop: Shop, work: Path, episodes: int) -> pd.DataFrame:
    """Make one arm's policy and evaluate it, unless its table lies in `work` already."""
    table = work / "success.csv"
    if table.exists():
        return pd.read_csv(table)
    work.mkdir(parents=True, exist_ok=True)
    if not (work / "policy").exists():
        policy = make_starter(shop, recipe, lambda line: print(f"{arm}: {line}", flush=True), work)
        save_policy(work / "new", policy, recipe=recipe.to_json())
        (work / "new").replace(work / "policy")  # whole or not there
    rows = []
    for env in ENVIRONMENTS:
        policy = load_policy(work / "policy", shop, [env])
        levels = CART_LEVELS if env == "CART" else (0,)
        played = play_held_out(
            policy, Cells((env,), levels, episodes).jobs(), shop, decodings=("sampled", "greedy")
        )
        for row in summarize(played):
            shown = {key: row[key] for key in ("env", "d", "decoding", "episodes", "success")}
            rows.append({"arm": arm, **shown})
    success = pd.DataFrame(rows)
    write_text(table, success.to_csv(index=False, lineterminator="\n"))
    return success


def summary(success: pd.DataFrame) -> pd.DataFrame:
    """Average success over CART's levels 0 and 1, over those from 2 on, and over the other environments."""
    carts = success["d"].map(lambda d: "CART, d = 0 and 1" if d < 2 else f"CART, d = 2 to {CART_LEVELS[-1]}")
    place = carts.where(success["env"] == "CART", "the others, d = 0") + ", " + success["decoding"]
    return success.groupby(["arm", place], sort=False)["success"].mean().unstack()


def main() -> None:
    recipes = RECIPES["base"].replace(finish=())
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="folder for logs, checkpoints and policies")
    parser.add_argument("--arm", choices=[*arms(recipes)], help="this one only, and no table of all")
    parser.add_argument("--tokens", type=float, default=TOKENS, help="millions in all, of each arm")
    parser.add_argument("--episodes", type=int, default=200, help="held out, per environment and difficulty")
    parser.add_argument("--out", type=Path, default=HERE / "apart.csv")
    arguments = parser.parse_args()
    shop, tables = load_shop(CATALOG["catalog_size"], CATALOG["catalog_seed"]), []
    for arm, recipe in arms(shrunk(recipes, None, arguments.tokens)).items():
        if arguments.arm in (None, arm):
            work = arguments.work / arm.replace(" ", "-")
            tables.append(success_of(arm, recipe, shop, work, arguments.episodes))
    success = pd.concat(tables)
    if arguments.arm is None:
        write_text(arguments.out, success.to_csv(index=False, lineterminator="\n"))
        record = provenance(
            {"starter": "base", "tokens": arguments.tokens, "episodes": arguments.episodes, **CATALOG},
            catalog=shop.fingerprint,
            made_with=made_with("base", ENVIRONMENTS),
        )
        write_json(arguments.out.with_suffix(".json"), record)
    print(summary(success).to_markdown(floatfmt=".3f"))


if __name__ == "__main__":
    main()
