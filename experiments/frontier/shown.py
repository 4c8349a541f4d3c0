"""The study's main tables in Markdown, as analyse.py writes them into TABLES.md."""

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd
from study import CONTRASTS, STARTERS

PRIMARY = [f"{one} - {other}" for one, other in CONTRASTS]
OTHERWISE = (("0-6, equal tokens", "sampled"), ("0-6", "greedy"), ("7-8", "sampled"), ("7-8", "greedy"))
"""Secondary forms of the primary contrasts."""
ENDS = (("0-6", "sampled"), ("0-6", "greedy"), ("7-8", "sampled"), ("7-8", "greedy"))
STEPS = 8
"""Numbers of composed steps that are shown."""


def as_markdown(made: Mapping[str, pd.DataFrame]) -> str:
    """Write the tables that analyse.py makes, by name, in Markdown."""
    parts = [
        "<!-- Written by experiments/frontier/analyse.py. -->\n",
        finished(made["runs"]),
        primary(made["contrasts"]),
        otherwise(made["contrasts"]),
        ends(made["success"], made["curves"]),
        *(by_steps(made["by_steps"], starter) for starter in STARTERS),
        environments(made["environments"]) if "environments" in made else "",
        mended(made["mended"]),
    ]
    return "\n".join(part for part in parts if part)


def finished(runs: pd.DataFrame) -> str:
    """Say how many runs are done, and which arms lack some."""
    left = runs[runs.finished < runs.registered]
    lacking = "; ".join(
        f"{said(r.arm)} from {r.starter} {r.finished} of {r.registered}" for r in left.itertuples()
    )
    done = f"{runs.finished.sum()} of the {runs.registered.sum()} registered runs are done"
    return f"{done}{f' ({lacking})' if lacking else ''}.\n"


def primary(contrasts: pd.DataFrame) -> str:
    """Write S1's primary contrasts."""
    return grid(
        "Primary contrasts.",
        "Success over levels 0 to 6, sampled, at the end of the run; paired by seed, two-sided t.",
        ["starter", "contrast", "seeds", "difference [95%]", "p", "p, Holm"],
        [
            [r.starter, said(r.contrast), r.seeds, interval(r), number(r.p), number(r.holm)]
            for _, r in contrasts[contrasts.holm.notna()].iterrows()
        ],
    )


def otherwise(contrasts: pd.DataFrame) -> str:
    """Write the primary contrasts in their secondary forms."""
    chosen = contrasts[contrasts.contrast.isin(PRIMARY)]
    rows = []
    for (starter, contrast), mine in chosen.groupby(["starter", "contrast"], sort=False):
        of = {(r.levels, r.decoding): interval(r) for _, r in mine.iterrows()}
        rows.append([starter, said(contrast), *(of.get(form, "") for form in OTHERWISE)])
    forms = [f"{'levels ' * (levels == '7-8')}{levels}, {decoding}" for levels, decoding in OTHERWISE]
    return grid("The same contrasts otherwise.", "Not corrected.", ["starter", "contrast", *forms], rows)


def ends(success: pd.DataFrame, curves: pd.DataFrame) -> str:
    """Write each arm's success after training, and what it sampled."""
    tokens = curves.groupby(["starter", "arm", "seed"]).tokens.max().groupby(["starter", "arm"]).mean()
    rows = []
    for (starter, arm), mine in success.groupby(["starter", "arm"], sort=False):
        of = {(r.levels, r.decoding): interval(r, "success") for _, r in mine.iterrows()}
        spent = f"{tokens[starter, arm] / 1e6:.2f}" if (starter, arm) in tokens else ""
        rows.append([starter, said(arm), mine.seeds.max(), *(of[form] for form in ENDS), spent])
    return grid(
        "Success after training.",
        "Mean over seeds [95%]; *start* is before training; tokens are all that were sampled in training.",
        ["starter", "arm", "seeds", *(f"levels {levels}, {decoding}" for levels, decoding in ENDS), "tokens, millions"],
        rows,
    )  # fmt: skip


def by_steps(table: pd.DataFrame, starter: str) -> str:
    """Write success by the exact number of composed steps."""
    mine = table[(table.starter == starter) & (table.steps <= STEPS)]
    shares = mine.pivot_table(index="arm", columns="steps", values="sampled")
    return grid(
        f"Success by the exact number of composed steps, from {starter}.",
        "Sampled, mean over seeds.",
        ["arm", *map(str, shares.columns)],
        [[said(arm), *map(number, row)] for arm, row in shares.iterrows()],
    )


def environments(table: pd.DataFrame) -> str:
    """Write S2's slopes."""
    return grid(
        "Environments.",
        "Slope over log2 of the number that is trained, mean over orders, two-sided t. *slopes*: the gain of the "
        "environment held out (greedy is primary); *company*: success in the order's first one.",
        ["of", "decoding", "orders", "slope a doubling [95%]", "p"],
        [[r.table, r.decoding, r.orders, interval(r), number(r.p)] for _, r in table.iterrows()],
    )  # fmt: skip


def mended(table: pd.DataFrame) -> str:
    """Write S4's contrasts."""
    return grid(
        "Planted mistakes that were mended.",
        "On common pairs; bootstrap over seeds and tasks. adaptive - static-4-6 at level 1 is primary.",
        ["starter", "contrast", "level", "seeds", "pairs", "mended", "by the other", "difference [95%]"],
        [
            [r.starter, r.contrast, r.level, r.seeds, r.pairs, number(r.one), number(r.other), interval(r)]
            for _, r in table.iterrows()
        ],
    )


def said(arms: str) -> str:
    """Call the arm *singles* otherwise than the starter of that name."""
    return " - ".join("single steps" if arm == "singles" else arm for arm in arms.split(" - "))


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
