"""Catalogs on disk: one folder each, whose manifest is written last and names what belongs to it."""

import hashlib
import json
import re
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import quote, unquote

import numpy as np
from pydantic import Field, ValidationError

from ecomlab.catalog import index
from ecomlab.catalog.columns import Catalog, IdOrder
from ecomlab.catalog.index import Effort, Index
from ecomlab.catalog.ingest.text import is_inert
from ecomlab.catalog.texts import Texts
from ecomlab.catalog.titles import Titles
from ecomlab.data import Strict
from ecomlab.files import locked, read_json
from ecomlab.seeding import digest

MANIFEST: Final = "manifest.json"
LOCK: Final = ".lock"
FORMAT: Final = 1
VOCABULARY, TITLES, EXACT, LISTS = "vocabulary.json", "titles.arrow", "exact.faiss", "lists.faiss"
COLUMN: Final = "column."
"""What names of columns' files begin with."""
SAMPLES: Final = 64
_ESCAPED = re.compile(r"\\u00(?:3[ce]|5b)", re.IGNORECASE)
"""Angle and square brackets as JSON may hide them."""
BLOCK: Final = 64 << 10
"""Of a file with more than SAMPLES blocks of BLOCK bytes a stamp covers that many, evenly spread, and the size."""


class CatalogError(ValueError):
    """A folder that holds no catalog, none that is whole, or none that this installation can open."""


class IndexFacts(Strict):
    """How a catalog is searched."""

    kind: str
    """"exact", or the name of the lists by FAISS's factory."""
    digest: str = ""
    """Of the vectors of a model and of lists, which differ between machines; empty where neither is there."""
    lists: int = 0
    factor: int = 0
    recall_at_20: dict[str, float] = Field(default_factory=dict)
    """By the share of texts that a filter leaves; empty where every answer is exact."""


class Manifest(Strict):
    """What a catalog's folder holds."""

    format: int
    data: Annotated[str, Field(pattern="^[0-9a-f]{8,64}$")]
    """Folder of the files."""
    products: int
    texts: int
    fingerprint: str
    """Of the catalog."""
    embedder: str
    embedder_fingerprint: str
    index: IndexFacts
    versions: dict[str, str]
    files: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_.%~-]+$")], tuple[int, str]]
    """Size and stamp by name."""


def cache_key(*parts: Any) -> str:
    """Name a folder by `parts`, this package's code and data, and libraries: an edited generator reads no old files."""
    here = sorted(path for path in Path(__file__).parent.iterdir() if path.suffix in (".py", ".toml"))
    sources = [hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest() for path in here]
    return digest([parts, sources, [version(name) for name in ("numpy", "scikit-learn")]], 12)


def versions() -> dict[str, str]:
    """Versions of the libraries that make what is stored."""
    return {name: version(name) for name in ("numpy", "scikit-learn", "faiss-cpu")}


def read_manifest(folder: Path) -> Manifest:
    """Read what `folder` holds. Raises CatalogError where there is no finished catalog."""
    if not folder.is_dir():
        raise CatalogError(
            f"there is no catalog in {folder}; `ecomlab catalog build SOURCE {folder}` makes one"
        )
    found = read_json(folder / MANIFEST)
    if found is None:
        started = any(path.is_dir() for path in folder.iterdir())
        if locked(folder / LOCK):
            raise CatalogError(f"the catalog in {folder} is being built; open it when that is done")
        if started and not (folder / MANIFEST).exists():
            raise CatalogError(
                f"the catalog in {folder} is not finished; the same build goes on where it ended"
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
    except (OSError, EOFError, ValueError, KeyError, TypeError, RecursionError) as error:
        if read_manifest(folder).data != manifest.data:  # replaced while it was read
            return open_files(folder)
        raise CatalogError(f"the catalog in {folder} is damaged ({error}); build it there again") from error


def _open(data: Path, manifest: Manifest) -> tuple[Catalog, Texts, Index]:
    for name, known in manifest.files.items():
        if stamp(data / name) != known:
            raise ValueError(f"{name} is not what was written")
    written = (data / VOCABULARY).read_text("utf-8")
    vocabulary = json.loads(written)
    if not is_inert(written) or _ESCAPED.search(written):
        raise ValueError(f"{VOCABULARY} holds a tag or a chat marker, which no build writes")
    titles = Titles.open(data / TITLES) if TITLES in manifest.files else None
    columns = {
        unquote(name.removeprefix(COLUMN).removesuffix(".npy")): _array(data / name)
        for name in manifest.files
        if name.startswith(COLUMN)
    }
    by_id = IdOrder(_array(data / "by_id.ids.npy"), _array(data / "by_id.rows.npy"))
    catalog = Catalog.from_columns(vocabulary, columns, titles, by_id)
    vars(catalog)["fingerprint"] = (
        manifest.fingerprint
    )  # of what the stamps vouch for; hashing 2M rows takes a second
    texts = Texts(*(_array(data / f"texts.{name}.npy") for name in ("text_of", "rows", "starts")))
    facts = manifest.index
    lists = index.read_lists(data / LISTS) if facts.kind != "exact" else None
    found = Index(index.read_exact(data / EXACT), lists, Effort(facts.lists, facts.factor))
    if found.count != texts.count or len(texts.text_of) != catalog.size:
        raise ValueError("its index is of other products")
    return catalog, texts, found


def write_columns(catalog: Catalog, texts: Texts, data: Path) -> None:
    """Write everything but vectors and index into the folder `data`."""
    columns = {f"{COLUMN}{quote(name, safe='')}": column for name, column in catalog.columns().items()}
    arrays = columns | {f"by_id.{name}": array for name, array in catalog.by_id._asdict().items()}
    arrays |= {f"texts.{name}": getattr(texts, name) for name in ("text_of", "rows", "starts")}
    for name, array in arrays.items():
        np.save(data / f"{name}.npy", array, allow_pickle=False)
    (data / VOCABULARY).write_text(json.dumps(catalog.vocabulary), "utf-8")
    if catalog.titles is not None:
        catalog.titles.save(data / TITLES)


def stamps(data: Path) -> dict[str, tuple[int, str]]:
    """Stamp every file in `data` that belongs to a finished catalog."""
    known = (VOCABULARY, TITLES, EXACT, LISTS)
    names = sorted(path.name for path in data.iterdir() if path.suffix == ".npy" or path.name in known)
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


def _array(path: Path) -> np.ndarray:
    return np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)
