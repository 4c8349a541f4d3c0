"""The predictions of REGISTERED.md beside what was found, by fixed rules.

A predicted difference *held* if the 95% interval has it and not zero, is *open* if it has both, has the right *sign* if
the interval is on the right side of zero without it, and did not hold otherwise. One that is predicted to be within a
bound of zero held if the interval is within; it did not if the interval leaves out the bounds, or zero and the mean the
bounds; it is open otherwise. *No difference* is not rejected while the interval has zero. Orders and sums are judged by
the means alone: *three quarters* is .65 to .85.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pandas as pd
from shown import RECOVERY, interval, number

Made = Mapping[str, pd.DataFrame]


@dataclass(frozen=True)
class Outcome:
    """One prediction, what was found, and how it came out."""

    what: str
    predicted: str
    found: str
    outcome: str


CONTRASTS = {
    ("adaptive - single steps", "novice"): 0.06,
    ("adaptive - static-4-6", "novice"): -0.04,
    ("adaptive - static-0-6", "novice"): -0.03,
    ("adaptive - static-4-6", "singles"): 0.02,
    ("prefix - adaptive", "singles"): 0.03,
}
"""Primary contrasts with a predicted difference."""
NEAR = {
    ("prefix - adaptive", "novice"): 0.03,
    ("adaptive - single steps", "singles"): 0.02,
    ("adaptive - static-0-6", "singles"): 0.02,
}
"""Primary contrasts that were predicted to be within a bound of zero."""
SIMULATED = {"adaptive - single steps": -0.02, "adaptive - static-4-6": -0.06, "adaptive - static-0-6": -0.05}
"""What the simulation said, from novice, where the gates were followed."""
ORDER = ("target", "skill-wise", "adaptive-narrow", "skill-wise-shuffled")
"""The other arms from novice, best first."""
SLOPE = 0.01
"""A bound of the slope of the environment held out, a doubling."""


def outcomes(made: Made) -> pd.DataFrame:
    """Tabulate every prediction, of the tables that analyse.py makes."""
    found = [*_contrasts(made), *_arms(made), *_others(made), *_recovery(made)]
    return pd.DataFrame([vars(one) for one in found])


def difference(row: pd.Series, predicted: float) -> str:
    """Judge a predicted difference by an interval."""
    low, high = row["low"], row["high"]
    if low * high > 0 and low * predicted > 0:
        return "held" if low <= predicted <= high else "sign"
    return "open" if low <= predicted <= high else "not held"


def near(row: pd.Series, bound: float) -> str:
    """Judge, by an interval, a difference that is predicted to be within a bound of zero."""
    if -bound <= row["low"] and row["high"] <= bound:
        return "held"
    beyond = abs(row["difference"]) > bound and row["low"] * row["high"] > 0
    return "not held" if beyond or row["low"] > bound or row["high"] < -bound else "open"


def judged(holds: bool) -> str:
    return "held" if holds else "not held"


def _contrasts(made: Made) -> Iterator[Outcome]:
    table = made["contrasts"]
    rows = {(r.contrast, r.starter): r for _, r in table[table.holm.notna()].iterrows()}
    for (contrast, starter), value in CONTRASTS.items():
        row, predicted = rows[contrast, starter], f"{value:+.2f}".replace("0.", ".")
        if starter == "novice" and contrast in SIMULATED:
            predicted += f" (simulation {SIMULATED[contrast]:+.2f})".replace("0.", ".")
        yield Outcome(f"{contrast}, from {starter}", predicted, interval(row), difference(row, value))
    for (contrast, starter), bound in NEAR.items():
        row, predicted = rows[contrast, starter], f"within {number(bound)} of zero"
        yield Outcome(f"{contrast}, from {starter}", predicted, interval(row), near(row, bound))


def _arms(made: Made) -> Iterator[Outcome]:
    success = made["success"].set_index(["starter", "levels", "decoding", "arm"]).sort_index().success
    order = success["novice", "0-6", "sampled"][[*ORDER]].sort_values(ascending=False)
    right = [*order.index] == [*ORDER]
    yield Outcome("other arms, from novice, best first", ", ".join(ORDER), _listed(order), judged(right))
    greedy = success["novice", "0-6", "greedy"][["single steps", "start"]]
    fell = greedy["single steps"] < greedy["start"]
    yield Outcome("single steps, from novice, greedy", "falls below its start", _listed(greedy), judged(fell))
    far = success["novice", "7-8", "sampled"].drop("start").sort_values(ascending=False)
    schedules = [arm for arm in far.index if not arm.startswith("imitate")]
    first = judged(far.index[0] == "static-4-6")
    first += ", but first of the schedules" * (first == "not held" and schedules[0] == "static-4-6")
    yield Outcome("levels 7 and 8, from novice", "static-4-6 first", _listed(far.head(3)), first)
    for starter in ("novice", "singles"):
        mine = success[starter, "0-6", "sampled"].drop("start").sort_values(ascending=False)
        taught = mine[mine.index == "imitate-compositions"]
        if len(taught):
            best = mine[~mine.index.str.startswith("imitate")].head(1)
            above = taught.item() > best.item()
            predicted = "imitate-compositions above every arm of reinforcement learning"
            yield Outcome(
                f"imitation, from {starter}", predicted, _listed(pd.concat([taught, best])), judged(above)
            )


def _others(made: Made) -> Iterator[Outcome]:
    table = made["contrasts"].query("starter == 'novice' and decoding == 'sampled'")
    by = table[table.contrast == "adaptive - static-4-6"].set_index("levels").difference
    equal, steps = (by[f"0, 2, 4, 6, equal {what}"] for what in ("tokens", "steps"))
    found = f"{number(equal, True)}, at equal steps {number(steps, True)}"
    name = "adaptive - static-4-6, from novice, equal tokens"
    yield Outcome(name, "closer than at equal steps", found, judged(abs(equal) < abs(steps)))
    tokens = made["curves"].query("starter == 'novice'").groupby(["arm", "seed"]).tokens.max()
    share = tokens["adaptive"].mean() / tokens["static-4-6"].mean()
    yield Outcome(
        "tokens of adaptive, of static-4-6's", "three quarters", number(share), judged(0.65 <= share <= 0.85)
    )
    if "environments" in made:
        row = (
            made["environments"]
            .query("table == 'slopes' and decoding == 'greedy' and what == 'slope'")
            .iloc[0]
        )
        predicted = f"within {number(SLOPE)} of zero a doubling"
        yield Outcome("slope of the environment held out", predicted, interval(row), near(row, SLOPE))
    cascades = made["mended"].query("level == 1").set_index(["contrast", "starter"])
    for starter in ("novice", "singles"):
        row = cascades.loc["adaptive - static-4-6", starter]
        same = "not rejected" if row["low"] <= 0 <= row["high"] else "not held"
        yield Outcome(f"mended, adaptive - static-4-6, from {starter}", "no difference", interval(row), same)
        arms = (
            made["mended_arms"].query("level == 1 and starter == @starter").set_index("contrast").difference
        )
        ends = (f"{number(arms[name], True)} ({name})" for name in (arms.idxmin(), arms.idxmax()))
        what = f"mended, each trained policy, from {starter}"
        yield Outcome(what, "more than its starter", " to ".join(ends), judged(bool((arms > 0).all())))


def _recovery(made: Made) -> Iterator[Outcome]:
    if "recovery" not in made:
        return
    table = made["mended"].query("level == 1 and contrast == @RECOVERY").set_index("starter")
    if "novice" in table.index:
        row = table.loc["novice"]
        yield Outcome(f"mended, {RECOVERY}, from novice", "+.10", interval(row), difference(row, 0.1))
        row = made["recovery"].query("starter == 'novice' and decoding == 'sampled'").iloc[0]
        yield Outcome(f"{RECOVERY}, from novice", "within .020 of zero", interval(row), near(row, 0.02))
    if "singles" in table.index:
        row = table.loc["singles"]
        predicted = "within .020 of zero"
        yield Outcome(f"mended, {RECOVERY}, from singles", predicted, interval(row), near(row, 0.02))


def _listed(values: "pd.Series[float]") -> str:
    return ", ".join(f"{arm} {number(value)}" for arm, value in values.items())
