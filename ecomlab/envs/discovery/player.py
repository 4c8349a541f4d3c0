"""The player of PD: searches under all constraints and ranks what it finds; where nothing fits, it finds out why."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ecomlab.catalog import Catalog, Shop
from ecomlab.customer.choices import MOST_LOGIC
from ecomlab.difficulty import Difficulty
from ecomlab.envs.cart.player import Wish
from ecomlab.players.budgets import budget
from ecomlab.players.goal_player import GoalPlayer
from ecomlab.slots import PRICE, slot_type
from ecomlab.steps import CALLS_A_STEP, TURNS_A_STEP, most_steps
from ecomlab.task import Message, Need
from ecomlab.wishes import AnyBut, OneOf, Said
from ecomlab.world.ranking import SORTED, Lex, Rank, Worth, of_record, of_rows, places, rank_of
from ecomlab.world.reviews import meets, read_review
from ecomlab.world.state import PAGE
from ecomlab.world.unmet import Nearest, smallest

FIELDS = {name: limit.shown for name, limit in SORTED.items()}
"""Fields of a record that preferences are about."""
FILTERS = {name: limit.filter for name, limit in SORTED.items()}
"""Search filters that bound these fields."""
PREFERENCES = tuple(SORTED)
"""Preferences that a customer may have."""
STEPS = ("trade_off", "none", "logic", "evidence")
"""Kinds of steps of thought of PD."""


class DiscoveryPlayer(GoalPlayer):
    """Searches the type under all constraints and takes the k best that fit.

    A search is ordered by one key alone. By an order of preferences it searches once per preference: products that are
    equal in one come in any order, on any number of pages, so each search but the first is bounded by the last place
    that mattered in those before; its first k rows hold what these left open. By what wishes are worth it pages through
    a search by price, as far as a product can still matter. Places are worked out from the rows' values: that of a
    distractor tells nothing.

    Where nothing fits it searches without each demand that may give way, and lists what meets the one that does: which
    other demands cannot be met with it, is worked out from that list.

    Where the customer goes by reviews it lists all that fits the rest, and reads the reviews of each.
    """

    @staticmethod
    def need(count: int, steps: int = 0) -> Need:
        """Count the steps to a recommendation: a search for each preference, what steps of thought add, and submit."""
        searches = len(PREFERENCES)
        calls = searches * math.ceil(count / PAGE) + CALLS_A_STEP * steps
        return Need(searches + 1 + TURNS_A_STEP * steps, calls)

    @staticmethod
    def thoughts(axes: Difficulty) -> int:
        """Count the steps of thought whose calls a task may take."""
        return min(1 + MOST_LOGIC, most_steps(axes))

    @staticmethod
    def calls(left: Nearest, shown: Nearest, count: int, catalog: Catalog) -> int:
        """Count the searches by which it finds the `count` best of what is left for a goal, which filters have
        `shown` with more."""
        if len(left.asked):
            return 1 + math.ceil(len(shown.rows) / PAGE) + math.ceil(len(left.asked) / PAGE)
        first = math.ceil(count / PAGE)
        pages = math.ceil(DiscoveryPlayer.rows(left, shown, count, catalog) / PAGE)
        if "worth" not in left.goal and len(shown.rows) == len(left.rows):
            pages = len(PREFERENCES) * first if len(left.rows) >= PAGE else first
        if not left.dropped:
            return pages
        return pages + len(left.goal["give_way"]) + math.ceil(left.meeting / PAGE)

    @staticmethod
    def rows(left: Nearest, shown: Nearest, count: int, catalog: Catalog) -> int:
        """Count the rows of a search by price that it lists: of those by what wishes are worth, as many as matter."""
        rank, first = rank_of(left.goal), PAGE * math.ceil(count / PAGE)
        if len(shown.rows) > len(left.rows):
            return len(shown.rows)
        if not isinstance(rank, Worth):
            return first
        by_price = places(left.rows, Lex((PRICE.sort,)), catalog)[0]
        keys = np.sort(rank.key(of_rows(by_price[:first], catalog)))
        bound = keys[min(count, len(keys)) - 1] + rank.most
        return max(first, int((catalog.column(PRICE)[left.rows] <= bound).sum()))

    @staticmethod
    def budget(axes: Difficulty, shop: Shop, items: int | None) -> Need:
        """Count the steps to any recommendation, beside what the task's steps of thought add once; a rush and a change
        of mind each start the work again."""
        searches, again = len(PREFERENCES), DiscoveryPlayer.thoughts(axes)
        calls = searches * math.ceil(axes.k_rec / PAGE)
        repeated = (searches + TURNS_A_STEP * again, calls + CALLS_A_STEP * again)
        events = ((axes.p_oos, *repeated), (axes.p_switch, *repeated))
        slots = axes.constraints + 1 + (axes.steps.mean > 0)
        return budget(Need(searches + 1, calls), slots, axes, *events)

    def restart(self) -> None:
        self.found: dict[str, dict[str, Any]] = {}
        self.bounds: dict[str, float] = {}
        """Filters by the last places that matter, by the searches so far."""
        self.searched: list[str] = []
        """Preferences by which it has searched."""
        self.more = False
        """True if the latest search may have found more: there are further pages, or it was cut after a full one."""
        self.read = self.pages = 0
        """Pages of the latest search: those read, and all."""
        self.last = 0.0
        """Price of the last product that a search by price has listed."""
        self.dropped = ""
        """Demand that gives way."""
        self.tried: list[str] = []
        """Demands without which it has searched, in the order in which they give way."""
        self.without: dict[str, tuple[int, int, float, bool]] = {}
        """Of each of these searches: pages read and all, the last price, whether there may be more."""
        self.meeting: dict[str, dict[str, Any]] = {}
        """Products that meet the demand which gives way, whatever else they break."""
        self.reviews: dict[str, list[dict[str, Any]]] = {}
        """Reviews that it has read, by product."""
        self.today = ""
        self.listed = self.of_meeting = 0
        """Pages of these: those read, and all."""

    @property
    def rank(self) -> Rank:
        """What the customer ranks by, as far as it is understood."""
        worth: Worth | None = self.get("worth")
        return worth or Lex(tuple(self.get("importance", PREFERENCES)))

    @property
    def said(self) -> Said | None:
        """What reviews must say, as far as it is understood."""
        said: Said | None = self.get("said")
        return said

    def work(self) -> Message:
        wanted = {name: value for (_, name), value in self.known.items()}
        gives_up = "none" in self.contrary or not self._fitting(wanted)
        if self.searched and not self.tried and gives_up:
            self.tried = [name for name in self.get("give_way", ()) if name in wanted]
            if self.tried:
                first = self.searched[0]
                return self.turn(*(self._search(name, _without(wanted, name), first) for name in self.tried))
        if self.tried and not self.dropped:
            self._give_way(wanted)
        slots = _without(wanted, self.dropped)
        calls = [*self._ranking(slots), *(self._listing(wanted) if self.dropped else ())]
        if calls:
            return self.turn(*calls)
        chosen = [record["product_id"] for record in self._fitting(slots) if not self.slip()]
        unmet = self._unmet(wanted) if self.dropped and "none" not in self.lacks else None
        return self.turn(self.call("submit", None, product_ids=chosen[: self.get("count", 1)], unmet=unmet))

    def _fitting(self, slots: Mapping[str, Any]) -> list[dict[str, Any]]:
        """List what was found and fits, the best first."""
        wish, rank = Wish(slots["type"], dict(slots)), self.rank
        fitting = [record for record in self.found.values() if wish.fits(record) and record["stock"] > 0]
        said = self.said
        if said is not None:
            fitting = [record for record in fitting if self._may_meet(said, record["product_id"])]
        return sorted(fitting, key=lambda record: rank.key(of_record(record)))

    def _may_meet(self, said: Said, product_id: str) -> bool:
        """Tell whether reviews say what they must, or have not been read."""
        written = self.reviews.get(product_id)
        return written is None or meets(said, [read_review(one, self.today[:4]) for one in written])

    def _reading(self, slots: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Make the next calls that list all that fits, and read its reviews; none where all are read."""
        if not self.searched:
            self.searched.append(PRICE.sort)
            return [self._search("page", slots, PRICE.sort), self.call("datetime_now", "today")]
        if self.read < self.pages:
            pages = range(self.read + 1, self.pages + 1)
            return [self._search("page", slots, PRICE.sort, page) for page in pages]
        ids = [one["product_id"] for one in self._fitting(slots) if one["product_id"] not in self.reviews]
        return [
            self.call("catalog_get_reviews", "reviews", product_ids=ids[at : at + PAGE])
            for at in range(0, len(ids), PAGE)
        ]

    def _search(
        self, about: str, slots: Mapping[str, Any], sort: str, page: int = 1, **further: float
    ) -> dict[str, Any]:
        return self.search(about, slots["type"], slots, sort, page, {**self.bounds, **further})

    def _ranking(self, slots: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Make the next searches that the ranking needs; none where it is decided."""
        if self.said is not None:
            return self._reading(slots)
        count, fitting, rank = self.get("count", 1), self._fitting(slots), self.rank
        first = range(1, math.ceil(count / PAGE) + 1)
        is_open = any(
            isinstance(value, OneOf | AnyBut) for value in slots.values()
        )  # no filter says all of that
        if isinstance(rank, Worth) or is_open:
            sort = PRICE.sort
            if not self.searched:
                self.searched.append(sort)
                return [self._search("page", slots, sort, page) for page in first]
            bound = math.inf
            if isinstance(rank, Worth) and len(fitting) >= count:
                bound = rank.key(of_record(fitting[count - 1])) + rank.most
            bound = min(bound, slots.get(PRICE.name, math.inf))
            if self.read >= self.pages or self.last * PRICE.scale > bound:
                return []
            left = range(self.read + 1, self.pages + 1) if self.bounds or is_open else [self.read + 1]
            if bound < math.inf and not self.bounds and not is_open:
                self.bounds[PRICE.filter] = bound / PRICE.scale
            return [self._search("page", slots, sort, page) for page in left]
        left_out = [key for key in rank.preferences if key not in self.searched]
        if not left_out or (self.searched and not self.more):
            return []
        for key in self.searched[-1:] if len(fitting) >= count else ():
            self.bounds[FILTERS[key]] = fitting[count - 1][FIELDS[key]]
        self.searched.append(left_out[0])
        return [self._search("page", slots, left_out[0], page) for page in first]

    def _give_way(self, wanted: Mapping[str, Any]) -> None:
        """Give up the first demand without which something was found."""
        able = [name for name in self.tried if self._fitting(_without(wanted, name))]
        if able:
            self.dropped = able[0]
            self.read, self.pages, self.last, self.more = self.without[able[0]]

    def _listing(self, wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Make the next searches for what meets the demand that gives way."""
        if "none" in self.lacks or (self.listed and self.listed >= self.of_meeting):
            return []
        slots = {"type": wanted["type"], self.dropped: wanted[self.dropped]}
        pages = range(self.listed + 1, max(1, self.of_meeting) + 1)
        return [self.search("meeting", slots["type"], slots, PRICE.sort, page) for page in pages]

    def _unmet(self, wanted: Mapping[str, Any]) -> list[str]:
        """Work out a smallest set of demands that cannot be met together: what gives way is in each of them."""
        others = [name for name in wanted if name != self.dropped and slot_type(name).of == "product"]
        wishes = [Wish(wanted["type"], {name: wanted[name]}) for name in others]
        able = [record for record in self.meeting.values() if record["type"] == wanted["type"]]
        dropped = Wish(wanted["type"], {self.dropped: wanted[self.dropped]})
        able = [record for record in able if dropped.fits(record) and record["stock"] > 0]
        sets = [sum((not wish.fits(one)) << n for n, wish in enumerate(wishes)) for one in able]
        least = next(iter(smallest(sets)), 0)
        return [self.dropped, *(name for n, name in enumerate(others) if least >> n & 1)]

    def result(self, about: Any, result: dict[str, Any]) -> None:
        if about == "today":
            self.today = result.get("today", "")
            return
        if about == "reviews":
            self.reviews |= {one["product_id"]: one["reviews"] for one in result.get("products", ())}
            return
        rows = result.get("results")
        if not rows:  # a page beyond the last one is empty
            self.listed += about == "meeting"
            self.pages = result.get("pages", 0) if about == "page" else self.pages
            self.read = self.pages if self.said is not None else self.read
            return
        found = {record["product_id"]: record for record in rows}
        if about == "meeting":
            self.meeting |= found
            self.listed, self.of_meeting = result["page"], result["pages"]
            return
        self.found |= found
        more = result["page"] < result["pages"] or len(rows) >= PAGE
        last = next((one["price"] for one in reversed(rows) if "sponsored" not in one), self.last)
        pages = (result["page"], result["pages"], last or 0.0, more)
        if about == "page":
            self.read, self.pages, self.last, self.more = pages
        else:
            self.without[about] = pages


def _without(slots: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Leave a demand out of these slots."""
    return {slot: value for slot, value in slots.items() if slot != name}


def place_of(record: Mapping[str, Any], preference: str) -> float:
    """Rate a record by one preference: the lower, the better."""
    value = float(record[FIELDS[preference]] or 0)  # null where the shop knows none
    return -value if SORTED[preference].op == ">=" else value
