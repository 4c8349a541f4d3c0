"""The choice of an episode, and the key by which somebody else plays the same."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from ecomlab.catalog import Shop, load_shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import make_task
from ecomlab.lab.shops import PRODUCTS, catalog_named
from ecomlab.task import Task

SCHEME, AXIS = "ecomlab:play?", "axis."
"""The beginnings of every key, and in it of the name of an overridden axis."""
SHORT = 10
"""Characters of the task's digest in a key."""


class ShareKeyError(ValueError):
    """A key that does not lead to the task that it was made of; the message says why and what to do."""


@dataclass(frozen=True)
class Choice:
    """An environment, a difficulty with overridden axes, a seed, and a catalog: generated, or in a folder."""

    env: str = "CART"
    difficulty: int = 0
    seed: int = 0
    axes: Mapping[str, float] = field(default_factory=dict)
    catalog: str | int = PRODUCTS
    """A number of generated products, or the folder of a catalog that `ecomlab catalog build` made."""

    @property
    def shop(self) -> Shop:
        """The catalog and its search. Raises ValueError for a size that no catalog has, or a folder without one."""
        return load_shop(catalog_named(self.catalog))

    def task(self) -> Task:
        """Draw the task. Raises ValueError: for another environment, level, axis or seed than there are."""
        ENVIRONMENTS[self.env]
        return make_task(self.env, self.difficulty, self.seed, self.shop, self.axes)


def share_key(choice: Choice, task: Task) -> str:
    """Write the key of a task: one line without blanks, from which `read_key` rebuilds it. A catalog in a folder is
    named by the folder's own name."""
    told = {
        "env": choice.env,
        "difficulty": choice.difficulty,
        "seed": choice.seed,
        **{AXIS + name: repr(value) for name, value in sorted(task.overrides.items())},
        "catalog": Path(str(choice.catalog)).name,
        "task": task.digest()[:SHORT],
    }
    return SCHEME + urlencode(told)


def read_key(key: str, folder: str | int | None = None) -> tuple[Choice, Task]:
    """Rebuild the task that a key names; a catalog in a folder is looked for in `folder`.

    Raises ShareKeyError for a text that is no whole key, and where the same choice is another task today: with another
    version of the environment, or another catalog.
    """
    told = dict(parse_qsl(key.strip().removeprefix(SCHEME)))
    try:
        axes = {n.removeprefix(AXIS): float(value) for n, value in told.items() if n.startswith(AXIS)}
        catalog, digest = catalog_named(told["catalog"]), told["task"]
        choice = Choice(told["env"], int(told["difficulty"]), int(told["seed"]), axes, catalog)
    except (KeyError, ValueError) as error:
        raise ShareKeyError(
            f"the key is incomplete ({error}); copy the whole line from {SCHEME} on, between quotes in a shell"
        ) from None
    if isinstance(catalog, str):
        if not isinstance(folder, str):
            raise ShareKeyError(
                f"the key's catalog is in a folder {told['catalog']!r}; name the folder where you have it with "
                "--catalog, or in Choice(catalog=...)"
            )
        choice = replace(choice, catalog=folder)
    try:
        task = choice.task()
    except (ValueError, LookupError) as error:
        raise ShareKeyError(f"the key's task cannot be drawn here: {error}") from None
    if (here := task.digest()[:SHORT]) != digest:
        raise ShareKeyError(
            f"the key's task was {digest} and is {here} here: the key was changed, or the environment or the catalog "
            "is another; copy the whole key, or install the ecomlab that made it"
        )
    return choice, task
