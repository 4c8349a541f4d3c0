"""Data files: phrases, word lists and rules in TOML, each read by a checked schema."""

import json
import tomllib
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ecomlab.suggest import mistakes


class Strict(BaseModel):
    """Table of a data file: frozen, its values exactly of their types, no keys but the schema's."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


Schema = TypeVar("Schema", bound=Strict)


def read_toml(path: Path, schema: type[Schema]) -> Schema:
    """Read a TOML file by its schema; arrays become tuples where it has tuples.

    Raises ValueError with a line for each mistake: file, key and what is wrong there.
    """
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        # A date, which JSON lacks and no schema asks for, becomes a table, so that the mistake is found by its key.
        text = json.dumps(given, default=lambda date: {"date": str(date)})
        return schema.model_validate_json(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: {error}") from None
    except ValidationError as error:
        raise ValueError("\n".join(f"{path}: {mistake}" for mistake in mistakes(error, schema))) from None
