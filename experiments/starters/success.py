"""A shipped starter's held-out success, sampled and greedy, beside that of the best blind or positional player.

    python experiments/starters/success.py novice       # a quarter of an hour on one core; writes novice.json

CART at d = 0 to 3, everything else at d = 0. The file says what it was made with; a test compares that with what ships.
"""

import argparse
from pathlib import Path

from ecomlab import load_shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.files import write_json
from ecomlab.lab.provenance import made_with, provenance
from ecomlab.starters.compare import compare

HERE = Path(__file__).resolve().parent
CATALOG = {"catalog_size": 20_000, "catalog_seed": 0}
CART_LEVELS = (0, 1, 2, 3)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("starter")
    parser.add_argument("--episodes", type=int, default=200, help="held out, per environment and difficulty")
    parser.add_argument("--out", type=Path, help="default: STARTER.json beside this file")
    arguments = parser.parse_args()
    shop = load_shop(CATALOG["catalog_size"], CATALOG["catalog_seed"])
    cells = [(env, d) for env in ENVIRONMENTS for d in (CART_LEVELS if env == "CART" else (0,))]
    rows = list(compare(arguments.starter, cells, arguments.episodes, shop, print))
    record = provenance(
        {"starter": arguments.starter, "episodes": arguments.episodes, **CATALOG},
        catalog=shop.fingerprint,
        made_with=made_with(arguments.starter, ENVIRONMENTS),
    )
    write_json(arguments.out or HERE / f"{arguments.starter}.json", {**record, "rows": rows})


if __name__ == "__main__":
    main()
