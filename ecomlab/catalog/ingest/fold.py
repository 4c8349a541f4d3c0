"""Rows folded into products: repetitions set aside, and rows that are variants of one product put together."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, compress
from typing import Any

import numpy as np

from ecomlab.catalog.ingest.attributes import name_of
from ecomlab.catalog.products import rows_at

REPEATED, TAKEN_ID, REPEATED_VARIANT, WHOLE, NO_TITLE, HIDDEN = (
    "repeats an earlier row",
    "id of an earlier row with other content",
    "repeats a variant of an earlier row",
    "of a product whose variants are in other rows",
    "no title",
    "not for sale",
)
"""Reasons to set a row aside."""


@dataclass
class Product:
    """Rows of the table that make a product."""

    main: int
    """The row that has its title."""
    option: str = ""
    """The name of the option in which its variants differ, "" where it has none."""
    variants: list[tuple[int, str]] = field(default_factory=list)
    """The row and the option's value of each; without an option, the row of the only one."""
    fixed: dict[str, str] = field(default_factory=dict)
    """Values of the options in which they agree, by name."""
    others: tuple[str, ...] = ()
    """All values of the options but the one in which they differ, by column."""
    whole: int = -1
    """The row of its parent, which says what is true of all variants; -1 where there is none."""


@dataclass
class Folded:
    """Products by number, in the order of their first rows."""

    main: np.ndarray
    """Per product, the row that has its title."""
    told: dict[int, Product]
    """Products of several rows or with options, by number; of the others the main row says all."""
    aside: dict[int, str]
    """Reasons by row that was set aside."""


def related(table: Any, fill_down: bool) -> Any:
    """Return the table with every row's parent named as the parent's own row names itself: by its id. It may be named
    by the other id, also without its "id:"."""
    import pyarrow as pa

    parents = table["parent"].to_pylist()
    ids = table["source_id"].to_pylist()
    others = [(other, one) for other, one in zip(table["other_id"].to_pylist(), ids, strict=True) if other]
    own = {other.removeprefix("id:"): one for other, one in others} | {one: one for one in ids} | dict(others)
    said = [own.get(one, one) for one in parents]
    if fill_down:
        titles = table["title"].to_pylist()
        said = [*accumulate(zip(said, titles), lambda above, row: row if any(row) else (above[0], ""))]
        said = [one for one, _ in said]
    return table.set_column(table.schema.get_field_index("parent"), "parent", pa.array(said, pa.string()))


def fold(table: Any, folds: bool, names: Sequence[str] = ()) -> Folded:
    """Fold the rows of all shards into products and their variants.

    Rows of one parent or id are a family; where nothing names a parent and it does not `fold`, only with one title.
    `names` are those of the options, for rows that say none.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    content = pc.binary_join_element_wise("\n", table["content"].cast(pa.string()), "")
    key = pc.if_else(pc.equal(table["source_id"], ""), content, table["source_id"])
    key = pc.if_else(pc.equal(table["parent"], ""), key, table["parent"]) if folds else key
    codes = pc.dictionary_encode(key.cast(pa.large_string())).combine_chunks().indices.to_numpy()
    _, first, group = np.unique(codes, return_index=True, return_inverse=True)
    has_options = np.asarray(pc.not_equal(table["options"], "")) & folds
    lone = (np.bincount(group, minlength=len(first))[group] == 1) & ~has_options
    rows = np.flatnonzero(~lone)
    rows = rows[np.argsort(first[group[rows]], kind="stable")]
    said = rows_at(table.select(["title", "content", "options", "parent", "hidden"]), rows).to_pydict()
    kinds = rows_at(table.select(["path", "kind"]), rows).to_pydict()
    kind = [path or own for path, own in zip(kinds["path"], kinds["kind"], strict=True)]
    ends = np.flatnonzero(np.diff(group[rows], append=-1)) + 1
    aside: dict[int, str] = {}
    families = []
    for begin, end in zip([0, *ends[:-1].tolist()], ends.tolist()):
        own = [column[begin:end] for column in said.values()]
        sold = _sold(own, folds)
        aside |= {int(row): HIDDEN for row, is_sold in zip(rows[begin:end], sold) if not is_sold}
        kept = [[*compress(column, sold)] for column in (rows[begin:end].tolist(), *own[:-1])]
        of_kind = next(filter(None, kind[begin:end]), "")
        families += [_Family(kept[0], kept[1:], names, folds, of_kind)] if any(sold) else []
    axes = _axes(families)
    made = [product for family in families for product in family.products(axes.get(family.kind, ""), aside)]
    titled, hidden = np.asarray(pc.not_equal(table["title"], "")), np.asarray(table["hidden"])
    aside |= dict.fromkeys(np.flatnonzero(lone & ~titled).tolist(), NO_TITLE)
    aside |= dict.fromkeys(np.flatnonzero(lone & titled & hidden).tolist(), HIDDEN)
    alone = np.flatnonzero(lone & titled & ~hidden)
    begins = [min((row for row, _ in one.variants), default=one.main) for one in made]
    order = np.argsort(np.array([*begins, *alone], np.int64), kind="stable")
    main = np.array([*(one.main for one in made), *alone], np.int64)[order]
    places = np.argsort(order, kind="stable")[: len(made)].tolist()
    return Folded(main, dict(zip(places, made, strict=True)), aside)


def _sold(said: Sequence[list[Any]], folds: bool) -> list[bool]:
    """Tell which rows of a family are for sale: none below a first row, or a parent's, that is not."""
    titles, _, _, parents, hidden = said
    if not any(hidden):
        return [True] * len(hidden)
    of_all = [own for own, parent in zip(hidden, parents) if not parent] if folds and any(parents) else []
    if any(of_all):
        return [False] * len(hidden)
    first = next((own for own, title in zip(hidden, titles) if title), False)
    return [not (own or (first and not title)) for own, title in zip(hidden, titles)]


def _axes(families: "Sequence[_Family]") -> dict[str, str]:
    """Return the option that products of each kind come in: the one in which most of its families vary, rather a size
    than a color. Products that differ in another one are products apart, which their attributes tell."""
    votes: dict[str, dict[str, list[int]]] = {}
    for family in families:
        for name, more in family.spread.items():
            count = votes.setdefault(family.kind, {}).setdefault(name, [0, name != "color", 0])
            count[0], count[2] = count[0] + 1, count[2] + more
    return {kind: max(counts, key=lambda name: counts[name]) for kind, counts in votes.items()}


class _Family:
    """Rows of one parent or id, in order, and the kind of thing that they are."""

    def __init__(
        self, rows: list[int], said: Sequence[list[Any]], names: Sequence[str], folds: bool, kind: str
    ) -> None:
        self.rows, self.folds, self.kind = rows, folds, kind
        self.titles, self.contents, options, parents = said
        given = [json.loads(one) if one else [[], []] for one in options]
        children = any(parents)
        self.whole = next((at for at, one in enumerate(parents) if folds and children and not one), -1)
        self.values = [
            tuple(values) if values and at != self.whole else ("",) * len(names)
            for at, (values, _) in enumerate(given)
        ]
        if any(values for values in self.values if any(values) and not any("\n" in one for one in values)):
            self.values = [  # a row that lists what the others come in is of their parent
                tuple("" if "\n" in one else one for one in values) for values in self.values
            ]
        called = [next((own[at] for _, own in given if own and own[at]), "") for at in range(len(names))]
        self.names = [name_of(own) if own else name for own, name in zip(called, names, strict=True)]
        seen = [
            {one for values in self.values for one in values[at].split("\n")} - {""}
            for at in range(len(names))
        ]
        self.spread = Counter({name: len(own) - 1 for name, own in zip(self.names, seen) if len(own) > 1})

    def products(self, option: str, aside: dict[int, str]) -> Iterator[Product]:
        """Yield the products of these rows, whose variants differ in this option."""
        axis = self.names.index(option) if option in self.spread else -1
        titles = self.titles
        head = next((at for at, title in enumerate(titles) if title), None)
        if head is None:
            aside |= dict.fromkeys(self.rows, NO_TITLE)
            return
        told = any(map(any, self.values))
        if self.whole >= 0 and not told:  # variants that do not say in what they differ
            product = Product(self.rows[head], whole=self.rows[self.whole])
            own = {content: at for at, content in enumerate(self.contents) if at != self.whole}
            product.variants = [(self.rows[at], "") for at in sorted(own.values())]
            again = {*range(len(self.rows))} - {self.whole, *own.values()}
            aside |= {self.rows[at]: REPEATED for at in again}
            yield product
            return
        parts: dict[tuple[str, ...], dict[str, int]] = {}
        contents: set[int] = set()
        for at, (row, values, content) in enumerate(zip(self.rows, self.values, self.contents, strict=True)):
            if self.folds and not any(values) and (told or (at != head and not titles[at])):
                aside[row] = WHOLE  # has the title of all, a further picture or a note
            elif content in contents:
                aside[row] = REPEATED
            elif not self.folds and titles[at] != titles[head]:
                aside[row] = TAKEN_ID
            else:
                part = parts.setdefault(tuple(said for i, said in enumerate(values) if i != axis), {})
                listed = values[axis].split("\n") if axis >= 0 else [""]
                if at not in [part.setdefault(said, at) for said in listed]:
                    aside[row] = REPEATED_VARIANT if self.folds else TAKEN_ID
            contents.add(content)
        for others, part in parts.items():
            if len(part) > 1 and "" in part:
                aside[self.rows[part.pop("")]] = WHOLE
            main = next((at for at in part.values() if titles[at]), head)
            names = [name for i, name in enumerate(self.names) if i != axis]
            pairs = zip(names, others, strict=True)  # an option "Title" is Shopify's for want of one
            fixed = {name: said for name, said in pairs if said and "\n" not in said and name != "title"}
            product = Product(self.rows[main], fixed=fixed, others=others)
            product.whole = self.rows[self.whole] if self.whole >= 0 else -1
            if axis >= 0 and len(part) > 1:
                product.option = self.names[axis]
                product.variants = [(self.rows[at], said) for said, at in part.items()]
            elif axis >= 0 and (said := next(iter(part))):
                product.fixed[self.names[axis]] = said
            if not product.option and main not in part.values():  # what is sold is not the row with the title
                product.variants = [(self.rows[at], said) for said, at in part.items()]
            yield product


def main_rows(table: Any, folded: Folded, products: np.ndarray) -> Any:
    """Return the main rows of some products, with what only the row of their parent says, and its title."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = rows_at(table, folded.main[products])
    of_whole = np.array(
        [folded.told[at].whole if at in folded.told else -1 for at in products.tolist()], np.int64
    )
    if (of_whole < 0).all():
        return rows
    from_whole = rows_at(table, np.where(of_whole < 0, folded.main[products], of_whole))
    titled = pc.not_equal(from_whole["title"], "")
    for at, name in enumerate(rows.column_names):
        own, given = (
            side[name].cast(pa.string()) if pa.types.is_dictionary(side[name].type) else side[name]
            for side in (rows, from_whole)
        )
        if name in ("title", "feature", "kind", "department", "said"):
            column = pc.if_else(titled, given, own)
        elif name in ("brand", "path", "text"):
            column = pc.if_else(pc.equal(own, ""), given, own)
        elif name in ("price_cents", "rating_tenths", "reviews", "days"):
            column = pc.coalesce(own, given)
        elif name == "attributes":
            column = pa.array(
                map(_joined, own.to_pylist(), given.to_pylist(), titled.to_pylist()), pa.string()
            )
        else:
            continue
        rows = rows.set_column(at, name, column)
    return rows


def _joined(own: str, given: str, titled: bool) -> str:
    """Join the attributes of a row and its parent's, without those of a title that gives way to the parent's."""
    kept = {
        name: said
        for name, said in json.loads(own).items()
        if not titled or not said[1].startswith("title: ")
    }
    return json.dumps(json.loads(given) | kept, ensure_ascii=False)
