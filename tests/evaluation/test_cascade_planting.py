"""Planted mistakes: each is found where it was made, in every environment; the page says what the table says."""

import csv
import runpy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ecomlab import ENVIRONMENTS, Shop, make_task
from ecomlab.evaluation.cascade import confusion
from ecomlab.evaluation.cascade.confusion import as_markdown, below_goal, judge, rows_of
from ecomlab.evaluation.cascade.edits import TRICKS, calls_of, with_calls
from ecomlab.evaluation.cascade.labels import label
from ecomlab.evaluation.cascade.mistakes import KINDS, Labelled, Mistake
from ecomlab.evaluation.cascade.planting import (
    BESIDE,
    CLEAN,
    PLANTABLE,
    REPAIRED,
    TWO,
    Planted,
    Twin,
    _rewritten,
    plant,
    survey,
)
from ecomlab.laws.surface import calls
from ecomlab.seeding import rng

ROOT = Path(__file__).resolve().parents[2]
TABLE, PAGE = ROOT / "experiments" / "cascade" / "planted.csv", ROOT / "docs" / "cascade.md"


def twin_of(env: str, d: int, shop: Shop) -> Twin:
    twins = (survey(make_task(env, d, seed, shop), shop) for seed in range(4))
    return next(twin for twin in twins if twin)


@pytest.mark.parametrize("env", list(ENVIRONMENTS))
def test_each_mistake_is_found_where_it_was_planted(env: str, shop: Shop) -> None:
    twin = twin_of(env, 1 if ENVIRONMENTS[env].composes else 4, shop)
    kinds = [kind for kind in PLANTABLE if kind in twin.opportunities]
    assert len(kinds) >= 5
    for kind in (CLEAN, *kinds, TWO, BESIDE):
        planted = plant(twin, shop, kind, rng("planted", env, kind))
        if planted is not None:
            judged = judge(planted, label(planted.trajectory, shop))
            assert judged.right and judged.alone, (kind, planted.turn, judged)


def test_what_is_mended_is_labelled_so(shop: Shop) -> None:
    twin = twin_of("CART", 2, shop)
    for kind in set(REPAIRED) & set(twin.opportunities):
        planted = plant(twin, shop, kind, rng("mended", kind), repair=True)
        assert planted is not None and planted.trajectory.score.correct
        (mistake,) = label(planted.trajectory, shop).mistakes
        assert (mistake.kind, mistake.turn) == (kind, planted.turn)
        assert mistake.fate.startswith("mended")


def test_a_call_that_is_put_between_others_takes_nobodys_id() -> None:
    one, wrong, two = (("cart_add", {"product_id": name}) for name in ("P1", "P2", "P3"))
    message = calls(one, two)
    ids = [call["id"] for call in message["tool_calls"]]
    made = with_calls(message, [one, wrong, two])
    assert calls_of(made) == [one, wrong, two]
    assert [call["id"] for call in made["tool_calls"]] == [ids[0], "planted1", ids[1]]
    instead = with_calls(message, [one, wrong])
    assert [call["id"] for call in instead["tool_calls"]] == ids, "what is changed keeps its place"


def test_what_an_interruption_comes_between_is_not_planted(shop: Shop) -> None:
    """What was meant for one job is no mistake of its kind in another."""
    came_between = 0
    for seed in range(3):
        twin = survey(make_task("JOURNEY", 1, seed, shop, {"p_switch": 1}), shop)
        if twin is None:
            continue
        for turn in twin.opportunities.get("wasted turn", ()):
            only = Twin(twin.trajectory, {"wasted turn": (turn,)})
            planted = plant(only, shop, "wasted turn", rng("between", seed, turn))
            came_between += planted is None
            if planted is not None:
                judged = judge(planted, label(planted.trajectory, shop))
                assert judged.right and judged.alone, (seed, turn)
    assert came_between


def test_the_same_stream_plants_the_same_mistake(shop: Shop) -> None:
    twin = twin_of("STATUS", 2, shop)
    one, two = (plant(twin, shop, "wrong order", rng("same")) for _ in range(2))
    assert one == two


def test_every_kind_that_can_be_planted_is_one_of_the_kinds() -> None:
    assert set(PLANTABLE) - {CLEAN, TWO, BESIDE, *TRICKS} == set(KINDS)


def test_what_cannot_be_planted_is_refused(shop: Shop) -> None:
    twin = twin_of("STATUS", 1, shop)
    with pytest.raises(ValueError, match="cannot be planted"):
        plant(twin, shop, "wrong mood", rng("x"))
    with pytest.raises(ValueError, match="cannot be planted and repaired"):
        plant(twin, shop, "cut off", rng("x"), repair=True)
    assert plant(twin, shop, "wrong variant", rng("x")) is None, "nothing of an order has variants to choose"


def test_a_label_of_another_kind_or_turn_is_not_right(shop: Shop) -> None:
    planted = Planted(twin_of("STATUS", 1, shop).trajectory, "wrong order", 3, ("wrong order", 3))

    def judged(*mistakes: Mistake) -> tuple[str, bool, bool]:
        found = judge(planted, Labelled("STATUS", 1, 0, 3, 3, "submit", False, False, mistakes))
        return found.found, found.turn, found.alone

    assert judged(Mistake(3, "wrong order")) == ("wrong order", True, True)
    assert judged(Mistake(2, "wrong order")) == ("wrong order", False, True)
    assert judged(Mistake(3, "wrong date")) == ("wrong date", False, True)
    assert judged() == ("none", False, True)
    assert judged(Mistake(3, "wrong order"), Mistake(3, "unseen id")) == ("wrong order", True, False)
    assert judged(Mistake(3, "wrong order"), Mistake(3, "unseen id", parent=0)) == ("wrong order", True, True)


def test_two_mistakes_are_both_found_and_one_of_them_is_not_enough(shop: Shop) -> None:
    twin = twin_of("CART", 4, shop)
    planted = plant(twin, shop, TWO, rng("two"))
    assert planted is not None
    labelled = label(planted.trajectory, shop)
    assert len(planted.holds) == 2 and judge(planted, labelled).right
    one = replace(labelled, mistakes=tuple(m for m in labelled.mistakes if m.turn <= planted.holds[0][1]))
    assert not judge(planted, one).right


def test_what_only_looks_wrong_is_no_mistake_and_what_is_found_there_counts(shop: Shop) -> None:
    done: set[str] = set()
    tasks = (make_task(env, 3, seed, shop) for seed in range(8) for env in ("CART", "RETURN"))
    for twin in filter(None, (survey(task, shop) for task in tasks)):
        for trick in set(TRICKS) & set(twin.opportunities) - done:
            planted = plant(twin, shop, trick, rng("trick", trick))
            assert planted is not None and planted.trajectory.messages != twin.trajectory.messages
            labelled = label(planted.trajectory, shop)
            assert labelled.mistakes == () and judge(planted, labelled).right
            assert not judge(planted, replace(labelled, mistakes=(Mistake(2, "wrong product"),))).right
            done.add(trick)
    assert done == set(TRICKS)


def test_what_a_player_believes_of_a_cart_is_not_put_into_a_row_without_its_product() -> None:
    """In a journey the return of a unit was believed to be of two, after two of something else, and mended for ever."""
    believed = [({"product_id": "P", "quantity": 1}, {"quantity": 2})]
    returned = {"order_id": "A", "line_id": "L", "quantity": 1}
    found = _rewritten({"returns": [returned], "cart": [{"product_id": "P", "quantity": 1}]}, believed)
    assert found == {"returns": [returned], "cart": [{"product_id": "P", "quantity": 2}]}


def test_a_mistake_beside_an_event_is_made_in_the_turn_of_the_event(shop: Shop) -> None:
    twin = twin_of("CART", 8, shop)
    planted = plant(twin, shop, BESIDE, rng("beside"))
    assert planted is not None and planted.turn in twin.eventful
    assert judge(planted, label(planted.trajectory, shop)).right


def test_a_table_can_be_of_some_kinds_and_has_those_of_each_kind_together(shop: Shop) -> None:
    kinds = ("unseen pair", "wrong quantity")
    found = list(rows_of("CART", 3, 2, shop, kinds))
    assert [{row["planted"] for row in rows} for rows in found] == [{kind} for kind in kinds]
    assert {row["repaired"] for row in found[1]} == {0, 1}


def test_the_committed_table_is_what_the_page_says_and_reaches_the_goal() -> None:
    """At least .98 of what was planted is found, kind and turn, in every cell of environment, level and kind, but where
    two mistakes are about one return, of which the verifier names one."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert as_markdown(rows) in PAGE.read_text("utf-8"), "run: python experiments/cascade/planted.py --draw"
    assert {row["env"] for row in rows} == set(ENVIRONMENTS)
    assert {(env, kind) for env, _, kind in below_goal(rows)} <= {("RETURN", TWO)}


def test_a_cell_below_the_goal_is_listed_and_not_averaged_away() -> None:
    row = {
        "env": "CART",
        "d": 1,
        "planted": "wrong product",
        "repaired": 0,
        "turn": 1,
        "alone": 1,
        "asked": 50,
    }
    good = [{**row, "d": d, "episodes": 50} for d in (3, 5, 8)]
    bad = [{**row, "episodes": 48}, {**row, "turn": 0, "episodes": 2}]
    assert list(below_goal([*good, *bad])) == [("CART", 1, "wrong product")]
    assert "Below the goal: CART, d = 1, wrong product: 48 of 50." in as_markdown([*good, *bad])
    few = [{**row, "episodes": 5}, {**row, "turn": 0, "episodes": 1}]
    assert below_goal([*good, *few]) == {} and "Below the goal: no cell." in as_markdown(good)


def test_cells_that_are_not_there_are_listed() -> None:
    row = {"repaired": 0, "turn": 1, "alone": 1, "asked": 50, "episodes": 50}
    there = {("CART", "none"): (1, 3, 5), ("CART", "sold out"): (1, 3), ("PD", "none"): (3,)}
    rows = [
        {**row, "env": env, "planted": kind, "d": d} for (env, kind), levels in there.items() for d in levels
    ]
    assert as_markdown(rows).endswith("another level: CART at d = 5: sold out; PD at d = 1, 5: none.")
    assert as_markdown(rows[:3]).endswith("another level: none.")


def test_every_kind_is_planted_in_the_committed_table() -> None:
    with TABLE.open(newline="", encoding="utf-8") as file:
        there = {row["planted"] for row in csv.DictReader(file)}
    assert there == set(PLANTABLE)


def test_a_table_that_is_stopped_while_it_grows_keeps_whole_parts(tmp_path: Path) -> None:
    add = runpy.run_path(str(ROOT / "experiments" / "cascade" / "growing.py"))["add"]
    file = tmp_path / "table.csv"

    def stopped() -> Iterator[dict[str, int]]:
        yield {"d": 3}
        raise KeyboardInterrupt

    for d in (1, 2):
        add(file, ["d"], [{"d": d}])
    with pytest.raises(KeyboardInterrupt):
        add(file, ["d"], stopped())
    assert file.read_text() == "d\n1\n2\n" and list(tmp_path.iterdir()) == [file]


def test_a_control_counts_what_is_right_and_what_is_labelled_there(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = confusion.control_of("CART", 2, "reference", 2, shop)
    assert (row["episodes"], row["correct"], row["blamed"], row["sound"]) == (2, 2, 0, 2)
    made = Labelled(
        "CART", 2, 0, 3, 3, "submit", True, False, (Mistake(2, "wrong product", fate="persisted"),)
    )
    monkeypatch.setattr(confusion, "label", lambda trajectory, shop: made)
    row = confusion.control_of("CART", 2, "reference", 2, shop)
    assert (row["correct"], row["blamed"], row["sound"]) == (2, 2, 0), "it stands, and the end is correct"


def test_in_the_committed_controls_nothing_is_found_where_nothing_is_wrong() -> None:
    with TABLE.with_name("controls.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    table = confusion.controls_as_markdown(rows)
    assert table in PAGE.read_text("utf-8"), "run: python experiments/cascade/controls.py --draw"
    assert {row["env"] for row in rows} == set(ENVIRONMENTS)
    assert all(row["sound"] == row["episodes"] for row in rows)
    assert all(row["blamed"] == "0" for row in rows if row["player"] != "perturbed")
