"""Whether a change of code changed a task, or what is said and earned in it: digests, to compare two commits by.

    python experiments/certificate/digests.py before.json                     # at the one commit
    python experiments/certificate/digests.py after.json --against before.json

Of every environment and level 30 tasks that the certificate does not play, and in the first eight of them the
episodes of three of its players. It takes some minutes of a core. `--env BUNDLE` looks at some environments alone.
"""

import argparse
import json
import sys
from pathlib import Path

from ecomlab import ENVIRONMENTS, Episode, load_shop
from ecomlab.files import write_json
from ecomlab.laws.certificate import FIRST_SEED, finish, players
from ecomlab.laws.tool_introspection import drawn
from ecomlab.seeding import digest

TASKS, PLAYED = 30, 8
PLAYERS = ("fair", "noisy", "solver")
SEEDS = range(FIRST_SEED + 900, FIRST_SEED + 900 + TASKS)


def digests(envs: list[str]) -> dict[str, str]:
    """Digest tasks, and the messages and scores of episodes, each by its name."""
    shop, found = load_shop(20_000), dict[str, str]()
    for env in envs:
        makers = players(env, shop)
        for d in range(13):
            for number, task in enumerate(drawn(env, d, SEEDS, shop)[0]):
                found[f"{env} {d} {task.seed}"] = digest(task.to_json())
                for name in PLAYERS if number < PLAYED else ():
                    episode = Episode(task, shop)
                    played = finish(makers[name](episode, task.seed), episode)
                    said = [played.messages, played.score.value, played.score.why]
                    found[f"{env} {d} {task.seed} {name}"] = digest(said)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--against", type=Path, help="what another commit wrote")
    parser.add_argument("--env", nargs="+", choices=list(ENVIRONMENTS), default=list(ENVIRONMENTS))
    asked = parser.parse_args()
    found = digests(asked.env)
    write_json(asked.out, found)
    if asked.against:
        before = json.loads(asked.against.read_text("utf-8"))
        other = [name for name, value in found.items() if before.get(name) != value]
        print(f"{len(found) - len(other):,} of {len(found):,} are the same", *other[:10], sep="\n")
        sys.exit(bool(other))


if __name__ == "__main__":
    main()
