"""The frontier: by hand, by simulation, and with a player whose search is killed on the way."""

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contestants import Script

from ecomlab import Shop
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.evaluation import FRONTIER, header_of
from ecomlab.evaluation.frontier import (
    BATCH,
    FIRST,
    MOST,
    SHARES,
    TOP,
    Counts,
    Found,
    Passed,
    ask,
    find_frontier,
    passed,
    rises,
    words,
)
from ecomlab.evaluation.tasks import held_out_seeds
from ecomlab.evaluation.transcripts import TranscriptError, read
from ecomlab.seeding import rng

COVERAGE = Path(__file__).parents[2] / "experiments" / "bench" / "frontier_coverage.csv"


def counts(**levels: tuple[int, int]) -> Counts:
    """Counts from d0=(won, played), ..."""
    found = Counts()
    for name, (won, played) in levels.items():
        found = found.add(int(name[1:]), [True] * won + [False] * (played - won))
    return found


def test_levels_that_are_clear_leave_one() -> None:
    """Always right up to 4, never from 5 on."""
    seen = counts(d0=(60, 60), d4=(60, 60), d5=(0, 60), d12=(0, 10))
    assert [passed(seen, share) for share in SHARES] == [Passed(0.9, 4, 4, 4), Passed(0.5, 4, 4, 4)]


def test_nothing_played_leaves_everything() -> None:
    assert passed(Counts(), 0.5) == Passed(0.5, -1, -1, TOP)


def test_the_ends_of_the_scale_are_answers() -> None:
    right, wrong = counts(d0=(50, 50), d12=(50, 50)), counts(d0=(0, 50), d12=(0, 50))
    assert words(passed(right, 0.9)) == "12 or above" and words(passed(wrong, 0.5)) == "below 0"
    assert words(Passed(0.9, 3, -1, 12)) == "3 [below 0, 12 or above]"


def test_a_level_is_passed_only_with_those_below() -> None:
    """By the fit that falls: .2 at 3 pulls down .9 at 6."""
    assert passed(counts(d0=(10, 10), d3=(2, 10), d6=(9, 10), d12=(0, 10)), 0.9).level < 3


def test_success_that_rises_leaves_the_whole_scale() -> None:
    found = passed(counts(d0=(0, 100), d12=(100, 100)), 0.5)
    assert (found.low, found.high) == (-1, TOP)


def test_success_that_rises_is_said_where_it_is_shown() -> None:
    """By Fisher's test: 3 of 20 against 39 of 40, and not 6 of 20 against 9 of 20."""
    assert rises(counts(d0=(1, 10), d3=(2, 10), d6=(20, 20), d9=(9, 10), d12=(10, 10)))
    assert not rises(counts(d0=(6, 20), d12=(9, 20)))
    assert not rises(counts(d0=(10, 10), d12=(0, 10))) and not rises(Counts())


def search(success: Sequence[float], *key: Any) -> tuple[Counts, int]:
    random, seen, asked = rng("test frontier", *key), Counts(), 0
    while levels := ask(seen, asked):
        for level in levels:
            seen = seen.add(level, list(random.random(BATCH) < success[level]))
        asked += BATCH * len(levels)
    return seen, asked


@pytest.mark.parametrize("success", [0.0, 0.5, 0.9, 1.0])
def test_a_search_ends_with_what_it_may_play(success: float) -> None:
    seen, asked = search([success] * (TOP + 1), success)
    assert len(FIRST) * BATCH <= asked <= MOST and sum(seen.played) == asked
    if success in (0.0, 1.0):
        assert asked <= 200, "an answer that is clear takes few episodes"


@pytest.mark.slow
@pytest.mark.parametrize("share", SHARES)
def test_intervals_hold_where_it_is_hardest(share: float) -> None:
    """Success at the share on every level: the answer is 12 or above, and any level below it looks like a fall."""
    ends = [passed(search([share] * (TOP + 1), share, i)[0], share) for i in range(100)]
    assert np.mean([end.high == TOP for end in ends]) >= 0.9


def test_the_committed_table_shows_the_coverage() -> None:
    """Every truth of the simulation: 95% up to the simulation's own error."""
    with COVERAGE.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) >= 2 * 15 and all(int(row["searches"]) >= 500 for row in rows)
    for row in rows:
        error = (0.95 * 0.05 / int(row["searches"])) ** 0.5
        assert float(row["coverage"]) >= 0.95 - 2 * error, row
    assert any(row["coverage"] != "1.0" for row in rows)


# --- with a player ---


class Wall(Script):
    """The reference player up to level 4 of STATUS, and a player that always errs above."""

    def play(self, jobs: Sequence[Job], shop: Shop) -> Any:
        for job in jobs:
            (played,) = Script(rate=0.0 if job.d <= 4 else 1.0, fails=self.fails).play([job], shop)
            self.played.append(job)
            yield played


def find(contestant: Script, shop: Shop, folder: Path, **more: Any) -> list[Found]:
    header = header_of(
        FRONTIER, contestant.name, contestant.identity, ["STATUS"], {}, shop, {"size": 1000, "seed": 0}
    )
    return find_frontier(contestant, ["STATUS"], shop, folder, header, {"commit": "abc"}, **more)


class Echo(Script):
    """One episode, played once and handed back for every job."""

    def play(self, jobs: Sequence[Job], shop: Shop) -> Any:
        (one,) = Script().play([Job("STATUS", 0, held_out_seeds(0, 1)[0])], shop)
        for job in jobs:
            self.played.append(job)
            yield replace(one, job=job, unscored=self.fails(job), notes={"why": "nobody there"})


class Interrupted(Wall):
    """Stopped after 97 episodes."""

    def play(self, jobs: Sequence[Job], shop: Shop) -> Any:
        for played in super().play(jobs, shop):
            if len(self.played) > 97:
                raise KeyboardInterrupt
            yield played


def test_a_search_finds_the_wall_and_goes_on_where_it_was_stopped(shop: Shop, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        find(Interrupted(), shop, tmp_path)
    assert len(list(read(tmp_path))) == 97
    rest = Wall()
    (found,) = find(rest, shop, tmp_path)
    assert [(one.level, one.low, one.high) for one in found.passed] == [(4, 4, 4)] * 2
    assert sum(found.counts.played) == len(list(read(tmp_path))) == 97 + len(rest.played) <= MOST
    again = Wall()
    assert find(again, shop, tmp_path) == [found] and again.played == []
    assert found.to_json()["held"][0] == {"share": 0.9, "level": 4, "low": 4, "high": 4}


def test_an_environment_that_cannot_be_played_ends_with_its_first_round_beside_others(
    shop: Shop, tmp_path: Path
) -> None:
    """The error says why; STATUS, all right, is searched to its end. A second start plays nothing."""
    player, envs = Echo(fails=lambda job: "connection" if job.env == "PD" else ""), ["STATUS", "PD"]
    header = header_of(FRONTIER, player.name, player.identity, envs, {}, shop, {"size": 1000, "seed": 0})
    for _ in range(2):
        with pytest.raises(TranscriptError, match=", PD: 50 of 50 .*nobody there"):
            find_frontier(player, envs, shop, tmp_path, header, {})
    played = [job.env for job in player.played]
    assert played.count("PD") == len(FIRST) * BATCH < played.count("STATUS")


def test_unscored_episodes_are_no_answer(shop: Shop, tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="are unscored .connection., more than 2%; .*--retry-unscored"):
        find(Wall(fails=lambda job: "connection" if job.seed % 3 == 0 else ""), shop, tmp_path)
    (found,) = find(Wall(), shop, tmp_path, retry_unscored=True)
    assert found.unscored == 0 and found.passed[0].level == 4
