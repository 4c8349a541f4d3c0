"""What a catalog of very many names costs: opening it, the first episode of a process, the episodes after it.

    python experiments/catalog_ingest/speed.py --large 1000 --work FOLDER       # makes messy_1000mb.jsonl, 766,823 rows
    ecomlab catalog build FOLDER/messy_1000mb.jsonl FOLDER/many --yes           # a quarter of an hour
    python experiments/catalog_scale/names.py FOLDER/many OTHER_FOLDER ...      # a row for each, as names.csv

Generated shops share some hundred names among all products; here, as in real catalogs, nearly every product has its
own. Each catalog is opened in a process of its own, once before it is measured; seconds and milliseconds are of the
processor, memory is the process's own. `index_s` is what making the index of names takes. Rows of the catalogs that are
named replace their older ones.
"""

import argparse
import csv
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from bench import memory

from ecomlab import ENVIRONMENTS, TaskError, load_shop, make_task, play
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.customer.reading.catalog_names import table_of
from ecomlab.files import replacing

HERE = Path(__file__).resolve().parent
LEVEL, TASKS = 6, 20


def timed(do: Callable[..., Any], *given: Any) -> tuple[float, Any]:
    """Return the processor's seconds that something takes, and what it returns."""
    began = time.process_time()
    made = do(*given)
    return time.process_time() - began, made


def measure(folder: Path) -> dict[str, Any]:
    """Open a catalog and play in it, in this process."""
    other = load_shop(size=2_000)  # libraries are loaded with it, and what all shops share is compiled
    for one in ENVIRONMENTS.values():
        play(one.reference_player(other), make_task(one.id, LEVEL, 0, other), other)
    before = memory()["private_mb"]
    opened, shop = timed(load_shop, folder)
    held = memory()["private_mb"]
    episodes: dict[str, list[float]] = {env: [] for env in ENVIRONMENTS}
    resets, correct = [], 0
    for seed in range(TASKS):
        for env in ENVIRONMENTS:
            try:
                spent, task = timed(make_task, env, LEVEL, seed, shop)
            except TaskError:
                continue
            resets.append(spent)
            spent, trajectory = timed(play, ENVIRONMENTS[env].reference_player(shop), task, shop)
            episodes[env].append(spent)
            correct += trajectory.score.correct
    lexicon = lexicon_of(shop.catalog)
    words = [timed(lexicon.looks_like_a_name, f"wrod{n}ly")[0] for n in range(9)]
    played = memory()["private_mb"]
    all_of_them = [spent for some in episodes.values() for spent in some[1:]]
    return {
        "catalog": folder.name,
        "products": shop.catalog.size,
        "names": len(shop.catalog.features),
        "open_s": round(opened, 2),
        "first_episode_s": round(episodes[next(iter(episodes))][0], 2),
        "reset_ms_p50": round(1000 * float(np.median(resets)), 1),
        "episode_ms_p50": round(1000 * float(np.median(all_of_them)), 1),
        "episode_ms_p95": round(1000 * float(np.quantile(all_of_them, 0.95)), 1),
        "new_word_ms": round(1000 * float(np.median(words)), 1),
        "index_s": round(timed(table_of, shop.catalog.features)[0], 2),
        "opened_mb": round(held - before),
        "played_mb": round(played - before),
        "episodes": sum(map(len, episodes.values())),
        "correct": correct,
    }


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("folders", nargs="+", type=Path)
    options.add_argument("--out", type=Path, default=HERE / "names.csv")
    options.add_argument("--only", action="store_true", help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.only:
        print(json.dumps(measure(asked.folders[0])))
        return
    rows: dict[str, dict[str, Any]] = {}
    if asked.out.is_file():
        with asked.out.open(encoding="utf-8", newline="") as file:
            rows = {row["catalog"]: row for row in csv.DictReader(file)}
    for folder in asked.folders:
        command = [sys.executable, __file__, "--only", str(folder)]
        for _ in range(2):  # files are in the page cache then, and names are indexed
            run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        rows[folder.name] = json.loads(run.stdout)
        print(rows[folder.name], flush=True)
    with replacing(asked.out) as draft, draft.open("w", encoding="utf-8", newline="") as opened:
        table = csv.DictWriter(opened, list(next(iter(rows.values()))), lineterminator="\n")
        table.writeheader()
        table.writerows(rows.values())


if __name__ == "__main__":
    main()
