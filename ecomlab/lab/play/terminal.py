"""The seat in a terminal: lines in, plain text out, so that it works over a pipe as well."""

import json
import re
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from ecomlab.lab.paths import shown
from ecomlab.lab.play.forms import FormError
from ecomlab.lab.play.seat import Outcome, Seat, SeatError
from ecomlab.lab.truth import score_in_lines
from ecomlab.markup.entries import AGENT, CUSTOMER, Entry, conversation, lines_of
from ecomlab.markup.results import plain
from ecomlab.suggest import unknown

HELP = """Write to the customer, or begin a line with / :
  /TOOL name=value ...   call a tool, such as /{example}
  +TOOL name=value ...   let a call wait, to go with the next in one message;  /send, /back
  /tools  /help TOOL     the tools, and the arguments of one
  /held  /task           the cart or returns; your task again. Neither costs anything
  /quit                  leave; the episode has no score then
Each line that is sent is a message. Values with blanks stand in quotes; objects are JSON, such as
attributes={{"color": "Navy"}}."""
COMMANDS = ("send", "back", "tools", "help", "held", "task", "quit")
AGAIN = "nothing was sent; Ctrl-C again, Ctrl-D or /quit leaves"
PROMPT = "> "
ENDS = {"submit": "you submitted", "turns": "no message is left", "patience": "the customer lost patience"}
"""Ends of episodes in words."""
_OBJECT = re.compile(r"(?<!\S)(\w+)=(?=[{\[])")
_JSON = json.JSONDecoder()
Read = Callable[[str], str]
"""Reads a line after a prompt; raises EOFError at the end of the input."""


class _LeftError(Exception):
    """The person has left."""


def sit(seat: Seat, console: Console, read: Read, out: str | Path) -> int:
    """Let a person play the episode that has begun in `seat`, and save it under `out`. Returns the exit code: 1 where
    they left before its end."""
    choice = seat.choice
    console.print(f"[bold]{choice.env}, d = {choice.difficulty}, seed {choice.seed}[/bold]", soft_wrap=True)
    _print(console, f"{_help(seat)}\nkey: {seat.key}\n\nYOUR TASK\n{seat.job}\n({seat.left})")
    _show(seat.log, console)
    interrupted = False
    try:
        while not seat.done:
            try:
                _turn(seat, console, read)
                interrupted = False
            except KeyboardInterrupt:
                if interrupted:
                    raise
                interrupted = True
                _print(console, f"\n{AGAIN}")
    except (EOFError, _LeftError, KeyboardInterrupt):
        _print(console, "\nyou left before the end: there is no score, and nothing was saved")
        _print(console, f"the same episode: ecomlab play --key {shlex.quote(seat.key)} --player human")
        return 1
    end = str(seat.outcome.trajectory.end)
    _print(console, f"\n--- the episode is over: {ENDS.get(end, end)} ---")
    _show_outcome(seat.outcome, console)
    _print(console, f"saved in {shown(seat.save(out))}")
    return 0


def _help(seat: Seat) -> str:
    """Write the help, with a call of this environment as its example."""
    form = next((one for one in seat.forms.values() if any(f.required for f in one.fields)), None)
    name = form.tool.name if form else next(iter(seat.forms))
    given = " ".join(f"{one.name}=..." for one in form.fields if one.required) if form else ""
    return HELP.format(example=f"{name} {given}".rstrip())


def _turn(seat: Seat, console: Console, read: Read) -> None:
    """Read one line and do what it says; a mistake in it is told, and costs nothing."""
    line = read(PROMPT).strip()
    try:
        came = _done(line, seat, console)
    except (SeatError, FormError) as error:
        return _print(console, f"not sent: {error}")
    if came:
        _show([entry for entry in came if not (entry.who == AGENT and entry.text == line)], console)
        _print(console, f"({seat.left})")


def _done(line: str, seat: Seat, console: Console) -> list[Entry]:
    """Do what a line says; return what came of it. Raises _LeftError for /quit."""
    if not line:
        return []
    if line[0] not in "/+":
        name, _, rest = line.partition(" ")
        if name in COMMANDS or (name in seat.forms and ("=" in rest or not rest)):
            raise SeatError(
                f"a call or command begins with /, such as /{name}"
            )  # said, it would cost a message
        return seat.say(line)
    rest, entries = _objects(line[1:])
    try:
        name, *given = shlex.split(rest) or [""]
    except ValueError as error:
        raise SeatError(f"{error}: put a value with blanks in quotes") from None
    if line[0] == "/" and name in COMMANDS:
        return _command(name, seat, console, given)
    if name not in seat.forms:
        raise SeatError(unknown("tool or command", name, [*seat.forms, *COMMANDS]))
    for word in given:
        argument, equals, value = word.partition("=")
        if not equals:
            raise SeatError(f"a call takes name=value, not {word!r}; /help {name} lists the names")
        entries[argument] = value or '""'  # two quotes, of which the shell's rules leave nothing
    if line[0] == "/":
        return seat.call(name, entries)
    seat.add(name, entries)
    _print(console, f"waits: {'; '.join(map(str, seat.draft))}")
    return []


def _objects(text: str) -> tuple[str, dict[str, str]]:
    """Take objects and lists in JSON, NAME={...}, out of a line; return the rest and the texts by name."""
    entries: dict[str, str] = {}
    while begin := _OBJECT.search(text):
        try:
            _, end = _JSON.raw_decode(text, begin.end())
        except ValueError:
            break
        entries[begin[1]] = text[begin.end() : end]
        text = text[: begin.start()] + " " + text[end:]
    return text, entries


def _command(name: str, seat: Seat, console: Console, given: list[str]) -> list[Entry]:
    """Do what a command says; return what came of it. Raises _LeftError for /quit."""
    match name:
        case "send":
            return seat.send()
        case "back":
            seat.take_back()
            _print(console, f"calls that wait: {len(seat.draft)}")
        case "tools":
            for form in seat.forms.values():
                names = ", ".join(one.name + "?" * (not one.required) for one in form.fields)
                _print(console, f"/{form.tool.name} {names}".rstrip() + f"\n    {form.about}")
        case "help" if not given:
            _print(console, _help(seat))
        case "help" if given[0] not in seat.forms:
            _print(console, unknown("tool", given[0], seat.forms))
        case "help":
            form = seat.forms[given[0]]
            _print(console, "\n".join([form.about, *(f"  {one.name}: {one.about}" for one in form.fields)]))
        case "task":
            _print(console, f"{seat.job}\nkey: {seat.key}")
        case "held":
            for held, lines in seat.holdings.items():
                _print(console, f"{held}: {'; '.join(map(plain, lines)) or 'nothing'}")
        case "quit":
            raise _LeftError
    return []


def _print(console: Console, text: str) -> None:
    console.print(escape(text), soft_wrap=True)


def _show(entries: Iterable[Entry], console: Console, agent: str = "you") -> None:
    before = ""
    for who, line in lines_of(entries):
        if who == CUSTOMER != before:
            console.print()
        before = who
        named = agent if who == AGENT else who
        console.print(f"[bold]{named:>8}[/bold]  {escape(line)}", soft_wrap=True)


def _show_outcome(outcome: Outcome, console: Console) -> None:
    """Print the reward and why, the truth, and how the reference player does it."""
    theirs = outcome.reference
    truth = "".join(f"\n  {fact}" for fact in outcome.truth)
    _print(console, "\n" + "\n  ".join(score_in_lines(outcome.trajectory.score)))
    _print(console, f"\nwhat was wanted:{truth}\n\nthe reference player:")
    _show(conversation(theirs.messages)[1:], console, "it")
    _print(console, score_in_lines(theirs.score)[0])
