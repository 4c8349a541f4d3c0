"""Tools of the catalog. Docstrings are written to the model; results are JSON objects."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from ecomlab.catalog import Constraint, ProductType
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.suggest import unknown
from ecomlab.tool import RefusedError, Tool, tool
from ecomlab.world.state import PAGE, World

MOST_RERANKED = 100
TODAY = "2026-03-02"
"""Date in tasks that have no date of their own."""

ProductId = Annotated[str, Field(description="A product id exactly as a tool showed it.")]
VariantId = Annotated[
    str | None, Field(description="A variant id exactly as catalog_get_variants showed it.")
]
Sort = Annotated[
    list[Literal["price", "-price", "rating", "delivery"]] | None,
    Field(
        description="Order by these, the first matters most: price (cheapest first), -price (dearest first), "
        "rating (best first), delivery (soonest first). With a category the whole category is ordered, without one "
        "the most relevant results. Nothing: by relevance."
    ),
]


@tool(lists={"results": "product_id"}, ranked=True)
def catalog_search(
    world: World,
    query: Annotated[str, Field(description="What to look for, in words.")],
    brand: Annotated[str | None, Field(description="Only this brand.")] = None,
    price_max: Annotated[float | None, Field(description="Dollars, at most.")] = None,
    rating_min: Annotated[float | None, Field(description="Stars, at least.")] = None,
    ship_days_max: Annotated[int | None, Field(description="Days until delivery, at most.")] = None,
    attributes: Annotated[
        dict[str, str] | None, Field(description='Exact attribute values, such as {"material": "Bamboo"}.')
    ] = None,
    category: Annotated[
        str | None, Field(description='Only products of this type, such as "Yoga Mat".')
    ] = None,
    in_stock: Annotated[bool, Field(description="Only what can be bought now.")] = False,
    sort: Sort = None,
    page: Annotated[int, Field(description="Page of results, from 1.")] = 1,
) -> dict[str, Any]:
    """Search the product catalog. Filters apply before ranking; results come in pages of five."""
    filters = []
    kind = None if category is None else lexicon_of(world.catalog).types[_name("type", category, world)]
    if kind is not None:
        filters.append(Constraint("type", "==", kind.name))
    if brand is not None:
        filters.append(Constraint("brand", "==", _name("brand", brand, world)))
    if price_max is not None:
        filters.append(Constraint("price", "<=", _hundredths(price_max, 100)))
    if rating_min is not None:
        filters.append(Constraint("rating", ">=", _hundredths(rating_min, 10)))
    if ship_days_max is not None:
        filters.append(Constraint("days", "<=", min(max(ship_days_max, 0), 10_000)))
    for name, value in sorted((attributes or {}).items()):
        filters.append(_attribute(name, value, kind, world))
    if page < 1:
        raise RefusedError("pages count from 1")
    query = query.encode("utf-8", "replace").decode()
    results, pages = world.search(query, tuple(filters), sort or (), min(page, 10_000), in_stock)
    if page > pages:
        raise RefusedError(f"there are only {pages} pages, {PAGE} results each")
    return {"results": results, "page": page, "pages": pages}


def _name(what: Literal["type", "brand"], said: str, world: World) -> str:
    """Find the type or brand of that name in any case. Raises RefusedError: an empty result would look sold out."""
    lexicon = lexicon_of(world.catalog)
    name = lexicon.exact(what, said)
    if name is None:
        near = lexicon.nearest(what, said[:100])
        hint = f"did you mean {near[0]!r}?" if near else "search without it to see which there are"
        raise RefusedError(f"no {'category' if what == 'type' else what} {said[:100]!r}; {hint}")
    return name


def _attribute(name: str, value: str, kind: ProductType | None, world: World) -> Constraint:
    """Make a filter on an attribute, of `kind` if given. Raises RefusedError for an unknown attribute or value."""
    catalog = world.catalog
    known: Mapping[str, Sequence[str]] = (
        catalog.attr_values if kind is None else {a.name: a.values for a in kind.attributes}
    )
    what = "attribute" if kind is None else f"attribute of {kind.plural}"
    folded = {n.casefold(): n for n in known}
    found = folded.get(name.casefold().replace(" ", "_"))
    if found is None:
        if kind is not None and name.casefold() == kind.option.name:
            raise RefusedError(
                f"{name!r} is what the variants of {kind.plural} differ in; see catalog_get_variants"
            )
        raise RefusedError(unknown(what, name[:100], known))
    values = {v.casefold(): v for v in known[found]}
    if value.casefold() not in values:
        raise RefusedError(unknown(found, value[:100], known[found]))
    return Constraint(f"attr:{found}", "==", values[value.casefold()])


@tool(lists={"variants": "variant_id"})
def catalog_get_variants(world: World, product_id: ProductId) -> dict[str, Any]:
    """List the variants (size, connector, material, ...) of a product and how many of each are in stock."""
    row = world.row(product_id)
    world.shown.add(product_id)
    variants = []
    for option in world.options(row):
        world.shown_pairs.add((product_id, option))
        world.touched.append((row, option))
        variants.append({"variant_id": option, "stock": world.stock(row, option)})
    return {
        "product_id": product_id,
        "attribute": world.catalog.type_of(row).option.name,
        "variants": variants,
    }


@tool
def catalog_get_product(world: World, product_id: ProductId) -> dict[str, Any]:
    """Show one product: title, brand, type, price, rating, delivery, stock and attributes."""
    return {"product": world.show(world.row(product_id))}


@tool(lists={"results": "product_id"}, ranked=True)
def catalog_rerank(world: World, product_ids: list[str], sort: Sort = None) -> dict[str, Any]:
    """Show products that a tool has shown before, in the order asked for."""
    if len(product_ids) > MOST_RERANKED:
        raise RefusedError(f"at most {MOST_RERANKED} products are ordered at a time, not {len(product_ids)}")
    unseen = [product_id for product_id in product_ids if product_id not in world.shown]
    if unseen:
        raise RefusedError(f"no tool has shown {unseen[0]!r} yet; search for it first")
    rows = np.array([world.row(product_id) for product_id in product_ids], int)
    ordered = world.shop.engine.ordered(rows, sort) if sort else rows
    return {"results": [world.show(row) for row in dict.fromkeys(ordered.tolist())], "page": 1, "pages": 1}


@tool
def datetime_now(world: World) -> dict[str, Any]:
    """Tell today's date."""
    return {"today": world.given.get("today", TODAY)}


@tool(lists={"visits": "product_id"})
def user_get_visit_history(world: World) -> dict[str, Any]:
    """List the products that the customer looked at lately, in no particular order."""
    records = [world.show(world.row(product_id)) for product_id in world.visits]
    return {
        "visits": [{name: r[name] for name in ("product_id", "title", "price", "stock")} for r in records]
    }


@tool
def submit(
    world: World, product_ids: Annotated[list[str], Field(description="The products, the best first.")]
) -> dict[str, Any]:
    """Hand in the products; the conversation ends."""
    return {"submitted": True}


def _hundredths(value: float, scale: int) -> int:
    if not math.isfinite(value):
        raise RefusedError(f"{value} is not an amount")
    return round(min(max(value, 0.0), 1e7) * scale)


def named(*tools: Tool) -> dict[str, Tool]:
    """Index tools by name, in the order given."""
    return {t.name: t for t in tools}


CATALOG = named(catalog_search, catalog_get_product, catalog_get_variants, catalog_rerank, datetime_now)
"""Tools of environments whose answer is a list of products."""
