"""The highest level at which a configuration's token limits hold nearly all courteous episodes, per environment.

For chat policies it is read off the committed table of token counts (`ecomlab.audit.tokens`). For starters, which see
short lines, it is measured: the player that they imitate, which asks natural questions, plays some tasks, and its
tokens are counted. Counts are kept in the cache.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ecomlab.audit.tokens import SHARE, read_table
from ecomlab.catalog import load_shop
from ecomlab.episode.episode import make_task
from ecomlab.evaluate.tasks import axes_of, write_axes
from ecomlab.files import cache_folder, read_json, write_json
from ecomlab.models.load import is_ordinary, load_policy
from ecomlab.models.policy import PolicyError
from ecomlab.seeding import digest
from ecomlab.train.config import TrainConfig

if TYPE_CHECKING:
    from ecomlab.catalog import Shop
    from ecomlab.models.renderer import Renderer

TASKS = 50
"""Episodes that are played at a level."""
LEVELS = tuple(range(13))
"""Levels that are measured, or fewer: those of a bisection."""


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


def reaches(config: TrainConfig, table: Path) -> Iterator[Reach]:
    """Find the reach of a configuration in each of its environments; `table` is that of token counts."""
    if is_ordinary(config.starter):
        yield from _counted(config, table)
        return
    try:
        shop = load_shop(config.catalog_size, config.catalog_seed)
        renderer = load_policy(config.starter, shop, config.played).renderer
    except PolicyError as error:
        yield from (Reach(env, None, None, f"not measured: {error}") for env in config.played)
        return
    for env in config.played:
        axes = axes_of(config.axes, env)
        yield bisected(env, LEVELS, lambda d: _holds(played(env, d, axes, shop, renderer), config))  # noqa: B023


def _counted(config: TrainConfig, table: Path) -> Iterator[Reach]:
    if not table.is_file():
        why = f"not known: there is no {table}; work in a clone, or count: python -m ecomlab.audit.tokens"
        yield from (Reach(env, None, None, why) for env in config.played)
        return
    rows = read_table(table)
    for env in config.played:
        here = {
            row.d: Tokens(row.p99, row.written, row.turn).within(config) for row in rows if row.env == env
        }
        if here:
            yield bisected(env, sorted(here), here.__getitem__)
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
    file = cache_folder() / "episode_tokens" / f"{env}-{d}-{key}.json"
    if known := read_json(file):
        return [Tokens(*counts) for counts in known["episodes"]]
    found = []
    for seed in range(TASKS):
        pieces = transcribe(make_task(env, d, seed, shop, axes), shop).pieces
        lengths = [len(renderer.encode(piece)) for piece in pieces]
        found.append(Tokens(sum(lengths), sum(lengths[1::2]), max(lengths[1::2])))
    write_json(file, {"episodes": [astuple(one) for one in found]})
    return found


def lines(config: TrainConfig, found: Sequence[Reach]) -> Iterator[str]:
    """Word what was found: a line per environment, and a warning where the schedule or the evaluation goes beyond."""
    limits = (
        f"turn {config.turn_tokens}, episode {config.episode_tokens}, context {config.context_tokens} tokens"
    )
    counted = (
        "the token table" if is_ordinary(config.starter) else f"{TASKS} a level of the player it imitates"
    )
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
    for one in found:
        if (
            beyond := []
            if one.breaks is None
            else list(_beyond(config, one.env, -1 if one.holds is None else one.holds))
        ):
            yield f"warning: {one.env}: {' and '.join(beyond)} can go beyond that; longer episodes are cut off"


def _beyond(config: TrainConfig, env: str, holds: int) -> Iterator[str]:
    """Name what plays levels of an environment above `holds`."""
    low, high = config.make_schedule().window(config.envs[0])
    if env in config.envs and high > holds:
        yield f"the schedule (d = {low} to {high})"
    elif env in config.envs and config.schedule == "adaptive":
        yield "the adaptive schedule (which has no upper end)"
    if env in config.eval_envs and config.eval_difficulties and max(config.eval_difficulties) > holds:
        yield f"the evaluation (d = {max(config.eval_difficulties)})"
