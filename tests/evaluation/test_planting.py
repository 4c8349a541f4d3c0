"""Planted mistakes are found where they are; given turns begin an episode; effects are those of one act."""

import csv
import importlib
import math
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ecomlab import ENVIRONMENTS, Shop, make_task, play
from ecomlab.episode.episode import Episode
from ecomlab.evaluation.mistakes import calls_of, label
from ecomlab.evaluation.planting import (
    LEFT_OUT,
    PLANTABLE,
    Pair,
    Play,
    by_player,
    by_policy,
    effects,
    measure,
    messages_of,
    plant,
    play_on,
    wrong_acts,
)
from ecomlab.evaluation.tasks import held_out_seeds
from ecomlab.models.batch import Start, first_turns, play_batch
from ecomlab.models.load import load_policy
from ecomlab.models.policy import Policy
from ecomlab.seeding import rng
from ecomlab.starters.demonstrations import transcribe
from ecomlab.task import Message, Task

SEEDS = held_out_seeds(0, 4)
FOLDER = Path(__file__).resolve().parents[2] / "experiments" / "cascade"


@pytest.fixture(scope="module")
def novice(shop: Shop) -> Policy:
    return load_policy("novice", shop, ["CART"])


def carts(shop: Shop, d: int = 2) -> list[Task]:
    return [make_task("CART", d, seed, shop) for seed in SEEDS]


def reference(shop: Shop) -> Play:
    return by_player(lambda episode, given: episode.env.reference_player(shop), shop)


# --- given turns ---


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_share_of_the_turns_is_given_and_never_the_last(share: float, shop: Shop) -> None:
    task = make_task("CART", 3, 1, shop)
    whole = messages_of(play(ENVIRONMENTS["CART"].reference_player(shop), task, shop))
    given = first_turns(task, shop, share)
    assert given == whole[: min(round(share * len(whole)), len(whole) - 1)]


def test_a_policy_goes_on_from_given_turns_which_are_prompt(novice: Policy, shop: Shop) -> None:
    tasks = carts(shop)
    given = [first_turns(task, shop, 0.5) for task in tasks]
    streams = [rng("given", task.seed) for task in tasks]
    starts = [Start(task, first=first) for task, first in zip(tasks, given, strict=True)]
    rollouts = play_batch(starts, streams, shop, novice.sampler(), novice.renderer)
    for rollout, first in zip(rollouts, given, strict=True):
        assert rollout.trajectory is not None
        said = messages_of(rollout.trajectory)
        assert [calls_of(one) for one in said[: len(first)]] == [calls_of(one) for one in first]
        assert rollout.turns == len(said) - len(first) > 0, "the policy's own turns"
        prompt = novice.renderer.decode(rollout.prompt_ids)
        assert len(first) == 0 or first[0]["tool_calls"][0]["function"]["name"] in prompt


def test_given_turns_of_a_starter_are_in_the_words_that_it_imitated(novice: Policy, shop: Shop) -> None:
    encode = novice.renderer.encode
    for task in carts(shop):
        streams = [rng("given", task.seed)]
        [rollout] = play_batch([Start(task, given=0.5)], streams, shop, novice.sampler(), novice.renderer)
        pieces = transcribe(task, shop).pieces
        turns = len(pieces[1::2])
        given = min(round(0.5 * turns), turns - 1)
        assert rollout.prompt_ids == [i for piece in pieces[: 2 * given + 1] for i in encode(piece)]


# --- wrong acts ---


def planted_and_found(env: str, d: int, seeds: range, shop: Shop) -> Iterator[tuple[str, bool]]:
    """Plant each kind, and tell whether the first mistake is the planted one, in its turn."""
    make = ENVIRONMENTS[env].reference_player
    for seed in seeds:
        task = make_task(env, d, seed, shop)
        was = play(make(shop), task, shop)
        for kind, act in wrong_acts(was, shop).items():
            given = [*messages_of(was)[: act.turn - 1], act.wrong]
            labelled = label(play_on(make(shop), Episode(task, shop), given), shop)
            first = labelled.first
            yield kind, first is not None and (first.turn, first.kind) == (act.turn, kind)


KINDS = {
    "CART": {"wrong product", "wrong variant", "wrong quantity"},
    "PD": {"wrong quantity", "not the best"},
    "SUB": {"wrong product", "wrong quantity", "sold out"},
    "RETURN": {"wrong line", "wrong outcome"},
    "STATUS": {"wrong order", "wrong status", "wrong date"},
    "POLICY": {"wrong answer"},
    "BUNDLE": {"unwanted item"},
    "JOURNEY": {"wrong quantity", "wrong order"},
}
"""Kinds that can be planted in a few tasks of each environment, at least."""


@pytest.mark.parametrize("env", list(ENVIRONMENTS))
def test_each_mistake_is_found_where_it_was_planted(env: str, shop: Shop) -> None:
    found = list(planted_and_found(env, 1 if ENVIRONMENTS[env].composes else 4, range(3), shop))
    assert KINDS.get(env, set()) <= {kind for kind, _ in found}
    assert [kind for kind, right in found if not right] == []


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 3, 5, 8])
@pytest.mark.parametrize("env", list(ENVIRONMENTS))
def test_nearly_all_planted_mistakes_are_found_at_every_level(env: str, d: int, shop: Shop) -> None:
    found = [right for _, right in planted_and_found(env, d, range(100, 120), shop)]
    assert sum(found) >= 0.98 * len(found) - 1, f"{sum(found)} of {len(found)}"


def test_the_same_task_plants_the_same_mistake_and_none_where_there_is_no_opportunity(shop: Shop) -> None:
    task = make_task("STATUS", 2, 0, shop)
    one, two = (plant(task, shop, "wrong order") for _ in range(2))
    assert one is not None and one == two and not one[0].score.correct
    assert plant(task, shop, "wrong variant") is None, "an order has no variants to choose"


def test_no_act_is_replaced_after_the_first_mistake(shop: Shop) -> None:
    task = make_task("CART", 2, SEEDS[0], shop)
    clean = play(ENVIRONMENTS["CART"].reference_player(shop), task, shop)
    assert wrong_acts(clean, shop)
    wrong = {"role": "assistant", "content": "Blorp fizzle wug?"}
    erring = play_on(ENVIRONMENTS["CART"].reference_player(shop), Episode(task, shop), [wrong])
    assert label(erring, shop).mistakes[0].turn == 1
    assert wrong_acts(erring, shop) == {}


# --- effects ---


@pytest.mark.parametrize("env", ["CART", "RETURN", "STATUS"])
def test_the_reference_player_mends_what_it_did_and_not_what_it_submitted(env: str, shop: Shop) -> None:
    found = list(measure(reference(shop), [make_task(env, 3, seed, shop) for seed in SEEDS[:2]], shop))
    pairs = [pair for pair in found if not pair.why]
    assert pairs and all(pair.twin_correct for pair in pairs)
    assert all(pair.mended and pair.planted_correct for pair in pairs if not pair.final)
    assert not any(pair.planted_correct for pair in pairs if pair.final)
    assert Counter((pair.seed, pair.kind) for pair in found) == {
        (seed, kind): 1 for seed in SEEDS[:2] for kind in PLANTABLE
    }
    assert {pair.why for pair in found} <= {"", *LEFT_OUT}


def test_both_sides_of_a_pair_begin_alike_and_draw_anew(novice: Policy, shop: Shop) -> None:
    """The episode in which the act was found is chosen, so neither side may go on as it did."""
    played: list[tuple[list[Message], Any]] = []
    plays, tasks = by_policy(novice, shop), carts(shop, 1)

    def remembering(tasks: Any, given: Any) -> Any:
        found = plays(tasks, given)
        played.extend((list(first), one) for first, one in zip(given, found, strict=True))
        return found

    pairs = [p for p in measure(remembering, tasks, shop, ("wrong product", "wrong quantity")) if not p.why]
    sides = [(given, one) for given, one in played if given]
    assert len(sides) == 2 * len(pairs)
    for (own, twin), (wrong, planted) in zip(sides[: len(pairs)], sides[len(pairs) :], strict=True):
        assert own[:-1] == wrong[:-1] and calls_of(own[-1]) != calls_of(wrong[-1])
        begun = next(n for n, m in enumerate(twin.messages) if m["role"] == "assistant")
        assert twin.messages[:begun] == planted.messages[:begun]
    again = [p for p in measure(plays, tasks, shop, ("wrong quantity",)) if not p.why]
    assert again == [p for p in pairs if p.kind == "wrong quantity"], "whatever else is asked for"


def pair(seed: int, twin: bool, planted: bool, further: int = 0, mended: bool = False) -> Pair:
    return Pair("CART", 1, seed, "wrong product", 2, False, twin, planted, 0, further, mended)


PAIRS = [
    pair(0, True, False),
    pair(1, True, False, 2),
    pair(2, True, True, mended=True),
    pair(3, False, False),
]
"""Of four pairs two lose what the twin won, one is mended; two further mistakes in one."""


def test_effects_are_means_of_pairs_with_bounds() -> None:
    rows = effects([*PAIRS, replace(PAIRS[0], why="unscored")])
    assert [row["kind"] for row in rows] == ["all", "wrong product"]
    found = rows[0]
    assert (found["pairs"], found["twin"], found["planted"], found["effect"]) == (4, 0.75, 0.25, -0.5)
    assert found["effect_low"] < -0.5 < found["effect_high"]
    assert found["further"] == 0.5
    assert found["further_low"] == pytest.approx(0.5 - 3.182446 * 1 / math.sqrt(4), abs=1e-4)
    assert (found["mendable"], found["mended"]) == (4, 0.25)
    assert found["mended_low"] < 0.25 < found["mended_high"]


def test_kinds_of_one_task_count_as_one_draw() -> None:
    """Two kinds of the same outcome in each of four tasks make nothing surer than one."""
    both = [*PAIRS, *(replace(one, kind="wrong quantity") for one in PAIRS)]
    (few, *_), (every, *kinds) = effects(PAIRS), effects(both)
    assert [row["pairs"] for row in (every, *kinds)] == [8, 4, 4] and every["tasks"] == 4
    assert {**every, "pairs": 4, "mendable": 4} == few


# --- the script ---


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module("played")
    for name in ("played", "growing", "players"):
        sys.modules.pop(name, None)


def test_a_table_of_mistakes_that_was_stopped_goes_on_and_is_that_of_one_run(
    script: ModuleType, tmp_path: Path
) -> None:
    def run(table: Path, levels: str) -> list[dict[str, str]]:
        script.main(["perturbed", "--levels", levels, "--size", "2000", "--tasks", "6", "--out", str(table)])
        with table.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    some = run(tmp_path / "parts.csv", "1")
    whole = run(tmp_path / "once.csv", "1,8")
    assert run(tmp_path / "parts.csv", "1,8") == whole and whole[: len(some)] == some
    assert {row["kind"] for row in whole} > {"none"}
