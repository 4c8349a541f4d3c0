"""The seat: all eight environments can be finished in it, and it spends, hides and forgets nothing by itself."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hands import WORDS, entries_of, moves
from rich.console import Console

from ecomlab import ENVIRONMENTS
from ecomlab.catalog import Shop
from ecomlab.evaluation.evaluation import rescore
from ecomlab.evaluation.transcript import flat
from ecomlab.evaluation.transcripts import read, read_header
from ecomlab.lab.evaluations import score_again
from ecomlab.lab.play.choice import Choice, ShareKeyError, read_key, share_key
from ecomlab.lab.play.forms import FormError
from ecomlab.lab.play.seat import Seat, SeatError
from ecomlab.markup.entries import conversation
from ecomlab.world.state import World

SIZE = 1_000


def choice(env: str = "CART", difficulty: int = 4, seed: int = 1, **axes: float) -> Choice:
    return Choice(env, difficulty, seed, axes, SIZE)


def follow(seat: Seat) -> None:
    """Play as the reference player does, by the forms."""
    for calls in moves(seat):
        if calls[0][0] == WORDS:
            seat.say(calls[0][1]["question"])
            continue
        for tool, arguments in calls:
            seat.add(tool, entries_of(arguments))
        seat.send()


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_every_environment_can_be_finished_in_the_seat(env: str, shop: Shop) -> None:
    seat = Seat()
    seat.reset(choice(env))
    follow(seat)
    mine, theirs = seat.outcome.trajectory, seat.outcome.reference
    assert mine.end == "submit" and mine.score.correct and mine.score.parts["task"] == 1.0
    assert mine.score == theirs.score and mine.turns == theirs.turns and mine.calls == theirs.calls
    assert seat.outcome.truth


def test_nothing_can_be_done_before_an_episode_has_begun() -> None:
    seat = Seat()
    for attempt in (lambda: seat.say("hello"), lambda: seat.add("cart_view", {}), lambda: seat.key):
        with pytest.raises(SeatError, match="reset"):
            attempt()
    assert not seat.done


def test_wrong_entries_are_named_and_spend_nothing(shop: Shop) -> None:
    seat = Seat()
    seat.reset(choice())
    before = seat.left
    with pytest.raises(FormError, match="price_max: .*'cheap'"):
        seat.call("catalog_search", {"query": "toy", "price_max": "cheap"})
    with pytest.raises(FormError, match="product_id"):
        seat.add("cart_add", {})
    with pytest.raises(SeatError, match="'cart_add'"):
        seat.call("cart_ad", {})
    with pytest.raises(SeatError):
        seat.say("  ")
    assert seat.left == before and seat.draft == [] and len(seat.log) == 1


def test_an_id_may_be_typed_in_any_case_once_a_result_has_shown_it(shop: Shop) -> None:
    seat = Seat()
    seat.reset(choice("CART"))
    found = seat.call("catalog_search", {"query": "toy"})[0].result
    assert found
    shown = found.cards[0].ids["product_id"]
    seat.add("catalog_get_variants", seat.forms["catalog_get_variants"].typed(shown.lower()))
    seat.add("catalog_get_variants", {"product_id": "p0"})  # never shown
    seat.add("catalog_search", {"query": shown.lower()})
    assert [json.loads(arguments) for _, arguments in seat.draft] == [
        {"product_id": shown}, {"product_id": "p0"}, {"query": shown.lower()}
    ]  # fmt: skip


def test_calls_that_wait_are_sent_in_one_message_and_words_go_along_with_them(shop: Shop) -> None:
    seat = Seat()
    seat.reset(choice())
    seat.add("catalog_search", {"query": "toy"})
    came = seat.say("Which brand?")
    assert seat.left.messages == seat.left.of_messages - 1 and seat.draft == []
    assert [(one.who, one.tool) for one in came[:2]] == [("tool", "catalog_search"), ("agent", "")]
    assert came[1].text == "Which brand?" and came[2].who == "customer"
    calls = seat.left.calls
    said, answered = seat.say("Is there anything else I should know?")  # words alone
    assert (said.who, answered.who, answered.number) == ("agent", "customer", 2)
    assert seat.left.calls == calls


def test_the_truth_is_not_told_while_the_episode_goes_on(shop: Shop) -> None:
    seat = Seat()
    seat.reset(choice())
    for _ in range(2):
        with pytest.raises(SeatError, match="goes on"):
            seat.outcome  # noqa: B018
    with pytest.raises(SeatError, match="goes on"):
        seat.save()
    seat.call("submit", {})
    if not seat.done:  # something had happened of which we did not know
        seat.call("submit", {})
    assert not seat.outcome.trajectory.score.correct
    withheld = [fact for fact in seat.outcome.truth if fact.what == "withheld until asked"]
    assert bool(withheld) == bool(seat.episode.task.goal.withheld)
    theirs = seat.outcome.reference
    assert conversation(theirs.messages)[-1].tool == "submit" and theirs.score.correct
    with pytest.raises(SeatError, match="over"):
        seat.say("one more thing")


def test_our_own_failure_is_unscored_and_said(shop: Shop, monkeypatch: Any, tmp_path: Path) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the shop burnt down")

    seat = Seat()
    seat.reset(choice())
    monkeypatch.setattr(World, "search", broken)
    seat.call("catalog_search", {"query": "toy"})
    monkeypatch.undo()
    assert seat.done and "the shop burnt down" in seat.outcome.trajectory.score.why
    assert math.isnan(seat.outcome.trajectory.score.value)
    (transcript,) = read(seat.save(tmp_path))
    assert transcript.unscored and math.isnan(flat(transcript)["correct"])


# --- saving ---


def test_a_saved_episode_is_read_and_scored_again_as_an_evaluations_is(shop: Shop, tmp_path: Path) -> None:
    seat = Seat()
    seat.reset(choice("RETURN", 3, 5, p_noise=0.0))
    follow(seat)
    path = seat.save(tmp_path)
    assert seat.save(tmp_path) == path and len(list(tmp_path.iterdir())) == 1
    (transcript,) = read(path)
    assert transcript.score == seat.outcome.trajectory.score and transcript.job.axes == {"p_noise": 0.0}
    assert transcript.messages == seat.episode.messages
    header = read_header(path)
    assert (header["kind"], header["player"]) == ("played by hand", "human")
    assert list(rescore(path, shop)) == [None]
    assert score_again(path, Console(quiet=True)) == 0


# --- the key ---


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_a_key_rebuilds_the_same_episode(env: str, shop: Shop) -> None:
    one, two = Seat(), Seat()
    one.reset(choice(env, 5, 9, p_missing=0.25))
    two.reset_to(f"  {one.key}\n")
    assert two.choice == one.choice and two.episode.task == one.episode.task
    assert two.episode.messages == one.episode.messages and two.key == one.key


def test_wrong_and_old_keys_are_refused_with_the_way_out(shop: Shop) -> None:
    made = choice("CART", 2, 3)
    key = share_key(made, made.task())
    seat = Seat()
    seat.reset(made)
    under_way = seat.episode
    for wrong, why in (
        ("", "whole"),
        ("CART 2 3", "whole"),
        (key[:-3], "cut|changed"),
        (key.replace("seed=3", "seed=4"), "changed"),
        (key.replace("seed=3", "seed=three"), "three"),
        (key.replace("env=CART", "env=TEA"), "TEA"),
        (key.replace("seed=3", "seed=3&axis.k_rec=3"), "k_rec"),
    ):
        with pytest.raises(ShareKeyError, match=why):
            seat.reset_to(wrong)
        assert seat.episode is under_way
    assert read_key(key)[0] == made
