"""Tables of labelled trajectories: a row per mistake, survival to the first one, fates, and what follows what.

What follows in time need not follow from it: hard tasks have many mistakes anyway. `causal` measures effects.
"""

import math
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ecomlab.episode.play import ReplayError
from ecomlab.evaluation.cascade.labels import label
from ecomlab.evaluation.cascade.mistakes import FATES, Labelled
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.evaluation import trajectory_of
from ecomlab.evaluation.summary import CONFIDENCE
from ecomlab.evaluation.transcripts import read
from ecomlab.seeding import rng

if TYPE_CHECKING:
    from ecomlab.catalog import Shop

CLEAN, UNSCORED, NOT_REPLAYED = "none", "unscored", "not replayed"
"""What stands for a kind in the row of an episode without mistakes, and of one that says nothing."""
EPISODE = ("env", "d", "seed", "trial", "step", "turns", "needed", "end", "correct", "doubtful")
MISTAKE = (
    "number", "turn", "kind", "cause", "fate", "until", "parent", "job", "place", "thing", "slots", "words",
)  # fmt: skip
COLUMNS = (*EPISODE, *MISTAKE)
"""Columns of the table of mistakes: those of the episode, then those of the mistake, empty where there is none."""
SHARES = tuple(round(0.25 * n, 2) for n in range(13))
"""Turns, as shares of those that the reference player needs, at which survival is given."""
DRAWS = 1_000
"""Draws of episodes for an interval."""


@dataclass(frozen=True)
class Episode:
    """An episode of a run, and its labels; `why` says why it has none."""

    job: Job
    step: int | None
    labelled: Labelled | None
    why: str = ""


def label_folder(folder: Path, shop: "Shop") -> Iterator[Episode]:
    """Label every episode of a folder or file of transcripts, in the order in which they were played.

    Unscored episodes, and those that cannot be replayed, have no labels. Raises TranscriptError for no transcripts.
    """
    for transcript in read(folder):
        job, step = transcript.job, transcript.step
        if transcript.unscored:
            yield Episode(job, step, None, f"{UNSCORED}: {transcript.unscored}")
            continue
        try:
            yield Episode(job, step, label(trajectory_of(transcript, shop), shop))
        except ReplayError as error:
            yield Episode(job, step, None, f"{NOT_REPLAYED}: {error}")


def rows_of(episode: Episode) -> Iterator[dict[str, Any]]:
    """Yield a row for each mistake of an episode, one of the kind `CLEAN` where there is none, and one that says why
    where it has no labels."""
    job, found = episode.job, episode.labelled
    head: dict[str, Any] = {
        "env": job.env,
        "d": job.d,
        "seed": job.seed,
        "trial": job.trial,
        "step": episode.step,
    }
    if found is None:
        kind, _, why = episode.why.partition(": ")
        yield _row({**head, "kind": kind, "words": why})
        return
    head |= {name: getattr(found, name) for name in ("turns", "needed", "end")}
    head |= {"correct": int(found.correct), "doubtful": len(found.doubtful)}
    for number, mistake in enumerate(found.mistakes):
        yield _row({**head, "number": number, **mistake.to_json(), "slots": " ".join(mistake.slots)})
    if not found.mistakes:
        yield _row({**head, "kind": CLEAN})


def _row(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: "" if values.get(name) is None else values[name] for name in COLUMNS}


def survival(labelled: Sequence[Labelled]) -> list[dict[str, Any]]:
    """Estimate the share of episodes without a mistake at each of `SHARES`, with 95% bounds: Kaplan and Meier's, an
    episode counting for as long as it went on. No rows without an episode.

    Time is turns as shares of those that the reference player needs for the task as it unfolded.
    """
    from scipy.stats import CensoredData, ecdf

    times = [(one.first.turn if one.first else one.turns) / max(1, one.needed) for one in labelled]
    missed = [one.first is not None for one in labelled]
    if not times:
        return []
    made = [time for time, was in zip(times, missed, strict=True) if was]
    still = [time for time, was in zip(times, missed, strict=True) if not was]
    estimate = ecdf(CensoredData(uncensored=made, right=still)).sf
    with (
        warnings.catch_warnings()
    ):  # there are no bounds where nothing or everything is lost; they are NaN there
        warnings.simplefilter("ignore", RuntimeWarning)
        bounds = estimate.confidence_interval(CONFIDENCE, method="log-log") if made else None
    rows = []
    for share in SHARES:
        low, high = (_at(bounds.low, share), _at(bounds.high, share)) if bounds else (math.nan, math.nan)
        at_risk = sum(time >= share for time in times)
        rows.append(
            {"share": share, "at_risk": at_risk, "surviving": _at(estimate, share), "low": low, "high": high}
        )
    return rows


def _at(function: Any, time: float) -> float:
    """Evaluate a survival function or one of its bounds: 1 before the first mistake."""
    value = float(function.evaluate(np.array([time]))[0])
    return (
        1.0 if math.isnan(value) and (not len(function.quantiles) or time < function.quantiles[0]) else value
    )


def fates(labelled: Sequence[Labelled]) -> list[dict[str, Any]]:
    """Count what became of the mistakes of each kind; `turns` is the mean number of turns until a mended one was."""
    found: dict[str, list[Any]] = defaultdict(list)
    for one in labelled:
        for mistake in one.mistakes:
            found[mistake.kind].append(mistake)
    rows = []
    for kind, mistakes in sorted(found.items(), key=lambda pair: -len(pair[1])):
        counts = Counter(mistake.fate for mistake in mistakes)
        waits = [m.until - m.turn for m in mistakes if m.until is not None and m.fate.startswith("mended")]
        turns = sum(waits) / len(waits) if waits else math.nan
        rows.append(
            {"kind": kind, "mistakes": len(mistakes), **{f: counts[f] for f in FATES}, "turns": turns}
        )
    return rows


def links(labelled: Sequence[Labelled]) -> list[dict[str, Any]]:
    """Count the pairs of mistakes that are linked, by their kinds: one `follows` the last before it, is at the `same
    slot` as an earlier one, or has it for its `parent` by rule."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for one in labelled:
        places: dict[tuple[int, str], str] = {}
        for number, mistake in enumerate(one.mistakes):
            at = (mistake.job, mistake.place)
            if number:
                counts["follows", one.mistakes[number - 1].kind, mistake.kind] += 1
            if mistake.place and at in places:
                counts["same slot", places[at], mistake.kind] += 1
            if mistake.parent is not None:
                counts["parent", one.mistakes[mistake.parent].kind, mistake.kind] += 1
            places[at] = mistake.kind
    names = ("link", "kind", "next", "pairs")
    return [dict(zip(names, (*link, pairs), strict=True)) for link, pairs in sorted(counts.items())]


def more_likely(labelled: Sequence[Labelled]) -> dict[str, float]:
    """Compare the chance of a mistake in a turn after an earlier one with that where there was none.

    `after` and `before` are the shares of turns with a new mistake; `ratio` is Mantel and Haenszel's risk ratio over
    environments, levels and turns, with 95% bounds from drawing tasks anew, each with all of its episodes. Mistakes
    that follow by rule are not counted as new. NaN where a stratum never has both; infinite where new mistakes only
    come after earlier ones.
    """
    strata: dict[tuple[str, int, int], int] = {}
    tasks: dict[tuple[str, int, int], int] = {}
    cells, owners = list[int](), list[int]()
    for one in labelled:
        made = {mistake.turn for mistake in one.roots}
        first, task = min(made, default=math.inf), tasks.setdefault((one.env, one.d, one.seed), len(tasks))
        for turn in range(1, one.turns + 1):
            stratum = strata.setdefault((one.env, one.d, turn), len(strata))
            cells.append(4 * stratum + 2 * (first < turn) + (turn in made))
            owners.append(task)
    turns, of = np.array(cells, int), np.array(owners, int)

    def counted(weights: np.ndarray) -> np.ndarray:
        return np.bincount(turns, weights[of], 4 * len(strata)).reshape(-1, 2, 2)

    whole = counted(np.ones(len(tasks)))
    shares = [float(whole[:, side, 1].sum() / max(1.0, whole[:, side].sum())) for side in (0, 1)]
    random = rng("more likely", len(tasks))
    even = np.full(len(tasks), 1 / max(1, len(tasks)))
    drawn = [_ratio(counted(random.multinomial(len(tasks), even))) for _ in range(DRAWS if tasks else 0)]
    known = [ratio for ratio in drawn if not math.isnan(ratio)]
    tail = (1 - CONFIDENCE) / 2
    bounds = np.quantile(known, [tail, 1 - tail], method="inverted_cdf").tolist() if known else [math.nan] * 2
    return {
        "before": shares[0],
        "after": shares[1],
        "ratio": _ratio(whole),
        "low": bounds[0],
        "high": bounds[1],
    }


def _ratio(counts: np.ndarray) -> float:
    """Compute Mantel and Haenszel's risk ratio from counts by stratum, earlier mistake and new mistake."""
    sizes = counts.sum((1, 2))
    filled = sizes > 0
    exposed, free, sizes = counts[filled, 1], counts[filled, 0], sizes[filled]
    above = float((exposed[:, 1] * free.sum(1) / sizes).sum())
    below = float((free[:, 1] * exposed.sum(1) / sizes).sum())
    return above / below if below else math.inf if above else math.nan


def summary(labelled: Sequence[Labelled]) -> dict[str, Any]:
    """Summarize labelled episodes: how many made a first mistake and were correct in the end, survival, fates, links,
    and whether a mistake is more likely after another."""
    first = [one for one in labelled if one.first is not None]
    return {
        "episodes": len(labelled),
        "with_mistakes": len(first),
        "correct_after_mistakes": sum(one.correct for one in first),
        "first": dict(Counter(one.first.kind for one in first if one.first).most_common()),
        "causes": dict(Counter(m.cause for one in labelled for m in one.mistakes if m.cause).most_common()),
        "survival": survival(labelled),
        "fates": fates(labelled),
        "links": links(labelled),
        "more_likely": more_likely(labelled),
    }
