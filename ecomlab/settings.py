"""Settings that are checked when they are made: every mistake at once, each with the way out."""

from collections.abc import Callable, Collection
from typing import Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from ecomlab.suggest import unknown

EXPECTED = {
    "int_type": "is a whole number",
    "float_type": "is a number",
    "bool_type": "is true or false",
    "string_type": "is text",
    "tuple_type": "is a list",
    "greater_than_equal": "is at least {ge:g}",
    "greater_than": "is above {gt:g}",
    "less_than_equal": "is at most {le:g}",
    "less_than": "is below {lt:g}",
}
"""pydantic's types of error in our words; others as pydantic has them."""


class ConfigError(ValueError):
    """A configuration that cannot run; the message names the way out."""


class Settings(BaseModel):
    """Base of settings: frozen, no other names, nothing converted but a list to a tuple. Raises ConfigError."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            wrong = [_in_words(mistake, type(self).model_fields) for mistake in error.errors()]
            raise ConfigError("; ".join(wrong)) from None

    def replace(self, **changes: Any) -> Self:
        """Make a copy with `changes`, checked again."""
        return type(self)(**{**dict(self), **changes})

    def to_json(self) -> dict[str, Any]:
        """Give JSON values; of equal settings they are equal."""
        return self.model_dump(mode="json")


def one_of(what: str, names: Collection[str]) -> AfterValidator:
    """Check that a text is one of `names`."""
    return checked_by(lambda value: None if value in names else unknown(what, value, names))


def checked_by(mistake: Callable[[Any], str | None]) -> AfterValidator:
    """Check a value by a function that says what is wrong with it, or None."""

    def check(value: Any) -> Any:
        if words := mistake(value):
            raise ValueError(words)
        return value

    return AfterValidator(check)


def _in_words(mistake: Any, known: Collection[str]) -> str:
    name, context = ".".join(map(str, mistake["loc"])), mistake.get("ctx", {})
    if mistake["type"] == "extra_forbidden":
        return unknown("setting", name, known)
    if mistake["type"] == "value_error":
        return str(context["error"])
    if mistake["type"] not in EXPECTED:
        return f"{name}: {mistake['msg']}"
    return f"{name} {EXPECTED[mistake['type']].format(**context)}, not {mistake['input']!r}"
