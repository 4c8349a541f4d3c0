"""Base class of settings that are checked when they are made and report all their mistakes at once."""

import tomllib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from ecomlab.suggest import mistakes, unknown


class ConfigError(ValueError):
    """A configuration that cannot run; the message names the way out."""


def read_toml(path: Path, otherwise: str) -> dict[str, Any]:
    """Read a file of settings. Raises ConfigError; `otherwise` is what it says of a file that is not there."""
    if path.is_dir():
        raise ConfigError(f"{path} is a folder; name a file in it")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"no file {path}; {otherwise}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error


class Settings(BaseModel):
    """Base of settings: frozen, no unknown names, no conversions, no infinite numbers. Raises ConfigError."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

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
    """Check a value by a function that words what is wrong with it, or returns None."""

    def check(value: Any) -> Any:
        if words := mistake(value):
            raise ValueError(words)
        return value

    return AfterValidator(check)
