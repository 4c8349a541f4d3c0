"""Every notebook keeps the house rules and runs from top to bottom, shrunk by its own parameters."""

import ast
import io
import json
import re
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import nbformat
import notebook_process
import papermill
import pytest
from fake_tables import collection_rows, eval_rows, train_rows, write_certificate
from rich.console import Console

from ecomlab.analysis import tables
from ecomlab.envs.registry import COLLECTIONS
from ecomlab.evaluation.transcripts import read_header
from ecomlab.lab import notebooks, runner
from ecomlab.lab.sweep import Run
from ecomlab.task import Task

ROOT = Path(__file__).resolve().parents[2]
ALL = sorted((ROOT / "notebooks").glob("*.ipynb"))
MOST_CELLS = 32
every_notebook = pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)


def cells(path, kind=None):
    return [cell for cell in nbformat.read(path, as_version=4).cells if kind in (None, cell.cell_type)]


def run(name, folder, /, kernel=False, **parameters):
    """Execute a notebook as a sweep does, in its own worker and kernel or without; the executed cells."""
    job = Run(name, folder / name, ROOT / "notebooks" / f"{name}.ipynb", parameters)
    if kernel:
        failures = runner.execute([job], Console(file=io.StringIO()))
        assert not failures, failures[0].last_lines
    else:
        notebook_process.execute(job)
    return cells(job.folder / notebooks.EXECUTED, "code")


def test_there_is_one_of_each_kind():
    assert {path.stem.split("_")[0] for path in ALL} == {"start", "run", "fig"}


@every_notebook
def test_it_opens_with_a_title_what_it_reads_and_writes_and_parameters_that_papermill_sees(path):
    first, second, *_ = cells(path)
    title, claim, rest = first.source.split("\n\n", 2)
    assert first.cell_type == "markdown" and re.fullmatch(r"# .+", title) and claim.endswith(".")
    assert "Reads:" in rest and ("Writes:" in rest or "Writes to" in rest)
    assert second.metadata.get("tags") == ["parameters"]
    assert all("  # " in line for line in second.source.splitlines())
    declared = {name: p.default for name, p in notebooks.parameters_of(path).items()}
    assert {"seed", "out"} <= set(declared)
    seen = papermill.inspect_notebook(str(path))
    assert {name: ast.literal_eval(p["default"]) for name, p in seen.items()} == declared


@every_notebook
def test_it_only_calls_the_library_and_is_committed_without_outputs(path):
    for cell in cells(path, "code"):
        assert cell.outputs == [] and cell.execution_count is None
        assert not re.search(r"^\s*[!%]|sys\.path", cell.source, re.MULTILINE), cell.source
        found = [type(node).__name__ for node in ast.walk(ast.parse(cell.source))]
        assert not {"FunctionDef", "AsyncFunctionDef", "ClassDef", "Lambda"} & set(found), cell.source
    ids = [cell["id"] for cell in cells(path)]
    assert len(set(ids)) == len(ids) <= MOST_CELLS
    assert not any(re.fullmatch(r"[0-9a-f]{8}", name) for name in ids), "ids are names, not random digits"


@every_notebook
def test_plots_are_explained(path):
    """A cell that ends in a figure is followed by 'How to read this'."""
    book = cells(path)
    for cell, after in zip(book, [*book[1:], None], strict=True):
        last = cell.source.splitlines()[-1]
        draws = cell.cell_type == "code" and re.search(r"(plots\.\w+\(|^figure$)", last)
        if draws and not cell.source.startswith("figure ="):
            assert after is not None and "**How to read this.**" in after.source, cell.source


def test_start_here_runs(tmp_path):
    done = run("start_01_here", tmp_path, difficulty=6, catalog_size=1000, out=str(tmp_path / "out"))
    text = "".join(str(output) for cell in done for output in cell.outputs)
    assert "correct: False" in text and "correct: True" in text
    assert "said at once" in text and "withheld until asked" in text
    assert (tmp_path / "out" / "episode.json").is_file()


def test_start_play_opens_a_seat(tmp_path):
    out = tmp_path / "out"
    done = run("start_02_play", tmp_path, kernel=True, env="STATUS", catalog_size=1000, out=str(out))
    text = "".join(str(output) for cell in done for output in cell.outputs)
    assert "application/vnd.jupyter.widget-view+json" in text
    assert "ask_user: question" in text and "customer: " in text
    assert "ecomlab:play?env=STATUS" in text and not out.exists()


def drawn(folder):
    return sorted(path.name for path in folder.iterdir())


def both_widths(name, *numbers):
    """Files of a figure, as wide as a page and as a column, with captions and tables of numbers."""
    kinds = ("json", "pdf", "png", "tex", "txt")
    found = [f"{name}{width}.{kind}" for width in ("", "_column") for kind in kinds]
    return sorted([*found, *(f"{name}.{label}.csv" for label in numbers)])


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("difficulty_growth", ("arms", "differences")),
        ("effective_ratio", ("arms", "differences")),
        ("environment_scaling", ("collections", "gains")),
    ],
)
def test_a_figure_is_drawn_from_tables(name, numbers, tmp_path):
    experiment = tmp_path / "toy"
    experiment.mkdir()
    train, evaluation = collection_rows() if name == "environment_scaling" else (train_rows(), eval_rows())
    train.to_csv(experiment / "train.csv", index=False)
    evaluation.to_csv(experiment / "eval.csv", index=False)
    run(f"fig_{name}", tmp_path, experiment=str(experiment), out=str(tmp_path / "figures"))
    assert drawn(tmp_path / "figures") == both_widths(f"{name}_toy", *numbers)


def test_the_figure_of_a_certificate_is_drawn_from_it(tmp_path):
    file = write_certificate(tmp_path / "certificate.json")
    done = run("fig_certificate", tmp_path, certificate=str(file), out=str(tmp_path / "figures"))
    assert drawn(tmp_path / "figures") == both_widths("certificate", "players")
    record = json.loads((tmp_path / "figures" / "certificate.json").read_text())
    assert record["catalog"] == "f00" and record["data"]["environments"] == {"CART": 1, "BUNDLE": 1}
    assert any("best positional" in str(output) for cell in done for output in cell.outputs)


def test_the_figure_of_the_axes_is_drawn(tmp_path):
    run("fig_axes", tmp_path, highest=4, out=str(tmp_path / "figures"))
    assert drawn(tmp_path / "figures") == both_widths("axes", "axes", "environments")


CERTIFICATE, QUICK = "experiments/certificate/certificate.json", "experiments/quick"
FRONTIER = "experiments/starters/frontiers/base.json"


@pytest.mark.parametrize(
    ("name", "numbers", "read"),
    [
        ("reward_parts", ["means"], {"table": f"{QUICK}/parts.csv"}),
        (
            "capability_frontier",
            ["players", "runs"],
            {"certificate": CERTIFICATE, "frontier": FRONTIER, "ablation": QUICK},
        ),
        ("understanding", ["banks", "below"], {"certificate": CERTIFICATE}),
        ("catalog_scale", ["sizes"], {"table": "experiments/catalog_scale/results.csv"}),
        ("depth", ["players", "kinds"], {"certificate": CERTIFICATE}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_figure_is_drawn_from_committed_tables(name, numbers, read, tmp_path):
    tables = {parameter: str(ROOT / path) for parameter, path in read.items()}
    run(f"fig_{name}", tmp_path, out=str(tmp_path / "figures"), **tables)
    assert drawn(tmp_path / "figures") == both_widths(name, *numbers)


def test_the_figure_of_error_cascades_is_drawn_from_two_of_its_players(tmp_path):
    """All of them are drawn by tests/analysis, which takes some seconds a drawing."""
    folder = tmp_path / "cascade"
    shutil.copytree(ROOT / "experiments" / "cascade", folder, ignore=shutil.ignore_patterns("*.py", "__*"))
    rows = (folder / "played.csv").read_text("utf-8").splitlines(keepends=True)
    kept = [row for row in rows if row.startswith(("player,", "novice,", "adaptive,"))]
    (folder / "played.csv").write_text("".join(kept), "utf-8")
    run("fig_error_cascade", tmp_path, folder=str(folder), out=str(tmp_path / "figures"))
    assert drawn(tmp_path / "figures") == both_widths("error_cascade", "first")


def test_the_figures_of_the_study_are_drawn_from_its_tables(tmp_path):
    out = tmp_path / "figures"
    run("fig_curriculum", tmp_path, folder=str(ROOT / "experiments" / "frontier"), out=str(out))
    names = {"curriculum": ("primary", "fresh"), "environments": ("orders",), "mending": ("mended",)}
    assert drawn(out) == sorted(file for name, made in names.items() for file in both_widths(name, *made))


DAY: dict[str, dict[str, Any]] = {
    "start_04_evaluation": {"env": "CART", "levels": [0], "tasks": 3, "others": ["perturbed"]},
    "start_05_your_agent": {"levels": [0], "tasks": 3, "file": str(ROOT / "notebooks/my_agent.py")},
    "start_06_where_it_breaks": {"levels": [1], "tasks": 12, "planted": 3},
    "start_08_your_schedule": {
        "steps": 2,
        "prompts": 2,
        "tasks": 2,
        "file": str(ROOT / "notebooks/bandit.py"),
    },
    "start_09_your_reward": {"steps": 1, "prompts": 2, "tasks": 2},
    "start_10_axis": {"players": ["perturbed"], "values": [0.0, 1.0], "tasks": 4},
}
"""What the days' notebooks are shrunk to."""
WRITTEN = {
    "start_04_evaluation": "report.html", "start_05_your_agent": "my_agent.py",
    "start_06_where_it_breaks": "effects.csv", "start_08_your_schedule": "schedules.pdf",
    "start_09_your_reward": "rewards.csv", "start_10_axis": "axis.csv",
}  # fmt: skip


@pytest.mark.parametrize("name", DAY)
def test_a_notebook_of_the_day_runs_and_writes_what_it_says(name, tmp_path):
    run(name, tmp_path, catalog_size=1000, out=str(tmp_path / "out"), **DAY[name])
    assert (tmp_path / "out" / WRITTEN[name]).is_file()


def test_each_notebook_of_the_day_leads_to_the_next():
    days = [path for path in ALL if path.stem.startswith("start_")]
    assert [path.stem.split("_")[1] for path in days] == [f"{n:02d}" for n in range(1, len(days) + 1)]
    for path, after in pairwise(days):
        last = cells(path)[-1].source
        assert f"({after.name})" in last, f"{path.stem} does not lead to {after.stem}"
        for target in re.findall(r"\]\(([\w./]+)\)", last):
            assert (path.parent / target).exists(), target


def test_start_environments_plays_all_eight(tmp_path):
    out = tmp_path / "out"
    done = run("start_03_environments", tmp_path, difficulty=4, catalog_size=1000, out=str(out))
    axes = json.loads((out / "axes.json").read_text())
    assert list(axes) == list(COLLECTIONS["C8"])
    for env in axes:
        episode = json.loads((out / f"{env}.json").read_text())
        assert Task.from_json(episode["task"]).env == env and episode["score"]["correct"], env
    text = "".join(str(output) for cell in done for output in cell.outputs)
    assert re.findall(r"'constraints' does not move (\w+)", text) == ["STATUS", "POLICY"]


def test_start_your_catalog_goes_from_a_messy_file_to_an_evaluation_on_it(tmp_path):
    out = tmp_path / "out"
    done = run("start_11_your_catalog", tmp_path, out=str(out))
    report = json.loads((out / "shop" / "report.json").read_text())
    assert report["rows"] == report["kept"] + report["repaired"] + report["set_aside"]
    assert min(report["kept"], report["repaired"], report["set_aside"]) >= 5
    text = "".join(str(output) for cell in done for output in cell.outputs)
    assert "no product has a price" in text and "image/png" in text and "correct=True" in text
    assert read_header(out / "eval")["conditions"]["catalog"]["fingerprint"] in text


def test_start_training_moves_the_policy_towards_what_was_right(tmp_path):
    run("start_07_training", tmp_path, catalog_size=1000, out=str(tmp_path / "out"))
    step = json.loads((tmp_path / "out" / "step.json").read_text())
    table = step["table"]
    assert len(set(table["correct"])) == 2, "some right, some wrong"
    columns = table["mean log-probability, before"], table["after"]
    moved = [after - before for before, after in zip(*columns, strict=True)]
    right = [m for m, advantage in zip(moved, step["advantages"], strict=True) if advantage > 0]
    wrong = [m for m, advantage in zip(moved, step["advantages"], strict=True) if advantage < 0]
    assert sum(right) / len(right) > 0 > sum(wrong) / len(wrong)


SMALL = {
    "steps": 1,
    "prompts_per_step": 2,
    "group_size": 2,
    "rounds": 1,
    "eval_episodes": 2,
    "catalog_size": 1000,
}


def test_run_training_runs_and_writes_its_tables(tmp_path):
    out = tmp_path / "run_training"
    run("run_training", tmp_path, **SMALL, eval_difficulties=[0, 1], schedule="static-0-1", out=str(out))
    train, evaluation = tables.load_experiment(out)
    assert set(train.step) == {1} and set(train.d) <= {0, 1}
    assert set(zip(evaluation.step, evaluation.d, strict=True)) == {(0, 0), (0, 1), (1, 0), (1, 1)}
    assert (out / "provenance.json").is_file()


def test_run_training_offers_the_configuration_as_it_is():
    """Its parameters are fields of TrainConfig and all of them reach it; nothing is renamed on the way."""
    from ecomlab.training.config import TrainConfig

    declared = notebooks.parameters_of(ROOT / "notebooks" / "run_training.ipynb")
    assert set(declared) - {"more"} <= set(TrainConfig.model_fields)
    book = cells(ROOT / "notebooks" / "run_training.ipynb")
    config = next(cell.source for cell in book if cell["id"] == "config")
    handed_on = {"more", "catalog", "catalog_size"}
    for name in set(declared) - handed_on:
        assert re.search(rf"{name}=.*\b(folder|{name})\b", config)
    assert "**more" in config and "training_settings(catalog or catalog_size)" in config


def test_a_new_environment_is_one_file(tmp_path):
    file = ROOT / "notebooks" / "cheapest.py"
    given = {"file": str(file), "out": str(tmp_path / "out")}
    done = run("start_12_new_environment", tmp_path, seeds=4, catalog_size=1000, **given)
    text = "".join(str(output) for cell in done for output in cell.outputs)
    assert "'CHEAPEST'" in text and "the cheapest for" in text
    assert "class Cheapest(Environment)" in text
    weak = (tmp_path / "out" / "any.py").read_text("utf-8")
    assert "near == count" in weak and "near == count" not in file.read_text("utf-8")


@every_notebook
def test_papermills_own_command_refuses_a_parameter_that_there_is_not(path):
    code = cells(path, "code")[1].source
    assert "check_parameters(globals())" in code


def test_an_unknown_parameter_stops_a_notebook_at_once(tmp_path):
    with pytest.raises(papermill.PapermillExecutionError, match="stepz"):
        papermill.execute_notebook(
            str(ROOT / "notebooks" / "run_training.ipynb"),
            None,
            {"stepz": 3},
            cwd=str(tmp_path),
            progress_bar=False,
        )
