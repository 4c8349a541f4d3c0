"""Many episodes in lockstep: a policy plays a batch of tasks, recorded token for token as it was sampled.

Our own failures never become rewards (BROKEN IS NOT WRONG): an exception in an episode makes it unscored.
"""

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ecomlab.difficulty import Difficulty
from ecomlab.envs.registry import UnknownEnvironmentError
from ecomlab.episode.episode import Episode, make_task
from ecomlab.reward import Score
from ecomlab.task import Task

if TYPE_CHECKING:
    from ecomlab.catalog import Shop
    from ecomlab.models.renderer import Dialogue, Renderer
    from ecomlab.models.samplers.cached import Sampler

TRAINING_SEEDS = range(2**31)
EVALUATION_SEEDS = range(2**31, 2**32)
"""Tasks that are trained on and tasks that are evaluated on never share a seed."""


class Clock:
    """Seconds by phase; phases do not overlap, so they add up."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - began


@dataclass(frozen=True)
class Rollout:
    """One episode as the trainer needs it. All token lists after the prompt have the same length."""

    task: Task | None
    """None when it could not be drawn."""
    prompt_ids: list[int]
    """The tokens before the policy's first own."""
    completion_ids: list[int]
    """Everything from the policy's first token to its last: its own tokens, tool results and customer turns."""
    mask: list[int]
    """1 where the policy sampled the token, 0 elsewhere."""
    logprobs: list[float]
    """Log-probability at sampling time where `mask` is 1, else 0.0."""
    score: Score
    end: str
    """submit, turns, patience, invalid, truncated, or failed (ours)."""
    turns: int

    @property
    def sampled(self) -> int:
        """Tokens sampled by the policy."""
        return sum(self.mask)


@dataclass
class _Play:
    """One running episode: the only mutable object here, gone when the batch is done."""

    task: Task | None
    episode: Episode | None = None
    dialogue: "Dialogue | None" = None
    prompt: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    pending: list[int] = field(default_factory=list)
    """Ids that the policy has not read yet."""
    turns: int = 0
    end: str | None = None
    failure: str = ""


def draw_task(env: str, difficulty: int, seed: int, shop: "Shop") -> Task | Exception:
    """Draw the task of that key; return what its environment raised instead, if it did: `play_batch` takes either.

    Raises UnknownEnvironmentError, or ValueError for a level that does not exist.
    """
    Difficulty.at(
        difficulty
    )  # a level that does not exist is the caller's mistake, as an unknown environment is
    try:
        return make_task(env, difficulty, seed, shop)
    except UnknownEnvironmentError:
        raise
    except Exception as error:
        return error


def play_batch(
    tasks: Sequence[Task | Exception],
    streams: Sequence[np.random.Generator],
    shop: "Shop",
    sampler: "Sampler",
    renderer: "Renderer",
    clock: Clock | None = None,
) -> list[Rollout]:
    """Play every task once with the policy behind `sampler`; rollout i draws its randomness from `streams[i]` alone.

    An exception in a task's place makes an episode that failed before it began.
    `clock` learns how long the policy ("model") and everything else ("environment") took.
    """
    clock = clock or Clock()
    with clock.phase("environment"):
        plays = [_opened(task, shop, renderer) for task in tasks]
    sampler.start(streams)
    while live := [i for i, play in enumerate(plays) if play.end is None]:
        with clock.phase("model"):
            answers = sampler.turn(live, [plays[i].pending for i in live])
        with clock.phase("environment"):
            for i, said in zip(live, answers, strict=True):
                play = plays[i]
                if play.turns:  # what stood before the first turn is the prompt
                    _append(play, play.pending, 0, [0.0] * len(play.pending))
                play.pending = []
                if said is not None and said.failure:
                    _fail(play, RuntimeError(said.failure))
                elif said is not None:
                    _append(play, said.ids, 1, said.logprobs)
                    _advance(play, said.ids, said.truncated)
    with clock.phase("environment"):
        return [_rollout(play, renderer.pad_id) for play in plays]


def _opened(task: Task | Exception, shop: "Shop", renderer: "Renderer") -> _Play:
    play = _Play(task if isinstance(task, Task) else None)
    try:
        if isinstance(task, Exception):
            raise task
        play.episode = Episode(task, shop)
        play.dialogue = renderer.dialogue()
        play.prompt = play.pending = play.dialogue.open(play.episode.messages, play.episode.tools)
    except Exception as error:  # a bug of ours costs one unscored episode, not the run
        _fail(play, error)
    return play


def _append(play: _Play, ids: Sequence[int], mask: int, logprobs: Sequence[float]) -> None:
    play.ids += ids
    play.mask += [mask] * len(ids)
    play.logprobs += logprobs


def _advance(play: _Play, said: Sequence[int], truncated: bool) -> None:
    """Let the environment answer what the policy said."""
    play.turns += 1
    assert play.episode is not None and play.dialogue is not None
    try:
        if truncated:
            play.episode.end_truncated()
            play.end = "truncated"
            return
        turn = play.episode.act(play.dialogue.read(said))
        play.end = turn.end if turn.done else None
        if not turn.done:
            play.pending = play.dialogue.follow(turn.messages)
    except Exception as error:
        _fail(play, error)


def _fail(play: _Play, error: Exception) -> None:
    play.end, play.failure = "failed", f"{type(error).__name__}: {error}"
    if play.episode is not None:
        play.episode.fail(play.failure)


def _rollout(play: _Play, pad_id: int) -> Rollout:
    try:
        score = play.episode.score() if play.episode else Score.failed_by_us(play.failure)
    except Exception as error:
        _fail(play, error)
        score = Score.failed_by_us(play.failure)
    ids, mask, logprobs = (play.ids, play.mask, play.logprobs) if play.ids else ([pad_id], [0], [0.0])
    return Rollout(
        play.task, play.prompt or [pad_id], ids, mask, logprobs, score, play.end or "failed", play.turns
    )
