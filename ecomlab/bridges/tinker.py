"""tinker-cookbook: the batches of its training loop, drawn from a stream of ecomlab.

    StreamDataset(stream, renderer, batches=100)        # what an RLDatasetBuilder of yours returns

Episodes are played in token ids by our renderer of the model, which only appends, so that the cookbook trains each as
one sequence. Outcomes reach the stream in the process that plays, so its rollouts stay in one process, its default.
"""

from collections.abc import Sequence
from typing import Any

import tinker
from tinker_cookbook.rl.types import Env, EnvGroupBuilder, RLDataset, StepResult

from ecomlab.models.renderer import Renderer
from ecomlab.models.samplers.sampled import Sampled
from ecomlab.training.stream import Stream, Ticket, TokenEpisode


class ShoppingEnv(Env):
    """One rollout."""

    def __init__(self, episode: TokenEpisode, stop_ids: Sequence[int]) -> None:
        self.episode, self.stop_ids = episode, list(stop_ids)

    async def initial_observation(self) -> tuple[tinker.ModelInput, list[int]]:
        """Return the prompt's ids. Raises RuntimeError if the task could not be drawn."""
        if self.episode.rollout is not None:
            raise RuntimeError(f"no task: {self.episode.rollout.score.why}")
        return tinker.ModelInput.from_ints(self.episode.context), self.stop_ids

    async def step(self, action: list[int], *, extra: Any = None) -> StepResult:
        """Play a turn. Raises RuntimeError for an unscored episode, which the cookbook counts as an error."""
        cut = (extra or {}).get("stop_reason") == "length"
        self.episode.act(
            Sampled(list(action), [0.0] * len(action), cut)
        )  # its log-probabilities stay with the cookbook
        over = self.episode.rollout
        if over is not None and over.score.unscored:
            raise RuntimeError(f"unscored: {over.score.why}")
        return StepResult(
            reward=over.score.value if over else 0.0,
            episode_done=over is not None,
            next_observation=tinker.ModelInput.from_ints(self.episode.context),
            next_stop_condition=self.stop_ids,
            metrics={"correct": float(over.score.correct), "turns": over.turns} if over else {},
        )


class StreamGroup(EnvGroupBuilder):
    """The rollouts of a ticket."""

    def __init__(self, stream: Stream, ticket: Ticket, renderer: Renderer, size: int) -> None:
        self.stream, self.ticket, self.renderer, self.size = stream, ticket, renderer, size
        self._envs: list[ShoppingEnv] = []

    async def make_envs(self) -> Sequence[Env]:
        opened = (self.stream.open_tokens(self.ticket, self.renderer) for _ in range(self.size))
        self._envs = [ShoppingEnv(episode, self.renderer.stop_ids) for episode in opened]
        return self._envs

    async def cleanup(self) -> None:
        """Report the outcomes; a rollout that did not end has none."""
        over = [env.episode.rollout for env in self._envs]
        if self._envs:
            self.stream.report(self.ticket, [rollout.score if rollout else None for rollout in over])
        self._envs = []

    def logging_tags(self) -> list[str]:
        return [self.ticket.draw.env]


class StreamDataset(RLDataset):
    """Batches of groups, drawn when the loop asks for them."""

    def __init__(
        self, stream: Stream, renderer: Renderer, *, batches: int, groups: int = 8, group_size: int = 8
    ) -> None:
        self.stream, self.renderer = stream, renderer
        self.batches, self.groups, self.group_size = batches, groups, group_size

    def get_batch(self, index: int) -> Sequence[EnvGroupBuilder]:
        """Draw a batch. Its number does not matter: to resume, restore the stream."""
        tickets = [self.stream.next_group() for _ in range(self.groups)]
        return [StreamGroup(self.stream, ticket, self.renderer, self.group_size) for ticket in tickets]

    def __len__(self) -> int:
        return self.batches
