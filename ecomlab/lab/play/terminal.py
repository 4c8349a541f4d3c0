"""The seat in a terminal: lines in, plain text out, so that it works over a pipe as well."""

import shlex
from collections.abc import Callable, Iterable
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from ecomlab.lab.paths import shown
from ecomlab.lab.play.forms import Field, Form, FormError
from ecomlab.lab.play.seat import Line, Outcome, Seat, SeatError
from ecomlab.markup.entries import AGENT, Entry, conversation, lines_of
from ecomlab.suggest import unknown

HELP = """Write to the customer, or begin a line with / :
  /TOOL name=value ...   call a tool, such as /catalog_search query="desk lamp" price_max=30
  /TOOL                  a tool alone is asked for field by field: Enter leaves one out, /back leaves the form
  +TOOL name=value ...   let a call wait, to go with the next in one message;  /send, /back
  /tools  /help TOOL     the tools, and what one takes
  /held  /left  /key     the cart or returns, what is left, the key of this episode
  /quit                  leave; the episode has no score then"""
PROMPT = "> "
Read = Callable[[str], str]
"""Reads a line after a prompt; raises EOFError at the end of the input."""


class _LeftError(Exception):
    """The person has left."""


class _FormLeftError(Exception):
    """The person has left a form that they were asked for."""


def sit(seat: Seat, console: Console, read: Read, out: str | Path) -> int:
    """Let a person play the episode that has begun in `seat`, and save it under `out`. Returns the exit code: 1 where
    they left before its end."""
    choice = seat.choice
    console.print(f"[bold]{choice.env}, d = {choice.difficulty}, seed {choice.seed}[/bold]", soft_wrap=True)
    _print(console, f"{seat.job}\n{HELP}\n")
    _show(seat.log, console)
    try:
        while not seat.done:
            _turn(seat, console, read)
    except (EOFError, _LeftError, KeyboardInterrupt):
        _print(console, "\nyou left before the end: there is no score, and nothing was saved")
        return 1
    _show_outcome(seat.outcome, console)
    _print(console, f"saved in {shown(seat.save(out))}; key: {seat.key}")
    return 0


def _turn(seat: Seat, console: Console, read: Read) -> None:
    """Read one line and do what it says; what is wrong with it is told, and costs nothing."""
    line = read(PROMPT).strip()
    try:
        came = _done(line, seat, console, read)
    except (SeatError, FormError) as error:
        return _print(console, f"not sent: {error}")
    except _FormLeftError:
        return _print(console, "not sent: you left the form")
    if came:
        _show([entry for entry in came if not (entry.who == AGENT and entry.text == line)], console)
        _print(console, f"({seat.left})")


def _done(line: str, seat: Seat, console: Console, read: Read) -> list[Entry]:
    """Do what a line says; return what came of it."""
    if not line:
        return []
    if line[0] not in "/+":
        _check_is_no_call(line, seat)
        return seat.say(line)
    name, *given = _words(line[1:])
    if line[0] == "+":
        seat.add(name, _entries(seat, console, name, given, read))
        _print(console, f"waits: {'; '.join(map(str, seat.draft))}")
        return []
    if name in COMMANDS:
        return _command(name, seat, console, given)
    return seat.call(name, _entries(seat, console, name, given, read))


def _check_is_no_call(line: str, seat: Seat) -> None:
    """Raise SeatError for a call or a command without its mark: said to the customer, it would cost a message."""
    name, _, rest = line.partition(" ")
    no_words = "_" in name or "=" in rest or not rest.strip()  # "submit" may begin a sentence
    if (name in seat.forms and no_words) or line in COMMANDS:
        raise SeatError(
            f"a call or command begins with /, such as /{name}; the customer reads whole sentences"
        )


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text) or [""]
    except ValueError as error:
        raise SeatError(f"{error}: put a value with blanks in quotes") from None


def _entries(seat: Seat, console: Console, tool: str, given: list[str], read: Read) -> dict[str, str | bool]:
    """Read name=value words as a form's entries; without any, ask for each field."""
    form = seat.forms.get(tool)
    if form is not None and not given:
        return _asked(form, console, read)
    entries: dict[str, str | bool] = {}
    for word in given:
        name, equals, value = word.partition("=")
        if not equals:
            raise SeatError(f"{tool} takes name=value, such as {_example(form)}, not {word!r}")
        entries[name] = value
    return entries


def _example(form: Form | None) -> str:
    return f"{form.fields[0].name}=..." if form and form.fields else "quantity=2"


def _asked(form: Form, console: Console, read: Read) -> dict[str, str | bool]:
    """Ask for every field of a form, again for one that cannot be read, for the others would have to be typed again.
    Raises _FormLeftError, or _LeftError, for a person who will not."""
    return {one.name: text for one in form.fields if (text := _asked_for(one, console, read))}


def _asked_for(one: Field, console: Console, read: Read) -> str:
    about = _about(one)
    while True:
        text = read(f"  {one.name} ({about}): ").strip()
        if text == "/back":
            raise _FormLeftError
        if text == "/quit":
            raise _LeftError
        try:
            one.read(text)
        except ValueError as error:
            _print(console, f"  {one.name}: {error}; /back leaves the form")
            continue
        return text


def _about(one: Field) -> str:
    """Say of a field whether it is needed, what it is and what it takes."""
    return "; ".join(filter(None, ["needed" * one.required, one.about.rstrip("."), one.hint]))


# --- commands ---

COMMANDS = ("send", "back", "tools", "help", "held", "left", "key", "quit")


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
                _print(console, f"/{form.tool} {names}".rstrip() + f"\n    {form.about}")
        case "help" if not given:
            _print(console, HELP)
        case "help" if given[0] not in seat.forms:
            _print(console, unknown("tool", given[0], seat.forms))
        case "help":
            form = seat.forms[given[0]]
            _print(console, "\n".join([form.about, *(f"  {one.name}: {_about(one)}" for one in form.fields)]))
        case "held":
            for what, held in seat.holdings or [("cart and returns", [])]:
                _print(console, f"{what}: {'; '.join(map(_line, held)) or 'nothing'}")
        case "left":
            _print(console, str(seat.left))
        case "key":
            _print(console, seat.key)
        case "quit":
            raise _LeftError
    return []


# --- what is printed ---


def _print(console: Console, text: str) -> None:
    console.print(escape(text), soft_wrap=True)


def _show(entries: Iterable[Entry], console: Console, agent: str = "you") -> None:
    for who, line in lines_of(entries):
        named = agent if who == AGENT else who
        console.print(f"[bold]{named:>8}[/bold]  {escape(line)}", soft_wrap=True)


def _line(line: Line) -> str:
    return f"{line.quantity} x {line.title} ({', '.join(f'{name}: {value}' for name, value in line.ids.items())})"


def _show_outcome(outcome: Outcome, console: Console) -> None:
    """Print the reward and why, the truth, and how the reference player does it."""
    console.print(f"\n[bold]{escape(outcome.verdict)}[/bold]", soft_wrap=True)
    for part in outcome.parts:
        _print(console, f"  {part}")
    _print(console, "\nwhat was wanted:")
    for fact in outcome.truth:
        _print(console, f"  {fact}")
    theirs = outcome.reference
    _print(
        console,
        f"\nthe reference player: messages {theirs.turns}, calls {theirs.calls}, reward {theirs.score.value:.3f} of at "
        "most 0.900",
    )
    _show(conversation(theirs.messages)[1:], console, "it")
