"""Readers of what product files write in a field: stars, counts, paths, lists and tables in text."""

import ast
import json
import math
import re
from functools import lru_cache
from typing import Any, Final

from ecomlab.catalog.ingest.profiles import plain
from ecomlab.catalog.ingest.text import is_nothing

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
DEEPEST: Final = 40
"""Brackets that may be open at once in JSON; parsers recurse."""
_VOCABULARY = re.compile(r"https?://schema\.org/", re.IGNORECASE)
_COUNT = re.compile(
    r"(?:[(~≈>≥+]|[a-z]+(?: than| least)?)?\s*"
    r"(\d{1,3}(?:[,. '’]\d{3})+|\d+(?:[.,]\d+)?(?= ?[kKMB]\b)|\d+)(?: ?([kKMB])\b)?"
    r"(?![\d%/]|[.,]\d| ?/ ?\d| (?:out )?of\b)",
    re.IGNORECASE,
)
"""A count, also in thousands or millions, as shops show them: "1.2K", "2M+", "(1,234)"; no "3/5", "10%" or "4 of 5"."""
_UNIT = re.compile(
    r"\d ?(?:(h|hrs?|hours?|heures?|horas?|stunden?)|(w|wks?|weeks?|semaines?|semanas?|wochen?)"
    r"|(months?|mois|mes|meses|monaten?|monate))\b",
    re.IGNORECASE,
)
"""In what but days a time is given."""
_SCALES: Final = {"": 1, "k": 1e3, "m": 1e6, "b": 1e9}
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
_SCALE_OF_STARS = re.compile(
    r"\s*(?:/|\b(?:out of|of|von|sur|de)\b)\s*(5|10|100)(?:\.0+)?\b|\s*(%)", re.IGNORECASE
)
"""Of how many stars a rating is: "4.5 out of 5", "9/10", "90%"."""
_UNITS: Final = ("unitText", "unitCode")
"""What schema.org calls the unit of a value."""
_LEVEL = re.compile(r"[>/]")
_ROOT = re.compile(r"[>/,;|]")
_EQUALS = re.compile(r"\s*[\w .-]{1,60}=")
_BLANKS = re.compile(r"[^\S\n]+")
_BULLET = re.compile(r"\s*(?:[•●▪◦‣·*]|\n\s*[-–]?\s*)\s*")
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
    return round(10 * stars), () if _number(text) == stars else (RATING_TEXT,)


@lru_cache(maxsize=65_536, typed=True)
def read_count(value: Any, most: int = 2**31 - 1) -> tuple[int | None, tuple[str, ...]]:
    """Read a whole number of at least 0, at most `most`: 1234, "1,234 ratings", "(1.234)", "1.2k", "12.0"."""
    if is_nothing(value) or isinstance(value, bool):
        return None, ()
    text = str(value).strip()[:100]
    found = _COUNT.match(text)
    number = _number(text)
    if found and (math.isnan(number) or (isinstance(value, str) and not found[1].isdigit())):
        said = found[1].replace(",", ".") if found[2] else re.sub(r"\D", "", found[1])
        number = round(float(said) * _SCALES[(found[2] or "").lower()])
    if not 0 <= number < math.inf:
        return None, (COUNT_UNREAD,)
    return int(min(number, most)), ()


def read_stock(value: Any, most: int = 2**31 - 1) -> tuple[int | None, tuple[str, ...]]:
    """Read the units in stock, at most `most`: a count, or 0 where it is below zero or in words: "sold out"; None for
    "yes"."""
    text = re.sub(r"[\W_]", "", _VOCABULARY.sub("", str(value)[:100])).lower()
    if text in plain().sold_out or _number(str(value)) < 0:  # also a False
        return 0, (STOCK_NONE,)
    if text in plain().in_stock:
        return None, (STOCK_SOME,)
    return read_count(value, most)


def read_days(value: Any, most: int) -> tuple[int | None, tuple[str, ...]]:
    """Read a number of days, at most `most`, the lowest of a range: 2, "2-3 days"; "48h" is 2, "2 weeks" 14."""
    days, repairs = read_count(value)
    unit = _UNIT.search(value[:100]) if days is not None and isinstance(value, str) else None
    if days is None or not unit:
        return None if days is None else min(days, most), repairs
    in_days = math.ceil(days / 24) if unit[1] else days * (7 if unit[2] else 30)
    return min(in_days, most), (*repairs, UNIT)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def single(value: Any) -> tuple[Any, tuple[str, ...]]:
    """Return the one value that a column of single values means, with a reason where a list or an object stands there.

    A list is joined; of an object its name or value counts: "Acme" of {"id": 5, "name": "Acme"}.
    """
    if isinstance(value, str | int | float):
        return value, ()
    if is_nothing(value):
        return None, ()
    mark = ", "
    if isinstance(value, dict):
        names, mark = ("name",) if "name" in value else ("value", "amount", "currency", *_UNITS), " "
        value = [value[name] for name in names if name in value]
    if not isinstance(value, list | tuple):
        return str(value)[:200], ()
    plain = (
        part for part in value[:20] if not isinstance(part, list | tuple | dict) and not is_nothing(part)
    )
    return mark.join(str(part)[:200] for part in plain), (WRAPPED,)


def read_path(value: Any) -> tuple[str, ...]:
    """Read a category path, the broadest first, in any of the usual notations.

    A list, a list of lists, JSON or a Python literal in text, or parts separated by ">", "|", ";", "::", " / ",
    "/a/b/c", or dots without spaces ("electronics.audio.headphone"). Of several paths from one root the deepest counts:
    "Home > Lamps > Desk Lamps, Home > Sale".
    """
    if is_nothing(value):
        return ()
    if isinstance(value, str) and value.lstrip()[:1] in "[(":
        value = read_json(value)[0] or value.strip("[]()")
    if isinstance(value, dict):
        value = _named(value)
    if isinstance(value, list | tuple):
        first = value[0] if value else ()
        return read_path(first) if isinstance(first, list | tuple) else _parts(map(_named, value))
    text = _first_path(str(value)[:1_000])
    for separator in (">", "»", "::", "|", ";", " / ", " \\ "):
        if separator in text:
            return _parts(re.split(rf"{re.escape(separator)}+", text))
    if text.startswith("/") or text.count("/") > 1:
        return _parts(text.split("/"))
    if re.fullmatch(r"[a-z_]+(?:\.[a-z_]+)+", text):
        return _parts(text.replace("_", " ").split("."))
    return _parts([text])


def _first_path(text: str) -> str:
    """Return the deepest of the paths that a text lists, the first of several; they begin with one root."""
    if not (mark := _LEVEL.search(text)) or not (root := _ROOT.split(text, maxsplit=1)[0].strip()):
        return text
    between = "[,;|]" if mark[0] == ">" else "[,;]"
    paths = re.split(rf"{between}\s*(?={re.escape(root)}\s*(?:{between}|{mark[0]}|$))", text)
    return max(paths, key=lambda path: path.count(mark[0]))


def _named(part: Any) -> str:
    """Return the name of a level: of {"id": 5, "name": "Lamps"}, as shops' interfaces have it, "Lamps"."""
    return str(part.get("name", "")) if isinstance(part, dict) else str(part)


def _parts(parts: Any) -> tuple[str, ...]:
    stripped = (" ".join(part.split()) for part in parts)
    return tuple(part for part in stripped if not is_nothing(part))


def read_json(text: str) -> tuple[Any, tuple[str, ...]]:
    """Read JSON in text, also a Python literal or broken JSON; None, with a reason, where nothing can be read."""
    if is_deep(text):
        return None, (UNREAD_TABLE,)
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


def is_deep(text: str) -> bool:
    """Tell whether more brackets are open at once than parsers should be given; they recurse."""
    if text.count("[") + text.count("(") + text.count("{") <= DEEPEST:
        return False
    deepest = depth = 0
    for bracket in re.findall(r"[\[\](){}]", text):
        depth += 1 if bracket in "[({" else -1
        deepest = max(deepest, depth)
    return deepest > DEEPEST


def read_table(value: Any) -> tuple[dict[str, str], tuple[str, ...]]:
    """Read names and values: an object, also in text as JSON or not quite, "Color: Black; Size: M" or "color=Black"."""
    repairs: tuple[str, ...] = ()
    if is_nothing(value):
        return {}, ()
    if isinstance(value, str):
        if value.lstrip()[:1] in ("{", "["):
            value, repairs = read_json(value)
        else:
            mark, between = ("=", r"[,;](?=[^=,;]+=)") if _EQUALS.match(value) else (":", r"[;\n|]")
            pairs = (part.partition(mark) for part in re.split(between, value[:20_000]))
            value = {name: said.strip() for name, sign, said in pairs if sign}
    if isinstance(value, dict) and len(value) == 1 and isinstance(inner := next(iter(value.values())), list):
        value = inner  # {"specifications": [{"key": "Color", "value": "Black"}]}
    if isinstance(value, list | tuple):  # [{"name": "Color", "value": "Black"}] or [["Color", "Black"]]
        value = dict(filter(None, map(_pair, value)))
    if not isinstance(value, dict):
        return {}, repairs or (UNREAD_TABLE,)
    flat = {str(name)[:100].strip(): said for name, said in value.items() if not is_nothing(said)}
    return {name: str(said)[:500] for name, said in flat.items() if not isinstance(said, dict)}, repairs


def _pair(entry: Any) -> tuple[str, Any] | None:
    if isinstance(entry, dict):
        names = {str(name).lower(): said for name, said in entry.items()}
        name = names.get("name", names.get("key"))
        if name is None or "value" not in names:
            return None
        unit = names.get("unittext") or names.get("unitcode")
        return str(name), f"{names['value']} {unit}" if isinstance(unit, str) else names["value"]
    if isinstance(entry, list | tuple) and len(entry) == 2:
        return str(entry[0]), entry[1]
    return None


def read_list(value: Any) -> list[str]:
    """Read a list of sentences: a list, one in text, or bullets and lines."""
    if is_nothing(value):
        return []
    if isinstance(value, str) and value.lstrip()[:1] == "[":
        value = read_json(value)[0] or value
    if isinstance(value, dict):
        value = [f"{name}: {said}" for name, said in value.items()]
    if isinstance(value, str):
        value = _BLANKS.sub(" ", value)  # a run of blanks would cost its length squared
        value = _BULLET.split(value) if _BULLET.search(value) else [value]
    if not isinstance(value, list | tuple):
        value = [value]
    return [str(part).strip() for part in value if not is_nothing(part)]
