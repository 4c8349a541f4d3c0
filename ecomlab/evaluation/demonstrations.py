"""Demonstrations for a warm start: correct episodes of reference and courteous players on training tasks, as chats with
tools, in files of JSON lines that can be made again to the byte."""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from ecomlab.catalog import load_shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode, make_task
from ecomlab.episode.play import play
from ecomlab.seeding import TRAINING_SEEDS, rng

FORMS = ("messages", "prompt-completion")
"""`messages` is TRL's conversation with tools; `prompt-completion`, which verifiers' and prime-rl's trainers read, has
the conversation up to the agent's first turn apart."""
PLAYERS = ("reference", "courteous")
PART = 250
"""Episodes of a file."""
TRIES = 20
MANIFEST = "manifest.json"


def demonstration(
    number: int, envs: Sequence[str], levels: Sequence[int], seed: int, size: int, form: str
) -> str:
    """Play episode `number` and write it as a line. Environments, levels and players take turns.

    A task on which the player is wrong is replaced. Raises RuntimeError after `TRIES` of them.
    """
    shop = load_shop(size)
    env = envs[number % len(envs)]
    level = levels[number // len(envs) % len(levels)]
    who = PLAYERS[number // (len(envs) * len(levels)) % len(PLAYERS)]
    random = rng("demonstrations", seed, number)
    for _ in range(TRIES):
        task = make_task(env, level, int(random.integers(TRAINING_SEEDS.start, TRAINING_SEEDS.stop)), shop)
        player = ENVIRONMENTS[env].reference_player(shop, courteous=who == "courteous")
        played = play(player, task, shop)
        if played.score.correct:
            break
    else:
        raise RuntimeError(f"the {who} player was wrong in {TRIES} tasks of {env} at d = {level}")
    messages, tools = list(played.messages), Episode(task, shop).tools
    chat = (
        {"messages": messages} if form == "messages" else {"prompt": messages[:2], "completion": messages[2:]}
    )
    about = {"env": env, "version": task.version, "difficulty": level, "seed": task.seed, "player": who}
    row = {**chat, "tools": tools, **about, "reward": played.score.value}
    return json.dumps(row, ensure_ascii=False, sort_keys=True)


def _part(path: Path, numbers: range, *given: Any) -> Path:
    """Write a file, whole or not at all."""
    unfinished = path.with_suffix(".unfinished")
    with unfinished.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(demonstration(number, *given) + "\n" for number in numbers)
    unfinished.rename(path)
    return path


def write_demonstrations(
    out: Path,
    episodes: int,
    *,
    envs: Sequence[str] = tuple(ENVIRONMENTS),
    levels: Sequence[int] = tuple(range(9)),
    seed: int = 0,
    size: int = 20_000,
    form: str = "messages",
    workers: int = 1,
    on_progress: Callable[[int], None] = lambda done: None,
) -> dict[str, Any]:
    """Write demonstrations into a folder, and return its manifest: settings, counts and a digest of all lines.

    Files that are there are kept, so that an interrupted call goes on; the result is the same for any number of
    workers. Raises ValueError for a folder of other settings.
    """
    settings = {
        "episodes": episodes,
        "envs": list(envs),
        "levels": list(levels),
        "seed": seed,
        "products": size,
    }
    settings |= {"form": form, "environments": {env: ENVIRONMENTS[env].version for env in envs}}
    out.mkdir(parents=True, exist_ok=True)
    shop = load_shop(size)
    settings |= {"ecomlab": version("ecomlab"), "catalog": shop.fingerprint}
    begun = out / MANIFEST
    if begun.exists() and {**json.loads(begun.read_text()), **settings} != json.loads(begun.read_text()):
        raise ValueError(f"{out} holds demonstrations of other settings; choose another folder, or delete it")
    if not begun.exists():
        begun.write_text(json.dumps(settings, indent=1) + "\n")
    parts = [
        (out / f"part-{start // PART:05d}.jsonl", range(start, min(start + PART, episodes)))
        for start in range(0, episodes, PART)
    ]
    missing = [(path, numbers) for path, numbers in parts if not path.exists()]
    given = (tuple(envs), tuple(levels), seed, size, form)
    done = episodes - sum(len(numbers) for _, numbers in missing)
    for path in _written(missing, given, workers):
        done += len(dict(missing)[path])
        on_progress(done)
    sums, count = hashlib.sha256(), Counter[str]()
    for path, _ in parts:
        sums.update(path.read_bytes())
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            count[f"{row['env']} d={row['difficulty']} {row['player']}"] += 1
    manifest = {**settings, "sha256": sums.hexdigest(), "counts": dict(sorted(count.items()))}
    begun.write_text(json.dumps(manifest, indent=1) + "\n")
    return manifest


def _written(missing: list[tuple[Path, range]], given: tuple[Any, ...], workers: int) -> Iterator[Path]:
    if workers == 1:
        yield from (_part(path, numbers, *given) for path, numbers in missing)
        return
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        for future in [pool.submit(_part, path, numbers, *given) for path, numbers in missing]:
            yield future.result()
