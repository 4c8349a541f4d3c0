"""OpenEnv: all environments behind one server, `uvicorn ecomlab.bridges.openenv:app`, with one session per client.

A client names a task, or with ECOMLAB_SCHEDULE=adaptive a group: the first reset with a new group's name draws a
training task from the server's stream, the others get the same one, and once ECOMLAB_GROUP of them have ended, the
schedule hears their outcomes. Each worker process has a stream of its own, and /counts tells what it has done.
"""

import os
import threading
from functools import cached_property
from typing import Any
from uuid import uuid4

from fastapi import FastAPI
from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, ConcurrencyConfig, EnvironmentMetadata, Observation, State
from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

import ecomlab
from ecomlab.bridges.common import groups_of, outcome, read_message
from ecomlab.catalog import Shop, load_shop
from ecomlab.episode.episode import Episode, make_task
from ecomlab.reward import Score
from ecomlab.seeding import TRAINING_SEEDS, rng
from ecomlab.training.stream import Groups


class Settings(BaseSettings):
    """Settings of a server, from variables such as ECOMLAB_SESSIONS."""

    model_config = SettingsConfigDict(env_prefix="ECOMLAB_", extra="ignore")

    products: int = 20_000
    """Number of products in the shop."""
    sessions: int = Field(64, ge=1)
    """Maximum number of simultaneous sessions of a worker."""
    session_timeout: float = 600.0
    """Seconds after which a session without messages gives its place back."""
    schedule: str = ""
    """Of the training tasks of groups; empty: clients name their tasks."""
    envs: str = "C8"
    group: int = Field(8, ge=1)
    """Rollouts of a group; adaptive decides after 8 groups at the window's edge."""
    groups_per_step: int = Field(8, ge=1)
    seed: int = 0
    state: str = ""
    """File in which the stream's state is kept, from which a server that starts again goes on; for one worker."""


class Desk:
    """What the sessions of a worker share: the shop, the stream, its open groups, and counts."""

    def __init__(self, settings: Settings) -> None:
        self.settings = its = settings
        self.groups: Groups | None = None
        if its.schedule:
            more: dict[str, Any] = {"seed": its.seed, "groups_per_step": its.groups_per_step}
            self.groups = groups_of(its.schedule, its.envs, its.group, its.state, shop=its.products, **more)
        self.counts = {"pid": os.getpid(), "sessions": 0, "resets": 0, "episodes": 0, "steps": 0, "errors": 0}
        self._lock = threading.Lock()

    @cached_property
    def shop(self) -> Shop:
        """The shop, loaded by the first reset."""
        return load_shop(self.settings.products)

    def count(self, what: str, by: int = 1) -> None:
        with self._lock:
            self.counts[what] += by

    def open(self, name: str) -> Episode:
        """Open a rollout of a group. Raises ValueError."""
        if self.groups is None:
            raise ValueError("this server has no schedule: set ECOMLAB_SCHEDULE, or name a task, not a group")
        return self.groups.open(name)[1]

    def told(self) -> dict[str, Any]:
        """Tell counts and, of a schedule with windows, their upper edges."""
        if self.groups is None:
            return dict(self.counts)
        tops = {env: high for env, (_, high) in self.groups.stream.windows().items()}
        return {**self.counts, "groups": len(self.groups), "tops": tops}


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
    """One session: an episode at a time."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, desk: Desk | None = None) -> None:
        super().__init__()
        self.desk = desk or Desk(Settings())
        self.episode: Episode | None = None
        self._id: str | None = None
        self._group: str | None = None
        self._steps = 0
        self.desk.count("sessions")

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        env: str | None = None,
        difficulty: int | None = None,
        overrides: dict[str, float] | None = None,
        group: str | None = None,
        **others: Any,
    ) -> ShoppingObservation:
        """Begin the task that (env, difficulty, overrides, seed) names; without a seed, a training task chosen by the
        episode's id; or a rollout of a `group`. Raises what `make_task` raises, and ValueError for other arguments."""
        if others:
            raise ValueError(
                f"reset takes env, difficulty, overrides, seed and group, not {', '.join(others)}"
            )
        self._leave()
        self._id = episode_id or uuid4().hex
        if group is not None:
            if (seed, env, difficulty, overrides) != (None,) * 4:
                raise ValueError("a group's task is drawn by the server: name a group or a task, not both")
            self.episode, self._group = self.desk.open(group), group
        else:
            if seed is None:
                seed = int(rng("openenv", self._id).integers(len(TRAINING_SEEDS)))
            task = make_task(env or "CART", difficulty or 0, seed, self.desk.shop, overrides)
            self.episode = Episode(task, self.desk.shop)
        self._steps = 0
        self.desk.count("resets")
        return ShoppingObservation(messages=self.episode.messages, tools=self.episode.tools)

    def step(
        self, action: ShoppingAction, timeout_s: float | None = None, **others: Any
    ) -> ShoppingObservation:
        """Play one assistant message. An infrastructure error raises: the client gets an error, not a reward."""
        if self.episode is None:
            raise RuntimeError("there is no episode yet; call reset first")
        before, message = len(self.episode.messages) + 1, action.message
        try:
            turn = self.episode.act(read_message(message) if isinstance(message, str) else message)
        except Exception:
            self.desk.count("errors")
            self._leave()
            raise
        self._steps += 1
        self.desk.count("steps")
        seen = self.episode.messages[before:]
        if not turn.done:
            return ShoppingObservation(messages=seen)
        over = outcome(self.episode)
        self.desk.count("episodes")
        self._leave(self.episode.score())
        return ShoppingObservation(messages=seen, done=True, reward=over["score"]["value"], **over)

    def close(self) -> None:
        """Give a group's rollout up; OpenEnv calls this when the session ends or its time is out."""
        self._leave()

    def _leave(self, score: Score | None = None) -> None:
        if self._group is not None and self.desk.groups is not None:
            self.desk.groups.end(self._group, score)
        self._group = None

    @property
    def state(self) -> ShoppingState:
        task = self.episode.task.key._asdict() if self.episode else None
        done = bool(self.episode and self.episode.done)
        return ShoppingState(episode_id=self._id, step_count=self._steps, task=task, done=done)

    def get_metadata(self) -> EnvironmentMetadata:
        """Describe the server for OpenEnv's pages."""
        about = "Verifiable shopping-assistant environments: reset takes env, difficulty, overrides, seed, or a group."
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


def make_app(settings: Settings | None = None) -> FastAPI:
    """Make a worker's application."""
    desk = Desk(settings or Settings())
    limits = ConcurrencyConfig(
        max_concurrent_envs=desk.settings.sessions, session_timeout=desk.settings.session_timeout
    )
    made: FastAPI = create_app(
        lambda: ShoppingEnvironment(desk),
        ShoppingAction,
        ShoppingObservation,
        env_name="ecomlab",
        concurrency_config=limits,
        state_cls=ShoppingState,
    )
    made.add_api_route("/counts", desk.told, methods=["GET"])
    return made


app = make_app()
