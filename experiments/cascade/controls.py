"""Whether labels find anything where nothing is wrong, and whatever is left wrong.

    python experiments/cascade/controls.py [--episodes 20] [--levels 0,1,...,12] [--env CART] [--size 20000]

Plays held-out tasks with the oracle, the reference player and the perturbed one, and adds to controls.csv what it
lacks: for each environment, level and player the episodes, those that end correct, those of them in which a mistake is
labelled, and those in which something is labelled as left wrong exactly where the verifier finds the end wrong.
`--draw` plays nothing and puts the sums by player into docs/cascade.md.
"""

import argparse
from itertools import product
from pathlib import Path

from growing import add, read

from ecomlab.catalog import load_shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.evaluation.cascade.confusion import CONTROLS, control_of, controls_as_markdown
from ecomlab.files import replace_between

TABLE = Path(__file__).with_name("controls.csv")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "cascade.md"
MARKS = ("<!-- drawn by experiments/cascade/controls.py: begin -->", "<!-- controls: end -->")
PLAYERS = ("oracle", "reference", "perturbed")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--levels", default=",".join(map(str, range(13))))
    parser.add_argument("--env", default=",".join(ENVIRONMENTS))
    parser.add_argument("--size", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=TABLE)
    parser.add_argument("--draw", action="store_true")
    asked = parser.parse_args()
    if asked.draw:
        return replace_between(PAGE, MARKS, controls_as_markdown(read(asked.out)))
    done = {(row["env"], row["d"], row["player"]) for row in read(asked.out)}
    shop = load_shop(asked.size)
    for env, d in product(asked.env.split(","), asked.levels.split(",")):
        players = [player for player in PLAYERS if (env, d, player) not in done]
        add(asked.out, CONTROLS, [control_of(env, int(d), name, asked.episodes, shop) for name in players])
        print(f"{env}, d = {d}", flush=True)


if __name__ == "__main__":
    main()
