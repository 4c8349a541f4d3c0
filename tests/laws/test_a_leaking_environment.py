"""A new environment that gives its answer away through a tool of its own is caught, without an edit to the package."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ecomlab import ENVIRONMENTS, Shop
from ecomlab.laws import contract, counterfactual, laws, leaks
from ecomlab.laws.certificate import certify_cell
from ecomlab.tool import Tool

FILE = Path(__file__).with_name("lockers.py")


@pytest.fixture
def lockers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The environment's module; the environment is registered for one test, and held to the contract at few levels."""
    monkeypatch.setattr(contract.EnvironmentContract, "levels", (0, 6, 12))
    ENVIRONMENTS.load(FILE)
    yield sys.modules["ecomlab_env_lockers"]
    del ENVIRONMENTS._found["LOCKERS"]


def test_without_a_leak_it_keeps_the_contract(lockers: Any, shop: Shop) -> None:
    # A toy: finding one thing may not get hard enough, and luck may pay more than its failures. Nothing else is wrong.
    for line in contract.check("LOCKERS", shop):
        broken = line.partition("breaks no law: ")[2].partition("\n")[0].split("; ")
        assert all(said.startswith("HARDER: ") or "failing honestly" in said for said in broken), line


def test_many_findings_of_one_law_are_told_in_short() -> None:
    found = [*(f"NOT GAMEABLE: {name}" for name in "abcd"), "FAIR: e"]
    assert contract._in_short(found) == ("NOT GAMEABLE: a; NOT GAMEABLE: b (and 2 more of this law); FAIR: e")


def test_an_order_that_tells_is_caught_by_a_positional_player(lockers: Any, shop: Shop) -> None:
    def broken() -> list[str]:
        return laws.broken_laws(laws.Evidence([certify_cell("LOCKERS", 0, 20, 40, shop)]))

    assert broken() == []
    lockers.LEAK = "order"
    (line, *_) = broken()
    assert line.startswith(
        "NOT GAMEABLE: positional attacker 'hand in first of locker_list' is correct on 100.0%"
    )


def test_ids_that_tell_are_caught_by_the_classifier(lockers: Any, shop: Shop) -> None:
    def found() -> list[str]:
        return [leak.kind for leak in leaks.measure("LOCKERS", shop, (0, 8), 60) if leak.leaks]

    assert found() == []
    lockers.LEAK = "ids"
    assert found() == ["locker_list: locker_id"]


def test_a_flag_that_tells_is_caught_by_the_classifier(lockers: Any, shop: Shop) -> None:
    lockers.LEAK = "flag"
    assert not counterfactual.compare("LOCKERS", 8, range(20), shop).differences
    found = leaks.measure("LOCKERS", shop, (0, 8), 60)
    assert found and all(leak.low > 0.9 for leak in found)  # by the ids' rows, and by what stands in them


def test_a_withheld_value_that_a_tool_shows_is_caught(lockers: Any, shop: Shop) -> None:
    assert leaks.told("LOCKERS", shop) == []
    lockers.LEAK = "told"
    assert not counterfactual.compare("LOCKERS", 8, range(20), shop).differences
    (line,) = leaks.told("LOCKERS", shop)
    assert line.startswith("locker_list shows the withheld 'attr' at remembered")


def test_a_size_that_tells_is_caught_by_comparing_counterfactuals(lockers: Any, shop: Shop) -> None:
    def differences() -> list[str]:
        compared = counterfactual.compare("LOCKERS", 8, range(20), shop)
        assert compared.pairs >= 10
        return compared.differences

    assert differences() == []
    lockers.LEAK = "size"
    assert "turn 1: locker_list({}): lockers" in differences()[0]


def test_a_list_that_is_not_declared_is_a_fault_of_its_own(
    lockers: Any, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = (Tool(lockers.locker_list.function),)
    monkeypatch.setattr(lockers.Lockers, "tools", silent)
    with pytest.raises(AssertionError, match="locker_list does not declare lockers: \\['locker_id'\\]"):
        contract.EnvironmentContract().test_tools_are_what_they_declare("LOCKERS", shop)


def test_a_tool_that_acts_must_say_so(lockers: Any, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def locker_list(world: Any) -> dict[str, Any]:
        """List the lockers, and change the world."""
        world.changes += 1
        return {"lockers": [dict(pairs) for pairs in world.given["lockers"]]}

    acting = (Tool(locker_list, {"lockers": ("locker_id",)}),)
    monkeypatch.setattr(lockers.Lockers, "tools", acting)
    with pytest.raises(AssertionError, match="declares no act"):
        contract.EnvironmentContract().test_tools_are_what_they_declare("LOCKERS", shop)


def test_what_a_tool_changes_anywhere_in_the_world_is_seen(
    lockers: Any, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locker_list(world: Any) -> dict[str, Any]:
        """List the lockers, and book one."""
        world.booked = world.calls
        return {"lockers": [dict(pairs) for pairs in world.given["lockers"]]}

    monkeypatch.setattr(lockers.Lockers, "tools", (Tool(locker_list, {"lockers": ("locker_id",)}),))
    with pytest.raises(AssertionError, match="declares no act"):
        contract.EnvironmentContract().test_tools_are_what_they_declare("LOCKERS", shop)


def test_an_exception_is_one_finding_and_ends_nothing(
    lockers: Any, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Any, task: Any, shop: Any) -> float:
        raise ZeroDivisionError("no lockers")

    monkeypatch.setattr(lockers.LockersAudit, "chance", broken)
    found = contract.check("LOCKERS", shop)
    assert any("ZeroDivisionError: no lockers (test_a_leaking_environment.py, line" in line for line in found)
