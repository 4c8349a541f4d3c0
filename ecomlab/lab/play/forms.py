"""The forms of tools, made from their JSON schemas: their fields, how entries are read, and how a call is typed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ecomlab.arguments import read_arguments
from ecomlab.suggest import unknown
from ecomlab.tool import FormatError, Tool

Entries = Mapping[str, Any]
"""Texts, or values, by argument; an empty text is left out."""
_NAME = re.compile(r"(?:^|(?<=\s))(\w+)=")
_ID = re.compile(r"(_|\b)ids?\b")
"""In the name or the description of an argument that takes an id."""


class FormError(ValueError):
    """Entries that make no call; nothing was sent, and nothing was spent."""


@dataclass(frozen=True)
class Field:
    """One argument of a tool as a person enters it."""

    name: str
    required: bool
    schema: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """The JSON type: string, number, integer, boolean, array or object."""
        return str(self.schema.get("type", "JSON"))

    @property
    def choices(self) -> tuple[str, ...]:
        """The values to choose from; empty for a field of text."""
        return ("true", "false") if self.kind == "boolean" else tuple(self.schema.get("enum", ()))

    @property
    def is_id(self) -> bool:
        return bool(_ID.search(f"{self.name} {self.schema.get('description', '')}"))

    @property
    def about(self) -> str:
        """The argument's kind or choices, whether it is needed, its default and its description."""
        kind = {"array": "separated by commas", "string": "", "object": "JSON"}.get(self.kind, self.kind)
        default = self.schema.get("default")
        parts = [
            ", ".join(self.choices) or kind,
            "required" * self.required,
            f"default: {default}" * (default is not None),
        ]
        return "; ".join(filter(None, [*parts, self.schema.get("description", "")]))

    def parse(self, text: str, seen: Mapping[str, str]) -> str | list[str]:
        """Read a text: without quotes around it, a list split at commas unless it is JSON, and an id, in any case, as
        it was `seen`."""
        text, seen = text.strip(), seen if self.is_id else {}
        if len(text) > 1 and text[0] == text[-1] in "\"'" and text[0] not in text[1:-1]:
            text = text[1:-1]
        if self.kind == "array" and not text.startswith("["):
            return [seen.get(part.casefold(), part) for part in _items(text)]
        return seen.get(text.casefold(), text)


@dataclass(frozen=True)
class Form:
    """The fields of one tool, required ones first."""

    tool: Tool

    @cached_property
    def fields(self) -> dict[str, Field]:
        schemas = self.tool.schema["function"]["parameters"].get("properties", {})
        found = [Field(name, name in self.tool.required, schema) for name, schema in schemas.items()]
        return {one.name: one for one in sorted(found, key=lambda one: not one.required)}

    @property
    def about(self) -> str:
        """The tool's description in a line."""
        return " ".join(self.tool.schema["function"]["description"].split())

    def typed(self, text: str) -> dict[str, str]:
        """Split a typed text into entries: `category=Baking Tray brand=CedarLoft`. The one argument that is usual needs
        no name. Raises FormError for words that belong to no argument."""
        first, *named = _NAME.split(text)
        entries, usual = dict(zip(named[::2], named[1::2], strict=True)), self.tool.usual or (*self.fields,)
        if first.strip() and len(usual) != 1:
            names = " ".join(f"{name}=..." for name in usual)
            raise FormError(f"{self.tool.name}: name the arguments, {names}, not {first.strip()!r}")
        return {usual[0]: first, **entries} if first.strip() else entries

    def arguments(self, entries: Entries, seen: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Read the entries as the arguments of a call; `seen` has the ids that results have shown, by their lower case.
        Raises FormError where the tool would refuse them."""
        for name in entries:
            if name not in self.fields:
                raise FormError(f"{self.tool.name}: {unknown('argument', name, self.fields)}")
        given = {
            name: self.fields[name].parse(entry, seen or {}) if isinstance(entry, str) else entry
            for name, entry in entries.items()
            if not isinstance(entry, str) or entry.strip()
        }
        try:
            self.tool.check(given)
        except FormatError as error:
            raise FormError(str(error)) from None
        return read_arguments(given, {name: one.schema for name, one in self.fields.items()})

    def picked(self, entries: Entries, ids: Mapping[str, str], lists: bool = True) -> dict[str, str]:
        """Enter the ids of a row in the fields of their names, in place of another row's, and with `lists` add them to
        lists: a `product_id` to `product_ids`."""
        made = dict(entries)
        if self.fields.keys() & ids.keys():
            made |= {name: ids.get(name, "") for name in self.fields if name.endswith("_id")}
        for name, one in self.fields.items():
            if lists and one.kind == "array" and (single := name.removesuffix("s")) in ids:
                made[name] = ", ".join(dict.fromkeys([*_items(made.get(name, "")), ids[single]]))
        return made


def _items(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
