"""Courtesy: a player that talks like a shop assistant. It asks for one or two things at a time, asks whether what it
found is right before it acts, and says when it is done."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ecomlab.settings import Strict, read_toml
from ecomlab.slots import slot_type
from ecomlab.task import Message
from ecomlab.values import joined

FILE = Path(__file__).with_name("courtesy.toml")
ACTS = ("cart_add", "return_initiate", "submit")
"""Tools before whose first use it asks for confirmation."""
AT_ONCE = 2
"""Maximum number of things in one question."""
NAMED = 3
"""Maximum number of things in one request for confirmation."""


class _File(Strict):
    """Schema of the file of sentences."""

    slots: dict[str, tuple[str, ...]]
    attribute: tuple[str, ...]
    more: tuple[str, ...]
    confirm: tuple[str, ...]
    confirm_all: tuple[str, ...]
    done: tuple[str, ...]


@cache
def sentences() -> _File:
    """Read the sentences of courteous players."""
    return read_toml(FILE, _File)


def questions_for(slot: str) -> tuple[str, ...]:
    """List the questions for a slot; none for one that cannot be asked for by name."""
    return sentences().slots.get(slot) or slot_type(slot).questions


class Courtesy:
    """The sentences of one player in one conversation: which questions are left, what was seen, what was said."""

    def __init__(self, slots: Sequence[str]) -> None:
        self.slots = list(slots)
        self.said = 0
        self.titles: dict[str, str] = {}
        self.confirmed = self.finished = False

    def question(self, known: Sequence[str]) -> str:
        """Word the next question: two things that are not known yet, and whether there is anything else."""
        left = [name for name in self.slots if name not in known]
        asked, self.slots = left[:AT_ONCE], left[AT_ONCE:]
        file = sentences()
        parts = [self._pick(questions_for(name)) for name in asked if questions_for(name)]
        parts += [
            self._pick(file.attribute).replace("{}", name.removeprefix("attr:").replace("_", " "))
            for name in asked
            if name.startswith("attr:")
        ]
        return " ".join([*parts, self._pick(file.more)])

    def before(self, message: Message) -> Message | None:
        """Make the words before a message that acts for the first time or submits; None for any other."""
        calls = [(c["function"]["name"], c["function"]["arguments"]) for c in message.get("tool_calls") or ()]
        acting = [json.loads(arguments) for name, arguments in calls if name in ACTS]
        if not acting:
            return None
        if not self.confirmed:
            self.confirmed = True
            return _text(self._confirmation(acting))
        if not self.finished and any(name == "submit" for name, _ in calls):
            self.finished = True
            return _text(self._pick(sentences().done))
        return None

    def saw(self, result: Any) -> None:
        """Remember the titles of products and lines, and the days of orders."""
        for record in _records(result):
            for name in ("product_id", "line_id"):
                if name in record and "title" in record:
                    self.titles[record[name]] = f"the {record['title']}"
            if "order_id" in record and "placed" in record:
                self.titles[record["order_id"]] = f"the order of {record['placed']}"

    def _confirmation(self, acting: Sequence[Mapping[str, Any]]) -> str:
        named = [
            self.titles[value]
            for arguments in acting
            for name in ("line_id", "product_id", "product_ids", "order_id")
            for value in _listed(arguments.get(name))
            if value in self.titles and not (name == "order_id" and "line_id" in arguments)
        ]
        file = sentences()
        if not 0 < len(named) <= NAMED:
            return self._pick(file.confirm_all)
        return self._pick(file.confirm).replace("{}", joined(list(dict.fromkeys(named))))

    def _pick(self, options: Sequence[str]) -> str:
        self.said += 1
        return options[self.said % len(options)]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _records(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    for entry in value if isinstance(value, list) else ():
        yield from _records(entry)


def _text(words: str) -> Message:
    return {"role": "assistant", "content": words}
