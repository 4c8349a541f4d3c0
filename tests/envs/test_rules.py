"""Steps of the kind "rules": the agent applies the policy book itself, in RETURN and POLICY."""

from collections import Counter
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from ecomlab import ENVIRONMENTS, Episode, Shop, Task, make_task
from ecomlab.difficulty import STEPS
from ecomlab.episode.episode import draw_task
from ecomlab.laws import attackers
from ecomlab.steps import only
from ecomlab.values import MONTHS, money
from ecomlab.wishes import Of
from ecomlab.world.orders.lines import line_meant, wanted_for
from ecomlab.world.orders.returns import Desk, Outcome

BOTH = ("RETURN", "POLICY")


def played(task: Task, shop: Shop, **given: Any) -> Any:
    episode = Episode(task, shop)
    player = ENVIRONMENTS[task.env].reference_player(shop, **given)
    while not episode.done:
        episode.act(player(episode.messages, episode.tools))
    return episode.score()


def judged(task: Task, shop: Shop, standard: bool = False) -> tuple[Any, Any, dict[str, Any], Outcome]:
    slots = task.goal.after(task.events).of()
    order, line = line_meant(slots, task.world["orders"], shop)
    return order, line, slots, Desk(task.world, shop.catalog).judge(order, line, slots, standard)


@pytest.mark.parametrize("env", BOTH)
@pytest.mark.parametrize("d", [0, 4, 12])
def test_who_lacks_a_step_is_wrong_wherever_it_counts(env: str, d: int, big_shop: Shop) -> None:
    for seed in range(12):
        task = make_task(env, d, seed, big_shop)
        assert played(task, big_shop).correct
        assert d > 2 or not task.steps
        assert played(task, big_shop, lacks=STEPS).correct == (not task.steps), seed
        for kind in set(task.steps):
            assert not played(task, big_shop, lacks=[kind]).correct, (seed, kind)


def test_a_replacement_may_be_like_something_ordered_earlier(big_shop: Shop) -> None:
    """The customer says which thing and never its value; exactly one thing was ordered like that."""
    told = 0
    for seed in range(40):
        task = draw_task("RETURN", 8, seed, big_shop, only("reference", mean=2) | {"p_missing": 0.0})
        assert Task.from_json(task.to_json()) == task
        for name, value in task.goal["replacement"]:
            if not isinstance(value, Of):
                continue
            of_month = [
                order for order in task.world["orders"] if order["placed"][5:7] == value.described["month"]
            ]
            rows = [
                big_shop.catalog.row(line["product_id"]) or 0 for order in of_month for line in order["lines"]
            ]
            (row,) = [r for r in rows if big_shop.catalog.type_of(r).name == value.described["type"]]
            assert name.removeprefix("attr:") in big_shop.catalog.attributes(row)
            assert MONTHS[int(value.described["month"]) - 1] in task.opening
            told += 1
    assert told > 20


def asking(task: Task, shop: Shop) -> tuple[int, str, str]:
    """Return the cents that the customer of a task must agree to, their form, and the product's title."""
    _, line, slots, outcome = judged(task, shop)
    title = shop.catalog.title(shop.catalog.row(line["product_id"]) or 0)
    return outcome.back(line["price_cents"], slots.get("units", 1)), outcome.form, title


def back_for_money(shop: Shop, d: int, ends: Callable[[Outcome], bool]) -> Task:
    """Draw a task in which something goes back for money and *ends* holds; nothing is withheld and nothing happens."""
    bare = {"p_switch": 0.0, "p_oos": 0.0, "p_missing": 0.0} | only("rules")
    for task in (draw_task("RETURN", d, seed, shop, bare) for seed in range(60)):
        outcome = judged(task, shop)[3]
        if outcome.goes and ends(outcome) and not task.goal["replacement"]:
            return task
    raise AssertionError("no such task")


@pytest.fixture(scope="module")
def agreed(big_shop: Shop) -> Task:
    """A task of a return to which the customer must agree first."""
    return back_for_money(big_shop, 8, lambda outcome: bool(outcome.form))


@pytest.mark.parametrize(
    ("words", "stands"),
    [
        ("For the {title} you get {money} back as {form}. Do you agree?", True),
        ("You'd get {money} as {form} for the {title}, after a fee. Is that okay with you?", True),
        ("You paid {paid} for the {title}, so you get {money} as {form}. Do you agree?", True),
        ("For the {title} you get {money} or $1.23 as {form}. Do you agree?", False),
        ("For the {title} you get {paid} or {money} as {form}. Do you agree?", False),
        ("For the {title} you get $1.23 back as {form}. Do you agree?", False),
        ("For the {title} you get {money} back as {other}. Do you agree?", False),
        ("For the {title} you get {money} back. Do you agree?", False),
        ("You get {money} back as {form}. Do you agree?", False),
        ("Shall I start the return?", False),
        ("", False),
    ],
)
@pytest.mark.parametrize("late", [False, True])
def test_an_agreement_is_to_a_thing_an_amount_and_a_form_and_comes_first(
    words: str, stands: bool, late: bool, agreed: Task, big_shop: Shop
) -> None:
    cents, form, title = asking(agreed, big_shop)
    other = "gift card" if form == "check" else "check"
    order, line, slots, _ = judged(agreed, big_shop)
    ids = {"order_id": order["order_id"], "line_id": line["line_id"]}
    paid = money(line["price_cents"] * slots.get("units", 1))
    said = words.format(title=title, money=money(cents), form=form, other=other, paid=paid)
    returned = attackers.calls(("return_initiate", {**ids, "quantity": slots.get("units", 1)}))
    asked = [{"role": "assistant", "content": said}] if said else []
    episode = Episode(agreed, big_shop)
    for message in [returned, *asked] if late else [*asked, returned]:
        episode.act(message)
    told = {"outcome": "returned", "refund": money(cents)}
    episode.act(attackers.calls(("submit", {**ids, **told})))
    assert episode.score().correct == (stands and not late), episode.score().why


@pytest.fixture(scope="module")
def returns(big_shop: Shop) -> list[tuple[dict[str, Any], Outcome]]:
    """The facts and the outcomes of returns of the level at which all is drawn."""
    return [judged(make_task("RETURN", 12, seed, big_shop), big_shop)[2:] for seed in range(120)]


def test_about_half_of_the_returns_need_an_agreement(returns: list[tuple[dict[str, Any], Outcome]]) -> None:
    needs = Counter(bool(outcome.form) for _, outcome in returns if outcome.goes)
    assert 0.3 < needs[True] / needs.total() < 0.6


def test_a_replacement_may_depend_on_the_refund_either_way(big_shop: Shop) -> None:
    """Whoever takes the condition as met submits a replacement that nobody wants, in about half of what goes back."""
    met = Counter[bool]()
    for seed in range(100):
        task = draw_task("RETURN", 8, seed, big_shop, only("logic", "rules", mean=2) | {"p_switch": 0.0})
        _, _, slots, outcome = judged(task, big_shop)
        if "only_if" in slots and outcome.goes:
            wants = (slots["only_if"] == "full") == (not outcome.restocking and not outcome.label)
            assert bool(wanted_for(slots, outcome)) == wants
            assert ("logic" in task.steps) == (not wants)
            met[wants] += 1
    assert 0.25 < met[True] / met.total() < 0.75 and met.total() > 10


def test_what_nothing_goes_back_for_needs_no_answer_and_a_wrong_refund_is_wrong(big_shop: Shop) -> None:
    """Of two dollars too much nobody is told twice; who is refused has nothing to be told."""
    ends = Counter[tuple[bool, bool]]()
    for seed in range(60):
        task = make_task("RETURN", 12, seed, big_shop, {"p_switch": 0.0, "p_noise": 0.0})
        if "ask_back" not in task.goal.asks:
            continue
        _, line, slots, outcome = judged(task, big_shop)
        for told in (0, 200):
            episode = Episode(task, big_shop)
            cents = outcome.back(line["price_cents"], slots.get("units", 1)) + told
            oracle = ENVIRONMENTS["RETURN"].oracle(episode)
            while not episode.done:
                message = oracle(episode.messages, episode.tools)
                if "submit" in str(message.get("tool_calls")):
                    message = {
                        **message,
                        "content": f"Sorry, I meant to say that you get {money(cents)} back.",
                    }
                episode.act(message)
            assert episode.score().correct == (not told or not outcome.goes)
            ends[outcome.goes, bool(told)] += 1
    assert min(ends.values()) > 2 and len(ends) == 4


def test_a_return_ends_in_every_way_whatever_the_case(returns: list[tuple[dict[str, Any], Outcome]]) -> None:
    ends = Counter[str]()
    by_case: dict[Any, Counter[str]] = {}
    for slots, outcome in returns:
        end = "declined" if not outcome.goes else "full" if outcome.is_full else "part"
        ends[end] += 1
        for fact in ("reason", "opened", "tier"):
            by_case.setdefault(slots[fact], Counter())[end] += 1
    assert 0.35 < ends["declined"] / ends.total() < 0.65
    assert 0.2 < ends["full"] / (ends["full"] + ends["part"]) < 0.65
    for value, found in by_case.items():  # the case alone does not tell
        assert 0.2 < found["declined"] / found.total() < 0.8, value


def test_a_refund_is_exact_to_the_cent() -> None:
    outcome = Outcome(date(2026, 3, 1), True, 150, 499)
    assert outcome.refund(2_754, 2) == 5_508 - 826 - 499  # 15% of $55.08 is $8.262
    assert outcome.refund(100, 1) == 0
    assert Outcome(date(2026, 3, 1), True, None, None).refund(2_754, 1) is None
    assert Outcome(date(2026, 3, 1), True, None, 0).refund(2_754, 1) == 2_754


@pytest.fixture(scope="module")
def paid(big_shop: Shop) -> Task:
    """A task of a return that costs something."""
    return back_for_money(big_shop, 6, lambda outcome: not (outcome.is_full or outcome.form))


@pytest.mark.parametrize("told", ["{}", "{} back", "a cent more", "", None])
def test_the_refund_counts_beside_the_outcome(told: str | None, paid: Task, big_shop: Shop) -> None:
    order, line, slots, outcome = judged(paid, big_shop)
    cents = outcome.refund(line["price_cents"], slots.get("units", 1))
    assert cents is not None
    words = money(cents + 1) if told == "a cent more" else told and told.replace("{}", money(cents))
    ids = {"order_id": order["order_id"], "line_id": line["line_id"]}
    episode = Episode(paid, big_shop)
    episode.act(attackers.calls(("return_initiate", {**ids, "quantity": slots.get("units", 1)})))
    episode.act(attackers.calls(("submit", {**ids, "outcome": "returned", "refund": words})))
    score = episode.score()
    assert score.correct == (told in ("{}", "{} back"))
    assert score.correct or f"refund was submitted, it is {money(cents)}" in score.why


def test_a_return_that_the_book_forbids_is_started_and_undone(big_shop: Shop) -> None:
    """No tool gives a verdict: starting it is the agent's mistake."""
    task = next(
        t
        for seed in range(40)
        if not judged(t := make_task("RETURN", 6, seed, big_shop, {"p_switch": 0.0}), big_shop)[3].goes
    )
    order, line, _, outcome = judged(task, big_shop)
    ids = {"order_id": order["order_id"], "line_id": line["line_id"]}
    last = outcome.last_day.isoformat() if outcome.last_day else "never"
    end = ("submit", {**ids, "outcome": "declined", "last_return_day": last})
    for undone in (False, True):
        episode = Episode(task, big_shop)
        episode.act(attackers.calls(("return_initiate", ids)))
        assert episode.world.returns
        if undone:
            episode.act(attackers.calls(("return_cancel", ids)))
        while not episode.done:
            episode.act(attackers.calls(end))
        assert episode.score().correct == undone


def test_the_check_tells_facts_and_no_verdict(paid: Task, big_shop: Shop) -> None:
    order, line, _, _ = judged(paid, big_shop)
    ids = {"order_id": order["order_id"], "line_id": line["line_id"]}
    standard = judged(paid, big_shop, standard=True)[3]
    episode = Episode(paid, big_shop)
    shown = episode.act(attackers.calls(("return_check_eligibility", ids))).messages[0]["content"]
    assert f'"standard_window_open":{str(standard.goes).lower()}' in shown
    assert "eligible" not in shown and "reason" not in shown
    for quantity, fact in ((99, "can be returned, not 99"), (0, "can be returned, not 0")):
        said = episode.act(attackers.calls(("return_initiate", {**ids, "quantity": quantity})))
        assert fact in said.messages[0]["content"]
