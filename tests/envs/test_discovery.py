"""Trade-offs and none in PD: what is worth what, what cannot be met together, and what is nearest."""

import json
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from ecomlab import ENVIRONMENTS, Episode, Shop, Task, make_task, play
from ecomlab.customer.said_draws import MOST_READ
from ecomlab.envs.discovery.player import DiscoveryPlayer
from ecomlab.episode.episode import draw_task
from ecomlab.steps import only
from ecomlab.task import Event, Goal, GoalChange
from ecomlab.wishes import Said
from ecomlab.world import unmet
from ecomlab.world.ranking import Lex, Worth, of_record, of_rows
from ecomlab.world.reviews import claims_on, meets, reviews_of
from ecomlab.world.unmet import GIVE_WAY

PD = ENVIRONMENTS["PD"]
BOTH = only("trade_off", "none", mean=3, none=5)
"""Overrides under which every task holds what gives way, and a trade-off."""
BONUSES = (("", "with salt and pepper trim", 12500), ("", "by Oak & Co", 300))
WORTHS = [
    Worth((("rating", 1000),)),
    Worth((("days", 300), ("rating", 12500))),
    Worth((("days", 300),), "", BONUSES, tuple(words for _, words, _ in BONUSES)),
]


def tasks(shop: Shop, d: int, count: int) -> list[Task]:
    """Tasks that hold a trade-off and what gives way; few types have no room for both at the highest levels."""
    drawn = [draw_task("PD", d, seed, shop, BOTH) for seed in range(count)]
    found = [task for task in drawn if "give_way" in task.goal]
    assert len(found) > 0.6 * count
    return found


def test_a_key_is_the_price_minus_what_stars_are_worth_plus_what_days_cost() -> None:
    record = {
        "price": 99.9,
        "rating": 4.5,
        "ship_days": 2,
        "brand": "HearthMint",
        "attributes": {"color": "Blue"},
    }
    assert Worth((("rating", 1000), ("days", 300))).key(of_record(record)) == 9990 - 4500 + 600
    assert FOR_A_VALUE.key(of_record(record)) == 9990 + 600 - 1500


FOR_A_VALUE = Worth((("days", 300),), "", (("attr:color", "Red", 500), ("brand", "HearthMint", 1500)))


@pytest.mark.parametrize(
    "rank", [*WORTHS[:2], FOR_A_VALUE, Lex(("rating", "price", "delivery")), Lex(("delivery", "rating"))]
)
def test_a_record_has_the_key_of_its_row(rank: Any, big_shop: Shop) -> None:
    rows = np.arange(0, big_shop.catalog.size, 37)
    records = [big_shop.catalog.record(row) for row in rows.tolist()]
    assert rank.key(of_rows(rows, big_shop.catalog)).tolist() == [rank.key(of_record(one)) for one in records]


def test_an_order_of_preferences_decides_by_the_first_that_differs(big_shop: Shop) -> None:
    records = [big_shop.catalog.record(row) for row in range(300)]
    by_key = sorted(records, key=lambda one: Lex(("rating", "price", "delivery")).key(of_record(one)))
    assert by_key == sorted(records, key=lambda one: (-one["rating"], one["price"], one["ship_days"]))


@pytest.mark.parametrize("worth", WORTHS)
def test_a_wish_survives_json_in_goals_and_in_changes_of_mind(worth: Worth) -> None:
    goal = Goal.one({"type": "Kettle", "worth": worth})
    change = GoalChange(slots={"worth": worth})
    assert Goal.from_json(json.loads(json.dumps(goal.to_json()))) == goal
    assert Event.from_json(json.loads(json.dumps(change.to_json()))) == change


@pytest.mark.parametrize("worth", WORTHS)
def test_a_worth_is_read_as_it_was_said_in_digits_and_in_letters(worth: Worth) -> None:
    for said in (worth.say(), *worth.say_otherwise()):
        assert Worth.format().read(said) == worth


def test_what_gives_way_is_read_as_it_was_said() -> None:
    order = ["price", "attr:works_with", "days", "attr:strap_material"]
    assert GIVE_WAY.read(GIVE_WAY.write(order)) == order


def test_the_smallest_sets_are_those_that_all_subsets_show() -> None:
    random = np.random.default_rng(0)
    for _ in range(50):
        sets = random.integers(1, 32, 6).tolist()
        cannot = [chosen for chosen in range(1, 32) if all(chosen & one for one in sets)]
        least = {one for one in cannot if not any(other & one == other != one for other in cannot)}
        assert {*unmet.smallest(sets)} == least
    assert unmet.smallest([]) == []


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("price", "price"), ("Budget", "price"), ("the colour", "attr:color"), ("attr:color", "attr:color"),
        ("delivery time", "days"), ("rating >= 4.5", "rating"), ("maximum price of $50", "price"),
        ("HearthMint", "brand"), ("compatibility", "attr:works_with"), ("", None), ("price and color", None),
        ("weather", None),
    ],
)  # fmt: skip
def test_a_demand_is_named_as_people_name_it(said: str, meant: str | None) -> None:
    slots = {"price": 5000, "rating": 45, "days": 3, "brand": "HearthMint", "attr:color": "Red"}
    goal = Goal.one({"type": "Kettle", **slots, "attr:works_with": "iPhone"})
    assert unmet.named(said, goal) == meant


def handed_in(task: Task, shop: Shop) -> tuple[Episode, dict[str, Any]]:
    """Let the oracle play; return the episode and what it submitted."""
    episode = Episode(task, shop)
    oracle = PD.oracle(episode)
    while not episode.done:
        episode.act(oracle(episode.messages, episode.tools))
    assert episode.score().correct
    return episode, dict(episode.answer or {})


def credit(task: Task, shop: Shop, **changed: Any) -> tuple[bool, float]:
    """Whether the oracle's answer is correct once changed, and its r_task."""
    episode, answer = handed_in(task, shop)
    verdict = PD.verify(episode.goal, episode.world, {**answer, **changed}, task.goal)
    return verdict.correct, verdict.credit


def test_an_argued_none_is_right_and_a_bare_one_is_not(big_shop: Shop) -> None:
    none = [task for task in tasks(big_shop, 8, 24) if "none" in task.steps]
    assert len(none) > 5
    for task in none:
        episode, answer = handed_in(task, big_shop)
        others = [one.field for one in unmet.demands(episode.goal) if one.field not in answer["unmet"]]
        assert credit(task, big_shop) == (True, 1.0)
        assert credit(task, big_shop, unmet=[f"The {name}" for name in reversed(answer["unmet"])])[0]
        assert credit(task, big_shop, product_ids=[]) == (False, -1.0)
        for wrong in (
            [],
            answer["unmet"][:-1],
            ["weather"],
            [*answer["unmet"], *others[:1]] if others else [],
        ):
            correct, value = credit(task, big_shop, unmet=wrong)
            assert not correct
            assert value <= 0
            audited = PD.audit.faults(episode.goal, episode.world, {**answer, "unmet": wrong}, episode.goal)
            assert [(fault.kind, fault.slots) for fault in audited] == [("wrong reason", ("give_way",))]


def test_what_is_nearest_breaks_one_demand_alone_the_first_that_helps(big_shop: Shop) -> None:
    catalog = big_shop.catalog
    for task in tasks(big_shop, 8, 24):
        episode, answer = handed_in(task, big_shop)
        rows = episode.world.in_stock(np.array(catalog.type_rows(episode.goal["type"])))
        broken = [
            {one.field for one in unmet.demands(episode.goal) if not catalog.satisfies(row, (one,))}
            for row in rows
        ]
        helps = [name for name in episode.goal["give_way"] if {name} in broken]
        expected = set() if set() in broken else {helps[0]}
        given = [row for row in rows if catalog.ids[row] in answer["product_ids"]]
        assert [broken[rows.tolist().index(row)] for row in given] == [expected] * episode.goal["count"]
        assert ("none" in task.steps) == (set() not in broken)
        names = [one.field for one in unmet.demands(episode.goal)]
        cannot = [
            {*some}
            for size in range(1, len(names) + 1)
            for some in combinations(names, size)
            if all({*some} & one for one in broken)
        ]
        said = {*(answer.get("unmet") or ())}
        assert said in cannot if cannot else not said
        assert not any(one < said for one in cannot)


def test_a_reason_where_something_fits_is_wrong(big_shop: Shop) -> None:
    fits = [task for task in tasks(big_shop, 8, 24) if "none" not in task.steps]
    assert len(fits) > 5
    for task in fits:
        assert credit(task, big_shop)[0]
        assert not credit(task, big_shop, unmet=["price", task.goal["give_way"][0]])[0]


@pytest.mark.parametrize("d", [4, 8, 12, 20])
def test_whoever_lacks_a_step_is_wrong_where_it_counts(d: int, big_shop: Shop) -> None:
    counted = {"trade_off": 0, "none": 0}
    for task in tasks(big_shop, d, 16):
        assert play(PD.reference_player(big_shop), task, big_shop).score.correct
        for kind in task.steps:
            player = PD.reference_player(big_shop)
            assert isinstance(player, DiscoveryPlayer)
            player.lacks = frozenset((kind,))
            assert not play(player, task, big_shop).score.correct, (d, task.seed, kind)
            counted[kind] += 1
    assert min(counted.values()) > 2


def test_the_best_lead_the_others_and_are_not_the_cheapest(big_shop: Shop) -> None:
    for task in tasks(big_shop, 10, 20):
        episode, answer = handed_in(task, big_shop)
        left = unmet.nearest_in(episode.goal, episode.world)
        keys = np.sort(episode.goal["worth"].key(of_rows(left.rows, big_shop.catalog)))
        count = episode.goal["count"]
        assert keys[count] - keys[count - 1] >= 0.05 * (keys[-1] - keys[0])
        prices = {big_shop.catalog.ids[row]: big_shop.catalog.price_cents[row] for row in left.rows}
        best = [prices.pop(product_id) for product_id in answer["product_ids"]]
        assert max(best) > min(prices.values())


def test_what_gives_way_and_the_budgets_tell_nothing_of_whether_anything_fits(big_shop: Shop) -> None:
    drawn = tasks(big_shop, 9, 100)
    none = [task for task in drawn if "none" in task.steps]
    fits = [task for task in drawn if "none" not in task.steps]
    assert 0.35 < len(none) / (len(none) + len(fits)) < 0.65
    assert len({(task.turns, task.calls) for task in (*none, *fits)}) == 1
    first = [np.mean([one.goal["give_way"][0] == "price" for one in some]) for some in (none, fits)]
    assert abs(first[0] - first[1]) < 0.25


class Contrarian(DiscoveryPlayer):
    """Takes it for granted that nothing fits."""

    def _fitting(self, slots: Any) -> list[dict[str, Any]]:
        given_up = self.dropped or not self.tried or any(name not in slots for name in self.tried)
        return super()._fitting(slots) if given_up else []


def test_nothing_fits_is_no_answer_to_everything(big_shop: Shop) -> None:
    right = 0
    for seed in range(40):
        task = draw_task("PD", 8, seed, big_shop)
        player = PD.reference_player(big_shop)
        player.__class__ = Contrarian
        episode = Episode(task, big_shop)
        while not episode.done:
            message = player(episode.messages, episode.tools)
            for call in message.get("tool_calls") or ():
                if call["function"]["name"] == "submit":
                    given = json.loads(call["function"]["arguments"])
                    given.setdefault("unmet", ["price", "rating"])
                    call["function"]["arguments"] = json.dumps(given)
            episode.act(message)
        right += episode.score().correct and "none" not in task.steps
    assert right == 0


@pytest.fixture(scope="module")
def told(big_shop: Shop) -> Task:
    """A task whose customer has said nothing of what a star and a day are worth, nor of what gives way."""
    drawn = (draw_task("PD", 12, seed, big_shop, BOTH) for seed in range(200))
    both = (task for task in drawn if len(getattr(task.goal.get("worth"), "terms", ())) == 2)
    return next(task for task in both if {(0, "worth"), (0, "give_way")} <= task.goal.withheld)


def answered(task: Task, shop: Shop, *said: str) -> str:
    episode = Episode(task, shop)
    for one in said:
        turn = episode.act({"role": "assistant", "content": one})
    return str(turn.messages[-1]["content"])


@pytest.mark.parametrize(
    ("question", "words"),
    [("What matters most to you?", ("for each extra star", "for each day sooner")),
     ("How much is a star worth to you?", ("for each extra star", "for each day sooner")),
     ("If nothing fits, what would you give up first?", (", or else the ",)),
     ("What could you do without?", (", or else the ",))],
)  # fmt: skip
def test_the_customer_says_for_the_asking_what_a_star_is_worth_and_what_gives_way(
    question: str, words: tuple[str, ...], told: Task, big_shop: Shop
) -> None:
    said = answered(told, big_shop, question)
    assert all(one in said for one in words)


@pytest.mark.parametrize("moved", [0, 300])
@pytest.mark.parametrize(
    "claim",
    [
        "A star more is worth ${star} to you, correct?",
        "So you'd pay ${star} more for each extra star, right?",
    ],
)
def test_what_is_said_of_a_worth_is_affirmed_only_where_it_is_so(
    claim: str, moved: int, told: Task, big_shop: Shop
) -> None:
    cents = dict(told.goal["worth"].terms)["rating"] + moved
    said = answered(told, big_shop, "How much is a star worth to you?", claim.format(star=cents // 100))
    assert ("for each extra star" in said) == bool(moved)


def test_the_customer_says_for_the_asking_what_a_value_is_worth_and_never_that_it_does_not_matter(
    big_shop: Shop,
) -> None:
    heard = 0
    for seed in range(6):
        task = draw_task("PD", 12, seed, big_shop, {"p_noise": 0} | only("trade_off", mean=1))
        for slot, value, _ in task.goal["worth"].bonuses:
            said = answered(task, big_shop, f"Should the {slot.removeprefix('attr:')} be {value}?")
            assert all(f"for one {words}" in said for words in task.goal["worth"].words)
            heard += 1
    assert heard > 4


def test_all_that_filters_leave_is_listed_where_reviews_decide(big_shop: Shop) -> None:
    """No filter goes by reviews, alternatives or exceptions, and a search lists twenty at this level."""
    drawn = [make_task("PD", 20, seed, big_shop) for seed in range(1_000_000, 1_000_024)]
    with_reviews = [task for task in drawn if "said" in task.goal]
    assert len(with_reviews) > 10
    for task in with_reviews:
        assert play(PD.reference_player(big_shop), task, big_shop).score.correct, task.key


def test_however_many_fit_the_rest_the_judge_goes_by_the_reviews_of_all(big_shop: Shop) -> None:
    """A change of mind may leave more products than a demand on reviews is drawn among."""
    kind = max(big_shop.catalog.types, key=lambda one: len(big_shop.catalog.type_rows(one.name))).name
    rows = big_shop.catalog.type_rows(kind)
    said = Said((claims_on(kind)[0],))
    left = unmet.nearest(Goal.one({"type": kind, "said": said}), np.array(rows), big_shop.catalog)
    meeting = [row for row in rows if meets(said, reviews_of(row, big_shop.catalog))]
    assert len(rows) > 3 * MOST_READ
    assert left.rows.tolist() == meeting


def test_pages_of_all_that_filters_leave_are_counted_and_reviews_of_all_that_fits(big_shop: Shop) -> None:
    rows, goal = np.arange(33), Goal.one({"type": "Mug"})
    shown = unmet.Nearest(goal, rows)
    read = unmet.Nearest(goal, rows[:4], asked=rows[:12])
    assert (
        DiscoveryPlayer.calls(read, shown, 3, big_shop.catalog) == 1 + 7 + 3
    )  # five a page, and a look at the clock
