"""Readers of what product files write in a field: stars, counts, paths, lists and tables in text."""

import ast
import json
import math
import re
from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Table
from functools import lru_cache
from typing import Any, Final

from ecomlab.catalog.ingest import types
from ecomlab.catalog.ingest.profiles import plain
from ecomlab.catalog.ingest.text import is_nothing, printable

RATING_TEXT, RATING_UNREAD = "rating written as text", "unreadable rating left out"
COUNT_UNREAD, STOCK_NONE, STOCK_SOME, UNIT = (
    "unreadable count left out",
    "stock below zero or in words: sold out",
    "stock in words: its number is drawn",
    "hours, weeks or months counted in days",
)
BROKEN_JSON, UNREAD_TABLE = "broken JSON mended", "unreadable details left out"
WRAPPED: Final = "list or object where a single value belongs"
"""Names of repairs."""
MOST_INSIDE: Final = 200
"""Names inside a column from which no more are looked for: a table of details has no end of them."""
_COUNT = re.compile(
    r"[^\d.,-]*(\d(?:[\d.,'’ ]*\d)?)(?: ?([kmb])\b)?(?![.,]?\d|%| ?/ ?\d| (?:out )?of\b)", re.IGNORECASE
)
"""A count, also in thousands or millions, as shops show them: "1.2K", "2M+", "(1,234)"; no "3/5", "10%" or "4 of 5"."""
_SCALES: Final = {"": 1, "k": 1_000, "m": 1_000_000, "b": 1_000_000_000}
_UNIT = re.compile(r"\d ?([hwm])[a-z]*\b", re.IGNORECASE)
_IN_DAYS: Final = {"h": 1 / 24, "w": 7, "m": 30}
"""In what but days a time is given, by its first letter."""
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
_SCALE_OF_STARS = re.compile(
    r"\s*(?:/|\b(?:out of|of|von|sur|de)\b)\s*(5|10|100)(?:\.0+)?\b|\s*(%)", re.IGNORECASE
)
"""Of how many stars a rating is: "4.5 out of 5", "9/10", "90%"."""
_LANGUAGE = re.compile(r"[a-z]{2}(?:[-_][A-Z]{2})?")
_VALUE: Final = ("value", "amount", "currency", "unitText", "unitCode")
"""What an object without a name says by, as schema.org calls it."""
_ROOT: Final = "Default Category/"
"""Where Magento's paths begin, also those of two levels."""
_LEVELS: Final = ("[>»]+", "::", r"\|", ";", r" [/\\] ")
"""What may stand between the levels of a category, the surest first."""
_DOTTED = re.compile(r"[a-z_]+(?:\.[a-z_]+)+")
_SLUG = re.compile(r"[a-z]{3,}(?:-[a-z]{3,})+")
_NUMBERED = re.compile(r"\s*\(#\w+\)\s*$")
"""A category's number in a shop, as Square writes it: "Coffee (#AB12CD)"."""
_NO_COMMA = re.compile(r"(['\"])\s+(['\"])")
"""Between the elements of a list as NumPy prints it."""


@lru_cache(maxsize=65_536, typed=True)
def read_rating(value: Any) -> tuple[int | None, tuple[str, ...]]:
    """Read a rating of 1 to 5 stars in tenths: 4.5, "4,5", "4.5 out of 5 stars", "9/10", "★★★★☆"; 0 stands for not
    rated."""
    if is_nothing(value) or isinstance(value, bool):
        return None, ()
    text = str(value)[:100].strip()
    scale = _SCALE_OF_STARS.search(text)
    most = float(scale[1] or 100) if scale else 5.0
    found = _NUMBER.search(text[: scale.start()] + text[scale.end() :] if scale else text)
    stars = float(found.group().replace(",", ".")) * 5 / most if found else float(text.count("★") or math.nan)
    if stars == 0:
        return None, ()
    if not 1 <= stars <= 5 or text.startswith("-"):
        return None, (RATING_UNREAD,)
    return round(10 * stars), () if math.isclose(_number(text), stars) else (RATING_TEXT,)


@lru_cache(maxsize=65_536, typed=True)
def read_count(value: Any, most: int = 2**31 - 1) -> tuple[int | None, tuple[str, ...]]:
    """Read a whole number of at least 0, at most `most`: 1234, "1,234 ratings", "(1.234)", "1.2k", "12.0"."""
    if is_nothing(value) or isinstance(value, bool):
        return None, ()
    number = _number(str(value))
    if isinstance(value, str) and not value.isdigit() and (found := _COUNT.match(value.strip()[:100])):
        from price_parser.parser import parse_number

        number = _number(str(parse_number(found[1]))) * _SCALES[(found[2] or "").lower()]
    if not 0 <= number < math.inf:
        return None, (COUNT_UNREAD,)
    return int(min(round(number, 6), most)), ()


def read_stock(value: Any, most: int = 2**31 - 1) -> tuple[int | None, tuple[str, ...]]:
    """Read the units in stock, at most `most`: a count, or 0 where it is below zero or in words: "sold out"; None for
    "yes"."""
    text = re.sub(r"[\W_]", "", str(value)[:100].rpartition("/")[2]).lower()  # "https://schema.org/InStock"
    if text in plain().sold_out or _number(str(value)) < 0:  # also a False
        return 0, (STOCK_NONE,)
    if text in plain().in_stock:
        return None, (STOCK_SOME,)
    return read_count(value, most)


def read_days(value: Any, most: int) -> tuple[int | None, tuple[str, ...]]:
    """Read a number of days, at most `most`, the lowest of a range: 2, "2-3 days"; "48h" is 2, "2 weeks" 14."""
    days, repairs = read_count(value)
    if days is not None and isinstance(value, str) and (unit := _UNIT.search(value[:100])):
        days, repairs = math.ceil(days * _IN_DAYS[unit[1].lower()]), (*repairs, UNIT)
    return None if days is None else min(days, most), repairs


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def single(value: Any) -> tuple[Any, tuple[str, ...]]:
    """Return the one value that a column of single values means, with a reason where a list or an object stands there.

    A list is joined; of an object its name or value counts: "Acme" of {"id": 5, "name": "Acme"}; of one by
    languages the English, else the first.
    """
    if isinstance(value, str | int | float):
        return value, ()
    if is_nothing(value):
        return None, ()
    mark = ", "
    if isinstance(value, dict):
        names, mark = ("name",) if "name" in value else _VALUE, " "
        if all(_LANGUAGE.fullmatch(str(name)) for name in value):
            names = (min(value, key=lambda name: not str(name).startswith("en")),)
        value = [value[name] for name in names if name in value]
    if not isinstance(value, list | tuple):
        return str(value)[:200], ()
    said = [one for one in value[:20] if not (isinstance(one, list | tuple | dict) or is_nothing(one))]
    return mark.join(str(one)[:200] for one in said), (WRAPPED,)


def read_path(value: Any) -> tuple[str, ...]:
    """Read a category path, the broadest first, in any of the usual notations.

    A list, a list of lists, JSON or a Python literal in text, or parts separated by ">", "|", ";", "::", " / ",
    "/a/b/c", or dots without spaces ("electronics.audio.headphone"). Of several paths from one root the deepest counts:
    "Home > Lamps > Desk Lamps, Home > Sale".
    """
    if isinstance(value, dict):
        value = value.get("path") or single(value)[0]
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "("):
        value = read_json(value)[0] or value.strip("[]()")
    if isinstance(value, list | tuple) and value and isinstance(value[0], list | tuple):
        value = value[0]
    if isinstance(value, list | tuple):
        parts = [single(part)[0] for part in value]
    else:
        text = _first_path(str(single(value)[0] or "")[:1_000])
        slashed = text.startswith(("/", _ROOT)) or text.count("/") > 1
        other = "/" if slashed else r"\." if _DOTTED.fullmatch(text) else "$"
        parts = re.split(next((mark for mark in _LEVELS if re.search(mark, text)), other), text)
    stripped = (" ".join(_slug_words(str(part)).split()) for part in parts)
    return tuple(part for part in stripped if not is_nothing(part))


def _slug_words(part: str) -> str:
    """Return the words of a category's address: "running-shoes" is "Running Shoes", "t-shirts" stay."""
    is_slug = _SLUG.fullmatch(part) and types.packed(part) == part
    return part.replace("-", " ").title() if is_slug else part


def _first_path(text: str) -> str:
    """Return the deepest of the paths that a text lists, the first of several; they begin with one root.

    A path to a shelf, as "/all" or "Shop All" is one, gives way to the others.
    """
    text = _NUMBERED.sub("", text)
    if ">" in text or "/" in text:
        listed = re.split(r"(;\s*|,\s*(?=/))", text)  # "Home, Kitchen > Lamps" is one path
        things = [at for at in range(0, len(listed), 2) if not types.is_shelf(listed[at])]
        text = "".join(listed[at] + "".join(listed[at + 1 : at + 2]) for at in things).rstrip(";, ") or text
    root = re.split("[>/,;|]", text, maxsplit=1)[0].strip()
    between = "[,;|]" if ">" in text else "[,;]"
    paths = re.split(rf"{between}\s*(?={re.escape(root)}\s*(?:[>/,;|]|$))", text) if root else [text]
    return max(paths, key=lambda path: path.count(">") or path.count("/"))


def read_json(text: str) -> tuple[Any, tuple[str, ...]]:
    """Read JSON in text, also a Python literal or broken JSON; None, with a reason, where nothing can be read."""
    for read in (json.loads, _literal, mended):
        try:
            value = read(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        if read is not mended or (isinstance(value, dict | list) and value):
            return value, () if read is json.loads else (BROKEN_JSON,)
    return None, (UNREAD_TABLE,)


def _literal(text: str) -> Any:
    """Read a Python literal, a list as NumPy prints it, or a Ruby hash. Raises ValueError and the like for others."""
    return ast.literal_eval(_NO_COMMA.sub(r"\1, \2", text.replace('"=>', '": ')))


def mended(text: str) -> Any:
    """Read broken JSON as it was probably meant; None where nothing can be read."""
    from json_repair import repair_json

    try:
        return repair_json(text[:100_000].replace('"=>', '": '), return_objects=True)
    except Exception:  # a library for broken input, and what it meets is unbounded
        return None


def read_table(value: Any) -> tuple[dict[str, str], tuple[str, ...]]:
    """Read names and values: an object, also in text as JSON or not quite, "Color: Black; Size: M" or "color=Black"."""
    repairs: tuple[str, ...] = ()
    if is_nothing(value):
        return {}, ()
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        value, repairs = read_json(value)
    elif isinstance(value, str):
        mark, between = (":", r"[;\n|]") if ":" in value else ("=", r"[,;](?=[^=,;]+=)")
        pairs = (part.partition(mark) for part in re.split(between, value[:20_000]))
        value = {name: said.strip() for name, sign, said in pairs if sign}
    if isinstance(value, dict) and len(value) == 1 and isinstance(inner := next(iter(value.values())), list):
        value = inner  # {"specifications": [{"key": "Color", "value": "Black"}]}
    if isinstance(value, list | tuple):
        value = dict(filter(None, map(_pair, value)))
    if not isinstance(value, dict):
        return {}, repairs or (UNREAD_TABLE,)
    flat = {str(name)[:100].strip(): said for name, said in value.items() if not is_nothing(said)}
    return {name: str(said)[:500] for name, said in flat.items() if not isinstance(said, dict)}, repairs


def _pair(entry: Any) -> tuple[str, Any] | None:
    """Return the name and value of {"name": "Color", "value": "Black"} or ["Color", "Black"]."""
    if isinstance(entry, dict):
        name = entry.get("name", entry.get("key"))
        said = single({key: entry[key] for key in _VALUE if key in entry})[0]
        return (str(name), said) if name and said else None
    return (str(entry[0]), entry[1]) if isinstance(entry, list | tuple) and len(entry) == 2 else None


def read_list(value: Any) -> list[Any]:
    """Read a list of sentences: a list, one in text, an object or a single one."""
    if isinstance(value, str) and value.lstrip()[:1] == "[":
        value = read_json(value)[0] or value
    if isinstance(value, dict):
        return [f"{name}: {said}" for name, said in value.items()]
    return [*value] if isinstance(value, list | tuple) else [value]


def value_at(row: Table[str, Any], column: str) -> Any:
    """Return what a row says in a column, which may be inside another one's objects."""
    if "." not in column or column in row:
        return row.get(column)
    value: Any = row
    for name in column.split("."):
        value = (_object(value) or {}).get(name)
    return value


def _object(value: Any) -> dict[Any, Any] | None:
    """Return an object, also as the only one of a list: a page's offers are often one."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, dict) else None


def columns_of(rows: Iterable[Table[str, Any]]) -> list[str]:
    """List the columns of rows, in the order in which they come."""
    return list(dict.fromkeys(column for row in rows for column in row))


def inside(rows: Sequence[Table[str, Any]], column: str) -> list[str]:
    """List the columns inside the objects of a column; a name with a dot of its own cannot be told."""
    if "." in column and any(column in row for row in rows):
        return []
    objects = (value for row in rows if (value := _object(value_at(row, column))))
    names = dict.fromkeys(str(name) for value in objects for name in value)
    return [f"{column}.{name}" for name in names if name and "." not in name and printable(name) == name][
        :MOST_INSIDE
    ]


def is_unread(rows: Sequence[Table[str, Any]], column: str) -> bool:
    """Tell whether most values of a column are objects, of which none says which of its values is meant."""
    given = [value for row in rows if not is_nothing(value := value_at(row, column))]
    unread = sum(_object(value) is not None and is_nothing(single(value)[0]) for value in given)
    return 2 * unread > len(given)
