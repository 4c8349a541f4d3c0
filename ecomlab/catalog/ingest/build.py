"""Someone's catalog made into a table of clean products: read, cleaned in shards, folded, typed and reported."""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as Table
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from ecomlab.catalog.columns import ENOUGH
from ecomlab.catalog.ingest import attributes, shards, types
from ecomlab.catalog.ingest.fold import Folded, fold, main_rows, related
from ecomlab.catalog.ingest.mapping import Mapping, guess, to_toml
from ecomlab.catalog.ingest.report import Report, write_report
from ecomlab.catalog.ingest.rows import RowCleaner, currency_of
from ecomlab.catalog.ingest.sources import Source
from ecomlab.catalog.ingest.text import clean
from ecomlab.catalog.ingest.types import OTHER, Kind
from ecomlab.catalog.ingest.variants import adopted
from ecomlab.catalog.products import (
    CHUNK,
    drawn_days,
    drawn_stock,
    product_ids,
    rows_at,
    save_facts,
    write_rows,
)
from ecomlab.files import lock, write_text
from ecomlab.seeding import digest

VERSION: Final = 15
"""Goes up when the same source would give other products: shards of older builds are not gone on with."""
MAPPING: Final = "mapping.toml"
HOUSE: Final = "Own-Brand"
"""Brand of products for which neither the source nor a mapping names one."""


def build_products(
    source: Source,
    out: Path,
    mapping: Mapping | None = None,
    progress: Callable[[int], None] = lambda rows: None,
) -> Report:
    """Make the products of `source` in the folder `out`, with a report; a build that was killed goes on where it was.

    Without a mapping it is guessed. `progress(rows)` is told how many rows are clean. Raises ValueError for a source
    that cannot be read or lies in `out` (or around it), a mapping that does not fit it, and a folder in which another
    process builds.
    """
    _check_apart(source, out)
    if mapping:
        source = _in_form(source, mapping)
    sample = source.sample()
    mapping = mapping or guess(sample)
    mapping.check(sample)
    if not mapping.columns.brand and not mapping.brand:
        mapping = mapping.model_copy(update={"brand": HOUSE})
    currency = currency_of(sample, mapping)
    out.mkdir(parents=True, exist_ok=True)
    with lock(
        out / ".building", ValueError(f"another process builds in {out}; wait for it, or name another folder")
    ):
        state = digest([VERSION, source.fingerprint, mapping.model_dump(), currency[0]], 12)
        work = out / f".rows-{state}"
        for old in out.glob(".rows-*"):
            if old != work:
                shutil.rmtree(old, ignore_errors=True)
        cleaner = RowCleaner(mapping, currency[0])
        rows = shards.write_shards(source, cleaner, work, progress)
        unused = tuple(clean(column, 60)[0] for column in mapping.unread(sample))
        report = _combine(source, rows, out, work, mapping, currency, unused)
        shutil.rmtree(work, ignore_errors=True)
    return report


def _in_form(source: Source, mapping: Mapping) -> Source:
    """Return the source as a mapping says that its CSV files are written."""
    header = source.header if mapping.header is None else mapping.header
    return replace(source, delimiter=mapping.delimiter or source.delimiter, header=header)


def _check_apart(source: Source, out: Path) -> None:
    """Raise ValueError where a build would write over its source, or read what an earlier build wrote."""
    place = out.resolve()
    around = Path(source.name).expanduser().resolve() if source.files else None
    if any(path.resolve().is_relative_to(place) for path in source.files):
        raise ValueError(
            f"{source.name} lies in {out}, whose files a build replaces; name a folder of its own"
        )
    if around and around.is_dir() and place.is_relative_to(around):
        raise ValueError(
            f"{out} lies in the source {source.name}, which the next build would read with what this one writes; "
            "name a folder outside it"
        )


def _combine(
    source: Source,
    rows: int,
    out: Path,
    work: Path,
    mapping: Mapping,
    currency: tuple[str, str],
    unused: tuple[str, ...],
) -> Report:
    """Fold the clean rows of all shards into products, write these and the report."""
    table = adopted(shards.read_shards(work), len(mapping.columns.options))
    folds = bool(mapping.columns.options)
    if mapping.fill_down or mapping.columns.other_id:
        table = related(table, mapping.fill_down)
    named = [
        "option" if name in mapping.option_names else attributes.name_of(name) if folds else name
        for name in mapping.varying
    ]
    folded = fold(table, folds, named)
    names, departments = _kinds(table, folded, mapping.kinds)
    drawn = tuple(name for name in ("days", "stock") if table[name].null_count == table.num_rows)
    repairs, repaired, examples, aside = _accounts(table, folded, work)
    kinds = Counter(names.tolist())
    told = {name for one in folded.told.values() for name in one.fixed}
    given = sorted(told.union(*(facts["attributes"] for facts in shards.facts_of(work))))
    writer = _Writer(table, folded, names, departments, given, mapping)
    options = Counter(one.option for one in folded.told.values() if one.option)
    facts = {
        "source": source.name,
        "currency": currency[0],
        "drawn": list(drawn),
        "option": max(options, key=lambda name: (options[name], name), default=""),
        "mapping": mapping.model_dump(),
        "products": len(folded.main),
    }
    facts |= write_rows(out, writer.batches(), writer.schema())
    kept_rows = table.num_rows - len(folded.aside)
    report = Report(
        source=source.name,
        rows=rows,
        kept=kept_rows - repaired,
        repaired=repaired,
        set_aside=rows - kept_rows,
        products=len(folded.main),
        folded=kept_rows - len(folded.main),
        repairs=repairs,
        reasons=dict(Counter(reason for _, reason, _ in aside)),
        examples=examples,
        coverage=dict(writer.coverage),
        drawn=drawn,
        types=dict(kinds.most_common()),
        profile=mapping.profile,
        currency=currency[0] if mapping.columns.price else "",
        currency_from=currency[1],
        unused=unused,
        headless=source.headless,
        house=mapping.brand == HOUSE,
        dropped=dict(sum((Counter(facts["dropped"]) for facts in shards.facts_of(work)), Counter())),
    )
    write_report(out, report, aside)
    write_text(out / MAPPING, to_toml(mapping))
    save_facts(out, facts)
    return report


def _accounts(
    table: Any, folded: Folded, work: Path
) -> tuple[dict[str, int], int, dict[str, list[list[Any]]], list[tuple[int, str, str]]]:
    """Count repairs over the rows that stay, and collect examples and the rows that were set aside."""
    numbers = table["number"].to_numpy()
    said = table["repairs"].to_pylist() if table.num_rows else []
    stays = np.ones(table.num_rows, bool)
    stays[list(folded.aside)] = False
    repairs: Counter[str] = Counter()
    repaired = 0
    for row in np.flatnonzero(stays).tolist():
        if said[row]:
            repaired += 1
            repairs.update(said[row].split("\n"))
    examples: dict[str, list[list[Any]]] = {}
    said_of = (table["title"], table["parent"], table["source_id"])
    aside = [
        (int(numbers[row]), reason, next((said for one in said_of if (said := one[row].as_py())), ""))
        for row, reason in folded.aside.items()
    ]
    for facts in shards.facts_of(work):
        aside += map(tuple, facts["set_aside"])
        for reason, shown in facts["examples"].items():
            if repairs[reason]:
                examples[reason] = (examples.get(reason, []) + shown)[: shards.EXAMPLES]
    aside.sort()
    for number, reason, raw in aside:
        if len(examples.setdefault(reason, [])) < shards.EXAMPLES:
            examples[reason].append([number, raw])
    return dict(repairs), repaired, examples, aside


def _kinds(table: Any, folded: Folded, called: Table[str, str]) -> tuple[np.ndarray, np.ndarray]:
    """Choose each product's type and department: of its category path, else of its title, else "Other Product"; types
    and categories are `called` as a mapping says.

    A category that nobody can ask for gives way to what the title names, and so does the first of several names ("Coats
    & Jackets") to that which the title says. A trade's other names for things ("toner" for
    a Toner Cartridge) count where most of what titles name in full is of that trade; elsewhere they name things.
    """
    names = ["title", "path", "kind", "department", "said"]
    take = main_rows(table.select(names), folded, np.arange(len(folded.main)))
    rows = list(zip(*(take[name].to_pylist() for name in names), strict=True))
    by_path = _of_paths(Counter(path for _, path, *_ in rows), called)
    full = Counter(
        department in types.trade() for *_, kind, department, said in rows if kind and said is None
    )
    chosen: list[Kind] = []
    for title, path, kind, department, said in rows:
        pathed, titled = by_path.get(path), Kind(kind, department) if kind else None
        if said is not None and full[True] <= full[False]:
            titled = Kind(said, said) if said else None
        if pathed and (own := types.said_of(path.rpartition("\n")[2], title)):
            pathed = Kind(types.packed(own), pathed.department)
        if pathed and titled and not types.is_speakable(pathed.name):
            pathed = Kind(titled.name, pathed.department)
        found = pathed or titled or OTHER
        chosen.append(Kind(called.get(found.name, found.name), found.department))
    homes: dict[str, str] = {}
    for (name, home), _ in Counter((kind.name, kind.department) for kind in chosen).most_common():
        homes.setdefault(name, home)
    return np.array([k.name for k in chosen], object), np.array([homes[k.name] for k in chosen], object)


def _of_paths(counts: Counter[str], called: Table[str, str]) -> dict[str, Kind]:
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


@dataclass
class _Writer:
    """Batches of the product table, in order, with counts of what they hold."""

    table: Any
    folded: Folded
    names: np.ndarray
    departments: np.ndarray
    attributes: list[str]
    mapping: Mapping
    coverage: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.order = np.lexsort((self.folded.main, self.names, self.departments))
        self.brands = _spelled(self.table["brand"])
        self.ids = self._all_ids(bool(self.mapping.columns.options))

    def schema(self) -> Any:
        """Columns of the product table."""
        import pyarrow as pa

        text = pa.string()
        variant = pa.struct(
            [("option", text), ("price_cents", pa.int32()), ("stock", pa.int16()), ("source_id", text)]
        )
        return pa.schema(
            [
                *((name, text) for name in ("id", "source_id")),
                ("source_row", pa.int64()),
                *((name, text) for name in ("title", "brand", "feature", "type", "department")),
                ("price_cents", pa.int32()),
                ("rating_tenths", pa.int8()),
                ("reviews", pa.int32()),
                ("days", pa.int8()),
                ("stock", pa.int16()),
                ("text", text),
                *((f"{part}.{name}", text) for name in self.attributes for part in ("attr", "from")),
                ("option", text),
                ("variants", pa.list_(variant)),
            ]
        )

    def batches(self) -> Iterator[Any]:
        """Yield the products, `CHUNK` at a time."""
        import pyarrow as pa

        schema = self.schema()
        for start in range(0, len(self.order), CHUNK):
            products = self.order[start : start + CHUNK]
            columns = self._columns(products)
            batch = pa.RecordBatch.from_pydict({name: columns[name] for name in schema.names}, schema)
            for name in ("price_cents", "rating_tenths", "brand", "feature", "text", *self.attributes):
                column = batch[f"attr.{name}" if name in self.attributes else name]
                self.coverage[name.partition("_cents")[0].partition("_tenths")[0]] += (
                    len(batch) - column.null_count
                )
            self.coverage["type"] += sum(kind != OTHER.name for kind in columns["type"])
            yield batch
        self.coverage = +self.coverage  # without what is known of none

    def _all_ids(self, by_parent: bool) -> list[str]:
        """Make every product's id, from its source id, else its content; of those of a parent, with what tells them
        apart."""
        rows = rows_at(self.table.select(["source_id", "parent", "content"]), self.folded.main).to_pydict()
        names = []
        for at, (own, parent, content) in enumerate(zip(rows["source_id"], rows["parent"], rows["content"])):
            name = (parent or own if by_parent else own or parent) or str(content)
            told = self.folded.told.get(at)
            names.append(f"{name}\n{told.others if told else ()}" if by_parent else name)
        return product_ids(names)

    def _columns(self, products: np.ndarray) -> dict[str, list[Any]]:
        import pyarrow as pa
        import pyarrow.compute as pc

        rows = main_rows(self.table, self.folded, products)
        ids = [self.ids[at] for at in products.tolist()]
        columns: dict[str, list[Any]] = {
            "id": ids,
            "source_row": rows["number"].to_pylist(),
            "type": self.names[products].tolist(),
            "department": self.departments[products].tolist(),
            **{name: rows[name].to_pylist() for name in ("title", "price_cents", "rating_tenths", "reviews")},
            **{name: [said or None for said in rows[name].to_pylist()] for name in ("source_id", "text")},
            "feature": [
                (said if kind in (titled, OTHER.name) else types.without_words(said, kind)) or None
                for said, titled, kind in zip(
                    rows["feature"].to_pylist(), rows["kind"].to_pylist(), self.names[products].tolist()
                )
            ],
            "brand": [
                self.brands.get(said.lower(), self.mapping.brand or None)
                for said in rows["brand"].to_pylist()
            ],
            "days": pc.coalesce(rows["days"], pa.array(drawn_days(ids), pa.int8())).to_pylist(),
            "stock": pc.coalesce(rows["stock"], pa.array(drawn_stock(ids), pa.int16())).to_pylist(),
            "variants": self._variants(products.tolist()),
        }
        found = [json.loads(said) for said in rows["attributes"].to_pylist()]
        told = [self.folded.told.get(at) for at in products.tolist()]
        for own, one in zip(found, told, strict=True):
            for name, value in one.fixed.items() if one else ():
                own[name] = [attributes.normal(name, value) or value, f"option: {value}"]
            own.pop(one.option if one else "", None)
        columns["option"] = [(one and one.option) or None for one in told]
        for name in self.attributes:
            columns[f"attr.{name}"] = [one[name][0] if name in one else None for one in found]
            columns[f"from.{name}"] = [one[name][1] if name in one else None for one in found]
        for at, (one, variants) in enumerate(zip(told, columns["variants"], strict=True)):
            if one and {row for row, _ in one.variants} - {one.main}:
                prices = [sold["price_cents"] for sold in variants if sold["price_cents"] is not None]
                columns["price_cents"][at] = min(prices, default=columns["price_cents"][at])
                stock = {row: sold["stock"] for (row, _), sold in zip(one.variants, variants)}
                columns["stock"][at] = min(sum(stock.values()), 32_767)
                if not one.option:
                    columns["source_id"][at], columns["variants"][at] = variants[0]["source_id"], None
        return columns

    def _variants(self, products: Sequence[int]) -> list[list[dict[str, Any]] | None]:
        """Return each product's variants, in the order of the source."""
        told = [(at, self.folded.told[at].variants) for at in products if at in self.folded.told]
        rows = [row for _, variants in told for row, _ in variants]
        adds = bool(self.mapping.columns.surcharge)
        names = ["source_id", "price_cents", "surcharge_cents", "stock"]
        given = iter(rows_at(self.table.select(names), rows).to_pylist())
        mains = self.folded.main[[at for at, _ in told]]
        of_main = rows_at(self.table.select(["price_cents"]), mains)["price_cents"].to_pylist()
        made: dict[int, list[dict[str, Any]]] = {}
        for (at, variants), price in zip(told, of_main, strict=True):
            drawn = drawn_stock([f"{self.ids[at]} {place}" for place in range(len(variants))]).tolist()
            made[at] = [
                {
                    "option": value,
                    "price_cents": price + (one["surcharge_cents"] or 0)
                    if adds and price is not None and one["price_cents"] is None
                    else one["price_cents"],
                    "stock": one["stock"] if one["stock"] is not None else by_draw,
                    "source_id": one["source_id"] or None,
                }
                for (_, value), by_draw, one in zip(
                    variants, drawn, islice(given, len(variants)), strict=True
                )
            ]
        return [made.get(at) or None for at in products]


def _spelled(brands: Any) -> dict[str, str]:
    """Return the commonest spelling of each brand, by its lower case."""
    counts = Counter(filter(None, brands.to_pylist()))
    return {brand.lower(): brand for brand in sorted(counts, key=lambda name: (counts[name], name))}
