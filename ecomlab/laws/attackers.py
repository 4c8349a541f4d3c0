"""Attackers for NOT GAMEABLE, made from what an environment's tools declare and the fields of its `submit`.

Blind attackers decide by neither the customer's words nor tool results. Positional ones choose by the place in a list
alone and do the rest as well as possible: they follow the ids of a chosen row into the tools that take them, act on it
with a tool that acts, and fill `submit` from what they have seen. The naive shopper searches for the customer's words
and takes the first hit.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.envs.base import Environment
from ecomlab.laws.tool_introspection import (
    acts,
    fields,
    follows,
    kinds,
    listed,
    look_at,
    looks,
    records,
    results,
    sources,
    taken,
)
from ecomlab.laws.tool_introspection import calls as calls
from ecomlab.seeding import rng
from ecomlab.task import Message, Player
from ecomlab.tool import Tool, plain

Factory = Callable[[int], Player]
"""Function from an episode's seed to a player for it."""
Script = Generator[Message, list[Message], None]
"""Generator of a player's messages, which receives the new messages; the last one is repeated forever."""
Choice = Callable[[Sequence[Mapping[str, Any]], np.random.Generator], int]
"""Function from rows to the index of the chosen one."""


def text(words: str) -> Message:
    return {"role": "assistant", "content": words}


SUBMIT = calls(("submit", {}))
CONSTANTS = ("", "0", "1", "yes", "no", "N/A", "nan", "30 days", "$5.00")
"""Constant answers for every text field, in addition to the values that the schema names."""
COUNTS = (1, 3, 5)
"""Numbers of rows to submit as a list."""


def _cheapest(rows: Sequence[Mapping[str, Any]], random: np.random.Generator) -> int:
    """Choose the row with the smallest value of the first numeric field in which rows differ, usually the price."""
    numbers = [name for name, value in rows[0].items() if isinstance(value, int | float)]
    name = next((n for n in numbers if len({row.get(n) for row in rows}) > 1), "")
    return min(range(len(rows)), key=lambda i: rows[i].get(name) or 0)


def _commonest(rows: Sequence[Mapping[str, Any]], random: np.random.Generator) -> int:
    """Choose a row with a text that ends in the most frequent last word: in product titles, the commonest type."""
    last = [
        {str(value).split()[-1] for value in row.values() if isinstance(value, str) and value.strip()}
        for row in rows
    ]
    count = Counter(word for words in last for word in words)
    return max(range(len(rows)), key=lambda i: max((count[word] for word in last[i]), default=0))


def _alone(rows: Sequence[Mapping[str, Any]], place: int, random: np.random.Generator) -> int:
    """Choose the row whose word at this place is rarest within its kind: a brand or a style that stands alone."""
    words = _ends(rows, place)
    said = Counter(words)
    fewest = min(said.values())
    return int(random.choice([i for i, word in enumerate(words) if said[word] == fewest]))


def _ends(rows: Sequence[Mapping[str, Any]], place: int) -> list[tuple[str, str]]:
    """List the last word of each row's longest text, in product titles the type, and the word at `place`."""
    texts = [
        max((v for v in row.values() if isinstance(v, str)), key=len, default="").split() for row in rows
    ]
    return [(words[-1], words[place]) if len(words) > place else ("", "") for words in texts]


def knowing(shop: Shop) -> Choice:
    """Make the choice of a row that stands alone although its brand, the first word, is common in this shop."""
    count = np.bincount(shop.catalog.brand_code, minlength=len(shop.catalog.brands)).tolist()
    share = {brand.split()[0]: n for brand, n in zip(shop.catalog.brands, count, strict=True)}

    def choose(rows: Sequence[Mapping[str, Any]], random: np.random.Generator) -> int:
        words = _ends(rows, 0)
        said = Counter(words)
        return max(range(len(rows)), key=lambda i: (-said[words[i]], share.get(words[i][1], 0)))

    return choose


CHOICES: dict[str, Choice] = {
    "first": lambda rows, random: 0,
    "last": lambda rows, random: len(rows) - 1,
    "random": lambda rows, random: int(random.integers(len(rows))),
    "cheapest": _cheapest,
    "longest": lambda rows, random: max(range(len(rows)), key=lambda i: len(json.dumps(rows[i]))),
    "commonest": _commonest,
    "alone": lambda rows, random: _alone(rows, 0, random),
    "alone by style": lambda rows, random: _alone(rows, 1, random),
}
"""Choices of positional attackers."""
PATIENT = ("first", "last", "random", "commonest", "alone", "alone by style")
"""Orders in which rows are tried until the customer is silent."""


def constant(env: Environment, value: str = "") -> Message:
    """Submit `value` in every text field and, unless it is empty, in every list."""
    given = {
        n: [value] if value else [] for n, schema in fields(env.submit).items() if "array" in kinds(schema)
    }
    return _submit(env, given, dict.fromkeys(fields(env.submit), value))


def blind(env: Environment) -> dict[str, Factory]:
    """Make the blind attackers, which are correct by luck at most."""
    empty = constant(env)
    ask = calls(("ask_user", {"question": "Anything else?"}))
    made: dict[str, Factory] = {
        "hand in at once": _script(empty),
        "say nothing": _script(text("")),
        "say done": _script(text("Done, everything is in your cart.")),
        "ask for ever": _script(ask),
        "refuse": _script(text("I'm sorry, I cannot help with that.")),
        "ask, then hand in": _script(ask, empty),
        "broken output": _script({"role": "assistant", "content": "{", "invalid": "malformed JSON"}),
    }
    if constant(env, "x") != empty:
        named = [value for schema in fields(env.submit).values() for value in _named(schema)]
        made |= {f"always {v!r}": _script(constant(env, v)) for v in dict.fromkeys([*CONSTANTS[1:], *named])}
    for act in acts(env):
        if set(act.required) <= taken(act, env).keys():
            made[f"{act.name} made-up id"] = _script(
                calls((act.name, dict.fromkeys(act.required, "1"))), empty
            )
    for source in sources(env):
        for plan in plans(env, source):
            if plan.act or plan.several:
                made[plan.name("all")] = scripted(partial(_play, plan, None, 0))
    return made


def positional(env: Environment, shop: Shop | None = None) -> dict[str, Factory]:
    """Make the positional attackers, which are held to the chance that the environment states for itself; with a `shop`
    some of them know how common its brands are."""
    made: dict[str, Factory] = {}
    choices = {**CHOICES, **({"alone, though common": knowing(shop)} if shop else {})}
    for plan in (plan for source in sources(env) for plan in plans(env, source)):
        for place, choose in choices.items():
            for count in COUNTS if plan.several else (1,):
                rows = f"{place} {count}" if plan.several else place
                made[plan.name(rows)] = scripted(partial(_play, plan, choose, count))
        if plan.act and not plan.follow:
            made[plan.name("two")] = scripted(partial(_play, plan, CHOICES["random"], 2))
        for undo in env.tools:
            if plan.act and undo.undoes is plan.act and not plan.further:
                for place in (*PATIENT, *(choices.keys() - CHOICES.keys())):
                    made[f"{plan.name(place)} until silence"] = scripted(
                        partial(_try, plan, plan.act, undo, choices[place])
                    )
    return made


def naive(env: Environment) -> Factory:
    """Make the naive shopper, which acts on or submits the first hit for the customer's words; it has no bound."""
    searches = [source for source in sources(env) if source.usual]
    found = [p for s in sorted(searches, key=lambda s: _use(s, env)) for p in plans(env, s) if not p.follow]
    found.sort(key=lambda plan: plan.act is None)
    if not found:
        return _script(constant(env))
    return scripted(partial(_play, replace(found[0], said=True), CHOICES["first"], 1))


@dataclass(frozen=True)
class Plan:
    """A way to use a list: look at it, take rows of it, follow their ids if necessary, act on them, submit."""

    env: Environment
    source: Tool
    act: Tool | None = None
    follow: bool = False
    further: bool = False
    """True if the ids would suffice without following them."""
    several: bool = False
    """True if rows are submitted as a list."""
    said: bool = False
    """True if the query is what the customer said."""

    def name(self, rows: str) -> str:
        verb = self.act.name if self.act else "hand in"
        return f"{verb} {rows} of {self.source.name}{', looked into' * self.follow}"


def plans(env: Environment, source: Tool) -> Iterator[Plan]:
    """Yield the ways to use a list, by the ids of its rows and the ids that these lead to."""
    here, reached = listed(source), _reached(source, env)
    for act in acts(env):
        takes = taken(act, env)
        if takes.keys() >= set(act.required) and takes and set(takes.values()) & reached:
            needs = {takes[name] for name in act.required}
            if needs <= here:
                yield Plan(env, source, act)
            if needs <= reached and set(takes.values()) & reached - here:
                yield Plan(env, source, act, follow=True, further=needs <= here)
    takes = taken(env.submit, env)
    several = any(
        "array" in kinds(schema) and takes.get(n) in here for n, schema in fields(env.submit).items()
    )
    if several:
        yield Plan(env, source, several=True)
    leads = any(follows(tool, here) for tool in looks(env))
    if (
        _texts(env)
        and _use(source, env) <= max(1, min(_use(s, env) for s in sources(env)))
        and (leads or not several)
    ):
        yield Plan(env, source, follow=leads)


def _reached(source: Tool, env: Environment) -> frozenset[str]:
    """Collect the id fields of a list's rows and all that following them leads to."""
    found = listed(source)
    while more := [tool for tool in looks(env) if follows(tool, found) and not listed(tool) <= found]:
        found = found.union(*map(listed, more))
    return found


def _use(source: Tool, env: Environment) -> int:
    """Rank a list by use: 0 if its ids lead to what can be acted on or submitted, 1 if no tool takes them, else 2."""
    used = {i for tool in (*acts(env), env.submit) for i in taken(tool, env).values()}
    if _reached(source, env) & used:
        return 0
    return 2 if any(listed(source) & set(taken(tool, env).values()) for tool in looks(env)) else 1


@dataclass
class Row:
    """A chosen row with everything known about it."""

    known: dict[str, Any] = field(default_factory=dict)
    ids: frozenset[str] = frozenset()
    """Id fields by which it can be looked into."""
    seen: frozenset[str] = frozenset()
    """Names of the tools that have shown it."""


def explore(
    plan: Plan,
    choose: Choice | None,
    count: int,
    opening: str,
    random: np.random.Generator,
    ids_only: bool = False,
) -> Generator[Message, list[Message], list[Row]]:
    """Look at the list, take rows of it (all without a choice), and follow their ids while that reveals more."""
    new = yield calls(look_at(plan.source, opening if plan.said else ""))
    rows = [
        row for _, shown in results(new) for row in _grown(Row(), plan.source, shown, choose, count, random)
    ]
    while plan.follow:
        asked = [
            (i, tool)
            for i, row in enumerate(rows)
            for tool in looks(plan.env)
            if follows(tool, row.ids) and tool.name not in row.seen and _lacks(plan, row, ids_only)
        ]
        if not asked:
            break
        new = yield calls(*((t.name, {name: rows[i].known[name] for name in t.required}) for i, t in asked))
        grown = [[row] for row in rows]
        for (i, tool), (_, shown) in zip(asked, results(new)):
            grown[i] = [more for row in grown[i] for more in _grown(row, tool, shown, choose, 1, random)]
        rows = [row for several in grown for row in several]
    return rows


def _grown(
    row: Row, tool: Tool, shown: Any, choose: Choice | None, count: int, random: np.random.Generator
) -> list[Row]:
    """Add to a row what a tool has shown; where that is a list, return one for each chosen entry."""
    lists = {path.partition(".")[0] for path in tool.lists}
    about = {name: value for name, value in shown.items() if name not in lists}
    about |= {n: v for value in about.values() if isinstance(value, dict) for n, v in plain(value)}
    known, seen = {**about, **row.known}, row.seen | {tool.name}
    found = [(ids, more) for ids, rows in tool.rows(shown) for more in rows if not more.get("sponsored")]
    if not found:
        return [Row(known, row.ids, seen)] if row.ids else []
    chosen: list[tuple[tuple[str, ...], dict[str, Any]]] = []
    while found and (choose is None or len(chosen) < count):
        chosen.append(found.pop(choose([more for _, more in found], random) if choose else 0))
    return [Row({**more, **known}, row.ids | {ids[0]}, seen) for ids, more in chosen]


def _lacks(plan: Plan, row: Row, ids_only: bool) -> bool:
    """Tell whether an argument of the act or, unless only ids matter, of `submit` is still unknown."""
    act, known = plan.act, row.known
    wanted = (act.required if ids_only else fields(act)) if act else ()
    if any(known.get(name) is None for name in wanted):
        return True
    return not ids_only and any(_find(n, schema, plan.env, known) is None for n, schema in _texts(plan.env))


def _play(plan: Plan, choose: Choice | None, count: int, opening: str, random: np.random.Generator) -> Script:
    rows = yield from explore(plan, choose, count, opening, random)
    yield from settle(plan, rows, acted=plan.act is not None or not acts(plan.env))


def settle(plan: Plan, rows: Sequence[Row], acted: bool = True) -> Script:
    """Act on rows, where there is something to act with, and submit them."""
    if plan.act and rows:
        new = yield calls(*((plan.act.name, arguments(plan.act, plan.env, row)) for row in rows))
        acted = not any("error" in result for _, result in results(new))
    yield answer(plan.env, rows, acted)


def _try(
    plan: Plan, act: Tool, undo: Tool, choose: Choice, opening: str, random: np.random.Generator
) -> Script:
    """Act on one row after another until the customer says nothing, then submit that row."""
    left = yield from explore(plan, None, 0, opening, random, ids_only=True)
    tried: Row | None = None
    while left:
        undoing = [(undo.name, arguments(undo, plan.env, tried, ids_only=True))] if tried else []
        tried = left.pop(choose([row.known for row in left], random))
        new = yield calls(*undoing, (act.name, arguments(act, plan.env, tried, ids_only=True)))
        *_, (_, result) = results(new)
        if "error" in result:
            tried = None
        elif all(message["role"] != "user" for message in new):
            break
    yield answer(plan.env, [tried] if tried else [], acted=True)


def arguments(tool: Tool, env: Environment, row: Row, ids_only: bool = False) -> dict[str, Any]:
    """Take an acting tool's arguments from a row: the ids that it takes, and numbers of the same name."""
    takes, found = taken(tool, env), dict[str, Any]()
    for name, schema in fields(tool).items():
        value = row.known.get(takes.get(name, name))
        if value is not None and (name in takes or (not ids_only and _numeric(schema))):
            found[name] = [value] if "array" in kinds(schema) else value
    return found


def answer(env: Environment, rows: Sequence[Row], acted: bool) -> Message:
    """Submit rows: their ids in its lists, and in its text fields what is known of the first row.

    Where a field's value is unknown, take the first that the schema names if the act succeeded, else the last.
    """
    takes = taken(env.submit, env)
    lists = {name: [row.known[i] for row in rows if i in row.known] for name, i in takes.items()}
    texts = {}
    for name, schema in _texts(env) if rows else ():
        found = _find(name, schema, env, rows[0].known)
        options = [value for value in _named(schema) if not re.search(r"\d", value)]
        texts[name] = found if found is not None else options[0 if acted else -1] if options else ""
    return _submit(env, lists, texts)


def _submit(env: Environment, lists: Mapping[str, list[Any]], texts: Mapping[str, str]) -> Message:
    """Submit these values where the schema allows them, and fill in whatever else it requires."""
    given: dict[str, Any] = {}
    for name, schema in fields(env.submit).items():
        value, number = texts.get(name, ""), re.search(r"\d+", texts.get(name, ""))
        if "array" in kinds(schema):
            given[name] = lists.get(name, [])
        elif "string" in kinds(schema):
            allowed = _allowed(schema)
            given[name] = value if not allowed or value in allowed else allowed[0]
        elif _numeric(schema) and (number or name in env.submit.required):
            given[name] = int(number.group()) if number else 1
        elif "boolean" in kinds(schema) or name in env.submit.required:
            given[name] = True  # a cart's `done`: without it, a journey goes no further than its cart
    return calls(("submit", given))


def _texts(env: Environment) -> list[tuple[str, dict[str, Any]]]:
    """List the fields of `submit` that hold a single text or number."""
    return [
        (n, s)
        for n, s in fields(env.submit).items()
        if "array" not in kinds(s) and ("string" in kinds(s) or _numeric(s))
    ]


def _numeric(schema: Mapping[str, Any]) -> bool:
    return bool(kinds(schema) & {"integer", "number"}) and "string" not in kinds(schema)


def _allowed(schema: Mapping[str, Any]) -> list[str]:
    return [value for kind in (schema, *schema.get("anyOf", ())) for value in kind.get("enum", ())]


def _named(schema: Mapping[str, Any]) -> list[str]:
    """List the values that a field's schema names: all that are allowed, or those in its description."""
    said = schema.get("description", "")
    listed_ = re.search(r"[Oo]ne of: ([^.]+)", said)
    return _allowed(schema) or [*re.findall(r'"([^"]+)"', said), *(listed_[1].split(", ") if listed_ else ())]


def _find(name: str, schema: Mapping[str, Any], env: Environment, known: Mapping[str, Any]) -> str | None:
    """Find the value that tools have shown for a field of `submit`: the one under its name; else the first text in the
    form of an example in its description, amounts after the first id; else the largest of what its description names.
    """
    value = known.get(name)
    if isinstance(value, str | int | float):
        return str(value)
    shown, said = json.dumps(known), schema.get("description", "")
    ids = [_form(example) for _, other in _texts(env) for example in _named(other) if _ID.match(example)]
    first = next((match for form in ids if (match := re.search(form, shown))), None)
    for example in _named(schema):
        if _ID.match(example) and (match := re.search(_form(example), shown)):
            return match.group()
        if example[:1].isdigit() and (match := _AMOUNT.search(shown, first.end() if first else 0)):
            return match.group()
    words = re.findall(r"\w+", said)
    named = ([word for word in words if isinstance(record.get(word), str)] for record in records(known))
    return max((record[one[0]] for record, one in zip(records(known), named) if one), default=None)


_ID = re.compile(r"[A-Za-z]\S*\d")
_AMOUNT = re.compile(r"\$?\d+(?:\.\d+)?(?: \w+|%)?")


def _form(example: str) -> str:
    """Make a pattern of an example's form: "C-123" is a capital, a dash and a number."""
    return re.sub(r"[A-Z]", "[A-Z]", re.sub(r"\d+", r"\\d+", re.escape(example)))


def scripted(script: Callable[[str, np.random.Generator], Script]) -> Factory:
    """Make players that follow a script and then repeat its last message."""

    def make(seed: int) -> Player:
        running: Script | None = None
        said: Message = {}
        read = 0

        def player(messages: list[Message], tools: list[dict[str, Any]]) -> Message:
            nonlocal running, said, read
            new, read = messages[read:], len(messages)
            with suppress(StopIteration):
                if running is None:
                    running = script(messages[1]["content"], rng("positional", seed))
                    said = next(running)
                else:
                    said = running.send(new)
            return said

        return player

    return make


def _script(*said: Message) -> Factory:
    """Make players that send these messages in turn, the last one forever."""

    def make(seed: int) -> Player:
        left = iter(said)
        return lambda messages, tools: next(left, said[-1])

    return make
