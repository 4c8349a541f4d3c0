"""NeMo Gym: its agent and our server, over its own HTTP endpoints, play tasks that the server's stream draws."""

import asyncio
import itertools
import json
from types import MappingProxyType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("nemo_gym")

from fastapi.testclient import TestClient
from nemo_gym.config_types import ModelServerRef, ResourcesServerRef
from nemo_gym.server_utils import ServerClient
from responses_api_agents.gymnasium_agent.app import GymnasiumAgentConfig, GymnasiumAgentRunRequest

from bridges.twenty import SHOP
from ecomlab import ENVIRONMENTS, Episode, Stream, load_shop, play
from ecomlab.bridges import nemo_gym as bridge
from ecomlab.training.schedule import windows

PLACE = {"host": "", "port": 0, "entrypoint": ""}
IDS = itertools.count()


def server_of(**settings: Any) -> bridge.ShoppingServer:
    given = {"envs": "CART", "group": 2, "groups_per_step": 1, "products": SHOP, **settings}
    config = bridge.ShoppingServerConfig(**PLACE, name="ecomlab", **given)
    return bridge.ShoppingServer(config=config, server_client=MagicMock(spec=ServerClient))


def messages_of(items: Any) -> list[dict[str, Any]]:
    """Items of the Responses API as messages; what follows a turn's text belongs to the turn."""
    found: list[dict[str, Any]] = []
    names = {item["call_id"]: item["name"] for item in items if item.get("type") == "function_call"}
    for item in items:
        if item.get("type") == "function_call_output":
            result = {"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]}
            found.append({**result, "name": names[item["call_id"]]})
        elif item.get("type") == "function_call":
            function = {"name": item["name"], "arguments": item["arguments"]}
            call = {"id": item["call_id"], "type": "function", "function": function}
            if not found or found[-1]["role"] != "assistant":
                found.append({"role": "assistant", "content": ""})
            found[-1].setdefault("tool_calls", []).append(call)
        else:
            parts = item["content"]
            text = parts if isinstance(parts, str) else "".join(part["text"] for part in parts)
            found.append({"role": item["role"], "content": text})
    return found


def response_of(message: dict[str, Any]) -> dict[str, Any]:
    """A model server's answer."""
    output: list[dict[str, Any]] = []
    if message["content"] or not message.get("tool_calls"):
        content = [{"type": "output_text", "text": message["content"], "annotations": []}]
        kind = {"type": "message", "role": "assistant", "status": "completed", "id": f"m{next(IDS)}"}
        output.append({**kind, "content": content})
    for call in message.get("tool_calls") or ():
        output.append({"type": "function_call", "call_id": call["id"], **call["function"]})
    more = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return {"id": "r", "created_at": 0.0, "model": "m", "object": "response", "output": output, **more}


class Client:
    """NeMo Gym's client of servers: ours by its FastAPI application, and a model that is `player`."""

    global_config_dict = MappingProxyType({"observability_enabled": False})

    def __init__(self, server: bridge.ShoppingServer, player: Any) -> None:
        self.http, self.player = TestClient(server.setup_webserver()), player
        self.asked: list[dict[str, Any]] = []

    async def post(self, server_name: str, url_path: str, json: Any, cookies: Any = None, **_: Any) -> Any:
        if server_name == "model":
            asked = json.model_dump(exclude_none=True)
            self.asked.append(asked)
            made = response_of(self.player(messages_of(asked["input"]), asked["tools"]))
            return answered(made)
        self.http.cookies = dict(cookies or {})
        reply = self.http.post(url_path, json=json)
        return answered(reply.json(), reply.status_code, dict(reply.cookies))


def answered(payload: Any, status: int = 200, cookies: Any = None) -> Any:
    async def body() -> Any:
        return payload

    async def read() -> bytes:
        return json.dumps(payload).encode()

    return SimpleNamespace(json=body, read=read, status=status, ok=status == 200, cookies=cookies or {})


def agent_of(server: bridge.ShoppingServer, player: Any) -> bridge.ShoppingAgent:
    config = GymnasiumAgentConfig(
        **PLACE, name="ecomlab_agent", max_steps=200,
        resources_server=ResourcesServerRef(type="resources_servers", name="ecomlab"),
        model_server=ModelServerRef(type="responses_api_models", name="model"),
    )  # fmt: skip
    agent = bridge.ShoppingAgent(config=config, server_client=MagicMock(spec=ServerClient))
    agent.server_client = Client(server, player)
    return agent


def run(server: bridge.ShoppingServer, row: dict[str, Any], player: Any) -> Any:
    """A rollout by NeMo Gym's agent."""
    request = SimpleNamespace(cookies={})
    agent = agent_of(server, player)
    return asyncio.run(agent.run(request, GymnasiumAgentRunRequest.model_validate(row))), agent.server_client


def reference(env: str) -> Any:
    return ENVIRONMENTS[env].reference_player(load_shop(SHOP))


def submits(_: Any, __: Any) -> dict[str, Any]:
    call = {"id": f"c{next(IDS)}", "type": "function", "function": {"name": "submit", "arguments": "{}"}}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def test_groups_are_drawn_by_the_servers_stream_and_move_its_window(log: Any, tell_versions: Any) -> None:
    tell_versions("nemo-gym", "fastapi")
    settings: dict[str, Any] = {"tau_num": 8}
    server = server_of(group=4, settings=settings)
    twin = Stream("adaptive", "CART", groups_per_step=1, shop=load_shop(SHOP), **settings)
    tops = []
    for row in bridge.rows(12):
        start = twin.start(ticket := twin.next_group())
        assert not isinstance(start, Exception)
        task = start.task
        ours = play(reference("CART"), task, twin.shop)
        for _ in range(4):
            result, client = run(server, row, reference("CART"))
            assert result.reward == ours.score.value and result.terminated and not result.mask_sample
            assert client.asked[0]["input"][0]["content"] == ours.messages[0]["content"]
            assert [tool["name"] for tool in client.asked[0]["tools"]] == [
                tool["function"]["name"] for tool in Episode(task, twin.shop).tools
            ]
        twin.report(ticket, [ours.score] * 4)
        tops.append(windows(server.groups.stream.schedule, ["CART"])["CART"][1])
    log["tops"] = tops
    assert tops[0] == 0 and tops[-1] >= 2 and len(server.groups) == 0
    assert server.groups.stream.state() == twin.state()


def test_only_what_the_model_wrote_is_its_own_in_the_result() -> None:
    """NeMo Gym trains the items that a model server made; the others are results of tools and the customer's words."""
    wrote: list[Any] = []
    player = reference("CART")

    def noted(messages: Any, tools: Any) -> Any:
        wrote.append(message := player(messages, tools))
        return message

    result, _ = run(server_of(), next(bridge.rows(1)), noted)
    said = [item.model_dump() for item in result.response.output]
    theirs = [one for one in said if one["type"] == "function_call" or one.get("role") == "assistant"]
    outputs = [one for message in wrote for one in response_of(message)["output"]]
    assert [one.get("call_id") or one["content"][0]["text"] for one in theirs] == [
        one.get("call_id") or one["content"][0]["text"] for one in outputs
    ]
    others = [one for one in said if one not in theirs]
    assert others and {one.get("role") or one["type"] for one in others} <= {"user", "function_call_output"}


def test_all_environments_score_as_in_our_own_loop() -> None:
    server = server_of(envs="C8", schedule="static-0-4", group=1)
    for row in bridge.rows(16):
        result, _ = run(server, row, reference_of_any(server))
        assert result.reward > 0.5


def reference_of_any(server: bridge.ShoppingServer) -> Any:
    """The reference player of whatever environment is open."""
    made: list[Any] = []

    def player(messages: Any, tools: Any) -> Any:
        if not made:
            ((_, episode),) = server.session_state.values()
            made.append(ENVIRONMENTS[episode.task.env].reference_player(load_shop(SHOP)))
        return made[0](messages, tools)

    return player


def test_a_server_that_starts_again_draws_what_it_would_have_drawn(tmp_path: Any) -> None:
    whole, one = server_of(), server_of(state=str(tmp_path / "state.json"))
    rows = list(bridge.rows(6))
    for row in rows[:3]:
        for _ in range(2):
            run(whole, row, reference("CART"))
            run(one, row, reference("CART"))
    again = server_of(state=str(tmp_path / "state.json"))
    for row in rows[3:]:
        for _ in range(2):
            first, second = (run(server, row, reference("CART"))[1] for server in (whole, again))
            assert first.asked[0]["input"] == second.asked[0]["input"]
    assert whole.groups.stream.state() == again.groups.stream.state()


def test_a_rollout_that_its_agent_leaves_is_no_outcome() -> None:
    server = server_of()
    row = next(bridge.rows(1))

    def breaks(_: Any, __: Any) -> Any:
        raise ConnectionError("the model server is gone")

    with pytest.raises(ConnectionError):
        run(server, row, breaks)
    assert not server.session_state and len(server.groups) == 1
    run(server, row, submits)
    assert len(server.groups) == 0, "reported: one without an outcome, one wrong"


def test_an_unscored_episode_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Episode, message: Any) -> Any:
        self.fail("a tool broke")
        return SimpleNamespace(done=True, messages=[])

    monkeypatch.setattr(Episode, "act", fails)
    result, _ = run(server_of(), next(bridge.rows(1)), submits)
    assert result.mask_sample and result.reward == 0.0
