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


_AS_THEY_ARE = frozenset([str, int, float, bool, type(None), FrozenDict])
"""Types of what is frozen already: most of what a task holds."""


def frozen(value: Any) -> Any:
    """Copy a JSON value into one that cannot be changed: lists become tuples. What is frozen already is returned."""
    if type(value) in _AS_THEY_ARE or isinstance(value, FrozenDict):
        return value
    if isinstance(value, list | tuple):
        return tuple([one if type(one) in _AS_THEY_ARE else frozen(one) for one in value])
    if isinstance(value, Mapping):
        return FrozenDict(
            {name: one if type(one) in _AS_THEY_ARE else frozen(one) for name, one in value.items()}
        )
    return value
