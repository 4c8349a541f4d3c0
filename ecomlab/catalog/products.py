"""A cleaned table of someone's products on disk: one row a product, memory-mapped, with a page of facts beside it."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ecomlab.files import file_digest, read_json, write_json

if TYPE_CHECKING:
    import pyarrow as pa

FACTS: Final = "products.json"
VERSION: Final = 1
CHUNK: Final = 20_000
"""Rows that are written together."""
ID_LETTERS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


@dataclass(frozen=True, eq=False)
class Products:
    """Products by row, sorted by department and type, and facts about them; `docs/catalogs.md` lists the columns."""

    rows: "pa.Table"
    facts: dict[str, Any]

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def __repr__(self) -> str:
        return f"<Products: {len(self)} of {self.facts.get('source')}>"

    @cached_property
    def attribute_names(self) -> list[str]:
        """Names of attributes, in the order of columns."""
        return [name.removeprefix("attr.") for name in self.rows.column_names if name.startswith("attr.")]


def rows_at(table: "pa.Table", rows: np.ndarray | Sequence[int]) -> "pa.Table":
    """Take rows of a memory-mapped table, in the order of `rows`.

    `Table.take` first puts the pieces of every column together: all of the file in memory, at each call, and an error
    from 2 GB of text on.
    """
    from pyarrow import array, dataset

    return dataset.dataset(table).take(array(np.asarray(rows, np.int64)))


def write_rows(folder: Path, batches: Iterable["pa.RecordBatch"], schema: "pa.Schema") -> dict[str, Any]:
    """Write products beside those that are there, and return what `save_facts` must say of them.

    No other process may write in `folder`: what a killed one left unfinished is written over.
    """
    import pyarrow as pa

    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / ".products.arrow"
    with pa.OSFile(str(draft), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    stamp = file_digest(draft)
    draft.replace(folder / f"products-{stamp[:12]}.arrow")
    return {"version": VERSION, "file": f"products-{stamp[:12]}.arrow", "digest": stamp}


def save_facts(folder: Path, facts: dict[str, Any]) -> None:
    """Make the rows that `facts` names the products of `folder`: a kill leaves the old table or the new one whole."""
    write_json(folder / FACTS, facts)
    for old in folder.glob(f"products-{'[0-9a-f]' * 12}.arrow"):
        if old.name != facts["file"]:
            old.unlink(missing_ok=True)


def open_products(folder: Path) -> Products:
    """Open the table in `folder`, memory-mapped. Raises ValueError where there is none, or one of another version."""
    import pyarrow as pa

    facts = read_json(folder / FACTS)
    if facts is None:
        raise ValueError(f"{folder} holds no products; make them with: ecomlab catalog build SOURCE {folder}")
    if facts.get("version") != VERSION:
        raise ValueError(f"{folder} was made by another version of ecomlab; build it again from its source")
    data = folder / Path(str(facts.get("file"))).name
    try:
        rows = pa.ipc.open_file(pa.memory_map(str(data))).read_all()
    except (OSError, pa.ArrowException) as error:
        raise ValueError(
            f"{data} cannot be read ({error}); build the catalog again from its source"
        ) from None
    return Products(rows, facts)


def product_ids(names: Sequence[str]) -> list[str]:
    """Make an id of each product's name in its source: "P" and eight characters, unlike any other number or word."""
    made: dict[str, None] = {}
    for name in names:
        made[next(one for turn in count() if (one := _id(name, turn)) not in made)] = None
    return [*made]


def _id(name: str, turn: int) -> str:
    salt = turn.to_bytes(2, "little")
    number = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=5, salt=salt).digest(), "little")
    return "P" + "".join(ID_LETTERS[(number >> (5 * place)) & 31] for place in range(8))


def drawn_days(ids: Sequence[str]) -> np.ndarray:
    """Draw each product's shipping days from its id, as the generated shop spreads them: int8."""
    steps = np.cumsum([0.14, 0.24, 0.21, 0.15, 0.12, 0.08])
    return (1 + np.searchsorted(steps, _uniform(ids, "days"), side="right")).astype(np.int8)


def drawn_stock(ids: Sequence[str]) -> np.ndarray:
    """Draw each product's units in stock from its id, long-tailed, about 4% sold out: int16."""
    from scipy.special import ndtri

    units = np.minimum(1 + np.exp(3.0 + 1.1 * ndtri(np.clip(_uniform(ids, "stock"), 1e-9, 1 - 1e-9))), 999)
    return np.where(_uniform(ids, "sold out") < 0.04, 0, units).astype(np.int16)


def _uniform(ids: Sequence[str], what: str) -> np.ndarray:
    """Return a number in [0, 1) for each id, the same in every process."""
    key = what.encode()
    raw = b"".join(hashlib.blake2b(one.encode(), digest_size=8, key=key).digest() for one in ids)
    return np.frombuffer(raw, "<u8") / 2.0**64
