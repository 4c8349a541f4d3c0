"""The highest level at which a configuration's token limits hold nearly all courteous episodes, per environment.

It is measured: for starters, which see short lines, the player that they imitate plays some tasks, for chat policies
the courteous player, and its tokens are counted with the policy's tokenizer. Counts are kept in the cache. For a chat
policy without a tokenizer at hand it is read off the committed table of token counts (`ecomlab.training.tokens`).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ecomlab import assets
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import make_task
from ecomlab.evaluation.tasks import axes_of, write_axes
from ecomlab.files import cache_folder, read_json, write_json
from ecomlab.models.load import is_ordinary, load_policy
from ecomlab.models.policy import PolicyError
from ecomlab.models.qwen_tokenizer import QWEN, qwen_renderer
from ecomlab.seeding import digest
from ecomlab.training.config import TrainConfig
from ecomlab.training.tokens import LEVELS as COUNTED
from ecomlab.training.tokens import SHARE, episode_tokens, read_table

if TYPE_CHECKING:
    from ecomlab.catalog import Shop
    from ecomlab.models.qwen3 import ChatRenderer
    from ecomlab.models.renderer import Renderer

TASKS = 50
"""Episodes that are played at a level."""
LEVELS = tuple(range(13))
"""Levels at which starters are measured, or fewer: those of a bisection."""
ROOM = 1.1
"""Tokens that are suggested for a courteous player's one."""


@dataclass(frozen=True)
class Tokens:
    """Tokens of one episode, or a bound for many: in all, sampled by the policy, and sampled in its longest turn."""

    context: int
    written: int
    turn: int

    def within(self, config: TrainConfig) -> bool:
        """Tell whether the limits of a configuration hold such an episode."""
        return (
            self.context <= config.context_tokens
            and self.written <= config.episode_tokens
            and self.turn <= config.turn_tokens
        )


@dataclass(frozen=True)
class Reach:
    """What is known of one environment: up to which level the limits hold, and from which they do not."""

    env: str
    holds: int | None
    """Highest level, of those counted, at which they hold `SHARE` of courteous episodes; None if they do at none."""
    breaks: int | None
    """Lowest level above it that was counted and at which they do not; None if they hold at all."""
    why: str = ""
    """The reason why nothing is known, if so."""
    tasks: int = 0
    """Episodes that were played at each level for a chat policy; 0 if it was read off the table."""
    over: tuple[str, ...] = ()
    """The shares of such episodes that are over a limit, in words, level by level."""
    needs: Tokens | None = None
    """Least limits that hold `SHARE` of the episodes at every level that was counted, where that is known."""


def reaches(config: TrainConfig, table: Path) -> Iterator[Reach]:
    """Find the reach of a configuration in each of its environments; `table` is that of token counts."""
    if is_ordinary(config.starter):
        chat = _chat_renderer(config.starter)
        yield from _counted(config, table) if chat is None else _measured(config, chat)
        return
    try:
        shop = config.load_shop()
        renderer = load_policy(config.starter, shop, config.played).renderer
    except PolicyError as error:
        yield from (Reach(env, None, None, f"not measured: {error}") for env in config.played)
        return
    for env in config.played:
        axes = axes_of(config.axes, env)
        yield bisected(env, LEVELS, lambda d: _holds(played(env, d, axes, shop, renderer), config))  # noqa: B023


def _chat_renderer(starter: str) -> "ChatRenderer | None":
    """Make the renderer of a chat policy whose tokenizer is here: its own, or for Qwen3 the fetched asset. Raises
    PolicyError for one that cannot be trained."""
    from transformers import AutoTokenizer

    from ecomlab.models.qwen3 import ChatRenderer, check_trainable

    try:
        tokenizer = AutoTokenizer.from_pretrained(starter, local_files_only=True)
    except Exception:  # the hub and tokenizers each have their own errors for what is not there
        here = starter.startswith("Qwen/Qwen3") and assets.intact(assets.named(QWEN))
        return qwen_renderer(assets.find(QWEN)) if here else None
    check_trainable(tokenizer, starter)
    return ChatRenderer(tokenizer)


def _measured(config: TrainConfig, renderer: "ChatRenderer") -> Iterator[Reach]:
    """Let the courteous player play `TASKS` episodes at each of the token table's levels."""
    shop = config.load_shop()
    vocabulary = digest(sorted(renderer.tokenizer.get_vocab().items()))
    for env in config.played:
        axes = axes_of(config.axes, env)
        found = {d: _courteous(env, d, axes, shop, renderer, vocabulary) for d in COUNTED}
        reach = bisected(env, COUNTED, lambda d: _holds(found[d], config))  # noqa: B023
        over = tuple(words for d in COUNTED if (words := _over(d, found[d], config)))
        yield replace(reach, tasks=TASKS, over=over, needs=_most(_quantile(found[d]) for d in COUNTED))


def _courteous(
    env: str, d: int, axes: Mapping[str, float], shop: "Shop", renderer: "ChatRenderer", vocabulary: str
) -> list[Tokens]:
    """Count the tokens of `TASKS` episodes of the courteous player, or read them from the cache."""
    kind = ENVIRONMENTS[env]
    key = digest([vocabulary, kind.version, shop.fingerprint, d, write_axes(axes), TASKS, "courteous"])

    def tokens(seed: int) -> Tokens:
        player = kind.reference_player(shop, courteous=True)
        _, whole, turns = episode_tokens(make_task(env, d, seed, shop, axes), shop, renderer, player)
        return Tokens(whole, sum(turns), max(turns))

    return _kept(f"{env}-{d}-{key}", tokens)


def _over(d: int, episodes: Sequence[Tokens], config: TrainConfig) -> str:
    """Word the shares of a level's episodes that are over each limit; nothing where none is."""
    limits = {
        "context": [one.context > config.context_tokens for one in episodes],
        "episode": [one.written > config.episode_tokens for one in episodes],
        "turn": [one.turn > config.turn_tokens for one in episodes],
    }
    shares = [f"{sum(over) / len(over):.0%} over the {name}'s" for name, over in limits.items() if any(over)]
    return f"d = {d}: {', '.join(shares)}" if shares else ""


def _quantile(episodes: Sequence[Tokens]) -> Tokens:
    """Find the limits that hold `SHARE` of episodes, each limit by itself."""
    at = math.ceil(SHARE * len(episodes)) - 1
    context, written, turn = (sorted(column)[at] for column in zip(*map(astuple, episodes), strict=True))
    return Tokens(context, written, turn)


def _most(some: Iterable[Tokens]) -> Tokens:
    return Tokens(*map(max, zip(*map(astuple, some), strict=True)))


def _counted(config: TrainConfig, table: Path) -> Iterator[Reach]:
    if not table.is_file():
        why = f"not known: there is no {table}; work in a clone, or count: python experiments/tokens/count.py"
        yield from (Reach(env, None, None, why) for env in config.played)
        return
    rows = read_table(table)
    for env in config.played:
        here = {row.d: Tokens(row.p99, row.written, row.turn) for row in rows if row.env == env}
        if here:
            reach = bisected(env, sorted(here), lambda d: here[d].within(config))  # noqa: B023
            yield replace(reach, needs=_most(here.values()))
        else:
            yield Reach(env, None, None, f"not known: {table} has no row of it")


def bisected(env: str, levels: Sequence[int], holds: Callable[[int], bool]) -> Reach:
    """Find the reach among ascending `levels`, given that it only gets harder; asks of about log2 of them."""
    low, high = -1, len(levels)  # holds at low, breaks at high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(levels[middle]) else (low, middle)
    return Reach(env, levels[low] if low >= 0 else None, levels[high] if high < len(levels) else None)


def _holds(episodes: Sequence[Tokens], config: TrainConfig) -> bool:
    """Tell whether enough of the episodes are within the limits."""
    return sum(one.within(config) for one in episodes) >= math.ceil(SHARE * len(episodes))


def played(env: str, d: int, axes: Mapping[str, float], shop: "Shop", renderer: "Renderer") -> list[Tokens]:
    """Count the tokens of `TASKS` episodes of the player that starters imitate, or read them from the cache."""
    from ecomlab.starters.demonstrations import transcribe
    from ecomlab.starters.policy import made_for

    key = digest([made_for(renderer.tokenizer, shop, [env]), shop.fingerprint, d, write_axes(axes), TASKS])

    def tokens(seed: int) -> Tokens:
        pieces = transcribe(make_task(env, d, seed, shop, axes), shop).pieces
        lengths = [len(renderer.encode(piece)) for piece in pieces]
        return Tokens(sum(lengths), sum(lengths[1::2]), max(lengths[1::2]))

    return _kept(f"{env}-{d}-{key}", tokens)


def _kept(name: str, count: Callable[[int], Tokens]) -> list[Tokens]:
    """Count the tokens of `TASKS` episodes by their seeds, or read what was counted from the cache."""
    file = cache_folder() / "episode_tokens" / f"{name}.json"
    if known := read_json(file):
        return [Tokens(*counts) for counts in known["episodes"]]
    found = [count(seed) for seed in range(TASKS)]
    write_json(file, {"episodes": [astuple(one) for one in found]})
    return found


def lines(config: TrainConfig, found: Sequence[Reach]) -> Iterator[str]:
    """Word what was found: a line per environment, and a warning where the schedule or the evaluation goes beyond."""
    limits = (
        f"turn {config.turn_tokens}, episode {config.episode_tokens}, context {config.context_tokens} tokens"
    )
    if not is_ordinary(config.starter):
        counted = f"{TASKS} a level of the player it imitates"
    elif any(one.tasks for one in found):
        counted = f"{TASKS} a level, played now and counted with its tokenizer"
    else:
        counted = "the token table"
    yield f"limits ({limits}) hold {SHARE:.0%} of courteous episodes, by {counted}:"
    for one in found:
        if one.why:
            yield f"  {one.env}: {one.why}"
        elif one.breaks is None:
            yield f"  {one.env}: up to d = {one.holds}, the highest level counted"
        elif one.holds is None:
            yield f"  {one.env}: at no level; not at d = {one.breaks}"
        else:
            yield f"  {one.env}: up to d = {one.holds}, not at d = {one.breaks}"
        yield from (f"    {words}" for words in one.over)
    if any(one.breaks is not None for one in found) and all(one.needs for one in found):
        yield f"limits that hold them at every level counted: {enough(_most(one.needs for one in found if one.needs))}"
    for one in found:
        if (
            beyond := []
            if one.breaks is None
            else list(_beyond(config, one.env, -1 if one.holds is None else one.holds))
        ):
            yield f"warning: {one.env}: {' and '.join(beyond)} can go beyond that; longer episodes are cut off"


def enough(needs: Tokens) -> str:
    """Write --set options whose limits hold `needs`, rounded up, with room for a player that is not as brief."""
    limits = {"turn_tokens": (needs.turn, 256), "episode_tokens": (needs.written, 512)}
    limits["context_tokens"] = (needs.context, 2048)
    return " ".join(
        f"--set {name}={(ROOM * most // unit + 1) * unit:.0f}" for name, (most, unit) in limits.items()
    )


def _beyond(config: TrainConfig, env: str, holds: int) -> Iterator[str]:
    """Name what plays levels of an environment above `holds`."""
    low, high = config.make_schedule().window(config.envs[0])
    if env in config.envs and high > holds:
        yield f"the schedule (d = {low} to {high})"
    elif env in config.envs and config.schedule == "adaptive":
        yield "the adaptive schedule (which has no upper end)"
    if env in config.eval_envs and config.eval_difficulties and max(config.eval_difficulties) > holds:
        yield f"the evaluation (d = {max(config.eval_difficulties)})"
