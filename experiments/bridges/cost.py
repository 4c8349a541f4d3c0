"""What the doors cost: the same 200 episodes by the same scripted player through each, in CPU milliseconds a turn.

    python experiments/bridges/cost.py                 # each door in its bridge's environment; writes cost.csv
    python experiments/bridges/cost.py --door verl     # one, in the environment that runs this

All play training tasks of eight environments at d = 0 to 4 whose messages were recorded before, so that what is timed
is the environment and the door: opening, turns, scores. `messages` is `Stream.open` and `Episode.act`, the floor. Doors
in token ids use a small tokenizer in Qwen3's format; OpenEnv's server and client are in one process, over loopback.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TASKS = 200
HOME = {
    "messages": "trl", "tokens": "trl", "trl": "trl", "trl_async": "trl", "gymnasium": "gymnasium",
    "openenv": "openenv", "verl": "verl", "tinker": "tinker",
}  # fmt: skip
"""The bridge in whose environment a door is timed."""

Episodes = list[tuple[Any, list[dict[str, Any]]]]
"""Tickets, and the assistant messages of each."""


def recorded(stream: Any) -> Episodes:
    from ecomlab.envs.registry import ENVIRONMENTS
    from ecomlab.episode.play import play

    found = []
    for _ in range(TASKS):
        ticket = stream.next_group()
        player = ENVIRONMENTS[ticket.draw.env].reference_player(stream.shop)
        messages = play(player, stream.start(ticket).task, stream.shop).messages
        found.append((ticket, [message for message in messages if message["role"] == "assistant"]))
    return found


def qwen3(stream: Any) -> Any:
    """Make a renderer in Qwen3's format."""
    sys.path.insert(0, str(ROOT / "tests"))
    from qwen3_helper import small
    from transformers import AutoTokenizer

    from ecomlab.models.qwen3 import ChatRenderer

    with tempfile.TemporaryDirectory() as folder:
        return ChatRenderer(AutoTokenizer.from_pretrained(small(Path(folder), stream.shop)))


def by_context(stream: Any, renderer: Any, episodes: Episodes) -> list[dict[tuple[int, ...], list[int]]]:
    """Translate the messages to token ids, by all ids before each."""
    from ecomlab.models.samplers.sampled import Sampled

    found = []
    for ticket, messages in episodes:
        episode, said = stream.open_tokens(ticket, renderer), {}
        for message in messages:
            ids = renderer.dialogue().say(message)
            said[tuple(episode.context)] = ids
            episode.act(Sampled(ids, [0.0] * len(ids), truncated=False))
        found.append(said)
    return found


def messages(stream: Any, episodes: Episodes) -> Callable[[], None]:
    def run() -> None:
        for ticket, said in episodes:
            episode = stream.open(ticket)
            for message in said:
                episode.act(message)
            episode.score()

    return run


def tokens(stream: Any, episodes: Episodes) -> Callable[[], None]:
    from ecomlab.models.samplers.sampled import Sampled

    renderer = qwen3(stream)
    scripts = by_context(stream, renderer, episodes)

    def run() -> None:
        for (ticket, _), script in zip(episodes, scripts, strict=True):
            episode = stream.open_tokens(ticket, renderer)
            while not episode.done:
                ids = script[tuple(episode.context)]
                episode.act(Sampled(ids, [0.0] * len(ids), truncated=False))

    return run


def trl(stream: Any, episodes: Episodes) -> Callable[[], None]:
    """TRL's classes: calls one by one, the customer by ask_user."""
    from ecomlab.bridges.trl import factories

    made = {env: factory() for env, factory in factories(stream.envs, stream.shop).items()}

    def run() -> None:
        for ticket, said in episodes:
            rollout = made[ticket.draw.env]
            rollout.reset(difficulty=ticket.draw.level, seed=ticket.seed)
            for message in said:
                for call in message.get("tool_calls") or [
                    {
                        "function": {
                            "name": "ask_user",
                            "arguments": json.dumps({"question": message["content"]}),
                        }
                    }
                ]:
                    getattr(rollout, call["function"]["name"])(**json.loads(call["function"]["arguments"]))
            rollout.get_reward()

    return run


class Scripted:
    """A sampler of scripted turns."""

    def __init__(self, scripts: list[dict[tuple[int, ...], list[int]]]) -> None:
        self.scripts = scripts

    def start(self, streams: Any) -> None:
        self.contexts: list[list[int]] = [[] for _ in streams]

    def turn(self, rows: Any, inputs: Any) -> Any:
        from ecomlab.models.samplers.sampled import Sampled

        said = []
        for row, new in zip(rows, inputs, strict=True):
            self.contexts[row] += new
            ids = self.scripts[row][tuple(self.contexts[row])]
            self.contexts[row] += ids
            said.append(Sampled(ids, [0.0] * len(ids), truncated=False))
        return said


def trl_async(stream: Any, episodes: Episodes) -> Callable[[], None]:
    """The worker's batch and its samples, in place of its own drawing."""
    from ecomlab.bridges.trl_async import StreamWorker

    renderer = qwen3(stream)
    scripts = by_context(stream, renderer, episodes)

    class Again:
        """The stream, drawing what was recorded."""

        def __init__(self) -> None:
            self.tickets = iter([ticket for ticket, _ in episodes])

        def __getattr__(self, name: str) -> Any:
            return getattr(stream, name)

        def next_group(self) -> Any:
            return next(self.tickets)

        def report(self, *_: Any) -> None: ...

    def run() -> None:
        again: Any = Again()
        StreamWorker(again, renderer, Scripted(scripts), group_size=1, groups=TASKS)._play()  # type: ignore[arg-type]

    return run


def gymnasium(stream: Any, episodes: Episodes) -> Callable[[], None]:
    import gymnasium as gym

    import ecomlab.bridges.gymnasium  # noqa: F401
    from ecomlab.envs.registry import ENVIRONMENTS

    made: dict[Any, Any] = {}

    def run() -> None:
        for ticket, said in episodes:
            key = ticket.draw.env, ticket.draw.level
            if key not in made:
                name = f"ecomlab/{key[0]}-v{ENVIRONMENTS[key[0]].version}"
                made[key] = gym.make(name, difficulty=key[1])
            made[key].reset(seed=ticket.seed)
            for message in said:
                made[key].step(json.dumps(message, ensure_ascii=False))

    return run


def openenv(stream: Any, episodes: Episodes) -> Callable[[], None]:
    import uvicorn

    from ecomlab.bridges import openenv as bridge

    config = uvicorn.Config(bridge.make_app(), host="127.0.0.1", port=0, log_level="warning")
    server = uvicorn.Server(config)
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"

    def run() -> None:
        with bridge.ShoppingClient(base_url=url, message_timeout_s=300).sync() as client:
            for ticket, said in episodes:
                client.reset(env=ticket.draw.env, difficulty=ticket.draw.level, seed=ticket.seed)
                for message in said:
                    client.step(bridge.ShoppingAction(message=message))

    return run


def tinker(stream: Any, episodes: Episodes) -> Callable[[], None]:
    from tinker_cookbook.completers import TokenCompleter, TokensWithLogprobs
    from tinker_cookbook.rl.rollouts import do_group_rollout

    from ecomlab.bridges.tinker import StreamGroup

    renderer = qwen3(stream)
    scripts = by_context(stream, renderer, episodes)

    class Completer(TokenCompleter):
        def __init__(self, script: Any) -> None:
            self.script = script

        async def __call__(self, model_input: Any, stop: Any, *, max_tokens: int | None = None) -> Any:
            ids = self.script[tuple(model_input.to_ints())]
            return TokensWithLogprobs(ids, [0.0] * len(ids), "stop")

    class Quiet:
        def __getattr__(self, name: str) -> Any:
            return getattr(stream, name)

        def report(self, *_: Any) -> None: ...

    async def everything() -> None:
        quiet: Any = Quiet()
        for (ticket, _), script in zip(episodes, scripts, strict=True):
            await do_group_rollout(StreamGroup(quiet, ticket, renderer, 1), Completer(script))

    return lambda: asyncio.run(everything())


def verl(stream: Any, episodes: Episodes) -> Callable[[], None]:
    from types import SimpleNamespace

    from verl.workers.rollout.replica import TokenOutput

    from ecomlab.bridges.verl import ShoppingLoop

    renderer = qwen3(stream)
    scripts = by_context(stream, renderer, episodes)

    class Client:
        script: Any

        async def generate(self, request_id: str, *, prompt_ids: list[int], sampling_params: Any) -> Any:
            ids = self.script[tuple(prompt_ids)]
            return TokenOutput(token_ids=ids, log_probs=[0.0] * len(ids))

    loop = object.__new__(ShoppingLoop)
    loop.tokenizer, loop.server_manager = renderer.tokenizer, Client()
    loop.rollout_config = SimpleNamespace(prompt_length=200_000, response_length=200_000)
    loop.data_config = SimpleNamespace(ecomlab={"envs": "C8", "schedule": "static-0-4"})

    async def everything() -> None:
        for (ticket, _), script in zip(episodes, scripts, strict=True):
            loop.server_manager.script = script
            await loop.run({}, ticket=json.dumps(ticket.to_json()))

    return lambda: asyncio.run(everything())


DOORS = {
    "messages": messages, "tokens": tokens, "trl": trl, "trl_async": trl_async, "gymnasium": gymnasium,
    "openenv": openenv, "tinker": tinker, "verl": verl,
}  # fmt: skip


def measure(door: str) -> dict[str, Any]:
    """Time a door, after one pass that warms what is loaded lazily."""
    from ecomlab import Stream

    stream = Stream("static-0-4", "C8", seed=0)
    episodes = recorded(stream)
    turns = sum(len(said) for _, said in episodes)
    run = DOORS[door](stream, episodes)
    run()
    spent = []
    for _ in range(3):
        began = time.process_time()
        run()
        spent.append((time.process_time() - began) / turns * 1e3)
    return {
        "door": door,
        "episodes": len(episodes),
        "turns": turns,
        "ms": sorted(spent)[1],
        "low": min(spent),
        "high": max(spent),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--door", choices=DOORS)
    given = parser.parse_args()
    if given.door:
        print(json.dumps(measure(given.door)))
        return
    from check import build, cache

    rows = []
    for door, bridge in HOME.items():
        python = build(bridge, cache() / bridge, HERE / f"{bridge}.lock.txt")
        command = [python, __file__, "--door", door]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print(rows[-1], flush=True)
    names = list(rows[0])
    lines = [
        ",".join(f"{row[n]:.3f}" if isinstance(row[n], float) else str(row[n]) for n in names) for row in rows
    ]
    (HERE / "cost.csv").write_text("\n".join([",".join(names), *lines]) + "\n")


if __name__ == "__main__":
    main()
