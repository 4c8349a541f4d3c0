"""What playing through an endpoint costs beyond the environment and the HTTP client.

`python experiments/bench/endpoint.py OUT.json [ROUNDS]` measures, in interleaved rounds, for other programs use the
machine too:

1. the harness's own CPU time a turn: episodes played through `EndpointContestant`'s code with the HTTP client's answers
   made on the spot, less the same messages played in bare episodes;
2. 64 episodes at once against a server that answers after a second, against bare aiohttp that sends the same requests;
3. the same against a server that answers at once.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp

from ecomlab import ENVIRONMENTS, Episode, Shop, Trajectory, load_shop, make_task, play
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.endpoint.client import Answer, Client
from ecomlab.evaluation.endpoint.contestant import EndpointContestant, _Conversation
from ecomlab.evaluation.endpoint.settings import EndpointSettings
from ecomlab.evaluation.evaluation import trajectory_of
from ecomlab.evaluation.tasks import held_out_seeds

AT_ONCE, LEVEL = 64, 4
ENVS = ("CART", "PD", "RETURN", "POLICY")


class OnTheSpot(Client):
    """A client without HTTP: its answers are a recorded episode's messages."""

    def plays(self, trajectory: Trajectory) -> None:
        """Answer with this episode's messages from now on."""
        said = [message for message in trajectory.messages if message["role"] == "assistant"]
        self._texts = iter([json.dumps(_completion(message)) for message in said])

    async def _post(self, body: Mapping[str, Any]) -> Answer:
        json.dumps(body)  # as the package writes it
        return self._read(next(self._texts))


def _completion(message: dict[str, Any]) -> dict[str, Any]:
    usage = {"prompt_tokens": 1000, "completion_tokens": 20}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return {"model": "loopback", "choices": [choice], "usage": usage}


def own_cpu(shop: Shop, rounds: int) -> dict[str, Any]:
    """Milliseconds of CPU a turn: of bare episodes, of episodes through the harness, and of the difference."""
    settings = EndpointSettings(url="http://127.0.0.1:1/v1", model="loopback")
    jobs = [Job(env, LEVEL, seed) for env in ENVS for seed in held_out_seeds(0, 15)]
    tasks = [make_task(job.env, job.d, job.seed, shop) for job in jobs]
    played = [play(ENVIRONMENTS[task.env].reference_player(shop), task, shop) for task in tasks]
    turns = sum(trajectory.turns for trajectory in played)

    def bare() -> None:
        for trajectory in played:
            episode = Episode(trajectory.task, shop)
            for message in trajectory.messages:
                if message["role"] == "assistant":
                    episode.act(message)
            episode.score()

    async def through() -> None:
        client = OnTheSpot(settings)
        for job, trajectory in zip(jobs, played, strict=True):
            conversation = _Conversation(job, Episode(trajectory.task, shop), settings)
            client.plays(trajectory)
            await conversation.play(client)
            found = conversation.played()
            assert found.score == trajectory.score

    def cpu(work: Any) -> float:
        began = time.process_time()
        work()
        return 1000 * (time.process_time() - began) / turns

    pairs = [(cpu(bare), cpu(lambda: asyncio.run(through()))) for _ in range(rounds)]
    own = sorted(there - here for here, there in pairs)
    return {
        "turns": turns,
        "environment_ms_a_turn": statistics.median(here for here, _ in pairs),
        "through_the_harness_ms_a_turn": statistics.median(there for _, there in pairs),
        "own_ms_a_turn": own,
        "own_ms_a_turn_median": statistics.median(own),
    }


@contextmanager
def server(seconds: float) -> Iterator[str]:
    """Run the loopback server in a process of its own."""
    command = [sys.executable, str(Path(__file__).with_name("loopback.py")), str(seconds)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin and process.stdout
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
    finally:
        process.stdin.close()
        process.wait()


def against_bare(shop: Shop, wait: float, rounds: int, episodes: int) -> dict[str, Any]:
    """Seconds of the harness and of a bare client for the same requests, by round, and the median of their ratios."""
    jobs = [Job("CART", LEVEL, seed) for seed in held_out_seeds(0, episodes)]
    with server(wait) as url:
        settings = EndpointSettings(url=url, model="loopback", concurrency=AT_ONCE)
        contestant = EndpointContestant(settings)
        played = list(contestant.play(jobs, shop))
        assert not any(p.unscored for p in played)
        chains = [_requests(settings, trajectory_of(one, shop), shop) for one in played]
        rounds_of = []
        for _ in range(rounds):
            mine = _timed(lambda: list(contestant.play(jobs, shop)))
            rounds_of.append((mine, _timed(lambda: asyncio.run(_send(settings.address, chains)))))
    requests = sum(map(len, chains))
    return {
        "wait_s": wait,
        "episodes": len(jobs),
        "requests": requests,
        "harness_s": [mine[0] for mine, _ in rounds_of],
        "bare_s": [bare[0] for _, bare in rounds_of],
        "harness_cpu_ms_a_request": statistics.median(1000 * mine[1] / requests for mine, _ in rounds_of),
        "bare_cpu_ms_a_request": statistics.median(1000 * bare[1] / requests for _, bare in rounds_of),
        "ratio_of_times": statistics.median(mine[0] / bare[0] for mine, bare in rounds_of),
        "ratio_of_cpu": statistics.median(mine[1] / bare[1] for mine, bare in rounds_of),
    }


def _timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Return the seconds that `work` takes: on the wall, and of this process's CPU."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def _requests(settings: EndpointSettings, trajectory: Trajectory, shop: Shop) -> list[dict[str, Any]]:
    """Make the bodies of an episode's requests."""
    tools, messages = Episode(trajectory.task, shop).tools, trajectory.messages
    places = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    return [settings.request(messages[:place], tools, 7) for place in places]


async def _send(address: str, chains: Sequence[Sequence[dict[str, Any]]]) -> None:
    """Send each chain's requests one after the other, AT_ONCE chains at once, as a program without a harness would."""
    left = iter(chains)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=AT_ONCE)) as session:

        async def work() -> None:
            for chain in left:
                for body in chain:
                    async with session.post(address, json=body) as response:
                        json.loads(await response.read())

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))


def main(out: Path, rounds: int) -> None:
    """Measure, print and write."""
    shop = load_shop(1_000)
    found = {
        "python": sys.version.split()[0],
        "cores": os.cpu_count(),
        "load_before": os.getloadavg(),
        "own_cpu": own_cpu(shop, rounds),
        "after_a_second": against_bare(shop, 1.0, rounds, 64),
        "at_once": against_bare(shop, 0.0, rounds, 128),
        "load_after": os.getloadavg(),
    }
    out.write_text(json.dumps(found, indent=1) + "\n")
    own = found["own_cpu"]
    print(
        f"own CPU: {own['own_ms_a_turn_median']:.2f} ms a turn, beside"
        f" {own['environment_ms_a_turn']:.2f} ms of the environment"
    )
    for name in ("after_a_second", "at_once"):
        row = found[name]
        print(
            f"answers {name.replace('_', ' ')}: {row['ratio_of_times']:.3f} times the bare client's time,"
            f" CPU {row['harness_cpu_ms_a_request']:.2f} ms a request, environment included, to"
            f" {row['bare_cpu_ms_a_request']:.2f} ms ({row['requests']} requests)"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5)
