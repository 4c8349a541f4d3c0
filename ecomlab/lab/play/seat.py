"""The agent's seat without any view: choose, reset, call tools and write to the customer, submit, look back, save."""

import json
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import NamedTuple

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
from ecomlab.markup.entries import CUSTOMER, Entry, conversation
from ecomlab.markup.results import call_in_a_line, plain
from ecomlab.suggest import raised, unknown
from ecomlab.task import Message

RUNS = "experiments/runs/play"
"""Folder of episodes that were not told where to go."""
PLAYED = "played by hand"
"""Kind of the transcripts that are saved here."""
PLAYER = "human"


class SeatError(ValueError):
    """Something that cannot be done now; nothing was sent, and nothing was spent."""


class Left(NamedTuple):
    """The rest of an episode's budgets."""

    messages: int
    of_messages: int
    calls: int
    of_calls: int

    def __str__(self) -> str:
        return (
            f"{self.messages} of {self.of_messages} messages and {self.calls} of {self.of_calls} calls left"
        )


class Outcome(NamedTuple):
    """An episode that is over, the truth, and the same task as the reference player does it."""

    trajectory: Trajectory
    reference: Trajectory
    truth: tuple[Fact, ...]


class Seat:
    """A person's place in one episode after another. `customer` is an endpoint that words the customer; without it the
    templates are said."""

    def __init__(self, customer: Chat | None = None) -> None:
        self.customer = customer
        self.choice = Choice()
        self.draft: list[tuple[str, str]] = []
        """Calls that wait to be sent in one message: tool, and arguments in JSON."""
        self.saved: Path | None = None
        self._episode: Episode | None = None

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
        self.reset(read_key(key, folder or self.choice.catalog)[0])

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
        """Put a call into the message that is being written; ids may be in any case. Raises FormError or SeatError."""
        self._check_open()
        if tool not in self.forms:
            raise SeatError(unknown("tool", tool, self.forms))
        if len(self.draft) >= MOST_CALLS:
            raise SeatError(f"a message holds at most {MOST_CALLS} calls; send these first")
        cards = [card for entry in self.log if entry.result for card in entry.result.cards]
        seen = {name.casefold(): name for card in cards for name in card.ids.values()}
        arguments = self.forms[tool].arguments(entries, seen)
        self.draft.append((tool, json.dumps(arguments, ensure_ascii=False)))

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
            {"id": f"call_{n}", "type": "function", "function": {"name": tool, "arguments": arguments}}
            for n, (tool, arguments) in enumerate(self.draft)
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
        """The agent's work, as every agent is told; in a journey, each job begins a line."""
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
    def said(self) -> list[str]:
        """The customer's lines so far, the opening first."""
        return [entry.text for entry in self.log if entry.who == CUSTOMER]

    @property
    def left(self) -> Left:
        task, world = self.episode.task, self.episode.world
        return Left(
            task.turns - self.episode.turn, task.turns, world.call_budget - world.calls, world.call_budget
        )

    @property
    def waiting(self) -> list[str]:
        """The calls that wait, a line each."""
        return [call_in_a_line(*call) for call in self.draft]

    @property
    def holdings(self) -> dict[str, list[str]]:
        """The cart and the returns that the agent has made, a line each, as far as this environment lets it."""
        changes, held = ENVIRONMENTS[self.episode.task.env].acts_on, dict[str, list[str]]()
        for name, lines in (("cart", cart_of(self.episode)), ("returns", returns_of(self.episode))):
            if name in changes:
                held[name] = [plain({key: value for key, value in line.items() if value}) for line in lines]
                if name == "cart" and lines:
                    total = sum(line["units"] * float(line["each"].removeprefix("$")) for line in lines)
                    held[name].append(f"total: ${total:,.2f}")
        return held

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
        """Write the episode as transcripts, in a folder of its own within `folder`, and return that one's path; saved
        again, it stays where it is. `ecomlab eval --rescore` and whatever else reads transcripts takes it.

        Raises SeatError while the episode goes on.
        """
        if self.saved is None:
            made, choice, env = self.outcome.trajectory, self.choice, self.episode.task.env
            job = Job(env, choice.difficulty, choice.seed, axes=dict(made.task.overrides))
            broken, notes = "bug" if made.score.unscored else "", {"key": self.key, **customer_notes(made)}
            transcript = Transcript.of(job, made, customer_usage(made), faults_of(made), broken, notes)
            identity = {
                "kind": "person",
                "model": PLAYER,
                "strict": False,
                **customer_identity(self.customer),
            }
            header = header_of(
                PLAYED, PLAYER, identity, [env], job.axes, self.episode.shop,
                record_of(catalog_named(choice.catalog)),
                cells={"envs": [env], "levels": [choice.difficulty], "tasks": 1, "trials": 1},
                made_with={"commit": commit(), "libraries": versions()},
            )  # fmt: skip
            tries = (resolve(folder) / f"{env}-d{choice.difficulty}-seed{choice.seed}-{n}" for n in count(1))
            path = next(path for path in tries if not path.exists())
            write(path / FILE, header, [transcript])
            self.saved = path
        return self.saved
