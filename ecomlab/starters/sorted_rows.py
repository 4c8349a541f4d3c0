"""Rows of sorted searches, for the laptop policy and for whoever demonstrates to it.

A search orders by one key. Rows found under several keys in turn are shown as one list in their common order, each with
its value of the latest key, which the next search is bounded by.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ecomlab.envs.cart.player import Wish
from ecomlab.envs.discovery.player import FIELDS, FILTERS, PREFERENCES, DiscoveryPlayer, place_of
from ecomlab.task import Message
from ecomlab.world.ranking import SORTED
from ecomlab.world.state import PAGE

LOOSE = ("sort", "page", *FILTERS.values())
"""Arguments in which one search of a series may differ from the next."""


class SortedRows:
    """The rows of a series of searches that differ in their keys and in bounds on keys before."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self._same: dict[str, Any] = {}
        self._found: dict[str, Mapping[str, Any]] = {}

    def take(self, arguments: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> None:
        """Take in the rows of a sorted search; one that does not go on with the series, as one without bounds on all
        earlier keys does not, begins another."""
        key, same = arguments["sort"], {n: v for n, v in arguments.items() if n not in LOOSE}
        further = key not in self.keys and any(self._bounds(arguments, row) for row in self._found.values())
        next_page = self.keys[-1:] == [key] and arguments.get("page", 1) not in (None, 1)
        earlier = all(isinstance(arguments.get(FILTERS[known]), int | float) for known in self.keys[:-1])
        if same != self._same or not earlier or not (further or next_page):
            self.keys, self._same, self._found = [], same, {}
        if key not in self.keys:
            self.keys.append(key)
        self._found |= {row["product_id"]: row for row in rows}
        kept = up_to(self._found.values(), self.keys[:-1], arguments)
        self._found = {row["product_id"]: row for row in kept}

    def _bounds(self, arguments: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
        """Tell whether a search is bounded by a row's value of the latest key."""
        return bool(arguments.get(FILTERS[self.keys[-1]]) == row[FIELDS[self.keys[-1]]])

    @property
    def rows(self) -> list[Mapping[str, Any]]:
        """All rows so far, ordered by the keys so far."""
        return in_order(self._found.values(), self.keys)


def in_order(rows: Iterable[Mapping[str, Any]], keys: Sequence[str]) -> list[Mapping[str, Any]]:
    """Order rows by some keys, the first one first; what is equal in all stays as it was found."""
    return sorted(rows, key=lambda row: [place_of(row, key) for key in keys])


def up_to(
    rows: Iterable[Mapping[str, Any]], keys: Sequence[str], bounds: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """Keep the rows that come no later, by some keys, than one whose values are the bounds on these."""
    last = [place_of({FIELDS[key]: bounds[FILTERS[key]]}, key) for key in keys]
    return [row for row in rows if [place_of(row, key) for key in keys] <= last]


def able(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """List the rows of a search that can be bought and are not sponsored."""
    return [row for row in result["results"] if row["stock"] > 0 and "sponsored" not in row]


def may_be_more(result: Mapping[str, Any]) -> bool:
    """Tell whether a search may have found more than its rows: on further pages, or cut after a full one."""
    return bool(result["page"] < result["pages"] or len(able(result)) >= PAGE)


def row_text(row: Mapping[str, Any], key: str) -> str:
    """Write a row's title and its value of a key, as customers and calls write it."""
    limit = SORTED[key]
    value = limit.read_shown(row[limit.shown])
    return f"{row['title']}, {'unknown' if value is None else limit.bare(value)}"


class OrderedDiscovery(DiscoveryPlayer):
    """The player of PD as the laptop policy can follow it: it goes by the rows that are shown, in the order shown, and
    searches on as long as there are more than asked for."""

    quoted: Sequence[str] = ()
    """Rows to quote before the next call: those by the last of which it is bounded, or those handed in."""

    def work(self) -> Message:
        count, order = self.get("count", 1), self.get("importance", list(PREFERENCES))
        slots = {name: value for (_, name), value in self.known.items()}
        wish = Wish(slots["type"], slots)
        fitting = [row for row in self.found.values() if wish.fits(row)]
        bounded = [key for key in self.searched[:-1] if FILTERS[key] in self.bounds]
        rows = in_order(up_to(fitting, bounded, self.bounds), self.searched)
        left = [key for key in order if key not in self.searched]
        last = self.searched[-1] if self.searched else ""
        self.quoted = ()
        if not last or (left and (self.more or len(rows) > count)):
            if last and len(rows) >= count:
                self.bounds[FILTERS[last]] = rows[count - 1][FIELDS[last]]
                self.quoted = [f"- {row_text(row, last)} {row['product_id']}" for row in rows[:count]]
            self.searched.append(left[0])
            pages = range(1, math.ceil(count / PAGE) + 1)
            return self.turn(
                *(self.search("page", slots["type"], slots, left[0], page, self.bounds) for page in pages)
            )
        chosen = [row for row in rows if not self.slip()][:count]
        self.quoted = [f"- {row_text(row, last)} {row['product_id']}" for row in chosen]
        return self.turn(self.call("submit", None, product_ids=[row["product_id"] for row in chosen]))

    def result(self, about: Any, result: dict[str, Any]) -> None:
        if result.get("results"):  # a page beyond the last one is empty
            self.more = may_be_more(result)
            self.found |= {row["product_id"]: dict(row) for row in able(result)}
