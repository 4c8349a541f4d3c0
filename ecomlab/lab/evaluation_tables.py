"""What eval, compare and frontier have found as tables: in a terminal, as Markdown, JSON, CSV, Parquet and a radar."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ecomlab.customer.llm import FAILED, UNASKED
from ecomlab.evaluation import compare as comparison
from ecomlab.evaluation import frontier as search
from ecomlab.evaluation.summary import smallest_difference
from ecomlab.evaluation.transcript_tables import flat, to_dataset
from ecomlab.evaluation.transcripts import read, read_header
from ecomlab.files import write_json, write_text

Rows = list[list[str]]
HEADINGS = [
    "env", "d", "success", "95%", "of all", "reward", "turns", "questions", "learned", "tokens", "unscored",
]  # fmt: skip
SMALL = 50
"""Fewer tasks than these in a cell are a look at a player, no measurement."""
FEW_CUT = 0.02
"""Share of episodes that may end at a limit of tokens without a word about it."""


def rows_of(found: Mapping[str, Any]) -> tuple[list[str], Rows]:
    """Lay out a report as a table: headings and rows, with pass^k and flips where there are several trials."""
    trials = found["header"]["cells"]["trials"]
    several = [*(f"pass^{k}" for k in range(2, trials + 1)), "flips"] if trials > 1 else []
    many = len(found["cells"]) > len(found["environments"]) > 1
    groups = [*found["cells"], *(found["environments"] if many else []), found["all"]]
    return [*HEADINGS, *several], [_row(group, trials) for group in groups]


def _row(group: Mapping[str, Any], trials: int) -> list[str]:
    several = [*group["pass_k"][1:], group["flips"]] if trials > 1 else []
    return [
        group["env"],
        "all" if group["d"] is None else str(group["d"]),
        _share(group["success"]),
        "" if math.isnan(group["low"]) else f"{_share(group['low'])}–{_share(group['high'])}",
        _share(group["success_of_all"]),
        _share(group["reward"]),
        _number(group["turns"], 1),
        _number(group["questions"], 1),
        _number(group["learned"], 1),
        _number(group["tokens"], 0),
        f"{sum(group['unscored'].values())}/{group['episodes']}",
        *map(_share, several),
    ]


def notes_of(found: Mapping[str, Any]) -> list[str]:
    """Say beside the table what its columns are, how episodes ended, why some are unscored, and what they cost."""
    whole = found["all"]
    lost = [f"unscored, {kind}: {why.removeprefix(f'{kind}: ')}" for kind, why in found["reasons"].items()]
    again = "--retry-unscored plays unscored episodes again"
    if sum(whole["unscored"].values()) == whole["episodes"]:
        said = ["nothing was scored", *lost, again]
    else:
        said = [*_scored_notes(found), *lost, *([again] if lost else [])]
    return [*said, *_doubts(found), *_ledger(found)]


def _doubts(found: Mapping[str, Any]) -> list[str]:
    """Say what may be wrong with server or limits, and how much of what the customer's endpoint wrote was used."""
    said = _cut_off(found)
    if found.get("only_reasoning"):
        said.append(
            f"in {found['only_reasoning']} episodes answers held reasoning alone, and were empty: see whether the "
            "server's parser of reasoning takes the answer with it"
        )
    if found.get("filtered"):
        said.append(
            f"in {found['filtered']} episodes the endpoint's filter of content ended an answer, which counts as a "
            "refusal"
        )
    if found["calls_in_text"]:
        identity = found["header"]["identity"]
        if identity.get("tools") == "text" or identity.get("kind") == "local":
            who = "the model wrote calls in another form than its template's"
            local = "see them in `ecomlab view`; its chat template may be that of another model"
            way_out = local if identity.get("kind") == "local" else "use another --set template"
        else:
            who, way_out = "the server left calls", "switch its parser of calls on, or use --set tools=text"
        said.append(
            f"in {found['calls_in_text']} episodes {who} in the text, where they are words to the customer: {way_out}"
        )
    if exchanges := found["customer"]["exchanges"]:
        refused = found["customer"]["refused"]
        said.append(
            f"customer's endpoint: asked {exchanges} times, refused {sum(refused.values())} times "
            f"({_counts(refused)}); what is refused is said by the template"
        )
        if refused.keys() <= {FAILED, UNASKED} and sum(refused.values()) >= exchanges:
            why = found["customer"].get("no_answer") or "nobody said why"
            said.append(
                f"the customer's endpoint never answered ({why}), and all words are the templates': check its url, "
                "model and key, and evaluate again with another --out"
            )
    return said


def _cut_off(found: Mapping[str, Any]) -> list[str]:
    """Say how many episodes ended at a limit of tokens, where they are more than `FEW_CUT`."""
    cut = {name: count for name, count in found["all"]["faults"].items() if name in ("length", "context")}
    if sum(cut.values()) <= FEW_CUT * found["all"]["episodes"]:
        return []
    local = found["header"]["identity"].get("kind") == "local"
    settings = "turn_tokens, episode_tokens, context_tokens" if local else "max_tokens, context"
    unasked = f", {found['unasked']} of them by their opening alone" if found.get("unasked") else ""
    return [
        f"{sum(cut.values())} of {found['all']['episodes']} episodes ended at a limit of tokens ({_counts(cut)})"
        f"{unasked}: where the model could say more, give it more by --set {settings}"
    ]


def _ledger(found: Mapping[str, Any]) -> list[str]:
    """Word what was asked of each role's model, a line each."""
    return [_used(role, used) for role, used in found["ledger"].items()]


def _used(role: str, used: Mapping[str, Any]) -> str:
    """Word what was asked of a role's model."""
    cost = f", {used['cost']:.2f} {used['currency']}" if "cost" in used else ""
    tokens = (
        f"{used['prompt_tokens']:,} prompt tokens ({used['cached_tokens']:,} cached), "
        f"{used['completion_tokens']:,} sampled"
        if used["prompt_tokens"] or not used["requests"]
        else "tokens not told"
    )
    return (
        f"{role}: {used['requests']:,} requests, {tokens}, {used['retries']:,} retries, "
        f"{used['seconds']:,.0f} s of waiting, added up over episodes that may run side by side{cost}"
    )


def _scored_notes(found: Mapping[str, Any]) -> list[str]:
    """Say what the columns are, of what the reward consists, how episodes ended, and what would show a difference."""
    whole = found["all"]
    parts = ", ".join(
        f"{name} {_share(whole[f'reward_{name}'])}" for name in ("task", "efficiency", "hallucination")
    )
    if math.isnan(whole["reward_task"]):
        parts = "none"
    return [
        "of all: unscored episodes as failures; questions: asked in an episode; learned: slots a question; tokens: "
        "sampled in an episode; the interval is of this player, over tasks",
        f"reward by parts (invalid episodes have none): {parts}",
        f"ends: {_counts(whole['ends'])}; mistakes of form: {_counts(whole['faults'])}; "
        f"unscored: {_counts(whole['unscored'])}",
        *_shown(whole["shows"], max((cell["shows"] for cell in found["cells"]), default=math.nan)),
        *_small(found["cells"]),
    ]


def _shown(whole: float, cell: float) -> list[str]:
    """Say which difference all tasks show, and those of a cell; nothing where they show none, which `_small` says."""
    if whole >= 1:
        return []
    in_cell = f"in one cell by {_share(cell)}" if cell < 1 else "in the smallest cell none is"
    return [
        f"a second player's success must differ by about {_share(whole)} to be shown in all, {in_cell}; "
        "compare them on the same tasks"
    ]


def _small(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say which difference the smallest cells can show at best, where they have few tasks."""
    few = [cell["tasks"] for cell in cells if cell["tasks"] < SMALL]
    if not few:
        return []
    gap = smallest_difference(min(few))
    can = f"must differ by {_share(gap)} to be told apart" if gap < 1 else "cannot be told apart"
    return [
        f"{len(few)} of {len(cells)} cells have fewer than {SMALL} tasks, the smallest {min(few)}: a look, no "
        f"measurement; at a success of one half, two players of so few tasks {can}"
    ]


def comparison_rows(found: comparison.Comparison) -> tuple[list[str], Rows]:
    """Lay out a comparison as a table."""
    headings = ["env", "tasks", *found.players, "difference", "95%", "shown"]
    rows = [
        [d.group, str(d.tasks), _share(d.first), _share(d.second), f"{d.mean:+.3f}", f"{d.low:+.3f} to {d.high:+.3f}",
         "yes" if d.shown else "no"]
        for d in (*found.environments, found.overall)
    ]  # fmt: skip
    return headings, rows


def frontier_rows(found: Mapping[str, Any]) -> tuple[list[str], Rows]:
    """Lay out a frontier as a table."""
    headings = ["env", *(f"held at {share:.0%}" for share in search.SHARES), "episodes", "unscored"]
    rows = [
        [one["env"], *(search.words(search.Held(**held)) for held in one["held"]), str(one["episodes"]),
         str(one["unscored"])]
        for one in found["environments"]
    ]  # fmt: skip
    return headings, rows


def show_report(
    found: Mapping[str, Any], console: Console, json_file: Path | None = None, markdown: Path | None = None
) -> None:
    """Print what an evaluation came to, and write it where files are given."""
    title = f"{found['header']['player']}: held-out success"
    show(title, rows_of(found), notes_of(found), console, found, json_file, markdown)


def show_comparison(
    first: Path,
    second: Path,
    console: Console,
    json_file: Path | None = None,
    markdown: Path | None = None,
) -> None:
    """Compare two evaluations, print the result, and write it where files are given."""
    found = comparison.compare(first, second)
    notes = [found.verdict, "intervals are 95%, of paired differences, over tasks; those of environments are not "
             "corrected for their number"]  # fmt: skip
    if any(found.left_out):
        notes.append(
            f"left out, for only one has scored them: {found.left_out[0]} and {found.left_out[1]} episodes, of levels, "
            "tasks or trials that the other lacks"
        )
    title = f"{found.players[0]} against {found.players[1]}"
    show(title, comparison_rows(found), notes, console, found.to_json(), json_file, markdown)


def show_frontier(
    found: Mapping[str, Any],
    console: Console,
    json_file: Path | None = None,
    markdown: Path | None = None,
    figure: Path | None = None,
) -> None:
    """Print a frontier, and write and draw it where files are given."""
    title = f"{found['header']['player']}: highest difficulty held"
    held = (
        "in brackets: the 95% interval, where that is more than one level; held: success there and at every level "
        "below is at least the share"
    )
    risen = [
        f"{one['env']}: success rises with the level, which the search presumes it does not, so that its row is no "
        "answer; --json writes what was played and won at each level"
        for one in found["environments"]
        if one["rises"]
    ]
    notes = [held, *risen, *_ledger(found)]
    show(title, frontier_rows(found), notes, console, found, json_file, markdown)
    if figure is not None:
        from ecomlab.analysis.capability_plots import frontier_radar
        from ecomlab.lab.figures import save

        header = found["header"]
        drawn = frontier_radar(found["environments"], header["player"])
        catalog = header["conditions"]["catalog"]["fingerprint"]
        known = {"player": header["player"], "identity": header["identity"], "search": header["search"]}
        save(drawn, figure.stem, out=figure.resolve().parent, parameters=known, catalog=catalog)
        console.print(f"drawn in {figure.with_suffix('.pdf')}", soft_wrap=True)


def show(
    title: str,
    table: tuple[list[str], Rows],
    notes: Sequence[str],
    console: Console,
    value: Mapping[str, Any],
    json_file: Path | None = None,
    markdown: Path | None = None,
) -> None:
    """Print a table with notes; write it as Markdown, and `value` as JSON, where files are given."""
    headings, rows = table
    drawn = Table(*headings, title=title, title_justify="left", box=None, pad_edge=False)
    for column in drawn.columns[1:]:
        column.justify = "right"
    for row in rows:
        drawn.add_row(*map(escape, row))
    widened(console, drawn).print(drawn)
    for line in notes:
        console.print(escape(line), soft_wrap=True)
    if json_file is not None:
        write_json(json_file, without_nan(value))
        console.print(f"written to {json_file}", soft_wrap=True)
    if markdown is not None:
        write_text(markdown, as_markdown(title, table, notes))
        console.print(f"written to {markdown}", soft_wrap=True)


def widened(console: Console, whole: Table | None = None) -> Console:
    """Give a table 110 columns at least, and `whole` all that it needs: in fewer its values would be cut."""
    width = max(console.width, 110)
    if whole is not None:
        width = max(width, console.measure(whole, options=console.options.update(max_width=1_000)).maximum)
    return Console(file=console.file, highlight=False, width=width, force_terminal=console.is_terminal)


def as_markdown(title: str, table: tuple[list[str], Rows], notes: Sequence[str]) -> str:
    """Write a table with notes as Markdown."""
    headings, rows = table
    ruled = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    drawn = "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in ruled)
    said = "\n".join(f"- {line}" for line in notes)
    return f"# {title}\n\n{drawn}\n\n{said}\n"


def write_tables(
    found: Mapping[str, Any], csv_file: Path | None, parquet: Path | None, console: Console
) -> None:
    """Write an evaluation's episodes, without messages as CSV, whole as Parquet."""
    folder = Path(found["folder"])
    if csv_file is not None:
        import pandas as pd

        rows = pd.DataFrame(map(flat, read(folder)))
        write_text(csv_file, rows.to_csv(index=False, lineterminator="\n"))
        console.print(f"{len(rows)} episodes written to {csv_file}", soft_wrap=True)
    if parquet is not None:
        table = to_dataset(read_header(folder), read(folder))
        table.to_parquet(parquet)
        console.print(f"{len(table)} transcripts written to {parquet}", soft_wrap=True)


def without_nan(value: Any) -> Any:
    """Copy a JSON value with null for NaN and what is infinite, which JSON has not."""
    if isinstance(value, Mapping):
        return {name: without_nan(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _share(value: float) -> str:
    return _number(value, 3)


def _number(value: float, digits: int) -> str:
    return "" if math.isnan(value) else f"{value:.{digits}f}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"
