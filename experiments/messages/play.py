"""Play an episode step by step as somebody who sees messages and schemas alone: `player.md` says how.

python experiments/messages/play.py NAME new ENV D SEED | NAME say TEXT | NAME call TOOL JSON [TOOL JSON ...] | NAME
show | NAME sheet (numbered, for a second reader: `second_reader.md`)
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from ecomlab import Episode, load_shop, make_task
from ecomlab.task import Message

FOLDER = Path(tempfile.gettempdir()) / "ecomlab_played"
LONGEST, SHORT = 30_000, 600
"""Characters of a result that are shown, and of a line of a sheet."""


def main(name: str, command: str, *rest: str) -> None:
    """Do the next step of an episode that is kept as the list of its steps and played again each time."""
    file = FOLDER / f"{name}.json"
    if command == "new":
        FOLDER.mkdir(exist_ok=True)
        file.write_text(
            json.dumps({"env": rest[0], "d": int(rest[1]), "seed": int(rest[2]), "steps": []}), "utf-8"
        )
    kept, shop = json.loads(file.read_text("utf-8")), load_shop()
    episode = Episode(make_task(kept["env"], kept["d"], kept["seed"], shop), shop)
    for step in kept["steps"]:
        episode.act(step)
    before = len(episode.messages)
    if command == "new":
        print(episode.messages[0]["content"], "\n\nTOOLS")
        print("\n".join(json.dumps(one) for one in episode.tools), "\n")
        print("CUSTOMER:", episode.messages[1]["content"])
    elif command == "show":
        for message in episode.messages[1:]:
            print(
                f"{message['role'].upper()}:", message.get("content") or json.dumps(message.get("tool_calls"))
            )
    elif command == "sheet":
        number = 0
        for message in episode.messages[1:]:
            number += message["role"] == "assistant" and not message.get("tool_calls")
            words = message.get("content") or json.dumps(
                [one["function"] for one in message.get("tool_calls", ())]
            )
            print(f"{name}.{number} {message['role'].upper()}: {words[:SHORT]}")
    elif episode.done:
        print("the episode is over")
    else:
        step = said(rest[0]) if command == "say" else called(rest)
        episode.act(step)
        file.write_text(json.dumps(kept | {"steps": [*kept["steps"], step]}), "utf-8")
        for message in episode.messages[before:]:
            if message["role"] == "user":
                print("CUSTOMER:", message["content"])
            elif message["role"] == "tool":
                print(f"RESULT {message.get('name', '')}:", message["content"][:LONGEST])
    if episode.done:
        print("OVER:", episode.score())


def said(text: str) -> Message:
    return {"role": "assistant", "content": text}


def called(pairs: tuple[str, ...]) -> Message:
    calls: list[dict[str, Any]] = [
        {"id": f"c{number}", "type": "function", "function": {"name": tool, "arguments": arguments}}
        for number, (tool, arguments) in enumerate(zip(pairs[::2], pairs[1::2], strict=True))
    ]
    return {"role": "assistant", "content": "", "tool_calls": calls}


if __name__ == "__main__":
    main(*sys.argv[1:])
