"""What a catalog's folder must be before anything in it is trusted: its files, their types, lengths and ranges.

A folder may be someone else's. Each check raises ValueError with the fact; `store` says the way out.
"""

import json
import re
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import quote

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from ecomlab.catalog.columns import Catalog
from ecomlab.catalog.ingest.text import is_inert
from ecomlab.catalog.names import Packed
from ecomlab.catalog.schema import MOST_OPTIONS
from ecomlab.catalog.sentence import SentenceSettings
from ecomlab.catalog.texts import Texts
from ecomlab.slots import NO_RATING
from ecomlab.suggest import mistakes

COLUMN: Final = "column."
"""What names of columns' files begin with."""
ORDER: Final = ("by_id.ids", "by_id.rows")
TEXTS: Final = ("texts.text_of", "texts.rows", "texts.starts")
NAMES: Final = ("brands", "features")
MAPPED: Final = 1 << 18
"""Bytes from which a column is mapped, which keeps its file open; a process may have 256 files open on macOS, 1,024 on
many Linuxes, and a catalog has a hundred columns."""
MOST_MANIFEST: Final = 1 << 20
"""Bytes of a manifest: a thousand columns take a tenth of it."""
VOCABULARY_BYTES: Final = 1 << 20, 600
"""Bytes of a vocabulary, and for each product."""
LONGEST_NAME, LONGEST_TITLE, LONGEST_ID, LONGEST_EMBEDDER = 300, 8_000, 64, 2_000
"""Characters; of a title bytes."""
_CODE, _ID = ("<i2", "<i4"), re.compile(r"\|S[1-9][0-9]?")
_TYPES: Final[dict[str, tuple[str, ...]]] = {
    "type_code": _CODE,
    "brand_code": _CODE,
    "feature_code": _CODE,
    "price_cents": ("<i4",),
    "rating_tenths": ("|i1",),
    "reviews": ("<i4",),
    "days": ("|i1",),
    "stock": ("<i2",),
    "option_bits": ("<i8",),
}
"""Columns beside ids and attributes, and the types that they may have."""
_NPY: Final = re.compile(
    rb"\{'descr': '([<|][a-zA-Z][0-9]{1,3})', 'fortran_order': False, 'shape': \(([0-9]{1,10}),\), \} *\n"
)
"""Header of an array's file as numpy writes it: matched and not parsed, for numpy's own parser evaluates it."""
_HUB: Final = re.compile(r"(?:[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*", re.ASCII)
_ID_BYTES: Final = np.zeros(256, bool)
_ID_BYTES[list(b"\0-._0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")] = True

_UNSAID: Final = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


def _plain(name: str) -> str:
    if not is_inert(name) or _UNSAID.search(name):
        raise ValueError("holds a tag, a chat marker or a control character, which no build writes")
    return name


Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME), AfterValidator(_plain)]


def _all_plain(names: tuple[str, ...]) -> tuple[str, ...]:
    """Check names together, for a real catalog may have a million; one by one where something is in them, or comes of
    joining them."""
    joined = " ".join(names)
    if not is_inert(joined) or _UNSAID.search(joined):
        for number, name in enumerate(names):
            try:
                _plain(name)
            except ValueError as error:
                raise ValueError(f"name {number} {error}") from None
    return names


Names = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)], ...], AfterValidator(_all_plain)
]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Vocabulary(_File):
    """Schema of `vocabulary.json`."""

    types: Annotated[
        tuple[
            tuple[
                Name,  # of the type
                Name,  # its plural
                Name,  # its department
                Annotated[tuple[tuple[Name, Names, Name, bool], ...], Field(min_length=1)],  # as `Attribute`
            ],
            ...,
        ],
        Field(min_length=1),
    ]
    brands: Annotated[int, Field(ge=0)]  # how many there are
    features: Annotated[int, Field(ge=0)]
    attr_values: dict[Name, Annotated[Names, Field(min_length=1)]]
    titles: Annotated[str, Field(pattern="^[0-9a-f]{32}$")] | None = None
    drawable: Annotated[Names, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _check_names(self) -> "Vocabulary":
        kinds = [kind[0] for kind in self.types]
        _check_distinct("types", kinds)
        for name, values in self.attr_values.items():
            _check_distinct(f"the values of {name}", values)
        for kind in self.types:
            _check_attributes(kind[0], kind[3], self.attr_values)
        _check_distinct("drawable types", self.drawable or ())
        if strange := set(self.drawable or ()) - set(kinds):
            raise ValueError(f"{min(strange)!r} is no type, and drawable")
        return self

    def given(self) -> dict[str, Any]:
        """Return the fields that the file has, as `Catalog.from_columns` takes them."""
        return {name: value for name, value in self if value is not None}


def _check_distinct(what: str, names: Iterable[str]) -> None:
    names = list(names)
    if len(set(names)) != len(names):
        raise ValueError(f"two of the {what} have one name")


def _check_attributes(
    kind: str,
    attributes: Iterable[tuple[str, tuple[str, ...], str, bool]],
    known: Mapping[str, Collection[str]],
) -> None:
    """Check a type's option, which comes first, and its attributes."""
    option, *others = attributes
    _check_distinct(f"attributes of {kind}", [name for name, *_ in (option, *others)])
    for name, values, phrase, _ in (option, *others):
        _check_distinct(f"values of {name} of {kind}", values)
        if "{}" not in phrase:
            raise ValueError(f"{name} of {kind} has a phrase without {{}}")
    if len(option[1]) > MOST_OPTIONS:
        raise ValueError(f"{kind} has {len(option[1])} options, more than {MOST_OPTIONS}")
    for name, values, *_ in others:
        if not values:
            raise ValueError(f"{name} of {kind} has no values")
        if not set(values) <= set(known.get(name, ())):
            raise ValueError(f"{kind} has a value of {name} that no column has")


# --- files ----


def check_plain(path: Path, most: int | None = None) -> int:
    """Return the size of a file. Raises ValueError for a link, a pipe, a device or a folder, none of which is opened,
    and for more than `most` bytes; FileNotFoundError where there is nothing."""
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        kinds = {stat.S_IFLNK: "a link", stat.S_IFIFO: "a pipe", stat.S_IFDIR: "a folder"}
        raise ValueError(f"{path.name} is {kinds.get(stat.S_IFMT(found.st_mode), 'a device')} and no file")
    if most is not None and found.st_size > most:
        raise ValueError(f"{path.name} has {found.st_size:,} bytes, more than {most:,}")
    return found.st_size


def check_folder(data: Path, files: Mapping[str, tuple[int, str]], unread: Collection[str]) -> None:
    """Check that a folder holds these files, of these sizes, and no others but those that are never read.

    A name that begins with a dot is a draft that a killed build left, or the system's.
    """
    if data.is_symlink() or not data.is_dir():
        raise ValueError(f"{data.name} is no folder")
    there = {path.name for path in data.iterdir() if not path.name.startswith(".")} - set(unread)
    if strange := sorted(there - set(files)):
        raise ValueError(f"{strange[0][:80]!r} does not belong there")
    for name, (size, _) in files.items():
        if check_plain(data / name) != size:
            raise ValueError(f"{name} is not what was written")


def names_of(vocabulary: Vocabulary, singles: Iterable[str]) -> set[str]:
    """Name the files of a catalog with this vocabulary; `singles` are those that are no arrays."""
    arrays = [*(COLUMN + quote(name, safe="") for name in columns_of(vocabulary)), *ORDER, *TEXTS]
    arrays += [f"{kind}.starts" for kind in NAMES]
    return {*singles, *(f"{name}.npy" for name in arrays)}


def columns_of(vocabulary: Vocabulary) -> list[str]:
    """Name the columns of a catalog with this vocabulary."""
    return ["packed_ids", *_TYPES, *(f"attr.{name}" for name in vocabulary.attr_values)]


def read_vocabulary(path: Path, products: int) -> Vocabulary:
    """Read the names of a catalog of so many products."""
    fixed, each = VOCABULARY_BYTES
    check_plain(path, fixed + each * products)
    try:
        return Vocabulary.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        broken = first["type"] == "json_invalid"  # which would be followed by all of the file
        raise ValueError(
            f"{path.name}: {first['msg'] if broken else mistakes(error, Vocabulary)[0]}"
        ) from None


def open_array(path: Path, types: Collection[str] | re.Pattern[str], count: int) -> np.ndarray:
    """Memory-map one row of `count` numbers of one of these types; a small file is read. Raises ValueError for any
    other file."""
    with path.open("rb") as file:
        start = file.read(10)
        length = int.from_bytes(start[8:10], "little")
        header = _NPY.fullmatch(file.read(length)) if start[:8] == b"\x93NUMPY\x01\x00" else None
    if header is None:
        raise ValueError(f"{path.name} is no array that a build writes")
    kind, there = header[1].decode(), int(header[2])
    fits = types.fullmatch(kind) if isinstance(types, re.Pattern) else kind in types
    if not fits or there != count:
        raise ValueError(f"{path.name} holds {there:,} numbers of type {kind}, which do not belong there")
    if path.stat().st_size != 10 + length + count * np.dtype(kind).itemsize:
        raise ValueError(f"{path.name} is cut short, or too long")
    if path.stat().st_size < MAPPED:
        values = np.fromfile(path, kind, count, offset=10 + length)
        values.flags.writeable = False
        return values
    return np.memmap(path, kind, "r", 10 + length, (count,)).view(np.ndarray)


def open_names(data: Path, kind: str, count: int) -> Packed:
    """Memory-map `count` names, "brands" or "features"; few are read. Raises ValueError for any other file."""
    path, starts = data / f"{kind}.txt", open_array(data / f"{kind}.starts.npy", ("<i8",), count + 1)
    small = path.stat().st_size < MAPPED
    names = Packed(
        np.fromfile(path, np.uint8) if small else np.memmap(path, mode="r").view(np.ndarray), starts
    )
    _check_names(path.name, names)
    return names


def _check_names(what: str, names: Packed) -> None:
    """Check that names are lines, none empty or too long, and plain."""
    lengths, ends = np.diff(names.starts), names.starts[1:] - 1
    if names.starts[0] != 0 or names.starts[-1] != len(names.text) or (lengths < 2).any():
        raise ValueError(f"{what} is not divided into names, none of them empty")
    if (lengths > LONGEST_NAME + 1).any():
        raise ValueError(f"{what} has a name of more than {LONGEST_NAME} bytes")
    if (names.text[ends] != 10).any() or np.count_nonzero(names.text == 10) != len(names):
        raise ValueError(f"{what} has no line for each name")
    try:
        for block in names.blocks():
            _all_plain(tuple(block))
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None


def open_column(path: Path, name: str, products: int) -> np.ndarray:
    """Memory-map a column of the catalog."""
    return open_array(path, _ID if name == "packed_ids" else _TYPES.get(name, _CODE), products)


# --- contents ----


def check_catalog(catalog: Catalog) -> None:
    """Check what is to be written as it will be when it is opened."""
    for what in NAMES:
        names: Sequence[str] = getattr(catalog, what)
        _check_distinct(what, names)
        _check_names(what, Packed.of(names))
    counts = {what: len(getattr(catalog, what)) for what in NAMES}
    try:
        Vocabulary.model_validate_json(json.dumps(catalog.vocabulary | counts))
    except ValidationError as error:
        raise ValueError(mistakes(error, Vocabulary)[0]) from None
    check_columns(catalog)


def check_columns(catalog: Catalog) -> None:
    """Check that ids are plain, codes are of the vocabulary and numbers possible."""
    _check_ids(catalog.packed_ids)
    for name, column, least, most in (
        ("type_code", catalog.type_code, 0, len(catalog.types) - 1),
        ("brand_code", catalog.brand_code, -1, len(catalog.brands) - 1),
        ("feature_code", catalog.feature_code, -1, len(catalog.features) - 1),
        ("price_cents", catalog.price_cents, 1, None),
        ("rating_tenths", catalog.rating_tenths, NO_RATING, 50),
        ("reviews", catalog.reviews, 0, None),
        ("days", catalog.days, 0, None),
        ("stock", catalog.stock, 0, None),
    ):
        _check_range(name, column, least, most)
    for name, column in catalog.attr.items():
        _check_range(f"attr.{name}", column, -1, len(catalog.attr_values[name]) - 1)
    codes = {
        name: {value: code for code, value in enumerate(values)}
        for name, values in catalog.attr_values.items()
    }
    for kind in catalog.types:
        rows = catalog.type_rows(kind.name)
        if not rows:
            raise ValueError(f"no product is of the type {kind.name!r}")
        _check_range(
            f"option_bits of {kind.name}",
            catalog.option_bits[rows.start : rows.stop],
            0,
            (1 << len(kind.option.values)) - 1,
        )
        for attribute in kind.attributes:
            places = codes[attribute.name]
            may = np.zeros(len(places) + 1, bool)
            may[[*(places[value] for value in attribute.values), -1]] = True  # and none, whose code is -1
            if not may[catalog.attr[attribute.name][rows.start : rows.stop]].all():
                raise ValueError(f"a {kind.name} has a value of {attribute.name} that its type has not")


def _check_ids(ids: np.ndarray) -> None:
    if ids.dtype.itemsize > LONGEST_ID:
        raise ValueError(f"ids have {ids.dtype.itemsize} characters, more than {LONGEST_ID}")
    letters = ids.view(np.uint8).reshape(len(ids), -1)
    none = letters == 0
    if not _ID_BYTES[letters].all() or none[:, 0].any() or (none[:, :-1] > none[:, 1:]).any():
        raise ValueError(
            "an id is empty, or has a character that is no letter, digit, dot, dash or underscore"
        )


def _check_range(name: str, column: np.ndarray, least: int, most: int | None) -> None:
    low, high = int(column.min()), int(column.max())
    if low < least or (most is not None and high > most):
        wrong = low if low < least else high
        raise ValueError(
            f"{name} has {wrong}, which is no number from {least} to {'any' if most is None else most}"
        )


def check_order(catalog: Catalog) -> None:
    """Check that the ids in order are those of the products: each once, at its row."""
    ids, rows = catalog.by_id
    _check_range("by_id.rows", rows, 0, catalog.size - 1)
    if (catalog.packed_ids[rows] != ids).any():  # they ascend: no row is there twice
        raise ValueError("by_id names another row than the one that has the id")


def check_texts(texts: Texts, products: int) -> None:
    """Check that the rows are dealt out to the texts: each to one, ascending within it, texts by their first rows."""
    starts, rows = texts.starts, texts.rows
    if starts[0] != 0 or starts[-1] != products or (np.diff(starts) < 1).any():
        raise ValueError("texts.starts does not divide the products")
    _check_range("texts.rows", rows, 0, products - 1)
    _check_range("texts.text_of", texts.text_of, 0, texts.count - 1)
    if (texts.text_of[rows] != np.repeat(np.arange(texts.count, dtype=np.int32), np.diff(starts))).any():
        raise ValueError("texts.rows has a row at another text than texts.text_of")
    same_text = np.ones(products, bool)
    same_text[starts[:-1]] = False
    if (same_text[1:] & (np.diff(rows) <= 0)).any() or (np.diff(texts.first_rows) <= 0).any():
        raise ValueError("texts.rows is not in order")


def check_embedder(name: str) -> None:
    """Check that what embeds queries is one of ours, a model of the hub or a model's folder on this machine, and no
    other file."""
    model = name
    if name.startswith("{"):
        try:
            model = SentenceSettings.model_validate_json(name).model
        except ValidationError as error:
            raise ValueError(f"{mistakes(error, SentenceSettings)[0]}") from None
    folder = Path(model).is_absolute() and model.isprintable()
    if model.endswith(".toml") or not (folder or _HUB.fullmatch(model)):
        raise ValueError("that is neither lexical nor a model by its name or folder")
