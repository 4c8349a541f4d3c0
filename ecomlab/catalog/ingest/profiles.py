"""Profiles of platforms: a TOML file each says which columns mean what there; a table of none has the plain one."""

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import Field

from ecomlab.settings import Strict, read_toml

FOLDER: Final = Path(__file__).with_name("profiles")
_BESIDE = re.compile(
    r"^\W*[A-Za-z]{1,2}:|\([^()]*\)\W*$"
    r"|[ _-](?:(?:in|en)[ _])?(?:[$€£¥₹]|zł|rs\.?|aud|brl|cad|chf|czk|dkk|eur|gbp|inr|jpy|mxn|nok|pln|sek|usd)$",
    re.IGNORECASE,
)
"""What a column's name has beside it: a namespace ("g:price", "*C:Brand"), a remark ("Weight (lbs)") or a currency."""


class Profile(Strict):
    """What the columns of one platform mean; the schema of a file in `profiles/`."""

    name: str
    signs: tuple[tuple[str, ...], ...] = ()
    """Sets of columns; a table that has all of one set is this platform's."""
    columns: dict[str, tuple[str, ...]]
    """Names by what they hold, the surest first; of what is not listed, the plain table's are looked for."""
    options: dict[str, str] = Field(default_factory=dict)
    """Columns of option values, each with the one that names the option."""
    hidden: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """What columns say, in lower case, of products that are not for sale; the plain table's count for all."""
    fill_down: bool = False
    """Whether rows without title and parent are variants of the product above them."""
    levels: str = ""
    """What stands between the levels of a category, where that is not one of the usual signs."""
    several: str = ""
    """What stands between several categories of one product, of which the first that names a thing counts."""
    cells: str = ""
    """What stands between the values of an option that one cell lists."""
    variants: tuple[str, ...] = ()
    """Columns whose text gives the options of a variant, the plain table's those that may hold a list of variants."""
    ids: tuple[str, ...] = ()
    """Columns of which the first that is filled names the product of variants in later rows."""
    nothing: tuple[str, ...] = ()
    """What stands where there is no value, in lower case."""
    before: tuple[str, ...] = ()
    """Words that say nothing before a known name."""
    sold_out: frozenset[str] = frozenset()
    in_stock: frozenset[str] = frozenset()
    """How a stock of none and of some is written, beside numbers."""


@cache
def profiles() -> dict[str, Profile]:
    """Read all profiles, once a process, by the names of their files."""
    return {path.stem: read_toml(path, Profile) for path in sorted(FOLDER.glob("*.toml"))}


def plain() -> Profile:
    """Return the profile of a table of no platform that is known."""
    return profiles()["plain"]


def profile_of(columns: Iterable[str]) -> Profile:
    """Return the profile of which these columns have most signs, else the plain one."""
    listed = list(columns)
    called = {folded(one) for column in listed for one in (column, bare(column))}
    held = [
        (len(sign), name)
        for name, one in profiles().items()
        for sign in one.signs
        if all(folded(column) in called for column in sign)
    ]
    return profiles()[max(held)[1]] if held else plain()


def forms(columns: Iterable[str]) -> dict[str, str]:
    """Return columns by what they may be called: as they are, bare, and without a word before a known name."""
    listed = list(columns)[::-1]
    found = {folded(bare(column)): column for column in listed} | {
        folded(column): column for column in listed
    }
    for form, column in list(found.items()):
        for word in plain().before if form not in _usual() else ():
            found.setdefault(form.removeprefix(word), column)
    return found


def bare(column: str) -> str:
    """Return a column's name without what stands beside it."""
    return _BESIDE.sub("", column)


def folded(name: str) -> str:
    """Return a name in lower case, without spaces, signs and marks."""
    return re.sub(r"[\W_]", "", unicodedata.normalize("NFKD", name)).lower()


@cache
def _usual() -> frozenset[str]:
    """What plain tables call their columns."""
    return frozenset(folded(name) for names in plain().columns.values() for name in names)


@cache
def _known() -> frozenset[str]:
    """What product files usually call their columns."""
    every = profiles().values()
    named = (
        name for one in every for names in (*one.columns.values(), one.options, one.hidden) for name in names
    )
    return frozenset(map(folded, named)) | _usual()


def is_known(name: str) -> bool:
    """Tell whether product files usually call a column so."""
    return any(form in _known() for form in forms([name]))
