"""The axes of experiments/frontier, on which a level says how many steps a cart composes, and the list of its runs."""

import json
import sys
from collections import Counter
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ecomlab import Shop, make_task
from ecomlab.difficulty import COMPOSED
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.evaluation.tasks import check_axes
from ecomlab.lab.bench_sampling import step_config
from ecomlab.lab.provenance import sha256
from ecomlab.lab.sweep import load, training_config
from ecomlab.seeding import rng
from ecomlab.training.config import TrainConfig
from ecomlab.training.schedule import Draw

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments/frontier"))

import again
import analyse
import composition
import gates
import predictions
import shown
import simulate
import study
import trials


def drawn(shop: Shop, level: int, axes: dict[str, float], tasks: int = 40) -> list[Counter[str]]:
    return [
        composition.composed(make_task("CART", level, seed, shop, {**COMPOSED, **axes}))
        for seed in range(tasks)
    ]


def test_composed_steps_grow_with_the_level(shop: Shop) -> None:
    means = [np.mean([sum(one.values()) for one in drawn(shop, d, {})]) for d in (0, 2, 4, 6, 8)]
    assert means[0] == 0 and all(b > a + 0.5 for a, b in pairwise(means))


@pytest.mark.parametrize("name", composition.ALONE)
def test_a_step_alone_is_alone(name: str, shop: Shop) -> None:
    """A few things of a small shop come without options."""
    wanted = {"plain": set(), "option": {"option"}, "quantity": {"quantity"}}.get(name, {"item"})
    kinds = [
        {kind for kind, count in one.items() if count}
        for one in drawn(shop, 0, dict(composition.ALONE[name]))
    ]
    assert all(found <= wanted for found in kinds) and np.mean([found == wanted for found in kinds]) > 0.8


def test_nothing_but_the_cart_moves_with_the_level(shop: Shop) -> None:
    """Withheld slots, noise, shortages, budgets and steps of thought stay as they are at the easiest."""
    for d in (0, 8):
        task = make_task("CART", d, 3, shop, COMPOSED)
        assert not task.events and not task.goal.withheld and not task.steps


def test_every_run_of_the_study_is_a_valid_configuration_with_a_name_of_its_own() -> None:
    assert len({run.name for run in study.RUNS}) == len(study.RUNS)
    for run in study.RUNS:
        if not run.imitate:
            config = TrainConfig(out="unused", **run.config)
            assert config.rounds == 1 and config.steps >= 100
        assert run.held_out == "" or run.held_out not in run.config["collection"].split(",")
    assert {run.starter for run in study.RUNS if run.part == "S1"} == {"singles", "novice"}
    held = [run for run in study.RUNS if run.part == "S2"]
    assert len({run.held_out for run in held}) > 3 and check_axes(COMPOSED, ["CART"]) == []
    assert set(held[-1].config["collection"].split(",")) | {held[-1].held_out} == set(ENVIRONMENTS)


def test_costs_are_those_of_the_runs_that_are_done(tmp_path: Path) -> None:
    made = [trials.Run("S9", arm, "novice", seed) for arm in ("a", "b") for seed in range(3)]
    for run, seconds in zip(made[:2], (1800, 5400), strict=True):
        (tmp_path / run.name).mkdir(parents=True)
        (tmp_path / run.name / "seconds.json").write_text(f'{{"all": {seconds}}}')
    table = trials.cost(made, tmp_path)
    assert table.loc[("S9", "a")].to_list() == [3, 2, 3.0] and table.loc[("S9", "b")].to_list() == [3, 0, 3.0]


def test_the_simulation_finds_the_skills_that_made_a_table() -> None:
    logits = np.array([3.0, 1.0, 0.5, 0.0, -1.0, -0.5, 1.5, 2.5])
    rows: list[dict[str, Any]] = [
        {
            "level": level,
            "overrides": json.dumps(dict(axes)),
            "sampled": simulate.success(logits, Draw("CART", level, axes)),
        }
        for _, level, axes in composition.cells()
    ]
    found = simulate.fitted(pd.DataFrame(rows))
    assert simulate.right(found) == pytest.approx(simulate.right(logits), abs=0.03)


def test_a_simulated_learner_gains_where_groups_are_mixed() -> None:
    start = np.array([3.0, 1.0, 0.5, 0.0, -1.0, -0.5, 1.5, 2.5])
    before = simulate.success(start, Draw("CART", 4))
    easy, told = simulate.trained(start, "static-0-6", 0, 15, 0.1)
    assert simulate.success(easy, Draw("CART", 4)) > before + 0.05 and 0 < told["mixed"] < 1
    carts = [simulate.uses(Draw("CART", 6), rng("carts", i)) for i in range(50)]
    assert all(one[0] == 1 for one in carts) and np.mean([one[1:7].sum() for one in carts]) > 5
    assert all(one[7] == sum(range(int(one[1:7].sum()))) for one in carts), "every two of the steps"


NO_CURVES = pd.DataFrame(columns=["starter", "arm", "seed"])


def test_contrasts_are_paired_by_seed_and_corrected_within_a_starter(tmp_path: Path) -> None:
    gains = {"adaptive": (0.5, 0.6, 0.7), "singles": (0.3, 0.4, 0.5), "static-4-6": (0.5, 0.6, 0.7)}
    for arm, values in gains.items():
        for seed, value in enumerate(values):
            for starter in study.STARTERS:
                folder = tmp_path / "S1" / f"{arm}-{starter}-{seed}"
                folder.mkdir(parents=True)
                rows = [
                    {"cell": f"d = {d}", "block": block, "sampled": value + noise, "greedy": value}
                    for d in range(9) for block, noise in ((0, 0.01), (1, -0.01))
                ]  # fmt: skip
                pd.DataFrame(rows).to_csv(folder / "end.csv", index=False)
    made = analyse.contrasts(analyse.ends(tmp_path), NO_CURVES).query(
        "decoding == 'sampled' and levels == '0-6'"
    )
    assert set(made.contrast) == {"adaptive - singles", "adaptive - static-4-6"} and (made.seeds == 3).all()
    for contrast, mean in (("adaptive - singles", 0.2), ("adaptive - static-4-6", 0.0)):
        assert made[made.contrast == contrast].difference.to_numpy() == pytest.approx(mean)


def test_fresh_contrasts_leave_out_the_seeds_of_the_gates(tmp_path: Path) -> None:
    for arm, starter, seed in product(("adaptive", "static-0-6"), study.STARTERS, range(8)):
        part = "fresh" if arm == "static-0-6" and seed >= study.SEEDS else "S1"
        folder = tmp_path / part / f"{arm}-{starter}-{seed}"
        folder.mkdir(parents=True)
        value = 0.5 + 0.1 * (arm == "adaptive") * (seed >= 3) + 0.01 * (seed % 2)
        pd.DataFrame({"cell": [f"d = {d}" for d in range(7)], "sampled": value}).to_csv(folder / "end.csv")
    made = analyse.fresh(tmp_path)
    assert made.contrast.tolist() == ["adaptive - static-0-6"] * 2 and made.seeds.tolist() == [5, 5]
    assert made.difference.to_numpy() == pytest.approx(0.1)
    first = made.assign(holm=[0.01, 0.01], seeds=5, difference=[0.1, -0.1])
    assert analyse.claimed(first, made.assign(holm=0.04)).tolist() == [True, False], "of another sign"
    assert not analyse.claimed(first, made.assign(holm=0.06)).any(), "fresh seeds do not show it"
    assert {run.seed for run in study.FRESH} == set(range(study.SEEDS, study.MORE))
    assert {run.arm for run in study.FRESH} | set(study.PRIMARY) == {
        arm for pair in study.CONTRASTS for arm in pair
    }


def test_what_arms_drew_is_counted(tmp_path: Path) -> None:
    folder = tmp_path / "S1" / "adaptive-novice-0"
    folder.mkdir(parents=True)
    rows = {"step": [1, 1, 2], "d": [0, 7, 3], "d_high": [7, 7, 6], "kept": [1, 1, 0], "groups": [2, 2, 2]}
    pd.DataFrame({**rows, "rollouts": 8, "truncated": [0, 6, 0]}).to_csv(folder / "train.csv")
    (folder / "alarms.txt").write_text("one\ntwo\n")
    [row] = analyse.health(tmp_path).to_dict("records")
    assert (row["highest"], row["above_6"], row["window"], row["alarms"]) == (7, 1, 6, 2)
    assert (row["mixed"], row["without"], row["truncated"]) == (pytest.approx(1 / 3), 0.5, 0.25)


def test_holm_by_hand() -> None:
    assert analyse.holm(pd.Series([0.01, 0.04, 0.03])).to_list() == pytest.approx([0.03, 0.06, 0.06])
    one = analyse.compared(pd.Series([0.1, 0.3]), pd.Series([0.0, 0.0]))
    assert analyse.compared(pd.Series([0.1, 0.3]), pd.Series([0.1, 0.3]))["p"] == 1, "the same twice"
    assert one["difference"] == pytest.approx(0.2) and one["high"] == pytest.approx(
        0.2 + 12.706 * 0.1, abs=1e-3
    )


def test_two_arms_are_compared_at_the_tokens_of_the_thriftier(tmp_path: Path) -> None:
    for arm, tokens, success in (("adaptive", 100, 0.4), ("singles", 50, 0.1)):
        folder = tmp_path / f"S1/{arm}-novice-0"
        folder.mkdir(parents=True)
        spent = {"tokens_generated": [tokens, 0, tokens], "groups": 2, "kept": [2, 0, 1], "d_high": [0, 3, 2]}
        pd.DataFrame({"step": [1, 1, 2], **spent}).to_csv(folder / "train.csv")
        curve = [{"step": step, "d": 2, "success": success * step} for step in (0, 1, 2)]
        rows = [{**row, "decoding": "sampled"} for row in curve] + [
            {**curve[2], "d": 8, "decoding": "sampled"}
        ]
        pd.DataFrame(rows).to_csv(folder / "eval.csv")
    followed = analyse.curves(tmp_path)
    assert followed[followed.arm == "adaptive"][["tokens", "mixed", "level"]].to_numpy()[1:].tolist() == [
        [100, 0.5, 3],
        [200, 0.5, 2],
    ]
    pair = analyse.at_equal_tokens(followed, "novice", "adaptive", "singles")
    assert pair.one.item() == pytest.approx(0.4) and pair.other.item() == pytest.approx(0.2), (
        "one step, and two"
    )
    assert pair.one_end.item() == pytest.approx(0.8) and pair.other_end.item() == pytest.approx(0.2)
    grown = analyse.growth(followed).set_index(["arm", "half"]).difference
    assert grown["adaptive", "first"] == pytest.approx(0.4) == pytest.approx(grown["adaptive", "second"])


def test_mended_mistakes_are_compared_on_common_pairs(tmp_path: Path) -> None:
    for arm, mended in (("adaptive", [True, True, True]), ("static-4-6", [True, False]), ("prefix", [False])):
        for starter, run in ((starter, run) for starter in study.STARTERS for run in (0, 1)):
            folder = tmp_path / f"S1/{arm}-{starter}-{run}"
            folder.mkdir(parents=True)
            pairs = [
                {"d": 1, "seed": seed, "kind": "wrong quantity", "turn": 2, "final": False, "mended": own}
                for seed, own in enumerate(mended)
            ]
            pd.DataFrame(pairs).to_csv(folder / "planted.csv", index=False)
    for starter in study.STARTERS:
        pd.DataFrame(pairs).to_csv(tmp_path / f"start-planted-{starter}.csv", index=False)
    made = analyse.mended(tmp_path).set_index(["starter", "contrast"]).loc["novice"]
    assert made.pairs.to_dict() == {"adaptive - static-4-6": 4, "adaptive - start": 2, "prefix - adaptive": 2}
    assert made.difference.to_list() == [0.5, 1.0, -1.0]
    assert made.p_seeds.to_list() == [0.0, 0.0, 0.0], "both seeds differ by the same"
    low, high = made[["low", "high"]].loc["adaptive - static-4-6"]
    assert low == 0 and high == 1, "of two tasks one or the other may be drawn twice"


def test_the_committed_tables_hold_every_run_that_they_count() -> None:
    """What is shown is what is in results/, whatever has been made since the tables were."""
    folder = Path(analyse.__file__).parent
    runs = pd.read_csv(folder / "runs.csv").set_index(["part", "starter", "arm"])
    assert runs.registered.sum() == len(study.RUNS) and (runs.finished <= runs.registered).all()
    followed = pd.read_csv(folder / "curves.csv").groupby(["starter", "arm"]).seed.nunique()
    for (starter, arm), count in followed.items():
        assert runs.finished["S1", starter, arm] == count, (starter, arm)
    page = (folder / "TABLES.md").read_text("utf-8")
    assert f"{runs.finished.sum()} of the {len(study.RUNS)} registered runs are done" in page


@pytest.mark.parametrize(
    ("low", "high", "predicted", "outcome", "within"),
    [
        (0.01, 0.04, 0.03, "held", "open"), (0.01, 0.02, 0.03, "sign", "held"), (-0.01, 0.05, 0.03, "open", "open"),
        (-0.02, 0.02, 0.03, "not held", "held"), (-0.06, -0.04, 0.03, "not held", "not held"),
        (0.01, 0.09, 0.05, "held", "not held"),
    ],
)  # fmt: skip
def test_outcomes_of_predictions_by_hand(
    low: float, high: float, predicted: float, outcome: str, within: str
) -> None:
    row = pd.Series({"difference": (low + high) / 2, "low": low, "high": high})
    assert predictions.difference(row, predicted) == outcome
    assert predictions.near(row, 0.03) == within


def test_tables_in_markdown_by_hand() -> None:
    row = pd.Series({"difference": -0.0432, "success": 0.5, "low": -0.1, "high": 0.0139})
    assert shown.interval(row) == "-.043 [-.100, +.014]"
    assert shown.interval(row.replace(-0.1, np.nan), "success") == ".500"
    assert [shown.number(value) for value in (1.0, 0.04, np.nan)] == ["1.000", ".040", ""]
    assert [shown.p_value(value) for value in (0.0004, 0.04, np.nan)] == ["<.001", ".040", ""]
    assert shown.grid("A.", "b", ["c", "d"], [[1, 2]]) == "**A.** b\n\n| c | d |\n| --- | --- |\n| 1 | 2 |\n"
    runs = pd.DataFrame({"arm": ["x", "y"], "starter": "z", "registered": 5, "finished": [5, 3]})
    assert shown.finished(runs) == "8 of the 10 registered runs are done (y from z 3 of 5).\n"


def test_a_run_that_is_made_again_is_compared_table_by_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shop: Shop
) -> None:
    run = next(run for run in study.RUNS if run.name == "S1/imitate-singles-novice-0")
    there, work = tmp_path / "committed", tmp_path / "work"
    for name in ("end.csv", "steps.csv", "provenance.json"):
        (there / "results" / run.name).mkdir(parents=True, exist_ok=True)
        (there / "results" / run.name / name).write_text("then")

    def keep(run: Any, policy: Any, folder: Path, results: Path, shop: Any) -> None:
        (results / run.name).mkdir(parents=True)
        for name, text in {"end.csv": "then", "steps.csv": "now", "provenance.json": "now"}.items():
            (results / run.name / name).write_text(text)

    monkeypatch.setattr(again, "HERE", there)
    monkeypatch.setattr(again, "keep", keep)
    monkeypatch.setattr(again, "imitated", lambda run, folder, shop: "policy")
    monkeypatch.setattr(again, "save_policy", lambda folder, policy: None)
    assert again.again(run, work, shop) == {"end.csv": True, "steps.csv": False}


def test_the_quick_ablation_and_its_benchmark_are_on_the_axes_of_composition(tmp_path: Path) -> None:
    fixed = load(Path(__file__).parents[2] / "experiments/quick/sweep.toml").fixed
    for made in (training_config({**fixed, "out": str(tmp_path)}), step_config(tmp_path, seed=0, steps=2)):
        assert made.axes == made.eval_axes == COMPOSED


def test_the_starters_that_ship_are_those_that_were_frozen() -> None:
    folder = Path(__file__).parents[2]
    frozen = json.loads((folder / "experiments/frontier/starters.json").read_text())
    for name, digest in frozen.items():
        assert sha256(folder / "ecomlab/starters/weights" / name / "model.safetensors") == digest


def test_both_seeds_of_a_second_gate_are_put_together() -> None:
    rows = [
        {"name": f"gate-2/64-novice-{seed}", "decoding": "sampled", "levels": "0-6", "gain": gain, "low": gain - 0.04}
        for seed, gain in ((1, 0.06), (2, 0.10))
    ] + [{"name": "gate-1/64-novice-0", "decoding": "sampled", "levels": "0-6", "gain": 0.3, "low": 0.26}]  # fmt: skip
    found = gates.both(pd.DataFrame(rows))
    assert found[["name", "gain", "low", "passed"]].values.tolist() == [
        ["gate-2/64-novice", 0.08, 0.04, True]
    ]
