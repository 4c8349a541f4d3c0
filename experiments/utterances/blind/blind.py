"""What customers' sentences tell, and what readers who wrote none of them and saw no slots say that they tell.

python experiments/utterances/blind/blind.py draw       # 1,000 sentences with slots: told.jsonl, lines_0.txt ...
python experiments/utterances/blind/blind.py compare    # read.jsonl, as reader.md asks for it, against told.jsonl
"""

import json
import re
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ecomlab import ENVIRONMENTS, TaskError, load_shop, make_task, play
from ecomlab.customer.nlg import Speaker
from ecomlab.seeding import rng
from ecomlab.values import MONTHS

HERE = Path(__file__).parent
LINES, A_FILE = 1_000, 250
LEVELS, SEEDS = range(2, 13, 2), range(8_800_000, 8_800_012)
KINDS = {
    "was_brand": "old_brand", "was_feature": "old_style", "feature": "style", "added": "parts", "placed": "date",
    "ordered": "date", "delivered": "date", "when": "date", "place": "position", "twist": "case", "option": "property",
}  # fmt: skip
"""Kinds of reader.md, by slot; others are called as the slot."""
ALIKE = (
    {"style", "brand", "property", "old_brand", "old_style", "thing"}, {"price", "budget", "total"},
    {"quantity", "units", "count", "items", "things"}, {"relation", "correction", "position", "date", "age"},
    {"question", "case"}, {"parts", "thing", "dropped"},
)  # fmt: skip
"""Kinds that a reader may take for each other where the value is the same."""


def draw() -> None:
    """Play courteous players, and draw from what customers say with slots."""
    shop, said = load_shop(), dict[str, tuple[Any, ...]]()
    worded = Speaker.sentences

    def noted(self: Speaker, acts: Any) -> list[str]:
        texts = worded(self, acts)
        said.update({text: (self.key[0], dict(act.slots)) for act, text in zip(acts, texts) if act.slots})
        return texts

    with patch.object(Speaker, "sentences", noted):
        for env in ENVIRONMENTS:
            for d, seed in ((d, seed) for d in LEVELS for seed in SEEDS if env != "JOURNEY"):
                try:
                    task = make_task(env, d, seed, shop)
                except TaskError:
                    continue
                play(ENVIRONMENTS[env].reference_player(shop, courteous=True), task, shop)
    every = list(said.items())
    drawn = [every[at] for at in rng("blind").permutation(len(every))[:LINES].tolist()]
    with (HERE / "told.jsonl").open("w") as file:
        for number, (text, (env, slots)) in enumerate(drawn):
            file.write(json.dumps({"n": number, "env": env, "slots": slots, "text": text}) + "\n")
    for start in range(0, len(drawn), A_FILE):
        lines = [f"{start + at}\t{text}\n" for at, (text, _) in enumerate(drawn[start : start + A_FILE])]
        (HERE / f"lines_{start // A_FILE}.txt").write_text("".join(lines))


def is_read(slot: str, value: Any, says: list[list[Any]]) -> bool:
    """Tell whether a slot's value is among what a reader says that a line tells; of values without a common spelling
    (a membership, a reason) only its kind."""
    kind = "property" if slot.startswith("attr:") else KINDS.get(slot, slot)
    if kind == "case":  # "one detail was wrong:", whatever follows
        return bool(says)
    same = [
        str(said).lower() for of, said in says if of == kind or any({of, kind} <= alike for alike in ALIKE)
    ]
    text = " ; ".join(same)
    numbers = [float(one.replace(",", "")) for one in re.findall(r"\d[\d,]*\.?\d*", text)]
    if not same:
        return False
    if isinstance(value, int) and not isinstance(value, bool):
        if slot in ("relation", "correction"):
            return ("before" in text) == (value == 1) and ("before" in text) != ("after" in text)
        scale = {"price": 100, "budget": 100, "total": 100, "rating": 10}.get(slot, 1)
        return value / scale in numbers or slot not in (
            "price",
            "budget",
            "total",
            "rating",
            "days",
            "quantity",
        )
    if slot == "importance":
        places = [text.find(one[:5]) for one in value]
        return -1 not in places and places == sorted(places)
    if slot == "must":
        return all(one.replace("_", " ").split()[-1][:4].lower() in text for one in value)
    if slot == "replacement":
        wanted = [one for _, one in value]
        return (
            ("money" in text or "refund" in text)
            if not wanted
            else all(
                one.lower() in text
                if isinstance(one, str)
                else bool({one / 100, one / 10, float(one)} & {*numbers})
                for one in wanted
            )
        )
    if isinstance(value, list):
        return all(str(one).lower() in text for one in value)
    day = re.fullmatch(r"(\d\d)-(\d\d)", str(value))
    if day:
        return MONTHS[int(day[1]) - 1].lower() in text and float(day[2]) in numbers
    named = slot.startswith("attr:") or slot in (
        "brand",
        "feature",
        "option",
        "was_brand",
        "was_feature",
        "thing",
    )
    return value.lower() in text or value.lower().split()[0] in text if named else True


def compare() -> None:
    """Print the share of lines of which a reader names every slot, and the others."""
    told = [json.loads(line) for line in (HERE / "told.jsonl").read_text().splitlines()]
    read = {one["n"]: one["says"] for one in map(json.loads, (HERE / "read.jsonl").read_text().splitlines())}
    missed = [
        (one["text"], slots, read[one["n"]])
        for one in told
        if (slots := [s for s, value in one["slots"].items() if not is_read(s, value, read[one["n"]])])
    ]
    print(f"{len(told)} lines, every slot read in {1 - len(missed) / len(told):.3f}")
    for line in missed:
        print(*line)


if __name__ == "__main__":
    {"draw": draw, "compare": compare}[sys.argv[1]]()
