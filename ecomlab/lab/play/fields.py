"""Widgets with fields: the choice of an episode, and the form of a tool."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ipywidgets

from ecomlab.difficulty import RANGES, about
from ecomlab.envs.registry import COLLECTIONS, ENVIRONMENTS
from ecomlab.lab.play import markup
from ecomlab.lab.play.choice import Choice
from ecomlab.lab.play.forms import Entries, Field, Form
from ecomlab.lab.shops import catalog_named

GRID = "repeat(auto-fill, minmax(210px, 1fr))"
LONGEST = 0.25
"""Seconds for which the value of a field is waited for after Enter."""


def grid(
    children: Sequence[ipywidgets.Widget], columns: str = GRID, gap: str = "2px 10px", **layout: str
) -> ipywidgets.GridBox:
    """Lay out widgets in as many columns as there is room for."""
    made = ipywidgets.Layout(grid_template_columns=columns, grid_gap=gap, **layout)
    return ipywidgets.GridBox(children, layout=made)


class Chooser(ipywidgets.VBox):
    """Fields of a choice. `begin` is called for the choice, `begin_key` for the key in its field."""

    def __init__(self, choice: Choice, begin: Callable[[], None], begin_key: Callable[[], None]) -> None:
        first = [env for env in COLLECTIONS["C8"] if env in ENVIRONMENTS]
        envs = [*first, *(env for env in ENVIRONMENTS if env not in first)]
        number, text = ipywidgets.BoundedIntText, ipywidgets.Text
        self.env = ipywidgets.Dropdown(options=envs, description="environment")
        self.difficulty = number(min=0, max=10**6, description="difficulty")
        self.seed = number(min=0, max=2**53, description="seed")
        self.catalog = text(description="catalog", tooltip="A number of generated products, or a folder")
        self.axes = text(description="overridden axes", placeholder="p_missing=0.5 k_rec=3")
        self.axes.tooltip = "\n".join(f"{name}: {about(name)}" for name in RANGES)
        self.key = text(description="key of this episode; or paste another's and press Enter")
        self.reset = ipywidgets.Button(
            description="Reset", tooltip="Begin this episode", button_style="primary"
        )
        self.reset.on_click(lambda _: begin())
        choosing = [self.env, self.difficulty, self.seed, self.catalog, self.axes]
        for field in (*choosing, self.key):
            field.add_class("ecomlab-field")
        OnEnter(self.catalog, begin)
        OnEnter(self.axes, begin)
        OnEnter(self.key, begin_key)
        super().__init__([grid([*choosing, self.reset], align_items="flex-end"), self.key])
        self.show(choice)

    @property
    def choice(self) -> Choice:
        """The choice that the fields hold. Raises ValueError for axes that hold no numbers."""
        axes = {}
        for word in self.axes.value.replace(",", " ").split():
            name, _, value = word.partition("=")
            try:
                axes[name] = float(value)
            except ValueError:
                raise ValueError(f"axes are written as p_missing=0.5 k_rec=3, not {word!r}") from None
        catalog = catalog_named(self.catalog.value.strip())
        return Choice(self.env.value, self.difficulty.value, self.seed.value, axes, catalog)

    def show(self, choice: Choice, key: str = "") -> None:
        """Set the fields to a choice, and show its key."""
        self.env.value, self.difficulty.value, self.seed.value = choice.env, choice.difficulty, choice.seed
        self.catalog.value, self.key.value = str(choice.catalog), key
        self.axes.value = " ".join(f"{name}={value!r}" for name, value in choice.axes.items())


class FormView(ipywidgets.VBox):
    """The fields of a form. `send` is called when Enter is pressed in one."""

    def __init__(self, form: Form, send: Callable[[], None]) -> None:
        self.form = form
        self.fields = {one.name: _field(one, send) for one in form.fields}
        super().__init__(
            [ipywidgets.HTML(markup.line(form.about, "about")), grid(list(self.fields.values()))]
        )
        self.add_class(f"ecomlab-form-{form.tool.name}")

    @property
    def entries(self) -> dict[str, str]:
        """The texts in the fields."""
        return {name: field.value for name, field in self.fields.items()}

    def fill(self, entries: Entries) -> None:
        """Set these fields."""
        for name, entry in entries.items():
            self.fields[name].value = entry


def _field(one: Field, send: Callable[[], None]) -> Any:
    """Make the widget of a field; its label is the argument's name, with a star if it is needed."""
    named = {"description": one.name.replace("_", " ") + " *" * one.required, "tooltip": one.about}
    field: Any
    if one.options:
        field = ipywidgets.Dropdown(options=["", *one.options], value="", **named)
    else:
        field = ipywidgets.Text(placeholder=one.about, **named)
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
