"""What `eval` makes of a player's name and settings, and what it says beside its table."""

import json
import math
import re
from collections import Counter
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from contestants import Script
from rich.console import Console

from ecomlab import Shop
from ecomlab.evaluation.contestant import Job, Usage
from ecomlab.evaluation.endpoint.settings import Prices
from ecomlab.evaluation.evaluation import EVALUATION, Cells, header_of, run_evaluation
from ecomlab.evaluation.frontier import SHARES, Counts, Frontier, held
from ecomlab.evaluation.summary import Ledger, report
from ecomlab.evaluation.transcripts import read
from ecomlab.lab.evaluation_progress import progress_of
from ecomlab.lab.evaluation_tables import as_markdown, notes_of, rows_of, show, show_frontier
from ecomlab.lab.evaluations import _prices, folder_of, make_contestant, software
from ecomlab.models.devices import device_of
from ecomlab.reward import INVALID, Score

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"


def test_a_setting_that_would_change_nothing_is_refused(shop: Shop) -> None:
    with pytest.raises(ValueError, match="novice has no thinking, which ordinary models have"):
        make_contestant("novice", shop, ["CART"], None, {"thinking": True})
    with pytest.raises(ValueError, match="greedy decoding has no temperature"):
        make_contestant("novice", shop, ["CART"], "greedy", {"temperature": 0.3})


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("context_tokens", "abc", "context_tokens: should be a valid integer, not 'abc'"),
        ("turn_tokens", 0, "turn_tokens: should be greater than or equal to 1, not 0"),
        ("batch", 0, "batch: should be greater than or equal to 1, not 0"),
        ("temperature", -1, "temperature: should be greater than 0, not -1"),
        ("strict", "yes", "strict: should be true or false, not 'yes'"),
        ("contxt_tokens", 9, "no key 'contxt_tokens'; did you mean 'context_tokens'"),
    ],
)
def test_a_wrong_setting_of_local_weights_is_said_before_they_are_loaded(
    name: str, value: Any, words: str, shop: Shop
) -> None:
    with pytest.raises(ValueError, match=f"^--set: .*{words}"):
        make_contestant("no model", shop, ["CART"], None, {name: value})


@pytest.mark.parametrize(
    ("player", "folder"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", "Qwen-Qwen2.5-7B-Instruct"),
        ("models/gpt-4.1.toml", "models-gpt-4.1"),
        ("./novice", "novice"),
    ],
)
def test_two_models_do_not_share_a_folder(player: str, folder: str) -> None:
    assert folder_of(player, EVALUATION, None).name == folder


def notes(shop: Shop, identity: dict[str, Any] | None = None, **more: Any) -> str:
    """What is said of one episode whose transcript has `more`."""
    header = {"identity": identity or {}, "cells": {"trials": 1}}
    (played,) = Script().play([Job("STATUS", 0, 2**31)], shop)
    transcript = replace(played, **more)
    ledger = Ledger()
    ledger.add(transcript)
    return "\n".join(notes_of({**report([transcript]), "header": header, "ledger": ledger.to_json()}))


def test_a_server_that_leaves_calls_in_the_text_is_named(shop: Shop) -> None:
    assert "in 1 episodes the server left calls in the text" in notes(shop, notes={"calls_in_text": 3})
    assert "in the text" not in notes(shop)


def test_a_model_that_writes_calls_in_another_form_is_named(shop: Shop) -> None:
    said = notes(shop, {"tools": "text", "template": "hermes"}, notes={"calls_in_text": 3})
    assert "in 1 episodes the model wrote calls in another form than its template's in the text" in said
    assert "use another --set template" in said and "parser" not in said
    local = notes(shop, {"kind": "local"}, notes={"calls_in_text": 3})
    assert "than its template's in the text" in local and "--set" not in local and "parser" not in local


def test_answers_that_the_server_took_away_are_named(shop: Shop) -> None:
    assert "in 1 episodes answers held reasoning alone" in notes(shop, notes={"only_reasoning": 2})
    assert "in 1 episodes the endpoint's filter" in notes(shop, notes={"finish": {"content_filter": 1}})


@pytest.mark.parametrize(
    ("kind", "settings"),
    [("local", "turn_tokens, episode_tokens, context_tokens"), ("endpoint", "max_tokens")],
)
def test_a_limit_of_tokens_that_ends_episodes_is_named(kind: str, settings: str, shop: Shop) -> None:
    said = notes(shop, {"kind": kind}, faults=("context",), usage={"agent": Usage(1, 9)})
    assert "1 of 1 episodes ended at a limit of tokens (context 1): where" in said and settings in said
    unasked = notes(shop, {"kind": kind}, faults=("context",), usage={"agent": Usage()})
    assert "(context 1), 1 of them by their opening alone" in unasked and "tokens not told" not in unasked
    assert "ended at a limit" not in notes(shop, {"kind": kind}, faults=("refusal",))


@pytest.mark.parametrize(
    ("player", "words"),
    [
        ("novice", "no device 'cude'; did you mean 'cpu'"),
        ("reference", "is a script, which has no settings.*--device"),
        ("there.toml", "an endpoint has no --device"),
    ],
)
def test_a_device_is_one_of_this_machine_and_for_local_weights(player: str, words: str, shop: Shop) -> None:
    with pytest.raises(ValueError, match=words):
        make_contestant(player, shop, ["CART"], None, {}, device="cude")


def test_the_device_is_recorded_as_software_and_not_as_who_played(shop: Shop) -> None:
    """So that a run may go on elsewhere, and that is noted."""
    made = make_contestant("novice", shop, ["CART"], None, {}, device="cpu")
    assert software(made)["device"] == "cpu" and "device" not in software()
    assert "device" not in software(make_contestant("reference", shop, ["CART"], None, {}))
    assert dict(made.identity) == dict(make_contestant("novice", shop, ["CART"], None, {}).identity)


@pytest.mark.parametrize(
    ("asked", "ordinary", "expected"),
    [(None, True, "cuda"), (None, False, "cpu"), ("cuda:1", False, "cuda:1"), ("cpu", True, "cpu")],
)
def test_an_ordinary_model_is_played_on_a_gpu_and_a_starter_on_the_cpu_unless_it_is_said(
    asked: str | None, ordinary: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert device_of(asked, ordinary) == expected
    with pytest.raises(ValueError, match="no device 'cuda:2'.*cpu, cuda, cuda:0, cuda:1"):
        device_of("cuda:2", ordinary)


def test_a_budget_chooses_equally_many_tasks_in_every_cell_and_that_is_said_before(
    shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a clock by which an episode takes a second, 20 seconds hold 20 of 400 episodes."""
    cells = Cells(("STATUS", "CART"), (0, 1), 100)
    said = list[str]()

    class Timed(Script):
        def play(self, jobs: Any, shop: Shop) -> Any:
            said.append(capsys.readouterr().out)
            for played in super().play(jobs, shop):
                now[0] += 1.0
                yield played

    now = [0.0]
    header = header_of(EVALUATION, "script", Timed(), cells.envs, {}, shop, {"size": 1000})
    with pytest.MonkeyPatch.context() as patch, progress_of(tmp_path, {}, Console(width=300)) as tell:
        patch.setattr("ecomlab.evaluation.evaluation.time.monotonic", lambda: now[0])
        run_evaluation(Timed(), cells, shop, tmp_path, header, {}, budget=20.0, tell=tell)
    jobs = Counter((one.job.env, one.job.d) for one in read(tmp_path))
    assert jobs == dict.fromkeys(((env, d) for env in cells.envs for d in cells.levels), 5)
    plan = "5 tasks in each of 4 cells (an environment at a level) of the 100 asked for, to keep to the budget; 20"
    assert plan in said[-1] and "asked for" not in said[0]


def test_a_small_sample_is_said_to_be_one_with_the_difference_that_it_shows(shop: Shop) -> None:
    """For 16 tasks (1.960 + 0.842) * sqrt(2 * 0.25 / 16) = 0.495, by hand; 50 are enough to be silent."""
    header = {"identity": {}, "cells": {"trials": 1}}

    def said(*tasks: int) -> str:
        job = Job("STATUS", 0, 2**31)
        (played,) = Script().play([job], shop)
        whole = [
            replace(played, job=Job("STATUS", d, 2**31 + i))
            for d, count in enumerate(tasks)
            for i in range(count)
        ]
        return "\n".join(notes_of({**report(whole), "header": header, "ledger": {}}))

    assert "1 of 2 cells have fewer than 50 tasks, the smallest 16" in said(16, 50)
    assert "must differ by 0.495 to be told apart" in said(16, 50)
    assert "fewer than" not in said(50, 50)
    assert "so few tasks cannot be told apart" in said(3) and "by 1.000" not in said(3)
    assert "in the smallest cell none is;" in said(3, 50) and "to be shown in all" not in said(3)


def test_the_plan_of_very_few_tasks_says_that_they_show_nothing(tmp_path: Path) -> None:
    """(1.960 + 0.842) * sqrt(2 * 0.25 / n) is 0.991 for 4 tasks and 1.144 for 3, more than shares can differ by."""

    def said(tasks: int) -> str:
        console = Console(width=300, record=True, file=StringIO())
        with progress_of(tmp_path, {}, console) as tell:
            tell({"kind": "plan", "tasks": tasks, "of": tasks, "cells": 1})
        return console.export_text()

    assert "3 tasks in all are too few to show a difference" in said(3)
    assert "4 tasks in all show a difference between two players of 0.991 or more" in said(4)


def test_no_value_of_a_table_is_cut_for_want_of_room() -> None:
    console = Console(width=80, file=(said := StringIO()))
    names = [f"a column of some length {i}" for i in range(9)]
    show("title", (names, [[f"0.158–1.000 in {name}" for name in names]]), [], console, {})
    assert all(f"0.158–1.000 in {name}" in said.getvalue() for name in names) and "…" not in said.getvalue()


@pytest.mark.parametrize(
    ("refused", "never"),
    [({"no answer": 3, "not asked": 1}, True), ({"no answer": 3}, False), ({"adds words": 4}, False)],
)
def test_a_customers_endpoint_that_never_answered_is_noticed(
    refused: dict[str, int], never: bool, shop: Shop
) -> None:
    (played,) = Script().play([Job("STATUS", 0, 2**31)], shop)
    found = report([played])
    found["customer"] = {"exchanges": 4, "refused": refused, "no_answer": "status 401: no such key"}
    said = "\n".join(notes_of({**found, "header": {"identity": {}, "cells": {"trials": 1}}, "ledger": {}}))
    assert "asked 4 times" in said and ("never answered (status 401: no such key)" in said) == never


def test_what_is_waited_for_is_said_before_anything_is_over(tmp_path: Path) -> None:
    console = Console(width=200, force_terminal=True, file=(said := StringIO()))
    with progress_of(tmp_path, {}, console):
        pass
    assert "waiting for the first episode" in said.getvalue()


def test_parts_of_the_reward_that_no_episode_has_are_none(shop: Shop) -> None:
    (played,) = Script().play([Job("STATUS", 0, 2**31)], shop)
    one = played
    invalid = replace(one, end="invalid", score=Score(INVALID, False, "invalid output", {"invalid": INVALID}))
    notes = notes_of({**report([invalid]), "header": {"identity": {}, "cells": {"trials": 1}}, "ledger": {}})
    assert "reward by parts (invalid episodes have none): none" in notes


COMMITTED = ("smollm2/eval", "smollm2/eval_others", "serve_base/eval")


@pytest.mark.parametrize("name", COMMITTED)
def test_committed_tables_are_drawn_from_the_json_beside_them(name: str) -> None:
    place = EXPERIMENTS / name
    found = with_nan(json.loads(place.with_suffix(".json").read_text("utf-8")))
    title = f"{found['header']['player']}: held-out success"
    drawn = as_markdown(title, rows_of(found), notes_of(found))
    assert place.with_suffix(".md").read_text("utf-8") == drawn


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
    assert f"`<tool_call>` was written in {len(begun)} more" in page and len(listed) == 2
    assert (
        f"of {len(episodes)} episodes one has a call" in page and f"In {ends['truncated']} a message" in page
    )
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
    assert f"{served} are correct where our sampler's are {here}" in page
    assert f"{plain['read as other tokens']} of {plain['requests']} requests" in page
    assert (
        f"{apart['same']} of {apart['episodes']} have the same messages and scores, in {apart['requests']}"
        in page
    )
    assert f"requests of {apart['seconds'] / apart['requests']:.2f} s".replace("0.", ".") in page
    assert (apart["read as other tokens"], apart["same"]) == (0, 32)
    assert "'NoneType' object is not subscriptable" in found["seen"]["shipped folder"]
    assert found["seen"]["saved by transformers, /v1/chat/completions"].startswith("500")
    whole = json.loads((EXPERIMENTS / "serve_base" / "same.json").read_text("utf-8"))
    assert whole["same score"] == whole["episodes"]
    assert f"the {whole['episodes']} tasks above are solved in" in page
    assert f"{whole['same messages']} episodes have the same messages" in page
    assert f"the other {whole['other messages, and invalid in both']} are invalid in both" in page
    assert whole["same messages"] + whole["other messages, and invalid in both"] == whole["episodes"]


def with_nan(value: Any) -> Any:
    """Undo `without_nan`, but for the level of rows of several levels."""
    if isinstance(value, dict):
        return {
            k: v if k in ("d", "header") else math.nan if v is None else with_nan(v) for k, v in value.items()
        }
    return [math.nan if v is None else with_nan(v) for v in value] if isinstance(value, list) else value


def test_what_the_customers_endpoint_wrote_in_vain_is_told(shop: Shop) -> None:
    wording = [{"refused": "no answer"}, {"refused": ""}, {"refused": "adds words"}, {"refused": "no answer"}]
    said = notes(shop, wording=wording)
    assert "asked 4 times, refused 3 times (adds words 1, no answer 2)" in said
    assert "customer's endpoint" not in notes(shop)


def test_the_customers_endpoint_has_its_own_price() -> None:
    """Whatever the player is: a script, too."""
    price = Prices(input=1, output=2, cached=0.5)
    customer = SimpleNamespace(settings=SimpleNamespace(prices=price))
    assert _prices(make_contestant("reference", None, ["CART"], None, {}, customer)) == {"customer": price}  # type: ignore[arg-type]


@pytest.mark.parametrize("rises", [True, False])
def test_a_frontier_of_a_player_that_does_better_further_up_is_said_to_be_no_answer(
    rises: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    levels = {12: True, 0: False} if rises else {0: True, 12: False}
    counts = Counts()
    for level, won in levels.items():
        counts = counts.add(level, [won] * 20)
    one = Frontier("PD", tuple(held(counts, share) for share in SHARES), counts, 0).to_json()
    show_frontier({"header": {"player": "p"}, "environments": [one], "ledger": {}}, Console(width=110))
    assert ("PD: success rises with the level" in capsys.readouterr().out) == rises
