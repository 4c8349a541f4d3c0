"""What is to be played, and the key by which somebody else plays the same."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode

from ecomlab.catalog import Shop, load_shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import make_task
from ecomlab.lab.shops import catalog_named
from ecomlab.seeding import digest
from ecomlab.suggest import unknown
from ecomlab.task import Task

SCHEME = "ecomlab:play?"
"""What every key begins with."""
AXIS = "axis."
"""Before the name of an overridden axis in a key."""
SHORT = 10
"""Characters of a digest in a key."""


class ShareKeyError(ValueError):
    """A key that does not lead to the task it was made of; the message says why and what to do."""


@dataclass(frozen=True)
class Choice:
    """An environment, a difficulty with overridden axes, a seed, and a catalog: generated, or in a folder."""

    env: str = "CART"
    difficulty: int = 0
    seed: int = 0
    axes: Mapping[str, float] = field(default_factory=dict)
    size: int = 20_000
    """Products in the catalog."""
    catalog: int = 0
    """Seed of the catalog."""
    folder: str = ""
    """Folder of a catalog that `ecomlab catalog build` made, in place of a generated one."""

    @classmethod
    def on(
        cls,
        catalog: str | int | None,
        env: str = "CART",
        difficulty: int = 0,
        seed: int = 0,
        axes: Mapping[str, float] | None = None,
    ) -> Self:
        """Choose in the catalog that `catalog` names: a folder, or a number of generated products."""
        named = catalog_named(catalog)
        made = cls(env, difficulty, seed, axes or {})
        return replace(made, size=named) if isinstance(named, int) else replace(made, folder=named)

    @property
    def shop(self) -> Shop:
        """The catalog and its search. Raises ValueError for a size that no catalog has, or a folder without one."""
        return load_shop(self.folder or self.size, self.catalog)

    def task(self) -> Task:
        """Draw the task. Raises ValueError: for another environment, level, axis or seed than there are."""
        ENVIRONMENTS[self.env]
        return make_task(self.env, self.difficulty, self.seed, self.shop, self.axes)


def share_key(choice: Choice, task: Task) -> str:
    """Write the key of a task: one line without blanks, from which `choice_of_key` and `check_key` rebuild it."""
    told = {
        "env": choice.env,
        "version": task.version,
        "difficulty": choice.difficulty,
        "seed": choice.seed,
        **{AXIS + name: repr(value) for name, value in sorted(task.overrides.items())},
        **({"folder": Path(choice.folder).name} if choice.folder else {}),
        "size": choice.size,
        "catalog": choice.catalog,
        "shop": task.fingerprint[:SHORT],
        "task": task.digest()[:SHORT],
    }
    text = urlencode(told)
    return f"{SCHEME}{text}&check={digest(text)[:SHORT]}"


def read_key(key: str, catalog: str | None = None) -> tuple[Choice, Task]:
    """Rebuild what a key names. A key of a catalog in a folder holds that folder's name alone; `catalog` says where it
    is here.

    Raises ShareKeyError for a text that is no key, one that was cut or mistyped, and one of another version of the
    environment, another catalog or another task than there is today.
    """
    choice, told = _choice_of(key.strip())
    if choice.env not in ENVIRONMENTS:
        raise ShareKeyError(
            f"{unknown('environment', choice.env, ENVIRONMENTS)}: load its file with ENVIRONMENTS.load, or ask for "
            "another key"
        )
    _check(f"version of {choice.env}", told["version"], str(ENVIRONMENTS[choice.env].version))
    try:
        if "folder" in told:
            choice = replace(choice, folder=_folder_of(told, catalog))
        _check("catalog", told["shop"], choice.shop.fingerprint[:SHORT])
        task = choice.task()
    except ShareKeyError:
        raise
    except ValueError as error:
        raise ShareKeyError(f"the key's catalog or task cannot be made here: {error}") from None
    _check("task", told["task"], task.digest()[:SHORT])
    return choice, task


def _check(what: str, was: str, here: str) -> None:
    """Raise ShareKeyError where something is not what it was."""
    if was != here:
        raise ShareKeyError(
            f"the key's {what} was {was} and is {here} here; install the ecomlab that "
            "made the key, name the key's own catalog with --catalog, or choose by hand and share a new key"
        )


def _folder_of(told: Mapping[str, str], catalog: str | None) -> str:
    """Return the folder of the key's catalog on this machine. Raises ShareKeyError if none is named."""
    if not catalog:
        raise ShareKeyError(
            f"the key is for the catalog {told['shop']} in a folder {told['folder']!r}; name the folder where you have "
            "it with --catalog, or in its field of the seat"
        )
    return str(catalog_named(catalog))


def _choice_of(key: str) -> tuple[Choice, dict[str, str]]:
    """Read the choice and the fields of a key that is whole. Raises ShareKeyError."""
    if not key.startswith(SCHEME):
        raise ShareKeyError(f"this is no key of an episode: one begins with {SCHEME}; copy the whole line")
    text, _, check = key.removeprefix(SCHEME).rpartition("&check=")
    if check != digest(text)[:SHORT]:
        raise ShareKeyError(
            "the key was cut or changed on its way; copy the whole line again, between quotes in a shell, which cuts "
            "it at &; or choose by hand"
        )
    told = dict(parse_qsl(text, keep_blank_values=True))
    try:
        axes = {n.removeprefix(AXIS): _number(value) for n, value in told.items() if n.startswith(AXIS)}
        numbers: dict[str, Any] = {n: int(told[n]) for n in ("difficulty", "seed", "size", "catalog")}
        fields = {name: told[name] for name in ("version", "shop", "task")}
        fields |= {"folder": told["folder"]} if "folder" in told else {}
        return Choice(told["env"], axes=axes, **numbers), fields
    except (KeyError, ValueError) as error:
        raise ShareKeyError(
            f"the key was written by another ecomlab ({error} cannot be read); install that one, or choose by hand"
        ) from None


def _number(text: str) -> float:
    return int(text) if text.lstrip("-").isdigit() else float(text)
