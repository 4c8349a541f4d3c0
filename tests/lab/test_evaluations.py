"""The door: any player, from a notebook or the command line, to a report that shows itself."""

import asyncio
import json
from collections import Counter
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from contestants import Script
from rich.console import Console

import ecomlab
from ecomlab import Shop
from ecomlab.evaluation import report as reports
from ecomlab.evaluation.contestant import Job, Usage
from ecomlab.evaluation.evaluation import rescore
from ecomlab.evaluation.players import Playing, contestant_of
from ecomlab.evaluation.report import Report
from ecomlab.evaluation.transcripts import TranscriptError
from ecomlab.lab.evaluation_tables import write_tables

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"


# --- players ---


def polite(messages: Any, tools: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "Which size?"}


class Careful:
    """An agent with a state: its second message breaks."""

    def __init__(self) -> None:
        self.said = 0

    def __call__(self, messages: Any, tools: Any) -> Any:
        self.said += 1
        if self.said > 1:
            raise KeyError("lost")
        return polite(messages, tools)


def test_a_function_is_a_player(shop: Shop) -> None:
    report = ecomlab.evaluate(polite, env=["CART", "PD"], difficulty=range(2), tasks=2, shop=shop)
    assert report.name == "polite" and report.header["identity"]["kind"] == "function"
    assert len(report.episodes) == 8 and len(report.failures) == 8
    assert {m["content"] for t in report.failures for m in t.messages if m["role"] == "assistant"} == {
        "Which size?"
    }


def test_an_exception_of_a_function_is_an_infrastructure_error_and_the_others_are_played(shop: Shop) -> None:
    """Each episode gets an object of its own of a class: all break, at their second message."""
    report = ecomlab.evaluate(Careful, env="STATUS", tasks=3, shop=shop)
    assert [(t.unscored, t.turns) for t in report.transcripts] == [("player", 1)] * 3
    assert "KeyError: 'lost' (test_evaluations.py" in report.summary["reasons"]["player"]
    shared = ecomlab.evaluate(Careful(), env="STATUS", tasks=3, shop=shop)
    assert [t.turns for t in shared.transcripts] == [1, 0, 0]


def test_a_malformed_message_is_the_players_own_mistake(shop: Shop) -> None:
    for message in ({"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": 3}):
        report = ecomlab.evaluate(lambda messages, tools, message=message: message, tasks=1, shop=shop)
        (one,) = report.transcripts
        assert (one.unscored, one.end, one.faults) == ("", "invalid", ("malformed call",))
    for returned in ("text", None):  # a bug of the function
        (one,) = ecomlab.evaluate(lambda messages, tools, it=returned: it, tasks=1, shop=shop).transcripts
        assert one.unscored == "player" and repr(returned) in one.why_unscored


def test_an_async_function_is_played_several_times_at_once(shop: Shop) -> None:
    """Also where a loop runs already, as in a notebook. One of its episodes fails."""
    going, most, begun = 0, 0, 0

    async def agent(messages: Any, tools: Any) -> Any:
        nonlocal going, most, begun
        begun += len(messages) == 2
        if begun == 3 and len(messages) == 2:
            raise OSError("no route")
        going += 1
        most = max(most, going)
        await asyncio.sleep(0.01)
        going -= 1
        return {"role": "assistant", "content": "Which size?"}

    async def notebook() -> Report:
        return ecomlab.evaluate(agent, env="PD", tasks=20, shop=shop)

    report = asyncio.run(notebook())
    assert most == 8 and Counter(t.unscored for t in report.transcripts) == {"": 19, "player": 1}


def test_a_function_in_a_file_is_a_player_by_name(shop: Shop, tmp_path: Path) -> None:
    file = tmp_path / "my_agent.py"
    (tmp_path / "words.py").write_text("HELLO = 'Which size?'\n")
    file.write_text(
        "import words\n\ndef agent(messages, tools):\n    return {'role': 'assistant', 'content': words.HELLO}\n"
    )
    report = ecomlab.evaluate(f"{file}:agent", tasks=1, shop=shop)
    assert report.name == "agent" and report.transcripts[0].messages[2]["content"] == "Which size?"
    for name, words in (
        (f"{file}:agnet", "'agent'"),
        (f"{tmp_path}/none.py:agent", "no file"),
        (str(file), "my_agent.py:agent"),
        (f"{file}:words", "name a function"),
    ):
        with pytest.raises(ValueError, match=words):
            ecomlab.evaluate(name, tasks=1, shop=shop)
    file.write_text("1 / 0\n")
    with pytest.raises(ValueError, match="cannot be imported: ZeroDivisionError"):
        ecomlab.evaluate(f"{file}:agent", tasks=1, shop=shop)


def test_an_edited_function_does_not_go_on_with_anothers_evaluation(shop: Shop, tmp_path: Path) -> None:
    file = tmp_path / "my_agent.py"
    given: dict[str, Any] = {"tasks": 1, "shop": shop, "out": tmp_path / "run"}
    text = "def agent(messages, tools):\n    return {'role': 'assistant', 'content': 'Which size?'}\n"
    file.write_text(text)
    ecomlab.evaluate(f"{file}:agent", **given)
    file.write_text(text.replace("size", "color"))
    with pytest.raises(TranscriptError, match="code was another then"):
        ecomlab.evaluate(f"{file}:agent", **given)


def test_a_player_of_another_kind_is_refused(shop: Shop) -> None:
    with pytest.raises(TypeError, match="function of messages and tools"):
        ecomlab.evaluate(3, tasks=1, shop=shop)
    with pytest.raises(ValueError, match="polite is code"):
        ecomlab.evaluate(polite, tasks=1, shop=shop, decoding="greedy")


# --- settings of weights ---


@pytest.mark.parametrize(
    ("settings", "decoding", "words"),
    [
        ({"context_tokens": "abc"}, None, "valid integer"),
        ({"turn_tokens": 0}, None, "greater than or equal to 1"),
        ({"contxt_tokens": 9}, None, "did you mean 'context_tokens'"),
        ({"strict": "yes"}, None, "true or false"),
        ({"thinking": True}, None, "no thinking"),
        ({"temperature": 0.3}, "greedy", "no temperature"),
        ({}, "greedi", "did you mean 'greedy'"),
    ],
)
def test_a_wrong_setting_of_weights_is_refused_before_they_are_loaded(
    settings: dict[str, Any], decoding: str | None, words: str, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ecomlab.evaluation.players.load_policy", lambda *_, **__: pytest.fail("loaded"))
    with pytest.raises(ValueError, match=words):
        contestant_of("novice", shop, ["CART"], Playing(settings=settings, decoding=decoding))


# --- reports ---


@pytest.fixture(scope="module")
def perturbed(shop: Shop) -> Report:
    return ecomlab.evaluate("perturbed", env="CART,PD", difficulty=range(2), tasks=6, trials=2, shop=shop)


def test_a_report_has_frames_of_numbers(perturbed: Report) -> None:
    cells = perturbed.cells
    assert list(zip(cells.env, cells.d, strict=True)) == [("CART", 0), ("CART", 1), ("PD", 0), ("PD", 1)]
    numbers = cells.drop(columns="env")
    assert all(kind.kind in "if" for kind in numbers.dtypes)
    assert {"success", "low", "high", "pass^2", "flips", "detectable", "unscored", "format_errors"} <= set(
        numbers
    )
    episodes = perturbed.episodes
    assert len(episodes) == 48 and episodes.correct.mean() == pytest.approx(
        perturbed.summary["all"]["success"]
    )
    assert len(perturbed.failures) == 48 - episodes.correct.sum()


def test_a_saved_report_is_the_same_again(perturbed: Report, tmp_path: Path) -> None:
    perturbed.save(tmp_path / "saved")
    again = Report.read(str(tmp_path / "saved"))
    assert again.episodes.equals(perturbed.episodes) and again.cells.equals(perturbed.cells)
    with pytest.raises(TranscriptError, match="exists"):
        perturbed.save(tmp_path / "saved")


def test_a_failure_is_watched_in_the_shop_that_it_was_played_in(perturbed: Report, tmp_path: Path) -> None:
    watched = ecomlab.watch(perturbed.failures[0])
    (record,) = watched.records
    assert record.steps[0].state is not None and not record.note
    perturbed.save(tmp_path / "saved")
    assert ecomlab.watch(tmp_path / "saved").records[0].title == record.title


def test_an_evaluation_with_a_folder_goes_on_and_grows(shop: Shop, tmp_path: Path) -> None:
    heard: list[Any] = []
    given: dict[str, Any] = {"env": "PD", "shop": shop, "out": str(tmp_path / "run")}
    few = ecomlab.evaluate("reference", tasks=2, **given)
    more = ecomlab.evaluate("reference", tasks=5, **given, on_progress=heard.append)
    assert [event["kind"] for event in heard] == ["plan", *["episode"] * 3]
    assert len(more.episodes) == 5 and few.folder == more.folder == tmp_path / "run"
    assert more.to_json()["header"]["cells"]["tasks"] == 5
    assert ecomlab.compare(few, str(tmp_path / "run")).overall[0].mean == 0


# --- what stands under a report ---


def report_on(shop: Shop, identity: dict[str, Any] | None = None, **more: Any) -> Report:
    """A report on one episode whose transcript has `more`."""
    cells = {"envs": ["STATUS"], "levels": [0], "tasks": 1, "trials": 1}
    (played,) = Script().play([Job("STATUS", 0, 2**31)], shop)
    header = {"player": "p", "identity": identity or {}, "cells": cells}
    return Report(header, [replace(played, **more)])


@pytest.mark.parametrize(
    ("more", "warning", "fact"),
    [
        ({"notes": {"calls_in_text": 3}}, reports.CALLS, "calls in text: 1 episodes"),
        ({"notes": {"only_reasoning": 2}}, reports.REASONING, "only reasoning: 1 episodes"),
        ({"notes": {"finish": {"content_filter": 1}}}, reports.FILTERED, "content filter: 1 episodes"),
        ({"faults": ("context",), "usage": {"agent": Usage()}}, reports.CUT, "before the first answer: 1 episodes"),
        ({"wording": [{"refused": "no answer"}] * 4}, reports.SILENT, "4 requests, refused: no answer 4"),
        ({"wording": [{"refused": "no answer"}, {"refused": ""}]}, "", "2 requests, refused: no answer 1"),
        ({"faults": ("refusal",)}, "", "format errors: refusal 1"),
    ],
)  # fmt: skip
def test_what_says_more_of_the_set_up_than_of_the_model_is_counted_and_warned_of(
    more: dict[str, Any], warning: str, fact: str, shop: Shop
) -> None:
    lines = report_on(shop, **more).lines
    assert any(line.endswith(fact) or fact in line for line in lines)
    warnings = {reports.CALLS, reports.REASONING, reports.FILTERED, reports.CUT, reports.SILENT}
    assert warnings & set(lines) == ({warning} if warning else set())


@pytest.mark.parametrize(
    ("tasks", "shows", "look"), [(2, "none in all", True), (16, "0.495 in all", True), (50, "0.280", False)]
)
def test_a_small_sample_is_said_to_be_one_with_the_difference_that_it_shows(
    tasks: int, shows: str, look: bool, shop: Shop
) -> None:
    """For 16 tasks (1.960 + 0.842) * sqrt(2 * 0.25 / 16) = 0.495 at most, by hand; 50 are enough to be silent."""
    (played,) = Script().play([Job("STATUS", 0, 2**31)], shop)
    many = [
        replace(played, job=Job("STATUS", 0, 2**31 + i), score=replace(played.score, correct=i % 2 == 0))
        for i in range(tasks)
    ]
    lines = Report(report_on(shop).header, many).lines
    assert any(shows in line for line in lines) and (reports.LOOK in lines) == look


def test_a_parquet_file_has_the_episodes_with_their_messages(perturbed: Report, tmp_path: Path) -> None:
    write_tables(perturbed, tmp_path / "e.csv", tmp_path / "e.parquet", Console(file=StringIO()))
    table = pd.read_parquet(tmp_path / "e.parquet")
    assert [json.loads(text) for text in table.pop("messages")] == [t.messages for t in perturbed.transcripts]
    assert table.equals(perturbed.episodes) and list(pd.read_csv(tmp_path / "e.csv")) == list(table)


def test_other_weights_of_the_reward_are_a_condition_and_rescored_alike(shop: Shop, tmp_path: Path) -> None:
    given: dict[str, Any] = {"env": "PD", "tasks": 3, "shop": shop}
    weighed = ecomlab.evaluate("reference", **given, weights={"task": 1, "efficiency": 0}, out=tmp_path / "w")
    assert [t.score.value for t in weighed.transcripts] == [1.0] * 3
    assert list(rescore(tmp_path / "w", shop)) == [None] * 3
    with pytest.raises(TranscriptError, match="reward.task"):
        ecomlab.compare(weighed, ecomlab.evaluate("reference", **given))
    with pytest.raises(TranscriptError, match="reward.task"):
        ecomlab.evaluate("reference", **given, out=tmp_path / "w")


# --- what is committed ---


def test_committed_transcripts_are_read() -> None:
    found = json.loads((EXPERIMENTS / "smollm2" / "eval.json").read_text("utf-8"))
    report = Report.read(EXPERIMENTS / "smollm2" / "eval")
    assert report.summary["all"]["success"] == found["all"]["success"]
    assert len(report.episodes) == found["all"]["episodes"]
