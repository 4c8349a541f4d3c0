"""Tools of the catalog. Docstrings are written to the model; results are JSON objects."""

import inspect
import math
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from ecomlab.catalog import Constraint
from ecomlab.seeding import EVALUATION_SEEDS
from ecomlab.slots import LIMITS, SlotType, declared
from ecomlab.task import TaskKey
from ecomlab.tool import RefusedError, Tool, tool
from ecomlab.world.filters import filters_of
from ecomlab.world.reviews import shown_of
from ecomlab.world.state import PAGE, World

MOST_RERANKED = 100
TODAY = "2026-03-02"
"""Date in tasks that have no date of their own."""

ProductId = Annotated[str, Field(description="As shown.")]
VariantId = Annotated[str | None, Field(description="As shown.")]
Sort = Literal["price", "rating", "delivery"] | None


def _search(
    world: World,
    query: Annotated[str | None, Field(description="Optional with a category.")] = None,
    category: Annotated[str | None, Field(description='Such as "Yoga Mat".')] = None,
    brand: Annotated[str | None, Field(description="Only this brand.")] = None,
    attributes: Annotated[
        dict[str, str] | None,
        Field(description='Such as {"material": "Bamboo"}; with a category also of variants.'),
    ] = None,
    in_stock: Annotated[bool, Field(description="Only what can be bought now.")] = False,
    sort: Annotated[
        Sort,
        Field(
            description="Cheapest, best rated or soonest first. Without a category, only of the best hits."
        ),
    ] = None,
    page: Annotated[int | None, Field(description="From 1.")] = None,
    **limits: float | None,
) -> dict[str, Any]:
    """Search the catalog: pages of five results that pass all filters, and sponsored rows that may not. Left out: what
    a filter fixes, and a brand that begins the title."""
    found = filters_of(world, category, brand, attributes)
    bounds = [
        Constraint(limit.name, limit.op, _amount(value, limit.scale))
        for limit in declared()
        if (value := limits.get(limit.filter)) is not None
    ]
    page = 1 if page is None else page
    if page < 1:
        raise RefusedError("pages count from 1")
    words = (query or found.kind or "").encode("utf-8", "replace").decode()
    if not words:
        raise RefusedError("give words to look for, or a category")
    filters = (*found.constraints, *bounds)
    records, pages = world.search(
        words, filters, (sort,) if sort else (), min(page, 10_000), in_stock, found.option
    )
    return {"results": [shortened(r, found.fixed) for r in records], "page": page, "pages": pages}


def search_tool(*more: SlotType) -> Tool:
    """Make the search that filters by the limits of every customer and by `more`, one argument each."""

    def catalog_search(world: World, **arguments: Any) -> dict[str, Any]:
        return _search(world, **arguments)

    *given, _ = inspect.signature(_search).parameters.values()
    kind, place = inspect.Parameter.POSITIONAL_OR_KEYWORD, [one.name for one in given].index("in_stock")
    for limit in reversed((*LIMITS, *more)):
        number: Any = float | None if limit.scale > 1 else int | None
        said = Annotated[number, Field(description=limit.filter_help)]
        given.insert(place, inspect.Parameter(limit.filter, kind, default=None, annotation=said))
    catalog_search.__signature__ = inspect.Signature(given)  # type: ignore[attr-defined]
    catalog_search.__doc__ = _search.__doc__
    return tool(lists={"results": "product_id"}, ranked=True, words="query")(catalog_search)


catalog_search = search_tool()


def shortened(record: dict[str, Any], fixed: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out of a row a brand that begins its title, and what the call's own filters fix; of that a sponsored row,
    which need not pass them, leaves out nothing."""
    if _first_word(record["title"]) == record["brand"]:
        record = {name: value for name, value in record.items() if name != "brand"}
    if "sponsored" in record:
        return record
    row = {name: value for name, value in record.items() if name not in fixed or name == "attributes"}
    row["attributes"] = {n: v for n, v in record["attributes"].items() if n not in fixed["attributes"]}
    return row if row["attributes"] else {n: v for n, v in row.items() if n != "attributes"}


def whole(row: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Put back into a search's row what was left out of it because its title or the call's filters say it."""
    attributes = dict(row.get("attributes", {}))
    given = {"brand": _first_word(row["title"])}
    if "sponsored" in row:
        return {**given, **row, "attributes": attributes}
    said = {"type": arguments.get("category"), "brand": arguments.get("brand")}
    given |= {name: value for name, value in said.items() if value is not None}
    return {**given, **row, "attributes": {**(arguments.get("attributes") or {}), **attributes}}


def _first_word(title: str) -> str:
    return title.partition(" ")[0]


@tool(lists={"variants": "variant_id"})
def catalog_get_variants(world: World, product_id: ProductId) -> dict[str, Any]:
    """List a product's variants and their stock: sizes and the like from small to large, none where it has none."""
    row = world.row(product_id)
    world.shown.add(product_id)
    variants = []
    for option in world.options(row):
        world.shown_pairs.add((product_id, option))
        world.touched.append((row, option))
        variants.append({"variant_id": option, "stock": world.stock(row, option)})
    return {
        "product_id": product_id,
        "attribute": world.catalog.type_of(row).option.name if variants else None,
        "variants": variants,
    }


@tool
def catalog_get_product(world: World, product_id: ProductId) -> dict[str, Any]:
    """Show one product with all its attributes."""
    return {"product": world.show(world.row(product_id))}


@tool(lists={"products": "product_id"})
def catalog_get_reviews(
    world: World,
    product_ids: Annotated[list[str], Field(description="At most five, as shown.")],
) -> dict[str, Any]:
    """Show what the makers of products say of them, and what their buyers write, the latest first. Verified buyers
    bought it here."""
    if len(product_ids) > PAGE:
        raise RefusedError(f"reviews of at most {PAGE} products are shown at a time, not {len(product_ids)}")
    today, held = world.given.get("today", TODAY), TaskKey(*world.key).seed in EVALUATION_SEEDS
    products = []
    for product_id in dict.fromkeys(product_ids):
        maker, written = shown_of(world.row(product_id), world.catalog)
        world.shown.add(product_id)
        records = sorted((one.record(today, held) for one in written), key=lambda one: one["date"])
        said = {"maker": maker} if maker else {}
        products.append({"product_id": product_id, **said, "reviews": records[::-1]})
    return {"products": products}


@tool(lists={"results": "product_id"}, ranked=True)
def catalog_rerank(
    world: World,
    product_ids: Annotated[list[str], Field(description="As shown.")],
    sort: Annotated[Sort, Field(description="As in catalog_search.")] = None,
) -> dict[str, Any]:
    """Show products again, in the order asked for."""
    if len(product_ids) > MOST_RERANKED:
        raise RefusedError(f"at most {MOST_RERANKED} products are ordered at a time, not {len(product_ids)}")
    unseen = [product_id for product_id in product_ids if product_id not in world.shown]
    if unseen:
        raise RefusedError(f"no tool has shown {unseen[0]!r} yet; search for it first")
    rows = np.array([world.row(product_id) for product_id in product_ids], int)
    ordered = world.shop.engine.ordered(rows, (sort,)) if sort else rows
    return {"results": [world.show(row) for row in dict.fromkeys(ordered.tolist())], "page": 1, "pages": 1}


@tool
def datetime_now(world: World) -> dict[str, Any]:
    """Tell today's date."""
    today = world.given.get("today", TODAY)
    return {"today": today, "weekday": f"{date.fromisoformat(today):%A}"}


@tool(lists={"visits": "product_id"})
def user_get_visit_history(
    world: World, category: Annotated[str | None, Field(description="Only this type.")] = None
) -> dict[str, Any]:
    """List what the customer looked at lately, the newest first."""
    kind = filters_of(world, category).kind
    rows = [world.row(product_id) for product_id in world.visits]
    records = [world.show(row) for row in rows if kind is None or world.catalog.type_of(row).name == kind]
    names = ("product_id", "title", "price", "stock", "attributes")
    return {"visits": [{name: r[name] for name in names} for r in records]}


@tool
def submit(
    world: World, product_ids: Annotated[list[str], Field(description="The products, the best first.")]
) -> dict[str, Any]:
    """Hand in the products; the conversation ends."""
    return {"submitted": True}


def _amount(value: float, scale: int) -> int:
    if isinstance(value, float) and not math.isfinite(value):
        raise RefusedError(f"{value} is not an amount")
    return round(min(max(value, 0), 1e7) * scale)


PRODUCT_TOOLS = (
    catalog_search,
    catalog_get_product,
    catalog_get_variants,
    catalog_rerank,
    datetime_now,
)
"""Tools of environments whose answer is a list of products."""
