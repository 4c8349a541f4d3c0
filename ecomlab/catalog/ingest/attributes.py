"""Attributes of real products, read from columns, detail tables and titles into normal forms, each with its source."""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field

from ecomlab.catalog.ingest.profiles import bare, plain
from ecomlab.catalog.ingest.types import singular
from ecomlab.settings import Strict, read_toml

FILE: Final = Path(__file__).with_name("attributes.toml")
_LONGEST: Final = 4
"""Words of a spelling."""
_SAID: Final = 40
"""Characters of a source that are kept."""
_MEASURE = re.compile(r"(?<![\w.,/-])(\d{1,5}(?:\.\d{1,2})?)[ -]?(fl oz|fluid ounces|[a-z]+)(?![\w/])")
_PACK_OF = re.compile(r"\b(?:pack|set|case|box) of (\d{1,4})\b")
_WORD = re.compile(r"[^\s,;()|\[\]]+")
_DIGIT = re.compile(r"\d")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_UNIT = re.compile(r"\(([A-Za-z]+)\)\W*$")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_ASKING: Final = frozenset(
    "the your choose select pick which elige elija escoge selecciona choisir choisissez wähle wählen wybierz".split()
)
"""Words by which a shop's page asks for an option: "Choose ring size"."""


class Attribute(Strict):
    """An attribute that products are searched for."""

    phrase: Annotated[str, Field(pattern=r"^[^{}]*\{\}[^{}]*$")]
    keys: tuple[str, ...]
    titles: bool
    after: tuple[str, ...] = ()
    values: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    units: dict[str, str] = Field(default_factory=dict)
    shown: dict[str, str] = Field(default_factory=dict)


class _File(Strict):
    """Schema of `attributes.toml`."""

    attributes: dict[str, Attribute]


Found = tuple[str, str]
"""A value in its normal form, and where it was read: ("Black", "title: Blk"), ("Black", "details.Color: Blk")."""


@cache
def known() -> dict[str, Attribute]:
    """Read the attributes that are looked for, once per process."""
    return read_toml(FILE, _File).attributes


@cache
def _spellings() -> dict[str, dict[str, str]]:
    """By attribute, its normal forms by spelling in lower case."""
    return {
        name: {form.lower(): value for value, others in one.values.items() for form in (value, *others)}
        for name, one in known().items()
    }


@cache
def _in_titles() -> tuple[dict[str, tuple[str, str]], dict[str, int], dict[str, str]]:
    """What titles are searched for: (attribute, normal form) by spelling, the most words of a spelling by its first
    one, as most words of a title begin none, and attributes by unit."""
    asked = {name: one for name, one in known().items() if one.titles}
    closed = {form: (name, value) for name in asked for form, value in _spellings()[name].items()}
    begins: dict[str, int] = {}
    for words in map(str.split, closed):
        begins[words[0]] = max(begins.get(words[0], 0), min(len(words), _LONGEST))
    return closed, begins, {unit: name for name, one in asked.items() for unit in one.units}


@cache
def _keys() -> dict[str, list[str]]:
    """Attributes by what tables and columns call them."""
    named: dict[str, list[str]] = {}
    for name, one in known().items():
        for key in dict.fromkeys((name.replace("_", " "), *one.keys)):
            named.setdefault(key, []).append(name)
    return named


def is_attribute(column: str) -> bool:
    """Tell whether a column's name is that of an attribute."""
    return bool(names_of(bare(column)))


@lru_cache(maxsize=65_536)
def name_of(column: str) -> str:
    """Return the name of the attribute that a column or an option holds.

    It is that of a known one ("Colors", "Talla", "Choose ring size" and "Talla del calzado" are color and size), else
    its own in lower case, the last word in the singular.
    """
    words = [word for word in _folded(bare(column)).split() if word not in _ASKING] or ["attribute"]
    words[-1] = singular(words[-1])
    stems = [
        word[:end] for word in (words[-1], singular(words[0])) for end in (None, -1, -2)
    ]  # "Größen", "Kolory"
    for form in (" ".join(words), *stems):
        if len(found := names_of(form)) == 1:
            return found[0]
    return "_".join(words)


@lru_cache(maxsize=65_536)
def with_unit(column: str, said: str) -> str:
    """Return what a column says with the unit that its name has: 41 of "Weight (lbs)" is "41 lbs"."""
    unit = _UNIT.search(column)
    return f"{said} {unit[1].lower()}" if unit and _NUMBER.fullmatch(said) else said


def read_title(title: str) -> tuple[dict[str, Found], tuple[str, ...]]:
    """Read attributes from a title, and name those that it gives two values for, of which neither is taken."""
    seen: dict[str, dict[str, str]] = {}
    for name, value, said in _read(title.lower()):
        seen.setdefault(name, {}).setdefault(value, f"title: {said[:_SAID]}")
    found = {name: next(iter(own.items())) for name, own in seen.items() if len(own) == 1}
    return found, tuple(name for name in seen if name not in found)


def _read(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield (attribute, normal form, what is written) of a text in lower case."""
    closed, begins, by_unit = _in_titles()
    words = [word.rstrip(".:-") for word in _WORD.findall(text)]
    at = 0
    while at < len(words):
        for count in range(min(begins.get(words[at], 0), len(words) - at), 0, -1):
            said = " ".join(words[at : at + count])
            hit = closed.get(said)
            if hit:
                after = known()[hit[0]].after
                if not after or (at and words[at - 1] in after):
                    yield *hit, said
                at += count
                break
        else:
            at += 1
    if not _DIGIT.search(text):
        return
    measures = [(by_unit.get(match[2]), match[2], match) for match in _MEASURE.finditer(text)]
    for name, unit, match in (
        *measures,
        *(("pack_size", "pack", match) for match in _PACK_OF.finditer(text)),
    ):
        if name and (value := _measured(name, match[1], unit)):
            yield name, value, match.group()


def of_value(key: str, said: str, where: str) -> dict[str, Found]:
    """Read the attributes that a column or a row of a detail table gives; none where no normal form fits."""
    found = {}
    for name in names_of(key):
        if value := normal(name, said):
            found[name] = value, f"{where}: {said.strip()[:_SAID]}"
    return found


@lru_cache(maxsize=65_536)
def names_of(key: str) -> tuple[str, ...]:
    """Return the attributes that a column or a row of a detail table may give by its name, also after a word that says
    nothing: "PrimaryColor"."""
    form, own = _folded(key), _keys()
    before, _, rest = form.partition(" ")
    return tuple(own.get(form, ()) or (own.get(rest, ()) if before in plain().before else ()))


@lru_cache(maxsize=65_536)
def normal(name: str, said: str) -> str | None:
    """Return the normal form of a value of the attribute `name`; None where it has none."""
    if name not in known():
        return None
    said = said.strip().lower()[:200]
    forms = _spellings()[name]
    if said in forms:
        return forms[said]
    units = known()[name].units
    read = {_measured(name, one[1], one[2]) for one in _MEASURE.finditer(said) if one[2] in units}
    if "count" in units.values() and re.fullmatch(r"\d{1,4}(?:\.0)?", said):
        read = {_measured(name, said, next(iter(units)))}
    return read.pop() if len(read) == 1 else None


@lru_cache(maxsize=65_536)
def _measured(name: str, number: str, unit: str) -> str | None:
    """Write a measure in its normal form: in the largest unit that needs at most two decimals, none from 1,000 on: five
    pounds are 2.3 kg, not 2267.96 g."""
    one = known()[name]
    given = Decimal(number)
    if not given or (name in ("pack_size", "ports") and given == 1):
        return None
    if one.units[unit] == "count":
        whole = given == given.to_integral_value() or name == "resolution"
        return next(iter(one.shown)).format(_plain(given)) if whole else None
    amount = _units().Quantity(float(given), one.units[unit])
    sizes = [(form, amount.to(to).magnitude) for form, to in one.shown.items()]
    for form, size in sizes:
        if size >= 1 and abs(size - round(size, 2 if size < 1_000 else 0)) < 1e-6 * size:
            return form.format(_plain(Decimal(str(round(size, 2)))))
    form, size = next((pair for pair in sizes if pair[1] >= 1), sizes[-1])
    return form.format(_plain(Decimal(str(round(size, 1 if size < 100 else 0))))) if size >= 0.05 else None


def _plain(number: Decimal) -> str:
    """Write a number without needless zeros: 10, 2.5."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@cache
def _units() -> Any:
    import pint  # reading its definitions costs a second, once

    return pint.UnitRegistry()


def _folded(key: str) -> str:
    return " ".join(re.sub(r"[_\W]+", " ", _CAMEL.sub(" ", key)).lower().split())


def phrases(names: Iterable[str]) -> dict[str, str]:
    """Return a customer's wording of each attribute; of one that is not known, "with {} as its fabric type"."""
    asked = known()
    return {
        name: asked[name].phrase if name in asked else f"with {name.replace('_', ' ')} {{}}" for name in names
    }
