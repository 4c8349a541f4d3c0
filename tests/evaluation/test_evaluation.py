"""Runs of an evaluation: killed and continued, nothing lost, doubled or mixed; scored again without playing."""

import json
import os
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from contestants import Script
from wordings import Honest

from ecomlab import Shop
from ecomlab.evaluation import evaluation
from ecomlab.evaluation.compare import compare
from ecomlab.evaluation.evaluation import EVALUATION, Cells, header_of, rescore, run_evaluation
from ecomlab.evaluation.report import Report
from ecomlab.evaluation.scripted import ScriptedContestant
from ecomlab.evaluation.tasks import held_out_seeds
from ecomlab.evaluation.transcript import key_of
from ecomlab.evaluation.transcripts import FILE, TranscriptError, read, read_header

CELLS = Cells(("CART", "STATUS"), (0, 2), 4, trials=2)
CATALOG = {"size": 1000, "seed": 0}


def run(
    contestant: Any, shop: Shop, folder: Path, cells: Cells = CELLS, **more: Any
) -> list[Mapping[str, Any]]:
    """Run an evaluation; what it told."""
    told: list[Mapping[str, Any]] = []
    header = header_of(
        EVALUATION, contestant.name, contestant.identity, cells.envs, cells.axes, shop, CATALOG
    )
    run_evaluation(
        contestant, cells, shop, folder, header, {"commit": "abc"}, on_progress=told.append, **more
    )
    return told


def contents(folder: Path) -> list[Any]:
    """What was said in each episode and what it earned, sorted by job."""
    found = [(t.key, t.task, t.messages, repr(t.score)) for t in read(folder, every=True)]
    return sorted(found, key=lambda row: row[0])


def kill_after(episodes: int, shop: Shop, folder: Path) -> int:
    """Run the evaluation in a fork that kills itself after so many episodes; its exit code."""
    child = os.fork()
    if not child:
        try:
            run(Script(rate=0.2, killed_after=episodes), shop, folder)
        finally:
            os._exit(0)  # not reached
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_killed_and_continued_it_has_every_episode_once(shop: Shop, tmp_path: Path) -> None:
    """Killed twice by SIGKILL, once with half a line on disk: the same episodes as in one go."""
    folder, whole = tmp_path / "killed", tmp_path / "whole"
    for number, episodes in enumerate((5, 13)):
        assert kill_after(episodes, shop, folder) == -signal.SIGKILL
        assert len(list(read(folder))) == sum((5, 13)[: number + 1])
        with (folder / FILE).open("a") as file:
            file.write('{"episode": {"job": {"env": "CA')
    last = Script(rate=0.2)
    run(last, shop, folder)
    assert len(last.played) == len(CELLS.jobs()) - 18
    run(Script(rate=0.2), shop, whole)
    assert contents(folder) == contents(whole)
    assert [row[0] for row in contents(whole)] == sorted(key_of(job) for job in CELLS.jobs())
    again = Script(rate=0.2)
    run(again, shop, folder)
    assert again.played == []


def test_a_first_look_is_added_to_by_asking_for_more_tasks(shop: Shop, tmp_path: Path) -> None:
    """The folder ends up as after one run of all. Other cells are another run, and fewer tasks an error."""
    folder, whole, few = tmp_path / "grown", tmp_path / "whole", replace(CELLS, tasks=1)
    run(Script(rate=0.2), shop, folder, few)
    more = Script(rate=0.2)
    run(more, shop, folder)
    assert len(more.played) == len(CELLS.jobs()) - len(few.jobs())
    run(Script(rate=0.2), shop, whole)
    assert contents(folder) == contents(whole)
    assert Report.read(folder).to_json()["header"]["cells"]["tasks"] == CELLS.tasks
    compare(folder, whole)
    with pytest.raises(TranscriptError, match="holds 4 tasks per cell"):
        run(Script(rate=0.2), shop, folder, few)
    for other in (replace(CELLS, tasks=9, levels=(0,)), replace(CELLS, tasks=9, trials=1)):
        with pytest.raises(TranscriptError, match="holds another run: cells"):
            run(Script(rate=0.2), shop, folder, other)


def test_the_tasks_are_held_out_and_every_cell_has_its_share(shop: Shop) -> None:
    jobs = CELLS.jobs()
    assert {job.seed for job in jobs} == set(held_out_seeds(0, 4))
    half = jobs[: len(jobs) // 2]
    assert {(job.env, job.d): half.count(job) for job in half} == {(job.env, job.d): 1 for job in jobs}
    assert {job.axes["cart.items"] for job in replace(CELLS, axes={"cart.items": 2}).jobs() if job.axes} == {
        2
    }


def test_unscored_episodes_are_tried_again_when_asked_to(shop: Shop, tmp_path: Path) -> None:
    fails = Script(fails=lambda job: "connection" if job.trial else "")
    run(fails, shop, tmp_path)
    for asked, played in ((False, 0), (True, 16)):
        again = Script(fails=lambda job: "connection" if job.trial and job.d else "")
        run(again, shop, tmp_path, retry_unscored=asked)
        assert len(again.played) == played and all(job.trial for job in again.played)
    last = {t.key: t.unscored for t in read(tmp_path)}
    assert last == {key_of(job): "connection" if job.trial and job.d else "" for job in CELLS.jobs()}


def test_another_players_folder_is_refused(shop: Shop, tmp_path: Path) -> None:
    one = Cells(("STATUS",), (0,), 2)
    run(Script(), shop, tmp_path, one)
    other = Script(rate=0.5, name="b", limits={"turn": 512})
    with pytest.raises(TranscriptError) as refused:
        run(other, shop, tmp_path, replace(one, axes={"p_missing": 0}))
    for words in ("identity.rate is 0.0 there, 0.5 now", "limits.turn is 256 there", "axes.p_missing is"):
        assert words in str(refused.value)


def test_no_secret_is_written(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-123456789")
    for name, words in (("sk-123456789", "value of MY_API_KEY"), ("https://me:pw@host/v1", "password")):
        with pytest.raises(ValueError, match=words):
            run(Script(name=name), shop, tmp_path)
    assert not (tmp_path / FILE).exists()


# --- scoring again ---


@pytest.fixture
def recorded(shop: Shop, tmp_path: Path) -> Path:
    fails = lambda job: "connection" if job.seed % 4 == 3 else ""  # noqa: E731
    run(Script(rate=0.3, fails=fails), shop, tmp_path)
    return tmp_path


def test_scores_are_those_of_a_replay(shop: Shop, recorded: Path) -> None:
    assert list(rescore(recorded, shop)) == [None] * 24


def test_words_of_a_customers_model_are_kept_so_that_a_replay_needs_no_model(
    shop: Shop, tmp_path: Path
) -> None:
    contestant = ScriptedContestant("reference", customer=Honest("polite"))
    cells = Cells(("CART", "STATUS"), (0,), 2)
    header = header_of(EVALUATION, contestant.name, contestant.identity, cells.envs, {}, shop, CATALOG)
    run_evaluation(contestant, cells, shop, tmp_path, header, {})
    found = list(read(tmp_path))
    assert all(any(not one["refused"] for one in transcript.wording) for transcript in found)
    assert list(rescore(tmp_path, shop)) == [None] * 4


def test_what_a_replay_scores_otherwise_is_shown(shop: Shop, recorded: Path) -> None:
    kind, *lines = (recorded / FILE).read_text().splitlines()
    values = [json.loads(line) for line in lines]
    episodes = [
        value["episode"] for value in values if "episode" in value and not value["episode"]["unscored"]
    ]
    episodes[0]["score"]["value"] = 0.123
    episodes[1]["messages"][1]["content"] = "Something else."
    episodes[2]["task"] = "0" * 32
    (recorded / FILE).write_text("\n".join([kind, *map(json.dumps, values)]) + "\n")
    changed = [found for found in rescore(recorded, shop) if found]
    assert [found.job.seed for found in changed] == [episode["job"]["seed"] for episode in episodes[:3]]
    assert changed[0].was["value"] == 0.123 and changed[0].now["value"] != 0.123
    assert "message 1 differs" in changed[1].now["differs"] and "has changed" in changed[2].now["differs"]


def test_transcripts_of_other_environments_or_products_are_refused(
    shop: Shop, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = read_header(recorded)
    there = header["conditions"]
    there["environments"]["CART"] |= {"version": 0, "tools": "x"}
    there["catalog"]["fingerprint"] = "y"
    monkeypatch.setattr(evaluation, "read_header", lambda _: header)
    with pytest.raises(TranscriptError) as refused:
        list(rescore(recorded, shop))
    for words in ("CART.version is 0", 'CART.tools is "x"', 'catalog.fingerprint is "y"', "commit abc"):
        assert words in str(refused.value)
