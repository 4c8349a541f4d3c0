"""Names that describe products: attributes, product types, and constraints on them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ecomlab.slots import declared, slot_type
from ecomlab.suggest import unknown

_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?(?![\dx:])")
CODES: Final = ("type", "brand", "feature")  # fields stored as codes into a closed vocabulary
OPTION: Final = "option"


@dataclass(frozen=True)
class Attribute:
    """A property with a closed set of values; `phrase` is a customer's wording of it: "made of {}".

    Values of an `ordered` one stand from small to large: sizes, lengths, capacities.
    """

    name: str
    values: tuple[str, ...]
    phrase: str
    ordered: bool = False

    def say(self, value: str) -> str:
        """Put a value in the customer's words: "made of Bamboo"."""
        return self.phrase.replace("{}", value)  # str.format would obey what else stands in the braces

    def number(self, value: str) -> float | None:
        """Read the number that begins a value, in the value's unit: 4 of "4-Pack", 1.5 of "1.5 L"; None without one."""
        found = _NUMBER.match(value)
        return float(found[0]) if found else None


NO_OPTION: Final = Attribute("option", (), "in {}")
"""Option of a type whose products have no variants."""


@dataclass(frozen=True)
class ProductType:
    """A type of product ("Air Fryer"): the option in which its variants differ, and its other attributes. Each product
    comes in some of the option's values, or has no variants."""

    name: str
    plural: str
    department: str
    option: Attribute
    attributes: tuple[Attribute, ...]


@dataclass(frozen=True)
class Constraint:
    """One condition on a product.

    `field` is "type", "brand", "feature" or "attr:<name>" with op "==" and a name as value, or "in" and "not in" with a
    tuple of names, "option" (one of the product's variants) with "==", or a slot with a column of numbers, such as
    "price" (cents), with op "<=" or ">=" and an int.
    Anything else raises ValueError. A name that the catalog lacks is legal and matches nothing.
    """

    field: str
    op: str
    value: str | int | tuple[str, ...]

    def __post_init__(self) -> None:
        named = self.field in (*CODES, OPTION) or (self.field.startswith("attr:") and len(self.field) > 5)
        if not named and not slot_type(self.field).column:
            numbers = [slot.name for slot in declared() if slot.column]
            raise ValueError(unknown("field", self.field, (*CODES, OPTION, *numbers, "attr:<name>")))
        ops = ("==",) if self.field == OPTION else ("==", "in", "not in") if named else ("<=", ">=")
        if self.op not in ops:
            raise ValueError(f"{self.field} takes {', '.join(ops)}, not {self.op!r}")
        kinds = {"==": (str, "a name"), "in": (tuple, "names"), "not in": (tuple, "names")}
        kind, wanted = kinds.get(self.op, (int, "an int"))
        if not isinstance(self.value, kind) or isinstance(self.value, bool):
            raise ValueError(f"{self.field} is compared with {wanted}, not {self.value!r}")

    def to_list(self) -> list[Any]:
        """Convert to [field, op, value] for JSON."""
        return [self.field, self.op, list(self.value) if isinstance(self.value, tuple) else self.value]

    @staticmethod
    def from_list(data: Sequence[Any]) -> "Constraint":
        """Read what `to_list` wrote."""
        name, op, value = data
        return Constraint(name, op, tuple(value) if isinstance(value, list) else value)


def type_to_json(kind: ProductType) -> list[Any]:
    """Convert a type to JSON lists."""
    attributes = [[a.name, list(a.values), a.phrase, a.ordered] for a in (kind.option, *kind.attributes)]
    return [kind.name, kind.plural, kind.department, attributes]


def type_from_json(data: Sequence[Any]) -> ProductType:
    """Read the type that `type_to_json` wrote."""
    name, plural, department, attributes = data
    option, *others = [
        Attribute(name, tuple(values), phrase, ordered) for name, values, phrase, ordered in attributes
    ]
    return ProductType(name, plural, department, option, tuple(others))
