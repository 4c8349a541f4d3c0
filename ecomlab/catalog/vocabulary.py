"""The vocabulary of generated products, read from `vocabulary.toml` by the schema below."""

from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from ecomlab.settings import Strict, read_toml
from ecomlab.suggest import unknown

Names = Annotated[tuple[str, ...], Field(min_length=1)]


class AttributeEntry(Strict):
    """An attribute: a customer's phrase for it, and its values. The name defaults to the key up to a slash."""

    name: str = ""
    phrase: Annotated[str, Field(pattern=r"^[^{}]*\{\}[^{}]*$")]
    values: Names


class TypeEntry(Strict):
    """A product type. Variants differ in `option`; it and `attributes` are keys; the plural defaults to an added s."""

    plural: str = ""
    option: str
    attributes: Names
    price: tuple[float, float]


class DepartmentEntry(Strict):
    """A department: its brands, its features, its product types by name."""

    brands: Names
    features: Names
    types: dict[str, TypeEntry]


class Vocabulary(Strict):
    """Schema of `vocabulary.toml`."""

    attributes: dict[str, AttributeEntry]
    departments: dict[str, DepartmentEntry]

    @model_validator(mode="after")
    def _check_keys(self) -> "Vocabulary":
        for where, department in self.departments.items():
            for name, kind in department.types.items():
                for key in (kind.option, *kind.attributes):
                    if key not in self.attributes:
                        fact = unknown("attribute", key, self.attributes)
                        raise ValueError(f'departments.{where}.types."{name}": {fact}')
        return self


FILE = Path(__file__).with_name("vocabulary.toml")


@cache
def vocabulary() -> Vocabulary:
    """Read the vocabulary of the generated shop, once per process."""
    return read_toml(FILE, Vocabulary)
