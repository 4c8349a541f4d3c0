"""The seat in a terminal, over a pipe: lines in, text out."""

import io
from pathlib import Path
from typing import Any

import pytest
from hands import WORDS, entries_of, moves
from rich.console import Console
from typer.testing import CliRunner

from ecomlab.catalog import Shop
from ecomlab.cli import app
from ecomlab.evaluation.transcripts import read
from ecomlab.lab.play.choice import Choice
from ecomlab.lab.play.seat import Seat
from ecomlab.lab.play.terminal import AGAIN, sit

SIZE = 1_000
runner = CliRunner()


def written(tool: str, arguments: dict[str, Any]) -> str:
    """A call that waits, as a person would type it."""
    return " ".join([f"+{tool}", *(f"{name}={text}" for name, text in entries_of(arguments).items())])


def lines_of(choice: Choice) -> list[str]:
    """What a person types who thinks as the reference player does."""
    seat, lines = Seat(), list[str]()
    seat.reset(choice)
    for calls in moves(seat):
        if [tool for tool, _ in calls] in (["ask_user"], [WORDS]):
            lines.append(calls[0][1]["question"])
            seat.say(lines[-1])
            continue
        lines += [written(tool, arguments) for tool, arguments in calls]
        lines.append("/send")
        for tool, arguments in calls:
            seat.add(tool, entries_of(arguments))
        seat.send()
    assert seat.outcome.trajectory.score.correct
    return lines


def human(choice: Choice, lines: list[str], *more: str) -> Any:
    """Play in a terminal that these lines are piped into."""
    chosen = ["--env", choice.env, "--difficulty", str(choice.difficulty), "--seed", str(choice.seed)]
    arguments = ["play", "--player", "human", *chosen, "--catalog", str(choice.catalog), *more]
    return runner.invoke(app, arguments, input="\n".join(lines) + "\n")


@pytest.mark.parametrize("env", ["CART", "JOURNEY"])
def test_an_episode_can_be_played_to_its_end_over_a_pipe(env: str, shop: Shop, tmp_path: Path) -> None:
    choice = Choice(env, 3, 11, catalog=SIZE)
    done = human(choice, lines_of(choice), "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "reward 0.900" in done.output and "1.000 x 0.75 = 0.750" in done.output
    (path,) = tmp_path.iterdir()
    (transcript,) = read(path)
    assert transcript.score.correct and transcript.job.env == env


def test_what_is_wrong_is_told_and_the_episode_goes_on(shop: Shop, tmp_path: Path) -> None:
    lines = [
        "", "/cart_ad product_id=P1", "/tsak", "+sned", "/catalog_search query=mug price_max=cheap",
        "/cart_set_quantity P1 2", "/send", "/help cart_add", "/help nothing", "/tools", "/held", "+cart_view",
        "/drop", "/task", "/said", "catalog_search category=Mug", "catalog_search(category: Mug)", "cart_view",
        '/catalog_search attributes={"color":', "/submit", "/submit",
    ]  # fmt: skip
    done = human(Choice("CART", 0, 1, catalog=SIZE), lines, "--out", str(tmp_path))
    assert done.exit_code == 0
    words = (
        "'/cart_add'",
        "'/task'",
        "'/send'",
        "'cheap'",
        "product_id=",
        "'nothing'",
        "such as /catalog_search",
        'an object, {"name": "value"}',
    )
    for word in (*words, "ecomlab:play?env=CART", "waits: cart_view()", "cart: nothing yet", "reward -0.900"):
        assert word in done.output, word
    opening = Choice("CART", 0, 1, catalog=SIZE).task().opening
    assert done.output.count(opening) == 3, "at first, by /task and by /said"


@pytest.mark.parametrize("lines", [["/quit"], ["Is there anything else?"], []])
def test_who_leaves_before_the_end_has_no_score(lines: list[str], shop: Shop, tmp_path: Path) -> None:
    done = human(Choice("CART", 0, 1, catalog=SIZE), lines, "--out", str(tmp_path))
    assert done.exit_code == 1 and "no score" in done.output and "reward" not in done.output
    assert not list(tmp_path.iterdir())


def test_a_cart_is_shown_with_its_total(shop: Shop, tmp_path: Path) -> None:
    seat = Seat()
    seat.reset(Choice("CART", 0, 1, catalog=SIZE))
    product = seat.episode.world.catalog.ids[0]
    price = seat.episode.world.catalog.record(0)["price"]
    lines = [f"/cart_add {product} quantity=3", "/held"]
    done = human(seat.choice, lines, "--out", str(tmp_path))
    assert "units: 3" in done.output and f"each: ${price:.2f}" in done.output
    assert f"total: ${3 * price:,.2f}" in done.output


def test_an_interrupt_loses_nothing(shop: Shop, tmp_path: Path) -> None:
    lines: list[str | BaseException] = ["/cart_view", KeyboardInterrupt(), KeyboardInterrupt(), "/cart_view"]
    typed = iter([*lines, EOFError()])

    def read_line(_: str) -> str:
        line = next(typed)
        if isinstance(line, str):
            return line
        raise line

    seat = Seat()
    seat.reset(Choice("CART", 0, 1, catalog=SIZE))
    written = io.StringIO()
    assert sit(seat, Console(file=written, width=110), read_line, tmp_path) == 1
    assert written.getvalue().count(AGAIN) == 2 and written.getvalue().count("--key") == 1
    assert seat.left.calls == seat.left.of_calls - 2


def test_a_key_names_the_episode_to_play(shop: Shop, tmp_path: Path) -> None:
    seat = Seat()
    seat.reset(Choice("STATUS", 2, 4, {"p_noise": 0.0}, SIZE))
    done = runner.invoke(app, ["play", "--player", "human", "--key", seat.key], input="")
    assert "STATUS, d = 2, seed 4" in done.output and seat.key in done.output.replace("\n", "")
    for cut, word in ((seat.key[:-2], "changed"), ("ecomlab:play?env=SUB", "quotes")):
        assert word in str(runner.invoke(app, ["play", "--key", cut]).exception)
