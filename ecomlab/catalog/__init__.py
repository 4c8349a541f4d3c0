"""The shop that all episodes share: products as columns, and search over them."""

from ecomlab.catalog.build import build_shop
from ecomlab.catalog.columns import Catalog, Ids
from ecomlab.catalog.embed import Embedder, LexicalEmbedder
from ecomlab.catalog.schema import Attribute, Constraint, ProductType
from ecomlab.catalog.search import SORTS, SearchEngine
from ecomlab.catalog.shop import Shop, load_shop
from ecomlab.catalog.store import CatalogError
from ecomlab.catalog.synthetic import generate

__all__ = [
    "SORTS",
    "Attribute",
    "Catalog",
    "CatalogError",
    "Constraint",
    "Embedder",
    "Ids",
    "LexicalEmbedder",
    "ProductType",
    "SearchEngine",
    "Shop",
    "build_shop",
    "generate",
    "load_shop",
]
