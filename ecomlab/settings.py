"""Base class of settings that are checked when they are made and report all their mistakes at once."""

from collections.abc import Callable, Collection
from typing import Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from ecomlab.suggest import mistakes, unknown


class ConfigError(ValueError):
    """A configuration that cannot run; the message names the way out."""


class Settings(BaseModel):
    """Base of settings: frozen, no unknown names, no conversions. Raises ConfigError."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

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
