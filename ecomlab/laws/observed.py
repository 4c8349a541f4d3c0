"""Observations from running each environment: the axes that move it, and digests of its first tasks and their scores.

`python -m ecomlab.laws.observed` writes ecomlab/envs/observed.json anew; a test compares.
"""

import argparse
from collections.abc import Mapping
from functools import cache
from typing import Any

from ecomlab.catalog import Shop, load_shop
from ecomlab.difficulty import RANGES, STEPS
from ecomlab.envs.registry import ENVIRONMENTS, OBSERVED, observed
from ecomlab.episode.episode import Episode, briefing, draw_task, make_task
from ecomlab.episode.play import finish
from ecomlab.files import write_json
from ecomlab.laws.counterfactual import Prober
from ecomlab.players.base import Perturbation
from ecomlab.seeding import digest, rng
from ecomlab.task import Task

MOVED: dict[str, float] = {
    "constraints": 6,
    "p_missing": 1.0,
    "eps_rank": 0.6,
    "p_oos": 1.0,
    "turn_slack": 9,
    "tool_slack": 40,
    "p_noise": 0.5,
    "p_switch": 1.0,
    "top_k": 10,
    "k_rec": 12,
    "history": 30,
    "branches": 8,
    "cart.items": 4,
    "cart.p_option": 0.0,
    "cart.p_quantity": 1.0,
    "discovery.slack": 2.0,
    "discovery.alpha": 40,
    "substitution.similarity": 1.0,
    "bundle.parts": 8,
    "bundle.slack": 4.0,
    "journey.subtasks": 4,
    "orders.p_edge": 1.0,
    "orders.p_again": 1.0,
    "orders.p_split": 1.0,
    "orders.p_indirect": 1.0,
    "orders.p_patient": 1.0,
    "steps.mean": 6.0,
    "steps.arithmetic": 1.0,
    **{f"steps.{kind}": 0.0 for kind in STEPS},
    **{f"steps.{kind}_size": least + 3.0 for kind, least in STEPS.items()},
}
"""A value for everything that can be overridden, far from that of level 2."""
WITH_EXCEPTIONS = {"branches": 3}
"""Overrides of all tasks that are played: the books of the level have no exceptions, on which facts would bear."""
WITH_STEPS = {"steps.mean": 4.0, "constraints": 6, "branches": 4, "journey.subtasks": 5}
"""Overrides of the tasks in which a field of the steps of thought is moved: the level has none, no exceptions in the
policy book, and few jobs of a journey for one to stand on."""
LEVEL, SEEDS, MORE = 2, range(4), range(4, 24)
"""Level and seeds of the tasks that are played, and of those whose openings are compared where that shows nothing."""


def first_tasks(env_id: str, shop: Shop) -> list[Task]:
    """Draw the tasks whose digests are committed."""
    return [make_task(env_id, d, seed, shop) for d in (0, 6, 12) for seed in range(5)]


def tasks_digest(env_id: str, shop: Shop) -> str:
    """Digest the bytes of an environment's first tasks, with their briefings and tool schemas.

    This digest alone decides versions: it changes when a key means another task.
    """
    episodes = [Episode(task, shop) for task in first_tasks(env_id, shop)]
    return digest([[one.task.to_json(), briefing(one.task), one.tools] for one in episodes])


def scores_digest(env_id: str, shop: Shop) -> str:
    """Digest ends and scores, without their reasons in words, of the reference player and of one that slips: the first
    alone earns the same everywhere."""
    env, scored = ENVIRONMENTS[env_id], []
    for task in first_tasks(env_id, shop):
        slips = Perturbation(rng("scores", env_id, task.seed), 0.3)
        for player in (env.reference_player(shop), env.reference_player(shop, slips)):
            played = finish(player, Episode(task, shop))
            scored.append([played.end, played.score.value, played.score.correct, dict(played.score.parts)])
    return digest(scored)


def outcome(task: Task, shop: Shop) -> str:
    """Digest the episodes of fixed players: the reference player, the perturbed one, and a prober."""
    env, met = ENVIRONMENTS[task.env], []
    perturbed = Perturbation(rng("observed", task.env, task.seed), 0.5)
    prober = Prober(env, rng("looking", task.env, task.seed), at_once=8)
    for player in (env.reference_player(shop), env.reference_player(shop, perturbed), prober):
        played = finish(player, Episode(task, shop))
        met.append([played.messages, played.end, played.turns, played.calls, played.score.value])
    return digest(met)


def openings(task: Task) -> str:
    """Join the openings of a task and of its subtasks."""
    return " ".join(part.opening for part in (task, *task.subtasks))


def axes_of(env_id: str, shop: Shop, known: Mapping[str, Any]) -> list[str]:
    """List the axes that move an environment: moved alone, they change the episodes of fixed players.

    What moves an environment of the subtasks moves a journey too; `known` holds their records.
    """
    inherited = {axis for part in ENVIRONMENTS[env_id].composes for axis in known[part]["axes"]}

    def drawn(seed: int, overrides: dict[str, float]) -> Task:
        return draw_task(env_id, LEVEL, seed, shop, WITH_EXCEPTIONS | overrides)

    @cache
    def before(seed: int, stepped: bool) -> str:
        return outcome(drawn(seed, WITH_STEPS if stepped else {}), shop)

    @cache
    def opening(seed: int, stepped: bool) -> str:
        return openings(drawn(seed, WITH_STEPS if stepped else {}))

    def moves(axis: str) -> bool:
        stepped = axis.startswith("steps.")
        overrides = {**(WITH_STEPS if stepped else {}), axis: MOVED[axis]}
        if any(outcome(drawn(seed, overrides), shop) != before(seed, stepped) for seed in SEEDS):
            return True
        return any(openings(drawn(seed, overrides)) != opening(seed, stepped) for seed in MORE)

    return [axis for axis in RANGES if axis in inherited or moves(axis)]


def main() -> None:
    """Observe every environment, or those that are named and what composes them, and write the file.

    Warns where an environment draws other tasks than recorded under the same version.
    """
    parser = argparse.ArgumentParser(prog="python -m ecomlab.laws.observed", description=__doc__)
    parser.add_argument("--env", default=",".join(ENVIRONMENTS), help="environments, between commas")
    asked = {ENVIRONMENTS[env_id].id for env_id in parser.parse_args().env.split(",")}
    shop, big_shop = load_shop(1_000), load_shop()
    found: dict[str, Any] = dict(observed())
    for env_id in sorted(ENVIRONMENTS, key=lambda env_id: (len(ENVIRONMENTS[env_id].composes), env_id)):
        if not asked & {env_id, *ENVIRONMENTS[env_id].composes}:
            continue
        before = found.get(env_id, {})
        found[env_id] = {
            "version": ENVIRONMENTS[env_id].version,
            "tasks": tasks_digest(env_id, shop),
            "scores": scores_digest(env_id, shop),
            "axes": axes_of(env_id, big_shop, found),
        }
        if [before.get(name) == found[env_id][name] for name in ("version", "tasks")] == [True, False]:
            print(
                f"{env_id}: tasks changed under version {before['version']}; raise it, unless nobody has played it"
            )
    write_json(OBSERVED, found)


if __name__ == "__main__":
    main()
