"""Steps of the kind chain: an amount of a later job stands on what earlier ones rightly come to."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.difficulty import Difficulty
from ecomlab.envs.base import Comes
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.seeding import shuffled
from ecomlab.slots import DAYS, PRICE
from ecomlab.steps import draw_size
from ecomlab.task import Goal, Need, Place, Problem, Task, TaskKey
from ecomlab.wishes import ELSE, Demand, Earlier, If, is_chained
from ecomlab.world.plain import with_amounts

NO_LIMIT = {"money": 100_000_000, "days": 1000}
"""Amounts that limit nothing: what somebody assumes who does not see what an amount stands on."""
ADDED = ("refund",)
"""Outcomes in money that are to be spent; others are taken off."""
OTHERS = (0.6, 0.7, 0.8, 0.9, 1.1, 1.25, 1.4, 1.6)
"""Shares of a limit in money that hold where an outcome is none."""
OTHER_DAYS = (-3, -2, -1, 1, 2, 3)
FEWEST_CENTS = 300
"""Least outcome in money that something stands on."""


@dataclass(frozen=True)
class Job:
    """A job of a journey as it was drawn by itself."""

    problem: Problem
    task: Task


def draw_chains(
    jobs: Sequence[Job],
    count: int,
    key: TaskKey,
    axes: Difficulty,
    shop: Shop,
    make: Callable[[str, Problem], Task],
) -> list[Task]:
    """Let up to `count` amounts of later jobs stand on earlier ones; `make` makes a problem a task. Return the jobs in
    order, those first on which others can stand.

    What is right for a job stays what it was: only the words that lead there change.
    """
    random = key.rng("chain")
    able = [(ENVIRONMENTS[job.task.env].comes_to(job.task, shop), job) for job in jobs]
    able.sort(key=lambda one: one[0] is None)
    comes = [one for one, _ in able]
    tasks, problems = [job.task for _, job in able], [job.problem for _, job in able]
    places = [(number, place) for number, task in enumerate(tasks) for place in amounts_in(task)]
    for number, place in shuffled(random, places):
        if not count:
            break
        known = {one.name: one for one in comes[:number] if one is not None}
        problem, task = problems[number], tasks[number]
        size = draw_size(axes, "chain", random)
        amount = _Amount(task, place, shop)
        wish = next(amount.draw(known, size, random), None) if known and amount.decides else None
        if wish is None:
            continue
        goal = replace(amount.put(task.goal, wish), withheld=task.goal.withheld - {place})
        need = Need(task.need.turns + amount.days, task.need.calls + amount.days)  # a look at today's date
        made = replace(problem, goal=goal, need=need, steps=[*problem.steps, *["chain"] * amount.counts])
        problems[number], tasks[number] = made, make(task.env, made)
        count -= 1
    return tasks


def stands_on(task: Task) -> bool:
    """Tell whether an amount of a job stands on earlier ones."""
    return any(map(is_chained, task.goal.slots.values()))


def amounts_in(task: Task) -> list[Place]:
    """List the places of amounts that can stand on earlier jobs, and that nothing which happens changes."""
    end, own = task.goal.after(task.events), ENVIRONMENTS[task.env].phrases.slots
    able = [PRICE.name, *(() if DAYS.name in own else (DAYS.name,))]
    return [
        place
        for place, value in task.goal.slots.items()
        if end.slots.get(place) == value and (place[1] in able or _condition(value))
    ]


def _condition(value: Any) -> If | None:
    """Find the condition that a slot's value is, or that is in a demand."""
    inside = value.value if isinstance(value, Demand) else value
    return inside if isinstance(inside, If) else None


def _with_limit(value: Any, limit: Any) -> Any:
    """Put another limit into a condition."""
    if not isinstance(value, Demand):
        return replace(value, limit=limit)
    wish = replace(value.value, limit=limit)
    return replace(value, value=wish, words=wish.say())


class _Amount:
    """One amount of a job: a slot's own, or the limit of the wish there."""

    def __init__(self, task: Task, place: Place, shop: Shop) -> None:
        self.task, self.place, self.shop = task, place, shop
        value = task.goal.slots[place]
        condition = _condition(value)
        self.conditional, self.days = condition is not None, place[1] == DAYS.name
        self.limit: int = condition.limit if condition else value
        self.goal = with_amounts(task.goal)

    def put(self, goal: Goal, amount: Any) -> Goal:
        """Put another amount in its place."""
        value = goal.slots[self.place]
        value = _with_limit(value, amount) if self.conditional else amount
        return replace(goal, slots={**goal.slots, self.place: value})

    def is_same(self, taken: int, right: int) -> bool:
        """Tell whether what is right under one amount is right under another."""
        env, mine, best = ENVIRONMENTS[self.task.env], self.put(self.goal, taken), self.put(self.goal, right)
        return env.is_right(mine, best, self.task, self.shop)

    @cached_property
    def counts(self) -> bool:
        """Tell whether it is wrong to assume that there is no limit."""
        return not self.is_same(NO_LIMIT["days" if self.days else "money"], self.limit)

    @property
    def decides(self) -> bool:
        """Tell whether it can stand on something: of a condition both ends do, or that it holds would be told."""
        return self.conditional or self.counts

    def draw(self, known: Mapping[str, Comes], size: int, random: np.random.Generator) -> Iterator[Earlier]:
        """Yield amounts that stand on known outcomes and leave right what is right; what holds in the other case would
        make something else right."""
        unit, limit = 1 if self.days else 100, self.limit
        moved = (
            [limit + n for n in OTHER_DAYS] if self.days else [round(limit * x / 100) * 100 for x in OTHERS]
        )
        others = [n for n in shuffled(random, moved) if n > 0]
        for terms in _draw_terms(self.days, known, size, random):
            base = sum(times * (one.might if one.amount is None else one.amount) for one, times in terms)
            none = any(one.amount is None for one, _ in terms)
            either = any(one.name in ELSE for one, _ in terms)
            other = next((n for n in others if not self.is_same(n, limit)), None) if either else limit
            if other is None:
                return
            here, there = (other, limit) if none else (limit, other)
            plus = unit * math.ceil((here - base) / unit)
            if plus < 0 and not self.days and (len(terms) > 1 or terms[0][1] > 1):
                continue  # "twice what I get back minus $20" has two meanings
            amount = limit if none else base + plus
            if self.is_same(amount, limit) and self.is_same(limit, amount):
                names = tuple((one.name, times) for one, times in terms)
                yield Earlier(names, plus, there if either else None, amount)


def _draw_terms(
    days: bool, known: Mapping[str, Comes], size: int, random: np.random.Generator
) -> Iterator[list[tuple[Comes, int]]]:
    """Yield what an amount may stand on, the longest first: as many outcomes as its size, or twice one."""
    if days:
        yield from ([(one, 1)] for one in known.values() if one.name == "arrival")
        return
    able = [one for one in known.values() if one.name != "arrival" and one.might >= FEWEST_CENTS]
    terms = [(one, 1 if one.name in ADDED else -1) for one in shuffled(random, able)]
    for count in range(min(size, len(terms)), 0, -1):
        chosen = sorted(terms[:count], key=lambda term: -term[1])
        if count == 1 and size > 1 and chosen[0][1] > 0:
            yield [(chosen[0][0], 2)]
        yield chosen
    yield from ([term] for term in terms[1:])
