"""LOCKERS: in which locker is what the customer left? Neither its tool nor its ids are known to the package.

LEAK names what is wrong with it: "order", the locker that is meant comes first; "ids", its number is odd and all others
are even; "size", how many lockers there are depends on what is withheld; "declared", its list is not declared.
"""

from dataclasses import replace

from ecomlab.envs.answering import Answering
from ecomlab.players.goal_player import Clerk
from ecomlab.reward import Verdict
from ecomlab.seeding import rng
from ecomlab.task import Need
from ecomlab.tool import tool
from ecomlab.world.tools.catalog import named

LEAK = ""


@tool(lists={"lockers": "locker_id"})
def locker_list(world):
    """List the lockers and what is in them."""
    return {"lockers": [dict(pairs) for pairs in world.given["lockers"]]}


@tool
def submit(world, locker_id: str):
    """Hand in the locker that the customer means."""
    return {"submitted": True}


class Keeper(Clerk):
    def restart(self):
        self.lockers = None

    def result(self, about, result):
        self.lockers = result.get("lockers", self.lockers)

    def work(self):
        if self.lockers is None:
            return self.turn(self.call("locker_list", None))
        wanted = {name.removeprefix("attr:"): value for (_, name), value in self.known.items()}
        fits = [row["locker_id"] for row in self.lockers if wanted.items() <= row.items()]
        return self.turn(self.call("submit", None, locker_id=(fits[self.slip() :] or [""])[0]))


class Lockers(Answering):
    id = "LOCKERS"
    version = 1
    golden = ""
    axes = ("p_missing", "turn_slack", "tool_slack", "p_noise")
    brief = "The customer left something in a locker. Hand in the locker."
    tools = named(locker_list)
    submit = submit
    clerk = Keeper
    leads = ("which locker has {}?", "I left {} in a locker, in which?")

    def draw(self, key, axes, shop):
        random = rng("lockers", *key)
        kinds = [
            kind for kind in shop.catalog.types if kind.attributes and len(kind.attributes[0].values) > 3
        ]
        kind = kinds[int(random.integers(len(kinds)))]
        name, values = kind.attributes[0].name, kind.attributes[0].values
        slots = [(0, "type", kind.name), (0, f"attr:{name}", values[int(random.integers(len(values)))])]
        hidden = {(0, f"attr:{name}")} if random.random() < 2 * axes.p_missing else set()
        asks = int(bool(hidden))
        return self.draft(
            slots, hidden, lockers_of(slots, values, key), Need(asks + 1, asks, 1), values=list(values)
        )

    def verify(self, job):
        rows = map(dict, job.world.given["lockers"])
        meant = [row["locker_id"] for row in rows if fits(row, job.state)]
        correct = (job.answer or {}).get("locker_id") in meant
        return Verdict(1.0 if correct else -1.0, correct, f"it is in {meant}")

    def chance(self, task, shop):
        return 1 / len(task.world["lockers"])

    def twin(self, task, shop, random):
        """Another thing left, and the lockers as they are drawn for that."""
        (of_type, (_, name, value)), values = task.truth["slots"], task.truth["values"]
        if not task.truth["withheld"]:
            return None
        slots = [of_type, [0, name, next(other for other in values if other != value)]]
        return replace(task, truth={**task.truth, "slots": slots}, world=lockers_of(slots, values, task.key))


def fits(row, state):
    return all(row[name.removeprefix("attr:")] == value for (_, name), value in state.items())


def lockers_of(slots, values, key):
    """A locker for each value that the thing might have, in an order and with numbers that say nothing but for LEAK."""
    random = rng("numbers", *key)
    (_, _, kind), (_, name, wanted) = slots
    order = [values[i] for i in random.permutation(len(values)).tolist()]
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
    return {"lockers": rows}
