"""Labels of mistakes: none where nothing is wrong, exactly what is wrong elsewhere, in any order of what commutes."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from ecomlab import ENVIRONMENTS, Episode, Shop, load_shop, make_task, play
from ecomlab.episode.messages import parse_output
from ecomlab.episode.play import ReplayError, finish, record
from ecomlab.episode.record import Trajectory
from ecomlab.evaluation.claims import claims_in, is_false
from ecomlab.evaluation.mistakes import KINDS, TERMINAL, Labelled, label
from ecomlab.evaluation.scripted import attackers_of
from ecomlab.laws.tool_introspection import calls
from ecomlab.models.batch import first_turns
from ecomlab.players.base import Perturbation
from ecomlab.seeding import rng
from ecomlab.task import Goal, GoalChange, Message, SellOut, Task
from ecomlab.world.cart import wants_of
from ecomlab.world.state import World

every_env = pytest.mark.parametrize("env", list(ENVIRONMENTS))


def perturbed(env: str, d: int, seed: int, shop: Shop, rate: float = 0.15) -> Trajectory:
    """An episode of the reference player with seeded mistakes."""
    player = ENVIRONMENTS[env].reference_player(shop, Perturbation(rng("cascade", env, d, seed), rate))
    return play(player, make_task(env, d, seed, shop), shop)


def scripted(task: Task, shop: Shop, messages: Sequence[Message]) -> Trajectory:
    """An episode in which these messages are said, as far as it goes, and then it is handed in."""
    episode = Episode(task, shop)
    for message in (*messages, *[calls(("submit", {"done": True}))] * 2):
        if not episode.done:
            episode.act(message)
    return record(episode)


def found(labelled: Labelled) -> list[tuple[int, str]]:
    return [(mistake.turn, mistake.kind) for mistake in labelled.mistakes]


# --- controls ---


@every_env
@pytest.mark.parametrize("d", [1, 8])
def test_oracle_and_reference_player_make_no_mistake(env: str, d: int, shop: Shop) -> None:
    for seed in range(2):
        episode = Episode(make_task(env, d, seed, shop), shop)
        for player, played in (
            (ENVIRONMENTS[env].oracle(episode), episode),
            (ENVIRONMENTS[env].reference_player(shop), Episode(make_task(env, d, seed, shop), shop)),
        ):
            trajectory = finish(player, played)
            made = [one.kind for one in label(trajectory, shop).mistakes]
            if not trajectory.score.correct:
                continue
            # Who asks on while the customer does not know something may waste a turn.
            assert [kind for kind in made if kind != "wasted turn" or env not in ("JOURNEY", "RETURN")] == []


@every_env
def test_something_is_left_wrong_exactly_where_the_end_is_not_correct(env: str, shop: Shop) -> None:
    played = [perturbed(env, d, seed, shop) for d, seed in ((2, 0), (5, 1), (8, 2), (11, 3))]
    attackers = [attackers_of(env)[name](0) for name in list(attackers_of(env))[::6]]
    played += [play(attacker, make_task(env, 3, 0, shop), shop) for attacker in attackers]
    for trajectory in played:
        labelled = label(trajectory, shop)
        assert labelled.correct == (not labelled.standing) or trajectory.end == "invalid", (
            trajectory.score.why
        )
        assert {mistake.kind for mistake in labelled.mistakes} <= set(KINDS)


def test_a_record_of_another_conversation_is_refused(shop: Shop) -> None:
    trajectory = perturbed("CART", 1, 0, shop)
    trajectory.messages[1]["content"] = "Hello?"
    with pytest.raises(ReplayError):
        label(trajectory, shop)


def test_look_ups_in_another_order_change_no_label(shop: Shop) -> None:
    trajectory = perturbed("CART", 8, 0, shop, 0.3)
    looks = {"catalog_search", "catalog_get_variants", "cart_view"}
    turned: list[Message] = []
    for message in trajectory.messages:
        made = message.get("tool_calls") or []
        if message["role"] == "assistant":
            commute = {call["function"]["name"] for call in made} <= looks
            turned.append({**message, "tool_calls": made[::-1]} if made and commute else message)
    episode = Episode(trajectory.task, shop)
    for message in turned:
        episode.act(message)
    assert turned != [m for m in trajectory.messages if m["role"] == "assistant"]
    assert label(record(episode), shop).mistakes == label(trajectory, shop).mistakes


# --- a cart with one thing that is wanted ---


class Wanted:
    """A task of one item, or one `item` of it, and what a script needs to know of it."""

    def __init__(self, task: Task, shop: Shop, item: int = 0) -> None:
        self.task, self.shop = task, shop
        self.want = wants_of(task.goal)[item]
        catalog = shop.catalog
        rows = [row for row in catalog.type_rows(self.want.type) if catalog.stock[row] >= 6]
        self.fitting = [catalog.ids[r] for r in rows if catalog.satisfies(int(r), self.want.constraints)]
        self.others = [catalog.ids[r] for r in rows if not catalog.satisfies(int(r), self.want.constraints)]

    def add(self, product_id: str, quantity: int, variant: str | None = None) -> tuple[str, dict[str, Any]]:
        return "cart_add", {"product_id": product_id, "quantity": quantity, "variant_id": variant}

    def see(self) -> Message:
        """A message after which every product of the type has been shown, in a small shop."""
        category = {"category": self.want.type}
        return calls(*(("catalog_search", {**category, "page": page}) for page in (1, 2, 3)))

    def variants(self) -> Message:
        """A message after which the variants of the first fitting product have been shown."""
        return calls(("catalog_get_variants", {"product_id": self.fitting[0]}))

    def other_option(self) -> str:
        world = Episode(self.task, self.shop).world
        return next(o for o in world.options(world.row(self.fitting[0])) if o != self.want.option)

    def labelled(self, *messages: Message) -> Labelled:
        return label(scripted(self.task, self.shop, messages), self.shop)


def wanted(shop: Shop, option: bool, units: int) -> Wanted:
    """The first task of one item, with or without an option, of so many units, in which nothing happens."""
    axes: dict[str, float] = {
        "cart.items": 1,
        "p_oos": 0,
        "p_switch": 0,
        "eps_rank": 0,
        "constraints": 2,
        "p_missing": 0,
        "steps.mean": 0,
    }
    axes |= {"cart.p_option": float(option), "cart.p_quantity": float(units > 1)}
    for seed in range(300):
        found = Wanted(make_task("CART", 3, seed, shop, axes), shop)
        kind = shop.catalog.types[shop.catalog.type_codes[found.want.type]]
        some = option <= (
            0 < len(shop.catalog.options(shop.catalog.row(found.fitting[0]) or 0)) < len(kind.option.values)
        )
        if some and found.want.quantity == units and len(found.fitting) > 1 and len(found.others) > 1:
            return found
    raise AssertionError("no such task")


@pytest.fixture(scope="module")
def three(shop: Shop) -> Wanted:
    """Three units of something, in any variant."""
    return wanted(shop, option=False, units=3)


@pytest.fixture(scope="module")
def variant(shop: Shop) -> Wanted:
    """One unit of something, in a certain variant."""
    return wanted(shop, option=True, units=1)


@pytest.fixture(scope="module")
def two(shop: Shop) -> Wanted:
    """One unit of something of which several products would do."""
    return wanted(shop, option=False, units=1)


SAID = {"role": "assistant", "content": "It is in your cart."}
Say = Callable[[Wanted, str, str], Sequence[Message]]
"""Messages for a task, a product that fits it and one that does not."""


def removed(product_id: str) -> tuple[str, dict[str, Any]]:
    return "cart_remove", {"product_id": product_id}


CASES: dict[str, tuple[str, Say, list[Any]]] = {
    "undone in the same message": (
        "three", lambda w, right, wrong: [calls(w.add(wrong, 2), removed(wrong), w.add(right, 3))], [],
    ),
    "units in two calls of a message are added up": (
        "three", lambda w, right, wrong: [calls(w.add(right, 1), w.add(right, 2))], [],
    ),
    "units in two messages are a wrong quantity in between": (
        "three", lambda w, right, wrong: [calls(w.add(right, 1)), calls(w.add(right, 2))],
        [(2, "wrong quantity", "mended after a correction", None)],
    ),
    "another product that fits": ("two", lambda w, right, wrong: [calls(w.add(w.fitting[1], 1))], []),
    "another wrong product follows from the first, for the place was never right": (
        "two", lambda w, right, wrong: [calls(w.add(wrong, 1)), calls(removed(wrong), w.add(w.others[1], 1))],
        [
            (2, "wrong product", "persisted", None), (3, "wrong product", "persisted", 0),
            (3, "ignored correction", "persisted", 0),
        ],
    ),
    "an emptied cart is a missed item that follows": (
        "two", lambda w, right, wrong: [calls(w.add(wrong, 1)), calls(removed(wrong))],
        [(2, "wrong product", "mended after a correction", None), (4, "missed item", "persisted", 0)],
    ),
    "corrections that are ignored are given up, and the item is not missed": (
        "two", lambda w, right, wrong: [calls(w.add(wrong, 1)), SAID, SAID, SAID],
        [
            (2, "wrong product", "given up", None), (3, "ignored correction", "given up", 0),
            (4, "ignored correction", "given up", 0),
        ],
    ),
    "an id that no tool has shown is found once": (
        "two", lambda w, right, wrong: [calls(w.add(right, 1))], [(1, "unseen id", "passed", None)],
    ),
    "many calls in a message are read as one turn": (
        "two", lambda w, right, wrong: [calls(w.add(right, 1), *[("cart_view", {})] * 39)],
        [(2, "out of calls", "passed", None)],
    ),
    "a wrong variant": (
        "variant", lambda w, right, wrong: [w.variants(), calls(w.add(right, 1, w.other_option()))],
        [(3, "wrong variant", "persisted", None)],
    ),
    "no variant at all": (
        "variant", lambda w, right, wrong: [w.variants(), calls(w.add(right, 1))],
        [(3, "wrong variant", "persisted", None)],
    ),
    "a variant that only the customer named": (
        "variant", lambda w, right, wrong: [calls(w.add(right, 1, w.want.option))],
        [(2, "unseen pair", "passed", None)],
    ),
}  # fmt: skip
"""Carts: the task, what is said after a look at all products, and (turn, kind, fate, parent) of each mistake."""


@pytest.mark.parametrize("case", CASES)
def test_a_cart_has_exactly_its_mistakes(case: str, request: pytest.FixtureRequest) -> None:
    fixture, say, expected = CASES[case]
    task: Wanted = request.getfixturevalue(fixture)
    look = [] if expected and expected[0][1] == "unseen id" else [task.see()]
    made = task.labelled(*look, *say(task, task.fitting[0], task.others[0])).mistakes
    assert [(m.turn, m.kind, m.fate, m.parent) for m in made] == expected


def test_a_wrong_product_is_found_where_it_is_made_and_its_place_is_followed(two: Wanted) -> None:
    right, wrong = two.fitting[0], two.others[0]
    mended = calls(removed(wrong), two.add(right, 1))
    (mistake,) = two.labelled(two.see(), calls(two.add(wrong, 1)), mended).mistakes
    assert (mistake.turn, mistake.kind, mistake.thing) == (2, "wrong product", wrong)
    assert (mistake.until, mistake.fate) == (3, "mended after a correction")
    assert mistake.cause in ("mis-selected", "unasked")
    assert set(mistake.slots) & set(two.want.slots)


def test_two_wants_of_one_type_are_matched_before_anything_is_blamed(shop: Shop) -> None:
    env, task = ENVIRONMENTS["CART"], make_task("CART", 1, 0, shop)
    world = Episode(task, shop).world
    kind = shop.catalog.types[0].name
    able = (r for r in shop.catalog.type_rows(kind) if len(world.options(r)) > 2)
    row = next(r for r in able if shop.catalog.stock[r] > 5)
    first, second, third, *_ = world.options(row)
    goal = Goal({(0, "type"): kind, (0, "option"): first, (1, "type"): kind, (1, "option"): second})
    product_id = shop.catalog.ids[row]
    world.cart = {(product_id, second): 1, (product_id, first): 1}
    assert list(env.audit.faults(goal, world, {"done": True}, goal)) == []
    world.cart = {(product_id, second): 1, (product_id, third): 1}
    assert [(f.kind, f.place) for f in env.audit.faults(goal, world, {"done": True}, goal)] == [
        ("wrong variant", "item 0")
    ]


# --- claims of absence ---


def shown(wanted: Wanted) -> World:
    episode = Episode(wanted.task, wanted.shop)
    episode.act(wanted.see())
    return episode.world


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, the {} is sold out.",
        "Unfortunately we don't have any {} like that.",
        "There is no such {}.",
        "The {} doesn't exist.",
        "I couldn't find a {} for you.",
        "The {} is not available at the moment.",
        "The {} isn't in stock.",
        "That {} is out of stock, and something else is nice.",
    ],
)
def test_a_denial_is_read(text: str, two: Wanted) -> None:
    claims, _ = claims_in(text.format(two.want.type.lower()), [two.want], shown(two))
    assert [claim.want for claim in claims] == [two.want]
    said = {"role": "assistant", "content": text.format(two.want.type)}
    assert (2, "claims absence") in found(two.labelled(two.see(), said))


@pytest.mark.parametrize(
    "text",
    [
        "Is the {} sold out?",
        "You said that the old one was sold out. Which {} would you like?",
        "The {} is not sold out.",
        "I have put the {} into your cart.",
        "There are three of the {} in stock.",
    ],
)
def test_what_denies_nothing_is_no_claim(text: str, two: Wanted) -> None:
    assert claims_in(text.format(two.want.type), [two.want], shown(two))[0] == []


def test_a_denial_of_what_has_sold_out_is_true(two: Wanted) -> None:
    world = shown(two)
    world.gone |= {*world.catalog.select(two.want.constraints).tolist()}
    (claim,), _ = claims_in(f"The {two.want.type} is sold out.", [two.want], world)
    assert not is_false(claim, world)
    world.gone.clear()
    assert is_false(claim, world)


def test_a_denial_of_one_variant_says_nothing_of_the_others(variant: Wanted) -> None:
    episode = Episode(variant.task, variant.shop)
    episode.act(variant.see())
    episode.act(calls(("catalog_get_variants", {"product_id": variant.fitting[0]})))
    world = episode.world
    kind = variant.shop.catalog.types[variant.shop.catalog.type_codes[variant.want.type]]
    offered = world.options(world.row(variant.fitting[0]))
    absent = next(value for value in kind.option.values if value not in offered)
    for option, false in ((absent, False), (offered[0], True)):
        (claim,), _ = claims_in(f"The {variant.want.type} doesn't come in {option}.", [variant.want], world)
        assert (claim.option, is_false(claim, world)) == (option, false)


# --- events ---


def test_a_wish_that_is_heard_and_not_followed_is_stale(shop: Shop) -> None:
    """By a reference player that hears the customer no more once they change their mind."""
    for seed in range(60):
        task, deaf_from = make_task("PD", 6, seed, shop), 10**6
        episode, player = Episode(task, shop), ENVIRONMENTS["PD"].reference_player(shop)
        while not episode.done:
            waiting = [
                {**m, "content": "One moment, please."} if m["role"] == "user" else m
                for m in episode.messages
            ]
            episode.act(player([*episode.messages[:deaf_from], *waiting[deaf_from:]], episode.tools))
            if any(isinstance(event, GoalChange) for event in episode.fired):
                deaf_from = min(deaf_from, len(waiting))
        if episode.end == "submit" and deaf_from < 10**6 and not episode.score().correct:
            stale = [m for m in label(record(episode), shop).mistakes if m.kind == "stale wish"]
            assert stale and {m.cause for m in stale} == {"stale"}
            return
    raise AssertionError("no customer of these changed their mind")


ENDS = {
    "invalid output": parse_output("<tool_call>{bad</tool_call>"),
    "out of turns": {"role": "assistant", "content": "One moment, please."},
    "patience lost": {"role": "assistant", "content": "Blorp fizzle wug?"},
}


@every_env
@pytest.mark.parametrize("kind", ENDS)
def test_whatever_an_end_leaves_undone_follows_from_it(env: str, kind: str, shop: Shop) -> None:
    task = make_task(env, 1, 0, shop)
    episode = Episode(task, shop)
    for message in [*first_turns(task, shop, 0.3), *[ENDS[kind]] * 60]:
        if not episode.done:
            episode.act(message)
    mistakes = label(record(episode), shop).mistakes
    (end,) = [number for number, one in enumerate(mistakes) if one.fate == "ended the episode"]
    assert mistakes[end].kind == TERMINAL[str(episode.end)]
    assert kind != "invalid output" or mistakes[end].kind == kind
    assert all(one.parent == end for one in mistakes[end + 1 :])


def test_a_call_that_is_refused_because_of_stock_is_no_mistake(shop: Shop) -> None:
    for seed in range(60):
        task = make_task("CART", 9, seed, shop, {"cart.items": 1, "eps_rank": 0, "cart.p_option": 0})
        if not any(isinstance(event, SellOut) for event in task.events):
            continue
        look = Wanted(task, shop)
        episode = Episode(task, shop)
        episode.act(look.see())
        shown = [one for one in look.fitting if one in episode.world.shown]
        gone = [one for one in shown if episode.world.stock(episode.world.row(one)) == 0]
        if gone:
            labelled = look.labelled(look.see(), calls(look.add(gone[0], 1)))
            assert {turn for turn, _ in found(labelled)} <= {labelled.turns}, "only by handing in"
            return
    raise AssertionError("nothing of these sold out")


@pytest.mark.parametrize(("env", "d"), [("CART", 8), ("PD", 2)])  # reviews are drawn by id
def test_other_ids_of_products_and_calls_change_no_label(env: str, d: int) -> None:
    shop = load_shop(1_000)
    ids = [b"Q" + one[1:] for one in shop.catalog.packed_ids]
    other = replace(shop, catalog=replace(shop.catalog, packed_ids=np.array(ids)))
    other.__dict__["fingerprint"] = shop.fingerprint  # by which everything in a task is drawn

    def renamed(value: Any) -> Any:
        text = re.sub(r"\bP(?=[0-9A-Z]{6}\b)", "Q", json.dumps(value))
        return json.loads(re.sub(r'"(c\d+)"', r'"x\1"', text))

    player = ENVIRONMENTS[env].reference_player(shop, Perturbation(rng("renamed", env), 0.4))
    trajectory = play(player, make_task(env, d, 4, shop), shop)
    record = replace(
        trajectory,
        task=Task.from_json(renamed(trajectory.task.to_json())),
        messages=renamed(trajectory.messages),
    )
    mistakes = [asdict(mistake) for mistake in label(trajectory, shop).mistakes]
    others = [asdict(mistake) for mistake in label(record, other).mistakes]
    assert mistakes and renamed(mistakes) == json.loads(json.dumps(others))
