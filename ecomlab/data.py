"""Data files: word lists and rules as TOML, each read by a checked schema."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError


class Strict(BaseModel):
    """One table of a data file: every value of its very type, no key that the schema lacks, frozen."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


Schema = TypeVar("Schema", bound=Strict)


def read_toml(path: Path, schema: type[Schema]) -> Schema:
    """Read a TOML file by its schema, arrays as the tuples that it asks for.

    Raises ValueError that names the file, and for each of its mistakes the key and what is wrong there.
    """
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        # A date, which JSON lacks and no schema asks for, becomes a table, so that the mistake is found by its key.
        text = json.dumps(given, default=lambda date: {"date": str(date)})
        return schema.model_validate_json(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: {error}") from None
    except ValidationError as error:
        raise ValueError("\n".join(f"{path}: {_mistake(found)}" for found in error.errors())) from None


def _mistake(error: Mapping[str, Any]) -> str:
    key = ".".join(part if str(part).isidentifier() else json.dumps(part) for part in error["loc"])
    fact = error["msg"].removeprefix("Value error, ")
    given = error["input"] if isinstance(error["input"], str | int | float) else None
    return (f"{key}: " if key else "") + fact + ("" if given is None else f", not {given!r}")
