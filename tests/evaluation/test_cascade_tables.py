"""Tables of labelled trajectories: a row per mistake from any folder of transcripts; figures worked out by hand."""

import csv
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ecomlab import Shop
from ecomlab.cli import app
from ecomlab.evaluation.cascade.mistakes import Labelled, Mistake
from ecomlab.evaluation.cascade.tables import (
    COLUMNS,
    fates,
    label_folder,
    links,
    more_likely,
    rows_of,
    summary,
    survival,
)
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.evaluation import Cells, header_of, run_evaluation
from ecomlab.evaluation.scripted import ScriptedContestant
from ecomlab.evaluation.tasks import held_out_seeds
from ecomlab.evaluation.transcript import Transcript
from ecomlab.evaluation.transcripts import append, path_of


def episode(*mistakes: Mistake, turns: int = 4, seed: int = 0) -> Labelled:
    return Labelled("CART", 1, seed, turns, 4, "submit", not mistakes, False, mistakes)


WRONG = Mistake(2, "wrong product", "item 0", "misread", "mended alone", until=4)
IGNORED = Mistake(3, "ignored correction", "item 0", parent=0)
AGAIN = Mistake(4, "wrong variant", "item 0", "misread", "persisted")


def test_survival_is_kaplan_and_meiers() -> None:
    """Of four episodes of four turns one errs in turn 2, one stops in turn 2, one errs in turn 4: 3/4, then half."""
    found = survival([episode(WRONG), episode(turns=2), episode(AGAIN), episode()])
    at = {row["share"]: row for row in found}
    assert at[0.25]["surviving"] == 1
    assert at[0.5]["surviving"] == pytest.approx(3 / 4)
    assert at[0.75]["surviving"] == pytest.approx(3 / 4)
    assert at[1.0]["surviving"] == pytest.approx(3 / 8)
    assert at[1.0]["at_risk"] == 2
    assert at[0.5]["low"] < 3 / 4 < at[0.5]["high"]


def test_no_episode_has_no_survival() -> None:
    assert survival([]) == []
    assert [row["surviving"] for row in survival([episode()])] == [1.0] * 13


def test_fates_are_counted_by_kind() -> None:
    rows = {row["kind"]: row for row in fates([episode(WRONG, IGNORED, AGAIN), episode(WRONG)])}
    assert (rows["wrong product"]["mistakes"], rows["wrong product"]["mended alone"]) == (2, 2)
    assert rows["wrong product"]["turns"] == 2
    assert rows["wrong variant"]["persisted"] == 1


def test_links_are_in_time_at_a_slot_and_by_rule() -> None:
    found = {
        (row["link"], row["kind"], row["next"]): row["pairs"]
        for row in links([episode(WRONG, IGNORED, AGAIN)])
    }
    assert found == {
        ("follows", "wrong product", "ignored correction"): 1,
        ("follows", "ignored correction", "wrong variant"): 1,
        ("same slot", "wrong product", "ignored correction"): 1,
        ("same slot", "ignored correction", "wrong variant"): 1,
        ("parent", "wrong product", "ignored correction"): 1,
    }


def erring() -> list[Labelled]:
    """In turn 2, of ten episodes that erred in turn 1 five err again, of ten that did not one does."""
    first, second = replace(WRONG, turn=1), replace(AGAIN, turn=2)
    made = [(first, second)] * 5 + [(first,)] * 5 + [(second,)] + [()] * 9
    return [episode(*mistakes, turns=2, seed=seed) for seed, mistakes in enumerate(made)]


def test_a_mistake_after_another_is_held_against_one_in_the_same_turn() -> None:
    found = more_likely(erring())
    assert found["ratio"] == pytest.approx(5)
    assert found["low"] < 5 < found["high"]
    assert (found["after"], found["before"]) == (0.5, pytest.approx(11 / 30))


def test_episodes_of_one_task_count_as_one_draw() -> None:
    """Four equal trials of each task make nothing surer."""
    assert more_likely(erring() * 4) == more_likely(erring())


def test_a_ratio_has_no_upper_bound_where_mistakes_may_only_come_after_others() -> None:
    """A draw of tasks misses the only one that errs for the first time in turn 2 in a third of cases."""
    assert more_likely(erring())["high"] == math.inf
    only_after = [one for one in erring() if one.first is None or one.first.turn == 1]
    assert more_likely(only_after)["ratio"] == math.inf


def test_what_follows_by_rule_is_no_new_mistake() -> None:
    found = more_likely(
        [episode(replace(WRONG, turn=1), replace(IGNORED, turn=2), turns=2), episode(turns=2, seed=1)]
    )
    assert found["after"] == 0


@pytest.fixture(scope="module")
def folder(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Transcripts of the perturbed player, an unscored episode, and one that says something else than was played."""
    out = tmp_path_factory.mktemp("cascade")
    player, cells = ScriptedContestant("perturbed"), Cells(("CART", "PD"), (2, 6), 2)
    header = header_of("evaluation", "perturbed", player, cells.envs, {}, shop, {"size": 1_000, "seed": 0})
    run_evaluation(player, cells, shop, out, header, {})
    seed = held_out_seeds(0, 9)[-1]
    unscored = Transcript.of(Job("CART", 2, seed), None, unscored="connection")
    (made,) = ScriptedContestant("oracle").play([Job("CART", 2, seed, 1)], shop)
    changed = replace(
        made, messages=[made.messages[0], {"role": "user", "content": "Hello"}, *made.messages[2:]]
    )
    append(path_of(out), {}, [unscored, changed])
    return out


def test_every_episode_has_its_rows(folder: Path, shop: Shop) -> None:
    found = list(label_folder(folder, shop))
    assert len(found) == 10
    rows = [row for one in found for row in rows_of(one)]
    assert all(tuple(row) == COLUMNS for row in rows)
    assert len({(r["env"], r["d"], r["seed"], r["trial"]) for r in rows}) == 10
    assert [row["kind"] for row in rows[-2:]] == ["unscored", "not replayed"]
    labelled = [one.labelled for one in found if one.labelled]
    assert sum(len(one.mistakes) or 1 for one in labelled) == len(rows) - 2
    assert summary(labelled)["episodes"] == 8


def test_the_command_writes_both_files(folder: Path) -> None:
    json_file = folder / "cascade.json"
    done = CliRunner().invoke(app, ["cascade", str(folder), "--json", str(json_file)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "2 left out" in " ".join(done.output.split())
    assert done.output.endswith(f"written to {folder / 'cascade.csv'} and {json_file}\n")
    with (folder / "cascade.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = json.loads(json_file.read_text())
    assert found["all"]["episodes"] == len({(r["env"], r["d"], r["seed"]) for r in rows if r["turns"]})
    assert {(cell["env"], cell["d"]) for cell in found["cells"]} == {
        ("CART", 2),
        ("CART", 6),
        ("PD", 2),
        ("PD", 6),
    }
