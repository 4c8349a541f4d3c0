"""STATUS: report which order the customer means, its status, and its day of arrival."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from ecomlab.answers.dates import read_day, says_none
from ecomlab.answers.status import Status as StatusSaid
from ecomlab.answers.status import read_status
from ecomlab.catalog import Shop
from ecomlab.customer.goals import withhold
from ecomlab.customer.opinions import Opinion, Thing
from ecomlab.customer.templates import Phrases
from ecomlab.difficulty import Difficulty
from ecomlab.envs.base import Comes, Environment
from ecomlab.envs.status.audit import StatusAudit
from ecomlab.envs.status.player import StatusPlayer
from ecomlab.envs.status.questions import KINDS, MOST_ASKED, OF_ONE, QUESTIONS, Facts, draw_questions
from ecomlab.reward import Verdict
from ecomlab.seeding import shuffled
from ecomlab.steps import draw_kinds, draw_size
from ecomlab.task import ACT, Goal, GoalChange, Problem, Task, TaskError, TaskKey
from ecomlab.tool import tool
from ecomlab.world.orders.chains import MOST_SIZE
from ecomlab.world.orders.history import draw_history, last_date, status_of
from ecomlab.world.orders.references import (
    Slots,
    draw_another,
    draw_memory,
    look,
    refer,
    refer_by_links,
    resolve,
    without_links,
)
from ecomlab.world.state import World
from ecomlab.world.tools.catalog import catalog_get_product, datetime_now
from ecomlab.world.tools.orders import order_get_status, order_list, return_check_eligibility

WEIGHTS = {"order": 0.5, "status": 0.25, "date": 0.25}
NEAR = 0.3
"""Credit for another order that fits part of the description: without it an honest miss would earn less than an order
picked at random."""


@tool
def submit(
    world: World,
    order_id: Annotated[str | None, Field(description="The order that the customer means.")] = None,
    status: Annotated[StatusSaid | None, Field(description="How it stands.")] = None,
    date: Annotated[
        str | None,
        Field(description="The day on which it was delivered or is expected, its last parcel if it has several; none "
        "if it was cancelled."),
    ] = None,
) -> dict[str, Any]:  # fmt: skip
    """Submit the answer; the conversation ends."""
    return {"submitted": True}


class Status(Environment):
    id, version = "STATUS", 3
    brief = (
        "The customer asks about one of their orders. Find out which one they mean, and submit how it stands and the "
        "day on which it was delivered or is expected (of the last parcel, if it has several). Whatever else they ask, "
        "tell them."
    )
    tools = (order_list, order_get_status, return_check_eligibility, catalog_get_product, datetime_now)
    moments = (ACT,)
    submit, player, auditor, questions = submit, StatusPlayer, StatusAudit, QUESTIONS
    phrases = Phrases.load(Path(__file__).with_name("phrases.toml"))

    def draw(self, key: TaskKey, axes: Difficulty, shop: Shop) -> Problem:
        world, random = draw_history(key, axes, shop), key.rng("status")
        draws = _Draws(world, axes, shop, random)
        target, slots, asks = draws.order()
        change: GoalChange | None = None
        if random.random() < axes.p_switch:  # the order drawn is meant in the end, another one at first
            change, slots, asks = draws.change(target, slots, asks)
        goal = replace(withhold(Goal.one(slots), axes, random, never=("chain",)), asks=asks)
        if change and change.how == "set":
            # "The one before that" says nothing until one knows which order "that" is.
            hidden = {name: slots[name] for name in slots if (0, name) in goal.withheld}
            change = replace(change, slots={**hidden, **change.slots}, known=tuple(hidden))
        need = StatusPlayer.need(goal, draws.orders, draws.today)
        if change:
            change = replace(StatusPlayer.costs(change, goal, draws.orders, draws.today), moment=ACT)
        leads = "default" if "type" in goal else "vague"
        last = change.slots if change and change.how == "anew" else slots
        referred = ["reference"] * max(1, draws.references) if "chain" in last else []
        steps = [*referred, *["telling"] * len(asks)]
        return Problem(goal, world, need, [change] if change else [], leads, steps=steps)

    def verify(self, goal: Goal, world: World, answer: Mapping[str, Any], first: Goal) -> Verdict:
        today, orders = date.fromisoformat(world.given["today"]), world.given["orders"]
        (at,) = resolve(look(orders, world.shop), goal.of(), today)
        meant, told, token = orders[at], answer.get("date"), answer.get("order_id")
        status, last = status_of(meant), last_date(meant)
        right = isinstance(token, str) and token.strip().upper() == meant["order_id"]
        stands = right and read_status(answer.get("status")) == status
        arrived = says_none(told) if last is None else read_day(told, today) == date.fromisoformat(last)
        day = right and bool(answer) and arrived
        share = WEIGHTS["order"] * right + WEIGHTS["status"] * stands + WEIGHTS["date"] * day
        if not right and token in self._near(goal, first, orders, world, today):
            share = NEAR
        correct = right and stands and day
        why = f"order {meant['order_id']} is {status}, {last or 'no day'}"
        why = why if correct else self.reasons(goal, world, answer, first)
        return Verdict.of(correct, 2 * share - 1, why)

    def comes_to(self, task: Task, shop: Shop) -> Comes | None:
        today, orders = date.fromisoformat(task.world["today"]), task.world["orders"]
        (at,) = resolve(look(orders, shop), task.goal.after(task.events).of(), today)
        last = last_date(orders[at])
        if last is None:
            return None
        days = (date.fromisoformat(last) - today).days
        return Comes("arrival", days if days > 0 else None, int(task.key.rng("arrival").integers(1, 10)))

    def _near(self, goal: Goal, first: Goal, orders: Sequence[Any], world: World, today: date) -> set[str]:
        """Find the orders that fit part of the description: they hold such a product, were mentioned to identify
        another order, or were asked about at first."""
        seen = look(orders, world.shop)
        named = {name: goal.get(name) for name in ("type", "thing") if name in goal}
        near = [*(resolve(seen, slots, today) for slots in (first.of(), named) if slots)]
        near += [without_links(seen, one.of(), today) for one in (first, goal)]
        return {orders[i]["order_id"] for some in near for i in some}

    def opinion(self, goal: Goal, world: World, thing: Thing) -> Opinion | None:
        if thing.kind == "product":
            return None
        orders, today = world.given["orders"], date.fromisoformat(world.given["today"])
        meant = resolve(look(orders, world.shop), goal.of(), today)
        return Opinion(thing.id in [orders[i]["order_id"] for i in meant], identifies=True)


MOST_TRIED = 30
"""Most orders of a history among which one is sought that a customer could speak of so."""


class _Draws:
    """Draws what one customer says of their orders."""

    def __init__(
        self, world: Mapping[str, Any], axes: Difficulty, shop: Shop, random: np.random.Generator
    ) -> None:
        self.axes, self.random = axes, random
        self.today, self.orders = date.fromisoformat(world["today"]), look(world["orders"], shop)
        self.facts = [Facts.of_order(order, shop) for order in world["orders"]]
        self.indirect = bool(random.random() < axes.orders.p_indirect)
        self.memory = draw_memory(random)
        steps = draw_kinds(axes, ("reference", "telling"), random)
        self.references, asked = steps.count("reference"), steps.count("telling")
        size = self.references - 1 + draw_size(axes, "reference", random) if self.references else 0
        self.links = min(size, MOST_SIZE)
        """Size of the chain of links that leads to the order."""
        self.kinds = shuffled(random, list(KINDS.values()))[: min(asked, MOST_ASKED)]
        """Groups of questions, of each of which one is asked."""
        self.size = max(0, asked - 1) + draw_size(axes, "telling", random)
        """Number of orders behind an answer."""

    def order(self) -> tuple[int, Slots, dict[str, Any]]:
        """Draw the order that is meant, its description and the questions about it; a shorter chain or fewer questions
        where the history has none for so many. All that can be described and asked about so are equally likely."""
        able = [(links, asked) for links in range(self.links + 1) for asked in range(len(self.kinds) + 1)]
        for links, asked in sorted(able, key=lambda one: (one[0] > 0) + one[1] + one[0] / 99, reverse=True):
            for at in shuffled(self.random, range(len(self.orders)))[:MOST_TRIED]:
                asks = self.asks(at, self.kinds[:asked])
                slots = None if asks is None else self.refer(at, links)
                if slots and asks is not None:
                    self.links = links
                    return at, slots, asks
        raise TaskError("no order of the history can be told from the others")

    def change(
        self, target: int, slots: Slots, asks: dict[str, Any]
    ) -> tuple[GoalChange | None, Slots, dict[str, Any]]:
        """Draw an order that is asked about at first, and how the customer turns from it to the one that is meant.
        Return the change, and the description and the questions at first."""
        if not (asks or "chain" in slots):
            first, told = draw_another(
                target, self.orders, self.today, self.indirect, self.random, self.memory
            )
            if not (first and told):
                return None, slots, asks
            return GoalChange(slots=told, how="set" if "correction" in told else "anew"), first, asks
        others = {slot: value for slot, value in asks.items() if slot not in OF_ONE}
        again = {slot: value for slot, value in asks.items() if slot in OF_ONE}
        for at in shuffled(self.random, [at for at in range(len(self.orders)) if at != target]):
            early = self.asks(at, [(slot,) for slot in again])
            first = self.refer(at, self.links)  # as long a chain, or it would be foretold
            if early is not None and first:
                return GoalChange(slots=slots, how="anew", asks=again), first, {**others, **early}
        return None, slots, asks

    def asks(self, at: int, kinds: Sequence[Sequence[str]]) -> dict[str, Any] | None:
        """Draw the questions about an order; None where one makes no sense. Where links lead to the order, they name no
        item that it alone holds."""
        others = {
            name for i, facts in enumerate(self.facts) if i != at or not self.links for name in facts.types
        }
        return draw_questions(kinds, at, self.facts, self.today, others, self.size, self.random)

    def refer(self, at: int, links: int) -> Slots | None:
        """Refer to an order by links or, with none, in words that name it."""
        if links:
            return refer_by_links(at, self.orders, links, self.random)
        return refer(at, self.orders, self.today, self.indirect, self.random, self.memory)
