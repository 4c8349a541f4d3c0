"""The fourteen laws by name: statement, measure and judge of each."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from ecomlab.laws.certificate import Row
    from ecomlab.laws.counterfactual import Comparison
    from ecomlab.laws.leaks import Leak
    from ecomlab.laws.talkers import Talked
    from ecomlab.laws.truthful import Truths
    from ecomlab.laws.understanding import Share

CONFIDENCE = 0.999
ROUNDING = 1e-9
"""Difference of two means of rewards that is none."""
FAIR, FAIR_CHAIN = 0.99, 0.97
"""Smallest share of the reference player, in tasks of one goal and of several."""
BLIND = 0.05
"""Largest share of a blind attacker."""
UNDERSTOOD, UNDERSTOOD_GROUP = 0.95, 0.90
"""Smallest share of questions answered, and of messages read, exactly: of all, and in each environment and form or
act."""
REFUSED, AFFIRMED, DENIED = 0.99, 0.95, 0.005
"""Smallest share of wrong elements that are refused or named, smallest share of right messages that are affirmed, and
largest share that are refused."""
SHALLOW, DEEP, LACKING = 0.9, 0.2, 0.2
"""Smallest share of the shortcut player at d = 0, largest at d = 12, and largest share of a player that lacks one kind
of step, in tasks where such a step counts."""
CONTRARY = 0.65
"""Largest share of a player that believes the plain choice to be always wrong, and knows everything else: as often as
one of two outcomes is drawn, which is with a probability of 35 to 65%."""
HARDER = 0.2
"""Smallest fall of the perturbed player's success from d = 0 to d = 12."""


class State(StrEnum):
    """State of a law according to the measurements."""

    KEPT = "kept"
    BROKEN = "broken"
    NOT_SHOWN = "not shown"
    """The sample is too small, or the estimate falls short of the threshold by no more than chance allows."""
    NOT_MEASURED = "not measured yet"


@dataclass(frozen=True)
class Finding:
    """The state of a law by one measurement."""

    law: str
    env: str
    state: State
    why: str
    pooled: bool = False
    """True if over all difficulties; such findings decide where none is broken."""

    def __str__(self) -> str:
        return f"{self.law}: {self.why}"


@dataclass(frozen=True)
class Evidence:
    """The measurements of a certificate."""

    rows: "Sequence[Row]"
    leaks: "Sequence[Leak]" = ()
    comparisons: "Sequence[Comparison]" = ()
    understood: "Sequence[Share]" = ()
    """Answers to the banks of questions."""
    heard: "Sequence[Share]" = ()
    """Readings of the bank of messages."""
    truths: "Sequence[Truths]" = ()
    talked: "Sequence[Talked]" = ()


Judge = Callable[["Evidence"], Iterator[tuple[str, State, str, bool]]]
"""Function from the evidence to (environment, state, why, pooled) of each finding."""


@dataclass(frozen=True)
class Law:
    """One law. Without a judge it is tested as `measure` says, or not measured yet."""

    name: str
    statement: str
    measure: str
    judge: Judge | None = None


def enough(threshold: float) -> int:
    """Count the tasks, in full tens, that if all correct put the lower bound above `threshold`: 230 for 97%."""
    return 10 * math.ceil(math.log(1 - CONFIDENCE) / math.log(threshold) / 10)


@cache  # thousands of attackers share few values, and each takes a search
def bounds(share: float, n: int) -> tuple[float, float]:
    """Compute one-sided 99.9% Clopper-Pearson bounds of a share of `n`; a share that was not measured may be any."""
    if n == 0 or math.isnan(share):
        return 0.0, 1.0
    found = stats.binomtest(round(share * n), n).proportion_ci(2 * CONFIDENCE - 1, "exact")
    return float(found.low), float(found.high)


def at_least(share: float, n: int, threshold: float) -> State:
    """Judge a share that must be at least `threshold`."""
    if bounds(share, n)[1] < threshold:
        return State.BROKEN
    return State.KEPT if share >= threshold and n >= enough(threshold) else State.NOT_SHOWN


def at_most(share: float, n: int, threshold: float, by_chance: bool = False) -> State:
    """Judge a share that must be at most `threshold`; with `by_chance` the estimate itself may lie above it."""
    if bounds(share, n)[0] > threshold:
        return State.BROKEN
    within = share <= threshold or (by_chance and not math.isnan(share))
    certain = threshold >= 1 or n >= enough(1 - max(threshold, BLIND))
    return State.KEPT if within and certain else State.NOT_SHOWN


def _samples(rows: "Sequence[Row]") -> "Iterator[tuple[str, Row, bool]]":
    """Yield (where, row, pooled) for every cell, and for all cells of an environment as one."""
    for env in dict.fromkeys(row.env for row in rows):
        mine = [row for row in rows if row.env == env]
        if len(mine) > 1:
            yield from ((f"{env} at d = {row.d}", row, False) for row in mine)
            yield f"{env}, all difficulties", _pooled(mine), True
        else:
            yield f"{env} at d = {mine[0].d}", mine[0], True


def _pooled(rows: "Sequence[Row]") -> "Row":
    """Pool the cells of one environment into a row of what is in all of them."""
    seeds, others = [row.seeds for row in rows], [row.others for row in rows]
    attacked = others if any(others) else None  # rows of players alone have no weights

    def mean(values: Sequence[float], weights: Sequence[int] | None) -> float:
        return float(np.average(values, weights=weights))

    def by_name(kind: str) -> dict[str, list[Any]]:
        """Collect the values of a field by the names that all rows have."""
        every = [getattr(row, kind) for row in rows]
        return {name: [one[name] for one in every] for name in every[0] if all(name in one for one in every)}

    shares: dict[str, Any] = {
        kind: {name: mean(values, attacked) for name, values in by_name(kind).items()}
        for kind in ("blind", "positional")
    }
    for name in ("solver", "fair", "courteous"):
        shares[name] = mean([getattr(row, name) for row in rows], seeds)
    return replace(
        rows[0],
        seeds=sum(seeds),
        others=sum(others),
        jobs=max(row.jobs for row in rows),
        chance=mean([row.chance for row in rows], attacked),
        **shares,
        rewards={name: _merged(values) for name, values in by_name("rewards").items()},
        failed=_merged([row.failed for row in rows]),
    )


def _merged(parts: Sequence[tuple[float, float, int]]) -> tuple[float, float, int]:
    """Merge several samples given as (mean, standard deviation, n)."""
    n = sum(part[2] for part in parts)
    if n < 2:
        return 0.0, 0.0, n
    mean = sum(part[0] * part[2] for part in parts) / n
    squares = sum((max(part[2], 1) - 1) * part[1] ** 2 + part[2] * (part[0] - mean) ** 2 for part in parts)
    return mean, float(np.sqrt(squares / (n - 1))), n


def _solvable(evidence: Evidence) -> Iterator[tuple[str, State, str, bool]]:
    for where, row, pooled in _samples(evidence.rows):
        state = State.BROKEN if row.solver < 1 else at_least(row.solver, row.seeds, FAIR)
        why = f"the oracle is correct on {row.solver:.1%} of {where}, which must be all"
        yield row.env, state, why, pooled


def _fair(evidence: Evidence) -> Iterator[tuple[str, State, str, bool]]:
    for where, row, pooled in _samples(evidence.rows):
        state = at_least(row.fair, row.seeds, FAIR if row.jobs == 1 else FAIR_CHAIN)
        yield row.env, state, f"the reference player is correct on {row.fair:.1%} of {where}", pooled


def _not_gameable(evidence: Evidence) -> Iterator[tuple[str, State, str, bool]]:
    for where, row, pooled in _samples(evidence.rows):
        for kind, group, most in (("blind", row.blind, BLIND), ("positional", row.positional, row.chance)):
            for name, share in group.items():
                state = at_most(share, row.others, most, by_chance=kind == "positional")
                allowed = f"{most:.1%} by its `chance`" if kind == "positional" else f"{most:.1%}"
                why = f"{kind} attacker {name!r} is correct on {share:.1%} of {where}, allowed {allowed}"
                yield row.env, state, why, pooled
        for name, reward in row.rewards.items():
            why = f"{name} earns {reward[0]:.2f}, failing honestly {row.failed[0]:.2f}, at {where}"
            yield row.env, State.BROKEN if _pays(reward, row.failed) else State.KEPT, why, pooled
    yield from _contrary(evidence)


def _contrary(evidence: Evidence) -> Iterator[tuple[str, State, str, bool]]:
    """Judge the players that know everything but one bit, and how that bit is drawn, over all difficulties."""
    for env in dict.fromkeys(row.env for row in evidence.rows):
        rows = [row for row in evidence.rows if row.env == env]
        for kind, (right, tasks) in sums(row.contrary for row in rows).items():
            why = f"always against the plain choice of {kind}, {right} of {tasks} tasks of {env} are solved"
            why += f", allowed {CONTRARY:.0%}, because it knows all but an outcome that is drawn about evenly"
            yield env, at_most(right / tasks, tasks, CONTRARY, by_chance=True), why, False
        for name, (so, traps) in sums(row.outcomes for row in rows).items():
            why = f"{name} in {so} of {traps} traps of {env}, which may be 35 to 65%"
            for share in (so / traps, 1 - so / traps):
                yield env, at_most(share, traps, CONTRARY, by_chance=True), why, False
        right, tasks = np.sum([row.shotgun for row in rows], axis=0).tolist()
        why = f"by telling every value, {right} of {tasks} tasks of {env} with a question are solved"
        if tasks:
            yield env, at_most(right / tasks, tasks, BLIND), why, False


def sums(counts: Iterable[dict[str, tuple[int, int]]]) -> dict[str, tuple[int, int]]:
    """Add up (right, tasks) by name."""
    found: dict[str, tuple[int, int]] = {}
    for name, (right, tasks) in (pair for some in counts for pair in some.items()):
        before = found.get(name, (0, 0))
        found[name] = (before[0] + right, before[1] + tasks)
    return found


def _pays(reward: tuple[float, float, int], failed: tuple[float, float, int]) -> bool:
    """Tell whether an attacker's mean reward lies above that of honest failures (one-sided Welch test)."""
    (mean, sd, n), (base, spread, count) = reward, failed
    if min(n, count) < 2:
        return False
    gap, error = mean - base, float(np.hypot(sd / np.sqrt(n), spread / np.sqrt(count)))
    if gap < ROUNDING:  # all of them fail alike
        return False
    return error == 0 or bool(gap / error > stats.t.ppf(CONFIDENCE, min(n, count) - 1))


def _silent(evidence: Evidence) -> Iterator[tuple[str, State, str, bool]]:
    for leak in evidence.leaks:
        why = f"{leak.kind} tells {leak.what} in {leak.env}: AUC {leak.auc:.2f}, 99% above {leak.low:.2f}"
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
    for env, by_level, state, why in _trends(evidence, "noisy", "perturbed"):
        yield env, state, why, True
        if state is not State.NOT_SHOWN:
            fall = by_level[0].noisy - by_level[12].noisy
            state = State.KEPT if fall >= HARDER else State.BROKEN
            yield (
                env,
                state,
                f"the perturbed player's success falls by {fall:.2f} from d = 0 to 12 in {env}",
                True,
            )


def _trends(evidence: Evidence, name: str, player: str) -> "Iterator[tuple[str, dict[int, Row], State, str]]":
    """Yield (environment, its rows by level, whether the player's share `name` of a row falls with d, why)."""
    for env in dict.fromkeys(row.env for row in evidence.rows):
        by_level = {row.d: row for row in sorted(evidence.rows, key=lambda row: row.d) if row.env == env}
        state = _falls([(d, getattr(row, name), row.seeds) for d, row in by_level.items()])
        short = f"there are too few tasks from d = 0 to 12 of {env}"
        why = f"the {player} player's success does not fall with d in {env}"
        yield env, by_level, state, short if state is State.NOT_SHOWN else why


def _falls(cells: Sequence[tuple[int, float, int]]) -> State:
    """Judge whether a share falls with d (one-sided trend test), by (d, share, tasks) of each cell. Too few tasks from
    d = 0 to 12, or cells in which it was not measured, show nothing."""
    levels = np.repeat([d for d, _, _ in cells], [n for _, _, n in cells])
    measured = not any(math.isnan(share) for _, share, _ in cells)
    if not {0, 12} <= {d for d, _, _ in cells} or not measured or len(levels) < enough(FAIR_CHAIN):
        return State.NOT_SHOWN
    wins = np.concatenate([(np.arange(n) < round(share * n)).astype(float) for _, share, n in cells])
    falls = wins.std() > 0 and stats.pearsonr(levels, wins, alternative="less").pvalue < 1 - CONFIDENCE
    return State.KEPT if falls else State.BROKEN


def _understood(evidence: Evidence) -> Iterator[tuple[str, State, str, bool]]:
    measured = [(share, "questions", "answered") for share in evidence.understood]
    for share, what, done in [*measured, *((share, "messages", "read") for share in evidence.heard)]:
        least = UNDERSTOOD if share.group == "all" else UNDERSTOOD_GROUP
        state = at_least(share.exact, share.asks, least)
        of = f"{share.asks} {what} ({share.group}, {share.bank})"
        yield share.env, state, f"{share.exact:.1%} of {of} are {done} exactly", True
        if share.denied:
            yield share.env, State.BROKEN, f"{share.denied} of {of} are answered with a denial", False


def _talked_through(evidence: Evidence) -> Iterator[tuple[str, State, str, bool]]:
    for where, row, pooled in _samples(evidence.rows):
        state = at_least(row.courteous, row.seeds, FAIR_CHAIN)
        yield row.env, state, f"the courteous player is correct on {row.courteous:.1%} of {where}", pooled


def _truthful(evidence: Evidence) -> Iterator[tuple[str, State, str, bool]]:
    for one in evidence.truths:
        if one.group != "all":
            continue
        wrong, right = sum(one.wrong.values()), sum(one.right.values())
        refused = (one.wrong.get("refused", 0) + one.wrong.get("named", 0)) / max(1, wrong)
        affirmed, denied = (one.right.get(what, 0) / max(1, right) for what in ("affirmed", "refused"))
        of = f"of {right} right messages ({one.bank})"
        why = f"{refused:.1%} of {wrong} wrong elements ({one.bank}) are refused or named"
        yield "all", at_least(refused, wrong, REFUSED), why, True
        yield "all", at_least(affirmed, right, AFFIRMED), f"{affirmed:.1%} {of} are affirmed", True
        yield "all", at_most(denied, right, DENIED), f"{denied:.1%} {of} are refused", True
    for some in evidence.talked:
        state = at_most(some.contradicting / max(1, some.episodes), some.episodes, 0.0)
        why = f"in {some.contradicting} of {some.episodes} episodes of {some.env} a customer contradicts themselves"
        yield some.env, state, why, True
        if some.unread:
            yield some.env, State.BROKEN, f"{some.unread} sentences of {some.env} fit no form", True


def _deep(evidence: Evidence) -> Iterator[tuple[str, State, str, bool]]:
    for env, by_level, state, why in _trends(evidence, "shortcut", "shortcut"):
        yield env, state, why, True
        if state is State.NOT_SHOWN:
            continue
        for d, judge, threshold in ((0, at_least, SHALLOW), (12, at_most, DEEP)):
            share, n = by_level[d].shortcut, by_level[d].seeds
            why = f"the shortcut player is correct on {share:.1%} of {env} at d = {d}"
            yield env, judge(share, n, threshold), why, True
        for kind, (right, tasks) in sums(row.lacking for row in by_level.values()).items():
            why = f"without steps of {kind}, {right} of {tasks} tasks of {env} that hold one are solved"
            yield env, at_most(right / tasks, tasks, LACKING), why, True


LAWS = {
    law.name: law
    for law in (
        Law(
            "SOLVABLE",
            "An oracle, which knows the goal and acts through the agent's tools, is correct on every task.",
            "certificate: the oracle's success rate, with every miss listed",
            _solvable,
        ),
        Law(
            "FAIR",
            "A player that sees only what a model sees is correct on 99% of tasks, and on 97% of those that chain "
            "several goals.",
            "certificate: the reference player's success rate, with every miss listed; contract: openings are "
            "parsed back",
            _fair,
        ),
        Law(
            "NOT GAMEABLE",
            "Blind attackers are correct on at most 5% of tasks, positional ones no more often than by chance, and no "
            "attacker earns more than an honest failure.",
            "certificate: attackers generated from the environment's tools, and the perturbed player's failures",
            _not_gameable,
        ),
        Law(
            "BY EFFECT",
            "A verdict is computed from the end state of the world; every answer gets one, never an exception.",
            "contract: answers of every form; tests of verifiers and of random actions",
        ),
        Law(
            "ONE RECORD",
            "The opening, the goal, the tools and the verifier read the same task; no placeholder reaches a message.",
            "contract: all messages; tasks written to JSON and read back",
        ),
        Law(
            "REPRODUCIBLE",
            "A key yields the same bytes in every process, and a recorded episode replays to its score.",
            "contract: digests of tasks and scores, and replays; a test in processes with other locales and hash seeds",
        ),
        Law(
            "ISOLATED",
            "Episodes share no mutable state, whether they are interleaved or run in threads.",
            "contract: episodes interleaved and in threads",
        ),
        Law(
            "SILENT",
            "Before asking, the agent cannot infer withheld or target values from anything it observes.",
            "certificate: counterfactuals compared through every read-only tool, and a classifier on ids, places and "
            "flags; contract: tools are what they declare and show no withheld value",
            _silent,
        ),
        Law(
            "HARDER",
            "The perturbed player's success falls as d rises, by at least 0.2 from d = 0 to 12.",
            "certificate: a one-sided trend test at p < .001, and the size of the fall",
            _harder,
        ),
        Law(
            "BROKEN IS NOT WRONG",
            "An infrastructure error leaves an episode unscored: counted and reported, never a reward.",
            "contract: players and worlds that raise exceptions",
        ),
        Law(
            "UNDERSTOOD",
            "Customers reveal exactly what natural questions ask for and read messages of every kind exactly, in 95% "
            "of each bank and in 90% of each environment and form or act, and deny nothing that is true.",
            "certificate: the banks of questions, asked on the first turn and later, by environment and form; the bank "
            "of messages, by environment and act",
            _understood,
        ),
        Law(
            "TALKED THROUGH",
            "A courteous player, which asks in natural sentences and confirms, is correct on 97% of tasks at every d.",
            "certificate: the courteous player's success rate, with every miss listed",
            _talked_through,
        ),
        Law(
            "TRUTHFUL",
            "Customers refuse or name 99% of what is said wrongly of their wishes, affirm 95% of what is said rightly "
            "and refuse at most 0.5% of it, and never contradict themselves.",
            "certificate: messages with wrong elements put in by code and messages right throughout; every line of "
            "talkative episodes, read back and compared with those before",
            _truthful,
        ),
        Law(
            "DEEP",
            "A shortcut player, which does every look-up, filter and sort but takes no step of thought, is correct on "
            "90% of tasks at d = 0 and at most 20% at d = 12; a player that lacks one kind of step fails where it "
            "counts.",
            "certificate: the shortcut player's success rate with a trend test at p < .001, and that of a player "
            "without each kind of step in the tasks that hold it",
            _deep,
        ),
    )
}


def findings(evidence: Evidence) -> list[Finding]:
    """Judge every law that has a judge, by the cells that have tasks."""
    evidence = replace(evidence, rows=[row for row in evidence.rows if row.seeds])
    return [
        Finding(law.name, *found)
        for law in LAWS.values()
        if law.judge is not None
        for found in law.judge(evidence)
    ]


def broken_laws(evidence: Evidence) -> list[str]:
    """List the broken laws in words. Shares are judged by exact binomial bounds at 99.9%."""
    return [str(finding) for finding in findings(evidence) if finding.state is State.BROKEN]


def states(evidence: Evidence) -> dict[str, dict[str, State]]:
    """Judge each law by environment: broken if any finding is, kept if all pooled findings are, else not shown."""
    made: dict[str, dict[str, State]] = {}
    found = findings(evidence)
    for law, env in dict.fromkeys((finding.law, finding.env) for finding in found):
        mine = [finding for finding in found if (finding.law, finding.env) == (law, env)]
        kept = {finding.state for finding in mine if finding.pooled} == {State.KEPT}
        broken = any(finding.state is State.BROKEN for finding in mine)
        made.setdefault(law, {})[env] = State.BROKEN if broken else State.KEPT if kept else State.NOT_SHOWN
    return made
