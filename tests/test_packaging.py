"""What is declared, what is pinned and what `make` installs agree with each other."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from ecomlab.lab.paths import FILES
from ecomlab.training.config import CONSTRAINTS

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
# The packages the project's card names.
CARD = "jupyterlab torch transformers trl faiss-cpu datasets matplotlib seaborn papermill ipywidgets".split()
LOCKED = (
    "all",
    "dev",
)  # the extras that constraints.txt pins; gpu and vllm depend on the machine, loggers on taste
BRIDGES = {"gymnasium", "datasets", "openenv", "inspect-ai", "verifiers", "trl", "verl", "tinker"}
"""Extras of the bridges, which are tested in environments of their own (experiments/bridges)."""

CUDA = re.compile(r"nvidia-|cuda-|triton$")


def declared(*extras: str) -> dict[str, Requirement]:
    """Direct requirements of ecomlab with these extras, by canonical name; `all` stands for the extras it names."""
    found = list(map(Requirement, PROJECT["dependencies"]))
    for requirement in (Requirement(line) for extra in extras for line in EXTRAS[extra]):
        found += declared(*requirement.extras).values() if requirement.name == "ecomlab" else [requirement]
    return {canonicalize_name(r.name): r for r in found}


def pins(name: str = "constraints.txt") -> dict[str, Version]:
    lines = (ROOT / name).read_text().splitlines()
    found = [re.fullmatch(r"([A-Za-z0-9._-]+)==(\S+)", line) for line in lines if not line.startswith("#")]
    assert all(found), f"{name} holds something other than name==version"
    return {canonicalize_name(m[1]): Version(m[2]) for m in found if m}


def closure(*extras: str) -> set[str]:
    """Every installed distribution that ecomlab with these extras needs here, by canonical name."""
    seen: set[tuple[str, frozenset[str]]] = set()
    todo = [(name, frozenset(r.extras)) for name, r in declared(*extras).items()]
    while todo:
        name, wanted = item = todo.pop()
        if item in seen:
            continue
        try:
            lines = distribution(name).requires or []
        except PackageNotFoundError:
            continue
        seen.add(item)
        for requirement in map(Requirement, lines):
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *wanted)):
                todo.append((canonicalize_name(requirement.name), frozenset(requirement.extras)))
    return {name for name, _ in seen}


def test_the_extras_hold_the_card_one_faiss_and_no_bridge() -> None:
    ours = {"train", "lab", "catalog", "gpu", "vllm", "cluster", "endpoint", "loggers", "all", "dev"}
    assert set(EXTRAS) == ours | BRIDGES
    assert set(CARD) <= set(declared("all"))
    assert "faiss-cpu" in declared()
    assert "faiss-gpu" not in declared(*EXTRAS)  # it would install into the folder of faiss-cpu
    assert not {"gymnasium", "openenv", "inspect-ai", "verifiers"} & set(declared("all"))


@pytest.mark.parametrize("name", sorted(path.name for path in ROOT.glob("experiments/bridges/*.lock.txt")))
def test_a_bridges_lock_file_lies_within_its_extras_ranges(name: str) -> None:
    lines = (ROOT / "experiments" / "bridges" / name).read_text().splitlines()
    pinned: dict[str, Version] = {
        canonicalize_name(n): Version(v) for n, _, v in (line.partition("==") for line in lines)
    }
    bridge = name.removesuffix(".lock.txt").replace("_", "-")
    for package, requirement in declared(*{bridge} & set(EXTRAS)).items():
        assert pinned[package] in requirement.specifier, package


# --- what each installation can do, with everything else blocked ---

BLOCKED = """
import importlib, pkgutil, sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in {blocked!r} else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = map(Without, sys.meta_path)
import ecomlab
for module in pkgutil.walk_packages(ecomlab.__path__, "ecomlab."):
    if not {{module.name.split(".")[1], module.name}} & {left_out!r}:
        importlib.import_module(module.name)
"""
AUDIT = """
from ecomlab import ENVIRONMENTS, Episode, load_shop, make_task, play, replay
from ecomlab.laws.certificate import certify_cell
from ecomlab.laws.leaks import measure
shop = load_shop(1_000)
for env in ENVIRONMENTS:
    trajectory = play(ENVIRONMENTS[env].reference_player(shop), make_task(env, 3, 1, shop), shop)
    assert trajectory.score.correct and replay(trajectory, shop) == trajectory.score
certify_cell("CART", 1, 2, 1, shop)
measure("CART", shop, levels=(1,), seeds=4)
"""
TRAINERS, NOTEBOOKS = (
    {"models", "starters", "training", "evaluation"},
    {"analysis", "bridges", "lab", "style"},
)


@pytest.mark.parametrize(
    ("extras", "left_out", "then"),
    [
        ((), {"__main__"} | TRAINERS | NOTEBOOKS, AUDIT),
        (("train",), {"__main__", "ecomlab.evaluation.report_plots"} | NOTEBOOKS, ""),
        (("lab",), {"__main__", "bridges", "ecomlab.lab.bench_sampling"} | TRAINERS, ""),
    ],
    ids=["nothing", "train", "lab"],
)
def test_an_installation_runs_what_it_is_for(extras: tuple[str, ...], left_out: set[str], then: str) -> None:
    """ecomlab alone plays and audits; `train` imports all of training; `lab` all of notebooks, tables and sweeps."""
    ours = closure(*extras)
    blocked = {
        module
        for module, distributions in packages_distributions().items()
        if not {canonicalize_name(name) for name in distributions} & (ours | {"ecomlab"})
    }
    assert "torch" in blocked or "train" in extras
    code = BLOCKED.format(blocked=blocked - set(sys.stdlib_module_names), left_out=left_out) + then
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_the_wheel_holds_starters_notebooks_and_sweeps(tmp_path: Path) -> None:
    """Everything that `ecomlab init` lays out, and the data that modules read."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    held = set(zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist())
    inside = [p for p in (ROOT / "ecomlab").rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    expected = {path.relative_to(ROOT).as_posix() for path in inside}
    for path in (path for pattern in FILES for path in ROOT.glob(pattern)):
        expected.add(f"ecomlab/_layout/{path.relative_to(ROOT).as_posix()}")
    assert "ecomlab/starters/weights/novice/model.safetensors" in expected
    assert expected <= held
    ours = {
        "ecomlab",
        "ecomlab_verifiers.py",
        "ecomlab_training.py",
        "ecomlab-0.2.0.dist-info",
    }  # verifiers wants top-level names
    assert {name.partition("/")[0] for name in held} == ours


def test_every_declared_package_is_pinned_inside_its_range_and_installed_so() -> None:
    for name, requirement in declared(*LOCKED).items():
        assert requirement.specifier, f"{name} is declared without a range"
        assert pins()[name] in requirement.specifier, f"{name}=={pins()[name]} is outside {requirement}"
        installed = Version(distribution(name).version).public
        assert installed == str(pins()[name]), f"run `make venv`: {name} {installed} is not {pins()[name]}"
    assert not [name for name, version in pins().items() if version.local]
    assert not [name for name in pins() if CUDA.match(name)]


@pytest.mark.skipif(
    sys.platform != "linux" or sys.version_info[:2] != (3, 11), reason="frozen on Linux with Python 3.11"
)
def test_everything_we_pull_in_is_pinned_and_nothing_else() -> None:
    needed = closure(*LOCKED)
    assert {name for name in needed if not CUDA.match(name)} <= set(pins())
    assert set(pins()) <= needed | set(declared(*LOCKED)) | {"torchao"}  # of gpu, tested on CPU


# --- every extra, as `make extras` resolved it ---

RESOLVED = json.loads((ROOT / "experiments" / "extras" / "resolved.json").read_text())
INSTALLATIONS: dict[str, dict[str, str]] = RESOLVED["installations"]


def resolved(extras: str) -> dict[str, Version]:
    pairs = (line.split("==") for line in INSTALLATIONS[extras]["packages"].split())
    return {canonicalize_name(name): Version(version) for name, version in pairs}


def test_the_log_has_every_extra() -> None:
    assert set(EXTRAS) - {"all", "dev"} <= set(INSTALLATIONS)
    [lowest] = SpecifierSet(PROJECT["requires-python"])
    assert Version(RESOLVED["python"]) == Version(lowest.version), "all pins accept the oldest Python"


@pytest.mark.parametrize("extras", INSTALLATIONS)
def test_every_extra_resolves_for_linux_within_its_ranges_and_constraints(extras: str) -> None:
    installation, found = INSTALLATIONS[extras], resolved(extras)
    assert "error" not in installation
    for name, requirement in declared(*extras.split(",")).items():
        assert found[name] in requirement.specifier, (
            f"{requirement} resolved to {found[name]}: run `make extras`"
        )
    pinned = pins(installation["constraints"])
    assert {n: v for n, v in found.items() if v != pinned.get(n, v)} == {}, "run `make extras`"


def test_the_conda_environment_takes_its_packages_from_pyproject_and_a_python_that_ecomlab_accepts() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    conda = [entry for entry in environment["dependencies"] if isinstance(entry, str)]
    [pip] = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    extras = re.fullmatch(r"-e \.\[(.+)\]", pip[1])
    assert "pip" in conda and pip[0] == "-c constraints.txt" and extras
    assert set(CARD) <= set(declared(*extras[1].split(",")))
    [python] = [Requirement(entry) for entry in conda if entry.startswith("python")]
    releases = [Version(f"3.{minor}.{patch}") for minor in range(9, 16) for patch in range(21)]
    allowed = [release for release in releases if release in python.specifier]
    assert allowed and all(release in SpecifierSet(PROJECT["requires-python"]) for release in allowed)


def test_one_version_everywhere() -> None:
    import ecomlab

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == ecomlab.__version__ == distribution("ecomlab").version


# --- the Makefile, with a Python that only writes down what it is asked ---


FAKE = """#!/bin/sh
echo "$@" >> "{log}"
case "$*" in
  "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  *"pip install"*) test ! -e "{log}.broken" ;;
esac
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder, with a space in its name, of the build files and `fake`, a Python that installs nothing."""
    here = tmp_path / "a clone"
    here.mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt", *CONSTRAINTS.values()):
        shutil.copy(ROOT / name, here)
    (here / "fake").write_text(FAKE.format(log=here / "log"))
    (here / "fake").chmod(0o755)
    return here


def make(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    environment = {
        k: v for k, v in os.environ.items() if k not in ("EXTRAS", "PYTHON", "MAKEFLAGS", "MAKELEVEL")
    }
    command = ["make", f"PYTHON={clone / 'fake'}", *arguments]
    return subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False)


def asked(clone: Path) -> list[str]:
    """What the fake Python was asked since the last call, without the probes."""
    log = clone / "log"
    lines = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return [" ".join(line.split()[:3]) for line in lines if line.startswith("-m")]


BUILD, INSTALL = "-m venv .venv", "-m pip install"


def test_make_alone_lists_its_targets_and_builds_nothing(clone: Path) -> None:
    done = make(clone)
    told = set(re.findall(r"^  ([a-z0-9-]+) ", done.stdout, re.MULTILINE))
    described = set(re.findall(r"^([a-z0-9-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert done.returncode == 0 and told == described >= {"venv", "test", "certify", "lab"}
    assert asked(clone) == []


def test_the_environment_is_built_once_and_a_changed_pin_installs_the_difference(clone: Path) -> None:
    assert make(clone, "venv").returncode == 0
    assert asked(clone) == [BUILD, INSTALL]
    assert make(clone, "venv").returncode == 0
    assert asked(clone) == []
    later = (clone / ".venv" / ".installed").stat().st_mtime + 5
    os.utime(clone / "constraints.txt", (later, later))
    make(clone, "venv")
    assert asked(clone) == [INSTALL]


@pytest.mark.parametrize(
    ("extras", "file"),
    [
        ("all,dev", "constraints.txt"),
        ("all,loggers,dev", "constraints-loggers.txt"),
        ("all,gpu,vllm,loggers,dev", "constraints-vllm.txt"),
    ],
)
def test_make_installs_with_the_constraints_of_its_extras(extras: str, file: str, clone: Path) -> None:
    assert make(clone, "venv", f"EXTRAS={extras}").returncode == 0
    (line,) = [line for line in (clone / "log").read_text().splitlines() if "pip install" in line]
    assert f" -c {file} -e .[{extras}]" in line


def test_an_old_python_is_refused(clone: Path) -> None:
    (clone / "fake").write_text("#!/bin/sh\necho 3.9.18 is too old >&2\nexit 1\n")
    done = make(clone, "venv")
    assert done.returncode != 0 and "3.9.18" in done.stderr and "PYTHON=" in done.stderr
    assert not (clone / ".venv").exists()
