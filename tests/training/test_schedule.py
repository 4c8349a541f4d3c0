"""The schedules' promises, by hand-computed cases and as properties."""

import dataclasses
import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecomlab.seeding import rng
from ecomlab.training import schedule as module
from ecomlab.training.config import ConfigError, TrainConfig
from ecomlab.training.schedule import (
    CHECKS,
    Adaptive,
    Draw,
    ScheduleError,
    Static,
    Window,
    end_step,
    factory_of,
    name_of,
    settings_of,
    windows,
)

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


def make_schedule(*given: Any, **settings: Any) -> Any:
    return module.make_schedule(*given, **settings)


def schedule_of(**settings: Any) -> Any:
    """The schedule of a run."""
    return TrainConfig(**settings).make_schedule()


def made(name, options=None):
    """A schedule of both environments, with those options that it takes."""
    return make_schedule(name, ENVS, **settings_of(name, options or {}))


def saved(schedule):
    """The schedule, from its start, in the state that it saves."""
    start = (
        schedule if isinstance(schedule, Static) else dataclasses.replace(schedule, windows=(Window(),) * 2)
    )
    return start.from_json(json.loads(json.dumps(schedule.to_json())))


def after(schedule, reports, groups_a_step=1):
    """Every state from the start on; a report's level counts down from the window's upper edge."""
    states = [schedule]
    for number, (env, below, outcomes) in enumerate(reports, 1):
        high = states[-1].window(env)[1]
        now = states[-1].report(Draw(env, max(0, high - below)), outcomes)
        states.append(now if number % groups_a_step else end_step(now))
    return states


@pytest.mark.parametrize("check_every", CHECKS)
def test_nine_in_ten_of_sixty_four_promote(check_every):
    schedule = Adaptive.start(["CART"], check_every=check_every)
    assert schedule == make_schedule("adaptive", ["CART"], check_every=check_every)
    for _ in range(7):
        schedule = schedule.report(Draw("CART", 0), [True] * 8)
        assert schedule.end_step() == schedule and schedule.window("CART") == (0, 0)
    kept = schedule.report(Draw("CART", 0), [True] * 1 + [False] * 7).end_step()  # 57 of 64 are .891
    assert kept.windows == (Window(0, 0, 0, 0),)
    promoted = schedule.report(Draw("CART", 0), [True] * 2 + [False] * 6).end_step()  # 58 of 64 are .906
    assert promoted.windows == (Window(0, 1, 0, 0),)


def test_the_check_comes_once_a_step_or_after_every_group():
    """Three groups of four in a step, tau_num 4: by group the last two promote, by step 11 of 12 do once."""
    outcomes = [[True] * 3 + [False], [True] * 4, [True] * 4]
    whole, each = (Adaptive.start(["CART"], tau_num=4, check_every=check_every) for check_every in CHECKS)
    for group in outcomes:
        whole, each = (s.report(Draw("CART", s.window("CART")[1]), group) for s in (whole, each))
        assert whole.window("CART") == (0, 0), "within the step it stays"
    assert whole.windows == (Window(0, 0, 12, 11),) and each.window("CART") == (0, 2)
    assert whole.end_step().windows == (Window(0, 1, 0, 0),), "one level, however many rollouts there were"
    assert each.end_step() == each
    assert schedule_of() == make_schedule("adaptive", ["CART"], check_every="step")
    assert schedule_of(check_every="group").check_every == "group"


@pytest.mark.parametrize(
    ("start", "window"), [(0, (0, 0)), (2, (0, 2)), (3, (0, 3)), (4, (1, 4)), (9, (6, 9))]
)
def test_it_begins_where_it_is_told_to(start, window):
    """The window spans d_delta levels below the first upper edge, as RLVE's does."""
    schedule = schedule_of(initial_difficulty=start, collection="C2")
    assert [schedule.window(env) for env in ("CART", "SUB")] == [window] * 2
    promoted = schedule.report(Draw("SUB", start), [True] * 64).end_step()
    assert promoted.window("SUB") == (max(0, start + 1 - 3), start + 1) and promoted.window("CART") == window


def test_only_the_upper_edge_counts():
    schedule = Adaptive.start(["CART"], initial_difficulty=2, tau_num=4)
    for d in (0, 1, 3):
        assert schedule.report(Draw("CART", d), [True] * 40) == schedule


def test_unscored_outcomes_count_for_nothing():
    schedule = Adaptive.start(["CART"], tau_num=4)
    assert schedule.report(Draw("CART", 0), [None] * 40) == schedule
    assert schedule.report(Draw("CART", 0), [True, None, None, True, None]).windows == (Window(0, 0, 2, 2),)


@pytest.mark.parametrize(("low", "high"), [(0, 3), (0, 12), (2, 2), (0, 1), (6, 12)])
def test_any_range_is_static_and_drawn_evenly(low, high):
    schedule = make_schedule(f"static-{low}-{high}", ENVS)
    assert schedule.window("CART") == (low, high)
    assert schedule.from_json(json.loads(json.dumps(schedule.to_json()))) == schedule
    stream = rng("ranges", low, high)
    levels = [schedule.draw(stream).level for _ in range(500 * (high - low + 1))]
    counts = np.bincount(levels, minlength=high + 1)[low:]
    assert (
        set(levels) == set(range(low, high + 1)) and abs(counts - 500).max() < 120
    )  # five standard deviations
    moved = end_step(schedule.report(Draw("CART", high), [True] * 999))
    assert moved == schedule, "whatever happens"
    assert schedule_of(schedule=f"static-{low}-{high}") == Static(("CART",), low, high)


@given(settings, groups)
def test_the_window_never_widens_beyond_d_delta_and_never_falls(options, reports):
    states = after(made("adaptive", options), reports)
    for before, now in pairwise(states):
        for env in ENVS:
            (low0, high0), (low, high) = before.window(env), now.window(env)
            assert 0 <= low <= high and high - low + 1 <= options["d_delta"]
            assert low0 <= low and high0 <= high <= high0 + 1


@given(settings, groups)
def test_counts_start_again_at_every_check(options, reports):
    for state, (env, below, outcomes) in zip(
        after(made("adaptive", options), reports), reports, strict=False
    ):
        at = ENVS.index(env)
        window = state.windows[at]
        next_window = state.report(Draw(env, max(0, window.high - below)), outcomes).end_step().windows[at]
        assert next_window.attempts < options["tau_num"]
        if next_window.high > window.high:
            assert (next_window.attempts, next_window.correct) == (0, 0)


@given(st.sampled_from(NAMES), groups)
def test_reporting_is_pure(name, reports):
    start = made(name, {"tau_num": 4})
    before = json.dumps(start.to_json())
    assert after(start, reports) == after(start, reports)
    assert json.dumps(start.to_json()) == before


@given(st.sampled_from(NAMES), settings, groups, groups, st.integers(1, 3))
def test_a_saved_schedule_has_the_same_future(name, options, past, future, size):
    here = after(made(name, options), past, size)[-1]
    there = saved(here)
    assert there == here
    states = zip(after(here, future, size), after(there, future, size), strict=True)
    for step, (a, b) in enumerate(states):
        left, right = rng("schedule-test", step), rng("schedule-test", step)
        assert [a.draw(left) for _ in range(9)] == [b.draw(right) for _ in range(9)]


def test_draws_are_uniform_over_levels_and_environments():
    stream, schedule = rng("uniform-test"), Adaptive.start(ENVS, initial_difficulty=5)
    draws = [schedule.draw(stream) for _ in range(8000)]
    levels = np.bincount([draw.level - 2 for draw in draws], minlength=4)
    assert levels.sum() == 8000 and abs(levels - 2000).max() < 200  # five standard deviations
    assert abs(sum(draw.env == "SUB" for draw in draws) - 4000) < 230


@pytest.mark.parametrize(("name", "key"), [("adaptive", 1), ("static-0-12", 2)])
def test_a_draw_takes_an_environment_and_then_a_level_from_the_stream(name, key):
    """In this order, so that runs of before come out again: the training seed follows."""
    schedule, one, two = made(name, {"initial_difficulty": 9}), rng("order", key), rng("order", key)
    draw = schedule.draw(one)
    env = ENVS[int(two.integers(2))]
    low, high = schedule.window(env)
    assert draw == Draw(env, int(two.integers(low, high, endpoint=True)))
    assert one.integers(2**31) == two.integers(2**31)


@pytest.mark.parametrize(
    "make",
    [
        lambda: make_schedule("static-5-3", ENVS),
        lambda: make_schedule("adaptive", []),
        lambda: make_schedule("adaptive", ["CART", "CART"]),
        lambda: make_schedule("adaptive", ENVS, tau_acc=0.0),
        lambda: make_schedule("adaptive", ENVS, tau_num=0),
        lambda: make_schedule("adaptive", ENVS, initial_difficulty=-1),
        lambda: Draw("CART", -1),
        lambda: Draw("CART", 0, given=1.0),
        lambda: Draw("CART", 0, given=0.5, planted="wrong quantity"),
        lambda: Draw("CART", 0, planted="wrong number"),
    ],
)
def test_impossible_schedules_are_refused(make):
    with pytest.raises(ValueError):
        make()


def test_a_reward_is_no_verdict():
    with pytest.raises(TypeError, match="not reward"):
        Adaptive.start(ENVS).report(Draw("CART", 0), [0.3])  # type: ignore[list-item]
    assert Adaptive.start(ENVS).report(Draw("CART", 0), [np.True_]).windows[0] == Window(0, 0, 1, 1)


# A schedule of one's own.

BANDIT = """
from ecomlab.training.schedule import Draw

class Bandit:
    def __init__(self, envs, initial_difficulty, width=3):
        self.envs, self.wins, self.start = list(envs), [0] * width, initial_difficulty

    def draw(self, rng):
        level = self.start + int(rng.integers(len(self.wins)))
        return Draw(self.envs[0], level, {"p_missing": 0.5}, given=0.25)

    def report(self, draw, outcomes):
        self.wins[draw.level - self.start] += sum(map(bool, outcomes))
        return self

    def to_json(self):
        return {"wins": self.wins}

    def from_json(self, state):
        self.wins = list(state["wins"])
        return self

def wide(envs):
    return Bandit(envs, 0, width=9)
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(BANDIT)
    return tmp_path / "mine.py"


def test_a_class_or_a_function_in_a_file_is_a_schedule(file):
    config = TrainConfig(schedule="mine.py:Bandit", initial_difficulty=4, schedule_settings={"width": 2})
    bandit: Any = config.make_schedule()
    assert (bandit.start, bandit.wins, bandit.envs) == (4, [0, 0], ["CART"])
    draw = bandit.draw(rng("mine"))
    draw.check(ENVS)
    after_one: Any = end_step(bandit.report(draw, [True, None, False, True]))
    assert sum(after_one.wins) == 2 and windows(after_one, ["CART"]) == {}
    restored: Any = config.make_schedule().from_json(json.loads(json.dumps(after_one.to_json())))
    assert restored.wins == after_one.wins
    assert len(make_schedule("mine.py:wide", ENVS).wins) == 9
    assert name_of("mine.py:Bandit", bandit) == "Bandit"


def test_an_object_is_copied_when_a_run_begins(file):
    bandit: Any = factory_of("mine.py:wide")(ENVS)
    copy: Any = TrainConfig().make_schedule(bandit)
    copy.report(Draw("CART", 1), [True])
    assert sum(copy.wins) == 1 and sum(bandit.wins) == 0


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("gone.py:Bandit", "no file gone.py"),
        ("mine.py:Bandti", "did you mean 'Bandit'"),
        ("bad.py:Bandit", "NameError"),
        ("mine.py:Draw", "level"),
        ("bad2.py:Half", "report, to_json, from_json"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(name, word, file):
    (file.parent / "bad.py").write_text("oops")
    (file.parent / "bad2.py").write_text(
        "class Half:\n    def __init__(self, envs): ...\n    def draw(self, rng): ..."
    )
    with pytest.raises(ConfigError, match=word):
        TrainConfig(schedule=name)


@pytest.mark.parametrize(
    ("draw", "word"), [(Draw("PD", 0), "PD"), (Draw("CART", 0, {"p_branch": 1.0}), "p_branch")]
)
def test_a_draw_that_no_run_of_these_environments_can_play_is_refused(draw, word):
    with pytest.raises(ScheduleError, match=word):
        draw.check(ENVS)
