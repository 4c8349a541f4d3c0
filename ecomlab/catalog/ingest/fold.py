"""Rows folded into products: repetitions set aside, and rows that are variants of one product put together."""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as Table
from itertools import compress
from typing import Any

from ecomlab.catalog.ingest import attributes

REPEATED, TAKEN_ID, REPEATED_VARIANT, WHOLE, NO_TITLE, HIDDEN = (
    "repeats an earlier row",
    "id of an earlier row with other content",
    "repeats a variant of an earlier row",
    "of a product whose variants are in other rows",
    "no title",
    "not for sale",
)
"""Reasons to set a row aside."""

Row = dict[str, Any]
"""A clean row, as `RowCleaner` makes it, or a product: the row that has its title, with what the others add."""


def fold(
    rows: list[Row], names: Sequence[str], axes: Table[str, str]
) -> tuple[list[Row], list[tuple[Row, str]]]:
    """Return the products of rows of one parent or id, in order, and the rows that are set aside, with the reasons.

    `names` are those of the options, for rows that say none; without any, only the first row stays. Variants differ in
    the option that `axes` gives for the kind of thing that the rows are.
    """
    if is_lone(rows):
        (row,) = rows
        if not row["title"] or row["hidden"]:
            return [], [(row, HIDDEN if row["title"] else NO_TITLE)]
        return [row | {"name": _name(row, bool(names)), "option": None, "variants": (), "apart": False}], []
    family = Family(rows, names)
    return [*family.products(axes.get(family.kind, ""))], family.aside


def is_lone(rows: list[Row]) -> bool:
    """Tell whether rows are a single one without options."""
    return len(rows) == 1 and not rows[0]["options"]


def axes(families: "Iterable[Family]") -> dict[str, str]:
    """Return the option that products of each kind come in: the one in which most of its families vary, rather a size
    than a color. Products that differ in another one are products apart, which their attributes tell."""
    votes: dict[str, dict[str, list[int]]] = {}
    for family in families:
        for name, more in family.spread.items():
            count = votes.setdefault(family.kind, {}).setdefault(name, [0, name != "color", 0])
            count[0], count[2] = count[0] + 1, count[2] + more
    return {kind: max(counts, key=lambda name: counts[name]) for kind, counts in votes.items()}


class Family:
    """Rows of one parent or id, in order."""

    def __init__(self, rows: list[Row], names: Sequence[str]) -> None:
        sold = _sold(rows)
        self.rows = [*compress(rows, sold)]
        self.aside = [(row, HIDDEN) for row, is_sold in zip(rows, sold) if not is_sold]
        """Rows that are set aside, with the reason."""
        self.kind = next((kind for row in rows if (kind := row["path"] or row["kind"])), "")
        """The kind of thing that they are."""
        parents = any(row["parent"] for row in self.rows)
        self.whole = next((row for row in self.rows if parents and not row["parent"]), None)
        """Their parent's own row, which says what is true of all."""
        nothing = ("",) * len(names)
        self.values = [
            tuple(row["options"]) if row["options"] and row is not self.whole else nothing
            for row in self.rows
        ]
        if any(any(values) and "\n" not in "".join(values) for values in self.values):
            self.values = [  # a row that lists what the others come in is of their parent
                tuple("" if "\n" in one else one for one in values) for values in self.values
            ]
        called = [
            next(
                (own["option_names"][at] for own in self.rows if own["options"] and own["option_names"][at]),
                "",
            )
            for at in range(len(names))
        ]
        self.names = [
            attributes.name_of(own) if own else name for own, name in zip(called, names, strict=True)
        ]
        seen = [{one for said in column for one in said.split("\n") if one} for column in zip(*self.values)]
        self.spread = {name: len(own) - 1 for name, own in zip(self.names, seen) if len(own) > 1}
        """By option, how many values these rows have of it beside the first."""

    def products(self, option: str) -> Iterator[Row]:
        """Yield the products of these rows, whose variants differ in this option."""
        axis = self.names.index(option) if option in self.spread else -1
        head = next((row for row in self.rows if row["title"]), None)
        if head is None:
            self.aside += [(row, NO_TITLE) for row in self.rows]
            return
        told = any(map(any, self.values))
        if self.whole and not told:  # variants that do not say in what they differ
            sold: dict[int, Row] = {}
            for row in self.rows:
                if row is not self.whole and sold.setdefault(row["content"], row) is not row:
                    self.aside.append((row, REPEATED))
            yield self._product(head, "", {}, (), [("", row) for row in sold.values()])
            return
        parts: dict[tuple[str, ...], dict[str, Row]] = {}
        contents: set[int] = set()
        for row, values in zip(self.rows, self.values, strict=True):
            if self.names and not any(values) and (told or (row is not head and not row["title"])):
                self.aside.append((row, WHOLE))  # has the title of all, a further picture or a note
            elif row["content"] in contents:
                self.aside.append((row, REPEATED))
            elif contents and not self.names:
                self.aside.append((row, TAKEN_ID))
            else:
                part = parts.setdefault(tuple(said for at, said in enumerate(values) if at != axis), {})
                listed = values[axis].split("\n") if axis >= 0 else [""]
                if not [said for said in listed if part.setdefault(said, row) is row]:
                    self.aside.append((row, REPEATED_VARIANT))
            contents.add(row["content"])
        for others, part in parts.items():
            if len(part) > 1 and "" in part:
                self.aside.append((part.pop(""), WHOLE))
            main = next((row for row in part.values() if row["title"]), head)
            pairs = zip([name for at, name in enumerate(self.names) if at != axis], others, strict=True)
            # an option "Title" is Shopify's for want of one
            fixed = {name: said for name, said in pairs if said and "\n" not in said and name != "title"}
            varies = axis >= 0 and len(part) > 1
            if axis >= 0 and not varies and (said := next(iter(part))):
                fixed[option] = said
            yield self._product(main, option if varies else "", fixed, others, [*part.items()])

    def _product(
        self,
        main: Row,
        option: str,
        fixed: dict[str, str],
        others: tuple[str, ...],
        sold: list[tuple[str, Row]],
    ) -> Row:
        """Make a product of the row that has its title, its option, the values of other options, in which its variants
        agree (`fixed`), these as they tell it from other products (`others`), and its variants by their value."""
        product = _with_whole(main, self.whole) if self.whole else dict(main)
        product["attributes"] = product["attributes"] | {
            name: (attributes.normal(name, said) or said, f"option: {said}") for name, said in fixed.items()
        }
        product["attributes"].pop(option, None)
        apart = any(row is not main for _, row in sold)  # what is sold is not the row with the title alone
        variants = [
            {
                "row": row["number"],
                "option": said,
                "price_cents": _price(row, main),
                "stock": row["stock"],
                "source_id": row["source_id"] or None,
            }
            for said, row in sold
            if option or apart
        ]
        return product | {
            "name": _name(main, bool(self.names), others),
            "option": option or None,
            "variants": variants,
            "apart": apart,
        }


def _name(main: Row, folds: bool, others: tuple[str, ...] = ()) -> str:
    """Return what a product's id is made of: its source id, else its content; where rows fold, its parent's and what
    tells the products of it apart."""
    own, parent = main["source_id"], main["parent"]
    if folds:
        return f"{parent or own or main['content']}\n{others}"
    return own or parent or str(main["content"])


def _price(row: Row, main: Row) -> int | None:
    """Return the price of a variant, also one that is told as what it costs beside that of its product."""
    if row["price_cents"] is None and row["surcharge_cents"] is not None and main["price_cents"] is not None:
        return int(main["price_cents"] + row["surcharge_cents"])
    return row["price_cents"]


def _sold(rows: Sequence[Row]) -> list[bool]:
    """Tell which rows of a family are for sale: none below a first row, or a parent's, that is not."""
    if any(row["parent"] for row in rows) and any(row["hidden"] for row in rows if not row["parent"]):
        return [False] * len(rows)
    first = next((row["hidden"] for row in rows if row["title"]), False)
    return [not (row["hidden"] or (first and not row["title"])) for row in rows]


def _with_whole(own: Row, whole: Row) -> Row:
    """Return a row with what only its parent's row says, and that one's title, where it has one."""
    titled = bool(whole["title"])
    of_title = ("title", "feature", "kind", "department", "said") if titled else ()
    found = own | {name: whole[name] for name in of_title}
    found |= {name: own[name] or whole[name] for name in ("brand", "path", "text")}
    for name in ("price_cents", "rating_tenths", "reviews", "days"):
        found[name] = whole[name] if own[name] is None else own[name]
    kept = {
        name: said
        for name, said in own["attributes"].items()
        if not titled or not said[1].startswith("title: ")
    }
    found["attributes"] = whole["attributes"] | kept
    return found
