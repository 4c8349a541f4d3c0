"""What a mistake leads to: the twin differs in one act and in nothing before it; figures worked out by hand."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from ecomlab import ENVIRONMENTS, Shop, make_task, play
from ecomlab.episode.episode import Episode
from ecomlab.episode.record import Trajectory
from ecomlab.evaluation.cascade.causal import (
    ACTS,
    COLUMNS,
    LEFT_OUT,
    Pair,
    Unpaired,
    draw_wrong_acts,
    effects,
    gains,
    measure,
    outcome_of,
)
from ecomlab.evaluation.cascade.edits import Scene, calls_of, edit, with_calls
from ecomlab.evaluation.cascade.forced import Forced, LocalRunner, Runner, ScriptedRunner
from ecomlab.evaluation.cascade.labels import label
from ecomlab.evaluation.cascade.mistakes import Labelled, Mistake
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.tasks import held_out_seeds
from ecomlab.laws.surface import calls
from ecomlab.models.load import load_policy
from ecomlab.seeding import rng
from ecomlab.task import Message

SEEDS = held_out_seeds(0, 4)


@pytest.fixture(scope="module")
def novice(shop: Shop) -> LocalRunner:
    return LocalRunner(load_policy("novice", shop, ["CART"]), batch=3)


@pytest.fixture(params=["perturbed", "novice"])
def runner(request: pytest.FixtureRequest) -> Runner:
    if request.param == "novice":
        made: Runner = request.getfixturevalue("novice")
        return made
    return ScriptedRunner("perturbed")


def test_whoever_is_made_to_say_what_they_say_anyway_goes_on_as_before(runner: Runner, shop: Shop) -> None:
    jobs = [Job("CART", 2, seed) for seed in SEEDS]
    once = runner.play(jobs, [None] * len(jobs), shop)
    said = [[m for m in one.messages if m["role"] == "assistant"] for one in once if one]
    again = runner.play(jobs, [Forced(1, messages[0]) for messages in said], shop)
    assert [one.messages for one in again if one] == [one.messages for one in once if one]


def test_up_to_the_forced_message_nothing_changes(runner: Runner, shop: Shop) -> None:
    jobs = [Job("CART", 2, seed) for seed in SEEDS]
    other = {"role": "assistant", "content": "One moment, please."}
    once = runner.play(jobs, [None] * len(jobs), shop)
    again = runner.play(jobs, [Forced(2, other)] * len(jobs), shop)
    for was, now in zip(once, again, strict=True):
        assert was is not None and now is not None
        second = [n for n, m in enumerate(was.messages) if m["role"] == "assistant"][1]
        assert now.messages[:second] == was.messages[:second]
        assert now.messages[second]["content"] == other["content"]
        assert now.messages[second + 1 :] != was.messages[second + 1 :]


def test_what_is_drawn_anew_after_a_message_is_the_same_each_time_and_not_what_it_was(
    runner: Runner, shop: Shop
) -> None:
    jobs = [Job("CART", 2, seed) for seed in SEEDS]
    once = runner.play(jobs, [None] * len(jobs), shop)
    said = [[m for m in one.messages if m["role"] == "assistant"] for one in once if one]
    own = [Forced(1, messages[0], anew=True) for messages in said]
    again, and_again = (runner.play(jobs, own, shop) for _ in range(2))
    assert [one.messages for one in again if one] == [one.messages for one in and_again if one]
    assert [one.messages for one in again if one] != [one.messages for one in once if one]


class Remembering(ScriptedRunner):
    """Keeps what it was told to say."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.told: list[Forced | None] = []

    def play(
        self, jobs: Sequence[Job], forced: Sequence[Forced | None], shop: Shop
    ) -> list[Trajectory | None]:
        self.told += forced
        return super().play(jobs, forced, shop)


def test_neither_side_of_a_pair_goes_on_as_the_episode_in_which_the_act_was_found(shop: Shop) -> None:
    """That one is chosen: an act is the likelier to be drawn the fewer correct ones come after it."""
    runner = Remembering("perturbed")
    pairs = [
        p for p in measure(runner, [Job("CART", 3, seed) for seed in SEEDS], shop) if isinstance(p, Pair)
    ]
    played = [one for one in runner.told if one is not None]
    twins = {(p.job.seed, p.turn) for p in pairs}
    assert pairs and len(played) == len(pairs) + len(twins)
    assert all(one.anew for one in played)


@pytest.mark.parametrize("env", [env for env in ENVIRONMENTS if env != "JOURNEY"])
def test_a_pair_differs_in_one_act_after_a_clean_beginning(env: str, shop: Shop) -> None:
    runner = ScriptedRunner("reference")
    pairs = [
        p for p in measure(runner, [Job(env, 3, seed) for seed in SEEDS[:2]], shop) if isinstance(p, Pair)
    ]
    assert pairs
    for pair in pairs:
        assert not pair.twin.mistakes
        first = pair.planted.first
        assert first is None or first.turn >= pair.turn
        assert any(m.turn == pair.turn and m.kind in (pair.kind, "stale wish") for m in pair.planted.mistakes)
        assert tuple(pair.row()) == COLUMNS


def test_the_reference_player_mends_what_it_did_and_not_what_it_handed_in(shop: Shop) -> None:
    found = list(measure(ScriptedRunner("reference"), [Job("CART", 3, seed) for seed in SEEDS], shop))
    pairs = [pair for pair in found if isinstance(pair, Pair)]
    assert pairs and all(pair.mended and pair.planted.correct for pair in pairs if not pair.final)
    handed_in = list(measure(ScriptedRunner("reference"), [Job("STATUS", 1, seed) for seed in SEEDS], shop))
    assert all(one.final and not one.planted.correct for one in handed_in if isinstance(one, Pair))


def test_each_kind_has_its_pair_in_every_task_in_which_it_can_be_planted(shop: Shop) -> None:
    """Kinds that share a turn share the untouched twin, and each pair is the same whatever else is asked for."""
    kinds, jobs = ("wrong product", "wrong quantity", "wrong line"), [Job("CART", 3, seed) for seed in SEEDS]
    runner = Remembering("reference")
    found = list(measure(runner, jobs, shop, kinds))
    each = Counter((one.job.seed, one.kind) for one in found)
    assert each == {(seed, kind): 1 for seed in SEEDS for kind in kinds}
    pairs = [one for one in found if isinstance(one, Pair)]
    assert {p.job.seed for p in pairs if p.kind == "wrong quantity"} == set(SEEDS)
    twins = {(p.job.seed, p.turn) for p in pairs}
    assert len([one for one in runner.told if one]) == len(pairs) + len(twins) < 2 * len(pairs)
    whys = {one.why for one in found if isinstance(one, Unpaired) and one.kind == "wrong line"}
    assert whys == {"no act to make wrong so"}, "a cart has no lines"
    assert {p.why for p in measure(runner, jobs, shop, kinds[2:]) if isinstance(p, Unpaired)} == whys
    alone = [p.row() for p in measure(runner, jobs, shop, kinds[1:2]) if isinstance(p, Pair)]
    assert alone == [p.row() for p in pairs if p.kind == kinds[1]]


def test_no_act_is_replaced_after_the_first_mistake(shop: Shop) -> None:
    job, kinds = Job("CART", 2, SEEDS[0]), ("wrong product", "wrong quantity")
    (trajectory,) = ScriptedRunner("reference").play([job], [None], shop)
    assert trajectory is not None
    clean = label(trajectory, shop)
    assert draw_wrong_acts(trajectory, clean, shop, kinds, job)
    wrong_from_the_start = replace(clean, mistakes=(Mistake(1, "wasted turn"),))
    assert draw_wrong_acts(trajectory, wrong_from_the_start, shop, kinds, job) == {}


SPELLINGS: dict[str, Callable[[Any], Any]] = {
    "numbers as text": lambda value: str(value) if type(value) is int else value,
    "lists of one": lambda value: [value] if isinstance(value, str | int) else value,
}
"""What another model may write for an argument."""


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("env", ["CART", "RETURN", "POLICY"])
def test_acts_can_be_made_wrong_however_a_model_spells_its_calls(env: str, spelling: str, shop: Shop) -> None:
    job, task = Job(env, 3, SEEDS[0]), make_task(env, 3, SEEDS[0], shop)

    def drawn(spell: Callable[[Any], Any]) -> dict[str, int]:
        player = ENVIRONMENTS[env].reference_player(shop)

        def spelled(messages: list[Message], tools: list[dict[str, Any]]) -> Message:
            message = player(messages, tools)
            said = [(name, {k: spell(v) for k, v in given.items()}) for name, given in calls_of(message)]
            return with_calls(message, said) if said else message

        trajectory = play(spelled, task, shop)
        found = draw_wrong_acts(trajectory, label(trajectory, shop), shop, ACTS, job)
        return {kind: forced.turn for kind, forced in found.items()}

    plain = drawn(lambda value: value)
    assert plain
    assert drawn(SPELLINGS[spelling]) == plain


def test_an_act_about_what_does_not_exist_is_left_alone(shop: Shop) -> None:
    scene = Scene(Episode(make_task("CART", 3, SEEDS[0], shop), shop), rng("nothing"))
    for given in ({"product_id": "NOPE"}, {"product_id": {"id": 1}}, {}):
        assert [kind for kind in ACTS if edit(calls(("cart_add", given)), kind, scene)] == []


def test_what_has_no_pair_says_why_for_each_kind(shop: Shop) -> None:
    kinds = ("wrong product", "wrong variant")
    found = list(measure(ScriptedRunner("say nothing"), [Job("CART", 2, SEEDS[0])], shop, kinds))
    rows = [one.row() for one in found]
    assert [(row["kind"], row["why"]) for row in rows] == [
        (kind, "no correct act to replace") for kind in kinds
    ]
    assert "no correct act to replace" in LEFT_OUT and all(tuple(row) == COLUMNS for row in rows)


def pair(
    seed: int, twin: bool, planted: bool, further: int = 0, mended: bool = False, kind: str = "wrong product"
) -> Pair:
    made = Mistake(2, kind, fate="mended alone" if mended else "persisted")
    later = [Mistake(3, "wasted turn")] * further
    one = Labelled("CART", 1, seed, 4, 4, "submit", twin, False)
    other = replace(one, correct=planted, mistakes=(made, *later))
    return Pair(Job("CART", 1, seed), kind, 2, False, one, other)


def test_effects_are_means_of_pairs_with_bounds() -> None:
    """Of four pairs two lose what the twin won, one is mended; two further mistakes in one pair."""
    pairs = [
        pair(0, True, False),
        pair(1, True, False, 2),
        pair(2, True, True, mended=True),
        pair(3, False, False),
    ]
    rows = effects([one.outcome for one in pairs])
    read = [outcome_of({name: str(value) for name, value in one.row().items()}) for one in pairs]
    assert read == [one.outcome for one in pairs], "as a table holds them"
    assert [row["kind"] for row in rows] == ["all", "wrong product"]
    found = rows[0]
    assert (found["pairs"], found["twin"], found["planted"]) == (4, 0.75, 0.25)
    assert found["effect"] == -0.5
    assert found["effect_low"] < -0.5 < found["effect_high"]
    assert found["further"] == 0.5
    assert found["further_low"] == pytest.approx(0.5 - 3.182446 * 1 / math.sqrt(4), abs=1e-4)
    assert (found["mendable"], found["mended"]) == (4, 0.25)
    assert found["mended_low"] < 0.25 < found["mended_high"]


def test_kinds_of_one_task_count_as_one_draw() -> None:
    """Two kinds of the same outcome in each of four tasks make nothing surer than one."""
    once = [
        pair(0, True, False),
        pair(1, True, False),
        pair(2, True, True, mended=True),
        pair(3, True, False),
    ]
    both = [*once, *(replace(one, kind="wrong quantity") for one in once)]
    (few, *_), (all_, *kinds) = (effects([one.outcome for one in some]) for some in (once, both))
    assert [row["pairs"] for row in (all_, *kinds)] == [8, 4, 4] and all_["tasks"] == 4
    assert {name: all_[name] for name in few if name not in ("pairs", "mendable")} == {
        name: few[name] for name in few if name not in ("pairs", "mendable")
    }


def test_players_are_compared_by_pairs_of_the_same_task_and_kind() -> None:
    """Of three tasks that both have, the first player mends two and loses one success, the other mends none and loses
    three; a fourth task, and another kind, only one of them has."""
    one = [
        pair(0, True, True, mended=True),
        pair(1, True, True, mended=True),
        pair(2, True, False),
        pair(3, True, False),
    ]
    other = [*(pair(seed, True, False) for seed in range(3)), pair(3, True, False, kind="wrong variant")]
    every, kind = gains([p.outcome for p in one], [p.outcome for p in other])
    assert every == {**kind, "kind": "all"} and kind["kind"] == "wrong product"
    assert (kind["tasks"], kind["mendable"]) == (3, 3)
    assert kind["mended"] == pytest.approx(2 / 3) and kind["effect"] == pytest.approx(2 / 3)
    assert kind["mended_low"] < 2 / 3 < kind["mended_high"] <= 1
    assert kind["effect_high"] - kind["effect_low"] > kind["mended_high"] - kind["mended_low"]
