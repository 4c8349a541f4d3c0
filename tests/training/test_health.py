"""Alarms: each speaks when it should, once, and says nothing about an ordinary run."""

import math
from typing import Any

import pytest

from ecomlab.training.health import FIRST, IDLE, alarms


def step(**changes: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"entropy": 0.4, "logp_gap": 1e-6, "kept": 8, "rollouts": 64, "unscored": 0}
    return {**row, "failures": {("CART", 0): (20, 1), ("CART", 3): (12, 2)}, **changes}


ORDINARY = [step(entropy=0.4 - 0.01 * i) for i in range(20)]


def test_an_ordinary_run_is_silent() -> None:
    for i, now in enumerate(ORDINARY):
        assert alarms(ORDINARY[:i], now) == []
    assert alarms([], step(entropy=math.nan, logp_gap=math.nan)) == []


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (step(entropy=0.01), "entropy has collapsed"),
        (step(entropy=2.0), "entropy has risen"),
        (step(logp_gap=0.2), "sampler and trainer disagree"),
        (step(logp_gap=0.002), "stale weights"),
        (
            step(failures={("CART", 3): (40, 40)}),
            "CART at d = 3: more than a quarter of the failures",
        ),
        (step(unscored=200, rollouts=200), "unscored"),
    ],
)
def test_what_is_wrong_is_said_once(now: dict[str, Any], words: str) -> None:
    (said,) = alarms(ORDINARY, now)
    assert words in said
    assert alarms([*ORDINARY, now], now) == [], "not again in the next step"


def test_a_gap_is_held_against_the_backends_own_noise() -> None:
    """In bfloat16 .005 is noise and stays it; weights of which a part arrives lag behind more with every step."""
    noisy = [step(logp_gap=0.005 + 0.005 * (i % 3)) for i in range(40)]
    assert all(alarms(noisy[:i], now) == [] for i, now in enumerate(noisy))
    lagging = [step(logp_gap=0.005 + 0.001 * i) for i in range(40)]
    (said,) = [words for i, now in enumerate(lagging) for words in alarms(lagging[:i], now)][:1]
    assert "stale weights" in said


def test_what_is_cut_off_is_a_share_of_the_failures_of_one_level() -> None:
    """A quarter of all episodes would hide it: where most succeed, and where another level fails honestly."""
    few = step(failures={("CART", 0): (200, 2), ("CART", 4): (15, 15)})
    assert alarms([], few) == [], "fifteen failures say little"
    (said,) = alarms([few], step(failures={("CART", 4): (1, 1)}))
    assert said.startswith("CART at d = 4")
    assert alarms([], step(failures={("CART", 4): (80, 20)})) == [], "a quarter is not more than a quarter"
    both = {("PD", 1): (80, 21), ("CART", 4): (80, 21)}
    cart, pd = alarms([], step(failures=both))
    assert cart.startswith("CART at d = 4") and pd.startswith("PD at d = 1")
    assert alarms([step(failures={("PD", 1): (80, 60)})], step(failures=both)) == [cart], (
        "each is told of once"
    )


def test_steps_that_teach_nothing_are_an_alarm_when_they_come_in_a_row() -> None:
    idle = step(kept=0, entropy=math.nan, logp_gap=math.nan)
    for before in range(IDLE - 1):
        assert alarms([*ORDINARY, *[idle] * before], idle) == []
    (said,) = alarms([*ORDINARY, *[idle] * (IDLE - 1)], idle)
    assert "no group had non-zero advantage" in said
    assert alarms([*ORDINARY, *[idle] * IDLE], idle) == []


def test_entropy_is_compared_with_the_start_of_the_run() -> None:
    assert alarms(ORDINARY[: FIRST - 1], step(entropy=0.001)) == [], "too early to say"
    assert alarms([], step(logp_gap=1e-2)) == [], "bfloat16 rounds that much"
    assert len(alarms([], step(logp_gap=0.5))) == 1
