"""Catalogs on disk: one folder each, whose manifest is written last and names what belongs to it."""

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

import numpy as np
from pydantic import Field, ValidationError

from ecomlab.catalog import index
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
COLUMN: Final = "column."
"""What names of columns' files begin with."""
TEXTS: Final = ("text_of", "rows", "starts")
NAMES: Final = ("brands", "features")
WRITTEN: Final = "written.json"
"""Marks that a build has written all columns and titles; nothing of it is read here."""
SAMPLES: Final = 64
BLOCK: Final = 64 << 10
"""Of a file with more than SAMPLES blocks of BLOCK bytes a stamp covers that many, evenly spread, and the size."""

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
    if not (folder / MANIFEST).exists():
        if locked(folder / LOCK):
            raise CatalogError(f"the catalog in {folder} is being built; open it when that is done")
        if any(path.is_dir() for path in folder.iterdir()):
            raise CatalogError(
                f"the catalog in {folder} is not finished; the same build goes on where it ended"
            )
        if (folder / FACTS).is_file():
            raise CatalogError(
                f"{folder} holds products of which no shop was made; building them again says why"
            )
        raise CatalogError(f"{folder / MANIFEST} is missing; build the catalog there again")
    found = read_json(folder / MANIFEST)
    if found is not None and found.get("format") != FORMAT:
        raise CatalogError(
            f"{folder} has format {found.get('format')!r}, this ecomlab reads {FORMAT}; build it again"
        )
    try:
        return Manifest.model_validate_json(json.dumps(found))
    except ValidationError:
        raise CatalogError(f"{folder / MANIFEST} is damaged; build the catalog there again") from None


def open_files(folder: Path) -> tuple[Manifest, Catalog, Texts, Index]:
    """Open the catalog in `folder`, memory-mapped. Raises CatalogError unless its files are those that were written."""
    manifest = read_manifest(folder)
    try:
        return manifest, *_open(folder / manifest.data, manifest)
    except (LookupError, OSError, ValueError) as error:
        if read_manifest(folder).data != manifest.data:  # replaced while it was read
            return open_files(folder)
        raise damaged(folder, error) from error


def damaged(folder: Path, fact: object) -> CatalogError:
    """Word what is wrong with a folder, and the way out."""
    return CatalogError(
        f"the catalog in {folder} is damaged ({fact}); build it there again, or copy it again from where it is whole"
    )


def _open(data: Path, manifest: Manifest) -> tuple[Catalog, Texts, Index]:
    """Open files that are known to be those that were written."""
    for name, known in manifest.files.items():
        if not (data / name).is_file():
            raise ValueError(f"{name} is missing")
        if stamp(data / name) != known:
            raise ValueError(f"{name} is not what was written")
    arrays = {
        name[: -len(".npy")]: _array(data / name, size)
        for name, (size, _) in manifest.files.items()
        if name.endswith(".npy")
    }
    columns = {
        unquote(name.removeprefix(COLUMN)): array for name, array in arrays.items() if name.startswith(COLUMN)
    }
    titles = Titles.open(data / TITLES) if TITLES in manifest.files else None
    order = IdOrder(arrays["by_id.ids"], arrays["by_id.rows"])
    vocabulary = json.loads((data / VOCABULARY).read_bytes())
    vocabulary |= {kind: Packed(_text(data / f"{kind}.txt"), arrays[f"{kind}.starts"]) for kind in NAMES}
    catalog = Catalog.from_columns(vocabulary, columns, titles, order)
    # of what the stamps vouch for: hashing 2M rows takes a second, and is left to `ecomlab catalog check`
    vars(catalog)["fingerprint"] = manifest.fingerprint
    facts = manifest.index
    lists = None if facts.kind == "exact" else index.read_lists(data / LISTS)
    texts = Texts(*(arrays[f"texts.{name}"] for name in TEXTS))
    return catalog, texts, Index(index.read_exact(data / EXACT), lists, Effort(facts.lists, facts.factor))


def _text(path: Path) -> np.ndarray:
    """Read the bytes of a file, or memory-map them if they are many; read-only."""
    if path.stat().st_size < MAPPED:
        return np.fromfile(path, np.uint8)
    return np.memmap(path, mode="r").view(np.ndarray)


def _array(path: Path, size: int) -> np.ndarray:
    """Read an array, or memory-map it if its file is large; read-only."""
    array = np.load(path, mmap_mode="r" if size >= MAPPED else None, allow_pickle=False)
    array.flags.writeable = False
    return array.view(np.ndarray)


def write_columns(catalog: Catalog, texts: Texts, data: Path) -> None:
    """Write everything but vectors and index into the folder `data`."""
    columns = {f"{COLUMN}{quote(name, safe='')}": column for name, column in catalog.columns().items()}
    arrays = columns | {f"by_id.{name}": array for name, array in catalog.by_id._asdict().items()}
    arrays |= {f"texts.{name}": getattr(texts, name) for name in TEXTS}
    counts = {kind: len(getattr(catalog, kind)) for kind in NAMES}
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
