"""The schedules' promises, by hand-computed cases and as properties."""

import dataclasses
import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecomlab.seeding import rng
from ecomlab.training.config import ConfigError, TrainConfig
from ecomlab.training.schedule import CHECKS, Adaptive, Static, Window, from_json, make_schedule

ENVS = ("CART", "SUB")
NAMES = ("adaptive", "static-low", "static-high", "static-3-5", "static-0-3", "static-0-12")

groups = st.lists(
    st.tuples(
        st.sampled_from(ENVS),
        st.integers(0, 5),
        st.lists(st.sampled_from([True, True, True, False, None]), max_size=9),
    ),
    max_size=40,
)
settings = st.fixed_dictionaries(
    {
        "tau_acc": st.floats(0.05, 1.0),
        "tau_num": st.integers(1, 12),
        "d_delta": st.integers(1, 5),
        "initial_difficulty": st.integers(0, 7),
        "check_every": st.sampled_from(CHECKS),
    }
)


def after(schedule, reports, groups_a_step=1):
    """Every state from the start on; a report's level counts down from the window's upper edge."""
    states = [schedule]
    for number, (env, below, outcomes) in enumerate(reports, 1):
        high = states[-1].window(env)[1]
        now = states[-1].report(env, max(0, high - below), outcomes)
        states.append(now if number % groups_a_step else now.end_step())
    return states


@pytest.mark.parametrize("check_every", CHECKS)
def test_nine_in_ten_of_sixty_four_promote(check_every):
    schedule = Adaptive.start(["CART"], check_every=check_every)
    assert schedule == make_schedule("adaptive", ["CART"], check_every=check_every)
    for _ in range(7):
        schedule = schedule.report("CART", 0, [True] * 8)
        assert schedule.end_step() == schedule and schedule.window("CART") == (0, 0)
    kept = schedule.report("CART", 0, [True] * 1 + [False] * 7).end_step()  # 57 of 64 are .891
    assert kept.windows == (Window(0, 0, 0, 0),)
    promoted = schedule.report("CART", 0, [True] * 2 + [False] * 6).end_step()  # 58 of 64 are .906
    assert promoted.windows == (Window(0, 1, 0, 0),)


def test_the_check_comes_once_a_step_or_after_every_group():
    """Three groups of four in a step, tau_num 4: by group the last two promote, by step 11 of 12 do once."""
    outcomes = [[True] * 3 + [False], [True] * 4, [True] * 4]
    whole, each = (Adaptive.start(["CART"], tau_num=4, check_every=check_every) for check_every in CHECKS)
    for group in outcomes:
        whole, each = (s.report("CART", s.window("CART")[1], group) for s in (whole, each))
        assert whole.window("CART") == (0, 0), "within the step it stays"
    assert whole.windows == (Window(0, 0, 12, 11),) and each.window("CART") == (0, 2)
    assert whole.end_step().windows == (Window(0, 1, 0, 0),), "one level, however many rollouts there were"
    assert each.end_step() == each
    assert TrainConfig().make_schedule() == make_schedule("adaptive", ["CART"], check_every="step")
    assert TrainConfig(check_every="group").make_schedule().to_json()["check_every"] == "group"


@given(settings, groups, st.integers(1, 4))
def test_by_step_a_window_moves_at_the_end_of_steps_only(options, reports, size):
    states = after(make_schedule("adaptive", ENVS, **(options | {"check_every": "step"})), reports, size)
    for number, (before, now) in enumerate(pairwise(states), 1):
        moved = [before.window(env) != now.window(env) for env in ENVS]
        assert not any(moved) or number % size == 0


@pytest.mark.parametrize(
    ("start", "window"), [(0, (0, 0)), (2, (0, 2)), (3, (0, 3)), (4, (1, 4)), (9, (6, 9))]
)
def test_it_begins_where_it_is_told_to(start, window):
    """The window spans d_delta levels below the first upper edge, as RLVE's does."""
    schedule = TrainConfig(initial_difficulty=start, collection="C2").make_schedule()
    assert [schedule.window(env) for env in ("CART", "SUB")] == [window] * 2
    promoted = schedule.report("SUB", start, [True] * 64).end_step()
    assert promoted.window("SUB") == (max(0, start + 1 - 3), start + 1) and promoted.window("CART") == window


def test_a_share_equal_to_the_threshold_promotes():
    schedule = make_schedule("adaptive", ["CART"], tau_num=10).report("CART", 0, [True] * 9 + [False])
    assert schedule.end_step().window("CART") == (0, 1)


def test_only_the_upper_edge_counts():
    schedule = Adaptive.start(["CART"], 0, 2, tau_num=4)
    for d in (0, 1, 3):
        assert schedule.report("CART", d, [True] * 40) == schedule


def test_unscored_outcomes_count_for_nothing():
    schedule = Adaptive.start(["CART"], tau_num=4)
    assert schedule.report("CART", 0, [None] * 40) == schedule
    assert schedule.report("CART", 0, [True, None, None, True, None]).windows == (Window(0, 0, 2, 2),)


def test_the_window_keeps_four_levels():
    schedule = make_schedule("adaptive", ["CART"], tau_num=1)
    seen = []
    for d in range(7):
        schedule = schedule.report("CART", d, [True]).end_step()
        seen.append(schedule.window("CART"))
    assert seen == [(0, 1), (0, 2), (0, 3), (1, 4), (2, 5), (3, 6), (4, 7)]


def test_environments_do_not_touch_each_other():
    schedule = make_schedule("adaptive", ENVS, tau_num=2).report("SUB", 0, [True, True]).end_step()
    assert schedule.window("CART") == (0, 0)
    assert schedule.window("SUB") == (0, 1)


def test_static_ranges_are_the_published_ones():
    assert make_schedule("static-low", ENVS).window("CART") == (0, 1)
    assert make_schedule("static-high", ENVS).window("SUB") == (6, 12)
    assert make_schedule("static-3-5", ENVS) == Static(ENVS, 3, 5)


@pytest.mark.parametrize(("low", "high"), [(0, 3), (0, 12), (2, 2), (0, 1), (6, 12)])
def test_any_range_is_static_and_drawn_evenly(low, high):
    schedule = make_schedule(f"static-{low}-{high}", ENVS)
    assert schedule.window("CART") == (low, high)
    assert from_json(json.loads(json.dumps(schedule.to_json()))) == schedule
    stream = rng("ranges", low, high)
    levels = [schedule.draw("CART", stream) for _ in range(500 * (high - low + 1))]
    counts = np.bincount(levels, minlength=high + 1)[low:]
    assert (
        set(levels) == set(range(low, high + 1)) and abs(counts - 500).max() < 120
    )  # five standard deviations
    moved = schedule.report("CART", high, [True] * 999).end_step()
    assert moved == schedule, "whatever happens"
    assert TrainConfig(schedule=f"static-{low}-{high}").make_schedule() == Static(("CART",), low, high)


@pytest.mark.parametrize("name", NAMES)
def test_a_schedule_knows_its_name(name):
    assert make_schedule(name, ENVS).name == name


@given(settings, groups)
def test_the_window_never_widens_beyond_d_delta_and_never_falls(options, reports):
    states = after(make_schedule("adaptive", ENVS, **options), reports)
    for before, now in pairwise(states):
        for env in ENVS:
            (low0, high0), (low, high) = before.window(env), now.window(env)
            assert 0 <= low <= high and high - low + 1 <= options["d_delta"]
            assert low0 <= low and high0 <= high <= high0 + 1


@given(settings, groups)
def test_counts_start_again_at_every_check(options, reports):
    for state, (env, below, outcomes) in zip(
        after(make_schedule("adaptive", ENVS, **options), reports), reports, strict=False
    ):
        at = ENVS.index(env)
        window = state.windows[at]
        next_window = state.report(env, max(0, window.high - below), outcomes).end_step().windows[at]
        assert next_window.attempts < options["tau_num"]
        if next_window.high > window.high:
            assert (next_window.attempts, next_window.correct) == (0, 0)


@given(st.sampled_from(NAMES), groups)
def test_reporting_is_pure(name, reports):
    start = make_schedule(name, ENVS, tau_num=4)
    saved = json.dumps(start.to_json())
    assert after(start, reports) == after(start, reports)
    assert json.dumps(start.to_json()) == saved


@given(st.sampled_from(NAMES), settings, groups, groups, st.integers(1, 3))
def test_a_saved_schedule_has_the_same_future(name, options, past, future, size):
    here = after(make_schedule(name, ENVS, **options), past, size)[-1]
    there = from_json(json.loads(json.dumps(here.to_json())))
    assert there == here
    states = zip(after(here, future, size), after(there, future, size), strict=True)
    for step, (a, b) in enumerate(states):
        left, right = rng("schedule-test", step), rng("schedule-test", step)
        assert [a.draw(e, left) for e in ENVS for _ in range(5)] == [
            b.draw(e, right) for e in ENVS for _ in range(5)
        ]
        assert a.draw_environment(left) == b.draw_environment(right)


@given(st.integers(0, 9), st.integers(0, 3), st.integers(0, 1000))
def test_draws_stay_inside_the_window(low, width, key):
    schedule = Adaptive.start(ENVS, low, low + width)
    draws = {schedule.draw("CART", rng("window-test", key, i)) for i in range(20)}
    assert draws <= set(range(low, low + width + 1))


def test_draws_are_uniform_over_levels_and_environments():
    stream, schedule = rng("uniform-test"), Adaptive.start(ENVS, 2, 5)
    levels = np.bincount([schedule.draw("CART", stream) - 2 for _ in range(8000)], minlength=4)
    assert levels.sum() == 8000 and abs(levels - 2000).max() < 200  # five standard deviations
    assert abs(sum(schedule.draw_environment(stream) == "SUB" for _ in range(8000)) - 4000) < 230


def test_states_are_frozen():
    for name in NAMES:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(make_schedule(name, ENVS), "envs", ())  # noqa: B010


def test_a_state_of_before_there_was_a_choice_goes_on_as_it_was():
    state = make_schedule("adaptive", ENVS, check_every="group").to_json()
    del state["check_every"]
    assert from_json(state).to_json()["check_every"] == "group"


def test_unknown_names_are_met_with_a_suggestion():
    with pytest.raises(ValueError, match="no time to check 'steps'; did you mean 'step'"):
        make_schedule("adaptive", ENVS, check_every="steps")
    with pytest.raises(ConfigError, match="check_every: no time to check 'groups'; did you mean 'group'"):
        TrainConfig(check_every="groups")
    with pytest.raises(ValueError, match="no schedule 'adaptiv'; did you mean 'adaptive'"):
        make_schedule("adaptiv", ENVS)
    with pytest.raises(ValueError, match="did you mean 'static-low'"):
        make_schedule("static-lo", ENVS)
    with pytest.raises(ValueError, match="no environment 'CRAT'.*did you mean 'CART'"):
        make_schedule("adaptive", ENVS).draw("CRAT", rng("x"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: make_schedule("static-5-3", ENVS),
        lambda: make_schedule("adaptive", []),
        lambda: make_schedule("adaptive", ["CART", "CART"]),
        lambda: make_schedule("adaptive", ENVS, tau_acc=0.0),
        lambda: make_schedule("adaptive", ENVS, tau_num=0),
        lambda: Adaptive.start(ENVS, 0, 4, d_delta=4),
        lambda: from_json({"name": "adaptive", "envs": ["CART"]}),
        lambda: from_json({}),
    ],
)
def test_impossible_schedules_are_refused(make):
    with pytest.raises(ValueError):
        make()


def test_a_reward_is_no_verdict():
    for name in NAMES:
        with pytest.raises(TypeError, match="a reward is no verdict"):
            make_schedule(name, ENVS).report("CART", 0, [0.3])  # type: ignore[list-item]
    assert Adaptive.start(ENVS).report("CART", 0, [np.True_]).windows[0] == Window(0, 0, 1, 1)
