"""Errors that state the fact, the likely meaning and the choices."""

import difflib
import json
import re
import traceback
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

MOST = 60
"""Names that a message lists."""
LIST = "a list, [1, 2]"
WRITTEN = {"bool": "true or false", "list": LIST, "tuple": LIST, "dict": "a table, {name = value}"}
"""How TOML writes what pydantic names otherwise, by the first word of its errors' types."""
IN_JSON = {**WRITTEN, "dict": 'an object, {"name": "value"}'}


class UnknownEnvironmentError(KeyError):
    """No environment of that name."""

    def __str__(self) -> str:
        return str(self.args[0])


def unknown(what: str, name: object, known: Iterable[str], listed: bool = True) -> str:
    """Describe an unknown name: `no environment 'CRAT'; did you mean 'CART'? there are BUNDLE, CART`.

    Without `listed`, the known names are omitted.
    """
    names = list(known)
    folded = {n.casefold(): n for n in names}
    meant = name.casefold() if isinstance(name, str) else ""
    close = difflib.get_close_matches(meant, folded, n=1, cutoff=0.5)
    hint = f"; did you mean {folded[close[0]]!r}?" if close else ";"
    if not listed:
        return f"no {what} {name!r}{hint}".removesuffix(";")
    there = ", ".join(sorted(names)[:MOST]) or "none"
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return f"no {what} {name!r}{hint} there are {there}{more}"


def mistakes(
    error: "ValidationError", model: "type[BaseModel]", written: Mapping[str, str] = WRITTEN
) -> list[str]:
    """Describe each mistake that pydantic found in a value for `model`: `cpus: should be a valid integer, not 'x'`.

    The keys of a table are listed once, with its first unknown one. `written` says how the reader writes a type.
    """
    found: list[str] = []
    listed: set[tuple[int | str, ...]] = set()
    for mistake in error.errors(include_url=False):
        path, given = mistake["loc"], mistake["input"]
        shown = "" if isinstance(given, dict | list | tuple) else f", not {given!r}"
        match mistake["type"]:
            case "extra_forbidden":
                fact = unknown("key", path[-1], _keys(model, path[:-1]), listed=path[:-1] not in listed)
                listed.add(path[:-1])
            case "missing":
                fact = "is needed"
            case "value_error":  # raised by a validator of ours, whose message is whole
                fact = str(mistake["ctx"]["error"])
            case "too_short" if not given:
                fact = "has no values"
            case kind if kind.partition("_")[0] in written:
                fact = f"should be {written[kind.partition('_')[0]]}{shown}"
            case _:
                fact = mistake["msg"].removeprefix("Input ") + shown
        key = ".".join(str(name) if str(name).isidentifier() else json.dumps(name) for name in path)
        found.append(f"{key}: {fact}" if key else fact)
    return found


def _keys(kind: Any, path: Sequence[int | str]) -> list[str]:
    """List the keys of the model at `path` within a type: a model, a container of them or an optional one."""
    fields = getattr(kind, "model_fields", None)
    if fields is None:
        inner = [part for part in get_args(kind) if part not in (NoneType, ...)][-1]
        return _keys(inner, path if get_origin(kind) in (Union, UnionType) else path[1:])
    if path:
        return _keys(next(f.annotation for name, f in fields.items() if path[0] in (name, f.alias)), path[1:])
    return [field.alias or name for name, field in fields.items()]


def raised(error: Exception) -> str:
    """Describe an exception with the line that raised it: `KeyError: 'day' (player.py, line 12)`."""
    *_, last = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})"


def worded(error: Exception) -> str:
    """Word an error: without a system error's number; for a missing package, with the extra that brings it."""
    from importlib.metadata import requires

    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}; give another path"
    if not isinstance(error, ModuleNotFoundError):
        return str(error)
    package = (error.name or "").partition(".")[0]
    lines = [line for line in requires("ecomlab") or () if re.match(rf"{re.escape(package)}\b", line)]
    extras = [f"[{found[1]}]" for line in lines if (found := re.search(r"extra == .(\w+)", line))]
    extra = min(extras, key=lambda one: one in ("[all]", "[dev]"), default="")  # the smallest that will do
    return f"{package!r} is not installed; pip install 'ecomlab{extra}' brings it"


def whole(number: Any, what: str) -> int:
    """Check a whole number from 0 up, which may be numpy's. Raises ValueError for anything else."""
    if isinstance(number, bool) or not isinstance(number, Integral) or number < 0:
        raise ValueError(f"{what} must be a whole number, 0 or more, not {number!r}")
    return int(number)
