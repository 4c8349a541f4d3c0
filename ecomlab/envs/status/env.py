"""STATUS: report which order the customer means, its status, and its day of arrival."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ecomlab.answers.dates import read_day, says_none
from ecomlab.answers.status import Status as StatusSaid
from ecomlab.answers.status import read_status
from ecomlab.catalog import Shop
from ecomlab.customer.goals import withhold
from ecomlab.customer.opinions import Opinion, Thing
from ecomlab.customer.templates import Phrases
from ecomlab.difficulty import Difficulty
from ecomlab.envs.base import Environment
from ecomlab.envs.status.audit import StatusAudit
from ecomlab.envs.status.player import StatusPlayer
from ecomlab.reward import Verdict
from ecomlab.seeding import pick, shuffled
from ecomlab.task import Goal, GoalChange, Problem, TaskError, TaskKey
from ecomlab.tool import tool
from ecomlab.world.orders.history import draw_history, last_date, status_of
from ecomlab.world.orders.references import STEPS, draw_another, look, refer, resolve
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
    """Hand in the answer; the conversation ends."""
    return {"submitted": True}


class Status(Environment):
    id, version = "STATUS", 2
    brief = (
        "The customer asks about one of their orders. Find out which one they mean, and hand in how it stands and the "
        "day on which it was delivered or is expected (of the last parcel, if it has several)."
    )
    tools = (order_list, order_get_status, return_check_eligibility, catalog_get_product, datetime_now)
    moments = ("order_list", "order_get_status")
    submit, player, auditor = submit, StatusPlayer, StatusAudit
    phrases = Phrases.load(Path(__file__).with_name("phrases.toml"))

    def draw(self, key: TaskKey, axes: Difficulty, shop: Shop) -> Problem:
        world, random = draw_history(key, axes, shop), key.rng("status")
        today, orders = date.fromisoformat(world["today"]), look(world["orders"], shop)
        indirect, switching = random.random() < axes.orders.p_indirect, random.random() < axes.p_switch
        # All orders are equally likely.
        drawn = ((i, refer(i, orders, today, indirect, random)) for i in shuffled(random, range(len(orders))))
        target, slots = next(((i, slots) for i, slots in drawn if slots), (0, None))
        if slots is None:
            raise TaskError("no order of the history can be told from the others")
        change = None
        if switching:  # the order drawn is meant in the end, another one at first
            first, told = draw_another(target, orders, today, indirect, random)
            if first and told:
                slots = first
                change = GoalChange(slots=told, how="set" if "correction" in told else "anew")
        goal = withhold(Goal.one(slots), axes, random)
        if change and change.how == "set":
            # "The one before that" says nothing until one knows which order "that" is.
            hidden = {name: slots[name] for name in slots if (0, name) in goal.withheld}
            change = replace(change, slots={**hidden, **change.slots}, known=tuple(hidden))
        need = StatusPlayer.need(goal, orders, today)
        if change:
            change = replace(StatusPlayer.costs(change, goal), moment=pick(random, self.moments))
        leads = "beside" if "relation" in goal else "default" if "type" in goal else "vague"
        return Problem(goal, world, need, [change] if change else [], leads)

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

    def _near(self, goal: Goal, first: Goal, orders: Sequence[Any], world: World, today: date) -> set[str]:
        """Find the orders that fit part of the description: they hold such a product, were mentioned to identify
        another order, or were asked about at first."""
        said = [first.of(), first.drop_slots(*STEPS).of(), goal.drop_slots(*STEPS).of()]
        if "type" in goal or "thing" in goal:
            said.append({name: goal.get(name) for name in ("type", "thing")})
        seen = look(orders, world.shop)
        return {orders[i]["order_id"] for slots in said for i in resolve(seen, slots, today)}

    def opinion(self, goal: Goal, world: World, thing: Thing) -> Opinion | None:
        if thing.kind == "product":
            return None
        orders, today = world.given["orders"], date.fromisoformat(world.given["today"])
        meant = resolve(look(orders, world.shop), goal.of(), today)
        return Opinion(thing.id in [orders[i]["order_id"] for i in meant], identifies=True)
