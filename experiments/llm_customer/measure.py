"""Measures an endpoint as the customer's words: rewordings refused by reason, seconds, and the reference player's
success on the same tasks with both. Writes a line an episode, and goes on where it was stopped.

    make smollm2-server ARGS="--threads 1" &
    python experiments/llm_customer/measure.py experiments/llm_customer/smollm2.toml --minutes 20
    python experiments/llm_customer/measure.py honest   # the scripted paraphraser, without an endpoint
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import ecomlab
from ecomlab.audit.wordings import STYLES, Honest
from ecomlab.customer.llm import Chat
from ecomlab.evaluate.customers import customer_identity
from ecomlab.evaluate.endpoint.chat import customer_from_toml
from ecomlab.files import write_json

HERE = Path(__file__).parent
FIRST = 40_000
"""Seed of the first task; no other experiment has these."""


def main() -> None:
    """Play until the time is over, then write the summary."""
    chosen = _arguments()
    name = Path(chosen.customer).stem
    rows_file, summary = HERE / f"{name}.jsonl", HERE / f"{name}.json"
    rows = (
        [json.loads(line) for line in rows_file.read_text("utf-8").splitlines()] if rows_file.exists() else []
    )
    done = {(row["style"], row["env"], row["d"], row["seed"]) for row in rows}
    shop, until = ecomlab.load_shop(chosen.size), time.monotonic() + 60 * chosen.minutes
    customers = _customers(chosen.customer)
    with rows_file.open("a", encoding="utf-8") as file:
        for seed, d, env, style in _cells(chosen.seeds, chosen.levels, list(customers)):
            if (style, env, d, seed) not in done and time.monotonic() < until:
                rows.append({"style": style, **_episode(env, d, seed, shop, customers[style])})
                print(json.dumps(rows[-1], ensure_ascii=False), file=file, flush=True)
    found = {style: _summary([row for row in rows if row["style"] == style]) for style in customers}
    write_json(
        summary, {"customer": customer_identity(next(iter(customers.values())))["customer"], "found": found}
    )
    print(summary.read_text("utf-8"))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("customer", help="a TOML file with an endpoint's settings, or: honest")
    parser.add_argument(
        "--minutes", type=float, default=600.0, help="time after which no further episode begins"
    )
    parser.add_argument("--seeds", type=int, default=2, help="tasks of every environment and level")
    parser.add_argument("--levels", type=int, nargs="+", default=[2, 8])
    parser.add_argument("--size", type=int, default=1_000, help="products of the generated shop")
    return parser.parse_args()


def _customers(name: str) -> dict[str, Chat]:
    if name == "honest":
        return {style: Honest(style) for style in STYLES}
    return {"endpoint": customer_from_toml(Path(name))}


def _cells(seeds: int, levels: list[int], styles: list[str]) -> Iterator[tuple[int, int, str, str]]:
    """Yield (seed, level, environment, style), so that a run that is cut short has something of everything."""
    for seed in range(FIRST, FIRST + seeds):
        for d in levels:
            for env in ecomlab.ENVIRONMENTS:
                yield from ((seed, d, env, style) for style in styles)


def _episode(env: str, d: int, seed: int, shop: ecomlab.Shop, customer: Chat) -> dict[str, Any]:
    task, make = ecomlab.make_task(env, d, seed, shop), ecomlab.ENVIRONMENTS[env].reference_player
    plain = ecomlab.play(make(shop), task, shop)
    worded = ecomlab.play(make(shop), task, shop, customer=customer)
    return {
        "env": env,
        "d": d,
        "seed": seed,
        "template": [plain.score.value, plain.score.correct, plain.score.unscored],
        "worded": [worded.score.value, worded.score.correct, worded.score.unscored],
        "replays": ecomlab.replay(worded, shop) == worded.score,
        "wording": worded.wording,
    }


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    said = [one for row in rows for one in row["wording"] if one["task"] != "label"]
    new = [one for one in said if one["answer"] != one["given"]]  # what was only repeated shows nothing
    answered = [one["seconds"] for one in said if one["answer"] is not None]
    gaps = [row["worded"][0] - row["template"][0] for row in rows]
    return {
        "episodes": len(rows),
        "unscored": sum(row["worded"][2] for row in rows),
        "replayed": sum(row["replays"] for row in rows),
        "correct_with_templates": sum(row["template"][1] for row in rows),
        "correct_with_endpoint": sum(row["worded"][1] for row in rows),
        "reward_difference": float(np.mean(gaps)) if gaps else None,
        "reward_difference_95": _interval(gaps),
        "lines": len(said),
        "repeated_word_for_word": len(said) - len(new),
        "reworded": sum(not one["refused"] for one in new),
        "refused": dict(Counter(one["refused"] for one in new if one["refused"]).most_common()),
        "share_of_rewordings_used": sum(not one["refused"] for one in new) / len(new) if new else None,
        "labels_asked": sum(one["task"] == "label" for row in rows for one in row["wording"]),
        "seconds_a_line_median": float(np.median(answered)) if answered else None,
    }


def _interval(gaps: list[float]) -> list[float] | None:
    """Compute the 95% interval of a mean of paired differences; None where they are too few, a point where all are
    equal."""
    if len(gaps) < 2 or max(gaps) == min(gaps):
        return None if len(gaps) < 2 else [gaps[0], gaps[0]]
    low, high = stats.t.interval(0.95, len(gaps) - 1, np.mean(gaps), stats.sem(gaps))
    return [float(low), float(high)]


if __name__ == "__main__":
    main()
