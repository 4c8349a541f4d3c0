"""The board of ecomlab-core: rows in board.json, and BOARD.md, which is written from them."""

import math
from dataclasses import asdict
from pathlib import Path

from ecomlab.evaluation.core import HEADINGS, Row
from ecomlab.evaluation.result import without_nan
from ecomlab.files import read_json, write_json, write_text

BOARD, PAGE, HEAD = "board.json", "BOARD.md", "head.md"


def add(row: Row, file: Path, replace: bool = False) -> None:
    """Put a row into a board's file. Raises ValueError if it would `replace` another of the same name, or if the file
    holds anything else."""
    rows = read_json(file)
    if rows is None and file.exists():
        raise ValueError(f"{file} is no board; restore it, or name a file that does not exist yet")
    before = (rows or {}).get(row.player, {"trajectories": row.trajectories})
    if before["trajectories"] != row.trajectories and not replace:
        raise ValueError(
            f"{file} has another row named {row.player!r}; name this one by --name, or add --replace"
        )
    write_json(file, {**(rows or {}), row.player: without_nan(asdict(row))})


def rows_of(file: Path) -> list[Row]:
    """Read a board's rows, the best first."""
    found = []
    for one in (read_json(file) or {}).values():
        levels = {int(d): share for d, share in one["by_level"].items()}
        figures = {
            name: math.nan if one[name] is None else one[name] for name in ("pass_4", "tokens", "turns")
        }
        found.append(Row(**{**one, **figures, "by_level": levels}))
    return sorted(found, key=lambda row: (-row.pass_1, row.player))


def write_board(folder: Path) -> Path:
    """Write BOARD.md in a folder from its board.json, below the text of head.md, if there is one."""
    lines = [HEADINGS, ["---"] * len(HEADINGS), *(row.cells() for row in rows_of(folder / BOARD))]
    head = (
        (folder / HEAD).read_text("utf-8").rstrip()
        if (folder / HEAD).is_file()
        else "# Board of ecomlab-core"
    )
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    write_text(folder / PAGE, f"{head}\n\n{table}\n")
    return folder / PAGE
