"""JOURNEY: a conversation that chains two to five of the other environments in one world."""

import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ecomlab.answers.outcomes import Outcome
from ecomlab.answers.status import Status
from ecomlab.catalog import Shop
from ecomlab.customer.templates import Phrases
from ecomlab.difficulty import Difficulty
from ecomlab.envs.base import Environment
from ecomlab.envs.journey.audit import JourneyAudit
from ecomlab.envs.journey.player import JourneyPlayer
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.players.base import Perturbation
from ecomlab.task import Need, Player, TaskError
from ecomlab.tool import Tool, tool
from ecomlab.world.state import World


@tool
def submit(
    world: World,
    done: Annotated[bool | None, Field(description="Cart: it is right.")] = None,
    product_ids: Annotated[
        list[str] | None, Field(description="Recommendations, replacements, list.")
    ] = None,
    unmet: Annotated[
        list[str] | None,
        Field(description="Recommendations: demands not met together. List: things left out."),
    ] = None,
    order_id: Annotated[str | None, Field(description="Return, status: which order.")] = None,
    line_id: Annotated[str | None, Field(description="Return: which line.")] = None,
    outcome: Annotated[Outcome | None, Field(description="Return.")] = None,
    last_return_day: Annotated[
        str | None, Field(description='Declined return: last day it was or is possible, or "never".')
    ] = None,
    refund: Annotated[
        str | None, Field(description="Return: what the customer gets back after all fees.")
    ] = None,
    replacement: Annotated[str | None, Field(description="Return: id of a product for it.")] = None,
    status: Annotated[Status | None, Field(description="Status.")] = None,
    date: Annotated[
        str | None, Field(description="Status: day its last parcel was delivered or is expected.")
    ] = None,
    answer: Annotated[
        str | None, Field(description="Policy: a number with its unit, yes or no, or a name.")
    ] = None,
    clause: Annotated[str | None, Field(description="Policy: the deciding clause.")] = None,
) -> dict[str, Any]:
    """Hand in the job at hand, with its own fields alone; the customer then says what is next."""
    raise AssertionError("a journey hands in by the subtask's own submit")


class Journey(Environment):
    id, version = "JOURNEY", 3
    submit = submit
    phrases = Phrases.load(Path(__file__).with_name("phrases.toml"))
    player, auditor = JourneyPlayer, JourneyAudit
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
        """Add up the needs of the most demanding subtasks, because the actual ones are not known beforehand."""
        jobs = items or math.ceil(axes.journey.subtasks)
        needs = [ENVIRONMENTS[env].budget(axes, shop, None) for env in self.composes]
        turns, calls = ([getattr(need, name) for need in needs] for name in ("turns", "calls"))
        return Need(*(sum(sorted(some, reverse=True)[:jobs]) for some in (turns, calls)))

    @property
    def tools(self) -> Sequence[Tool]:  # type: ignore[override]
        """Tools of every subtask that a journey may have, so that the offered tools reveal nothing about this one."""
        offered: dict[str, Tool] = {}
        for env in self.composes:
            for one in ENVIRONMENTS[env].tools:
                if offered.setdefault(one.name, one) is not one:
                    raise TaskError(
                        f"{env} and an environment before it have two tools {one.name}; rename one"
                    )
        return tuple(offered.values())

    def reference_player(
        self,
        shop: Shop,
        perturbation: Perturbation | None = None,
        courteous: bool = False,
        lacks: Collection[str] = (),
        contrary: Collection[str] = (),
    ) -> JourneyPlayer:
        return self._player(
            lambda env: ENVIRONMENTS[env].reference_player(shop, perturbation, courteous, lacks, contrary),
            lacks,
        )

    def oracle(self, episode: Any) -> Player:
        by_env = {subtask.task.env: subtask for subtask in episode.subtasks}
        return self._player(lambda env: ENVIRONMENTS[env].oracle(by_env[env]))

    def _player(self, make: Any, lacks: Collection[str] = ()) -> JourneyPlayer:
        return JourneyPlayer({env: ENVIRONMENTS[env].phrases.intros for env in self.composes}, make, lacks)
