"""Which environments a catalog can carry, and a sentence for each that it cannot."""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from ecomlab.catalog.columns import Catalog
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
        sum(1 for attribute in kind.attributes if (catalog.attr[attribute.name][span] >= 0).sum() >= 8) >= 1
        for kind in catalog.drawable_types
        for span in [slice(*_edges(catalog, kind.name))]
    )
    if not similar:
        off["SUB"] = "no type has products that share attributes: replacements could not be told apart"
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


def gains(catalog: Catalog) -> list[SlotType]:
    """List the limits of which a unit may be worth something to a customer: those that products of this shop have."""
    return [limit for limit in LIMITS if limit.gain and catalog.has(limit)]


def _edges(catalog: Catalog, name: str) -> tuple[int, int]:
    rows = catalog.type_rows(name)
    return rows.start, rows.stop
