"""How often a second reader, who had not seen the labels, labels a question as its writer did.

`python experiments/labels/agree.py` compares the files beside it with the banks. A reader was shown the texts in random
order and the table of slots alone, and wrote "attr|option" where a text may ask for either.
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from ecomlab.laws.understanding import questions


def agrees(question: dict[str, Any], label: dict[str, Any]) -> bool:
    """Tell whether a second label means the same slots, in any order, and says of the open part what the first does."""
    left = [set(entry.split("|")) for entry in label["slots"]]
    for slot in question["slots"]:
        fitting = sorted((entry for entry in left if slot in entry), key=len)
        if not fitting:
            return False
        left.remove(fitting[0])
    return not left and question["open"] == label["open"]


def main() -> None:
    """Print the share of equal labels by bank and form."""
    for path in sorted(Path(__file__).parent.glob("*.jsonl")):
        shares = defaultdict(list)
        for question, line in zip(questions(path.stem), path.read_text().splitlines(), strict=True):
            same = agrees(question, json.loads(line))
            for group in ("all", question["form"]):
                shares[group].append(same)
        print(path.stem, *(f"{name} {sum(s) / len(s):.3f} of {len(s)};" for name, s in shares.items()))


if __name__ == "__main__":
    main()
