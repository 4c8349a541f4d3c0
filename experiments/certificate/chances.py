"""The chances in the committed certificate computed anew, after a change of how they are bounded: nobody plays again.

    python experiments/certificate/chances.py          # three minutes of one core

Draws the same tasks, of the same versions, replaces `chance` in each row and judges the laws by it. A row of another
version of an environment, or of another shop, is refused.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from ecomlab import ENVIRONMENTS, load_shop
from ecomlab.audit import laws
from ecomlab.audit.certificate import FIRST_SEED, Row
from ecomlab.audit.counterfactual import Comparison
from ecomlab.audit.leaks import Leak
from ecomlab.audit.surface import drawn
from ecomlab.audit.understanding import Share
from ecomlab.files import write_json

FILE = Path(__file__).with_name("certificate.json")


def main() -> None:
    found, shop = json.loads(FILE.read_text()), load_shop()
    now = {env: ENVIRONMENTS[env].version for env in found["environments"]}
    if (found["environments"], found["fingerprint"]) != (now, shop.fingerprint):
        raise SystemExit(f"{FILE} is of other versions or of another shop; make the certificate anew")
    rows = []
    for value in found["rows"]:
        row = Row.from_json(value)
        seeds = range(FIRST_SEED, FIRST_SEED + max(row.seeds, row.others))
        tasks = drawn(row.env, row.d, seeds, shop)[0][: row.others]
        chance = float(np.mean([ENVIRONMENTS[row.env].chance(task, shop) for task in tasks]))
        if chance != row.chance:
            print(f"{row.env} d = {row.d}: {row.chance:.5f}, now {chance:.5f}")
        rows.append(replace(row, chance=chance))
    evidence = laws.Evidence(
        rows,
        [Leak(**one) for one in found["leaks"]],
        [Comparison(**one) for one in found["comparisons"]],
        [Share(**one) for one in found["understood"]],
    )
    found["rows"] = [row.to_json() for row in rows]
    found["broken"] = laws.broken_laws(rows, evidence.leaks, evidence.comparisons, evidence.understood)
    found["laws"] = laws.states(evidence)
    write_json(FILE, found)
    print("\n".join(found["broken"]) or "no law is broken")


if __name__ == "__main__":
    main()
