"""The ten laws (SPEC §2) over every registered environment: a ninth one is held to them without an edit."""

import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from ecomlab import ENVIRONMENTS, Episode, Shop, Task, make_task, play, replay
from ecomlab.audit import attackers
from ecomlab.audit.certificate import Row, broken_laws, certify_cell, golden
from ecomlab.difficulty import AXES
from ecomlab.episode.messages import parse_output
from ecomlab.episode.play import ReplayError, record
from ecomlab.players.base import Slips
from ecomlab.seeding import digest, rng
from ecomlab.task import Message

LEVELS = range(13)
ENVS = list(ENVIRONMENTS)
every_env = pytest.mark.parametrize("env", ENVS)
every_level = pytest.mark.parametrize("d", LEVELS)


def block(name: str) -> str:
    """A tool call in Qwen3's format, without arguments."""
    return f'<tool_call>{{"name": "{name}", "arguments": {{}}}}</tool_call>'


# Laws 1, 2, 3 and 9: the certificate, with fewer seeds than `make certify`.


@cache
def certificate(env: str, shop: Shop) -> list[Row]:
    return [certify_cell(env, d, 24, 12, shop) for d in LEVELS]


@every_env
def test_solvable_fair_not_gameable_and_harder(env: str, big_shop: Shop) -> None:
    rows = certificate(env, big_shop)
    assert broken_laws(rows) == []
    for row in rows:
        assert row.reward > 0.85 or row.fair < 1, f"the fair player loses reward: d = {row.d}: {row.reward}"


def test_each_law_of_the_certificate_can_break(big_shop: Shop) -> None:
    rows = certificate("CART", big_shop)
    first = rows[0]
    faults = {
        "law 1": replace(first, solver=0.99),
        "law 2": replace(first, fair=0.5),
        "law 3: blind": replace(first, blind={**first.blind, "say done": 0.9}),
        "law 3: positional": replace(first, chance=0.0, positional={"first of history": 0.9}),
        "law 3: quitter": replace(
            first, rewards={**first.rewards, "quitter": (0.5, 0.1, 50)}, failed=(-0.5, 0.1, 50)
        ),
    }
    for law, row in faults.items():
        assert any(line.startswith(law) for line in broken_laws([row, *rows[1:]])), law
    flat = [replace(row, noisy=0.5) for row in rows]
    assert any(line.startswith("law 9") for line in broken_laws(flat))


@every_env
@every_level
def test_what_the_ledger_calls_stated_can_be_read_from_the_opening(env: str, d: int, big_shop: Shop) -> None:
    from ecomlab.catalog.lexicon import lexicon_of
    from ecomlab.customer.nlu import is_complete

    lexicon = lexicon_of(big_shop.catalog)
    for seed in range(40):
        task = make_task(env, d, seed, big_shop)
        stated, withheld = ENVIRONMENTS[env].slots(task)
        read = ENVIRONMENTS[env].read_opening(task.opening, lexicon)
        assert is_complete(task.opening) == (not withheld), task.opening
        heard = {(i, name): value for (i, name), value in read.items() if name != "type"}
        assert heard == {(s.subject, s.name): s.value for s in stated}, task.opening


# Law 4: judged by effect.


@every_env
@pytest.mark.parametrize(
    "value", ["15 days", "$7.99", "nan", "-15", "", None, [], {}, 1e308, True, "\ud800", "x" * 10_000]
)
def test_submit_takes_anything_and_gives_a_verdict(env: str, value: Any, shop: Shop) -> None:
    task = make_task(env, 3, 0, shop)
    fields = ENVIRONMENTS[env].submit.schema["function"]["parameters"].get("properties", {})
    for name in fields or {"nothing": None}:
        episode = Episode(task, shop)
        episode.act(attackers.calls(("submit", {name: value})))
        if not episode.done:
            continue
        score = episode.score()
        assert -1 <= score.value <= 1
        assert not score.correct
        assert score.why


# Law 5: one record.


@every_env
@every_level
def test_no_placeholder_reaches_a_message(env: str, d: int, shop: Shop) -> None:
    for seed in range(6):
        task = make_task(env, d, seed, shop)
        slips = Slips(rng("placeholder", seed), 0.2)
        for message in play(ENVIRONMENTS[env].fair_player(shop, slips), task, shop).messages:
            if message["role"] in ("user", "system"):
                text = message["content"]
                assert text == text.strip()
                assert text
                for bad in ("{", "}", "None", "attr:", "  ", " .", " ,", "[]", "()"):
                    assert bad not in text, text


@every_env
@every_level
def test_a_task_survives_json(env: str, d: int, shop: Shop) -> None:
    task = make_task(env, d, 5, shop)
    again = Task.from_json(json.loads(json.dumps(task.to_json())))
    assert again.digest() == task.digest()
    player = ENVIRONMENTS[env].fair_player
    assert play(player(shop), again, shop).messages == play(player(shop), task, shop).messages


@every_env
def test_a_task_does_not_depend_on_the_order_of_json_keys(env: str, shop: Shop) -> None:
    for seed in range(10):
        task = make_task(env, 8, seed, shop)
        again = Task.from_json(json.loads(json.dumps(task.to_json(), sort_keys=True)))
        player = ENVIRONMENTS[env].fair_player
        assert play(player(shop), again, shop).messages == play(player(shop), task, shop).messages


# Law 6: reproducible.

_DIGESTS = """
import sys
from ecomlab import ENVIRONMENTS, load_shop, make_task, play
from ecomlab.seeding import digest
shop = load_shop(1_000)
player = lambda env: ENVIRONMENTS[env].fair_player(shop)
tasks = [make_task(env, d, s, shop) for env in ENVIRONMENTS for d in (0, 5, 12) for s in range(3)]
print(digest([[task.to_json(), play(player(task.env), task, shop).messages] for task in tasks]))
"""


def test_the_same_key_gives_the_same_bytes_in_every_process(tmp_path: Any) -> None:
    def run(hash_seed: str, locale: str, zone: str) -> str:
        settings_ = {
            "PYTHONHASHSEED": hash_seed,
            "LC_ALL": locale,
            "TZ": zone,
            "ECOMLAB_CACHE": str(tmp_path / hash_seed),
        }
        done = subprocess.run(
            [sys.executable, "-c", _DIGESTS],
            env={**os.environ, **settings_},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    assert run("1", "C", "UTC") == run("2", "C.UTF-8", "Asia/Tokyo")


@every_env
def test_a_key_never_changes_its_meaning_without_a_new_version(env: str, shop: Shop) -> None:
    now = golden(env, shop)
    assert now == ENVIRONMENTS[env].golden, (
        f"tasks of {env} changed: raise {env}'s version, then set golden to {now!r}"
    )


@every_env
@every_level
def test_a_recorded_trajectory_replays_to_its_score(env: str, d: int, shop: Shop) -> None:
    for seed in range(3):
        slips = Slips(rng("replay", seed), 0.2)
        trajectory = play(ENVIRONMENTS[env].fair_player(shop, slips), make_task(env, d, seed, shop), shop)
        assert replay(trajectory, shop) == trajectory.score


@every_env
@pytest.mark.parametrize(
    "said",
    ["<tool_call>{bad</tool_call>", "<tool_call>", block("nope"), block("cart_add"), "x" * 30_000, "Hello?"],
)
def test_whatever_was_said_last_replays(env: str, said: str, shop: Shop) -> None:
    episode = Episode(make_task(env, 2, 0, shop), shop)
    episode.act(parse_output(said))
    while not episode.done:
        episode.act(attackers.SUBMIT)
    trajectory = record(episode)
    assert replay(trajectory, shop) == trajectory.score


@every_env
def test_a_replay_that_differs_says_where(env: str, shop: Shop) -> None:
    trajectory = play(ENVIRONMENTS[env].fair_player(shop), make_task(env, 4, 1, shop), shop)
    at = next(i for i, m in enumerate(trajectory.messages) if m["role"] == "tool")
    changed = [dict(m) for m in trajectory.messages]
    changed[at]["content"] = "{}"
    with pytest.raises(ReplayError, match=f"message {at} differs"):
        replay(replace(trajectory, messages=changed), shop)


# Law 7: isolated.


@every_env
def test_interleaved_and_threaded_episodes_do_not_touch_each_other(env: str, shop: Shop) -> None:
    tasks = [make_task(env, d, seed, shop) for d in (2, 7, 12) for seed in range(8)]
    drawn = [task.digest() for task in tasks]
    player = ENVIRONMENTS[env].fair_player

    def alone(task: Task) -> list[Message]:
        return play(player(shop), task, shop).messages

    expected = [alone(task) for task in tasks]
    running = [(Episode(task, shop), player(shop)) for task in tasks]
    while any(not episode.done for episode, _ in running):
        for episode, act in running:
            if not episode.done:
                episode.act(act(episode.messages, episode.tools))
    assert [episode.messages for episode, _ in running] == expected
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(alone, tasks * 2)) == expected * 2
    # Histories and books are drawn once and shared: nobody may have written into one.
    assert [task.digest() for task in tasks] == drawn
    assert [make_task(env, task.difficulty, task.seed, shop).digest() for task in tasks] == drawn


# Law 8: silent.


@every_env
@pytest.mark.parametrize("d", [0, 2, 4, 6, 8, 10, 12])
def test_withheld_truth_shows_nowhere_until_the_customer_is_asked(env: str, d: int, big_shop: Shop) -> None:
    pairs = 0
    for seed in range(60):
        task = make_task(env, d, seed, big_shop)
        twin = ENVIRONMENTS[env].twin(task, big_shop, rng("twin", seed))
        if twin is None:
            continue
        assert twin.digest() != task.digest()
        pairs += 1
        one, other = Episode(task, big_shop), Episode(twin, big_shop)
        assert one.messages == other.messages
        assert one.tools == other.tools
        player = Prober(env, rng("prober", seed))
        while not one.done and not other.done:
            message = player(one.messages)
            if message is None:
                break
            assert one.act(message).messages == other.act(message).messages
        assert one.end == other.end
    assert pairs >= (1 if d == 0 else 10)


class Prober:
    """Uses every tool that neither talks to the customer nor shows them a choice, with what the tools returned."""

    def __init__(self, env: str, random: Any) -> None:
        self.env = env
        self.random = random

    def __call__(self, messages: list[Message]) -> Message | None:
        ids = [row["product_id"] for row in attackers._listed(messages)] or ["P000000"]
        words = messages[1]["content"].split()
        start = int(self.random.integers(len(words)))
        query = " ".join(words[start : start + 3])
        product = ids[int(self.random.integers(len(ids)))]
        options = looks(self.env, query, product, *self._line(messages))
        picked = [options[int(i)] for i in self.random.integers(len(options), size=3)]
        return attackers.calls(*picked)

    def _line(self, messages: list[Message]) -> tuple[str, str]:
        """An order that a tool has shown and a line of it, as far as any has been."""
        results = [json.loads(m["content"]) for m in messages if m["role"] == "tool"]
        lines = [(r["order_id"], line["line_id"]) for r in results for line in r.get("lines", ())]
        listed = [(o["order_id"], "L000000") for r in results for o in r.get("orders", ())]
        known = lines if lines and self.random.random() < 0.5 else listed
        return known[int(self.random.integers(len(known)))] if known else ("O000000", "L000000")


def looks(
    env: str, query: str, product: str = "P000000", order: str = "O000000", line: str = "L000000"
) -> list[tuple[str, dict[str, Any]]]:
    """A call of every tool of an environment that changes nothing."""
    known: list[tuple[str, dict[str, Any]]] = [
        ("catalog_search", {"query": query}),
        ("catalog_search", {"query": query, "sort": ["price"], "page": 2}),
        ("catalog_search", {"query": query, "in_stock": True, "sort": ["rating"]}),
        ("catalog_get_product", {"product_id": product}),
        ("catalog_get_variants", {"product_id": product}),
        ("catalog_rerank", {"product_ids": [product], "sort": ["price"]}),
        ("user_get_visit_history", {}),
        ("cart_view", {}),
        ("order_list", {}),
        ("order_get_status", {"order_id": order}),
        ("return_check_eligibility", {"order_id": order, "line_id": line}),
        ("policy_search", {"query": query}),
        ("datetime_now", {}),
    ]
    return [call for call in known if call[0] in ENVIRONMENTS[env].tools]


@every_env
@pytest.mark.parametrize("d", [0, 6, 12])
def test_the_visit_history_does_not_tell_wanted_from_unwanted(env: str, d: int, big_shop: Shop) -> None:
    catalog = big_shop.catalog
    for seed in range(40):
        task = make_task(env, d, seed, big_shop)
        rows = [catalog.row(product_id) for product_id in task.world.get("visits", ())]
        assert all(row is not None and catalog.stock[row] >= 8 for row in rows)
        per_type = Counter(catalog.type_of(row).name for row in rows if row is not None)
        lists = 1 + (len(ENVIRONMENTS[env].parts(task)) > 1)  # a journey has a cart's and a substitution's
        assert len(set(per_type.values())) <= lists, per_type


@every_env
def test_no_tool_returns_reward(env: str, shop: Shop) -> None:
    for d in (0, 6, 12):
        for message in play(ENVIRONMENTS[env].fair_player(shop), make_task(env, d, 2, shop), shop).messages:
            if message["role"] == "tool":
                assert not {"reward", "score", "correct"} & set(json.loads(message["content"]))


# Law 10: broken is not wrong.


@every_env
def test_a_player_that_breaks_leaves_the_episode_unscored(env: str, shop: Shop) -> None:
    def broken(messages: list[Message], tools: list[dict[str, Any]]) -> Message:
        raise TimeoutError("the endpoint is down")

    trajectory = play(broken, make_task(env, 1, 0, shop), shop)
    assert trajectory.score.unscored
    assert trajectory.score.value != trajectory.score.value  # NaN
    assert "the endpoint is down" in trajectory.score.why


@every_env
def test_a_bug_of_ours_leaves_the_episode_unscored(
    env: str, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ecomlab.world.state import World

    def broken(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(World, "spend_call", broken)
    assert play(ENVIRONMENTS[env].fair_player(shop), make_task(env, 1, 0, shop), shop).score.unscored


# The axes: each one that an environment claims changes what a fixed player meets.

HIGH = {
    "constraints": 6,
    "p_missing": 1.0,
    "eps_rank": 0.6,
    "p_oos": 1.0,
    "turn_slack": 9,
    "tool_slack": 40,
    "p_noise": 0.5,
    "p_switch": 1.0,
    "top_k": 10,
    "k_rec": 12,
    "history": 30,
    "branches": 8,
}


def explore(task: Task, shop: Shop) -> str:
    """What a fixed explorer meets: the fair player's episode, then looking around until a budget ends it."""
    fair = play(ENVIRONMENTS[task.env].fair_player(shop), task, shop)
    episode = Episode(task, shop)
    look = attackers.calls(*looks(task.env, "charger"))
    while not episode.done:
        episode.act(look)
    return digest([fair.messages, fair.score.value, record(episode).messages, episode.end])


@every_env
@pytest.mark.parametrize("axis", AXES)
def test_each_claimed_axis_moves_alone_and_no_other_does(env: str, axis: str, big_shop: Shop) -> None:
    tasks = [
        (make_task(env, 2, s, big_shop), make_task(env, 2, s, big_shop, {axis: HIGH[axis]})) for s in range(4)
    ]
    moved = any(explore(before, big_shop) != explore(after, big_shop) for before, after in tasks)
    assert moved == (axis in ENVIRONMENTS[env].axes)
