"""The study's main tables in Markdown, as analyse.py writes them into TABLES.md."""

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd
from study import CONTRASTS, STARTERS


def said(arms: str) -> str:
    """Call the arm *singles* otherwise than the starter of that name."""
    return " - ".join("single steps" if arm == "singles" else arm for arm in arms.split(" - "))


PRIMARY = [said(f"{one} - {other}") for one, other in CONTRASTS]
ENDS = (("0-6", "sampled"), ("0-6", "greedy"), ("7-8", "sampled"), ("7-8", "greedy"))
OTHERWISE = (("0-6, equal tokens", "sampled"), *ENDS[1:])
"""Secondary forms of the primary contrasts."""
SEVENTH = "†"
"""Marks arms that drew level 7 or more."""


def as_markdown(made: Mapping[str, pd.DataFrame]) -> str:
    """Write the tables that analyse.py makes, by name, in Markdown."""
    parts = [
        "<!-- Written by experiments/frontier/analyse.py. -->\n",
        finished(made["runs"]),
        primary(made["contrasts"], made["fresh"]),
        predicted(made["predictions"]),
        otherwise(made["contrasts"]),
        others(made["contrasts"]),
        ends(made["success"], made["curves"], made["health"]),
        health(made["health"]),
        *(by_steps(made["by_steps"], starter) for starter in STARTERS),
        environments(made["environments"]) if "environments" in made else "",
        mended(made["mended"]),
        recovery(made["recovery"], made["recovery_success"]) if "recovery" in made else "",
    ]
    return "\n".join(part for part in parts if part)


def finished(runs: pd.DataFrame) -> str:
    """Say how many runs are done, and which arms lack some."""
    left = runs[runs.finished < runs.registered]
    lacking = "; ".join(f"{r.arm} from {r.starter} {r.finished} of {r.registered}" for r in left.itertuples())
    done = f"{runs.finished.sum()} of the {runs.registered.sum()} registered runs are done"
    return f"{done}{f' ({lacking})' if lacking else ''}.\n"


def primary(contrasts: pd.DataFrame, fresh: pd.DataFrame) -> str:
    """Write S1's primary contrasts, on all seeds and on those that no gate had."""
    again = {(r.starter, r.contrast): r for _, r in fresh.iterrows()}
    tested = ("difference [95%]", "p, Holm")
    rows = []
    for _, r in contrasts[contrasts.holm.notna()].iterrows():
        new = again.get((r.starter, r.contrast))
        beside = (
            ["", "", ""] if new is None else [f"{new.seeds} of {new.of}", interval(new), number(new.holm)]
        )
        rows.append(
            [r.starter, r.contrast, f"{r.seeds} of {r.of}", interval(r), number(r.p), number(r.holm), *beside]
        )
    return grid(
        "Primary contrasts.",
        "Success over levels 0 to 6, sampled, both blocks, at the end of the run; paired by seed, two-sided t, Holm "
        "over a starter's four. A claim needs the same sign and p below .05 after Holm from both starters. Intervals "
        "cover training seeds on one fixed set of tasks. On the right the same on seeds that no gate had.",
        ["starter", "contrast", "seeds", *tested[:1], "p", *tested[1:], "fresh seeds", *tested],
        rows,
    )


def predicted(table: pd.DataFrame) -> str:
    """Write every prediction with its outcome."""
    return grid(
        "Predictions.",
        "*held*: the 95% interval has what was predicted, and not zero; *open*: both; *sign*: neither, but it is on "
        "the right side of zero. Within a bound of zero: *held* if the interval is within, *open* if it reaches "
        "out. Orders and sums are judged by means alone (`predictions.py`).",
        list(table.columns),
        table.itertuples(index=False),
    )


def otherwise(contrasts: pd.DataFrame) -> str:
    """Write the primary contrasts in their secondary forms."""
    chosen = contrasts[contrasts.contrast.isin(PRIMARY)]
    rows = []
    for (starter, contrast), mine in chosen.groupby(["starter", "contrast"], sort=False):
        of = {(r.levels, r.decoding): interval(r) for _, r in mine.iterrows()}
        rows.append([starter, contrast, *(of.get(form, "") for form in OTHERWISE)])
    return grid(
        "The same contrasts otherwise.",
        "Not corrected. At equal tokens: levels 0, 2, 4 and 6 of block 0 (256 tasks), read from the curves where the "
        "thriftier of the two ended; what a demonstrator plays is not counted.",
        [
            "starter",
            "contrast",
            "equal tokens, sampled",
            "0-6, greedy",
            "levels 7-8, sampled",
            "levels 7-8, greedy",
        ],
        rows,
    )


def others(contrasts: pd.DataFrame) -> str:
    """Write all other arms against adaptive."""
    chosen = contrasts[~contrasts.contrast.isin(PRIMARY) & (contrasts.levels == "0-6")]
    rows = []
    for (starter, contrast), mine in chosen.groupby(["starter", "contrast"], sort=False):
        of = {r.decoding: interval(r) for _, r in mine.iterrows()}
        rows.append([starter, contrast, mine.seeds.max(), of["sampled"], of["greedy"]])
    return grid(
        "All other arms against adaptive.",
        "Levels 0 to 6, not corrected.",
        ["starter", "contrast", "seeds", "sampled", "greedy"],
        rows,
    )


def ends(success: pd.DataFrame, curves: pd.DataFrame, health: pd.DataFrame) -> str:
    """Write each arm's success after training, and what it sampled."""
    tokens = curves.groupby(["starter", "arm", "seed"]).tokens.max().groupby(["starter", "arm"]).mean()
    seventh = {(r.starter, r.arm) for r in health.itertuples() if r.above_6}
    rows = []
    for (starter, arm), mine in success.groupby(["starter", "arm"], sort=False):
        of = {(r.levels, r.decoding): interval(r, "success") for _, r in mine.iterrows()}
        spent = f"{tokens[starter, arm] / 1e6:.2f}" if (starter, arm) in tokens else ""
        arm += SEVENTH * ((starter, arm) in seventh)
        rows.append([starter, arm, mine.seeds.max(), *(of[form] for form in ENDS), spent])
    return grid(
        "Success after training.",
        "Mean over all seeds that an arm has [95%], 384 tasks a level; *start* is before training; tokens are all that "
        f"were sampled in training. {SEVENTH}: a window drew level 7.",
        ["starter", "arm", "seeds", *(f"levels {levels}, {decoding}" for levels, decoding in ENDS), "tokens, millions"],
        rows,
    )  # fmt: skip


def by_steps(table: pd.DataFrame, starter: str) -> str:
    """Write success by the exact number of composed steps."""
    mine = table[table.starter == starter]
    shares = mine.pivot_table(index="arm", columns="steps", values="sampled")
    tasks = mine[mine.arm == "start"].set_index("steps").tasks
    counts = ", ".join(f"{tasks[steps]:.0f}" for steps in shares.columns)
    return grid(
        f"Success by the exact number of composed steps, from {starter}.",
        f"Sampled, all levels, mean over seeds; of {counts} tasks. Carts of 9 steps and more hold four things, as no "
        "cart of a level up to 6 does.",
        ["arm", *map(str, shares.columns)],
        [[arm, *map(number, row)] for arm, row in shares.iterrows()],
    )


def health(table: pd.DataFrame) -> str:
    """Write what the runs drew, and how they went."""
    return grid(
        "What the arms drew, and how they went.",
        "Mean over seeds: the highest level that was drawn (0: single steps, and what skill-wise makes of level 0), "
        "and the window's at the end; groups with non-zero advantage; steps without any, so without an update; "
        "rollouts that were cut off; alarms a run (nearly all: the entropy has risen to three times the first steps').",
        [
            "starter",
            "arm",
            "seeds",
            "highest",
            "above 6",
            "window",
            "mixed groups",
            "no update",
            "cut off",
            "alarms",
        ],
        [
            [
                *(
                    r.starter,
                    r.arm,
                    r.seeds,
                    r.highest,
                    f"{r.above_6} steps" if r.above_6 else "",
                    f"{r.window:.1f}",
                ),
                *(number(r.mixed), number(r.without), number(r.truncated), f"{r.alarms:.0f}"),
            ]
            for r in table.itertuples()
        ],
    )


def environments(table: pd.DataFrame) -> str:
    """Write S2's slopes."""
    return grid(
        "Environments.",
        "Slope over log2 of the number that is trained, mean over orders, two-sided t. *slopes*: the gain of the "
        "environment held out (greedy is primary; 768 tasks), *company*: success in the order's first one (96 tasks). "
        "256 steps in all whatever their number, so that each of k environments gets a k-th.",
        ["of", "decoding", "orders", "slope a doubling [95%]", "p"],
        [[r.table, r.decoding, r.orders, interval(r), number(r.p)] for _, r in table.iterrows()],
    )  # fmt: skip


def mended(table: pd.DataFrame) -> str:
    """Write S4's contrasts."""
    return mending(
        "Planted mistakes that were mended.",
        "On common pairs, nearly all wrong quantities; bootstrap over seeds and tasks, and a t over the seeds' own "
        "differences. adaptive - static-4-6 at level 1 is primary. A mistake is mended where nothing is wrong at its "
        "place at the end; the cart may be wrong elsewhere.",
        table,
    )


def recovery(table: pd.DataFrame, success: pd.DataFrame) -> str:
    """Write what given turns that end in a mistake teach."""
    of = {(r.starter, r.decoding): interval(r) for _, r in success.iterrows()}
    found = "; ".join(f"from {starter}, {decoding}, {one}" for (starter, decoding), one in of.items())
    return mending(
        "Given turns that end in a mistake.",
        f"Exploratory, registered later. Success over levels 0 to 6, recovery - recovery-control: {found}. Mended, as "
        "above:",
        table,
    )


def mending(title: str, note: str, table: pd.DataFrame) -> str:
    """Write contrasts of shares mended."""
    return grid(
        title,
        note,
        ["starter", "contrast", "level", "seeds", "pairs", "mended", "other", "difference [95%]", "p over seeds"],
        [
            [
                *(r.starter, r.contrast, r.level, r.seeds, r.pairs),
                *(number(r.one), number(r.other), interval(r), number(r.p_seeds)),
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
