"""The stream of training tasks that trainers plug in."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ecomlab import ENVIRONMENTS, Shop, Stream, play
from ecomlab.episode.episode import Episode
from ecomlab.evaluation.mistakes import label
from ecomlab.evaluation.planting import play_on
from ecomlab.models.batch import Start, play_batch
from ecomlab.models.load import load_policy
from ecomlab.models.policy import Policy
from ecomlab.models.samplers.cached import Sampled
from ecomlab.reward import Score
from ecomlab.seeding import EVALUATION_SEEDS, TRAINING_SEEDS, rng
from ecomlab.training.rollouts import DynamicSampling, collect
from ecomlab.training.schedule import Draw, ScheduleError, make_schedule
from ecomlab.training.stream import Groups, Ticket


@pytest.fixture(scope="module")
def novice(shop: Shop) -> Policy:
    return load_policy("novice", shop, ["CART"])


def stream_of(shop: Shop, **settings: Any) -> Stream:
    return Stream("adaptive", ["CART", "PD"], **{"shop": shop, "seed": 3, "groups_per_step": 4, **settings})


def right(ticket: Ticket) -> list[bool]:
    """Outcomes that depend on the ticket alone."""
    return [bool(rng("outcome", ticket.seed, i).random() < 0.95) for i in range(16)]


def run(stream: Stream, groups: int) -> list[Ticket]:
    tickets = []
    for _ in range(groups):
        tickets.append(stream.next_group())
        stream.report(tickets[-1], right(tickets[-1]))
    return tickets


def test_the_window_rises_with_the_outcomes_of_whole_steps(shop: Shop) -> None:
    stream = stream_of(shop)
    tickets = run(stream, 60)
    assert tickets[0].draw.level == 0 and max(ticket.draw.level for ticket in tickets) >= 2
    first = make_schedule("adaptive", ["CART", "PD"])
    for number, ticket in enumerate(tickets):
        first = first.report(ticket.draw, right(ticket))
        if number % 4 == 3:
            first = first.end_step()  # type: ignore[attr-defined]
    assert stream.schedule == first


def test_it_draws_what_a_training_run_draws(novice: Policy, shop: Shop) -> None:
    schedule, stream = (
        make_schedule("adaptive", ["CART"]),
        Stream("adaptive", "CART", seed=5, groups_per_step=3, shop=shop),
    )
    for step in range(2):
        sampling = DynamicSampling(prompts=3, group_size=2, rounds=1, envs=("CART",))
        collection = collect(schedule, sampling, ("train", 5, step), shop, novice.sampler(), novice.renderer)
        schedule = collection.schedule
        for group in collection.groups:
            ticket = stream.next_group()
            assert ticket.draw == group.draw and group.rollouts[0].task is not None
            assert ticket.seed == group.rollouts[0].task.seed
            stream.report(ticket, [rollout.score for rollout in group.rollouts])
    assert stream.schedule == schedule


@pytest.mark.parametrize("outstanding", [0, 3])
def test_a_restored_stream_draws_what_the_uninterrupted_one_draws(outstanding: int, shop: Shop) -> None:
    whole = stream_of(shop)
    expected = run(whole, 40)
    before = stream_of(shop)
    assert run(before, 18) == expected[:18]
    for _ in range(outstanding):
        before.next_group()
    after = stream_of(shop)
    after.restore(json.loads(json.dumps(before.state())))
    assert run(after, 22) == expected[18:] and after.state() == whole.state()


def test_tickets_are_training_tasks_and_travel_as_json(shop: Shop) -> None:
    for ticket in run(stream_of(shop), 20):
        assert (
            ticket.seed in TRAINING_SEEDS
            and Ticket.from_json(json.loads(json.dumps(ticket.to_json()))) == ticket
        )
    with pytest.raises(ValueError, match="training"):
        Ticket(Draw("CART", 0), EVALUATION_SEEDS.start, (0, 0, 0))


def test_a_group_is_reported_once(shop: Shop) -> None:
    stream = stream_of(shop)
    ticket = stream.next_group()
    stream.report(ticket, [True, None])
    with pytest.raises(KeyError, match="has been reported"):
        stream.report(ticket, [True])


def test_threads_draw_each_group_once(shop: Shop) -> None:
    def turn(_: int) -> Ticket:
        ticket = threaded.next_group()
        threaded.report(ticket, right(ticket))
        return ticket

    threaded = Stream("static-0-3", "C8", seed=3, shop=shop)
    with ThreadPoolExecutor(8) as pool:
        tickets = list(pool.map(turn, range(200)))
    alone = run(Stream("static-0-3", "C8", seed=3, shop=shop), 200)
    assert sorted(tickets, key=lambda ticket: ticket.place) == alone and threaded.state()["waiting"] == []


def test_messages_and_token_ids_play_the_same_episode(novice: Policy, shop: Shop) -> None:
    stream = Stream("static-0-2", "CART", shop=shop)
    for _ in range(4):
        ticket = stream.next_group()
        (rollout,) = play_batch([stream.start(ticket)], [rng("x")], shop, novice.sampler(), novice.renderer)
        episode = stream.open_tokens(ticket, novice.renderer)
        ids, sampled = (
            [*rollout.prompt_ids, *rollout.completion_ids],
            [0] * len(rollout.prompt_ids) + rollout.mask,
        )
        at = 0
        while not episode.done:
            assert ids[at : at + len(episode.reads)] == episode.reads
            at += len(episode.reads)
            end = next(i for i in range(at, len(ids) + 1) if i == len(ids) or not sampled[i])
            last = rollout.end == "truncated" and end == len(ids)
            episode.act(
                Sampled(
                    ids[at:end],
                    rollout.logprobs[at - len(rollout.prompt_ids) : end - len(rollout.prompt_ids)],
                    last,
                )
            )
            at = end
        assert episode.rollout == rollout and rollout.trajectory is not None
        same = stream.open(ticket)
        for message in rollout.trajectory.messages:
            if message["role"] == "assistant" and not same.done:
                same.act(message)
        assert same.task.digest() == rollout.task.digest()  # type: ignore[union-attr]
        if rollout.end == "submit":
            assert same.score() == rollout.score


class Given:
    """Always the same draw."""

    def __init__(self, **given: Any) -> None:
        self.given = given

    def draw(self, rng: Any) -> Draw:
        return Draw("CART", 1, {"cart.items": 3.0}, **self.given)

    def report(self, draw: Draw, outcomes: Any) -> "Given":
        return self

    def to_json(self) -> dict[str, Any]:
        return {}

    def from_json(self, state: Any) -> "Given":
        return self


def test_given_turns_are_played_first(shop: Shop) -> None:
    stream = Stream(Given(given=0.5), "CART", axes={"p_missing": 0.0}, shop=shop)
    episode = stream.open(stream.next_group())
    assert episode.turn >= 1 and not episode.done
    assert episode.task.overrides == {"p_missing": 0.0, "cart.items": 3.0}


def test_given_turns_can_end_in_a_mistake(shop: Shop) -> None:
    stream = Stream(Given(planted="wrong quantity"), "CART", axes={"cart.p_option": 0.0}, shop=shop)
    ticket = stream.next_group()
    assert Ticket.from_json(json.loads(json.dumps(ticket.to_json()))) == ticket
    one, other = stream.open(ticket), stream.open(ticket)
    assert one.messages == other.messages and not one.done, "the same for all rollouts of a group"
    start = stream.start(ticket)
    assert isinstance(start, Start)
    said = start.turns(shop)
    first = label(
        play_on(ENVIRONMENTS["CART"].reference_player(shop), Episode(start.task, shop), said), shop
    ).first
    assert (
        first is not None
        and (first.kind, first.turn) == ("wrong quantity", len(said))
        and len(said) == one.turn
    )


def test_a_task_that_breaks_is_no_outcome(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = stream_of(shop, groups_per_step=1)
    ticket = stream.next_group()

    def broken(*_: Any) -> Any:
        raise RuntimeError("a bug")

    monkeypatch.setattr(type(ENVIRONMENTS[ticket.draw.env]), "draw", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        stream.open(ticket)
    before = stream.schedule
    stream.report(ticket, [None, Score.failed_by_us("a bug")])
    assert stream.schedule == before


def test_what_cannot_be_played_is_refused(shop: Shop) -> None:
    with pytest.raises(ValueError, match="p_missing"):
        Stream("adaptive", "CART", axes={"p_mising": 0.0}, shop=shop)
    with pytest.raises(ScheduleError, match="adaptive"):
        Stream("adaptiv", "CART", shop=shop)
    with pytest.raises(ValueError, match="CART"):
        Stream("adaptive", ["CRAT"], shop=shop)


def test_reference_players_play_its_episodes_to_the_end(shop: Shop) -> None:
    stream = Stream("static-0-3", "C8", shop=shop)
    for _ in range(6):
        ticket = stream.next_group()
        episode = stream.open(ticket)
        player = ENVIRONMENTS[ticket.draw.env].reference_player(shop)
        assert play(player, episode.task, shop).score.correct


def test_a_group_whose_task_breaks_is_still_reported(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream("adaptive", "CART", shop=shop)
    groups = Groups(stream, 2)

    def broken(*_: Any) -> Any:
        raise RuntimeError("a bug")

    monkeypatch.setattr(type(ENVIRONMENTS["CART"]), "draw", broken)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="a bug"):
            groups.open("one")
    assert len(groups) == 0 and stream.state()["waiting"] == []


def test_a_report_that_is_refused_leaves_the_ticket_waiting(shop: Shop) -> None:
    stream = Stream("adaptive", "CART", shop=shop, groups_per_step=1)
    ticket = stream.next_group()
    for outcomes, error in (([1.0], TypeError), ([], ValueError)):
        with pytest.raises(error):
            stream.report(ticket, outcomes)  # type: ignore[arg-type]
    other = Stream("adaptive", "CART", shop=shop, seed=9).next_group()
    with pytest.raises(KeyError, match="not drawn here"):
        stream.report(other, [True])
    assert len(stream.state()["waiting"]) == 1
    stream.report(ticket, [True])
    assert stream.state()["waiting"] == [] and stream.state()["place"][0] == 1


@pytest.mark.parametrize(
    ("other", "word"),
    [
        ({"seed": 1}, "key"),
        ({"groups_per_step": 50}, "groups_per_step = 50"),
        ({"schedule": "static-low"}, "static-low"),
        ({"envs": "C8"}, "envs"),
        ({"axes": {"p_missing": 0}}, "p_missing"),
    ],
)
def test_a_state_of_another_stream_is_refused(other: dict[str, Any], word: str, shop: Shop) -> None:
    given: dict[str, Any] = {"schedule": "adaptive", "envs": "CART", "shop": shop}
    stream = Stream(**given)
    before = stream.state()
    with pytest.raises(ValueError, match=word):
        stream.restore(json.loads(json.dumps(Stream(**{**given, **other}).state())))
    nothing: list[Any] = [{}, "{}"]
    for state in nothing:
        with pytest.raises(ValueError, match="no stream's state"):
            stream.restore(state)
    assert stream.state() == before


def test_a_stream_is_checked_when_it_is_made() -> None:
    wrong: list[dict[str, Any]] = [
        {"groups_per_step": 0},
        {"groups_per_step": 2.5},
        {"seed": "a"},
        {"tau": 3},
    ]
    for given in wrong:
        with pytest.raises(ValueError):
            Stream("adaptive", "CART", **given)
    assert Stream("adaptive", "CART", shop=2_000).windows() == {"CART": (0, 0)}


def test_groups_go_on_from_their_file(tmp_path: Path, shop: Shop) -> None:
    def groups() -> Groups:
        return Groups(Stream("adaptive", "CART", shop=shop, groups_per_step=1), 2, tmp_path / "kept.json")

    first = groups()
    for name in "ab":
        for _ in range(2):
            first.begin(name)
            first.end(name, True)
    again = groups()
    assert again.stream.state() == first.stream.state()
    assert again.begin("c") == first.begin("c")
    with pytest.raises(ValueError, match="at least one"):
        Groups(first.stream, 0)
