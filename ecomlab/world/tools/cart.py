"""Tools of the cart."""

from typing import Any

from ecomlab.tool import tool
from ecomlab.world.state import World
from ecomlab.world.tools.catalog import ProductId, VariantId


@tool(acts=True)
def cart_add(
    world: World, product_id: ProductId, variant_id: VariantId = None, quantity: int = 1
) -> dict[str, Any]:
    """Put a product into the customer's cart, in a variant if the customer cares which."""
    world.add(product_id, variant_id, quantity)
    return _cart(world)


@tool(undoes=cart_add)
def cart_remove(world: World, product_id: ProductId, variant_id: VariantId = None) -> dict[str, Any]:
    """Take a line out of the cart."""
    world.remove(product_id, variant_id)
    return _cart(world)


@tool(acts=True)
def cart_set_quantity(
    world: World, product_id: ProductId, quantity: int, variant_id: VariantId = None
) -> dict[str, Any]:
    """Change the quantity of a line that is in the cart."""
    world.set_quantity(product_id, variant_id, quantity)
    return _cart(world)


@tool
def cart_view(world: World) -> dict[str, Any]:
    """Show what is in the cart."""
    return _cart(world)


def _cart(world: World) -> dict[str, Any]:
    lines = []
    for (product_id, variant_id), quantity in world.cart.items():
        title = world.catalog.title(world.row(product_id))
        lines.append(
            {"product_id": product_id, "title": title, "variant_id": variant_id, "quantity": quantity}
        )
    return {"cart": lines}
