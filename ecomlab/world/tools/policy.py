"""The tool that reads the policy book."""

from typing import Annotated, Any

from pydantic import Field

from ecomlab.tool import tool
from ecomlab.world.state import World


@tool(lists={"sections": "section"}, ranked=True)
def policy_search(
    world: World, query: Annotated[str, Field(description="What the rule is about, or a section's title.")]
) -> dict[str, Any]:
    """Search the store's policy book. Shows the section that fits best, clause ids in brackets, titles of others, and
    the words of the query that no title has. Search for a title to read its section, for "" to list all titles."""
    book = world.book
    if book is None:
        return {"sections": [], "others": [], "not_in_titles": []}
    sections, others = book.find(query)
    return {"sections": sections, "others": others, "not_in_titles": book.words_without(query)}
