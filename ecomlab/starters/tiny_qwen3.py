"""The laptop policy: a Qwen3 of about half a million parameters and a tokenizer made for the shop's words.

The shop's names (brands, features, product types, option values), chat markers and the JSON scaffolds of tool calls are
single tokens; the text itself is in Qwen3's format. Everything else is byte pairs, so that any text can be read.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from ecomlab.models.renderer import END, START
from ecomlab.seeding import digest
from ecomlab.starters.compact_renderer import ASSISTANT, TOOLS_CLOSE, TOOLS_NEXT, TOOLS_OPEN, USER, call_text
from ecomlab.starters.id_aliases import ALIASES

if TYPE_CHECKING:
    from ecomlab.catalog import Catalog

PAD = "<|endoftext|>"
HEAD_SIZE = 32
CONTEXT = 2048
ROPE_BASE = 1e6
"""Qwen3's own base."""
PIECES = 1_400
"""Number of bytes and byte pairs, for everything but names and scaffolds."""


def vocabulary(catalog: "Catalog") -> dict[str, list[str]]:
    """List every name that a catalog's products and customers use, by kind, sorted."""
    kinds = {
        "brand": set(catalog.brands),
        "feature": set(catalog.features),
        "type": {t.name for t in catalog.types},
        "plural": {t.plural for t in catalog.types},
        "value": {v for t in catalog.types for a in (t.option, *t.attributes) for v in a.values},
    }
    return {kind: sorted(names) for kind, names in kinds.items()}


def vocabulary_digest(catalog: "Catalog") -> str:
    """Digest a catalog's vocabulary, on which a tokenizer depends, whatever the catalog's size and seed."""
    return digest(vocabulary(catalog), size=8)


def scaffolds(tools: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the fixed JSON of calls of these tools (OpenAI schemas), cut where a value begins and ends.

    A call without arguments is a single token.
    """
    yield from (f"{before}}}\n</tool_call>" for before in ("", "}", '"}', '"}}', "true}", '"]}'))
    yield '", "'  # between a list's entries, or an object's
    parameters: dict[str, None] = {}
    for schema in tools:
        function = schema["function"]
        properties = function["parameters"].get("properties", {})
        yield f'<tool_call>\n{{"name": "{function["name"]}", "arguments": {{}}}}\n</tool_call>'
        for name, kind in properties.items():
            if kind.get("type") == "boolean":
                yield call_text(function["name"], {name: True})
                parameters[f'{name}": true'] = None
            opening = f'<tool_call>\n{{"name": "{function["name"]}", "arguments": {{"'
            yield opening + name + _begins(name, kind)
            parameters[name + _begins(name, kind)] = None
    for before, parameter in product(('",', ",", '"},', '"],'), parameters):
        yield f'{before} "{parameter}'


def _begins(name: str, kind: dict[str, Any]) -> str:
    """Return what stands between a parameter's name and its value."""
    kinds = {option.get("type") for option in (kind, *kind.get("anyOf", ()))}
    if "string" in kinds:
        return '": "'
    if "array" in kinds:
        return '": ["' if name == "product_ids" else '":'
    if "object" in kinds:
        return '": {"'
    return '": ' if name == "price_max" else '":'  # $45 has no space before the number, other numbers do


def build_tokenizer(
    catalog: "Catalog", tools: Sequence[dict[str, Any]], corpus: Iterable[str], whole: Iterable[str] = ()
) -> Any:
    """Learn a byte-level BPE over `corpus` with names, scaffolds, aliases, markers and `whole` texts as added tokens.

    The pairs are learned from the text between names. Returns a `PreTrainedTokenizerFast`. Deterministic: the same
    catalog, tools and corpus give the same ids.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = [f" {name}" for kind in vocabulary(catalog).values() for name in kind]
    known = re.compile("|".join(re.escape(name) for name in sorted(names, key=lambda n: (-len(n), n))))
    core.train_from_iterator(
        (part for text in corpus for part in known.split(text)),
        trainers.BpeTrainer(vocab_size=PIECES, initial_alphabet=alphabet, show_progress=False),
    )
    markers = [PAD, START, END]
    core.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in markers])
    closed = TOOLS_CLOSE + END + "\n"
    turns = [USER, "\n" + USER, "\n" + USER + TOOLS_OPEN, TOOLS_NEXT, closed + USER, closed + ASSISTANT]
    turns += [END + "\n" + USER, END + "\n" + ASSISTANT, "\n-"]
    fixed = [*turns, *scaffolds(tools), *whole, *ALIASES, *(f" {number}" for number in range(1, 10))]
    added = dict.fromkeys([*fixed, *names])
    core.add_tokens([AddedToken(text, normalized=False) for text in added])
    return PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token=PAD, eos_token=END, clean_up_tokenization_spaces=False
    )


@dataclass(frozen=True)
class Size:
    """A model's dimensions."""

    hidden: int = 96
    layers: int = 2
    heads: int = 3
    feed_forward: int = 256


def build_model(
    vocabulary_size: int, pad_id: int, end_id: int, seed: int = 0, size: Size | None = None
) -> Any:
    """Initialise a Qwen3ForCausalLM of a laptop's size, in float32, with weights drawn from `seed`."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    size = size or Size()
    config = Qwen3Config(
        vocab_size=vocabulary_size,
        hidden_size=size.hidden,
        intermediate_size=size.feed_forward,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.heads,
        head_dim=HEAD_SIZE,
        max_position_embeddings=CONTEXT,
        rope_parameters={"rope_type": "default", "rope_theta": ROPE_BASE},
        tie_word_embeddings=True,
        pad_token_id=pad_id,
        bos_token_id=None,
        eos_token_id=end_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen3ForCausalLM(config)
