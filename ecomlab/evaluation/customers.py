"""What an evaluation records of the endpoint that words the customer."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ecomlab.customer.llm import UNASKED, Chat
from ecomlab.evaluation.contestant import Usage

if TYPE_CHECKING:
    from ecomlab.episode.record import Trajectory


def customer_identity(customer: Chat | None) -> dict[str, Any]:
    """Name the endpoint under "customer", by its `identity` if it has one; nothing where the templates are said."""
    if customer is None:
        return {}
    known = getattr(customer, "identity", None)
    return {"customer": dict(known) if isinstance(known, Mapping) else repr(customer)}


def customer_usage(trajectory: "Trajectory") -> dict[str, Usage]:
    """Add up an episode's requests for words: tokens as far as the endpoint told them, and the time waited."""
    if not trajectory.wording:
        return {}
    asked = [one for one in trajectory.wording if one["refused"] != UNASKED]
    costs = (Usage(**{"requests": 1, **one.get("usage", {}), "seconds": one["seconds"]}) for one in asked)
    return {"customer": sum(costs, Usage())}


def customer_notes(trajectory: "Trajectory") -> dict[str, Any]:
    """Count an episode's rewordings and labels, and those that were refused by reason."""
    if not trajectory.wording:
        return {}
    tasks = Counter(one["task"] for one in trajectory.wording)
    refused = Counter(one["refused"] for one in trajectory.wording if one["refused"])
    return {"customer": {**tasks, "refused": dict(refused)}}
