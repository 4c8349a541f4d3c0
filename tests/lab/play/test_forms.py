"""Forms: every tool of every environment has one, and what a person enters means what they would think."""

import json
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field as Described

from ecomlab import ENVIRONMENTS
from ecomlab.episode.episode import ask_user
from ecomlab.lab.play.forms import Form, FormError, entries_of
from ecomlab.tool import Tool, tool


@tool
def order(
    world: object,
    name: Annotated[str, Described(description="Whose it is.")],
    units: int = 1,
    most: float | None = None,
    how: Literal["by air", "by sea"] | None = None,
    gift: bool = False,
    wrapped: bool = True,
    product_ids: list[str] | None = None,
    about: dict[str, str] | None = None,
    rows: list[list[int]] | None = None,
) -> dict[str, Any]:
    """Take an order."""
    return {}


FORM = Form.of(order.schema)


def read(**entries: Any) -> dict[str, Any]:
    return FORM.arguments({"name": "Ann", "wrapped": True, **entries})


def tools_of(env: str) -> list[Tool]:
    found = ENVIRONMENTS[env]
    return [*found.offered.values(), ask_user, found.submit]


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_every_argument_of_every_tool_has_a_field_of_its_kind(env: str) -> None:
    for one in tools_of(env):
        form = Form.of(one.schema)
        assert {field.name for field in form.fields} == set(one.arguments.model_fields)
        assert {field.name for field in form.fields if field.required} == set(one.required)
        assert not [field for field in form.fields if field.kind == "json"], "nobody has to write JSON"


def test_required_fields_come_first_and_each_is_of_its_kind() -> None:
    kinds = {field.name: field.kind for field in FORM.fields}
    assert kinds == {
        "name": "text", "units": "whole", "most": "number", "how": "choice", "gift": "flag", "wrapped": "flag",
        "product_ids": "list", "about": "pairs", "rows": "json",
    }  # fmt: skip
    assert (FORM.fields[0].about, FORM.fields[0].required) == ("Whose it is.", True)
    assert all(field.hint for field in FORM.fields[1:])


def test_what_is_empty_is_left_out() -> None:
    empty = {field.name: field.start for field in FORM.fields}
    assert FORM.arguments({**empty, "name": " Ann "}) == {"name": "Ann", "wrapped": True}


@pytest.mark.parametrize(
    ("entries", "means"),
    [
        ({"units": "3"}, {"units": 3}),
        ({"units": "3.0"}, {"units": 3}),
        ({"most": "19.99"}, {"most": 19.99}),
        ({"most": "20"}, {"most": 20}),
        ({"how": "By_Sea"}, {"how": "by sea"}),
        ({"gift": True}, {"gift": True}),
        ({"gift": False}, {}),
        ({"gift": "no"}, {"gift": False}),
        ({"wrapped": False}, {"wrapped": False}),
        ({"product_ids": "P1, P2;P3\nP4"}, {"product_ids": ["P1", "P2", "P3", "P4"]}),
        ({"product_ids": "P1 P2"}, {"product_ids": ["P1", "P2"]}),
        ({"product_ids": '["P1", "P 2"]'}, {"product_ids": ["P1", "P 2"]}),
        ({"product_ids": "[]"}, {"product_ids": []}),
        ({"about": "material = Bamboo; color: Black"}, {"about": {"material": "Bamboo", "color": "Black"}}),
        ({"about": "scale: 1:32"}, {"about": {"scale": "1:32"}}),
        ({"about": "power=2,000 W, color=Red"}, {"about": {"power": "2,000 W", "color": "Red"}}),
        ({"about": '{"material": "Bamboo"}'}, {"about": {"material": "Bamboo"}}),
        ({"rows": "[[1]]"}, {"rows": [[1]]}),
    ],
)
def test_entries_mean_what_a_person_would_think(entries: dict[str, Any], means: dict[str, Any]) -> None:
    assert read(**entries) == {"name": "Ann", "wrapped": True} | means


@pytest.mark.parametrize(
    ("entries", "word"),
    [
        ({"name": "  "}, "needed"),
        ({"units": "3.5"}, "'3.5'"),
        ({"units": "two"}, "'two'"),
        ({"most": "cheap"}, "'cheap'"),
        ({"most": "nan"}, "'nan'"),
        ({"how": "by see"}, "'by sea'"),
        ({"gift": "perhaps"}, "'perhaps'"),
        ({"product_ids": "[1]"}, "texts"),
        ({"product_ids": "[1"}, "JSON"),
        ({"about": "Bamboo"}, "'Bamboo'"),
        ({"about": '{"a": 1}'}, "texts"),
        ({"unit": "3"}, "'units'"),
    ],
)
def test_what_is_unclear_is_refused_by_field(entries: dict[str, Any], word: str) -> None:
    with pytest.raises(FormError, match=word) as raised:
        read(**entries)
    assert list(raised.value.fields) == list(entries)


NAMES = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8)


@given(
    st.fixed_dictionaries(
        {"name": NAMES},
        optional={
            "units": st.integers(1, 99),
            "most": st.floats(0, 1e6),
            "how": st.sampled_from(["by air", "by sea"]),
            "wrapped": st.booleans(),
            "product_ids": st.lists(NAMES),
            "about": st.dictionaries(NAMES, NAMES, min_size=1),
        },
    )
)
def test_the_entries_of_a_call_read_back_as_the_call(arguments: dict[str, Any]) -> None:
    entries = {"wrapped": True, **entries_of(FORM, arguments)}
    assert FORM.arguments(entries) == {"wrapped": True, **json.loads(json.dumps(arguments))}


# --- picking ---


def form(env: str, name: str) -> Form:
    return Form.of(next(one.schema for one in tools_of(env) if one.name == name))


def test_a_pick_enters_ids_by_name_and_adds_to_lists() -> None:
    assert form("CART", "cart_add").picked({"quantity": "2"}, {"product_id": "P1", "variant_id": "red"}) == {
        "quantity": "2", "product_id": "P1", "variant_id": "red",
    }  # fmt: skip
    submit = form("PD", "submit")
    once = submit.picked({}, {"product_id": "P1"})
    twice = submit.picked(once, {"product_id": "P2"})
    assert submit.picked(twice, {"product_id": "P1"}) == {"product_ids": "P1, P2"}


def test_another_pick_clears_what_lay_within_the_last() -> None:
    add = form("CART", "cart_add")
    held = {"product_id": "P1", "variant_id": "red", "quantity": "2"}
    assert add.picked(held, {"product_id": "P2"}) == {"product_id": "P2", "variant_id": "", "quantity": "2"}
    assert add.picked(held, {"product_id": "P1"}) == held


def test_a_product_goes_where_a_form_describes_one() -> None:
    submit = form("RETURN", "submit")
    line = submit.picked({}, {"order_id": "O1", "line_id": "L1", "product_id": "P1"})
    assert line == {"order_id": "O1", "line_id": "L1"}
    assert submit.picked(line, {"product_id": "P2"}) == {**line, "replacement": "P2"}
