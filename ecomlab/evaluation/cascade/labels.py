"""Labelling the mistakes of a trajectory: it is acted out again, and after each turn the world is held against what the
customer wanted when the agent spoke, before anything that happened in return."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ecomlab.customer.acts import Mistake as InSight
from ecomlab.episode.episode import Episode
from ecomlab.episode.play import act_out, reopened
from ecomlab.episode.record import Trajectory
from ecomlab.episode.subtask import Subtask
from ecomlab.evaluation.cascade.claims import claims_in, is_false
from ecomlab.evaluation.cascade.ids import Shown
from ecomlab.evaluation.cascade.mistakes import ACTS, TERMINAL, WORLD, Labelled, Mistake
from ecomlab.reward import Fault
from ecomlab.task import Goal, Message, Place
from ecomlab.world.cart import match, wants_of
from ecomlab.world.state import OUT_OF_CALLS

if TYPE_CHECKING:
    from ecomlab.catalog import Shop

OF_PRODUCTS = {"wrong product", "wrong variant", "unwanted item"}
"""Kinds of faults of a cart whose `thing` begins with a product's id."""
Key = tuple[int, str, str, str]
"""Name of a fault in an episode: the number of its subtask, and its own key."""


def label(trajectory: Trajectory, shop: "Shop") -> Labelled:
    """Label the mistakes of a recorded trajectory of any environment. Raises ReplayError for one that cannot be
    replayed in this shop."""
    episode = reopened(trajectory, shop)
    labeller = _Labeller(episode)
    for message in act_out(trajectory, episode):
        labeller.close()
        labeller.begin(message)
    labeller.close()
    return labeller.labelled(trajectory)


@dataclass(frozen=True)
class _Before:
    """What is remembered of a subtask from before a turn."""

    goal: Goal
    withheld: frozenset[Place]
    ignored: Mapping[str, int]
    given_up: frozenset[str]
    annoyed: int
    guessed: int
    slips: int
    handed_in: bool

    @classmethod
    def of(cls, subtask: Subtask) -> "_Before":
        dialogue = subtask.customer.dialogue
        return cls(
            goal=subtask.goal,
            withheld=frozenset((slot.item, slot.name) for slot in subtask.customer.state.withheld),
            ignored=dict(dialogue.corrected),
            given_up=frozenset(dialogue.given_up),
            annoyed=dialogue.annoyed,
            guessed=dialogue.guessed,
            slips=subtask.slips,
            handed_in=subtask.answer is not None,
        )


@dataclass
class _Job:
    """What is known of a subtask's faults."""

    goals: list[Goal] = field(default_factory=list)
    """What was wanted, the latest last."""
    open: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """Numbers of the mistakes that stand, by fault."""
    made_by_event: dict[tuple[str, str, str], Fault] = field(default_factory=dict)
    """Faults that stand because the customer changed their mind, not yet the agent's mistakes."""
    right: set[str] = field(default_factory=set)
    """Places that have been right."""
    given_up: set[str] = field(default_factory=set)
    """Places that the customer has given up."""


class _Labeller:
    """Collects the mistakes of one episode, turn by turn."""

    def __init__(self, episode: Episode) -> None:
        self.episode = episode
        self.found: list[Mistake] = []
        self.corrected: dict[int, int] = {}
        """First turn in which the customer named a mistake, by its number."""
        self.doubtful: list[tuple[int, str]] = []
        self.jobs = [_Job() for _ in episode.subtasks]
        self.shown = Shown(episode.env)
        self.looked: set[tuple[int, str, str, str]] = set()
        """Look-ups that were made: subtask, tool, arguments, result."""
        self.turn = self._now = 0
        self._message: Message | None = None
        self._out_of_calls = False
        self.shown.read([], [episode.messages[-1]["content"]], episode.world)

    # A turn begins: what is remembered of before, and what the message itself says.

    def begin(self, message: Message) -> None:
        """Take in a message that is about to be played."""
        episode = self.episode
        self.turn += 1
        self._message, self._length = message, len(episode.messages)
        self._now = episode.subtasks.index(episode.subtask)
        self._begun, self._fired = episode.opened, len(episode.fired)
        self._before = [_Before.of(subtask) for subtask in episode.subtasks]
        for job, before in zip(self.jobs, self._before, strict=True):
            if not job.goals or job.goals[-1] != before.goal:
                job.goals.append(before.goal)
        self._calls = [] if message.get("invalid") else list(_calls(message))
        self._unseen = list(self.shown.unseen(self._calls, self.turn, self._now, episode.world))
        self._claims = list(self._false_claims(message))

    def _false_claims(self, message: Message) -> Iterable[Mistake]:
        """Find claims of absence in what the customer reads: a message without calls, and questions."""
        asked = [str(given.get("question", "")) for name, given in self._calls if name == "ask_user"]
        texts = asked if message.get("tool_calls") else [str(message.get("content") or "")]
        subtask, world = self.episode.subtask, self.episode.world
        wants = subtask.env.audit.wishes(
            subtask.customer.goal, world
        )  # what it is about: not what they would take instead
        for text in texts if wants and not message.get("invalid") else ():
            claims, doubtful = claims_in(text, wants, world)
            self.doubtful += [(self.turn, sentence) for sentence in doubtful]
            for claim in claims:
                if is_false(claim, world):
                    place, thing = f"item {claim.want.item}", claim.option or claim.want.type
                    yield Mistake(
                        self.turn, "claims absence", place, job=self._now, thing=thing, words=claim.sentence
                    )
                    break  # one text, one mistake

    # A turn is over.

    def close(self) -> None:
        """Take in what became of the message that was last begun."""
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
        if self.episode.end != "truncated":  # in a message of its own, which is not recorded
            self._ended()
        self.shown.read(contents, said, self.episode.world)

    def _acted(self, results: Sequence[Mapping[str, Any]]) -> None:
        """Take note of calls that were refused because the budget was spent."""
        if not self._out_of_calls and any(result.get("error") == OUT_OF_CALLS for result in results):
            self._out_of_calls = True
            self._add(Mistake(self.turn, "out of calls", job=self._now, words=OUT_OF_CALLS))

    def _done(self) -> None:
        """Find what is newly wrong in the world and the answers, and what no longer is."""
        for number in range(self._begun):
            subtask, before, job = self.episode.subtasks[number], self._before[number], self.jobs[number]
            handed_in = subtask.answer is not None
            if before.handed_in and not subtask.env.acts_on:
                continue  # an answer was judged as of when it was handed in
            made = self._faults(subtask, before.goal if not handed_in else subtask.goal, subtask.answer)
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
        return subtask.env.audit.faults(goal, self.episode.world, answer, subtask.customer.first)

    def _made(self, number: int, made: Sequence[Fault], parent: int | None = None) -> None:
        """Record the faults among these that are new, and those of events that the agent has let stand; `parent` is the
        end that left them so."""
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
        """Tell whether the agent acted in this turn or tried to hand in."""
        tools = self.episode.env.offered
        return any(name == "submit" or (name in tools and tools[name].acts) for name, _ in self._calls)

    def _is_stale(self, number: int, fault: Fault) -> bool:
        """Tell whether it would have been no fault by what was wanted before, and nothing else a worse one: then it
        comes of the change of mind."""
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
        """Tell whether two faults may be about the same thing: all are, but those of different lines of a cart. A line
        that was a wrong choice for an item is nobody's once the item is dropped."""
        if one.place == other.place or "cart" not in subtask.env.acts_on:
            return True
        return {one.kind, other.kind} <= OF_PRODUCTS and one.thing.split()[:1] == other.thing.split()[:1]

    def _goes_on(self, number: int, fault: Fault) -> bool:
        """Tell whether a fault is one that stands already: a number of units that is still not right, or an item that
        is missing in the end because the customer gave it up."""
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

    def _record(
        self, number: int, fault: Fault, key: tuple[str, str, str], parent: int | None = None
    ) -> None:
        """Record a fault as a mistake of this turn."""
        job = self.jobs[number]
        if fault.kind == "unseen id":  # as it was called with
            for at, mistake in enumerate(self.found):
                if mistake.kind == "unseen id" and mistake.thing == fault.thing and mistake.turn == self.turn:
                    job.open[key] = at
                    return
        before = self._last(number, fault.place)
        undone = parent is not None  # the end left it undone
        if (
            parent is None
            and before is not None
            and (before in job.open.values() or fault.kind == "missed item")
        ):
            parent = before
        stale = fault.kind in ("stale wish", "sold out")
        cause = "" if undone else "stale" if stale else self._cause(number, fault)
        self._add(
            Mistake(
                self.turn, fault.kind, fault.place, cause, "persisted", number, fault.thing, fault.slots, parent,
                words=fault.words,
            )
        )  # fmt: skip
        job.open[key] = len(self.found) - 1

    def _cause(self, number: int, fault: Fault) -> str:
        """Find why a fault was made: see `mistakes.CAUSES`."""
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
        """Tell whether a tool had shown a product that fits, in the wanted option, when the agent spoke."""
        catalog, shown = self.episode.world.catalog, self.shown
        return any(
            want.option is None or (product_id, want.option) in shown.pairs
            for product_id in shown.products
            if catalog.satisfies(self.episode.world.row(product_id), want.constraints)
        )

    def _mend(self, number: int, wrong: set[str], was_wrong: set[str]) -> None:
        """Take note of what no longer stands: places of which nothing is wrong any more."""
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

    # What the customer made of it.

    def _customer(self, number: int) -> None:
        """Take note of corrections that were named, ignored or given up in this turn."""
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
        """Record that a correction was ignored; what it was about is a mistake, if it was none before."""
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
        """List the mistakes that stand at these places."""
        job = self.jobs[number]
        return [at for key, at in job.open.items() if places & {key[1], self.found[at].place}]

    def _wasted(self, message: Message, results: Sequence[Mapping[str, Any]]) -> None:
        """Record a turn that brought nothing: a stall, a wrong guess, a slip of form, or calls that had brought the
        same before: look-ups, and acts that were refused."""
        subtask, before = self.episode.subtasks[self._now], self._before[self._now]
        dialogue, why = subtask.customer.dialogue, ""
        talks = not message.get("tool_calls") or any(name == "ask_user" for name, _ in self._calls)
        if dialogue.guessed > before.guessed:
            why = "asked whether the wrong one is meant"
        elif talks and dialogue.annoyed > before.annoyed and not subtask.customer.in_sight:
            why = "said or asked what brought nothing new"
        elif subtask.slips > before.slips and all("error" in result for result in results):
            why = "called a tool in a wrong form"
        if len(self.episode.fired) > self._fired or any("notice" in result for result in results):
            self.looked.clear()  # it may be otherwise by now
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
        """Record how the episode ended, if not by handing in, and what was left undone by that."""
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
        """Put together what was found, once the episode is over."""
        episode = self.episode
        turns = self.turn
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
        """Give a mistake that is over once made the fate of what it was about."""
        if mistake.kind == "ignored correction" and mistake.parent is not None:
            return replace(
                mistake, fate=self.found[mistake.parent].fate, until=self.found[mistake.parent].until
            )
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
    """Tell whether a fault is about an item that was not wanted at all before: what is bought of it is bought anew."""
    return fault.place.startswith("item ") and int(fault.place.removeprefix("item ")) not in earlier.items


def _calls(message: Message) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Read (tool, arguments) of each call; arguments that are no object are none."""
    for call in message.get("tool_calls") or ():
        function = call["function"]
        try:
            given = json.loads(function["arguments"] or "{}")
        except (ValueError, TypeError):
            given = {}
        yield function["name"], given if isinstance(given, dict) else {}


def _places(mistake: InSight) -> set[str]:
    """Name the place of a mistake that the customer sees as faults name it: by the item, or by the line of the cart,
    where the item is one that they would do without by now."""
    return {mistake.act.seen} | (set() if mistake.item is None else {f"item {mistake.item}"})
