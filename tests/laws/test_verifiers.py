"""Verdicts on answers that are cleverly wrong, and the laws at the extremes of the axes."""

import json
from datetime import date
from typing import Any

import pytest

from ecomlab import ENVIRONMENTS, Episode, Shop, make_task, play
from ecomlab.catalog import load_shop
from ecomlab.envs.registry import moved_by
from ecomlab.episode.episode import draw_task
from ecomlab.laws import attackers
from ecomlab.seeding import rng
from ecomlab.wishes import AnyBut, OneOf
from ecomlab.world.orders.references import look, resolve

EXTREMES: dict[str, dict[str, float]] = {
    "narrow search": {"top_k": 10, "k_rec": 20, "eps_rank": 0.8},
    "everything at once": {
        "p_oos": 1, "p_missing": 1, "p_switch": 1, "k_rec": 20, "history": 60, "branches": 8, "constraints": 12,
        "turn_slack": 0, "tool_slack": 0, "top_k": 10, "eps_rank": 0.8, "p_noise": 0.5,
    },
    "nearly nothing": {
        "p_oos": 1, "p_missing": 1, "p_switch": 1, "k_rec": 1, "history": 1, "constraints": 1, "turn_slack": 0,
        "tool_slack": 0,
    },
}  # fmt: skip

ONE_TURN_MORE = ("POLICY", "nearly nothing", 1_000, 12, 2)
"""A task whose changed fact leads to one more section, for which need counts no turn and the slack leaves none."""


@pytest.mark.parametrize(
    "seeds", [range(1), pytest.param(range(1, 4), marks=pytest.mark.slow)], ids=["one", "more"]
)
@pytest.mark.parametrize("size", [1_000, 20_000])
@pytest.mark.parametrize("named", EXTREMES)
@pytest.mark.parametrize("env", list(ENVIRONMENTS))
def test_solver_and_reference_player_are_right_at_the_extremes_of_the_axes(
    env: str, named: str, size: int, seeds: range
) -> None:
    environment, shop = ENVIRONMENTS[env], load_shop(size)
    axes = {name: value for name, value in EXTREMES[named].items() if name in (moved_by(env) or ())}
    for d in (0, 12):
        for seed in seeds:
            task = make_task(env, d, seed, shop, axes)
            episode = Episode(task, shop)
            solver = environment.oracle(episode)
            while not episode.done:
                episode.act(solver(episode.messages, episode.tools))
            assert episode.score().correct, f"solver: {env} {d} {seed} {named}: {episode.score().why}"
            score = play(environment.reference_player(shop), task, shop).score
            expected = 0.75 if (env, named, size, d, seed) == ONE_TURN_MORE else 0.9
            assert score.value == pytest.approx(expected), f"fair: {env} {d} {seed} {named}: {score}"


def handed_in(env: str, d: int, seed: int, shop: Shop) -> tuple[Episode, Any]:
    """An episode played by the solver up to its `submit`, and the arguments of that. Nothing happens in it, or the
    first `submit` would be refused."""
    quiet: dict[str, float] = {a: 0 for a in ("p_oos", "p_switch") if a in (moved_by(env) or ())}
    episode = Episode(make_task(env, d, seed, shop, quiet), shop)
    solver = ENVIRONMENTS[env].oracle(episode)
    while True:
        message = solver(episode.messages, episode.tools)
        (first, *_) = message["tool_calls"]
        if first["function"]["name"] == "submit":
            return episode, json.loads(first["function"]["arguments"])
        episode.act(message)


def reward_of(env: str, d: int, seed: int, shop: Shop, change: Any) -> float:
    """Reward for handing in the right answer, changed."""
    episode, arguments = handed_in(env, d, seed, shop)
    episode.act(attackers.calls(("submit", change(arguments))))
    assert not episode.score().correct
    return episode.score().value


@pytest.mark.parametrize("env", ["PD", "SUB", "BUNDLE"])
def test_saying_a_thing_twice_earns_no_more_than_saying_it_once(env: str, big_shop: Shop) -> None:
    for seed in range(12):
        for d in (3, 9):
            _, right = handed_in(env, d, seed, big_shop)
            ids = right["product_ids"]
            if len(ids) < 2:
                continue
            short = reward_of(env, d, seed, big_shop, lambda a, ids=ids: {"product_ids": ids[:1]})
            padded = reward_of(env, d, seed, big_shop, lambda a, ids=ids: {"product_ids": ids[:1] * len(ids)})
            assert padded <= short + 1e-9, (env, d, seed, short, padded)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("returned", "returned"), ("The return has been started", "returned"),
        ("returned, nothing was declined", "returned"), ("refunded", "returned"),
        ("declined (already returned)", "declined"),
        ("The return was rejected: the window is over", "declined"),
        ("it can no longer be returned", "declined"), ("non-returnable", "declined"),
        ("the return isn't eligible", "declined"), ("a return", None), ("", None), (None, None),
    ],
)  # fmt: skip
def test_an_outcome_is_read_as_a_person_means_it(said: Any, meant: str | None) -> None:
    from ecomlab.answers.outcomes import read_outcome

    assert read_outcome(said) == meant


def test_the_best_are_what_a_plain_loop_over_the_records_finds(big_shop: Shop) -> None:
    """PD's verdict against one that knows nothing of its code, on right answers and on ones nearly right."""
    environment, catalog, right = ENVIRONMENTS["PD"], big_shop.catalog, 0
    for d, seed in [(d, seed) for d in (0, 4, 8, 12) for seed in range(6)]:
        episode, answer = handed_in("PD", d, seed, big_shop)
        wanted = episode.goal.of()
        if {"give_way", "said"} & wanted.keys():
            continue  # tests/envs/test_discovery.py, tests/world/test_reviews.py
        keys: dict[str, tuple[float, ...]] = {}
        for row in catalog.type_rows(wanted["type"]):
            record = catalog.record(row)
            fits = episode.world.stock(row) > 0
            fits &= round(record["price"] * 100) <= wanted.get("price", 10**9)
            fits &= round(record["rating"] * 10) >= wanted.get("rating", 0)
            fits &= record["ship_days"] <= wanted.get("days", 10**9)
            has = {"brand": record["brand"]} | {f"attr:{n}": v for n, v in record["attributes"].items()}
            for name, value in wanted.items():
                if name == "brand" or name.startswith("attr:"):
                    among = value.values if isinstance(value, OneOf | AnyBut) else (value,)
                    fits &= (has.get(name) in among) != isinstance(value, AnyBut)
            if fits and "worth" in wanted:
                paid = dict(wanted["worth"].terms)
                stars, days = (
                    record["rating"] * paid.get("rating", 0),
                    record["ship_days"] * paid.get("days", 0),
                )
                more = sum(cents for slot, value, cents in wanted["worth"].bonuses if has.get(slot) == value)
                keys[record["product_id"]] = (round(100 * record["price"] - stars + days - more),)
            elif fits:
                worth = {
                    "price": record["price"],
                    "rating": -record["rating"],
                    "delivery": record["ship_days"],
                }
                keys[record["product_id"]] = tuple(worth[name] for name in wanted["importance"])
        best = sorted(keys.values())[: wanted["count"]]
        random, shown = rng("nearly", d, seed), sorted(episode.world.shown)
        for _ in range(8):
            ids = list(answer["product_ids"])
            if random.random() < 0.5:
                ids[int(random.integers(len(ids)))] = shown[int(random.integers(len(shown)))]
            ids = [ids[i] for i in random.permutation(len(ids)).tolist()]
            verdict = environment.verify(episode.goal, episode.world, {"product_ids": ids}, episode.goal)
            is_right = len(set(ids)) == len(ids) and sorted(keys.get(i, (10**9,)) for i in ids) == best
            assert verdict.correct == is_right, (d, seed, ids)
            assert (verdict.credit == 1) == (is_right and [keys[i] for i in ids] == best)
            right += is_right
    assert right > 30


def test_a_step_counts_from_the_order_asked_about_however_it_was_named(shop: Shop) -> None:
    """Never from one that links lead to: there a mind changes by another description, whatever the opening says."""
    met = linked = 0
    for d, steps in ((6, 0.0), (12, 0.0), (6, 3.0), (12, 5.0)):
        for seed in range(60):
            task = draw_task("STATUS", d, seed, shop, {"p_switch": 1.0, "steps.mean": steps})
            after, today = task.goal.after(task.events), date.fromisoformat(task.world["today"])
            orders, links = look(task.world["orders"], shop), "chain" in task.goal
            linked += bool(links and task.events)
            if "correction" in after:
                (first,), (meant,) = (resolve(orders, goal.of(), today) for goal in (task.goal, after))
                assert meant == first + after["correction"]
                assert not links
                met += 1
    assert met > 10
    assert linked > 10


def test_another_job_s_fields_do_not_hand_in_the_job_in_hand(shop: Shop) -> None:
    """After an interruption one may well hand in the wrong job: that is refused, not taken for an empty answer."""
    for seed in range(12):
        episode = Episode(make_task("JOURNEY", 4, seed, shop, {"p_switch": 0.0}), shop)
        own = set(ENVIRONMENTS[episode.subtask.task.env].submit.arguments.model_fields)
        others = {"product_ids": ["P000000"], "order_id": "X", "answer": "yes", "done": True}
        wrong = next({name: value} for name, value in others.items() if name not in own)
        turn = episode.act(attackers.calls(("submit", wrong)))
        assert "the job at hand is handed in with" in turn.messages[0]["content"]
        assert episode.answer is None
        assert episode.opened == 1


def test_undoing_a_job_that_was_handed_in_undoes_its_verdict(big_shop: Shop) -> None:
    """The cart is judged as it is in the end: what was right when it was handed in and is not now counts as wrong."""
    found = 0
    for seed in range(40):
        task = make_task("JOURNEY", 0, seed, big_shop, {"p_switch": 0.0, "p_oos": 0.0})
        if task.subtasks[0].env != "CART":
            continue
        found += 1
        episode = Episode(task, big_shop)
        solver = ENVIRONMENTS["JOURNEY"].oracle(episode)
        while episode.opened == 1:
            episode.act(solver(episode.messages, episode.tools))
        assert episode.subtasks[0].verdict is not None and episode.subtasks[0].verdict.correct
        ((product_id, variant), *_) = episode.world.cart
        episode.act(attackers.calls(("cart_remove", {"product_id": product_id, "variant_id": variant})))
        episode.end = "turns"
        assert "CART: 0 of" in episode.score().why
    assert found > 2
