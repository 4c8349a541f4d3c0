"""UNDERSTOOD with an endpoint's labels: the questions of a bank, with the customer's parser alone and with an endpoint
that says what those questions ask for of which the parser makes nothing.

    python experiments/llm_customer/labels.py tenth NAME.labels.json --ask requests.jsonl   # what it is asked
    python experiments/llm_customer/labels.py tenth NAME.labels.json --out labels.json

A file of answers takes the endpoint's place: {"digest of a request": "label, label"}, so that it says nothing of the
questions in a bank that nobody has opened, and never answers another question than it was asked.
"""

import argparse
import json
from collections import Counter
from pathlib import Path

from wordings import is_label, line_of

import ecomlab
from ecomlab.customer.llm import NONE
from ecomlab.files import write_json
from ecomlab.laws.understanding import BANKS, ask, questions
from ecomlab.seeding import digest
from ecomlab.task import Message


class Labeller:
    """Answers requests for labels from a file, notes those that it lacks, and gives lines back as they are."""

    def __init__(self, answers: dict[str, str]) -> None:
        self.answers = answers
        self.requests: dict[str, list[str]] = {}
        """System prompt and text of each request, by their digest."""

    def __call__(self, messages: list[Message]) -> str:
        system, user = (str(message["content"]) for message in messages)
        if not is_label(messages):
            return line_of(user)
        key = digest([system, user], size=8)
        self.requests[key] = [system, user]
        return self.answers.get(key, NONE)


def main() -> None:
    """Ask the bank twice, or write the requests."""
    chosen = arguments()
    given = json.loads(chosen.answers.read_text("utf-8")) if chosen.answers.exists() else {}
    shop, bank, labeller = ecomlab.load_shop(), questions(chosen.bank), Labeller(given)
    labelled = list(ask(bank, shop, chat=labeller))
    if chosen.ask:
        lines = [
            json.dumps({"request": key, "system": system, "user": user}, ensure_ascii=False)
            for key, (system, user) in labeller.requests.items()
            if key not in given
        ]
        chosen.ask.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        return
    plain = list(ask(bank, shop))
    pairs = Counter((before.exact, after.exact) for before, after in zip(plain, labelled, strict=True))
    found = {
        "bank": chosen.bank,
        "answers": chosen.answers.name,
        "asked": len(plain),
        "exact_without": sum(one.exact for one in plain) / len(plain),
        "exact_with": sum(one.exact for one in labelled) / len(labelled),
        "became_exact": pairs[False, True],
        "were_exact": pairs[True, False],
        "requests": len(labeller.requests),
        "without_answer": len(labeller.requests.keys() - given.keys()),
        "labelled_none": sum(given.get(key) == NONE for key in labeller.requests),
    }
    write_json(chosen.out, found)
    print(chosen.out.read_text("utf-8"))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bank", choices=BANKS)
    parser.add_argument("answers", type=Path)
    parser.add_argument("--ask", type=Path, help="write the requests that have no answer yet")
    parser.add_argument("--out", type=Path, default=Path("labels.json"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
