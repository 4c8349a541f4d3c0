"""The laws are judged by exact bounds: what is broken, kept, or not shown by too small a sample."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from scipy import stats

from ecomlab.laws import counterfactual, laws
from ecomlab.laws.certificate import Row
from ecomlab.laws.contract import EnvironmentContract
from ecomlab.laws.leaks import Leak
from ecomlab.laws.talkers import Talked
from ecomlab.laws.truthful import Truths
from ecomlab.laws.understanding import Share


def rows(seeds: int = 500, others: int = 100) -> list[Row]:
    """An environment that keeps every law."""
    return [
        Row(
            env="CART",
            d=d,
            seeds=seeds,
            others=others,
            solver=1.0,
            fair=1.0,
            noisy=0.8 - 0.04 * d,
            naive=0.5,
            blind={"say done": 0.0},
            positional={"first of history": 0.1},
            chance=0.1,
            turns=4.0,
            reward=0.9,
            rewards={"blind: say done": (-0.9, 0.1, others)},
            failed=(-0.5, 0.2, seeds // 5),
            courteous=1.0,
            shortcut=1.0 - 0.07 * d,
            lacking={"logic": (d, 100)} if d > 2 else {},
            contrary={"logic": (48, 100)} if d > 2 else {},
            outcomes={"logic: the condition holds": (52, 100)} if d > 2 else {},
            shotgun=(0, 100),
        )
        for d in range(13)
    ]


SILENT = [counterfactual.Comparison("CART", d, 100, []) for d in (0, 4, 8, 12)]
ASKED = [Share("read", "CART", "of it", 500, 0.97, 0)]
HEARD = [Share("held", "CART", "of it", 500, 0.97, 0)]
TRUTHS = Truths("read", "all", {"named": 900, "refused": 95, "affirmed": 5}, {"affirmed": 2000}, 0)
TALKED = Talked("CART", 1_250, 0, 0)
LEAK = Leak("CART", "visits: product_id", 100, 400, 0.51, 0.45, 0.57)


def states(*evidence: object) -> dict[str, laws.State]:
    """The state of every law for the one environment."""
    return {law: found["CART"] for law, found in laws.states(laws.Evidence(*evidence)).items()}  # type: ignore[arg-type]


def broken_laws(*evidence: object) -> list[str]:
    return laws.broken_laws(laws.Evidence(*evidence))  # type: ignore[arg-type]


def test_what_keeps_every_law_is_said_to() -> None:
    measured = (rows(), [LEAK], SILENT, ASKED, HEARD, [TRUTHS], [TALKED])
    assert broken_laws(*measured) == []
    assert set(states(*measured).values()) == {laws.State.KEPT}
    assert laws.states(laws.Evidence(*measured))["TRUTHFUL"]["all"] is laws.State.KEPT


def test_a_small_sample_shows_nothing() -> None:
    few = [counterfactual.Comparison("CART", 0, 20, [])]
    assert broken_laws(rows(10, 5), [LEAK], few) == []
    assert set(states(rows(10, 5), [LEAK], few).values()) == {laws.State.NOT_SHOWN}


FIRST = rows()[0]
QUITTER = {**FIRST.rewards, "quitter": (0.5, 0.1, 50)}


@pytest.mark.parametrize(
    ("law", "row", "who"),
    [
        ("SOLVABLE", replace(FIRST, solver=0.998), "oracle"),
        ("FAIR", replace(FIRST, fair=0.5), "reference player"),
        ("NOT GAMEABLE", replace(FIRST, blind={"say done": 0.9}), "'say done'"),
        ("NOT GAMEABLE", replace(FIRST, positional={"first of history": 0.9}), "'first of history'"),
        ("NOT GAMEABLE", replace(FIRST, rewards=QUITTER), "quitter"),
    ],
)
def test_each_law_of_the_certificate_can_break_in_one_cell(law: str, row: Row, who: str) -> None:
    measured = [row, *rows()[1:]]
    found = broken_laws(measured)
    assert any(who in said and "CART at d = 0" in said for said in found), found
    assert states(measured)[law] is laws.State.BROKEN
    assert {said.partition(":")[0] for said in found} == {law}


def test_a_share_that_is_short_everywhere_breaks_where_no_cell_does() -> None:
    measured = [replace(row, fair=0.975) for row in rows(200)]
    assert broken_laws(measured[:1]) == []
    (broken,) = broken_laws(measured)
    assert broken.startswith("FAIR: ") and "all difficulties" in broken
    # Several goals in a row are held to 97%.
    assert broken_laws([replace(row, jobs=3) for row in measured]) == []


def test_success_that_does_not_fall_or_falls_too_little_breaks_harder() -> None:
    flat = broken_laws([replace(row, noisy=0.5) for row in rows()])
    assert flat[0].startswith("HARDER: ") and "does not fall" in flat[0]
    (slow,) = broken_laws([replace(row, noisy=0.8 - 0.01 * row.d) for row in rows()])
    assert slow.startswith("HARDER: ") and "0.12" in slow


@pytest.mark.parametrize(
    ("row_of", "why"),
    [
        (lambda row: replace(row, shortcut=0.1), "does not fall"),
        (lambda row: replace(row, shortcut=0.8 - 0.06 * row.d), "80.0% of CART at d = 0"),
        (lambda row: replace(row, shortcut=1.0 - 0.04 * row.d), "52.0% of CART at d = 12"),
        (lambda row: replace(row, lacking={"logic": (30, 100)}), "without steps of logic, 390 of 1300 tasks"),
    ],
)
def test_who_takes_no_step_of_thought_and_is_right_breaks_deep(
    row_of: Callable[[Row], Row], why: str
) -> None:
    found = broken_laws([row_of(row) for row in rows()])
    assert found and all(said.startswith("DEEP: ") for said in found)
    assert any(why in said for said in found), found


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"contrary": {"logic": (75, 100)}}, "against the plain choice of logic, 975 of 1300 tasks"),
        ({"outcomes": {"logic: the condition holds": (25, 100)}}, "the condition holds in 325 of 1300 traps"),
        ({"outcomes": {"logic: the condition holds": (75, 100)}}, "the condition holds in 975 of 1300 traps"),
        ({"shotgun": (9, 100)}, "telling every value, 117 of 1300 tasks"),
    ],
)
def test_one_bit_that_is_drawn_unevenly_or_told_at_random_breaks_not_gameable(
    change: dict[str, Any], why: str
) -> None:
    (found,) = broken_laws([replace(row, **change) for row in rows()])
    assert found.startswith("NOT GAMEABLE: ") and why in found


@pytest.mark.parametrize(
    ("law", "share"),
    [("SOLVABLE", "solver"), ("FAIR", "fair"), ("TALKED THROUGH", "courteous"), ("HARDER", "noisy"),
     ("DEEP", "shortcut")],
)  # fmt: skip
def test_a_share_that_was_not_measured_is_not_shown(law: str, share: str) -> None:
    """As in rows of an older certificate, which have no share of this player."""
    found = states([replace(row, **{share: math.nan}) for row in rows()])  # type: ignore[arg-type]
    assert [name for name, state in found.items() if state is not laws.State.KEPT] == [law]
    assert found[law] is laws.State.NOT_SHOWN


def test_an_attacker_that_was_not_measured_is_not_shown() -> None:
    unknown = replace(FIRST, positional={"first of history": math.nan}, blind={})
    assert states([unknown])["NOT GAMEABLE"] is laws.State.NOT_SHOWN


def test_a_bank_that_is_not_understood_or_is_denied_breaks_understood() -> None:
    short, denied = replace(ASKED[0], exact=0.5), replace(ASKED[0], denied=1)
    for asked, heard, why in (([short], [], "50.0%"), ([], [short], "50.0%"), ([denied], [], "denial")):
        (broken,) = broken_laws([], [], [], asked, heard)
        assert broken.startswith("UNDERSTOOD: ") and why in broken


@pytest.mark.parametrize(
    ("truths", "talked", "why"),
    [
        (replace(TRUTHS, wrong={"named": 900, "affirmed": 100}), TALKED, "wrong elements"),
        (replace(TRUTHS, right={"affirmed": 900, "asked back": 100}), TALKED, "are affirmed"),
        (replace(TRUTHS, right={"affirmed": 1950, "refused": 50}), TALKED, "messages (read) are refused"),
        (TRUTHS, replace(TALKED, contradicting=1), "contradicts themselves"),
        (TRUTHS, replace(TALKED, unread=1), "fit no form"),
    ],
)
def test_a_false_yes_a_false_no_or_a_contradiction_breaks_truthful(
    truths: Truths, talked: Talked, why: str
) -> None:
    (broken,) = broken_laws([], [], [], [], [], [truths], [talked])
    assert broken.startswith("TRUTHFUL: ") and why in broken


def test_a_leak_or_a_difference_breaks_silent() -> None:
    leak = replace(LEAK, auc=0.8, low=0.7)
    told = replace(SILENT[0], differences=["seed 3: turn 1: look({}): rows[0].size is 2 and 3"])
    for evidence, why in (([[leak]], "AUC 0.80"), ([[], [told]], "rows[0].size is 2 and 3")):
        (broken,) = broken_laws([], *evidence)
        assert broken.startswith("SILENT: ") and why in broken


def test_enough_is_what_a_faultless_sample_can_show() -> None:
    assert (laws.enough(0.97), laws.enough(0.99)) == (230, 690)
    for threshold in (0.95, 0.97, 0.99):
        n = laws.enough(threshold)
        assert laws.bounds(1.0, n)[0] >= threshold > laws.bounds(1.0, n - 10)[0]


@pytest.mark.parametrize(("won", "n"), [(0, 12), (3, 12), (12, 12), (480, 500)])
def test_a_bound_leaves_one_in_a_thousand_beyond_it(won: int, n: int) -> None:
    low, high = laws.bounds(won / n, n)
    assert won == 0 or stats.binom.sf(won - 1, n, low) == pytest.approx(0.001, rel=1e-6)
    assert won == n or stats.binom.cdf(won, n, high) == pytest.approx(0.001, rel=1e-6)


def test_there_are_fourteen_laws_and_each_says_how_it_is_measured() -> None:
    assert len(laws.LAWS) == 14
    held = {
        law
        for name in dir(EnvironmentContract)
        for law in getattr(getattr(EnvironmentContract, name), "laws", ())
    }
    for law in laws.LAWS.values():
        assert law.statement.endswith(".")
        assert law.measure != laws.State.NOT_MEASURED
        assert law.name in held or law.judge is not None
