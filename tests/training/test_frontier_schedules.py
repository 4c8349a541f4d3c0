"""The schedules of experiments/frontier, through the door for schedules of one's own."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ecomlab.difficulty import Difficulty
from ecomlab.seeding import rng
from ecomlab.training.schedule import Draw, Schedule, end_step, make_schedule, report

FILE = Path(__file__).parents[2] / "experiments/frontier/schedules.py"
NAMES = ("singles", "target", "learnability", "prefix", "skill_wise", "skill_wise_shuffled", "recovery")
TOP = 6


def made(name: str, envs: Sequence[str] = ("CART",)) -> Schedule:
    return make_schedule(f"{FILE}:{name}", envs)


def run(schedule: Schedule, right: Callable[[Draw], float], groups: int = 400) -> tuple[Schedule, list[Draw]]:
    """Let a learner, right with a probability that depends on the draw, play groups of eight; eight groups a step."""
    random, draws = rng("frontier", type(schedule).__name__), list[Draw]()
    for number in range(groups):
        draw = schedule.draw(random)
        draws.append(draw)
        schedule = report(schedule, draw, list(random.random(8) < right(draw)))
        schedule = end_step(schedule) if number % 8 == 7 else schedule
    return schedule, draws


def by_level(draw: Draw) -> float:
    return float(np.clip(1 - draw.level / 4, 0, 1))


def size(draw: Draw) -> float:
    cart = Difficulty.at(draw.level, **draw.overrides).cart
    return cart.items - 1 + cart.p_option + cart.p_quantity


@pytest.mark.parametrize("name", NAMES)
def test_every_draw_can_be_played_and_the_state_survives_json(name: str) -> None:
    schedule, draws = run(made(name), by_level)
    for draw in draws:
        draw.check(["CART"])
        assert 0 <= draw.level <= TOP
    restored = made(name).from_json(schedule.to_json())
    assert restored == schedule
    assert [restored.draw(rng("same", i)) for i in range(20)] == [
        schedule.draw(rng("same", i)) for i in range(20)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_unscored_outcomes_move_nothing(name: str) -> None:
    schedule = made(name)
    draw = schedule.draw(rng("unscored"))
    assert report(schedule, draw, [None] * 8) == schedule


@pytest.mark.parametrize("name", ["target", "learnability"])
def test_levels_gather_where_half_of_the_rollouts_are_right(name: str) -> None:
    _, draws = run(made(name), by_level)
    assert np.mean([1 <= draw.level <= 3 for draw in draws[200:]]) > 0.8


def test_singles_are_one_step_each() -> None:
    _, draws = run(made("singles"), by_level)
    assert {size(draw) for draw in draws} == {1.0} and len({tuple(draw.overrides) for draw in draws}) == 3


def test_target_stops_at_the_top() -> None:
    schedule, draws = run(made("target"), lambda draw: 1.0)
    assert draws[-1].level == TOP and schedule.to_json()["at"]["CART"] == TOP


def test_recovery_and_its_control_draw_the_same_carts() -> None:
    draws, control = (
        [schedule.draw(random) for random in [rng("recovery")] for _ in range(100)]
        for schedule in (made("recovery"), made("recovery_control"))
    )
    assert control == [replace(draw, planted="") for draw in draws]
    assert {(draw.planted, *draw.overrides) for draw in draws} == {("",), ("wrong quantity", "cart.p_option")}
    assert {draw.level for draw in draws} == set(range(TOP + 1))


def test_prefix_gives_what_brings_success_near_one_half_and_less_as_it_rises() -> None:
    def right(skill: float) -> Callable[[Draw], float]:
        return lambda draw: float(np.clip(skill - draw.level / 6 + draw.given, 0, 1))

    weak, _ = run(made("prefix"), right(0.3), 1200)
    strong, draws = run(weak, right(1.2), 1200)
    shares = {draw.given > 0 for draw in draws}
    assert shares == {True, False}, "a share of whole tasks"
    for state, skill in ((weak, 0.3), (strong, 1.2)):
        for level, (low, high) in enumerate(state.to_json()["cuts"]["CART"]):
            wanted = np.clip(0.5 - skill + level / 6, 0, 0.95)
            assert low - 0.2 <= wanted <= high + 0.2


def test_skill_wise_opens_the_window_of_the_step_that_is_known() -> None:
    def options_only(draw: Draw) -> float:
        cart = Difficulty.at(draw.level, **draw.overrides).cart
        return 1.0 if cart.items == 1 and cart.p_quantity == 0 else 0.0

    known, _ = run(made("skill_wise"), options_only, 1200)
    assert known.to_json()["tops"] == [1, 4, 1]
    shuffled, _ = run(made("skill_wise_shuffled"), options_only, 1200)
    assert shuffled.to_json()["tops"] == [1, 1, 4]


def test_skill_wise_grows_the_whole_cart() -> None:
    _, draws = run(made("skill_wise"), lambda draw: 1.0, 2400)
    assert size(max(draws, key=size)) == 6
    with pytest.raises(ValueError, match="CART"):
        made("skill_wise", ["CART", "SUB"])
