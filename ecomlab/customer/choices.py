"""Drawing what makes a choice among products a matter of thought: what other wishes are worth in money, and demands
that nothing meets together."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

import numpy as np

from ecomlab.catalog import Catalog, Shop
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.customer.meaning import kind_of
from ecomlab.customer.nlg import wish_phrase
from ecomlab.difficulty import Difficulty
from ecomlab.seeding import pick, shuffled
from ecomlab.slots import DAYS, PRICE, SlotType, slot_type
from ecomlab.steps import draw_kinds, draw_size
from ecomlab.task import Goal
from ecomlab.wishes import AnyBut, OneOf
from ecomlab.world import ranking, unmet
from ecomlab.world.cart import column_of, names_of
from ecomlab.world.ranking import MOST_A_DAY, VALUED, Rank, Values, Worth, of_rows

HELD = 0.22
"""Share of tasks whose customer says what gives way; in half of them nothing fits, so that none is the answer of at
most .12 of all tasks. A share of the step above 1 raises it as much."""
GIVES_WAY = 3
"""Most demands that are said to give way."""
FEW = (2, 4)
"""Numbers of products wanted by a customer who says what gives way: few come near."""
MOST_LOGIC = 3
"""Most slots with alternatives or exceptions; none beside what gives way, which takes pages enough."""
MOST_READ = 2
"""Most steps that reviews take."""
LEAD = 0.05
"""Least lead of the best before what follows, as a share of the range of keys among what fits."""
MOST_TRIED = 60
"""Worths of the same wishes that are tried for one choice."""
CHOICE = 2.5
"""Products that are to be left in a trade-off, for each that is wanted."""
AMOUNTS = (
    1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 75, 80, 100, 120, 150, 200, 250, 300, 400, 500,
)  # fmt: skip
"""Dollars that people say something is worth."""
WEIGHT = (0.15, 2.0)
"""Least and largest share of the range of prices that a term makes up."""
BONUS = (0.1, 0.7)
"""The same of the worth of a value."""
DEAREST = 0.5
"""Largest worth of a unit, as a share of the most that the product may cost."""
HELPS = {"price": 0.4, "brand": 0.25, "rating": 0.15, "days": 0.1, "attr": 0.1}
"""How often each demand keeps things from fitting; whether it does is drawn apart, so that the demands that are said to
give way do not tell."""


@dataclass(frozen=True)
class Choice:
    """The steps of thought of a choice, drawn before anything of the shop, so that no outcome changes another draw."""

    terms: int = 0
    """Terms of a trade-off; 0: an order of preferences."""
    gives_way: bool = False
    """The customer says what gives way if nothing fits."""
    fits: bool = True
    """Something does."""
    size: int = 2
    """Number of demands that cannot be met together, where nothing fits."""
    helps: str = ""
    """Kind of a demand among those that give way, which is what keeps things from fitting where nothing does."""
    claims: int = 0
    """Number of things that reviews must say; 0: the customer does not go by reviews."""
    trap: bool = False
    """What would be the best without these is not the best with them."""
    few: int = 0
    """Number of products wanted by a customer who says what gives way or goes by reviews."""
    logic: int = 0
    """Number of slots with alternatives or exceptions."""
    reads: int = 0
    """Steps that the reviews are to take."""

    @classmethod
    def of(cls, kinds: Sequence[str], axes: Difficulty, random: np.random.Generator) -> "Choice":
        """Draw the steps among these kinds."""
        held = int(random.random() < HELD * axes.steps.none)
        most = {"trade_off": 1, "none": held, "logic": MOST_LOGIC, "evidence": MOST_READ * (1 - held)}
        drawn = draw_kinds(axes, kinds, random, most)
        gives_way, reads = "none" in drawn, drawn.count("evidence")
        claims = sum(draw_size(axes, "evidence", random) for _ in range(reads))
        low, high = FEW[0], min(FEW[1] - bool(claims), axes.k_rec)  # each of several has many reviews
        return cls(
            terms=draw_size(axes, "trade_off", random) if "trade_off" in drawn else 0,
            gives_way=gives_way,
            fits=bool(random.random() < 0.5) or not gives_way,
            size=draw_size(axes, "none", random),
            helps=str(random.choice([*HELPS], p=[*HELPS.values()])) if gives_way else "",
            few=int(random.integers(min(low, high), high + 1)) if gives_way or claims else 0,
            logic=0 if gives_way else drawn.count("logic"),
            claims=claims,
            trap=claims > 0 and bool(random.random() < 0.5),
            reads=reads,
        )

    @property
    def steps(self) -> tuple[str, ...]:
        """Kinds of the steps that are to count."""
        return (
            *(("trade_off",) if self.terms else ()),
            *(() if self.fits else ("none",)),
            *["evidence"] * self.reads,
            *["logic"] * self.logic,
        )


def plainer(goal: Goal) -> Goal:
    """Leave out alternatives and exceptions, of which filters cannot say all."""
    return goal.drop_slots(*(name for name, value in goal.of().items() if isinstance(value, OneOf | AnyBut)))


def draw_logic(
    goal: Goal,
    steps: int,
    enough: int,
    most: int,
    axes: Difficulty,
    shop: Shop,
    random: np.random.Generator,
) -> Goal:
    """Let as many slots have alternatives or exceptions, as far as there are any that leave `enough` products to choose
    from, and filters at `most` so many: exceptions of what the cheapest have, alternatives of which these have none
    first."""
    catalog, drawn = shop.catalog, 0
    attributes = catalog.types[catalog.type_codes[goal["type"]]].attributes
    for name in shuffled(random, ["brand", *(f"attr:{one.name}" for one in attributes)]):
        others, size = goal.drop_slots(name), draw_size(axes, "logic", random)
        rows = ranking.fitting(others, shop)
        codes = column_of(catalog, name)[rows[np.argsort(catalog.price_cents[rows], kind="stable")]]
        held = [names_of(catalog, name)[code] for code in dict.fromkeys(codes.tolist()) if code >= 0]
        if drawn == steps or len(held) < 3:
            continue
        few = shuffled(random, held)
        ways: list[OneOf | AnyBut] = [AnyBut(tuple(held[: min(size, len(held) - 1)]))]
        if any(isinstance(value, AnyBut) for value in goal.of().values()):  # nobody says "but not" twice
            ways = []
        ways += [OneOf(tuple(few[: min(1 + n, len(held) - 1)])) for n in (size, min(3, len(held) // 2))]
        for wish in shuffled(random, dict.fromkeys(ways)):
            made = others.set_slots({name: wish})
            if len(ranking.fitting(plainer(made), shop)) > most:
                break
            if enough <= len(ranking.fitting(made, shop)) < len(rows):
                goal, drawn = made, drawn + 1
                break
    return goal


@dataclass(frozen=True)
class _Term:
    """Something that may be worth money: a unit of a limit, or a value of a slot."""

    slot: str
    value: str
    """"" of a unit."""
    dollars: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    """Amounts that make a difference and do not decide alone."""

    def keys(self, values: Values) -> np.ndarray:
        """Compute what a dollar for it adds to the keys, in cents."""
        if self.value:
            return np.asarray(-100 * values((self.slot, self.value)))
        return np.asarray(Worth(((self.slot, 100),)).key(values) - values(PRICE))


def draw_worths(
    rows: np.ndarray,
    dearest: int,
    limits: Sequence[SlotType],
    terms: int,
    count: int,
    catalog: Catalog,
    random: np.random.Generator,
    beside: Sequence[np.ndarray] = (),
) -> list[Worth]:
    """Draw what units of these limits, and values that some of these rows have, may be worth to somebody who chooses
    `count` of them and pays at most `dearest` cents: so that the best lead, in random order. Those are first of which
    most terms count, for without one alone others would be the best, and by which most of the groups of rows `beside`
    have one that would be among the best."""
    prices = catalog.column(PRICE)[rows].astype(np.int64)
    if not 0 < count < len(rows) or not np.ptp(prices):
        return []
    lexicon, kind = lexicon_of(catalog), catalog.type_of(int(rows[0])).name

    def phrase(one: _Term) -> str:
        return wish_phrase(kind, one.slot, OneOf((one.value,)), lexicon)

    chosen = _able_terms(rows, dearest, limits, np.ptp(prices), catalog, random)
    chosen = [one for one in chosen if not one.value or re.fullmatch(VALUED, phrase(one))][:terms]
    if not chosen:
        return []
    dollars = np.stack([random.choice(one.dollars, MOST_TRIED) for one in chosen], 1)
    keys = _keys_of(chosen, dollars, rows, catalog)
    best, lead = _lead(keys, count)
    counts = [
        _differs(best, keys - dollars[:, [n]] * one.keys(of_rows(rows, catalog)))
        for n, one in enumerate(chosen)
    ]
    last = np.where(best, keys, np.iinfo(np.int64).min).max(1)
    values = [_keys_of(chosen, dollars, some, catalog).min(1) < last for some in beside if len(some)]
    number = np.sum([*counts, *values], 0)
    number = np.where(lead & _differs(best, np.broadcast_to(prices, keys.shape)), number, -1)
    order = np.argsort(-number, kind="stable")
    words = tuple(phrase(one) for one in chosen if one.value)
    made = []
    for at in order[number[order] >= 0].tolist():
        cents = list(zip(chosen, (100 * dollars[at]).tolist(), strict=True))
        units = tuple((one.slot, amount) for one, amount in cents if not one.value)
        bonuses = tuple((one.slot, one.value, amount) for one, amount in cents if one.value)
        made.append(Worth(units, bonuses=bonuses, words=words))
    return made


def _able_terms(
    rows: np.ndarray,
    dearest: int,
    limits: Sequence[SlotType],
    prices: int,
    catalog: Catalog,
    random: np.random.Generator,
) -> list[_Term]:
    """List what may be worth something among these rows, whose `prices` have this range: of each slot one first."""
    amounts = np.array([dollars for dollars in AMOUNTS if 100 * dollars <= DEAREST * dearest], np.int64)
    every = [[_Term(limit.name, "")] for limit in limits]
    for slot in ("brand", *(f"attr:{one.name}" for one in catalog.type_of(int(rows[0])).attributes)):
        codes, held = np.unique(column_of(catalog, slot)[rows], return_counts=True)
        some = codes[(codes >= 0) & (held > 1) & (held < len(rows))].tolist()
        every.append([_Term(slot, names_of(catalog, slot)[code]) for code in shuffled(random, some)])
    able: list[list[_Term]] = []
    for terms in every:
        shares = [amounts * np.ptp(one.keys(of_rows(rows, catalog))) / prices for one in terms]
        low, high = BONUS if terms and terms[0].value else WEIGHT
        most = MOST_A_DAY if terms and terms[0].slot == DAYS.name else 100 * AMOUNTS[-1]
        able.append(
            [
                replace(one, dollars=amounts[(low <= share) & (share <= high) & (100 * amounts <= most)])
                for one, share in zip(terms, shares, strict=True)
            ]
        )
    able = shuffled(random, [[one for one in some if len(one.dollars)] for some in able])
    return [one for ones in zip_longest(*able) for one in ones if one is not None]


def _keys_of(terms: Sequence[_Term], dollars: np.ndarray, rows: np.ndarray, catalog: Catalog) -> np.ndarray:
    """Compute the keys of rows for each line of what the terms are worth."""
    values = of_rows(rows, catalog)
    return np.asarray(values(PRICE) + dollars @ np.stack([one.keys(values) for one in terms]))


def _lead(keys: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Find which are the `count` best by each line of keys, and whether they lead the others by `LEAD`.

    The lead is a share of the range of keys among all that fits, not of a price: where worths are large beside the
    prices, a share of these would let a rounded rating decide.
    """
    ordered = np.sort(keys, 1)
    lead = ordered[:, count] - ordered[:, count - 1]
    clear = (lead >= LEAD * (ordered[:, -1] - ordered[:, 0])) & (lead > 0)
    return keys <= ordered[:, [count - 1]], clear


def _differs(best: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Tell whether those that are the `best` are surely not by these keys, line by line."""
    last = np.where(best, keys, np.iinfo(np.int64).min).max(1)
    return np.asarray(last > np.where(best, np.iinfo(np.int64).max, keys).min(1))


def leads(rows: np.ndarray, rank: Rank, count: int, catalog: Catalog) -> bool:
    """Tell whether the best of these rows lead the others by `LEAD`, and are not the cheapest."""
    if not 0 < count < len(rows):
        return False
    best, lead = _lead(rank.key(of_rows(rows, catalog))[None], count)
    return bool(lead[0] and _differs(best, catalog.column(PRICE)[rows][None].astype(np.int64))[0])


def draw_giving_way(
    goal: Goal, choice: Choice, rows: np.ndarray, catalog: Catalog, random: np.random.Generator
) -> Goal | None:
    """Add which demands give way, in order, and see to it that none of the rows meets all where nothing is to fit; None
    where that cannot be. One that helps is the first of them in half of the tasks."""
    named = [one.field for one in unmet.demands(goal) if kind_of(one.field) == choice.helps]
    if not named:
        return None
    name = pick(random, named)
    if not choice.fits:
        found = draw_conflict(goal, name, choice.size, rows, catalog, random)
        if found is None:
            return None
        goal = found
    others = [one.field for one in unmet.demands(goal) if one.field != name and unmet.can_be_named(one.field)]
    if not others or not unmet.can_be_named(name):
        return None
    order = shuffled(random, others)[: GIVES_WAY - 1]
    order.insert(0 if random.random() < 0.5 else int(random.integers(1, len(order) + 1)), name)
    return goal.set_slots({"give_way": order})


def draw_conflict(
    goal: Goal, name: str, size: int, rows: np.ndarray, catalog: Catalog, random: np.random.Generator
) -> Goal | None:
    """Change the value of one demand, so that no row meets all, though some meet any that are fewer than `size`. None
    where there is no such value."""
    near = catalog.select(unmet.demands(goal.drop_slots(name)), rows)
    for value in shuffled(random, _values(name, near, rows, catalog)):
        changed = goal.set_slots({name: value})
        sets = unmet.broken(rows, unmet.demands(changed), catalog)
        if sets.all() and unmet.smallest(sets.tolist())[0].bit_count() == size:
            return changed
    return None


def _values(name: str, near: np.ndarray, rows: np.ndarray, catalog: Catalog) -> list[int | str]:
    """List values of a demand that some of the rows meet and none of those that are near."""
    limit = slot_type(name)
    if not limit.is_limit:
        codes, names = column_of(catalog, name), names_of(catalog, name)
        return [names[code] for code in np.setdiff1d(codes[rows], codes[near]).tolist() if code >= 0]
    column = catalog.column(limit)
    values = {limit.rounded(value) for value in np.unique(column[rows]).tolist() if value != limit.missing}
    beside = np.unique(column[near]).tolist()
    low, high = limit.range
    return [
        value
        for value in sorted(values)
        if low <= value <= high and not any(limit.admits(value, other) for other in beside)
    ]
