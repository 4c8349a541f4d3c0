"""Tables are read strictly, the run is the unit, and figures say the same for the same data."""

import io
import math
import os
import re
import subprocess
import sys
from functools import cache, partial
from pathlib import Path

import pandas as pd
import pytest
from fake_tables import collection_rows, eval_rows, train_rows, write_certificate
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import PercentFormatter

from ecomlab import files, style
from ecomlab.analysis import (
    capability_plots,
    cascade_plots,
    curriculum_plots,
    env_plots,
    plots,
    scale_plots,
    statistics,
    tables,
)
from ecomlab.lab import figures, provenance, show
from ecomlab.settings import ConfigError


@pytest.fixture
def experiment(tmp_path):
    train_rows().to_csv(tmp_path / "train.csv", index=False)
    eval_rows().to_csv(tmp_path / "eval.csv", index=False)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "column", "value"),
    [
        ("train.csv", "success", "1.2"),
        ("train.csv", "seed", "one"),
        ("train.csv", "seconds", ""),
        ("train.csv", "schedule", ""),
        ("train.csv", "entropy", "low"),
        ("train.csv", "d_low", "9"),
        ("train.csv", "d", "0"),  # the same cell as the line before
        ("train.csv", "d", ""),
        ("eval.csv", "decoding", "beam"),
        ("eval.csv", "reward", "-2"),
    ],
)
def test_a_bad_value_is_named_with_file_line_and_column(experiment, file, column, value):
    table = pd.read_csv(experiment / file, dtype=str)
    table.loc[1, column] = value
    table.to_csv(experiment / file, index=False)
    with pytest.raises(tables.TableError, match=rf"{file}, line 3: .*\b{column}\b"):
        tables.load_experiment(experiment)


def test_a_missing_column_a_cut_line_a_missing_file_and_a_missing_run_are_named(experiment):
    table = pd.read_csv(experiment / "eval.csv")
    table.rename(columns={"success": "sucess"}).to_csv(experiment / "wrong.csv", index=False)
    with pytest.raises(tables.TableError, match="'sucess'"):
        tables.load_eval(experiment / "wrong.csv")
    with pytest.raises(tables.TableError, match="nothing.csv"):
        tables.load_train(experiment / "nothing.csv")
    train_rows(seeds=(0, 1, 2)).to_csv(experiment / "train.csv", index=False)
    with pytest.raises(tables.TableError, match="eval.csv"):
        tables.load_experiment(experiment)
    with (experiment / "train.csv").open("a") as file:
        file.write("adaptive,C1,2,1")
    with pytest.raises(tables.TableError, match="4 fields"):
        tables.load_train(experiment / "train.csv")


def test_levels_are_summarized_over_steps_by_hand():
    train = train_rows(seeds=(0,)).query("schedule == 'adaptive'")
    train = train.assign(
        failed=train.failed.where(train.d == 0, 0), success=train.success.where(train.d == 0, 1.0)
    )
    nothing = train.head(1).assign(env="SUB", groups=0, rollouts=0, success=math.nan)
    found = statistics.by_level(pd.concat([train, nothing])).set_index(["env", "d"])
    assert list(found.index) == [("CART", 0), ("CART", 2)], "nothing was drawn of SUB"
    low, high = found.loc[("CART", 0)], found.loc[("CART", 2)]
    assert (low.groups, low.rollouts, low.success, low.failed) == (20, 160, 0.5, 80)
    assert (low.by_correct, low.by_reward, low.cut_off) == (0.5, 0.75, 20 / 80)
    assert (low.tokens, low.tokens_used, low.invalid, low.truncated) == (8000, 0.75, 8, 20)
    assert high.success == 1 and math.isnan(high.cut_off)


def test_the_t_interval_is_the_textbook_one():
    # mean 2, sd 1, t(.975, 2 df) = 4.303, half width 4.303 / sqrt(3)
    half = 4.3027 / math.sqrt(3)
    assert statistics.t_bounds([1.0, 2.0, 3.0]) == pytest.approx((2 - half, 2 + half), abs=1e-3)


def test_two_runs_have_no_interval():
    assert all(map(math.isnan, statistics.t_bounds([1.0, 2.0])))
    runs = statistics.summary(train_rows(), eval_rows())
    assert statistics.arm_intervals(runs, "sampled_last").low.isna().all()
    with pytest.raises(ValueError, match="interval"):
        statistics.t_bounds([1.0, math.nan, 2.0])


def test_held_out_success_is_the_mean_over_difficulties():
    means = statistics.held_out(eval_rows())
    first = means[(means.schedule == "adaptive") & (means.seed == 1)].set_index("step").success
    assert first.to_dict() == pytest.approx({0: 0.27, 2: 0.37, 4: 0.47})


def test_means_over_different_difficulties_are_not_compared():
    table = eval_rows()
    table = table[~((table.d == 2) & (table.step == 2))]
    assert set(statistics.held_out(table).step) == {0, 4}


def test_generated_rollouts_and_tokens_add_up_from_nothing():
    so_far = statistics.generated(train_rows())
    run = so_far[(so_far.schedule == "adaptive") & (so_far.seed == 0)]
    assert dict(zip(run.step, run.rollouts, strict=True)) == {0: 0, 1: 80, 2: 160, 3: 240, 4: 320}
    assert dict(zip(run.step, run.tokens, strict=True)) == {0: 0, 1: 4000, 2: 8000, 3: 12000, 4: 16000}


def test_the_summary_has_a_row_per_run():
    runs = statistics.summary(train_rows(), eval_rows()).set_index(["schedule", "seed"])
    assert len(runs) == 6
    row = runs.loc[("adaptive", 1)]
    assert (row.steps, row.d_low, row.d_high, row.rollouts) == (4, 0, 2, 320)
    assert (row.sampled_first, row.greedy_last) == pytest.approx((0.27, 0.47))
    assert row.minutes == pytest.approx(0.2)


def test_arms_are_compared_seed_by_seed():
    train, evaluation = train_rows(seeds=(0, 1, 2)), eval_rows(seeds=(0, 1, 2))
    better = evaluation.schedule == "adaptive"
    evaluation.loc[better, "success"] += 0.1 + 0.01 * evaluation.seed[better]
    found = statistics.differences(train, evaluation).set_index(["equal", "against", "d"])
    gain = found.loc[("steps", "static-low", "mean")]
    assert (gain["at"], gain["mean"], gain.pairs) == (4, pytest.approx(0.11), 3)
    assert gain.high - gain.low == pytest.approx(2 * 4.3027 * 0.01 / math.sqrt(3), abs=2e-3)
    assert found.loc[("steps", "static-low", 2), "mean"] == pytest.approx(0.11)
    lacking = evaluation[~((evaluation.schedule == "static-low") & (evaluation.seed == 2))]
    assert set(statistics.differences(train, lacking).set_index("against").pairs["static-low"]) == {2}
    assert statistics.differences(train, evaluation[~better]).empty


def test_arms_are_compared_after_equally_many_tokens():
    train, evaluation = train_rows(), eval_rows()
    train.loc[train.schedule == "adaptive", "tokens_generated"] *= 2
    found = statistics.differences(train, evaluation).set_index(["equal", "against", "d"])
    # static-low ends at step 4 with 16,000 tokens, which adaptive has made at step 2, where success is .1 lower
    gain = found.loc[("tokens", "static-low", "mean")]
    assert (gain["at"], gain["mean"]) == (16_000, pytest.approx(-0.1))
    assert found.loc[("steps", "static-low", "mean"), "mean"] == 0


def test_collections_are_compared_at_equal_rollouts():
    train, evaluation = collection_rows()
    found = statistics.collections_compared(train, evaluation).set_index("equal")
    alone = found.loc["CART rollouts"]  # both have made 320
    assert (alone.collection, alone.rollouts, alone.pairs) == ("C2", 320, 3)
    assert alone["mean"] == pytest.approx(0.1)
    # C1 ends after 320 rollouts in all; by then C2 has made half as many of CART, at step 2 of 4, .1 behind its end
    total = found.loc["all rollouts"]
    assert total.rollouts == 320 and [total["mean"], total.low, total.high] == pytest.approx(
        [0] * 3, abs=1e-6
    )
    assert (alone.next, alone.next_low, alone.next_high) == (alone["mean"], alone.low, alone.high)
    # without C1's evaluations in between, a line flatters who is compared; its next evaluation does not
    coarse = evaluation[(evaluation.collection != "C1") | evaluation.step.isin((0, 4))].copy()
    end = coarse[(coarse.collection == "C1") & (coarse.step == 4) & (coarse.decoding == "sampled")]
    train.loc[train.collection == "C1", "rollouts"] *= 2
    found = statistics.collections_compared(train, coarse).set_index("equal").loc["CART rollouts"]
    assert found.next < found["mean"]
    assert found.next == pytest.approx(found.success - end.success.mean(), abs=1e-3)
    assert statistics.collections_compared(train, evaluation, against="C7").empty
    assert statistics.collections_compared(*collection_rows(seeds=(0,))).low.isna().all()


def test_gains_are_from_the_first_to_the_last_evaluation():
    train, evaluation = collection_rows()
    table = statistics.gains(train, evaluation).set_index(["collection", "env"])
    assert set(table.index) == {("C1", "CART"), ("C2", "CART"), ("C2", "SUB")}
    for (collection, env), row in table.iterrows():
        mine = evaluation[
            (evaluation.collection == collection)
            & (evaluation.env == env)
            & (evaluation.decoding == "sampled")
        ]
        first, last = (mine[mine.step == step].success.mean() for step in (mine.step.min(), mine.step.max()))
        assert (row["first"], row["last"]) == (pytest.approx(first, abs=1e-3), pytest.approx(last, abs=1e-3))
        assert row["mean"] == pytest.approx(last - first, abs=2e-3)
        assert row.d_high == train[(train.collection == collection) & (train.env == env)].d_high.max()
    greedy = (evaluation.decoding == "greedy") & (evaluation.step == 0)
    evaluation.loc[greedy, "success"] += 0.15
    sharpened = statistics.gains(train, evaluation).set_index(["collection", "env"])
    assert sharpened.starter["C1", "CART"] == pytest.approx(table.starter["C1", "CART"] + 0.15)
    assert sharpened["mean"]["C1", "CART"] == pytest.approx(table["mean"]["C1", "CART"] - 0.15)
    assert sharpened["last"].equals(table["last"])


CART = pd.DataFrame({"env": ["CART"]})
CASCADE, ROOT = "experiments/cascade", Path(__file__).resolve().parents[2]


def study_tables():
    """Tables as experiments/frontier/analyse.py makes them: curves, success, contrasts."""
    arms = ("single steps", "static-4-6", "static-0-6", "adaptive", "prefix")
    curves = pd.DataFrame(
        [
            {"arm": arm, "starter": starter, "seed": seed, "step": step, "success": 0.5 + step / 512, "mixed": 0.1,
             "level": 2 + step // 64}
            for arm in arms for starter in ("novice", "singles") for seed in (0, 1, 2) for step in (32, 64, 128, 256)
        ]
    )  # fmt: skip
    success = pd.DataFrame(
        {"arm": [*arms, "start"], "starter": "novice", "decoding": "sampled", "levels": "7-8"}
    )
    success = success.assign(success=0.15, low=0.1, high=0.2)
    pairs = [(arm, "adaptive") if arm == "prefix" else ("adaptive", arm) for arm in arms if arm != "adaptive"]
    contrasts = pd.DataFrame(
        [
            {"starter": starter, "contrast": " - ".join(pair), "difference": 0.05, "low": 0.01, "high": 0.09, "holm": p,
             "claimed": p < 0.05}
            for starter, p in (("singles", 0.2), ("novice", 0.01)) for pair in pairs
        ]
    )  # fmt: skip
    mended = contrasts.assign(level=1)
    orders = pd.DataFrame({"decoding": "greedy", **{f"k = {k}": [0.01, 0.02, 0.04] for k in (1, 2, 4, 7)}})
    return curves, success, contrasts, pd.concat([mended, mended.assign(level=4)]), orders


def every_figure():
    """Each figure of the notebooks by name, as a function of its width."""
    train, evaluation = train_rows(seeds=(0, 1, 2)), eval_rows(seeds=(0, 1, 2))
    table = statistics.with_bounds(tables.load_certificate(ROOT / "experiments/certificate/certificate.json"))
    asked = statistics.understood(
        tables.load_understanding(ROOT / "experiments/certificate/certificate.json")
    )
    parts = tables.load_parts(ROOT / "experiments/quick/parts.csv")
    played = tables.load_played(ROOT / CASCADE / "played.csv")
    lacking = statistics.with_bounds(tables.load_depth(ROOT / "experiments/certificate/certificate.json"))
    moved = tables.load_axes_alone(
        [ROOT / f"experiments/frontier/axes_{one}.csv" for one in ("novice", "base")]
    )
    scripted, runs = statistics.frontiers(table, ["perturbed"]), statistics.run_frontiers(evaluation)
    players = pd.concat([scripted, tables.load_frontier(ROOT / "experiments/starters/frontiers/base.json")])
    curves, success, contrasts, mended, orders = study_tables()
    sizes = tables.load_catalog_scale(ROOT / "experiments/catalog_scale/results.csv")
    return {
        "growth": partial(plots.difficulty_growth, train, evaluation),
        "ratio": partial(plots.effective_ratio, train),
        "scaling": partial(plots.environment_scaling, *collection_rows()),
        "certificate": partial(env_plots.certificate, table),
        "axes": partial(env_plots.axes_and_environments, show.axes(range(13)), show.matrix()),
        "parts": partial(plots.reward_parts, parts),
        "frontier": partial(capability_plots.capability, players, runs),
        "understanding": partial(capability_plots.understanding, asked),
        "cascade": partial(cascade_plots.error_cascade, played),
        "depth": partial(env_plots.depth, lacking),
        "alone": partial(env_plots.alone, moved),
        "sizes": partial(scale_plots.catalog_scale, sizes),
        "curriculum": partial(curriculum_plots.curriculum, curves, success, contrasts, "novice", "singles"),
        "orders": partial(curriculum_plots.environments, orders, orders),
        "mended": partial(curriculum_plots.mending, mended),
    }


FIGURES = (
    "growth", "ratio", "scaling", "certificate", "axes", "parts", "frontier", "understanding", "cascade",
    "depth", "alone", "sizes", "curriculum", "orders", "mended",
)  # fmt: skip


@pytest.fixture(scope="module")
def drawings():
    """Figures by name, style and width, each drawn once."""
    found = every_figure()
    assert tuple(found) == FIGURES

    @cache
    def draw(name, look, width):
        with style.using(look):
            return found[name](width=width)

    return draw


LOOKS = [("screen", "page"), ("screen", "column"), ("neurips", "page"), ("acl", "column")]
PAPER = 9.0
"""Inches of text on a page of NeurIPS and ICML."""


@pytest.mark.parametrize(("look", "width"), LOOKS)
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_its_width_fits_a_page_and_has_legible_text(name, look, width, drawings):
    figure = drawings(name, look, width)
    wanted = style.PRESETS[look].inches(width)
    assert figure.get_figwidth() == pytest.approx(wanted) and figure.get_figheight() <= PAPER
    bounds = figure.get_tightbbox()
    texts = [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
    assert min(float(text.get_fontsize()) for text in texts) >= 7
    assert bounds.x0 >= -0.01 and bounds.x1 <= wanted + 0.01, "nothing is cut off"
    assert bounds.y0 >= -0.01 and bounds.y1 <= figure.get_figheight() + 0.01


def lettered(figure):
    """The labels of the panels that have a letter, by letter."""
    panels = {ax.get_title(loc="left"): ax for ax in figure.axes}
    return {
        letter: [" ".join(label.split()) for label in (ax.get_xlabel(), ax.get_ylabel())]
        for letter, ax in panels.items()
        if letter
    }


@pytest.mark.parametrize("name", FIGURES)
def test_a_panel_has_the_same_letter_at_every_width(name, drawings):
    page, narrow, column = (
        lettered(drawings(name, look, width))
        for look, width in (("screen", "page"), ("neurips", "page"), ("screen", "column"))
    )
    assert page == narrow
    assert list(column) == list(page)[: len(column)], "a column may only lack the last panels"
    assert column == {letter: page[letter] for letter in column}


@pytest.mark.parametrize("name", FIGURES)
def test_an_axis_of_shares_that_does_not_begin_at_zero_is_broken(name, drawings):
    for ax in drawings(name, "screen", "column").axes:
        strokes = sum(isinstance(line.get_marker(), list) for line in ax.lines)
        shares = [
            axis for axis in (ax.xaxis, ax.yaxis) if isinstance(axis.get_major_formatter(), PercentFormatter)
        ]
        cut = sum(axis.get_view_interval()[0] > 0 for axis in shares)
        assert strokes == 2 * cut
        assert all(
            tick > axis.get_view_interval()[0] for axis in shares if cut for tick in axis.get_ticklocs()
        )


def test_an_arm_looks_the_same_whatever_is_drawn_beside_it():
    few, many = ["adaptive", "mine"], ["a", "adaptive", "mine", "prefix", "static-low", "z"]
    looks = [plots.look(pd.DataFrame({"schedule": names})) for names in (few, many)]
    assert all(looks[0][name] == looks[1][name] for name in few)
    assert looks[0]["mine"][0] not in {looks[1][name][0] for name in ("adaptive", "static-low")}
    with style.using({"preset": "icml", "arms": {"mine": "#112233"}}) as mine:
        assert plots.look(pd.DataFrame({"schedule": few}))["mine"][0] == to_rgb("#112233")
        assert (mine.page, mine.font) == (style.PRESETS["icml"].page, style.PRESETS["icml"].font)


def test_every_figure_follows_the_style(drawings):
    figure = drawings("certificate", "slides", "page")
    assert max(text.get_fontsize() for text in figure.findobj(Text)) == 16 and figure.get_figwidth() == 12
    serif = drawings("growth", "neurips", "page")
    assert {tuple(text.get_fontfamily()) for text in serif.findobj(Text)} == {style.PRESETS["neurips"].font}


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ("nips", "neurips"),
        ({"palete": "deep"}, "palette"),
        ({"arms": {"a": "blu"}}, "blu"),
        ({"font": "None Such"}, "no such font here"),
        ({"size": 5}, "size"),
        ("gone.toml", "gone.toml"),
    ],
)
def test_a_style_that_is_none_is_refused(given, word):
    with pytest.raises(ConfigError, match=word):
        style.use(given)


def test_an_arm_is_added_by_naming_its_folder(tmp_path):
    for name, arms in (("one", ["adaptive", "static-low"]), ("two", ["mine"])):
        (tmp_path / name).mkdir()
        for file, rows in (("train.csv", train_rows()), ("eval.csv", eval_rows())):
            mine = rows[rows.schedule == "adaptive"]
            pd.concat([mine.assign(schedule=arm) for arm in arms]).to_csv(tmp_path / name / file, index=False)
    runs = tables.load_runs(tmp_path / "one", tmp_path / "two")
    assert plots.arms(runs.train) == plots.arms(runs.evaluation) == ["static-low", "adaptive", "mine"]
    with pytest.raises(tables.TableError, match="both hold the run"):
        tables.load_runs(tmp_path / "two", tmp_path / "two")
    with pytest.raises(tables.TableError, match="it holds one, two: name those"):
        tables.load_runs(tmp_path)
    other = pd.read_csv(tmp_path / "two" / "eval.csv")
    other.assign(d=other.d + 1, axes="p_missing=0").to_csv(tmp_path / "two" / "eval.csv", index=False)
    with pytest.raises(
        tables.TableError, match="two was evaluated on CART at d = .* under p_missing=0, .*one at d = "
    ):
        tables.load_runs(tmp_path / "one", tmp_path / "two")


def short(arms, seeds=(0, 1), **more):
    """A sweep of four steps, in which the window of the adaptive arm stays at 0."""
    train, evaluation = train_rows(seeds=seeds), eval_rows(seeds=seeds)
    train.loc[train.schedule == "adaptive", ["d_low", "d_high"]] = 0
    return tuple(
        table[table.schedule.isin(arms)].replace({"schedule": more}) for table in (train, evaluation)
    )


def test_an_arm_whose_window_could_move_is_drawn_as_a_curve_and_fixed_ranges_are_dashed():
    train, evaluation = short(["static-low", "adaptive"])
    figure = plots.difficulty_growth(train, evaluation)
    window = figure.axes[0]
    assert window.get_xlim()[1] == train.step.max() and window.get_ylim()[0] < 0
    lines = {to_rgb(line.get_color()): line.get_linestyle() for line in window.lines}
    looks = plots.look(train)
    assert {name: lines[looks[name][0]] for name in looks} == {"static-low": "--", "adaptive": "-"}
    told = [text.get_text() for text in figure.legends[0].get_texts()]
    assert told[:2] == ["static-low", "adaptive"] and len(told) == 3 and " 2 runs" in told[2]


@pytest.mark.parametrize("width", ["page", "column"])
@pytest.mark.parametrize(
    ("arms", "names"),
    [
        (["adaptive"], {}),
        (["static-low", "adaptive"], {"adaptive": "mine"}),
        (["static-low", "static-high"], {}),
    ],
)
def test_short_sweeps_of_any_arms_are_drawn(arms, names, width):
    train, evaluation = short(arms, (0,), **names)
    growth = plots.difficulty_growth(train, evaluation, width=width)
    ratio = plots.effective_ratio(train, width=width)
    several = len(arms) > 1
    for figure, letter in ((growth, "c"), (ratio, "d")):
        [ahead] = [ax for ax in figure.axes if ax.get_title(loc="left") == letter]
        assert ahead.get_visible() == several and len(ahead.containers) == several
        assert names.get("adaptive", arms[-1]) in ahead.get_ylabel()
    one = [table[table.schedule == table.schedule.iloc[0]] for table in (train, evaluation)]
    assert plots.environment_scaling(one[0], one[1], width=width).axes[-1].containers


def test_a_run_holds_a_level_only_with_all_below():
    rows = eval_rows(seeds=(0,), steps=(0, 4)).assign(
        success=lambda rows: [0.95, 0.95, 0.4, 0.4, 0.6, 0.6] * 6
    )
    found = statistics.run_frontiers(rows).query("schedule == 'adaptive' and step == 4").set_index("share")
    assert found["level"].to_dict() == {0.9: 0, 0.5: 0}, "the level above one that is not held does not count"
    better = statistics.run_frontiers(rows.assign(success=1.0))
    assert set(better["level"]) == {2}


def test_a_player_of_a_certificate_holds_what_the_search_would_say(tmp_path):
    table = tables.load_certificate(write_certificate(tmp_path / "c.json"))
    found = statistics.frontiers(table, ["perturbed", "reference"]).set_index(["env", "player", "share"])
    assert found.loc[("CART", "reference", 0.9), "level"] == 12
    half = found.loc[("CART", "perturbed", 0.5)]  # .8 less .05 a level: exactly one half at 6
    assert half.low <= 6 <= half.high and half.high - half.low <= 3


@pytest.mark.parametrize(
    ("draw", "word"),
    [
        (lambda t, e: plots.difficulty_growth(t, e, "greedy"), "'greedy'"),
        (lambda t, e: plots.environment_scaling(t, e, "greedy"), "'greedy'"),
        (lambda t, e: statistics.run_frontiers(e, "greedy"), "'greedy'"),
        (lambda t, e: plots.environment_scaling(t.assign(env="SUB"), e), "'CART'"),
        (lambda t, e: statistics.gains(t, e[e.step > 0]), "step 0"),
        (lambda t, e: capability_plots.capability(CART, statistics.run_frontiers(e), "CRAT"), "'CART'"),
        (lambda t, e: tables.chosen(t, "toy", collection="C8"), "'C8'"),
        (lambda t, e: tables.load_played(Path("gone")), "played.py"),
        (lambda t, e: tables.load_study(Path("gone")), "analyse.py"),
        (lambda t, e: tables.load_parts(Path("gone")), "parts.py"),
    ],
)
def test_what_a_table_lacks_is_named_with_what_there_is(draw, word, monkeypatch):
    monkeypatch.setattr(capability_plots, "levels_passed", lambda *given: None)
    train, evaluation = (table[table.schedule == "adaptive"] for table in (train_rows(), eval_rows()))
    with pytest.raises(tables.TableError, match=word):
        draw(train, evaluation[evaluation.decoding == "sampled"])


def test_a_caption_is_latex_and_the_numbers_are_a_table_beside_the_figure(tmp_path):
    caption = figures.Caption("95% of {a_b} & c~d", "Lines.", column="Fewer panels.")
    arms = statistics.arm_intervals(statistics.summary(train_rows(), eval_rows()), "sampled_last")
    page, narrow = Figure(figsize=(2, 1)), Figure(figsize=(1, 1))
    numbers = {"arms": arms, "rows": arms.reset_index()}
    made = figures.save_widths(
        page, narrow, "g", out=tmp_path, parameters={}, caption=caption, numbers=numbers
    )
    assert {path.name for path in made} == {path.name for path in tmp_path.iterdir()}
    assert (tmp_path / "g.tex").read_text() == r"95\% of \{a\_b\} \& c\textasciitilde{}d" + "\n"
    assert (tmp_path / "g_column.tex").read_text() == "Fewer panels.\n"
    assert (tmp_path / "g.txt").read_text() == (tmp_path / "g_column.txt").read_text() == "Lines.\n"
    assert (tmp_path / "g.arms.csv").read_text() == (tmp_path / "g.rows.csv").read_text()
    assert pd.read_csv(tmp_path / "g.arms.csv").set_index("arm").equals(arms)


def test_groups_of_questions_are_judged_by_what_the_law_asks_for():
    """Exact bounds of 98 of 100 are .930 and .998; 17 of 20 may be 90% by chance, 10 of 20 not."""
    head = {"bank": "read", "denied": 0}
    table = pd.DataFrame(
        [
            {**head, "env": "all", "form": "all", "asks": 100, "exact": 0.98},
            {**head, "env": "CART", "form": "all", "asks": 20, "exact": 0.85},
            {**head, "env": "all", "form": "wh", "asks": 20, "exact": 0.5},
        ]
    )
    found = statistics.understood(table)
    assert (found.low[0], found.high[0]) == (pytest.approx(0.930, abs=1e-3), pytest.approx(0.998, abs=1e-3))
    assert found.least.tolist() == [0.95, 0.9, 0.9]
    assert found.law.tolist()[1:] == ["not shown", "broken"]


def test_equal_data_give_equal_pdf_bytes(experiment):
    made = []
    for folder in ("a", "b"):
        figure = plots.difficulty_growth(*tables.load_experiment(experiment))
        if folder == "b":  # as where a notebook has shown it
            figure.savefig(io.BytesIO(), dpi=72)
        pdf, png, *_ = figures.save(
            figure,
            "growth",
            out=experiment / folder,
            parameters={"run": folder},
            inputs=[experiment / "train.csv"],
        )
        made.append(pdf.read_bytes())
        assert png.stat().st_size > 10_000
    assert made[0] == made[1]
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+)", made[0])
    assert box and float(box[1]) == pytest.approx(72 * style.PRESETS["screen"].page, abs=0.5)
    assert '"run": "a"' in (experiment / "a/growth.json").read_text()


def test_an_equal_figure_keeps_its_provenance_and_a_failed_one_its_file(tmp_path, monkeypatch):
    figure = Figure((2, 1))
    for steps, commit, recorded in (
        (1, "a-dirty", "a-dirty"),
        (1, "b", "b"),
        (1, "c", "b"),
        (2, "d", "d"),
    ):
        monkeypatch.setattr(provenance, "commit", lambda commit=commit: commit)
        figures.save(figure, "f", out=tmp_path, parameters={"steps": steps})
        assert (files.read_json(tmp_path / "f.json") or {})["commit"] == recorded
    before = (tmp_path / "f.png").read_bytes()

    def killed(draft, **_):
        draft.write_bytes(b"")
        raise KeyboardInterrupt

    monkeypatch.setattr(figure, "savefig", killed)
    with pytest.raises(KeyboardInterrupt):
        figures.save(figure, "f", out=tmp_path, parameters={"steps": 2})
    assert (tmp_path / "f.png").read_bytes() == before
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".pdf", ".png"]


def test_a_certificate_is_a_row_per_player_in_the_order_of_the_collection(tmp_path):
    table = tables.load_certificate(write_certificate(tmp_path / "c.json", ("BUNDLE", "OTHER", "CART")))
    assert list(dict.fromkeys(table.env)) == ["CART", "BUNDLE", "OTHER"]
    assert list(dict.fromkeys(table.d)) == list(range(13))
    cart = table[(table.env == "CART") & (table.d == 2)].set_index("player")
    shares = {"oracle": 1, "reference": 1, "perturbed": 0.7, "naive": 0, "best blind": 0.02, "chance": 0.15}
    assert cart.share.to_dict() == pytest.approx(shares | {"best positional": 0.2})
    assert cart.n["reference"] == 200 and cart.n["naive"] == 100 and cart.n["chance"] == 0
    assert "best positional" not in set(table[table.env == "BUNDLE"].player), "it has none"


def test_exact_bounds_are_the_textbook_ones():
    # none of n: the upper bound solves (1 - p)^n = .025; all of n: the lower one p^n = .025
    table = pd.DataFrame({"share": [0.0, 1.0, 0.3], "n": [100, 50, 0]})
    bounds = statistics.with_bounds(table)
    assert bounds.low.tolist() == pytest.approx([0, 0.025 ** (1 / 50), 0.3])
    assert bounds.high.tolist() == pytest.approx([1 - 0.025 ** (1 / 100), 1, 0.3])


def test_levels_are_pooled_by_their_tasks(tmp_path):
    table = tables.load_certificate(write_certificate(tmp_path / "c.json", levels=range(2)))
    pooled = statistics.pooled(table)
    assert pooled.share["CART", "perturbed"] == pytest.approx((0.8 + 0.75) / 2)
    assert pooled.n["CART", "perturbed"] == pooled.n["CART", "reference"] == 400
    assert pooled.n["CART", "naive"] == 200
    assert set(pooled.reset_index().player) == {"oracle", "reference", "perturbed", "naive"}


def test_what_a_notebooks_backend_sets_when_it_is_loaded_outlives_our_figure(tmp_path: Path) -> None:
    """Otherwise no figure of the user's own would be shown after one of ours."""
    lines = "from matplotlib.backends.backend_agg import *\nimport matplotlib\nmatplotlib.interactive(True)\n"
    (tmp_path / "loud.py").write_text(lines)
    code = (
        "import matplotlib, ecomlab\nwith ecomlab.style.applied(): pass\nprint(matplotlib.is_interactive())"
    )
    environment = {
        **os.environ,
        "MPLBACKEND": "module://loud",
        "PYTHONPATH": os.pathsep.join((str(tmp_path), *sys.path)),
    }
    made = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert made.stdout == "True\n", made.stderr
