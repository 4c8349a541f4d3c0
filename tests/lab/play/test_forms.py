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
        assert set(Form(one).fields) == set(one.arguments.model_fields)
        required = [field.required for field in Form(one).fields.values()]
        assert required == sorted(required, reverse=True)


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
    entries = entries_of(arguments)
    typed = FORM.typed(" ".join(f"{name}={text}" for name, text in entries.items()))
    assert FORM.arguments(entries) == FORM.arguments(typed) == json.loads(json.dumps(arguments))


@pytest.mark.parametrize(
    ("line", "means"),
    [
        ("category=Baking Tray price_max=30", {"category": "Baking Tray", "price_max": 30}),
        ('query="tray" attributes={"color": "Navy"}', {"query": "tray", "attributes": {"color": "Navy"}}),
        ("red mug page=2", {"query": "red mug", "page": 2}),
        ("query='it is a man's'", {"query": "'it is a man's'"}),
        ('query=""', {"query": ""}),
        ("", {}),
    ],
)
def test_a_call_is_typed_without_quotes(line: str, means: dict[str, Any]) -> None:
    search = form("CART", "catalog_search")
    assert search.arguments(search.typed(line)) == means


def test_words_that_belong_to_no_argument_are_refused() -> None:
    with pytest.raises(FormError, match="product_id=.*quantity="):
        form("CART", "cart_set_quantity").typed("P1 2")


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
