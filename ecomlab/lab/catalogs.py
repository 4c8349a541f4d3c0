"""The command that builds a catalog: the mapping shown and confirmed, progress while it runs, the report in words."""

import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ecomlab.catalog import Catalog, build_shop
from ecomlab.catalog.build import help_build
from ecomlab.catalog.embedders import embedder_named
from ecomlab.catalog.ingest import Mapping, Report, build_products, guess, open_source, read_mapping, to_toml
from ecomlab.catalog.ingest.text import clean
from ecomlab.catalog.ingest.values import value_at
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.catalog.products import Products, open_products
from ecomlab.catalog.real import catalog_of, left_out, unused
from ecomlab.catalog.support import limits, of_names, of_stock, unsupported
from ecomlab.customer.reading.catalog_names import index_of
from ecomlab.models.process_group import ProcessGroup, join_processes

if TYPE_CHECKING:
    from ecomlab.catalog.ingest import Source

OTHERWISE = 'a mapping file may name them otherwise: [kinds], "Isomatten" = "Sleeping Mat"'
WHY_LEFT_OUT = {
    "no short name": "a short name is what a title says beside brand and type, with a capital or as a model's number"
}
SHOWN = 40
"""Characters of a value in the table of a guessed mapping."""


def build(
    source: str,
    out: Path,
    mapping: Path | None,
    yes: bool,
    split: str,
    console: Console,
    embedder: str = "lexical",
) -> Report | None:
    """Build the catalog of `source` in the folder `out`; without a mapping file it is guessed and, unless `yes`, asked.

    Under a launcher process 0 does that; the others embed a share of the texts, and return None.

    Raises ValueError where the guess is declined, or cannot be asked about, where there is no such embedder, and where
    the products, which are written then, make no shop; under a launcher also where another process has ended.
    """
    embeds = embedder_named(embedder)
    processes = join_processes()
    gather = partial(_gather, processes)
    if processes.rank:
        help_build(lambda: catalog_of(open_products(out)), out, embeds, processes.rank, gather)
        return None
    found = open_source(source, split=split)
    chosen = read_mapping(mapping, found.sample()) if mapping else _guessed(found, yes, console)
    began, told = time.monotonic(), [0.0]

    def progress(rows: int) -> None:
        if time.monotonic() - told[0] > 5:
            told[0] = time.monotonic()
            console.print(f"{rows:,} rows, {rows / max(0.001, told[0] - began):,.0f} a second")

    report = build_products(found, out, chosen, progress)
    for line in report.lines():
        console.print(escape(line), soft_wrap=True)
    console.print(
        escape(f"written to {out}: products, report.json, set_aside.csv, mapping.toml"), soft_wrap=True
    )
    products = open_products(out)
    try:
        catalog = catalog_of(products)
    except ValueError as error:
        raise ValueError(f"no shop was made of it: {error}") from error
    made = build_shop(
        catalog,
        out,
        embeds,
        tell=lambda line: console.print(escape(line), soft_wrap=True),
        gather=gather,
    )
    for kind in ("brand", "feature"):  # kept, where there are many: no first episode waits for it
        lexicon_of(catalog).exact(kind, "")
        index_of(lexicon_of(catalog), kind)
    for line in _carried(catalog, products):
        console.print(escape(line), soft_wrap=True)
    console.print(
        escape(f"{made.products:,} products, {made.index.kind} index: load_shop({str(out)!r})"),
        soft_wrap=True,
    )
    return report


def _carried(catalog: Catalog, products: Products) -> Iterator[str]:
    """Say what of a product table is not in the shop made of it, and what cannot be played there."""
    if catalog.size < len(products):
        lacks = ", ".join(f"{reason} ({count:,})" for reason, count in left_out(products).items())
        yield f"not in the shop: {len(products) - catalog.size:,} of {len(products):,} products: {lacks}"
        yield from (WHY_LEFT_OUT[reason] for reason in left_out(products) if reason in WHY_LEFT_OUT)
    yield f"types that tasks are about: {len(catalog.drawable_types)} of {len(catalog.types)}"
    named = [f"{kind.name} ({kind.plural})" for kind in catalog.drawable_types]
    yield f"customers call them {', '.join(named[:20])}{', ...' * (len(named) > 20)}; {OTHERWISE}"
    yield from (*of_stock(catalog), *of_names(catalog))
    few = unused(products)
    for name, count in few.items():
        yield (
            f"a {name} is known of {count:,} of {len(products):,} products, too few: none is used, so that the others "
            "are in the shop, and customers set no limit on it"
        )
    yield from limits(catalog, few)
    for env, why in unsupported(catalog).items():
        yield f"{env} is off: {why}"


def _gather(processes: ProcessGroup, mine: Any) -> list[Any]:
    """Gather from all processes. Raises ValueError where one has ended."""
    try:
        return processes.all_gather(mine)
    except RuntimeError:  # torch's, of a connection that is closed
        raise ValueError("another process of this build has ended; see its error") from None


def _guessed(source: "Source", yes: bool, console: Console) -> Mapping:
    """Guess the mapping, show it beside the first values, and have it confirmed."""
    sample = source.sample()
    mapping = guess(sample)
    table = Table(
        "holds",
        "column",
        "for example",
        title=f"columns of {mapping.profile}, from names and values",
        title_justify="left",
    )
    for name, given in mapping.columns.model_dump().items():
        for column in (given,) if isinstance(given, str) else given:
            table.add_row(name, escape(column), escape(_first(sample, column))) if column else None
    for name, column in mapping.attributes.items():
        table.add_row(f"attribute: {name}", escape(column), escape(_first(sample, column)))
    console.print(table)
    if yes:
        return mapping
    if not sys.stdin.isatty():
        raise ValueError(
            "nobody is there to confirm this mapping: repeat with --yes, or with --mapping FILE. As a file it is\n"
            + to_toml(mapping)
        )
    if console.input("Build with this mapping? [y/N] ").strip().lower() not in ("y", "yes"):
        raise ValueError(
            "nothing was built; put the right columns into a file and repeat with --mapping FILE:\n"
            + to_toml(mapping)
        )
    return mapping


def _first(sample: list[dict[str, Any]], column: str) -> str:
    """Return the first value of a column, cut, and without what a terminal would obey."""
    return clean(next(filter(None, (value_at(row, column) for row in sample)), ""), SHOWN)[0]
