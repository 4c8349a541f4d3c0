"""The frontier of a player: the highest difficulty at which it still succeeds in 90% and in 50% of its episodes.

A level is passed at a share if success there and at every lower level is at least the share. The search plays ten
episodes at a few levels, then at levels between those shown to be passed and those shown not to be, until none is left,
or for 400 episodes. Its intervals invert exact binomial tests and assume that success does not rise with the level;
`experiments/bench/frontier_coverage.py` measures their coverage.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.evaluation.compare import check_scored
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.evaluation import Contestant, OnProgress, play_all
from ecomlab.evaluation.report import ledger_lines
from ecomlab.evaluation.result import Result, Table
from ecomlab.evaluation.tasks import held_out_seeds
from ecomlab.evaluation.transcript import Key, Transcript, key_of
from ecomlab.evaluation.transcripts import opened, player_of, read

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


TOP = 12
"""Highest level that is searched; the lowest is 0."""
SHARES = (0.9, 0.5)
"""Success rates at which a level is passed."""
FIRST = (0, 3, 6, 9, 12)
"""Levels of the first round."""
BATCH, MOST = 10, 400
"""Episodes per batch at a level, and maximum episodes of an environment."""
TAIL = 0.006
"""Probability below which a test rejects a level. An interval takes several tests: with this tail, about 95% of the
intervals contain the level in the hardest case (success equal to the share at every level), and more elsewhere."""


@dataclass(frozen=True)
class Counts:
    """Scored episodes and successes at each level, from 0 to `TOP`."""

    played: tuple[int, ...] = (0,) * (TOP + 1)
    won: tuple[int, ...] = (0,) * (TOP + 1)

    def add(self, level: int, outcomes: Sequence[bool]) -> "Counts":
        played, won = list(self.played), list(self.won)
        played[level] += len(outcomes)
        won[level] += sum(outcomes)
        return Counts(tuple(played), tuple(won))


@dataclass(frozen=True)
class Passed:
    """The highest level passed at a share of success, and its 95% interval; -1 stands for below 0, `TOP` for `TOP` or
    above."""

    share: float
    level: int
    low: int
    high: int


def passed(counts: Counts, share: float) -> Passed:
    """Estimate the highest level passed by a non-increasing fit, with the interval of the levels that no test rejects.

    If every level is rejected, success rises somewhere, and the interval is the whole scale.
    """
    left = [level for level in range(-1, TOP + 1) if _is_left(counts, share, level)] or [-1, TOP]
    return Passed(share, min(max(_fitted(counts, share), min(left)), max(left)), min(left), max(left))


def _is_left(counts: Counts, share: float, level: int) -> bool:
    """Tell whether this can be the highest level passed: no run of levels that ends there succeeds too rarely, and none
    that begins above it too often."""
    played, won = np.cumsum((0, *counts.played)), np.cumsum((0, *counts.won))
    for low in range(level + 1):
        count = int(played[level + 1] - played[low])
        if counts.played[low] and _tail(int(won[level + 1] - won[low]), count, share) < TAIL:
            return False
    for high in range(level + 1, TOP + 1):
        count = int(played[high + 1] - played[level + 1])
        if counts.played[high] and _tail(int(won[high + 1] - won[level + 1]), count, share, True) < TAIL:
            return False
    return True


@lru_cache(2**16)
def _tail(won: int, count: int, share: float, above: bool = False) -> float:
    """Compute the probability of at most, or if `above` at least, `won` successes in `count` episodes."""
    from scipy.stats import binom

    return float(binom.sf(won - 1, count, share) if above else binom.cdf(won, count, share))


def _fitted(counts: Counts, share: float) -> int:
    """Find the highest level up to which a non-increasing fit of success, interpolated linearly, reaches the share."""
    from scipy.optimize import isotonic_regression

    levels = np.flatnonzero(counts.played)
    if not len(levels):
        return -1
    played, won = np.array(counts.played)[levels], np.array(counts.won)[levels]
    fit = isotonic_regression(won / played, weights=played, increasing=False).x
    reached = np.interp(np.arange(TOP + 1), levels, fit) >= share - 1e-9
    return int(reached.cumprod().sum()) - 1


def rises(counts: Counts) -> bool:
    """Tell whether success is shown to rise with the level, against the assumption of the search: by Fisher's exact
    test of the levels above a cut against those below, for every cut, with Bonferroni's correction."""
    from scipy.stats import fisher_exact

    won, lost = np.array(counts.won), np.array(counts.played) - counts.won
    return any(
        fisher_exact(
            [[won[above:].sum(), lost[above:].sum()], [won[:above].sum(), lost[:above].sum()]], "greater"
        ).pvalue
        < TAIL / TOP
        for above in range(1, TOP + 1)
    )


def ask(counts: Counts, asked: int) -> list[int]:
    """Choose the levels of the next batches of ten episodes; none at the end.

    `asked` is the number of episodes played so far, unscored ones included.
    """
    if not asked:
        return list(FIRST)
    levels = [level for share in SHARES if (level := _between(counts, passed(counts, share))) is not None]
    return levels[: (MOST - asked) // BATCH]


def _between(counts: Counts, found: Passed) -> int | None:
    """Choose the level halfway between the estimate and the end of its interval that was played less; None if the
    interval is one level."""
    options = []
    if found.low < found.level:
        options.append((found.low + found.level + 2) // 2)
    if found.high > found.level:
        options.append((found.high + found.level + 1) // 2)
    return min(options, key=lambda level: (counts.played[level], level), default=None)


# --- the search with a player ---


@dataclass(frozen=True)
class Found:
    """The result of an environment's search."""

    env: str
    passed: tuple[Passed, ...]
    """For each of `SHARES`."""
    counts: Counts
    unscored: int

    def to_json(self) -> dict[str, Any]:
        """Write as a JSON object: with `level`, `low` and `high` for each share, and whether success `rises`."""
        return {
            "env": self.env,
            "held": [vars(one) for one in self.passed],  # the name in committed records
            "played": list(self.counts.played),
            "won": list(self.counts.won),
            "rises": rises(self.counts),
            "episodes": sum(self.counts.played),
            "unscored": self.unscored,
        }


def find_frontier(
    contestant: Contestant,
    envs: Sequence[str],
    shop: Shop,
    folder: Path,
    header: Mapping[str, Any],
    made_with: Mapping[str, Any],
    *,
    block: int = 0,
    retry_unscored: bool = False,
    on_progress: OnProgress = lambda _: None,
) -> list[Found]:
    """Search all environments side by side and record every episode; a killed search resumes. The search of an
    environment ends with a round without scored episodes.

    Raises TranscriptError for a folder that holds another run, and if more than 2% of an environment's episodes are
    unscored.
    """
    with opened(folder, {**header, "search": {"block": block, "most": MOST, "tail": TAIL}}, made_with) as log:
        results = {transcript.key: transcript for transcript in read(folder)}

        def keep(event: Mapping[str, Any]) -> None:
            results[event["transcript"].key] = event["transcript"]
            on_progress(event)

        searches = {env: _Search(env, block) for env in envs}
        while jobs := [job for search in searches.values() for job in search.jobs()]:
            episodes = sum(search.asked for search in searches.values())
            on_progress({"kind": "round", "episodes": episodes, "most": MOST * len(envs)})
            play_all(contestant, jobs, shop, log, retry_unscored, keep)
            for search in searches.values():
                search.take(results)
    for env, search in searches.items():
        check_scored(f"{folder}, {env}", search.transcripts)
    return [search.result() for search in searches.values()]


class _Search:
    """The search of one environment: the episodes so far and their outcomes."""

    def __init__(self, env: str, block: int) -> None:
        self.env, self.block = env, block
        self.counts, self.asked = Counts(), 0
        self.tasks = [0] * (TOP + 1)
        """Tasks used at each level."""
        self.pending: list[Job] = []
        self.transcripts: list[Transcript] = []
        self.gone = False
        """True after a round without scored episodes: the player does not answer."""

    def jobs(self) -> list[Job]:
        """List the episodes to play next; none at the end."""
        self.pending = []
        for level in [] if self.gone else ask(self.counts, self.asked):
            seeds = held_out_seeds(self.block, self.tasks[level] + BATCH)[self.tasks[level] :]
            self.pending += [Job(self.env, level, seed) for seed in seeds]
            self.tasks[level] += BATCH
        return self.pending

    def take(self, results: Mapping[Key, Transcript]) -> None:
        played = [results[key_of(job)] for job in self.pending]
        self.asked += len(played)
        self.transcripts += played
        if played:
            self.gone = all(transcript.unscored for transcript in played)
        for transcript in played:
            if not transcript.unscored:
                self.counts = self.counts.add(transcript.job.d, [transcript.score.correct])

    def result(self) -> Found:
        unscored = sum(bool(transcript.unscored) for transcript in self.transcripts)
        return Found(self.env, tuple(passed(self.counts, share) for share in SHARES), self.counts, unscored)


def words(found: Passed) -> str:
    """Write a level with its interval: "3 [2, 5]", "below 0", "12 or above [9, 12 or above]"."""
    level, low, high = (_named(value) for value in (found.level, found.low, found.high))
    return level if found.low == found.high else f"{level} [{low}, {high}]"


def _named(level: int) -> str:
    return {-1: "below 0", TOP: f"{TOP} or above"}.get(level, str(level))


# --- the result ---

PASSED = (
    "passed: success there and at every lower level is at least the share; in brackets: the 95% interval, if it is "
    "longer than one level"
)
RISES = "success rises with the level, against the assumption of the search: this row is not valid"


@dataclass(frozen=True, eq=False, repr=False)
class Frontier(Result):
    """The highest levels that a player passes, by environment."""

    header: Mapping[str, Any]
    found: Sequence[Found]
    ledger: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    folder: Path | None = None
    """Folder of the transcripts; None if they were not kept."""

    @property
    def name(self) -> str:
        return player_of(self.header)

    @property
    def frame(self) -> "pd.DataFrame":
        """A row an environment and share: level, low and high (95%); -1 stands for below 0."""
        import pandas as pd

        return pd.DataFrame([{"env": one.env, **vars(level)} for one in self.found for level in one.passed])

    def plot(self) -> "Figure":
        """Draw a row an environment: for each share, a dot with its interval."""
        from ecomlab.evaluation.report_plots import frontier

        return frontier(self.frame.assign(player=self.name), TOP)

    @property
    def title(self) -> str:
        return f"{self.name}: highest difficulty passed"

    @property
    def table(self) -> Table:
        headings = ["env", *(f"passed at {share:.0%}" for share in SHARES), "episodes", "unscored"]
        rows = [
            [one.env, *map(words, one.passed), str(sum(one.counts.played)), str(one.unscored)]
            for one in self.found
        ]
        return headings, rows

    @property
    def lines(self) -> list[str]:
        return [
            PASSED,
            *(f"{one.env}: {RISES}" for one in self.found if rises(one.counts)),
            *ledger_lines(self.ledger),
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "header": self.header,
            "environments": [one.to_json() for one in self.found],
            "ledger": self.ledger,
        }
