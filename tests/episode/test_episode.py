"""Turns, ends, tools and scores: what an episode promises, on CART."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from ecomlab import ENVIRONMENTS, Difficulty, Episode, Shop, Task, TaskError, make_task, play
from ecomlab.difficulty import AXES
from ecomlab.episode.play import ReplayError, record, replay
from ecomlab.laws.attackers import SUBMIT, calls, text
from ecomlab.reward import PUBLISHED, Weights, cart_credit, efficiency, hallucination, share_used
from ecomlab.seeding import digest, rng
from ecomlab.suggest import UnknownEnvironmentError, unknown
from ecomlab.task import Message
from ecomlab.tool import FormatError, tool

# Names, seeds, difficulty.


def test_unknown_names_get_a_suggestion(shop: Shop) -> None:
    with pytest.raises(UnknownEnvironmentError, match="did you mean 'CART'"):
        make_task("CRAT", 0, 0, shop)
    assert unknown("colour", "zzz", ["red"]) == "no colour 'zzz'; there are red"
    with pytest.raises(ValueError, match="did you mean 'p_noise'"):
        Difficulty.at(3, p_nose=0.1)


@pytest.mark.parametrize(
    ("d", "seed", "overrides"),
    [
        (-1, 0, {}),
        (1.5, 0, {}),
        (True, 0, {}),
        (0, -1, {}),
        (0, 1.0, {}),
        (0, "1", {}),
        (0, 0, {"p_oos": 2}),
        (0, 0, {"top_k": 20.5}),
        (0, 0, {"p_noise": "much"}),
    ],
)
def test_wrong_parameters_are_refused(d: Any, seed: Any, overrides: Any, shop: Shop) -> None:
    with pytest.raises(ValueError, match="not"):
        make_task("CART", d, seed, shop, overrides)


def test_the_published_figures_of_the_axes() -> None:
    at = [Difficulty.at(d) for d in (0, 6, 12)]
    assert [a.constraints for a in at] == [2, 5, 8]
    assert [round(a.p_missing, 2) for a in at] == [0.05, 0.70, 0.80]
    assert [round(a.eps_rank, 2) for a in at] == [0, 0.12, 0.24]
    assert [round(a.p_oos, 2) for a in at] == [0, 0.30, 0.50]
    assert [(a.turn_slack, a.tool_slack, a.top_k, a.k_rec, a.history, a.branches) for a in at] == [
        (4, 8, 200, 3, 5, 1),
        (2, 5, 140, 5, 8, 3),
        (1, 2, 80, 7, 11, 5),
    ]
    assert [round(a.p_noise, 3) for a in at] == [0, 0.06, 0.12]
    assert [round(a.p_switch, 2) for a in at] == [0.05, 0.37, 0.58]
    assert len(AXES) == 12


@given(st.integers(0, 200))
def test_no_axis_leaves_its_range_at_any_level(d: int) -> None:
    axes = Difficulty.at(d)
    assert axes.override(axes.to_json()) == axes


def test_named_randomness_is_independent_of_everything_else() -> None:
    assert rng("a", 1).integers(1 << 30) == rng("a", 1).integers(1 << 30)
    assert rng("a", 1).integers(1 << 30) != rng("a", 2).integers(1 << 30)
    assert digest({"b": 1, "a": [2.5]}) == digest({"a": [2.5], "b": 1})
    with pytest.raises(ValueError, match="JSON"):
        digest(float("nan"))


# Rewards, by hand.


def composed(task: float, efficiency: float, hallucination: float, weights: Weights = PUBLISHED) -> float:
    return weights.compose({"task": task, "efficiency": efficiency, "hallucination": hallucination})


def test_reward_parts_by_hand() -> None:
    assert composed(1, 1, 0) == 0.9
    assert composed(-1, -1, -1) == -1.0
    assert composed(-1, -1, 0) == -0.9
    assert composed(0.5, -1, -1, Weights(task=1, efficiency=0)) == 0.4
    assert composed(1, 1, 1, Weights(task=1)) == 1.0
    assert cart_credit(matched=2, near=0, got=2, wanted=2) == 1
    assert cart_credit(matched=0, near=0, got=0, wanted=2) == -1
    assert cart_credit(matched=1, near=0, got=1, wanted=2) == pytest.approx(2 * 2 / 3 - 1)
    assert cart_credit(matched=0, near=1, got=1, wanted=1) == -0.5
    assert cart_credit(matched=1, near=0, got=15, wanted=1) == -1  # everything ever listed
    assert efficiency(True, 0, 0) == 1
    assert efficiency(True, 1, 0.5) == -0.5
    assert efficiency(False, 0, 0) == -1
    assert share_used(3, 3, 4) == 0
    assert share_used(5, 3, 4) == 0.5
    assert share_used(99, 3, 4) == 1
    assert hallucination(["a", "b"], {"a"}) == -0.5
    assert hallucination([], {"a"}) == 0


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(1, 9))
def test_only_the_exact_cart_earns_the_whole_task_reward(
    matched: int, near: int, others: int, wanted: int
) -> None:
    matched = min(matched, wanted)
    near = min(near, wanted - matched)
    credit = cart_credit(matched, near, matched + near + others, wanted)
    assert -1 <= credit <= 1
    assert (credit == 1) == (matched == wanted and others == 0)


# Tools and invalid output.


def test_a_tool_schema_comes_from_the_signature() -> None:
    @tool
    def lend(
        world: Any,
        book: Annotated[str, Field(description="Its title.")],
        days: int = 7,
        to: str | None = None,
    ) -> None:
        """Lend a book."""

    assert lend.schema["function"] == {
        "name": "lend",
        "description": "Lend a book.",
        "parameters": {
            "properties": {
                "book": {"description": "Its title.", "type": "string"},
                "days": {"default": 7, "type": "integer"},
                "to": {"type": "string"},
            },
            "required": ["book"],
            "type": "object",
        },
    }
    for said, taken in (
        ({"book": "Emma"}, ("Emma", 7, None)),
        ({"book": ["Emma"], "days": "3", "to": None}, ("Emma", 3, None)),
        ({"book": 1984, "days": 3.0, "to": ""}, ("1984", 3, "")),
        ({"book": "Emma", "days": ""}, ("Emma", 7, None)),
    ):
        assert tuple(lend.check(said).values()) == taken
    for bad, why in (
        ({}, "book: is needed"),
        (None, "book: is needed"),
        ({"book": None}, "book: should"),
        ({"book": ["Emma", "Persuasion"]}, "book: should"),
        ({"book": "Emma", "days": 1.5}, "days: should"),
        ({"book": "Emma", "days": True}, "days: should"),
        ({"book": "Emma", "days": "a week"}, "days: should"),
        ({"book": "Emma", "day": 1}, "did you mean 'days'"),
        ([1], "as a JSON object"),
    ):
        with pytest.raises(FormatError, match=why):
            lend.check(bad)


INVALID: dict[str, Any] = {
    "malformed JSON": {
        "role": "assistant",
        "tool_calls": [{"function": {"name": "submit", "arguments": "{"}}],
    },
    "not a number": {
        "role": "assistant",
        "tool_calls": [{"function": {"name": "cart_ad", "arguments": '{"x": NaN}'}}],
    },
    "arguments encoded twice": {
        "role": "assistant",
        "tool_calls": [{"function": {"name": "cart_view", "arguments": '"{}"'}}],
    },
    "said by the parser": {"role": "assistant", "content": "x", "invalid": "bad JSON"},
    "not a call": {"role": "assistant", "tool_calls": ["submit"]},
    "not an assistant": {"role": "user", "content": "hello"},
    "not a message": "hello",
}


@pytest.mark.parametrize("name", INVALID)
def test_invalid_output_ends_at_once_with_minus_one(name: str, shop: Shop) -> None:
    episode = Episode(make_task("CART", 0, 0, shop), shop)
    turn = episode.act(INVALID[name])
    assert (turn.done, turn.end) == (True, "invalid")
    score = episode.score()
    assert (score.value, score.correct) == (-1.0, False)
    assert score.why.startswith("invalid output: ")
    with pytest.raises(RuntimeError, match="over"):
        episode.act(SUBMIT)


# Format errors.

SLIPS_OF_FORM: dict[str, tuple[Message, str]] = {
    "unknown tool": (calls(("cart_ad", {"product_id": "x"})), "did you mean 'cart_add'?"),
    "missing argument": (calls(("cart_add", {})), "product_id"),
    "wrongly typed": (calls(("cart_add", {"product_id": {"id": 7}})), "product_id"),
    "half a unit": (calls(("cart_add", {"product_id": "x", "quantity": 2.5})), "quantity"),
    "an argument that does not exist": (calls(("cart_view", {"why": 1})), "no key 'why'"),
    "none of the choices": (calls(("catalog_search", {"query": "x", "sort": "cheap"})), "'price'"),
    "a list of arguments": (
        {"role": "assistant", "tool_calls": [{"function": {"name": "submit", "arguments": "[1]"}}]},
        "as a JSON object: done",
    ),
}


@pytest.mark.parametrize("name", SLIPS_OF_FORM)
def test_a_slip_of_form_is_an_error_that_costs_its_turn_and_the_third_ends_the_episode(
    name: str, shop: Shop
) -> None:
    message, why = SLIPS_OF_FORM[name]
    episode = Episode(make_task("CART", 0, 0, shop), shop)
    for count in (1, 2, 3):
        turn = episode.act(message)
        assert why in json.loads(turn.messages[0]["content"])["error"]
        assert (episode.turn, episode.world.calls) == (count, 0)
        assert turn.end == ("invalid" if count == 3 else None)
    assert episode.score().value == -1.0 and why in episode.score().why
    assert replay(record(episode), shop) == episode.score()


def test_slips_in_one_message_count_once_and_valid_calls_beside_them_run(shop: Shop) -> None:
    episode = Episode(make_task("CART", 0, 0, shop), shop)
    both = calls(("cart_ad", {}), ("user_get_visit_history", {}), ("cart_add", {}))
    for _ in range(2):
        slip, visits, other = (json.loads(m["content"]) for m in episode.act(both).messages[:3])
        assert list(slip) == list(other) == ["error"] and visits["visits"]
    assert not episode.done and episode.subtask.format_errors == 2 and episode.world.calls == 2


def test_strict_ends_at_the_first_slip_and_the_record_says_so(shop: Shop) -> None:
    task = make_task("CART", 0, 0, shop)
    wrong = SLIPS_OF_FORM["missing argument"][0]
    strict = play(lambda messages, tools: wrong, task, shop, strict=True)
    assert (strict.end, strict.turns, strict.score.value) == ("invalid", 1, -1.0)
    assert replay(strict, shop) == strict.score
    with pytest.raises(ReplayError):
        replay(replace(strict, strict=False), shop)
    lenient = play(lambda messages, tools: wrong, task, shop)
    assert (lenient.end, lenient.turns) == ("invalid", 3)


def test_a_record_cut_before_its_end_does_not_replay(shop: Shop) -> None:
    task = make_task("CART", 4, 1, shop)
    whole = play(ENVIRONMENTS["CART"].reference_player(shop), task, shop)
    assert replay(whole, shop) == whole.score
    said = [i for i, message in enumerate(whole.messages) if message["role"] == "assistant"]
    for cut in said[1:]:
        for end in ("truncated", "failed"):
            with pytest.raises(ReplayError, match="turns"):
                replay(replace(whole, messages=whole.messages[:cut], end=end), shop)


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "no product": ("cart_add", {"product_id": "P000000"}),
    "quantity": ("cart_add", {"product_id": "@first", "quantity": 0}),
    "more of": ("cart_add", {"product_id": "@first", "quantity": 99}),
    "variant": ("cart_add", {"product_id": "@first", "variant_id": "Plaid Stars"}),
    "line": ("cart_remove", {"product_id": "@first"}),
    "pages": ("catalog_search", {"query": "x", "page": 0}),
    "no attribute ''": ("catalog_search", {"query": "x", "attributes": {"": "Red"}}),
    "did you mean 'color'": ("catalog_search", {"query": "x", "attributes": {"colour": "Red"}}),
    "Octarine": ("catalog_search", {"query": "x", "attributes": {"color": "Octarine"}}),
    "did you mean 'Lunch Box'": ("catalog_search", {"query": "x", "category": "Lunchbx"}),
    "no brand": ("catalog_search", {"query": "x", "brand": "zzz"}),
    "words": ("catalog_search", {"price_max": 20}),
    "handed in": ("submit", {"done": False}),
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_legal_call_that_fails_says_why_and_the_episode_goes_on(why: str, shop: Shop) -> None:
    task = make_task("CART", 0, 0, shop)
    episode = Episode(task, shop)
    rows = [i for i in range(shop.catalog.size) if 0 < shop.catalog.stock[i] < 90]
    name, arguments = REFUSED[why]
    arguments = {k: shop.catalog.ids[rows[0]] if v == "@first" else v for k, v in arguments.items()}
    turn = episode.act(calls((name, arguments)))
    assert not turn.done
    assert why in json.loads(turn.messages[0]["content"])["error"]
    assert episode.world.cart == {}


def test_filters_are_read_whatever_their_case_and_number(shop: Shop) -> None:
    def found(**filters: Any) -> str:
        turn = Episode(make_task("CART", 0, 0, shop), shop).act(
            calls(("catalog_search", {"query": "x", **filters}))
        )
        return str(turn.messages[0]["content"])

    assert found(category="lunch boxes", attributes={"Color": "red"}) == found(
        category="Lunch Box", attributes={"color": "Red"}
    )
    assert found(page=None, in_stock=None, brand=None) == found(), "null is what may be left out"


def test_the_tool_budget_is_an_error_not_an_end(shop: Shop) -> None:
    task = make_task("CART", 0, 0, shop)
    episode = Episode(task, shop)
    turn = episode.act(calls(*[("cart_view", {})] * (task.calls + 1)))
    results = [json.loads(m["content"]) for m in turn.messages]
    assert ["error" in r for r in results] == [False] * task.calls + [True]
    assert not turn.done
    assert episode.act(SUBMIT).end == "submit"


# The kinds of end.


def to_the_end(message: Message) -> Callable[[Any, Any], Message]:
    return lambda messages, tools: message


def test_a_right_cart_is_right_even_if_nobody_hands_it_in(shop: Shop) -> None:
    task = make_task("CART", 0, 0, shop)
    fair = ENVIRONMENTS["CART"].reference_player(shop)

    def dawdler(messages: list[Message], tools: Any) -> Message:
        message = fair(messages, tools)
        name = message["tool_calls"][0]["function"]["name"]
        return calls(("cart_view", {})) if name == "submit" else message

    trajectory = play(dawdler, task, shop)
    assert trajectory.end == "turns"
    assert trajectory.score.correct
    assert trajectory.score.parts["task"] == 1
    assert trajectory.score.parts["efficiency"] < 1


def test_patience_ends_the_episode(shop: Shop) -> None:
    again = to_the_end(text("Which brand would you like?"))
    trajectory = play(again, make_task("CART", 0, 0, shop), shop)
    assert (trajectory.end, trajectory.turns) == ("patience", 4)  # asked once is no stall
    assert not trajectory.score.correct


def test_doing_nothing_earns_nothing(shop: Shop) -> None:
    trajectory = play(to_the_end(SUBMIT), make_task("CART", 0, 0, shop), shop)
    assert trajectory.score.value == -0.9
    assert trajectory.score.parts == {"task": -1, "efficiency": -1, "hallucination": 0}


def test_what_no_tool_has_shown_counts_as_made_up(shop: Shop) -> None:
    task = make_task("CART", 0, 0, shop)
    episode = Episode(task, shop)
    product = next(i for i in range(shop.catalog.size) if shop.catalog.stock[i] > 9)
    episode.act(calls(("cart_add", {"product_id": shop.catalog.ids[product]})))
    episode.act(SUBMIT)
    assert episode.score().parts["hallucination"] == -1


# Tasks.


def test_a_task_of_another_version_or_shop_is_refused(shop: Shop, big_shop: Shop) -> None:
    task = make_task("CART", 0, 0, shop)
    with pytest.raises(TaskError, match="load the same catalog"):
        Episode(task, big_shop)
    with pytest.raises(TaskError, match="version 99"):
        Episode(replace(task, key=task.key._replace(version=99)), shop)
    with pytest.raises(TaskError, match=r"not a task that Task\.to_json wrote"):
        Task.from_json({"env": "CART"})


def test_an_override_moves_its_axis_and_leaves_the_draw(shop: Shop) -> None:
    plain = make_task("CART", 6, 3, shop)
    deeper = make_task("CART", 6, 3, shop, {"top_k": 20})
    assert (deeper.axes.top_k, plain.axes.top_k) == (20, 140)
    assert deeper.goal == plain.goal
    assert deeper.digest() != plain.digest()


BASKET = """
from ecomlab.envs.cart.env import Cart
class Basket(Cart):
    id = "{}"
"""


def test_an_environment_from_outside_joins_by_being_loaded(shop: Shop, tmp_path: Path) -> None:
    file = tmp_path / "basket.py"
    file.write_text(BASKET.format("BASKET"))
    try:
        assert ENVIRONMENTS.load(file) == ["BASKET"]
        trajectory = play(
            ENVIRONMENTS["BASKET"].reference_player(shop), make_task("BASKET", 4, 0, shop), shop
        )
        assert trajectory.score.correct
        assert ENVIRONMENTS.load(file) == ["BASKET"], "an edited file is loaded again"
    finally:
        del ENVIRONMENTS._found["BASKET"]


def test_the_reward_of_an_episode_has_its_own_weights_and_a_replay_has_them_too(shop: Shop) -> None:
    task = make_task("CART", 2, 0, shop)
    make = ENVIRONMENTS["CART"].reference_player
    plain = play(make(shop), task, shop)
    mine = play(make(shop), task, shop, weights=Weights(task=0.5, efficiency=0))
    assert plain.messages == mine.messages and plain.score.parts == mine.score.parts
    assert (plain.score.value, mine.score.value) == (0.9, 0.5)
    assert replay(mine, shop) == mine.score and mine.score.weights["efficiency"] == 0


@pytest.mark.parametrize("wrong", [{"task": float("nan")}, {"task": "1"}, {"tsk": 1.0}])
def test_weights_that_are_none_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="task|tsk"):
        Weights.of(wrong)
