"""The agent's seat without any view: choose, reset, call tools and write to the customer, submit, look back, save."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.customer.llm import Chat, Wording
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode
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
from ecomlab.lab.play.forms import Entries, Form, forms_of
from ecomlab.lab.provenance import commit, versions
from ecomlab.lab.shops import record_of
from ecomlab.lab.truth import Fact, Part, parts_of, truth_of, wanted
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
    """What is left of an episode's budgets."""

    messages: int
    of_messages: int
    calls: int
    of_calls: int

    def __str__(self) -> str:
        return (
            f"{self.messages} of {self.of_messages} messages and {self.calls} of {self.of_calls} calls left"
        )


@dataclass(frozen=True)
class Line:
    """One line of the cart, or one return that was started."""

    title: str
    ids: Mapping[str, str]
    quantity: int


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
    """What is shown when an episode is over: the reward and why, the truth, and how it would have been done."""

    trajectory: Trajectory
    reference: Trajectory
    """The same task as the reference player does it, which sees what a model sees."""
    truth: tuple[Fact, ...]

    @property
    def parts(self) -> list[Part]:
        return parts_of(self.trajectory.score)

    @property
    def verdict(self) -> str:
        """The outcome in a line: reward, correctness, reason."""
        score = self.trajectory.score
        if score.unscored:
            return f"unscored, for something of ours failed: {score.why}"
        return f"reward {score.value:.3f}, {'correct' if score.correct else 'not correct'}: {score.why}"


@dataclass(frozen=True)
class Person:
    """The person in the seat, as the header of their transcripts names them."""

    customer: Chat | None = None

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"kind": "person", "model": PLAYER, "strict": False, **customer_identity(self.customer)}

    def play(self, jobs: Sequence[Job], shop: Shop) -> Iterator[Transcript]:
        raise TypeError("a person does not play by jobs; use ecomlab play --player human, or start_play")


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
        self._begin(choice, Episode(choice.task(), choice.shop, wording=self._wording()))

    def reset_to(self, key: str, folder: str = "") -> None:
        """Begin the episode of a key that somebody shared; a catalog in a folder is looked for in `folder`, by
        default in that chosen now. Raises ShareKeyError likewise."""
        choice, task = read_key(key, folder or self.choice.folder)
        self._begin(choice, Episode(task, choice.shop, wording=self._wording()))

    def _wording(self) -> Wording | None:
        return Wording(self.customer) if self.customer else None

    def _begin(self, choice: Choice, episode: Episode) -> None:
        self.choice, self._episode, self.draft, self.saved = choice, episode, [], None
        self.__dict__.pop("forms", None)
        self.__dict__.pop("outcome", None)

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
        return forms_of(self.episode.tools)

    def add(self, tool: str, entries: Entries) -> None:
        """Put a call into the message that is being written. Raises FormError or SeatError."""
        self._check_open()
        if tool not in self.forms:
            raise SeatError(unknown("tool", tool, self.forms))
        if len(self.draft) >= MOST_CALLS:
            raise SeatError(f"a message holds at most {MOST_CALLS} calls; send these first")
        self.draft.append(Call(tool, self.forms[tool].arguments(entries)))

    def take_back(self, number: int = -1) -> None:
        """Take a call, by default the last, out of the message that is being written."""
        if not self.draft:
            raise SeatError("no call is waiting")
        del self.draft[number]

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
        """What the agent is told of its work; of several jobs, a line each."""
        env = ENVIRONMENTS[self.episode.task.env]
        told = env.brief
        for heading in env.phrases.data.get("headings", {}).values():
            told = told.replace(f" {heading}: ", f"\n- {heading}: ")
        return told

    @property
    def log(self) -> list[Entry]:
        """Everything that happened, in order."""
        return conversation(self.episode.messages)

    @property
    def latest(self) -> list[Entry]:
        """What the last message brought; at the start, the opening."""
        found = self.log
        return [entry for entry in found if entry.number == found[-1].number]

    @property
    def left(self) -> Left:
        task, world = self.episode.task, self.episode.world
        return Left(
            task.turns - self.episode.turn, task.turns, world.call_budget - world.calls, world.call_budget
        )

    @property
    def cart(self) -> list[Line]:
        """The cart, which is the agent's own doing."""
        world = self.episode.world
        return [
            Line(
                world.catalog.title(world.row(product)),
                {"product_id": product} | ({"variant_id": variant} if variant else {}),
                units,
            )
            for (product, variant), units in world.cart.items()
        ]

    @property
    def returns(self) -> list[Line]:
        """Returns that the agent has started. Their titles are known from the orders that were looked up."""
        known = {
            (card.ids.get("order_id"), card.ids["line_id"]): card.title
            for entry in self.log
            for card in (entry.result.cards if entry.result else ())
            if {"line_id", "product_id"} <= set(card.ids)
        }
        return [
            Line(known.get((order, line), line), {"order_id": order, "line_id": line}, units)
            for (order, line), units in self.episode.world.returns.items()
        ]

    @property
    def holdings(self) -> list[tuple[str, list[Line]]]:
        """What the agent has made of what this environment lets it change: (name, lines)."""
        changes = ENVIRONMENTS[self.episode.task.env].acts_on
        known = {"cart": ("cart", self.cart), "returns": ("returns started", self.returns)}
        return [known[what] for what in known if what in changes]

    # --- afterwards ---

    @cached_property
    def outcome(self) -> Outcome:
        """What came of the episode. Raises SeatError while it goes on: the truth would tell what to do."""
        episode = self.episode
        if not episode.done:
            self.__dict__.pop("outcome", None)
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
        catalog = record_of(choice.folder or choice.size, choice.catalog)
        cells = {"envs": [env], "levels": [choice.difficulty], "tasks": 1, "trials": 1}
        header = header_of(
            PLAYED, PLAYER, Person(self.customer), [env], job.axes, self.episode.shop, catalog, cells=cells,
            made_with={"commit": commit(), "libraries": versions()},
        )  # fmt: skip
        path = _free(resolve(folder), f"{env}-d{choice.difficulty}-seed{choice.seed}")
        write(path / FILE, header, [transcript])
        self.saved = path
        return path


def _free(folder: Path, name: str) -> Path:
    """Find the first name in a folder that is not taken."""
    number = 1
    while (path := folder / f"{name}-{number}").exists():
        number += 1
    return path
