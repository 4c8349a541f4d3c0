"""A sentence model for tests: small, untrained, with a tokenizer of whole words."""

from collections.abc import Iterable
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers


def small_model(folder: Path, texts: Iterable[str]) -> Path:
    """Save a model that knows the words of `texts` into `folder`, and return that."""
    words = ["[PAD]", "[UNK]", *sorted({word for text in texts for word in text.replace(",", " ,").split()})]
    tokenizer = Tokenizer(
        models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
    )
    transformers.BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    return folder
