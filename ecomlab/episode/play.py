"""Playing one episode, and replaying a recorded one."""

from collections.abc import Callable, Iterator
from dataclasses import asdict

from ecomlab.catalog import Shop
from ecomlab.customer.llm import Chat, RecordError, Wording
from ecomlab.episode.episode import Episode
from ecomlab.episode.record import Trajectory
from ecomlab.reward import PUBLISHED, Score, Weights
from ecomlab.suggest import raised
from ecomlab.task import Message, Player, Task


class ReplayError(Exception):
    """A replay that differs from its record; the message gives the place."""


def play(
    player: Player,
    task: Task,
    shop: Shop,
    strict: bool = False,
    customer: Chat | None = None,
    weights: Weights = PUBLISHED,
) -> Trajectory:
    """Play a task to its end, with `strict` only up to the first format error. Any exception makes the episode unscored
    (BROKEN IS NOT WRONG). `customer` is an endpoint that rewords the customer; without it the templates are used.
    `weights` are those of the reward."""
    wording = Wording(customer) if customer else None
    episode = Episode(task, shop, strict=strict, wording=wording, weights=weights)
    if not callable(player):
        raise TypeError(
            f"a player must be a function of messages and tools that returns a message, not {player!r}"
        )
    return finish(player, episode)


def finish(player: Player, episode: Episode) -> Trajectory:
    """Play a running episode to its end."""
    try:
        while not episode.done:
            episode.act(player(list(episode.messages), episode.tools))
    except Exception as error:
        episode.fail(raised(error))
    return record(episode)


def record(episode: Episode) -> Trajectory:
    """Record an episode that is over."""
    return Trajectory(
        task=episode.task,
        messages=list(episode.messages),
        end=episode.end,
        score=episode.score(),
        turns=episode.turn,
        calls=episode.world.calls,
        strict=episode.strict,
        wording=[asdict(one) for one in episode.wording.exchanges] if episode.wording else [],
    )


def replay(trajectory: Trajectory, shop: Shop, watch: Callable[[Episode], None] = lambda _: None) -> Score:
    """Play a recorded trajectory again and return its score.

    `watch` sees the episode at its opening and after every assistant message, and must leave it as it is.

    Rewordings by an endpoint are taken from the record, and checked again. Raises ReplayError, naming the message and
    both texts, when the shop or the customer answers differently, and for a record that was cut before its end.
    """
    episode = reopened(trajectory, shop)
    for _ in act_out(trajectory, episode):
        watch(episode)
    watch(episode)
    return episode.score()


def reopened(trajectory: Trajectory, shop: Shop) -> Episode:
    """Open the episode of a recorded trajectory again, before its first message. Raises ReplayError."""
    wording = Wording(recorded=trajectory.wording) if trajectory.wording else None
    try:
        weights = Weights.of(trajectory.score.weights)
        return Episode(trajectory.task, shop, strict=trajectory.strict, wording=wording, weights=weights)
    except RecordError as error:
        raise ReplayError(str(error)) from None


def act_out(trajectory: Trajectory, episode: Episode) -> Iterator[Message]:
    """Act a recorded trajectory out in the `episode` that `reopened` made of it, to its end.

    Yields each assistant message before it is played; until the next one is requested, the episode is as the agent
    found it, and then as it left it. Raises ReplayError as `replay` does.
    """
    try:
        yield from _acted_out(trajectory, episode)
    except RecordError as error:
        raise ReplayError(str(error)) from None


def _acted_out(trajectory: Trajectory, episode: Episode) -> Iterator[Message]:
    recorded = trajectory.messages
    _compare(recorded, episode.messages, 0)
    for message in recorded:
        if message["role"] == "assistant" and not episode.done:
            before, again = len(episode.messages), _again(message, trajectory, episode)
            yield again
            episode.act(again)
            _compare(recorded, episode.messages, before)
    if not episode.done and trajectory.end == "truncated":
        episode.end_truncated()
    if not episode.done and trajectory.end == "failed":
        episode.fail(trajectory.score.why)
    if episode.end != trajectory.end or len(episode.messages) != len(recorded):
        raise ReplayError(f"the record ends with {trajectory.end!r}, the replay with {episode.end!r}")
    for what, was, now in (
        ("turns", trajectory.turns, episode.turn),
        ("calls", trajectory.calls, episode.world.calls),
    ):
        if was != now:
            raise ReplayError(f"the record has {was} {what}, its messages {now}; it was cut or added to")


def _again(message: Message, trajectory: Trajectory, episode: Episode) -> Message:
    """Restore the message as it was played; of a last one that was invalid, the record only knows that it was."""
    last = message is trajectory.messages[-1]
    if last and trajectory.end == "invalid" and not message.get("tool_calls"):
        return {**message, "invalid": trajectory.score.why.removeprefix("invalid output: ")}
    return message


def _compare(recorded: list[Message], live: list[Message], start: int) -> None:
    for index in range(start, len(live)):
        if index >= len(recorded) or recorded[index] != live[index]:
            was = recorded[index] if index < len(recorded) else "nothing"
            raise ReplayError(f"message {index} differs: the record has {was!r}, the replay {live[index]!r}")
