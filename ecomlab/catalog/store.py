"""Catalogs on disk: one folder each, whose manifest is written last and names what belongs to it."""

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import quote

import numpy as np
from pydantic import Field, ValidationError

from ecomlab.catalog import checks, index, index_files
from ecomlab.catalog.checks import COLUMN
from ecomlab.catalog.columns import Catalog, IdOrder
from ecomlab.catalog.index import Effort, Index
from ecomlab.catalog.names import Packed
from ecomlab.catalog.products import FACTS
from ecomlab.catalog.texts import Texts
from ecomlab.catalog.titles import Titles
from ecomlab.files import locked, read_json
from ecomlab.seeding import digest
from ecomlab.settings import Strict

MANIFEST: Final = "manifest.json"
LOCK: Final = ".lock"
FORMAT: Final = 3
VOCABULARY, TITLES, EXACT, LISTS = "vocabulary.json", "titles.arrow", "exact.faiss", "lists.faiss"
WRITTEN: Final = "written.json"
"""Marks that a build has written all columns and titles; nothing of it is read here."""
SAMPLES: Final = 64
BLOCK: Final = 64 << 10
"""Of a file with more than SAMPLES blocks of BLOCK bytes a stamp covers that many, evenly spread, and the size."""


UNREADABLE: Final = (
    ArithmeticError,
    LookupError,
    MemoryError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What opening a damaged file may raise."""
MOST_FILES: Final = 5_000
LONGEST_FACT: Final = 300
"""Characters of what is wrong with a folder: it may quote what is in a file."""
Word = Annotated[str, Field(max_length=100)]


class CatalogError(ValueError):
    """A folder that holds no catalog, none that is whole, or none that this installation can open."""


class IndexFacts(Strict):
    """How a catalog is searched."""

    kind: Annotated[str, Field(pattern="^(exact|IVF[1-9][0-9]{0,6},SQ8)$")]
    """"exact", or the name of the lists by FAISS's factory."""
    digest: Annotated[str, Field(pattern="^[0-9a-f]{0,64}$")] = ""
    """Of the vectors of a model and of lists, which differ between machines; empty where neither is there."""
    lists: Annotated[int, Field(ge=0, le=1 << 20)] = 0
    factor: Annotated[int, Field(ge=0, le=1_000)] = 0
    recall_at_20: Annotated[dict[str, Annotated[float, Field(ge=0, le=1)]], Field(max_length=20)] = Field(
        default_factory=dict
    )
    """By the share of texts that a filter leaves; empty where every answer is exact."""


class Manifest(Strict):
    """What a catalog's folder holds."""

    format: int
    data: Annotated[str, Field(pattern="^[0-9a-f]{8,64}$")]
    """Folder of the files."""
    products: Annotated[int, Field(ge=1, lt=2**31)]
    texts: Annotated[int, Field(ge=1, lt=2**31)]
    fingerprint: Annotated[str, Field(pattern="^[0-9a-f]{8,64}$")]
    """Of the catalog."""
    embedder: Annotated[str, Field(max_length=checks.LONGEST_EMBEDDER)]
    embedder_fingerprint: Annotated[str, Field(pattern="^[0-9a-f]{2,64}$")]
    index: IndexFacts
    versions: Annotated[dict[Word, Word], Field(max_length=20)]
    files: Annotated[
        dict[
            Annotated[str, Field(pattern=r"^[A-Za-z0-9_%~-][A-Za-z0-9_.%~-]{0,254}$")],
            tuple[Annotated[int, Field(ge=0, lt=1 << 48)], Annotated[str, Field(pattern="^[0-9a-f]{32}$")]],
        ],
        Field(max_length=MOST_FILES),
    ]
    """Size and stamp by name."""


def cache_key(*parts: Any) -> str:
    """Name a folder by `parts`, this package's code and data, and libraries: an edited generator reads no old files."""
    here = sorted(path for path in Path(__file__).parent.iterdir() if path.suffix in (".py", ".toml"))
    sources = [hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest() for path in here]
    return digest([parts, sources, version("numpy")], 12)


def versions() -> dict[str, str]:
    """Versions of the libraries that make what is stored."""
    return {name: version(name) for name in ("numpy", "faiss-cpu")}


def read_manifest(folder: Path) -> Manifest:
    """Read what `folder` holds. Raises CatalogError where there is no finished catalog."""
    if folder.is_file():
        raise CatalogError(
            f"{folder} is a file; `ecomlab catalog build {folder} FOLDER` makes a catalog of it, in the folder to name"
        )
    if not folder.is_dir():
        raise CatalogError(
            f"there is no catalog in {folder}; `ecomlab catalog build SOURCE {folder}` makes one"
        )
    try:
        checks.check_plain(folder / MANIFEST, checks.MOST_MANIFEST)
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        raise damaged(folder, error) from None
    found = read_json(folder / MANIFEST)
    if found is None:
        started = any(path.is_dir() for path in folder.iterdir())
        if locked(folder / LOCK):
            raise CatalogError(f"the catalog in {folder} is being built; open it when that is done")
        if started and not (folder / MANIFEST).exists():
            raise CatalogError(
                f"the catalog in {folder} is not finished; the same build goes on where it ended"
            )
        if (folder / FACTS).is_file() and not (folder / MANIFEST).exists():
            raise CatalogError(
                f"{folder} holds products of which no shop was made; building them again says why"
            )
        what = "damaged" if (folder / MANIFEST).exists() else "missing"
        raise CatalogError(f"{folder / MANIFEST} is {what}; build the catalog there again")
    if found.get("format") != FORMAT:
        raise CatalogError(
            f"{folder} has format {found.get('format')!r}, this ecomlab reads {FORMAT}; build it again"
        )
    try:
        return Manifest.model_validate_json(json.dumps(found))
    except ValidationError as error:
        wrong = ".".join(map(str, error.errors()[0]["loc"]))
        raise CatalogError(
            f"{folder / MANIFEST} is damaged ({wrong}); build the catalog there again"
        ) from None


def open_files(folder: Path) -> tuple[Manifest, Catalog, Texts, Index]:
    """Open the catalog in `folder`, memory-mapped. Raises CatalogError unless all of it is as it was written."""
    manifest = read_manifest(folder)
    try:
        return manifest, *_open(folder / manifest.data, manifest)
    except UNREADABLE as error:
        if read_manifest(folder).data != manifest.data:  # replaced while it was read
            return open_files(folder)
        raise damaged(folder, error) from error


def damaged(folder: Path, error: Exception) -> CatalogError:
    """Word what is wrong with a folder, and the way out."""
    fact = " ".join(str(error).split()) or type(error).__name__
    fact = fact if len(fact) <= LONGEST_FACT else f"{fact[:LONGEST_FACT]}..."
    return CatalogError(
        f"the catalog in {folder} is damaged ({fact}); build it there again, or copy it again from where it is whole"
    )


def _open(data: Path, manifest: Manifest) -> tuple[Catalog, Texts, Index]:
    """Open checked files. Nothing is read before it is known to be a plain file, parsed before it is known to be the
    one that was written, nor used before its types, lengths and ranges are those of a catalog: stamps tell what a bad
    disk did, and not what someone meant to do."""
    checks.check_folder(data, manifest.files, (WRITTEN,))
    for name, known in manifest.files.items():
        if stamp(data / name) != known:
            raise ValueError(f"{name} is not what was written")
    vocabulary = checks.read_vocabulary(data / VOCABULARY, manifest.products)
    singles = {VOCABULARY, EXACT, *(f"{kind}.txt" for kind in checks.NAMES)}
    singles |= {TITLES} if vocabulary.titles is not None else set()
    singles |= {LISTS} if manifest.index.kind != "exact" else set()
    if strange := sorted(checks.names_of(vocabulary, singles) ^ manifest.files.keys()):
        raise ValueError(f"{strange[0]} is missing, or does not belong there")
    catalog = _catalog(data, vocabulary, manifest)
    size, count = manifest.products, manifest.texts
    texts = Texts(
        checks.open_array(data / "texts.text_of.npy", ("<i4",), size),
        checks.open_array(data / "texts.rows.npy", ("<i4",), size),
        checks.open_array(data / "texts.starts.npy", ("<i8",), count + 1),
    )
    checks.check_texts(texts, size)
    return catalog, texts, _index(data, manifest)


def _catalog(data: Path, vocabulary: checks.Vocabulary, manifest: Manifest) -> Catalog:
    size = manifest.products
    columns = {
        name: checks.open_column(data / f"{COLUMN}{quote(name, safe='')}.npy", name, size)
        for name in checks.columns_of(vocabulary)
    }
    by_id = IdOrder(
        checks.open_array(data / "by_id.ids.npy", (columns["packed_ids"].dtype.str,), size),
        checks.open_array(data / "by_id.rows.npy", ("<i4",), size),
    )
    titles = None if vocabulary.titles is None else Titles.open(data / TITLES, checks.LONGEST_TITLE)
    names = {kind: checks.open_names(data, kind, getattr(vocabulary, kind)) for kind in checks.NAMES}
    catalog = Catalog.from_columns(vocabulary.given() | names, columns, titles, by_id)
    checks.check_columns(catalog)
    checks.check_order(catalog)
    # of what the stamps vouch for: hashing 2M rows takes a second, and is left to `ecomlab catalog check`
    vars(catalog)["fingerprint"] = manifest.fingerprint
    return catalog


def _index(data: Path, manifest: Manifest) -> Index:
    facts, vectors = manifest.index, index_files.check_exact(data / EXACT)
    if vectors.count != manifest.texts:
        raise ValueError(f"{EXACT} has {vectors.count} vectors for {manifest.texts} texts")
    lists = None
    if facts.kind != "exact":
        checked = index_files.check_lists(data / LISTS)
        if (checked.dim, checked.count) != (vectors.dim, vectors.count):
            raise ValueError(f"{LISTS} is of other vectors than {EXACT}")
        if facts.kind != f"IVF{checked.lists},SQ8" or not (facts.lists and facts.factor):
            raise ValueError(f"{LISTS} has {checked.lists} lists, and the manifest says {facts.kind}")
        lists = index.read_lists(data / LISTS)
    return Index(index.read_exact(data / EXACT), lists, Effort(facts.lists, facts.factor))


def write_columns(catalog: Catalog, texts: Texts, data: Path) -> None:
    """Write everything but vectors and index into the folder `data`."""
    columns = {f"{COLUMN}{quote(name, safe='')}": column for name, column in catalog.columns().items()}
    arrays = columns | {f"by_id.{name}": array for name, array in catalog.by_id._asdict().items()}
    arrays |= {f"texts.{name}": getattr(texts, name) for name in ("text_of", "rows", "starts")}
    counts = {kind: len(getattr(catalog, kind)) for kind in checks.NAMES}
    for kind in counts:
        names = Packed.of(getattr(catalog, kind))
        names.text.tofile(data / f"{kind}.txt")
        arrays[f"{kind}.starts"] = names.starts
    for name, array in arrays.items():
        np.save(data / f"{name}.npy", array, allow_pickle=False)
    (data / VOCABULARY).write_text(json.dumps(catalog.vocabulary | counts), "utf-8")
    if catalog.titles is not None:
        catalog.titles.save(data / TITLES)


def stamps(data: Path) -> dict[str, tuple[int, str]]:
    """Stamp every file in `data` that belongs to a finished catalog."""
    known = (VOCABULARY, TITLES, EXACT, LISTS)
    files = (path for path in data.iterdir() if path.suffix in (".npy", ".txt") or path.name in known)
    names = sorted(path.name for path in files)
    return {name: stamp(data / name) for name in names}


def stamp(path: Path) -> tuple[int, str]:
    """Return a file's size and a digest of it, or of blocks spread over it if it is large: 4 MB tell whether it is the
    one that was written, and reading a file of gigabytes whole would cost seconds at every start."""
    size = path.stat().st_size
    state = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        if size <= SAMPLES * BLOCK:
            state.update(file.read())
        else:
            for place in np.linspace(0, size - BLOCK, SAMPLES).astype(np.int64).tolist():
                file.seek(place)
                state.update(file.read(BLOCK))
    return size, state.hexdigest()


def facts_of(found: Index, digest: str, recall: Mapping[float, float]) -> IndexFacts:
    """Describe an index for the manifest."""
    if found.lists is None:
        return IndexFacts(kind="exact", digest=digest)
    return IndexFacts(
        kind=f"IVF{found.lists.nlist},SQ8",
        digest=digest,
        lists=found.effort.lists,
        factor=found.effort.factor,
        recall_at_20={f"{share:g}": round(value, 4) for share, value in recall.items()},
    )
