"""OpenEnv: all environments behind one server, `uvicorn ecomlab.bridges.openenv:app`, with one session per client."""

from functools import partial
from typing import Any
from uuid import uuid4

from fastapi import FastAPI
from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, EnvironmentMetadata, Observation, State
from pydantic import Field

import ecomlab
from ecomlab.bridges.common import outcome, read_message
from ecomlab.catalog import load_shop
from ecomlab.episode.episode import Episode, make_task
from ecomlab.seeding import TRAINING_SEEDS, rng

SESSIONS = 64
"""Maximum number of simultaneous sessions."""


class ShoppingAction(Action):
    """One assistant message."""

    message: dict[str, Any] | str = Field(description="A message in OpenAI's shape, or a model's raw output.")


class ShoppingObservation(Observation):
    """Messages that came back. `reward` is null until `done`, then the score's value."""

    messages: list[dict[str, Any]] = Field(description="After reset the whole prompt, else what came back.")
    tools: list[dict[str, Any]] = Field(default_factory=list, description="OpenAI schemas; after reset only.")
    score: dict[str, Any] | None = Field(default=None, description="At the end: value, correct, why, parts.")
    end: str | None = Field(default=None, description="How the episode ended.")
    turns: int = Field(default=0, description="Messages that count against the budget.")
    calls: int = Field(default=0, description="Tool calls that count against the budget.")


class ShoppingState(State):
    """The episode of a session, by its task's key, without withheld slots."""

    task: dict[str, Any] | None = None
    done: bool = False


class ShoppingEnvironment(Environment[ShoppingAction, ShoppingObservation, ShoppingState]):
    """One session: an episode at a time. All sessions share the shop, which never changes."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, size: int = 20_000) -> None:
        """Load the generated shop of `size` products."""
        super().__init__()
        self.shop = load_shop(size)
        self.episode: Episode | None = None
        self._id: str | None = None
        self._steps = 0

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        env: str = "CART",
        difficulty: int = 0,
        overrides: dict[str, float] | None = None,
        **others: Any,
    ) -> ShoppingObservation:
        """Begin the task that (env, difficulty, overrides, seed) names; without a seed, a training task
        chosen by the episode's id. Raises the errors of `make_task`, and ValueError for any other argument."""
        if others:
            raise ValueError(f"reset takes env, difficulty, overrides and seed, not {', '.join(others)}")
        self._id = episode_id or uuid4().hex
        if seed is None:
            seed = int(rng("openenv", self._id).integers(len(TRAINING_SEEDS)))
        self.episode = Episode(make_task(env, difficulty, seed, self.shop, overrides), self.shop)
        self._steps = 0
        return ShoppingObservation(messages=self.episode.messages, tools=self.episode.tools)

    def step(
        self, action: ShoppingAction, timeout_s: float | None = None, **others: Any
    ) -> ShoppingObservation:
        """Play one assistant message. An infrastructure error raises: the client gets an error, not a reward."""
        if self.episode is None:
            raise RuntimeError("there is no episode yet; call reset first")
        before, message = len(self.episode.messages) + 1, action.message
        turn = self.episode.act(read_message(message) if isinstance(message, str) else message)
        self._steps += 1
        seen = self.episode.messages[before:]
        if not turn.done:
            return ShoppingObservation(messages=seen)
        over = outcome(self.episode)
        return ShoppingObservation(messages=seen, done=True, reward=over["score"]["value"], **over)

    @property
    def state(self) -> ShoppingState:
        task = self.episode.task.key._asdict() if self.episode else None
        done = bool(self.episode and self.episode.done)
        return ShoppingState(episode_id=self._id, step_count=self._steps, task=task, done=done)

    def get_metadata(self) -> EnvironmentMetadata:
        """Describe the server for OpenEnv's pages."""
        about = "Verifiable shopping-assistant environments: reset takes env, difficulty, overrides and seed."
        return EnvironmentMetadata(name="ecomlab", description=about, version=ecomlab.__version__)


class ShoppingClient(EnvClient[ShoppingAction, ShoppingObservation, ShoppingState]):
    """A client of the server, with a session of its own."""

    def _step_payload(self, action: ShoppingAction) -> dict[str, Any]:
        return action.model_dump()

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[ShoppingObservation]:
        told = {"reward": payload.get("reward"), "done": payload.get("done", False)}
        return StepResult(observation=ShoppingObservation(**payload["observation"], **told), **told)

    def _parse_state(self, payload: dict[str, Any]) -> ShoppingState:
        return ShoppingState(**payload)


def make_app(size: int = 20_000, sessions: int = SESSIONS) -> FastAPI:
    """Make the server's application: a shop of `size` products and a maximum number of sessions."""
    environment = partial(ShoppingEnvironment, size=size)
    return create_app(
        environment,
        ShoppingAction,
        ShoppingObservation,
        env_name="ecomlab",
        max_concurrent_envs=sessions,
        state_cls=ShoppingState,
    )


app = make_app()
