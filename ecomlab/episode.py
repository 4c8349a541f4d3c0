"""One episode: assistant messages in; tool results and the customer's replies out; a score at the end."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import Field

from ecomlab import reward
from ecomlab.catalog import Shop
from ecomlab.core import (
    ENVIRONMENTS,
    Draft,
    Environment,
    Event,
    Message,
    Need,
    Task,
    TaskError,
    Verdict,
)
from ecomlab.customer.kernel import Kernel, Reply
from ecomlab.customer.ledger import TOPICS, Ledger
from ecomlab.customer.lexicon import lexicon_of
from ecomlab.customer.words import Act, Words
from ecomlab.difficulty import Difficulty
from ecomlab.reward import Score
from ecomlab.tooling import InvalidCallError, RefusedError, Tool, find, tool
from ecomlab.world.overlay import World

MOST_CALLS = 64
"""Tool calls in one message."""
MOST_TEXT = 20_000
"""Characters in one message, and in one call's arguments."""
SYSTEM = (
    "You are a shop assistant. {brief} Use the tools to act; a message without a tool call goes to the customer, "
    "who answers. Use only product and variant ids that a tool has shown. When the job is done, call submit."
)


@tool
def ask_user(
    world: World,
    question: Annotated[str, Field(description="What to ask the customer.")],
    about: Annotated[
        list[str] | None, Field(description=f"What the question is about, any of: {', '.join(TOPICS)}.")
    ] = None,
) -> dict[str, Any]:
    """Ask the customer a question when a detail is missing. Name everything you want to know at once."""
    raise AssertionError("the episode passes questions to the customer itself")


@dataclass(frozen=True)
class Turn:
    """What one assistant message led to."""

    messages: list[Message]
    """Tool results and customer messages that came back, in order."""
    done: bool
    end: str | None
    """submit, turns, patience, invalid, truncated or failed; None while the episode goes on."""


@dataclass(frozen=True)
class Trajectory:
    """A played episode: its task, everything that was said, how it ended and what it earned."""

    task: Task
    messages: list[Message]
    end: str | None
    score: Score
    turns: int
    calls: int


def make_task(
    env: str, difficulty: int, seed: int, shop: Shop, overrides: Mapping[str, float] | None = None
) -> Task:
    """Draw the task that (env, its version, difficulty, overrides, seed, shop) names.

    Raises UnknownEnvironmentError, or ValueError for a level, axis or seed that does not exist.
    """
    environment = ENVIRONMENTS[env]
    overrides = dict(overrides or {})
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ValueError(f"a seed is a whole number from 0 up, not {seed!r}")
    axes = Difficulty.at(difficulty, **overrides)
    key = (env, environment.version, difficulty, seed, shop.fingerprint)
    return task_of(environment, environment.draw(key, axes, shop), key, axes, shop, overrides)


def task_of(
    environment: Environment,
    draft: Draft,
    key: tuple[Any, ...],
    axes: Difficulty,
    shop: Shop,
    overrides: Mapping[str, float] = MappingProxyType({}),
    part: bool = False,
) -> Task:
    """The task that a draft makes: its opening in words, its budgets. `part`: of the journey that `key` names."""
    _, _, difficulty, seed, fingerprint = key
    named = (*key, environment.id) if part else key
    words = Words(lexicon_of(shop.catalog), axes.p_noise, named, environment.sayings, environment.acts)
    turns, calls = draft.need.with_events([(latest(draft.need, e), e) for e in draft.events], draft.need.asks)
    return Task(
        env=environment.id,
        version=environment.version,
        difficulty=difficulty,
        overrides=dict(overrides),
        seed=seed,
        fingerprint=fingerprint,
        opening=draft.opening
        or words.opening(
            draft.items,
            draft.complete,
            draft.leads or environment.leads,
            environment.lists,
            draft.said,
            environment.closings,
            greet=not part,
            joins=environment.joins,
        ),
        world=draft.world,
        truth=draft.truth,
        need=draft.need,
        events=draft.events,
        turns=turns + axes.turn_slack,
        calls=calls + axes.tool_slack,
    )


def latest(need: Need, event: Event) -> int:
    """The turn after which a fair player hears of an event at the latest."""
    return max(event.turn, need.turns) if event.silent else event.turn


class Job:
    """What the customer wants of one environment and how far it has come: all of a plain task, a part of a journey.

    Environments work on jobs; a job knows nothing of the episode around it, so that a finished one is freed at once.
    """

    def __init__(self, task: Task, shop: Shop, world: World, journey: Sequence[Any] = ()) -> None:
        self.task, self.shop, self.world = task, shop, world
        self.env = ENVIRONMENTS[task.env]
        self.state = self.env.begin(task, shop)
        topics = {name: saying.topic for name, saying in self.env.sayings.items()}
        ledger = Ledger(*self.env.slots(task), topics=topics, which=self.env.which)
        self.kernel = Kernel(ledger, partial(self.env.type_name, task, self.state))
        named = (*task.key, *journey)
        self.words = Words(
            lexicon_of(shop.catalog), task.axes.p_noise, named, self.env.sayings, self.env.acts
        )
        self.turn = 0
        self.answer: dict[str, Any] | None = None
        self.verdict: Verdict | None = None
        """At the time of handing in."""
        self.useful_asks = 0
        self.fired: list[tuple[int, Event]] = []
        """Events that changed something, with the turn after which they were heard."""
        self._pending = list(task.events)
        self._silent: list[Event] = []

    def hand_in(self, answer: dict[str, Any]) -> None:
        """The agent says that this is it."""
        self.answer = answer
        self.verdict = self.env.verify(self)

    def needed(self) -> tuple[int, int]:
        """(turns, calls) that a fair player needs for this job as it went, handing in included."""
        need = self.task.need
        # An event counts from when it could be heard, not from when a slow agent came to hear of it.
        fired = [(min(turn, latest(need, event)), event) for turn, event in self.fired]
        return need.with_events(fired, min(self.useful_asks, need.asks))

    def hear(self, text: str) -> list[Act]:
        """The customer's answer to a message without a tool call."""
        lowered = text.lower()
        mentioned = set()
        for product_id in self.world.shown:
            row = self.world.row(product_id)
            if product_id.lower() in lowered or self.world.catalog.title(row).lower() in lowered:
                mentioned.add(self.world.catalog.type_of(row).name)
        reply: Reply | None = self.kernel.presented(sorted(mentioned)) if mentioned else None
        if reply is None:
            claims = self.kernel.claims_done(text)
            reply = self.kernel.told_done(self.env.missing(self)) if claims else self.kernel.asked(text, ())
        self.useful_asks += reply.revealed
        return reply.acts

    def corrections(self) -> list[Act]:
        """What the customer says about what they see is wrong."""
        skipped = self.kernel.skipped
        return self.kernel.corrections([f for f in self.env.faults(self) if f.subject not in skipped])

    def events(self) -> list[Act]:
        """Let what is due happen, and let the customer hear of it."""
        acts: list[Act] = []
        due = [event for event in self._pending if event.turn <= self.turn]
        heard = [event for event in self._silent if self.env.heard(self, event)]
        for event in due:
            self._pending.remove(event)
            self.env.occur(self, event)
            if event.silent:
                self._silent.append(event)
            else:
                heard.append(event)
        for event in heard:
            if event in self._silent:
                self._silent.remove(event)
            if event.subject in self.kernel.skipped:
                continue  # they have given it up and do not come back to it
            said = self.env.fire(self, event)
            if said is not None:
                self.fired.append((self.turn, event))
                acts += said
        return acts


@dataclass
class Episode:
    """One episode of a task, then discarded; the only mutable object. Not to be shared between threads."""

    task: Task
    shop: Shop
    messages: list[Message] = field(default_factory=list)
    turn: int = 0
    end: str | None = None
    why: str = ""

    def __post_init__(self) -> None:
        task, shop = self.task, self.shop
        self.env = ENVIRONMENTS[task.env]
        if task.version != self.env.version:
            raise TaskError(
                f"the task is {task.env} version {task.version}, this is version {self.env.version}; "
                "make it again with make_task, or install the ecomlab that made it"
            )
        if task.fingerprint != shop.fingerprint:
            raise TaskError(
                f"the task was made in shop {task.fingerprint}, this is shop {shop.fingerprint}; "
                "load the same catalog, size and seed"
            )
        self.world = World(shop, task.axes, task.key, task.world, task.calls)
        parts = self.env.parts(task)
        self.jobs = [Job(part, shop, self.world, (part.env,) if part is not task else ()) for part in parts]
        self._open = [0]
        """The jobs under way by number, the present one last."""
        self.opened = 1
        """How many jobs the customer has come to."""
        self._tools: dict[str, Tool] = {
            **self.env.tools,
            "ask_user": ask_user,
            "submit": self.env.submit,
        }
        self.messages = [
            {"role": "system", "content": SYSTEM.format(brief=self.env.brief)},
            {"role": "user", "content": task.opening},
        ]

    @property
    def job(self) -> Job:
        """The job under way, or the last one."""
        return self.jobs[self._open[-1]]

    @property
    def answer(self) -> dict[str, Any] | None:
        return self.job.answer

    @property
    def state(self) -> Any:
        return self.job.state

    @property
    def kernel(self) -> Kernel:
        return self.job.kernel

    @property
    def words(self) -> Words:
        return self.job.words

    @property
    def fired(self) -> list[tuple[int, Event]]:
        return [fired for job in self.jobs for fired in job.fired]

    @property
    def useful_asks(self) -> int:
        return sum(job.useful_asks for job in self.jobs)

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools' OpenAI schemas."""
        return [t.schema for t in self._tools.values()]

    @property
    def done(self) -> bool:
        return self.end is not None

    def act(self, message: Message) -> Turn:
        """Play one assistant message. Raises RuntimeError when the episode is over; bugs of ours raise too."""
        if self.done:
            raise RuntimeError("the episode is over; make a new one")
        self.turn += 1
        self.job.turn += 1
        before = len(self.messages) + 1
        self.world.touched.clear()
        changes = self.world.changes
        try:
            calls = self._read(message)
        except InvalidCallError as error:
            self.messages.append({"role": "assistant", "content": _text_of(message)})
            return self._finish("invalid", str(error), before)
        self.messages.append(_recorded(message, calls))
        revealed = False
        for number, (name, arguments) in enumerate(calls):
            call_id = self.messages[before - 1]["tool_calls"][number]["id"]
            try:
                result, news = self._call(name, arguments, alone=len(calls) == 1)
            except InvalidCallError as error:
                return self._finish("invalid", str(error), before)
            revealed = revealed or news
            content = json.dumps(result, ensure_ascii=False)
            self.messages.append({"role": "tool", "tool_call_id": call_id, "name": name, "content": content})
            if self.end is not None:
                return self._finish(self.end, self.why, before)
        job = self.job
        acts: list[Act] = []
        if job.answer is None:
            changed = self.world.changes > changes
            corrections = job.corrections() if changed or not calls else []
            acts += corrections
            if not calls and not corrections:  # what is wrong with the cart comes before small talk
                acts += job.hear(message.get("content") or "")
            if changed and not corrections:
                job.kernel.pleased()
            acts += job.events()  # last: what the customer wants from now on, nobody could know in this turn
            if job.kernel.out_of_patience:
                acts.append(job.kernel.farewell())
        if acts:
            self.messages.append({"role": "user", "content": job.words.say(acts)})
        if job.kernel.out_of_patience:
            return self._finish("patience", "the customer lost patience", before)
        if self.turn >= self.task.turns:
            return self._finish("turns", "the turn budget ran out", before)
        following = self._next_job()
        if following:
            self.messages.append({"role": "user", "content": following})
        return Turn(self.messages[before:], False, None)

    def _next_job(self) -> str:
        """Go on to another job where the customer does; what they say then."""
        if len(self.jobs) == 1:
            return ""
        back = self.job.answer is not None
        if back:
            self._open.pop()
        now = self.env.next_part(self.task, self._open, self.opened, self.job.turn if self._open else 0)
        if now is None:
            return self.env.turning(self.task, None) if back else ""
        self._open.append(now)
        self.opened += 1
        return self.env.turning(self.task, now, interrupts=len(self._open) > 1)

    def end_truncated(self, why: str = "the generation was cut off by a token limit") -> None:
        """The sampler stopped the agent: its own kind of end, masked in training, not invalid."""
        self._finish("truncated", why, len(self.messages))

    def fail(self, why: str) -> None:
        """Something of ours broke: the episode is unscored (law 10)."""
        self._finish("failed", why, len(self.messages))

    def score(self) -> Score:
        """What the episode earned as the world stands: named parts, and the reason in words."""
        if self.end is None:
            raise RuntimeError("the episode is not over; act until it is, or end it")
        if self.end == "failed":
            return Score.failed_by_us(self.why)
        if self.end == "invalid":
            return Score(reward.INVALID, False, f"invalid output: {self.why}", {"invalid": reward.INVALID})
        verdict = self.env.judge(self)
        correct = verdict.correct and self.end != "truncated"
        turns, calls = map(sum, zip(*(job.needed() for job in self.jobs), strict=True))
        efficiency = reward.efficiency(
            correct,
            reward.share_used(self.turn, turns, self.task.axes.turn_slack),
            reward.share_used(self.world.calls, calls, self.task.axes.tool_slack),
        )
        shown: set[object] = {*self.world.shown, *self.world.shown_pairs}
        parts = {
            "task": verdict.credit,
            "efficiency": efficiency,
            "hallucination": reward.hallucination(verdict.claims, shown),
        }
        why = verdict.why if self.end == "submit" else f"{verdict.why}; {self.why}"
        return Score(reward.compose(verdict.credit, efficiency, parts["hallucination"]), correct, why, parts)

    @property
    def effective_turns(self) -> int:
        """Turns that the customer did not cause: without useful questions, events, and handing in."""
        caused = sum(min(job.useful_asks, job.task.need.asks) for job in self.jobs) + len(self.fired)
        return max(0, self.turn - caused - sum(job.answer is not None for job in self.jobs))

    def _read(self, message: Message) -> list[tuple[str, str]]:
        """(tool name, arguments) of each call. Raises InvalidCallError for what is no assistant message."""
        if not isinstance(message, dict) or message.get("role") != "assistant":
            raise InvalidCallError("not an assistant message")
        if message.get("invalid"):
            raise InvalidCallError(str(message["invalid"]))
        if not isinstance(message.get("content") or "", str):
            raise InvalidCallError("content is not text")
        if len(message.get("content") or "") > MOST_TEXT:
            raise InvalidCallError(f"the message is longer than {MOST_TEXT} characters")
        calls = message.get("tool_calls") or []
        if isinstance(calls, list) and len(calls) > MOST_CALLS:
            raise InvalidCallError(f"{len(calls)} tool calls in one message; {MOST_CALLS} are allowed")
        try:
            named = [(call["function"]["name"], call["function"].get("arguments", "{}")) for call in calls]
        except (TypeError, KeyError, AttributeError):
            raise InvalidCallError(
                "a tool call is not an object with a function's name and arguments"
            ) from None
        texts = []
        for name, arguments in named:
            if isinstance(arguments, dict):
                try:
                    arguments = json.dumps(arguments)
                except (TypeError, ValueError, RecursionError):
                    raise InvalidCallError(f"the arguments of {name} are not JSON") from None
            if not isinstance(name, str) or not isinstance(arguments, str):
                raise InvalidCallError("a tool call's name and arguments are not text")
            if len(arguments) > MOST_TEXT:
                raise InvalidCallError(f"the arguments of {name[:40]} are longer than {MOST_TEXT} characters")
            texts.append((name, arguments))
        return texts

    def _call(self, name: str, arguments: str, alone: bool) -> tuple[dict[str, Any], bool]:
        """Run one tool call; its result, and whether the customer revealed something."""
        found = find(self._tools, name)
        values = found.parse(arguments)
        if found is ask_user:
            job = self.job
            reply = job.kernel.asked(values["question"], values["about"] or ())
            job.useful_asks += reply.revealed and alone
            return {"customer": job.words.say(reply.acts)}, reply.revealed
        try:
            if found is self.env.submit:
                return self._submit(values), False
            self.world.spend_call()
            return found.function(self.world, **values), False
        except RefusedError as refusal:
            return {"error": str(refusal)}, False

    def _submit(self, values: dict[str, Any]) -> dict[str, Any]:
        if self.job.answer is not None:
            raise RefusedError("this was handed in already; the customer will say what comes next")
        answer = self.env.answer_of(self.job.task, values)
        result = self.job.env.submit.function(self.world, **answer)
        self.job.hand_in(answer)
        if all(job.answer is not None for job in self.jobs):
            self.end, self.why = "submit", "handed in"
        return result

    def _finish(self, end: str, why: str, before: int) -> Turn:
        self.end, self.why = end, why
        return Turn(self.messages[before:], True, end)


def _text_of(message: Any) -> str:
    """What can be kept of a message that is none."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return content[:MOST_TEXT]
    try:
        return repr(message)[:2000]
    except RecursionError:
        return "a message nested too deeply to write down"


def _recorded(message: Message, calls: Sequence[tuple[str, str]]) -> Message:
    """The assistant message as it enters the record: calls numbered, nothing else kept."""
    recorded: Message = {"role": "assistant", "content": message.get("content") or ""}
    if calls:
        given = message["tool_calls"]
        recorded["tool_calls"] = [
            {
                "id": str(given[i].get("id") or f"call_{i}"),
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
            for i, (name, arguments) in enumerate(calls)
        ]
    return recorded
