"""Training through verifiers' v1 interface and prime-rl's sampler: tasks from a stream, outcomes back to it."""

import asyncio
import json
import re
import signal
import subprocess
import sys
import types
import zipfile
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

vf = pytest.importorskip("verifiers.v1")

from verifiers.v1.cli.eval.runner import run_eval
from verifiers.v1.configs.cli.eval import EvalConfig
from verifiers.v1.utils.loaders import load_taskset

from bridges.test_verifiers import reference, serve, traces_of  # noqa: F401
from bridges.twenty import SHOP
from ecomlab import Shop
from ecomlab.bridges import verifiers_training as bridge
from ecomlab.bridges.verifiers import OUTCOME, TRAINING, load_environment
from ecomlab.evaluation.contestant import Job
from ecomlab.seeding import TRAINING_SEEDS

GIVEN = {"id": TRAINING, "envs": "CART,PD", "size": SHOP, "groups_per_step": 2, "settings": {"tau_num": 8}}


def taskset_of(**more: Any) -> Any:
    given = {name: value for name, value in {**GIVEN, **more}.items() if name not in ("id", "envs")}
    return load_environment("CART,PD", schedule="adaptive", **given).taskset


def episode_of(task: Any, correct: bool | None, error: bool = False) -> Any:
    """What prime-rl's orchestrator gets back of an episode."""
    score = {"correct": bool(correct), "unscored": correct is None}
    agent = types.SimpleNamespace(trainable=True)
    trace = types.SimpleNamespace(
        agent=agent, has_error=error, info={} if error else {OUTCOME: {"score": score}}
    )
    return types.SimpleNamespace(task=types.SimpleNamespace(key=task.key), traces=[trace])


def test_its_tasks_are_endless_and_of_training() -> None:
    taskset = taskset_of()
    assert type(taskset).INFINITE
    tasks = list(islice(iter(taskset), 30))
    assert all(task.data.seed in TRAINING_SEEDS for task in tasks) and len({task.key for task in tasks}) == 30
    with pytest.raises(ValueError, match="infinite"):
        taskset.shuffle()
    with pytest.raises(ValueError, match="one or the other"):
        load_environment("CART", 2, "adaptive")


@pytest.fixture
def prime_rl(monkeypatch: pytest.MonkeyPatch) -> Any:
    """prime-rl is in no registry: its module of samplers, with a standard one as its is."""

    class StandardSampler:
        def __init__(self, tasks: Any) -> None:
            self.tasks = tasks

        def __next__(self) -> Any:
            return next(self.tasks)

    samplers = types.ModuleType("prime_rl.orchestrator.curriculum.samplers")
    samplers.StandardSampler = StandardSampler  # type: ignore[attr-defined]
    for name in ("prime_rl", "prime_rl.orchestrator", "prime_rl.orchestrator.curriculum"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["prime_rl.orchestrator.curriculum"].samplers = samplers  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, samplers.__name__, samplers)
    return samplers


def test_prime_rls_sampler_moves_the_window_and_a_resumed_run_draws_alike(prime_rl: Any) -> None:
    bridge.adapt_prime_rl()
    sampler = prime_rl.StandardSampler(iter(taskset_of()))
    assert isinstance(sampler, bridge.StreamSampler)
    assert not isinstance(prime_rl.StandardSampler(iter([])), bridge.StreamSampler)
    drawn, saved = [], {}

    def report(sampler: Any, task: Any) -> None:
        failed = [episode_of(task, None), episode_of(task, None, error=True)]
        sampler.observe([episode_of(task, True)] * 8 + failed)

    for number in range(24):
        task = next(sampler)
        if number == 12:
            saved = json.loads(json.dumps(sampler.state_dict()))
        drawn.append(task.key)
        report(sampler, task)
    assert max(sampler.metrics().values()) >= 2
    again = prime_rl.StandardSampler(iter(taskset_of()))
    again.load_state_dict(saved)
    for key in drawn[12:]:
        task = next(again)
        assert task.key == key
        report(again, task)


ORCHESTRATOR = """
import json, os, sys, types
from pathlib import Path
for name in ("prime_rl", "prime_rl.orchestrator", "prime_rl.orchestrator.curriculum"):
    sys.modules[name] = types.ModuleType(name)
samplers = types.ModuleType("prime_rl.orchestrator.curriculum.samplers")
samplers.StandardSampler = type("StandardSampler", (), {"__init__": lambda self, tasks: None})
sys.modules[samplers.__name__] = sys.modules["prime_rl.orchestrator.curriculum"].samplers = samplers
from bridges.test_verifiers_training import bridge, episode_of, taskset_of
bridge.adapt_prime_rl()
sampler, kept = samplers.StandardSampler(iter(taskset_of())), Path(sys.argv[1])
if kept.exists():
    sampler.load_state_dict(json.loads(kept.read_text()))
for number in range(int(sys.argv[2])):
    task = next(sampler)
    print(task.key, flush=True)
    sampler.observe([episode_of(task, True)] * 8)
    if number % 4 == 3:
        kept.with_suffix(".new").write_text(json.dumps(sampler.state_dict()))
        os.replace(kept.with_suffix(".new"), kept)
    if number == int(sys.argv[3]):
        os.kill(os.getpid(), 9)
"""
"""As prime-rl's orchestrator does: draw, observe, and keep the sampler's state with every fourth checkpoint."""


def test_an_orchestrator_killed_minus_nine_draws_on_from_its_checkpoint(tmp_path: Path) -> None:
    def keys(name: str, tasks: int, killed: int = -1) -> list[str]:
        command = [sys.executable, "-c", ORCHESTRATOR, str(tmp_path / name), str(tasks), str(killed)]
        done = subprocess.run(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True)
        assert done.returncode == (-signal.SIGKILL if killed >= 0 else 0)
        return done.stdout.splitlines()

    whole = keys("whole", 12)
    before = keys("killed", 12, killed=5)
    assert before == whole[:6]
    assert keys("killed", 8) == whole[4:], "from the checkpoint after the fourth"


def test_verifiers_plays_them(serve: Any, tmp_path: Any, monkeypatch: Any, bridge_shop: Shop) -> None:  # noqa: F811
    """Its evaluation over the first tasks, by the reference player: what comes back is what the sampler reports."""
    monkeypatch.setenv("NO_KEY", "none")
    monkeypatch.setenv("HOME", str(tmp_path))
    tasks = list(islice(iter(load_taskset(taskset_of().config)), 4))
    jobs = [Job(task.data.env, task.data.d, task.data.seed, axes=task.data.axes) for task in tasks]
    given = {
        "model": "reference", "push": False, "output_dir": str(tmp_path), "run": {"dir": "run"}, "rich": None,
        "select": {"limit": 4},
        "client": {"base_url": serve(reference(jobs, bridge_shop)), "api_key_var": "NO_KEY"}, "env": {"taskset": GIVEN},
    }  # fmt: skip
    asyncio.run(run_eval(EvalConfig.model_validate(given)))
    traces = traces_of(tmp_path)
    assert len(traces) == 4 and {trace["task"]["key"] for trace in traces} == {task.key for task in tasks}
    assert all("correct" in trace["info"][OUTCOME]["score"] for trace in traces)


def test_the_hubs_package_builds_and_its_readme_loads(tmp_path: Path) -> None:
    """Its wheel holds metadata alone: the modules come with ecomlab."""
    folder = Path(__file__).parents[2] / "experiments/bridges/hub/ecomlab_verifiers"
    readme = (folder / "README.md").read_text()
    assert len([line for line in readme.splitlines() if line.strip()]) <= 10
    for call in re.findall(r"load_environment\(.*?\)(?= +#)", readme):
        assert eval(call, {"load_environment": load_environment}).taskset is not None
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(folder)]
    subprocess.run(command, check=True)
    (wheel,) = tmp_path.glob("ecomlab_verifiers-*.whl")
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
        (metadata,) = [file.read(name).decode() for name in names if name.endswith("METADATA")]
    assert all(".dist-info/" in name for name in names) and "Requires-Dist: ecomlab[verifiers]" in metadata
