"""JSON values that nobody can change: tasks and caches share them (ISOLATED)."""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn


class FrozenDict(dict[str, Any]):
    """A dictionary that cannot be changed; unlike a mapping proxy it can be written as JSON, copied and pickled."""

    def _refuse(self, *args: Any, **named: Any) -> NoReturn:
        raise TypeError("this belongs to a task, which cannot be changed; change a copy: dict(value)")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return FrozenDict, (dict(self),)


def frozen(value: Any) -> Any:
    """Copy a JSON value into one that cannot be changed: lists become tuples. What is frozen already is returned."""
    if value is None or isinstance(value, str | int | float | FrozenDict):
        return value
    if isinstance(value, Mapping):
        return FrozenDict({name: frozen(inner) for name, inner in value.items()})
    if isinstance(value, list | tuple):
        return tuple(frozen(inner) for inner in value)
    return value
