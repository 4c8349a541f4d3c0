"""Measures an endpoint as the customer's words: rewordings refused by reason, seconds, and the reference player's
success on the same tasks with both. Writes a line an episode, and goes on where it was stopped.

    make smollm2-server ARGS="--threads 1" &
    python experiments/llm_customer/measure.py experiments/llm_customer/smollm2.toml --minutes 20
    python experiments/llm_customer/measure.py honest   # the scripted paraphraser, without an endpoint

A model that answers in a file and not over HTTP takes three commands: what it is asked, what it is asked again after
refusals, and what came of it.

    python experiments/llm_customer/measure.py experiments/llm_customer/NAME.answers.jsonl --ask requests.jsonl

writes a request a line (key, system, user) for every answer that is missing; answers are lines of {"key", "answer"}.

`--recorded` asks nobody: what is on file is checked anew and counted again, so that a change of the check needs no run.
"""

import argparse
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from wordings import STYLES, Honest

import ecomlab
from ecomlab.customer.llm import AGAIN, Chat, Wording
from ecomlab.episode.play import finish
from ecomlab.evaluation.contestant import customer_identity
from ecomlab.evaluation.endpoint.chat import customer_from_toml
from ecomlab.files import write_json, write_text
from ecomlab.task import Message

HERE = Path(__file__).parent
FIRST = 40_000
"""Seed of the first task; no other experiment has these."""


def main() -> None:
    """Play until the time is over, then write the summary."""
    chosen = _arguments()
    if chosen.ask:
        return _ask(chosen)
    name = Path(chosen.customer).name.partition(".")[0]
    rows_file, summary = HERE / f"{name}.jsonl", HERE / f"{name}.json"
    rows = (
        [json.loads(line) for line in rows_file.read_text("utf-8").splitlines()] if rows_file.exists() else []
    )
    done = {(row["style"], row["env"], row["d"], row["seed"]) for row in rows}
    shop, until = ecomlab.load_shop(chosen.size), time.monotonic() + 60 * chosen.minutes
    customers = _customers(chosen.customer)
    if chosen.recorded:
        for row in rows:
            row |= _episode(row["env"], row["d"], row["seed"], shop, Wording(recorded=row["wording"]))
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        write_text(rows_file, "".join(f"{line}\n" for line in lines))
        until = -math.inf
    with rows_file.open("a", encoding="utf-8") as file:
        for seed, d, env, style in _cells(chosen.seeds, chosen.levels, list(customers)):
            if (style, env, d, seed) not in done and time.monotonic() < until:
                customer = customers[style](f"{env} {d} {seed}")
                rows.append({"style": style, **_episode(env, d, seed, shop, Wording(customer))})
                print(json.dumps(rows[-1], ensure_ascii=False), file=file, flush=True)
    known = (
        json.loads(summary.read_text("utf-8"))["customer"] if chosen.recorded else _identity(chosen.customer)
    )
    write_json(summary, {"customer": known, "found": _found(rows)})
    print(summary.read_text("utf-8"))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "customer", help="a TOML file with an endpoint's settings, a file of answers, or: honest"
    )
    parser.add_argument("--ask", type=Path, help="write the requests that a file of answers lacks")
    parser.add_argument("--recorded", action="store_true", help="check what is on file anew, and ask nobody")
    parser.add_argument(
        "--minutes", type=float, default=600.0, help="time after which no further episode begins"
    )
    parser.add_argument("--seeds", type=int, default=2, help="tasks of every environment and level")
    parser.add_argument("--levels", type=int, nargs="+", default=[2, 8])
    parser.add_argument("--size", type=int, default=1_000, help="products of the generated shop")
    return parser.parse_args()


def _customers(name: str) -> dict[str, Callable[[str], Chat]]:
    """Make the customer of an episode, by style; the episode is named as in a request's key."""
    if name == "honest":
        return {style: lambda _, style=style: Honest(style) for style in STYLES}  # type: ignore[misc]
    if name.endswith(".toml"):
        endpoint = customer_from_toml(Path(name))
        return {"endpoint": lambda _: endpoint}
    file = Path(name)
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []
    answers = {line["key"]: line["answer"] for line in lines}
    return {"written": lambda episode: _Written(episode, answers)}


def _identity(name: str) -> Any:
    if name.endswith(".jsonl"):
        return f"answers in {Path(name).name}"
    _, make = next(iter(_customers(name).items()))
    return customer_identity(make(""))["customer"]


class _Written:
    """An endpoint for one episode whose answers lie in a file, by the episode, the number of the line in it, and
    whether it is asked again. A request that has none is noted, and answered with nothing, which is refused."""

    def __init__(self, episode: str, answers: Mapping[str, str]) -> None:
        self._episode, self._answers, self._lines = episode, answers, 0
        self.missing: list[dict[str, str]] = []

    def __call__(self, messages: list[Message]) -> str:
        system, user = (str(message["content"]) for message in messages)
        again = "\nYou have written: " in user
        self._lines += not again
        key = f"{self._episode} {self._lines}{AGAIN if again else ''}"
        if key not in self._answers:
            self.missing.append({"key": key, "system": system, "user": user})
        return self._answers.get(key, "")


def _ask(chosen: argparse.Namespace) -> None:
    """Write the requests of the chosen cells that have no answer yet. What the customer means does not hang on its
    words, so that the answers can be put in afterwards."""
    shop, make = ecomlab.load_shop(chosen.size), _customers(chosen.customer)["written"]
    with chosen.ask.open("w", encoding="utf-8") as file:
        for seed, d, env, _ in _cells(chosen.seeds, chosen.levels, ["written"]):
            customer = make(f"{env} {d} {seed}")
            _episode(env, d, seed, shop, Wording(customer))
            for request in customer.missing:  # type: ignore[attr-defined]
                print(json.dumps(request, ensure_ascii=False), file=file)


def _cells(seeds: int, levels: list[int], styles: list[str]) -> Iterator[tuple[int, int, str, str]]:
    """Yield (seed, level, environment, style), so that a run that is cut short has something of everything."""
    for seed in range(FIRST, FIRST + seeds):
        for d in levels:
            for env in ecomlab.ENVIRONMENTS:
                yield from ((seed, d, env, style) for style in styles)


def _episode(env: str, d: int, seed: int, shop: ecomlab.Shop, wording: Wording) -> dict[str, Any]:
    task, make = ecomlab.make_task(env, d, seed, shop), ecomlab.ENVIRONMENTS[env].reference_player
    plain = ecomlab.play(make(shop), task, shop)
    worded = finish(make(shop), ecomlab.Episode(task, shop, wording=wording))
    return {
        "env": env,
        "d": d,
        "seed": seed,
        "template": [plain.score.value, plain.score.correct, plain.score.unscored],
        "worded": [worded.score.value, worded.score.correct, worded.score.unscored],
        "replays": ecomlab.replay(worded, shop) == worded.score,
        "wording": worded.wording,
    }


def _found(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Summarize each style's rows."""
    styles = dict.fromkeys(row["style"] for row in rows)
    return {style: _summary([row for row in rows if row["style"] == style]) for style in styles}


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    said = [one for row in rows for one in row["wording"] if one["task"] != "label"]
    answered = [one["seconds"] for one in said if one["answer"] is not None]
    gaps = [row["worded"][0] - row["template"][0] for row in rows]
    lines = [
        one for one in _lines(said) if one[0]["answer"] != one[0]["given"]
    ]  # to repeat one shows nothing
    used = [tries for tries in lines if tries[-1]["used"]]
    refusals = {
        when: dict(Counter(tries[at]["refused"] for tries in lines if tries[at]["refused"]).most_common())
        for when, at in (("at_first", 0), ("in_the_end", -1))
    }
    return {
        "episodes": len(rows),
        "unscored": sum(row["worded"][2] for row in rows),
        "replayed": sum(row["replays"] for row in rows),
        "correct_with_templates": sum(row["template"][1] for row in rows),
        "correct_with_endpoint": sum(row["worded"][1] for row in rows),
        "reward_difference": float(np.mean(gaps)) if gaps else None,
        "reward_difference_95": _interval(gaps),
        "lines": len(_lines(said)),
        "repeated_word_for_word": len(_lines(said)) - len(lines),
        "reworded": len(lines),
        "used": len(used),
        "used_at_first": sum(len(tries) == 1 for tries in used),
        "refused": refusals,
        "share_used": len(used) / len(lines) if lines else None,
        "labels_asked": sum(one["task"] == "label" for row in rows for one in row["wording"]),
        "seconds_a_request_median": float(np.median(answered)) if answered else None,
    }


def _lines(said: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Gather the exchanges about each line: the first, and the one after a refusal."""
    found: list[list[dict[str, Any]]] = []
    for one in said:
        if one["task"].endswith(AGAIN):
            found[-1].append(one)
        else:
            found.append([one])
    return found


def _interval(gaps: list[float]) -> list[float] | None:
    """Compute the 95% interval of a mean of paired differences; None where they are too few, a point where all are
    equal."""
    if len(gaps) < 2 or max(gaps) == min(gaps):
        return None if len(gaps) < 2 else [gaps[0], gaps[0]]
    low, high = stats.t.interval(0.95, len(gaps) - 1, np.mean(gaps), stats.sem(gaps))
    return [float(low), float(high)]


if __name__ == "__main__":
    main()
