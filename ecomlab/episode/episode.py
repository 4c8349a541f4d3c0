"""One episode: assistant messages in; tool results and the customer's replies out; a score at the end."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import Field

from ecomlab import reward
from ecomlab.catalog import Shop
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.customer.acts import Act
from ecomlab.customer.dialogue import Kernel
from ecomlab.customer.goal_state import TOPICS
from ecomlab.customer.nlg import Words
from ecomlab.difficulty import Difficulty, whole
from ecomlab.envs.base import Environment
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.messages import read_calls, recorded, text_of
from ecomlab.episode.subtask import Job
from ecomlab.reward import Score
from ecomlab.task import Draft, Event, Message, Task, TaskError
from ecomlab.tool import InvalidCallError, RefusedError, Tool, find, tool
from ecomlab.world.state import World

SYSTEM = (
    "You are a shop assistant. {brief} Use the tools to act; a message without a tool call goes to the customer, "
    "who answers. Turns are few: make calls that do not wait for each other in one message. Customers often leave "
    "things out until they are asked, unless they say that this is all; ask once for everything that is open. Use only "
    "product and variant ids that a tool has shown. When the job is done, call submit."
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
    if not isinstance(shop, Shop):
        raise TypeError(f"shop is what load_shop returns, not {shop!r}")
    if not isinstance(overrides, Mapping | None):
        raise TypeError(f'overrides are axes and their values, such as {{"p_missing": 0}}, not {overrides!r}')
    seed, difficulty = whole(seed, "a seed"), whole(difficulty, "difficulty")
    axes = Difficulty.at(difficulty, **(overrides or {}))
    overrides = {name: getattr(axes, name) for name in overrides or {}}
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
    need = draft.need
    turns, calls = need.with_events([(need.latest(event), event) for event in draft.events], need.asks)
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
        need=need,
        events=draft.events,
        turns=turns + axes.turn_slack,
        calls=calls + axes.tool_slack,
    )


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
            calls = read_calls(message)
        except InvalidCallError as error:
            self.messages.append({"role": "assistant", "content": text_of(message)})
            return self._finish("invalid", str(error), before)
        self.messages.append(recorded(message, calls))
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
