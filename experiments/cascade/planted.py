"""Whether planted mistakes are found: a confusion table by kind and turn.

    python experiments/cascade/planted.py [--episodes 50] [--levels 1,3,5,8] [--env CART] [--size 20000]

Adds to planted.csv what it lacks: for each environment, level and kind the rows of
`ecomlab.evaluation.cascade.confusion`, of so many episodes. What is planted is written kind by kind, so a run that was
killed goes on; a kind of which nothing could be planted is tried again. A table of another number of episodes is
another file: give --out. `--draw` plays nothing and puts the shares by kind into docs/cascade.md.
"""

import argparse
from itertools import product
from pathlib import Path

from growing import add, read

from ecomlab.catalog import load_shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.evaluation.cascade.confusion import COLUMNS, as_markdown, rows_of
from ecomlab.evaluation.cascade.planting import PLANTABLE
from ecomlab.files import replace_between

TABLE = Path(__file__).with_name("planted.csv")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "cascade.md"
MARKS = ("<!-- drawn by experiments/cascade/planted.py: begin -->", "<!-- planted: end -->")
SETTINGS = ("asked", "size")
"""Further columns: episodes of each kind that were asked for, products in the shop."""


def draw(rows: list[dict[str, str]]) -> None:
    """Put the table's shares into the page."""
    replace_between(PAGE, MARKS, as_markdown(rows))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--episodes", type=int, default=50)
    parser.add_argument("--levels", default="1,3,5,8")
    parser.add_argument("--env", default=",".join(ENVIRONMENTS))
    parser.add_argument("--kinds", default=",".join(PLANTABLE))
    parser.add_argument("--size", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=TABLE)
    parser.add_argument("--draw", action="store_true")
    asked = parser.parse_args()
    if asked.draw:
        return draw(read(asked.out))
    settings = {"asked": str(asked.episodes), "size": str(asked.size)}
    there = read(asked.out)
    if other := [row for row in there if any(row[name] != settings[name] for name in SETTINGS)]:
        known = ", ".join(f"{name} {other[0][name]}" for name in SETTINGS)
        raise SystemExit(f"{asked.out} was made with {known}; give the same, or another --out")
    done = {(row["env"], row["d"], row["planted"]) for row in there}
    shop = load_shop(asked.size)
    for env, d in product(asked.env.split(","), asked.levels.split(",")):
        kinds = [kind for kind in asked.kinds.split(",") if (env, d, kind) not in done]
        for rows in rows_of(env, int(d), asked.episodes, shop, kinds):
            add(asked.out, (*COLUMNS, *SETTINGS), [{**row, **settings} for row in rows])
        print(f"{env}, d = {d}: {len(kinds)} kinds", flush=True)


if __name__ == "__main__":
    main()
