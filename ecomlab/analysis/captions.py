"""Captions of figures and their alternative texts, with numbers from the tables."""

import math
from dataclasses import dataclass

import pandas as pd

from ecomlab.analysis.capability_plots import FORMS
from ecomlab.analysis.statistics import (
    collections_compared,
    differences,
    effective,
    effective_differences,
    gains,
    held_out,
    learned,
    pooled,
)
from ecomlab.analysis.tables import RUN
from ecomlab.envs.registry import COLLECTIONS
from ecomlab.laws.laws import UNDERSTOOD, UNDERSTOOD_GROUP, State, at_least


@dataclass(frozen=True)
class Caption:
    """The caption below a figure, and the alternative text for readers who cannot see it."""

    text: str
    alternative: str
    column: "Caption | None" = None
    """Caption of the column-wide version, if that shows other panels."""


def difficulty_growth(train: pd.DataFrame, evaluation: pd.DataFrame, decoding: str = "sampled") -> Caption:
    """Say what `plots.difficulty_growth` shows, and by how much the adaptive arm exceeds the others."""
    levels, seeds, steps = sorted(set(evaluation.d)), train.seed.nunique(), train.step.max()
    over = f"d = {levels[0]} to {levels[-1]}"
    compared = differences(train, evaluation, "adaptive", decoding)
    means = compared[(compared.d == "mean") & compared.against.isin(learned(evaluation, decoding))]
    said = "; ".join(
        f"{against} by {' and '.join(_with_interval(row) for row in rows.itertuples())}"
        for against, rows in means.groupby("against")  # the row of steps stands before that of tokens
    )
    runs = held_out(evaluation, decoding).sort_values("step").groupby(RUN).success
    last = runs.last().groupby("schedule").mean()
    ends = ", ".join(f"{name} {share:.2f}" for name, share in last.items())
    still = sorted(set(evaluation.schedule) - {"adaptive", *learned(evaluation, decoding)})
    left_out = f" Left out there, for it has learned nothing: {', '.join(still)}." if still else ""
    equally = "After equally many steps, and after equally many generated tokens,"
    found = f" {equally} adaptive exceeds {said}." if said else ""
    head = (
        f"Training on {', '.join(sorted(set(train.env)))} under schedules of difficulty: {seeds} seeds, {steps} steps, "
        f"{decoding} held-out success. The highest difficulty trained on; mean success over {over}"
    )
    lead = (
        f"the lead of the adaptive schedule in all and at each difficulty, paired by seed{_intervals(seeds)}"
    )
    alternative = (
        f"Line plots of {seeds} runs each. Mean held-out success over {over}: at first "
        f"{runs.first().mean():.2f}; after training {ends}."
    )
    return Caption(
        f"{head}, over steps and over generated tokens; {lead}; and success at each difficulty.{found}{left_out}",
        alternative,
        column=Caption(f"{head}; {lead}.{found}{left_out}", alternative),
    )


def effective_ratio(train: pd.DataFrame, window: int) -> Caption:
    """Say what `plots.effective_ratio` shows, and each schedule's ratios over whole runs."""
    runs, seeds = (
        effective(train).groupby("schedule")[["by_reward", "by_correct"]].mean(),
        train.seed.nunique(),
    )
    ratios = "; ".join(
        f"{name} {row.by_reward:.2f} and {row.by_correct:.2f}" for name, row in runs.iterrows()
    )
    found = effective_differences(train)
    said = "; ".join(
        f"{row.against} by {_with_interval(row)}" for row in found[found.of == "correct"].itertuples()
    )
    lead = f" By correctness, adaptive exceeds {said}." if said else ""
    return Caption(
        f"Effective prompt ratio while training on {', '.join(sorted(set(train.env)))}, {seeds} seeds: the share of "
        "groups of rollouts whose rewards differ; the share in which some are correct and some are not; the share of "
        f"generated tokens that entered the loss, each over the last {window} steps; and by how much adaptive exceeds "
        f"the other schedules over whole runs, in percentage points, paired by seed{_intervals(seeds)}. Over whole "
        f"runs the ratios by reward and by correctness are: {ratios}.{lead}",
        f"Line plots of {train.groupby(RUN).ngroups} runs. Over whole runs, by reward and by correctness: {ratios}.",
    )


def environment_scaling(train: pd.DataFrame, evaluation: pd.DataFrame, decoding: str = "sampled") -> Caption:
    """Say what `plots.environment_scaling` shows, and by how much the larger collections exceed the smallest."""
    sizes, seeds = train.groupby("collection").env.nunique(), train.seed.nunique()
    least, most = sizes.idxmin(), sizes.idxmax()
    found = collections_compared(train, evaluation, against=str(least), decoding=decoding)
    said = "; ".join(
        f"{row.collection} {_with_interval(row)} after equally many "
        f"{'rollouts in all' if row.equal == 'all rollouts' else f'{row.equal}'} ({100 * row.next:.1f} after as many "
        f"or more of {least}'s)"
        for row in found.itertuples()
    )
    head = (
        f"Training on collections of one to {sizes.max()} environments, {seeds} seeds: {decoding} held-out success in "
        "CART over the rollouts of all environments and over those of CART alone; by how much the others exceed "
        f"{least} there after equally many, between evaluations on a line, paired by seed{_intervals(seeds)}"
    )
    compared = f"In CART, compared with {least}: {said}."
    alternative = f"Line plots of {train.groupby(RUN).ngroups} runs. {compared}"
    lacking = [name for name in COLLECTIONS if name not in sizes.index]
    not_run = (
        f" {' and '.join(lacking)} {'were' if len(lacking) > 1 else 'was'} not trained." if lacking else ""
    )
    added = "; ".join(
        f"{name}: " + ", ".join(f"{row.env} {100 * row.mean:.1f}" for row in mine.itertuples())
        for name, mine in gains(train, evaluation, decoding).groupby("collection")
    )
    return Caption(
        f"{head}; and success in each environment of {most} over steps. {compared}{not_run}",
        alternative,
        column=Caption(
            f"{head}; and by how much success in each environment exceeds the better of the starter's decodings after "
            f"training{_intervals(seeds)}. {compared}{not_run}",
            f"{alternative} Gains over the starter, in percentage points: {added}.",
        ),
    )


def certificate(table: pd.DataFrame, confidence: float) -> Caption:
    """Say what `env_plots.certificate` shows, and how often the single players are right over all levels."""
    shares = pooled(table, confidence).reset_index()
    listening = shares[shares.player.isin(["oracle", "reference"])]
    least, tasks = (
        math.floor(1e4 * listening.share.min()) / 1e4,
        int(listening.n.min()),
    )  # never more than is so
    right = f"are right on {'every one' if least == 1 else f'at least {least:.2%}'} of {tasks:,} tasks"
    slips = shares[shares.player == "perturbed"].set_index("env").share
    ends = ", ".join(f"{env} {share:.2f}" for env, share in slips.items())
    bounds = f"bands are exact {confidence:.0%} intervals"
    return Caption(
        "Share of tasks that each kind of player gets exactly right, by environment and difficulty. The oracle knows "
        "the goal; the reference player sees what a model sees; the perturbed one makes mistakes at a fixed rate; "
        "naive takes the first hit for the customer's words. Positional attackers choose by place in a list, to be "
        f"compared with the chance that the environment states; blind ones use nothing they are told; {bounds}. The "
        f"oracle and the reference player {right} in each environment, all levels together.",
        f"Panels of lines for {len(set(table.env))} environments. The oracle and the reference player {right} in each, "
        f"attackers stay near zero or chance; the perturbed player falls with difficulty, over all levels: {ends}.",
    )


def axes(table: pd.DataFrame, matrix: pd.DataFrame) -> Caption:
    """Say what `env_plots.axes_and_environments` shows."""
    moved = {str(env): int(row.sum()) for env, row in matrix.iterrows()}
    counts = ", ".join(f"{env} by {count}" for env, count in moved.items())
    return Caption(
        f"One difficulty d moves {len(table)} axes: each axis over d, and a dot where it moves an environment, as "
        "found by overriding each axis alone.",
        f"{len(table)} step plots over {', '.join(map(str, table.columns[[0, -1]]))}, and a matrix of dots. "
        f"Environments are moved by so many axes: {counts}.",
    )


def reward_parts(parts: pd.DataFrame, decoding: str = "sampled") -> Caption:
    """Say what `plots.reward_parts` shows, and what the part that is not drawn comes to."""
    rows = parts[parts.decoding == decoding]
    last = rows[rows.step == rows.groupby(RUN).step.transform("max")]
    least, seeds = rows.reward_hallucination.min(), last.seed.nunique()
    ends = ", ".join(f"{name} {value:.2f}" for name, value in last.groupby("schedule").reward.mean().items())
    of = f"{seeds} seeds" if seeds > 1 else "one seed, of which no interval can be given"
    return Caption(
        f"Mean reward of held-out episodes in {', '.join(sorted(set(rows.env)))} by difficulty, {decoding}, and its "
        f"parts for the task (weight 0.75) and for efficiency (0.15), after the last step of each schedule and before "
        f"the first; {of}. The part for ids that no tool had shown (0.10) lies between {least:.3f} and 0 everywhere. "
        "An invalid output has reward -1 whatever its parts.",
        f"Line plots over difficulty. Mean reward over difficulties after training: {ends}.",
    )


def capability(players: pd.DataFrame, runs: pd.DataFrame, env: str) -> Caption:
    """Say what `capability_plots.capability` shows."""
    half = players[players.share == players.share.min()]
    names = " and ".join(dict.fromkeys(players.player))
    levels = "; ".join(
        f"{player}: " + ", ".join(f"{row.env} {_level(row.level)}" for row in mine.itertuples())
        for player, mine in half.groupby("player", sort=False)
    )
    mine = runs[(runs.env == env) & (runs.step == runs.step.max()) & (runs.share == runs.share.min())]
    ends = ", ".join(
        f"{name} {' or '.join(map(_level, sorted(set(levels))))}"
        for name, levels in mine.groupby("schedule")["level"]
    )
    return Caption(
        "Capability frontier: the highest difficulty up to which a player is right on half of the tasks at every level "
        f"(filled) and on nine of ten (hollow). In each environment, of the players {names}, with 95% intervals; and "
        f"in {env} of a starter before and after training under each schedule, a mark for each of "
        f"{runs.seed.nunique()} runs.",
        f"Levels held at one half: {levels}. After training in {env}: {ends}.",
    )


def _level(level: int) -> str:
    return "none" if level < 0 else str(level)


def understanding(table: pd.DataFrame) -> Caption:
    """Say what `capability_plots.understanding` shows, and each bank's share over all."""
    every = table[(table.env == "all") & (table.form == "all")]
    banks = "; ".join(f"{row.bank} {row.exact:.3f} of {row.asks:,}" for row in every.itertuples())
    return Caption(
        "Questions that the customer understands exactly, in tasks of all environments, by environment and by form of "
        f"question, for each bank of questions, with exact 95% intervals. The law asks for {UNDERSTOOD:.0%} over all "
        f"and {UNDERSTOOD_GROUP:.0%} in each environment and form (lines). Over all: {banks}; "
        f"{int(every.denied.sum())} denials. {_short(table)}",
        f"Dots with intervals. Over all environments and forms: {banks}.",
    )


def _short(table: pd.DataFrame) -> str:
    """Name the groups of questions that fall short of what the law asks for, and whether chance allows that."""
    words = {State.NOT_SHOWN: "no more than chance allows", State.BROKEN: "more than chance allows"}
    found = []
    for row in table.itertuples():
        least = UNDERSTOOD if row.env == row.form == "all" else UNDERSTOOD_GROUP
        if row.exact < least:
            group = FORMS[row.form] if row.env == "all" else row.env
            below = words[at_least(row.exact, row.asks, least)]
            found.append(f"{group} ({row.bank}, {row.exact:.3f} of {row.asks}), by {below}")
    return f"Below its line: {'; '.join(found)}." if found else "No group of questions lies below its line."


def catalog_scale(table: pd.DataFrame) -> Caption:
    """Say what `scale_plots.catalog_scale` shows, at its smallest and its largest size."""
    lexical = table[table.embedder == "lexical"]
    first, last = lexical.iloc[0], lexical.iloc[-1]
    clock = {"cpu": "of the processor, on a machine that others used", "wall": "as they passed"}[last.clock]
    others = table[table.embedder != "lexical"]
    hollow = "".join(
        f" Hollow: {embedder}, up to {rows.products.max():,} products."
        for embedder, rows in others.groupby("embedder")
    )
    kept = f", the least of {last.repeats} measurements" if last.repeats > 1 else ""
    return Caption(
        f"What the size of a catalog costs, at {first.products:,} to {last.products:,} generated products, on one "
        f"thread; times are {clock}{kept}. a: an episode's reset and verification, a search, the embedding of its "
        "query, and eight constraints over all products. b: opening a catalog with its files in the page cache and "
        "without (cold), and building it. c: memory of a process after that: resident with the files that it maps, "
        f"its own, and that of a second process. Recall of the best 20 at {last.products:,} products: "
        f"{last.recall_at_20:.3f}.{hollow}",
        f"Lines over the number of products. From {first.products:,} to {last.products:,} products: reset (p95) "
        f"{first.reset_ms_p95:.1f} and {last.reset_ms_p95:.1f} ms, search (p95) {first.search_ms_p95:.1f} and "
        f"{last.search_ms_p95:.1f} ms, opening {first.open_s:.2f} and {last.open_s:.2f} s, private memory "
        f"{first.private_mb:.0f} and {last.private_mb:.0f} MB.",
    )


def _intervals(seeds: int) -> str:
    return ", with Student's 95% intervals" if seeds > 2 else "; fewer than three seeds have no interval"


def _with_interval(row: object) -> str:
    """Write a difference of shares in percentage points, as figures do, with its interval if it has one."""
    mean, low, high = (100 * getattr(row, name) for name in ("mean", "low", "high"))
    return f"{mean:.1f} points" + ("" if math.isnan(low) else f" [{low:.1f}, {high:.1f}]")
