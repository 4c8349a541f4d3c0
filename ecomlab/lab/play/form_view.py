"""One tool's form as widgets: a field for each argument, its errors below it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ipywidgets

from ecomlab.lab.play import markup
from ecomlab.lab.play.forms import Entries, Entry, Field, Form

GRID = "repeat(auto-fill, minmax(210px, 1fr))"
LONGEST = 0.25
"""Seconds for which the value of a field is waited for after Enter."""


def grid(
    children: Sequence[ipywidgets.Widget], columns: str = GRID, gap: str = "2px 10px", **layout: str
) -> ipywidgets.GridBox:
    """Lay out widgets in as many columns as there is room for."""
    made = ipywidgets.Layout(grid_template_columns=columns, grid_gap=gap, **layout)
    return ipywidgets.GridBox(children, layout=made)


class FormView(ipywidgets.VBox):
    """The fields of a form. `send` is called when Enter is pressed in one."""

    def __init__(self, form: Form, send: Callable[[], None]) -> None:
        self.form = form
        self.fields: dict[str, Any] = {one.name: _field(one, send) for one in form.fields}
        self.errors = {name: ipywidgets.HTML() for name in self.fields}
        about = ipywidgets.HTML(markup.line(form.about, "about"))
        held = [ipywidgets.VBox([self.fields[name], self.errors[name]]) for name in self.fields]
        super().__init__([about, grid(held)])
        self.add_class(f"ecomlab-form-{form.tool}")

    @property
    def entries(self) -> dict[str, Entry]:
        """What the fields hold."""
        return {name: field.value for name, field in self.fields.items()}

    def fill(self, entries: Entries) -> None:
        """Set these fields; a field that was wrong is no longer marked."""
        for name, entry in entries.items():
            self.fields[name].value = entry
        self.mark({})

    def clear(self) -> None:
        self.fill({one.name: one.start for one in self.form.fields})

    def mark(self, wrong: Mapping[str, str]) -> None:
        """Mark the wrong fields, and say why below them."""
        for name, field in self.fields.items():
            (field.add_class if name in wrong else field.remove_class)("ecomlab-wrong")
            self.errors[name].value = markup.problem(wrong.get(name, ""))


def _field(one: Field, send: Callable[[], None]) -> Any:
    """Make the widget of a field; its label is the argument's name, with a star if it is needed."""
    label = one.name.replace("_", " ") + (" *" if one.required else "")
    named = {"description": label, "tooltip": " ".join(filter(None, [one.about, one.hint]))}
    field: Any
    if one.kind == "flag":
        field = ipywidgets.Checkbox(value=one.start, indent=False, **named)
    elif one.kind == "choice":
        field = ipywidgets.Dropdown(options=["", *one.options], value="", **named)
    else:
        field = ipywidgets.Text(placeholder=one.hint or one.about, **named)
        OnEnter(field, send)
    field.add_class("ecomlab-field")
    return field


class OnEnter:
    """Calls `act` when Enter is pressed in a text field.

    The browser sends the key first and the field's new value right behind it, or none where nothing has changed: so
    the value is waited for, but not for long."""

    def __init__(self, field: ipywidgets.Text, act: Callable[[], None]) -> None:
        self.act = act
        self.waiting: asyncio.Handle | None = None
        field.continuous_update = (
            False  # else values are sent while one types, and the last one may be held back
        )
        field.on_msg(self._message)
        field.observe(self._changed, "value")

    def _message(self, _: Any, content: Mapping[str, Any], __: Any) -> None:
        if content.get("event") != "submit":
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # no browser: whoever drives the widget has set the value
            return self.act()
        self._wait(loop.call_later(LONGEST, self._act))

    def _changed(self, _: Any) -> None:
        if self.waiting is not None:
            self._wait(asyncio.get_running_loop().call_soon(self._act))

    def _wait(self, handle: asyncio.Handle) -> None:
        if self.waiting is not None:
            self.waiting.cancel()
        self.waiting = handle

    def _act(self) -> None:
        self.waiting = None
        self.act()
