"""Faults of a product for a customer who wants another, in words: "Docking Station PP7XRSS has 3.9 stars, wanted
4.0"."""

from collections.abc import Iterable, Sequence
from itertools import islice

from ecomlab.catalog import Catalog, Constraint
from ecomlab.reward import Fault
from ecomlab.slots import slot_type
from ecomlab.world.state import World
from ecomlab.world.substitutes import noun

MOST_TOLD = 4
"""Maximum number of faults in a reason."""


def named(product_id: str, catalog: Catalog) -> str:
    """Name a product by its type and id; an unknown id alone."""
    row = catalog.row(product_id)
    return product_id if row is None else f"{catalog.type_of(row).name} {product_id}"


def faults(product_id: str, constraints: Iterable[Constraint], world: World, had: bool = False) -> list[str]:
    """List why a product does not satisfy these constraints: it does not exist, no tool showed it, it violates one of
    them, or it cannot be bought (irrelevant if it is `had` already). Empty if there is no fault."""
    catalog, name = world.catalog, named(product_id, world.catalog)
    row = catalog.row(product_id)
    if row is None:
        return [f"there is no product {product_id}"]
    if product_id not in world.shown and not had:
        return [f"{name} was shown by no tool"]
    wrong = [f"{name} {_broken(row, c, catalog)}" for c in constraints if not catalog.satisfies(row, (c,))]
    return wrong or ([] if had or world.stock(row) > 0 else [f"{name} is sold out"])


def fault_of(product_id: str, constraints: Iterable[Constraint], world: World, place: str) -> Fault | None:
    """Find why a submitted product does not satisfy these constraints; None if there is no fault."""
    wanted = tuple(constraints)
    said = faults(product_id, wanted, world)
    if not said:
        return None
    row = world.catalog.row(product_id)
    if row is None or product_id not in world.shown:
        return Fault("unseen id", place, product_id, words=said[0])
    broken = tuple(c.field for c in wanted if not world.catalog.satisfies(row, (c,)))
    return Fault("wrong product" if broken else "sold out", place, product_id, broken, words=told(said))


def list_faults(
    product_ids: Sequence[str], count: int, constraints: Iterable[Constraint], world: World
) -> list[Fault]:
    """List the faults of a list that should have this many products that satisfy the constraints, without judging
    whether there are better ones."""
    wanted = tuple(constraints)
    found = [
        fault_of(product_id, wanted, world, f"place {number}")
        for number, product_id in enumerate(dict.fromkeys(product_ids))
    ]
    wrong = [fault for fault in found if fault is not None]
    distinct = len(found)
    if len(product_ids) != count or distinct != count:
        words = f"{distinct} products, wanted {count}"
        wrong.append(Fault("wrong quantity", "list", str(distinct), ("count",), words=words))
    return wrong


def told(reasons: Sequence[str]) -> str:
    """Join reasons, the first few in full."""
    more = len(reasons) - MOST_TOLD
    return "; ".join(islice(reasons, MOST_TOLD)) + (f"; {more} more" if more > 0 else "")


def _broken(row: int, constraint: Constraint, catalog: Catalog) -> str:
    """Describe how a product violates a constraint."""
    field, wanted = constraint.field, constraint.value
    if isinstance(wanted, tuple):
        wanted = f"{'anything but ' if constraint.op == 'not in' else ''}{' or '.join(wanted)}"
    limit = slot_type(field)
    if limit.is_limit:
        return limit.explain(catalog.column(limit).item(row), int(wanted))
    match field:
        case "type":
            return f"is no {wanted}"
        case "brand":
            return f"is by {catalog.brands[catalog.brand_code.item(row)]}, wanted {wanted}"
        case "feature":
            return f"is {catalog.features[catalog.feature_code.item(row)]}, wanted {wanted}"
    name = field.removeprefix("attr:")
    return f"has {noun(name)} {catalog.attributes(row).get(name, 'unknown')}, wanted {wanted}"
