"""The cost of an episode in calls of ecomlab's functions: one that becomes slower unseen fails here.

`python tests/episode/test_calls.py` writes `calls.json` anew.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import ecomlab
from ecomlab import ENVIRONMENTS, load_shop, make_task, play

TABLE = Path(__file__).with_name("calls.json")
PACKAGE = str(Path(ecomlab.__file__).parent)
LEVEL, SEED, WARM = 4, 0, range(1, 4)
TOLERANCE = 0.1


def counted() -> dict[str, int]:
    """Count the calls of one episode of the reference player, task and score included, by environment.

    Other tasks are played before, so that what is made once a process is there. Comprehensions are not counted, which
    later Pythons do not call.
    """
    shop, found = load_shop(1_000), {}
    calls = 0

    def count(frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls
        code = frame.f_code
        named = not code.co_name.startswith("<") or code.co_name == "<lambda>"
        calls += event == "call" and named and code.co_filename.startswith(PACKAGE)

    for env, environment in ENVIRONMENTS.items():
        for seed in WARM:
            play(environment.reference_player(shop), make_task(env, LEVEL, seed, shop), shop)
        calls = 0
        sys.setprofile(count)
        try:
            score = play(environment.reference_player(shop), make_task(env, LEVEL, SEED, shop), shop).score
        finally:
            sys.setprofile(None)
        assert score.correct, (env, score.why)
        found[env] = calls
    return found


@pytest.fixture(scope="module")
def now() -> dict[str, int]:
    """The counts in a process of its own, whose caches no other test has filled."""
    code = "import json, test_calls; print(json.dumps(test_calls.counted()))"
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environ = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_an_episode_takes_as_many_calls_as_before(env: str, now: dict[str, int]) -> None:
    known = json.loads(TABLE.read_text())[env]
    assert now[env] == pytest.approx(known, rel=TOLERANCE), (
        "if that is meant: python tests/episode/test_calls.py"
    )


if __name__ == "__main__":
    TABLE.write_text(json.dumps(counted(), indent=1) + "\n")
