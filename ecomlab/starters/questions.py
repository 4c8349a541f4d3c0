"""Questions of demonstrators: a closed list of natural sentences, most of which name one thing and are open as well."""

from collections.abc import Collection
from functools import cache
from pathlib import Path

from ecomlab.settings import Strict, read_toml

FILE = Path(__file__).with_name("questions.toml")


class _File(Strict):
    """Schema of the file of questions."""

    open: tuple[str, ...]
    first: dict[str, tuple[str, ...]]
    named: dict[str, str]


@cache
def questions() -> _File:
    """Read the questions."""
    return read_toml(FILE, _File)


def all_questions() -> list[str]:
    """List every question that a demonstrator may ask."""
    return [*questions().named.values(), *questions().open]


class Questions:
    """The questions that are left in one conversation."""

    def __init__(self, env: str) -> None:
        self._names = list(questions().first.get(env, ()))
        self._open = 0

    def next(self, known: Collection[str]) -> str:
        """Word the next question: for the first slot that is not `known` yet, under its name or that of what it was,
        then open ones, the last again and again."""
        while self._names:
            name = self._names.pop(0)
            if not {name, name.removeprefix("was_")} & set(known):
                return questions().named[name]
        self._open += 1
        return questions().open[min(self._open, len(questions().open)) - 1]
