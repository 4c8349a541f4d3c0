"""What is committed of real models and bridges was played in the environments that ship; JSON draws the reports."""

import json
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from ecomlab.evaluation.evaluation import environment_of
from ecomlab.evaluation.report import lines_of, table_of
from ecomlab.evaluation.result import as_markdown
from ecomlab.evaluation.transcripts import player_of, read

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
HEADERS = sorted(
    path
    for pattern in ("smollm2/eval*/transcripts.jsonl", "smollm2/*.json", "serve_base/*.json")
    for path in EXPERIMENTS.glob(pattern)
)
OUTDATED = tomllib.loads((EXPERIMENTS / "outdated.toml").read_text("utf-8"))
REPORTS = ["smollm2/eval.json", "smollm2/eval_others.json", "serve_base/eval.json", "serve_base/greedy.json"]


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
    assert folders == {"smollm2", "serve_base"}


@pytest.mark.parametrize("path", sorted(EXPERIMENTS.glob("bridges/*.json")), ids=lambda p: p.stem)
def test_every_test_of_a_bridge_passed_in_the_environments_that_ship_or_is_said_to_be_outdated(
    path: Path,
) -> None:
    log = json.loads(path.read_text("utf-8"))
    assert log["tests"]["passed"] > 0
    assert not log["tests"]["failed"] + log["tests"]["error"]
    ships = {env: environment_of(env) for env in log["environments"]}
    assert (log["environments"] != ships) == ("bridges" in OUTDATED)
    assert {one["env"] for one in log["episodes"]} <= log["environments"].keys()


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_is_what_its_json_draws(name: str) -> None:
    path = EXPERIMENTS / name
    found = json.loads(path.read_text("utf-8"))
    drawn = as_markdown(f"{player_of(found['header'])}: held-out success", table_of(found), lines_of(found))
    assert path.with_suffix(".md").read_text("utf-8") == drawn


@pytest.mark.parametrize("name", ["eval", "eval_others"])
def test_a_report_counts_the_episodes_of_its_transcripts(name: str) -> None:
    found = json.loads((EXPERIMENTS / "smollm2" / f"{name}.json").read_text("utf-8"))
    played = list(read(EXPERIMENTS / "smollm2" / name))
    assert found["all"]["episodes"] == len({one.key for one in played})
    assert found["all"]["success"] == sum(one.score.correct for one in played) / len(played)


def test_the_page_says_of_smollm2_what_its_transcripts_hold() -> None:
    page = " ".join((EXPERIMENTS.parent / "docs" / "real_models.md").read_text("utf-8").split())
    folders = [EXPERIMENTS / "smollm2" / name for name in ("eval", "eval_others")]
    episodes = [one for folder in folders for one in read(folder)]
    said = [m for one in episodes for m in one.messages if m["role"] == "assistant"]
    called = [call["function"]["name"] for message in said for call in message.get("tool_calls", ())]
    begun = [text for one in episodes if "<tool_call>" in (text := one.notes.get("cut_off", ""))]
    listed = [text for text in begun if re.search(r'<tool_call>\s*\{"name": "order_list"', text)]
    invalid = [one for one in episodes if one.end == "invalid"]
    ends = Counter(one.end for one in episodes)
    lines = (folders[0] / "transcripts.jsonl").read_text("utf-8").splitlines()
    killed = next(n for n, line in enumerate(lines) if line.startswith('{"continued"'))
    before = sum(line.startswith('{"episode"') for line in lines[:killed])
    assert called == ["Sales Remitter"] and "(`Sales Remitter`, in JOURNEY)" in page
    assert len(invalid) == 1 and '"name": "Calypons"' in invalid[0].messages[-1]["content"]
    assert sum("<tool_call>" in message["content"] for message in said) == 1  # that one
    assert f"{len(begun)} more contain `<tool_call>`" in page and len(listed) == 2
    assert f"of {len(episodes)} episodes, one" in page and f"In {ends['truncated']} episodes" in page
    assert f"patience ({ends['patience']}) or the turns ({ends['turns']})" in page
    assert f"killed after {before} episodes" in page and before == 163


def test_the_page_says_of_transformers_serve_what_was_measured() -> None:
    page = " ".join((EXPERIMENTS.parent / "docs" / "real_models.md").read_text("utf-8").split())
    found = json.loads((EXPERIMENTS / "serve_base" / "check.json").read_text("utf-8"))
    plain, apart = found["text"]["as it is"], found["text"]["separated"]
    served, here = (
        sum(row[f"correct, {who}"] for row in plain["environments"]) for who in ("served", "here")
    )
    assert f"{plain['same']} of {plain['episodes']} greedy episodes" in page
    assert f"{served} are correct, compared with {here}" in page
    assert f"{plain['read as other tokens']} of {plain['requests']} requests" in page
    assert apart["same"] == apart["episodes"] and f"all {apart['same']} have the same messages" in page
    assert f"in {apart['requests']} requests" in page
    assert f"requests of {apart['seconds'] / apart['requests']:.2f} s".replace("0.", ".") in page
    assert (apart["read as other tokens"], apart["same"]) == (0, 32)
    assert "'NoneType' object is not subscriptable" in found["seen"]["shipped folder"]
    assert found["seen"]["saved by transformers, /v1/chat/completions"].startswith("500")
    whole = json.loads((EXPERIMENTS / "serve_base" / "same.json").read_text("utf-8"))
    assert whole["same score"] == whole["episodes"]
    assert f"of the {whole['episodes']} tasks above" in page
    assert f"{whole['same messages']} episodes have the same messages" in page
    assert f"the other {whole['other messages, and invalid in both']} are invalid in both" in page
    assert whole["same messages"] + whole["other messages, and invalid in both"] == whole["episodes"]
