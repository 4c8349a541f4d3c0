"""Sentences of people-like agents in whole episodes, and answers to them that a fair reader found right.

Agents who had not seen the code played 31 episodes at d = 8 by hand. A line of `played.jsonl` is one of them: its
moves, each a text and the tools called beside it, and by the number of a move the acts that answer it, with their
slots; courtesies are left out.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from ecomlab import Episode, Shop, make_task
from ecomlab.customer.reactions import table
from ecomlab.laws.attackers import calls, text
from ecomlab.laws.tool_introspection import results
from ecomlab.seeding import digest
from ecomlab.task import Message, Task

PLAYED = [
    json.loads(line) for line in Path(__file__).with_name("played.jsonl").read_text("utf-8").splitlines()
]
COURTESIES = {reaction.says for reaction in table().values() if reaction.social}
"""Acts that are said beside an answer, and not looked at here."""
MISHEARD = {
    ("STATUS", 7502, 3): "a day is heard to be asked for beside what is pointed at",
    ("POLICY", 7602, 2): "a question whether it is so is taken for thanks",
    ("PD", 7304, 4): "the rest is not heard to be asked for beside named slots",
    ("SUB", 7403, 2): "a choice of two is taken for a summary, and one of its two makers denied",
    ("SUB", 7404, 2): "of a choice of two only the color is heard",
    ("SUB", 7404, 4): "whether it has to be pink again is not heard",
    ("JOURNEY", 7803, 2): "a kind of thing that is asked for is asked back",
    ("JOURNEY", 7803, 12): "features are not heard beside a budget",
    ("JOURNEY", 7801, 6): "what is told of versions is taken for a question",
    ("BUNDLE", 7703, 2): "what about the other thing is not heard beside a summary",
    ("CART", 7103, 1): "the material is not heard beside the color",
    ("CART", 7104, 1): "a maker is heard to be asked for beside a color",
    ("RETURN", 7202, 4): "a maker is heard to be asked for beside what is pointed at",
    ("RETURN", 7203, 1): "which of three is taken for a question for the maker",
    ("RETURN", 7204, 0): "what it looks like is heard as its maker alone",
}
"""Answers that are not right yet, by environment, seed and move."""


def message(said: str, called: list[tuple[str, dict[str, Any]]]) -> Message:
    return {**calls(*called), "content": said} if called else text(said)


def drawn(task: Task) -> str:
    """Digest what is wanted, withheld and to happen, and the world; words and budgets may be others."""
    record = task.to_json()
    parts = [record, *record["subtasks"]]
    return digest([[part["goal"], part["events"]] for part in parts] + [record["world"]])


def cases() -> Iterator[Any]:
    for played in PLAYED:
        for number, expected in played["heard"].items():
            at = (played["env"], played["seed"], int(number))
            why = MISHEARD.get(at)
            marks = [pytest.mark.xfail(reason=why)] if why else []
            yield pytest.param(played, int(number), expected, marks=marks, id="-".join(map(str, at)))


@pytest.mark.parametrize(("played", "last", "expected"), list(cases()))
def test_what_people_said_is_answered_as_a_fair_reader_would(
    played: dict[str, Any], last: int, expected: Any, big_shop: Shop
) -> None:
    episode = Episode(make_task(played["env"], played["d"], played["seed"], big_shop), big_shop)
    if drawn(episode.task) != played["drawn"]:
        pytest.fail("the task is drawn otherwise: these moves are for another one")
    for number, (said, called) in enumerate(played["moves"][: last + 1]):
        if episode.done:
            pytest.fail(f"move {number} no longer fits: the episode is over ({episode.end}): {said}")
        with patch.object(
            episode.customer.speaker, "sentences", wraps=episode.customer.speaker.sentences
        ) as say:
            new = episode.act(message(said, called)).messages
        refused = [name for name, result in results(new) if "error" in result]
        if refused != played["refused"].get(str(number), []):
            pytest.fail(f"move {number} no longer fits: {refused} are refused")
    acts = [act for spoken in say.call_args_list for act in spoken.args[0]]
    heard = [[act.kind, dict(act.slots)] for act in acts if act.kind not in COURTESIES]
    assert heard == expected, said
