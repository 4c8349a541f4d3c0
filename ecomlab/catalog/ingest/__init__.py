"""Ingestion: someone's product file made into a table of clean products, with a report on every row."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ecomlab.catalog.ingest.build import build_products as build_products
    from ecomlab.catalog.ingest.mapping import Mapping as Mapping
    from ecomlab.catalog.ingest.mapping import guess as guess
    from ecomlab.catalog.ingest.mapping import read_mapping as read_mapping
    from ecomlab.catalog.ingest.mapping import to_toml as to_toml
    from ecomlab.catalog.ingest.report import Report as Report
    from ecomlab.catalog.ingest.sources import Source as Source
    from ecomlab.catalog.ingest.sources import open_source as open_source
else:  # when it is used: a shop of generated products needs none of it

    def __getattr__(name):
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


_MODULES = {
    "Mapping": "mapping",
    "Report": "report",
    "Source": "sources",
    "build_products": "build",
    "guess": "mapping",
    "open_source": "sources",
    "read_mapping": "mapping",
    "to_toml": "mapping",
}
__all__ = list(_MODULES)
