"""What a reader must know to judge an episode: what is wanted now, what of what tools have shown fits, and which answer
would be right now. All of it is read from goal and world, none from verifier or labels."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from ecomlab.customer.replacements import rows_of
from ecomlab.episode.episode import Episode
from ecomlab.episode.subtask import Subtask
from ecomlab.lab.play.truth import wanted
from ecomlab.task import Goal
from ecomlab.values import money
from ecomlab.world import ranking
from ecomlab.world.cart import constraints_of
from ecomlab.world.orders.history import eligible_now, last_date, status_of
from ecomlab.world.orders.lines import expected_returns, line_meant
from ecomlab.world.orders.references import look, resolve
from ecomlab.world.policy_book.book import decide
from ecomlab.world.policy_book.cases import section_on
from ecomlab.world.policy_book.rules import RULES
from ecomlab.world.shopping_list import parts_of
from ecomlab.world.state import World
from ecomlab.world.substitutes import original_of, requirements, similarity

MOST = 12
"""Most products that are listed one by one."""
SOME = 6
"""Units of which more make no difference: nobody wants so many."""


@dataclass(frozen=True)
class Truth:
    """What is true of a job at one moment."""

    wants: Sequence[str]
    right: Sequence[str]
    """Right answers, in words."""
    fits: Mapping[str, Mapping[str, "Left"]]
    """For each thing that is sought, the products that tools have shown and that fit it, each with its stock."""


@dataclass(frozen=True)
class Left:
    """How much of a product can be had, in words; `about` is the same as long as it makes no difference to anybody."""

    words: str
    about: tuple[object, ...]


def truth_of(subtask: Subtask, world: World) -> Truth:
    """Read what is true of a job now."""
    goal, env = subtask.goal, subtask.env
    wants = [f"{fact.about}: {fact.text}".removeprefix(": ") for fact in wanted([(env.id, goal)])]
    fits: dict[str, dict[str, Left]] = {}
    for want in env.audit.wishes(goal, world):
        rows = [
            row
            for row in map(world.row, sorted(world.shown))
            if world.catalog.satisfies(row, want.constraints)
        ]
        same = sum(about.startswith(want.type) for about in fits)
        about = want.type + (f", the {same + 1}nd one" if same else "")
        fits[about] = {world.catalog.ids[row]: _left(row, want.option, world) for row in rows}
    right = RIGHT.get(env.id)
    return Truth(wants, list(right(goal, world)) if right else [], fits)


def truths_of(episode: Episode) -> list[Truth]:
    """Read what is true of every job that the customer has begun."""
    return [truth_of(subtask, episode.world) for subtask in episode.subtasks[: episode.opened]]


def _left(row: int, option: str | None, world: World) -> Left:
    """Say how much of a product can be had: of the wanted option as well, where one is wanted."""
    left = world.stock(row)
    words, some = f"{left} in stock" if left else "sold out", min(left, SOME)
    if option is None:
        return Left(words, (some,))
    if option not in world.options(row):
        return Left(f"{words}, but it does not come in {option}", (some, option))
    of_option, shown = world.stock(row, option), (world.catalog.ids[row], option) in world.shown_pairs
    words += f"; in {option}: {of_option or 'sold out'}{'' if shown else ', which no tool has shown yet'}"
    return Left(words, (some, min(of_option, SOME), shown))


def _recommendation(goal: Goal, world: World) -> Iterator[str]:
    """The best products by the order of preferences."""
    count, rows = goal["count"], world.in_stock(world.catalog.select(ranking.constraints(goal)))
    ordered, places = ranking.places(rows, goal["importance"], world.shop)
    best = [
        (row, place) for row, place in zip(ordered.tolist(), places.tolist(), strict=True) if place < count
    ]
    yield (
        f"{count} products, in any order: the best by {', then '.join(goal['importance'])} of the {len(rows)} that "
        "meet every demand and can be had"
    )
    yield from _ranks(best, count, world)


def _ranks(best: Sequence[tuple[int, int]], count: int, world: World) -> Iterator[str]:
    """Name the best products (row, number of better ones): those that must be there, and those of which some must."""
    last = max((place for _, place in best), default=0)
    sure = [world.catalog.ids[row] for row, place in best if place < last]
    some = [world.catalog.ids[row] for row, place in best if place == last]
    if len(sure) + len(some) <= count:
        sure, some = sure + some, []
    if sure:
        yield f"these must be there: {', '.join(sure)}"
    if some:
        more = f" and {len(some) - MOST} more" if len(some) > MOST else ""
        yield f"{count - len(sure)} of these, which are equally good: {', '.join(some[:MOST])}{more}"


def _replacements(goal: Goal, world: World) -> Iterator[str]:
    """The most similar products that can be had."""
    count, catalog, original = int(goal["count"]), world.catalog, original_of(goal, world.shop)
    rows = world.in_stock(catalog.select(requirements(goal, world.shop)))
    rows = rows[rows != original]
    alike = similarity(rows, goal, world.shop)
    order = np.argsort(-alike, kind="stable")
    best = [(int(rows[i]), int((alike > alike[i]).sum())) for i in order if (alike > alike[i]).sum() < count]
    yield f"the sold-out product is {catalog.ids[original]} ({catalog.title(original)})"
    yield (
        f"{count} products: those that have most in common with it, of the {len(rows)} that meet every demand and can "
        "be had"
    )
    yield from _ranks(best, count, world)


def _shopping_list(goal: Goal, world: World) -> Iterator[str]:
    """The budget, and the least that all parts cost together."""
    cheapest = []
    for kind, slots in parts_of(goal.slots):
        rows = world.in_stock(world.catalog.select(constraints_of(kind, slots)))
        cheapest.append(int(world.catalog.price_cents[rows].min()) if len(rows) else None)
    parts = ", ".join(kind for kind, _ in parts_of(goal.slots))
    yield f"one product for each of: {parts}; together at most {money(goal['budget'])}"
    if None not in cheapest:
        yield f"the cheapest list that can be had costs {money(sum(filter(None, cheapest)))}"


def _return(goal: Goal, world: World) -> Iterator[str]:
    """The line that is meant, what may come of it, and the replacement."""
    order, line = line_meant(goal.of(), world.given["orders"], world.shop)
    title = world.catalog.title(world.row(line["product_id"]))
    yield f"the line that is meant: order {order['order_id']}, line {line['line_id']} ({title})"
    terms, due = eligible_now(world, order, line, undone=True), expected_returns(goal.of(), world)
    if not due:
        yield f"outcome: declined ({terms.reason}); last return day: {terms.last_day or 'never'}; nothing goes back"
        return
    (units,) = due.values()
    yield f"outcome: returned; exactly {units} of its units go back and nothing else"
    if not goal["replacement"]:
        yield "replacement: none is wanted"
        return
    rows = world.in_stock(rows_of(goal["replacement"], line, world.shop)).tolist()
    fitting = sorted(world.catalog.ids[row] for row in rows)
    known = [one for one in fitting if one in world.shown]
    yield (
        f"replacement: any product that is as wanted and that a tool has shown; {len(fitting)} can be had, shown so "
        f"far: {', '.join(known) or 'none'}"
    )


def _status(goal: Goal, world: World) -> Iterator[str]:
    """The order that is meant, how it stands, and its day."""
    today, orders = date.fromisoformat(world.given["today"]), world.given["orders"]
    (at,) = resolve(look(orders, world.shop), goal.of(), today)
    meant = orders[at]
    yield f"order {meant['order_id']}, {status_of(meant)}, day {last_date(meant) or 'none'}; today is {today}"


def _policy(goal: Goal, world: World) -> Iterator[str]:
    """The clause that decides, and its answer."""
    book, facts = world.given["policies"], goal.of()
    rule, section = RULES[goal["question"]], section_on(book, facts, world.catalog)
    clause = section["clauses"][decide(section, book["precedence"], facts)]
    yield f"clause {clause['id']}, answer: {rule.kind.write(clause['then'])}"


RIGHT: Mapping[str, Callable[[Goal, World], Iterator[str]]] = {
    "PD": _recommendation,
    "SUB": _replacements,
    "BUNDLE": _shopping_list,
    "RETURN": _return,
    "STATUS": _status,
    "POLICY": _policy,
}
"""By environment. In CART what is wanted is the answer."""
