"""The seat in a terminal: lines in, plain text out, so that it works over a pipe as well."""

import re
import shlex
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from ecomlab.lab.paths import shown
from ecomlab.lab.play.forms import FormError
from ecomlab.lab.play.seat import Seat, SeatError
from ecomlab.lab.truth import score_in_lines
from ecomlab.markup.entries import AGENT, CUSTOMER, Entry, conversation, lines_of
from ecomlab.suggest import unknown

HELP = """A line is sent to the customer, unless it begins with / or +. Each message and each call counts.
  /TOOL name=value ...   call a tool; no quotes are needed, objects are JSON: attributes={"color": "Navy"}
  +TOOL name=value ...   let a call wait, to go with the next in one message
  /send  /drop           send the calls that wait as they are, or drop them
  /tools  /help TOOL     the tools; the arguments of one
  /task  /said           your task; what the customer has said so far
  /held                  the cart or the returns that you have made
  /quit                  leave; the episode has no score then"""
COMMANDS = ("send", "drop", "tools", "help", "task", "said", "held", "quit")
AGAIN = "nothing was sent; /quit or Ctrl-D leaves"
PROMPT = "> "
ENDS = {"submit": "you submitted", "turns": "no message is left", "patience": "the customer lost patience"}
"""Ends of episodes in words."""
_CALL = re.compile(r"([/+])(\w*)\s*(.*)", re.DOTALL)
Read = Callable[[str], str]
"""Reads a line after a prompt; raises EOFError at the end of the input."""


def sit(seat: Seat, console: Console, read: Read, out: str | Path) -> int:
    """Let a person play the episode that has begun in `seat`, and save it under `out`. Returns the exit code: 1 where
    they left before its end."""
    choice = seat.choice
    if console.is_terminal:
        _complete_names(seat)
    _print(console, f"{choice.env}, d = {choice.difficulty}, seed {choice.seed}\nkey: {seat.key}\n\n{HELP}\n")
    _print(console, f"YOUR TASK\n{seat.job}\n({seat.left})")
    _show(seat.log, console)
    while not seat.done:
        try:
            _turn(read(PROMPT).strip(), seat, console)
        except (SeatError, FormError) as error:
            _print(console, f"not sent: {error}")
        except KeyboardInterrupt:
            _print(console, f"\n{AGAIN}")
        except EOFError:
            _print(console, "\nyou left before the end: there is no score, and nothing was saved")
            _print(console, f"the same episode: ecomlab play --key {shlex.quote(seat.key)} --player human")
            return 1
    outcome = seat.outcome
    end, truth = str(outcome.trajectory.end), "".join(f"\n  {fact}" for fact in outcome.truth)
    _print(console, f"\n--- the episode is over: {ENDS.get(end, end)} ---\n")
    _print(console, "\n  ".join(score_in_lines(outcome.trajectory.score)))
    _print(console, f"\nwhat was wanted:{truth}\n\nthe reference player:")
    _show(conversation(outcome.reference.messages)[1:], console, "it")
    _print(console, score_in_lines(outcome.reference.score)[0])
    _print(console, f"saved in {shown(seat.save(out))}")
    return 0


def _complete_names(seat: Seat) -> None:
    """Let Tab complete the names of commands, tools and arguments, where Python has readline."""
    with suppress(ImportError):
        import readline

        names = [mark + name for mark in "/+" for name in seat.forms] + ["/" + name for name in COMMANDS]
        names += sorted({f"{name}=" for form in seat.forms.values() for name in form.fields})
        readline.set_completer_delims(" ")
        readline.set_completer(lambda text, n: [*(one for one in names if one.startswith(text)), None][n])
        readline.parse_and_bind("tab: complete")


def _turn(line: str, seat: Seat, console: Console) -> None:
    """Do what a line says and show what came of it. Raises SeatError or FormError, and nothing is spent, for a mistake
    in it; EOFError for /quit."""
    called = _CALL.fullmatch(line)
    if called is None:
        name, _, rest = line.partition(" ")
        name, bracket, _ = name.partition("(")  # a call is shown with brackets
        if name in COMMANDS or (
            name in seat.forms and (bracket or "=" in rest or not rest)
        ):  # said, it would cost a message
            raise SeatError(f"a call or command begins with /, such as /{name}")
        came = seat.say(line) if line else []
        return _came([entry for entry in came if (entry.who, entry.text) != (AGENT, line)], seat, console)
    mark, name, rest = called.groups()
    if mark == "/" and name in COMMANDS:
        return _came(seat.send(), seat, console) if name == "send" else _command(name, rest, seat, console)
    if name not in seat.forms:
        known = [*(mark + one for one in seat.forms), *("/" + one for one in COMMANDS)]
        raise SeatError(
            f"{unknown('command', mark + name, known, listed=False)} (/help and /tools list them)"
        )
    entries = seat.forms[name].typed(rest)
    if mark == "/":
        return _came(seat.call(name, entries), seat, console)
    seat.add(name, entries)
    _print(console, "\n".join(f"waits: {call}" for call in seat.waiting))


def _command(name: str, rest: str, seat: Seat, console: Console) -> None:
    """Answer a command that sends nothing. Raises SeatError, or EOFError for /quit."""
    lines: list[str] = []
    match name:
        case "quit":
            raise EOFError
        case "drop":
            seat.draft.clear()
            lines = ["no call waits"]
        case "tools":
            for tool, form in seat.forms.items():
                names = (name + "?" * (not field.required) for name, field in form.fields.items())
                lines += ["/" + " ".join([tool, *names]), f"    {form.about}"]
        case "help" if rest:
            if (tool := rest.strip().lstrip("/+")) not in seat.forms:
                raise SeatError(unknown("tool", tool, seat.forms))
            form = seat.forms[tool]
            lines = [form.about, *(f"  {n}: {field.about}" for n, field in form.fields.items())]
        case "task":
            lines = [seat.job, f"key: {seat.key}", f"({seat.left})", f"{CUSTOMER}  {seat.said[0]}"]
        case "said":
            lines = [f"{CUSTOMER}  {line}" for line in seat.said]
        case "held":
            for what, held in seat.holdings.items():
                lines += [f"{what}: {line}" for line in held or ["nothing yet"]]
            lines = lines or ["there is neither a cart nor a return in this environment"]
    _print(console, "\n".join(lines) or HELP)


def _came(entries: Iterable[Entry], seat: Seat, console: Console) -> None:
    if shown := list(entries):
        _show(shown, console)
        _print(console, f"({seat.left})")


def _print(console: Console, text: str, style: str = "") -> None:
    """Print a text, broken between words at a terminal and as it is elsewhere."""
    console.print(escape(text), style=style, soft_wrap=not console.is_terminal, highlight=False)


def _show(entries: Iterable[Entry], console: Console, agent: str = "you") -> None:
    """Print entries; the customer's are bold, after an empty line."""
    who = ""
    for named, line in lines_of(entries):
        if named == CUSTOMER != who:
            console.print()
        who = named or who
        _print(console, f"{agent if named == AGENT else named:>8}  {line}", "bold" if who == CUSTOMER else "")
