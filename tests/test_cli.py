"""The command line, as its user meets it."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import ecomlab
from ecomlab import ENVIRONMENTS, __version__
from ecomlab import options as options_module
from ecomlab.cli import app, main
from ecomlab.difficulty import RANGES
from ecomlab.evaluation.tasks import held_out_seeds
from ecomlab.laws import certificate, laws
from ecomlab.laws.leaks import Leak
from ecomlab.models.policy import PolicyError
from ecomlab.task import Task

runner = CliRunner()
COMMANDS = [
    ["envs"],
    ["play"],
    ["certify"],
    ["bench"],
    ["bench", "env"],
    ["train"],
    ["eval"],
    ["compare"],
    ["frontier"],
    ["view"],
    ["cascade"],
    ["sweep"],
    ["figures"],
    ["assets"],
    ["assets", "get"],
    ["catalog"],
    ["catalog", "build"],
    ["init"],
]


def test_the_version_is_printed() -> None:
    assert runner.invoke(app, ["--version"]).output == f"ecomlab {__version__}\n"


@pytest.mark.parametrize("command", [[], *COMMANDS])
def test_every_help_has_an_example(command: list[str]) -> None:
    assert "Example: ecomlab" in runner.invoke(app, [*command, "--help"]).output


@pytest.mark.parametrize("command", COMMANDS)
def test_help_says_what_an_option_takes(command: list[str]) -> None:
    """Not of which Python type it is."""
    said = runner.invoke(app, [*command, "-h"], env={"COLUMNS": "200"}).output
    options = [line for line in said.splitlines() if "--" in line and "--help" not in line]
    assert not [line for line in options if re.search(r"<(str|int|bool|path|list|float)", line)]


def test_environments_and_axes_are_listed_with_units() -> None:
    said = runner.invoke(app, ["envs"]).output
    assert all(re.search(rf"^{name} +\w", said, re.MULTILINE) for name in [*ENVIRONMENTS, *RANGES])
    assert re.search(r"^top_k +200, 140, 80 +results", said, re.MULTILINE)


def test_a_played_episode_is_written_and_rebuilds_its_task(tmp_path: Path) -> None:
    file = tmp_path / "episode.json"
    given = ["--env", "cart", "--difficulty", "1", "--catalog", "1000", "--json", str(file)]
    assert runner.invoke(app, ["play", *given]).exit_code == 0
    found = json.loads(file.read_text())
    assert (
        found["score"]["correct"] and found["messages"][1]["content"] == Task.from_json(found["task"]).opening
    )


def test_a_certificate_is_written_with_the_promised_fields(tmp_path: Path) -> None:
    file = tmp_path / "certificate.json"
    done = runner.invoke(
        app,
        [
            "certify",
            "--env",
            "CART",
            "--difficulty",
            "0:1",
            "--seeds",
            "6",
            "--questions",
            "0",
            "--leaks",
            "0",
            "--workers",
            "1",
            "--json",
            str(file),
        ],
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


def test_an_interrupted_certificate_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, cell = tmp_path / "certificate.json", certificate.certify_cell
    arguments = [
        "certify",
        "--env",
        "CART",
        "--seeds",
        "4",
        "--questions",
        "0",
        "--leaks",
        "0",
        "--workers",
        "1",
        "--json",
        str(file),
    ]
    computed: list[int] = []

    def stopped(env: str, d: int, *rest: Any) -> Any:
        if d == 2:
            raise KeyboardInterrupt
        computed.append(d)
        return cell(env, d, *rest)

    monkeypatch.setattr(certificate, "certify_cell", stopped)
    runner.invoke(app, [*arguments, "--difficulty", "0:2"])
    assert not file.exists()

    def counted(env: str, d: int, *rest: Any) -> Any:
        computed.append(d)
        return cell(env, d, *rest)

    monkeypatch.setattr(certificate, "certify_cell", counted)
    with file.with_suffix(".kept.jsonl").open("a") as kept:
        kept.write('\n{"key": "half a li')
    assert runner.invoke(app, [*arguments, "--difficulty", "0:2"]).exit_code == 0
    assert computed == [0, 1, 2]
    assert [row["d"] for row in json.loads(file.read_text())["rows"]] == [0, 1, 2]


def test_a_broken_law_is_exit_code_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laws, "broken_laws", lambda *_: ["SOLVABLE: broken"])
    done = runner.invoke(
        app,
        [
            "certify",
            "--env",
            "CART",
            "--difficulty",
            "0",
            "--seeds",
            "2",
            "--leaks",
            "0",
            "--questions",
            "0",
            "--workers",
            "1",
        ],
    )
    assert done.exit_code == 1
    assert "SOLVABLE: broken" in done.output


def test_a_leak_breaks_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [Leak("CART", "cart_view: id", 40, 90, 0.7, low, 0.8) for low in (0.4, 0.6)]
    monkeypatch.setattr(certificate, "find_leaks", lambda *_: (found, []))
    arguments = [
        "certify",
        "--env",
        "CART",
        "--difficulty",
        "0",
        "--seeds",
        "2",
        "--leaks",
        "1",
        "--questions",
        "0",
    ]
    done = runner.invoke(app, [*arguments, "--workers", "1"])
    assert done.exit_code == 1
    assert "cart_view: id tells what is wanted in CART" in done.output and "1 broken" in done.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["certify", "--difficulty", "three"], "such as 0:12"),
        (["certify", "--difficulty", "4:2"], "lower to a higher"),
        (["bench", "env", "--difficulty", "-1"], "greater than or equal to 0"),
        (["certify", "--json", "/nowhere/at/all.json"], "make it first"),
        (["bench", "env", "--json", "/nowhere/at/all.json"], "make it first"),
        (["bench", "env", "--json", "/"], "cannot be written"),
        (["play", "--difficulty", "0:4"], "a whole number from 0 up such as 4, not '0:4'"),
        (["play", "--difficulty", "2.5"], "a whole number from 0 up such as 4, not '2.5'"),
        (["play", "--env", "C4"], "of one environment, such as CART, not of C4"),
        (["play", "--env", "pd,cart"], "of one environment, such as PD, not of PD,CART"),
        (["eval"], "name a player: reference"),
        (["frontier", "novice", "--figure", "f.pdf", "--json", "f.json"], "give --json another name"),
        (["eval", "reference", "--budget", "an hour"], "such as 1h, 30m or 90s"),
        (
            ["eval", "--rescore", "x", "--json", "y.json"],
            "nothing beside it but --catalog; leave out --json ╰",
        ),
        (["play", "--player", "reference", "--out", "mine"], "leave out --out"),
        (["eval", "novice", "--decoding", "greedi"], "'greedi' is not one of 'sampled', 'greedy'"),
        (
            ["play", "--key", "x", "--env", "CART", "--seed", "1", "--player", "human"],
            "nothing beside it but --player, --catalog, --customer, --out, --json; leave out --env, --seed ╰",
        ),
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
    done = runner.invoke(app, ["play", "--difficulty", "2", "--catalog", "1000"])
    assert done.exit_code == 0
    assert "reward 0.900, correct" in done.output
    weighed = "0.75 x task 1.000 + 0.15 x efficiency 1.000 + 0.10 x hallucination 0.000; at most 0.90"
    assert weighed in " ".join(done.output.split())


def test_players_are_named_in_any_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As environments are; what is a folder is taken as it is written."""
    done = runner.invoke(
        app, ["play", "--player", "REFERENCE", "--env", "cart", "--difficulty", "2", "--catalog", "1000"]
    )
    assert done.exit_code == 0 and "reward 0.900, correct" in done.output
    monkeypatch.chdir(tmp_path)
    names = ["Base", "NOVICE", "Say Nothing", "Human", "Nobody", "Owner/Name"]
    known = ["base", "novice", "say nothing", "human", "Nobody", "Owner/Name"]
    assert [options_module.player_known(name) for name in names] == known
    (tmp_path / "Base").mkdir()
    assert options_module.player_known("Base") == "Base"


def test_a_benchmark_is_written(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    sizes = ["--size", "1000", "--difficulty", "0", "--episodes", "2"]
    bench = ["bench", "env", "--env", "CART", *sizes, "--json", str(file)]
    assert runner.invoke(app, bench).exit_code == 0
    (timing,) = json.loads(file.read_text())["timings"]
    assert timing["reset_ms"][0] <= timing["reset_ms"][1] <= timing["reset_ms"][2]
    assert timing["without_search_ms"][1] < timing["episode_ms"][1]


def test_a_missing_extra_is_named_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["ecomlab", "play", "--catalog", "1000"])

    def missing(*_: object) -> None:
        raise ModuleNotFoundError("No module named 'submitit'", name="submitit.core")

    monkeypatch.setattr("ecomlab.lab.play.choice.load_shop", missing)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "'submitit' is not installed; pip install 'ecomlab[cluster]' brings it" in said


def test_an_interruption_is_not_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sys.argv", ["ecomlab", "play"])
    monkeypatch.setattr("ecomlab.lab.play.choice.load_shop", interrupted)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 130
    assert capsys.readouterr().err.startswith("interrupted;")


def test_every_public_name_leads_somewhere() -> None:
    listed = "import ecomlab; assert set(ecomlab.__all__) <= set(dir(ecomlab)), dir(ecomlab)"
    subprocess.run([sys.executable, "-c", listed], check=True, timeout=120)  # where none was used yet
    assert all(getattr(ecomlab, name) is not None for name in ecomlab.__all__)
    assert set(ecomlab.__all__) == {*ecomlab._MODULES, "__version__"}
    with pytest.raises(AttributeError, match="no attribute 'Epsiode'"):
        ecomlab.Epsiode  # type: ignore[attr-defined]  # noqa: B018


TRAIN = """
schedule = "static-0-1"
steps = 2
prompts_per_step = 2
group_size = 2
rounds = 1
eval_difficulties = [0]
eval_episodes = 2
eval_decodings = ["sampled"]
catalog_size = 1000
"""


def test_a_run_is_trained_from_a_file_and_evaluated_from_its_checkpoint(tmp_path: Path) -> None:
    file, out = tmp_path / "train.toml", tmp_path / "run"
    file.write_text(TRAIN)
    done = runner.invoke(app, ["train", "--config", str(file), "--set", f"out={out}", "--set", "steps=1"])
    assert done.exit_code == 0, done.output
    assert "step 1/1: CART, trained on d = 0 to 1" in done.output and (out / "done.json").exists()
    json_file = tmp_path / "eval.json"
    options = ["--env", "CART", "--difficulty", "0:1", "--episodes", "3", "--catalog", "1000"]
    more = [
        "--axis",
        "p_missing=0",
        "--axis",
        "cart.items=1",
        "--block",
        "2",
        "--csv",
        str(tmp_path / "e.csv"),
    ]
    files = ["--json", str(json_file), "--markdown", str(tmp_path / "e.md"), "--out", str(tmp_path / "eval")]
    done = runner.invoke(
        app,
        ["eval", str(out / "checkpoints" / "step-1"), *options, *more, *files, "--decoding", "greedy"],
    )
    assert done.exit_code == 0, done.output
    with (tmp_path / "e.csv").open() as table:
        episodes = list(csv.DictReader(table))
    assert len(episodes) == 2 * 3 and {int(row["seed"]) for row in episodes} == set(held_out_seeds(2, 3))
    for wrong, words in ((out, r"is a run, not a policy; use .*step-1"), (tmp_path, "no policy is in")):
        with pytest.raises(PolicyError, match=words):
            runner.invoke(app, ["eval", str(wrong), *options], catch_exceptions=False)
    found = json.loads(json_file.read_text())
    assert [(row["env"], row["d"], row["episodes"]) for row in found["cells"]] == [
        ("CART", 0, 3),
        ("CART", 1, 3),
    ]
    assert found["header"]["identity"]["decoding"] == "greedy"
    assert found["header"]["conditions"]["axes"] == {"cart.items": 1, "p_missing": 0}
    assert "| CART | 0 |" in (tmp_path / "e.md").read_text()
    done = runner.invoke(app, ["eval", "--rescore", str(tmp_path / "eval")])
    assert done.exit_code == 0 and "6 episodes scored again, 0 differ" in done.output


def test_two_players_are_evaluated_and_compared(tmp_path: Path) -> None:
    options = ["--env", "STATUS", "--difficulty", "2", "--episodes", "12", "--catalog", "1000"]
    for player in ("reference", "say nothing"):
        done = runner.invoke(app, ["eval", player, *options, "--out", str(tmp_path / player)])
        assert done.exit_code == 0, done.output
        assert (
            "12 in all; difference between two players that so many show (80% power, success about one half): 0.572"
            in done.output
        )
    again = runner.invoke(app, ["eval", "say nothing", *options, "--out", str(tmp_path / "reference")])
    assert "holds another run: identity.model is" in str(again.exception)
    done = runner.invoke(
        app,
        [
            "compare",
            str(tmp_path / "reference"),
            str(tmp_path / "say nothing"),
            "--json",
            str(tmp_path / "c.json"),
        ],
    )
    assert done.exit_code == 0 and "reference against say nothing" in done.output and "+1.000" in done.output
    assert json.loads((tmp_path / "c.json").read_text())["differences"][-1]["mean"] == 1.0


def test_an_evaluation_of_which_nothing_is_scored_says_why(tmp_path: Path) -> None:
    (tmp_path / "gone.toml").write_text('url = "http://127.0.0.1:9/v1"\nmodel = "m"\nretries = 0\n')
    options = ["--env", "CART", "--difficulty", "0", "--episodes", "2", "--catalog", "1000"]
    done = runner.invoke(app, ["eval", str(tmp_path / "gone.toml"), *options, "--out", str(tmp_path / "run")])
    assert done.exit_code == 1, done.output
    assert "nothing was scored" in done.output and "--retry-unscored" in done.output
    assert re.search(r"unscored, connection: .*127\.0\.0\.1:9\b", done.output)
    assert "reward by parts" not in done.output and "–" not in done.output


def test_a_frontier_is_searched_and_drawn(tmp_path: Path) -> None:
    files = [
        "--out",
        str(tmp_path / "f"),
        "--figure",
        str(tmp_path / "f.pdf"),
        "--json",
        str(tmp_path / "found.json"),
    ]
    done = runner.invoke(
        app, ["frontier", "say nothing", "--env", "STATUS,PD,CART", "--catalog", "1000", *files]
    )
    assert done.exit_code == 0, done.output
    assert done.output.count("below 0") == 6 and (tmp_path / "f.pdf").read_bytes().startswith(b"%PDF")
    found = json.loads((tmp_path / "found.json").read_text())
    assert [one["env"] for one in found["environments"]] == ["STATUS", "PD", "CART"]
    assert found["ledger"]["agent"]["requests"] > 100 and "agent: " in done.output


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--axis", "p_mising=0"], "no axis 'p_mising'; did you mean 'p_missing'"),
        (["--axis", "p_missing=2"], "axis 'p_missing' takes a number from 0 to 1, not 2"),
        (["--axis", "cart.items=2", "--env", "PD"], "axis 'cart.items' does not move PD; it moves CART"),
        (["--env", "CART,PX"], "no environment 'PX'; did you mean 'PD'"),
        (["--block", "2048"], "there are blocks 0 to 2047"),
    ],
)
def test_a_wrong_evaluation_stops_before_anything_is_loaded(
    given: list[str], words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ecomlab.lab.evaluations.load_shop", lambda *_: pytest.fail("loaded"))
    monkeypatch.setattr(
        "sys.argv", ["ecomlab", "eval", "novice", *(["--env", "CART"] * ("--env" not in given)), *given]
    )
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2 and words in capsys.readouterr().err


def test_environments_are_named_by_id_by_collection_or_by_list() -> None:
    assert options_module.environments(["C2", "PD,CART"]) == ["CART", "SUB", "PD"]
    assert options_module.environments(None) == list(ENVIRONMENTS)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("stepz=1", "no key 'stepz'; did you mean 'steps'?"),
        ("steps=many", "steps: should be a valid integer, not 'many'"),
        ("sed=1", "--set: sed: no key 'sed'; did you mean 'seed'?"),
        ("catalog_size=5", "a catalog has a product of each type; ask for"),
        ("steps", "--set takes NAME=VALUE"),
    ],
)
def test_a_wrong_setting_stops_before_anything_runs(
    change: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "train.toml"
    file.write_text(TRAIN)
    monkeypatch.setattr("sys.argv", ["ecomlab", "train", "--config", str(file), "--set", change])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_a_missing_or_broken_configuration_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("steps = = 1")
    sweep = tmp_path / "sweep.toml"
    sweep.write_text('notebook = "a.ipynb"')
    for file, words in (
        (tmp_path / "absent.toml", "no file"),
        (broken, "cannot be read"),
        (tmp_path, "is a folder"),
        (sweep, "is a sweep's file"),
    ):
        monkeypatch.setattr("sys.argv", ["ecomlab", "train", "--config", str(file)])
        with pytest.raises(SystemExit):
            main()
        assert words in " ".join(capsys.readouterr().err.split())
