"""What became of every row of a source: counts by reason, with examples, that add up."""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ecomlab.catalog.ingest.text import ENCODING, inert_cell
from ecomlab.files import replacing, write_json

FILE = "report.json"
ASIDE = "set_aside.csv"


@dataclass(frozen=True)
class Report:
    """Every row is kept as it came, repaired, or set aside; kept and repaired rows are products or variants of one."""

    source: str
    rows: int
    kept: int
    repaired: int
    set_aside: int
    products: int
    folded: int
    """Kept or repaired rows that became variants of a product which another row stands for."""
    repairs: Mapping[str, int]
    """Rows by repair; a row may have several."""
    reasons: Mapping[str, int]
    """Rows set aside by reason; each row has one."""
    examples: Mapping[str, list[list[Any]]]
    """By repair or reason, some rows: [number, what it said]."""
    coverage: Mapping[str, int]
    """Products by what is known of them: price, rating, brand, type and each attribute."""
    drawn: tuple[str, ...] = ()
    """Fields that no row of the source says in a form that is read, drawn from each product's id."""
    types: Mapping[str, int] = field(default_factory=dict)
    """Products by type."""
    currency: str = ""
    """Of the prices, where there are any."""
    currency_from: str = ""
    """What says so; nothing does of dollars that are taken for want of it."""
    profile: str = ""
    """The platform whose columns these are."""
    unused: tuple[str, ...] = ()
    """Columns of the source that the mapping does not name: nothing is read from them."""
    house: bool = False
    """Whether neither the source nor its mapping has a brand for all products."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Rows by attribute that they give, but no value of which was taken, and why: "color: no normal form"."""

    def __post_init__(self) -> None:
        for said, count, parts in (
            ("rows were read", self.rows, self.kept + self.repaired + self.set_aside),
            ("rows were set aside", self.set_aside, sum(self.reasons.values())),
            ("rows are of products", self.kept + self.repaired, self.products + self.folded),
        ):
            if count != parts:
                raise ValueError(f"{count} {said}, and {parts} of them are accounted for")

    def lines(self) -> Iterator[str]:
        """Say it in lines of plain text."""
        yield (
            f"{self.rows:,} rows: {self.kept:,} kept as they are, {self.repaired:,} repaired, "
            f"{self.set_aside:,} set aside"
        )
        yield f"{self.products:,} products" + f" ({self.folded:,} rows are variants of one)" * bool(
            self.folded
        )
        if self.profile:
            yield f"the columns are those of {self.profile}"
        for reason, count in _falling(self.repairs):
            yield f"repaired: {reason}, {_rows(count)}"
        if 2 * self.repairs.get(ENCODING, 0) > self.rows:
            yield "most rows are no UTF-8 and were read as what they look like; if letters look wrong, save it as UTF-8"
        for reason, count in _falling(self.reasons):
            shown = [f"row {at}: {excerpt[:60]}" for at, excerpt in self.examples.get(reason, ())[:2]]
            yield f"set aside: {reason}, {_rows(count)}" + ", as " * bool(shown) + "; ".join(shown)
        known = [f"{name} {count / max(1, self.products):.0%}" for name, count in _falling(self.coverage)]
        yield f"known of products: {', '.join(known) or 'nothing'}"
        if self.currency_from:
            yield f"prices are in {self.currency}, as {self.currency_from} says"
        elif self.currency:
            yield f"prices are taken for {self.currency}: nothing says in what they are"
        if self.dropped:
            counts = [f"{name} ({_rows(count)})" for name, count in _falling(self.dropped)]
            yield f"attributes dropped: {', '.join(counts)}"
        if self.house:
            yield (
                'no column of brands: where nothing else names one, products are of "Own-Brand"; a mapping file may '
                'name another (brand = "..." before its tables) or the column ([columns] brand = "...")'
            )
        if self.unused:
            yield f"columns that nothing is read from: {', '.join(self.unused)}"
        if self.drawn:
            yield f"no row says them, so they are drawn from each product's id: {', '.join(self.drawn)}"


def _falling(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _rows(count: int) -> str:
    return f"{count:,} row{'s' * (count != 1)}"


def write_report(folder: Path, report: Report, aside: Iterable[tuple[int, str, str]]) -> None:
    """Write the report, and every row that was set aside with its reason, into `folder`."""
    with replacing(folder / ASIDE) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["row", "reason", "said"])
        for number, reason, said in aside:
            writer.writerow([number, reason, inert_cell(" ".join(said.split()))])
    write_json(folder / FILE, asdict(report))
