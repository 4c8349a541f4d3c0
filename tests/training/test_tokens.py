"""Prompts fit their limits, in Qwen's own tokens, and so do the figures in the committed table."""

import base64
import runpy
import tomllib
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ecomlab import ENVIRONMENTS, Shop, make_task
from ecomlab.assets import find, named
from ecomlab.envs.registry import COLLECTIONS
from ecomlab.models.qwen3 import ChatRenderer
from ecomlab.models.qwen_tokenizer import QWEN, qwen_renderer, read_tiktoken
from ecomlab.training.config import TrainConfig
from ecomlab.training.tokens import LEVELS, TABLE, episode_tokens, read_table, write_table

ROOT = Path(__file__).resolve().parents[2]
FILE = named(QWEN).path
COUNTING = runpy.run_path(str(ROOT / "experiments/tokens/count.py"))
"""The script that counts."""
needs_file = pytest.mark.skipif(
    not FILE.is_file(), reason=f"the cache has no {FILE.name}; `ecomlab assets get {QWEN}` fetches it"
)


@pytest.fixture(scope="module")
def renderer() -> ChatRenderer:
    return qwen_renderer(find(QWEN))


@needs_file
@pytest.mark.parametrize("env", list(ENVIRONMENTS))
def test_system_prompt_and_tools_fit(env: str, shop: Shop, renderer: ChatRenderer) -> None:
    player = ENVIRONMENTS[env].reference_player(shop, courteous=True)
    prompt, _, _ = episode_tokens(make_task(env, 0, 0, shop), shop, renderer, player)
    assert prompt <= COUNTING["most_in_prompt"](env)


@needs_file
def test_the_tokens_are_qwens(renderer: ChatRenderer) -> None:
    known = "Hello, world! The price is $19.99."
    assert renderer.decode(renderer.encode(known)) == known
    assert renderer.encode("Hello, world!") == [9707, 11, 1879, 0]  # as Qwen's own page shows
    assert len(renderer.tokenizer) == 151_643 + 3 + 6


def test_merges_are_recovered_from_ranks(tmp_path: Path) -> None:
    vocabulary = [bytes([b]) for b in range(256)] + [b"ab", b"cd", b"abc", b"abcd"]
    written = [base64.b64encode(token) + b" %d" % rank for rank, token in enumerate(vocabulary)]
    (tmp_path / "small").write_bytes(b"\n".join(written))
    known, merges = read_tiktoken(tmp_path / "small")
    assert merges == [("a", "b"), ("c", "d"), ("ab", "c"), ("ab", "cd")]
    assert len(known) == 260 and known["\u0120"] == ord(" ")
    renderer = qwen_renderer(tmp_path / "small")
    assert [renderer.decode([i]) for i in renderer.encode("abcd ab")] == ["abcd", " ", "ab"]


def test_episodes_are_counted(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(
        b"\n".join(base64.b64encode(bytes([b])) + b" %d" % b for b in range(256))
    )
    renderer = qwen_renderer(tmp_path / "bytes")  # a token a byte
    player = partial(ENVIRONMENTS["STATUS"].reference_player, shop, courteous=True)
    counted = COUNTING["count"]("STATUS", 0, range(5), shop, renderer, player)
    assert counted.prompt < counted.median <= counted.p99 == counted.max
    assert 0 < counted.turn < counted.written < counted.max - counted.prompt
    assert (counted.fits, counted.high) == (float(counted.max <= counted.limit), 1.0)
    write_table([counted], tmp_path / "table.csv")
    assert read_table(tmp_path / "table.csv") == [counted]


def test_the_committed_table_is_whole_and_says_what_the_law_says() -> None:
    table = read_table(ROOT / TABLE)
    assert [(one.env, one.d) for one in table] == [(e, d) for e in sorted(ENVIRONMENTS) for d in LEVELS]
    for one in table:
        assert one.tasks == COUNTING["TASKS"]
        assert one.limit == COUNTING["most_in_episode"](one.env, one.d)
        assert one.prompt < one.median <= one.p99 <= one.max
        assert one.low <= one.fits <= one.high
        assert (one.p99 <= one.limit) == (one.fits >= 0.99)
    assert COUNTING["over"](table) == []


def limits_of(file: Path) -> tuple[dict[str, Any], list[str]]:
    """The limits that a configuration or a sweep sets, and its collections."""
    given = tomllib.loads(file.read_text())
    fixed = given.get("fixed", {})
    run = TrainConfig(**(fixed["more"] if fixed else given))
    return run.to_json(), given["grid"]["collection"] if fixed else [run.collection]


@pytest.mark.parametrize("name", ["qwen3_8b/train.toml", "paper/sweep.toml"])
def test_the_limits_of_a_run_follow_the_table(name: str) -> None:
    """Up to d = 8 its contexts hold what is allowed, its turns and episodes all that the table's player wrote."""
    run, collections = limits_of(ROOT / "experiments" / name)
    envs = {env for collection in collections for env in COLLECTIONS[collection]}
    for one in read_table(ROOT / TABLE):
        if one.env in envs and one.d <= COUNTING["EASIER"]:
            assert one.limit <= run["context_tokens"], one
            assert one.turn <= run["turn_tokens"], one
            assert one.written <= run["episode_tokens"] - run["overlong_buffer"], one  # no penalty
