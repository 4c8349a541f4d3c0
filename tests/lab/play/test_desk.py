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
    made.chooser.env.value, made.chooser.difficulty.value, made.chooser.seed.value = env, 4, 1
    made.chooser.reset.click()
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
    made.chooser.reset.click()
    assert made.over.value == "" and not made.call.disabled
    assert made.seat.left.messages == made.seat.left.of_messages
    assert len(made.picks.children) == 0 and "turn 1" not in text(made.talk)


@pytest.mark.parametrize(
    ("field", "value", "word"),
    [
        ("axes", "p_missing=half", "half"),
        ("axes", "p_missing=2", "2.0"),
        ("catalog", "2", "108"),
        ("catalog", "nowhere", "nowhere"),
    ],
)
def test_a_wrong_choice_is_said_where_it_is_made_and_changes_nothing(
    shop: Shop, field: str, value: str, word: str
) -> None:
    made = desk()
    before = made.seat.episode
    getattr(made.chooser, field).value = value
    made.chooser.reset.click()
    assert word in text(made.wrong_choice) and made.seat.episode is before
