"""LOCKERS: in which locker is what the customer left? Neither its tool nor its ids are known to the package.

LEAK names what is wrong with it: "order", the locker that is meant comes first; "ids", its number is odd and all others
are even; "size", how many lockers there are depends on what is withheld; "flag", the one that is meant is marked;
"told", the tool says what is in it. The counterfactuals of the last two keep the world drawn for the first goal.
"""

from dataclasses import replace

from ecomlab.customer.templates import Phrases
from ecomlab.envs.base import Audit, Environment
from ecomlab.players.budgets import budget
from ecomlab.players.goal_player import GoalPlayer
from ecomlab.reward import Verdict
from ecomlab.seeding import pick, rng, shuffled
from ecomlab.task import Goal, Need, Problem
from ecomlab.tool import tool

LEAK = ""


@tool(lists={"lockers": "locker_id"})
def locker_list(world):
    """List the lockers and what is in them."""
    told = {"remembered": world.given["told"]} if "told" in world.given else {}
    return {"lockers": [dict(pairs) for pairs in world.given["lockers"]], **told}


@tool
def submit(world, locker_id: str):
    """Hand in the locker that the customer means."""
    return {"submitted": True}


class Keeper(GoalPlayer):
    def restart(self):
        self.lockers = None

    def result(self, about, result):
        self.lockers = result.get("lockers", self.lockers)

    def work(self):
        if self.lockers is None:
            return self.turn(self.call("locker_list", None))
        wanted = {name.removeprefix("attr:"): value for name, value in self.slots.items()}
        fits = [row["locker_id"] for row in self.lockers if wanted.items() <= row.items()]
        return self.turn(self.call("submit", None, locker_id=(fits[self.slip() :] or [""])[0]))


class LockersAudit(Audit):
    def chance(self, task, shop):
        return 1 / len(task.world["lockers"])

    def alternatives(self, slot, goal, task, shop):
        """Another thing left, and the lockers as they are drawn for that."""
        values = [value for value in task.notes["values"] if value != goal[slot[1]]]
        if LEAK in ("flag", "told"):
            return values
        others = [goal.set_slots({slot[1]: value}) for value in values]
        return [
            replace(task, goal=other, world=lockers_of(other, task.notes["values"], task.key))
            for other in others
        ]


class Lockers(Environment):
    id, version = "LOCKERS", 1
    brief = "The customer left something in a locker. Hand in the locker."
    tools, submit, player, auditor = (locker_list,), submit, Keeper, LockersAudit
    phrases = Phrases.of(leads=("which locker has {}?", "I left {} in a locker, in which?"))

    def draw(self, key, axes, shop):
        random = key.rng("lockers")
        kinds = [k for k in shop.catalog.types if k.attributes and len(k.attributes[0].values) > 3]
        kind = pick(random, kinds)
        slot, values = f"attr:{kind.attributes[0].name}", kind.attributes[0].values
        slots = {"type": kind.name, slot: pick(random, values)}
        hidden = [slot] if random.random() < 2 * axes.p_missing else []
        goal = Goal.one(slots, hidden)
        return Problem(goal, lockers_of(goal, values, key), Need(2, 1), notes={"values": list(values)})

    def budget(self, axes, shop, items):
        return budget(Need(2, 1), 1, axes)

    def verify(self, goal, world, answer, first):
        rows = map(dict, world.given["lockers"])
        meant = [row["locker_id"] for row in rows if fits(row, goal)]
        correct = answer.get("locker_id") in meant
        return Verdict(1.0 if correct else -1.0, correct, f"it is in {meant}")


def fits(row, goal):
    return all(row[name.removeprefix("attr:")] == value for name, value in goal.of().items())


def lockers_of(goal, values, key):
    """A locker for each value that the thing might have, in an order and with numbers that say nothing but for LEAK."""
    random = rng("numbers", *key)
    (_, kind), (name, wanted) = goal.of().items()
    order = shuffled(random, values)
    numbers = [2 * n for n in random.permutation(500)[: len(values)].tolist()]
    if LEAK == "order":
        order.sort(key=lambda value: value != wanted)
    if LEAK == "ids":
        numbers = [n + (value == wanted) for n, value in zip(numbers, order, strict=True)]
    if LEAK == "size":
        order = order[: max(order.index(wanted), values.index(wanted)) + 1]
    rows = [
        [["locker_id", f"L{100 + number}"], ["type", kind], [name.removeprefix("attr:"), value]]
        for number, value in zip(numbers, order, strict=False)
    ]
    if LEAK == "flag":
        rows = [[*row, ["popular", row[2][1] == wanted]] for row in rows]
    return {"lockers": rows} | ({"told": [["what", wanted]]} if LEAK == "told" else {})
