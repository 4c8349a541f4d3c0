"""A seat for a language model that writes one message after another: it sees what an endpoint would be sent.

    python experiments/cascade/readers/seat.py new NAME ENV D SEED    # rules, tools and the customer's opening
    python experiments/cascade/readers/seat.py act NAME FILE          # one assistant message; results and answer
    python experiments/cascade/readers/seat.py show NAME              # the whole conversation so far

FILE holds the message as a model writes it: text, or any number of <tool_call> blocks; "-" is standard input. What was
said is kept in seats/NAME.json and played again each time. Truth, score and verdict are never shown.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from places import SEATS, SIZE

from ecomlab.catalog import Shop, load_shop
from ecomlab.episode.episode import Episode, make_task
from ecomlab.evaluation.endpoint.templates import TEMPLATES
from ecomlab.files import read_json, write_json
from ecomlab.task import Message

TEMPLATE = TEMPLATES["hermes"]
ENDS = {
    "submit": "everything was handed in",
    "turns": "the last message was used",
    "patience": "the customer has left",
    "invalid": "the message could not be read, or had one slip of form too many",
}
"""Why an episode is over, in words that tell nothing of its score."""


@dataclass(frozen=True)
class Seat:
    """An episode as far as it was played: the task's name, and every message as it was written."""

    name: str
    env: str
    d: int
    seed: int
    size: int = SIZE
    said: Sequence[str] = field(default_factory=tuple)

    @classmethod
    def read(cls, name: str) -> "Seat":
        """Read a seat. Raises SystemExit where there is none."""
        kept = read_json(SEATS / f"{name}.json")
        if kept is None:
            raise SystemExit(f"there is no seat {name!r}; begin it: seat.py new {name} ENV D SEED")
        return cls(**kept)

    def write(self) -> None:
        """Keep the seat."""
        SEATS.mkdir(exist_ok=True)
        write_json(SEATS / f"{self.name}.json", asdict(self))

    def episode(self, shop: Shop | None = None) -> Episode:
        """Play the episode as far as it has come."""
        shop = shop or load_shop(self.size)
        episode = Episode(make_task(self.env, self.d, self.seed, shop), shop)
        for text in self.said:
            episode.act(TEMPLATE.read(text))
        return episode


def shown(episode: Episode, since: int = 0) -> str:
    """Write the messages from number `since` on as a model reads them, and whether the episode is over."""
    written: list[Message] = TEMPLATE.write(episode.messages[since:], episode.tools)
    parts = [f"[{message['role']}]\n{message['content']}" for message in written]
    if episode.done:
        parts.append(f"[the conversation is over: {ENDS.get(str(episode.end), episode.end)}]")
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    does = parser.add_subparsers(dest="do", required=True)
    new, act, show = (does.add_parser(name) for name in ("new", "act", "show"))
    for one in (new, act, show):
        one.add_argument("name")
    new.add_argument("env")
    new.add_argument("d", type=int)
    new.add_argument("seed", type=int)
    act.add_argument("file")
    asked = parser.parse_args()
    if asked.do == "new" and (SEATS / f"{asked.name}.json").exists():
        raise SystemExit(f"seat {asked.name!r} is taken; go on with act, or take another name")
    seat = Seat(asked.name, asked.env, asked.d, asked.seed) if asked.do == "new" else Seat.read(asked.name)
    episode, since = seat.episode(), 0
    if asked.do == "act":
        if episode.done:
            raise SystemExit("the conversation is over")
        text = sys.stdin.read() if asked.file == "-" else Path(asked.file).read_text("utf-8")
        since = len(episode.messages) + 1  # what the model has just written need not be shown
        episode.act(TEMPLATE.read(text))
        seat = replace(seat, said=(*seat.said, text))
    if asked.do != "show":
        seat.write()
    print(shown(episode, since))


if __name__ == "__main__":
    main()
