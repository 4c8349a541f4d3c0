"""Make a page of thousands of episodes, to measure in a browser: `python experiments/viewer/make_page.py PAGE`.

Two perturbed players play tasks of every environment; what they played is acted out again as `ecomlab view` does. To
reach the number of episodes they are repeated as further trials: each is deflated by itself, so the page is as large as
one of as many different episodes. One more episode holds what a hostile product or model might write.
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from ecomlab import ENVIRONMENTS, load_shop, make_task, play
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.tasks import held_out_seeds
from ecomlab.evaluation.transcript import Transcript
from ecomlab.lab.view.acting import record_of
from ecomlab.lab.view.page import row_of, write_episodes
from ecomlab.markup.elements import element
from ecomlab.markup.record import Call, Label, Record, Step
from ecomlab.players.base import Perturbation
from ecomlab.reward import Score
from ecomlab.seeding import rng

LEVELS = (0, 1, 4, 8, 12)
PLAYERS = {"careful": 0.05, "careless": 0.35}
"""Rates of mistakes per decision."""
HOSTILE = "</script><script>document.title='hacked'</script><img src=x onerror=\"document.title='hacked'\"> $5 and $6"
Episode = tuple[dict[str, Any], Record]


def some(tasks: int) -> list[Episode]:
    """Play `tasks` tasks of every environment and level by each player, and record them with their states."""
    shop, made = load_shop(), []
    for seed in held_out_seeds(0, tasks):
        for env in ENVIRONMENTS:
            for d in LEVELS:
                task = make_task(env, d, seed, shop)
                for name, rate in PLAYERS.items():
                    slips = Perturbation(rng("viewer", name, env, d, seed), rate)
                    trajectory = play(ENVIRONMENTS[env].reference_player(shop, slips), task, shop)
                    transcript = Transcript.of(Job(env, d, seed), trajectory)
                    record = record_of(transcript, shop, name)
                    made.append((row_of(name, transcript, record), record))
    return made


def repeated(made: list[Episode]) -> Iterator[Episode]:
    """Repeat episodes for ever, as further trials."""
    for number, (row, record) in enumerate(cycle(made)):
        yield {**row, "trial": number // len(made)}, record


def hostile() -> Episode:
    """Make an episode in which everybody writes the same hostile text."""
    calls = [Call("catalog_search", HOSTILE, json.dumps({"results": [{"title": HOSTILE}]}))]
    steps = [Step(0, said=[HOSTILE]), Step(1, HOSTILE, calls, [HOSTILE])]
    score = Score(-0.9, False, HOSTILE, {"task": -1.0})
    transcript = Transcript(Job("CART", 0, 0), "", (), "submit", score, 1, 1)
    record = record_of(transcript, player=HOSTILE, labels=[Label(1, "hostile", HOSTILE)])
    record = replace(record, steps=steps, system=HOSTILE)
    return row_of("hostile", transcript, record), record


def main() -> None:
    read = argparse.ArgumentParser(description=__doc__)
    read.add_argument("page", type=Path)
    read.add_argument("--episodes", type=int, default=5_000)
    read.add_argument(
        "--tasks", type=int, default=3, help="tasks of each environment and level that are played"
    )
    asked = read.parse_args()
    made = some(asked.tasks)
    episodes: Iterator[tuple[Mapping[str, Any], Record]] = islice(repeated(made), asked.episodes - 1)
    about = element("p", f"{asked.episodes} episodes, of which {len(made)} were played")
    write_episodes(asked.page, (one for some in (episodes, iter([hostile()])) for one in some), about)
    print(f"{asked.page}: {asked.page.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
