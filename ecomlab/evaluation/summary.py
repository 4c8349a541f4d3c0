"""Statistics of an evaluation: success with intervals, pass^k, format errors, tokens, power."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ecomlab.customer.llm import FAILED
from ecomlab.evaluation.contestant import Usage
from ecomlab.evaluation.endpoint.settings import Prices
from ecomlab.evaluation.transcript import Transcript, flat

CONFIDENCE, POWER = 0.95, 0.80
Row = Mapping[str, Any]
MEANS = ("reward", "reward_task", "reward_efficiency", "reward_hallucination", "turns", "questions")


class Ledger:
    """Requests, tokens and cost by role, of all played episodes, retries included."""

    def __init__(
        self, prices: Mapping[str, Prices] | None = None, transcripts: Iterable[Transcript] = ()
    ) -> None:
        self.prices = dict(prices or {})
        self.used: dict[str, Usage] = {}
        for transcript in transcripts:
            self.add(transcript)

    def add(self, transcript: Transcript) -> None:
        for role, used in transcript.usage.items():
            self.used[role] = self.used.get(role, Usage()) + used

    @property
    def cost(self) -> str:
        """Cost as text: "1.25 USD"; "" if no role has prices and reported tokens."""
        costs: dict[str, float] = defaultdict(float)
        for role, used in self.used.items():
            if role in self.prices and used.is_reported:
                costs[self.prices[role].currency] += self.prices[role].cost(used)
        return " + ".join(f"{cost:.2f} {currency}" for currency, cost in costs.items())

    def to_json(self) -> dict[str, dict[str, Any]]:
        """Write the counts of each role, with its cost if it has prices and reported tokens."""
        found = {role: asdict(used) for role, used in sorted(self.used.items())}
        for role, prices in self.prices.items():
            if role in found and self.used[role].is_reported:
                found[role] |= {"cost": round(prices.cost(self.used[role]), 6), "currency": prices.currency}
        return found


# --- shares of tasks that are played one or several times ---


def share_interval(trials: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Bound a success rate from the outcomes (1 or 0) of each task's trials; NaN without any.

    Clopper and Pearson's interval for the effective number of episodes, because the trials of a task are correlated
    (Korn and Graubard, 1998). With one trial per task it is the exact interval.
    """
    from scipy.stats import beta

    trials = [outcomes for outcomes in trials if len(outcomes)]
    if not trials:
        return math.nan, math.nan
    count = sum(map(len, trials))
    share, worth = sum(map(sum, trials)) / count, effective_count(trials)
    tail = (1 - CONFIDENCE) / 2
    won, lost = share * worth, (1 - share) * worth
    low = float(beta.ppf(tail, won, lost + 1)) if won else 0.0
    high = float(beta.ppf(1 - tail, won + 1, lost)) if lost else 1.0
    return low, high


def effective_count(trials: Sequence[Sequence[float]]) -> float:
    """Compute the number of independent episodes with as much information as these trials: between the number of tasks
    and that of episodes."""
    sizes = np.array([len(outcomes) for outcomes in trials])
    won = np.array([sum(outcomes) for outcomes in trials], dtype=float)
    tasks, count = len(sizes), int(sizes.sum())
    share = won.sum() / count
    if tasks == count or tasks < 2 or share in (0.0, 1.0):
        return float(tasks)
    variance = ((won - share * sizes) ** 2).sum() / count**2 * tasks / (tasks - 1)
    return float(min(count, max(tasks, share * (1 - share) / variance))) if variance else float(count)


def pass_hat(trials: Sequence[Sequence[float]], k: int) -> float:
    """Estimate, without bias, the probability that k trials of a task all succeed, over tasks with at least k trials.

    For c successes in n trials it is C(c, k) / C(n, k). NaN if no task has k trials.
    """
    known = [outcomes for outcomes in trials if len(outcomes) >= k]
    shares = [math.comb(round(sum(outcomes)), k) / math.comb(len(outcomes), k) for outcomes in known]
    return sum(shares) / len(shares) if shares else math.nan


def flip_rate(trials: Sequence[Sequence[float]]) -> float:
    """Share of the tasks with several trials that succeed in some and fail in others; NaN without such tasks."""
    several = [outcomes for outcomes in trials if len(outcomes) > 1]
    return sum(0 < sum(o) < len(o) for o in several) / len(several) if several else math.nan


def smallest_difference(count: float, share: float = 0.5) -> float:
    """Compute the smallest difference in success that two samples of `count` episodes detect with a power of 80%, if
    success is about `share`. Pairing by task detects smaller ones as far as the outcomes agree."""
    from scipy.stats import norm

    if count <= 0:
        return math.nan
    reach = norm.ppf((1 + CONFIDENCE) / 2) + norm.ppf(POWER)
    return float(min(1.0, reach * math.sqrt(2 * share * (1 - share) / count)))


# --- the report ---

DOUBTS = {
    "calls_in_text": "calls in text",
    "only_reasoning": "only reasoning",
    "filtered": "ended by the content filter",
    "unasked": "ended at a token limit before the first answer",
}
"""Counts of episodes that may reflect the set-up rather than the model, and their names in words."""


def summary_of(transcripts: Iterable[Transcript], trials: int = 1) -> dict[str, Any]:
    """Summarize episodes: `cells` (a row per environment and level), `environments`, and `all`.

    Rows have the columns of `summarize` after `env` and `d`; d is None for several levels. `reasons` has the commonest
    reason of each class of unscored episodes. `calls_in_text`, `only_reasoning` (answers without text or calls),
    `filtered` (by the endpoint's content filter) and `unasked` (the opening alone exceeds a token limit) count episodes
    that may reflect the set-up rather than the model. `customer` counts the requests to an endpoint that words the
    customer, and the refused ones by reason.
    """
    rows, said = list[Row](), defaultdict[str, Counter[str]](Counter)
    doubts, exchanges, refused, why = Counter[str](), 0, Counter[str](), Counter[str]()
    for transcript in transcripts:
        rows.append(flat(transcript))
        doubts.update(_doubts(transcript))
        exchanges += len(transcript.wording)
        refused.update(one["refused"] for one in transcript.wording)
        why.update(one.get("detail", "") for one in transcript.wording if one["refused"] == FAILED)
        if transcript.unscored:
            said[transcript.unscored][transcript.why_unscored] += 1
    cells: dict[tuple[str, int | None], list[Row]] = defaultdict(list)
    for row in rows:
        cells[row["env"], row["d"]].append(row)
    envs = list(dict.fromkeys(env for env, _ in cells))
    levels = {
        (env, d): cells[env, d] for env, d in sorted(cells, key=lambda c: (envs.index(c[0]), c[1] or 0))
    }
    whole = {(env, None): [row for row in rows if row["env"] == env] for env in envs}
    return {
        "cells": [{"env": env, "d": d, **summarize(found, trials)} for (env, d), found in levels.items()],
        "environments": [
            {"env": env, "d": None, **summarize(found, trials)} for (env, _), found in whole.items()
        ],
        "all": {"env": "all", "d": None, **summarize(rows, trials)},
        "reasons": {kind: said[kind].most_common(1)[0][0] for kind in sorted(said)},
        **{name: doubts[name] for name in DOUBTS},
        "customer": {
            "exchanges": exchanges,
            "refused": _counted(refused.elements()),
            "no_answer": next((said for said, _ in why.most_common(1)), ""),
        },
    }


def _doubts(transcript: Transcript) -> list[str]:
    notes, used = transcript.notes, transcript.usage.get("agent")
    cut = bool({"length", "context"} & set(transcript.faults))
    seen = {
        "calls_in_text": "calls_in_text" in notes,
        "only_reasoning": "only_reasoning" in notes,
        "filtered": "content_filter" in notes.get("finish", {}),
        "unasked": cut and used is not None and not used.requests,
    }
    return [name for name in DOUBTS if seen[name]]


def summarize(rows: Sequence[Row], trials: int = 1) -> dict[str, Any]:
    """Summarize the episodes of one group.

    `success` with `low` and `high` (95%) is over scored episodes, `success_of_all` counts unscored ones as failures;
    means are over episodes that have the value; `learned` is the number of slots learned per question; `pass_k` has the
    estimates for 1 to `trials`; `detectable` is the smallest difference in success that the sample detects.
    """
    scored = [row for row in rows if not row["unscored"]]
    outcomes: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for row in scored:
        outcomes[row["env"], row["d"], row["seed"]].append(row["correct"])
    tasks = list(outcomes.values())
    low, high = share_interval(tasks)
    won = sum(row["correct"] for row in scored)
    questions = sum(row["questions"] for row in scored if not math.isnan(row["questions"]))
    learned = sum(row["learned"] for row in scored if not math.isnan(row["learned"]))
    return {
        "episodes": len(rows),
        "tasks": len({(row["env"], row["d"], row["seed"]) for row in rows}),
        "success": won / len(scored) if scored else math.nan,
        "low": low,
        "high": high,
        "success_of_all": won / len(rows) if rows else math.nan,
        "detectable": smallest_difference(effective_count(tasks), _nearest_half(low, high))
        if tasks
        else math.nan,
        "pass_k": [pass_hat(tasks, k) for k in range(1, trials + 1)],
        "flips": flip_rate(tasks),
        **{name: _mean(row[name] for row in scored) for name in MEANS},
        "learned": learned / questions if questions else math.nan,
        "ends": _counted(row["end"] for row in scored),
        "faults": _counted(fault for row in rows for fault in row["faults"].split("; ")),
        "unscored": _counted(row["unscored"] for row in rows),
        "tokens": _mean(row.get("agent_completion", math.nan) for row in scored),
        "prompt_tokens": _mean(row.get("agent_prompt", math.nan) for row in scored),
    }


def _nearest_half(low: float, high: float) -> float:
    """Return the value within the bounds at which a share varies most."""
    return min(high, max(low, 0.5))


def _mean(values: Iterable[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def _counted(names: Iterable[str | None]) -> dict[str, int]:
    return dict(sorted(Counter(name for name in names if name).items()))
