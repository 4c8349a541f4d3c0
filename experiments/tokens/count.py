"""Count the tokens of prompts and whole episodes with Qwen's own byte pairs and its chat template, as tokens.csv.

    ecomlab assets get qwen-tokenizer
    python experiments/tokens/count.py [--env CART ...] [--levels 0 4 8 12] [--tasks 100]

Plays the courteous player. Rows of cells that are not asked for stay, and a finished cell is not counted again, so that
a killed run goes on. Prints which limits do not hold.
"""

import argparse
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from scipy import stats

from ecomlab import assets
from ecomlab.catalog import Shop, load_shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import make_task
from ecomlab.models.qwen3 import ChatRenderer
from ecomlab.models.qwen_tokenizer import QWEN, qwen_renderer
from ecomlab.task import Player
from ecomlab.training.tokens import LEVELS, SHARE, Count, episode_tokens, read_table, write_table

TASKS = 100
"""Episodes counted per environment and level."""
PROMPT, PROMPTS = 1_300, {"RETURN": 1_900, "JOURNEY": 3_300}
"""Most tokens of system prompt and tools: usually, and where it is more."""
EPISODE, EPISODES = 8_192, {"CART": 16_384, "BUNDLE": 28_672, "PD": 32_768, "SUB": 10_240, "JOURNEY": 49_152}
"""Most tokens of an episode up to d = 12: usually, and where it is more."""
EASIER, EASIER_EPISODES = 8, {"CART": 11_264, "BUNDLE": 16_384, "PD": 24_576, "SUB": 8_192, "JOURNEY": 24_576}
"""Most tokens of an episode up to this level, where that is less than up to d = 12."""


def most_in_prompt(env: str) -> int:
    """Return the limit of tokens of an environment's system prompt and tools."""
    return PROMPTS.get(env, PROMPT)


def most_in_episode(env: str, d: int) -> int:
    """Return the limit of tokens that 99% of courteous episodes at a level keep."""
    most = EPISODES.get(env, EPISODE)
    return EASIER_EPISODES.get(env, most) if d <= EASIER else most


def count(
    env: str, d: int, seeds: Iterable[int], shop: Shop, renderer: ChatRenderer, player: Callable[[], Player]
) -> Count:
    """Count the tokens of the episodes that players, made by `player` for each, play with these seeds."""
    prompts, whole, written, longest = set(), [], [], []
    for seed in seeds:
        task = make_task(env, d, seed, shop)
        prompt, tokens, turns = episode_tokens(task, shop, renderer, player())
        prompts.add(prompt)
        whole.append(tokens)
        written.append(sum(turns))
        longest.append(max(turns))
    whole.sort()
    limit = most_in_episode(env, d)
    fit = sum(tokens <= limit for tokens in whole)
    bounds = stats.binomtest(fit, len(whole)).proportion_ci(0.95, "exact")
    return Count(
        env=env,
        d=d,
        tasks=len(whole),
        prompt=max(prompts),
        median=round(statistics.median(whole)),
        p99=whole[math.ceil(SHARE * len(whole)) - 1],
        max=whole[-1],
        limit=limit,
        fits=fit / len(whole),
        low=round(float(bounds.low), 3),
        high=round(float(bounds.high), 3),
        written=max(written),
        turn=max(longest),
    )


def over(counts: Iterable[Count]) -> list[str]:
    """Name what is over a limit, in words."""
    said = []
    for one in counts:
        if one.prompt > most_in_prompt(one.env):
            said.append(f"{one.env}: a prompt of {one.prompt} tokens, at most {most_in_prompt(one.env)}")
        if one.fits < SHARE:
            said.append(f"{one.env} at d = {one.d}: {one.fits:.0%} of episodes within {one.limit} tokens")
    return said


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", type=Path, default=Path(__file__).with_name("tokens.csv"))
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("--levels", type=int, nargs="+", default=LEVELS)
    parser.add_argument("--env", nargs="+", default=list(ENVIRONMENTS))
    parser.add_argument("--again", action="store_true", help="count cells that are in the table, too")
    asked = parser.parse_args(arguments)
    shop, renderer = load_shop(), qwen_renderer(assets.find(QWEN))
    counts = {(one.env, one.d): one for one in (read_table(asked.table) if asked.table.exists() else ())}
    for env in asked.env:
        player = partial(ENVIRONMENTS[env].reference_player, shop, courteous=True)
        for d in asked.levels:
            if asked.again or (env, d) not in counts or counts[env, d].tasks != asked.tasks:
                counts[env, d] = count(env, d, range(asked.tasks), shop, renderer, player)
                print(counts[env, d], flush=True)
                write_table([counts[cell] for cell in sorted(counts)], asked.table)
    print("\n".join(over(counts.values())) or "all within their limits")


if __name__ == "__main__":
    main()
