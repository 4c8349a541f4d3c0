"""One episode: assistant messages in; tool results and the customer's replies out; a score at the end."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import Field

from ecomlab import reward
from ecomlab.catalog import Shop
from ecomlab.catalog.support import check_supported
from ecomlab.customer.acts import Act
from ecomlab.customer.customer import Customer
from ecomlab.customer.dialogue import Reply
from ecomlab.customer.llm import Wording
from ecomlab.difficulty import RANGES, Difficulty
from ecomlab.envs.base import Environment
from ecomlab.envs.registry import ENVIRONMENTS, moved_by
from ecomlab.episode import journey
from ecomlab.episode.messages import read_calls, recorded, text_of, written
from ecomlab.episode.referee import Referee
from ecomlab.episode.subtask import Subtask, speaker_of
from ecomlab.markup import conversation
from ecomlab.markup.elements import in_notebook
from ecomlab.reward import PUBLISHED, Score, Weights
from ecomlab.steps import CALLS_A_STEP, TURNS_A_STEP, most_steps
from ecomlab.suggest import whole
from ecomlab.task import Event, Goal, Message, Problem, Task, TaskError, TaskKey
from ecomlab.tool import FormatError, InvalidCallError, RefusedError, Tool, find, load_arguments, tool
from ecomlab.world.state import World

SYSTEM = (
    "You are a shop assistant. {brief} You have {turns} messages and {calls} tool calls. The customer reads only "
    "messages without tool calls and ask_user, and may also write unasked. Make independent calls in one message. "
    "Customers leave things out until asked, unless they say that this is all; ask one or two things at a time. Use "
    "only ids that a tool has shown. When done, call submit."
)
SCORING = (
    "A right result counts most, then few messages and calls, then no ids that no tool has shown; the best score is "
    "0.90. Questions that find something out are free, and so are, once for each job, a summary, a request for "
    "consent, a closing question and a courtesy."
)
"""What counts and what the best score is, by the published weights."""
ATTEMPTS = 64
"""Maximum number of draws of a task until one fits the budgets of its kind."""


@tool
def ask_user(
    world: World,
    question: Annotated[str, Field(description="What to ask the customer.")],
) -> dict[str, Any]:
    """Ask the customer a question, beside other calls."""
    raise AssertionError("the episode passes questions to the customer itself")


@dataclass(frozen=True)
class Turn:
    """Consequences of one assistant message."""

    messages: list[Message]
    """Tool results and customer messages that came back, in order."""
    done: bool
    end: str | None
    """submit, turns, patience, invalid, truncated or failed; None while the episode goes on."""


def make_task(
    env: str, difficulty: int, seed: int, shop: Shop, overrides: Mapping[str, float] | None = None
) -> Task:
    """Draw the task that (env, its version, difficulty, overrides, seed, shop) names.

    Raises UnknownEnvironmentError, UnsupportedError for an environment that the shop's catalog cannot carry, or
    ValueError for a level, axis or seed that does not exist, and for an axis that does not move the environment.
    """
    axes = moved_by(env) if isinstance(overrides, Mapping) else None
    for name in overrides or ():
        if axes is not None and name in RANGES and name not in axes:
            moved = [other for other in ENVIRONMENTS if name in (moved_by(other) or ())]
            raise ValueError(f"axis {name!r} does not move {env}; it moves {', '.join(moved) or 'none'}")
    return draw_task(env, difficulty, seed, shop, overrides)


def draw_task(
    env: str, difficulty: int, seed: int, shop: Shop, overrides: Mapping[str, float] | None = None
) -> Task:
    """Draw a task as `make_task` does, without the check that every override moves the environment: that check rests on
    tasks drawn here."""
    environment = ENVIRONMENTS[env]
    if not isinstance(shop, Shop):
        raise TypeError(f"shop must be what load_shop returns, not {shop!r}")
    check_supported(shop.catalog, [env])
    if not isinstance(overrides, Mapping | None):
        raise TypeError(f'overrides must map axes to values, such as {{"p_missing": 0}}, not {overrides!r}')
    seed, difficulty = whole(seed, "a seed"), whole(difficulty, "difficulty")
    axes = Difficulty.at(difficulty, **(overrides or {}))
    overrides = {name: axes.value(name) for name in overrides or {}}
    for attempt in range(ATTEMPTS):
        key = TaskKey(env, environment.version, difficulty, seed, shop.fingerprint, attempt)
        problem = (
            journey.draw(environment, key, axes, shop, task_of)
            if environment.composes
            else environment.draw(key, axes, shop)
        )
        task = task_of(environment, problem, key, axes, shop, overrides) if problem else None
        if task and task.fits:
            return task
    raise TaskError(f"{env} at d = {difficulty}: no draw of {ATTEMPTS} fits the budgets; take another seed")


def task_of(
    environment: Environment,
    problem: Problem,
    key: TaskKey,
    axes: Difficulty,
    shop: Shop,
    overrides: Mapping[str, float] = MappingProxyType({}),
    part: bool = False,
) -> Task:
    """Make the task of a problem: write its opening and set its budgets. `part`: part of the journey named by `key`."""
    items = len(problem.subtasks) or sum(name == "type" for _, name in problem.goal.slots)
    most = environment.budget(axes, shop, None if part else items)
    jobs, opening = max(1, len(problem.subtasks)), problem.opening
    steps = tuple(problem.steps) or tuple(kind for part in problem.subtasks for kind in part.steps)
    thoughts = most_steps(axes, chained=bool(problem.subtasks))
    if not opening:
        speaker = speaker_of(environment.id, key, shop, axes.p_noise, part)
        opening = speaker.opening(problem.goal, problem.leads, not part, problem.gaps)
    return Task(
        env=environment.id,
        key=key,
        overrides=dict(overrides),
        opening=opening,
        world=problem.world,
        goal=problem.goal,
        need=problem.need,
        events=tuple(problem.events),
        turns=most.turns + jobs * (axes.turn_slack + TURNS_A_STEP * thoughts),
        calls=most.calls + jobs * (axes.tool_slack + CALLS_A_STEP * thoughts),
        notes=problem.notes,
        steps=steps,
        subtasks=tuple(problem.subtasks),
        interrupts=tuple(problem.interrupts),
    )


def briefing(task: Task) -> str:
    """Write what the system prompt says of a task: the work, the budgets and how to talk."""
    return SYSTEM.format(brief=ENVIRONMENTS[task.env].brief, turns=task.turns, calls=task.calls)


def system_of(task: Task) -> str:
    """Write the system prompt of a task: its briefing, and what counts."""
    return f"{briefing(task)} {SCORING}"


@dataclass
class Episode:
    """One episode of a task. It changes as it is played, and must not be shared between threads."""

    task: Task
    shop: Shop
    messages: list[Message] = field(default_factory=list)
    end: str | None = None
    why: str = ""
    strict: bool = False
    """End at the first format error, such as an unknown tool or a wrong argument; otherwise it is an error that the
    agent sees, and the third ends the episode."""
    wording: Wording | None = None
    """This episode's own part of an endpoint that rewords the customer."""
    weights: Weights = PUBLISHED
    """Weights of the reward's parts."""

    def __post_init__(self) -> None:
        task, shop = self.task, self.shop
        if not isinstance(task, Task) or not isinstance(shop, Shop):
            raise TypeError(
                f"Episode(task, shop) takes what make_task and load_shop return, not {task!r} and {shop!r}"
            )
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
        self.world = World(shop, task.axes, task.key, task.world, task.calls, self.env.phrases.limits)
        self.referee = Referee(self.world, task.turns, self.strict)
        self.subtasks = [
            Subtask(part, shop, self.world, part=part is not task, wording=self.wording)
            for part in task.parts
        ]
        self._open = [0]
        """Numbers of the subtasks under way, the current one last."""
        self._answered = False
        """True once the customer has said something in the current turn."""
        self._alone = True
        """True if the current turn calls no tool but `ask_user`."""
        self._sold_out: set[str] = set()
        """Product types of the subtask under way that had sold out before the current turn."""
        self.opened = 1
        """Number of subtasks that the customer has begun."""
        self._tools: dict[str, Tool] = {
            **self.env.offered,
            "ask_user": ask_user,
            "submit": self.env.submit,
        }
        self.messages = [
            {"role": "system", "content": system_of(task)},
            {"role": "user", "content": self._begun(task.opening, 0)},
        ]

    def _repr_html_(self) -> str:
        return in_notebook(conversation.alone(self.messages))

    @property
    def turn(self) -> int:
        """Number of played assistant messages that count."""
        return self.referee.turn

    @property
    def subtask(self) -> Subtask:
        """The subtask under way, or the last one."""
        return self.subtasks[self._open[-1]]

    @property
    def customer(self) -> Customer:
        """The customer of the subtask under way."""
        return self.subtask.customer

    @property
    def goal(self) -> Goal:
        """The customer's goal as it is now."""
        return self.subtask.goal

    @property
    def answer(self) -> dict[str, Any] | None:
        """The answer submitted for the subtask under way."""
        return self.subtask.answer

    @property
    def fired(self) -> list[Event]:
        """Events that have happened."""
        return [fired for subtask in self.subtasks for fired in subtask.customer.fired]

    @property
    def tools(self) -> list[dict[str, Any]]:
        """OpenAI schemas of the tools."""
        return [t.schema for t in self._tools.values()]

    @property
    def done(self) -> bool:
        return self.end is not None

    def act(self, message: Message) -> Turn:
        """Play one assistant message. Raises RuntimeError when the episode is over; our own bugs raise too."""
        if self.done:
            raise RuntimeError("the episode is over; make a new one")
        referee, before = self.referee, len(self.messages) + 1
        referee.begin_turn()
        self._answered = False
        try:
            calls = read_calls(message)
        except InvalidCallError as error:
            self.messages.append({"role": "assistant", "content": text_of(message)})
            return self._finish("invalid", str(error), before)
        self.messages.append(recorded(message, calls))
        self._alone = all(name == ask_user.name for name, _ in calls)
        self._sold_out = {name for event in self.subtask.sold_out for name in event.types}
        if calls and text_of(message):
            self.customer.overhear(text_of(message), self.world)
        looked = len(self.subtask.looked)
        for number, (name, arguments) in enumerate(calls):
            call_id = self.messages[before - 1]["tool_calls"][number]["id"]
            try:
                result = referee.with_notice(self._call(name, arguments))
            except InvalidCallError as error:
                return self._finish("invalid", str(error), before)
            except FormatError as slip:
                result = {"error": str(slip)}
                if referee.count_format_error(self.subtask):
                    self.end, self.why = "invalid", str(slip)
            content = written(result)
            self.messages.append({"role": "tool", "tool_call_id": call_id, "name": name, "content": content})
            if self.end is not None:
                return self._finish(self.end, self.why, before)
        self.subtask.look_turns += bool(calls) and len(self.subtask.looked) - looked == len(calls)
        customer, text = self.customer, message.get("content") or ""
        self._note([name for name, _ in calls], text)
        said = self._reaction(None if calls else text)
        referee.count_turn()
        if said:
            self._tell(self._said(said))
        referee.remind(self.messages, by_tool=bool(calls))
        if customer.out_of_patience:
            return self._finish("patience", "the customer lost patience", before)
        if referee.out_of_turns:
            return self._finish("turns", "the turn budget ran out", before)
        following = self._next_subtask()
        if following:
            self._tell(following)
        return Turn(self.messages[before:], False, None)

    def _tell(self, text: str) -> None:
        """Add a message of the customer."""
        self.messages.append({"role": "user", "content": text})

    def _said(self, acts: list[Act]) -> str:
        """Put the customer's acts into words."""
        text = self.customer.say(acts)
        if self.wording:
            self.wording.says(text)
        return text

    def _begun(self, text: str, number: int) -> str:
        """Write the customer's beginning of a subtask: in a journey the transition stays, the opening may be
        reworded."""
        if self.wording is None:
            return text
        subtask = self.subtasks[number]
        lead = text.removesuffix(subtask.task.opening)
        said = lead + self.wording.opening(subtask.task.opening, subtask.customer.check)
        self.wording.says(said)
        return said

    def _hears(self, text: str) -> Reply:
        """Return the customer's answer to the agent's text."""
        if self.wording:
            self.wording.hears(text)
        return self.customer.hear(text, self.world)

    def _reaction(self, text: str | None) -> list[Act]:
        """Choose the customer's acts after a turn in which the agent said `text`, None if it called tools."""
        subtask, customer = self.subtask, self.customer
        if subtask.answer is not None:
            return []
        patience = customer.dialogue.annoyed
        reply = None if text is None else self._hears(text)
        mends = reply is not None and reply.revealed  # who asks for what is missing does not ignore a mistake
        looks = not mends and (self.referee.changed or text is not None)
        acts = customer.sees(self.world, patience) if looks else []
        if reply is not None and not acts:  # mistakes in the world come first
            acts += self._heard(reply)
        quiet = not acts and not self._answered
        acts += customer.tick(subtask.progress, self.world, quiet or self.referee.rejected)
        self._answered = self._answered or bool(acts)
        return [*acts, Act("quit")] if customer.out_of_patience else acts

    def _heard(self, reply: Reply) -> list[Act]:
        """Record the use of a message to the customer; return their answer."""
        self.subtask.heard(reply, self.turn, self._alone)
        self._answered = True
        return reply.acts

    def _note(self, tools: list[str], text: str) -> None:
        """Record the moments that a turn has reached."""
        acted = any(name in self._tools and self._tools[name].acts for name in tools)
        proposed = not tools and self.customer.is_reported_to(text, self.world)
        self.subtask.progress.note(tools, self._touched(), acted or proposed)

    def _touched(self, since: int = 0) -> set[str]:
        """Name the product types whose stock the agent has seen or run into in this turn."""
        catalog = self.world.catalog
        codes = {int(catalog.type_code[row]) for row, _ in self.world.touched[since:]}
        return {catalog.types[code].name for code in codes}

    def _next_subtask(self) -> str:
        """Go on to another subtask if the customer does, and return what they say."""
        if len(self.subtasks) == 1:
            return ""
        back = self.subtask.answer is not None
        if back:
            self._open.pop()
        progress = self.subtask.progress if self._open and not self._answered else None
        now = journey.following(self.task, self._open, self.opened, progress)
        if now is None:
            return journey.turning(self.task, None) if back else ""
        self._open.append(now)
        self.opened += 1
        return self._begun(journey.turning(self.task, now, interrupts=len(self._open) > 1), now)

    def end_truncated(self, why: str = "the generation was cut off by a token limit") -> None:
        """End the episode because the sampler cut the agent off: never correct, but not invalid."""
        self._finish("truncated", why, len(self.messages))

    def fail(self, why: str) -> None:
        """End the episode as unscored, because our own code failed."""
        self._finish("failed", why, len(self.messages))

    def score(self) -> Score:
        """Score the episode as the world stands, with named parts and the reason in words."""
        if self.end is None:
            raise RuntimeError("the episode is not over; act until it is, or end it")
        return self.standing()

    def standing(self) -> Score:
        """Score the episode as if it ended here, without changing it. The gain of a turn is the score after it minus
        the score before it."""
        if self.end == "failed":
            return Score.failed_by_us(self.why)
        if self.end == "invalid":
            invalid = {"invalid": reward.INVALID}
            why = f"invalid output: {self.why}"
            return Score(reward.INVALID, False, why, invalid, weights=self.weights.by_name)
        verdict = journey.judge(self.subtasks, self.opened)
        correct = verdict.correct and self.end != "truncated"
        effort = self.effort
        efficiency = reward.efficiency(correct, effort.turn_share, effort.call_share)
        shown: set[object] = {*self.world.shown, *self.world.shown_pairs}
        parts = {
            "task": verdict.credit,
            "efficiency": efficiency,
            "hallucination": reward.hallucination(verdict.claims, shown),
        }
        why = "; ".join([verdict.why, *([] if self.end in (None, "submit") else [self.why]), str(effort)])
        value, weights = self.weights.compose(parts), self.weights.by_name
        return Score(value, correct, why, parts, asking=self.asking, weights=weights)

    @property
    def asking(self) -> dict[str, int]:
        """Count the questions that customers were asked, the slots learned by them, and those about what they lack."""
        tallies = [asdict(subtask.customer.dialogue.tally) for subtask in self.subtasks]
        return {name: sum(tally[name] for tally in tallies) for name in tallies[0]}

    @property
    def effort(self) -> reward.Effort:
        """Turns and tool calls that were used and needed; slack is given per subtask."""
        needs, jobs = [subtask.needed() for subtask in self.subtasks], len(self.subtasks)
        excused = [subtask.excused for subtask in self.subtasks]
        return reward.Effort(
            turns=self.turn,
            excused=sum(one.turns for one in excused),
            turns_needed=sum(need.turns for need in needs),
            turn_slack=jobs * self.task.axes.turn_slack,
            calls=self.world.calls,
            excused_calls=sum(one.calls for one in excused),
            calls_needed=sum(need.calls for need in needs),
            call_slack=jobs * self.task.axes.tool_slack,
        )

    def _call(self, name: str, arguments: str) -> dict[str, Any]:
        """Run one tool call and return its result."""
        given = load_arguments(name, arguments)
        found = find(self._tools, name)
        values = found.check(given)
        if found is ask_user:
            reply = self._hears(values["question"])
            return {"customer": self._said(self._heard(reply))}
        try:
            if found is self.env.submit:
                return self._submit(values)
            self.world.spend_call()
            touched = len(self.world.touched)
            result: dict[str, Any] = found.function(self.world, **values)
        except RefusedError as refusal:
            return {"error": str(refusal)}
        if not found.acts and self._sold_out & self._touched(touched):
            self.subtask.looked.add((name, repr(values)))
        return result

    def _submit(self, values: dict[str, Any]) -> dict[str, Any]:
        if self.subtask.answer is not None:
            raise RefusedError("this was handed in already; the customer will say what comes next")
        answer = journey.answer_of(self.subtask.env, values) if self.task.subtasks else values
        self.referee.admit(self.subtask, answer)
        result: dict[str, Any] = self.subtask.env.submit.function(self.world, **answer)
        self.subtask.submit(answer)
        if all(subtask.answer is not None for subtask in self.subtasks):
            self.end, self.why = "submit", "submitted"
        return result

    def _finish(self, end: str, why: str, before: int) -> Turn:
        self.end, self.why = end, why
        return Turn(self.messages[before:], True, end)
