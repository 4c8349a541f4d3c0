"""Ingestion: someone's product file made into a table of clean products, with a report on every row."""

from ecomlab.catalog.ingest.build import build_products
from ecomlab.catalog.ingest.mapping import Mapping, guess, read_mapping, to_toml
from ecomlab.catalog.ingest.report import Report
from ecomlab.catalog.ingest.sources import Source, open_source

__all__ = ["Mapping", "Report", "Source", "build_products", "guess", "open_source", "read_mapping", "to_toml"]
