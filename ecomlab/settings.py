"""TOML files with a schema: data of the package, and settings that report all mistakes at once."""

import json
import tomllib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from ecomlab.suggest import mistakes, unknown


class ConfigError(ValueError):
    """A configuration that cannot run; the message states the way out."""


class Strict(BaseModel):
    """A table: frozen, with finite values of exactly their types, and no keys outside the schema."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


Schema = TypeVar("Schema", bound=Strict)


def load_toml(path: Path, otherwise: str = "name another") -> dict[str, Any]:
    """Load a TOML file. Raises ConfigError; `otherwise` is the way out in its message for a missing file."""
    if path.is_dir():
        raise ConfigError(f"{path} is a folder; name a file in it")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"no file {path}; {otherwise}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: it cannot be read: {error}") from error


def read_toml(
    path: Path, schema: type[Schema], context: Any = None, under: Mapping[str, Any] | None = None
) -> Schema:
    """Read a TOML file by its schema; arrays become tuples where the schema has tuples. `context` is what the schema's
    validators see; what the file and its tables do not say is as `under` has it. Raises ConfigError with a line
    for each mistake: file, key and fault.
    """
    # A date, which JSON lacks and no schema asks for, becomes a table, so that the mistake is found by its key.
    given = load_toml(path)
    for name, value in (under or {}).items():
        own = given.setdefault(name, value)
        given[name] = {**value, **own} if isinstance(value, dict) and isinstance(own, dict) else own
    text = json.dumps(given, default=lambda date: {"date": str(date)})
    try:
        return schema.model_validate_json(text, context=context)
    except ValidationError as error:
        raise ConfigError("\n".join(f"{path}: {mistake}" for mistake in mistakes(error, schema))) from None


class Settings(Strict):
    """Base of settings that are made in code too. Raises ConfigError."""

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise ConfigError("; ".join(mistakes(error, type(self)))) from None

    def replace(self, **changes: Any) -> Self:
        """Copy with `changes`, checked again."""
        return type(self)(**{**dict(self), **changes})

    def to_json(self) -> dict[str, Any]:
        """Return JSON values; equal settings give equal ones."""
        return self.model_dump(mode="json")


def one_of(what: str, names: Collection[str]) -> AfterValidator:
    """Check that a text is one of `names`."""
    return checked_by(lambda value: None if value in names else unknown(what, value, names))


def checked_by(mistake: Callable[[Any], str | None]) -> AfterValidator:
    """Check a value by a function that returns the fault in words, or None."""

    def check(value: Any) -> Any:
        if words := mistake(value):
            raise ValueError(words)
        return value

    return AfterValidator(check)
