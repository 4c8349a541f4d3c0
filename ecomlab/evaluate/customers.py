"""What an evaluation records of the endpoint that words the customer."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ecomlab.evaluate.contestant import Usage

if TYPE_CHECKING:
    from ecomlab.customer.llm import Chat
    from ecomlab.episode.episode import Trajectory


def customer_identity(customer: "Chat | None") -> dict[str, Any]:
    """Name the endpoint under "customer", by its `identity` if it has one; nothing where the templates are said."""
    if customer is None:
        return {}
    known = getattr(customer, "identity", None)
    return {"customer": dict(known) if isinstance(known, Mapping) else repr(customer)}


def customer_usage(trajectory: "Trajectory") -> dict[str, Usage]:
    """Count an episode's requests for words, and the time waited; the tokens are known only to the endpoint."""
    asked = [one for one in trajectory.wording if one["refused"] != "not asked"]
    if not trajectory.wording:
        return {}
    return {"customer": Usage(requests=len(asked), seconds=sum(one["seconds"] for one in asked))}


def customer_notes(trajectory: "Trajectory") -> dict[str, Any]:
    """Count an episode's rewordings and labels, and those that were refused by reason."""
    if not trajectory.wording:
        return {}
    tasks = Counter(one["task"] for one in trajectory.wording)
    refused = Counter(one["refused"] for one in trajectory.wording if one["refused"])
    return {"customer": {**tasks, "refused": dict(refused)}}
