"""The laws with an endpoint as the customer's words: the script judges as a certificate does."""

import itertools
import json
import runpy
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from wordings import STYLES, Honest

from ecomlab import ENVIRONMENTS, Shop
from ecomlab.customer.llm import Chat, Wording
from ecomlab.evaluation.evaluation import environment_of
from ecomlab.laws import counterfactual
from ecomlab.laws.laws import State

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


def test_an_endpoint_that_is_sent_the_task_breaks_silence(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = itertools.count()

    class Telling(Wording):
        def __init__(self, chat: Chat) -> None:
            super().__init__(chat)
            chat([{"role": "user", "content": f"the task is number {next(told)}"}])

    given = ("CART", 6, range(2), shop, lambda seed: Honest(next(iter(STYLES)), seed))
    assert counterfactual.compare(*given).pairs and not counterfactual.compare(*given).differences
    monkeypatch.setattr(counterfactual, "Wording", Telling)
    found = counterfactual.compare(*given)
    assert len(found.differences) == found.pairs and "endpoint is sent" in found.differences[0]


def test_levels_that_no_attacker_played_are_judged_together(
    script: dict[str, Any], measured: dict[str, Any]
) -> None:
    [row] = measured["honest rows"]
    assert not row["others"]
    found = script["states"]({**measured, "honest rows": [row, row | {"d": 12}]})
    assert found["honest"]["TALKED THROUGH"]["STATUS"] is State.NOT_SHOWN


def test_the_committed_laws_are_of_every_cell_of_the_environments_that_ship_or_said_to_be_outdated(
    script: dict[str, Any],
) -> None:
    made = json.loads((FOLDER / "laws.json").read_text("utf-8"))
    outdated = tomllib.loads((FOLDER.parent / "outdated.toml").read_text("utf-8"))
    ships = {env: environment_of(env) for env in ENVIRONMENTS}
    assert (made["environments"] != ships) == (f"{FOLDER.name}/laws.json" in outdated)
    cells = {(env, d) for env in ENVIRONMENTS for d in script["LEVELS"]}
    for part in ("hostile rows", "hostile comparisons", "hostile scores", "honest rows"):
        assert {(row["env"], row["d"]) for row in made[part]} == cells, part
        assert len(made[part]) == len(cells), part
    assert made["states"] == script["states"](made)
    for customer, by_law in script["LAWS"].items():
        for law in by_law:
            assert set(made["states"][customer][law]) - {"all"} == set(ENVIRONMENTS), (customer, law)
    found = {
        (customer, law, env): state
        for customer, by_law in made["states"].items()
        for law, states in by_law.items()
        for env, state in states.items()
        if state != State.KEPT
    }
    assert found == {
        ("hostile", "SILENT", "STATUS"): State.NOT_SHOWN,
        ("hostile", "BROKEN IS NOT WRONG", "POLICY"): State.BROKEN,
        ("honest", "UNDERSTOOD", "STATUS"): State.BROKEN,
        ("honest", "UNDERSTOOD", "all"): State.BROKEN,
    }, "what docs/llm_customer.md says"
