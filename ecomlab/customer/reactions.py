"""Acts of messages and the customer's reactions to them, as data (`acts.toml`), and who the customer is."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import field_validator

from ecomlab.customer.acts import Act
from ecomlab.customer.reading.model import ACTS
from ecomlab.customer.reading.reading import Reading
from ecomlab.seeding import pick, rng
from ecomlab.settings import Strict, read_toml
from ecomlab.suggest import unknown

_FOLDER = Path(__file__).parent


class Reaction(Strict):
    """How the customer reacts to an act."""

    free: str
    """Ground on which the message costs no turn: a name in `reward.FREE`."""
    says: str = ""
    """Kind of the customer's act where they say nothing else."""
    social: bool = False
    """It is said beside an answer as well."""


class _Table(Strict):
    """Schema of acts.toml."""

    acts: dict[str, Reaction]

    @field_validator("acts")
    @classmethod
    def known(cls, acts: dict[str, Reaction]) -> dict[str, Reaction]:
        for name in acts:
            if name not in ACTS:
                raise ValueError(unknown("act", name, ACTS))
        return acts


class _Names(Strict):
    first: tuple[str, ...]
    last: tuple[str, ...]


@cache
def table() -> Mapping[str, Reaction]:
    """Read the reactions by act, in the order in which one is chosen."""
    return read_toml(_FOLDER / "acts.toml", _Table).acts


@cache
def _names() -> _Names:
    """Read the names of customers, once: a reset reads no file."""
    return read_toml(_FOLDER / "person.toml", _Names)


def done_by(reading: Reading) -> frozenset[str]:
    """Name the grounds on which a message may be free, by what it does; what it only tells counts where it does
    nothing else."""
    acts = [act for act in table() if act in reading.acts]
    calling = [act for act in acts if table()[act].free != "courtesy"]
    return frozenset(table()[act].free for act in calling or acts)


def phrase(acts: Collection[str], beside: bool) -> list[Act]:
    """Choose what is said to these acts where nothing else is, or `beside` an answer: at most one social phrase, and
    before it what an act that calls for something gets."""
    held = [reaction for name, reaction in table().items() if name in acts and reaction.says]
    social = [one for one in held if one.social][:1]
    rest = [] if beside else [one for one in held if not one.social]
    calling = [one for one in rest if one.free != "courtesy"]
    return [Act(one.says) for one in (*social, *(calling or rest)[:1])]


@dataclass(frozen=True)
class Person:
    """Who the customer is."""

    first: str
    last: str

    @classmethod
    def of(cls, key: Sequence[Any]) -> "Person":
        """Draw who the customer of an episode is."""
        random, names = rng("person", *key), _names()
        return cls(pick(random, names.first), pick(random, names.last))

    @property
    def email(self) -> str:
        return f"{self.first}.{self.last}@example.com".lower()

    def tells(self, text: str) -> list[Act]:
        """Answer a question who they are: by name and e-mail address, as far as these are asked for; numbers they do
        not have at hand."""
        said = text.lower()
        asked = {kind for kind, words in _IDENTITY.items() if words.search(said)}
        acts = [Act("name", seen=f"{self.first} {self.last}")] if "name" in asked or not asked else []
        acts += [Act("email", seen=self.email)] if "email" in asked else []
        return acts + ([Act("no order number")] if "number" in asked else [])


_IDENTITY = {
    "name": re.compile(r"\b(?:name|who (?:am|are)|whom)\b"),
    "email": re.compile(r"\be-?mails?\b|\bmail address\b"),
    "number": re.compile(
        r"\border (?:no|id|ref\w*)\b|\bnumber\b|\bpost ?code|\bzip\b|\bphone\b|(?<!mail )\baddress\b"
    ),
}
"""Words by which a question who they are asks for what."""
