"""Play of many tasks in lockstep by a policy, recorded token by token as sampled.

An exception in an episode makes it unscored; our own failures never become rewards (BROKEN IS NOT WRONG).
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ecomlab.customer.llm import Chat, Wording
from ecomlab.difficulty import Difficulty
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode, make_task
from ecomlab.episode.play import play as play_episode
from ecomlab.episode.play import record
from ecomlab.episode.record import Trajectory
from ecomlab.reward import PUBLISHED, Score, Weights
from ecomlab.suggest import UnknownEnvironmentError
from ecomlab.task import Message, Player, Task

if TYPE_CHECKING:
    from ecomlab.catalog import Shop
    from ecomlab.models.renderer import Dialogue, Renderer
    from ecomlab.models.samplers.cached import Sampled, Sampler


class Clock:
    """Seconds by phase; phases do not overlap, so their sum is the total."""

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
    """None if it could not be drawn."""
    prompt_ids: list[int]
    """Tokens before the first that the policy sampled."""
    completion_ids: list[int]
    """Tokens from the first that the policy sampled to its last, with the tool results and customer turns between."""
    mask: list[int]
    """1 where the policy sampled the token, 0 elsewhere."""
    logprobs: list[float]
    """Log-probabilities at sampling time where `mask` is 1, else 0.0."""
    score: Score
    end: str
    """submit, turns, patience, invalid, truncated, or failed (ours)."""
    turns: int
    trajectory: Trajectory | None = None
    """The conversation, for transcripts; None if no episode could be opened."""
    seconds: Sequence[float] = field(default=(), compare=False)
    """Seconds that the policy took for each sampled turn; all episodes that wait for a turn share its time."""

    @property
    def sampled(self) -> int:
        """Tokens sampled by the policy."""
        return sum(self.mask)


@dataclass
class _Play:
    """One running episode, the only mutable object here; discarded when the batch is done."""

    task: Task | None
    episode: Episode | None = None
    dialogue: "Dialogue | None" = None
    prompt: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    pending: list[int] = field(default_factory=list)
    """Token ids that the policy has not read yet."""
    turns: int = 0
    seconds: list[float] = field(default_factory=list)
    """By turn."""
    end: str | None = None
    failure: str = ""


@dataclass(frozen=True)
class Start:
    """The beginning of an episode: its task, and given first turns."""

    task: Task
    weights: Weights = PUBLISHED
    given: float = 0.0
    """Share of a reference player's turns that are given. Their tokens are part of the prompt."""
    first: Sequence[Message] | Callable[[Task, "Shop", Player | None], Sequence[Message]] = ()
    """Assistant messages of the first turns, or what makes them of the task, shop and player; in place of `given`."""

    def turns(self, shop: "Shop", player: Player | None = None) -> Sequence[Message]:
        """Return the assistant messages of the given turns, as `player`, or the reference player, plays them."""
        if callable(self.first):
            return self.first(self.task, shop, player)
        return self.first or (first_turns(self.task, shop, self.given, player) if self.given else ())


@dataclass(frozen=True)
class Named:
    """The beginning of an episode whose task is drawn where it is played."""

    env: str
    difficulty: int
    seed: int
    axes: Mapping[str, float]
    weights: Weights

    def draw(self, shop: "Shop") -> Start | Exception:
        """As `draw_task`."""
        task = draw_task(self.env, self.difficulty, self.seed, shop, self.axes)
        return task if isinstance(task, Exception) else Start(task, self.weights)


Given = Task | Start | Named | Exception
Came = list[int] | Rollout


def first_turns(task: Task, shop: "Shop", share: float, player: Player | None = None) -> list[Message]:
    """Return this share, in [0, 1], of a task's assistant messages as the reference player (or `player`) plays it; the
    last one is never given."""
    played = play_episode(player or ENVIRONMENTS[task.env].reference_player(shop), task, shop)
    said = [message for message in played.messages if message["role"] == "assistant"]
    return said[: max(0, min(round(share * len(said)), len(said) - 1))]


def draw_task(
    env: str, difficulty: int, seed: int, shop: "Shop", axes: Mapping[str, float] | None = None
) -> Task | Exception:
    """Draw a task, with `axes` overridden, or return the exception that its environment raised, which `play_batch`
    takes too.

    Raises UnknownEnvironmentError, or ValueError for a level, an axis or a value that does not exist.
    """
    Difficulty.at(difficulty, **(axes or {}))  # like an unknown environment, the caller's mistake: raise
    try:
        return make_task(env, difficulty, seed, shop, axes)
    except UnknownEnvironmentError:
        raise
    except Exception as error:
        return error


def play_batch(
    tasks: Sequence[Given],
    streams: Sequence[np.random.Generator],
    shop: "Shop",
    sampler: "Sampler",
    renderer: "Renderer",
    clock: Clock | None = None,
    pool: "Pool | None" = None,
    customer: Chat | None = None,
    strict: bool = False,
) -> list[Rollout]:
    """Play every task once with the policy behind `sampler`; rollout i draws its randomness from `streams[i]` alone.

    `customer` is an endpoint that rewords the customers, one act after another; `strict` episodes end at the first
    format error. An exception in place of a task gives a failed rollout. `clock` adds up the seconds of the policy
    ("model") and of everything else ("environment"). The workers of `pool` play the episodes, to the same rollouts;
    with `customer`, whose connection is of this process, this one does.
    """
    rollouts = dict(play_each(tasks, streams, shop, sampler, renderer, clock, pool, customer, strict))
    return [rollouts[i] for i in range(len(tasks))]


def play_each(
    tasks: Sequence[Given],
    streams: Sequence[np.random.Generator],
    shop: "Shop",
    sampler: "Sampler",
    renderer: "Renderer",
    clock: Clock | None = None,
    pool: "Pool | None" = None,
    customer: Chat | None = None,
    strict: bool = False,
) -> Iterator[tuple[int, Rollout]]:
    """Play as `play_batch` does, and yield the index and the rollout of each episode as soon as it is over."""
    clock = clock or Clock()
    plays = Plays(shop, renderer, customer) if pool is None or customer else pool
    with clock.phase("environment"):
        came = plays.open(dict(enumerate(tasks)), strict)
    sampler.start(streams)
    while True:
        yield from ((i, one) for i, one in came.items() if isinstance(one, Rollout))
        pending = {i: one for i, one in came.items() if not isinstance(one, Rollout)}
        if not pending:
            return
        before = clock.seconds["model"]
        with clock.phase("model"):
            answers = sampler.turn(list(pending), list(pending.values()))
        share = (clock.seconds["model"] - before) / len(pending)
        with clock.phase("environment"):
            came = plays.answer(dict(zip(pending, answers, strict=True)), share)


class Pool(Protocol):
    """What plays episodes as `Plays` does, here or in other processes."""

    def open(self, tasks: Mapping[int, Given], strict: bool) -> dict[int, "Came"]:
        """Begin a batch."""

    def answer(self, answers: Mapping[int, "Sampled | None"], share: float) -> dict[int, "Came"]:
        """Pass each turn to its episode."""


class Plays:
    """The running episodes of a batch, or of a worker's share of it: sampled tokens in, the tokens that the policy
    reads next or the finished rollout out, by the episode's index."""

    def __init__(self, shop: "Shop", renderer: "Renderer", customer: Chat | None = None) -> None:
        self._shop, self._renderer, self._customer = shop, renderer, customer
        self._plays: dict[int, _Play] = {}

    def open(self, tasks: Mapping[int, Given], strict: bool) -> dict[int, Came]:
        """Begin a batch; episodes of an earlier one are dropped."""
        self._plays = {
            i: _open(task, self._shop, self._renderer, self._customer, strict) for i, task in tasks.items()
        }
        return self._came(tasks)

    def answer(self, answers: Mapping[int, "Sampled | None"], share: float) -> dict[int, Came]:
        """Pass each turn to its episode; None, for an unfinished turn, gives no tokens to read. `share` is the time
        that each took, in seconds."""
        for i, sampled in answers.items():
            play = self._plays[i]
            if len(play.seconds) == play.turns:
                play.seconds.append(0.0)
            play.seconds[-1] += share
            if play.turns:  # before the first turn it was the prompt
                _append(play, play.pending, 0, [0.0] * len(play.pending))
            play.pending = []
            if sampled is not None and sampled.failure:
                _fail(play, RuntimeError(sampled.failure))
            elif sampled is not None:
                _append(play, sampled.ids, 1, sampled.logprobs)
                _advance(play, sampled.ids, sampled.truncated)
        return self._came(answers)

    def _came(self, numbers: Iterable[int]) -> dict[int, Came]:
        plays = ((i, self._plays[i]) for i in numbers)
        return {i: p.pending if p.end is None else _rollout(p, self._renderer.pad_id) for i, p in plays}


def _open(given: Given, shop: "Shop", renderer: "Renderer", customer: Chat | None, strict: bool) -> _Play:
    task = given.draw(shop) if isinstance(given, Named) else given
    start = Start(task) if isinstance(task, Task) else task
    play = _Play(start.task if isinstance(start, Start) else None)
    try:
        if isinstance(start, Exception):
            raise start
        wording = Wording(customer) if customer else None
        play.episode = Episode(start.task, shop, strict=strict, wording=wording, weights=start.weights)
        play.dialogue = renderer.dialogue()
        play.prompt = play.dialogue.open(play.episode.messages, play.episode.tools)
        _give(play, start, shop)
        play.pending = play.prompt
    except Exception as error:  # a bug of ours costs one unscored episode, not the run
        _fail(play, error)
    return play


def _give(play: _Play, start: Start, shop: "Shop") -> None:
    """Play the given first turns, in tokens that the policy would read as its own."""
    assert play.episode is not None and play.dialogue is not None
    for message in start.turns(shop, play.dialogue.teacher(start.task.env, shop)):
        ids = play.dialogue.say(message)
        play.dialogue.read(ids)  # it remembers the calls
        came = play.episode.act(message)  # with the player's own ids of calls
        play.prompt += ids
        if came.done:
            play.end = came.end
            return
        play.prompt += play.dialogue.follow(came.messages)


def _append(play: _Play, ids: Sequence[int], mask: int, logprobs: Sequence[float]) -> None:
    play.ids += ids
    play.mask += [mask] * len(ids)
    play.logprobs += logprobs


def _advance(play: _Play, ids: Sequence[int], truncated: bool) -> None:
    """Pass the policy's output to the episode and queue the reply."""
    play.turns += 1
    assert play.episode is not None and play.dialogue is not None
    try:
        if truncated:
            play.episode.end_truncated()
            play.end = "truncated"
            return
        turn = play.episode.act(play.dialogue.read(ids))
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
    trajectory = None
    if play.episode is not None:
        try:
            trajectory = record(play.episode)
        except Exception as error:  # of the verifier
            _fail(play, error)
            trajectory = record(play.episode)
    score = trajectory.score if trajectory else Score.failed_by_us(play.failure)
    ids, mask, logprobs = (play.ids, play.mask, play.logprobs) if play.ids else ([pad_id], [0], [0.0])
    end = play.end or "failed"
    return Rollout(
        play.task, play.prompt or [pad_id], ids, mask, logprobs, score, end, play.turns, trajectory,
        seconds=play.seconds,
    )  # fmt: skip
