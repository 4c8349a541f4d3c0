"""Attackers of NOT GAMEABLE, made from what an environment's tools declare and the fields of its `submit`.

Blind players never use the customer's words, or what a tool says, to decide. Positional ones choose by the place in a
list alone, and then do all the rest as well as it can be done: they follow the ids of a chosen row into the tools that
take them, act on it with a tool that acts, and fill `submit` from what they have seen. The naive shopper takes the
customer's words as the query and the first hit.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ecomlab.audit.surface import (
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
    tools_of,
)
from ecomlab.audit.surface import calls as calls
from ecomlab.envs.base import Environment
from ecomlab.seeding import rng
from ecomlab.task import Message, Player
from ecomlab.tool import Tool, plain

Factory = Callable[[int], Player]
"""Maker of a player for one episode, from its seed."""
Script = Generator[Message, list[Message], None]
"""Generator of a player's messages that is sent what is new; its last message is said for ever."""
Choice = Callable[[Sequence[Mapping[str, Any]], np.random.Generator], int]
"""The place that is chosen in a list."""


def text(words: str) -> Message:
    """A message to the customer."""
    return {"role": "assistant", "content": words}


SUBMIT = calls(("submit", {}))
CONSTANTS = ("", "0", "1", "yes", "no", "N/A", "nan", "30 days", "$5.00")
"""Constant answers for every field of text, beside the values that the schema names."""
COUNTS = (1, 3, 5)
"""Numbers of rows that are handed in where a list is asked for."""


def _cheapest(rows: Sequence[Mapping[str, Any]], random: np.random.Generator) -> int:
    """The row with the least number in the first field in which rows differ by one: as a rule the price."""
    numbers = [name for name, value in rows[0].items() if isinstance(value, int | float)]
    name = next((n for n in numbers if len({row.get(n) for row in rows}) > 1), "")
    return min(range(len(rows)), key=lambda i: rows[i].get(name) or 0)


def _commonest(rows: Sequence[Mapping[str, Any]], random: np.random.Generator) -> int:
    """The row that has a text ending in the word in which most rows' texts end: of a product, its type."""
    last = [
        {str(value).split()[-1] for value in row.values() if isinstance(value, str) and value.strip()}
        for row in rows
    ]
    count = Counter(word for words in last for word in words)
    return max(range(len(rows)), key=lambda i: max((count[word] for word in last[i]), default=0))


CHOICES: dict[str, Choice] = {
    "first": lambda rows, random: 0,
    "last": lambda rows, random: len(rows) - 1,
    "random": lambda rows, random: int(random.integers(len(rows))),
    "cheapest": _cheapest,
    "longest": lambda rows, random: max(range(len(rows)), key=lambda i: len(json.dumps(rows[i]))),
    "commonest": _commonest,
}
"""The choices of positional players."""
PATIENT = ("first", "last", "random", "commonest")
"""The orders in which rows are tried until the customer is silent."""


def constant(env: Environment, value: str = "") -> Message:
    """`submit` with `value` in every field of text and, unless it is empty, in every list."""
    given = {
        n: [value] if value else [] for n, schema in fields(env.submit).items() if "array" in kinds(schema)
    }
    return _submit(env, given, dict.fromkeys(fields(env.submit), value))


def blind(env: Environment) -> dict[str, Factory]:
    """Players that are correct by luck at most."""
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
        for plan in _plans(env, source):
            if plan.act or plan.several:
                made[plan.name("all")] = _playing(plan, None, 0)
    return made


def positional(env: Environment) -> dict[str, Factory]:
    """Players held to the chance that the environment states for itself."""
    made: dict[str, Factory] = {}
    for plan in (plan for source in sources(env) for plan in _plans(env, source)):
        for place, choose in CHOICES.items():
            for count in COUNTS if plan.several else (1,):
                rows = f"{place} {count}" if plan.several else place
                made[plan.name(rows)] = _playing(plan, choose, count)
        if plan.act and not plan.follow:
            made[plan.name("two")] = _playing(plan, CHOICES["random"], 2)
        for undo in tools_of(env).values():
            if plan.act and undo.undoes is plan.act and not plan.further:
                for place in PATIENT:
                    made[f"{plan.name(place)} until silence"] = _patient(plan, plan.act, undo, CHOICES[place])
    return made


def naive(env: Environment) -> Factory:
    """The customer's words as the query, the first hit acted on or handed in: shown without a bound."""
    searches = [source for source in sources(env) if source.required]
    found = [p for s in sorted(searches, key=lambda s: _use(s, env)) for p in _plans(env, s) if not p.follow]
    found.sort(key=lambda plan: plan.act is None)
    return _playing(replace(found[0], said=True), CHOICES["first"], 1) if found else _script(constant(env))


@dataclass(frozen=True)
class _Plan:
    """A way to use a list: look at it, take rows of it, follow their ids if need be, act on them, hand in."""

    env: Environment
    source: Tool
    act: Tool | None = None
    follow: bool = False
    further: bool = False
    """The ids would do without following them."""
    several: bool = False
    """Rows are handed in as a list."""
    said: bool = False
    """The query is what the customer said."""

    def name(self, rows: str) -> str:
        verb = self.act.name if self.act else "hand in"
        return f"{verb} {rows} of {self.source.name}{', looked into' * self.follow}"


def _plans(env: Environment, source: Tool) -> Iterator[_Plan]:
    """The ways to use a list, by the ids that its rows have and the ones that they lead to."""
    here, reached = listed(source), _reached(source, env)
    for act in acts(env):
        takes = taken(act, env)
        if takes.keys() >= set(act.required) and takes and set(takes.values()) & reached:
            needs = {takes[name] for name in act.required}
            if needs <= here:
                yield _Plan(env, source, act)
            if needs <= reached and set(takes.values()) & reached - here:
                yield _Plan(env, source, act, follow=True, further=needs <= here)
    takes = taken(env.submit, env)
    several = any(
        "array" in kinds(schema) and takes.get(n) in here for n, schema in fields(env.submit).items()
    )
    if several:
        yield _Plan(env, source, several=True)
    leads = any(follows(tool, here) for tool in looks(env))
    if (
        _texts(env)
        and _use(source, env) <= max(1, min(_use(s, env) for s in sources(env)))
        and (leads or not several)
    ):
        yield _Plan(env, source, follow=leads)


def _reached(source: Tool, env: Environment) -> frozenset[str]:
    """The ids of a list's rows and all that looking into them leads to."""
    found = listed(source)
    while more := [tool for tool in looks(env) if follows(tool, found) and not listed(tool) <= found]:
        found = found.union(*map(listed, more))
    return found


def _use(source: Tool, env: Environment) -> int:
    """0: its ids lead to something that can be acted on or handed in; 1: no tool takes them, its text is what counts;
    2: it serves to look something up."""
    used = {i for tool in (*acts(env), env.submit) for i in taken(tool, env).values()}
    if _reached(source, env) & used:
        return 0
    return 2 if any(listed(source) & set(taken(tool, env).values()) for tool in looks(env)) else 1


@dataclass
class _Row:
    """A row that was chosen, with all that is known of it."""

    known: dict[str, Any] = field(default_factory=dict)
    ids: frozenset[str] = frozenset()
    """By which it can be looked into."""
    seen: frozenset[str] = frozenset()
    """The tools that it was looked into with."""


def _explore(
    plan: _Plan,
    choose: Choice | None,
    count: int,
    opening: str,
    random: np.random.Generator,
    ids_only: bool = False,
) -> Generator[Message, list[Message], list[_Row]]:
    """Look at the list, take rows of it (without a choice: all), and look into these as far as that tells more."""
    new = yield calls(look_at(plan.source, opening if plan.said else ""))
    rows = [
        row for _, shown in results(new) for row in _grown(_Row(), plan.source, shown, choose, count, random)
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
    row: _Row, tool: Tool, shown: Any, choose: Choice | None, count: int, random: np.random.Generator
) -> list[_Row]:
    """The row with what a tool has shown of it; one for each row chosen where that is a list."""
    lists = {path.partition(".")[0] for path in tool.lists}
    about = {name: value for name, value in shown.items() if name not in lists}
    about |= {n: v for value in about.values() if isinstance(value, dict) for n, v in plain(value)}
    known, seen = {**about, **row.known}, row.seen | {tool.name}
    found = [(ids, more) for ids, rows in tool.rows(shown) for more in rows]
    if not found:
        return [_Row(known, row.ids, seen)] if row.ids else []
    taken_: list[tuple[tuple[str, ...], dict[str, Any]]] = []
    while found and (choose is None or len(taken_) < count):
        taken_.append(found.pop(choose([more for _, more in found], random) if choose else 0))
    return [_Row({**more, **known}, row.ids | {ids[0]}, seen) for ids, more in taken_]


def _lacks(plan: _Plan, row: _Row, ids_only: bool) -> bool:
    """Something that can be acted with or, unless the ids are all that counts, handed in is not known yet."""
    act, known = plan.act, row.known
    wanted = (act.required if ids_only else fields(act)) if act else ()
    if any(known.get(name) is None for name in wanted):
        return True
    return not ids_only and any(_find(n, schema, plan.env, known) is None for n, schema in _texts(plan.env))


def _play(
    plan: _Plan, choose: Choice | None, count: int, opening: str, random: np.random.Generator
) -> Script:
    rows = yield from _explore(plan, choose, count, opening, random)
    went = plan.act is not None or not acts(plan.env)
    if plan.act and rows:
        new = yield calls(*((plan.act.name, _arguments(plan.act, plan.env, row)) for row in rows))
        went = not any("error" in result for _, result in results(new))
    yield _hand_in(plan.env, rows, went)


def _try(
    plan: _Plan, act: Tool, undo: Tool, choose: Choice, opening: str, random: np.random.Generator
) -> Script:
    """Act on one row after the other and keep the first after which the customer says nothing."""
    left = yield from _explore(plan, None, 0, opening, random, ids_only=True)
    tried: _Row | None = None
    while left:
        back = [(undo.name, _arguments(undo, plan.env, tried, ids_only=True))] if tried else []
        tried = left.pop(choose([row.known for row in left], random))
        new = yield calls(*back, (act.name, _arguments(act, plan.env, tried, ids_only=True)))
        *_, (_, result) = results(new)
        if "error" in result:
            tried = None
        elif all(message["role"] != "user" for message in new):
            break
    yield _hand_in(plan.env, [tried] if tried else [], went=True)


def _arguments(tool: Tool, env: Environment, row: _Row, ids_only: bool = False) -> dict[str, Any]:
    """An acting tool's arguments from a row: the ids that it takes, and numbers of the same name."""
    takes, found = taken(tool, env), dict[str, Any]()
    for name, schema in fields(tool).items():
        value = row.known.get(takes.get(name, name))
        if value is not None and (name in takes or (not ids_only and _numeric(schema))):
            found[name] = [value] if "array" in kinds(schema) else value
    return found


def _hand_in(env: Environment, rows: Sequence[_Row], went: bool) -> Message:
    """`submit` from rows: their ids in its lists; in its texts what is known of the first. Of several values that the
    schema offers for something that no tool shows, the first after what was done went through, the last after not."""
    takes = taken(env.submit, env)
    lists = {name: [row.known[i] for row in rows if i in row.known] for name, i in takes.items()}
    texts = {}
    for name, schema in _texts(env) if rows else ():
        found = _find(name, schema, env, rows[0].known)
        options = [value for value in _named(schema) if not re.search(r"\d", value)]
        texts[name] = found if found is not None else options[0 if went else -1] if options else ""
    return _submit(env, lists, texts)


def _submit(env: Environment, lists: Mapping[str, list[Any]], texts: Mapping[str, str]) -> Message:
    """`submit` with these values, as far as the schema allows them, and with whatever else it requires."""
    arguments: dict[str, Any] = {}
    for name, schema in fields(env.submit).items():
        value, number = texts.get(name, ""), re.search(r"\d+", texts.get(name, ""))
        if "array" in kinds(schema):
            arguments[name] = lists.get(name, [])
        elif "string" in kinds(schema):
            allowed = _allowed(schema)
            arguments[name] = value if not allowed or value in allowed else allowed[0]
        elif _numeric(schema) and (number or name in env.submit.required):
            arguments[name] = int(number.group()) if number else 1
        elif name in env.submit.required:
            arguments[name] = True
    return calls(("submit", arguments))


def _texts(env: Environment) -> list[tuple[str, dict[str, Any]]]:
    """The fields of `submit` that hold a single text or number."""
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
    """The values that a field's schema names: all that are allowed, or those in its description."""
    said = schema.get("description", "")
    listed_ = re.search(r"[Oo]ne of: ([^.]+)", said)
    return _allowed(schema) or [*re.findall(r'"([^"]+)"', said), *(listed_[1].split(", ") if listed_ else ())]


def _find(name: str, schema: Mapping[str, Any], env: Environment, known: Mapping[str, Any]) -> str | None:
    """The value that tools have shown for a field of `submit`: under its name; else the first text in the form of an
    example in its description, amounts after the first id; else the last of what its description names ("delivered").
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
    """A pattern of what looks like the example: "C-123" is a capital, a dash and a number."""
    return re.sub(r"[A-Z]", "[A-Z]", re.sub(r"\d+", r"\\d+", re.escape(example)))


def _playing(plan: _Plan, choose: Choice | None, count: int) -> Factory:
    return _scripted(lambda opening, random: _play(plan, choose, count, opening, random))


def _patient(plan: _Plan, act: Tool, undo: Tool, choose: Choice) -> Factory:
    return _scripted(lambda opening, random: _try(plan, act, undo, choose, opening, random))


def _scripted(script: Callable[[str, np.random.Generator], Script]) -> Factory:
    """Players that go through a script; what it says last they say for ever."""

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


def _script(*messages_: Message) -> Factory:
    """These messages one after the other, the last one for ever."""

    def make(seed: int) -> Player:
        said = iter(messages_)
        return lambda messages, tools: next(said, messages_[-1])

    return make
