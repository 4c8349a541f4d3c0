"""The dialogue manager: what a reply tells, confirms and never denies; corrections and patience."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from ecomlab.customer.acts import Act, Mistake
from ecomlab.customer.dialogue import DialogueManager, Reply
from ecomlab.customer.goal_state import GoalState
from ecomlab.customer.opinions import Opinion, Thing
from ecomlab.customer.reading.reading import Question, Reading, Said
from ecomlab.task import Slot

CHARGER, STAND = "Phone Charger", "Tank Top"
BRAND, FEATURE, OPTION = (
    Slot(0, "brand", "SonicWave"),
    Slot(0, "feature", "Classic"),
    Slot(0, "option", "USB-C"),
)
PRICE, RATING = Slot(1, "price", 3000), Slot(1, "rating", 40)
ALL = (BRAND, FEATURE, OPTION, PRICE, RATING)


def manager(*withheld: Slot, stated: tuple[Slot, ...] = ()) -> DialogueManager:
    return DialogueManager(GoalState(list(stated), list(withheld)), lambda item: (CHARGER, STAND)[item])


def calling(*groups: str, acts: str = "", questions: Sequence[Question] = (), **more: Any) -> Reading:
    return Reading(frozenset(acts.split()), frozenset(groups), tuple(questions), **more)


def asked(*slots: str, is_open: bool = False, item: int = -1, **more: Any) -> Reading:
    groups = [*(["ask"] if slots else []), *(["open"] if is_open else [])]
    return calling(*groups, questions=[Question(slot, item) for slot in slots], **more)


def answer(k: DialogueManager, *slots: str, text: str = "?", **more: Any) -> Reply:
    return k.answer(asked(*slots, **more), text)


def kinds(reply: Reply) -> list[str]:
    return [act.kind for act in reply.acts]


def told(reply: Reply) -> list[str]:
    return [slot.name for slot in reply.news]


def test_what_is_asked_for_by_name_is_told_and_nothing_else() -> None:
    k = manager(*ALL)
    assert told(answer(k, "option", "brand")) == ["option", "brand"]
    assert k.state.withheld == [FEATURE, PRICE, RATING]


def test_a_reply_tells_at_most_three_slots_named_ones_first_then_two_for_an_open_part() -> None:
    for named, expected in (
        ((), ["brand", "feature"]),
        (("price",), ["price", "brand", "feature"]),
        (("price", "rating"), ["price", "rating", "brand"]),
        (("price", "rating", "brand"), ["price", "rating", "brand"]),
    ):
        assert told(answer(manager(*ALL), *named, is_open=True)) == expected


def test_an_open_question_is_followed_by_whether_there_is_more() -> None:
    k = manager(BRAND, FEATURE, OPTION, PRICE)
    assert kinds(answer(k, is_open=True))[-1] == "more"
    assert kinds(answer(k, is_open=True))[-1] == "nothing"


def test_who_has_answered_all_that_was_asked_does_not_complain_of_it() -> None:
    k = manager(BRAND)
    assert kinds(answer(k, "brand", "feature", "option", "price", "rating")) == [
        "elaborate",
        "indifferent to",
    ]
    assert k.annoyed == 0


def test_a_form_letter_learns_three_slots_and_is_a_stall() -> None:
    k = manager(*ALL)
    reply = answer(k, "brand", "feature", "option", "price", "rating")
    assert told(reply) == ["brand", "feature", "option"]
    assert kinds(reply)[-1] == "one at a time"
    assert k.annoyed == 1


def test_the_item_that_is_named_is_the_one_that_is_told_about() -> None:
    other = Slot(1, "brand", "BarkHarbor")
    k = manager(BRAND, other)
    assert answer(k, "brand", item=1).news == (other,)


@pytest.mark.parametrize(
    ("slot", "said", "heard"),
    [
        (BRAND, "SonicWave", "yes"), (BRAND, "BarkHarbor", "no"), (PRICE, "$30", "yes"), (PRICE, "$60", "no"),
        (RATING, "4.0 stars", "yes"), (RATING, "3.5 stars", "no"),
    ],
)  # fmt: skip
def test_a_value_is_affirmed_or_denied_and_the_right_one_told(slot: Slot, said: str, heard: str) -> None:
    k = manager(slot)
    reply = k.answer(reading(valued(slot.name, said)), f"Is it {said}?")
    assert kinds(reply) == [heard, "elaborate"]
    assert reply.acts[1].slots == {slot.name: slot.value}


def test_nothing_is_told_where_nothing_is_asked() -> None:
    k = manager(*ALL)
    for acts in ("TELL", "GREET THANK", "BAD"):
        assert k.react(calling(acts=acts), "I will look for it.") == Reply([])
    assert k.annoyed == 0


def test_what_nobody_can_follow_is_asked_back_and_a_stall() -> None:
    for unclear, seen in (
        ("Flurb the zint?", "Flurb the zint?"),
        ("Flurb the zint and the zant and the zunt?", ""),
    ):
        k = manager(*ALL)
        reply = k.react(calling("back", unclear=(unclear,)), unclear)
        assert reply.acts == [Act("ask back", seen=seen)]  # a long sentence is not quoted
        assert (reply.news, k.annoyed) == ((), 1)


def test_who_has_no_such_slot_answers_by_one_that_serves() -> None:
    color = Slot(0, "attr:color", "Red")
    assert told(answer(manager(color), "feature")) == ["attr:color"]  # "what style?"
    assert told(answer(manager(Slot(0, "place", -1)), "placed")) == ["place"]
    assert kinds(answer(manager(), "quantity")) == ["just one"]


def valued(slot: str, *values: str) -> Question:
    return Question(slot, -1, values)


def reading(*questions: Question, which: bool = False) -> Reading:
    return calling("ask", acts="LIST" if which else "QUESTION", questions=questions)


MUST, FLEECE, RED = (
    Slot(0, "must", ["closure"]),
    Slot(0, "attr:fabric", "Fleece"),
    Slot(1, "attr:color", "Red"),
)
MAKES = valued("brand", "SonicWave", "BarkHarbor")
ANSWERED: dict[str, tuple[tuple[Slot, ...], tuple[Slot, ...], Reading, list[str]]] = {
    # what is withheld, what was stated, the question, and the acts that answer it
    "neither yes nor no where both would mislead: $20, of a limit of $30": (
        (PRICE,), (), reading(valued("price", "$20")), ["elaborate"],
    ),
    "one yes or no a message": (
        (BRAND, FEATURE), (), reading(valued("brand", "SonicWave"), valued("feature", "Classic")), ["yes", "elaborate"],
    ),
    "none where one is right and one wrong": (
        (BRAND, FEATURE), (), reading(valued("brand", "SonicWave"), valued("feature", "Modern")), ["elaborate"],
    ),
    "none beside another question": (
        (BRAND, PRICE), (), reading(valued("brand", "BarkHarbor"), Question("price")), ["elaborate", "elaborate"],
    ),
    "what tells candidates apart": (
        (BRAND, PRICE), (FEATURE,),
        reading(valued("feature", "Classic"), MAKES, valued("price", "$61", "$27"), which=True), ["elaborate"],
    ),
    "who cannot tell which one tells what they know": (
        (OPTION,), (), reading(MAKES, which=True), ["elaborate", "indifferent to", "nothing"],
    ),
    "an attribute of something sold out that is free": (
        (), (MUST, FLEECE), reading(valued("attr:fabric", "Fleece")), ["indifferent"],
    ),
    "one that must stay the same": ((MUST,), (), reading(Question("attr:color")), ["elaborate"]),
    "what need not stay": ((), (MUST,), reading(valued("must", "weight")), ["no", "elaborate"]),
    "what must": ((), (MUST,), reading(valued("must", "closure")), ["yes"]),
    "prices of candidates within a limit": (
        (RED,), (PRICE,), reading(valued("attr:color", "Black", "White"), valued("price", "$25.00", "$28.00")),
        ["elaborate"],
    ),
    "prices of candidates beyond it": ((), (PRICE,), reading(valued("price", "$25.00", "$48.00")), ["elaborate"]),
    "a choice that is not of the item whose colour was said": (
        (), (BRAND, RED), reading(valued("attr:color", "Turquoise", "Purple")), ["indifferent"],
    ),
    "nothing of what was said, beside a question: SonicWave, noted. And the price?": (
        (PRICE,), (BRAND,), reading(valued("brand", "SonicWave"), Question("price")), ["elaborate"],
    ),
    "what was said, to be confirmed": ((PRICE,), (BRAND,), reading(valued("brand", "SonicWave")), ["yes"]),
    "no such wish": ((PRICE,), (), asked("brand"), ["indifferent"]),
    "a choice with the colour that was said": (
        (), (BRAND, RED), reading(valued("attr:color", "Red", "Purple")), ["elaborate"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", ANSWERED)
def test_an_answer_is_of_the_acts_that_the_question_calls_for(what: str) -> None:
    withheld, stated, asks, expected = ANSWERED[what]
    text = "Does it need to be fleece again?" if FLEECE in stated else "?"
    k = manager(*withheld, stated=stated)
    assert (kinds(k.answer(asks, text)), k.annoyed) == (expected, 0)


def summary(*said: Said, acts: str = "SUMMARY", **more: Any) -> Reading:
    return calling("judge", acts=acts, said=said, names=bool(said), **more)


def checking(*said: Said) -> Reading:
    """A question whether these values are so."""
    questions = [Question(one.slots[0], one.item, (one.value,)) for one in said]
    mentions = tuple(replace(one, asked=True) for one in said)
    return calling("ask", acts="QUESTION", questions=questions, mentions=mentions, names=True)


BESIDE = Slot(0, "relation", 1)
RIGHTLY, WRONGLY = Said(("brand",), "SonicWave", 0), Said(("brand",), "BarkHarbor", 0)
OTHER_FEATURE, OTHER_OPTION = Said(("feature",), "Modern", 0), Said(("option",), "Lightning", 0)
JUDGED: dict[str, tuple[tuple[Slot, ...], tuple[Slot, ...], Reading, list[str]]] = {
    # what is withheld, what was stated, the message, and the acts that answer it
    "a right summary": ((), (BRAND,), summary(RIGHTLY), ["yes"]),
    "one that left something out": ((PRICE,), (BRAND,), summary(RIGHTLY), ["yes", "mention"]),
    "a wrong value of what was said": ((), (BRAND, PRICE), summary(WRONGLY), ["no", "elaborate"]),
    "of what was not said: the value is not told": ((BRAND,), (), summary(WRONGLY), ["no", "wrong about"]),
    "one right and one wrong": ((), (BRAND, FEATURE), summary(RIGHTLY, OTHER_FEATURE), ["no", "elaborate"]),
    "three wrong: two are named": (
        (), (BRAND, FEATURE, OPTION), summary(WRONGLY, OTHER_FEATURE, OTHER_OPTION), ["no", "elaborate", "not all"],
    ),
    "not what is wrong": ((), (BRAND,), summary(Said(("brand",), "BarkHarbor", 0, denied=True)), ["yes"]),
    "two, where one is wanted": ((), (BRAND,), summary(Said(("quantity",), "two", 0)), ["no", "just one"]),
    "what there is no wish for": (
        (), (BRAND,), summary(RIGHTLY, Said(("attr:color",), "Red", 0)), ["yes"],
    ),
    "consent to what is named": ((), (BRAND,), summary(RIGHTLY, acts="CONSENT"), ["consent"]),
    "to nothing in particular": ((), (BRAND,), summary(acts="CONSENT"), ["to what"]),
    "to what is wrong": ((), (BRAND,), summary(WRONGLY, acts="CONSENT"), ["no", "elaborate"]),
    "an offer of what is wanted": ((), (BRAND,), summary(RIGHTLY, acts="OFFER"), ["as wanted"]),
    "of anything else": ((), (BRAND,), summary(acts="OFFER"), ["decline"]),
    "the order before, where it is": ((), (BESIDE,), summary(Said(("relation",), "before")), ["yes"]),
    "the one after, where it is before": ((), (BESIDE,), summary(Said(("relation",), "after")), ["no", "elaborate"]),
    "a wrong statement": ((), (BRAND,), calling(acts="TELL NOTED", said=(WRONGLY,)), ["no", "elaborate"]),
    "a right one": ((), (BRAND,), calling(acts="TELL NOTED", said=(RIGHTLY,)), ["yes"]),
    "a question whether it is so": ((), (BRAND, OPTION), checking(RIGHTLY, Said(("option",), "USB-C", 0)), ["yes"]),
    "one that it is not": ((), (BRAND, OPTION), checking(RIGHTLY, OTHER_OPTION), ["no", "elaborate"]),
    "one that tells what was not said": ((BRAND,), (), checking(WRONGLY), ["no", "elaborate"]),
    "understood, and nothing said": ((), (BRAND,), summary(acts="UNDERSTOOD"), ["say what"]),
}  # fmt: skip


@pytest.mark.parametrize("what", JUDGED)
def test_what_a_message_says_is_judged_and_nothing_wrong_affirmed(what: str) -> None:
    withheld, stated, says, expected = JUDGED[what]
    reply = manager(*withheld, stated=stated).react(says, "All right.")
    assert kinds(reply) == expected


def test_beside_a_judgement_the_question_is_answered() -> None:
    says = calling("judge", "ask", acts="SUMMARY QUESTION", said=(WRONGLY,), questions=[Question("price")])
    reply = manager(PRICE, stated=(BRAND,)).react(says, "BarkHarbor, noted. And the price?")
    assert (kinds(reply), reply.news) == (["no", "elaborate", "elaborate"], (PRICE,))


def test_asking_once_for_what_was_said_gets_a_clean_reminder_and_again_it_is_a_stall() -> None:
    k = manager(stated=(BRAND,))
    assert answer(k, "brand").acts == [Act("elaborate", CHARGER, {"brand": "SonicWave"}, clean=True)]
    assert k.annoyed == 0
    answer(k, "brand")
    assert k.annoyed == 1


def thing(number: int) -> Thing:
    return Thing("product", f"P{number}", f"product {number}")


RIGHT, WRONG, STRAY = Opinion(True, True), Opinion(False, True), Opinion(False, True, consistent=False)
THIS, WHICH = calling("ask", acts="QUESTION"), calling("ask", acts="LIST")


def test_a_right_identification_is_confirmed_and_costs_no_patience() -> None:
    k = manager(BRAND)
    assert kinds(k.opinion([(thing(1), RIGHT)], False, THIS, "")) == ["this one"]
    assert (k.annoyed, k.guessed) == (0, 0)


def test_wrong_identifications_are_counted_over_the_episode() -> None:
    k = manager(BRAND, PRICE)
    assert kinds(k.opinion([(thing(1), WRONG)], False, THIS, "")) == [
        "not this one",
        "dissatisfied",
    ]
    answer(k, "brand")
    assert not k.out_of_patience
    k.opinion([(thing(2), WRONG)], False, THIS, "")
    assert k.out_of_patience


def order(number: int) -> Thing:
    return Thing("order", f"A{number}", f"one from May {number}")


def test_one_of_at_most_three_candidates_is_chosen() -> None:
    three = [(thing(1), WRONG), (thing(2), RIGHT), (thing(3), WRONG)]
    assert manager().opinion(three, True, WHICH, "").acts == [Act("choose", seen="product 2")]
    k = manager()
    assert kinds(k.opinion([*three, (thing(4), WRONG)], True, WHICH, "")) == ["too many"]
    assert k.annoyed == 1


def test_a_second_set_with_strays_tells_nothing_about_the_right_one() -> None:
    replies = []
    for other in (RIGHT, WRONG):
        k, listed = manager(stated=(BRAND,)), [(thing(1), other), (thing(2), STRAY)]
        assert kinds(k.opinion(listed, True, WHICH, "")) == (["choose"] if other is RIGHT else ["elaborate"])
        replies.append(k.opinion(listed, True, WHICH, ""))
    assert replies[0] == replies[1]


def test_a_product_that_misses_a_wish_gets_one_named_fault() -> None:
    k = manager(PRICE)
    reply = k.opinion([(thing(1), Opinion(False, broken=PRICE))], False, THIS, "")
    assert reply.acts == [Act("not as wanted", STAND, {"price": 3000})]
    assert reply.news == (PRICE,)


def test_a_product_that_is_proposed_and_fits_all_that_was_said_is_no_guess() -> None:
    proposal = calling("judge", acts="OFFER")
    for broken, consistent, guessed in ((PRICE, True, 0), (PRICE, False, 1), (None, True, 1)):
        k = manager(PRICE)
        k.opinion([(thing(1), Opinion(False, True, broken, consistent))], False, proposal, "")
        assert k.guessed == guessed


def test_one_list_with_something_that_was_ruled_out_is_free() -> None:
    k = manager(stated=(BRAND,))
    counted = []
    for _ in range(2):
        k.opinion([(thing(1), RIGHT), (thing(2), STRAY)], True, WHICH, "")
        counted.append(k.guessed)
    assert counted == [0, 1]


def mistake(kind: str, item: int, *reveals: Slot) -> Mistake:
    act = Act(kind, (CHARGER, STAND)[item], {slot.name: slot.value for slot in reveals}, seen="HDMI")
    return Mistake(act, reveals, item)


def test_two_ignored_corrections_of_one_thing_and_the_customer_gives_it_up() -> None:
    k = manager(OPTION)
    said = [k.corrections([mistake("correct", 0, OPTION)])[0] for _ in range(3)]
    assert [act.kind for act in said] == ["correct", "correct", "give up"]
    assert [act.clean for act in said[:2]] == [False, True]
    assert k.state.withheld == []  # a correction counts as a reveal
    assert k.corrections([mistake("correct", 0, OPTION)]) == []


def test_mending_one_thing_at_a_time_is_not_ignoring_the_rest() -> None:
    k = manager()
    wrong = [mistake("correct", 0), mistake("wrong line", 0), mistake("correct", 1)]
    for left in (3, 2, 1):
        assert all(act.kind != "give up" for act in k.corrections(wrong[:left]))
        assert k.annoyed == 0
    assert k.corrections([]) == []


@pytest.mark.parametrize("taken_out", [False, True])
def test_trying_one_thing_after_another_costs_patience(taken_out: bool) -> None:
    """Also where each is taken out before the next one is tried."""
    k = manager()
    for number in range(4):
        assert not k.out_of_patience
        k.corrections([Mistake(Act("not wanted", seen=f"thing {number}"))])
        if taken_out:
            k.corrections([])
    assert k.out_of_patience


def test_three_stalls_in_a_row_end_it_unless_a_useful_question_comes_between() -> None:
    k, nonsense = manager(BRAND), calling("back", unclear=("Flurb?",))
    assert [kinds(k.answer(nonsense, ""))[-1] for _ in range(2)] == ["ask back", "dissatisfied"]
    assert not k.out_of_patience
    answer(k, "brand")
    assert k.annoyed == 0
    for _ in range(3):
        assert not k.out_of_patience
        k.answer(nonsense, "")
    assert k.out_of_patience


def test_something_right_starts_the_count_again_and_once_only() -> None:
    k = manager()

    def tries(count: int, right: int) -> None:
        for number in range(count):
            k.corrections([Mistake(Act("not wanted", seen=f"thing {number}"))], right)
            k.corrections([], right)

    tries(3, right=0)
    assert k.annoyed == 2
    k.corrections([], right=1)
    assert k.annoyed == 0
    tries(3, right=1)
    k.corrections([], right=0)  # the right one is taken out, and put in again
    k.corrections([], right=1)
    assert k.annoyed == 2


def test_several_unwanted_things_at_once_are_a_stall_and_not_named() -> None:
    k = manager()
    acts = k.corrections([Mistake(Act("not wanted", seen=f"thing {n}")) for n in range(3)])
    assert [act.kind for act in acts] == ["unwanted things"]
    assert k.annoyed == 1


def test_guessing_before_the_customer_said_which_one_ends_it_at_the_third_time() -> None:
    k = manager(BRAND)
    for number in range(3):
        assert not k.out_of_patience
        early = Mistake(Act("not told yet", CHARGER, seen=f"{number}"), (), 0, too_early=True)
        assert k.corrections([early])[0].kind == "not told yet"
        k.annoyed = 0  # a question between does not help
    assert k.out_of_patience
    assert k.state.withheld == [BRAND]


SHOWN = Said(("price",), "$25", 1, score=-80)
RETURNED = Slot(0, "replacement", [["brand", "BarkHarbor"]])


@pytest.mark.parametrize(
    ("offered", "stated", "expected"),
    [
        ((), (BRAND,), ["decline"]),
        ((Said(("brand",), "SonicWave", 0, score=-80),), (BRAND,), ["as wanted"]),
        ((Said(("brand",), "BarkHarbor", 0, score=-80),), (BRAND,), ["no", "elaborate"]),
        ((SHOWN,), (PRICE,), ["as wanted"]),
        ((replace(SHOWN, value="$60"),), (PRICE,), ["no", "elaborate"]),
        ((replace(SHOWN, value="$60"), SHOWN), (PRICE,), ["as wanted"]),  # of two things, one is dearer
    ],
)
def test_an_offer_is_taken_unless_what_was_said_speaks_against_it(
    offered: tuple[Said, ...], stated: tuple[Slot, ...], expected: list[str]
) -> None:
    reading = calling("judge", acts="OFFER", mentions=offered)
    assert kinds(manager(stated=stated).react(reading, "Would that do?")) == expected


def test_once_what_goes_back_is_clear_questions_are_about_what_comes_in_its_place() -> None:
    for identified, expected in ((False, "elaborate"), (True, "indifferent")):
        k = manager(stated=(FEATURE, RETURNED))
        k.state.identified = identified
        assert kinds(answer(k, "feature", text="Which kind would you like?")) == [expected]


def test_what_is_in_their_hands_is_never_denied() -> None:
    wrongly = summary(WRONGLY)
    k = manager(stated=(BRAND,))
    k.in_hand = lambda: frozenset(("barkharbor",))
    assert "no" not in kinds(k.react(wrongly, "It's the one by BarkHarbor."))
    assert kinds(manager(stated=(BRAND,)).react(wrongly, "It's the one by BarkHarbor."))[0] == "no"


def test_nothing_is_told_of_what_is_done() -> None:
    k = manager(BRAND)
    k.settled = lambda: True
    assert (kinds(answer(k, is_open=True)), k.state.withheld) == (["nothing"], [BRAND])
    assert kinds(k.react(summary(), "All done, right?")) == ["yes"]


ONLY_IF = Slot(0, "only_if", "part")


def test_what_comes_in_place_of_what_went_back_is_still_told() -> None:
    for refused, expected in ((False, [ONLY_IF]), (True, [])):
        k = manager(BRAND, ONLY_IF, stated=(RETURNED,))
        k.settled, k.refused_by_shop = lambda: True, refused
        assert [slot for act in k.react(summary(), "Is that all?").acts for slot in act.slots] == [
            slot.name for slot in expected
        ]
