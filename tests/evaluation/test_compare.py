"""Two players, task by task: by hand, by simulation, and everything that may not be compared."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contestants import Script
from test_evaluation import run

from ecomlab import Shop
from ecomlab.evaluation.compare import LOUD, compare, compare_transcripts, paired_interval
from ecomlab.evaluation.evaluation import Cells
from ecomlab.evaluation.report import Report
from ecomlab.evaluation.transcripts import FILE, TranscriptError, lines
from ecomlab.seeding import rng

CELLS = Cells(("STATUS", "CART"), (0, 3), 8, trials=2)


@pytest.fixture(scope="module")
def evaluations(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A good player, a bad one, the good one again, and one that many episodes failed."""
    root = tmp_path_factory.mktemp("evaluations")
    players = {
        "good": Script(),
        "bad": Script(rate=0.6, name="bad"),
        "again": Script(),
        "broken": Script(fails=lambda job: "connection" if job.trial else ""),
        "shorter": Script(limits={"turn": 128}),
    }
    for name, contestant in players.items():
        run(contestant, shop, root / name, CELLS)
    return {name: root / name for name in players}


def test_a_difference_is_shown_with_its_sign(evaluations: dict[str, Path]) -> None:
    found = compare(evaluations["bad"], evaluations["good"])
    *_, overall = found.differences
    assert [(d.env, d.tasks) for d in found.differences] == [("CART", 16), ("STATUS", 16), ("all", 32)]
    assert overall.significant and overall.mean < 0 and (overall.first, overall.second) == ("bad", "script")
    assert overall.mean == pytest.approx(overall.first_success - overall.second_success)
    again = compare(evaluations["good"], str(evaluations["again"]))
    (same,) = again.overall
    assert same.mean == 0 and same.low < 0 < same.high and not same.significant
    assert again.players == ("good", "again")  # of one name, so that their folders tell them apart


def test_several_players_are_compared_in_pairs(evaluations: dict[str, Path]) -> None:
    """Reports and folders; as a frame of numbers, a page of a notebook, Markdown and JSON."""
    found = compare(Report.read(evaluations["good"]), evaluations["bad"], evaluations["again"])
    assert found.players == ("good", "bad", "again")
    pairs = [("good", "bad"), ("good", "again"), ("bad", "again")]
    assert [(d.first, d.second) for d in found.overall] == pairs
    frame = found.frame
    assert len(frame) == 9 and frame["mean"].dtype == float and frame["significant"].dtype == bool
    for shown in (found._repr_html_(), found.markdown(), repr(found)):
        assert "good against bad against again" in shown
    assert len(json.loads(json.dumps(found.to_json()))["differences"]) == 9
    with pytest.raises(ValueError, match="two or more"):
        compare(evaluations["good"])


def test_the_difference_is_that_of_the_shares_where_a_trial_has_no_score(shop: Shop) -> None:
    """Right in one trial of a task, of which the other failed, and wrong in both of another: half of the tasks."""
    jobs = Cells(("STATUS",), (0,), 2, trials=2).jobs()
    right = list(Script().play(jobs, shop))
    mixed = [replace(t, score=replace(t.score, correct=t is right[0] or t is right[1])) for t in right]
    (found,) = compare_transcripts(("a", "b"), (right, [mixed[0], *mixed[2:]])).overall
    assert (found.first_success, found.second_success, found.mean) == (1.0, 0.5, 0.5)


def test_the_interval_of_pairs_by_hand() -> None:
    """Of 8 tasks, the first wins 3, the second 1: with one more each, 4 and 2 of 10, 2/10 ± 1.96 √((.6 - .04)/10)."""
    mean, low, high, shows = paired_interval([1, 1, 1, -1, 0, 0, 0, 0])
    half = 1.959964 * (0.056**0.5)
    assert (mean, low, high) == pytest.approx((0.25, 0.2 - half, 0.2 + half))
    assert shows == pytest.approx((1.959964 + 0.841621) * 0.056**0.5)


@pytest.mark.parametrize(("wins", "losses"), [(0.01, 0.01), (0.1, 0.02), (0.3, 0.2), (0.05, 0.0)])
def test_the_interval_of_pairs_covers(wins: float, losses: float) -> None:
    random, covered = rng("test pairs", wins, losses), 0
    samples = random.choice([1.0, -1.0, 0.0], size=(2_000, 100), p=[wins, losses, 1 - wins - losses])
    for sample in samples:
        _, low, high, _ = paired_interval(sample)
        covered += low <= wins - losses <= high
    assert covered / len(samples) >= 0.93


def test_trials_of_a_task_are_one_unit() -> None:
    """Two trials that always agree tell no more than one."""
    random = rng("test clusters")
    sample = random.choice([1.0, 0.0], 50)
    one, two = paired_interval(sample), paired_interval(np.stack([sample, sample]).mean(0))
    assert one == two


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("broken", "32 of 64 episodes are unscored .connection., more than 2%; .*--retry-unscored"),
        ("shorter", "limits.turn is 256 of good, 128 of shorter .align: --set turn_tokens="),
    ],
)
def test_what_cannot_be_compared_is_refused_or_compared_with_a_loud_note(
    name: str, words: str, evaluations: dict[str, Path]
) -> None:
    with pytest.raises(TranscriptError, match=f"{words}.*--anyway"):
        compare(evaluations["good"], evaluations[name])
    found = compare(evaluations["good"], evaluations[name], strict=False)
    assert found.lines[0] == LOUD and re.search(words, found.lines[1]) and found.overall[0].mean == 0


def rewritten(folder: Path, to: Path, **header: Any) -> Path:
    """A copy of an evaluation with another header, and without its last episode if `header` has nothing."""
    kept = [
        {kind: value if kind in ("header", "plan") else value.to_json()}
        for kind, value in lines(folder / FILE)
    ]
    if not header:
        kept.pop()
    for name, value in header.items():
        place = kept[0]["header"]
        *above, last = name.split("__")
        for part in above:
            place = place[part]
        place[last] = value
    to.mkdir()
    (to / FILE).write_text("".join(json.dumps(line) + "\n" for line in kept))
    return to


def test_scores_of_another_reward_are_not_mixed_into_a_run(
    evaluations: dict[str, Path], shop: Shop, tmp_path: Path
) -> None:
    """A record of before such digests were kept goes on, and is compared."""
    other = rewritten(evaluations["again"], tmp_path / "other", conditions__scores__CART="z")
    with pytest.raises(TranscriptError, match=r"conditions\.scores\.CART"):
        run(Script(), shop, other, CELLS)
    old = rewritten(evaluations["again"], tmp_path / "old", conditions__scores={})
    run(Script(), shop, old, CELLS)
    assert compare(evaluations["good"], old).overall[0].mean == 0


@pytest.mark.parametrize("first", [True, False], ids=["first", "second"])
def test_a_limit_of_episodes_that_only_one_has_is_a_condition_where_it_was_reached(
    first: bool, evaluations: dict[str, Path], tmp_path: Path
) -> None:
    """Local weights have one and an endpoint has none; each of these episodes has 10 tokens."""

    def limited(most: int | None) -> Path:
        return rewritten(
            evaluations["again"], tmp_path / str(most), conditions__limits={"turn": 256, "episode": most}
        )

    free, roomy, narrow = limited(None), limited(11), limited(10)
    assert compare(*((roomy, free) if first else (free, roomy))).overall[0].mean == 0
    with pytest.raises(TranscriptError, match=r"limits.episode is .*null.*align: --set episode_tokens"):
        compare(*((narrow, free) if first else (free, narrow)))
    with pytest.raises(TranscriptError, match="limits.episode is 11 of 11, 10 of 10"):
        compare(roomy, narrow)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"kind": "training"}, "training run"),
        ({}, "unfinished: 63 of 64"),
    ],
)
def test_only_whole_evaluations_are_compared(
    header: dict[str, Any], words: str, evaluations: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(TranscriptError, match=words):
        compare(rewritten(evaluations["again"], tmp_path / "other", **header), evaluations["good"])


def test_other_levels_are_left_out_and_counted(
    shop: Shop, evaluations: dict[str, Path], tmp_path: Path
) -> None:
    run(Script(), shop, tmp_path / "few", Cells(("STATUS", "PD"), (0,), 4, trials=2))
    found = compare(tmp_path / "few", evaluations["good"])
    assert (found.overall[0].tasks, found.left_out) == (4, (8, 56))
    run(Script(), shop, tmp_path / "none", Cells(("PD",), (0,), 2))
    with pytest.raises(TranscriptError, match="no common task"):
        compare(tmp_path / "none", evaluations["good"])
