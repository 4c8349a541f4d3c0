"""JOURNEY: a conversation that chains two to five of the other environments in one world."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ecomlab.catalog import Shop
from ecomlab.customer.templates import Phrases
from ecomlab.difficulty import Difficulty
from ecomlab.envs.base import Environment
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.players.base import Perturbation
from ecomlab.players.journey import JourneyPlayer
from ecomlab.task import Need, Player
from ecomlab.tool import Tool, tool
from ecomlab.world.orders.history import STATUSES
from ecomlab.world.state import World


@tool
def submit(
    world: World,
    done: Annotated[bool | None, Field(description="A cart: it is as the customer wants it.")] = None,
    product_ids: Annotated[
        list[str] | None, Field(description="Recommendations, substitutes, a list.")
    ] = None,
    order_id: Annotated[str | None, Field(description="Returns and order status: which order.")] = None,
    line_id: Annotated[str | None, Field(description="Returns: which line of it.")] = None,
    outcome: Annotated[str | None, Field(description='Returns: "returned" or "declined".')] = None,
    last_return_day: Annotated[
        str | None,
        Field(description='Declined returns: the last day on which it is or was possible, or "never".'),
    ] = None,
    replacement: Annotated[str | None, Field(description="Returns: the product id of a replacement.")] = None,
    status: Annotated[str | None, Field(description=f"Order status, one of: {', '.join(STATUSES)}.")] = None,
    date: Annotated[
        str | None,
        Field(description="Order status: the day on which its last parcel was delivered or is expected."),
    ] = None,
    answer: Annotated[
        str | float | int | None,
        Field(description="Questions about policy: a number with its unit, yes or no, or a name."),
    ] = None,
    clause: Annotated[str | None, Field(description="Questions about policy: the deciding clause.")] = None,
) -> dict[str, Any]:
    """Hand in the job at hand with the fields that belong to it; the customer then says what is next."""
    raise AssertionError("a journey hands in by the subtask's own submit")


class Journey(Environment):
    id, version = "JOURNEY", 1
    submit = submit
    phrases = Phrases.load(Path(__file__).parent / "phrases" / "JOURNEY.toml")
    player = JourneyPlayer
    composes = ("CART", "PD", "SUB", "RETURN", "STATUS", "POLICY", "BUNDLE")

    @property
    def brief(self) -> str:  # type: ignore[override]
        headings = self.phrases.data["headings"]
        jobs = [f"{headings[env]}: {ENVIRONMENTS[env].brief}" for env in self.composes]
        return " ".join(
            (
                "The customer has several jobs, one after the other; call submit when one is done, with the fields "
                "that belong to it. Each is one of these.",
                *jobs,
            )
        )

    def budget(self, axes: Difficulty, shop: Shop, items: int | None) -> Need:
        """Count what the most demanding subtasks need, so many of them: which ones come is not told beforehand."""
        jobs = items or math.ceil(axes.journey.subtasks)
        needs = [ENVIRONMENTS[env].budget(axes, shop, None) for env in self.composes]
        turns, calls = ([getattr(need, name) for need in needs] for name in ("turns", "calls"))
        return Need(*(sum(sorted(some, reverse=True)[:jobs]) for some in (turns, calls)))

    @property
    def tools(self) -> Sequence[Tool]:  # type: ignore[override]
        """Tools of every subtask that a journey may have, so that what is offered tells nothing about this one."""
        offered = {tool.name: tool for env in self.composes for tool in ENVIRONMENTS[env].tools}
        return tuple(offered.values())

    def reference_player(self, shop: Shop, perturbation: Perturbation | None = None) -> JourneyPlayer:
        return self._player(lambda env: ENVIRONMENTS[env].reference_player(shop, perturbation))

    def oracle(self, episode: Any) -> Player:
        by_env = {subtask.task.env: subtask for subtask in episode.subtasks}
        return self._player(lambda env: ENVIRONMENTS[env].oracle(by_env[env]))

    def _player(self, make: Any) -> JourneyPlayer:
        return JourneyPlayer({env: ENVIRONMENTS[env].phrases.intros for env in self.composes}, make)
