"""Tokens of prompts and whole episodes, counted with Qwen's own byte pairs and its chat template.

`python -m ecomlab.laws.tokens` plays the courteous player and writes experiments/tokens/tokens.csv anew, cell by cell;
with `--resume` it goes on where it was stopped. The file of byte pairs is not ours to ship: `ecomlab assets get
qwen-tokenizer` fetches it into the cache.
"""

import argparse
import base64
import csv
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from scipy import stats

from ecomlab import assets
from ecomlab.catalog import Shop, load_shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode, make_task
from ecomlab.episode.play import play
from ecomlab.models.qwen3 import ALSO_TOKENS, PAD, ChatRenderer
from ecomlab.models.renderer import END, START
from ecomlab.task import Player, Task

QWEN = "qwen-tokenizer"
"""Asset with Qwen's byte pairs."""
TABLE = Path("experiments/tokens/tokens.csv")
LEVELS = (0, 4, 8, 12)
TASKS = 100
"""Episodes counted per environment and level."""
SHARE = 0.99
"""Share of courteous episodes that must fit."""
PROMPT, PROMPTS = 1_100, {"RETURN": 1_500, "JOURNEY": 2_600}
"""Most tokens of system prompt and tools: usually, and where it is more."""
EPISODE, EPISODES = 8_192, {"BUNDLE": 10_000, "JOURNEY": 24_576}
"""Most tokens of an episode up to d = 12: usually, and where it is more."""
EASIER, EASIER_EPISODES = 8, {"JOURNEY": 16_384}
"""Most tokens of an episode up to this level, where that is less than up to d = 12."""
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""Qwen's rule for cutting text into words (its tokenizer.json, pre_tokenizer)."""

Encode = Callable[[str], Sequence[int]]
Ranks = dict[bytes, int]


@dataclass(frozen=True)
class Count:
    """Tokens of one environment at one level: of system prompt and tool schemas, and of whole episodes."""

    env: str
    d: int
    tasks: int
    prompt: int
    median: int
    p99: int
    max: int
    limit: int
    fits: float
    """Share of episodes with at most `limit` tokens; `low` and `high` bound it with 95% confidence (exact binomial)."""
    low: float
    high: float
    written: int
    """Most tokens that the player wrote in an episode; `turn`: in one message."""
    turn: int


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


def episode_tokens(
    task: Task, shop: Shop, renderer: ChatRenderer, player: Player
) -> tuple[int, int, list[int]]:
    """Count the tokens of an episode that `player` plays: its system prompt and tools, all of it, and each turn."""
    tools, messages = Episode(task, shop).tools, play(player, task, shop).messages
    lengths = [_length(renderer, some, tools) for some in (messages[:1], messages)]
    return lengths[0], lengths[1], _turns(renderer, messages)


def _turns(renderer: ChatRenderer, messages: Sequence[Any]) -> list[int]:
    """Count the tokens of each message that the player wrote, its end marker included."""
    said = [renderer.text([message], speak=False) for message in messages if message["role"] == "assistant"]
    return [len(renderer.encode(text.removeprefix(f"{START}assistant\n").rstrip())) for text in said]


def prompt_tokens(env: str, shop: Shop, renderer: ChatRenderer) -> int:
    """Count the tokens of an environment's system prompt and tool schemas, the template's framing included."""
    episode = Episode(make_task(env, 0, 0, shop), shop)
    return _length(renderer, episode.messages[:1], episode.tools)


def _length(renderer: ChatRenderer, messages: Sequence[Any], tools: Sequence[Any]) -> int:
    return len(renderer.encode(renderer.text(messages, tools, speak=False)))


def qwen_renderer(path: Path | str) -> ChatRenderer:
    """Make Qwen3's renderer around the byte pairs of a `qwen.tiktoken` file and Qwen3's markers."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary, merges = read_tiktoken(Path(path))
    core = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    words = pre_tokenizers.Split(Regex(WORDS), "isolated")
    bytes_of = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.pre_tokenizer = pre_tokenizers.Sequence([words, bytes_of])
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in (PAD, START, END)])
    core.add_tokens([AddedToken(text, normalized=False) for text in ALSO_TOKENS])
    return ChatRenderer(PreTrainedTokenizerFast(tokenizer_object=core, pad_token=PAD, eos_token=END))


def read_tiktoken(path: Path) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Read (vocabulary, merges) from a file with a base64 token and its rank per line.

    tiktoken keeps no list of merges. The pair that makes a token is what merging its bytes by lower ranks leaves.
    """
    ranks: Ranks = {}
    for line in path.read_bytes().splitlines():
        written, number = line.split()
        ranks[base64.b64decode(written)] = int(number)
    letters = _byte_letters()

    def write(token: bytes) -> str:
        return "".join(letters[byte] for byte in token)

    merges = []
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        if len(token) > 1:
            left, right = _pair(token, rank, ranks)
            merges.append((write(left), write(right)))
    return {write(token): rank for token, rank in ranks.items()}, merges


def _pair(token: bytes, below: int, ranks: Ranks) -> tuple[bytes, bytes]:
    parts = [token[i : i + 1] for i in range(len(token))]
    while len(parts) > 2:
        rated = [(ranks.get(a + b, below), i) for i, (a, b) in enumerate(pairwise(parts))]
        _, at = min(rated)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts[0], parts[1]


def _byte_letters() -> dict[int, str]:
    """Map bytes to the printable letters that byte-level tokenizers write them with."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = (byte for byte in range(256) if byte not in plain)
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + n) for n, byte in enumerate(others)}


def write_table(counts: Iterable[Count], path: Path) -> None:
    """Write one row per environment and level."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, [field.name for field in fields(Count)], lineterminator="\n")
        table.writeheader()
        table.writerows(map(asdict, counts))


def read_table(path: Path) -> list[Count]:
    """Read the rows of a table that `write_table` wrote."""
    kinds: dict[str, Any] = {field.name: field.type for field in fields(Count)}
    with path.open(newline="") as file:
        return [
            Count(**{name: kinds[name](value) for name, value in row.items()}) for row in csv.DictReader(file)
        ]


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
    """Count every environment and level, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m ecomlab.laws.tokens", description=__doc__)
    parser.add_argument("file", type=Path, nargs="?", help="qwen.tiktoken; by default the cache's")
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("--levels", type=int, nargs="+", default=LEVELS)
    parser.add_argument("--env", nargs="+", default=list(ENVIRONMENTS))
    parser.add_argument("--resume", action="store_true", help="keep the rows that the table already has")
    chosen = parser.parse_args(arguments)
    file = chosen.file or assets.find(QWEN)
    shop, renderer = load_shop(), qwen_renderer(file)
    counts = read_table(chosen.table) if chosen.resume and chosen.table.exists() else []
    there = {(one.env, one.d) for one in counts if one.tasks == chosen.tasks}
    for env in chosen.env:
        player = partial(ENVIRONMENTS[env].reference_player, shop, courteous=True)
        for d in chosen.levels:
            if (env, d) in there:
                continue
            made = count(env, d, range(chosen.tasks), shop, renderer, player)
            counts = sorted(
                [*(c for c in counts if (c.env, c.d) != (env, d)), made], key=lambda c: (c.env, c.d)
            )
            print(made, flush=True)
            write_table(counts, chosen.table)
    print("\n".join(over(counts)) or "all within their limits")


if __name__ == "__main__":
    main()
