"""Embeddings by name: "lexical"."""

from ecomlab.catalog.embed import Embedder, LexicalEmbedder


def embedder_named(name: str) -> Embedder:
    """Make the embedder that a catalog's manifest or a command names. Raises ValueError."""
    if name == "lexical":
        return LexicalEmbedder()
    raise ValueError(f"no embedder {name!r}; there is lexical")
