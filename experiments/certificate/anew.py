"""Parts of the committed certificate computed anew, after a change of how they are measured: nobody plays again.

    python experiments/certificate/anew.py                      # chances: three minutes of one core
    python experiments/certificate/anew.py --told JOURNEY       # and what its tasks tell before anything is asked

Draws the same tasks, of the same versions, replaces `chance` in each row, and of the environments after --told the
measures of openings, budgets and bounds, and judges the laws by them. A certificate of other versions, or of another
shop, is refused. Those measures must be as many tasks' as the others are: --leaks says how many a level.
"""

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from ecomlab import ENVIRONMENTS, load_shop
from ecomlab.catalog import Shop
from ecomlab.files import write_json
from ecomlab.laws import laws, opening_leaks
from ecomlab.laws.certificate import FIRST_SEED, Row
from ecomlab.laws.counterfactual import Comparison
from ecomlab.laws.leaks import Leak
from ecomlab.laws.talkers import Talked
from ecomlab.laws.tool_introspection import drawn
from ecomlab.laws.truthful import Truths
from ecomlab.laws.understanding import Share

FILE = Path(__file__).with_name("certificate.json")
TOLD = ("opening: ", "budgets: ", "budget: ", "limits: ", "what is said ")
"""How the kinds begin that `opening_leaks.opening_leaks` measures."""


def with_chance(row: Row, shop: Shop) -> Row:
    """Compute a row's `chance` again, and say what it was if it is another now."""
    seeds = range(FIRST_SEED, FIRST_SEED + max(row.seeds, row.others))
    tasks = drawn(row.env, row.d, seeds, shop)[0][: row.others]
    chance = float(np.mean([ENVIRONMENTS[row.env].audit.chance(task, shop) for task in tasks]))
    if chance != row.chance:
        print(f"{row.env} d = {row.d}: {row.chance:.5f}, now {chance:.5f}")
    return replace(row, chance=chance)


def with_told(found: list[Leak], env: str, tasks: int, shop: Shop) -> list[Leak]:
    """Measure again what the tasks of an environment tell before anything is asked, three times `tasks` a level."""
    mine = [leak for leak in found if leak.env == env and not leak.kind.startswith(TOLD)]
    before = [leak for leak in found if leak.env == env and leak.kind.startswith(TOLD)]
    now = opening_leaks.opening_leaks(env, shop, seeds=3 * tasks)
    old, new = ({leak.kind: f"{leak.auc:.3f}" for leak in some} for some in (before, now))
    for kind in {**old, **new}:
        print(f"{env} {kind}: {old.get(kind, 'not measured')}, now {new.get(kind, 'not measured')}")
    first = next((n for n, leak in enumerate(found) if leak.env == env), len(found))
    others = [leak for leak in found if leak.env != env]
    return [*others[:first], *mine, *now, *others[first:]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--told", nargs="*", choices=list(ENVIRONMENTS), default=[], metavar="ENV")
    parser.add_argument("--leaks", type=int, default=150, help="as `ecomlab certify --leaks`")
    asked = parser.parse_args()
    found, shop = json.loads(FILE.read_text()), load_shop()
    now = {env: ENVIRONMENTS[env].version for env in found["environments"]}
    if (found["environments"], found["fingerprint"]) != (now, shop.fingerprint):
        raise SystemExit(f"{FILE} is of other versions or of another shop; make the certificate anew")
    rows = [with_chance(Row.from_json(value), shop) for value in found["rows"]]
    leaks = [Leak(**one) for one in found["leaks"]]
    for env in asked.told:
        leaks = with_told(leaks, env, asked.leaks, shop)
    evidence = laws.Evidence(
        rows,
        leaks,
        [Comparison(**one) for one in found["comparisons"]],
        [Share(**one) for one in found["understood"]],
        [Share(**one) for one in found["heard"]],
        [Truths(**one) for one in found["truths"]],
        [Talked(**one) for one in found["talked"]],
    )
    found["rows"] = [row.to_json() for row in rows]
    found["leaks"] = [asdict(leak) for leak in leaks]
    found["broken"] = laws.broken_laws(evidence)
    found["laws"] = laws.states(evidence)
    write_json(FILE, found)
    print("\n".join(found["broken"]) or "no law is broken")


if __name__ == "__main__":
    main()
