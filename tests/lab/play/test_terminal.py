"""The seat in a terminal, over a pipe: lines in, text out."""

import io
import shlex
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
    texts = (shlex.quote(f"{name}={text}") for name, text in entries_of(arguments).items())
    return " ".join([f"+{tool}", *texts])


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
        "", "/cart_ad product_id=P1", "/catalog_search query=mug price_max=cheap", "/catalog_search mug",
        '/catalog_search query="mug', "/send", "/help cart_add", "/help nothing", "/tools", "/held", "+cart_view",
        "/back", "catalog_search category=Mug", "cart_view", "/submit done=true", "/submit done=true",
    ]  # fmt: skip
    done = human(Choice("CART", 0, 1, catalog=SIZE), lines, "--out", str(tmp_path))
    words = ("'cart_add'", "'cheap'", "'mug'", "quotes", "such as /catalog_search", "'nothing'")
    for word in (*words, "ecomlab:play?env=CART", "waits: cart_view()", "reward -0.900"):
        assert word in done.output, word
    assert done.exit_code == 0


@pytest.mark.parametrize("lines", [["/quit"], ["Is there anything else?"], []])
def test_who_leaves_before_the_end_has_no_score(lines: list[str], shop: Shop, tmp_path: Path) -> None:
    done = human(Choice("CART", 0, 1, catalog=SIZE), lines, "--out", str(tmp_path))
    assert done.exit_code == 1 and "no score" in done.output and "reward" not in done.output
    assert not list(tmp_path.iterdir())


def test_objects_and_empty_texts_can_be_typed(shop: Shop, tmp_path: Path) -> None:
    lines = ['/catalog_search attributes={"color": "Navy"} category=Mug', "/task", "/qiut"]
    done = human(Choice("CART", 0, 1, catalog=SIZE), lines, "--out", str(tmp_path))
    assert "Navy" in done.output and "not sent: catalog_search" not in done.output
    assert done.output.count("YOUR TASK") == 1 and "did you mean 'quit'" in done.output
    done = human(Choice("POLICY", 0, 1, catalog=SIZE), ['/policy_search query=""'], "--out", str(tmp_path))
    assert "not sent" not in done.output and "title" in done.output


def test_the_first_interrupt_loses_nothing(shop: Shop, tmp_path: Path) -> None:
    typed = iter(["/cart_view", "", "/cart_view", "", ""])

    def read_line(_: str) -> str:
        line = next(typed)
        if not line:
            raise KeyboardInterrupt
        return line

    seat = Seat()
    seat.reset(Choice("CART", 0, 1, catalog=SIZE))
    written = io.StringIO()
    assert sit(seat, Console(file=written, width=110), read_line, tmp_path) == 1
    assert written.getvalue().count(AGAIN) == 2 and written.getvalue().count("--key") == 1


def test_a_key_names_the_episode_to_play(shop: Shop, tmp_path: Path) -> None:
    seat = Seat()
    seat.reset(Choice("STATUS", 2, 4, {"p_noise": 0.0}, SIZE))
    done = runner.invoke(app, ["play", "--player", "human", "--key", seat.key], input="")
    assert "STATUS, d = 2, seed 4" in done.output and seat.key in done.output.replace("\n", "")
    for cut, word in ((seat.key[:-2], "changed"), ("ecomlab:play?env=SUB", "quotes")):
        assert word in str(runner.invoke(app, ["play", "--key", cut]).exception)
