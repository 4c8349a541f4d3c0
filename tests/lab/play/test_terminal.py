"""The seat in a terminal, over a pipe: lines in, text out."""

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hands import moves
from typer.testing import CliRunner

from ecomlab import ENVIRONMENTS, play
from ecomlab.catalog import Shop
from ecomlab.cli import app
from ecomlab.evaluation.transcripts import read
from ecomlab.lab.play.choice import Choice
from ecomlab.lab.play.forms import entries_of
from ecomlab.lab.play.seat import Seat, used

SIZE = 1_000
runner = CliRunner()


def written(seat: Seat, mark: str, tool: str, arguments: dict[str, Any]) -> str:
    """A call as a person would type it."""
    entries = entries_of(seat.forms[tool], arguments)
    texts = {n: entry if isinstance(entry, str) else json.dumps(entry) for n, entry in entries.items()}
    return " ".join([f"{mark}{tool}", *(shlex.quote(f"{name}={text}") for name, text in texts.items())])


def lines_of(choice: Choice) -> list[str]:
    """What a person types who thinks as the reference player does."""
    seat, lines = Seat(), list[str]()
    seat.reset(choice)
    for calls in moves(seat):
        if [tool for tool, _ in calls] == ["ask_user"]:
            lines.append(calls[0][1]["question"])
            seat.say(lines[-1])
            continue
        lines += [written(seat, "+", tool, arguments) for tool, arguments in calls]
        lines.append("/send")
        for tool, arguments in calls:
            seat.add(tool, entries_of(seat.forms[tool], arguments))
        seat.send()
    assert seat.outcome.trajectory.score.correct
    return lines


def human(choice: Choice, lines: list[str], *more: str) -> Any:
    """Play in a terminal that these lines are piped into."""
    chosen = ["--env", choice.env, "--difficulty", str(choice.difficulty), "--seed", str(choice.seed)]
    arguments = ["play", "--player", "human", *chosen, "--catalog", str(choice.size), *more]
    return runner.invoke(app, arguments, input="\n".join(lines) + "\n")


@pytest.mark.parametrize("env", ["CART", "RETURN", "STATUS", "JOURNEY"])
def test_an_episode_can_be_played_to_its_end_over_a_pipe(env: str, shop: Shop, tmp_path: Path) -> None:
    choice = Choice(env, 3, 11, size=SIZE)
    done = human(choice, lines_of(choice), "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "reward 0.900, correct" in done.output and "task 1.000 x 0.75 = 0.750" in done.output
    assert "x 0.15 = 0.150 (-1 unless correct; else 1, less the shares of the slack" in done.output
    assert "said at once" in done.output and "the reference player:" in done.output
    assert "  , " not in done.output
    (path,) = tmp_path.iterdir()
    (transcript,) = read(path)
    assert transcript.score.correct and transcript.job.env == env


def test_the_page_shows_what_the_terminal_shows() -> None:
    page = (Path(__file__).parents[3] / "docs" / "play.md").read_text("utf-8")
    block = page.partition("```text\n$ ecomlab ")[2].partition("\n```")[0]
    command, *shown = block.splitlines()
    typed = [line.removeprefix("> ") for line in shown if line.startswith("> ")]
    done = runner.invoke(app, shlex.split(command), input="\n".join([*typed, "/quit"]) + "\n")
    answers = [line for line in shown if not line.startswith("> ")]
    assert typed and len(answers) == 4
    for answer in answers:
        assert answer in done.output


def test_what_is_wrong_is_told_and_the_episode_goes_on(shop: Shop, tmp_path: Path) -> None:
    lines = [
        "", "/cart_ad product_id=P1", "/catalog_search query=mug price_max=cheap", "/catalog_search mug",
        '/catalog_search query="mug', "/send", "/help cart_add", "/help nothing", "/tools", "/held", "/left", "/key",
        "+cart_view", "/back", "catalog_search category=Mug", "cart_view", "left", "cart_add P1",
        "/submit done=true", "/submit done=true",
    ]  # fmt: skip
    done = human(Choice("CART", 0, 1, size=SIZE), lines, "--out", str(tmp_path))
    for said in (
        "did you mean 'cart_add'?",
        "not sent: catalog_search: price_max: a number, not 'cheap'",
        "takes name=value, such as query=..., not 'mug'",
        "put a value with blanks in quotes",
        "no call is waiting",
        "a call or command begins with /, such as /catalog_search;",
        "a call or command begins with /, such as /cart_view;",
        "a call or command begins with /, such as /cart_add;",
        "a call or command begins with /, such as /left;",
        "variant_id: As shown",
        "no tool 'nothing'",
        "/cart_set_quantity product_id, quantity, variant_id?",
        "cart: nothing yet",
        "ecomlab:play?env=CART",
        "waits: cart_view()",
        "0 calls wait",
        "reward -0.900, not correct",
    ):
        assert said in done.output, said
    assert done.exit_code == 0


def test_a_tool_alone_is_asked_for_field_by_field(shop: Shop, tmp_path: Path) -> None:
    lines = ["/catalog_search", "mug", *[""] * 9, "/cart_view", "/quit"]
    done = human(Choice("CART", 0, 1, size=SIZE), lines, "--out", str(tmp_path))
    assert "price_max (Dollars; a number):" in done.output
    assert "catalog_search(query: mug)" in done.output and "cart: none" in done.output


def test_a_field_that_cannot_be_read_is_asked_for_again(shop: Shop, tmp_path: Path) -> None:
    lines = ["/cart_set_quantity", "", "P1", "some", "2", "", "/quit"]
    done = human(Choice("CART", 0, 1, size=SIZE), lines, "--out", str(tmp_path))
    assert done.output.count("product_id (needed; As shown):") == 2 and "product_id: is needed" in done.output
    assert "quantity: a whole number, not 'some'" in done.output
    assert "cart_set_quantity(product_id: P1, quantity: 2)" in done.output


def test_a_folder_that_cannot_be_written_is_refused_before_the_play(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    choice, there = Choice("POLICY", 0, 1, size=SIZE), tmp_path / "file" / "inner"
    done = human(choice, ["/submit answer=yes clause=X-1"], "--out", str(there))
    assert "nothing can be saved in" in str(done.exception) and "customer" not in done.output
    done = human(choice, ["/quit"], "--out", str(tmp_path / "new" / "inner"))
    assert "customer" in done.output and not (tmp_path / "new").exists()


def test_it_is_said_where_nothing_is_held(shop: Shop, tmp_path: Path) -> None:
    done = human(Choice("POLICY", 0, 1, size=SIZE), ["/held", "/quit"], "--out", str(tmp_path))
    assert "an agent of POLICY changes no cart and starts no returns" in done.output


def test_a_key_that_the_shell_cut_is_told_of_quotes() -> None:
    refused = runner.invoke(app, ["play", "--key", "ecomlab:play?env=SUB"])
    assert "between quotes in a shell" in str(refused.exception)


def test_a_form_can_be_left(shop: Shop, tmp_path: Path) -> None:
    lines = ["+cart_add", "P1", "/back", "/send", "/cart_add", "/quit"]
    done = human(Choice("CART", 0, 1, size=SIZE), lines, "--out", str(tmp_path))
    assert "not sent: you left the form" in done.output and "no call is waiting" in done.output
    assert done.exit_code == 1 and "there is no score" in done.output


@pytest.mark.parametrize("lines", [["/quit"], ["Is there anything else?"], []])
def test_who_leaves_before_the_end_has_no_score(lines: list[str], shop: Shop, tmp_path: Path) -> None:
    done = human(Choice("CART", 0, 1, size=SIZE), lines, "--out", str(tmp_path))
    assert done.exit_code == 1 and "there is no score" in done.output and "reward" not in done.output
    assert not list(tmp_path.iterdir())


def test_a_key_names_the_episode_to_play(shop: Shop, tmp_path: Path) -> None:
    seat = Seat()
    seat.reset(Choice("STATUS", 2, 4, {"p_noise": 0.0}, SIZE))
    done = runner.invoke(app, ["play", "--player", "human", "--key", seat.key], input="/key\n")
    assert "STATUS, d = 2, seed 4" in done.output and seat.key in done.output.replace("\n", "")
    refused = runner.invoke(app, ["play", "--key", seat.key[:-2]])
    assert "copy the whole line again" in str(refused.exception)


def test_another_player_can_be_watched_with_an_axis_overridden(shop: Shop) -> None:
    arguments = ["play", "--player", "say nothing", "--catalog", str(SIZE), "--axis", "p_missing=0"]
    done = runner.invoke(app, arguments)
    assert done.exit_code == 0 and "not correct" in done.output
    unknown = runner.invoke(app, ["play", "--player", "refernce", "--catalog", str(SIZE)])
    assert "no player 'refernce'; did you mean 'reference'?" in str(unknown.exception)


def test_numbers_of_messages_and_calls_are_counted_in_words() -> None:
    choice = Choice("POLICY", 0, 0, size=SIZE)
    reference = play(ENVIRONMENTS["POLICY"].reference_player(choice.shop), choice.task(), choice.shop)
    assert used(replace(reference, turns=1, calls=2)) == "1 message, 2 calls"
    assert used(replace(reference, turns=3, calls=1)) == "3 messages, 1 call"
