"""Which environments a catalog can carry, and a sentence for each that it cannot."""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from ecomlab.catalog.columns import ENOUGH, PLENTY, Catalog
from ecomlab.slots import LIMITS, PRICE, SlotType

FEW_TYPES = 2
"""Types that a cart with something unwanted beside it needs."""
_KNOWN: dict[str, Mapping[str, str]] = {}


class UnsupportedError(ValueError):
    """An environment that a catalog cannot carry; the message says why, and which it can."""


def unsupported(catalog: Catalog) -> Mapping[str, str]:
    """Say why each environment that the catalog cannot carry is off, by environment; found once per fingerprint."""
    if catalog.fingerprint not in _KNOWN:
        _KNOWN[catalog.fingerprint] = MappingProxyType(_unsupported(catalog))
    return _KNOWN[catalog.fingerprint]


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
    similar = any(
        (catalog.attr[attribute.name][rows.start : rows.stop] >= 0).sum() >= 8
        for kind in catalog.stocked_types
        for rows in [catalog.type_rows(kind.name)]
        for attribute in kind.attributes
    )
    if not similar:
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


def limits(catalog: Catalog, told: Collection[str] = ()) -> list[str]:
    """Say which of a customer's limits are never drawn here, one sentence each, without those that are `told`."""
    return [
        f"no product has a {limit.name}: customers set no limit on it"
        for limit in LIMITS
        if not catalog.has(limit) and limit.name not in told
    ]


def of_stock(catalog: Catalog) -> list[str]:
    """Say what the stock of a real catalog leaves to be drawn, by environment and type."""
    kinds, stocked, said = catalog.drawable_types, catalog.stocked_types, []
    if short := [kind.name for kind in kinds if kind not in stocked]:
        counts = ", ".join(f"{one} ({catalog.stocked(one):,})" for one in short)
        said.append(
            f"CART, PD, SUB and BUNDLE are about {len(stocked)} of these types, for of the others fewer than {ENOUGH} "
            f"products are in stock: {counts}"
        )
    if few := [kind.name for kind in stocked if catalog.least_stock(kind.name) < PLENTY]:
        said.append(
            f"few products have {PLENTY} units, so that quantities go up to the stock, in {len(few)} of these types: "
            + ", ".join(few)
        )
    return said


def gains(catalog: Catalog) -> list[SlotType]:
    """List the limits of which a unit may be worth something to a customer: those that products of this shop have."""
    return [limit for limit in LIMITS if limit.gain and catalog.has(limit)]
