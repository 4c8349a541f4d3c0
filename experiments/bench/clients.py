"""Which HTTP client carries 64 episodes at once: requests a second and CPU time a request, by client.

`python experiments/bench/clients.py OUT.json`. Rounds of all clients are interleaved, for other programs use the
machine too; CPU time tells more than requests a second there. "Parsed" builds the package's models of an answer;
ecomlab reads its JSON.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

AT_ONCE, ROUNDS = 64, 3
BODY = {"model": "loopback", "messages": [{"role": "user", "content": "x" * 12_000}]}
"""As large as an episode in its middle, tool schemas included."""
Send = Callable[[], Awaitable[Any]]


@asynccontextmanager
async def aiohttp_client(url: str) -> AsyncIterator[Send]:
    import aiohttp

    connector = aiohttp.TCPConnector(limit=AT_ONCE)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def send() -> Any:
            async with session.post(f"{url}/chat/completions", data=json.dumps(BODY).encode()) as answer:
                return json.loads(await answer.read())

        yield send


def openai_client(over_aiohttp: bool, parsed: bool) -> Callable[[str], Any]:
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[Send]:
        import httpx2
        from openai import AsyncOpenAI, DefaultAioHttpClient, DefaultAsyncHttpxClient

        kind = DefaultAioHttpClient if over_aiohttp else DefaultAsyncHttpxClient
        limits = httpx2.Limits(max_connections=AT_ONCE, max_keepalive_connections=AT_ONCE)
        async with AsyncOpenAI(base_url=url, api_key="none", http_client=kind(limits=limits)) as client:

            async def send() -> Any:
                if parsed:
                    return await client.chat.completions.create(**BODY)
                answer = await client.post("/chat/completions", body=BODY, cast_to=httpx2.Response)
                return json.loads(answer.text)

            yield send

    return opened


CLIENTS: dict[str, Callable[[str], Any]] = {
    "aiohttp": aiohttp_client,
    "openai over httpx2, parsed": openai_client(over_aiohttp=False, parsed=True),
    "openai over aiohttp, parsed": openai_client(over_aiohttp=True, parsed=True),
    "openai over httpx2": openai_client(over_aiohttp=False, parsed=False),
    "openai over aiohttp": openai_client(over_aiohttp=True, parsed=False),
}


async def measure(client: Callable[[str], Any], url: str, requests: int) -> tuple[float, float]:
    """Send `requests`, AT_ONCE at a time; return seconds on the wall and of this process's CPU."""
    left = iter(range(requests))

    async def work(send: Send) -> None:
        for _ in left:
            await send()

    async with client(url) as send:
        await asyncio.gather(*(send() for _ in range(AT_ONCE)))  # opens the connections
        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(work(send) for _ in range(AT_ONCE)))
        return time.perf_counter() - wall, time.process_time() - cpu


def main(out: Path) -> None:
    """Measure every client against a server that waits a second, and one that waits 50 ms."""
    rows = []
    for wait, requests in ((1.0, 192), (0.05, 192)):
        server = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("loopback.py")), str(wait)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert server.stdout and server.stdin
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in CLIENTS}
        for _ in range(ROUNDS):
            for name, client in CLIENTS.items():
                found[name].append(asyncio.run(measure(client, url, requests)))
        server.stdin.close()
        server.wait()
        for name, rounds in found.items():
            rate = [requests / wall for wall, _ in rounds]
            cpu = [1000 * used / requests for _, used in rounds]
            row = {
                "client": name, "wait_ms": 1000 * wait, "requests_a_second": sorted(rate),
                "cpu_ms_a_request": sorted(cpu),
            }  # fmt: skip
            rows.append(row)
            print(
                f"{name:28} {1000 * wait:4.0f} ms: {statistics.median(rate):6.0f} requests/s,"
                f" {statistics.median(cpu):5.2f} ms of CPU a request"
            )
    names = ("aiohttp", "httpx2", "openai")
    record = {
        "at_once": AT_ONCE, "body_bytes": len(json.dumps(BODY)), "python": sys.version.split()[0],
        "versions": {name: version(name) for name in names}, "rows": rows,
    }  # fmt: skip
    out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
