"""Trajectories with exactly one known mistake: the reference player plays, and in one turn does one thing wrong."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode
from ecomlab.episode.messages import MOST_CALLS, parse_output
from ecomlab.episode.play import record
from ecomlab.episode.record import Trajectory
from ecomlab.episode.subtask import Subtask
from ecomlab.evaluation.cascade.edits import EDITS, TRICKS, Scene, calls_of, edit, with_calls
from ecomlab.laws.surface import calls as message_of
from ecomlab.seeding import pick
from ecomlab.task import GoalChange, Message, Player, Task
from ecomlab.world.cart import match, wants_of
from ecomlab.world.orders.lines import expected_returns

if TYPE_CHECKING:
    from ecomlab.catalog import Shop

CLEAN = "none"
"""Kind of a trajectory in which nothing is planted."""
TWO, BESIDE = "two mistakes", "beside an event"
"""Names of trajectories with two wrong acts, and with one in the turn in which something happens to the customer or
the stock."""
REPAIRED = ("wrong product", "unwanted item", "wrong variant", "wrong quantity", "wrong line")
"""Kinds that the player can also mend by itself: they stand in the world."""
NONSENSE = "Blorp fizzle wug?"
WAITING = "One moment, please."
PUT = "I have taken care of that."
DENIALS = (
    "I'm sorry, the {} is sold out.",
    "Unfortunately there is no such {}.",
    "We don't carry a {} like that.",
    "I couldn't find any {} in our shop.",
    "I'm afraid the {} is not available.",
)


@dataclass(frozen=True)
class Planted:
    """A trajectory and the mistakes that it holds: none in one of kind `CLEAN` or of `TRICKS`, two in one of kind
    `TWO`, else one."""

    trajectory: Trajectory
    kind: str
    turn: int
    """Turn of the mistake, the last one of two; 0 without one."""
    first: tuple[str, int]
    """(kind, turn) of the first mistake: another one where the kind needs one to follow."""
    repaired: bool = False
    made: tuple[tuple[str, int], ...] = ()
    """(kind, turn) of the mistakes that are to be found, where `kind` names none."""

    @property
    def holds(self) -> tuple[tuple[str, int], ...]:
        """List (kind, turn) of every mistake that is to be found."""
        none = self.kind == CLEAN or self.kind in TRICKS
        return () if none else self.made or ((self.kind, self.turn),)


@dataclass(frozen=True)
class Twin:
    """A task as the reference player plays it untouched, and the turns in which it might make each kind of mistake."""

    trajectory: Trajectory
    opportunities: Mapping[str, tuple[int, ...]]
    eventful: tuple[int, ...] = ()
    """Turns in which something happens to the customer or the stock."""


@dataclass
class _Planter:
    """A player that does what the reference player does, but for one thing in the turn `at`."""

    player: Player
    episode: Episode
    kind: str
    random: np.random.Generator
    repair: bool = False
    at: int = 0
    """Turn in which it is planted; 0 plants nothing."""
    turn: int = 0
    """Number of messages so far."""
    planted: int = 0
    """Turn in which it was planted; 0 before."""
    queue: list[Message] = field(default_factory=list)
    """Messages of the reference player that are still to be played."""
    hidden: set[str] = field(default_factory=set)
    """Ids of calls of which the player must not hear."""
    believed: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = field(default_factory=list)
    """(fields of a row that is there, what the player believes to be there instead)."""
    deaf_from: int | None = None
    """Number of the message from which on the player does not hear the customer."""
    blocked: set[str] = field(default_factory=set)
    """Products that the player does not get round to."""
    jobs: list[Subtask] = field(default_factory=list)
    """The subtask under way in each turn."""
    eventful: list[int] = field(default_factory=list)
    """Turns in which something happened."""
    misplaced: bool = False
    """True once a message that waited was played in another subtask than it was meant for."""

    def __call__(self, messages: list[Message], tools: list[dict[str, Any]]) -> Message:
        self.turn += 1
        self.jobs.append(self.episode.subtask)
        if self.queue:
            self.misplaced |= self.jobs[-1] is not self.jobs[-2]
            message = self.queue.pop(0)
        else:
            message = self._there(self._blocked(self.player(self._heard(messages), tools)))
        if self.planted:
            return self._after(message)
        changed = self.plant(message) if self.turn == self.at else None
        if changed is None:
            return message
        self.planted = self.turn
        return changed

    def _heard(self, messages: Sequence[Message]) -> list[Message]:
        """Return the conversation as the player believes it to be."""
        heard = []
        for number, message in enumerate(messages):
            if message.get("tool_call_id") in self.hidden:
                continue
            if self.deaf_from is not None and number >= self.deaf_from and message["role"] == "user":
                message = {**message, "content": WAITING}
            if self.believed and message["role"] == "tool" and self._acts(message["name"]):
                result = _rewritten(json.loads(message["content"]), self.believed)
                message = {**message, "content": json.dumps(result)}
            heard.append(message)
        return heard

    def _acts(self, name: str) -> bool:
        tool = self.episode.env.offered.get(name)
        return tool is not None and tool.acts

    def _blocked(self, message: Message) -> Message:
        """Leave out what the player does not get round to; hand in where nothing else is left to do."""
        calls = calls_of(message)
        kept = [call for call in calls if call[1].get("product_id") not in self.blocked]
        return (
            message if len(kept) == len(calls) else with_calls(message, kept or [("submit", {"done": True})])
        )

    def _there(self, message: Message) -> Message:
        """Let later acts on what the player believes to be there act on what is there."""
        calls = calls_of(message)
        for there, right in self.believed if self.planted else ():
            ids = {name: right.get(name, value) for name, value in there.items() if name != "quantity"}
            for _, given in calls:
                if all(given.get(name) == value for name, value in ids.items()):
                    given.update({name: there[name] for name in ids})
        return with_calls(message, calls) if calls != calls_of(message) else message

    def plant(self, message: Message) -> Message | None:
        """Make the wrong message in place of this one; None where the mistake cannot be made here."""
        if self.kind in EDITS or self.kind in TRICKS:
            return self._edited(message)
        return ACTS[self.kind](self, message)

    def _edited(self, message: Message) -> Message | None:
        found = edit(message, self.kind, Scene(self.episode, self.random), answers=not self.repair)
        if found is None:
            return None
        given = found.right[1]
        if not found.wrong:
            self.blocked.add(given["product_id"])
        elif not self.repair:
            wrong = found.wrong[0][1]
            changed = [n for n in {**given, **wrong} if wrong.get(n) != given.get(n)]
            there = {n: wrong.get(n) for n in {**given, **wrong}}
            self.believed += [(there, {n: given.get(n) for n in changed})] if changed else []
            added = (call["id"] for call in found.message["tool_calls"])
            self.hidden |= {one for one in added if one.startswith("planted")}
        return found.message

    def _after(self, message: Message) -> Message:
        """Make the messages after the planted one."""
        if self.kind == "out of turns":
            return _said(WAITING)
        if self.kind == "patience lost" and self.turn <= self.planted + 2:
            return _said(NONSENSE)
        if self.kind == "ignored correction" and self.turn == self.planted + 1:
            self.queue.append(message)
            return _said(PUT)
        return message


def _said(text: str) -> Message:
    return {"role": "assistant", "content": text}


def _rewritten(value: Any, believed: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> Any:
    """Put what the player believes into a tool's result: into the rows that are as the wrong call made them."""
    if isinstance(value, list):
        return [_rewritten(inner, believed) for inner in value]
    if not isinstance(value, dict):
        return value
    for there, right in believed:
        known = (there.keys() & value.keys()) - ({"quantity"} - right.keys())  # which is 0 once it is removed
        if known == {"quantity"}:  # of something else: in a journey a return's after a cart's
            continue
        if right.keys() & known and all(there[name] == value[name] for name in known):
            value = {**value, **{name: right[name] for name in right.keys() & known}}
    return {key: _rewritten(inner, believed) for key, inner in value.items()}


# Mistakes that are no wrong call in place of a right one.


def _ignored_correction(planter: _Planter, message: Message) -> Message | None:
    scene = Scene(planter.episode, planter.random)
    for kind in ("wrong variant", "wrong line", "wrong product", "wrong quantity"):
        if found := edit(message, kind, scene, answers=False):
            return found.message
    return None


def _claims_absence(planter: _Planter, message: Message) -> Message | None:
    scene = Scene(planter.episode, planter.random)
    subtask, world, able = scene.subtask, scene.world, []
    for want in subtask.env.audit.wishes(subtask.customer.goal, world):  # not what they would take instead
        rows = [
            row
            for row in map(world.row, sorted(world.shown))
            if world.catalog.satisfies(row, want.constraints)
        ]
        there = any(
            world.stock(row) > 0 and (want.option is None or world.stock(row, want.option) > 0)
            for row in rows
        )
        able += [want] if there else []
    if not able:
        return None
    planter.queue.append(message)
    said = pick(planter.random, DENIALS)
    return _said(said.format(pick(planter.random, able).type))


def _unseen_id(planter: _Planter, message: Message) -> Message | None:
    catalog, offered = planter.episode.shop.catalog, planter.episode.env.offered
    tool = next((one for one in ("catalog_get_product", "catalog_get_variants") if one in offered), None)
    calls = calls_of(message)
    if tool is None or not calls or any(name == "submit" for name, _ in calls):
        return None
    unseen = catalog.ids[int(planter.random.integers(catalog.size))]
    if unseen in planter.episode.world.shown:
        return None
    planter.hidden.add(f"planted{len(calls)}")
    return with_calls(message, [*calls, (tool, {"product_id": unseen})])


def _unseen_pair(planter: _Planter, message: Message) -> Message | None:
    """Beside an act, take out of the cart what is not in it: a product that was shown, in a variant that was not."""
    world, calls = planter.episode.world, calls_of(message)
    acts = any(planter._acts(name) for name, _ in calls)
    if "cart_remove" not in planter.episode.env.offered or not acts:
        return None
    pairs = [
        (product_id, option)
        for product_id in sorted(world.shown)
        for option in world.options(world.row(product_id))
        if (product_id, option) not in world.shown_pairs
        and not any(given.get("product_id") == product_id for _, given in calls)
    ]
    if not pairs:
        return None
    product_id, option = pick(planter.random, pairs)
    planter.hidden.add(f"planted{len(calls)}")
    return with_calls(message, [*calls, ("cart_remove", {"product_id": product_id, "variant_id": option})])


def _out_of_calls(planter: _Planter, message: Message) -> Message | None:
    """Look the same thing up until the budget of calls is spent, and at least once more."""
    offered, calls = planter.episode.env.offered, calls_of(message)
    if not calls or any(name == "submit" for name, _ in calls):
        return None
    every = [call for one in planter.episode.messages if one["role"] == "assistant" for call in calls_of(one)]
    looks = [call for call in (*calls, *every) if call[0] in offered and not offered[call[0]].acts]
    if not looks:
        return None
    world = planter.episode.world
    more = world.call_budget - world.calls + 1
    if len(calls) + more > MOST_CALLS:  # not in one message
        return None
    planter.hidden |= {f"planted{len(calls) + number}" for number in range(more)}
    return with_calls(message, [*calls, *looks[:1] * more])


def _dropped_job(planter: _Planter, message: Message) -> Message | None:
    """Say something that is cut off while a job has not begun."""
    return message if planter.episode.opened < len(planter.episode.subtasks) else None


def _wasted_turn(planter: _Planter, message: Message) -> Message | None:
    offered, last = planter.episode.env.offered, _last(planter.episode.messages)
    looks = (
        [call for call in calls_of(last) if call[0] in offered and not offered[call[0]].acts] if last else []
    )
    if not looks or len(looks) != len(calls_of(last or {})):
        return None
    planter.queue.append(message)
    again = message_of(*looks[:1])
    again["tool_calls"][0]["id"] = "planted0"
    planter.hidden.add("planted0")
    return again


def _last(messages: Sequence[Message]) -> Message | None:
    return next((one for one in reversed(messages) if one["role"] == "assistant"), None)


def _invalid_output(planter: _Planter, message: Message) -> Message:
    broken = ("<tool_call>{bad</tool_call>", "<tool_call>", '<tool_call>{"name": "submit", </tool_call>')
    return parse_output(pick(planter.random, broken))


ACTS: Mapping[str, Callable[[_Planter, Message], Message | None]] = {
    "ignored correction": _ignored_correction,
    "claims absence": _claims_absence,
    "unseen id": _unseen_id,
    "unseen pair": _unseen_pair,
    "out of calls": _out_of_calls,
    "wasted turn": _wasted_turn,
    "invalid output": _invalid_output,
    "cut off": lambda planter, message: message,
    "dropped job": _dropped_job,
    "out of turns": lambda planter, message: _said(WAITING),
    "patience lost": lambda planter, message: _said(NONSENSE),
}
"""By kind of mistake."""
PLANTABLE = (CLEAN, *EDITS, *ACTS, "stale wish", TWO, BESIDE, *TRICKS)
"""What can be planted, as far as an environment gives the opportunity."""


def survey(task: Task, shop: "Shop") -> Twin | None:
    """Play a task untouched, and find in which turns each kind of mistake could be made; None where that is not correct
    to the end. Raises what a broken environment raises."""
    episode, found = Episode(task, shop), dict[str, list[int]]()
    player, turn, eventful = ENVIRONMENTS[task.env].reference_player(shop), 0, list[int]()
    while not episode.done:
        message = player(list(episode.messages), episode.tools)
        turn, length, fired = turn + 1, len(episode.messages), len(episode.fired)
        random = task.key.rng("survey", turn)
        possible = [
            kind
            for kind in (*((*EDITS, *TRICKS) if message.get("tool_calls") else ()), *ACTS)
            if _Planter(player, episode, kind, random, turn=turn).plant(message)
        ]
        episode.act(message)
        eventful += [turn] if len(episode.fired) > fired else []
        results = [json.loads(m["content"]) for m in episode.messages[length:] if m["role"] == "tool"]
        refused = any("error" in result for result in results)  # what was refused was no act
        for kind in possible:
            if not (refused and (kind in EDITS or kind in TRICKS or kind == "ignored correction")):
                found.setdefault(kind, []).append(turn)
    trajectory = record(episode)
    if not trajectory.score.correct or trajectory.end != "submit":
        return None
    called = [calls_of(message) for message in trajectory.messages if message["role"] == "assistant"]
    if "out of calls" in found:  # whatever is called later would be refused
        last = max(turn for turn, calls in enumerate(called, 1) if any(name != "submit" for name, _ in calls))
        found["out of calls"] = [turn for turn in found["out of calls"] if turn == last]
    able = {kind: tuple(turns) for kind, turns in found.items() if turns}
    return Twin(trajectory, able, tuple(eventful))


def plant(
    twin: Twin, shop: "Shop", kind: str, random: np.random.Generator, repair: bool = False
) -> Planted | None:
    """Play a twin's task with one mistake of a kind in a turn that is drawn from its opportunities.

    With `repair` the player sees what it did and mends it; without it believes to have done right. None where the task
    gives no opportunity. Raises ValueError for a kind that cannot be planted, or not repaired.
    """
    if kind not in PLANTABLE or (repair and kind not in REPAIRED):
        raise ValueError(f"{kind!r} cannot be planted{' and repaired' if repair else ''}")
    task = twin.trajectory.task
    if kind == CLEAN:
        return Planted(twin.trajectory, CLEAN, 0, (CLEAN, 0))
    if kind == "stale wish":
        return _with_stale_wish(task, shop)
    if kind == TWO:
        return _with_two(twin, shop, random)
    if kind == BESIDE:
        return _beside_an_event(twin, shop, random)
    if kind not in twin.opportunities:
        return None
    player, at = ENVIRONMENTS[task.env].reference_player(shop), pick(random, twin.opportunities[kind])
    planter = _Planter(player, Episode(task, shop), kind, random, repair, at)
    trajectory = _played(planter)
    return _described(planter, trajectory) if trajectory and planter.planted else None


SINGLE = tuple(kind for kind in EDITS if kind != "missed item")
"""Kinds of wrong calls, each in the turn of its mistake."""

CONSEQUENCES = (("wrong line", "wrong outcome"), ("wrong line", "wrong date"))
"""Pairs of which the second is by rule no mistake of its own: what is said of a return is about the line returned."""


def _with_two(twin: Twin, shop: "Shop", random: np.random.Generator) -> Planted | None:
    """Play a twin's task with two wrong acts in different turns."""
    able = twin.opportunities
    pairs = [
        (one, other, (first, second))
        for one in (*SINGLE, "unseen id")
        for other in SINGLE
        for first in able.get(one, ())
        for second in able.get(other, ())
        if first < second and (one, other) not in CONSEQUENCES
    ]
    if not pairs:
        return None
    one, other, (first, second) = pick(random, pairs)
    task = twin.trajectory.task
    player, episode = ENVIRONMENTS[task.env].reference_player(shop), Episode(task, shop)
    inner = _Planter(player, episode, one, random, at=first)
    outer = _Planter(inner, episode, other, random, at=second)
    trajectory = _played(outer)
    if trajectory is None or not (inner.planted and outer.planted) or inner.misplaced:
        return None
    made = ((one, first), (other, second))
    return Planted(trajectory, TWO, second, made[0], made=made)


def _beside_an_event(twin: Twin, shop: "Shop", random: np.random.Generator) -> Planted | None:
    """Play a twin's task with a wrong act in a turn in which something happens; None where by that act nothing does."""
    able = [
        (kind, turn)
        for kind in (*SINGLE, "unseen id")
        for turn in twin.opportunities.get(kind, ())
        if turn in twin.eventful
    ]
    if not able:
        return None
    (kind, turn), task = pick(random, able), twin.trajectory.task
    planter = _Planter(
        ENVIRONMENTS[task.env].reference_player(shop), Episode(task, shop), kind, random, at=turn
    )
    trajectory = _played(planter)
    if trajectory is None or turn not in planter.eventful or not planter.planted:
        return None
    return Planted(trajectory, BESIDE, turn, (kind, turn), made=((kind, turn),))


def _played(planter: _Planter) -> Trajectory | None:
    """Play to the end, or up to the turn in which the player is cut off; None where the reference player cannot go on
    from the mistake, such as a return from an order that it has not looked into."""
    episode = planter.episode
    while not episode.done:
        try:
            message = planter(list(episode.messages), episode.tools)
        except LookupError:
            if not planter.planted:
                raise
            return None
        fired = len(episode.fired)
        if planter.kind in ("cut off", "dropped job") and planter.planted:
            episode.end_truncated()
        else:
            episode.act(message)
        planter.eventful += [planter.turn] if len(episode.fired) > fired else []
    return record(episode)


def _described(planter: _Planter, trajectory: Trajectory) -> Planted | None:
    """Say what was planted where; None where something else came in between."""
    kind, turn = planter.kind, planter.planted
    first = (kind, turn)
    if planter.misplaced:
        return None
    if kind in TRICKS:
        return Planted(trajectory, kind, 0, (CLEAN, 0))
    if kind == "dropped job":
        first = ("cut off", turn)
    if kind == "out of turns":
        if trajectory.end != "turns":
            return None
        turn = planter.turn
        first = (kind, turn)
    elif kind == "patience lost":
        if trajectory.end != "patience":
            return None
        first, turn = ("wasted turn", turn), planter.turn
    elif kind == "ignored correction":
        turn += 1
        if planter.turn < turn:
            return None
        first = ("", turn - 1)
    elif kind == "missed item" and planter.blocked:  # it is missed when the cart is handed in
        if trajectory.end != "submit" or trajectory.score.correct:  # another is wanted by now
            return None
        turn = _cart_handed_in(trajectory)
        first = (kind, turn)
    elif kind == "wasted turn" and not (
        planter.jobs[turn - 2] is planter.jobs[turn - 1] and _repeats(trajectory, turn)
    ):
        return None  # in another job it is another look
    return Planted(trajectory, kind, turn, first, planter.repair)


def _cart_handed_in(trajectory: Trajectory) -> int:
    """Find the turn in which the cart was handed in, the last one in which that was tried."""
    said = [message for message in trajectory.messages if message["role"] == "assistant"]
    return max(
        turn for turn, message in enumerate(said, 1) if ("submit", {"done": True}) in calls_of(message)
    )


def _repeats(trajectory: Trajectory, turn: int) -> bool:
    """Tell whether the calls of a turn brought what those of the turn before had brought, and neither brought news: who
    has heard that stock has changed looks again with reason."""
    said: list[list[str]] = []
    for message in trajectory.messages:
        if message["role"] == "assistant":
            said.append([])
        elif message["role"] == "tool":
            said[-1].append(message["content"])
    news = any("notice" in json.loads(result) for result in said[turn - 2])
    return not news and set(said[turn - 1]) <= set(said[turn - 2])


def _with_stale_wish(task: Task, shop: "Shop") -> Planted | None:
    """Play a task whose customer changes their mind with a player that hears nothing from then on.

    The mistake is made when the agent next acts and leaves there what is not wanted now, at the latest by handing in.
    """
    if task.subtasks or not any(isinstance(event, GoalChange) for event in task.events):
        return None
    player, episode, turn = ENVIRONMENTS[task.env].reference_player(shop), Episode(task, shop), 0
    planter = _Planter(player, episode, "stale wish", task.key.rng("stale wish"))
    while not episode.done:
        length = len(episode.messages)
        message = planter(list(episode.messages), episode.tools)
        acts = any(map(planter._acts, (name for name, _ in calls_of(message))))
        changed = planter.deaf_from is not None
        episode.act(message)
        if changed and acts and not turn and _is_wrong(episode):
            turn = planter.turn
        if not changed and any(isinstance(event, GoalChange) for event in episode.fired):
            planter.deaf_from = length
    trajectory = record(episode)
    if planter.deaf_from is None or trajectory.score.correct or trajectory.end != "submit":
        return None
    turn = turn or planter.turn
    return Planted(trajectory, "stale wish", turn, ("stale wish", turn))


def _is_wrong(episode: Episode) -> bool:
    """Tell whether something stands in the cart or among the returns that is not wanted there, or not so many."""
    world, slots = episode.world, episode.goal.of()
    if "returns" in episode.env.acts_on:
        return bool(world.returns) and world.returns != expected_returns(slots, world)
    wants = wants_of(episode.goal)
    matched = match(wants, world)
    some = any(0 < held < want.quantity for want, held in zip(wants, matched.held, strict=True))
    return bool(matched.extra) or some
