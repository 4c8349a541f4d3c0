"""The command line, as its user meets it."""

import csv
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

import ecomlab
from ecomlab import ENVIRONMENTS, __version__
from ecomlab.cli import app, main
from ecomlab.difficulty import RANGES
from ecomlab.evaluation.tasks import held_out_seeds
from ecomlab.laws import certificate, laws, truthful
from ecomlab.laws.leaks import Leak
from ecomlab.models.policy import PolicyError
from ecomlab.task import Task

runner = CliRunner()
CERTIFY = "certify --env CART --questions 0 --truths 0 --talks 0 --workers 1"


def invoke(line: str, *more: object, **options: Any) -> Result:
    """Run the words of a command line, and `more` as they are."""
    return runner.invoke(app, [*line.split(), *map(str, more)], **options)


@pytest.fixture
def ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[Any, str]]:
    """Run a command by its entry point; return its exit code and what it said on stderr, on one line."""

    def run(line: str, *more: object) -> tuple[Any, str]:
        monkeypatch.setattr("sys.argv", ["ecomlab", *line.split(), *map(str, more)])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code, " ".join(capsys.readouterr().err.split())

    return run


def commands(command: Any, *names: str) -> Iterator[str]:
    """Names of all commands, below others too."""
    yield " ".join(names)
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, *names, name)


@pytest.mark.parametrize("command", list(commands(typer.main.get_command(app))))
def test_every_command_has_its_help(command: str) -> None:
    assert invoke(command, "--help").exit_code == 0


def test_environments_and_axes_are_listed_with_units() -> None:
    assert invoke("--version").output == f"ecomlab {__version__}\n"
    said = invoke("envs").output
    assert all(re.search(rf"^{name} +\w", said, re.MULTILINE) for name in [*ENVIRONMENTS, *RANGES])
    assert re.search(r"^top_k +200, 140, 80 +results", said, re.MULTILINE)


def test_a_played_episode_is_shown_written_and_rebuilds_its_task(tmp_path: Path) -> None:
    file = tmp_path / "episode.json"
    done = invoke("play --env cart --difficulty 2 --catalog 1000 --json", file)
    assert done.exit_code == 0 and "reward 0.900" in done.output
    found = json.loads(file.read_text())
    assert found["score"]["correct"]
    assert found["messages"][1]["content"] == Task.from_json(found["task"]).opening


def test_a_certificate_is_written_with_the_promised_fields(tmp_path: Path) -> None:
    file = tmp_path / "certificate.json"
    done = invoke(f"{CERTIFY} --difficulty 0,2 --seeds 3 --leaks 0 --json", file)
    assert done.exit_code == 0, done.output
    rows = json.loads(file.read_text())["rows"]
    assert [(row["env"], row["d"], row["seeds"]) for row in rows] == [("CART", 0, 3), ("CART", 2, 3)]
    for row in rows:
        assert {"solver", "fair", "noisy", "naive", "blind", "positional", "chance", "turns"} <= set(row)
        assert row["blind"] and all(0 <= share <= 1 for share in row["blind"].values())


def test_a_certificate_tells_customers_truths_and_looks_for_contradictions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "certificate.json"
    monkeypatch.setattr(truthful, "TASKS", 1)
    invoke(
        "certify --env CART --difficulty 0 --seeds 2 --leaks 0 --questions 0 --truths 1 --talks 6 --workers 1 --json",
        file,
    )
    found = json.loads(file.read_text())
    assert {one["bank"] for one in found["truths"] if one["group"] == "all"} == set(truthful.BANKS)
    assert [(one["env"], one["episodes"]) for one in found["talked"]] == [("CART", 6)]
    assert found["laws"]["TRUTHFUL"].keys() == {"all", "CART"}
    assert not found["heard"] and not found["understood"]


def test_an_interrupted_certificate_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, cell, computed, stop = tmp_path / "certificate.json", certificate.certify_cell, list[int](), [2]
    line = f"{CERTIFY} --difficulty 0:2 --seeds 2 --leaks 0 --json"

    def counted(env: str, d: int, *rest: Any) -> Any:
        if d in stop:
            raise KeyboardInterrupt
        computed.append(d)
        return cell(env, d, *rest)

    monkeypatch.setattr(certificate, "certify_cell", counted)
    invoke(line, file)
    assert not file.exists()
    stop.clear()
    with file.with_suffix(".kept.jsonl").open("a") as kept:
        kept.write('\n{"key": "half a li')
    assert invoke(line, file).exit_code == 0
    assert computed == [0, 1, 2]
    assert [row["d"] for row in json.loads(file.read_text())["rows"]] == [0, 1, 2]


def test_a_broken_law_or_a_leak_is_exit_code_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(laws, "broken_laws", lambda *_: ["SOLVABLE: broken"])
        done = invoke(f"{CERTIFY} --difficulty 0 --seeds 2 --leaks 0")
    assert done.exit_code == 1 and "SOLVABLE" in done.output
    found = [Leak("CART", "cart_view: id", 40, 90, 0.7, low, 0.8) for low in (0.4, 0.6)]
    monkeypatch.setattr(certificate, "find_leaks", lambda *_: (found, []))
    done = invoke(f"{CERTIFY} --difficulty 0 --seeds 2 --leaks 1")
    assert done.exit_code == 1 and "cart_view: id" in done.output and "1 broken" in done.output


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("certify --difficulty three", "0:12"),
        ("certify --difficulty 4:2", "lower"),
        ("bench env --difficulty -1", "0"),
        ("certify --json /dev/null/c.json", "/dev/null"),
        ("bench env --json /", "written"),
        ("play --difficulty 0:4", "integer"),
        ("eval reference --axis p_missing", "NAME=VALUE"),
        ("eval", "reference"),
        ("frontier", "player"),
        ("frontier novice --figure f.pdf --json f.json", "--json"),
        ("eval --rescore x --json y.json", "leave out --json"),
        ("eval oracle --core --env CART", "leave out --env"),
        ("play --out mine", "leave out --out"),
        ("eval novice --decoding greedi", "'greedi'"),
        ("play --key x --env CART --seed 1 --player human", "leave out --env, --seed"),
        ("sweep experiments/paper/sweep.toml --cluster slrum", "slrum"),
    ],
)
def test_wrong_arguments_stop_before_anything_runs(line: str, says: str) -> None:
    done = invoke(line)
    assert done.exit_code == 2
    assert says in " ".join(done.output.replace("│", " ").split())


def test_what_stops_a_command_is_one_line_and_an_exit_code(
    ended: Callable[..., tuple[Any, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for line, word in (("--env CRAT", "'CART'"), ("--env C4", "C4"), ("--player humman", "human")):
        code, said = ended(f"play --catalog 1000 {line}")
        assert code == 2 and word in said and "Traceback" not in said
    for error, expected, word in (
        (ModuleNotFoundError("No module named 'submitit'", name="submitit.core"), 2, "ecomlab[cluster]"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ):

        def fail(*_: object, error: BaseException = error) -> None:
            raise error

        monkeypatch.setattr("ecomlab.lab.play.choice.load_shop", fail)
        code, said = ended("play --catalog 1000")
        assert code == expected and word in said and "Traceback" not in said


def test_every_public_name_leads_somewhere() -> None:
    listed = "import ecomlab; assert set(ecomlab.__all__) <= set(dir(ecomlab)), dir(ecomlab)"
    subprocess.run([sys.executable, "-c", listed], check=True, timeout=120)  # where none was used yet
    assert all(getattr(ecomlab, name) is not None for name in ecomlab.__all__)
    assert set(ecomlab.__all__) == {*ecomlab._MODULES, "__version__"}
    said = "import ecomlab; ecomlab.reward.Weights(task=1), ecomlab.style.use('icml'), dir(ecomlab).index('style')"
    subprocess.run([sys.executable, "-c", said], check=True, timeout=120)
    bare = "import sys; sys.modules['torch'] = None; import ecomlab; help(ecomlab); ecomlab.train"
    done = subprocess.run([sys.executable, "-c", bare], capture_output=True, text=True, timeout=120)
    assert "pip install 'ecomlab[train]'" in done.stderr and "evaluate(" in done.stdout
    with pytest.raises(AttributeError, match="Epsiode"):
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
    done = invoke("train --set steps=1 --config", file, "--set", f"out={out}")
    assert done.exit_code == 0, done.output
    assert (out / "done.json").exists()
    tasks = "--env CART --difficulty 0:1 --episodes 3 --catalog 1000 --decoding greedy --block 2"
    axes = "--axis p_missing=0 --axis cart.items=1"
    out_files = [*("--csv", tmp_path / "e.csv"), *("--json", tmp_path / "eval.json")]
    files = [
        *out_files,
        *("--markdown", tmp_path / "eval" / "e.md"),
        *("--html", tmp_path / "eval" / "e.html"),
        *("--out", tmp_path / "eval"),
    ]
    done = invoke(f"eval {tasks} {axes}", out / "checkpoints" / "step-1", *files)
    assert done.exit_code == 0, done.output
    assert "<img" in (tmp_path / "eval" / "e.html").read_text()
    with (tmp_path / "e.csv").open() as table:
        episodes = list(csv.DictReader(table))
    assert len(episodes) == 2 * 3 and {int(row["seed"]) for row in episodes} == set(held_out_seeds(2, 3))
    for wrong, word in ((out, "step-1"), (tmp_path, "no policy")):
        with pytest.raises(PolicyError, match=word):
            invoke(f"eval {tasks}", wrong, catch_exceptions=False)
    found = json.loads((tmp_path / "eval.json").read_text())
    cells = [(row["env"], row["d"], row["episodes"]) for row in found["cells"]]
    assert cells == [("CART", 0, 3), ("CART", 1, 3)]
    assert found["header"]["identity"]["decoding"] == "greedy"
    assert found["header"]["conditions"]["axes"] == {"cart.items": 1, "p_missing": 0}
    assert "| CART | 0 |" in (tmp_path / "eval" / "e.md").read_text()
    done = invoke("eval --rescore", tmp_path / "eval")
    assert done.exit_code == 0 and "0 changed" in done.output


def test_an_evaluation_needs_no_extra_but_for_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.chdir(tmp_path)
    played = "eval reference --env STATUS --difficulty 2 --episodes 2 --catalog 1000"
    done = invoke(played)
    assert done.exit_code == 0, done.output
    assert isinstance(invoke(f"{played} --block 1 --out late --csv e.csv").exception, ModuleNotFoundError)
    assert not (tmp_path / "late").exists(), "before anything was played"


def test_a_size_of_catalog_is_measured(tmp_path: Path) -> None:
    """In processes of its own; the row of a size is written in the place of its older one."""
    for _ in range(2):
        done = invoke("bench catalog --size 1500 --episodes 1 --work", tmp_path)
        assert done.exit_code == 0, done.output
    for name, count in (("results", 1), ("environments", len(ENVIRONMENTS))):
        with (tmp_path / f"{name}.csv").open() as table:
            assert [row["products"] for row in csv.DictReader(table)] == ["1500"] * count


def test_two_players_are_evaluated_and_compared(tmp_path: Path) -> None:
    tasks = "eval --env STATUS --difficulty 2 --episodes 12 --catalog 1000 --out"
    one, two = tmp_path / "reference", tmp_path / "say nothing"
    for folder in (one, two):
        done = invoke(tasks, folder, folder.name)
        assert done.exit_code == 0, done.output
        assert "0.572" in done.output  # the difference that 12 tasks can show
    assert "another run" in str(invoke(tasks, one, two.name).exception)
    done, found = invoke("compare", one, two, "--json", tmp_path / "c.json"), tmp_path / "c.json"
    assert done.exit_code == 0 and json.loads(found.read_text())["differences"][-1]["mean"] == 1.0


QUICK = "--env CART --difficulty 0 --episodes 2 --catalog 1000"


def test_a_frontier_is_searched_and_drawn(tmp_path: Path) -> None:
    files = ["--out", tmp_path / "f", "--figure", tmp_path / "f.pdf", "--json", tmp_path / "found.json"]
    done = invoke("frontier --env STATUS,CART --catalog 1000", "say nothing", *files)
    assert done.exit_code == 0, done.output
    assert done.output.count("below 0") == 4 and (tmp_path / "f.pdf").read_bytes().startswith(b"%PDF")
    found = json.loads((tmp_path / "found.json").read_text())
    assert [one["env"] for one in found["environments"]] == ["STATUS", "CART"]
    assert found["ledger"]["agent"]["requests"] > 100


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ("--axis p_mising=0", "'p_missing'"),
        ("--axis p_missing=2", "0 to 1"),
        ("--axis cart.items=2 --env PD", "PD"),
        ("--env CART,PX", "'PD'"),
        ("--block 2048", "2047"),
    ],
)
def test_a_wrong_evaluation_stops_before_anything_is_loaded(
    given: str, word: str, monkeypatch: pytest.MonkeyPatch, ended: Callable[..., tuple[Any, str]]
) -> None:
    monkeypatch.setattr("ecomlab.lab.evaluations.load_shop", lambda *_: pytest.fail("loaded"))
    code, said = ended(f"eval novice {given}", *(["--env", "CART"] * ("--env" not in given)))
    assert code == 2 and word in said
