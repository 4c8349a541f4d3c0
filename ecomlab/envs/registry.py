"""The registry of environments by id, and collections of them."""

import importlib
import inspect
import json
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from ecomlab.envs.base import Environment
from ecomlab.markup.elements import in_notebook, table
from ecomlab.own_code import imported
from ecomlab.suggest import UnknownEnvironmentError, unknown
from ecomlab.task import TaskError

OBSERVED = Path(__file__).with_name("observed.json")
"""File of observations, which `python -m ecomlab.laws.observed` makes by running every environment."""

FILE = "ecomlab_env_"
"""Beginning of the name of a module that is a file outside the package."""


class Registry(Mapping[str, Environment]):
    """Environments by id, found by scanning `ecomlab.envs`. An unknown id raises UnknownEnvironmentError."""

    @cached_property
    def _found(self) -> dict[str, Environment]:
        import ecomlab.envs as package

        for module in pkgutil.iter_modules(package.__path__):
            name = f"{package.__name__}.{module.name}"
            importlib.import_module(f"{name}.env" if module.ispkg else name)
        mine = [cls for cls in _subclasses(Environment) if cls.__module__.startswith(package.__name__)]
        for cls in mine:
            _check(cls, cls.__module__)
        return {cls.id: cls() for cls in _subclasses(Environment) if not _lacks(cls)}

    def load(self, path: Path | str) -> list[str]:
        """Add the environments of a file outside the package, for this process, and return their ids.

        Raises ValueError for a file that cannot be imported, and TaskError for one that holds no environment, an
        unfinished one, or one whose id is taken.
        """
        known, path = self._found, Path(path)
        if not path.is_file():
            raise TaskError(f"there is no file {path}")
        before = set(_subclasses(Environment))
        module = imported(path, f"{FILE}{path.stem}")
        made = [cls for cls in _subclasses(Environment) if cls not in before and hasattr(cls, "id")]
        if not made:
            raise TaskError(f"{path} holds no environment: no subclass of Environment that has an id")
        for cls in made:
            _check(cls, path)
            if cls.id in known and type(known[cls.id]).__module__ != module.__name__:
                raise TaskError(f"{path}: there is an environment {cls.id} already; choose another id")
            known[cls.id] = cls()
        return [cls.id for cls in made]

    @property
    def files(self) -> list[str]:
        """The files outside the package that `load` has added."""
        return sorted(
            {inspect.getfile(type(one)) for one in self.values() if type(one).__module__.startswith(FILE)}
        )

    def __getitem__(self, name: str) -> Environment:
        try:
            return self._found[name]
        except KeyError:
            raise UnknownEnvironmentError(unknown("environment", name, self._found)) from None

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._found))

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return f"ENVIRONMENTS({', '.join(self)})"

    def _repr_html_(self) -> str:
        """Tabulate the environments: version, the agent's work, and the axes that move it."""
        rows = [
            (name, each.version, each.brief, ", ".join(moved_by(name) or ("not observed",)))
            for name, each in self.items()
        ]
        return in_notebook(table(("environment", "version", "the agent's work", "axes that move it"), rows))


@cache
def observed() -> dict[str, dict[str, Any]]:
    """Read the committed observations by environment id: version, digests of tasks and scores, axes that move it."""
    found: dict[str, dict[str, Any]] = json.loads(OBSERVED.read_text())
    return found


def version_record(env: str) -> dict[str, Any]:
    """Record which tasks an environment's keys mean: its version, and the digest of its first tasks if committed."""
    return {"version": ENVIRONMENTS[env].version, "tasks": observed().get(env, {}).get("tasks")}


def moved_by(env: str) -> tuple[str, ...] | None:
    """List the axes that move an environment; None for one that was not observed, such as one from a file."""
    return tuple(observed()[env]["axes"]) if env in observed() else None


def _subclasses(cls: Any) -> Iterator[type[Environment]]:
    for sub in cls.__subclasses__():
        yield from _subclasses(sub)
        yield sub


def _check(cls: type[Environment], where: object) -> None:
    """Raise TaskError for an unfinished environment; a class without an id is only a base of some."""
    if hasattr(cls, "id") and (lacks := _lacks(cls)):
        raise TaskError(f"{where}: {cls.__name__} lacks {', '.join(lacks)}")


def _lacks(cls: type[Environment]) -> list[str]:
    """List the names and methods that a class lacks to be an environment."""
    methods = () if cls.composes else ("draw", "verify")
    missing = [name for name in methods if getattr(cls, name) is getattr(Environment, name)]
    return sorted(missing + [name for name in inspect.get_annotations(Environment) if not hasattr(cls, name)])


ENVIRONMENTS = Registry()


COLLECTIONS = {
    "C1": ("CART",),
    "C2": ("CART", "SUB"),
    "C4": ("CART", "SUB", "PD", "RETURN"),
    "C8": ("CART", "PD", "SUB", "RETURN", "STATUS", "POLICY", "BUNDLE", "JOURNEY"),
}
