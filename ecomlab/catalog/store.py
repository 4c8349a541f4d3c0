"""Catalogs on disk: one folder each, whose manifest is written last and names what belongs to it."""

import hashlib
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

import numpy as np
from pydantic import Field, ValidationError

from ecomlab.catalog import index
from ecomlab.catalog.columns import Catalog
from ecomlab.catalog.index import Effort, Index
from ecomlab.catalog.names import Packed
from ecomlab.catalog.texts import Texts
from ecomlab.files import file_digest, read_json
from ecomlab.seeding import digest
from ecomlab.settings import Strict

MANIFEST: Final = "manifest.json"
LOCK: Final = ".lock"
FORMAT: Final = 4
VOCABULARY, EXACT, LISTS = "vocabulary.json", "exact.faiss", "lists.faiss"
COLUMN: Final = "column."
"""What names of columns' files begin with."""
TEXTS: Final = ("text_of", "rows", "starts")
NAMES: Final = ("brands", "features", "titles")
READ: Final = 4 << 20
"""Bytes up to which a file is read whole when a catalog is opened; of a larger one its size is compared."""
MAPPED: Final = 1 << 18
"""Bytes from which a column is mapped, which keeps its file open; a process may have 256 files open on macOS, 1,024 on
many Linuxes, and a catalog has a hundred columns."""


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
    data: str
    """Folder of the files."""
    products: int
    texts: int
    fingerprint: str
    """Of the catalog."""
    embedder: str
    embedder_fingerprint: str
    index: IndexFacts
    versions: dict[str, str]
    files: dict[str, tuple[int, str]]
    """Size and digest by name."""


def cache_key(*parts: Any) -> str:
    """Name a folder by `parts`, this package's code and data, and libraries: an edited generator reads no old files."""
    here = sorted(path for path in Path(__file__).parent.iterdir() if path.suffix in (".py", ".toml"))
    sources = [hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest() for path in here]
    return digest([parts, sources, version("numpy")], 12)


def read_manifest(folder: Path) -> Manifest:
    """Read what `folder` holds. Raises CatalogError where there is no finished catalog."""
    if folder.is_file():
        raise CatalogError(
            f"{folder} is a file; `ecomlab catalog build {folder} FOLDER` makes a catalog of it, in the folder to name"
        )
    if not folder.is_dir() or not ((folder / MANIFEST).exists() or (folder / LOCK).exists()):
        raise CatalogError(
            f"there is no catalog in {folder}; `ecomlab catalog build SOURCE {folder}` makes one"
        )
    if not (folder / MANIFEST).exists():
        raise CatalogError(
            f"the catalog in {folder} is not finished; wait for its build, or run it again: it goes on where it ended"
        )
    found = read_json(folder / MANIFEST)
    if found is not None and found.get("format") != FORMAT:
        raise CatalogError(
            f"{folder} has format {found.get('format')!r}, this ecomlab reads {FORMAT}; build it again"
        )
    try:
        return Manifest.model_validate_json(json.dumps(found))
    except ValidationError:
        raise CatalogError(f"{folder / MANIFEST} is damaged; build the catalog there again") from None


def open_files(folder: Path, whole: bool = False) -> tuple[Manifest, Catalog, Texts, Index]:
    """Open the catalog in `folder`, memory-mapped. Raises CatalogError unless its files are those that were written, as
    far as their sizes and what small ones hold tell, or, if asked for the `whole`, all that they hold."""
    manifest = read_manifest(folder)
    try:
        return manifest, *_open(folder / manifest.data, manifest, whole)
    except (LookupError, OSError, ValueError) as error:
        if read_manifest(folder).data != manifest.data:  # replaced while it was read
            return open_files(folder, whole)
        raise CatalogError(
            f"the catalog in {folder} is damaged ({error}); build it there again, or copy it again from a whole one"
        ) from error


def _open(data: Path, manifest: Manifest, whole: bool) -> tuple[Catalog, Texts, Index]:
    """Open files, once they are known to be those that were written."""
    for name, (size, known) in manifest.files.items():
        if not (data / name).is_file():
            raise ValueError(f"{name} is missing")
        if (data / name).stat().st_size != size or (
            (whole or size <= READ) and file_digest(data / name) != known
        ):
            raise ValueError(f"{name} is not what was written")
    arrays = {
        name.removesuffix(".npy"): _array(data / name, size)
        for name, (size, _) in manifest.files.items()
        if name.endswith(".npy")
    }
    columns = {
        unquote(name.removeprefix(COLUMN)): array for name, array in arrays.items() if name.startswith(COLUMN)
    }
    vocabulary = json.loads((data / VOCABULARY).read_bytes())
    names = {
        kind: Packed(arrays[f"{kind}.text"], arrays[f"{kind}.starts"]) for kind in NAMES if kind in vocabulary
    }
    titles = names.pop("titles", None)
    catalog = Catalog.from_columns(vocabulary | names, columns, titles)
    # what was written has these: sorting and hashing 2M rows takes seconds
    vars(catalog).update(id_order=arrays["id_order"], fingerprint=manifest.fingerprint)
    facts = manifest.index
    lists = None if facts.kind == "exact" else index.read_lists(data / LISTS)
    texts = Texts(*(arrays[f"texts.{name}"] for name in TEXTS))
    return catalog, texts, Index(index.read_exact(data / EXACT), lists, Effort(facts.lists, facts.factor))


def _array(path: Path, size: int) -> np.ndarray:
    """Read an array, or memory-map it if its file is large; read-only."""
    array = np.load(path, mmap_mode="r" if size >= MAPPED else None, allow_pickle=False)
    array.flags.writeable = False
    return array.view(np.ndarray)


def write_columns(catalog: Catalog, texts: Texts, data: Path) -> None:
    """Write everything but vectors and index into the folder `data`."""
    arrays = {f"{COLUMN}{quote(name, safe='')}": column for name, column in catalog.columns().items()}
    arrays |= {"id_order": catalog.id_order} | {f"texts.{name}": getattr(texts, name) for name in TEXTS}
    names = {kind: Packed.of(getattr(catalog, kind)) for kind in NAMES if getattr(catalog, kind) is not None}
    for kind, packed in names.items():
        arrays |= {f"{kind}.text": packed.text, f"{kind}.starts": packed.starts}
    for name, array in arrays.items():
        np.save(data / f"{name}.npy", array, allow_pickle=False)
    counts = {kind: len(packed) for kind, packed in names.items()}
    (data / VOCABULARY).write_text(json.dumps(catalog.vocabulary | counts), "utf-8")


def digests(data: Path) -> dict[str, tuple[int, str]]:
    """Return the size and a digest of every file of a finished catalog, by name."""
    files = sorted(path for path in data.iterdir() if path.is_file() and not path.name.startswith("."))
    return {path.name: (path.stat().st_size, file_digest(path)) for path in files}
