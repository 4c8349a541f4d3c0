"""Label the mistakes of a trajectory by rule: turn, kind, cause and fate.

    labelled = label(trajectory, shop)
    labelled.first     # Mistake(turn=2, kind="wrong product", cause="mis-selected", ...) or None

The trajectory is replayed. After each turn the world is compared with the customer's goal before the events and replies
of that turn.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ecomlab.customer.acts import Mistake as SeenMistake
from ecomlab.episode.episode import Episode
from ecomlab.episode.play import act_out, reopened
from ecomlab.episode.record import Trajectory
from ecomlab.episode.subtask import Subtask
from ecomlab.evaluation.claims import Shown, claims_in, is_false
from ecomlab.reward import Fault
from ecomlab.task import Goal, Message, Place
from ecomlab.wishes import is_chained, wishes_in
from ecomlab.world.cart import match, wants_of
from ecomlab.world.plain import plain
from ecomlab.world.state import OUT_OF_CALLS

if TYPE_CHECKING:
    from ecomlab.catalog import Shop

WORLD = (
    "wrong product", "unwanted item", "wrong variant", "wrong quantity", "wrong line", "wrong order", "wrong status",
    "wrong date", "wrong outcome", "wrong answer", "wrong clause", "not the best", "wrong reason", "sold out",
    "over budget", "stale wish", "missed item", "dropped job", "wrong answer told", "not told", "not agreed",
)  # fmt: skip
"""Kinds that last in the world or in the answer until they are mended."""
ACTS = (
    "ignored correction", "claims absence", "unseen id", "unseen pair", "wasted turn", "out of calls",
)  # fmt: skip
"""Kinds that do not last."""
TERMINAL = {
    "invalid": "invalid output",
    "truncated": "cut off",
    "turns": "out of turns",
    "patience": "patience lost",
}
"""Kinds that end an episode, by its end."""
KINDS = (*WORLD, *ACTS, *TERMINAL.values())
CAUSES = ("stale", "forgotten", "unasked", "not found", "mis-selected", "misread")
"""Causes of the kinds in `WORLD`; the first that applies counts.

stale: an event changed the wish. forgotten: it was right before. unasked: the violated slots were withheld and not yet
told. not found: told, but no tool had shown a fitting value. mis-selected: told and shown. misread: told, and nothing
to find.
"""
PASSED = "passed"
FATES = (
    "mended alone", "mended after a correction", "overtaken", "given up", "persisted", PASSED, "ended the episode",
)  # fmt: skip
"""Fates of a mistake. overtaken: the customer changed their mind, so that it is none any more. passed: it did not
last."""
OF_PRODUCTS = {"wrong product", "wrong variant", "unwanted item"}
"""Kinds of cart faults whose `thing` begins with a product's id."""


@dataclass(frozen=True)
class Mistake:
    """An act after which the world, or the agent's account of it, departs from the customer's present goal, as told or
    as it would be told if asked."""

    turn: int
    """Number of the assistant message, from 1."""
    kind: str
    place: str = ""
    """Subject, stable from turn to turn: "item 0" for the goal's first item, else a name."""
    cause: str = ""
    fate: str = PASSED
    job: int = 0
    """Number of the subtask in a journey."""
    thing: str = ""
    """The wrong value: an id, a number of units."""
    slots: tuple[str, ...] = ()
    """Slots of the goal that it violates."""
    parent: int | None = None
    """Number, in the trajectory, of the mistake that led to this one by rule; None for a root."""
    until: int | None = None
    """Turn in which it was mended or overtaken."""
    words: str = ""
    step: str = ""
    """Kind of the step of thought that failed; "" where none did."""


@dataclass(frozen=True)
class Labelled:
    """The mistakes of a trajectory, by turn, and within a turn by call, text, end."""

    env: str
    d: int
    seed: int
    turns: int
    """Assistant messages."""
    needed: int
    """Turns that the reference player needs for the episode as it unfolded."""
    end: str | None
    correct: bool
    unscored: bool
    """True if an infrastructure error ended it: its mistakes do not count."""
    mistakes: tuple[Mistake, ...] = ()
    doubtful: tuple[tuple[int, str], ...] = ()
    """(turn, sentence) of possible denials beyond the closed list of `claims`."""

    @property
    def first(self) -> Mistake | None:
        """The first mistake, if any."""
        return self.mistakes[0] if self.mistakes else None

    @property
    def roots(self) -> tuple[Mistake, ...]:
        """Mistakes that do not follow from another by rule."""
        return tuple(mistake for mistake in self.mistakes if mistake.parent is None)

    @property
    def standing(self) -> tuple[Mistake, ...]:
        """Unrepaired mistakes in the final state or the answer; empty iff the episode is correct."""
        lasting = (*WORLD, "unseen id")  # an unseen id may have been submitted
        return tuple(m for m in self.mistakes if m.kind in lasting and m.fate in ("persisted", "given up"))


def label(trajectory: Trajectory, shop: "Shop") -> Labelled:
    """Label the mistakes of a recorded trajectory of any environment. Raises ReplayError if it cannot be replayed in
    this shop."""
    episode = reopened(trajectory, shop)
    labeller = _Labeller(episode)
    for message in act_out(trajectory, episode):
        labeller.close()
        labeller.begin(message)
    labeller.close()
    return labeller.labelled(trajectory)


Call = tuple[str, dict[str, Any]]
"""A tool's name and its arguments."""
Key = tuple[str, str, str]
"""Key of a fault within its subtask."""


@dataclass(frozen=True)
class _Before:
    """A subtask before a turn."""

    goal: Goal
    withheld: frozenset[Place]
    ignored: Mapping[str, int]
    given_up: frozenset[str]
    annoyed: int
    guessed: int
    slips: int
    submitted: bool

    @classmethod
    def of(cls, subtask: Subtask) -> "_Before":
        dialogue = subtask.customer.dialogue
        return cls(
            goal=subtask.goal,
            withheld=frozenset((slot.item, slot.name) for slot in subtask.customer.state.untold),
            ignored=dict(dialogue.corrected),
            given_up=frozenset(dialogue.given_up),
            annoyed=dialogue.annoyed,
            guessed=dialogue.guessed,
            slips=subtask.format_errors,
            submitted=subtask.answer is not None,
        )


@dataclass
class _Job:
    """The faults of a subtask so far."""

    goals: list[Goal] = field(default_factory=list)
    """Goals so far, the latest last."""
    open: dict[Key, int] = field(default_factory=dict)
    """Numbers of the unrepaired mistakes, by fault."""
    made_by_event: dict[Key, Fault] = field(default_factory=dict)
    """Faults that an event made; they become mistakes of the agent if it does not mend them."""
    right: set[str] = field(default_factory=set)
    """Places that have been right."""
    given_up: set[str] = field(default_factory=set)
    """Places that the customer has given up."""


def calls_of(message: Message) -> list[Call]:
    """Read the calls of a message; arguments that are not a JSON object read as empty."""
    found = []
    for call in message.get("tool_calls") or ():
        function = call["function"]
        try:
            given = json.loads(function["arguments"] or "{}")
        except (ValueError, TypeError):
            given = {}
        found.append((function["name"], given if isinstance(given, dict) else {}))
    return found


class _Labeller:
    """Collects the mistakes of one episode, turn by turn."""

    def __init__(self, episode: Episode) -> None:
        self.episode = episode
        self.found: list[Mistake] = []
        self.corrected: dict[int, int] = {}
        """Turn in which the customer first named a mistake, by its number."""
        self.doubtful: list[tuple[int, str]] = []
        self.jobs = [_Job() for _ in episode.subtasks]
        self.shown = Shown(episode.env)
        self.looked: set[tuple[int, str, str, str]] = set()
        """Look-ups so far: subtask, tool, arguments, result."""
        self.turn = self._now = 0
        self._message: Message | None = None
        self._out_of_calls = False
        self.shown.read([], [episode.messages[-1]["content"]], episode.world)

    # Before a message is played: the state before it, and its text.

    def begin(self, message: Message) -> None:
        """Read a message that is about to be played."""
        episode = self.episode
        self.turn += 1
        self._message, self._length = message, len(episode.messages)
        self._now = episode.subtasks.index(episode.subtask)
        self._begun, self._fired = episode.opened, len(episode.fired)
        self._before = [_Before.of(subtask) for subtask in episode.subtasks]
        for job, before in zip(self.jobs, self._before, strict=True):
            if not job.goals or job.goals[-1] != before.goal:
                job.goals.append(before.goal)
        self._calls = [] if message.get("invalid") else calls_of(message)
        self._unseen = [
            Mistake(
                self.turn, one.kind, one.place, one.cause, job=self._now, thing=one.thing, words=one.words
            )
            for one in self.shown.unseen(self._calls, episode.world)
        ]
        self._claims = list(self._false_claims(message))

    def _false_claims(self, message: Message) -> Iterable[Mistake]:
        """Find false claims of absence in messages without calls, and in questions: the customer reads only these."""
        asked = [str(given.get("question", "")) for name, given in self._calls if name == "ask_user"]
        texts = asked if message.get("tool_calls") else [str(message.get("content") or "")]
        subtask, world = self.episode.subtask, self.episode.world
        wants = subtask.env.audit.wishes(plain(subtask.customer.goal, world), world)  # without substitutes
        for text in texts if wants and not message.get("invalid") else ():
            claims, doubtful = claims_in(text, wants, world)
            self.doubtful += [(self.turn, sentence) for sentence in doubtful]
            for claim in claims:
                if is_false(claim, world):
                    place, thing = f"item {claim.want.item}", claim.option or claim.want.type
                    yield Mistake(
                        self.turn, "claims absence", place, job=self._now, thing=thing, words=claim.sentence
                    )
                    break  # one mistake per text

    # After the turn.

    def close(self) -> None:
        """Read the outcome of the last message."""
        if self._message is None:
            return
        message, self._message = self._message, None
        came = self.episode.messages[self._length :]
        contents = [m["content"] for m in came if m["role"] == "tool"]
        results = list(map(json.loads, contents))
        said = [m["content"] for m in came if m["role"] == "user"]
        said += [result["customer"] for result in results if "customer" in result]
        self.found += self._unseen
        self._acted(results)
        self._done()
        for number in range(self._begun):
            self._customer(number)
        self.found += self._claims
        self._wasted(message, results)
        if self.episode.end != "truncated":  # the truncated message is not recorded
            self._ended()
        self.shown.read(contents, said, self.episode.world)

    def _acted(self, results: Sequence[Mapping[str, Any]]) -> None:
        """Record the first call that was refused because the budget was spent."""
        if not self._out_of_calls and any(result.get("error") == OUT_OF_CALLS for result in results):
            self._out_of_calls = True
            self._add(Mistake(self.turn, "out of calls", job=self._now, words=OUT_OF_CALLS))

    def _done(self) -> None:
        """Compare the world and the answers with the goals: record new faults, and close mended ones."""
        for number in range(self._begun):
            subtask, before, job = self.episode.subtasks[number], self._before[number], self.jobs[number]
            submitted = subtask.answer is not None
            if before.submitted and not subtask.env.acts_on:
                continue  # an answer is judged by the goal at the time of its submit
            made = self._faults(subtask, before.goal if not submitted else subtask.goal, subtask.answer)
            self._made(number, made)
            left = self._faults(subtask, subtask.goal, subtask.answer)
            for fault in left:
                if fault.key not in job.open and fault.key not in {one.key for one in made}:
                    job.made_by_event[fault.key] = fault
            self._mend(number, {fault.place for fault in left}, {fault.place for fault in made})
            if "cart" in subtask.env.acts_on:
                wants = wants_of(subtask.goal)
                held = match(wants, self.episode.world).held
                job.right |= {f"item {w.item}" for w, h in zip(wants, held, strict=True) if h == w.quantity}

    def _faults(self, subtask: Subtask, goal: Goal, answer: Mapping[str, Any] | None) -> Sequence[Fault]:
        return subtask.env.audit.found(goal, self.episode.world, answer, subtask.first)

    def _made(self, number: int, made: Sequence[Fault], parent: int | None = None) -> None:
        """Record new faults, and those of events that the agent did not mend; `parent` is the end that left them."""
        job, over = self.jobs[number], parent is not None or self.episode.subtasks[number].answer is not None
        acted = over or (number == self._now and self._has_acted())
        for fault in made:
            if fault.key in job.open:
                continue
            if fault.key in job.made_by_event or self._is_stale(number, fault):
                job.made_by_event[fault.key] = fault
                if acted:
                    self._record(number, replace(fault, kind="stale wish"), fault.key, parent)
            elif not self._goes_on(number, fault):
                self._record(number, fault, fault.key, parent)
        keys = {fault.key for fault in made}
        job.made_by_event = {k: f for k, f in job.made_by_event.items() if k in keys and k not in job.open}

    def _has_acted(self) -> bool:
        """Tell whether the agent acted or tried to submit in this turn."""
        tools = self.episode.env.offered
        return any(name == "submit" or (name in tools and tools[name].acts) for name, _ in self._calls)

    def _is_stale(self, number: int, fault: Fault) -> bool:
        """Tell whether a fault comes from a goal change: by the earlier goal it would be none, and no other fault of
        that goal disappears now."""
        subtask, job = self.episode.subtasks[number], self.jobs[number]
        earlier = [goal for goal in job.goals if goal != subtask.goal][-1:]
        if not earlier or (fault.kind != "missed item" and _is_added(fault, earlier[0])):
            return False
        over = self.episode.done or subtask.answer is not None
        answer = (subtask.answer or {}) if over else None
        then, now = (
            {one.key for one in self._faults(subtask, goal, answer) if self._same(subtask, one, fault)}
            for goal in (earlier[0], subtask.goal)
        )
        return fault.key not in then and then <= now

    def _same(self, subtask: Subtask, one: Fault, other: Fault) -> bool:
        """Tell whether two faults may be about the same thing. In a cart only those of one place or one product are: a
        line that was a wrong choice for an item belongs to no item once the item is dropped."""
        if one.place == other.place or "cart" not in subtask.env.acts_on:
            return True
        return {one.kind, other.kind} <= OF_PRODUCTS and one.thing.split()[:1] == other.thing.split()[:1]

    def _goes_on(self, number: int, fault: Fault) -> bool:
        """Tell whether a fault is already recorded: a number of units that is still wrong, or an item that is missing
        in the end because the customer gave it up."""
        job = self.jobs[number]
        for key in list(job.open):
            if key[1] == fault.place and key[0] == fault.kind == "wrong quantity":
                job.open[fault.key] = job.open.pop(key)
                return True
        if fault.kind == "missed item" and fault.place in job.given_up:
            last = self._last(number, fault.place)
            if last is not None:
                self.found[last] = replace(self.found[last], until=None, fate="given up")
                job.open[fault.key] = last
                return True
        return False

    def _record(self, number: int, fault: Fault, key: Key, parent: int | None = None) -> None:
        """Record a fault as a mistake of this turn."""
        job = self.jobs[number]
        if fault.kind == "unseen id":  # already recorded for the call that used it
            for at, mistake in enumerate(self.found):
                if mistake.kind == "unseen id" and mistake.thing == fault.thing and mistake.turn == self.turn:
                    job.open[key] = at
                    return
        cause = ""
        if parent is None:  # otherwise the end left it undone
            stale = fault.kind in ("stale wish", "sold out")
            cause = "stale" if stale else self._cause(number, fault)
            before = self._last(number, fault.place)
            if before is not None and (before in job.open.values() or fault.kind == "missed item"):
                parent = before
        self._add(
            Mistake(
                self.turn, fault.kind, fault.place, cause, "persisted", number, fault.thing, fault.slots, parent,
                words=fault.words, step=fault.step or self._step(number, fault),
            )
        )  # fmt: skip
        job.open[key] = len(self.found) - 1

    def _step(self, number: int, fault: Fault) -> str:
        """Find the step of thought that a fault has missed: that of a wish for a slot that it violates, or for whatever
        a condition decides."""
        item = int(fault.place.removeprefix("item ")) if fault.place.startswith("item ") else 0
        wishes = wishes_in(self.episode.subtasks[number].customer.goal.of(item))
        missed = [
            "chain" if is_chained(wish) else wish.step
            for name, wish in wishes.items()
            if {name, getattr(wish, "slot", "")} & {*fault.slots}
        ]
        return missed[0] if missed else ""

    def _cause(self, number: int, fault: Fault) -> str:
        """Find the cause of a fault, one of `CAUSES`."""
        if fault.place in self.jobs[number].right:
            return "forgotten"
        item = int(fault.place.removeprefix("item ")) if fault.place.startswith("item ") else 0
        hidden = {name for at, name in self._before[number].withheld if at == item}
        if fault.slots and set(fault.slots) <= hidden:
            return "unasked"
        subtask = self.episode.subtasks[number]
        wants = [w for w in subtask.env.audit.wishes(subtask.goal, self.episode.world) if w.item == item]
        if fault.kind in ("wrong product", "missed item", "wrong variant") and wants:
            return "mis-selected" if self._was_shown(wants[0]) else "not found"
        if fault.right:
            return "mis-selected" if self.shown.any_of(fault.right) else "not found"
        return "misread"

    def _was_shown(self, want: Any) -> bool:
        """Tell whether a tool had shown a fitting product in the wanted option when the agent spoke."""
        catalog, shown = self.episode.world.catalog, self.shown
        return any(
            want.option is None or (product_id, want.option) in shown.pairs
            for product_id in shown.products
            if catalog.satisfies(self.episode.world.row(product_id), want.constraints)
        )

    def _mend(self, number: int, wrong: set[str], was_wrong: set[str]) -> None:
        """Close the mistakes at places without faults."""
        job = self.jobs[number]
        for key, at in list(job.open.items()):
            mistake = self.found[at]
            if mistake.place in wrong or key[1] in wrong:
                continue
            fate = "mended after a correction" if at in self.corrected else "mended alone"
            if mistake.place in was_wrong:
                fate = "overtaken"
            self.found[at] = replace(mistake, until=self.turn, fate=fate)
            del job.open[key]

    # The customer's corrections.

    def _customer(self, number: int) -> None:
        """Record the corrections that the customer made, repeated or gave up in this turn."""
        subtask, before = self.episode.subtasks[number], self._before[number]
        dialogue, seen = subtask.customer.dialogue, {one.name: one for one in subtask.customer.in_sight}
        for name, times in dialogue.corrected.items():
            if name not in seen:
                continue
            if name in before.ignored and times > before.ignored[name]:
                self._ignored(number, _places(seen[name]))
            for at in self._standing(number, _places(seen[name])):
                self.corrected.setdefault(at, self.turn)
        for name in dialogue.given_up - before.given_up:
            if name in seen:
                places = _places(seen[name])
                self.jobs[number].given_up |= places
                for at in self._standing(number, places):
                    self.found[at] = replace(self.found[at], fate="given up")

    def _ignored(self, number: int, places: set[str]) -> None:
        """Record an ignored correction; its subject becomes a mistake if it was none before."""
        job = self.jobs[number]
        for key, fault in list(job.made_by_event.items()):
            if fault.place in places:
                self._record(number, replace(fault, kind="stale wish"), key)
                del job.made_by_event[key]
        standing = self._standing(number, places)
        parent = standing[0] if standing else None
        place = self.found[standing[0]].place if standing else min(places)
        self._add(Mistake(self.turn, "ignored correction", place, job=number, parent=parent))

    def _standing(self, number: int, places: set[str]) -> list[int]:
        """List the unrepaired mistakes at these places."""
        job = self.jobs[number]
        return [at for key, at in job.open.items() if places & {key[1], self.found[at].place}]

    def _wasted(self, message: Message, results: Sequence[Mapping[str, Any]]) -> None:
        """Record a turn without gain: a stall, a wrong guess, a format error, or look-ups and refused acts with an
        unchanged result."""
        subtask, before = self.episode.subtasks[self._now], self._before[self._now]
        dialogue, why = subtask.customer.dialogue, ""
        talks = not message.get("tool_calls") or any(name == "ask_user" for name, _ in self._calls)
        if dialogue.guessed > before.guessed:
            why = "asked whether the wrong one is meant"
        elif talks and dialogue.annoyed > before.annoyed and not subtask.customer.in_sight:
            why = "said or asked what brought nothing new"
        elif subtask.format_errors > before.slips and all("error" in result for result in results):
            why = "called a tool in a wrong form"
        if len(self.episode.fired) > self._fired or any("notice" in result for result in results):
            self.looked.clear()  # results may differ now
        made = []
        for (name, given), result in zip(self._calls, results):
            tool = self.episode.env.offered.get(name)
            if tool is not None and "notice" not in result and (not tool.acts or "error" in result):
                said = json.dumps(given, sort_keys=True), json.dumps(result, sort_keys=True)
                made.append((self._now, name, *said))
        if made and len(made) == len(self._calls) and self.looked.issuperset(made):
            why = "called again for what was known"
        self.looked.update(made)
        if why:
            self._add(Mistake(self.turn, "wasted turn", job=self._now, words=why))

    # The end.

    def _ended(self) -> None:
        """Record an end other than a submit, and the faults that it left."""
        episode = self.episode
        if episode.end not in TERMINAL:
            return
        kind, parent = TERMINAL[str(episode.end)], None
        if kind == "patience lost":
            tried = [at for at, m in enumerate(self.found) if m.kind in ("ignored correction", "wasted turn")]
            standing = [at for job in self.jobs for at in job.open.values()]
            parent = max(tried or standing, default=None)
        fate = "ended the episode"
        self._add(Mistake(self.turn, kind, fate=fate, job=self._now, parent=parent, words=episode.why))
        terminal = len(self.found) - 1
        for number, subtask in enumerate(episode.subtasks):
            if number >= episode.opened:
                self._record(
                    number,
                    Fault("dropped job", "job", words=f"{subtask.task.env} was never begun"),
                    ("dropped job", "job", ""),
                    terminal,
                )
            elif subtask.answer is None:
                self._made(number, self._faults(subtask, subtask.goal, {}), terminal)

    def labelled(self, trajectory: Trajectory) -> Labelled:
        """Return the mistakes with their final fates, once the episode is over."""
        episode, turns = self.episode, self.turn
        if episode.end == "truncated":
            self.turn += 1
            self._ended()
        found = [self._final(number, mistake) for number, mistake in enumerate(self.found)]
        task = episode.task
        return Labelled(
            env=task.env,
            d=task.difficulty,
            seed=task.seed,
            turns=turns,
            needed=episode.effort.turns_needed,
            end=episode.end,
            correct=trajectory.score.correct,
            unscored=trajectory.score.unscored,
            mistakes=tuple(found),
            doubtful=tuple(self.doubtful),
        )

    def _final(self, number: int, mistake: Mistake) -> Mistake:
        """Give a mistake of the kinds in `ACTS` the fate of its subject."""
        if mistake.kind == "ignored correction" and mistake.parent is not None:
            parent = self.found[mistake.parent]
            return replace(mistake, fate=parent.fate, until=parent.until)
        if mistake.kind in ACTS:
            stands = any(number in job.open.values() for job in self.jobs)
            return replace(mistake, fate="persisted" if stands else "passed")
        return mistake

    def _add(self, mistake: Mistake) -> None:
        assert mistake.kind in (*WORLD, *ACTS, *TERMINAL.values()), mistake.kind
        self.found.append(mistake)

    def _last(self, number: int, place: str) -> int | None:
        """Find the last mistake in the world at a place."""
        there = [
            at for at, m in enumerate(self.found) if m.job == number and m.place == place and m.kind in WORLD
        ]
        return there[-1] if there else None


def _is_added(fault: Fault, earlier: Goal) -> bool:
    """Tell whether a fault concerns an item that the earlier goal did not have."""
    return fault.place.startswith("item ") and int(fault.place.removeprefix("item ")) not in earlier.items


def _places(mistake: SeenMistake) -> set[str]:
    """Return the places of a mistake that the customer sees, as faults name them: the cart line, and the item if it is
    still wanted."""
    return {mistake.act.seen} | (set() if mistake.item is None else {f"item {mistake.item}"})
