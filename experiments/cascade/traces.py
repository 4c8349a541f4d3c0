"""Two episodes of a player with their labels, turn by turn, for the figure of traces.

    python experiments/cascade/traces.py base [--env CART] [--at 1:2147483709,8:2147483709] [--size 20000]

Plays the episodes of these levels and seeds, which are those of played.csv, and writes traces.json: per turn what was
said and called, what came back, and the mistakes.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from players import named, play_of

from ecomlab.catalog import load_shop
from ecomlab.episode.episode import make_task
from ecomlab.episode.record import Trajectory
from ecomlab.evaluation.mistakes import calls_of, label
from ecomlab.files import write_json
from ecomlab.lab.provenance import made_with, provenance

OUT = Path(__file__).with_name("traces.json")


def turns_of(trajectory: Trajectory) -> Iterator[dict[str, Any]]:
    """Yield each turn: the agent's words and calls, then the customer's words and tools' results, as they were."""
    turn: dict[str, Any] = {}
    for message in trajectory.messages:
        if message["role"] == "assistant":
            if turn:
                yield turn
            calls = [] if message.get("invalid") else calls_of(message)
            turn = {
                "said": message.get("content") or "",
                "calls": [{"name": name, "arguments": given} for name, given in calls],
                "results": [],
                "customer": [],
            }
        elif message["role"] == "tool":
            turn["results"].append(json.loads(message["content"]))
        elif message["role"] == "user" and turn:
            turn["customer"].append(message["content"])
    yield turn


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("player")
    parser.add_argument("--env", default="CART")
    parser.add_argument("--at", default="1:2147483709,8:2147483709")
    parser.add_argument("--size", type=int, default=20_000)
    asked = parser.parse_args()
    shop, (name, weights) = load_shop(asked.size), named(asked.player)
    cells = [map(int, one.split(":")) for one in asked.at.split(",")]
    tasks = [make_task(asked.env, d, seed, shop) for d, seed in cells]
    found = []
    played = play_of(weights, [asked.env], shop)(tasks, [()] * len(tasks))
    for task, trajectory in zip(tasks, played, strict=True):
        if trajectory is None or trajectory.score.unscored:
            raise SystemExit(f"d = {task.difficulty}, seed {task.seed}: the episode broke")
        labelled = label(trajectory, shop)
        turns = list(turns_of(trajectory))
        if labelled.end == "truncated":  # in a message of which nothing is recorded
            turns.append({"said": "", "calls": [], "results": [], "customer": []})
        for number, turn in enumerate(turns, 1):
            turn["mistakes"] = [asdict(m) for m in labelled.mistakes if m.turn == number]
        head = {"player": name, "env": task.env, "d": task.difficulty, "seed": task.seed, "end": labelled.end}
        opening = next(m["content"] for m in trajectory.messages if m["role"] == "user")
        found.append({**head, "correct": labelled.correct, "opening": opening, "turns": turns})
    known = {"player": name, "at": asked.at, "catalog_size": asked.size}
    record = provenance(known, catalog=shop.fingerprint, made_with=made_with(weights, [asked.env]))
    write_json(OUT, {"record": record, "traces": found})


if __name__ == "__main__":
    main()
