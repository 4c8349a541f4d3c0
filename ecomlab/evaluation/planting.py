"""Given turns, planted mistakes, and their effects.

- *Given turns.* `first_turns` returns the messages of the first turns as the reference player plays them. `play_on`
  starts from such messages with a player, and `play_batch` with a policy, by `Start`.
- *Wrong acts.* `wrong_acts` draws, for each kind of mistake, a correct act of a trajectory and a wrong one to replace
  it. Catalog, orders and verifier determine what is wrong, never the code that labels mistakes. `plant` makes one such
  mistake in an episode of the reference player.
- *Effects.* `measure` continues after the wrong act, and for comparison after the player's own act (the twin). Nothing
  else differs, so the difference is the effect of the mistake; `effects` summarizes it.

Example:

    half = first_turns(task, shop, 0.5)                           # the reference player begins ...
    rollouts = play_batch([Start(task, first=half)], [rng("half")], shop, sampler, renderer)  # ... a policy continues
    trajectory, act = plant(task, shop, "wrong product")          # one mistake, in turn act.turn
    effects(list(measure(by_policy(policy, shop), tasks, shop)))  # [{"kind": "all", "mended": .93, "effect": -.08, ...
"""

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from ecomlab.answers.status import StatusName
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode
from ecomlab.episode.play import act_out, play, record, reopened
from ecomlab.episode.record import Trajectory
from ecomlab.episode.subtask import Subtask
from ecomlab.evaluation.compare import paired_interval
from ecomlab.evaluation.mistakes import Call, Labelled, calls_of, label
from ecomlab.evaluation.summary import CONFIDENCE, share_interval
from ecomlab.laws.tool_introspection import calls as message_of
from ecomlab.laws.tool_introspection import records, results
from ecomlab.models.batch import Start, play_batch
from ecomlab.seeding import pick, shuffled
from ecomlab.suggest import raised
from ecomlab.task import Message, Player, Task
from ecomlab.tool import FormatError, RefusedError
from ecomlab.world.cart import Want
from ecomlab.world.orders.history import find_line, standing_now
from ecomlab.world.orders.lines import lines_meant
from ecomlab.world.state import World

if TYPE_CHECKING:
    from ecomlab.catalog import Shop
    from ecomlab.models.policy import Policy
    from ecomlab.models.samplers.cached import Limits

Given = dict[str, Any]
"""Arguments of a call."""
Play = Callable[[Sequence[Task], Sequence[Sequence[Message]]], Sequence[Trajectory | None]]
"""Plays each task after its given messages. A trajectory is None if an infrastructure error left none."""


# --- given turns ---


def play_on(player: Player, episode: Episode, given: Sequence[Message] = ()) -> Trajectory:
    """Play an episode whose first messages are given. The player is called in those turns too, because players such as
    the reference player keep a state. An exception of the player makes the trajectory unscored."""
    turn = 0
    try:
        while not episode.done:
            message = player(list(episode.messages), episode.tools)
            episode.act(given[turn] if turn < len(given) else message)
            turn += 1
    except Exception as error:
        episode.fail(raised(error))
    return record(episode)


def messages_of(trajectory: Trajectory) -> list[Message]:
    """List the assistant messages of a trajectory."""
    return [message for message in trajectory.messages if message["role"] == "assistant"]


def by_player(make: Callable[[Episode, int], Player], shop: "Shop") -> Play:
    """Make `make`'s players play for `measure`; it takes an episode and its number of given turns, after which a random
    player must draw afresh."""

    def plays(tasks: Sequence[Task], given: Sequence[Sequence[Message]]) -> list[Trajectory]:
        episodes = [Episode(task, shop) for task in tasks]
        return [play_on(make(one, len(said)), one, said) for one, said in zip(episodes, given, strict=True)]

    return plays


def by_policy(policy: "Policy", shop: "Shop", limits: "Limits | None" = None) -> Play:
    """Make a policy play for `measure`, all tasks at once. Given messages are part of the prompt: of `limits`, they
    count towards the context only."""

    def plays(tasks: Sequence[Task], given: Sequence[Sequence[Message]]) -> list[Trajectory | None]:
        # Both sides of a pair share a stream, which differs from that of the episode in which the act was found.
        streams = [task.key.rng("play on", len(first)) for task, first in zip(tasks, given, strict=True)]
        starts = [Start(task, first=first) for task, first in zip(tasks, given, strict=True)]
        rollouts = play_batch(starts, streams, shop, policy.sampler(limits), policy.renderer)
        return [rollout.trajectory for rollout in rollouts]

    return plays


# --- wrong acts ---


@dataclass(frozen=True)
class WrongAct:
    """A correct message of a trajectory, and one with a mistake to replace it."""

    kind: str
    turn: int
    """Turn of the message, from 1."""
    right: Message
    wrong: Message


def plant(task: Task, shop: "Shop", kind: str) -> tuple[Trajectory, WrongAct] | None:
    """Play a task with the reference player and one mistake of a kind of `PLANTABLE`, in a turn drawn by the task's own
    randomness. None if the task offers no opportunity."""
    make = ENVIRONMENTS[task.env].reference_player
    was = play(make(shop), task, shop)
    if (act := wrong_acts(was, shop).get(kind)) is None:
        return None
    given = [*messages_of(was)[: act.turn - 1], act.wrong]
    return play_on(make(shop), Episode(task, shop), given), act


def planted_turns(task: Task, shop: "Shop", player: Player | None, kind: str) -> list[Message]:
    """Return the first turns of `player`, or of the reference player, up to one in which a mistake of this kind
    replaces a correct act; none if the task offers no opportunity."""
    was = play(player or ENVIRONMENTS[task.env].reference_player(shop), task, shop)
    act = wrong_acts(was, shop).get(kind)
    return [*messages_of(was)[: act.turn - 1], act.wrong] if act else []


def wrong_acts(trajectory: Trajectory, shop: "Shop") -> dict[str, WrongAct]:
    """Draw a wrong act for each kind of `PLANTABLE`, uniformly among the suitable acts before the trajectory's first
    mistake; kinds without one are left out. Each kind has its own randomness."""
    randoms = {kind: trajectory.task.key.rng("wrong act", kind) for kind in PLANTABLE}
    mistake = label(trajectory, shop).first
    end = mistake.turn if mistake else math.inf
    refused, turn = set[int](), 0  # turns with a refused call, which is no act
    for message in trajectory.messages:
        turn += message["role"] == "assistant"
        if message["role"] == "tool" and "error" in json.loads(message["content"]):
            refused.add(turn)
    episode = reopened(trajectory, shop)
    found: dict[str, list[WrongAct]] = defaultdict(list)
    for turn, message in enumerate(act_out(trajectory, episode), 1):
        if turn < end and turn not in refused and not message.get("invalid"):
            for kind, random in randoms.items():
                if wrong := make_wrong(message, kind, Scene(episode, random)):
                    found[kind].append(WrongAct(kind, turn, message, wrong))
    return {kind: pick(randoms[kind], acts) for kind, acts in found.items()}


@dataclass
class Scene:
    """An episode before a turn of the agent, and the random stream of planting."""

    episode: Episode
    random: np.random.Generator

    @property
    def world(self) -> World:
        return self.episode.world

    @property
    def subtask(self) -> Subtask:
        return self.episode.subtask

    def wants(self) -> Sequence[Want]:
        """List the products of the present goal."""
        return self.subtask.env.audit.wishes(self.subtask.goal, self.world)

    def before(self) -> Sequence[Want]:
        """List the products of the first goal: a product that fits only these is a stale wish."""
        return self.subtask.env.audit.wishes(self.subtask.first, self.world)

    def shuffled(self, values: Any) -> list[Any]:
        """Sort values, then shuffle them."""
        return list(shuffled(self.random, sorted(values)))

    def others(self, product_id: str, fits: bool, units: int = 1) -> Iterator[str]:
        """Yield other products of the same type that a tool has shown and that are in stock: those that fit a wish for
        the type, or those that fit none, now or at first."""
        catalog, world = self.world.catalog, self.world
        kind = catalog.type_of(world.row(product_id)).name
        wants = [want for want in self.wants() if want.type == kind]
        every = [*wants, *(want for want in self.before() if want.type == kind)]
        for other in self.shuffled(world.shown - {product_id}):
            row = world.row(other)
            if catalog.type_of(row).name != kind or world.stock(row) < units:
                continue
            some = wants if fits else every
            if wants and any(catalog.satisfies(row, want.constraints) for want in some) == fits:
                yield other

    def swapped(self, ids: Sequence[str], fits: bool) -> Iterator[list[str]]:
        """Yield lists of products with one of them replaced by `others`."""
        for place in self.shuffled(range(len(ids))):
            for other in self.others(ids[place], fits):
                if other not in ids:
                    yield [*ids[:place], other, *ids[place + 1 :]]

    def affordable(self, ids: Sequence[str]) -> bool:
        """Tell whether a list is within the budget, if any."""
        goal, prices = self.subtask.goal, self.world.catalog.price_cents
        cost = sum(prices.item(self.world.row(one)) for one in ids)
        return "budget" not in goal or cost <= goal["budget"]

    def read(self, name: str, given: Mapping[str, Any]) -> Given | None:
        """Read the arguments of a call as its tool does, "2" as 2; None if the tool would reject them."""
        env = self.episode.env
        tool = env.submit if name == env.submit.name else env.offered.get(name)
        try:
            taken = tool.check(given) if tool else None
        except FormatError:
            return None
        return None if taken is None else {name: taken[name] for name in given if name in taken}

    def is_correct(self, answer: Mapping[str, Any], at_first: bool = False) -> bool:
        """Tell whether the verifier accepts an answer, by the present or the first goal."""
        subtask, first = self.subtask, self.subtask.first
        return subtask.env.judge(first if at_first else subtask.goal, self.world, answer, first).correct

    def is_wrong(self, answer: Mapping[str, Any], kind: str) -> bool:
        """Tell whether an answer is wrong by the present and the first goal, and first of all in this kind: another
        product may also be no longer the best."""
        subtask = self.subtask
        faults = subtask.env.audit.found(subtask.goal, self.world, answer, subtask.first)
        return bool(faults) and faults[0].kind == kind and not self.is_correct(answer, at_first=True)


def make_wrong(message: Message, kind: str, scene: Scene) -> Message | None:
    """Replace the first suitable call of a message by a mistake of this kind; None if there is none."""
    said = calls_of(message)
    for place, (name, arguments) in enumerate(said):
        if (given := scene.read(name, arguments)) is None:
            continue
        try:
            made = PLANTABLE[kind](name, given, scene)
            wrong = next((one for one in made if name != "submit" or scene.is_wrong(one, kind)), None)
        except RefusedError:  # of something that does not exist: the call will be refused
            continue
        if wrong is not None:
            beside = [(name, given)] if kind == "unwanted item" and name != "submit" else []
            changed = with_calls(message, [*said[:place], *beside, (name, wrong), *said[place + 1 :]])
            return _spoken(changed, given, wrong, scene)
    return None


def with_calls(message: Message, calls: Sequence[Call]) -> Message:
    """Put calls into a message. Equal calls keep their ids, and a changed call takes the id of the call that it
    replaces, so that a player recognizes the results."""
    had = list(zip(calls_of(message), (call["id"] for call in message["tool_calls"]), strict=True))
    ids: dict[int, str] = {}
    for same in (lambda one, other: one == other, lambda one, other: one[0] == other[0]):
        for number, call in enumerate(calls):
            mine = next((one for one in had if number not in ids and same(one[0], call)), None)
            if mine:
                had.remove(mine)
                ids[number] = mine[1]
    made = message_of(*calls)
    for number, call in enumerate(made["tool_calls"]):
        call["id"] = ids.get(number, f"planted{number}")
    return {**message, "tool_calls": made["tool_calls"]}


def _spoken(message: Message, right: Given, wrong: Given, scene: Scene) -> Message:
    """Change the product's title in the text beside a wrong call."""
    text, catalog = str(message.get("content") or ""), scene.world.catalog
    was, now = catalog.row(str(right.get("product_id"))), catalog.row(str(wrong.get("product_id")))
    if was is not None and now is not None:
        text = text.replace(catalog.title(was), catalog.title(now))
    return {**message, "content": text}


# Each edit yields wrong arguments for a correct call, in random order; none where it does not apply.

Edit = Callable[[str, Given, Scene], Iterator[Given]]


def _listed(name: str, given: Given) -> list[str]:
    """Return the products that a call submits; empty for any other call."""
    return list(given.get("product_ids") or ()) if name == "submit" else []


def wrong_product(name: str, given: Given, scene: Scene) -> Iterator[Given]:
    if name == "cart_add":
        wrong = {key: value for key, value in given.items() if key != "variant_id"}  # none was shown
        for other in scene.others(given["product_id"], fits=False, units=given.get("quantity", 1)):
            yield {**wrong, "product_id": other}
    for ids in scene.swapped(_listed(name, given), fits=False):
        if scene.affordable(ids):
            yield {"product_ids": ids}


def unwanted_item(name: str, given: Given, scene: Scene) -> Iterator[Given]:
    world, ids = scene.world, _listed(name, given)
    wanted = {want.type for want in (*scene.wants(), *scene.before())}
    others = [one for one in world.shown if world.stock(world.row(one)) > 0]
    others = [one for one in others if world.catalog.type_of(world.row(one)).name not in wanted]
    if name == "cart_add":  # in addition to the right call
        yield from ({"product_id": other, "quantity": 1} for other in scene.shuffled(others))
    elif ids and "budget" in scene.subtask.goal:
        seconds = {other for one in ids for other in scene.others(one, fits=True)}
        for other in scene.shuffled({*others, *seconds} - {*ids}):
            if scene.affordable([*ids, other]):
                yield {"product_ids": [*ids, other]}


def wrong_variant(name: str, given: Given, scene: Scene) -> Iterator[Given]:
    if name == "cart_add" and given.get("variant_id"):
        product_id, units, world = given["product_id"], given.get("quantity", 1), scene.world
        row = world.row(product_id)
        kind = world.catalog.type_of(row).name
        right = {given["variant_id"], *(want.option for want in scene.before() if want.type == kind)}
        for option in scene.shuffled(set(world.options(row)) - right):
            if world.stock(row, option) >= units and (product_id, option) in world.shown_pairs:
                yield {**given, "variant_id": option}
        if None not in right and world.stock(row) >= units:  # none at all; a search shows only one
            yield {name: value for name, value in given.items() if name != "variant_id"}


def wrong_quantity(name: str, given: Given, scene: Scene) -> Iterator[Given]:
    world, ids = scene.world, _listed(name, given)
    if name == "cart_add":
        row, option = world.row(given["product_id"]), given.get("variant_id")
        left = world.stock(row, option if option in world.options(row) else None)
    elif name == "return_initiate":
        left = standing_now(world, *find_line(world, given["order_id"], given["line_id"])).left
    else:
        if len(ids) > 1 and "count" in scene.subtask.goal:
            yield {"product_ids": ids[:-1]}
        return
    units, customer = given.get("quantity", 1), scene.subtask.customer
    was = {
        goal.get("quantity", goal.get("units", 1, item), item)
        for goal in (customer.first, customer.goal)
        for item in goal.items
    }
    for other in scene.shuffled({units - 1, units + 1} - was):
        if 1 <= other <= left:
            yield {**given, "quantity": other}


def not_the_best(name: str, given: Given, scene: Scene) -> Iterator[Given]:
    if "count" in scene.subtask.goal:
        for ids in scene.swapped(_listed(name, given), fits=True):
            if not scene.is_correct({"product_ids": ids}):
                yield {"product_ids": ids}


def over_budget(name: str, given: Given, scene: Scene) -> Iterator[Given]:
    for ids in scene.swapped(_listed(name, given), fits=True):
        if not scene.affordable(ids):
            yield {"product_ids": ids}


def sold_out(name: str, given: Given, scene: Scene) -> Iterator[Given]:
    ids, catalog, world = _listed(name, given), scene.world.catalog, scene.world
    for place in scene.shuffled(range(len(ids))):
        kind = catalog.type_of(world.row(ids[place])).name
        wants = [want for want in scene.wants() if want.type == kind]
        for other in scene.shuffled(world.shown - set(ids)):
            row, made = world.row(other), [*ids[:place], other, *ids[place + 1 :]]
            if catalog.type_of(row).name != kind or world.stock(row) or not scene.affordable(made):
                continue
            if any(catalog.satisfies(row, want.constraints) for want in wants):
                yield {"product_ids": made}


def wrong_line(name: str, given: Given, scene: Scene) -> Iterator[Given]:
    world = scene.world
    if not given.get("line_id") or not (
        name == "return_initiate" or (name == "submit" and not world.returns)
    ):
        return
    was = lines_meant(scene.subtask.first.of(), world.given["orders"], world.shop)
    right = {
        given["line_id"],
        *(line["line_id"] for _, line in was),
    }  # lines of the first goal are a stale wish
    shown = {
        (str(row["order_id"]), str(row["line_id"]))
        for _, result in results(scene.episode.messages)
        for row in records(result)
        if "title" in row and row.get("order_id") and row.get("line_id")
    }
    for order_id, line_id in scene.shuffled(shown):
        if line_id not in right:
            terms = standing_now(world, *find_line(world, order_id, line_id))
            if name == "submit" or (terms.delivered and given.get("quantity", 1) <= terms.left):
                yield {**given, "order_id": order_id, "line_id": line_id}


def wrong_outcome(name: str, given: Given, scene: Scene) -> Iterator[Given]:
    other = {"returned": "declined", "declined": "returned"}.get(str(given.get("outcome")))
    if name == "submit" and other:
        yield {**given, "outcome": other}


def wrong_order(name: str, given: Given, scene: Scene) -> Iterator[Given]:
    if name == "submit" and "status" in given:
        rows = (row for _, result in results(scene.episode.messages) for row in records(result))
        shown = {row["order_id"] for row in rows if "order_id" in row}
        yield from ({**given, "order_id": other} for other in scene.shuffled(shown - {given["order_id"]}))


def wrong_status(name: str, given: Given, scene: Scene) -> Iterator[Given]:
    if name == "submit" and "status" in given:
        for other in scene.shuffled(set(get_args(StatusName)) - {given["status"]}):
            yield {**given, "status": other}


def wrong_date(name: str, given: Given, scene: Scene) -> Iterator[Given]:
    for argument in ("date", "last_return_day") if name == "submit" else ():
        try:
            day = date.fromisoformat(str(given.get(argument)))
        except ValueError:
            continue
        off = pick(scene.random, [days for days in range(-7, 8) if days])
        yield {**given, argument: (day + timedelta(days=off)).isoformat()}


def wrong_clause(name: str, given: Given, scene: Scene) -> Iterator[Given]:
    if name != "submit" or not given.get("clause"):
        return
    told = [str(result) for tool, result in results(scene.episode.messages) if tool == "policy_search"]
    shown = {
        clause["id"]: clause.get("then")  # none where it refers to another section
        for section in scene.world.given.get("policies", {"sections": ()})["sections"]
        for clause in section["clauses"]
        if any(f"[{clause['id']}]" in text for text in told)
    }
    others = scene.shuffled(set(shown) - {given["clause"]})
    # Clauses with the same outcome come first, so that the rest of the answer stays consistent.
    others.sort(key=lambda one: shown[one] != shown.get(given["clause"]))
    yield from ({**given, "clause": other} for other in others)


def wrong_answer(name: str, given: Given, scene: Scene) -> Iterator[Given]:
    said = str(given.get("answer") or "")
    if name == "submit" and said in ("yes", "no"):
        yield {**given, "answer": "no" if said == "yes" else "yes"}
    elif name == "submit" and re.search(r"\d", said):
        yield {**given, "answer": re.sub(r"\d+", lambda found: str(int(found[0]) + 1), said, count=1)}


PLANTABLE: Mapping[str, Edit] = {
    edit.__name__.replace("_", " "): edit
    for edit in (
        wrong_product, unwanted_item, wrong_variant, wrong_quantity, not_the_best, over_budget, sold_out, wrong_line,
        wrong_outcome, wrong_order, wrong_status, wrong_date, wrong_clause, wrong_answer,
    )
}  # fmt: skip
"""Kinds of mistakes that can be planted if an environment offers the opportunity, and their edits."""


# --- effects ---

LEFT_OUT = ("unscored", "no correct act to replace", "no act to make wrong so", "cannot be written")
"""Reasons for the lack of a pair.

no correct act to replace: no act before the first mistake can be made wrong. no act to make wrong so: these acts allow
only other kinds. cannot be written: the policy's format cannot express the wrong act, for example because the policy
never saw the product.
"""


@dataclass(frozen=True)
class Pair:
    """Outcomes of a task with a planted mistake and without (the twin), or the reason for the lack of a pair."""

    env: str
    d: int
    seed: int
    kind: str
    turn: int = 0
    final: bool = False
    """True if the wrong act submits and so cannot be mended."""
    twin_correct: bool = False
    planted_correct: bool = False
    twin_later: int = 0
    """Mistakes after the turn that do not follow from an earlier one by rule."""
    planted_later: int = 0
    mended: bool = False
    why: str = ""
    """One of `LEFT_OUT`; empty for a pair."""


def measure(
    plays: Play, tasks: Sequence[Task], shop: "Shop", kinds: Sequence[str] = tuple(PLANTABLE)
) -> Iterator[Pair]:
    """Play each task, plant a mistake of each kind in the player's own beginning, and yield a `Pair` per task and kind.

    Both sides of a pair continue from given turns with fresh randomness. The episode in which the act was found cannot
    be the twin: the act is drawn among those before its first mistake, which favours episodes with a mistake soon after
    the act.
    """
    plans: list[tuple[Task, Trajectory, WrongAct]] = []
    for task, was in zip(tasks, plays(tasks, [()] * len(tasks)), strict=True):
        if was is None or was.score.unscored:
            yield from (_pair(task, kind, why="unscored") for kind in kinds)
            continue
        drawn = wrong_acts(was, shop)
        why = "no act to make wrong so" if drawn else "no correct act to replace"
        yield from (_pair(task, kind, why=why) for kind in kinds if kind not in drawn)
        plans += [(task, was, drawn[kind]) for kind in kinds if kind in drawn]
    sides = []
    for side in ("right", "wrong"):
        given = [[*messages_of(was)[: act.turn - 1], getattr(act, side)] for _, was, act in plans]
        sides.append(list(zip(given, plays([task for task, *_ in plans], given), strict=True)))
    for (task, _, act), (own, twin), (said, planted) in zip(plans, *sides, strict=True):
        if twin is None or planted is None or twin.score.unscored or planted.score.unscored:
            yield _pair(task, act.kind, why="unscored")
        elif not (_begins(twin, own) and _begins(planted, said)):
            yield _pair(task, act.kind, why="cannot be written")
        else:
            yield _compared(task, act, label(twin, shop), label(planted, shop))


def _pair(task: Task, kind: str, **more: Any) -> Pair:
    return Pair(task.env, task.difficulty, task.seed, kind, **more)


def _begins(trajectory: Trajectory, given: Sequence[Message]) -> bool:
    """Tell whether a trajectory begins with the same calls as the given messages."""
    said = messages_of(trajectory)[: len(given)]
    return [calls_of(one) for one in said] == [calls_of(one) for one in given]


def _compared(task: Task, act: WrongAct, twin: Labelled, planted: Labelled) -> Pair:
    made = [mistake for mistake in planted.mistakes if mistake.turn == act.turn]
    return _pair(
        task,
        act.kind,
        turn=act.turn,
        final=any(name == "submit" for name, _ in calls_of(act.wrong)),
        twin_correct=twin.correct,
        planted_correct=planted.correct,
        twin_later=sum(mistake.turn > act.turn for mistake in twin.roots),
        planted_later=sum(mistake.turn > act.turn for mistake in planted.roots),
        mended=bool(made) and all(mistake.fate.startswith("mended") for mistake in made),
    )


def by_task(pairs: Sequence[Pair], value: Callable[[Pair], float]) -> list[list[float]]:
    """List a value of pairs, by task."""
    tasks: dict[int, list[float]] = defaultdict(list)
    for pair in pairs:
        tasks[pair.seed].append(float(value(pair)))
    return list(tasks.values())


def effects(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """Summarize pairs by environment, level and kind, and by environment and level over all kinds ("all").

    `effect` is success with the mistake minus success without, `further` the number of further mistakes; over all kinds
    a task's pairs are averaged first. `mended` is the share of mended mistakes among those that can be mended. Each has
    95% bounds over tasks (`_low`, `_high`). Records without a pair are left out.
    """
    groups: dict[tuple[str, int, str], list[Pair]] = defaultdict(list)
    for pair in pairs:
        if not pair.why:
            groups[pair.env, pair.d, "all"].append(pair)
            groups[pair.env, pair.d, pair.kind].append(pair)
    return [
        {"env": env, "d": d, "kind": kind, **_effect(mine)} for (env, d, kind), mine in sorted(groups.items())
    ]


def _effect(pairs: Sequence[Pair]) -> dict[str, float]:
    def means(value: Callable[[Pair], float]) -> list[float]:
        return [sum(values) / len(values) for values in by_task(pairs, value)]

    twin, planted = means(lambda pair: pair.twin_correct), means(lambda pair: pair.planted_correct)
    loss, low, high, _ = paired_interval([one - other for one, other in zip(planted, twin, strict=True)])
    more, fewer, most = _mean_interval(means(lambda pair: pair.planted_later - pair.twin_later))
    able = [pair for pair in pairs if not pair.final]
    worst, best = share_interval(by_task(able, lambda pair: pair.mended))
    return {
        "pairs": len(pairs),
        "tasks": len(twin),
        "twin": sum(twin) / len(twin),
        "planted": sum(planted) / len(planted),
        "effect": loss, "effect_low": low, "effect_high": high,
        "further": more, "further_low": fewer, "further_high": most,
        "mendable": len(able),
        "mended": sum(pair.mended for pair in able) / len(able) if able else math.nan,
        "mended_low": worst, "mended_high": best,
    }  # fmt: skip


def _mean_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Compute a mean and its bounds by Student's t; the bounds are NaN for fewer than two different values."""
    from scipy.stats import ttest_1samp

    mean = sum(values) / len(values)
    if len(set(values)) < 2:
        return mean, math.nan, math.nan
    bounds = ttest_1samp(values, 0.0).confidence_interval(CONFIDENCE)
    return mean, float(bounds.low), float(bounds.high)
