"""The customer: what they say, what they give away, when they correct and when they give up."""

import json
import re

import pytest

from ecomlab import ENVIRONMENTS, Episode, Shop, Task, make_task
from ecomlab.audit.attackers import SUBMIT, calls, text
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.customer.acts import Act, Mistake
from ecomlab.customer.dialogue import DialogueManager
from ecomlab.customer.goal_state import GoalState
from ecomlab.customer.nlg import Speaker
from ecomlab.customer.nlu import read_item, read_message
from ecomlab.customer.noise import Piece, noised
from ecomlab.customer.templates import common_file
from ecomlab.envs.registry import moved_by
from ecomlab.seeding import rng
from ecomlab.task import Goal, GoalChange, Slot
from ecomlab.values import NAME
from ecomlab.world.cart import constraints_of

KEYPAD, STAND = "Phone Charger", "Tank Top"
CART = ENVIRONMENTS["CART"].phrases


def dialogue(*withheld: Slot, stated: tuple[Slot, ...] = ()) -> DialogueManager:
    return DialogueManager(GoalState(list(stated), list(withheld)), lambda item: (KEYPAD, STAND)[item])


BRAND, OPTION, PRICE = Slot(0, "brand", "SonicWave"), Slot(0, "option", "USB-C"), Slot(1, "price", 3000)


def test_a_question_that_names_slots_gets_all_of_them() -> None:
    k = dialogue(BRAND, OPTION, PRICE)
    reply = k.asked("Which one?", ["brand", "price"])
    assert reply.revealed
    assert [(act.type, act.slots) for act in reply.acts] == [
        (KEYPAD, {"brand": "SonicWave"}),
        (STAND, {"price": 3000}),
    ]
    assert k.state.withheld == [OPTION]


def test_a_free_question_is_understood_by_its_words() -> None:
    k = dialogue(BRAND, OPTION, PRICE)
    assert k.asked("What is your budget for it?", ()).acts[0].slots == {"price": 3000}


def test_words_in_about_that_are_no_topic_are_heard_as_part_of_the_question() -> None:
    assert dialogue(BRAND, PRICE).asked("How much?", ["budget limit"]).acts[0].slots == {"price": 3000}
    assert dialogue(BRAND, PRICE).asked("What is your budget?", ["limit"]).acts[0].slots == {"price": 3000}
    assert len(dialogue(BRAND, PRICE).asked("What is your budget?", ["brand"]).acts) == 2  # what either names


@pytest.mark.parametrize(
    ("env", "slot", "question", "about"),
    [
        ("POLICY", "payment", "How are you paying?", ["payment"]),
        ("POLICY", "payment", "How are you paying?", ["price"]),
        ("POLICY", "tier", "Which tier are you?", ["membership tier"]),
        ("POLICY", "total", "What is the value of the order?", []),
        ("SUB", "must", "Which attributes must be the same?", ["requirements"]),
        ("SUB", "days", "When do you need it?", []),
        ("PD", "importance", "What matters most to you?", ["preferences"]),
        ("BUNDLE", "budget", "What is your total budget?", ["total"]),
        ("BUNDLE", "parts", "What other products do you need?", []),
        ("RETURN", "units", "How many units do you want to return?", ["units"]),
    ],
)
def test_a_natural_question_gets_what_it_asks_for(
    env: str, slot: str, question: str, about: list[str], big_shop: Shop
) -> None:
    asked = 0
    for seed in range(400):
        episode = Episode(make_task(env, 8, seed, big_shop), big_shop)
        if slot in [hidden.name for hidden in episode.customer.state.withheld]:
            asked += 1
            assert episode.customer.asked(question, about, episode.world).revealed
            assert slot not in [hidden.name for hidden in episode.customer.state.withheld]
        if asked == 3:
            break
    assert asked == 3


@pytest.mark.parametrize("env", ["CART", "PD", "BUNDLE", "RETURN"])
def test_an_option_or_attribute_answers_to_its_own_name(env: str, big_shop: Shop) -> None:
    asked = 0
    for seed in range(60):
        episode = Episode(make_task(env, 7, seed, big_shop), big_shop)
        kernel = episode.customer.dialogue
        for slot in list(kernel.state.withheld):
            words = kernel.called(kernel.type_name(slot.item), slot.name)
            if words and slot in kernel.state.withheld:
                asked += 1
                assert kernel.asked(f"Which {' '.join(sorted(words))} should it have?", ()).revealed
                assert slot not in kernel.state.withheld, words
    assert asked > 10


@pytest.mark.parametrize("env", [env for env in ENVIRONMENTS if env != "JOURNEY"])
def test_who_has_told_all_goes_along_with_what_is_presented(env: str, big_shop: Shop) -> None:
    """No reminder and no second request for an answer; but whoever goes on talking wears them out."""
    for said in (
        "Here is what I found. Shall I submit it?",
        "The order is on its way.",
        "I will finalize that now.",
    ):
        episode = Episode(make_task(env, 0, 7, big_shop, {"p_missing": 0}), big_shop)
        turn = episode.act(text(said))
        assert turn.messages[-1]["content"] in common_file().acts["continue"]
        for _ in range(2):
            turn = episode.act(text(said))
        assert turn.end == "patience"


def test_a_general_question_gets_the_next_two() -> None:
    k = dialogue(BRAND, OPTION, PRICE)
    assert k.asked("Anything else?", ()).acts == [
        Act("elaborate", KEYPAD, {"brand": "SonicWave", "option": "USB-C"})
    ]
    assert k.state.withheld == [PRICE]


def test_presenting_a_product_gets_what_is_missing_about_it() -> None:
    k = dialogue(BRAND, OPTION, PRICE)
    reply = k.presented([KEYPAD])
    assert reply is not None
    assert reply.acts == [Act("elaborate", KEYPAD, {"brand": "SonicWave", "option": "USB-C"})]
    assert k.presented([KEYPAD]) is None


def test_asking_again_gets_a_clean_reminder_and_then_costs_patience() -> None:
    k = dialogue(stated=(BRAND,))
    for _ in range(3):
        assert not k.out_of_patience
        reply = k.asked("Which brand?", ["brand"])
        assert not reply.revealed
        assert reply.acts[0] == Act("remind", KEYPAD, {"brand": "SonicWave"}, clean=True)
    assert k.out_of_patience


def test_a_reveal_restores_patience() -> None:
    k = dialogue(BRAND)
    k.asked("Hm.", ())
    k.asked("Hm.", ())
    assert k.asked("Which brand?", ["brand"]).revealed
    assert k.annoyed == 0


def mistake(kind: str, item: int, *reveals: Slot) -> Mistake:
    act = Act(kind, (KEYPAD, STAND)[item], {slot.name: slot.value for slot in reveals}, seen="HDMI")
    return Mistake(act, reveals, item)


def test_two_ignored_corrections_of_one_thing_and_the_customer_gives_it_up() -> None:
    k = dialogue(OPTION)
    said = [k.corrections([mistake("wrong option", 0, OPTION)])[0] for _ in range(3)]
    assert [act.kind for act in said] == ["wrong option", "wrong option", "give up"]
    assert [act.clean for act in said[:2]] == [False, True]
    assert k.state.withheld == []  # a correction counts as a reveal
    assert k.corrections([mistake("wrong option", 0, OPTION)]) == []
    assert k.asked("Which option?", ["option"]).acts[0].kind == "nothing"  # never spoken of again


def test_mending_one_thing_at_a_time_is_not_ignoring_the_rest() -> None:
    k = dialogue()
    wrong = [mistake("wrong option", 0), mistake("wrong quantity", 0), mistake("wrong option", 1)]
    for left in (3, 2, 1):
        assert all(act.kind != "give up" for act in k.corrections(wrong[:left]))
        assert k.annoyed == 0
    assert k.corrections([]) == []


def test_trying_one_thing_after_another_costs_patience() -> None:
    k = dialogue()
    for number in range(4):
        assert not k.out_of_patience
        k.corrections([Mistake(Act("not wanted", seen=f"thing {number}"))])
    assert k.out_of_patience


def test_what_is_withheld_is_never_denied() -> None:
    k = dialogue(OPTION)
    assert k.asked("Which brand?", ["brand"]).acts[0].kind == "indifferent"
    assert dialogue().asked("Which brand?", ["brand"]).acts[0].kind == "nothing"


@pytest.mark.parametrize(
    ("said", "claims"),
    [
        ("Done!", True),
        ("I added it, everything is in your cart.", True),
        ("Please tell me everything I should know", False),
        ("Is it done?", False),
        ("I've added everything to your cart. Does that look right?", True),
        ("I added it. Which color do you want?", False),
        ("I added it. May I ask which color you want?", False),
        ("added " + 50_000 * "x ", True),
        ("Tell me your budget, then I get everything ready.", False),
    ],
)
def test_what_counts_as_saying_that_it_is_done(said: str, claims: bool) -> None:
    assert dialogue().claims_done(said) == claims


# Words.


def every_act(lexicon: object, shop: Shop) -> list[Act]:
    kind = shop.catalog.types[0]
    slots = {
        "brand": shop.catalog.brands[0],
        "feature": shop.catalog.features[0],
        "option": kind.option.values[0],
    }
    return [
        Act(name, kind.name, slots, seen="USB-C", number=n) for name in common_file().acts for n in (1, 3)
    ]


def test_every_act_has_words_without_a_gap(shop: Shop) -> None:
    lexicon = lexicon_of(shop.catalog)
    for act in every_act(lexicon, shop):
        for seed in range(6):
            said = Speaker(CART, lexicon, 0.0, ("test", seed)).say([act])
            assert re.fullmatch(r"[A-Z0-9].*[.!?]", said), said
            assert "{" not in said and "  " not in said, said


@pytest.mark.parametrize("p_noise", [0.0, 0.12, 0.5])
def test_what_an_act_says_can_be_read_back(p_noise: float, shop: Shop) -> None:
    lexicon = lexicon_of(shop.catalog)
    catalog = shop.catalog
    for seed in range(300):
        random = rng("read", seed)
        row = int(random.integers(catalog.size))
        kind, record = catalog.type_of(row), catalog.record(row)
        slots = {
            "brand": record["brand"],
            "option": kind.option.values[int(random.integers(len(kind.option.values)))],
        }
        slots["feature"] = catalog.features[catalog.feature_code[row]]
        slots |= {f"attr:{name}": value for name, value in record["attributes"].items()}
        words = Speaker(CART, lexicon, p_noise, ("read", seed))
        for act, what in (
            ("elaborate", "set"),
            ("wrong product", "set"),
            ("replace", "replace"),
            ("add", "add"),
        ):
            said = words.say(
                [Act(act, kind.name, slots, seen=f"The {catalog.title(int(random.integers(catalog.size)))}")]
            )
            (read,) = read_message(said, CART, lexicon)
            assert (read.effect, read.type, read.slots) == (what, kind.name, slots), said
        (read,) = read_message(words.say([Act("quantity", kind.name, number=3)]), CART, lexicon)
        assert (read.effect, read.type, read.slots) == ("set", kind.name, {"quantity": 3})
        (read,) = read_message(words.say([Act("drop", kind.name)]), CART, lexicon)
        assert (read.effect, read.type) == ("drop", kind.name)
        assert read_message(words.say([Act("still wanted", kind.name)]), CART, lexicon) == []


def test_noise_spares_numbers_values_and_short_words(shop: Shop) -> None:
    lexicon = lexicon_of(shop.catalog)
    pieces = [Piece("size XXL, 3 of them for $19.99", "fixed"), Piece(" and the word this that than")]
    for seed in range(50):
        assert (
            noised(pieces, 1.0, lexicon, rng("noise", seed))
            == "size XXL, 3 of them for $19.99 and the word this that than"
        )


def test_a_typo_in_a_name_stays_nearest_to_that_name(shop: Shop) -> None:
    lexicon = lexicon_of(shop.catalog)
    changed = 0
    for brand in shop.catalog.brands:
        for seed in range(20):
            typed = noised([Piece(brand, "brand")], 0.9, lexicon, rng("typo", brand, seed))
            changed += typed != brand
            near = lexicon.nearest("brand", typed)
            assert near is not None
            assert near[0] == brand
    assert changed > 1000


@pytest.mark.parametrize(
    "name",
    ["Levi's", "Johnson & Johnson", "3M", "eufy", "de Buyer", "L'Oréal", "A.P.C", "H&M", "Black+Decker"],
)
def test_names_of_real_brands_are_read_back(name: str) -> None:
    for env in ENVIRONMENTS.values():
        for slot, saying in env.phrases.slots.items():
            for form in saying.forms if saying.format is NAME else ():
                said = f"Hello. {form.replace('{}', name)} Thanks!"
                assert env.phrases.read(said)[0] == [(slot, name)], said


def test_prices_ratings_days_and_quantities_are_told_apart(shop: Shop) -> None:
    kind = shop.catalog.types[0]
    said = f"3 {kind.plural} for at most $19.99, with 4.5 stars or better, delivered within 2 days"
    assert read_item(said, lexicon_of(shop.catalog)) == {
        "type": kind.name,
        "quantity": 3,
        "price": 1999,
        "rating": 45,
        "days": 2,
    }


# The articles' two traces, as closely as this protocol allows.


def handmade(
    shop: Shop, items: list[dict[str, object]], withheld: list[list[object]], d: int, turns: int
) -> Task:
    """A task with these wishes in place of the drawn ones."""
    drawn = make_task("CART", d, 0, shop, {"p_oos": 0, "p_switch": 0, "p_noise": 0}).to_json()
    visits = [*ids_of(shop, items), *drawn["world"]["visits"]]
    drawn |= {
        "opening": "Shopping list.",
        "goal": Goal(
            {(i, name): value for i, item in enumerate(items) for name, value in item.items()},
            frozenset((int(str(i)), str(name)) for i, name in withheld),
        ).to_json(),
        "events": [],
        "world": {"visits": visits},
        "need": {"turns": turns + 1, "calls": 3 * len(items) + 1},
        "turns": 12,
        "calls": 40,
    }
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
    assert (episode.turn, episode.effective_turns) == (3, 2)
    assert episode.score().value == 0.9


def test_a_misspelt_name_is_not_taken_for_an_act(big_shop: Shop) -> None:
    (mention,) = read_message(
        "One more thing: also add a Non-Skip Tank Top.", CART, lexicon_of(big_shop.catalog)
    )
    assert (mention.effect, mention.slots) == ("add", {"feature": "Non-Slip"})


def test_the_hard_trace_eight_turns_six_effective_given_up(big_shop: Shop) -> None:
    """Two counts differ from the article: our customer corrects right after the first wrong add, where the article's
    waits a turn; and says nothing while the agent only looks things up."""
    charger_type, fryer_type, top_type = "Phone Charger", "Tea Kettle", "Tank Top"
    first = make_task("CART", 8, 0, big_shop)
    from ecomlab.world.state import options_of

    options = {n: options_of(first.key, big_shop.catalog, n) for n in (charger_type, fryer_type, top_type)}
    items = [
        wish(big_shop, charger_type, option=options[charger_type][0]),
        wish(big_shop, fryer_type, option=options[fryer_type][0]),
        wish(big_shop, top_type, option=options[top_type][0], quantity=3),
    ]
    task = handmade(big_shop, items, [[0, "option"], [1, "option"], [2, "option"]], d=8, turns=4)
    charger, fryer, top = ids_of(big_shop, items)
    right_charger, right_fryer, right_top = (options[n][0] for n in (charger_type, fryer_type, top_type))
    wrong_fryer, wrong_top = options[fryer_type][1], options[top_type][1]
    episode = Episode(task, big_shop)

    def said(message: dict[str, object]) -> str:
        return " ".join(m["content"] for m in episode.act(message).messages if m["role"] == "user")

    episode.act(calls(("user_get_visit_history", {})))
    cards = said(text(f"I found {charger}, {fryer} and {top} for you."))
    assert right_charger in cards and right_fryer in cards and right_top in cards
    episode.act(calls(*[("catalog_get_variants", {"product_id": p}) for p in (charger, fryer, top)]))
    wrong = said(
        calls(
            ("cart_add", {"product_id": charger, "variant_id": right_charger}),
            ("cart_add", {"product_id": fryer, "variant_id": wrong_fryer}),
            ("cart_add", {"product_id": top, "variant_id": wrong_top, "quantity": 3}),
        )
    )
    assert wrong_fryer in wrong and right_fryer in wrong and right_top in wrong
    still = said(
        calls(
            ("catalog_get_variants", {"product_id": top}),
            ("cart_remove", {"product_id": top, "variant_id": wrong_top}),
            ("cart_add", {"product_id": top, "variant_id": right_top, "quantity": 2}),
        )
    )
    assert right_fryer in still and "need 3 Tank Tops" in still
    assert said(calls(("catalog_get_variants", {"product_id": top}))) == ""
    given_up = said(text(f"I cannot find a {right_fryer} variant."))
    assert f"Skip the {fryer_type} then." in given_up
    episode.act(calls(("submit", {"done": True})))
    assert (episode.turn, episode.effective_turns) == (8, 6)
    score = episode.score()
    assert not score.correct
    assert fryer_type in score.why and top_type in score.why


def test_asking_reveals_exactly_what_was_withheld(big_shop: Shop) -> None:
    for seed in range(40):
        task = make_task("CART", 6, seed, big_shop)
        withheld = task.goal.said(withheld=True)
        episode = Episode(task, big_shop)
        turn = episode.act(calls(("ask_user", {"question": "?", "about": list(common_file().topics)})))
        answer = json.loads(turn.messages[0]["content"])["customer"]
        heard = {
            (m.type, n): v
            for m in read_message(answer, CART, episode.customer.speaker.lexicon)
            for n, v in m.slots.items()
        }
        types = [task.goal.of(item)["type"] for item in task.goal.items]
        if not withheld:
            continue  # then it reminds of what was said
        assert heard == {(types[s.item], s.name): s.value for s in withheld}
        assert episode.useful_asks == 1


def test_a_right_message_after_a_right_cart_is_confirmed(shop: Shop) -> None:
    task = make_task("CART", 0, 0, shop)
    episode, player = Episode(task, shop), ENVIRONMENTS["CART"].reference_player(shop)
    while True:
        message = player(episode.messages, episode.tools)
        if message["tool_calls"][0]["function"]["name"] == "submit":
            break
        episode.act(message)
    assert episode.act(text("All done!")).messages[-1]["role"] == "user"
    assert episode.act(SUBMIT).done
    assert episode.score().correct


def test_an_extra_line_is_unwanted_not_mistaken(big_shop: Shop) -> None:
    task = make_task("CART", 6, 0, big_shop, {"p_missing": 0, "p_oos": 0, "p_switch": 0})
    episode = Episode(task, big_shop)
    slots = next(task.goal.of(i) for i in task.goal.items if "option" in task.goal.of(i))
    row = next(
        r
        for r in big_shop.catalog.select(constraints_of(slots["type"], slots))
        if big_shop.catalog.stock[r] >= 8
    )
    line = {"product_id": big_shop.catalog.ids[row], "quantity": slots.get("quantity", 1)}
    other = next(option for option in episode.world.options(row) if option != slots["option"])
    episode.act(calls(("cart_add", {**line, "variant_id": slots["option"]})))
    said = episode.act(calls(("cart_add", {**line, "variant_id": other, "quantity": 1}))).messages[-1][
        "content"
    ]
    assert f"({other})" in said
    assert "did not ask" in said


@pytest.mark.parametrize("env", ["RETURN", "STATUS"])
def test_an_environment_s_own_sentences_are_used_in_the_conversation(env: str, big_shop: Shop) -> None:
    own = [form.text.partition("{")[0] for form in ENVIRONMENTS[env].phrases.acts["elaborate"]]
    told = []
    for seed in range(20):
        episode = Episode(make_task(env, 8, seed, big_shop, {"p_missing": 1.0}), big_shop)
        episode.act(
            calls(("ask_user", {"question": "?", "about": ["brand", "feature", "details", "option"]}))
        )
        told += [json.loads(m["content"])["customer"] for m in episode.messages if m["role"] == "tool"]
    assert not any("should be" in said or said.startswith(("For the", "About the")) for said in told), told
    assert any(said.startswith(start) for said in told for start in own if start)


@pytest.mark.parametrize(
    ("env", "question", "named"),
    [
        ("RETURN", "Which order do you mean?", ("brand", "feature", "option", "ordered", "delivered")),
        ("RETURN", "What is your budget?", ("replacement",)),
        ("STATUS", "Which order do you mean?", None),
        ("SUB", "Which features must stay the same?", ("must",)),
        ("SUB", "What size do you need?", ("must",)),
        ("PD", "Which one matters most?", ("importance",)),
        ("PD", "Which do you care about more, price or quality?", ("importance",)),
        ("BUNDLE", "What is your budget?", ("budget",)),
        ("BUNDLE", "What else is on the list?", ("parts",)),
        ("POLICY", "Which order is it about?", ("payment", "channel", "age")),
        ("POLICY", "Are you a member?", ("tier",)),
        ("POLICY", "Is it a gift, and was the box opened?", ("gift", "opened")),
        ("STATUS", "When did you buy it?", ("placed", "when")),
        ("RETURN", "Which one do you mean?", ("brand", "feature", "option", "ordered", "delivered")),
        ("RETURN", "Do you want a refund or another one?", ("replacement",)),
    ],
)
def test_a_natural_question_is_never_denied_an_answer(
    env: str, question: str, named: tuple[str, ...] | None, big_shop: Shop
) -> None:
    asked = 0
    for seed in range(40):
        still = {"p_oos": 0.0} if "p_oos" in (moved_by(env) or ()) else {}
        task = make_task(env, 6, seed, big_shop, {"p_missing": 1.0, "p_switch": 0.0, **still})
        withheld = task.goal.said(withheld=True)
        meant = [slot for slot in withheld if named is None or slot.name in named]
        if not meant:
            continue
        asked += 1
        episode = Episode(task, big_shop)
        episode.act({"role": "assistant", "content": question})
        told = episode.customer.state.revealed
        assert all(slot in told for slot in meant), (task.opening, episode.messages[-1])
    assert asked > 3


@pytest.mark.parametrize("env", ["PD", "BUNDLE"])
def test_who_has_no_feature_in_mind_takes_features_for_attributes(env: str, big_shop: Shop) -> None:
    """ "I have no preference about that" was said by a customer who wanted it in green."""
    asked = 0
    for seed in range(20):
        episode = Episode(make_task(env, 6, seed, big_shop, {"p_missing": 1.0, "p_switch": 0.0}), big_shop)
        state = episode.customer.state
        attributes = [slot for slot in state.withheld if slot.name.startswith("attr:")]
        episode.act({"role": "assistant", "content": "Are there any features you need?"})
        assert all(slot in state.revealed for slot in attributes), episode.messages[-1]
        asked += bool(attributes)
    assert asked > 3


def test_a_question_about_one_thing_is_not_answered_by_another(big_shop: Shop) -> None:
    silent = 0
    for seed in range(20):
        task = make_task("POLICY", 6, seed, big_shop, {"p_missing": 1.0, "p_switch": 0.0})
        episode = Episode(task, big_shop)
        episode.act({"role": "assistant", "content": "Are you a member?"})
        told = [slot.name for slot in episode.customer.state.revealed]
        assert set(told) <= {"tier"}, told
        silent += not told
    assert 0 < silent < 20


def test_a_list_between_commas_is_read_as_it_is_said(big_shop: Shop) -> None:
    env, joined = ENVIRONMENTS["BUNDLE"], 0
    for seed in range(20):
        task = make_task("BUNDLE", 6, seed, big_shop, {"p_missing": 0.0, "p_noise": 0.0})
        kinds = [value for (_, name), value in task.goal.slots.items() if name == "type"]
        read = env.reference_player(big_shop).read_opening(task.opening)
        assert [value for (_, name), value in read.items() if name == "type"] == kinds, task.opening
        joined += re.search(r", an? .* and an? ", task.opening) is not None
    assert joined > 3


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
            env = ENVIRONMENTS["BUNDLE"]
            kinds = {
                episode.customer.type_name(slot.item)
                for slot in episode.customer.state.stated
                if slot.name not in env.phrases.slots
            }
            dropped += 1
            assert not kinds & set(gone)
    assert dropped > 3


def test_one_thing_of_several_is_said_before_what_is_about_all() -> None:
    k = DialogueManager(
        GoalState(
            [], [Slot(0, "brand", "A"), Slot(0, "budget", 5), Slot(1, "price", 3)], topics={"budget": "price"}
        ),
        lambda item: (KEYPAD, STAND)[item],
    )
    said = [dict(act.slots) for act in k.asked("?", ["brand", "price"]).acts]
    assert said == [{"brand": "A"}, {"price": 3}, {"budget": 5}]
