"""The widget, driven without a browser: what a person can press leads where it should, and errors stand in place."""

import re
from html import unescape
from pathlib import Path
from typing import Any

import ipywidgets
import pytest
from hands import WORDS, entries_of, moves

from ecomlab.catalog import Shop
from ecomlab.evaluation.transcripts import read
from ecomlab.lab.play.choice import Choice
from ecomlab.lab.play.desk import Desk
from ecomlab.lab.play.seat import Seat

SIZE = 1_000


def desk(env: str = "CART", difficulty: int = 2, seed: int = 3, out: Path | str = "unused") -> Desk:
    return Desk(Choice(env, difficulty, seed, catalog=SIZE), out=out)


def enter(field: ipywidgets.Text) -> None:
    """Press Enter in a text field."""
    field._handle_custom_msg({"event": "submit"}, [])


def fill(made: Desk, tool: str, arguments: dict[str, Any]) -> None:
    """Choose a tool, empty its form and fill it in."""
    made.tool.value = tool
    made.clear.click()
    for name, entry in entries_of(arguments).items():
        made.views[tool].fields[name].value = entry


def follow(made: Desk) -> None:
    """Play as the reference player does, by what can be typed and pressed."""
    for calls in moves(made.seat):
        if [tool for tool, _ in calls] in (["ask_user"], [WORDS]):
            made.words.value = calls[0][1]["question"]
            enter(made.words)
            continue
        for tool, arguments in calls[:-1]:
            fill(made, tool, arguments)
            made.add.click()
        fill(made, *calls[-1])
        made.call.click()
        assert (made.wrong_call.value, made.wrong_words.value) == ("", "")


def text(widget: ipywidgets.HTML) -> str:
    """What a page shows of it."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", widget.value)).split())


@pytest.mark.parametrize("env", ["BUNDLE", "RETURN", "JOURNEY"])
def test_an_environment_can_be_finished_saved_and_begun_again_in_the_widget(
    env: str, shop: Shop, tmp_path: Path
) -> None:
    made = desk(out=tmp_path)
    made.env.value, made.difficulty.value, made.seed.value = env, 4, 1
    made.reset_button.click()
    assert made.wrong_choice.value == "" and made.seat.choice == Choice(env, 4, 1, catalog=SIZE)
    follow(made)
    assert made.seat.outcome.trajectory.score.correct
    assert text(made.over).startswith("correct, reward 0.900")
    assert made.ended.layout.display == "" and made.call.disabled and made.words.disabled
    made.save.click()
    made.save.click()
    (path,) = tmp_path.iterdir()
    (transcript,) = read(path)
    assert transcript.score.correct and path.name in text(made.wrong_save)
    made.reset_button.click()
    assert made.over.value == "" and not made.call.disabled
    assert made.seat.left.messages == made.seat.left.of_messages
    assert len(made.picks.children) == 0 and "turn 1" not in text(made.talk)


def test_a_key_brings_its_axes_and_a_wrong_one_changes_nothing(shop: Shop) -> None:
    made, other = desk(), Seat()
    other.reset(Choice("STATUS", 3, 1, {"p_missing": 1.0}, SIZE))
    made.key.value = other.key
    enter(made.key)
    assert made.seat.choice == other.choice and made.env.value == "STATUS"
    under_way = made.seat.episode
    made.key.value = other.key[:-2]
    enter(made.key)
    assert "changed" in text(made.wrong_choice) and made.seat.episode is under_way
    made.seed.value = 2
    made.reset_button.click()
    assert made.seat.choice == Choice("STATUS", 3, 2, {"p_missing": 1.0}, SIZE)


def test_a_pick_enters_the_ids_of_its_row_and_a_mistake_is_told_in_place(shop: Shop) -> None:
    made = desk()
    made.tool.value = "cart_add"
    made.views["cart_add"].fields["quantity"].value = "many"
    made.call.click()
    assert "is needed" in text(made.wrong_call) and made.seat.left.messages == made.seat.left.of_messages
    fill(made, "catalog_search", {"query": "toy"})
    made.call.click()
    found = made.seat.log[-1].result or made.seat.log[-2].result
    assert found
    picks = [child for row in made.picks.children for child in getattr(row, "children", ())]
    next(one for one in picks if isinstance(one, ipywidgets.Button)).click()
    assert made.views["cart_add"].entries["product_id"] == found.cards[0].ids["product_id"]
