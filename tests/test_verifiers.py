"""What verifiers make of answers that are cleverly wrong, and the laws at the extremes of the axes."""

import json
from typing import Any

import pytest

from ecomlab import ENVIRONMENTS, Episode, Shop, make_task, play
from ecomlab.catalog import load_shop
from ecomlab.players import blind

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


@pytest.mark.parametrize("size", [1_000, 20_000])
@pytest.mark.parametrize("named", EXTREMES)
@pytest.mark.parametrize("env", list(ENVIRONMENTS))
def test_solver_and_fair_player_are_right_at_the_extremes_of_the_axes(
    env: str, named: str, size: int
) -> None:
    environment, shop = ENVIRONMENTS[env], load_shop(size)
    axes = {name: value for name, value in EXTREMES[named].items() if name in environment.axes}
    for d in (0, 12):
        for seed in range(3):
            task = make_task(env, d, seed, shop, axes)
            episode = Episode(task, shop)
            solver = environment.solver(episode)
            while not episode.done:
                episode.act(solver(episode.messages, episode.tools))
            assert episode.score().correct, f"solver: {env} {d} {seed} {named}: {episode.score().why}"
            score = play(environment.fair_player(shop), task, shop).score
            assert score.value == pytest.approx(0.9), f"fair: {env} {d} {seed} {named}: {score}"


def handed_in(env: str, d: int, seed: int, shop: Shop) -> tuple[Episode, Any]:
    """An episode played by the solver up to its `submit`, and the arguments of that."""

    episode = Episode(make_task(env, d, seed, shop), shop)
    solver = ENVIRONMENTS[env].solver(episode)
    while True:
        message = solver(episode.messages, episode.tools)
        (first, *_) = message["tool_calls"]
        if first["function"]["name"] == "submit":
            return episode, json.loads(first["function"]["arguments"])
        episode.act(message)


def reward_of(env: str, d: int, seed: int, shop: Shop, change: Any) -> float:
    """What handing in the changed right answer earns."""
    episode, arguments = handed_in(env, d, seed, shop)
    episode.act(blind.calls(("submit", change(arguments))))
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
