"""verifiers: its own evaluation, against an OpenAI-compatible server on this machine that is the reference player,
gives our scores."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("verifiers")

from ecomlab import ENVIRONMENTS
from ecomlab.bridges import verifiers as bridge
from ecomlab.bridges.common import BLOCK, COUNT, SHOP, sample_jobs, score_from_json, task_of
from ecomlab.reward import INVALID

JOBS = sample_jobs()


class Replies(BaseHTTPRequestHandler):
    """Answers chat completions by the server's `reply`, a function of messages and tools."""

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
        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), Replies))
        servers[-1].reply = reply
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}/v1"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def reference(jobs, shop):
    """The reference player of whichever task the messages are of."""
    players = {task_of(job, shop).opening: ENVIRONMENTS[job.env].reference_player(shop) for job in jobs}
    assert len(players) == len(jobs)

    def reply(messages, tools):
        named, heard = {}, []
        for message in messages:  # a tool's name is not among what the wire carries
            named |= {call["id"]: call["function"]["name"] for call in message.get("tool_calls") or ()}
            heard.append(
                {**message, "name": named[message["tool_call_id"]]} if message["role"] == "tool" else message
            )
        message = players[messages[1]["content"]](heard, tools)
        return message, "tool_calls" if "tool_calls" in message else "stop"

    return reply


def evaluate(url, folder, *options):
    """Run vf-eval, and read its traces."""
    command = [
        Path(sys.executable).with_name("vf-eval"), bridge.PLUGIN, "--model", "reference", "--client.base-url", url,
        "--client.api-key-var", "NO_KEY", "--env.taskset.size", str(SHOP), "--no-push", "--no-rich",
        "--output-dir", str(folder), "--run.dir", "run", *options,
    ]  # fmt: skip
    environment = {**os.environ, "NO_KEY": "none", "HOME": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    lines = (folder / "run" / "traces.jsonl").read_text().splitlines()
    episodes = [json.loads(line) for line in lines]
    return [trace for episode in episodes for trace in episode.get("traces", [episode])]


def test_the_twenty_tasks_score_as_in_our_own_loop(
    same, ours, log, tell_versions, bridge_shop, serve, tmp_path
):
    tell_versions("verifiers", "openai", "renderers")
    url = serve(reference(JOBS, bridge_shop))
    levels = sorted({job.d for job in JOBS})
    log["command"] = f"vf-eval {bridge.PLUGIN} --model reference --client.base-url http://127.0.0.1:PORT/v1"
    runs = []
    for d in levels:
        mine = [job for job in JOBS if job.d == d]
        chosen = [f"{job.env}-v{ENVIRONMENTS[job.env].version}-{job.d}-{job.seed}" for job in mine]
        options = [
            "--env.taskset.envs",
            ",".join(job.env for job in mine),
            "--env.taskset.levels",
            json.dumps([d]),
        ]
        options += ["--env.taskset.block", str(BLOCK), "--env.taskset.episodes", str(COUNT)]
        runs += evaluate(url, tmp_path / str(d), *options, "--select.include.ids", json.dumps(chosen))
    traces = {trace["task"]["data"]["seed"]: trace for trace in runs}
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


ONE = ("--env.taskset.envs", "CART", "--env.taskset.episodes", "1")


def test_calls_that_cannot_be_parsed_are_invalid(serve, tmp_path):
    call = {"id": "a", "type": "function", "function": {"name": "cart_view", "arguments": "{broken"}}
    url = serve(
        lambda messages, tools: ({"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls")
    )
    [trace] = evaluate(url, tmp_path, *ONE)
    assert trace["rewards"]["ecomlab"]["score"] == trace["metrics"]["invalid"] == INVALID
    assert trace["info"][bridge.OUTCOME]["end"] == "invalid"


def test_a_generation_that_was_cut_off_is_truncated_and_never_correct(serve, tmp_path):
    url = serve(lambda messages, tools: ({"role": "assistant", "content": "Which size would"}, "length"))
    [trace] = evaluate(url, tmp_path, *ONE)
    assert trace["info"][bridge.OUTCOME]["end"] == "truncated" and trace["metrics"]["correct"] == 0


def test_a_limit_of_verifiers_own_truncates(serve, tmp_path):
    url = serve(lambda messages, tools: ({"role": "assistant", "content": "Any other details?"}, "stop"))
    [trace] = evaluate(url, tmp_path, *ONE, "--env.agent.max-turns", "1")
    assert trace["info"][bridge.OUTCOME]["end"] == "truncated" and trace["stop_condition"] == "max_turns"


def test_a_server_that_fails_makes_an_error_and_no_reward(serve, tmp_path):
    def broken(messages, tools):
        raise OSError("out of memory")

    [trace] = evaluate(serve(broken), tmp_path, *ONE)
    assert trace["errors"] and not trace["ok"]
    assert trace["rewards"].get("ecomlab") is None


def test_an_environment_is_loaded_in_python_too():
    environment = bridge.load_environment(envs="CART,PD", levels=[0, 3], episodes=2, size=SHOP)
    tasks = list(environment.taskset)
    assert [(task.data.env, task.data.d) for task in tasks] == [
        (env, d) for env in ("CART", "PD") for d in (0, 3) for _ in range(2)
    ]
    assert isinstance(next(iter(environment._harnesses.values())), bridge.ShoppingHarness)
