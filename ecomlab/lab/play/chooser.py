"""Choosing an episode by widgets: environment, difficulty, any axis, seed and catalog (generated, or in a folder), or
somebody's key."""

from collections.abc import Callable

import ipywidgets

from ecomlab.difficulty import RANGES, Difficulty, about
from ecomlab.envs.registry import COLLECTIONS, ENVIRONMENTS, moved_by
from ecomlab.lab.play.choice import Choice
from ecomlab.lab.play.form_view import OnEnter, grid
from ecomlab.lab.shops import catalog_named

MOST_PRODUCTS = 2_000_000


class Chooser(ipywidgets.VBox):
    """Fields of a choice. `begin` is called for the choice, `begin_key` for the key in its field."""

    def __init__(self, choice: Choice, begin: Callable[[], None], begin_key: Callable[[], None]) -> None:
        first = [env for env in COLLECTIONS["C8"] if env in ENVIRONMENTS]
        envs = [*first, *(env for env in ENVIRONMENTS if env not in first)]
        number = ipywidgets.BoundedIntText
        self.env = ipywidgets.Dropdown(options=envs, value=choice.env, description="environment")
        self.difficulty = number(choice.difficulty, min=0, max=10**6, description="difficulty")
        self.seed = number(choice.seed, min=0, max=2**53, description="seed")
        self.size = number(choice.size, min=1, max=MOST_PRODUCTS, description="products in the catalog")
        self.folder = ipywidgets.Text(choice.folder, description="or the folder of a catalog")
        self.folder.tooltip = (
            "A folder that `ecomlab catalog build` made; a relative path starts at the project"
        )
        self.reset = ipywidgets.Button(description="Reset", button_style="primary")
        self.reset.tooltip = "Begin this episode"
        self.key = ipywidgets.Text(description="key of this episode; or paste another's and press Enter")
        self.axes = {n: ipywidgets.Text(description=n, tooltip=about(n)) for n in RANGES}
        choosing = [self.env, self.difficulty, self.seed, self.size, self.folder]
        for field in (*choosing, self.key, *self.axes.values()):
            field.add_class("ecomlab-field")
        self.catalog = choice.catalog
        """Seed of a generated catalog, which a key may name."""
        self._grid = grid([])
        self.more = ipywidgets.ToggleButton(description="axes: override any of them", icon="sliders")
        self.more.layout.width = "auto"  # an accordion's head cannot be reached by the keyboard
        self.more.observe(lambda _: self._unfold(), "value")
        self._unfold()
        self.show(choice)
        self.env.observe(lambda _: self._show_axes(), "value")
        self.difficulty.observe(lambda _: self._show_axes(), "value")
        self.folder.observe(lambda _: self._show_size(), "value")
        self.reset.on_click(lambda _: begin())
        OnEnter(self.folder, begin)
        OnEnter(self.key, begin_key)
        first_row = grid([*choosing, self.reset], align_items="flex-end")
        super().__init__([first_row, self.more, self._grid, self.key])

    @property
    def choice(self) -> Choice:
        """The choice that the fields hold. Raises ValueError for an axis that holds no number."""
        named = catalog_named(self.folder.value.strip(), self.size.value)
        size, folder = (named, "") if isinstance(named, int) else (self.size.value, named)
        env, difficulty, seed = self.env.value, self.difficulty.value, self.seed.value
        return Choice(env, difficulty, seed, self._overridden(), size, self.catalog, folder)

    def show(self, choice: Choice, key: str = "") -> None:
        """Set the fields to a choice, and show its key."""
        self.env.value, self.difficulty.value, self.seed.value = choice.env, choice.difficulty, choice.seed
        self.size.value, self.catalog, self.key.value = choice.size, choice.catalog, key
        self.folder.value = choice.folder
        self._show_size()
        for name, field in self.axes.items():
            field.value = _exactly(choice.axes[name]) if name in choice.axes else ""
        self._show_axes()

    def _show_size(self) -> None:
        """Let a number of products be chosen where no folder is."""
        self.size.disabled = bool(self.folder.value.strip())

    def _overridden(self) -> dict[str, float]:
        found = {}
        for name in self._moving():
            if text := self.axes[name].value.strip():
                try:
                    found[name] = float(text)
                except ValueError:
                    low, high = RANGES[name]
                    raise ValueError(
                        f"axis {name} takes a number from {low:g} to {high:g}, not {text!r}"
                    ) from None
        return found

    def _unfold(self) -> None:
        """Show the fields of the axes, or hide them."""
        self._grid.layout.display = "grid" if self.more.value else "none"

    def _moving(self) -> list[str]:
        known = moved_by(self.env.value)
        return [name for name in RANGES if known is None or name in known]

    def _show_axes(self) -> None:
        """Show the axes that move the environment, each with its value at the difficulty chosen."""
        at = Difficulty.at(self.difficulty.value)
        for name in self._moving():
            low, high = RANGES[name]
            here = f"{at.value(name):.3g} at d = {self.difficulty.value}; from {low:g} to {high:g}"
            self.axes[name].placeholder = here
        moving = tuple(self.axes[name] for name in self._moving())
        if self._grid.children != moving:  # drawn anew only where it must be, for whoever types meanwhile
            self._grid.children = moving


def _exactly(value: float) -> str:
    """Write a number so that it reads back as the same, for another one is another task."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)
