"""What `eval` makes of a player's name and settings, and what it says beside its table."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from contestants import Script
from rich.console import Console

from ecomlab import Shop
from ecomlab.evaluate.contestant import Job
from ecomlab.evaluate.endpoint.settings import Prices
from ecomlab.evaluate.evaluation import EVALUATION
from ecomlab.evaluate.frontier import SHARES, Counts, Frontier, held
from ecomlab.evaluate.summary import Ledger, report
from ecomlab.evaluate.transcript import Transcript
from ecomlab.lab.evaluation_tables import notes_of, show_frontier
from ecomlab.lab.evaluations import _prices, folder_of, make_contestant


def test_a_setting_that_would_change_nothing_is_refused(shop: Shop) -> None:
    with pytest.raises(ValueError, match="novice has no thinking, which ordinary models have"):
        make_contestant("novice", shop, ["CART"], None, {"thinking": True})
    with pytest.raises(ValueError, match="greedy decoding has no temperature"):
        make_contestant("novice", shop, ["CART"], "greedy", {"temperature": 0.3})


@pytest.mark.parametrize(
    ("player", "folder"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", "Qwen-Qwen2.5-7B-Instruct"),
        ("models/gpt-4.1.toml", "models-gpt-4.1"),
        ("./novice", "novice"),
    ],
)
def test_two_models_do_not_share_a_folder(player: str, folder: str) -> None:
    assert folder_of(player, EVALUATION, None).name == folder


def notes(shop: Shop, **more: Any) -> str:
    """What is said of one episode whose transcript has `more`."""
    (played,) = Script().play([Job("STATUS", 0, 2**31)], shop)
    transcript = replace(Transcript.of(played), **more)
    ledger = Ledger()
    ledger.add(transcript)
    return "\n".join(notes_of({**report([transcript]), "ledger": ledger.to_json()}))


def test_a_server_that_leaves_calls_in_the_text_is_named(shop: Shop) -> None:
    assert "in 1 episodes the server left calls in the text" in notes(shop, notes={"calls_in_text": 3})
    assert "in the text" not in notes(shop)


def test_what_the_customers_endpoint_wrote_in_vain_is_told(shop: Shop) -> None:
    wording = [{"refused": "no answer"}, {"refused": ""}, {"refused": "adds words"}, {"refused": "no answer"}]
    said = notes(shop, wording=wording)
    assert "asked 4 times, refused 3 times (adds words 1, no answer 2)" in said
    assert "customer's endpoint" not in notes(shop)


def test_the_customers_endpoint_has_its_own_price() -> None:
    """Whatever the player is: a script, too."""
    price = Prices(input=1, output=2, cached=0.5)
    customer = SimpleNamespace(settings=SimpleNamespace(prices=price))
    assert _prices(make_contestant("reference", None, ["CART"], None, {}, customer)) == {"customer": price}  # type: ignore[arg-type]


@pytest.mark.parametrize("rises", [True, False])
def test_a_frontier_of_a_player_that_does_better_further_up_is_said_to_be_no_answer(
    rises: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    levels = {12: True, 0: False} if rises else {0: True, 12: False}
    counts = Counts()
    for level, won in levels.items():
        counts = counts.add(level, [won] * 20)
    one = Frontier("PD", tuple(held(counts, share) for share in SHARES), counts, 0).to_json()
    show_frontier({"header": {"player": "p"}, "environments": [one], "ledger": {}}, Console(width=110))
    assert ("PD: success rises with the level" in capsys.readouterr().out) == rises
