"""The tool that reads the policy book."""

from typing import Annotated, Any

from pydantic import Field

from ecomlab.tool import tool
from ecomlab.world.policy_book.search import search
from ecomlab.world.state import World


@tool(lists={"sections": "section"}, ranked=True)
def policy_search(
    world: World, query: Annotated[str, Field(description="What the rule is about, in words.")]
) -> dict[str, Any]:
    """Search the store's policy book; shows the few sections whose words fit best. Clause ids stand in brackets."""
    book = world.given.get("policies")
    return {"sections": search(book, query, world.catalog) if book else []}
