"""Someone's catalog made into a table of clean products: read, cleaned, folded, typed and reported."""

import marshal
import tempfile
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from collections.abc import Mapping as Table
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import numpy as np

from ecomlab.catalog.columns import ENOUGH
from ecomlab.catalog.ingest import attributes, types
from ecomlab.catalog.ingest.fold import Family, Row, axes, fold, is_lone
from ecomlab.catalog.ingest.mapping import Mapping, guess, to_toml
from ecomlab.catalog.ingest.report import Report, write_report
from ecomlab.catalog.ingest.rows import RowCleaner, SetAside, currency_of, excerpt
from ecomlab.catalog.ingest.sources import Source
from ecomlab.catalog.ingest.text import clean
from ecomlab.catalog.ingest.types import OTHER, Kind
from ecomlab.catalog.ingest.variants import children_in
from ecomlab.catalog.products import CHUNK, drawn_days, drawn_stock, product_ids, save_facts, write_rows
from ecomlab.files import lock, write_text

VERSION: Final = 15
"""Goes up when the same source would give other products."""
MAPPING: Final = "mapping.toml"
HOUSE: Final = "Own-Brand"
"""Brand of products for which neither the source nor a mapping names one."""
EXAMPLES: Final = 5
"""Rows shown for each reason."""


def build_products(
    source: Source,
    out: Path,
    mapping: Mapping | None = None,
    progress: Callable[[int], None] = lambda rows: None,
) -> Report:
    """Make the products of `source` in the folder `out`, with a report; the old ones stay until these are complete.

    Without a mapping it is guessed. `progress(rows)` is told how many rows are clean. Raises ValueError for a source
    that cannot be read or lies in `out` (or around it), a mapping that does not fit it, and a folder in which another
    process builds.
    """
    _check_apart(source, out)
    if mapping and (mapping.delimiter, mapping.header) != (source.delimiter, source.header):
        source = replace(source, delimiter=mapping.delimiter, header=mapping.header)
    sample = source.sample()
    mapping = mapping or guess(sample)
    mapping.check(sample)
    if not mapping.columns.brand and not mapping.brand:
        mapping = mapping.model_copy(update={"brand": HOUSE})
    currency, currency_from = currency_of(sample, mapping)
    out.mkdir(parents=True, exist_ok=True)
    with lock(
        out / ".building", ValueError(f"another process builds in {out}; wait for it, or name another folder")
    ):
        build = _Build(mapping, out)
        build.read(source, RowCleaner(mapping, currency), progress)
        build.fold()
        facts = {
            "source": source.name,
            "currency": currency,
            "drawn": list(build.drawn),
            "option": max(build.options, key=lambda name: (build.options[name], name), default=""),
            "mapping": mapping.model_dump(),
            "products": len(build.names),
            **write_rows(out, build.batches(), build.schema()),
        }
        report = Report(
            source=source.name,
            rows=build.rows_read,
            kept=build.kept,
            repaired=build.repaired,
            set_aside=len(build.aside),
            products=len(build.names),
            folded=build.kept + build.repaired - len(build.names),
            repairs=dict(build.repairs),
            reasons=dict(Counter(reason for _, reason, _ in build.aside)),
            examples=build.examples,
            coverage=build.coverage(),
            drawn=build.drawn,
            types=dict(build.types.most_common()),
            profile=mapping.profile,
            currency=currency if mapping.columns.price else "",
            currency_from=currency_from,
            unused=tuple(clean(column, 60)[0] for column in mapping.unread(sample)),
            house=mapping.brand == HOUSE,
            dropped=dict(build.dropped),
        )
        write_report(out, report, build.aside)
        write_text(out / MAPPING, to_toml(mapping))
        save_facts(out, facts)
    return report


def _check_apart(source: Source, out: Path) -> None:
    """Raise ValueError where a build would write over its source, or read what an earlier build wrote."""
    place, around = out.resolve(), Path(source.name).expanduser().resolve()
    if source.files and (around.is_relative_to(place) or place.is_relative_to(around)):
        raise ValueError(
            f"one of {source.name} and {out} lies in the other, and a build replaces the files of a catalog; name a "
            "folder of its own"
        )


class Spool:
    """Rows on disk, in a file without a name that ends with the process, read back in any order."""

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  open as long as this is
        self._ends = array("q", [0])

    def add(self, row: Row) -> None:
        """Write a row behind the others."""
        self._ends.append(self._ends[-1] + self._file.write(marshal.dumps(row)))

    def __getitem__(self, at: int) -> Row:
        self._file.seek(self._ends[at])
        row: Row = marshal.loads(self._file.read(self._ends[at + 1] - self._ends[at]))
        return row


class _Build:
    """Rows on their way to products, with counts of what became of them."""

    def __init__(self, mapping: Mapping, out: Path) -> None:
        self.mapping = mapping
        self.folds = bool(mapping.columns.options)
        self.rows, self.products = Spool(out), Spool(out)
        self.keys: list[tuple[str, str]] = []
        """By row, its parent and its own id, "" for want of one."""
        self.others: dict[str, str] = {}
        self.children: dict[str, dict[str, Any]] = {}
        """By the other id of a row its id, and by the id of a row what its parent says of it."""
        self.rows_read = self.kept = self.repaired = 0
        self.aside: list[tuple[int, str, str]] = []
        """Rows that were set aside: number, reason, and what it said."""
        self.examples: dict[str, list[list[Any]]] = {}
        self.repairs, self.dropped, self.brands = Counter[str](), Counter[str](), Counter[str]()
        self.attributes: set[str] = set()
        self.drawn: tuple[str, ...] = ("days", "stock")
        self.names: list[str] = []
        """By product, what its id is made of."""
        self.order = array("q")
        """By product, the numbers of the row with its title and of its first."""
        self.said: dict[tuple[Any, ...], int] = {}
        self.kind_of = array("l")
        """Numbers of what products say of their type, and by product its number."""
        self.options, self.known, self.types = Counter[str](), Counter[str](), Counter[str]()

    def read(self, source: Source, cleaner: RowCleaner, progress: Callable[[int], None]) -> None:
        """Clean all rows."""
        columns = self.mapping.columns
        for raw in source.rows():
            self.rows_read += 1
            if self.rows_read % CHUNK == 0:
                progress(self.rows_read)
            row = cleaner.clean(raw)
            if isinstance(row, SetAside):
                self.aside.append(row)
                continue
            for reason in row["repairs"]:
                shown = self.examples.setdefault(reason, [])
                if len(shown) < EXAMPLES:
                    shown.append([row["number"], excerpt(raw.values, 300)])
            self.dropped.update(row.pop("dropped"))
            self.attributes.update(row["attributes"])
            self.brands[row["brand"]] += 1
            self.drawn = tuple(name for name in self.drawn if row[name] is None)
            self.keys.append((row["parent"], row["source_id"] or f"\n{row['content']}"))
            if row["other_id"]:
                self.others[row["other_id"]] = row["source_id"]
            if row["children"] and row["source_id"] and self.folds:
                for child, said in children_in(row["source_id"], row["children"], len(columns.options)):
                    self.children.setdefault(child, said)
            self.rows.add(row)
        progress(self.rows_read)

    def fold(self) -> None:
        """Fold the clean rows into products."""
        called = self.mapping.option_names
        names = [
            "option" if column in called else attributes.name_of(column)
            for column in self.mapping.columns.options
        ]
        if self.others:  # a parent may be named without the "id:" of its other id
            ids = {own for _, own in self.keys}
            bare = {other.removeprefix("id:"): own for other, own in self.others.items()}
            self.others |= {other: own for other, own in bare.items() if other not in ids}
        several = (rows for rows in self._families() if not is_lone(rows))
        by_kind = axes(Family(rows, names) for rows in several) if names else {}
        for rows in self._families():
            products, aside = fold(rows, names, by_kind)
            for product in products:
                numbers = [one["row"] for one in product["variants"]]
                self.order.extend((product["number"], min(numbers, default=product["number"])))
                own = types.said_of(product["path"].rpartition("\n")[2], product["title"])
                said = (product["path"], own, product["kind"], product["department"], product["said"])
                self.kind_of.append(self.said.setdefault(said, len(self.said)))
                self.names.append(product.pop("name"))
                self.options[product["option"]] += 1
                self.attributes.update(product["attributes"])
                self.products.add(product)
            self.aside += [
                (row["number"], reason, row["title"] or row["parent"] or row["source_id"])
                for row, reason in aside
            ]
            gone = {row["number"] for row, _ in aside}
            for row in rows:
                if row["number"] not in gone:
                    self.repairs.update(row["repairs"])
                    self.repaired += bool(row["repairs"])
                    self.kept += not row["repairs"]
        self.keys.clear()
        del self.options[None]
        self.aside.sort()
        self.examples = {reason: shown for reason, shown in self.examples.items() if self.repairs[reason]}
        for number, reason, raw in self.aside:
            if len(self.examples.setdefault(reason, [])) < EXAMPLES:
                self.examples[reason].append([number, raw])

    def _families(self) -> Iterator[list[Row]]:
        """Yield the rows of one parent or id together, in the order of the first."""
        firsts: dict[str, int] = {}
        of_first = array("q")
        for at, (parent, own) in enumerate(self.keys):
            parent = self.children[own]["parent"] if own in self.children else self.others.get(parent, parent)
            of_first.append(firsts.setdefault(parent if parent and self.folds else own, at))
        order = np.argsort(np.array(of_first), kind="stable").tolist()
        for _, places in groupby(order, key=of_first.__getitem__):
            yield [self._related(self.rows[at]) for at in places]

    def _related(self, row: Row) -> Row:
        """Return a row with its parent named as the parent's own row names itself: by its id."""
        row["parent"] = self.others.get(row["parent"], row["parent"])
        return row | self.children.get(row["source_id"], {})

    def schema(self) -> Any:
        """Columns of the product table."""
        import pyarrow as pa

        text, cents, small = pa.string(), pa.int32(), pa.int16()
        variant = {"option": text, "price_cents": cents, "stock": small, "source_id": text}
        own = {
            **dict.fromkeys(("id", "source_id"), text),
            "source_row": pa.int64(),
            **dict.fromkeys(("title", "brand", "feature", "type", "department"), text),
            "price_cents": cents,
            "rating_tenths": pa.int8(),
            "reviews": pa.int32(),
            "days": pa.int8(),
            "stock": small,
            "text": text,
            **{f"{part}.{name}": text for name in sorted(self.attributes) for part in ("attr", "from")},
            "option": text,
            "variants": pa.list_(pa.struct([*variant.items()])),
        }
        return pa.schema([*own.items()])

    def batches(self) -> Iterator[Any]:
        """Yield the products, `CHUNK` at a time, in order of department, type and source row."""
        import pyarrow as pa

        counts = np.bincount(self.kind_of, minlength=len(self.said)).tolist()
        kinds = _kinds(dict(zip(self.said, counts, strict=True)), self.mapping.kinds)
        ranks = {
            kind: at for at, kind in enumerate(sorted({*kinds}, key=lambda one: (one.department, one.name)))
        }
        rank = np.array([ranks[kind] for kind in kinds], int)[self.kind_of]
        main, first = np.array(self.order, int).reshape(-1, 2).T
        order = np.lexsort((first, main, rank))
        ids = product_ids(self.names)
        spelled = {
            brand.lower(): brand
            for brand in sorted(self.brands, key=lambda name: (self.brands[name], name))
            if brand
        }
        for start in range(0, len(order), CHUNK):
            places = order[start : start + CHUNK].tolist()
            own = [ids[at] for at in places]
            drawn = zip(drawn_days(own).tolist(), drawn_stock(own).tolist())
            rows = []
            for at, name, (days, stock) in zip(places, own, drawn, strict=True):
                row = self.products[at]
                kind = kinds[self.kind_of[at]]
                if kind.name not in (row["kind"], OTHER.name):
                    row["feature"] = types.without_words(row["feature"], kind.name)
                row |= {
                    "id": name,
                    "source_row": row["number"],
                    "type": kind.name,
                    "department": kind.department,
                }
                row |= {name: row[name] or None for name in ("source_id", "text", "feature")}
                row["brand"] = spelled.get(row["brand"].lower(), self.mapping.brand or None)
                row["days"] = days if row["days"] is None else row["days"]
                row["stock"] = stock if row["stock"] is None else row["stock"]
                _fill_variants(row)
                for attribute, (value, source) in row["attributes"].items():
                    row[f"attr.{attribute}"], row[f"from.{attribute}"] = value, source
                rows.append(row)
            batch = pa.RecordBatch.from_pylist(rows, self.schema())
            self.types.update(batch["type"].to_pylist())
            for name in batch.schema.names:
                self.known[name] += len(batch) - batch[name].null_count
            yield batch

    def coverage(self) -> dict[str, int]:
        """Count the products of which the price, rating, brand, type and each attribute are known."""
        called = {"price_cents": "price", "rating_tenths": "rating", "brand": "brand", "feature": "feature"}
        called |= {"text": "text"} | {f"attr.{name}": name for name in self.attributes}
        found = {name: self.known[column] for column, name in called.items()}
        found["type"] = self.types.total() - self.types[OTHER.name]
        return {name: count for name, count in found.items() if count}


def _fill_variants(product: Row) -> None:
    """Draw the stock of variants that say none, and give a product of several rows the price and stock of these."""
    variants = product["variants"]
    if not variants:
        product["variants"] = None
        return
    if any(one["stock"] is None for one in variants):
        drawn = drawn_stock([f"{product['id']} {place}" for place in range(len(variants))]).tolist()
        for one, stock in zip(variants, drawn, strict=True):
            one["stock"] = stock if one["stock"] is None else one["stock"]
    if product["apart"]:
        prices = [one["price_cents"] for one in variants if one["price_cents"] is not None]
        product["price_cents"] = min(prices, default=product["price_cents"])
        stock_of = {one["row"]: one["stock"] for one in variants}
        product["stock"] = min(sum(stock_of.values()), 32_767)
        if not product["option"]:
            product["source_id"] = variants[0]["source_id"]
    if not product["option"]:
        product["variants"] = None


def _kinds(counts: Table[tuple[Any, ...], int], called: Table[str, str]) -> list[Kind]:
    """Choose the type and department of products by what they say, and how many do: their path, which of the names of
    its last level the title says, and the type, department and name in the title. Types and categories are `called` as
    a mapping says.

    They are those of the category path, else of the title, else "Other Product". A category that nobody can ask for
    gives way to what the title names, and so does the first of several names ("Coats & Jackets") to that which the
    title says. A trade's other names for things ("toner" for a Toner Cartridge) count where most of what titles name in
    full is of that trade; elsewhere they name things.
    """
    paths, full = Counter[str](), Counter[bool]()
    for (path, _, kind, department, said), count in counts.items():
        paths[path] += count
        if kind and said is None:
            full[department in types.names().trade] += count
    by_path = _of_paths(paths, called)
    chosen: list[Kind] = []
    homes: dict[str, Counter[str]] = {}
    for (path, own, kind, department, said), count in counts.items():
        pathed, titled = by_path.get(path), Kind(kind, department) if kind else None
        if said is not None and full[True] <= full[False]:
            titled = Kind(said, said) if said else None
        if pathed and own and path.rpartition("\n")[2] not in called:
            pathed = Kind(types.packed(own), pathed.department)
        if pathed and titled and not types.is_speakable(pathed.name):
            pathed = Kind(titled.name, pathed.department)
        found = pathed or titled or OTHER
        chosen.append(Kind(called.get(found.name, found.name), found.department))
        homes.setdefault(chosen[-1].name, Counter())[chosen[-1].department] += count
    return [Kind(kind.name, homes[kind.name].most_common(1)[0][0]) for kind in chosen]


def _of_paths(counts: Table[str, int], called: Table[str, str]) -> dict[str, Kind]:
    """Return the type of each path: as its last level is `called`, else that level, or the one above where it has too
    few products."""
    levels = {path: tuple(path.split("\n")) for path in counts if path}
    sizes: Counter[tuple[str, ...]] = Counter()
    for path, of_path in levels.items():
        for end in range(1, len(of_path) + 1):
            sizes[of_path[:end]] += counts[path]
    found = {}
    for path, of_path in levels.items():
        if of_path[-1] in called:
            found[path] = Kind(called[of_path[-1]], types.department_of(of_path))
            continue
        above = (of_path[:end] for end in range(len(of_path), 1, -1) if sizes[of_path[:end]] >= ENOUGH)
        if kind := types.of_path(next(above, of_path)):
            found[path] = kind
    return found
