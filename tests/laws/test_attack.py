"""Who hears one bit at a time does no better than chance, and corrections are no substitute for listening."""

import math
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from ecomlab import ENVIRONMENTS, Shop, make_task
from ecomlab.catalog import load_shop
from ecomlab.customer.dialogue import GUESSES, PATIENCE
from ecomlab.episode.episode import Episode, draw_task
from ecomlab.episode.play import finish
from ecomlab.laws import laws
from ecomlab.laws.certificate import FIRST_SEED, outcomes_of, players
from ecomlab.laws.corrected import corrected
from ecomlab.laws.listeners import shotgun_teller
from ecomlab.task import Instead
from ecomlab.world.cart import wants_of
from ecomlab.world.plain import AtFirst, plain
from ecomlab.world.substitutes import stages_of

TASKS = 40
ONE_BIT = ("yes or no", "which one of", "guess and", "then guess")
TALK = ("ritual of", "false summaries of", "blank consent to", "salad, ", "show three of")
CORRECTABLE = [env for env in ENVIRONMENTS.values() if "cart" in env.acts_on or "returns" in env.acts_on]


class Attack(NamedTuple):
    """How often one player is right at one level, and the chance that the environment states."""

    d: int
    player: str
    tasks: int
    share: float
    chance: float


def attack(
    env_id: str, names: list[str] | tuple[str, ...], levels: tuple[int, ...], count: int, shop: Shop
) -> list[Attack]:
    """Play `count` tasks a level with each player whose name contains one of `names`."""
    env, found = ENVIRONMENTS[env_id], []
    living = {name: lambda *_, make=make: make() for name, make in corrected(env, shop).items()}
    made = players(env_id, shop) | living
    for d in levels:
        tasks = [make_task(env_id, d, FIRST_SEED + seed, shop) for seed in range(count)]
        chance = sum(env.audit.chance(task, shop) for task in tasks) / count
        for name in (name for name in made if any(part in name for part in names)):
            episodes = [Episode(task, shop) for task in tasks]
            right = [finish(made[name](one, one.task.seed), one).score.correct for one in episodes]
            found.append(Attack(d, name, count, sum(right) / count, chance))
    return found


def test_of_one_wanted_visit_a_guesser_tries_a_first_patience_more_and_one_by_asking(big_shop: Shop) -> None:
    task = next(
        t for seed in range(99) for t in [make_task("CART", 0, seed, big_shop)] if len(t.goal.items) == 1
    )
    assert (PATIENCE, GUESSES, len(task.world["visits"])) == (3, 2, 24)
    assert ENVIRONMENTS["CART"].audit.chance(task, big_shop) == pytest.approx(5 / 24)


def test_a_guesser_reaches_the_chance_that_is_stated(big_shop: Shop) -> None:
    """A bound far above what guessing reaches would hide a leak."""
    name = "positional: ask once, then guess of cart_add each of user_get_visit_history"
    found = [one for one in attack("CART", [name], (0,), 4 * TASKS, big_shop) if one.player == name]
    assert [one.share > one.chance / 2 for one in found] == [True]


@pytest.mark.parametrize("env", ["CART", "RETURN", "STATUS", "SUB"])
def test_one_bit_at_a_time_is_no_better_than_chance(env: str, big_shop: Shop) -> None:
    found = attack(env, ONE_BIT, (0, 4), TASKS, big_shop)
    assert found
    above = [
        f for f in found if laws.at_most(f.share, f.tasks, f.chance, by_chance=True) is laws.State.BROKEN
    ]
    assert not above, "\n".join(map(str, above))


@pytest.mark.parametrize("env", [env.id for env in ENVIRONMENTS.values() if not env.composes])
def test_talk_without_listening_is_no_better_than_chance(env: str, big_shop: Shop) -> None:
    """Greetings, summaries of nothing, blank consent, words in a heap and things shown, used as guesses."""
    found = attack(env, TALK, (0, 12), 12, big_shop)
    assert {name for name in TALK for one in found if name in one.player} == set(TALK)
    above = [
        f for f in found if laws.at_most(f.share, f.tasks, f.chance, by_chance=True) is laws.State.BROKEN
    ]
    assert not above, "\n".join(map(str, above))


@pytest.mark.parametrize(
    ("env", "kind", "plain"),
    [
        ("CART", "logic", "the condition holds"),
        ("SUB", "logic", "the condition holds"),
        ("PD", "none", "something fits"),
        ("BUNDLE", "trade_off", "the cheapest is the best"),
        ("RETURN", "rules", "it goes back"),
        ("STATUS", "telling", "ask_by"),
    ],
)
def test_a_contrarian_is_right_exactly_where_the_plain_choice_is_wrong(
    env: str, kind: str, plain: str, big_shop: Shop
) -> None:
    """So that its bound is the share in which outcomes are drawn. Where the plain choice is right, what the contrarian
    takes in its place may be the same product by chance."""
    met = list[tuple[bool, bool]]()
    for seed in range(60):
        task = make_task(env, 12, seed, big_shop)
        traps = [so for _, what, so in outcomes_of(task, big_shop) if what == plain]
        if traps and len(met) < 8:
            player = ENVIRONMENTS[env].reference_player(big_shop, contrary=[kind])
            met.append((finish(player, Episode(task, big_shop)).score.correct, not any(traps)))
    assert {right for right, _ in met} == {True, False}
    assert all(right for right, wrong in met if wrong)
    assert sum(right and not wrong for right, wrong in met) <= 2


@pytest.mark.parametrize("env", ["CART", "STATUS"])
def test_who_tells_every_value_has_answered_nothing(env: str, big_shop: Shop) -> None:
    asked = [task for seed in range(12) if (task := make_task(env, 12, seed, big_shop)).goal.asks]
    told = [
        finish(shotgun_teller(ENVIRONMENTS[env], big_shop), Episode(task, big_shop)).score for task in asked
    ]
    assert len(told) > 3 and not any(score.correct for score in told)
    assert all("was not answered" in score.why or "the answer to" in score.why for score in told)


@pytest.mark.parametrize("env", [env.id for env in CORRECTABLE if not env.composes])
def test_who_lives_on_corrections_is_right_at_most_a_third_as_often_as_who_talks(
    env: str, big_shop: Shop
) -> None:
    assert corrected(ENVIRONMENTS[env], big_shop), "nobody tries to live on this environment's corrections"
    found = attack(env, ["corrections of", "courteous"], (0, 1, 4), TASKS, big_shop)
    talking = {one.d: one.share for one in found if one.player == "courteous"}
    above = [one for one in found if one.player != "courteous" and one.share > talking[one.d] / 3]
    assert not above, "\n".join(map(str, above))


def test_fewer_visits_than_replacements_are_no_chance(real_folder: Path) -> None:
    """A history can be shorter than the list that is asked for; where it is not, a pick may be right."""
    shop = load_shop(real_folder)
    tasks = (make_task("SUB", 6, seed, shop, {"k_rec": 2, "steps.mean": 0}) for seed in range(100))
    audit, guessed = ENVIRONMENTS["SUB"].audit, 0
    for task in tasks:
        goal = plain(task.goal, AtFirst(shop, task.world))
        stages = stages_of(goal, task.events, task.world["gone"], shop)
        needed = min(min(goal["count"], len(rows)) for rows in stages)
        few = replace(task, world={**task.world, "visits": task.world["visits"][: max(0, needed - 1)]})
        assert audit.chance(few, shop) == 0
        guessed += audit.chance(task, shop) > 0
    assert guessed > 5


def test_a_journey_is_guessed_where_all_of_its_parts_are(big_shop: Shop) -> None:
    journeys = (make_task("JOURNEY", 0, seed, big_shop) for seed in range(99))
    pairs = (t for t in journeys if {part.env for part in t.subtasks} == {"RETURN", "STATUS"})
    found = ((t, [ENVIRONMENTS[one.env].audit.chance(one, big_shop) for one in t.subtasks]) for t in pairs)
    task, shares = next((t, some) for t, some in found if min(some) > 0)
    assert 0 < math.prod(shares) <= ENVIRONMENTS["JOURNEY"].audit.chance(task, big_shop) < min(shares)


def test_what_a_customer_does_without_need_not_be_found(big_shop: Shop) -> None:
    """All items but one are given up, of which more units are wanted than the one each that a guesser puts in."""
    quiet = {"p_oos": 0.0, "p_switch": 0.0, "p_missing": 0.0, "steps.mean": 0.0}
    for task in (draw_task("CART", 6, seed, big_shop, quiet) for seed in range(99)):
        single, *others = sorted(wants_of(task.goal), key=lambda want: want.quantity)
        if others and single.quantity == 1 and others[-1].quantity > 1:
            break
    dropped = [Instead(item=want.item, prefers="drop", turns=0, calls=0) for want in others]
    chance = ENVIRONMENTS["CART"].audit.chance
    assert chance(task, big_shop) == 0 < chance(replace(task, events=(*dropped,)), big_shop) < 0.5
