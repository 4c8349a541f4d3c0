"""NeMo Gym: a resources server whose tasks come from a stream, and the agent that plays them.

NeMo Gym's rows hold prompts ahead of a run. Ours hold a group's name alone (`rows`): the server draws the group's task
when its first rollout resets, and the agent takes prompt and tools from that reset, so that difficulty adapts. Its
launcher starts the folder `experiments/bridges/nemo_gym` of the repository, in which `ecomlab.yaml` has the settings::

    python -c "from ecomlab.bridges import nemo_gym; nemo_gym.write_rows('train.jsonl', 10_000)"
    gym env start --search-dir experiments/bridges/nemo_gym --resources-server ecomlab --model-type openai_model ...
    gym eval run --no-serve --agent ecomlab_agent --input train.jsonl --output out.jsonl --num-repeats 8
"""

import json
import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from nemo_gym.base_resources_server import BaseResourcesServerConfig
from nemo_gym.openai_utils import NeMoGymResponse
from nemo_gym.server_utils import SESSION_ID_KEY
from pydantic import Field, PrivateAttr
from resources_servers.gymnasium import GymnasiumServer
from responses_api_agents.gymnasium_agent.app import GymnasiumAgent, GymnasiumRunResponse

from ecomlab.bridges.common import groups_of, outcome
from ecomlab.files import write_text
from ecomlab.task import Message
from ecomlab.training.stream import Groups, Outcome


def rows(groups: int, agent: str = "ecomlab_agent") -> Iterator[dict[str, Any]]:
    """Yield the rows of a data set of so many groups; each is to be repeated as often as the server's `group` says, and
    the rows may be read again and again: once a row's group has ended, the row names a new one."""
    reference = {"type": "responses_api_agents", "name": agent}
    for number in range(groups):
        yield {"responses_create_params": {"input": []}, "group": str(number), "agent_ref": reference}


def write_rows(path: str | Path, groups: int, agent: str = "ecomlab_agent") -> None:
    """Write `rows` as a file of JSON lines."""
    write_text(Path(path), "".join(f"{json.dumps(row)}\n" for row in rows(groups, agent)))


class ShoppingServerConfig(BaseResourcesServerConfig):
    """Settings of a server, beside NeMo Gym's own."""

    schedule: str = "adaptive"
    settings: dict[str, Any] = Field(default_factory=dict)
    """Of the schedule, as `Stream` takes them; adaptive's `tau_num` is by default 8 times the group."""
    envs: str = "C8"
    group: int = Field(8, ge=1)
    """Rollouts of a group."""
    groups_per_step: int = Field(8, ge=1)
    seed: int = 0
    products: int = 20_000
    state: str = ""
    """File in which the stream's state is kept, from which a server that starts again goes on."""


class ShoppingServer(GymnasiumServer):
    """Episodes by session. `num_workers` of the configuration must be 1: more would be a stream each."""

    config: ShoppingServerConfig
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    @cached_property
    def groups(self) -> Groups:
        """The stream's groups, restored from the state file if there is one."""
        its = self.config
        more = {"seed": its.seed, "groups_per_step": its.groups_per_step, **its.settings}
        return groups_of(its.schedule, its.envs, its.group, its.state, shop=its.products, **more)

    def setup_webserver(self) -> FastAPI:
        app = super().setup_webserver()
        app.post("/close")(self._close_endpoint)
        return app

    async def _close_endpoint(self, request: Request) -> dict[str, Any]:
        """Give a rollout up that its agent leaves unfinished; nothing happens to one that has ended."""
        await self.close_session(request.session.get(SESSION_ID_KEY))
        return {}

    async def reset(
        self, metadata: dict[str, Any], session_id: str | None = None
    ) -> tuple[None, dict[str, Any]]:
        """Begin a rollout of the row's group. Returns prompt and tools for the agent."""
        await self.close_session(session_id)
        with self._lock:
            groups = self.groups
        group = str(metadata["group"])
        try:
            _, episode = groups.open(group)
        except ValueError as error:
            raise HTTPException(409, str(error)) from error
        self.session_state[session_id] = (group, episode)
        prompt = {"input": items_of(episode.messages), "tools": tools_of(episode.tools)}
        return None, {**prompt, "supports_explicit_close": True}

    async def step(
        self, action: NeMoGymResponse, metadata: dict[str, Any], session_id: str | None = None
    ) -> tuple[str | None, float, bool, bool, dict[str, Any]]:
        """Play one assistant message. The reward is 0 until the end, then the score's value; an unscored episode has 0
        and `unscored` in its info."""
        _, episode = self.session_state[session_id]
        before = len(episode.messages) + 1
        turn = episode.act(message_of(action))
        came = episode.messages[before:]
        calls = [
            {"call_id": one["tool_call_id"], "output": one["content"]}
            for one in came
            if one["role"] == "tool"
        ]
        said = "\n\n".join(one["content"] for one in came if one["role"] == "user") or None
        if not turn.done:
            return said, 0.0, False, False, {"tool_outputs": calls}
        over, score = outcome(episode), episode.score()
        self._end(session_id, score)
        info = {"tool_outputs": calls, "unscored": score.unscored, **over}
        return said, 0.0 if score.unscored else score.value, True, False, info

    async def close_session(self, session_id: str | None) -> None:
        if session_id in self.session_state:
            self._end(session_id, None)

    def _end(self, session_id: str | None, found: Outcome) -> None:
        group, _ = self.session_state.pop(session_id)
        self.groups.end(group, found)


class ShoppingAgent(GymnasiumAgent):
    """NeMo Gym's agent, with the prompt and the tools of the server's reset. `max_steps` is to exceed every budget."""

    async def _run_open_episode(
        self, body: Any, model: Any, reset: Any, cookies: Any
    ) -> GymnasiumRunResponse:
        asked = body.responses_create_params.model_dump() | {
            name: reset.info[name] for name in ("input", "tools")
        }
        kind = type(body.responses_create_params)
        with_prompt = body.model_copy(update={"responses_create_params": kind.model_validate(asked)})
        result = await super()._run_open_episode(with_prompt, model, reset, cookies)
        # an infrastructure error is no measurement of the policy
        return result.model_copy(update={"mask_sample": bool((result.info or {}).get("unscored"))})


def message_of(response: NeMoGymResponse) -> Message:
    """Read an assistant message from a response's items; reasoning is left out."""
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    for item in response.output:
        if item.type == "message":
            texts += [part.text for part in item.content if part.type == "output_text"]
        elif item.type == "function_call":
            function = {"name": item.name, "arguments": item.arguments}
            calls.append({"id": item.call_id, "type": "function", "function": function})
    message: Message = {"role": "assistant", "content": "".join(texts)}
    return {**message, "tool_calls": calls} if calls else message


def items_of(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Write messages as items of the Responses API."""
    items: list[dict[str, Any]] = []
    for one in messages:
        if one["role"] == "tool":
            items.append(
                {"type": "function_call_output", "call_id": one["tool_call_id"], "output": one["content"]}
            )
            continue
        if one["content"] or not one.get("tool_calls"):
            items.append({"role": one["role"], "content": one["content"]})
        for call in one.get("tool_calls") or ():
            items.append({"type": "function_call", "call_id": call["id"], **call["function"]})
    return items


def tools_of(tools: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Write tools' schemas as the Responses API has them."""
    return [{"type": "function", **tool["function"], "strict": False} for tool in tools]
