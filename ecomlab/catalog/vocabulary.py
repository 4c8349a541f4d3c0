"""The vocabulary of generated products, read from `vocabulary.toml` by the schema below."""

from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from ecomlab.settings import Strict, read_toml
from ecomlab.suggest import unknown

Names = Annotated[tuple[str, ...], Field(min_length=1)]


class AttributeEntry(Strict):
    """An attribute: a customer's phrase for it, and its values. The name defaults to the key up to a slash.

    Values of an `ordered` one stand from small to large. A product with the last value costs `price` times as much as
    one with the first.
    """

    name: str = ""
    phrase: Annotated[str, Field(pattern=r"^[^{}]*\{\}[^{}]*$")]
    values: Names
    ordered: bool = False
    price: Annotated[float, Field(gt=0)] = 1


class TypeEntry(Strict):
    """A product type. Variants differ in `option`, "" for none; it and `attributes` are keys; the plural defaults to an
    added s; an ordinary product costs `price` dollars."""

    plural: str = ""
    option: str = ""
    attributes: Names
    features: Names
    price: Annotated[float, Field(gt=0)]

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the option, if it has one, and of the attributes."""
        return (self.option, *self.attributes) if self.option else self.attributes


class DepartmentEntry(Strict):
    """A department: its brands, its product types by name."""

    brands: Names
    types: dict[str, TypeEntry]

    @property
    def features(self) -> tuple[str, ...]:
        """Features that products of the department have."""
        return tuple(dict.fromkeys(name for kind in self.types.values() for name in kind.features))


class Vocabulary(Strict):
    """Schema of `vocabulary.toml`; features by what they multiply a price by."""

    features: dict[str, Annotated[float, Field(gt=0)]]
    attributes: dict[str, AttributeEntry]
    departments: dict[str, DepartmentEntry]

    @model_validator(mode="after")
    def _check_keys(self) -> "Vocabulary":
        for where, department in self.departments.items():
            for name, kind in department.types.items():
                checked = (
                    ("attribute", kind.keys, self.attributes),
                    ("feature", kind.features, self.features),
                )
                for what, keys, known in checked:
                    for key in keys:
                        if key not in known:
                            fact = unknown(what, key, known)
                            raise ValueError(f'departments.{where}.types."{name}": {fact}')
        return self


FILE = Path(__file__).with_name("vocabulary.toml")


@cache
def vocabulary() -> Vocabulary:
    """Read the vocabulary of the generated shop, once per process."""
    return read_toml(FILE, Vocabulary)
