"""ecomlab-core: a frozen benchmark of 256 tasks (eight environments, four levels), and what a submission earns::

    report = ecomlab.evaluate("novice", **core.TASKS, out="runs/core")     # or `ecomlab eval novice --core`
    core.check("runs/core")                                                # or `ecomlab submit-check runs/core`

It has two splits: "generated" on the embedded default, and "real" on amazon.csv, which `--catalog FOLDER` plays. A
submission is its transcripts of one. They are complete, their tasks are the frozen ones, and every episode replays to
its score; then they earn a row for the board (experiments/core/BOARD.md).
"""

import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecomlab.envs.registry import COLLECTIONS
from ecomlab.episode.episode import make_task
from ecomlab.evaluation.compare import check_scored
from ecomlab.evaluation.evaluation import EVALUATION, Cells, rescored, trajectory_of
from ecomlab.evaluation.mistakes import label
from ecomlab.evaluation.report import Report
from ecomlab.evaluation.result import number
from ecomlab.evaluation.summary import Ledger
from ecomlab.evaluation.transcript import Transcript, key_of
from ecomlab.evaluation.transcripts import TranscriptError
from ecomlab.seeding import digest

if TYPE_CHECKING:
    from ecomlab.catalog import Shop

LEVELS = (2, 6, 12, 20)
BLOCK = 10
"""Block of held-out tasks that belongs to the benchmark."""
TRIALS = 4
TASKS: dict[str, Any] = {"env": "C8", "difficulty": LEVELS, "tasks": 8, "trials": TRIALS, "block": BLOCK}
"""Arguments of `ecomlab.evaluate`. A player that always answers alike may have one trial."""
CORE = Cells(COLLECTIONS["C8"], LEVELS, 8, BLOCK, TRIALS)
FROZEN = "core.json"
"""Digest of the tasks of each cell by split, beside this module."""
SPLITS = {
    "generated": "the generated catalog of 20,000 products",
    "real": "15,971 products of the Amazon half of the Walmart-Amazon benchmark (amazon.csv in data/ccer/D8 of "
    "AI-team-UoA/pyJedAI on GitHub), built by `ecomlab catalog build amazon.csv FOLDER --yes`",
}
HALF = 0.5


@dataclass(frozen=True)
class Row:
    """A row of the board."""

    player: str
    pass_1: float
    """Success, the mean over environments and levels; unscored episodes count as failures."""
    pass_4: float
    """Estimated probability that four trials of a task all succeed; NaN with fewer."""
    by_level: Mapping[int, float]
    d50: Mapping[str, str]
    """Level at which success falls to one half, by environment and of all, between the levels played on a straight
    line; "<2" and ">20" at the ends."""
    turns: float
    tokens: float
    """Sampled in a mean episode; NaN if unknown."""
    cost: str
    fails_at: str
    """Commonest first mistake of the episodes that are not correct, with its share."""
    date: str
    """Day of the check."""
    ecomlab: str
    trajectories: str
    """Digest of all messages."""
    split: str = "generated"

    def cells(self) -> list[str]:
        """Write the row of a Markdown table."""
        levels = [number(self.by_level[d], 2) for d in LEVELS]
        spent = [number(self.turns, 1), number(self.tokens, 0), self.cost]
        d50 = [self.d50[env] for env in ("all", *CORE.envs)]
        shown = [self.player, number(self.pass_1), number(self.pass_4), *levels, *d50, *spent, self.fails_at]
        return [*shown, self.date, self.trajectories[:8]]


HEADINGS = (
    "player", "pass^1", "pass^4", *(f"d = {d}" for d in LEVELS), "d50", *CORE.envs, "turns", "tokens", "cost",
    "fails first at", "date", "digest",
)  # fmt: skip


def tasks_of(env: str, level: int, shop: "Shop") -> str:
    """Digest the tasks of a cell."""
    jobs = Cells((env,), (level,), CORE.tasks, BLOCK).jobs()
    return digest([make_task(job.env, job.d, job.seed, shop).digest() for job in jobs])


def frozen() -> dict[str, Any]:
    """Read, by split, the catalog's fingerprint and the digest of each cell's tasks."""
    found: dict[str, Any] = json.loads(files("ecomlab.evaluation").joinpath(FROZEN).read_text())
    return found


def split_of(fingerprint: str) -> str:
    """Name the split that is played on a catalog. Raises ValueError where none is."""
    for split, known in frozen().items():
        if known["catalog"] == fingerprint:
            return str(split)
    raise ValueError(
        f"no split of ecomlab-core is played on the catalog {fingerprint[:8]}. There are "
        + " and ".join(f"{split} ({products})" for split, products in SPLITS.items())
    )


def freeze(shop: "Shop") -> dict[str, Any]:
    """Compute what `frozen` holds of the split of a shop."""
    cells = {f"{env} {d}": tasks_of(env, d, shop) for env in CORE.envs for d in LEVELS}
    return {"catalog": shop.fingerprint, "tasks": cells}


def check(folder: str | Path, shop: "Shop") -> Row:
    """Check a submission and return its row. Raises TranscriptError with the first fault: other tasks or conditions, a
    missing episode, more than 2% unscored ones, or an episode that does not replay to its score."""
    report = Report.read(folder)
    _check_conditions(report, shop)
    found = report.transcripts
    trials = report.header["cells"]["trials"]
    wanted = {key_of(job) for job in Cells(CORE.envs, LEVELS, CORE.tasks, BLOCK, trials).jobs()}
    there = {one.key for one in found}
    if missing := len(wanted - there):
        raise TranscriptError(
            f"{folder} lacks {missing} of {len(wanted)} episodes; run the same `ecomlab eval --core` again to finish it"
        )
    if extra := len(there - wanted):
        raise TranscriptError(f"{folder} holds {extra} episodes that are not of ecomlab-core")
    check_scored(folder, found)
    for one in found:
        differs = None if one.unscored else rescored(one, shop)
        if differs is not None:
            job = one.job
            raise TranscriptError(
                f"{job.env} d = {job.d}, seed {job.seed}, trial {job.trial} does not replay to its score: "
                f"{differs.now.get('differs') or differs.now['value']}"
            )
    return row_of(report, shop)


def _check_conditions(report: Report, shop: "Shop") -> None:
    header = report.header
    cells = header["cells"] if header["kind"] == EVALUATION else {}
    asked = {"envs": list(CORE.envs), "levels": list(LEVELS), "tasks": CORE.tasks, "block": BLOCK}
    played = {name: json.loads(json.dumps(cells.get(name))) for name in asked}
    differs = [f"{name} = {played[name]}, not {asked[name]}" for name in asked if played[name] != asked[name]]
    if header["conditions"].get("axes") or any(one.job.axes for one in report.transcripts):
        differs.append("axes of difficulty are overridden")
    if header["conditions"].get("customer", "rules") != "rules":
        differs.append("a model words the customer")
    try:
        known = frozen()[split_of(header["conditions"]["catalog"]["fingerprint"])] if cells else {}
    except ValueError as error:
        differs.append(str(error))
    if differs or not cells:
        why = "; ".join(differs) if cells else "no evaluation"
        raise TranscriptError(
            f"{report.folder} is no evaluation of ecomlab-core: {why}. Make one by `ecomlab eval PLAYER --core`"
        )
    tasks: dict[tuple[str, int], list[str]] = {(one.job.env, one.job.d): [] for one in report.transcripts}
    for one in sorted(report.transcripts, key=lambda t: (t.job.seed, t.job.trial)):
        if one.job.trial == 0 and one.task:
            tasks[one.job.env, one.job.d].append(one.task)
    for (env, d), mine in tasks.items():
        if len(mine) == CORE.tasks and digest(mine) != known["tasks"][f"{env} {d}"]:
            raise TranscriptError(
                f"the tasks of {env} at d = {d} are not the frozen ones: they were played with another version of "
                "ecomlab; evaluate again"
            )


def row_of(report: Report, shop: "Shop") -> Row:
    """Make the row of an evaluation of the benchmark."""
    from importlib.metadata import version

    summary, found = report.summary, report.transcripts
    cells = {(cell["env"], cell["d"]): cell["success_of_all"] for cell in summary["cells"]}
    means = {d: sum(cells[env, d] for env in CORE.envs) / len(CORE.envs) for d in LEVELS}
    passed = summary["all"]["pass_k"]
    d50 = {env: _half([cells[env, d] for d in LEVELS]) for env in CORE.envs}
    return Row(
        player=f"{report.name}, greedy"
        if report.header["identity"].get("decoding") == "greedy"
        else report.name,
        pass_1=sum(means.values()) / len(means),
        pass_4=passed[TRIALS - 1] if len(passed) >= TRIALS else float("nan"),
        by_level=means,
        d50={"all": _half(list(means.values())), **d50},
        turns=summary["all"]["turns"],
        tokens=summary["all"]["tokens"],
        cost=Ledger(report.prices, report.attempts).cost,
        fails_at=_first_mistake([one for one in found if not one.unscored and not one.score.correct], shop),
        date=time.strftime("%Y-%m-%d", time.gmtime()),
        ecomlab=version("ecomlab"),
        trajectories=digest([[asdict(one.job), one.messages] for one in found]),
        split=split_of(report.header["conditions"]["catalog"]["fingerprint"]),
    )


def _half(success: Sequence[float]) -> str:
    """Find the level at which success falls below one half for the first time."""
    for place, share in enumerate(success):
        if share < HALF:
            if place == 0:
                return f"<{LEVELS[0]}"
            low, high, before = LEVELS[place - 1], LEVELS[place], success[place - 1]
            return f"{low + (before - HALF) / (before - share) * (high - low):.1f}"
    return f">{LEVELS[-1]}"


def _first_mistake(failures: Iterable[Transcript], shop: "Shop") -> str:
    kinds = Counter[str]()
    for one in failures:
        made = label(trajectory_of(one, shop), shop).mistakes
        kinds[made[0].kind if made else one.end or "none"] += 1
    if not kinds:
        return ""
    (kind, count), total = kinds.most_common(1)[0], sum(kinds.values())
    return f"{kind} ({count / total:.0%} of {total})"
