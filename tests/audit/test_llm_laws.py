"""The laws with an endpoint as the customer's words: the script judges as a certificate does."""

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from ecomlab.audit.laws import State

FOLDER = Path(__file__).resolve().parents[2] / "experiments" / "llm_customer"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    sys.path.insert(0, str(FOLDER))
    try:
        return runpy.run_path(str(FOLDER / "laws.py"))
    finally:
        sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def measured(script: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Twelve tasks of one cell; the bank of questions, which takes a minute, was asked before."""
    script["measure"].__globals__["understanding"].measure, before = (
        lambda *given, **more: [],
        script["measure"].__globals__["understanding"].measure,
    )
    try:
        found: dict[str, Any] = script["measure"](
            ["STATUS"], [6], 12, 8, 1_000, tmp_path_factory.mktemp("laws") / "laws.json"
        )
    finally:
        script["measure"].__globals__["understanding"].measure = before
    return found


def test_a_few_tasks_break_no_law_and_show_none(script: dict[str, Any], measured: dict[str, Any]) -> None:
    found = script["states"](measured)
    assert {customer: set(by_law) for customer, by_law in found.items()} == {
        customer: set(named) for customer, named in script["LAWS"].items()
    }
    states = {by_env["STATUS"] for by_law in found.values() for by_env in by_law.values() if by_env}
    assert states == {State.NOT_SHOWN}, found


@pytest.mark.parametrize("what", ["same", "failures"])
def test_a_score_that_an_endpoint_changes_breaks_the_law(
    what: str, script: dict[str, Any], measured: dict[str, Any]
) -> None:
    [cell] = measured["hostile scores"]
    broken = {**measured, "hostile scores": [cell | {what: cell[what] - 1}]}
    assert script["states"](broken)["hostile"]["BROKEN IS NOT WRONG"]["STATUS"] is State.BROKEN


def test_levels_that_no_attacker_played_are_judged_together(
    script: dict[str, Any], measured: dict[str, Any]
) -> None:
    [row] = measured["honest rows"]
    assert not row["others"]
    found = script["states"]({**measured, "honest rows": [row, row | {"d": 12}]})
    assert found["honest"]["TALKED THROUGH"]["STATUS"] is State.NOT_SHOWN
