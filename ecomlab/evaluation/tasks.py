"""The tasks of a run: environments by collection, overridden axes, and blocks of held-out seeds."""

from collections.abc import Iterable, Mapping

from ecomlab.difficulty import Difficulty
from ecomlab.envs.registry import COLLECTIONS, ENVIRONMENTS, moved_by
from ecomlab.seeding import EVALUATION_SEEDS
from ecomlab.suggest import unknown

Axes = Mapping[str, float]
"""Values by axis, such as {"p_missing": 0, "cart.items": 2}; the level determines all others."""

TASKS_A_BLOCK = 2**20
"""Seeds of a block: its maximum number of held-out tasks per environment and level."""
BLOCKS = len(EVALUATION_SEEDS) // TASKS_A_BLOCK
"""Number of blocks; they share no seed with each other or with training."""


def environments_of(collection: str) -> tuple[str, ...]:
    """List the environments of a named collection, such as "C2", or of any list of ids, such as "CART,PD".

    Raises ValueError for an unknown or repeated name, and for a collection with an environment that is not there.
    """
    if collection in COLLECTIONS:
        if absent := [env for env in COLLECTIONS[collection] if env not in ENVIRONMENTS]:
            raise ValueError(
                f"collection {collection} needs {', '.join(absent)}, which are not installed; there are "
                f"{', '.join(ENVIRONMENTS)}: choose a collection of those"
            )
        return COLLECTIONS[collection]
    names = [name.strip() for name in collection.split(",")]
    for name in names:
        if name not in ENVIRONMENTS:
            within = f" in {collection!r}" if len(names) > 1 else ""
            if within and name in COLLECTIONS:
                raise ValueError(f"a list contains environments, not collections such as {name}{within}")
            known = ENVIRONMENTS if within else (*COLLECTIONS, *ENVIRONMENTS)
            kind = "environment" if within else "collection or environment"
            raise ValueError(
                unknown(kind, name, known) + (within or "; a list of environments is possible too: 'CART,PD'")
            )
    if len(set(names)) < len(names):
        raise ValueError(
            f"{collection!r} names an environment twice; name it once, because all are drawn equally often"
        )
    return tuple(names)


def environments_named(names: Iterable[str]) -> list[str]:
    """List the environments of collections and environments, in any case, each once. Raises ValueError."""
    return list(dict.fromkeys(env for name in names for env in environments_of(name.upper())))


def check_axes(axes: Axes, envs: Iterable[str]) -> list[str]:
    """Return warnings for environments that an axis does not move, and that ignore its override.

    Raises ValueError for an unknown axis, a value outside its range, and an axis that moves none of `envs`, as far as
    observed.
    """
    envs, warnings = list(envs), []
    for name, value in axes.items():
        Difficulty.at(0, **{name: value})
        still = [env for env in envs if name not in axes_of(axes, env)]
        if still and len(still) == len(envs):
            moved = ", ".join(env for env in ENVIRONMENTS if name in (moved_by(env) or ())) or "none"
            raise ValueError(f"axis {name!r} does not move {' or '.join(envs)}; it moves {moved}")
        if still:
            warnings.append(f"axis {name!r} does not move {', '.join(still)}; there it changes nothing")
    return warnings


def axes_of(axes: Axes, env: str) -> dict[str, float]:
    """Select the axes that move an environment; all of them, for an environment that was not observed."""
    moving = moved_by(env)
    return {name: value for name, value in axes.items() if moving is None or name in moving}


def write_axes(axes: Axes) -> str:
    """Write axes as text, by name: "cart.items=2 p_missing=0"; "" for none."""
    return " ".join(f"{name}={axes[name]:g}" for name in sorted(axes))


def block_of(seed: int) -> int:
    return (seed - EVALUATION_SEEDS.start) // TASKS_A_BLOCK


def held_out_seeds(block: int, episodes: int) -> range:
    """Return the seeds of the first `episodes` tasks of a block. Raises ValueError beyond its end or the last block."""
    if not 0 <= block < BLOCKS:
        raise ValueError(f"there are blocks 0 to {BLOCKS - 1} of held-out tasks, got {block}")
    if not 0 <= episodes <= TASKS_A_BLOCK:
        raise ValueError(
            f"a block has {TASKS_A_BLOCK} held-out tasks per level, fewer than {episodes}; use another block too"
        )
    first = EVALUATION_SEEDS.start + block * TASKS_A_BLOCK
    return range(first, first + episodes)
