"""The study's main tables in Markdown, as analyse.py writes them into TABLES.md."""

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd
from study import CONTRASTS, RECOVERY_ARMS, STARTERS


def said(arms: str) -> str:
    """Call the arm *singles* otherwise than the starter of that name."""
    return " - ".join("single steps" if arm == "singles" else arm for arm in arms.split(" - "))


PRIMARY = [said(f"{one} - {other}") for one, other in CONTRASTS]
EQUAL = ("equal tokens", "equal steps")
ENDS = (("0-6", "sampled"), ("0-6", "greedy"), ("7-8", "sampled"), ("7-8", "greedy"))
RECOVERY = " - ".join(RECOVERY_ARMS)
SEVENTH = "†"
"""Marks arms that drew level 7 or more."""
SIZES = "‡"
"""Marks arms that draw no levels."""


def as_markdown(made: Mapping[str, pd.DataFrame]) -> str:
    """Write the tables that analyse.py makes, by name, in Markdown, each between comments with its name."""
    parts = {
        "finished": finished(made["runs"]),
        "primary": primary(made["contrasts"], made["fresh"]),
        "ends": ends(made["success"], made["curves"], made["health"]),
        "health": health(made["health"], made["success"]),
        "growth": growth(made["growth"]),
        "otherwise": otherwise(made["contrasts"]),
        "steps": "\n".join(by_steps(made["by_steps"], starter) for starter in STARTERS),
        "others": others(made["contrasts"]),
        "environments": environments(made["environments"]) if "environments" in made else "",
        "alone": "\n".join(alone(made["alone"], starter) for starter in STARTERS),
        "mended": mended(made["mended"][made["mended"].contrast != RECOVERY]),
        "mended_arms": mended_arms(made["mended_arms"]),
        "recovery": recovery(made["mended"], made["recovery"]) if "recovery" in made else "",
        "predictions": predicted(made["predictions"]),
    }
    written = "\n".join(
        f"<!-- {name} -->\n\n{part}\n<!-- end of {name} -->\n" for name, part in parts.items()
    )
    return (
        f"<!-- Written by experiments/frontier/analyse.py; docs/curriculum.md includes it. -->\n\n{written}"
    )


def finished(runs: pd.DataFrame) -> str:
    """Say how many runs are done, and of which arms not all are."""
    left = runs[runs.finished < runs.registered]
    lacking = "; ".join(f"{r.arm} from {r.starter} {r.finished} of {r.registered}" for r in left.itertuples())
    done = f"{runs.finished.sum()} of the {runs.registered.sum()} registered runs are done"
    return f"{done}{f' ({lacking})' if lacking else ''}.\n"


def primary(contrasts: pd.DataFrame, fresh: pd.DataFrame) -> str:
    """Write S1's primary contrasts, on all seeds, at equal tokens, and on the seeds that no gate had."""
    key = ["starter", "contrast"]
    again = {(r.starter, r.contrast): r for _, r in fresh.iterrows()}
    equal = [contrasts[contrasts.levels == f"0, 2, 4, 6, {what}"].set_index(key) for what in EQUAL]
    rows = []
    for _, r in contrasts[contrasts.holm.notna()].iterrows():
        new = again.get((r.starter, r.contrast))
        beside = (
            ["", "", ""] if new is None else [f"{new.seeds} of {new.of}", interval(new), p_value(new.holm)]
        )
        tested = [f"{r.seeds} of {r.of}", interval(r), p_value(r.p), p_value(r.holm)]
        curves = [interval(one.loc[(r.starter, r.contrast)]) for one in equal]
        rows.append([r.starter, r.contrast, *tested, *beside, "yes" if r.claimed else "", *curves])
    return grid(
        "Primary contrasts.",
        "Success over levels 0 to 6, sampled, at the end of the run; paired by seed, two-sided t, Holm over a "
        "starter's four. A claim of both starters needs the same sign and p below .05 after Holm from both; where one "
        "alone has it, the claim is of this one; none is made where fresh seeds differ in sign or in what is "
        "significant. *Equal tokens* (not corrected): the 256 tasks of the training curve (levels 0, 2, 4 and 6 of "
        "block 0), read at the tokens of the arm that sampled fewer, without what a demonstrator plays; *equal steps*: "
        "the same tasks at the end. *Fresh seeds* are 3 to 7, which no gate had; empty where there are not two runs.",
        [
            *("starter", "contrast", "seeds", "difference [95%]", "p", "p, Holm"),
            *("fresh seeds", "difference [95%]", "p, Holm", "claimed", *EQUAL),
        ],
        rows,
    )


def predicted(table: pd.DataFrame) -> str:
    """Write every prediction with its outcome."""
    counts = table.outcome.str.split(",").str[0].value_counts().sort_index()
    found = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    return grid(
        "Predictions.",
        f"{found}. *held*: the 95% interval has what was predicted, and not zero; *open*: both; *sign*: neither, but "
        "it is on the right side of zero; else *not held*. Within a bound of zero: *held* if the interval is within, "
        "*not held* if it leaves out the bounds, or leaves out zero with a mean beyond them, else *open*. *No "
        "difference*: *not rejected* if the interval has zero. Orders and sums are judged by means; *three "
        "quarters* is .65 to .85 (`predictions.py`). *simulation*: what a simulation had said; gates were followed.",
        list(table.columns),
        table.itertuples(index=False),
    )


def otherwise(contrasts: pd.DataFrame) -> str:
    """Write the primary contrasts greedy, and at levels 7 and 8."""
    chosen = contrasts[contrasts.contrast.isin(PRIMARY)]
    rows = []
    for (starter, contrast), mine in chosen.groupby(["starter", "contrast"], sort=False):
        of = {(r.levels, r.decoding): interval(r) for _, r in mine.iterrows()}
        rows.append([starter, contrast, *(of[form] for form in ENDS[1:])])
    return grid(
        "The primary contrasts, greedy and at levels 7 and 8.",
        "Not corrected. From *singles* nothing is right at levels 7 and 8.",
        ["starter", "contrast", *(f"levels {levels}, {decoding}" for levels, decoding in ENDS[1:])],
        rows,
    )


def others(contrasts: pd.DataFrame) -> str:
    """Write all other arms against adaptive, and two of them against their controls."""
    chosen = contrasts[~contrasts.contrast.isin(PRIMARY) & (contrasts.levels == "0-6")]
    rows = []
    for (starter, contrast), mine in chosen.groupby(["starter", "contrast"], sort=False):
        of = {r.decoding: interval(r) for _, r in mine.iterrows()}
        rows.append([starter, contrast, mine.seeds.max(), of["sampled"], of["greedy"]])
    return grid(
        "Other contrasts.",
        "Levels 0 to 6, not corrected. Prefix draws the levels of static-0-6.",
        ["starter", "contrast", "seeds", "sampled", "greedy"],
        rows,
    )


def ends(success: pd.DataFrame, curves: pd.DataFrame, health: pd.DataFrame) -> str:
    """Write each arm's success after training, and what it sampled."""
    tokens = curves.groupby(["starter", "arm", "seed"]).tokens.max().groupby(["starter", "arm"]).mean()
    seventh = {(r.starter, r.arm) for r in health.itertuples() if r.above_6}
    first = success[(success.levels == "0-6") & (success.decoding == "sampled")]
    first = first.sort_values(["starter", "success"], ascending=False)
    rows = []
    for starter, arm in zip(first.starter, first.arm, strict=True):
        mine = success[(success.starter == starter) & (success.arm == arm)]
        of = {(r.levels, r.decoding): interval(r, "success") for _, r in mine.iterrows()}
        spent = f"{tokens[starter, arm] / 1e6:.2f}" if (starter, arm) in tokens else ""
        arm += SEVENTH * ((starter, arm) in seventh) + SIZES * arm.startswith("skill-wise")
        rows.append([starter, arm, mine.seeds.max(), *(of[form] for form in ENDS), spent])
    return grid(
        "Success after training.",
        "Mean over all seeds that an arm has [95%], best first, 384 tasks a level; *start* is before training; tokens "
        f"are all that were sampled in training. {SEVENTH}: its window drew level 7, in some steps (next table). "
        f"{SIZES}: it draws sizes of steps, which together may be as many as level 7 holds.",
        ["starter", "arm", "seeds", *(f"levels {levels}, {decoding}" for levels, decoding in ENDS), "tokens, millions"],
        rows,
    )  # fmt: skip


def by_steps(table: pd.DataFrame, starter: str) -> str:
    """Write success by the exact number of composed steps, as far as any arm is right."""
    mine = table[table.starter == starter]
    shares = mine.pivot_table(index="arm", columns="steps", values="sampled")
    solved = shares.columns[shares.gt(0).any()].max()
    tasks = mine[mine.arm == "start"].set_index("steps").tasks
    steps = [step for step in shares.columns if step <= solved]
    return grid(
        f"Success by the exact number of composed steps, from {starter}.",
        f"Sampled, tasks of all levels, mean over seeds. No arm is right in carts of more than {solved} steps "
        f"(the most are {shares.columns.max()}). Carts of nine steps and more hold four things, as no cart of a "
        "level up to 6 does.",
        ["steps", *map(str, steps)],
        [["tasks", *(f"{tasks[step]:.0f}" for step in steps)]]
        + [[arm, *map(number, row)] for arm, row in shares[steps].iterrows()],
    )


def growth(table: pd.DataFrame) -> str:
    """Write what arms gained in either half of the training."""
    rows = []
    for (starter, arm), mine in table.groupby(["starter", "arm"]):
        of = {r.half: interval(r) for _, r in mine.iterrows()}
        rows.append([starter, arm, mine.seeds.max(), of["first"], of["second"]])
    return grid(
        "Growth.",
        "What sampled success gains in either half of the training, on the 256 tasks of the training curve [95%], not "
        "corrected.",
        ["starter", "arm", "seeds", "first 128 steps", "last 128 steps"],
        rows,
    )


def alone(table: pd.DataFrame, starter: str) -> str:
    """Write success in carts of one or two kinds of steps."""
    shares = table[table.starter == starter].pivot_table(
        index="arm", columns="cell", values="sampled", sort=False
    )
    return grid(
        f"Success in carts of one or two kinds of steps, from {starter}.",
        "Sampled, 192 tasks a cell of block 0, mean over seeds; *plain* is one thing without option or quantity.",
        ["arm", *shares.columns],
        [[arm, *map(number, row)] for arm, row in shares.sort_index().iterrows()],
    )


def health(table: pd.DataFrame, success: pd.DataFrame) -> str:
    """Write what the runs drew, and how they went; and how success goes with groups that have an advantage."""
    ends = success[(success.levels == "0-6") & (success.decoding == "sampled")]
    both = table.merge(ends, on=["starter", "arm"], suffixes=("", "_end"))
    ranks = ", ".join(
        f"{number(mine.mixed.corr(mine.success, method='spearman'))} from {starter}"
        for starter, mine in both.groupby("starter")
    )
    rows = []
    for r in table.itertuples():
        windowed = r.arm.startswith("adaptive")
        drawn = [r.highest if r.highest else "", r.above_6 or "", f"{r.window:.2f}" if windowed else ""]
        went = [number(r.mixed), number(r.without), number(r.truncated), f"{r.alarms:.0f}"]
        rows.append([r.starter, r.arm, r.seeds, *drawn, *went])
    return grid(
        "What the arms drew, and how they went.",
        "*highest*: the highest level that any run drew (none for arms that draw sizes of steps); *above 6*: steps of "
        "all runs together that drew a level above 6; then means over runs: the top of the window at the end, groups "
        "with non-zero advantage, steps without any and so without an update, rollouts that were cut off, alarms "
        "(nearly all: the entropy has risen to three times that of the first steps). Rank correlation, over arms, of "
        f"groups with advantage and sampled success at levels 0 to 6: {ranks}.",
        [
            *("starter", "arm", "seeds", "highest", "above 6", "window", "groups with advantage"),
            *("steps without update", "cut off", "alarms"),
        ],
        rows,
    )


def environments(table: pd.DataFrame) -> str:
    """Write S2's slopes."""
    called = {
        "slopes": "gain of the environment held out",
        "company": "success in the order's first environment",
    }
    rows = []
    for (name, decoding), mine in table.groupby(["table", "decoding"], sort=False):
        of = mine.set_index("what")
        found = [interval(one) for _, one in of.iterrows()]
        rows.append([called[name], decoding, of.orders.max(), found[0], p_value(of.p["slope"]), *found[1:]])
    counts = [what for what in dict.fromkeys(table.what) if what != "slope"]
    return grid(
        "Environments.",
        "Slope of success over log2 of the number of environments that are trained, mean over orders, two-sided "
        "t. The gain of the environment held out, greedy, is primary (768 tasks a run; the first environment has "
        "96). All runs have 256 steps, so that each of k environments gets a k-th of them.",
        ["success", "decoding", "orders", "slope a doubling [95%]", "p", *counts],
        rows,
    )


def mended(table: pd.DataFrame) -> str:
    """Write S4's contrasts."""
    return mending(
        "Planted mistakes that were mended.",
        "Shares of both arms on the pairs (task, turn, kind) that both have, nearly all wrong quantities, so "
        "that an arm's share differs by contrast. The interval is the registered bootstrap over seeds and tasks, "
        "which is narrow with few seeds; p is of a t over the seeds' own differences, which was added after 59 runs. "
        "adaptive - static-4-6 at level 1 is primary. A mistake is mended where nothing is wrong at its place at "
        "the end; the cart may be wrong elsewhere.",
        table,
    )


def mended_arms(table: pd.DataFrame) -> str:
    """Write every arm's share of mistakes mended beside its starter's."""
    return mending(
        "Every arm and its starter.",
        "Exploratory: arms were not registered to be compared so. Level 1; otherwise as above.",
        table[table.level == 1].sort_values(["starter", "difference"], ascending=False),
    )


def recovery(table: pd.DataFrame, success: pd.DataFrame) -> str:
    """Write what given turns that end in a mistake teach."""
    of = {(r.starter, r.decoding): interval(r) for _, r in success.iterrows()}
    found = "; ".join(f"from {starter}, {decoding}, {one}" for (starter, decoding), one in of.items())
    return mending(
        "Given turns that end in a mistake.",
        f"Exploratory, registered later. Success over levels 0 to 6, recovery - recovery-control: {found}. Mended, as "
        "above:",
        table[table.contrast == RECOVERY],
    )


def mending(title: str, note: str, table: pd.DataFrame) -> str:
    """Write contrasts of shares mended."""
    return grid(
        title,
        note,
        [
            *("starter", "contrast", "level", "seeds", "pairs"),
            *("first arm", "second arm", "difference [95%]", "p over seeds"),
        ],
        [
            [
                *(r.starter, r.contrast, r.level, r.seeds, r.pairs),
                *(number(r.one), number(r.other), interval(r), p_value(r.p_seeds)),
            ]
            for _, r in table.iterrows()
        ],
    )  # fmt: skip


def grid(title: str, note: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a table with its title and what to know of it."""
    lines = [columns, ["---"] * len(columns), *rows]
    body = "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
    return f"**{title}** {note}\n\n{body}\n"


def interval(row: pd.Series, name: str = "difference") -> str:
    """Write a value with its 95% interval; a difference has a sign."""
    sign = name == "difference"
    value = number(row[name], sign)
    return value if pd.isna(row.low) else f"{value} [{number(row.low, sign)}, {number(row.high, sign)}]"


def number(value: float, sign: bool = False) -> str:
    """Write a share as ".043", a difference as "+.043"; nothing where it is not known."""
    if pd.isna(value):
        return ""
    return (f"{value:+.3f}" if sign else f"{value:.3f}").replace("0.", ".", 1)


def p_value(value: float) -> str:
    """Write a p value as ".043", never as ".000"."""
    return "<.001" if value < 0.001 else number(value)
