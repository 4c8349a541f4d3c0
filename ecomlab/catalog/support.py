"""Which environments a catalog can carry, and a sentence for each that it cannot."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from ecomlab.catalog.columns import ENOUGH, PLENTY, Catalog
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.catalog.schema import ProductType
from ecomlab.slots import LIMITS, PRICE, SlotType

FEW_TYPES = 2
"""Types that a cart with something unwanted beside it needs."""
ALIKE = 8
"""Products of a type with the same attribute known, from which on one may replace another."""
FEW_NAMES = 5
"""Brands or short names of a type with fewer of which a visit is guessed too often."""


class UnsupportedError(ValueError):
    """An environment that a catalog cannot carry; the message says why, and which it can."""


@lru_cache(maxsize=64)
def unsupported(catalog: Catalog) -> Mapping[str, str]:
    """Say why each environment that the catalog cannot carry is off, by environment."""
    return MappingProxyType(_unsupported(catalog))


def check_supported(catalog: Catalog, envs: Iterable[str]) -> None:
    """Raise UnsupportedError for environments that the catalog cannot carry."""
    envs, off = list(envs), unsupported(catalog)
    if wrong := [f"{env} ({off[env]})" for env in envs if env in off]:
        able = [env for env in envs if env not in off]
        way = f"choose {','.join(able)}" if able else "choose other environments"
        raise UnsupportedError(f"this catalog cannot support {', '.join(wrong)}; {way}, or another catalog")


def _unsupported(catalog: Catalog) -> dict[str, str]:
    if catalog.drawable is None:  # generated to carry all; too small a one says so where a task is drawn
        return {}
    off: dict[str, str] = {}
    if not catalog.has(PRICE):
        off |= dict.fromkeys(
            ("PD", "BUNDLE"), "no product has a price: lists to compare and budgets need them"
        )
    if not _similar(catalog):
        off["SUB"] = "no type has products that share attributes: replacements could not be told apart"
    if not catalog.stocked_types:
        off["PD"] = f"no type has {ENOUGH} products in stock"
    if len(catalog.stocked_types) < FEW_TYPES:
        few = f"fewer than {FEW_TYPES} types have {ENOUGH} products in stock"
        off |= dict.fromkeys(("CART", "SUB", "BUNDLE"), few)
    if len(catalog.drawable_types) < FEW_TYPES:
        few = f"fewer than {FEW_TYPES} types have enough products"
        off |= dict.fromkeys(("CART", "SUB", "RETURN", "STATUS", "POLICY", "BUNDLE"), few)
    if off:
        off["JOURNEY"] = f"it chains the others, and these are off: {', '.join(sorted(off))}"
    return off


def _similar(catalog: Catalog) -> list[str]:
    """List the types in stock of which enough products share attributes for one to replace another."""

    def shares(kind: ProductType) -> bool:
        rows = catalog.type_rows(kind.name)
        known = (catalog.attr[one.name][rows.start : rows.stop] >= 0 for one in kind.attributes)
        return any(own.sum() >= ALIKE for own in known)

    return [kind.name for kind in catalog.stocked_types if shares(kind)]


def limits(catalog: Catalog, told: Collection[str] = ()) -> list[str]:
    """Say which of a customer's limits are never drawn here, one sentence each, without those that are `told`."""
    return [
        f"no product has a {limit.name}: customers set no limit on it"
        for limit in LIMITS
        if not catalog.has(limit) and limit.name not in told
    ]


def of_stock(catalog: Catalog) -> list[str]:
    """Say what the stock of a real catalog leaves to be drawn, by environment and type."""
    stocked, said = catalog.stocked_types, []
    if stocked and len(stocked) < len(catalog.drawable_types):
        short = [one.name for one in catalog.drawable_types if one not in stocked]
        counts = [f"{name} ({catalog.stocked(name):,})" for name in short]
        said.append(
            f"tasks of CART, PD, SUB and BUNDLE are about {len(stocked)} of them: fewer than {ENOUGH} products of the "
            f"others are in stock: {_some(counts)}"
        )
    if few := [one.name for one in stocked if catalog.least_stock(one.name) < PLENTY]:
        said.append(
            f"quantities go up to what is in stock where fewer than {ENOUGH} products have {PLENTY} units, in "
            f"{len(few)} of them: {_some(few)}"
        )
    if (similar := _similar(catalog)) and 2 * len(similar) < len(stocked):
        said.append(f"SUB is about {_some(similar)} alone: products of the other types share no attributes")
    return said


def of_names(catalog: Catalog) -> list[str]:
    """Say of which types of a real catalog names tell little, and the law that cannot hold for them."""
    within, said = lexicon_of(catalog).within, []
    names = {one.name: within(one.name) for one in catalog.drawable_types}
    if alone := [name for name, of in names.items() if len(of["brand"]) == 1]:
        first, count = Counter(catalog.brand_code.tolist()).most_common(1)[0]
        said.append(
            f"{catalog.brands[first]} is the brand of {count / catalog.size:.0%} of the products; customers name none "
            f"where a type has only one, in {len(alone)} of them: {_some(alone)}"
        )
    if few := [name for name, of in names.items() if max(map(len, of.values())) < FEW_NAMES]:
        said.append(
            f"NOT GAMEABLE cannot hold in {len(few)} of them, because neither brands nor short names tell {FEW_NAMES} "
            f"products apart and what customers say fits too many: {_some(few)}"
        )
    return said


def _some(names: Sequence[str]) -> str:
    return ", ".join([*names[:5], *(["..."] if names[5:] else [])])


def gains(catalog: Catalog) -> list[SlotType]:
    """List the limits of which a unit may be worth something to a customer: those that products of this shop have."""
    return [limit for limit in LIMITS if limit.gain and catalog.has(limit)]
