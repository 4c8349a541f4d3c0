"""Measure the reader's ceiling and cost: `python experiments/reader/measure.py`.

How often two readers of a message of `held` get one reply (UNDERSTOOD's ceiling); the Python calls and modules of a
question turn; and how long a message of ten to fourteen words is read, on whatever machine this is.
"""

import statistics
import sys
import time
from types import FrameType
from typing import Any

from ecomlab import Episode, load_shop, make_task
from ecomlab.catalog import Shop
from ecomlab.customer.reading.reading import Message
from ecomlab.laws import banks, understanding
from ecomlab.laws.banks import Case, named_acts
from ecomlab.laws.understanding import labelled, reaction_to

QUESTION = "Which material should the first thing have, and by when do you need it?"
WORDS, MESSAGES, TIMES = range(10, 15), 200, 5


def agreement(shop: Shop) -> float:
    """Return the share of messages of which both readers' labels get one reply."""
    cases = [one for one in banks.messages(understanding.MESSAGES / "held.jsonl", shop) if one.certain]
    return sum(agreed(one, shop) for one in cases) / len(cases)


def agreed(case: Case, shop: Shop) -> bool:
    """Tell whether a message gets one reply as either of its readers labels it."""
    message = Message(case.text, case.listener.vocabulary)
    decided, read = message.decided(), filter(None, (case.acts, case.or_acts))
    labels = [labelled(message, named_acts(acts), case, decided) for acts in read]
    return len({reaction_to(message.reading(label), case, shop) for label in labels}) == 1


def turn(shop: Shop) -> tuple[int, int]:
    """Count the Python calls of a question turn, and the modules of ours that they are in."""
    episode, files = Episode(make_task("CART", 8, 5, shop), shop), list[str]()

    def called(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            files.append(frame.f_code.co_filename)

    episode.customer.hear("Hello there, what brand of it would you like?", episode.world)
    sys.setprofile(called)
    episode.customer.hear(QUESTION, episode.world)
    sys.setprofile(None)
    return len(files), len({file for file in files if "ecomlab" in file})


def microseconds(shop: Shop) -> float:
    """Time the reading of messages that were not read before; return the median."""
    cases = banks.messages(understanding.MESSAGES / "read.jsonl", shop)
    some = [one for one in cases if len(one.text.split()) in WORDS][:MESSAGES]
    times = []
    for _ in range(TIMES):
        for one in some:
            start = time.perf_counter()
            message = Message(one.text, one.listener.vocabulary)
            message.reading(message.decided())
            times.append(time.perf_counter() - start)
    return 1e6 * statistics.median(times[len(some) :])


if __name__ == "__main__":
    big = load_shop()
    print(f"readers agree in {agreement(big):.3f} of the replies to held")
    print("a question turn: {} calls in {} modules".format(*turn(big)))
    print(f"a message of 10 to 14 words: {microseconds(big):.0f} microseconds")
