"""Forms of tools, made from their JSON schemas: the fields a person fills in, and the arguments that these come to."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ecomlab.arguments import read
from ecomlab.suggest import unknown

Entry = str | bool
"""What a person has entered in a field: a text, or whether a box is ticked."""
Entries = Mapping[str, Entry]

_KINDS = {"string": "text", "integer": "whole", "number": "number", "boolean": "flag"}
_TYPES: dict[str, tuple[type, ...]] = {"text": (str,), "whole": (int,), "number": (int, float)}
_HINTS = {
    "whole": "a whole number",
    "number": "a number",
    "flag": "yes or no",
    "list": "separated by commas; [] for none",
    "pairs": "such as material = Bamboo; color = Black",
    "json": "JSON",
}
_FLAGS = {
    "yes": True,
    "true": True,
    "y": True,
    "1": True,
    "no": False,
    "false": False,
    "n": False,
    "0": False,
}


class FormError(ValueError):
    """Entries that make no call. `fields` holds the reason by field; nothing was sent, and nothing was spent."""

    def __init__(self, tool: str, fields: Mapping[str, str]) -> None:
        super().__init__(f"{tool}: " + "; ".join(f"{name}: {why}" for name, why in fields.items()))
        self.fields = dict(fields)


@dataclass(frozen=True)
class Field:
    """One argument of a tool as a person enters it."""

    name: str
    kind: str
    """text, whole, number, flag, choice, list (of texts), pairs (of texts), or json for anything else."""
    about: str
    required: bool
    options: tuple[str, ...] = ()
    """Of a choice: the values there are."""
    default: Any = None
    schema: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, name: str, schema: Mapping[str, Any], required: bool) -> "Field":
        """Choose the field for an argument with this JSON schema."""
        kind = _KINDS.get(schema.get("type", ""), "json")
        if "enum" in schema and all(isinstance(option, str) for option in schema["enum"]):
            kind = "choice"
        elif schema.get("type") == "array" and schema.get("items", {}).get("type") == "string":
            kind = "list"
        elif schema.get("type") == "object" and _holds_texts(schema):
            kind = "pairs"
        about, options = schema.get("description", ""), tuple(schema["enum"]) if kind == "choice" else ()
        if kind == "pairs":  # the hint has an example for people
            about = re.sub(r"Such as \{[^{}]*\}[;.] ?", "", about)
        return cls(name, kind, about, required, options, schema.get("default"), schema)

    @property
    def hint(self) -> str:
        """What can be entered, as far as the name does not say it, and what holds where nothing is."""
        said = [", ".join(self.options) if self.kind == "choice" else _HINTS.get(self.kind, "")]
        if self.default is not None:
            default = self.default
            said.append(f"{('no', 'yes')[default] if self.kind == 'flag' else _written(default)} if left out")
        return "; ".join(filter(None, said))

    @property
    def start(self) -> Entry:
        """What an empty form holds: a box is ticked where that is the default."""
        return self.default is True if self.kind == "flag" else ""

    def read(self, entry: Entry) -> Any:
        """Read an entry as the argument's value, None for one that is left out. Raises ValueError with the reason."""
        if isinstance(entry, bool):
            return (
                (entry if entry or self.default is not None else None) if self.kind == "flag" else str(entry)
            )
        text = entry.strip()
        if not text:
            if self.required:
                raise ValueError("is needed")
            return None
        if self.kind == "list":
            return _items(text)
        if self.kind == "pairs":
            return _pairs(text)
        if self.kind == "flag":
            if text.lower() not in _FLAGS:
                raise ValueError(f"yes or no, not {text!r}")
            return _FLAGS[text.lower()]
        if self.kind == "json":
            return _json(text)
        return self._single(text)

    def _single(self, text: str) -> Any:
        """Read a text, a number or a choice, as leniently as the episode reads a model's."""
        value = read(text, self.schema)
        if self.kind == "choice" and value not in self.options:
            raise ValueError(unknown("choice", text, self.options))
        if self.kind in _TYPES and not isinstance(value, _TYPES[self.kind]):
            raise ValueError(f"{_HINTS.get(self.kind, 'a text')}, not {text!r}")
        return value


@dataclass(frozen=True)
class Form:
    """The fields of one tool, required ones first."""

    tool: str
    about: str
    fields: tuple[Field, ...]

    @classmethod
    def of(cls, schema: Mapping[str, Any]) -> "Form":
        """Make the form of a tool from its schema, as `Episode.tools` gives it."""
        function = schema["function"]
        parameters = function.get("parameters", {})
        required = parameters.get("required", ())
        found = [Field.of(n, one, n in required) for n, one in parameters.get("properties", {}).items()]
        about = " ".join(function.get("description", "").split())
        return cls(function["name"], about, tuple(sorted(found, key=lambda one: not one.required)))

    def arguments(self, entries: Entries) -> dict[str, Any]:
        """Read all entries as the arguments of a call. Raises FormError with every wrong field."""
        values: dict[str, Any] = {}
        known = {one.name: one for one in self.fields}
        wrong = {name: unknown("field", name, known) for name in entries if name not in known}
        for one in self.fields:
            try:
                values[one.name] = one.read(entries.get(one.name, one.start))
            except ValueError as error:
                wrong[one.name] = str(error)
        if wrong:
            raise FormError(self.tool, wrong)
        return {name: value for name, value in values.items() if value is not None}

    def picked(self, entries: Entries, ids: Mapping[str, str]) -> dict[str, Entry]:
        """Enter ids in the fields of their names, and add them to lists: a `product_id` to `product_ids`.

        Where something else is picked, ids that the new pick lacks, such as a variant's, are cleared. A form with no
        such field takes an id where it is described by name: "its product id".
        """
        made, others = dict(entries), list[Field]()
        for one in self.fields:
            single = one.name.removesuffix("s")
            if one.kind == "list" and single in ids:
                made[one.name] = ", ".join(dict.fromkeys([*_items(str(made.get(one.name, ""))), ids[single]]))
            elif one.name in ids:
                made[one.name] = ids[one.name]
            elif one.kind == "text":
                others.append(one)
        if made == dict(entries) and not any(one.name in ids for one in self.fields):
            described = [
                (o.name, i) for o in others for n, i in ids.items() if n.replace("_", " ") in o.about
            ]
            return made | dict(described[:1])
        changed = any(made.get(name) != entries.get(name) for name in ids)
        return made | {one.name: "" for one in others if changed and one.name.endswith("_id")}


def forms_of(tools: Sequence[Mapping[str, Any]]) -> dict[str, Form]:
    """Make the forms of an episode's tools, by name."""
    made = [Form.of(schema) for schema in tools]
    return {form.tool: form for form in made}


def entries_of(form: Form, arguments: Mapping[str, Any]) -> dict[str, Entry]:
    """Enter the arguments of a call in a form: the way back, for whoever follows a recorded call by hand."""
    return {one.name: _entered(one, arguments[one.name]) for one in form.fields if one.name in arguments}


def _entered(one: Field, value: Any) -> Entry:
    if one.kind == "flag":
        return bool(value)
    if one.kind == "list":
        return ", ".join(value) or "[]"
    if one.kind == "pairs":
        return "; ".join(f"{name} = {inner}" for name, inner in value.items())
    return _written(value)


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _holds_texts(schema: Mapping[str, Any]) -> bool:
    inner = schema.get("additionalProperties")
    return isinstance(inner, Mapping) and inner.get("type") == "string" and "properties" not in schema


def _items(text: str) -> list[str]:
    """Split a list at commas, semicolons or lines, or at blanks where there is none of these; JSON will do too."""
    if text.lstrip().startswith("["):
        held = _json(text)
        if not isinstance(held, list) or not all(isinstance(one, str) for one in held):
            raise ValueError("a list of texts")
        return held
    parts = re.split(r"[,;\n]" if re.search(r"[,;\n]", text) else r"\s", text)
    return [part.strip() for part in parts if part.strip()]


def _pairs(text: str) -> dict[str, str]:
    """Read "material = Bamboo; color: Black". A comma separates only before another name, for values may hold one."""
    if text.startswith("{"):
        held = _json(text)
        if not all(isinstance(value, str) for value in held.values()):
            raise ValueError("a JSON object of texts")
        return dict(held)
    found = {}
    for part in re.split(r"[;\n]|,(?=[^,;=:\n]+[=:])", text):
        if part.strip():
            mark = "=" if "=" in part else ":"
            name, there, value = (piece.strip() for piece in part.partition(mark))
            if not there or not name or not value:
                raise ValueError(f"name = value, such as material = Bamboo, not {part.strip()!r}")
            found[name] = value
    return found


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"JSON, and this is none: {error}") from None
