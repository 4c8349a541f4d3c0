"""How well labels find what was planted: a confusion table by kind and turn, and controls with nothing planted."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ecomlab.episode.episode import make_task
from ecomlab.evaluation.cascade.forced import ScriptedRunner
from ecomlab.evaluation.cascade.labels import label
from ecomlab.evaluation.cascade.mistakes import Labelled
from ecomlab.evaluation.cascade.planting import CLEAN, PLANTABLE, REPAIRED, Planted, Twin, plant, survey
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.tasks import held_out_seeds
from ecomlab.seeding import rng

if TYPE_CHECKING:
    from ecomlab.catalog import Shop

COLUMNS = ("env", "d", "planted", "repaired", "found", "turn", "alone", "episodes")
"""Columns of the table. `found` is the kind that was found in the place of what was planted, or "none"; `turn` is 1
where its turn is right too; `alone` is 1 where no other mistake was found but those that follow from it by rule."""
GOAL = 0.98
"""Share of what was planted that is found, kind and turn, in every cell."""
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
    there = {(m.kind, m.turn) for m in labelled.mistakes}.issuperset(planted.holds)
    expected = {*planted.holds, planted.first, ("wasted turn", planted.turn - 1), begins}
    if planted.kind == "patience lost":
        expected.add(("wasted turn", planted.turn))
    alone = all((m.kind, m.turn) in expected for m in labelled.roots)
    if begun and there:
        return Judged(planted.kind, True, alone)
    kinds = [m.kind for m in labelled.mistakes]
    return Judged(planted.kind if planted.kind in kinds else begins[0], False, alone)


def rows_of(
    env: str, d: int, count: int, shop: "Shop", kinds: Sequence[str] = PLANTABLE
) -> Iterator[list[dict[str, Any]]]:
    """Plant `count` mistakes of each kind in tasks of an environment at a level; yield the rows of the table, kind by
    kind.

    A kind of which fewer could be planted has fewer episodes. An episode that our own code broke raises.
    """
    twins = _Twins(env, d, shop)
    for kind in kinds:
        rows = []
        for repair in (False, True) if kind in REPAIRED else (False,):
            found = Counter(_judged(twins, kind, repair, count, shop))
            for (judged, turn, alone), episodes in sorted(found.items()):
                values = (env, d, kind, int(repair), judged, int(turn), int(alone), episodes)
                rows.append(dict(zip(COLUMNS, values, strict=True)))
        yield rows


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


Counts = tuple[int, int, int]
"""Episodes, those with kind and turn right, those of them with nothing else found."""


def accuracy(rows: Sequence[Mapping[str, Any]]) -> dict[str, Counts]:
    """Add up the rows of a table by kind."""
    found: dict[str, Counts] = {}
    for (_, _, name), counts in cells_of(rows).items():
        found[name] = _sum(found.get(name, (0, 0, 0)), counts)
    return found


def cells_of(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, int, str], Counts]:
    """Add up the rows of a table by environment, level and kind."""
    found: dict[tuple[str, int, str], Counts] = {}
    for row in rows:
        name = str(row["planted"]) + (", repaired" if int(row["repaired"]) else "")
        cell, count = (str(row["env"]), int(row["d"]), name), int(row["episodes"])
        right = count * bool(int(row["turn"]))
        found[cell] = _sum(found.get(cell, (0, 0, 0)), (count, right, right * bool(int(row["alone"]))))
    return found


def below_goal(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, int, str], Counts]:
    """List the cells of environment, level and kind in which less than `GOAL` was found, kind and turn; of few
    episodes, not all but one."""
    return {
        cell: (episodes, right, alone)
        for cell, (episodes, right, alone) in cells_of(rows).items()
        if right < min(GOAL * episodes, episodes - 1)
    }


def lacking(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, tuple[int, ...]], list[str]]:
    """List the kinds that an environment has at some levels of the table and not at these others, by environment and
    those others: they were not drawn there, or gave no opportunity."""
    levels = sorted({int(row["d"]) for row in rows})
    drawn: dict[tuple[str, str], set[int]] = {}
    for row in rows:
        drawn.setdefault((str(row["env"]), str(row["planted"])), set()).add(int(row["d"]))
    found: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for (env, kind), there in drawn.items():
        if others := tuple(d for d in levels if d not in there):
            found.setdefault((env, others), []).append(kind)
    return found


def _sum(one: Counts, other: Counts) -> Counts:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def as_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write the shares of planted mistakes that were found, by kind and in all, as a Markdown table, with each kind's
    cells and the smallest and the worst of them; then the cells below the goal, and those that are not there."""
    found, cells = accuracy(rows), cells_of(rows)
    lines = [
        "| planted | cells | smallest | episodes | kind and turn right | in the worst cell | and nothing else |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind in (*found, "all") if found else ():
        mine = [counts for (_, _, name), counts in cells.items() if kind in (name, "all")]
        episodes, right, alone = (sum(column) for column in zip(*mine, strict=True))
        smallest, worst = min(count for count, *_ in mine), min(good / count for count, good, _ in mine)
        lines.append(
            f"| {kind} | {len(mine)} | {smallest} | {episodes} | {right / episodes:.3f} | {worst:.3f} | "
            f"{alone / episodes:.3f} |"
        )
    few = "; ".join(
        f"{env}, d = {d}, {kind}: {n} of {of}" for (env, d, kind), (of, n, _) in below_goal(rows).items()
    )
    there = {(env, d) for env, d, _ in cells}
    levels = ", ".join(str(d) for d in sorted({d for _, d in there}))
    where = f"{len({env for env, _ in there})} environments, d = {levels}"
    asked = (
        f"{where}; asked for: {rows[0]['asked']} of each kind in each of {len(there)} cells." if rows else ""
    )
    other = "; ".join(
        f"{env} at d = {', '.join(map(str, levels))}: {', '.join(kinds)}"
        for (env, levels), kinds in lacking(rows).items()
    )
    less = f"Not drawn, or without an opportunity, where the environment has it at another level: {other or 'none'}."
    return "\n".join([asked, "", *lines, "", f"Below the goal: {few or 'no cell'}.", "", less])


CONTROLS = ("env", "d", "player", "episodes", "correct", "blamed", "sound")
"""Columns of the table of controls. `blamed`: episodes that end correct and have a mistake labelled, which of a player
that errs and mends is as it should be; `sound`: those in which something is labelled as left wrong exactly where the
verifier finds the end wrong, or whose end is invalid, which hands nothing in."""


def control_of(env: str, d: int, player: str, count: int, shop: "Shop") -> dict[str, Any]:
    """Play held-out tasks of an environment at a level with a script, label them, and return the row of the table. An
    episode that our own code broke raises."""
    jobs = [Job(env, d, seed) for seed in held_out_seeds(0, count)]
    played = ScriptedRunner(player).play(jobs, [None] * count, shop)
    found = []
    for job, trajectory in zip(jobs, played, strict=True):
        if trajectory is None or trajectory.score.unscored:
            raise RuntimeError(f"{player} in {job}: the episode broke")
        found.append(label(trajectory, shop))
    right = [one for one in found if one.correct]
    sound = [one for one in found if one.correct == (not one.standing) or one.end == "invalid"]
    values = (env, d, player, count, len(right), sum(bool(one.mistakes) for one in right), len(sound))
    return dict(zip(CONTROLS, values, strict=True))


def controls_as_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write the sums of controls by player as a Markdown table."""
    lines = [
        "| player | cells | episodes | correct | of them with a mistake | sound |",
        "|---|---|---|---|---|---|",
    ]
    for player in dict.fromkeys(row["player"] for row in rows):
        mine = [row for row in rows if row["player"] == player]
        sums = (sum(int(row[name]) for row in mine) for name in CONTROLS[3:])
        lines.append(f"| {player} | {len(mine)} | {' | '.join(f'{one:,}' for one in sums)} |")
    return "\n".join(lines)
