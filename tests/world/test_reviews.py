"""Reviews: what they say, how they are counted, and the customers of PD who go by them."""

from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from ecomlab import ENVIRONMENTS, Episode, Shop, Task, play
from ecomlab.customer import nlu
from ecomlab.customer.opinions import Thing, of_product
from ecomlab.episode.episode import draw_task
from ecomlab.seeding import EVALUATION_SEEDS
from ecomlab.steps import only
from ecomlab.task import Goal
from ecomlab.wishes import Said
from ecomlab.world import reviews, unmet
from ecomlab.world.ranking import of_rows, rank_of
from ecomlab.world.reviews import BY, Review, Sentence, claims_on, meets, read_review, reviews_of

PD = ENVIRONMENTS["PD"]
EVIDENCE = only("evidence", mean=3)


def review(verdict: str, verified: bool = True, recent: bool = True, topic: str = "noise") -> Review:
    return Review((Sentence(topic, verdict),), 4, verified, recent, 0.5)


def shown(task: Task, shop: Shop, row: int) -> list[dict[str, Any]]:
    world = Episode(task, shop).world
    found = PD.offered["catalog_get_reviews"].function(world, [shop.catalog.ids[row]])
    return list(found["products"][0]["reviews"])


def test_no_sentence_is_part_of_another_and_each_verdict_has_a_dozen() -> None:
    file = reviews._file()
    lists = [verdict.every for topic in file.topics.values() for verdict in topic.verdicts.values()]
    assert min(map(len, lists)) >= 12
    lists += [file.nothing.every, *(topic.mentions.every for topic in file.topics.values())]
    every = [text for some in lists for text in some]
    assert not [(a, b) for a, b in combinations(every, 2) if a in b or b in a]


def test_more_say_so_than_say_otherwise() -> None:
    two_of_three = [review("quiet"), review("loud"), review("quiet", verified=False), review("")]
    assert meets(Said((("noise", "quiet", "all"),)), two_of_three)
    assert not meets(Said((("noise", "quiet", "verified"),)), two_of_three)  # one against one
    assert not meets(Said((("noise", "quiet", "all"),)), [review("")])


def test_none_says_the_bad_thing() -> None:
    old = [review("large", topic="fit", recent=False), review("small", topic="fit")]
    assert meets(Said((("fit", "large", "recent"),)), old)
    assert not meets(Said((("fit", "large", "all"),)), old)
    assert not meets(Said((("fit", "large", "recent"), ("fit", "small", "recent"))), old)


@pytest.mark.parametrize("seed", [3, EVALUATION_SEEDS[3]])
def test_what_a_tool_shows_is_read_back_as_it_was_drawn(seed: int, shop: Shop) -> None:
    task, held = draw_task("PD", 3, seed, shop), seed in EVALUATION_SEEDS
    for row in range(0, shop.catalog.size, 17):
        records = shown(task, shop, row)
        read = Counter(
            (
                one.stars,
                one.verified,
                one.recent,
                frozenset(said.topic + said.verdict for said in one.sentences),
            )
            for one in (read_review(record, "2026") for record in records)
        )
        assert read == Counter(
            (
                one.stars, one.verified, one.recent,
                frozenset(said.topic + said.verdict for said in one.sentences if said.verdict),
            )
            for one in reviews_of(row, shop.catalog)
        )  # fmt: skip
        texts = [said.words(held) for one in reviews_of(row, shop.catalog) for said in one.sentences]
        assert len(texts) - len({*texts}) <= 1  # a list that is short is begun anew


def test_reviews_are_the_same_whatever_the_customer_wants(shop: Shop) -> None:
    one, other = draw_task("PD", 0, 1, shop), draw_task("PD", 12, 2, shop, EVIDENCE)
    assert shown(one, shop, 40) == shown(other, shop, 40)


def test_a_demand_on_reviews_is_read_back_from_every_frame(shop: Shop) -> None:
    slot, claims = PD.phrases.slots["said"], claims_on("Running Shoe")
    assert {by for *_, by in claims} == {*BY}
    for number, form in enumerate((*slot.bank[""], *slot.bank[""])):
        said = Said((claims[number % len(claims)], claims[(number + 5) % len(claims)])[: 1 + number % 2])
        text = form.text.replace("{}", slot.format.write(said))
        assert nlu.read_slots(text, PD.phrases, PD.reference_player(shop).lexicon) == [("said", said)]


def test_reviews_count_and_what_is_best_without_them_is_as_often_right_as_not(big_shop: Shop) -> None:
    right = Counter[str]()
    drawn = [draw_task("PD", 8, seed, big_shop, EVIDENCE) for seed in range(90)]
    held = [task for task in drawn if "evidence" in task.steps]
    assert len(held) > 80
    for task in held:
        left = unmet.stages(task.goal, task.events, big_shop)[-1]
        meet, catalog = np.isin(left.asked, left.rows), big_shop.catalog
        right["best"] += meet[np.argmin(rank_of(left.goal).key(of_rows(left.asked, catalog)))]
        right["cheapest"] += meet[np.argmin(catalog.price_cents[left.asked])]
        right["best rated"] += meet[np.argmax(catalog.rating_tenths[left.asked])]
    assert all(0.28 < count / len(held) < 0.72 for count in right.values()), right  # 35 to 65%, of 90


@pytest.mark.parametrize("d", [4, 12])
def test_whoever_does_not_read_reviews_is_wrong(d: int, big_shop: Shop) -> None:
    for seed in range(12):
        task = draw_task("PD", d, seed, big_shop, EVIDENCE)
        assert play(PD.reference_player(big_shop), task, big_shop).score.correct
        if "evidence" in task.steps:
            assert not play(PD.reference_player(big_shop, lacks=["evidence"]), task, big_shop).score.correct


def test_a_customer_does_not_know_what_reviews_say(shop: Shop) -> None:
    task = draw_task("PD", 12, 0, shop, EVIDENCE)
    goal, world = task.goal, Episode(task, shop).world
    left = unmet.nearest_in(goal, world)
    for row in left.asked.tolist():
        assert of_product(goal, world, Thing("product", shop.catalog.ids[row], "it")) is None
    without: Goal = goal.drop_slots("said")
    assert of_product(without, world, Thing("product", shop.catalog.ids[left.asked[0]], "it")).right  # type: ignore[union-attr]
