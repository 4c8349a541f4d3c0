"""The viewer: what each turn left behind is what the episode says, and one file holds thousands of episodes."""

import base64
import hashlib
import html
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
from chat_server import Reply, completion, serving
from contestants import Script
from typer.testing import CliRunner

from ecomlab import ENVIRONMENTS, Episode, Shop, Trajectory, evaluate, make_task, play
from ecomlab.cli import app
from ecomlab.episode.play import ReplayError, record, replay
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.endpoint.contestant import EndpointContestant
from ecomlab.evaluation.endpoint.settings import EndpointSettings
from ecomlab.evaluation.evaluation import EVALUATION, header_of
from ecomlab.evaluation.local import LocalContestant, transcript_of
from ecomlab.evaluation.report import LOOK
from ecomlab.evaluation.tasks import held_out_seeds
from ecomlab.evaluation.transcript import Transcript
from ecomlab.evaluation.transcripts import FILE, TranscriptError, write
from ecomlab.lab.view.acting import record_of, record_of_trajectory
from ecomlab.lab.view.page import LARGEST, row_of, write_episodes, write_page
from ecomlab.lab.view.sources import sources_of
from ecomlab.markup.conversation import episode
from ecomlab.markup.elements import element
from ecomlab.markup.record import Call, Label, Record, State, Step
from ecomlab.models.batch import Start, play_batch
from ecomlab.models.load import load_policy
from ecomlab.models.policy import Policy
from ecomlab.models.samplers.cached import Limits
from ecomlab.models.samplers.tiny import sampler_of
from ecomlab.players.base import Perturbation
from ecomlab.seeding import rng

SEED = held_out_seeds(0, 1)[0]
every_environment = pytest.mark.parametrize("env", ENVIRONMENTS)
runner = CliRunner()


@pytest.fixture(scope="module")
def novice(shop: Shop) -> Policy:
    return load_policy("novice", shop, ["CART"])


def played(env: str, shop: Shop, d: int = 6, rate: float = 0.2, trial: int = 0) -> Transcript:
    (one,) = Script(rate=rate).play([Job(env, d, SEED, trial)], shop)
    return one


def folder_with(
    path: Path, shop: Shop, *transcripts: Transcript, player: str = "script", **header: Any
) -> Path:
    envs = [transcript.job.env for transcript in transcripts] or ["CART"]
    made = (
        header_of(EVALUATION, player, Script().identity, envs, {}, shop, {"size": 1_000, "seed": 0}) | header
    )
    write(path / FILE, made, transcripts)
    return path


# --- records ---


@every_environment
def test_what_the_turns_earned_adds_up_to_the_reward(env: str, shop: Shop) -> None:
    for d, rate in ((1, 0.0), (6, 0.3)):
        transcript = played(env, shop, d, rate)
        steps = record_of(transcript, shop).steps
        assert [step.number for step in steps] == list(range(len(steps))) and steps[0].said
        for step in steps:
            assert step.state is not None and step.state.reward is not None
            assert sum(step.state.parts.values()) == pytest.approx(step.state.reward)
        assert steps[-1].state is not None and steps[-1].state.reward == transcript.score.value


@every_environment
def test_the_first_turn_knows_what_the_opening_stated_and_later_ones_what_was_revealed(
    env: str, shop: Shop
) -> None:
    transcript = played(env, shop, rate=0.0)
    task = make_task(env, 6, SEED, shop)
    opening, *turns = [step.state for step in record_of(transcript, shop).steps]
    assert opening is not None and not opening.revealed and not opening.events and not opening.cart
    assert len(opening.stated) == len(task.parts[0].goal.said())
    assert len(opening.withheld) == len(task.parts[0].goal.said(withheld=True))
    if env != "JOURNEY":  # there, openings of other subtasks withhold and tell more
        learned = turns[-1].revealed if turns[-1] else []
        assert {*learned} <= {
            *opening.withheld,
            *(line for state in turns if state for line in state.withheld),
        }
        assert learned or not opening.withheld or env == "STATUS"  # an order may be found without asking


@every_environment
def test_a_record_is_json_and_says_every_word(env: str, shop: Shop) -> None:
    transcript = played(env, shop)
    found = record_of(transcript, shop, "someone", [Label(1, "wrong product", "not that")])
    text = json.dumps(found.to_json(), allow_nan=False)
    assert json.loads(text)["labels"] == [{"turn": 1, "kind": "wrong product", "words": "not that"}]
    said: set[str | None] = {found.system, *(one for step in found.steps for one in (step.text, *step.said))}
    said |= {part for step in found.steps for call in step.calls for part in (call.arguments, call.result)}
    for message in transcript.messages:
        assert message["content"] in said or not message["content"]


def test_the_cart_after_each_turn_is_the_worlds(shop: Shop) -> None:
    task = make_task("CART", 4, 7, shop)
    trajectory = play(ENVIRONMENTS["CART"].reference_player(shop), task, shop)
    carts: list[dict[tuple[str, Any], int]] = []
    replay(trajectory, shop, lambda episode: carts.append(dict(episode.world.cart)))
    for step, cart in zip(record_of_trajectory(trajectory, shop).steps, carts, strict=True):
        assert step.state is not None
        assert {(line["id"], line["variant"]): line["units"] for line in step.state.cart} == cart
    assert carts[-1]


@every_environment
def test_looking_on_changes_nothing(env: str, shop: Shop) -> None:
    task = make_task(env, 8, 3, shop)
    slips = Perturbation(rng("looking on", env), 0.3)
    player, episode = ENVIRONMENTS[env].reference_player(shop, slips), Episode(task, shop)
    while not episode.done:
        first = episode.standing()
        assert episode.standing() == first
        episode.act(player(list(episode.messages), episode.tools))
    again = ENVIRONMENTS[env].reference_player(shop, Perturbation(rng("looking on", env), 0.3))
    assert record(episode) == play(again, task, shop)
    assert episode.score() == episode.standing()


def ended(shop: Shop, how: str) -> Trajectory:
    episode = Episode(make_task("CART", 2, 5, shop), shop)
    if how == "invalid":
        episode.act({"role": "assistant", "content": "", "invalid": "malformed JSON"})
    else:
        episode.act({"role": "assistant", "content": "One moment."})
        episode.end_truncated() if how == "truncated" else episode.fail("a bug of ours")
    return record(episode)


def by_turn(record: Record) -> list[tuple[int, float]]:
    return [(step.tokens, step.seconds) for step in record.steps if step.number]


def test_a_turn_shows_the_tokens_and_seconds_that_it_took(novice: Policy, shop: Shop) -> None:
    for transcript in LocalContestant("novice", novice).play([Job("CART", d, SEED) for d in (0, 4)], shop):
        used, spent = transcript.usage["agent"], by_turn(record_of(transcript, shop))
        tokens, seconds = map(sum, zip(*spent, strict=True))
        assert transcript.end != "truncated" and tokens == used.completion_tokens, (
            "a lost turn would be missing"
        )
        assert seconds == pytest.approx(used.seconds, abs=0.001 * len(spent))
        assert f"{spent[0][0]} tokens" in episode(record_of(transcript))

    def answer(body: dict[str, Any], number: int) -> Reply:
        return completion({"content": "One moment."})

    with serving(answer) as server:
        remote = EndpointContestant(EndpointSettings(url=server.url, model="tested"))
        (transcript,) = remote.play([Job("CART", 0, SEED)], shop)
    spent = by_turn(record_of(transcript, shop))
    assert len(spent) == transcript.turns and all(turn[0] == 10 and turn[1] > 0 for turn in spent)


def test_a_file_without_tokens_by_turn_shows_none(novice: Policy, shop: Shop) -> None:
    (transcript,) = LocalContestant("novice", novice).play([Job("CART", 0, SEED)], shop)
    old = Transcript.from_json({**transcript.to_json(), "notes": {}})
    assert not any(map(any, by_turn(record_of(old, shop)))) and "tokens" not in episode(record_of(old))


def test_given_first_turns_took_no_tokens(novice: Policy, shop: Shop) -> None:
    start = Start(make_task("CART", 2, SEED, shop), given=0.5)
    sampler = sampler_of(novice.model, novice.renderer.stop_ids, Limits(), 1.0)
    (rollout,) = play_batch([start], [rng("given")], shop, sampler, novice.renderer)
    transcript = transcript_of(Job("CART", 2, SEED), rollout, 2048)
    tokens = transcript.notes["turns"]["tokens"]
    assert tokens[0] == 0 and all(tokens[-rollout.turns :]) and sum(tokens) == rollout.sampled


def test_what_today_would_not_repeat_is_shown_without_states_and_says_so(shop: Shop) -> None:
    transcript = played("CART", shop)
    system, _, *rest = transcript.messages
    gone = replace(transcript.job, axes={"branches": 2.0})  # which does not move CART
    for changed in (
        replace(transcript, task="another"),
        replace(transcript, messages=[system, {"role": "user", "content": "Hi"}, *rest]),
        replace(transcript, job=gone),
    ):
        found = record_of(changed, shop)
        assert found.note and len(found.steps) > 1 and not any(step.state for step in found.steps)
    unscored = Transcript.of(Job("PD", 1, SEED), None, faults=("malformed call",), unscored="task")
    found = record_of(unscored, shop)
    assert found.correct is None and not found.steps and found.facts["unscored"] == "task"
    with pytest.raises(ReplayError):
        record_of_trajectory(replace(ended(shop, "truncated"), turns=7), shop)


# --- the page ---

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)> $a$ {{index}} <!-- "


def hostile() -> tuple[dict[str, Any], Record]:
    """An episode in which products, customer and model write the same hostile text."""
    state = State(
        [{"units": 1, "product": HOSTILE}], [], [HOSTILE], [], [], [], turns=1, turn_budget=2, calls=1, call_budget=2,
        reward=-0.9, parts={"task": -0.75},
    )  # fmt: skip
    result = json.dumps({"results": [{"title": HOSTILE}]})
    steps = [
        Step(0, said=[HOSTILE]),
        Step(1, HOSTILE, [Call("catalog_search", HOSTILE, result)], [HOSTILE], state),
    ]
    made = Record(
        HOSTILE, {"axes": HOSTILE}, False, "submit", -0.9, {"task": -1.0}, {}, HOSTILE, HOSTILE, steps
    )
    score = ended_score()
    return row_of(HOSTILE, Transcript(Job("CART", 0, 1), "", (), "submit", score, 1, 1), made), made


def ended_score() -> Any:
    from ecomlab.reward import Score

    return Score(-0.9, False, HOSTILE, {"task": -1.0})


def scripts_of(page: str) -> list[tuple[str, str]]:
    """Attributes and text of the script elements, as a browser finds them."""
    return re.findall(r"<script([^>]*)>(.*?)</script>", page, re.DOTALL)


def index_in(path: Path) -> list[dict[str, Any]]:
    """Rows of the table, by column."""
    index = json.loads(scripts_of(path.read_text("utf-8"))[0][1])
    return [
        dict(zip([column["name"] for column in index["columns"]], row, strict=True)) for row in index["rows"]
    ]


def inflated(blob: str) -> str:
    """The markup of an episode; its JSON comes after it."""
    markup, record = zlib.decompress(base64.b64decode(blob)).decode().split("\0")
    assert json.loads(record)["steps"]
    return markup


def test_a_page_runs_its_own_script_and_asks_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "view.html"
    write_episodes(path, [hostile()], element("p", HOSTILE))
    page = path.read_text("utf-8")
    data, own, *episodes = scripts_of(page)
    assert data[0] == ' type="application/json" id="index"' and own[0] == ""
    assert [attributes for attributes, _ in episodes] == [' type="text/plain" id="e0"']
    assert page.count("<script") == 3 and page.count("</script>") == 3 and "<img" not in page
    assert json.loads(data[1])["rows"][0][0] == HOSTILE, "the table gets the text itself"
    fragment = inflated(episodes[0][1])
    assert "<script" not in fragment and "<img" not in fragment and "&lt;img" in fragment
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert style is not None
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None and "default-src 'none'" in policy[1] and "unsafe" not in policy[1]
    for text in (own[1], style[1]):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy[1], "else the browser would not take it"
    outside = page.replace(episodes[0][1], "").replace(data[1], "")
    assert not re.search(r"(?:https?:)?//[\w.]+\.\w|\bfetch\(|XMLHttpRequest|@import|url\(", outside)


def test_every_episode_has_its_row_and_its_words(shop: Shop, tmp_path: Path) -> None:
    transcripts = [
        played("CART", shop),
        played("RETURN", shop, trial=1),
        replace(played("PD", shop), unscored="rate limit"),
    ]
    folder = folder_with(tmp_path / "run", shop, *transcripts)
    (source,) = sources_of([folder])
    assert source.path == folder / FILE and source.player == "script"
    told: list[tuple[int, int]] = []
    labels = {("CART", 0): [Label(1, "wrong variant")]}
    written = write_page(
        tmp_path / "view.html",
        [source],
        labels=lambda one: labels.get((one.job.env, one.job.trial), ()),
        on_progress=lambda done, total: told.append((done, total)),
    )
    assert (written.episodes, written.of, written.not_acted_out) == (3, 3, 0) and told[-1] == (3, 3)
    rows = index_in(tmp_path / "view.html")
    assert [row["env"] for row in rows] == ["CART", "RETURN", "PD"] and rows[0]["labels"] == ["wrong variant"]
    _, _, *episodes = scripts_of((tmp_path / "view.html").read_text("utf-8"))
    for transcript, (_, blob) in zip(transcripts, episodes, strict=True):
        text = html.unescape(re.sub(r"<[^>]*>", "\n", inflated(blob)))  # as the page's search does
        for message in transcript.messages:
            if message["role"] == "user":
                assert message["content"] in text


def test_two_players_are_shown_on_the_same_tasks_first(shop: Shop, tmp_path: Path) -> None:
    one = folder_with(tmp_path / "one", shop, played("CART", shop), player="one")
    two = folder_with(tmp_path / "two", shop, played("PD", shop), played("CART", shop), player="two")
    written = write_page(tmp_path / "view.html", sources_of([one, two]), limit=2)
    assert (written.episodes, written.of) == (2, 3)
    rows = index_in(tmp_path / "view.html")
    assert [(row["player"], row["env"]) for row in rows] == [("one", "CART"), ("two", "CART")]
    again = folder_with(tmp_path / "again", shop, played("CART", shop), player="one")
    same = sources_of([one, again])
    assert len({source.player for source in same}) == 2, "runs of one player are told apart by where they are"
    with pytest.raises(TranscriptError, match="twice"):
        sources_of([one, one / FILE])


def test_the_command_writes_the_page(shop: Shop, tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "run", shop, played("CART", shop), played("PD", shop))
    assert runner.invoke(app, ["view", str(folder)]).exit_code == 0
    assert len(index_in(folder / "view.html")) == 2
    other = folder_with(tmp_path / "other", shop, played("SUB", shop))
    chosen = ["--limit", "2", "--plain", "--out", str(tmp_path / "x.html")]
    fewer = runner.invoke(app, ["view", str(folder), str(other), *chosen])
    assert "--limit" in fewer.output and len(index_in(tmp_path / "x.html")) == 2


def test_the_first_page_has_each_run_with_its_success_by_environment_and_level(
    shop: Shop, tmp_path: Path
) -> None:
    for player in ("reference", "naive"):
        evaluate(player, env="CART,PD", difficulty=[0, 2], tasks=2, shop=shop, out=tmp_path / "runs" / player)
    result = runner.invoke(
        app, ["view", str(tmp_path / "runs"), "--out", str(tmp_path / "x.html"), "--plain"]
    )
    assert result.exit_code == 0, result.output
    page = (tmp_path / "x.html").read_text("utf-8")
    cards = re.findall(r'<section class="run">(.*?)</section>', page, re.DOTALL)
    assert [re.search(r"<h2>(\w+)</h2>", card)[1] for card in cards] == ["naive", "reference"]  # type: ignore[index]
    cell = r'<button[^>]*?(?: data-env="(\w+)")?(?: data-d="(\d)")?><b>(\d+%)</b><span>(\d+)–100</span>'
    *cells, overall = re.findall(cell, cards[1])
    levels = [(env, d) for env in ("CART", "PD", "") for d in ("0", "2", "")]
    assert [one[:3] for one in (*cells, overall)] == [(env, d, "100%") for env, d in levels]
    assert all(int(low) < int(overall[3]) for *_, low in cells), "of all tasks, the interval is the narrowest"
    assert all("<dt>tasks per cell</dt><dd>2</dd>" in card and html.escape(LOOK) in card for card in cards)


@pytest.mark.slow
def test_five_thousand_episodes_are_less_than_sixty_megabytes(shop: Shop, tmp_path: Path) -> None:
    """Each is deflated by itself, so that the same ones again take as much room as others would."""
    some = [played(env, shop, d, 0.2) for env in ENVIRONMENTS for d in (2, 5, 8, 12)]
    rows = [(row_of("script", one, made), made) for one in some for made in [record_of(one, shop)]]

    def many() -> Iterator[tuple[Mapping[str, Any], Record]]:
        return islice(cycle(rows), 5_000)

    write_episodes(tmp_path / "view.html", many(), element("p"))
    assert (tmp_path / "view.html").stat().st_size < LARGEST


# --- notebooks ---


@every_environment
def test_a_task_at_the_end_of_a_cell_does_not_tell_the_truth(env: str, shop: Shop) -> None:
    tasks = [make_task(env, 8, seed, shop) for seed in range(3)]
    for task in tasks:
        known = replace(task, goal=tasks[0].goal, events=(), notes={}, subtasks=())
        assert task._repr_html_() == known._repr_html_()
        assert html.escape(task.opening) in task._repr_html_()
