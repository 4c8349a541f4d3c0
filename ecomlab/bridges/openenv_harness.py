"""OpenEnv's harness API: sessions whose tasks a stream draws, for harnesses that step a session or that it plays for.

`StreamSessions` makes them: rollouts that are created with the same `task`, a text, are of one group. A harness that
samples calls `call_tool`, and reaches the customer by ask_user alone. With `sample`, which answers token ids by a turn,
the session plays its own loop, the customer's words included, and returns what is to be trained: OpenEnv's
`TrainableSession`.
"""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

from openenv.core.env_server.mcp_types import Tool
from openenv.core.harness import (
    ResourceSession,
    ResourceSessionFactory,
    ToolResult,
    TrainingTrace,
    VerifyResult,
)

from ecomlab.bridges.common import play_call, score_to_json
from ecomlab.episode.episode import ask_user
from ecomlab.models.renderer import Renderer
from ecomlab.models.samplers.sampled import Sampled
from ecomlab.reward import Score
from ecomlab.training.stream import Groups, Stream

Sample = Callable[[list[int]], Sampled]
"""Samples a turn after these ids."""
STOPPED = "the harness stopped the rollout"


class StreamSession(ResourceSession):
    """One rollout."""

    def __init__(self, groups: Groups, name: str, renderer: Renderer | None, sample: Sample | None) -> None:
        self._groups, self._name, self._renderer, self._sample = groups, name, renderer, sample
        self._ticket, self._episode = groups.open(name)
        self._turns: list[dict[str, Any]] = []
        self._score: Score | None = None
        self._reported = False

    def initial_messages(self) -> list[dict[str, Any]]:
        return list(self._episode.messages)

    def list_tools(self) -> list[Tool]:
        schemas = [tool["function"] for tool in [*self._episode.tools, ask_user.schema]]
        named = {one["name"]: one for one in schemas}
        return [
            Tool(name=name, description=one["description"], input_schema=one["parameters"])
            for name, one in named.items()
        ]

    def call_tool(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Play a message with one call; the data are the tool's result and the customer's reply."""
        episode = self._episode
        if episode.done:
            return ToolResult(error="the conversation is over", done=True)
        return ToolResult(data=play_call(episode, name, arguments), done=episode.done)

    def wait_for_completion(self, timeout_s: float | None = None) -> int:
        """Play the whole rollout by `sample`. Raises ValueError for a session without one."""
        if self._sample is None or self._renderer is None:
            raise ValueError(
                "this session plays no loop of its own: give StreamSessions a renderer and `sample`"
            )
        episode = self._groups.stream.open_tokens(self._ticket, self._renderer)
        while not episode.done:
            before, said = list(episode.context), self._sample(list(episode.context))
            self._turns.append(
                {
                    "prompt_token_ids": before,
                    "completion_token_ids": list(said.ids),
                    "per_token_logps": list(said.logprobs),
                    "loss_mask": [0] * len(before) + [1] * len(said.ids),
                    "metadata": {"node_id": f"{self._name}-{uuid4().hex}"},
                }
            )
            episode.act(said)
        assert episode.rollout is not None
        self._score = episode.rollout.score
        return 0

    def fetch_training_trace(self) -> TrainingTrace:
        """Return the turns that the loop sampled, with exact ids, log-probabilities and masks."""
        return TrainingTrace.from_entries(self._turns)

    def verify(self, transcript: list[dict[str, Any]], final_state: Any | None = None) -> VerifyResult:
        """Score the rollout: no reward if it is unscored. One that stopped before its end is truncated."""
        if self._score is None:
            if not self._episode.done:
                self._episode.end_truncated(STOPPED)
            self._score = self._episode.score()
        score = self._score
        self._report(score)
        return VerifyResult(
            env_reward=None if score.unscored else score.value,
            done=True,
            metrics={"correct": float(score.correct), **score.parts},
            artifacts={"score": score_to_json(score)},
        )

    def close(self) -> None:
        self._report(None)

    def _report(self, score: Score | None) -> None:
        if not self._reported:
            self._groups.end(self._name, score)
        self._reported = True


class StreamSessions(ResourceSessionFactory[StreamSession]):
    """Makes the sessions of a stream's groups."""

    def __init__(
        self, stream: Stream, size: int = 8, renderer: Renderer | None = None, sample: Sample | None = None
    ) -> None:
        self._groups, self._renderer, self._sample = Groups(stream, size), renderer, sample

    def create(self, task: Any, seed: int | None = None, episode_id: str | None = None) -> StreamSession:
        """Create a rollout of the group named `task`. Raises ValueError once all of a group's have begun."""
        return StreamSession(self._groups, str(task), self._renderer, self._sample)
