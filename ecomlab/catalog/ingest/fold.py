"""Rows folded into products: repetitions set aside, and rows that are variants of one product put together."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ecomlab.catalog.ingest.attributes import name_of
from ecomlab.catalog.products import rows_at

REPEATED, TAKEN_ID, REPEATED_VARIANT, WHOLE, NO_TITLE = (
    "repeats an earlier row",
    "id of an earlier row with other content",
    "repeats a variant of an earlier row",
    "of a product whose variants are in other rows",
    "no title",
)
"""Reasons to set a row aside."""


@dataclass(frozen=True)
class Folded:
    """Products by the rows of the table that make them."""

    main: np.ndarray
    """Per product, the row that has its title."""
    variants: Sequence[Sequence[int]]
    """Per product, the rows that are its variants; none where it has none."""
    aside: dict[int, str]
    """Reasons by row that was set aside."""
    axis: int = -1
    """Option column in which the variants of a product differ; -1 where there are none."""
    options: Sequence[Sequence[str]] = ()
    """Values in the option columns, by row; () of rows that share no id with another, where nothing names a parent."""
    names: Sequence[Sequence[str]] = ()
    """What these options are called, by row: products of one file have other ones, and in another order."""
    axis_name: str = ""
    by_parent: bool = False
    """Whether rows were grouped by a parent, whose id is then that of several products."""
    wholes: np.ndarray | None = None
    """Per product, the row of its parent, which says what is true of all variants; -1 where there is none."""


def fold(table: Any, folds: bool, columns: Sequence[str] = ()) -> Folded:
    """Fold the rows of all shards into products and their variants.

    Where it `folds`, rows of a parent are variants, which differ in the option `columns`. Otherwise rows are products
    of their own, but for those of one id and title that differ in these columns.
    """
    return _variants(table, columns) if folds else _distinct(table, columns)


def codes(column: Any) -> np.ndarray:
    """Return a number per value of an Arrow column, equal for equal values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    encoded = pc.dictionary_encode(column.cast(pa.large_string())).combine_chunks()
    return encoded.indices.to_numpy(zero_copy_only=False)


def _distinct(table: Any, columns: Sequence[str]) -> Folded:
    """Keep the first row of each id, or of each content without an id, and later ones that the columns tell from it."""
    import pyarrow.compute as pc

    content = table["content"].to_numpy()
    named = pc.not_equal(table["source_id"], "").to_numpy()
    ids = codes(table["source_id"]).astype(np.int64)
    _, same = np.unique(content, return_inverse=True)
    key = np.where(named, ids, len(ids) + same)
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    leader = first[group] if len(group) else group
    later = np.flatnonzero(leader != np.arange(len(leader)))
    titles = table.select(["title"])
    titled_alike = np.asarray(
        pc.equal(rows_at(titles, later)["title"], rows_at(titles, leader[later])["title"])
    )
    families: dict[int, list[int]] = {}
    aside: dict[int, str] = {}
    for row, alike in zip(later.tolist(), titled_alike.tolist()):
        head = int(leader[row])
        if content[row] == content[head]:
            aside[row] = REPEATED
        elif alike:
            families.setdefault(head, [head]).append(row)
        else:
            aside[row] = TAKEN_ID
    told = _told_apart(table, families, len(columns), aside)
    return _products(first.tolist(), told, columns, aside, len(leader))


def _told_apart(
    table: Any, families: dict[int, list[int]], width: int, aside: dict[int, str]
) -> dict[int, dict[int, tuple[str, ...]]]:
    """Read the options of the rows in each head's family; set aside those that agree in all with an earlier one.

    Families of which one row is left are left out.
    """
    content = table["content"]
    told: dict[int, dict[int, tuple[str, ...]]] = {}
    for head, rows in families.items():
        seen: dict[tuple[str, ...], int] = {}
        for row in rows:
            raw = table["options"][row].as_py()
            earlier = seen.setdefault(tuple(json.loads(raw)[0]) if raw else ("",) * width, row)
            if earlier != row:
                aside[row] = REPEATED if content[row] == content[earlier] else TAKEN_ID
        if len(seen) > 1:
            told[head] = {row: said for said, row in seen.items()}
    return told


def _products(
    heads: Sequence[int],
    families: dict[int, dict[int, tuple[str, ...]]],
    columns: Sequence[str],
    aside: dict[int, str],
    size: int,
) -> Folded:
    """Make a product of each of `heads`, and of the rows in a head's family that agree in all options but one."""
    if not families:
        return Folded(np.array(sorted(heads), np.int64), [()] * len(heads), aside)
    family = [(str(head), said) for head, rows in families.items() for said in rows.values()]
    axis = _axis([head for head, _ in family], [said for _, said in family], len(columns))
    variants: dict[int, list[int]] = {row: [] for row in heads if row not in families}
    options: list[Sequence[str]] = [()] * size
    for rows in families.values():
        groups: dict[tuple[str, ...], list[int]] = {}
        for row, said in rows.items():
            options[row] = said
            if said[axis]:
                groups.setdefault(said[:axis] + said[axis + 1 :], []).append(row)
            else:  # nothing says which of the variants it is
                variants[row] = []
        variants |= {group[0]: group if len(group) > 1 else [] for group in groups.values()}
    main = sorted(variants)
    return Folded(
        np.array(main, np.int64),
        [variants[row] for row in main],
        aside,
        axis,
        options,
        [columns] * size,
        columns[axis],
    )


def _variants(table: Any, columns: Sequence[str]) -> Folded:
    """Group the rows of a parent that agree in all options but one."""
    given = [json.loads(said) if said else [[], []] for said in table["options"].to_pylist()]
    width = len(columns)
    options = [tuple(values) if values else ("",) * width for values, _ in given]
    stated, ids = table["parent"].to_pylist(), table["source_id"].to_pylist()
    wholes = _wholes(stated, ids)
    for row in wholes.values():  # lists all that its variants come in
        options[row] = ("",) * width
    parents = [parent or own for parent, own in zip(stated, ids)]
    titled = [bool(title) for title in table["title"].to_pylist()]
    names: Sequence[Sequence[str]] = [columns] * len(options)
    if any(any(said) for _, said in given):
        options, names, axis_name = _in_order(parents, options, [said for _, said in given], columns)
        axis = 0
    else:
        axis = _axis(parents, options, width)
        axis_name = columns[axis] if width else ""
    vary = {parent for parent, values in zip(parents, options) if parent and any(values)}
    groups: dict[Any, list[int]] = {}
    aside: dict[int, str] = {}
    for row, (parent, values) in enumerate(zip(parents, options)):
        if parent in vary and not any(values):  # has the title of all, a further picture or a note
            aside[row] = WHOLE
            continue
        others = values[:axis] + values[axis + 1 :] if parent else ()
        groups.setdefault((parent, others) if parent else row, []).append(row)
    heads = _heads(parents, titled)
    main: list[int] = []
    variants: list[list[int]] = []
    for key, rows in sorted(groups.items(), key=lambda group: group[1][0]):
        head = next(
            (row for row in rows if titled[row]), heads.get(key[0]) if isinstance(key, tuple) else None
        )
        if head is None:
            aside |= dict.fromkeys(rows, NO_TITLE)
            continue
        chosen: dict[str, int] = {}
        for row in rows:
            if chosen.setdefault(options[row][axis] if width else "", row) != row:
                aside[row] = REPEATED_VARIANT
        if len(chosen) > 1 and "" in chosen:
            aside[chosen.pop("")] = WHOLE
        main.append(head)
        variants.append(list(chosen.values()) if any(chosen) else [])
        if not any(chosen) and head not in rows:
            aside |= dict.fromkeys(rows, WHOLE)
            main.pop()
            variants.pop()
    whole_of = np.array([wholes.get(parents[row], -1) for row in main], np.int64)
    return Folded(
        np.array(main, np.int64),
        variants,
        aside,
        axis,
        options,
        names,
        axis_name,
        by_parent=True,
        wholes=whole_of,
    )


def main_rows(table: Any, folded: Folded, products: Any) -> Any:
    """Return the main rows of some products, with what only the row of their parent says, and its title."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = rows_at(table, folded.main[products])
    if folded.wholes is None or (folded.wholes[products] < 0).all():
        return rows
    of_whole = folded.wholes[products]
    from_whole = rows_at(table, np.where(of_whole < 0, folded.main[products], of_whole))
    titled = pc.not_equal(from_whole["title"], "")
    for at, name in enumerate(rows.column_names):
        own, given = rows[name], from_whole[name]
        if name in ("title", "feature", "kind", "department"):
            column = pc.if_else(titled, _text(given), _text(own))
        elif name in ("brand", "path", "text"):
            column = pc.if_else(pc.equal(_text(own), ""), _text(given), _text(own))
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


def _text(column: Any) -> Any:
    import pyarrow as pa

    return column.cast(pa.string())


def _joined(own: str, given: str, titled: bool) -> str:
    """Join the attributes of a row and its parent's, without those of a title that gives way to the parent's."""
    kept = {
        name: said
        for name, said in json.loads(own).items()
        if not titled or not said[1].startswith("title: ")
    }
    return json.dumps(json.loads(given) | kept, ensure_ascii=False)


def _wholes(parents: Sequence[str], ids: Sequence[str]) -> dict[str, int]:
    """Find the rows that stand for a parent itself: of no parent, with the id that others name as theirs."""
    named = {parent for parent in parents if parent}
    found: dict[str, int] = {}
    for row, (parent, own) in enumerate(zip(parents, ids)):
        if not parent and own in named:
            found.setdefault(own, row)
    return found


def _in_order(
    parents: Sequence[str],
    options: Sequence[tuple[str, ...]],
    said: Sequence[Sequence[str]],
    columns: Sequence[str],
) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]], str]:
    """Put one option of each row first: the one in which variants differ most in all, by its name, or the parent's own.

    Exports name options in the first row of a parent, and those of one parent are "Size, Color", of the next "Color,
    Size". Returns the options of each row, their names, and the name of the first.
    """
    width = len(columns)
    values: dict[str, list[set[str]]] = {}
    held: dict[str, list[str]] = {}
    usual = [""] * width
    for parent, own, given in zip(parents, options, said):
        seen = values.setdefault(parent, [set() for _ in range(width)])
        named = held.setdefault(parent, [""] * width)
        for at, (value, name) in enumerate(zip(own, given or usual)):
            if value:
                seen[at].add(value)
                named[at] = named[at] or (name if given else "")
                usual[at] = usual[at] or named[at]
    spread: dict[str, int] = {}
    for parent, named in held.items():
        for at, name in enumerate(named):
            if name:
                more = len(values[parent][at]) - 1
                spread[name_of(name)] = spread.get(name_of(name), 0) + more
    first = max(spread, key=lambda name: spread[name], default="")
    spelled = next(
        (name for named in held.values() for name in named if name and name_of(name) == first), columns[0]
    )
    orders: dict[str, list[int]] = {}
    for parent, named in held.items():
        of_first = [at for at, name in enumerate(named) if name and name_of(name) == first]
        widest = max(range(width), key=lambda at: (len(values[parent][at]), -at))
        start = of_first[0] if of_first else widest
        orders[parent] = [start, *(at for at in range(width) if at != start)]
    called = {
        parent: tuple(named[at] or usual[at] or columns[at] for at in orders[parent])
        for parent, named in held.items()
    }
    moved = [tuple(own[at] for at in orders[parent]) for parent, own in zip(parents, options)]
    return moved, [called[parent] for parent in parents], spelled


def _axis(parents: Sequence[str], options: Sequence[Sequence[str]], width: int) -> int:
    """Choose the option column in which rows of one parent have most values."""
    seen: list[dict[str, set[str]]] = [{} for _ in range(width)]
    for parent, values in zip(parents, options):
        for at, value in enumerate(values):
            if value and parent:
                seen[at].setdefault(parent, set()).add(value)
    return max(
        range(width), key=lambda at: (sum(len(of_one) - 1 for of_one in seen[at].values()), -at), default=0
    )


def _heads(parents: Sequence[str], titled: Sequence[bool]) -> dict[str, int]:
    """Find the first row of each parent that has a title, which the export gives once."""
    heads: dict[str, int] = {}
    for row, (parent, has) in enumerate(zip(parents, titled)):
        if has and parent:
            heads.setdefault(parent, row)
    return heads
