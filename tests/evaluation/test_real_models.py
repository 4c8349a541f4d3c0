"""What is committed of real models and bridges was played in the environments that ship; JSON draws the reports."""

import json
import tomllib
from pathlib import Path

import pytest

from ecomlab.evaluation.evaluation import environment_of
from ecomlab.evaluation.report import lines_of, table_of
from ecomlab.evaluation.result import as_markdown
from ecomlab.evaluation.transcripts import player_of, read

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
PLAYED = (
    "smollm2/eval/transcripts.jsonl",
    "smollm2/*.json",
    "serve_base/*.json",
    "starters/frontiers/*.json",
)
HEADERS = sorted(path for pattern in PLAYED for path in EXPERIMENTS.glob(pattern))
OUTDATED = tomllib.loads((EXPERIMENTS / "outdated.toml").read_text("utf-8"))
REPORTS = ["smollm2/eval.json", "serve_base/eval.json"]


def header(path: Path) -> dict[str, object]:
    """The header of transcripts, or of a report on them; empty for a file that has none."""
    found: dict[str, object] = json.loads(
        path.read_text("utf-8").partition("\n")[0] if path.suffix == ".jsonl" else path.read_text("utf-8")
    ).get("header", {})
    return found


@pytest.mark.parametrize(
    "path", [p for p in HEADERS if header(p)], ids=lambda p: str(p.relative_to(EXPERIMENTS))
)
def test_it_was_played_in_the_environments_that_ship_or_is_said_to_be_outdated(path: Path) -> None:
    played = header(path)["conditions"]["environments"]  # type: ignore[index]
    folder = path.relative_to(EXPERIMENTS).parts[0]
    assert (played != {env: environment_of(env) for env in played}) == (folder in OUTDATED)


def test_there_are_reports_of_both_models() -> None:
    folders = {path.relative_to(EXPERIMENTS).parts[0] for path in HEADERS if header(path)}
    assert folders == {"smollm2", "serve_base", "starters"}


@pytest.mark.parametrize("path", sorted(EXPERIMENTS.glob("bridges/*.json")), ids=lambda p: p.stem)
def test_every_test_of_a_bridge_passed_in_the_environments_that_ship_or_is_said_to_be_outdated(
    path: Path,
) -> None:
    log = json.loads(path.read_text("utf-8"))
    assert log["tests"]["passed"] > 0
    assert not log["tests"]["failed"] + log["tests"]["error"]
    ships = {env: environment_of(env) for env in log["environments"]}
    assert (log["environments"] != ships) == ("bridges" in OUTDATED)
    assert {one["env"] for one in log.get("episodes", ())} <= log["environments"].keys()


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_is_what_its_json_draws(name: str) -> None:
    path = EXPERIMENTS / name
    found = json.loads(path.read_text("utf-8"))
    drawn = as_markdown(f"{player_of(found['header'])}: held-out success", table_of(found), lines_of(found))
    assert path.with_suffix(".md").read_text("utf-8") == drawn


def test_a_report_counts_the_episodes_of_its_transcripts() -> None:
    found = json.loads((EXPERIMENTS / "smollm2" / "eval.json").read_text("utf-8"))
    played = list(read(EXPERIMENTS / "smollm2" / "eval"))
    assert found["all"]["episodes"] == len({one.key for one in played})
    assert found["all"]["success"] == sum(one.score.correct for one in played) / len(played)
