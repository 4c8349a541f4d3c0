"""The command line, as its user meets it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ecomlab import __version__, certify
from ecomlab.cli import app, main

runner = CliRunner()
COMMANDS = [["play"], ["certify"], ["bench"], ["bench", "env"], ["sweep"], ["ablation"], ["figures"]]


def test_the_version_is_printed() -> None:
    assert runner.invoke(app, ["--version"]).output == f"ecomlab {__version__}\n"


@pytest.mark.parametrize("command", [[], *COMMANDS])
def test_every_help_has_an_example(command: list[str]) -> None:
    assert "Example: ecomlab" in runner.invoke(app, [*command, "--help"]).output


def test_a_certificate_is_written_with_the_promised_fields(tmp_path: Path) -> None:
    file = tmp_path / "certificate.json"
    done = runner.invoke(
        app, ["certify", "--difficulty", "0:1", "--seeds", "6", "--workers", "1", "--json", str(file)]
    )
    assert done.exit_code == 0, done.output
    document = json.loads(file.read_text())
    assert [(row["env"], row["d"], row["seeds"]) for row in document["rows"]] == [
        ("CART", 0, 6),
        ("CART", 1, 6),
    ]
    for row in document["rows"]:
        assert {"solver", "fair", "noisy", "naive", "blind", "positional", "chance", "turns"} <= set(row)
        assert row["blind"] and all(0 <= share <= 1 for share in row["blind"].values())


def test_a_broken_law_is_exit_code_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certify, "broken_laws", lambda rows: ["law 1: broken"])
    done = runner.invoke(app, ["certify", "--difficulty", "0", "--seeds", "2", "--workers", "1"])
    assert done.exit_code == 1
    assert "law 1: broken" in done.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["certify", "--difficulty", "three"], "such as 0:12"),
        (["certify", "--difficulty", "4:2"], "lower to a higher"),
        (["certify", "--json", "/nowhere/at/all.json"], "make it first"),
        (["bench", "env", "--json", "/nowhere/at/all.json"], "make it first"),
    ],
)
def test_wrong_arguments_stop_before_anything_runs(arguments: list[str], says: str) -> None:
    done = runner.invoke(app, arguments)
    assert done.exit_code == 2
    assert says in " ".join(done.output.replace("│", " ").split())


def test_an_unknown_environment_is_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["ecomlab", "play", "--env", "CRAT"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert "no environment 'CRAT'; did you mean 'CART'?" in capsys.readouterr().err


def test_an_episode_can_be_watched() -> None:
    done = runner.invoke(app, ["play", "--difficulty", "2", "--size", "1000"])
    assert done.exit_code == 0
    assert "reward 0.900, correct" in done.output


def test_a_benchmark_is_written(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    sizes = ["--size", "1000", "--difficulty", "0", "--episodes", "2"]
    assert runner.invoke(app, ["bench", "env", *sizes, "--json", str(file)]).exit_code == 0
    (timing,) = json.loads(file.read_text())["timings"]
    assert timing["reset_ms"][0] <= timing["reset_ms"][1] <= timing["reset_ms"][2]


def test_a_missing_extra_is_named_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["ecomlab", "play", "--size", "1000"])

    def missing(*_: object) -> None:
        raise ModuleNotFoundError("No module named 'faiss'", name="faiss")

    monkeypatch.setattr("ecomlab.load_shop", missing)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "'faiss' is not installed; pip install -c constraints.txt -e '.[cpu]'" in said


def test_an_interruption_is_not_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sys.argv", ["ecomlab", "play"])
    monkeypatch.setattr("ecomlab.load_shop", interrupted)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 130
