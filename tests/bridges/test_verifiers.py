"""verifiers: its own evaluation, against an OpenAI-compatible server on this machine that is the reference player,
gives our scores."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("verifiers")

from verifiers.v1.cli.eval.runner import run_eval
from verifiers.v1.configs.cli.eval import EvalConfig

from bridges.twenty import BLOCK, COUNT, SHOP, sample_jobs, sample_player
from ecomlab import ENVIRONMENTS
from ecomlab.bridges import verifiers as bridge
from ecomlab.bridges.common import score_from_json, task_of
from ecomlab.reward import INVALID

JOBS = sample_jobs()


class Server(ThreadingHTTPServer):
    """A server on this machine, and its `reply`."""

    request_queue_size = 128  # of connections that wait; with the default, 5, episodes at once may lose some

    reply: Callable[[list[dict[str, Any]], list[dict[str, Any]]], tuple[dict[str, Any], str]]


class Replies(BaseHTTPRequestHandler):
    """Answers chat completions by the server's `reply`, a function of messages and tools."""

    server: Server

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            message, reason = self.server.reply(asked["messages"], asked["tools"])
        except Exception as error:
            return self._send(500, {"error": {"message": repr(error)}})
        choice = {"index": 0, "message": message, "finish_reason": reason}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": asked["model"]}
        return self._send(200, {**head, "choices": [choice], "usage": usage})

    def _send(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *about):
        pass


@pytest.fixture
def serve():
    """Start a server that replies so, and return its address."""
    servers = []

    def start(reply):
        servers.append(Server(("127.0.0.1", 0), Replies))
        servers[-1].reply = reply
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}/v1"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def reference(jobs, shop):
    """The reference player of whichever task the messages are of."""
    players = {task_of(job, shop).opening: sample_player(job, shop) for job in jobs}
    assert len(players) == len(jobs)

    def reply(messages, tools):
        named: dict[str, str] = {}
        heard = []
        for message in messages:  # a tool's name is not among what the wire carries
            named |= {call["id"]: call["function"]["name"] for call in message.get("tool_calls") or ()}
            heard.append(
                {**message, "name": named[message["tool_call_id"]]} if message["role"] == "tool" else message
            )
        message = players[messages[1]["content"]](heard, tools)
        return message, "tool_calls" if "tool_calls" in message else "stop"

    return reply


def settings(url, folder, more=(), select=()):
    """Settings of vf-eval: our tasks in the small shop, the model at `url`, results in a folder."""
    return {
        "model": "reference",
        "push": False,
        "max_concurrent": 8,
        "output_dir": str(folder),
        "run": {"dir": "run"},
        "client": {"base_url": url, "api_key_var": "NO_KEY"},
        "select": dict(select),
        "env": {"taskset": {"id": bridge.PLUGIN, "size": SHOP, **dict(more)}},
    }


def in_toml(table, name=""):
    """Write nested settings; a value of TOML is one of JSON here."""
    plain = [f"{key} = {json.dumps(value)}" for key, value in table.items() if not isinstance(value, dict)]
    lines = [f"[{name}]", *plain] if name else plain
    for key, value in table.items():
        if isinstance(value, dict):
            lines += in_toml(value, f"{name}.{key}".strip("."))
    return lines


def traces_of(folder):
    """Read the traces that an evaluation wrote, one of each episode."""
    episodes = map(json.loads, (folder / "run" / "traces.jsonl").read_text().splitlines())
    return [episode["traces"][0] if "traces" in episode else episode for episode in episodes]


def test_the_twenty_tasks_score_as_in_our_own_loop(
    same, ours, log, tell_versions, bridge_shop, serve, tmp_path
):
    tell_versions("verifiers", "openai", "renderers")
    taskset = {"envs": "C8", "levels": sorted({job.d for job in JOBS}), "block": BLOCK, "episodes": COUNT}
    ids = [f"{job.env}-v{ENVIRONMENTS[job.env].version}-{job.d}-{job.seed}" for job in JOBS]
    given = settings(serve(reference(JOBS, bridge_shop)), tmp_path, taskset, {"include": {"ids": ids}})
    (tmp_path / "eval.toml").write_text("\n".join(in_toml(given)))
    command = [Path(sys.executable).with_name("vf-eval"), "@", tmp_path / "eval.toml", "--no-rich"]
    environment = {**os.environ, "NO_KEY": "none", "HOME": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    log["command"] = "vf-eval @ eval.toml --no-rich"
    traces = {trace["task"]["data"]["seed"]: trace for trace in traces_of(tmp_path)}
    for job in JOBS:
        trace = traces[job.seed]
        over = trace["info"][bridge.OUTCOME]
        same(job, score_from_json(over["score"]))
        assert trace["rewards"]["ecomlab"]["score"] == ours(job).score.value
        assert {name: trace["metrics"][name] for name in ours(job).score.parts} == ours(job).score.parts
        assert (over["end"], over["turns"], over["calls"]) == (
            ours(job).end,
            ours(job).turns,
            ours(job).calls,
        )


def play_one(url, folder, monkeypatch, **agent):
    """Evaluate one task in this process, and read its trace."""
    monkeypatch.setenv("NO_KEY", "none")
    monkeypatch.setenv("HOME", str(folder))
    given = settings(url, folder, {"envs": "CART", "episodes": 1})
    given["env"]["agent"] = agent
    asyncio.run(run_eval(EvalConfig.model_validate({**given, "rich": None})))
    [trace] = traces_of(folder)
    return trace


def test_calls_that_cannot_be_parsed_are_invalid(serve, tmp_path, monkeypatch):
    call = {"id": "a", "type": "function", "function": {"name": "cart_view", "arguments": "{broken"}}
    url = serve(
        lambda messages, tools: ({"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls")
    )
    trace = play_one(url, tmp_path, monkeypatch)
    assert trace["rewards"]["ecomlab"]["score"] == trace["metrics"]["invalid"] == INVALID
    assert trace["info"][bridge.OUTCOME]["end"] == "invalid"


def test_a_generation_that_was_cut_off_is_truncated_and_never_correct(serve, tmp_path, monkeypatch):
    url = serve(lambda messages, tools: ({"role": "assistant", "content": "Which size would"}, "length"))
    trace = play_one(url, tmp_path, monkeypatch)
    assert trace["info"][bridge.OUTCOME]["end"] == "truncated" and trace["metrics"]["correct"] == 0


def test_a_limit_of_verifiers_own_truncates(serve, tmp_path, monkeypatch):
    url = serve(lambda messages, tools: ({"role": "assistant", "content": "Any other details?"}, "stop"))
    trace = play_one(url, tmp_path, monkeypatch, max_turns=1)
    assert trace["info"][bridge.OUTCOME]["end"] == "truncated" and trace["stop_condition"] == "max_turns"


def test_a_server_that_fails_makes_an_error_and_no_reward(serve, tmp_path, monkeypatch):
    def broken(messages, tools):
        raise OSError("out of memory")

    trace = play_one(serve(broken), tmp_path, monkeypatch)
    assert trace["errors"] and not trace["ok"]
    assert trace["rewards"].get("ecomlab") is None


def test_an_environment_is_loaded_in_python_too():
    environment = bridge.load_environment(env="CART,PD", difficulty=[0, 3], episodes=2, size=SHOP)
    tasks = list(environment.taskset)
    assert [(task.data.env, task.data.d) for task in tasks] == [
        (env, d) for env in ("CART", "PD") for d in (0, 3) for _ in range(2)
    ]
    assert isinstance(next(iter(environment._harnesses.values())), bridge.ShoppingHarness)
