"""The customer: what they say, what they give away, when they correct and when they give up."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ecomlab import ENVIRONMENTS, Episode, Shop, Task, make_task
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.customer.corrections import mistakes
from ecomlab.customer.nlu import read_acts, read_item, read_message, read_slots, says, sentences
from ecomlab.episode.episode import draw_task
from ecomlab.laws.attackers import calls, text
from ecomlab.task import Goal, GoalChange
from ecomlab.values import NAME
from ecomlab.world.cart import constraints_of, wants_of
from ecomlab.world.orders.lines import lines_meant

KEYPAD, STAND = "Phone Charger", "Tank Top"
CART = ENVIRONMENTS["CART"].phrases


# Words; more of them in test_words.py.


@pytest.mark.parametrize(
    "name",
    ["Levi's", "Johnson & Johnson", "3M", "eufy", "de Buyer", "L'Oréal", "A.P.C", "H&M", "Black+Decker"],
)
def test_names_of_real_brands_are_read_back(name: str) -> None:
    for env in ENVIRONMENTS.values():
        for slot, saying in env.phrases.slots.items():
            for form in saying.forms if saying.format is NAME else ():
                said = f"Hello. {form.replace('{}', name)} Thanks!"
                told = [(one.slot, one.value) for one in sentences(said, env.phrases) if one.slot]
                assert told == [(slot, name)], said


def test_prices_ratings_days_and_quantities_are_told_apart(shop: Shop) -> None:
    kind = shop.catalog.types[0]
    said = f"3 {kind.plural} for at most $19.99, with 4.5 stars or better, delivered within 2 days"
    meant = {"type": kind.name, "quantity": 3, "price": 1999, "rating": 45, "days": 2}
    assert read_item(said, lexicon_of(shop.catalog), CART) == meant


# The articles' two traces, as closely as this protocol allows.


def handmade(
    shop: Shop, items: list[dict[str, object]], withheld: list[list[object]], d: int, turns: int
) -> Task:
    """A task with these wishes in place of the drawn ones."""
    drawn = make_task("CART", d, 0, shop, {"p_oos": 0, "p_switch": 0, "p_noise": 0}).to_json()
    visits = [*ids_of(shop, items), *drawn["world"]["visits"]]
    goal = Goal(
        {(i, name): value for i, item in enumerate(items) for name, value in item.items()},
        frozenset((int(str(i)), str(name)) for i, name in withheld),
    )
    need = {"turns": turns + 1, "calls": 3 * len(items) + 1}
    drawn |= {"opening": "Shopping list.", "goal": goal.to_json(), "events": [], "world": {"visits": visits}}
    drawn |= {"need": need, "turns": 12, "calls": 40}
    return Task.from_json(drawn)


def ids_of(shop: Shop, items: list[dict[str, object]]) -> list[str]:
    found = []
    for item in items:
        rows = shop.catalog.select(constraints_of(str(item["type"]), item))
        found.append(next(shop.catalog.ids[row] for row in rows if shop.catalog.stock[row] > 9))
    return found


def wish(shop: Shop, type_name: str, **more: object) -> dict[str, object]:
    rows = [row for row in shop.catalog.type_rows(type_name) if shop.catalog.stock[row] > 9]
    return {"type": type_name, "brand": shop.catalog.record(rows[0])["brand"], **more}


def test_the_easy_trace_three_turns_two_effective(big_shop: Shop) -> None:
    items = [wish(big_shop, "Phone Charger")]
    task = handmade(big_shop, items, [], d=1, turns=2)
    (charger,) = ids_of(big_shop, items)
    episode = Episode(task, big_shop)
    episode.act(calls(("user_get_visit_history", {})))
    episode.act(calls(("cart_add", {"product_id": charger})))
    episode.act(calls(("submit", {"done": True})))
    assert episode.turn == 3
    assert episode.score().value == 0.9


def test_the_hard_trace_eight_turns_six_effective_given_up(big_shop: Shop) -> None:
    """Two counts differ from the article: our customer corrects right after the first wrong add, where the article's
    waits a turn; and says nothing while the agent only looks things up. Ours tells options when it is asked for them,
    not when it is shown products."""
    charger_type, fryer_type, top_type = "Phone Charger", "Tea Kettle", "Tank Top"
    items = [wish(big_shop, charger_type), wish(big_shop, fryer_type), wish(big_shop, top_type, quantity=3)]
    catalog = big_shop.catalog
    rows = [catalog.row(product_id) for product_id in ids_of(big_shop, items)]
    options = {str(item["type"]): catalog.options(row or 0) for item, row in zip(items, rows, strict=True)}
    items = [{**item, "option": options[str(item["type"])][0]} for item in items]
    task = handmade(big_shop, items, [[0, "option"], [1, "option"], [2, "option"]], d=8, turns=4)
    charger, fryer, top = ids_of(big_shop, items)
    right_charger, right_fryer, right_top = (options[n][0] for n in (charger_type, fryer_type, top_type))
    wrong_fryer, wrong_top = options[fryer_type][1], options[top_type][1]
    episode = Episode(task, big_shop)

    def said(message: dict[str, object]) -> str:
        return " ".join(m["content"] for m in episode.act(message).messages if m["role"] == "user")

    episode.act(calls(("user_get_visit_history", {})))
    cards = said(text("Which option would you like of each?"))
    assert all(right.lower() in cards.lower() for right in (right_charger, right_fryer, right_top))
    episode.act(calls(*[("catalog_get_variants", {"product_id": p}) for p in (charger, fryer, top)]))
    wrong = said(
        calls(
            ("cart_add", {"product_id": charger, "variant_id": right_charger}),
            ("cart_add", {"product_id": fryer, "variant_id": wrong_fryer}),
            ("cart_add", {"product_id": top, "variant_id": wrong_top, "quantity": 3}),
        )
    )
    assert all(right.lower() in wrong.lower() for right in (right_fryer, right_top))
    still = said(
        calls(
            ("catalog_get_variants", {"product_id": top}),
            ("cart_remove", {"product_id": top, "variant_id": wrong_top}),
            ("cart_add", {"product_id": top, "variant_id": right_top, "quantity": 2}),
        )
    )
    lexicon = lexicon_of(big_shop.catalog)
    mentions = {m.type: m.slots for m in read_message(still, CART, lexicon)}
    assert mentions[fryer_type]["option"] == right_fryer and mentions[top_type]["quantity"] == 3
    assert said(calls(("catalog_get_variants", {"product_id": top}))) == ""
    given_up = said(text(f"I cannot find a {right_fryer} variant."))
    heard = read_message(given_up, CART, lexicon_of(big_shop.catalog))
    assert ("drop", fryer_type) in [(mention.effect, mention.type) for mention in heard]
    episode.act(calls(("submit", {"done": True})))
    assert episode.turn == 8
    score = episode.score()
    assert not score.correct
    assert fryer_type in score.why and top_type in score.why


def test_asking_until_there_is_no_more_reveals_exactly_what_was_withheld(big_shop: Shop) -> None:
    for seed in range(40):
        task = make_task("CART", 6, seed, big_shop)
        withheld = task.goal.said(withheld=True)
        episode = Episode(task, big_shop)
        lexicon, asked = episode.customer.lexicon, 0
        heard: dict[tuple[str, str], object] = {}
        while asked < 7:
            asked += 1
            turn = episode.act(calls(("ask_user", {"question": "Is there anything else I should know?"})))
            answer = json.loads(turn.messages[0]["content"])["customer"]
            mentions = read_message(answer, CART, lexicon)
            heard |= {(m.type, n): v for m in mentions for n, v in m.slots.items()}
            heard |= {(v.type, n): v for n, v in read_slots(answer, CART, lexicon) if n == "if"}
            if says("nothing", answer, CART, lexicon):
                break
        types = {item: task.goal.of(item)["type"] for item in task.goal.items}
        assert heard == {(types[s.item], s.name): s.value for s in withheld}
        assert asked == max(1, len(withheld) // 2)  # two at a time, and a last one with them
        assert sum(turn.useful for turn in episode.subtask.talk.values()) == min(asked, len(withheld))


def test_an_extra_line_is_unwanted_not_mistaken(big_shop: Shop) -> None:
    still = {"p_missing": 0, "p_oos": 0, "p_switch": 0, "steps.mean": 0}
    task = draw_task("CART", 6, 0, big_shop, still)
    episode = Episode(task, big_shop)
    slots = next(task.goal.of(i) for i in task.goal.items if "option" in task.goal.of(i))
    fit = big_shop.catalog.select(constraints_of(slots["type"], slots))
    row = next(row for row in fit if big_shop.catalog.stock[row] >= 8)
    line = {"product_id": big_shop.catalog.ids[row], "quantity": slots.get("quantity", 1)}
    other = next(option for option in episode.world.options(row) if option != slots["option"])
    episode.act(calls(("cart_add", {**line, "variant_id": slots["option"]})))
    turn = episode.act(calls(("cart_add", {**line, "variant_id": other, "quantity": 1})))
    said = turn.messages[-1]["content"]
    assert other.lower() in said.lower()
    (act,) = read_acts(said, CART, episode.customer.speaker.lexicon)
    assert act.kind == "not wanted"


def test_who_is_asked_for_what_they_have_not_says_neither_more_nor_less(big_shop: Shop) -> None:
    """ "I have no preference about that" was said by a customer who wanted it in green."""
    still, features, silent = {"p_missing": 1.0, "p_switch": 0.0}, 0, 0
    for seed in range(20):
        for env in ("PD", "BUNDLE"):
            episode = Episode(make_task(env, 6, seed, big_shop, still), big_shop)
            if any(slot.name.startswith("attr:") for slot in episode.customer.state.withheld):
                reply = episode.customer.hear("Are there any features you need?", episode.world)
                assert reply.news or not {"indifferent", "nothing"} & {act.kind for act in reply.acts}
                features += 1
        episode = Episode(make_task("POLICY", 6, seed, big_shop, still), big_shop)
        episode.act({"role": "assistant", "content": "Are you a member?"})
        told = [slot.name for slot in episode.customer.state.revealed]
        assert set(told) <= {"tier"}, told
        silent += not told
    assert features > 6 and 0 < silent < 20


def test_what_is_left_out_of_a_list_is_not_asked_for_again(big_shop: Shop) -> None:
    dropped = 0
    for seed in range(60):
        task = make_task("BUNDLE", 6, seed, big_shop, {"p_missing": 0.0, "p_switch": 1.0, "p_oos": 0.0})
        changes = [event for event in task.events if isinstance(event, GoalChange)]
        gone = [event.slots["dropped"] for event in changes if "dropped" in event.slots]
        episode = Episode(task, big_shop)
        while gone and not episode.fired and not episode.done:
            episode.act(calls(("catalog_search", {"query": gone[0]}), ("submit", {"product_ids": []})))
        if episode.fired:
            own = ENVIRONMENTS["BUNDLE"].phrases.slots
            stated = [slot for slot in episode.customer.state.stated if slot.name not in own]
            kinds = {episode.customer.type_name(slot.item) for slot in stated}
            dropped += 1
            assert not kinds & set(gone)
    assert dropped > 3


@pytest.mark.parametrize("d", [2, 6])
def test_a_correction_names_what_is_wanted_only_of_what_comes_near_it(d: int, big_shop: Shop) -> None:
    """Or one would put anything into the cart and wait to be told."""
    env, catalog, kinds = ENVIRONMENTS["CART"], big_shop.catalog, set()
    axes = {"p_missing": 0, "p_switch": 0, "steps.mean": 0}
    for task in (make_task("CART", d, seed, big_shop, axes) for seed in range(8)):
        want, *_ = wants_of(task.goal)
        said = [constraint for constraint in want.constraints if constraint.field != "type"]
        for row in list(catalog.type_rows(want.type))[:200]:
            wrong = [constraint for constraint in said if not catalog.satisfies(row, (constraint,))]
            world = Episode(task, big_shop).world
            world.cart[catalog.ids[row], None] = 1
            found = mistakes(task.goal, env.phrases, env.acts_on, world)
            named = {name for one in found for name in one.act.slots} - {"option", "quantity"}
            assert named == ({c.field for c in wrong} if 2 * len(wrong) <= len(said) else set())
            again = mistakes(task.goal, env.phrases, env.acts_on, world, changed=[want.item])
            assert {c.field for c in wrong} <= {name for one in again for name in one.act.slots}
            kinds |= {one.act.kind for one in found}
    assert kinds == {"correct", "not wanted"}


def test_items_keep_their_numbers_after_one_is_dropped_and_it_is_not_taken_up_again(big_shop: Shop) -> None:
    """A question about the last item is not heard as one about another, nor answered with another's wishes."""
    seen = 0
    for seed in range(40):
        episode = Episode(make_task("CART", 6, seed, big_shop, {"cart.items": 4, "p_oos": 1.0}), big_shop)
        customer = episode.customer
        names = [customer.type_name(item) for item in customer.goal.items]
        if len({name.split()[-1] for name in names}) < len(names):
            continue
        dropped, last = customer.goal.items[1], customer.goal.items[-1]
        kept = {place: value for place, value in customer.goal.slots.items() if place[0] != dropped}
        customer.goal = replace(customer.goal, slots=kept)
        customer.state.forget(dropped)
        (asked,) = customer.read(f"Which brand should the {names[-1]} be?").questions
        assert asked.item == last
        (said,) = customer.hear(f"And the {names[1]}, yes or no?", episode.world).acts
        assert (said.kind, said.type) == ("give up", names[1])
        both = customer.hear(
            f"And the {names[1]}, yes or no? The {names[0]} is sold out. What would you like instead?",
            episode.world,
        )
        assert [act.type for act in both.acts] == [names[1], names[0]], "what has sold out is not passed over"
        seen += 1
    assert seen > 20


def test_who_asks_for_what_is_missing_is_answered_though_a_mistake_stands(big_shop: Shop) -> None:
    catalog = big_shop.catalog
    row = next(row for row in catalog.type_rows(KEYPAD) if catalog.feature(row) and catalog.stock[row] > 9)
    brand, feature = catalog.brand(row), str(catalog.feature(row))
    task = handmade(big_shop, [{"type": KEYPAD, "brand": brand, "feature": feature}], [[0, "feature"]], 5, 2)
    episode = Episode(task, big_shop)
    corrected = episode.act(calls(("cart_add", {"product_id": catalog.ids[row], "quantity": 2})))
    assert "just one" in str(corrected.messages[-1]["content"])
    answered = episode.act(text("Sorry. Which style of phone charger would you like?"))
    assert feature.lower() in str(answered.messages[-1]["content"])


def test_a_customer_knows_what_they_bought_and_only_the_kinds_of_what_came_with_it(big_shop: Shop) -> None:
    catalog, others = big_shop.catalog, 0
    for seed in range(12):
        episode = Episode(make_task("RETURN", 6, seed, big_shop), big_shop)
        (order, line), *_ = lines_meant(episode.customer.goal.of(), episode.world.given["orders"], big_shop)
        known = episode.customer._in_hand(episode.world)
        row = episode.world.row(line["product_id"])
        assert {str(one).lower() for one in (catalog.brand(row), *catalog.attributes(row).values())} <= known
        beside = [episode.world.row(one["product_id"]) for one in order["lines"] if one is not line]
        assert {catalog.type_of(one).name.lower() for one in beside} <= known
        others += any(str(catalog.brand(one)).lower() not in known for one in beside)
        kinds = {kind.name.lower() for kind in big_shop.catalog.types}
        assert len(known & kinds) <= len(order["lines"])  # of other orders nothing
    assert others > 3


KEPT = [line.split("|") for line in Path(__file__).with_name("kept.txt").read_text().splitlines()]
"""By two language models that had not seen the code: it may stay (KEEP), go (DROP), which of the two (OR), others."""


@pytest.mark.parametrize(
    ("kind", "least", "most"), [("KEEP", 0.8, 1), ("DROP", 0.9, 1), ("OR", 0.8, 1), ("ASK", 0, 0.1)]
)
def test_a_thing_that_is_wanted_is_kept_when_they_are_asked_and_nothing_else_is_answered_so(
    kind: str, least: float, most: float, shop: Shop
) -> None:
    """Leave to drop it was given, and "do you still want it?" was a matter of taste."""
    kept = []
    for number, question in enumerate(words for what, words in KEPT if what == kind):
        episode = Episode(make_task("CART", 1, number, shop), shop)
        customer = episode.customer
        name = customer.type_name(customer.goal.items[0]).lower()
        reply = customer.hear(question.format(kind=name), episode.world)
        kept.append("still wanted" in {act.kind for act in reply.acts})
    assert least <= sum(kept) / len(kept) <= most


def test_a_thing_that_is_not_as_it_was_wanted_may_go(shop: Shop) -> None:
    episode = Episode(make_task("CART", 1, 1, shop), shop)
    customer = episode.customer
    name = customer.type_name(customer.goal.items[0]).lower()
    other = next(brand for brand in shop.catalog.brands if brand != customer.goal.get("brand", item=0))
    reply = customer.hear(f"Should I remove the {name} by {other}?", episode.world)
    assert "still wanted" not in {act.kind for act in reply.acts}
