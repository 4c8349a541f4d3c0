"""Compare what the reader and the grammar that it replaced hear asked for in the same messages.

python experiments/reader/beside.py FILE             reads UNDERSTOOD's messages, and writes what the reader hears
PYTHONPATH=OLD python experiments/reader/beside.py FILE   with OLD a checkout of 3aa1a3f1: prints the shares of both
"""

import importlib
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from ecomlab import load_shop

LAWS = Path(__file__).parents[2] / "ecomlab" / "laws" / "messages"


def write(file: Path) -> None:
    """Write each message in a conversation, what it asks for, and what the reader hears."""
    banks = importlib.import_module("ecomlab.laws.banks")
    read, shop, found = importlib.import_module("ecomlab.customer.reading.reading").read, load_shop(), []
    for bank in ("held", "read"):
        for case in banks.messages(LAWS / f"{bank}.jsonl", shop):
            if case.certain:
                one, heard = case.listener, read(case.text, case.listener.vocabulary)
                found.append({
                    "bank": bank, "env": one.env, "task": banks.tasks_of(one.env, shop).index(one.task),
                    "text": case.text, "asks": sorted(case.asks), "open": case.open,
                    "acts": sorted(banks.named_acts(case.acts)),
                    "heard": [sorted({question.slot for question in heard.questions}), heard.open],
                })  # fmt: skip
    file.write_text(json.dumps(found), "utf-8")


def compare(file: Path) -> None:
    """Print the shares that each hears exactly, of messages that ask and of those that ask for nothing."""
    drawn = importlib.import_module("ecomlab.laws.understanding")._tasks
    episode = importlib.import_module("ecomlab.episode.episode").Episode
    shop, counts = load_shop(), Counter[tuple[str, ...]]()
    for row in json.loads(file.read_text("utf-8")):
        asks = bool({"SET", "CHECK", "CHOICE", "OPEN"} & set(row["acts"]))
        if not asks and {"LIST", "SUMMARY", "CONSENT", "OFFER", "UNDERSTOOD"} & set(row["acts"]):
            continue
        customer = episode(drawn(row["env"], shop)[row["task"]], shop).customer
        heard = customer.read(re.sub("[\ue000-\uf8ff]", "it", row["text"]))
        grammar = [sorted({question.slot for question in heard.questions}), heard.open]
        kind = (row["bank"], "asks" if asks else "asks nothing")
        counts[*kind, "all"] += 1
        counts[*kind, "grammar"] += exact(grammar, row)
        counts[*kind, "linear"] += exact(row["heard"], row)
    for key, count in sorted(counts.items()):
        print(*key, count, round(count / counts[*key[:2], "all"], 3))


def exact(heard: list[Any], row: dict[str, Any]) -> bool:
    return (heard[0] == row["asks"] or "?" in row["asks"]) and heard[1] == row["open"]


if __name__ == "__main__":
    file = Path(sys.argv[1])
    (compare if file.exists() else write)(file)
