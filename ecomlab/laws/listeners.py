"""One-bit listeners for NOT GAMEABLE: they hear only yes or no, which of three, or whether they were corrected.

They take rows of a list in random order, ask about them one after another, and act on or submit those that the customer
agreed to. Like positional attackers they are held to the chance that the environment states, which includes such
guesses: in CART, RETURN and STATUS, where a yes says which one is meant. In SUB and PD it says that a product will do,
not that none is more similar or better, and in BUNDLE not what else is on the list; of a clause in POLICY the customer
has no opinion. There a yes is worth nothing beyond what picking at random states.
"""

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.customer import nlu
from ecomlab.customer.dialogue import GUESSES, PATIENCE
from ecomlab.envs.base import Environment
from ecomlab.laws.attackers import (
    Factory,
    Plan,
    Row,
    Script,
    answer,
    arguments,
    explore,
    plans,
    scripted,
    settle,
    text,
)
from ecomlab.laws.tool_introspection import calls, records, results, sources
from ecomlab.seeding import shuffled
from ecomlab.task import Message, Player
from ecomlab.values import DAY, money

AGREES = ("this one", "as wanted", "yes")
"""Dialogue acts by which a customer agrees."""
CONSENTS = (*AGREES, "go ahead")
AT_ONCE = 3
"""Number of rows in one question."""
WANTED = 3
"""Number of rows in a submitted list."""
JOBS = 5
"""Most jobs of a task in which a ritual is performed."""
CLAIMS = 4
"""Number of false summaries in a job."""
SALAD = "brand color price size rating delivery quantity budget order date"
TOLD = 40
"""Amounts, and numbers of days, that are told at once."""
QUESTION = "Is there anything else I should know?"
Talked = Generator[Message, list[Message], list[Row]]
Talk = Callable[[Environment, list[Row], np.random.Generator], Talked]
"""Talk about rows in random order; it returns those to settle for, the first ones first."""


def listeners(env: Environment, shop: Shop) -> dict[str, Factory]:
    """Make the one-bit listeners of an environment by name; false summaries are made of the words of a `shop`."""
    made: dict[str, Factory] = {}
    every = [plan for source in sources(env) for plan in plans(env, source)]
    for plan in every:
        made[f"yes or no of {plan.name('each')}"] = scripted(partial(_listen, plan, 1))
        made[f"which one of {plan.name('three')}"] = scripted(partial(_listen, plan, AT_ONCE))
        if plan.act and not plan.further:
            made[f"guess and ask of {plan.name('each')}"] = scripted(partial(_guess, plan))
            made[f"ask once, then guess of {plan.name('each')}"] = scripted(partial(_search, plan, 1))
            made[f"ask once, then guess two of {plan.name('each')}"] = scripted(partial(_search, plan, 2))
    catalog = shop.catalog
    words = [*catalog.brands, *catalog.features, *(v for some in catalog.attr_values.values() for v in some)]
    for plan in (plan for plan in every if not plan.further):
        for name, talk in (
            (f"ritual of {plan.name('each')}", _perform),
            (f"false summaries of {plan.name('each')}", partial(_claim, words)),
            (f"blank consent to {plan.name('random')}", _ask_for_consent),
            (f"salad, {plan.name('random')}", _toss),
            (f"show three of {plan.name('each')}", _show),
        ):
            made[name] = scripted(partial(_talk, plan, talk))
    return made


def _talk(plan: Plan, talk: Talk, opening: str, random: np.random.Generator) -> Script:
    """In every job, talk about the rows of a list, and settle for the first that the talk leaves."""
    for _ in range(JOBS):
        rows = yield from talk(plan.env, (yield from _rows(plan, opening, random)), random)
        yield from settle(plan, rows[: WANTED if plan.several else 1])


def _rows(plan: Plan, opening: str, random: np.random.Generator, ids_only: bool = False) -> Talked:
    """Look at all rows of a list, and return them in random order."""
    return shuffled(random, (yield from explore(plan, None, 0, opening, random, ids_only=ids_only)))


def _listen(plan: Plan, at_once: int, opening: str, random: np.random.Generator) -> Script:
    left = yield from _rows(plan, opening, random)
    taken: list[Row] = []
    while left and len(taken) < (WANTED if plan.several else 1):
        asked, left = left[:at_once], left[at_once:]
        names = [_called(row) for row in asked]
        if at_once == 1:
            new = yield text(f"Do you mean {names[0]}?")
            taken += [asked[0]] if _agreed(plan.env, new) else []
        else:
            new = yield text(f"Which one do you mean: {', '.join(names)}?")
            said = " ".join(str(message["content"]) for message in new).lower()
            taken += [row for row, name in zip(asked, names, strict=True) if name.lower() in said][:1]
    yield from settle(plan, taken)


# Attackers that live by talk: whatever costs a courteous player nothing is used as a guess.


def _perform(env: Environment, rows: list[Row], random: np.random.Generator) -> Talked:
    """Perform every free act; the summary is a guess, and another one follows if it is refused."""
    yield text("Hello, and thank you for your message!")
    if rows:
        new = yield text(f"So you mean {_called(rows[0])}, is that right?")
        rows = rows if _agreed(env, new, CONSENTS) else rows[1:] + rows[:1]
    for words in ("Shall I go ahead?", QUESTION, "Thank you very much!"):
        yield text(words)
    return rows


def _claim(words: Sequence[str], env: Environment, rows: list[Row], random: np.random.Generator) -> Talked:
    """Sum up random claims about the type of one row after another, and settle for the first that is not corrected."""
    for place, row in enumerate(rows[:CLAIMS]):
        claims = ", ".join(words[i] for i in random.integers(len(words), size=2))
        kind = _called(row).split()[-1]
        new = yield text(f"So that is {random.integers(1, 5)} of these: {kind}, {claims}. Is that right?")
        if _agreed(env, new, CONSENTS):
            return rows[place:]
    return rows


def _ask_for_consent(env: Environment, rows: list[Row], random: np.random.Generator) -> Talked:
    """Ask for consent without saying to what, until it is given or patience is short, and settle for any row."""
    for _ in range(PATIENCE - 1):
        if _agreed(env, (yield text("Shall I go ahead?")), CONSENTS):
            break
    return rows


def _toss(env: Environment, rows: list[Row], random: np.random.Generator) -> Talked:
    """Say names of slots without a sentence, and settle for any row."""
    yield text(SALAD)
    return rows


def _show(env: Environment, rows: list[Row], random: np.random.Generator) -> Talked:
    """Show rows, a few at a time, until the customer has a good word for them, and settle for those."""
    shown: list[Row] = []
    for start in range(0, len(rows), AT_ONCE):
        shown = rows[start : start + AT_ONCE]
        if _agreed(env, (yield text(f"How about {', '.join(map(_called, shown))}?")), CONSENTS):
            break
    return shown


def shotgun_teller(env: Environment, shop: Shop) -> Player:
    """Make the reference player that, asked something, tells every value that it may be, the right one last: prices it
    has seen, numbers of days and parcels, yes and no."""
    known = env.reference_player(shop)

    def player(messages: list[Message], tools: list[dict[str, Any]]) -> Message:
        message: Message = known(messages, tools)
        if message.get("tool_calls"):
            return message
        met = [record for _, result in results(messages) for record in records(result)]
        prices = {round(100 * one["price"]) for one in met if isinstance(one.get("price"), float)}
        prices |= {100 * dollars for dollars in range(1, TOLD)}
        days = [DAY.write(f"{month:02d}-{day:02d}") for month in range(1, 13) for day in (3, 17)]
        numbers = [f"{n} {unit}" for unit in ("days", "parcels") for n in range(1, TOLD)]
        values = [*map(money, sorted(prices)[:TOLD]), *numbers, *days, "Yes", "No"]
        return text(" ".join([*(f"In total: {value}." for value in values), message["content"]]))

    return player


def _guess(plan: Plan, opening: str, random: np.random.Generator) -> Script:
    """Act on one row after another, with a question between, until the customer does not object."""
    assert plan.act is not None
    left = yield from _rows(plan, opening, random, ids_only=True)
    undo = next((tool for tool in plan.env.tools if tool.undoes is plan.act), None)
    tried: Row | None = None
    while left:
        undoing = [(undo.name, arguments(undo, plan.env, tried, ids_only=True))] if undo and tried else []
        tried = left.pop()
        new = yield calls(*undoing, (plan.act.name, arguments(plan.act, plan.env, tried, ids_only=True)))
        if all(message["role"] != "user" for message in new):
            break
        yield text(QUESTION)
    yield answer(plan.env, [tried] if tried else [], acted=True)


def _search(plan: Plan, count: int, opening: str, random: np.random.Generator) -> Script:
    """Find `count` rows with all the guesses that a customer puts up with: ask as often as a wrong one is forgiven,
    then act on one row after another, keeping those to which the customer does not object."""
    assert plan.act is not None
    left = yield from _rows(plan, opening, random, ids_only=True)
    undo = next(tool for tool in plan.env.tools if tool.undoes is plan.act)
    kept: list[Row] = []
    wrong: Row | None = None
    for asked in left[: GUESSES - 1]:
        new = yield text(f"Do you mean {_called(asked)}?")
        if _agreed(plan.env, new):
            new = yield calls((plan.act.name, arguments(plan.act, plan.env, asked, ids_only=True)))
            kept.append(asked)
    left = left[GUESSES - 1 :]
    while left and len(kept) < count:
        undoing = [(undo.name, arguments(undo, plan.env, wrong, ids_only=True))] if wrong else []
        tried = left.pop()
        new = yield calls(*undoing, (plan.act.name, arguments(plan.act, plan.env, tried, ids_only=True)))
        *_, (_, result) = results(new)
        objected = any(message["role"] == "user" for message in new)
        wrong = tried if objected and "error" not in result else None
        kept += [] if objected or "error" in result else [tried]
    yield answer(plan.env, kept, acted=True)


def _called(row: Row) -> str:
    """Name a row in a question: by its title, else by its first id."""
    title = row.known.get("title")
    return str(title) if title else str(next((row.known[name] for name in sorted(row.ids)), ""))


def _agreed(env: Environment, new: Sequence[Message], acts: Sequence[str] = AGREES) -> bool:
    said = " ".join(str(message["content"]) for message in new if message["role"] == "user")
    return any(nlu.says(kind, said, env.phrases) for kind in acts)
