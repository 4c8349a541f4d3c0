"""Sessions of OpenEnv's server on one core: memory a session, CPU and latency a request, at 16, 256 and 1,024 sessions.

    make bridge-openenv && ~/.cache/ecomlab/bridges/openenv/bin/python experiments/bridges/sessions.py    # sessions.csv

A server process with one worker, and clients in this process over loopback: each opens a session, plays a cart of d = 2
as the reference player did before, but for its last message, and leaves. Linux only: it reads /proc.
"""

import asyncio
import csv
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from ecomlab import ENVIRONMENTS, load_shop, make_task, play
from ecomlab.bridges.openenv import ShoppingAction, ShoppingClient

HERE = Path(__file__).resolve().parent
NUMBERS, AT_ONCE = (16, 256, 1_024), 64
ENV, LEVEL = "CART", 2


def recorded(number: int) -> list[list[Any]]:
    """Play so many tasks, and return all assistant messages of each but the last."""
    shop, found = load_shop(), []
    for seed in range(number):
        played = play(ENVIRONMENTS[ENV].reference_player(shop), make_task(ENV, LEVEL, seed, shop), shop)
        found.append([message for message in played.messages if message["role"] == "assistant"][:-1])
    return found


def resident(pid: int) -> float:
    """Read a process's resident memory in kB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return float(next(line for line in lines if line.startswith("VmRSS")).split()[1])


def spent(pid: int) -> float:
    """Read a process's seconds of the processor."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def crowd(url: str, scripts: list[list[Any]], pid: int) -> dict[str, float]:
    """Open so many sessions, let all play, and measure while all are open."""
    number, places = len(scripts), asyncio.Semaphore(AT_ONCE)
    clients = [ShoppingClient(base_url=url, message_timeout_s=600) for _ in range(number)]
    took: list[float] = []

    async def begin(client: ShoppingClient, seed: int) -> None:
        async with places:
            await client.connect()
            await client.reset(env=ENV, difficulty=LEVEL, seed=seed)

    async def act(client: ShoppingClient, said: list[Any]) -> None:
        for message in said:
            async with places:
                began = time.perf_counter()
                await client.step(ShoppingAction(message=message))
                took.append(time.perf_counter() - began)

    before, cpu = resident(pid), spent(pid)
    await asyncio.gather(*(begin(client, seed) for seed, client in enumerate(clients)))
    opened, began = spent(pid), time.perf_counter()
    await asyncio.gather(*map(act, clients, scripts))
    wall, used, memory = time.perf_counter() - began, spent(pid) - opened, resident(pid) - before
    for client in clients:
        await client.close()
    took.sort()
    return {
        "sessions": number, "kB a session": memory / number, "reset CPU ms": (opened - cpu) / number * 1e3,
        "step CPU ms": used / len(took) * 1e3, "steps a core-second": len(took) / used,
        "steps a second": len(took) / wall, "median ms": took[len(took) // 2] * 1e3,
        "p99 ms": took[int(0.99 * len(took))] * 1e3,
    }  # fmt: skip


def main() -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    given = {**os.environ, "ECOMLAB_SESSIONS": "2000", "OMP_NUM_THREADS": "1"}
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "ecomlab.bridges.openenv:app",
        "--port",
        str(port),
        "--log-level",
        "error",
    ]
    server, url, rows = subprocess.Popen(command, env=given), f"http://127.0.0.1:{port}", []
    try:
        while True:
            try:
                urllib.request.urlopen(f"{url}/health")
                break
            except OSError:
                time.sleep(0.2)
        scripts = recorded(NUMBERS[-1])
        asyncio.run(crowd(url, scripts[:4], server.pid))  # loads the shop
        for number in NUMBERS:
            rows.append(asyncio.run(crowd(url, scripts[:number], server.pid)))
            print({name: round(value, 1) for name, value in rows[-1].items()}, flush=True)
    finally:
        server.terminate()
    with (HERE / "sessions.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: f"{value:.4g}" for name, value in row.items()} for row in rows)


if __name__ == "__main__":
    main()
