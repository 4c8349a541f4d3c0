"""Reads the arguments of a call as a person would: a value with only one possible meaning is converted to it.

"20" is 20 where a number is wanted, 3.0 is 3, "true" is true, a lone string is a list of one and a list of one its
entry, and JSON inside a string is what it says. 3.5 is not 3, and true is not 1: unclear values stay as they are, for
the checks that follow.
"""

import json
from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]
_WORDS = {"true": True, "false": False}


def read_arguments(given: Mapping[str, Any], schemas: Mapping[str, Schema]) -> dict[str, Any]:
    """Read each argument by its JSON schema, with references resolved; those without a schema are left as they are."""
    return {name: read(value, schemas.get(name, {})) for name, value in given.items()}


def read(value: Any, schema: Schema) -> Any:
    """Convert a value to the JSON type of the schema, if there is exactly one way."""
    kind = schema.get("type")
    if isinstance(value, list) and len(value) == 1 and kind in ("string", "number", "integer", "boolean"):
        value = value[0]
    if "enum" in schema:
        return _choice(value, schema["enum"])
    match kind:
        case "integer" | "number":
            return _number(value, whole=kind == "integer")
        case "boolean":
            return _WORDS.get(value.strip().lower(), value) if isinstance(value, str) else value
        case "string":
            return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
        case "array":
            return _list(value, schema.get("items", {}))
        case "object":
            value = _inside(value, dict)
            inner = schema.get("additionalProperties")
            if isinstance(value, dict) and isinstance(inner, Mapping):
                return {name: read(entry, inner) for name, entry in value.items()}
    return value


def _number(value: Any, whole: bool) -> Any:
    if isinstance(value, str):
        try:
            value = json.loads(value.strip(), parse_constant=lambda _: value)
        except (ValueError, RecursionError):
            return value
    return int(value) if whole and isinstance(value, float) and value.is_integer() else value


def _choice(value: Any, options: list[Any]) -> Any:
    """Find the option that is equal but for case, outer blanks, and underscores for blanks."""
    if not isinstance(value, str):
        return value
    return next((o for o in options if isinstance(o, str) and _folded(o) == _folded(value)), value)


def _folded(text: str) -> str:
    return text.strip().casefold().replace("_", " ")


def _list(value: Any, items: Schema) -> Any:
    value = _inside(value, list)
    if isinstance(value, list):
        return [read(entry, items) for entry in value]
    return [read(value, items)] if isinstance(value, str) else value


def _inside(value: Any, kind: type) -> Any:
    """Return the list or object that a string holds as JSON, or the value itself."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            held = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return held if isinstance(held, kind) else value
    return value
