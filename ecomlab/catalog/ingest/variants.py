"""Variants that a cell lists in text or an object in a list, given columns as other rows have them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from ecomlab.catalog.ingest.profiles import Profile, folded, forms, plain, profile_of
from ecomlab.catalog.ingest.text import is_nothing, printable

OWN, OF = "own id", "parent SKU"
"""Columns that rows get: the id by which variants name their product, and that of the product whose variant it is."""
OPTIONS: Final = tuple((f"Option{at} Name", f"Option{at} Value") for at in (1, 2, 3))
"""Columns that rows get for the options of a variant, as Shopify calls them."""
_MARK = re.compile(r"\[[A-Z]{1,3}\]|[\[\]]")
"""What stands around an option: "[S]Size=Large", "[Color=Black]"."""
_BETWEEN = re.compile(r"[,;|](?=[^=:,;|]+[=:])")
_PAIR = re.compile(r"\s*([^=:]+?)\s*[=:]\s*(.+?)\s*", re.DOTALL)


class Spread:
    """Rows of one file in order: a variant in text is one of the last product above it."""

    def __init__(self) -> None:
        self.product, self.of_all = "", dict[str, Any]()

    def __call__(self, row: dict[str, Any]) -> Iterable[dict[str, Any]]:
        """Return the rows that a row tells of: one for each variant in a list, else itself."""
        profile, told, listed = _columns_of(tuple(row))
        for column in listed:
            if objects := objects_in(row[column]):
                return _of_list(row, column, objects)
        if not told:
            return [row]
        own = next((str(row[name]).strip() for name in profile.ids if not is_nothing(row.get(name))), "")
        by_id = {OWN: own} if profile.ids else {}
        prices = {
            name: row[name]
            for part in ("price", "sale")
            for name in profile.columns.get(part, ())
            if name in row
        }
        for column in told:
            text = str(row[column] or "").strip()
            options = pairs(text) if text[:1] == "[" or column not in profile.columns.get("title", ()) else {}
            if options and "sku" not in options and ";" not in "".join(options.values()):
                shared = {} if any(prices.values()) else self.of_all
                return [{**row, **shared, column: "", OF: self.product, **by_id, **_columns(options)}]
        self.product, self.of_all = own, prices  # also where it lists what its variants come in
        return [{**row, OF: "", **by_id, **_columns({})}]


@lru_cache(maxsize=4_096)
def _columns_of(columns: tuple[str, ...]) -> tuple[Profile, list[str], list[str]]:
    """Return the profile of columns, those that tell of options in text, and those that may list variants."""
    profile, usual = profile_of(columns), plain()
    told = () if profile == usual else profile.variants
    names = {folded(column): column for column in columns}
    text, lists = (
        [names[folded(one)] for one in of if folded(one) in names] for of in (told, usual.variants)
    )
    return profile, text, lists


def objects_in(value: Any) -> list[dict[str, Any]]:
    """Return a list of objects, [] for anything else."""
    return value if isinstance(value, list) and all(isinstance(one, dict) for one in value) else []


def pairs(text: str) -> dict[str, str]:
    """Read the options of a variant: "[S]Size=Large,[C]Color=Red", "Size: M|Color: Red"; {} of another text."""
    found = [_PAIR.fullmatch(part) for part in _BETWEEN.split(_MARK.sub("", text)[:2_000])]
    return {one[1]: one[2] for one in found if one} if all(found) else {}


def _columns(options: Mapping[str, str]) -> dict[str, str]:
    filled = [*options.items(), *[("", "")] * len(OPTIONS)]
    return {column: said for both, pair in zip(OPTIONS, filled) for column, said in zip(both, pair)}


def _of_list(
    product: dict[str, Any], column: str, variants: Iterable[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield a row a variant, with what its product says; what it says itself goes before that, but for its title."""
    called, usual = forms(product), plain().columns
    keys = [called.get(folded(name), "") for part in ("parent", "id", "title") for name in usual[part]]
    key = next((str(product[name]) for name in keys if name and not is_nothing(product[name])), "")
    options = product.get("options")
    names = (
        [one.get("name") if isinstance(one, dict) else one for one in options]
        if isinstance(options, list)
        else []
    )
    for one in variants:
        hidden = {column, "options", *(name for name in one if folded(name) not in usual["title"])}
        of_all = {name: said for name, said in product.items() if name not in hidden}
        values = [str(one[f"option{at}"] or "") for at in (1, 2, 3) if f"option{at}" in one]
        given = dict(zip(map(str, names or ["option"]), values or [str(one.get("title") or "")]))
        taken = ("option", "title") if values else ()
        own = {f"variant {printable(name)}": said for name, said in one.items() if not name.startswith(taken)}
        yield {**of_all, OF: key, **own, **_columns(given)}


def children_in(parent: str, text: str, count: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the id of each child that a row lists, "sku=A-S,size=S|sku=A-M,size=M", with its parent and options, of
    which `count` are taken."""
    for options in map(pairs, text.split("|")):
        if child := options.pop("sku", ""):
            names, values = zip(*[*options.items(), *[("", "")] * count][:count])
            yield child, {"parent": parent, "options": values, "option_names": names}
