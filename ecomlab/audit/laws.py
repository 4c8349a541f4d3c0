"""The twelve laws by name: statement, measure, judge."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from ecomlab.audit.certificate import Row
    from ecomlab.audit.counterfactual import Comparison
    from ecomlab.audit.leaks import Leak

CONFIDENCE = 0.999
FAIR, FAIR_CHAIN = 0.99, 0.97
"""Least share of the fair player, with one goal a task and with several in a row."""
BLIND = 0.05
"""Largest share of a blind player."""
HARDER = 0.2
"""Least fall of the noisy player's success from d = 0 to d = 12."""


class State(StrEnum):
    """State of a law by what was measured."""

    KEPT = "kept"
    BROKEN = "broken"
    NOT_SHOWN = "not shown"
    """The sample is too small, or the estimate falls short of the threshold by no more than chance allows."""
    NOT_MEASURED = "not measured yet"


@dataclass(frozen=True)
class Finding:
    """One measurement's word on one law."""

    law: str
    env: str
    state: State
    why: str
    pooled: bool = False
    """Over all difficulties: what decides where nothing is broken."""

    def __str__(self) -> str:
        return f"{self.law}: {self.why}"


@dataclass(frozen=True)
class Evidence:
    """The measurements of a certificate."""

    rows: "Sequence[Row]"
    leaks: "Sequence[Leak]" = ()
    comparisons: "Sequence[Comparison]" = ()


Judge = Callable[["Evidence"], Iterator[tuple[str, State, str, bool]]]
"""From what was measured: environment, state, why, pooled."""


@dataclass(frozen=True)
class Law:
    """One law. Without a judge it is held by the tests that `measure` names, or not measured yet."""

    name: str
    statement: str
    measure: str
    judge: Judge | None = None


def enough(threshold: float) -> int:
    """Tasks of which a share of at least `threshold` can be shown: if all are right, the bound lies above it. In full
    tens: 230 for 97%, 690 for 99%."""
    return 10 * math.ceil(math.log(1 - CONFIDENCE) / math.log(threshold) / 10)


def bounds(share: float, n: int) -> tuple[float, float]:
    """One-sided 99.9% Clopper-Pearson bounds of a share of `n`."""
    if n == 0:
        return 0.0, 1.0
    found = stats.binomtest(round(share * n), n).proportion_ci(2 * CONFIDENCE - 1, "exact")
    return float(found.low), float(found.high)


def at_least(share: float, n: int, threshold: float) -> State:
    """Judge a share that is to be at least `threshold`."""
    if bounds(share, n)[1] < threshold:
        return State.BROKEN
    return State.KEPT if share >= threshold and n >= enough(threshold) else State.NOT_SHOWN


def at_most(share: float, n: int, threshold: float, by_chance: bool = False) -> State:
    """Judge a share that is to be at most `threshold`; `by_chance`: it may well be exactly that."""
    if bounds(share, n)[0] > threshold:
        return State.BROKEN
    within = by_chance or share <= threshold
    return State.KEPT if within and n >= enough(1 - max(threshold, BLIND)) else State.NOT_SHOWN


def _samples(rows: "Sequence[Row]") -> "Iterator[tuple[str, Row, bool]]":
    """(where, row, pooled): every cell, and all cells of an environment as one."""
    for env in dict.fromkeys(row.env for row in rows):
        mine = [row for row in rows if row.env == env]
        if len(mine) > 1:
            yield from ((f"{env} at d = {row.d}", row, False) for row in mine)
            yield f"{env}, all difficulties", _pooled(mine), True
        else:
            yield f"{env} at d = {mine[0].d}", mine[0], True


def _pooled(rows: "Sequence[Row]") -> "Row":
    """The cells of one environment as one row, of what is in all of them."""
    seeds, others = [row.seeds for row in rows], [row.others for row in rows]

    def shares(kind: str) -> dict[str, float]:
        first, *rest = (getattr(row, kind) for row in rows)
        names = [name for name in first if all(name in more for more in rest)]
        return {n: float(np.average([getattr(row, kind)[n] for row in rows], weights=others)) for n in names}

    return replace(
        rows[0],
        seeds=sum(seeds),
        others=sum(others),
        jobs=max(row.jobs for row in rows),
        solver=float(np.average([row.solver for row in rows], weights=seeds)),
        fair=float(np.average([row.fair for row in rows], weights=seeds)),
        chance=float(np.average([row.chance for row in rows], weights=others)),
        blind=shares("blind"),
        positional=shares("positional"),
        rewards={
            name: _merged([row.rewards[name] for row in rows])
            for name in rows[0].rewards
            if all(name in row.rewards for row in rows)
        },
        failed=_merged([row.failed for row in rows]),
    )


def _merged(parts: Sequence[tuple[float, float, int]]) -> tuple[float, float, int]:
    """(mean, standard deviation, n) of several samples taken together."""
    n = sum(part[2] for part in parts)
    if n < 2:
        return 0.0, 0.0, n
    mean = sum(part[0] * part[2] for part in parts) / n
    squares = sum((max(part[2], 1) - 1) * part[1] ** 2 + part[2] * (part[0] - mean) ** 2 for part in parts)
    return mean, float(np.sqrt(squares / (n - 1))), n


def _solvable(evidence: Evidence) -> Iterator[tuple[str, State, str, bool]]:
    for where, row, pooled in _samples(evidence.rows):
        state = at_least(row.solver, row.seeds, FAIR) if row.solver == 1 else State.BROKEN
        yield (
            row.env,
            state,
            f"the solver is correct on {row.solver:.1%} of {where}, which is to be all",
            pooled,
        )


def _fair(evidence: Evidence) -> Iterator[tuple[str, State, str, bool]]:
    for where, row, pooled in _samples(evidence.rows):
        state = at_least(row.fair, row.seeds, FAIR if row.jobs == 1 else FAIR_CHAIN)
        yield row.env, state, f"the fair player is correct on {row.fair:.1%} of {where}", pooled


def _not_gameable(evidence: Evidence) -> Iterator[tuple[str, State, str, bool]]:
    for where, row, pooled in _samples(evidence.rows):
        for kind, group, most in (("blind", row.blind, BLIND), ("positional", row.positional, row.chance)):
            for name, share in group.items():
                state = at_most(share, row.others, most, by_chance=kind == "positional")
                why = f"{kind} player {name!r} is correct on {share:.1%} of {where}, allowed {most:.1%}"
                yield row.env, state, why, pooled
        for name, reward in row.rewards.items():
            why = f"{name} earns {reward[0]:.2f}, failing honestly {row.failed[0]:.2f}, at {where}"
            yield row.env, State.BROKEN if _pays(reward, row.failed) else State.KEPT, why, pooled


def _pays(reward: tuple[float, float, int], failed: tuple[float, float, int]) -> bool:
    """An attacker's mean reward lies above that of honest failures (one-sided Welch test)."""
    (mean, sd, n), (base, spread, count) = reward, failed
    if count < 2:
        return False
    gap, error = mean - base, float(np.hypot(sd / np.sqrt(n), spread / np.sqrt(count)))
    return gap > 0 and (error == 0 or gap / error > stats.t.ppf(CONFIDENCE, min(n, count) - 1))


def _silent(evidence: Evidence) -> Iterator[tuple[str, State, str, bool]]:
    for leak in evidence.leaks:
        why = f"{leak.kind} tells what is wanted in {leak.env}: AUC {leak.auc:.2f}, 99% above {leak.low:.2f}"
        yield leak.env, State.BROKEN if leak.leaks else State.KEPT, why, False
    for env in dict.fromkeys(one.env for one in evidence.comparisons):
        mine = [one for one in evidence.comparisons if one.env == env]
        for one in mine:
            for difference in one.differences:
                why = f"what is withheld shows before the customer is asked in {env} at d = {one.d}, {difference}"
                yield env, State.BROKEN, why, False
        pairs = sum(one.pairs for one in mine)
        state = State.KEPT if pairs >= enough(FAIR_CHAIN) else State.NOT_SHOWN
        yield env, state, f"{pairs} pairs of tasks were compared in {env}", True


def _harder(evidence: Evidence) -> Iterator[tuple[str, State, str, bool]]:
    for env in dict.fromkeys(row.env for row in evidence.rows):
        rows = sorted((row for row in evidence.rows if row.env == env), key=lambda row: row.d)
        by_level = {row.d: row.noisy for row in rows}
        levels = np.repeat([row.d for row in rows], [row.seeds for row in rows])
        wins = np.concatenate([_wins(row.noisy, row.seeds) for row in rows])
        if not {0, 12} <= by_level.keys() or len(wins) < enough(FAIR_CHAIN):
            yield env, State.NOT_SHOWN, f"too few tasks from d = 0 to 12 of {env}", True
            continue
        falls = wins.std() > 0 and stats.pearsonr(levels, wins, alternative="less").pvalue < 1 - CONFIDENCE
        state = State.KEPT if falls else State.BROKEN
        yield env, state, f"the noisy player's success does not fall with d in {env}", True
        fall = by_level[0] - by_level[12]
        state = State.KEPT if fall >= HARDER else State.BROKEN
        yield env, state, f"the noisy player's success falls by {fall:.2f} from d = 0 to 12 in {env}", True


def _wins(share: float, n: int) -> np.ndarray:
    won = round(share * n)
    return np.concatenate([np.ones(won), np.zeros(n - won)])


LAWS = {
    law.name: law
    for law in (
        Law(
            "SOLVABLE",
            "A solver that knows the hidden truth and acts through the agent's tools is correct on every task.",
            "certificate: the solver's share, every miss listed",
            _solvable,
        ),
        Law(
            "FAIR",
            "A player that sees what a model sees is correct on 99% of tasks, on 97% where one chains several goals.",
            "certificate: the fair player's share, every miss listed; contract: openings are read back",
            _fair,
        ),
        Law(
            "NOT GAMEABLE",
            "Who does not listen is correct on 5% at most, who picks by place as often as chance has it, and neither "
            "earns more than an honest failure.",
            "certificate: attackers made from the environment's tools, and the noisy player's failures",
            _not_gameable,
        ),
        Law(
            "BY EFFECT",
            "Verdicts come from the end state of the world; whatever is handed in gets one, never an exception.",
            "contract: answers of any form; tests of verifiers and of random actions",
        ),
        Law(
            "ONE RECORD",
            "Opening, goal, tools and verifier read the same task; no placeholder reaches a message.",
            "contract: messages, tasks through JSON",
        ),
        Law(
            "REPRODUCIBLE",
            "A key gives the same bytes in every process, and a recorded episode replays to its score.",
            "contract: golden digests, replays; a test in processes of other locales and hash seeds",
        ),
        Law(
            "ISOLATED",
            "Episodes share nothing that any of them changes, interleaved or in threads.",
            "contract: interleaved and threaded episodes",
        ),
        Law(
            "SILENT",
            "Nothing that the agent can read before it asks tells what is withheld or wanted.",
            "certificate: counterfactuals compared by every tool that looks, a classifier of ids and places; contract: "
            "declarations are true",
            _silent,
        ),
        Law(
            "HARDER",
            "The noisy player succeeds less as d rises, by at least 0.2 from d = 0 to 12.",
            "certificate: a one-sided trend test at p < .001, and the fall",
            _harder,
        ),
        Law(
            "BROKEN IS NOT WRONG",
            "What fails on our side leaves an episode unscored: counted and reported, never a reward.",
            "contract: players and worlds that break",
        ),
        Law(
            "UNDERSTOOD",
            "The customer understands questions as people and language models ask them.",
            State.NOT_MEASURED,
        ),
        Law(
            "TALKED THROUGH",
            "A courteous player, who asks naturally and confirms, is correct on 97% of tasks at every d.",
            State.NOT_MEASURED,
        ),
    )
}


def findings(evidence: Evidence) -> list[Finding]:
    """Judge every law that has a judge."""
    return [
        Finding(law.name, *found)
        for law in LAWS.values()
        if law.judge is not None
        for found in law.judge(evidence)
    ]


def broken_laws(
    rows: "Sequence[Row]", leaks: "Sequence[Leak]" = (), comparisons: "Sequence[Comparison]" = ()
) -> list[str]:
    """Broken laws in words, empty when none is. Shares are judged by exact binomial bounds at 99.9%."""
    evidence = Evidence(rows, leaks, comparisons)
    return [str(finding) for finding in findings(evidence) if finding.state is State.BROKEN]


def states(evidence: Evidence) -> dict[str, dict[str, State]]:
    """By law and environment: broken where any finding is, kept where all findings pooled over difficulties are."""
    made: dict[str, dict[str, State]] = {}
    found = findings(evidence)
    for law, env in dict.fromkeys((finding.law, finding.env) for finding in found):
        mine = [finding for finding in found if (finding.law, finding.env) == (law, env)]
        pooled = {finding.state for finding in mine if finding.pooled}
        made.setdefault(law, {})[env] = (
            State.BROKEN
            if any(finding.state is State.BROKEN for finding in mine)
            else State.KEPT
            if pooled == {State.KEPT}
            else State.NOT_SHOWN
        )
    return made
