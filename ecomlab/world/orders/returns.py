"""Judging a return by the policy book: whether a line goes back, until when it could, and what is paid back for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from itertools import product
from typing import Any

from ecomlab.catalog import Catalog
from ecomlab.world.orders.history import Line, Order, delivered
from ecomlab.world.policy_book.book import (
    Clause,
    Section,
    exceptions,
    general,
    relevant,
    section_of,
    way_of,
)
from ecomlab.world.policy_book.rules import AGREEMENT, FACTS, FORM, OF_RETURNS, Named, is_odd

CASE = ("reason", "opened", "tier", "sale")
"""Facts of a customer's situation that the book may ask for in a return."""
VALUES = {name: tuple(FACTS[name].words) for name in CASE if isinstance(FACTS[name], Named)}  # type: ignore[union-attr]
"""Values of these facts."""
SITUATIONS = [
    case for values in product(*VALUES.values()) if not is_odd(case := dict(zip(VALUES, values, strict=True)))
]
"""Cases that there may be."""


@dataclass(frozen=True)
class Outcome:
    """What the book says of the return of a line."""

    last_day: date | None
    """Last day on which it can or could be returned; None: never."""
    goes: bool
    restocking: int | None
    """Tenths of a percent of the price that are kept; None where the book names no fees."""
    label: int | None
    """Cents that the label costs."""
    form: str = ""
    """Form of the refund, where the customer must agree to it and to the amount before the return is started."""

    @property
    def at_stake(self) -> bool:
        """True if what is paid back is more than a matter of the price: the book names fees."""
        return self.goes and (self.restocking, self.label) != (None, None)

    @property
    def is_full(self) -> bool:
        """True if all of the price is paid back."""
        return not (self.restocking or self.label)

    def refund(self, price_cents: int | None, units: int) -> int | None:
        """Compute the cents that are paid back for units of this price: the restocking fee is rounded down to a cent,
        the label is paid once. None where nothing is at stake or the shop has no prices."""
        return self.back(price_cents, units) if self.at_stake and price_cents is not None else None

    def back(self, price_cents: int, units: int) -> int:
        """Compute the cents that are paid back for units of this price, whether or not fees are at stake."""
        paid = price_cents * units
        return max(0, paid - paid * (self.restocking or 0) // 1000 - (self.label or 0))

    def differs(self, other: "Outcome", price_cents: int | None) -> bool:
        """Tell whether this leads to another end than the other one does."""
        if self.goes != other.goes:
            return True
        if not self.goes:
            return self.last_day != other.last_day
        return self.at_stake and self.refund(price_cents or 0, 1) != other.refund(price_cents or 0, 1)


class Desk:
    """Judges returns of delivered lines, with units left, in one world."""

    def __init__(self, given: Mapping[str, Any], catalog: Catalog) -> None:
        self.book, self.catalog = given["policies"], catalog
        self.today = date.fromisoformat(given["today"])
        self._lines: dict[str, tuple[dict[str, Any], list[Section | None]]] = {}
        """By line id, the facts that tools show of it, and the sections on its return."""
        self._ways: dict[tuple[Any, ...], list[tuple[Section, Clause]]] = {}
        """Ways through sections, by these and what they ask for."""
        self._asked: dict[tuple[str, str], list[str]] = {}

    @cached_property
    def _agreeing(self) -> tuple[Section | None, Section | None]:
        """The sections on the customer's agreement and on the form of a refund."""
        return section_of(self.book, AGREEMENT), section_of(self.book, FORM)

    def _way(self, section: Section, facts: Mapping[str, Any]) -> list[tuple[Section, Clause]]:
        """Follow a case, as `way_of` does, once for all cases alike in what the section asks for."""
        name = section["rule"], section["department"]
        if name not in self._asked:
            self._asked[name] = relevant(section, self.book)
        key = (*name, *map(facts.get, self._asked[name]))
        if key not in self._ways:
            self._ways[key] = way_of(section, self.book, facts)
        return self._ways[key]

    def _outcome_of(self, section: Section | None, facts: Mapping[str, Any]) -> Any:
        """Find what a section says on a case; None for none."""
        return None if section is None else self._way(section, facts)[-1][1]["then"]

    def judge(self, order: Order, line: Line, case: Mapping[str, Any], standard: bool = False) -> Outcome:
        """Judge a return in a customer's case; `standard`: by the general clauses alone."""
        sections = self.sections(order, line)
        if standard:
            return self._outcome(order, line, [None if s is None else general(s)["then"] for s in sections])
        facts, (agreed, paid) = self.facts(order, line, case), self._agreeing
        found = [self._outcome_of(section, facts) for section in sections]
        must_agree = paid is not None and self._outcome_of(agreed, facts) == "yes"
        return self._outcome(order, line, found, self._outcome_of(paid, facts) if must_agree else "")

    def _outcome(self, order: Order, line: Line, said: Sequence[Any], form: str = "") -> Outcome:
        """Put together what the book says on the window, the restocking fee and the label."""
        window, restocking, label = said
        day = delivered(order, line)
        last = date.fromisoformat(day) + timedelta(days=window) if day and window else None
        return Outcome(last, last is not None and self.today <= last, restocking, label, form)

    def agreement(self, order: Order, line: Line, slots: Mapping[str, Any]) -> int:
        """Count what is to be thought on the agreement that a return needs: that it does, by which exceptions, and by
        which ones the form of the refund is another than the general one; nothing where it needs none."""
        if not self.must_agree(order, line, slots):
            return 0
        facts = self.facts(order, line, slots)
        needed, form = self._agreeing
        assert needed and form
        counts = [exceptions(self._way(section, facts), facts) for section in (needed, form)]
        differs = self._outcome_of(form, facts) != general(form)["then"]
        return max(1, counts[0]) + (counts[1] if differs and not slots["replacement"] else 0)

    def must_agree(self, order: Order, line: Line, slots: Mapping[str, Any]) -> bool:
        """Tell whether the customer must agree before their return is started."""
        outcome = self.judge(order, line, slots)
        return outcome.goes and bool(outcome.form)

    def exceptions(self, order: Order, line: Line, case: Mapping[str, Any]) -> int:
        """Count the clauses with conditions that apply to a case, whether or not others override them, in the sections
        on the window and on fees whose general clause alone would lead to another end, and in those that these refer
        to."""
        facts, sections = self.facts(order, line, case), self.sections(order, line)
        said = [self._outcome_of(section, facts) for section in sections]
        ends, count = self._outcome(order, line, said), 0
        for number, section in enumerate(sections):
            if section is not None:
                plain = [*said[:number], general(section)["then"], *said[number + 1 :]]
                differs = ends.differs(self._outcome(order, line, plain), line["price_cents"])
                count += exceptions(self._way(section, facts), facts) if differs else 0
        return count

    def references(self, order: Order, line: Line, case: Mapping[str, Any]) -> list[int]:
        """Count the further sections to which each of those on a return leads in a case."""
        facts = self.facts(order, line, case)
        sections = (*self.sections(order, line), *self._agreeing)
        return [len(self._way(section, facts)) - 1 for section in sections if section is not None]

    def facts(self, order: Order, line: Line, case: Mapping[str, Any]) -> dict[str, Any]:
        """Collect the facts that conditions may be about: those of the line that tools show, and those of the case."""
        return {**{name: case[name] for name in CASE if name in case}, **self._known(order, line)[0]}

    def sections(self, order: Order, line: Line) -> list[Section | None]:
        """List the sections on the window, the restocking fee and the label, None for those that the book lacks."""
        return self._known(order, line)[1]

    def _known(self, order: Order, line: Line) -> tuple[dict[str, Any], list[Section | None]]:
        """Find the facts that tools show of a line, and the sections on its return."""
        if line["line_id"] not in self._lines:
            row, day = self.catalog.row(line["product_id"]), delivered(order, line)
            kind = None if row is None else self.catalog.type_of(row)
            facts: dict[str, Any] = {} if kind is None else {"type": kind.name}
            if day is not None:
                facts["age"] = (self.today - date.fromisoformat(day)).days
            if all(other["price_cents"] is not None for other in order["lines"]):
                facts["total"] = sum(other["price_cents"] * other["quantity"] for other in order["lines"])
            department = "" if kind is None else kind.department
            sections = [section_of(self.book, rule, department) for rule in OF_RETURNS]
            self._lines[line["line_id"]] = facts, sections
        return self._lines[line["line_id"]]


def judge(
    given: Mapping[str, Any],
    order: Order,
    line: Line,
    case: Mapping[str, Any],
    catalog: Catalog,
    standard: bool = False,
) -> Outcome:
    """Judge one return, as a `Desk` does."""
    return Desk(given, catalog).judge(order, line, case, standard)
