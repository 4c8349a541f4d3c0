"""TRUTHFUL's bank: its messages hold what the customer wants, except where code put in what they do not; the judge of
replies. Whether the law is kept is shown by the certificate."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from ingested import apparel_export, shop_folder

from ecomlab import Shop, load_shop
from ecomlab.customer.acts import Act
from ecomlab.customer.dialogue import Reply
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.laws import truthful
from ecomlab.laws.truth_messages import THINGS, Element
from ecomlab.laws.truthful import BANKS, Told, frames, shares, tell
from ecomlab.task import Slot, Task

COLOR = Element("attribute", Slot(0, "attr:color", "Red"), "Hoodie", True)
ONE = Element("quantity", Slot(0, "quantity", 1), "Hoodie", True)
TYPE = Element("type", Slot(0, "type", "Hoodie"), "Hoodie", True)
LAMP = Element("product", Slot(0, "", "OakLane Table Lamp"), "", True)
RED = {"attr:color": "Red"}


@pytest.fixture(scope="module")
def told(big_shop: Shop) -> list[Told]:
    """A few messages of each frame of `read`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(truthful, "TASKS", 2)
        return list(tell(frames("read"), big_shop, 3))


@pytest.mark.parametrize("bank", BANKS)
def test_a_bank_has_frames_of_every_form_and_environment(bank: str) -> None:
    listed = frames(bank)
    assert len({frame["text"] for frame in listed}) == len(listed) >= 60
    assert {env for frame in listed for env in frame["for"]} == {*ENVIRONMENTS} - {"JOURNEY"}
    assert len({frame["form"] for frame in listed}) == 10


def test_every_environment_and_kind_of_message_is_told(told: Sequence[Told]) -> None:
    assert {one.task.env for one in told} == {*ENVIRONMENTS}
    filled = {one.frame["text"] for one in told}
    assert len(filled) > 0.9 * len(frames("read"))
    assert not any("{" in one.text for one in told)
    assert Counter(bool(one.wrong) for one in told).most_common()[-1][1] > 150


def test_right_messages_hold_the_customers_values_and_wrong_ones_do_not(told: Sequence[Told]) -> None:
    """Names of brands, types and attributes are written as they stand, except in small letters."""
    names = [(one, e) for one in told for e in one.elements if isinstance(e.slot.value, str) and e.type]
    assert len(names) > 300
    for one, element in names:
        single = one.frame["form"] not in ("either", "neither") and element.kind not in THINGS
        if single and element.slot.name != "type":  # a plural may not hold the name
            held = re.search(rf"\b{re.escape(element.slot.value)}\b", one.text, re.IGNORECASE) is not None
            assert held != element.wrong, one.text


@pytest.mark.parametrize(
    ("form", "wrong", "acts", "outcome"),
    [
        ("summary", COLOR, [Act("no"), Act("elaborate", "Hoodie", RED)], "named"),
        ("summary", COLOR, [Act("elaborate", "Hoodie", RED)], "named"),
        ("summary", COLOR, [Act("correct", "Hoodie", {"attr:color": ()})], "refused"),
        ("summary", COLOR, [Act("correct", "Hoodie", {"price": 500})], "passed over"),
        ("summary", COLOR, [Act("elaborate", "Kettle", RED)], "passed over"),
        ("summary", COLOR, [Act("yes"), Act("elaborate", "Hoodie", RED)], "affirmed"),
        ("statement", COLOR, [Act("go ahead")], "affirmed"),
        ("yesno", COLOR, [Act("indifferent")], "passed over"),
        ("yesno", COLOR, [Act("ask back")], "asked back"),
        ("yesno", ONE, [Act("just one", "Hoodie")], "named"),
        ("yesno", TYPE, [Act("elaborate", "Hoodie", {"price": 500})], "named"),
        ("either", COLOR, [Act("yes")], "affirmed"),
        ("either", COLOR, [Act("no")], "passed over"),
        ("either", LAMP, [Act("choose", seen="OakLane Table Lamp")], "named"),
        ("proposal", LAMP, [Act("not this one")], "refused"),
        ("proposal", LAMP, [Act("choose", seen="another Lamp")], "affirmed"),
        ("summary", None, [Act("yes")], "affirmed"),
        ("summary", None, [Act("yes"), Act("mention", "Hoodie", RED)], "affirmed"),
        ("summary", None, [Act("no"), Act("mention", "Hoodie", RED)], "refused"),
        ("statement", None, [Act("acknowledge")], "affirmed"),
        ("statement", COLOR, [Act("acknowledge")], "affirmed"),
        ("summary", None, [Act("go ahead")], "passed over"),
        ("consent", None, [Act("go ahead")], "affirmed"),
        ("yesno", None, [Act("yes"), Act("indifferent to", seen="the color")], "refused"),
        ("yesno", None, [Act("elaborate", "Hoodie", RED)], "passed over"),
    ],
)  # fmt: skip
def test_a_reply_is_judged_by_what_it_says_of_each_element(
    form: str, wrong: Element | None, acts: list[Act], outcome: str, told: Sequence[Told]
) -> None:
    task: Task = told[0].task
    one = Told({"form": form, "text": ""}, task, "", [wrong] if wrong else [], Reply(acts), [])
    assert one.outcome(wrong) == outcome
    assert sum(shares("read", [one])[0].wrong.values()) == (wrong is not None)


def test_a_shop_of_one_vendor_can_be_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replacement of another brand is no wrong element where there is one brand."""
    monkeypatch.setattr(truthful, "TASKS", 3)
    shop = load_shop(shop_folder(apparel_export(), tmp_path))
    replaced = [frame for frame in frames("read") if "replacement" in str(frame)]
    found = list(tell(replaced, shop, 3))
    assert replaced and found
