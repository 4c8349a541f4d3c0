"""Dialogues on a real catalog as text to be read aloud: what the customer says, and what it answers to.

    python experiments/catalog_ingest/dialogues.py CATALOG_FOLDER --count 50 > dialogues.txt

CATALOG_FOLDER is what `ecomlab catalog build` wrote. Environments that the catalog can carry take turns, levels (0 to
9, or those after `--levels`) follow one another within each, and the number of a dialogue is its seed: the same text in
every run. The agent is the courteous reference player; of its calls only those that stand directly before a customer's
line are shown, with names in place of ids.
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import fill
from typing import Any

from ecomlab import ENVIRONMENTS, TaskError, load_shop, make_task, play
from ecomlab.catalog import Shop
from ecomlab.catalog.support import unsupported
from ecomlab.markup.record import Call, Step, steps_of

WIDTH = 120
ASKS = "ask_user"


def names_in(result: Any) -> Iterator[tuple[str, str]]:
    """Find (id, title) of every product and order line in a tool's result."""
    if isinstance(result, dict):
        for name in ("product_id", "line_id"):
            if name in result and "title" in result:
                yield str(result[name]), str(result["title"])
        result = list(result.values())
    for entry in result if isinstance(result, list) else ():
        yield from names_in(entry)


def read(text: str | None) -> Any:
    """Read a tool's result; what is no JSON stays text."""
    try:
        return json.loads(text or "")
    except ValueError:
        return text


def worded(call: Call, names: Mapping[str, str]) -> str:
    """Write a call as text, with the names of products in place of their ids."""
    arguments = read(call.arguments)
    found = ", ".join(f"{name}={value}" for name, value in arguments.items())
    for product_id, title in names.items():
        found = found.replace(product_id, title)
    return f"{call.name}({found})"


def lines_of(steps: list[Step]) -> Iterator[str]:
    """Write a dialogue: each line of the customer, before it what the agent said or did last."""
    names: dict[str, str] = {}
    for step in steps:
        for call in step.calls:
            names |= dict(names_in(read(call.result)))
        asked = [call for call in step.calls if call.name == ASKS]
        told = [*step.said, *(read(call.result)["customer"] for call in asked)]
        if not told:
            continue
        if step.text:
            yield fill(f"Agent:    {step.text}", WIDTH, subsequent_indent=" " * 10)
        for call in step.calls:
            said = str(read(call.arguments).get("question")) if call in asked else f"[{worded(call, names)}]"
            yield fill(f"Agent:    {said}", WIDTH, subsequent_indent=" " * 10)
        for words in told:
            yield fill(f"Customer: {words}", WIDTH, subsequent_indent=" " * 10)


def dialogue(env: str, d: int, seed: int, shop: Shop) -> str:
    """Play one episode and write it as text; what cannot be drawn says why."""
    head = f"{seed}. {env}, d = {d}"
    try:
        task = make_task(env, d, seed, shop)
    except TaskError as error:
        return f"{head}: refused: {error}"
    made = play(ENVIRONMENTS[env].reference_player(shop, courteous=True), task, shop)
    end = "right" if made.score.correct else f"not right: {made.score.why}"
    return "\n".join([f"{head}: {end}", *lines_of(steps_of(made.messages))])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("folder", type=Path)
    options.add_argument("--count", type=int, default=50)
    options.add_argument("--first", type=int, default=0, help="number of the first dialogue")
    options.add_argument("--levels", type=int, nargs="+", default=list(range(10)))
    asked = options.parse_args()
    shop = load_shop(asked.folder)
    off = unsupported(shop.catalog)
    for env, why in off.items():
        print(f"{env} is off: {why}\n")
    envs = [env for env in ENVIRONMENTS if env not in off]
    for number in range(asked.first, asked.first + asked.count):
        d = asked.levels[number // len(envs) % len(asked.levels)]
        print(dialogue(envs[number % len(envs)], d, number, shop), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
