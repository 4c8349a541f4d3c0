"""A larger base policy, made on a GPU by the laptop policy's recipe with more parameters, for all eight environments.

    python experiments/gpu/base.py --out $OUT      # on a GPU, in calls of ten minutes
    python experiments/gpu/base.py --size laptop --tokens .2 --episodes 4 --out /tmp/x     # anywhere: a check

The question is whether it learns to choose by two attributes among look-alikes, which CART requires from d = 6 on and
the laptop's size did not learn. All cores play demonstrations, then the GPU imitates them. Killed and started again,
the script continues. It writes the starter (base-SIZE/), log.txt with the loss, base.csv (held-out success by
environment and difficulty) and machine.json.
"""

import argparse
import json
import os
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pandas as pd
import torch

from ecomlab import load_shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.starters import recipe as recipes
from ecomlab.starters import tiny_qwen3
from ecomlab.starters.compact_renderer import ShortRenderer
from ecomlab.starters.compare import compare
from ecomlab.starters.demonstrations import Demonstration
from ecomlab.starters.policy import save_policy

SIZES = {
    "laptop": tiny_qwen3.Size(128, 3, 4, 352),
    "5M": tiny_qwen3.Size(256, 6, 8, 704),
    "20M": tiny_qwen3.Size(448, 8, 14, 1216),
    "30M": tiny_qwen3.Size(512, 10, 16, 1408),
}
CART_LEVELS, OTHER_LEVELS = range(9), (0, 2, 4)


def play(
    number: int, recipe: recipes.Recipe, renderer: ShortRenderer, shares: int, share: int
) -> list[Demonstration]:
    """Play one process's share of a phase's demonstrations; the shop comes from the cache."""
    return list(recipes.play_demonstrations(load_shop(), renderer, recipe, number, share, shares))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--size", choices=SIZES, default="5M")
    parser.add_argument("--tokens", type=float, default=300.0, help="millions in all")
    parser.add_argument("--episodes", type=int, default=200, help="held out, per environment and difficulty")
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scaled = recipes.shrunk(recipes.RECIPES["base"], None, arguments.tokens)
    batch = 32_000 if device == "cuda" else 2_000  # a GPU needs large batches
    recipe = scaled.replace(size=SIZES[arguments.size], tokens_per_batch=batch)
    work = arguments.out.resolve() / f"work-{arguments.size}"
    work.mkdir(parents=True, exist_ok=True)
    shop, cores = load_shop(), os.cpu_count() or 1
    renderer = ShortRenderer(recipes.make_tokenizer(shop, recipe))
    with get_context("spawn").Pool(cores) as pool:
        for number in range(len(recipe.phases)):
            if not recipes.drawn(work, recipe, number):
                play_share = partial(play, number, recipe, renderer, cores)
                played = [d for share in pool.map(play_share, range(cores)) for d in share]
                recipes.keep(work, recipe, number, played)
    with (work / "log.txt").open("a", buffering=1) as log:

        def on_progress(line: str) -> None:
            print(line, flush=True)
            log.write(line + "\n")

        policy = recipes.make_starter(shop, recipe, on_progress, work, device)
        starter = arguments.out / f"base-{arguments.size}"
        policy.model.cpu()
        save_policy(starter, policy, recipe=recipe.to_json())
        cells = [(env, d) for env in ENVIRONMENTS for d in (CART_LEVELS if env == "CART" else OTHER_LEVELS)]
        rows = list(compare(starter, cells, arguments.episodes, shop, on_progress))
    pd.DataFrame(rows).to_csv(arguments.out / "base.csv", index=False)
    card = torch.cuda.get_device_name() if device == "cuda" else "no GPU"
    machine = {
        "card": card,
        "cores": cores,
        "torch": torch.__version__,
        "arguments": vars(arguments) | {"out": ""},
    }
    (arguments.out / "machine.json").write_text(json.dumps(machine, indent=1) + "\n")


if __name__ == "__main__":
    main()
