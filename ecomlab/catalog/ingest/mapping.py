"""Which column of a source holds what: read from TOML, or guessed from names and values by a platform's profile."""

import json
import re
from collections.abc import Mapping as Table
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import Field

from ecomlab.catalog.ingest.attributes import is_attribute, name_of
from ecomlab.catalog.ingest.prices import currency_of, read_price
from ecomlab.catalog.ingest.profiles import Profile, folded, forms, plain, profile_of
from ecomlab.catalog.ingest.text import is_nothing
from ecomlab.catalog.ingest.values import columns_of, inside, is_unread, single, value_at
from ecomlab.settings import Strict, load_toml, read_toml
from ecomlab.suggest import unknown

MANY: Final = ("category", "text", "options")
ANYWHERE: Final = ("price", "sale", "currency", "brand", "rating", "reviews")
"""What is looked for in any object, as in `{"offers": {"price": 5}}`; the rest only beside the title."""
MOST_WORDS: Final = 12
"""Words of a description, in the mean, up to which it is the name of a thing."""
DEEPEST: Final = 3
"""Objects within one another that are looked into for it."""
_WORD = re.compile(r"[^\W\d_]{2,}")
_CODE = re.compile(r"[\d\W]+|(?:[0-9a-f]{16,}\W*)+")
"""Categories by number, or by the ids of a database."""
_BESIDE = re.compile(r"ship|deliver|tax|fee|deposit", re.IGNORECASE)
"""Whose price is paid beside that of the product."""
_LISTED = re.compile(r"[^,;|]{1,20}(?:([,;|])\s?[^,;|]{1,20})(?:\1\s?[^,;|]{1,20})*")
"""A cell that lists short values: "S, M, L"."""
_FINER = re.compile(r"subcategory|\w*[2-9]")
_DECIMAL = re.compile(r"\d+,\d\d?")


class Columns(Strict):
    """Columns of the source by what they hold; an empty name where the source has none."""

    title: str
    id: str = ""
    other_id: str = ""
    """By which variants may name their parent too, and the id of rows without one: "id:12"."""
    parent: str = ""
    """What rows that are variants of one product share."""
    price: str = ""
    surcharge: str = ""
    """What a variant costs beside the price of its product."""
    sale: str = ""
    """A price that counts where it is lower."""
    currency: str = ""
    """Of the price, where it stands in a column of its own."""
    brand: str = ""
    category: tuple[str, ...] = ()
    """A path, or levels in several columns, the broadest first."""
    department: str = ""
    rating: str = ""
    reviews: str = ""
    text: tuple[str, ...] = ()
    details: str = ""
    """Attributes as an object or in text."""
    stock: str = ""
    days: str = ""
    children: str = ""
    """What lists the ids and options of variants that are rows of their own."""
    options: tuple[str, ...] = ()
    """In what the variants of a product differ."""


ONE: Final = tuple(name for name in Columns.model_fields if name not in MANY)


class Mapping(Strict):
    """How a source is to be read; the schema of a mapping file."""

    columns: Columns
    attributes: dict[str, str] = Field(default_factory=dict)
    """Further attributes, by the name they get: `material = "Fabric"`."""
    option_names: dict[str, str] = Field(default_factory=dict)
    """For a column of option values, the column that says what the option is."""
    hidden: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """What columns say of products that are not for sale: `"Status" = ["draft", "archived"]`."""
    profile: str = ""
    """The platform whose columns these are, as the build's table names it."""
    currency: str = ""
    """Of prices, as in "USD"; by default the one that most prices name, else a column's name, else US dollars."""
    kinds: dict[str, str] = Field(default_factory=dict)
    """What customers call the things of a category: `"Isomatten" = "Sleeping Mat"`; the category's last level, or the
    name that it has in the shop."""
    brand: str = ""
    """Of products for which the source names none: a maker's own export has no column of brands."""
    fill_down: bool = False
    """Whether rows without title and parent are variants of the product above them."""
    several: str = ""
    """What stands between several categories, of which the first that names a thing counts."""
    levels: str = ""
    cells: str = Field(default="", max_length=1)
    """What stands between levels of a category, and between values of an option that one cell lists."""
    nothing: tuple[str, ...] = ()
    """What stands where there is no value, in lower case, beside what usually does ("does not apply")."""
    delimiter: str = Field(default="", max_length=1)
    header: bool = True
    """Whether the first line of a CSV names its columns; where it does not, they are called "column 1", "column 2"."""

    def named(self) -> list[str]:
        """List every column that it names."""
        of_one = [getattr(self.columns, name) for name in ONE]
        of_many = [column for name in MANY for column in getattr(self.columns, name)]
        others = [*self.attributes.values(), *self.option_names, *self.option_names.values(), *self.hidden]
        return [column for column in (*of_one, *of_many, *others) if column]

    def check(self, rows: Sequence[Table[str, Any]]) -> None:
        """Raise ValueError for a column that these rows lack."""
        columns = columns_of(rows)
        for column in self.named():
            known = [*columns, *inside(rows, column.rpartition(".")[0])]
            if column not in known:
                raise ValueError(f"mapping: {unknown('column', column, known)}")

    def unread(self, rows: Sequence[Table[str, Any]]) -> list[str]:
        """List the columns from which nothing is read."""
        read = {part for name in self.named() for part in (name, name.partition(".")[0])}
        return [column for column in columns_of(rows) if column not in read]


def read_mapping(path: Path, rows: Sequence[Table[str, Any]] = ()) -> Mapping:
    """Read a mapping file. One that names no title completes the mapping that is guessed from the first `rows`.

    Raises ValueError with a line for each mistake.
    """
    whole = not rows or "title" in load_toml(path).get("columns", {})
    return read_toml(path, Mapping, under={} if whole else guess(rows).model_dump(exclude_defaults=True))


def guess(rows: Sequence[Table[str, Any]]) -> Mapping:
    """Guess the mapping from the columns of the first rows. Raises ValueError where none can be the title."""
    columns = columns_of(rows)
    profile = profile_of(columns)
    found: dict[str, Any] = {name: () if name in MANY else "" for name in Columns.model_fields}
    level = [column for column in columns if not column.startswith("@")]  # of JSON-LD
    called = forms(level)
    pairs = {
        called[folded(one)]: folded(name) for one, name in profile.options.items() if folded(one) in called
    }
    option_names = {one: called[name] for one, name in pairs.items() if name in called}
    hidden = {folded(one): said for one, said in (plain().hidden | profile.hidden).items()}
    hidden = {called[one]: said for one, said in hidden.items() if one in called}
    for _ in range(DEEPEST + 1):  # what no column says by itself may stand inside the objects of one
        _find(rows, called, found, profile)
        kept = {one for name in MANY for one in found[name]} | {
            found[name] for name in ONE if name == "details" or not is_unread(rows, found[name])
        }
        level = [path for column in level if column not in kept for path in inside(rows, column)]
        called = {}
        for path in level:
            parent, _, last = path.rpartition(".")
            outer, own = folded(parent.rpartition(".")[2]), folded(last)
            for form in (own, outer + own, own + outer):
                called.setdefault(form, path)
    if not found["price"]:
        found["price"], found["sale"] = found["sale"], ""
    if not found["title"]:
        raise ValueError(
            f"no column is called a title; there are {', '.join(columns)}. Name one in a mapping file: [columns] title "
            '= "", after header = false where the first line of a CSV names no columns'
        )
    taken = {found[name] for name in ONE}
    for name in MANY:
        found[name] = tuple(column for column in found[name] if column not in taken)
    levels = [name for name in found["category"] if _is_in_words(rows, name)]
    finer = [name for name in levels if _FINER.fullmatch(folded(name))]  # stand after what is in one column
    found["category"] = tuple(dict.fromkeys((*[name for name in levels if name not in finer][:1], *finer)))
    listed = {one: mark for one in found["options"] if profile == plain() and (mark := _listed(rows, one))}
    found["options"] = tuple(pairs) or _options(rows, found) or tuple(listed)
    used = {*hidden, *(found[name] for name in ONE), *(column for name in MANY for column in found[name])}
    return Mapping(
        columns=Columns(**found),
        attributes=_attributes([column for column in columns if column not in used], profile),
        option_names=option_names,
        hidden=hidden,
        profile=profile.name,
        fill_down=profile.fill_down,
        several=profile.several,
        levels=profile.levels,
        cells=profile.cells or next(iter(listed.values()), ""),
        nothing=tuple(said for said in profile.nothing if said not in plain().nothing),
    )


def _find(
    rows: Sequence[Table[str, Any]], called: Table[str, str], found: dict[str, Any], profile: Profile
) -> None:
    """Fill in what these columns hold and none above them does; of an object that says nothing by itself, its parts."""
    for name in Columns.model_fields:
        if found[name] and (name in MANY or name == "details" or not is_unread(rows, found[name])):
            continue
        taken = {found[other] for other in ONE if other != name}
        named = _named(profile, name)
        starts = tuple(folded(one) for one in named if one.endswith("*")) or ("*",)
        forms_of = [*map(folded, named), *(form for form in [*called][::-1] if form.startswith(starts))]
        listed = dict.fromkeys(called[form] for form in forms_of if form in called)
        able = [one for one in listed if one not in taken and _is_able(rows, name, one, found)]
        found[name] = tuple(able) if name in MANY else _first(rows, name, able)


def _named(profile: Profile, name: str) -> tuple[str, ...]:
    """Return what columns that hold `name` are called, the surest first."""
    return profile.columns.get(name, plain().columns.get(name, ()))


def _first(rows: Sequence[Table[str, Any]], name: str, able: Sequence[str]) -> str:
    """Choose the surest of the columns that may hold `name`; of prices and ids one in which few rows have none, as most
    have no "Unit price" or GTIN."""
    if len(able) < 2 or name not in ("price", "id"):
        return able[0] if able else ""
    given = []
    for column in able:
        said = [str(one) for row in rows if not is_nothing(one := single(value_at(row, column))[0])]
        if name == "price":
            said = [one for one in said if read_price(one, currency_of(one) or "USD")[0] is not None]
        given.append([one for one in said if one.lower() not in plain().nothing])
    most = max(map(len, given))
    return next(column for column, of_one in zip(able, given) if 2 * len(of_one) >= most)


def _is_in_words(rows: Sequence[Table[str, Any]], column: str) -> bool:
    """Tell whether a column names categories: it may be empty, or have their numbers in a marketplace's list."""
    given = [row[column] for row in rows if not is_nothing(row.get(column))]
    return any(not _CODE.fullmatch(str(said)) for said in given)


def _is_able(rows: Sequence[Table[str, Any]], name: str, path: str, found: Table[str, Any]) -> bool:
    """Tell whether what is inside an object can hold it: no picture's title, no price of shipping."""
    around = path.rpartition(".")[0]
    if name == "title" and folded(path) in map(folded, plain().columns["text"]):  # a list's "Description"
        said = [str(row[path]) for row in rows if not is_nothing(row.get(path))]
        return bool(said) and len(_WORD.findall(" ".join(said))) <= MOST_WORDS * len(said)
    if not around or path in columns_of(rows):
        return True
    if name == "title":
        texts = [value for row in rows if isinstance(value := value_at(row, path), str)]
        return 2 * sum(len(_WORD.findall(text)) > 1 for text in texts) > len(rows)
    if name in ANYWHERE:
        return name not in ("price", "sale", "currency") or not _BESIDE.search(path)
    beside = [found["title"].rpartition(".")[0], found[name]]
    return around in beside or (name == "stock" and around == found["price"].rpartition(".")[0])  # an offer's


def _listed(rows: Sequence[Table[str, Any]], column: str) -> str:
    """Return the sign between the values that most cells of a column list: "," of "S, M, L"; "" for none."""
    given = [str(row[column]) for row in rows if not is_nothing(row.get(column))]
    marks = [match[1] for one in given if (match := _LISTED.fullmatch(one)) and not _DECIMAL.fullmatch(one)]
    return max(marks, key=marks.count) if 2 * len(marks) > len(given) else ""


def _options(rows: Sequence[Table[str, Any]], found: Table[str, Any]) -> tuple[str, ...]:
    """Return the columns in which variants usually differ where rows share a parent, as an id that repeats is one."""
    ids = {str(row.get(found["id"])) for row in rows}
    shared = found["parent"] or (found["id"] and len(ids) <= 0.7 * len(rows))
    return tuple(found["options"]) if shared else ()


def _attributes(columns: Sequence[str], profile: Profile) -> dict[str, str]:
    """Return the columns that give attributes, by name."""
    options = {*map(folded, _named(profile, "options"))}
    found: dict[str, str] = {}
    for column in columns:
        if is_attribute(column) or folded(column) in options:
            found.setdefault(name_of(column), column)
    return found


def to_toml(mapping: Mapping) -> str:
    """Write a mapping as the TOML that `read_mapping` reads."""
    filled = mapping.model_dump(mode="json", exclude_defaults=True)
    lines = [f"{key} = {_toml(value)}" for key, value in filled.items() if not isinstance(value, dict)]
    for name, table in filled.items():
        if isinstance(table, dict):
            lines += [f"[{name}]", *(f"{_toml(key)} = {_toml(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def slug(name: str) -> str:
    """Return an attribute's name as a column of the product table spells it: "Frame Size" is "frame_size"."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "attribute"
