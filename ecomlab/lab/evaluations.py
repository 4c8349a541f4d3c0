"""The commands eval, compare and frontier: they run, show progress, and print and write what was found."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from ecomlab.catalog import Shop, load_shop
from ecomlab.customer.llm import Chat
from ecomlab.evaluate import compare as comparison
from ecomlab.evaluate import frontier as search
from ecomlab.evaluate.contestant import Contestant
from ecomlab.evaluate.evaluation import (
    EVALUATION,
    FRONTIER,
    Cells,
    Rescored,
    header_of,
    rescore,
    run_evaluation,
)
from ecomlab.evaluate.heldout import check_decoding
from ecomlab.evaluate.summary import Ledger, report, smallest_difference
from ecomlab.evaluate.transcripts import FILE, Transcript, flat, path_of, read, read_header, to_dataset
from ecomlab.files import write_json, write_text
from ecomlab.lab.paths import resolve, shown
from ecomlab.lab.progress import QUIET_SECONDS, Pace, time_left
from ecomlab.lab.provenance import commit, versions
from ecomlab.suggest import unknown

RUNS = "experiments/runs/eval"
"""Folder of evaluations that were not told where to go."""
RESCORED = "rescored.json"
Rows = list[list[str]]


LIMITS = {"turn_tokens": "turn", "episode_tokens": "episode", "context_tokens": "context"}
LOCAL = ("temperature", "batch", "dtype", "lora_rank", "thinking")
"""Settings of a local model, beside `LIMITS`, which are named as a training run names them."""


def make_contestant(
    player: str,
    shop: Shop,
    envs: Sequence[str],
    decoding: str | None,
    changes: Mapping[str, Any],
    customer: Chat | None = None,
) -> Contestant:
    """Make a player by name, with settings: an endpoint's, over its file, or a local model's. Raises ValueError.

    `customer` is the endpoint that words the customer, if any.
    """
    from ecomlab.evaluate.players import contestant_of

    if Path(player).suffix == ".toml":
        if decoding:
            raise ValueError(
                "an endpoint has no --decoding; use --set temperature=0 for the most likely answers"
            )
        return contestant_of(player, shop, envs, changes, customer)
    local: dict[str, Any] = {"decoding": decoding} if decoding else {}
    if wrong := [name for name in changes if name not in (*LIMITS, *LOCAL)]:
        raise ValueError(f"--set: {unknown('setting', wrong[0], (*LIMITS, *LOCAL))}")
    if limits := {LIMITS[name]: value for name, value in changes.items() if name in LIMITS}:
        from ecomlab.models.samplers.cached import Limits

        local["limits"] = Limits(**limits)
    local |= {name: value for name, value in changes.items() if name in LOCAL}
    made = contestant_of(player, shop, envs, customer=customer, **local)
    if made.identity["kind"] == "script" and (decoding or changes):
        raise ValueError(f"{player} is a script, which has no settings; leave out --set and --decoding")
    return made


def folder_of(player: str, kind: str, out: Path | None) -> Path:
    """Return the folder of a run: the one given, or one that is named after the player."""
    name = "-".join(part for part in Path(player).with_suffix("").parts[-2:] if part not in ("/", "."))
    default = name.replace(" ", "-") + ("" if kind == EVALUATION else f"-{kind}")
    return resolve(out or f"{RUNS}/{default}")


def made_with() -> dict[str, Any]:
    """Name the software: commit and versions of the libraries."""
    return {"commit": commit(), "libraries": versions()}


def evaluate(
    player: str | None,
    cells: Cells,
    console: Console,
    *,
    decoding: str | None = None,
    changes: Mapping[str, Any] | None = None,
    size: int = 20_000,
    out: Path | None = None,
    customer: Chat | None = None,
    budget: float | None = None,
    retry_unscored: bool = False,
) -> dict[str, Any]:
    """Run or continue an evaluation, with a bar; return its report, and under "folder" where the transcripts are."""
    made = _make(player, cells.envs, EVALUATION, decoding, changes, size, out, customer)
    header = header_of(
        EVALUATION, made.name, made.contestant, cells.envs, cells.axes, made.shop, made.catalog
    )
    with watched(made, console) as tell:
        run_evaluation(
            made.contestant, cells, made.shop, made.folder, header, made_with(),
            budget=budget, retry_unscored=retry_unscored, tell=tell,
        )  # fmt: skip
    return report_of(made.folder, _prices(made.contestant))


def find_frontier(
    player: str | None,
    envs: Sequence[str],
    console: Console,
    *,
    decoding: str | None = None,
    changes: Mapping[str, Any] | None = None,
    size: int = 20_000,
    out: Path | None = None,
    block: int = 0,
    retry_unscored: bool = False,
) -> dict[str, Any]:
    """Search a player's frontier, or go on with it, with a bar; return what was found."""
    made = _make(player, envs, FRONTIER, decoding, changes, size, out)
    header = header_of(FRONTIER, made.name, made.contestant, envs, {}, made.shop, made.catalog)
    with watched(made, console) as tell:
        found = search.find_frontier(
            made.contestant, envs, made.shop, made.folder, header, made_with(),
            block=block, retry_unscored=retry_unscored, tell=tell,
        )  # fmt: skip
    return {"header": read_header(made.folder), "environments": [one.to_json() for one in found]}


@dataclass(frozen=True)
class Made:
    """A player that is ready, with its shop and its folder."""

    name: str
    contestant: Contestant
    shop: Shop
    catalog: Mapping[str, int]
    folder: Path


def _make(
    player: str | None,
    envs: Sequence[str],
    kind: str,
    decoding: str | None,
    changes: Mapping[str, Any] | None,
    size: int,
    out: Path | None,
    customer: Chat | None = None,
) -> Made:
    assert player is not None, "options check it"
    if decoding:
        check_decoding(decoding)
    shop = load_shop(size)
    contestant = make_contestant(player, shop, envs, decoding, changes or {}, customer)
    return Made(player, contestant, shop, {"size": size, "seed": 0}, folder_of(player, kind, out))


def report_of(folder: Path, prices: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Report what an evaluation's transcripts come to, with its header and its ledger."""
    header, ledger = read_header(folder), Ledger(prices)
    for transcript in read(folder, every=True):
        ledger.add(transcript)
    found = report(read(folder), header["cells"]["trials"])
    return {"folder": str(folder), "header": header, **found, "ledger": ledger.to_json()}


def score_again(folder: Path, console: Console) -> int:
    """Score an evaluation's transcripts anew, print what changed and write it to rescored.json; return the number of
    changed scores."""
    header = read_header(folder)
    catalog = header["conditions"]["catalog"]
    shop = load_shop(catalog["size"], catalog["seed"])
    episodes, changed = 0, []
    for found in rescore(folder, shop):
        episodes += 1
        if found is not None:
            changed.append(found)
            console.print(escape(_worded(found)))
    file = path_of(folder).parent / RESCORED
    rows = [{"job": vars(one.job), "was": one.was, "now": one.now} for one in changed]
    write_json(file, {"episodes": episodes, "changed": rows, "made_with": made_with()})
    console.print(
        f"{episodes} episodes scored again, {len(changed)} differ; written to {shown(file)}", soft_wrap=True
    )
    return len(changed)


def _worded(found: Rescored) -> str:
    job = found.job
    now = found.now.get("differs") or f"{found.now['value']:.3f}, {found.now['why']}"
    return (
        f"{job.env} d = {job.d}, seed {job.seed}, trial {job.trial}: was {found.was['value']:.3f}, now {now}"
    )


def _prices(contestant: Contestant) -> dict[str, Any]:
    """Prices by role, of a player whose settings have them."""
    prices = getattr(getattr(contestant, "settings", None), "prices", None)
    return {"agent": prices} if prices else {}


# --- progress ---


@contextmanager
def watched(made: Made, console: Console) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Give a `tell` that draws a bar with episodes, success, cost and the time left; without a terminal, a line a
    minute."""
    console.print(f"transcripts: {shown(made.folder / FILE)}", soft_wrap=True)
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=None), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        yield _Watch(bar, Ledger(_prices(made.contestant)), console)


class _Watch:
    def __init__(self, bar: Progress, ledger: Ledger, console: Console) -> None:
        self.bar, self.ledger, self.console = bar, ledger, console
        self.task = bar.add_task("", total=1.0, left="")
        self.scored = self.won = self.unscored = 0
        self.pace: Pace | None = None
        self.printed = time.monotonic()

    def __call__(self, event: Mapping[str, Any]) -> None:
        kind = event["kind"]
        if kind == "episode":
            self.episode(event["transcript"], event["total"] - event["left"], event["total"])
        elif kind == "measured":
            self.console.print(
                f"{event['episodes']} episodes took {event['seconds']:.1f} s; all take about "
                f"{_duration(event['all'])} at this pace, less where more are played at once",
                soft_wrap=True,
            )
        elif kind == "plan":
            self.pace = None
            self.plan(event)

    def plan(self, event: Mapping[str, Any]) -> None:
        """Say what is played, and what it can show."""
        fewer = (
            f" of the {event['of']} asked for, to keep to the budget" if event["tasks"] < event["of"] else ""
        )
        gap = smallest_difference(event["tasks"] * event["cells"])
        self.console.print(
            f"{event['tasks']} tasks a cell{fewer}; {event['tasks'] * event['cells']} tasks in all show a difference "
            f"between two players of {gap:.3f} or more (80% power, at a success of one half; less the further from it)",
            soft_wrap=True,
        )

    def episode(self, transcript: Transcript, done: int, total: int) -> None:
        """Count an episode and draw the bar."""
        self.ledger.add(transcript)
        self.unscored += bool(transcript.unscored)
        self.scored += not transcript.unscored
        self.won += transcript.score.correct
        now = time.monotonic()
        self.pace = self.pace or Pace(now, (done - 1) / total)
        left = time_left(self.pace.seconds_left(now, done / total))
        success = f", success {self.won / self.scored:.3f}" if self.scored else ""
        lost = f", {self.unscored} unscored" if self.unscored else ""
        cost = f", {self.ledger.cost}" if self.ledger.cost else ""
        text = f"{done}/{total} episodes{success}{lost}{cost}"
        self.bar.update(self.task, completed=done / total, description=text, left=left)
        if not self.console.is_terminal and now - self.printed >= QUIET_SECONDS:
            self.printed = now
            self.console.print(f"{text}, {left}", soft_wrap=True)


def _duration(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 90
        else f"{seconds / 60:.0f} min"
        if seconds < 5400
        else f"{seconds / 3600:.1f} h"
    )


# --- tables ---

HEADINGS = ["env", "d", "success", "95%", "of all", "reward", "turns", "learned", "tokens", "unscored"]


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
        f"{_share(group['low'])}–{_share(group['high'])}",
        _share(group["success_of_all"]),
        _share(group["reward"]),
        _number(group["turns"], 1),
        _number(group["learned"], 1),
        _number(group["tokens"], 0),
        f"{sum(group['unscored'].values())}/{group['episodes']}",
        *map(_share, several),
    ]


def notes_of(found: Mapping[str, Any]) -> list[str]:
    """Say beside the table what its columns are, how episodes ended, and what they cost."""
    whole = found["all"]
    parts = ", ".join(
        f"{name} {_share(whole[f'reward_{name}'])}" for name in ("task", "efficiency", "hallucination")
    )
    said = [
        "of all: unscored episodes as failures; learned: slots a question; the interval is of this player, over tasks",
        f"reward by parts: {parts}",
        f"ends: {_counts(whole['ends'])}; mistakes of form: {_counts(whole['faults'])}; "
        f"unscored: {_counts(whole['unscored'])}",
        f"a second player's success must differ by about {_share(whole['shows'])} to be shown in all, in one cell by "
        f"{_share(max((cell['shows'] for cell in found['cells']), default=math.nan))}; compare them on the same tasks",
    ]
    for role, used in found["ledger"].items():
        cost = f", {used['cost']:.2f} {used['currency']}" if "cost" in used else ""
        said.append(
            f"{role}: {used['requests']:,} requests, {used['prompt_tokens']:,} prompt tokens "
            f"({used['cached_tokens']:,} cached), {used['completion_tokens']:,} sampled, {used['retries']:,} retries, "
            f"{used['seconds']:,.0f} s{cost}"
        )
    return said


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
            f"left out, for only one has scored them: {found.left_out[0]} and {found.left_out[1]} episodes"
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
    notes = ["with 95% intervals; held: success there and at every level below is at least the share"]
    show(title, frontier_rows(found), notes, console, found, json_file, markdown)
    if figure is not None:
        from ecomlab.analysis.plots import frontier_radar
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
    wide = Console(
        file=console.file, highlight=False, width=max(console.width, 110), force_terminal=console.is_terminal
    )
    wide.print(drawn)
    for line in notes:
        console.print(escape(line), soft_wrap=True)
    if json_file is not None:
        write_json(json_file, without_nan(value))
        console.print(f"written to {json_file}", soft_wrap=True)
    if markdown is not None:
        write_text(markdown, as_markdown(title, table, notes))
        console.print(f"written to {markdown}", soft_wrap=True)


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
    """Copy a JSON value with null for NaN, which JSON has not."""
    if isinstance(value, Mapping):
        return {name: without_nan(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(inner) for inner in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _share(value: float) -> str:
    return _number(value, 3)


def _number(value: float, digits: int) -> str:
    return "" if math.isnan(value) else f"{value:.{digits}f}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"
