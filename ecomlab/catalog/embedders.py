"""Embedders by name: "lexical", "minilm", or a sentence model with its settings."""

import json
from pathlib import Path

from pydantic import ValidationError

from ecomlab.assets import named
from ecomlab.catalog.embed import Embedder, LexicalEmbedder
from ecomlab.catalog.sentence import MINILM, SentenceEmbedder, SentenceSettings
from ecomlab.settings import read_toml
from ecomlab.suggest import mistakes, unknown

NAMES = ("lexical", "minilm")


def usual_embedder(name: str = "") -> Embedder:
    """Make the embedder with this name; where none is named MiniLM if its weights are on this machine, else lexical."""
    there = all(named(asset).path.is_file() for asset in ("minilm", "minilm-tokenizer"))
    return embedder_named(name or ("minilm" if there else "lexical"))


def embedder_named(name: str) -> Embedder:
    """Make an embedder: "lexical", "minilm", a model id or a folder with a model, a TOML file of `SentenceSettings` or
    those as JSON. Nothing is loaded or looked for yet. Raises ValueError."""
    if name == "lexical":
        return LexicalEmbedder()
    if name in ("minilm", MINILM):
        return SentenceEmbedder(SentenceSettings(model=MINILM))
    if name.endswith(".toml"):
        return SentenceEmbedder(read_toml(Path(name), SentenceSettings))
    if name.startswith("{"):
        try:
            return SentenceEmbedder(SentenceSettings.model_validate_json(json.dumps(json.loads(name))))
        except ValidationError as error:
            raise ValueError("; ".join(mistakes(error, SentenceSettings))) from None
    if "/" in name:
        return SentenceEmbedder(SentenceSettings(model=name))
    raise ValueError(
        unknown("embedder", name, NAMES) + "; or a model id as owner/name, a folder, a TOML file"
    )
