"""Qwen's tokenizer from its published byte pairs.

ecomlab may not redistribute the file: `ecomlab assets get qwen-tokenizer` fetches it into the cache.
"""

import base64
from itertools import pairwise
from pathlib import Path

from ecomlab.models.qwen3 import ALSO_TOKENS, PAD, ChatRenderer
from ecomlab.models.renderer import END, START

QWEN = "qwen-tokenizer"
"""Asset with Qwen's byte pairs."""
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""Qwen's rule for cutting text into words (its tokenizer.json, pre_tokenizer)."""

Ranks = dict[bytes, int]


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

    tiktoken keeps no list of merges. Merging a token's bytes by the lower ranks leaves the pair that makes it.
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
