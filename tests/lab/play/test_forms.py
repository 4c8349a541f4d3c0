"""Forms: every tool of every environment has one, and entries are read as a model's arguments are."""

import json
from typing import Annotated, Any, Literal

import pytest
from hands import entries_of
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field as Described

from ecomlab import ENVIRONMENTS
from ecomlab.episode.episode import ask_user
from ecomlab.lab.play.forms import Form, FormError
from ecomlab.tool import Tool, tool


@tool
def order(
    world: object,
    name: Annotated[str, Described(description="Whose it is.")],
    units: int = 1,
    most: float | None = None,
    how: Literal["by air", "by sea"] | None = None,
    gift: bool = False,
    product_ids: list[str] | None = None,
    about: dict[str, str] | None = None,
    rows: list[list[int]] | None = None,
) -> dict[str, Any]:
    """Take an order."""
    return {}


FORM = Form(order)


def tools_of(env: str) -> list[Tool]:
    found = ENVIRONMENTS[env]
    return [*found.offered.values(), ask_user, found.submit]


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_every_argument_of_every_tool_has_a_field(env: str) -> None:
    for one in tools_of(env):
        form = Form(one)
        assert {field.name for field in form.fields} == set(one.arguments.model_fields)
        assert [field.required for field in form.fields] == sorted(
            (name in one.required for name in one.arguments.model_fields), reverse=True
        )


@pytest.mark.parametrize(
    ("entries", "means"),
    [
        ({"units": "3", "about": " ", "gift": ""}, {"units": 3}),
        ({"most": "19.99"}, {"most": 19.99}),
        ({"how": "By_Sea"}, {"how": "by sea"}),
        ({"gift": "false"}, {"gift": False}),
        ({"product_ids": "P1, P 2"}, {"product_ids": ["P1", "P 2"]}),
        ({"product_ids": '["P1, 2"]'}, {"product_ids": ["P1, 2"]}),
        ({"product_ids": "[]"}, {"product_ids": []}),
        ({"about": '{"material": "Bamboo"}'}, {"about": {"material": "Bamboo"}}),
        ({"rows": "[[1]]"}, {"rows": [[1]]}),
    ],
)
def test_entries_are_read_as_a_models_arguments(entries: dict[str, str], means: dict[str, Any]) -> None:
    assert FORM.arguments({"name": " Ann ", **entries}) == {"name": "Ann", **means}


@pytest.mark.parametrize(
    ("entries", "word"),
    [
        ({"name": " "}, "name"),
        ({"units": "3.5"}, "units"),
        ({"how": "by see"}, "by sea"),
        ({"gift": "perhaps"}, "true or false"),
        ({"about": "Bamboo"}, "about"),
        ({"unit": "3"}, "'units'"),
    ],
)
def test_the_tool_itself_refuses_unclear_entries(entries: dict[str, str], word: str) -> None:
    with pytest.raises(FormError, match=word):
        FORM.arguments({"name": "Ann", **entries})


NAMES = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8)


@given(
    st.fixed_dictionaries(
        {"name": NAMES},
        optional={
            "units": st.integers(1, 99),
            "most": st.floats(0, 1e6),
            "how": st.sampled_from(["by air", "by sea"]),
            "gift": st.booleans(),
            "product_ids": st.lists(NAMES),
            "about": st.dictionaries(NAMES, NAMES, min_size=1),
        },
    )
)
def test_the_entries_of_a_call_read_back_as_the_call(arguments: dict[str, Any]) -> None:
    assert FORM.arguments(entries_of(arguments)) == json.loads(json.dumps(arguments))


def form(env: str, name: str) -> Form:
    return Form(next(one for one in tools_of(env) if one.name == name))


def test_a_pick_enters_ids_by_name_and_adds_to_lists() -> None:
    add, submit = form("CART", "cart_add"), form("PD", "submit")
    held = add.picked({"quantity": "2"}, {"product_id": "P1", "variant_id": "red"})
    assert held == {"quantity": "2", "product_id": "P1", "variant_id": "red"}
    assert add.picked(held, {"product_id": "P2"}) == {"product_id": "P2", "variant_id": "", "quantity": "2"}
    once = submit.picked({}, {"product_id": "P1"})
    twice = submit.picked(once, {"product_id": "P2"})
    assert submit.picked(twice, {"product_id": "P1"}) == {"product_ids": "P1, P2"}
    assert submit.picked(once, {"product_id": "P2"}, lists=False) == once
