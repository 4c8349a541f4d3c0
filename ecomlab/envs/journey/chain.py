"""Steps of the kind chain: an amount of a later job stands on what earlier ones rightly come to."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.difficulty import STEPS, Difficulty
from ecomlab.envs.base import Comes
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.seeding import shuffled
from ecomlab.slots import BUDGET, DAYS, PRICE
from ecomlab.steps import SHARE_OF_A_JOB, draw_kinds, draw_size
from ecomlab.task import Goal, Need, Place, Problem, Task, TaskKey
from ecomlab.wishes import Earlier, If, IfSame, settled

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
    jobs: Sequence[Job], key: TaskKey, axes: Difficulty, shop: Shop, make: Callable[[str, Problem], Task]
) -> list[Task]:
    """Let amounts of later jobs stand on earlier ones, as many as there are such steps; `make` makes a problem a task.
    Return the jobs in order: where there is a step, those first on which others can stand.

    What is right for a job stays what it was: only the words that lead there change.
    """
    random = key.rng("chain")
    steps = axes.override({"steps.mean": axes.steps.mean * SHARE_OF_A_JOB * len(jobs)})
    count = draw_kinds(steps, tuple(STEPS), random).count("chain")
    if not count:
        return [job.task for job in jobs]
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
        for wish, counts in _draw_amounts(task, place, known, size, shop, random):
            goal = _with_amount(task.goal, place, wish)
            goal = replace(goal, withheld=goal.withheld - {place})
            looks = place[1] == DAYS.name
            need = Need(task.need.turns + looks, task.need.calls + looks)
            made = replace(problem, goal=goal, need=need, steps=[*problem.steps, *["chain"] * counts])
            problems[number], tasks[number] = made, make(task.env, made)
            count -= 1
            break
    return tasks


def stands_on(task: Task) -> bool:
    """Tell whether an amount of a job stands on earlier ones."""
    seen = list[Earlier]()
    for value in task.goal.slots.values():
        settled(value, seen.append)
    return bool(seen)


def amounts_in(task: Task) -> list[Place]:
    """List the places of amounts that can stand on earlier jobs, and that nothing which happens changes."""
    end, own = task.goal.after(task.events), ENVIRONMENTS[task.env].phrases.slots
    able = [PRICE.name, BUDGET.name, *(() if DAYS.name in own else (DAYS.name,))]
    return [
        place
        for place, value in task.goal.slots.items()
        if end.slots.get(place) == value and (place[1] in able or isinstance(value, If | IfSame))
    ]


def _with_amount(goal: Goal, place: Place, amount: Any) -> Goal:
    """Put an amount in a place: that of the wish there, or the slot's own."""
    value = goal.slots[place]
    value = replace(value, limit=amount) if isinstance(value, If | IfSame) else amount
    return replace(goal, slots={**goal.slots, place: value})


def _draw_amounts(
    task: Task, place: Place, known: Mapping[str, Comes], size: int, shop: Shop, random: np.random.Generator
) -> Iterator[tuple[Earlier, bool]]:
    """Yield amounts that leave right what is right, and whether it is wrong to assume that there is no limit. What
    holds in the other case would make something else right."""
    value = task.goal.slots[place]
    conditional = isinstance(value, If | IfSame)
    limit = value.limit if conditional else value
    days = place[1] == DAYS.name
    env = ENVIRONMENTS[task.env]
    slots = {at: settled(value, lambda wish: wish.value) for at, value in task.goal.slots.items()}
    goal = replace(task.goal, slots=slots)

    def same(amount: int, other: int = limit) -> bool:
        """Tell whether what is right under one amount is right under another."""
        one, two = (_with_amount(goal, place, some) for some in (amount, other))
        return env.is_right(one, two, task, shop)

    counts = not same(NO_LIMIT["days" if days else "money"])
    if not (counts or conditional):
        return
    for terms in _draw_terms(days, known, size, random):
        unit = 1 if days else 100
        base = sum(times * (one.might if one.amount is None else one.amount) for one, times in terms)
        none = any(one.amount is None for one, _ in terms)
        either = any(one.name in ("refund", "arrival") for one, _ in terms)
        step = [limit + n for n in OTHER_DAYS] if days else [unit * round(limit * x / unit) for x in OTHERS]
        others = [n for n in shuffled(random, step) if n > 0 and not same(n)] if either else [limit]
        for other in others[:1]:
            here, there = (other, limit) if none else (limit, other)
            plus = unit * math.ceil((here - base) / unit)
            if plus < 0 and not days and (len(terms) > 1 or terms[0][1] > 1):
                continue
            amount = limit if none else base + plus
            if not (same(amount) and same(limit, amount)):
                continue
            names = tuple((one.name, times) for one, times in terms)
            yield Earlier(names, plus, there if either else None, amount), counts


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
