"""What a reset, a message and a search cost here and in the published implementation, in one run and one Python.

    git clone https://github.com/owlgebra-ai/ShopRLVE-Gym CLONE && git -C CLONE checkout 4e9df00
    python experiments/bench/published.py CLONE OUT.csv [--size 2000] [--episodes 20] [--rounds 3]

Both with `--size` generated products and embeddings by hashing (the published one's debug mode: with its own model
every search would also run a transformer). Each round takes new seeds. A row holds an environment, a level, an act, the
median milliseconds of the processor an act in both, and the median, lowest and highest ratio, published over ours.
The published customer asks a server for words and takes a template where there is none; here it gets none at once.
The acts are not the same work: its customer matches no sentences, and its tasks hold no steps of thought.
"""

import argparse
import csv
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ecomlab import Episode, load_shop, make_task
from ecomlab.catalog import Shop
from ecomlab.envs.registry import ENVIRONMENTS

SAID = "What is most important to you?"
LEVELS = (0, 8)
WITHOUT_SEARCH = frozenset({"RETURN", "STATUS", "POLICY"})
"""Environments whose reference players never search."""


def milliseconds(act: Callable[[], Any]) -> float:
    began = time.process_time()
    act()
    return 1e3 * (time.process_time() - began)


def published(world: Any, env: str, d: int, seed: int) -> dict[str, float]:
    """Time an episode's acts in the published implementation."""
    search = {"name": "catalog.search", "args": {"query": f"gift {env} {d} {seed}", "top_k": 10}}
    call = json.dumps({"assistant_message": "One moment.", "tool_calls": [search], "answer": None})
    message = json.dumps({"assistant_message": SAID, "tool_calls": [], "answer": None})
    found = {"reset": milliseconds(lambda: world.reset(env_id=env, difficulty=d, seed=seed))}
    if env not in WITHOUT_SEARCH:
        # a step is a search and a message to its customer, which may not be empty
        found["search"] = milliseconds(lambda: world.step(call))
        searched = world.get_episode_state().tool_results_history[-1]
        if searched["name"] != "catalog.search" or searched["error"]:
            raise RuntimeError(f"no search: {searched}")
        world.reset(env_id=env, difficulty=d, seed=seed)
    found["message"] = milliseconds(lambda: world.step(message))
    return found


def ours(shop: Shop, env: str, d: int, seed: int) -> dict[str, float]:
    """Time the same acts here."""
    opened: list[Episode] = []
    found = {"reset": milliseconds(lambda: opened.append(Episode(make_task(env, d, seed, shop), shop)))}
    if env not in WITHOUT_SEARCH:
        arguments = json.dumps({"query": f"gift {env} {d} {seed}"})
        function = {"name": "catalog_search", "arguments": arguments}
        call = {"id": "1", "type": "function", "function": function}
        message = {"role": "assistant", "content": "", "tool_calls": [call]}
        found["search"] = milliseconds(lambda: opened[0].act(message))
        if not any(m["role"] == "tool" and '"results"' in m["content"] for m in opened[0].messages):
            raise RuntimeError(f"no search: {opened[0].messages}")
        opened.append(Episode(make_task(env, d, seed, shop), shop))
    found["message"] = milliseconds(lambda: opened[-1].act({"role": "assistant", "content": SAID}))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("clone", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", type=int, default=2000)
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    sys.path.insert(0, str(given.clone / "src"))
    from ecom_rlve.server.openenv import EcomRLVEEnv
    from ecom_rlve.simulator import llm_backend

    llm_backend._ollama_generate = lambda *_, **__: None
    world = EcomRLVEEnv("C8", config={"n_synthetic_products": given.size, "embedding_debug": True})
    world.dump_dir = ""  # it would write every episode that ends to the disk
    shop = load_shop(given.size)
    cells = [(env, d) for env in ENVIRONMENTS for d in LEVELS]
    means = defaultdict[tuple[str, int, str], list[tuple[float, float]]](list)
    for i in range(given.rounds + 1):  # the first, which fills caches, is not counted
        for env, d in cells:
            seeds = range(i * given.episodes, (i + 1) * given.episodes)
            theirs = [published(world, env, d, seed) for seed in seeds]
            mine = [ours(shop, env, d, seed) for seed in seeds]
            for act in mine[0] if i else ():
                pair = [statistics.mean(one[act] for one in side) for side in (theirs, mine)]
                means[env, d, act].append((pair[0], pair[1]))
    with given.out.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ["env", "d", "act", "published_ms", "ours_ms", "published_over_ours", "lowest", "highest"]
        )
        for cell, pairs in means.items():
            ratios = [a / b for a, b in pairs]
            values = [statistics.median(side) for side in zip(*pairs, strict=True)]
            values += [statistics.median(ratios), min(ratios), max(ratios)]
            writer.writerow([*cell, *(f"{value:.3g}" for value in values)])


if __name__ == "__main__":
    main()
