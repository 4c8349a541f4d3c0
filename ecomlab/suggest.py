"""Errors that name the fact, the likely meaning and the choice."""

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

MOST = 60
"""Names that a message lists."""


def unknown(what: str, name: object, known: Iterable[str]) -> str:
    """Word an unknown name: `no environment 'CRAT'; did you mean 'CART'? there are BUNDLE, CART`."""
    names = list(known)
    folded = {n.casefold(): n for n in names}
    close = difflib.get_close_matches(str(name).casefold(), folded, n=1, cutoff=0.5)
    hint = f"; did you mean {folded[close[0]]!r}?" if close else ";"
    listed = ", ".join(sorted(names)[:MOST]) or "none"
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return f"no {what} {name!r}{hint} there are {listed}{more}"


def mistakes(error: "ValidationError", model: "type[BaseModel]") -> list[str]:
    """Word each mistake that pydantic found in a value for `model`: `cpus: should be a valid integer, not 'x'`."""
    found = []
    for mistake in error.errors(include_url=False):
        *path, name = mistake["loc"] or ("",)
        match mistake["type"]:
            case "extra_forbidden":
                said = unknown("key", name, _keys(model, path))
            case "missing":
                said = "is needed"
            case "value_error":  # raised by a validator of ours, whose message is whole
                said = str(mistake["ctx"]["error"])
            case "too_short":
                said = "has no values"
            case _:
                said = f"{mistake['msg'].removeprefix('Input ')}, not {mistake['input']!r}"
        found.append(": ".join(filter(None, (".".join(map(str, mistake["loc"])), said))))
    return found


def _keys(model: "type[BaseModel]", path: Iterable[int | str]) -> list[str]:
    """Keys of the model at `path` within `model`."""
    for name in path:
        kind = next(
            field.annotation for key, field in model.model_fields.items() if name in (key, field.alias)
        )
        model = next(t for t in (kind, *getattr(kind, "__args__", ())) if hasattr(t, "model_fields"))
    return [field.alias or key for key, field in model.model_fields.items()]
