"""How well labels find what was planted: a confusion table by kind and turn."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ecomlab.episode.episode import make_task
from ecomlab.evaluate.cascade.labels import label
from ecomlab.evaluate.cascade.mistakes import Labelled
from ecomlab.evaluate.cascade.planting import CLEAN, PLANTABLE, REPAIRED, Planted, Twin, plant, survey
from ecomlab.seeding import rng

if TYPE_CHECKING:
    from ecomlab.catalog import Shop

COLUMNS = ("env", "d", "planted", "repaired", "found", "turn", "alone", "episodes")
"""Columns of the table. `found` is the kind that was found in the place of what was planted, or "none"; `turn` is 1
where its turn is right too; `alone` is 1 where no other mistake was found but those that follow from it by rule."""
TRIES = 4
"""Tasks that are tried for each mistake that is to be planted, for not every one gives the opportunity."""
HOPE = 60
"""Tasks after which a kind is left out that could be planted in none of them."""


@dataclass(frozen=True)
class Judged:
    """What was found of a planted mistake."""

    found: str
    turn: bool
    alone: bool

    @property
    def right(self) -> bool:
        """True if kind and turn are right; whether anything else was found is another question."""
        return self.turn


def judge(planted: Planted, labelled: Labelled) -> Judged:
    """Hold the labels of a trajectory against what was planted in it.

    It is found where a mistake of its kind and turn is, and the first mistake is the one that it began with; the kind
    of a first mistake that only prepares it is left open.
    """
    kind, at = planted.first
    first = labelled.first
    begins = (first.kind, first.turn) if first else (CLEAN, 0)
    begun = begins == (kind, at) if kind else begins[1] == at
    there = planted.kind == CLEAN or any(
        (m.kind, m.turn) == (planted.kind, planted.turn) for m in labelled.mistakes
    )
    expected = {(planted.kind, planted.turn), planted.first, ("wasted turn", planted.turn - 1), begins}
    if planted.kind == "patience lost":
        expected.add(("wasted turn", planted.turn))
    alone = all((m.kind, m.turn) in expected for m in labelled.roots)
    if begun and there:
        return Judged(planted.kind, True, alone)
    kinds = [m.kind for m in labelled.mistakes]
    return Judged(planted.kind if planted.kind in kinds else begins[0], False, alone)


def rows_of(env: str, d: int, count: int, shop: "Shop") -> Iterator[dict[str, Any]]:
    """Plant `count` mistakes of every kind in tasks of an environment at a level; yield the rows of the table.

    A kind of which fewer could be planted has fewer episodes. An episode that our own code broke raises.
    """
    twins = _Twins(env, d, shop)
    for kind in PLANTABLE:
        for repair in (False, True) if kind in REPAIRED else (False,):
            found = Counter(_judged(twins, kind, repair, count, shop))
            for (judged, turn, alone), episodes in sorted(found.items()):
                values = (env, d, kind, int(repair), judged, int(turn), int(alone), episodes)
                yield dict(zip(COLUMNS, values, strict=True))


def _judged(
    twins: "_Twins", kind: str, repair: bool, count: int, shop: "Shop"
) -> Iterator[tuple[str, bool, bool]]:
    left = count
    for seed in range(TRIES * count):
        if left == 0 or (left == count and seed == HOPE):
            return
        if (twin := twins[seed]) is None:
            continue
        random = rng("plant", kind, repair, *twin.trajectory.task.key)
        planted = plant(twin, shop, kind, random, repair)
        if planted is None:
            continue
        judged = judge(planted, label(planted.trajectory, shop))
        yield judged.found, judged.turn, judged.alone
        left -= 1


class _Twins:
    """The untouched episodes of an environment at a level, each played once."""

    def __init__(self, env: str, d: int, shop: "Shop") -> None:
        self.env, self.d, self.shop = env, d, shop
        self._known: dict[int, Twin | None] = {}

    def __getitem__(self, seed: int) -> Twin | None:
        if seed not in self._known:
            self._known[seed] = survey(make_task(self.env, self.d, seed, self.shop), self.shop)
        return self._known[seed]


def accuracy(rows: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, int, int]]:
    """Add up the rows of a table by kind: episodes, those with kind and turn right, those of them with nothing else
    found."""
    found: dict[str, tuple[int, int, int]] = {}
    for row in rows:
        name = str(row["planted"]) + (", repaired" if int(row["repaired"]) else "")
        episodes, right, alone = found.get(name, (0, 0, 0))
        count, is_right = int(row["episodes"]), bool(int(row["turn"]))
        found[name] = (
            episodes + count,
            right + count * is_right,
            alone + count * (is_right and bool(int(row["alone"]))),
        )
    return found


def as_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write the shares of planted mistakes that were found, by kind and in all, as a Markdown table."""
    found = accuracy(rows)
    every = tuple(map(sum, zip(*found.values(), strict=True))) if found else (0, 0, 0)
    lines = ["| planted | episodes | kind and turn right | and nothing else |", "|---|---|---|---|"]
    for kind, (episodes, right, alone) in [*found.items(), ("all", every)] if found else ():
        lines.append(f"| {kind} | {episodes} | {right / episodes:.3f} | {alone / episodes:.3f} |")
    cells = {(row["env"], row["d"]) for row in rows}
    levels = ", ".join(sorted({str(d) for _, d in cells}))
    where = f"{len(cells)} cells: {len({env for env, _ in cells})} environments, d = {levels}"
    asked = f"{where}; asked for: {rows[0]['asked']} of each kind in each." if rows else ""
    return "\n".join([asked, "", *lines])
