"""The board of ecomlab-core: rows in board.json, and BOARD.md, which is written from them."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from ecomlab.evaluation.core import CORE, HEADINGS, LEVELS, SPLITS, Row
from ecomlab.evaluation.result import interval, number, without_nan
from ecomlab.files import read_json, write_json, write_text

BOARD, PAGE, HEAD = "board.json", "BOARD.md", "head.md"
GAP = ("player", "generated", "real", "gap", "95%", *(f"d = {d}" for d in LEVELS))


def add(row: Row, file: Path, replace: bool = False) -> None:
    """Put a row into a board's file. Raises ValueError if it would `replace` another of the same name and split, or if
    the file holds anything else."""
    board = read_json(file)
    if board is None and file.exists():
        raise ValueError(f"{file} is no board; restore it, or name a file that does not exist yet")
    board = board or {}
    rows = board.setdefault(row.split, {})
    before = rows.get(row.player, {"trajectories": row.trajectories})
    if before["trajectories"] != row.trajectories and not replace:
        raise ValueError(
            f"{file} has another row named {row.player!r}; name this one by --name, or add --replace"
        )
    rows[row.player] = without_nan(asdict(row))
    write_json(file, board)


def rows_of(file: Path, split: str) -> list[Row]:
    """Read a board's rows of a split, the best first."""
    found = []
    for one in (read_json(file) or {}).get(split, {}).values():
        levels = {int(d): share for d, share in one["by_level"].items()}
        figures = {
            name: math.nan if one[name] is None else one[name] for name in ("pass_4", "tokens", "turns")
        }
        found.append(Row(**{**one, **figures, "by_level": levels}))
    return sorted(found, key=lambda row: (-row.pass_1, row.player))


def write_board(folder: Path) -> Path:
    """Write BOARD.md in a folder from its board.json, below the text of head.md, if there is one: a table a split, and
    the gap between them."""
    head, splits = folder / HEAD, {split: rows_of(folder / BOARD, split) for split in SPLITS}
    parts = [head.read_text("utf-8").rstrip() if head.is_file() else "# Board of ecomlab-core"]
    for split, rows in splits.items():
        if rows:
            parts += [f"## Split *{split}*", _table(HEADINGS, [row.cells() for row in rows])]
    if both := _gaps(**splits):
        parts += ["## Gap: generated - real", _table(GAP, both)]
    write_text(folder / PAGE, "\n\n".join(parts) + "\n")
    return folder / PAGE


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _gaps(generated: Iterable[Row], real: Iterable[Row]) -> list[list[str]]:
    """Compare the pass^1 of players that have both rows, with Newcombe's interval over tasks."""
    others = {row.player: row for row in real}
    found = []
    for row in generated:
        if other := others.get(row.player):
            low, high = newcombe(row.pass_1, other.pass_1, CORE.tasks * len(CORE.envs) * len(LEVELS))
            gap = row.pass_1 - other.pass_1
            by_level = [number(row.by_level[d] - other.by_level[d], 2) for d in LEVELS]
            shares = [number(row.pass_1), number(other.pass_1), number(gap), interval(low, high)]
            found.append([row.player, *shares, *by_level])
    return found


def newcombe(first: float, second: float, count: int) -> tuple[float, float]:
    """Return a 95% interval of the difference of two independent shares, of as many cases each (Newcombe 1998,
    method 10)."""
    from scipy.stats import binomtest

    one, other = (
        binomtest(round(share * count), count).proportion_ci(method="wilson") for share in (first, second)
    )
    gap = first - second
    low = gap - math.hypot(first - one.low, other.high - second)
    return low, gap + math.hypot(one.high - first, second - other.low)
