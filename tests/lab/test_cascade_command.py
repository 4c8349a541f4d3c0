"""The command cascade: a row per mistake from any folder of transcripts, and a summary worked out by hand."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ecomlab import Shop
from ecomlab.cli import app
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.evaluation import Cells, header_of, run_evaluation
from ecomlab.evaluation.mistakes import Labelled, Mistake
from ecomlab.evaluation.scripted import ScriptedContestant
from ecomlab.evaluation.tasks import held_out_seeds
from ecomlab.evaluation.transcript import Transcript
from ecomlab.evaluation.transcripts import append, path_of
from ecomlab.lab.cascades import COLUMNS, label_folder, rows_of, summary


def episode(*mistakes: Mistake) -> Labelled:
    return Labelled("CART", 1, 0, 4, 4, "submit", len(mistakes) < 2, False, mistakes)


WRONG = Mistake(2, "wrong product", "item 0", "misread", "mended alone", until=4)
AGAIN = Mistake(4, "wrong variant", "item 0", "misread", "persisted")


def test_mistakes_are_counted_by_kind_and_fate() -> None:
    found = summary([episode(WRONG, AGAIN), episode(WRONG), episode()])
    assert (found["episodes"], found["with_mistakes"], found["correct_after_mistakes"]) == (3, 2, 1)
    assert (found["first"], found["causes"]) == ({"wrong product": 2}, {"misread": 3})
    rows = {row["kind"]: row for row in found["fates"]}
    assert (rows["wrong product"]["mistakes"], rows["wrong product"]["mended alone"]) == (2, 2)
    assert rows["wrong product"]["turns"] == 2 and rows["wrong variant"]["persisted"] == 1


@pytest.fixture(scope="module")
def folder(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Transcripts of the perturbed player, an unscored episode, and one that says something else than was played."""
    out = tmp_path_factory.mktemp("cascade")
    player, cells = ScriptedContestant("perturbed"), Cells(("CART", "PD"), (2, 6), 2)
    header = header_of(
        "evaluation", "perturbed", player.identity, cells.envs, {}, shop, {"size": 1_000, "seed": 0}
    )
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
