"""Tool results as the laptop policy sees them outside plain CART tasks: short lines, with ids behind words.

A tiny model finds an id by copying what followed the same words the last time. So an id stands directly behind each of
the words that a customer may use for the item, rows come in the order in which they are to be taken, and attributes
look as they do in a search. The forms are fixed rules on the messages and know nothing that is hidden.

- Orders: the day and the id, then every title with the order's id again.
- One order: status, the days of its parcels (delivered or expected, in order), then its lines, with details where the
  customer has bought more than one item of that type.
- Search within a category: rows in stock that are not sponsored, each product once per turn; searches of one category
  are merged, several categories get a few rows each. Sorted ones: see `sorted_rows`; `more` if there may be more.
  After a look at a product that is sold out, its kind's rows, of all pages so far, those most like it first.
- Visits: those that are sold out, which is what one looks for there; all of them if none is.
- A policy section: its heading, then per clause its conditions, its outcome and its id, and titles of other sections.
- A notice of the shop, that something has sold out or that two messages are left: a line below a turn's last result.
- Any other tool (`Generic`): a line of the single values, then a line per entry of a list, with field names.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ecomlab.envs.discovery.player import FIELDS
from ecomlab.envs.substitution.player import count_alike
from ecomlab.starters.id_aliases import Aliases
from ecomlab.starters.sorted_rows import SortedRows, able, may_be_more, row_text
from ecomlab.values import DAY
from ecomlab.world.policy_book.book import Atom
from ecomlab.world.policy_book.rules import FACTS, RULES, Amount
from ecomlab.world.policy_book.wording import read_section
from ecomlab.world.tools.catalog import whole

Call = tuple[str, Mapping[str, Any]]
"""A tool's name and its arguments."""
SEARCH = "catalog_search"
KNOWN = frozenset(
    """ask_user cart_add cart_remove cart_set_quantity cart_view catalog_get_product catalog_get_variants catalog_rerank
    catalog_search datetime_now order_get_status order_list policy_search return_cancel return_check_eligibility
    return_initiate submit user_get_visit_history""".split()
)
"""Tools whose results have forms of their own; `Generic` shows those of any other."""
LISTED = 6
"""Rows shown of searches within one category."""
EACH = 2
"""Rows shown per category, of searches within several."""
DONE, NOTHING_FOUND, YES, NO, NEVER, OTHERS = "ok", "nothing found", "yes", "no", " never", "also:"
MORE = "more"


class Generic:
    """The form of results of tools that have none of their own."""

    def __init__(self, aliases: Aliases) -> None:
        self.aliases = aliases

    def any_result(self, result: Mapping[str, Any]) -> str:
        """Write a whole result: a line of single values, then a line per list entry, with ids as aliases at the end."""
        lists = {name: value for name, value in result.items() if _is_table(value)}
        alone = {name: value for name, value in result.items() if name not in lists}
        lines = [self._fields(alone)] if alone else []
        lines += [f"-{self._fields(entry)}" for entries in lists.values() for entry in entries]
        return "\n".join(lines) or NOTHING_FOUND

    def _fields(self, record: Mapping[str, Any]) -> str:
        words, ids = [], ""
        for name, value in record.items():
            if name.endswith("_id") and name != "variant_id" and isinstance(value, str):
                ids += self.aliases.of(value)
            elif name.endswith("_ids") and isinstance(value, list):
                ids += "".join(self.aliases.of(str(entry)) for entry in value)
            else:
                words.append(f" {name}{self._words(value)}")
        return ",".join(words) + ids

    def _words(self, value: Any) -> str:
        if isinstance(value, Mapping):
            return self._fields(value)
        if isinstance(value, list):
            return ",".join(map(self._words, value)) or f" {NOTHING_FOUND}"
        return f" {self.aliases.in_text(value) if isinstance(value, str) else json.dumps(value)}"


class View(Generic):
    """The forms of one episode's results; remembers which types the customer has bought more than once."""

    def __init__(self, aliases: Aliases) -> None:
        super().__init__(aliases)
        self._bought: Counter[str] = Counter()
        self._sorted = SortedRows()
        self._gone: Mapping[str, Any] | None = None
        """The product looked at last of those that are sold out."""
        self._alike: tuple[Mapping[str, Any], dict[str, Mapping[str, Any]]] = ({}, {})
        """The latest search for what is like it, without its page, and all rows found so far."""

    def results(
        self,
        calls: Sequence[Call],
        messages: Sequence[Mapping[str, Any]],
        plain: Callable[[Mapping[str, Any]], str],
    ) -> list[str]:
        """Write the blocks of text for a turn's results; `plain` writes those that have no form here."""
        categories = {
            a["category"] for name, a in calls if name == SEARCH and isinstance(a.get("category"), str)
        }
        most = LISTED if len(categories) < 2 else EACH
        blocks: list[str] = []
        lists: dict[str, tuple[int, dict[str, str]]] = {}
        alike: dict[int, Mapping[str, Any]] = {}
        for (name, arguments), message in zip(calls, messages, strict=False):
            result = _loaded(message["content"])
            category = arguments.get("category") if name == SEARCH else None
            if isinstance(category, str) and result is not None and "results" in result:
                if category not in lists:
                    lists[category] = (len(blocks), {})
                    blocks.append("")
                place, rows = lists[category]
                if most == LISTED and arguments.get("sort") in FIELDS:
                    blocks[place] = self._in_order(arguments, result)
                    continue
                if self._gone is not None and self._gone["type"] == category:
                    self._take_alike(arguments, result, self._gone)
                    alike[place] = self._gone
                    continue
                for record in able(result):
                    if len(rows) < most:
                        rows[record["product_id"]] = self._row(record)
                blocks[place] = "\n".join(rows.values()) or NOTHING_FOUND
            else:
                own = None if result is None else self._own(message.get("name", name), result)
                blocks.append(plain(message) if own is None else own)
        for place, gone in alike.items():  # only now, because an id that has an alias counts as shown
            blocks[place] = self._by_likeness(gone)
        return blocks

    def _own(self, name: str, result: Mapping[str, Any]) -> str | None:
        """Write a result in its form here; None if it has none."""
        if name not in KNOWN:
            return None
        result = seen(result)
        if "orders" in result:
            self._bought = Counter(item["type"] for order in result["orders"] for item in order["items"])
            return "\n".join(map(self._order, result["orders"])) or NOTHING_FOUND
        if "parcels" in result:
            return self._order_status(result)
        if "units_left" in result:
            return _standing(result)
        if {"returns", "submitted", "line"} & result.keys():
            return DONE
        if "sections" in result:
            others = [f"{OTHERS} {', '.join(result['others'])}"] if result.get("others") else []
            return "\n".join([*map(self._section, result["sections"]), *others]) or NOTHING_FOUND
        if "today" in result:
            return f" {result['weekday']},{_day(result['today'])}"
        if "visits" in result:
            return "\n".join(map(self._row, result["visits"])) or NOTHING_FOUND
        if "product" in result:
            record = result["product"]
            self._gone = self._gone if record["stock"] else record
            return f" {record['title']}{self.aliases.of(record['product_id'])}\n{attributes_text(record['attributes'])}"
        return None

    def _in_order(self, arguments: Mapping[str, Any], result: Mapping[str, Any]) -> str:
        """Write the rows of a series of sorted searches, of which this is the latest."""
        self._sorted.take(arguments, able(result))
        rows = self._sorted.rows[:LISTED]
        lines = [f"- {row_text(row, arguments['sort'])}{self.aliases.of(row['product_id'])}" for row in rows]
        return "\n".join([*lines, *([MORE] if may_be_more(result) else [])]) or NOTHING_FOUND

    def _take_alike(
        self, arguments: Mapping[str, Any], result: Mapping[str, Any], gone: Mapping[str, Any]
    ) -> None:
        """Take in a page of a search for what is like a product."""
        same = {name: value for name, value in arguments.items() if name not in ("page", "attributes")}
        found = self._alike[1] if same == self._alike[0] else {}
        rows = [whole(row, arguments) for row in able(result) if row["product_id"] != gone["product_id"]]
        found |= {row["product_id"]: row for row in rows}
        self._alike = same, found

    def _by_likeness(self, gone: Mapping[str, Any]) -> str:
        """Write the rows of a search's pages so far, those that have most in common with a product first."""
        found = self._alike[1]
        counts = {one: count_alike(row, gone, gone["attributes"]) for one, row in found.items()}
        first = sorted(counts, key=lambda one: -counts[one])[:LISTED]
        return "\n".join(self._row(found[one]) for one in first) or NOTHING_FOUND

    def _row(self, record: Mapping[str, Any]) -> str:
        return f"- {record['title']}{self.aliases.of(record['product_id'])}"

    def _order(self, order: Mapping[str, Any]) -> str:
        alias = self.aliases.of(order["order_id"])
        items = "".join(f", {item['title']}{alias}" for item in order["items"])
        return f"-{_day(order['placed'])}{alias}{items}"

    def _order_status(self, order: Mapping[str, Any]) -> str:
        days = sorted(parcel.get("delivered") or parcel["expected"] for parcel in order["parcels"])
        lines = [f" {order['status']}" + "".join(f",{_day(day)}" for day in days)]
        for line in order["lines"]:
            told = self._details(line, order) if self._bought[line["type"]] > 1 else []
            words = ",".join([f" {line['title']}", *told])
            lines.append(f"-{words}{self.aliases.of(line['line_id'])}")
        return "\n".join(lines)

    def _details(self, line: Mapping[str, Any], order: Mapping[str, Any]) -> list[str]:
        """List the details, beyond its title, that tell a line from others of its type."""
        parcel = order["parcels"][line["parcel"] - 1] if line["parcel"] else {}
        told = [line["variant_id"], *line["attributes"].values()]
        days = [_day(parcel["delivered"])] if "delivered" in parcel else []
        return [f" {entry}" for entry in told if entry is not None] + days

    def _section(self, section: Mapping[str, str]) -> str:
        """Write a policy section in short, or unchanged if it cannot be parsed."""
        read = read_section(section["section"], section["text"], _AsWritten())
        if read is None or len(read.clauses) != section["text"].count("["):
            return self.aliases.in_text(f" {section['section']}\n{section['text']}")
        group = f", {read.group}" if read.group else ""
        lines = [heading(read.rule) + group + (f", {read.precedence}" if len(read.clauses) > 1 else "")]
        for clause in read.clauses:
            conditions = " and".join(map(condition, clause["if"]))
            then = clause["see"] if "see" in clause else RULES[read.rule].kind.write(clause["then"])
            lines.append(f"-{conditions}{':' if conditions else ''} {then}{self.aliases.of(clause['id'])}")
        return "\n".join(lines)


def without_notices(messages: Sequence[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], list[str]]:
    """Take the shop's notices out of tools' results: the messages without them, and the notices."""
    plain: list[Mapping[str, Any]] = []
    notices: list[str] = []
    for message in messages:
        result = _loaded(message["content"])
        if result is not None and "notice" in result:
            notices.append(str(result.pop("notice")))
            message = {**message, "content": json.dumps(result)}
        plain.append(message)
    return plain, notices


def seen(result: Mapping[str, Any]) -> dict[str, Any]:
    """Remove from a result's lists what the policy is not shown, for players that act on what it is shown."""
    kept = dict(result)
    if "visits" in kept:
        kept["visits"] = [row for row in kept["visits"] if not row["stock"]] or kept["visits"]
    return kept


def _standing(result: Mapping[str, Any]) -> str:
    """Write the facts of a return: whether its standard window is open, the window's last day, the day of delivery."""
    last, day = result["standard_last_day"], result["delivered"]
    said = (YES if result["standard_window_open"] else NO) + (
        NEVER if last == "never" else _day(last) if last else ""
    )
    return said + (f",{_day(day)}" if day else "")


def heading(rule: str) -> str:
    """Write a rule's heading: its title without the department."""
    return " " + RULES[rule].title.partition(":")[0] if "{}" in RULES[rule].title else f" {RULES[rule].title}"


def condition(atom: Atom) -> str:
    """Write a condition in short: " tier Gold or Silver", " total at least $50"."""
    fact, op, value = atom
    about = FACTS.get(fact)
    if isinstance(about, Amount):
        return f" {fact} {'at least' if op == '>=' else 'below'} {about.kind.write(value)}"
    return f" {fact} {' or '.join(value)}"


def attributes_text(attributes: Mapping[str, str]) -> str:
    """Write attributes as a search takes them, with the tokenizer's leading space before values."""
    return json.dumps({name: f" {value}" for name, value in attributes.items()})


class _AsWritten(dict[str, str]):
    """A map of product types by plural that takes any sequence of capitalised words as one."""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and re.fullmatch(r"[^a-z\s,]\S*(?: [^a-z\s,][^\s,]*)*", name) is not None

    def __missing__(self, name: str) -> str:
        return name


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and value != [] and all(isinstance(entry, dict) for entry in value)


def _day(iso: str) -> str:
    return f" {DAY.write(iso)}"


def _loaded(text: str) -> dict[str, Any] | None:
    try:
        result = json.loads(text)
    except ValueError:
        return None
    return result if isinstance(result, dict) else None
