"""Forms of tools: a text for each argument, read as an episode reads a model's arguments."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ecomlab.arguments import read_arguments
from ecomlab.suggest import unknown
from ecomlab.tool import FormatError, Tool

Entries = Mapping[str, Any]
"""Texts, or values, by argument; an empty text is left out."""


EMPTY = ('""', "''")
"""Texts that stand for an empty one."""


class FormError(ValueError):
    """Entries that make no call; nothing was sent, and nothing was spent."""


@dataclass(frozen=True)
class Field:
    """One argument of a tool as a person enters it."""

    name: str
    required: bool
    schema: Mapping[str, Any]

    @property
    def options(self) -> tuple[str, ...]:
        """The values to choose from; empty for a field of text."""
        return (
            ("true", "false") if self.schema.get("type") == "boolean" else tuple(self.schema.get("enum", ()))
        )

    @property
    def is_list(self) -> bool:
        return self.schema.get("type") == "array"

    @property
    def about(self) -> str:
        """The argument's type or choices, default and description."""
        kind = (
            "several, between commas"
            if self.is_list
            else ", ".join(self.options) or self.schema.get("type", "JSON")
        )
        default = self.schema.get("default")
        parts = [kind, "needed" * self.required, f"default: {default}" * (default is not None)]
        return "; ".join(filter(None, [*parts, self.schema.get("description", "")]))

    def value(self, text: str) -> str | list[str]:
        """Split a list at commas, unless it is JSON; other texts stay whole, and two quotes are an empty text."""
        if text.strip() in EMPTY:
            return ""
        return _items(text) if self.is_list and not text.lstrip().startswith("[") else text.strip()


@dataclass(frozen=True)
class Form:
    """The fields of one tool, required ones first."""

    tool: Tool

    @cached_property
    def _schemas(self) -> dict[str, Any]:
        found: dict[str, Any] = self.tool.schema["function"]["parameters"].get("properties", {})
        return found

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        found = (Field(name, name in self.tool.required, one) for name, one in self._schemas.items())
        return tuple(sorted(found, key=lambda one: not one.required))

    @property
    def about(self) -> str:
        """The tool's description in a line."""
        return " ".join(self.tool.schema["function"]["description"].split())

    def arguments(self, entries: Entries) -> dict[str, Any]:
        """Read the entries as the arguments of a call. Raises FormError where the tool would refuse them."""
        fields = {one.name: one for one in self.fields}
        for name in entries:
            if name not in fields:
                raise FormError(f"{self.tool.name}: {unknown('argument', name, fields)}")
        given = {
            name: fields[name].value(entry) if isinstance(entry, str) else entry
            for name, entry in entries.items()
            if not isinstance(entry, str) or entry.strip()
        }
        try:
            self.tool.check(given)
        except FormatError as error:
            raise FormError(str(error)) from None
        read = read_arguments(given, self._schemas)
        for name, value in read.items():
            if (choices := self._schemas[name].get("enum")) and value not in choices:
                raise FormError(f"{self.tool.name}: {name}: {unknown('choice', value, choices)}")
        return read

    def picked(self, entries: Entries, ids: Mapping[str, str], lists: bool = True) -> dict[str, str]:
        """Enter the ids of a row in the fields of their names, in place of another row's, and with `lists` add them to
        lists: a `product_id` to `product_ids`."""
        made = dict(entries)
        if any(one.name in ids for one in self.fields):
            made |= {one.name: ids.get(one.name, "") for one in self.fields if one.name.endswith("_id")}
        for one in self.fields:
            if lists and one.is_list and (single := one.name.removesuffix("s")) in ids:
                made[one.name] = ", ".join(dict.fromkeys([*_items(made.get(one.name, "")), ids[single]]))
        return made


def _items(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
