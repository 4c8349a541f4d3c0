"""Sentences of people-like agents in whole episodes, and answers to them that a fair reader found right.

Agents who had not seen the code played 31 episodes at d = 8 by hand. A line of `played.jsonl` is one of them: its
moves, each a text and the tools called beside it, and by the number of a move the acts that answer it, with their
slots.
"""

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from ecomlab import Episode, Shop, make_task
from ecomlab.audit.attackers import calls, text
from ecomlab.audit.surface import results
from ecomlab.task import Message

PLAYED = [
    json.loads(line) for line in Path(__file__).with_name("played.jsonl").read_text("utf-8").splitlines()
]


def message(said: str, called: list[tuple[str, dict[str, Any]]]) -> Message:
    return {**calls(*called), "content": said} if called else text(said)


@pytest.mark.parametrize("played", PLAYED, ids=lambda played: f"{played['env']}-{played['seed']}")
def test_what_people_said_is_answered_as_a_fair_reader_would(played: dict[str, Any], big_shop: Shop) -> None:
    episode = Episode(make_task(played["env"], played["d"], played["seed"], big_shop), big_shop)
    assert episode.task.opening == played["opening"], (
        "the task is drawn otherwise: these moves are for another one"
    )
    for number, (said, called) in enumerate(played["moves"]):
        assert not episode.done, f"move {number} no longer fits: the episode is over ({episode.end}): {said}"
        speaker = episode.customer.speaker
        with patch.object(speaker, "say", wraps=speaker.say) as say:
            new = episode.act(message(said, called)).messages
        refused = [name for name, result in results(new) if "error" in result]
        expected = played["refused"].get(str(number), [])
        assert refused == expected, f"move {number} no longer fits: {refused} are refused"
        if str(number) in played["heard"]:
            heard = [[act.kind, dict(act.slots)] for spoken in say.call_args_list for act in spoken.args[0]]
            assert heard == played["heard"][str(number)], said
