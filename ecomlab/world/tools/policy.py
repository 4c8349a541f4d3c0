"""The tool that reads the policy book."""

from typing import Annotated, Any

from pydantic import Field

from ecomlab.tool import tool
from ecomlab.world.policy_book.search import search
from ecomlab.world.state import World


@tool(lists={"sections": "section"}, ranked=True)
def policy_search(
    world: World, query: Annotated[str, Field(description="What the rule is about, or a section's title.")]
) -> dict[str, Any]:
    """Search the store's policy book. Shows the section that fits best, clause ids in brackets, and titles of others;
    search for a title to read its section."""
    book = world.given.get("policies")
    sections, others = search(book, query, world.catalog) if book else ([], [])
    return {"sections": sections, "others": others}
