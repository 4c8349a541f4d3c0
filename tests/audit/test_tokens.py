"""Prompts fit their limits, in Qwen's own tokens, and so do the figures in the committed table."""

import base64
import csv
import os
from pathlib import Path

import pytest

from ecomlab import ENVIRONMENTS, Shop
from ecomlab.audit import tokens
from ecomlab.audit.surface import reference_player
from ecomlab.audit.tokens import (
    LEVELS,
    TABLE,
    count,
    prompt_tokens,
    qwen_renderer,
    read_tiktoken,
    write_table,
)
from ecomlab.models.qwen3 import ChatRenderer

LIMITS = {"RETURN": 1_500, "JOURNEY": 2_600}
USUAL = 1_100
"""Most tokens of system prompt and tools."""
FILE = os.environ.get("ECOMLAB_QWEN_TIKTOKEN", "")
needs_file = pytest.mark.skipif(
    not FILE, reason="ECOMLAB_QWEN_TIKTOKEN names no qwen.tiktoken (see audit/tokens.py)"
)


@pytest.fixture(scope="module")
def renderer() -> ChatRenderer:
    return qwen_renderer(FILE)


@needs_file
@pytest.mark.parametrize("env", list(ENVIRONMENTS))
def test_system_prompt_and_tools_fit(env: str, shop: Shop, renderer: ChatRenderer) -> None:
    assert prompt_tokens(env, shop, renderer) <= LIMITS.get(env, USUAL)


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
    counted = count("STATUS", 0, range(5), shop, renderer, lambda: reference_player("STATUS", shop))
    assert counted.prompt == prompt_tokens("STATUS", shop, renderer)
    assert counted.prompt < counted.median <= counted.p99 == counted.max
    write_table([counted], tmp_path / "table.csv")
    (row,) = csv.DictReader((tmp_path / "table.csv").open())
    assert row["env"] == "STATUS" and int(row["max"]) == counted.max


def test_the_committed_table_is_whole_and_keeps_the_limits() -> None:
    rows = list(csv.DictReader((Path(tokens.__file__).parents[2] / TABLE).open()))
    assert {(row["env"], int(row["d"])) for row in rows} == {(e, d) for e in ENVIRONMENTS for d in LEVELS}
    for row in rows:
        assert int(row["prompt"]) <= LIMITS.get(row["env"], USUAL), row
        assert int(row["prompt"]) < int(row["median"]) <= int(row["p99"]) <= int(row["max"])
