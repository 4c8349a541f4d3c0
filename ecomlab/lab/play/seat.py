"""The agent's seat without any view: choose, reset, call tools and write to the customer, submit, look back, save."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.customer.llm import Chat, Wording
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode, ask_user
from ecomlab.episode.messages import MOST_CALLS
from ecomlab.episode.play import play, record
from ecomlab.episode.record import Trajectory
from ecomlab.evaluation.contestant import Job, customer_identity, customer_notes, customer_usage
from ecomlab.evaluation.evaluation import header_of
from ecomlab.evaluation.faults import faults_of
from ecomlab.evaluation.transcript import Transcript
from ecomlab.evaluation.transcripts import FILE, write
from ecomlab.lab.paths import resolve
from ecomlab.lab.play.choice import Choice, read_key, share_key
from ecomlab.lab.play.forms import Entries, Form
from ecomlab.lab.provenance import commit, versions
from ecomlab.lab.shops import catalog_named, record_of
from ecomlab.lab.truth import Fact, truth_of, wanted
from ecomlab.lab.view.acting import cart_of, returns_of
from ecomlab.markup.entries import Entry, conversation
from ecomlab.markup.results import call_in_a_line
from ecomlab.suggest import raised, unknown
from ecomlab.task import Message

RUNS = "experiments/runs/play"
"""Folder of episodes that were not told where to go."""
PLAYED = "played by hand"
"""Kind of the transcripts that are saved here."""
PLAYER = "human"


class SeatError(ValueError):
    """Something that cannot be done now; nothing was sent, and nothing was spent."""


@dataclass(frozen=True)
class Left:
    """The rest of an episode's budgets."""

    messages: int
    of_messages: int
    calls: int
    of_calls: int

    def __str__(self) -> str:
        return (
            f"{self.messages} of {self.of_messages} messages and {self.calls} of {self.of_calls} calls left"
        )


@dataclass(frozen=True)
class Call:
    """A call that waits to be sent."""

    tool: str
    arguments: Mapping[str, Any]

    @property
    def as_text(self) -> str:
        """Its arguments as they are sent."""
        return json.dumps(self.arguments, ensure_ascii=False)

    def __str__(self) -> str:
        return call_in_a_line(self.tool, self.as_text)


@dataclass(frozen=True)
class Outcome:
    """An episode that is over, the truth, and the same task as the reference player does it."""

    trajectory: Trajectory
    reference: Trajectory
    truth: tuple[Fact, ...]


@dataclass(frozen=True)
class Person:
    """The person in the seat, as the header of their transcripts names them."""

    customer: Chat | None = None

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"kind": "person", "model": PLAYER, "strict": False, **customer_identity(self.customer)}

    def play(self, jobs: Sequence[Job], shop: Shop) -> Iterator[Transcript]:
        raise TypeError("a person does not play by jobs; use ecomlab play --player human, or start_02_play")


class Seat:
    """A person's place in one episode after another. `customer` is an endpoint that words the customer; without it the
    templates are said."""

    def __init__(self, customer: Chat | None = None) -> None:
        self.customer = customer
        self.choice = Choice()
        self.draft: list[Call] = []
        """Calls that wait to be sent in one message."""
        self.saved: Path | None = None
        self._episode: Episode | None = None

    # --- choosing ---

    def reset(self, choice: Choice) -> None:
        """Begin the episode that `choice` names. Raises ValueError, and leaves the episode under way as it is."""
        wording = Wording(self.customer) if self.customer else None
        self._episode = Episode(choice.task(), choice.shop, wording=wording)
        self.choice, self.draft, self.saved = choice, [], None
        self.__dict__.pop("forms", None)
        self.__dict__.pop("outcome", None)

    def reset_to(self, key: str, folder: str | int | None = None) -> None:
        """Begin the episode of a key that somebody shared; a catalog in a folder is looked for in `folder`, by default
        in that chosen now. Raises ShareKeyError likewise."""
        choice, _ = read_key(key, folder or self.choice.catalog)
        self.reset(choice)

    @property
    def episode(self) -> Episode:
        """The episode under way, or the last one. Raises SeatError before the first."""
        if self._episode is None:
            raise SeatError("there is no episode yet; choose one and reset")
        return self._episode

    @property
    def key(self) -> str:
        """The key by which somebody else plays the same."""
        return share_key(self.choice, self.episode.task)

    # --- acting ---

    @cached_property
    def forms(self) -> dict[str, Form]:
        """The tools' forms by name."""
        env = ENVIRONMENTS[self.episode.task.env]
        return {tool.name: Form(tool) for tool in (*env.offered.values(), ask_user, env.submit)}

    def add(self, tool: str, entries: Entries) -> None:
        """Put a call into the message that is being written. Raises FormError or SeatError."""
        self._check_open()
        if tool not in self.forms:
            raise SeatError(unknown("tool", tool, self.forms))
        if len(self.draft) >= MOST_CALLS:
            raise SeatError(f"a message holds at most {MOST_CALLS} calls; send these first")
        self.draft.append(Call(tool, self.forms[tool].arguments(entries)))

    def take_back(self) -> None:
        """Take the last call out of the message that is being written."""
        if not self.draft:
            raise SeatError("no call is waiting")
        self.draft.pop()

    def call(self, tool: str, entries: Entries) -> list[Entry]:
        """Call a tool, after the calls that wait, in one message; return what came of it. Raises as `add` does."""
        self.add(tool, entries)
        return self.send()

    def say(self, text: str) -> list[Entry]:
        """Write to the customer and return what came of it. Beside calls that wait, it goes along by `ask_user`, for
        the customer reads nothing else that stands beside calls. Raises SeatError for an empty text."""
        self._check_open()
        if not text.strip():
            raise SeatError("write something first")
        if self.draft:
            return self.call("ask_user", {"question": text.strip()})
        return self._act({"role": "assistant", "content": text.strip()})

    def send(self) -> list[Entry]:
        """Send the calls that wait as one message; return what came of it. Raises SeatError if there is none."""
        self._check_open()
        if not self.draft:
            raise SeatError("no call is waiting; add one first")
        calls = [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": call.tool, "arguments": call.as_text},
            }
            for number, call in enumerate(self.draft)
        ]
        self.draft = []
        return self._act({"role": "assistant", "content": "", "tool_calls": calls})

    def _act(self, message: Message) -> list[Entry]:
        before = len(self.log)
        try:
            self.episode.act(message)
        except Exception as error:  # ours: the episode is unscored, and says so (BROKEN IS NOT WRONG)
            self.episode.fail(raised(error))
        return self.log[before:]

    def _check_open(self) -> None:
        if self.episode.done:
            raise SeatError("the episode is over; reset for another")

    # --- looking ---

    @property
    def done(self) -> bool:
        return self._episode is not None and self._episode.done

    @property
    def job(self) -> str:
        """The agent's work, as every agent is told."""
        return ENVIRONMENTS[self.episode.task.env].brief

    @property
    def log(self) -> list[Entry]:
        """Everything that happened, in order."""
        return conversation(self.episode.messages)

    @property
    def latest(self) -> list[Entry]:
        """The entries of the last message; at the start, the opening."""
        found = self.log
        return [entry for entry in found if entry.number == found[-1].number]

    @property
    def left(self) -> Left:
        task, world = self.episode.task, self.episode.world
        return Left(
            task.turns - self.episode.turn, task.turns, world.call_budget - world.calls, world.call_budget
        )

    @property
    def holdings(self) -> dict[str, list[dict[str, Any]]]:
        """The cart and the returns that the agent has made, as far as this environment lets it."""
        held = {"cart": cart_of(self.episode), "returns": returns_of(self.episode)}
        changes = ENVIRONMENTS[self.episode.task.env].acts_on
        return {name: lines for name, lines in held.items() if name in changes}

    # --- afterwards ---

    @cached_property
    def outcome(self) -> Outcome:
        """The outcome of the episode. Raises SeatError while it goes on: the truth would tell what to do."""
        episode = self.episode
        if not episode.done:
            raise SeatError("the episode goes on; the truth is shown when it is over")
        player = ENVIRONMENTS[episode.task.env].reference_player(episode.shop)
        goals = [(part.env.id, part.goal) for part in episode.subtasks[: episode.opened]]
        truth = [*truth_of(episode.task), *(wanted(goals) if episode.fired else ())]
        return Outcome(record(episode), play(player, episode.task, episode.shop), tuple(truth))

    def save(self, folder: str | Path = RUNS) -> Path:
        """Write the episode as transcripts, in a folder of its own within `folder`, and return that one's path.

        `ecomlab eval --rescore` and everything else that reads transcripts takes it. Saved again, it stays where it is.
        Raises SeatError while the episode goes on.
        """
        if self.saved is not None:
            return self.saved
        made, choice, env = self.outcome.trajectory, self.choice, self.episode.task.env
        job = Job(env, choice.difficulty, choice.seed, axes=dict(made.task.overrides))
        broken, notes = "bug" if made.score.unscored else "", {"key": self.key, **customer_notes(made)}
        transcript = Transcript.of(job, made, customer_usage(made), faults_of(made), broken, notes)
        cells = {"envs": [env], "levels": [choice.difficulty], "tasks": 1, "trials": 1}
        header = header_of(
            PLAYED, PLAYER, Person(self.customer), [env], job.axes, self.episode.shop,
            record_of(catalog_named(choice.catalog)), cells=cells,
            made_with={"commit": commit(), "libraries": versions()},
        )  # fmt: skip
        tries = (resolve(folder) / f"{env}-d{choice.difficulty}-seed{choice.seed}-{n}" for n in count(1))
        path = next(path for path in tries if not path.exists())
        write(path / FILE, header, [transcript])
        self.saved = path
        return path
