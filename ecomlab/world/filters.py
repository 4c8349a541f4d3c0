"""The filters of a search: maps names and values as people write them to those of the shop."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ecomlab.catalog import Attribute, Constraint, ProductType
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.suggest import unknown
from ecomlab.tool import RefusedError
from ecomlab.world.state import World
from ecomlab.world.substitutes import noun

MOST_SAID = 100
"""Maximum number of characters quoted from an unknown name."""
_SMALL = frozenset("a an at for in of that the with".split())
"""Words of an attribute's phrase that do not name it."""


@dataclass(frozen=True)
class Filters:
    """The filters of a search, in the shop's own names."""

    kind: str | None = None
    """Product type."""
    option: str | None = None
    """The requested variant."""
    constraints: tuple[Constraint, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=lambda: {"attributes": {}})
    """Fields of a row that the filters determine."""


def filters_of(
    world: World,
    category: str | None = None,
    brand: str | None = None,
    attributes: Mapping[str, str] | None = None,
) -> Filters:
    """Find what these arguments mean. Raises RefusedError, with the way out, for a name that the shop does not have: an
    empty result would look sold out."""
    kind = None if category is None else _name("type", category, world)
    maker = None if brand is None else _name("brand", brand, world)
    fixed: dict[str, Any] = {name: v for name, v in (("type", kind), ("brand", maker)) if v is not None}
    constraints = [Constraint(name, "==", value) for name, value in fixed.items()]
    fixed["attributes"], option = {}, None
    about = lexicon_of(world.catalog).types[kind] if kind is not None else None
    for said, value in sorted((attributes or {}).items()):
        name = _attribute(said, about, world)
        if about is not None and name == about.option.name:
            option = _value(name.replace("_", " "), value, about.option.values)
            constraints.append(Constraint("option", "==", option))
            continue
        known = world.catalog.attr_values[name] if about is None else _of(about)[name].values
        fixed["attributes"][name] = _value(name, value, known)
        constraints.append(Constraint(f"attr:{name}", "==", fixed["attributes"][name]))
    return Filters(kind, option, tuple(constraints), fixed)


def _name(what: Literal["type", "brand"], said: str, world: World) -> str:
    lexicon, said = lexicon_of(world.catalog), " ".join(said.split())
    name = lexicon.exact(what, said)
    if name is None:
        near = lexicon.nearest(what, said[:MOST_SAID])
        hint = f"did you mean {near[0]!r}?" if near else "search without it to see which there are"
        raise RefusedError(f"no {'category' if what == 'type' else what} {said[:MOST_SAID]!r}; {hint}")
    return name


def _of(kind: ProductType) -> dict[str, Attribute]:
    """Index a type's attributes by name, that of its variants last."""
    return {one.name: one for one in (*kind.attributes, kind.option) if one.values}


def _attribute(said: str, kind: ProductType | None, world: World) -> str:
    """Find the attribute that is called so, by its name or a customer's word for it."""
    known: Iterable[str] = world.catalog.attr_values if kind is None else _of(kind)
    names = {_singular(name): name for name in known}
    for name in known:
        names.setdefault(_singular(noun(name)), name)
    for name, attribute in _of(kind).items() if kind is not None else ():
        words = [word for word in attribute.say("").split() if word not in _SMALL]
        names.setdefault(_singular("".join(words)), name)
    found = names.get(_singular(said))
    if found is None:
        what = "attribute" if kind is None else f"attribute of {kind.plural}"
        raise RefusedError(unknown(what, said[:MOST_SAID], known))
    return found


def _value(name: str, said: str, known: Sequence[str]) -> str:
    values = {_folded(value): value for value in known}
    if _folded(said) not in values:
        raise RefusedError(unknown(name.replace("_", " "), said[:MOST_SAID], known))
    return values[_folded(said)]


def _folded(text: str) -> str:
    """Write a name or value without case, blanks and hyphens: "1 M" is "1m"."""
    return re.sub(r"[\s_-]", "", text.casefold())


def _singular(text: str) -> str:
    """Write a name like `_folded`, without a plural s: "Scent notes" is "scentnote"."""
    return _folded(text).removesuffix("s")
