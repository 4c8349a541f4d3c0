"""A verdict for whatever an agent does: adversarial actions over all environments, typed and untyped, and raw bytes.

`make test` plays 2,500 actions, `make certify` 100,000 (ECOMLAB_ACTIONS).
"""

import copy
import json
import os
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ecomlab import ENVIRONMENTS, Episode, Shop, Task, make_task
from ecomlab.episode.messages import parse_output
from ecomlab.episode.play import record, replay

ENVS = list(ENVIRONMENTS)
ACTIONS = int(os.environ.get("ECOMLAB_ACTIONS", "2500"))
SCRIPT = 5
"""Actions in an example; where one ends an episode, the rest is played on the next."""

scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20))
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
TEXTS = (
    "",
    "0",
    "-1",
    "nan",
    "yes",
    "N/A",
    "$7.99",
    "15 days",
    "2026-02-30",
    "\ud800",
    "P000000",
    "O000000",
    "None",
)


class Known:
    """Stands for something that the episode has shown: the `number`-th id, counted round."""

    def __init__(self, number: int) -> None:
        self.number = number


def typed(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a JSON schema allows: the call is legal, and what it asks for is anything."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.one_of(*map(typed, schema["anyOf"]))
    kind = schema.get("type")
    if kind == "string":
        return st.integers(0, 30).map(Known) | st.sampled_from(TEXTS) | st.text(max_size=12)
    if kind == "integer":
        return st.integers(-3, 12) | st.integers()
    if kind == "number":
        return st.floats(allow_nan=False, allow_infinity=False) | st.integers(0, 90)
    if kind == "boolean":
        return st.booleans()
    if kind == "array":
        return st.lists(typed(schema.get("items", {})), max_size=4)
    if kind == "object":
        return st.dictionaries(st.text(max_size=6), st.text(max_size=8), max_size=2)
    return scalars


@st.composite
def actions(draw: st.DrawFn, tools: list[dict[str, Any]]) -> Any:
    """One action: a legal call in most cases, else a call of nonsense, a message of nonsense, or raw output."""
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(values)
    if kind == 1:
        return {"role": "assistant", "content": draw(st.text(max_size=60))}
    if kind == 2:
        return draw(st.binary(max_size=60)).decode("utf-8", "surrogateescape")
    calls = []
    for _ in range(draw(st.integers(1, 3))):
        function = draw(st.sampled_from(tools))["function"]
        if kind == 3:
            names = st.sampled_from([*function["parameters"].get("properties", {}), "nope"])
            arguments = draw(st.dictionaries(names, values, max_size=4) | st.text(max_size=15))
        else:
            required = function["parameters"].get("required", [])
            arguments = {
                name: draw(typed(schema))
                for name, schema in function["parameters"].get("properties", {}).items()
                if name in required or draw(st.booleans())
            }
        calls.append((function["name"], arguments))
    return calls


def message_of(action: Any, episode: Episode) -> Any:
    """The assistant message that an action is in this episode."""
    if isinstance(action, str):
        return parse_output(action)
    if not isinstance(action, list) or not all(isinstance(call, tuple) for call in action):
        return action
    ids = sorted(episode.world.shown) or ["P000000"]
    orders = [order["order_id"] for order in episode.task.world.get("orders", ())]

    def real(value: Any) -> Any:
        if isinstance(value, Known):
            return [*ids, *orders][value.number % (len(ids) + len(orders))]
        if isinstance(value, list):
            return [real(entry) for entry in value]
        return {name: real(entry) for name, entry in value.items()} if isinstance(value, dict) else value

    made = [
        {"function": {"name": name, "arguments": a if isinstance(a, str) else json.dumps(real(a))}}
        for name, a in action
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def played(env: str, script: list[Any], d: int, seed: int, shop: Shop) -> list[Episode]:
    """The script acted out on as many episodes as it takes, each brought to its end."""
    episodes: list[Episode] = []
    for action in script:
        if not episodes or episodes[-1].done:
            episodes.append(Episode(make_task(env, d, seed + len(episodes), shop), shop))
        turn = episodes[-1].act(message_of(action, episodes[-1]))
        assert turn.done == episodes[-1].done
    while not episodes[-1].done:  # the turn budget ends it
        episodes[-1].act({"role": "assistant", "content": "One moment."})
    return episodes


@pytest.mark.parametrize("env", ENVS)
def test_any_action_has_a_verdict(env: str, shop: Shop) -> None:
    tools = Episode(make_task(env, 3, 0, shop), shop).tools

    @settings(
        max_examples=max(1, ACTIONS // (SCRIPT * len(ENVS))),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(
        script=st.lists(actions(tools), min_size=SCRIPT, max_size=SCRIPT),
        d=st.integers(0, 12),
        seed=st.integers(0, 50),
    )
    def check(script: list[Any], d: int, seed: int) -> None:
        for episode in played(env, script, d, seed, shop):
            score = episode.score()
            assert not score.unscored
            assert -1 <= score.value <= 0.9
            assert score.why
            assert json.dumps(episode.messages)
            assert replay(record(episode), shop) == score

    check()


@pytest.mark.parametrize("env", ENVS)
def test_adversarial_episodes_do_not_touch_each_other(env: str, shop: Shop) -> None:
    """The same scripts in eight threads at once say what they say alone."""
    tools = Episode(make_task(env, 3, 0, shop), shop).tools
    scripts: list[tuple[list[Any], int, int]] = []

    @settings(
        max_examples=20,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        script=st.lists(actions(tools), min_size=SCRIPT, max_size=SCRIPT),
        d=st.integers(0, 12),
        seed=st.integers(0, 9),
    )
    def collect(script: list[Any], d: int, seed: int) -> None:
        scripts.append((script, d, seed))

    collect()

    def said(given_: tuple[list[Any], int, int]) -> Any:
        return [(episode.messages, episode.score().value) for episode in played(env, *given_, shop)]

    alone = [said(script) for script in scripts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(said, scripts * 2)) == alone * 2


@pytest.mark.parametrize("env", ["RETURN", "STATUS", "POLICY", "CART", "JOURNEY"])
def test_the_world_of_a_task_cannot_be_changed(env: str, shop: Shop) -> None:
    """Tasks of one key share their history and their book."""
    task = make_task(env, 6, 0, shop)

    def containers(value: Any) -> Iterator[Any]:
        yield from (value,) if isinstance(value, Mapping | Sequence) and not isinstance(value, str) else ()
        for inner in (
            value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple) else ()
        ):
            yield from containers(inner)

    changes: tuple[Callable[[Any], Any], ...] = (
        lambda held: held.__setitem__(next(iter(held), 0), None),
        lambda held: held.pop(next(iter(held), 0)),
        lambda held: held.clear(),
        lambda held: held.update(x=1),
        lambda held: held.reverse(),
        lambda held: held.append(1),
    )
    held = list(containers(task.world))
    assert len(held) > 1
    for value in held:
        for change in changes:
            with pytest.raises((TypeError, AttributeError)):
                change(value)
    for same in (pickle.loads(pickle.dumps(task)), copy.deepcopy(task), Task.from_json(task.to_json())):
        assert same.world == task.world
        assert same.digest() == task.digest() == make_task(env, 6, 0, shop).digest()
