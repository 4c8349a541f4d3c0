"""The states of episodes for which the messages of ecomlab/laws/messages were written: eight files of 24 states.

python experiments/messages/states.py FOLDER
"""

import random  # noqa: TID251  the states that were written for were drawn by it
import sys
from collections import defaultdict
from pathlib import Path

from ecomlab import ENVIRONMENTS, Episode, TaskError, load_shop, make_task
from ecomlab.markup.entries import as_text, conversation

WRITERS, STATES, FIRST = 8, 24, 3_100_000
"""Files, states of an environment in all of them, and the seed before the first."""
LONGEST = 1_000
"""Characters of a line."""


def main() -> None:
    """Play the courteous player and stop where it is about to speak: a third at the opening, others anywhere later."""
    shop, draw, files = load_shop(), random.Random(2711), defaultdict[int, list[str]](list)
    told = []
    for env, environment in ENVIRONMENTS.items():
        made, seed = 0, FIRST
        while made < STATES:
            seed, d = seed + 1, (2, 4, 6, 8, 10, 12)[made % 6]
            try:
                episode = Episode(make_task(env, d, seed, shop), shop)
            except TaskError:
                continue
            player, moments = environment.reference_player(shop, None, True), []
            while not episode.done:
                moments.append((episode.turn, list(episode.messages)))
                episode.act(player(list(episode.messages), episode.tools))
            turn, messages = moments[0] if made // 8 % 3 == 0 else draw.choice(moments[1:] or moments)
            lines = as_text(conversation(messages[1:])).splitlines()
            shown = [line if len(line) < LONGEST else f"{line[:LONGEST]} ..." for line in lines]
            files[made % WRITERS].append("\n".join([f"### state {env}-{d}-{seed}-{turn}", *shown]))
            made += 1
        told.append(f"[{env}] the agent's instructions: {messages[0]['content']}\n")
    for number, states in files.items():
        draw.shuffle(states)
        text = "\n".join(told) + "\n\n" + "\n\n".join(states) + "\n"
        Path(sys.argv[1], f"states_{number}.txt").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
