"""Sentences of people-like agents in whole episodes, and answers to them that a fair reader found right.

Agents who had not seen the code played 31 episodes at d = 8 by hand. A line of `played.jsonl` is one of them: its
moves, each a text and the tools called beside it, and by the number of a move the acts that answer it, with their
slots; courtesies are left out. It holds for the version of the environment that it names: a later
one draws other tasks.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from ecomlab import ENVIRONMENTS, Episode, Shop, make_task
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
LEAST = 0.72
"""Share of the answers that have to be those of a fair reader; SPEC asks for 29 in 30, which is judged elsewhere."""


def of_today() -> list[dict[str, Any]]:
    """The episodes whose tasks are drawn today."""
    return [played for played in PLAYED if played["version"] == ENVIRONMENTS[played["env"]].version]


def message(said: str, called: list[tuple[str, dict[str, Any]]]) -> Message:
    return {**calls(*called), "content": said} if called else text(said)


def drawn(task: Task) -> str:
    """Digest what is wanted, withheld and to happen, and the world; words and budgets may be others."""
    record = task.to_json()
    parts = [record, *record["subtasks"]]
    return digest([[part["goal"], part["events"]] for part in parts] + [record["world"]])


def heard_in(played: dict[str, Any], shop: Shop) -> Iterator[tuple[str, Any, Any]]:
    """Play an episode again; yield what was said, what answered it and what a fair reader would answer."""
    episode = Episode(make_task(played["env"], played["d"], played["seed"], shop), shop)
    if drawn(episode.task) != played["drawn"]:
        pytest.fail("the task is drawn otherwise: these moves are for another one")
    for number, (said, called) in enumerate(played["moves"][: max(map(int, played["heard"])) + 1]):
        if episode.done:
            pytest.fail(f"move {number} no longer fits: the episode is over ({episode.end}): {said}")
        with patch.object(
            episode.customer.speaker, "sentences", wraps=episode.customer.speaker.sentences
        ) as say:
            new = episode.act(message(said, called)).messages
        refused = [name for name, result in results(new) if "error" in result]
        if refused != played["refused"].get(str(number), []):
            pytest.fail(f"move {number} no longer fits: {refused} are refused")
        acts = [act for spoken in say.call_args_list for act in spoken.args[0] if act.kind not in COURTESIES]
        if str(number) in played["heard"]:
            yield said, [[act.kind, dict(act.slots)] for act in acts], played["heard"][str(number)]


@pytest.mark.skipif(not of_today(), reason="all of the tasks played are of earlier versions: play some anew")
def test_what_people_said_is_mostly_answered_as_a_fair_reader_would(big_shop: Shop) -> None:
    answers = [answer for played in of_today() for answer in heard_in(played, big_shop)]
    missed = [f"{said}\n  {heard}\n  rather than {fair}" for said, heard, fair in answers if heard != fair]
    assert len(missed) <= (1 - LEAST) * len(answers), "\n".join(missed)
    assert len(answers) >= len(of_today())
