"""Every function of the difficulty level d: twelve axes, and groups of values for single environments.

Sizes are means: a task draws one of the two integers next to a mean (`seeding.whole_near`), so that difficulty rises
without steps.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from numbers import Real
from typing import Any

from ecomlab.suggest import unknown, whole

STEPS: Mapping[str, int] = {
    "reference": 1, "logic": 1, "joint": 2, "trade_off": 1, "none": 2, "rules": 1, "telling": 1, "chain": 1,
    "evidence": 1, "looking": 1, "belief": 1, "taste": 4,
}  # fmt: skip
"""Kinds of steps of thought, each with its least size."""


def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


def _ranged(low: float, high: float, about: str) -> Any:
    """Declare a field that may be overridden within these bounds; `about` describes it."""
    return field(metadata={"range": (low, high), "about": about})


@dataclass(frozen=True)
class CartDraws:
    """Further values for carts: the number of items, and how exactly each is wanted."""

    items: float = _ranged(1, 20, "mean number of items wanted in a cart")
    p_option: float = _ranged(0, 1, "probability that an item is wanted in a certain variant")
    p_quantity: float = _ranged(0, 1, "probability that more than one unit is wanted")


@dataclass(frozen=True)
class DiscoveryDraws:
    """Further values for recommendations: how tight the bounds are, and how much meeting them counts."""

    slack: float = _ranged(0, 10, "how far numeric bounds lie from the drawn product in the mean, as a share")
    alpha: int = _ranged(1, 1000, "power of the satisfied share in the reward")


@dataclass(frozen=True)
class SubstitutionDraws:
    """Further values for substitutions: how much similarity counts beside the customer's demands."""

    similarity: float = _ranged(0, 1, "weight of similarity in the reward")


@dataclass(frozen=True)
class BundleDraws:
    """Further values for shopping lists: their length, and how tight the budget is."""

    parts: float = _ranged(2, 40, "mean number of product types on the list")
    slack: float = _ranged(0, 10, "mean share of the cheapest total by which the budget exceeds it")


@dataclass(frozen=True)
class JourneyDraws:
    """Further values for journeys: the number of subtasks."""

    subtasks: float = _ranged(2, 7, "mean number of subtasks of a journey")


@dataclass(frozen=True)
class OrderDraws:
    """Further values for order histories: how alike orders are, and how indirectly one is spoken of."""

    p_edge: float = _ranged(0, 1, "probability that what was delivered lies at the edge of its return window")
    p_again: float = _ranged(0, 1, "probability that a line is of a type that was bought before")
    p_split: float = _ranged(0, 1, "share of orders that come in two parcels")
    p_indirect: float = _ranged(0, 1, "probability that an order is spoken of indirectly")
    p_patient: float = _ranged(0, 1, "probability that a line is described by what tells little first")


@dataclass(frozen=True)
class StepDraws:
    """Steps of thought of a job: how many, and of each kind its share of them and its size.

    A share is a weight among the kinds that an environment has; 0 switches a kind off. `ecomlab.steps` draws them.
    """

    mean: float = _ranged(0, 100, "mean number of steps of thought in a job")
    arithmetic: float = _ranged(0, 1, "probability that an amount must be worked out rather than copied")
    reference: float = _ranged(0, 1000, "share: a value stands in what tools show of another thing")
    reference_size: float = _ranged(1, 10, "mean number of links to the value of a reference")
    logic: float = _ranged(0, 1000, "share: alternatives, exceptions and conditions")
    logic_size: float = _ranged(1, 10, "mean number of branches or exceptions of a logical demand")
    joint: float = _ranged(0, 1000, "share: demands across items")
    joint_size: float = _ranged(2, 10, "mean number of items of a joint demand")
    trade_off: float = _ranged(0, 1000, "share: what a unit of one wish is worth in another")
    trade_off_size: float = _ranged(1, 10, "mean number of terms of a trade-off")
    none: float = _ranged(0, 1000, "share: nothing fits all demands")
    none_size: float = _ranged(2, 10, "mean number of demands that cannot be met together")
    rules: float = _ranged(0, 1000, "share: the policy book decides")
    rules_size: float = _ranged(1, 20, "mean number of conditions of an exception in the policy book")
    telling: float = _ranged(0, 1000, "share: the customer asks for something that must be worked out")
    telling_size: float = _ranged(1, 10, "mean number of values behind an answer")
    chain: float = _ranged(0, 1000, "share: a job stands on the outcome of an earlier one")
    chain_size: float = _ranged(1, 10, "mean number of outcomes of earlier jobs behind a value")
    evidence: float = _ranged(0, 1000, "share: reviews that disagree must say something")
    evidence_size: float = _ranged(1, 10, "mean number of things that reviews must say")
    looking: float = _ranged(0, 1000, "share: the customer finds a fact out when told where")
    looking_size: float = _ranged(1, 10, "mean number of facts that the customer does not know, 2 at most")
    belief: float = _ranged(0, 1000, "share: the customer believes what may not be so")
    belief_size: float = _ranged(1, 10, "mean number of times that the customer says it, 2 at most")
    taste: float = _ranged(0, 1000, "share: a value that the customer knows when they see it")
    taste_size: float = _ranged(2, 10, "mean number of values of which they like one, 6 at most")


@dataclass(frozen=True, kw_only=True)
class Difficulty:
    """Values of every quantity that depends on the level d, which has no upper limit.

    Each can be set by hand: `Difficulty.at(d, top_k=20)`, or, in a group, `Difficulty.at(d, **{"bundle.slack": 0.1})`.
    The formulas of the first four axes are the published ones; the other eight were published without numbers.
    """

    constraints: int = _ranged(1, 1000, "m: constraints of the customer, at most what the product has")
    p_missing: float = _ranged(
        0, 1, "probability that a slot which may be withheld is left out of the opening"
    )
    eps_rank: float = _ranged(0, 0.8, "share of rows in search results that are inserted distractors")
    p_oos: float = _ranged(0, 1, "probability, per wanted item, that it sells out during the conversation")
    turn_slack: int = _ranged(0, 1000, "turns beyond what the reference player needs for this very task")
    tool_slack: int = _ranged(0, 1000, "tool calls beyond what the reference player needs for this very task")
    p_noise: float = _ranged(
        0, 0.5, "probability that a message has a typo or slang word; that it has a value in other words"
    )
    p_switch: float = _ranged(0, 1, "probability that the customer changes their mind")
    top_k: int = _ranged(10, 1000, "results to which a search can be paged")
    k_rec: int = _ranged(1, 20, "products on a recommendation list")
    history: int = _ranged(1, 1000, "H: past orders; the visit history is five times as long")
    branches: int = _ranged(1, 1000, "B: clauses of a policy rule")
    cart: CartDraws = field(metadata={"group": CartDraws})
    discovery: DiscoveryDraws = field(metadata={"group": DiscoveryDraws})
    substitution: SubstitutionDraws = field(metadata={"group": SubstitutionDraws})
    bundle: BundleDraws = field(metadata={"group": BundleDraws})
    journey: JourneyDraws = field(metadata={"group": JourneyDraws})
    orders: OrderDraws = field(metadata={"group": OrderDraws})
    steps: StepDraws = field(metadata={"group": StepDraws})

    @classmethod
    def at(cls, d: int, **overrides: float) -> "Difficulty":
        """Compute the values at level `d` (a whole number, 0 or more), some of them replaced by `overrides`.

        Raises ValueError for a negative or fractional level, an unknown name or a value out of its range.
        """
        axes = _formulas(whole(d, "difficulty"))
        return axes.override(overrides) if overrides else axes

    def override(self, values: Mapping[str, float]) -> "Difficulty":
        """Replace some values by hand."""
        changed = self
        for name, value in values.items():
            if name not in RANGES:
                raise ValueError(unknown("axis", name, RANGES))
            low, high = RANGES[name]
            if isinstance(value, bool) or not isinstance(value, Real) or not low <= value <= high:
                raise ValueError(f"axis {name!r} takes a number from {low:g} to {high:g}, not {value!r}")
            before = self.value(name)
            if isinstance(before, int) and value != int(value):
                raise ValueError(f"axis {name!r} takes a whole number, not {value!r}")
            group, _, last = name.rpartition(".")
            typed = {last: type(before)(value)}
            if group:
                typed = {group: replace(getattr(changed, group), **typed)}
            changed = replace(changed, **typed)
        return changed

    def value(self, name: str) -> float:
        """Look up a value by name; one in a group is named as in "bundle.slack"."""
        group, _, last = name.rpartition(".")
        found: float = getattr(getattr(self, group) if group else self, last)
        return found

    def to_json(self) -> dict[str, float]:
        """Return the twelve axes as a JSON object."""
        return {name: getattr(self, name) for name in AXES}


@lru_cache(maxsize=256)
def _formulas(d: int) -> Difficulty:
    """Compute every function of the level."""
    slack = 0.5 * math.exp(-d / 5)
    return Difficulty(
        constraints=2 + d // 2,
        p_missing=0.8 * _sigmoid((d - 3.5) / 1.3),
        eps_rank=min(0.4, 0.02 * d),
        p_oos=min(0.5, 0.05 * d),
        turn_slack=max(1, 4 - d // 3),
        tool_slack=max(2, 8 - d // 2),
        p_noise=min(0.125, 0.01 * d),
        p_switch=0.6 * _sigmoid((d - 5) / 2),
        top_k=max(20, 200 - 10 * d),
        k_rec=min(10, 3 + d // 3),
        history=5 + d // 2,
        branches=1 + d // 3,
        cart=CartDraws(
            items=min(5.0, 1 + d / 3),
            # Published: 0 up to d = 1, then the sigmoid, which starts at one half. A line leads up to it, d = 5.
            p_option=min(_sigmoid((d - 2) / 1.5), max(0.0, (d - 1) / 4)),
            p_quantity=min(0.5, 0.1 * d),
        ),
        discovery=DiscoveryDraws(slack=slack, alpha=4 + d // 4),
        substitution=SubstitutionDraws(similarity=min(0.8, max(0.4, 0.4 + 0.05 * d))),
        bundle=BundleDraws(parts=min(12.0, 3 + d / 2), slack=slack),
        journey=JourneyDraws(subtasks=min(5.0, 2 + d / 4)),
        orders=OrderDraws(
            p_edge=0.7 * _sigmoid((d - 4) / 1.5),
            p_again=0.05 + 0.8 * _sigmoid((d - 5) / 2),
            p_split=0.45 * _sigmoid((d - 6) / 2),
            p_indirect=_sigmoid((d - 2) / 1.5),
            p_patient=_sigmoid((d - 4) / 1.5),
        ),
        steps=StepDraws(
            mean=max(0.0, (d - 2) / 2),
            arithmetic=min(0.5, 0.05 * d),
            **dict.fromkeys(STEPS, 1.0),
            # What several things have to do with each other, and what all is worth, grows twice as fast.
            **{
                f"{kind}_size": least + d / (6 if kind in ("joint", "trade_off") else 12)
                for kind, least in STEPS.items()
            },
        ),
    )


AXES: tuple[str, ...] = tuple(f.name for f in fields(Difficulty) if "range" in f.metadata)
"""The twelve axes."""
_DECLARED = {f.name: f.metadata for f in fields(Difficulty) if "range" in f.metadata} | {
    f"{group.name}.{f.name}": f.metadata
    for group in fields(Difficulty)
    if "group" in group.metadata
    for f in fields(group.metadata["group"])
}
RANGES: dict[str, tuple[float, float]] = {name: one["range"] for name, one in _DECLARED.items()}
"""Lowest and highest permitted value of everything that can be overridden, by name."""


COMPOSED: Mapping[str, float] = {
    "constraints": 2, "p_missing": 0.0, "eps_rank": 0.0, "p_oos": 0.0, "turn_slack": 4, "tool_slack": 8,
    "p_noise": 0.0, "p_switch": 0.0, "top_k": 200, "history": 5, "steps.mean": 0.0,
}  # fmt: skip
"""Overrides that hold everything at its easiest but what a cart is made of. A level of CART then says how many steps a
cart composes, items beyond the first, options and quantities: .5, 1.3, 2.5, 3.7, 5.1, 6.1 in the mean at d = 1 to 6."""


def about(axis: str) -> str:
    """Say what an axis is and in which unit, as its field does."""
    return str(_DECLARED[axis]["about"])
