"""Report on an evaluation: episodes and cells as data frames, failures, a table and a plot."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecomlab.customer.llm import FAILED, UNASKED
from ecomlab.evaluation.endpoint.settings import Prices
from ecomlab.evaluation.result import Result, Table, counts, gap, interval, number, picture
from ecomlab.evaluation.summary import DOUBTS, Ledger, summary_of
from ecomlab.evaluation.transcript import Transcript, flat
from ecomlab.evaluation.transcripts import FILE, player_of, read, read_header, read_plan, write
from ecomlab.markup import conversation
from ecomlab.markup.elements import Html, element
from ecomlab.markup.record import Record

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from ecomlab.catalog import Shop

HEADINGS = (
    "env", "d", "success", "95%", "of all", "reward", "turns", "questions", "learned", "tokens", "unscored",
)  # fmt: skip
SMALL = 50
"""Cells with fewer tasks are a look at a player, not a measurement."""
FAILURES = 8
"""Failures that a notebook shows."""
FEW_CUT = 0.02
"""Maximum share of episodes that end at a token limit without a warning."""

COLUMNS = (
    "95%: interval of success, over tasks; of all: success with unscored episodes as failures; questions: per episode; "
    "learned: slots per question; tokens: sampled per episode"
)
LOOK = f"cells of fewer than {SMALL} tasks are a look, not a measurement"
NOTHING = "nothing was scored"
AGAIN = (
    "--retry-unscored, in Python retry_unscored=True, plays unscored episodes again; an edited player needs another "
    "--out"
)
CUT = (
    "more than one episode in fifty ended at a token limit: raise --set turn_tokens, episode_tokens, context_tokens "
    "(weights) or max_tokens, context (endpoint)"
)
CALLS = (
    "answers contain tool calls as text, which the customer reads as words: switch on the server's parser of tool "
    "calls, or use --set tools=text; `ecomlab view` shows them"
)
REASONING = "answers contain only reasoning: the server's parser of reasoning may remove the answer too"
FILTERED = "the endpoint's content filter ended answers; these count as refusals"
MOST_ALIKE = 8
"""Episodes that a policy hardly ends in invalid output one and all."""
ALIKE = (
    "every episode ended in invalid output, which `ecomlab view` shows: where a call's arguments are cut or encoded "
    "twice, the server's parser of tool calls did it; try another one, or --set tools=text"
)
SILENT = (
    "the customer's endpoint never answered, so all its words are templates: check url, model and key, and evaluate "
    "again with another --out"
)


@dataclass(frozen=True, eq=False, repr=False)
class Report(Result):
    """Report on an evaluation."""

    header: Mapping[str, Any]
    attempts: Sequence[Transcript]
    """Every played episode, in order, with all its tries."""
    plan: Mapping[str, Any] | None = None
    prices: Mapping[str, Prices] = field(default_factory=dict)
    """By role; empty in a report that was read from a file."""
    folder: Path | None = None
    """Folder of the transcripts; None if they were not kept."""

    @classmethod
    def read(cls, path: str | Path, prices: Mapping[str, Prices] | None = None) -> "Report":
        """Read the folder that `ecomlab eval`, `evaluate` or `save` wrote. Raises TranscriptError."""
        path = Path(path).expanduser()
        folder = path if path.is_dir() else path.parent
        return cls(
            read_header(path), list(read(path, every=True)), read_plan(path), dict(prices or {}), folder
        )

    def save(self, path: str | Path) -> Path:
        """Write the transcripts into a folder, from which `read` restores this report. Raises TranscriptError if it
        contains transcripts."""
        header = {name: value for name, value in self.header.items() if name != "format"}
        write(Path(path).expanduser() / FILE, header, self.attempts, self.plan)
        return Path(path)

    @property
    def name(self) -> str:
        return player_of(self.header)

    @cached_property
    def transcripts(self) -> list[Transcript]:
        """The last try of every episode, by environment, level, task and trial."""
        places = {env: place for place, env in enumerate(self.header["cells"]["envs"])}
        last = {transcript.key: transcript for transcript in self.attempts}
        return sorted(last.values(), key=lambda one: (places.get(one.job.env, len(places)), *one.key))

    @cached_property
    def episodes(self) -> "pd.DataFrame":
        """A row per episode, without its messages (`transcript.flat`)."""
        import pandas as pd

        return pd.DataFrame(map(flat, self.transcripts))

    @cached_property
    def cells(self) -> "pd.DataFrame":
        """A row per environment and level: success with its 95% interval, pass^k, means, counts."""
        import pandas as pd

        return pd.DataFrame([_frame_row(cell) for cell in self.summary["cells"]])

    @property
    def failures(self) -> list[Transcript]:
        """Scored episodes that were not correct; `ecomlab.watch` opens them."""
        return [one for one in self.transcripts if not one.unscored and not one.score.correct]

    def mistakes(self, shop: "Shop") -> "pd.DataFrame":
        """Label the mistakes of all scored episodes, played in `shop`: a row for each, with env, d, seed, trial, turn,
        kind, cause, fate and words."""
        import pandas as pd

        from ecomlab.evaluation.evaluation import trajectory_of
        from ecomlab.evaluation.mistakes import label

        names = ("turn", "kind", "cause", "fate", "step", "words")
        rows = []
        for one in self.transcripts:
            found = () if one.unscored else label(trajectory_of(one, shop), shop).mistakes
            where = {name: getattr(one.job, name) for name in ("env", "d", "seed", "trial")}
            rows += [{**where, **{name: getattr(mistake, name) for name in names}} for mistake in found]
        return pd.DataFrame(rows, columns=["env", "d", "seed", "trial", *names])

    @cached_property
    def summary(self) -> dict[str, Any]:
        """All numbers by cell, by environment and overall, and the ledger of requests, tokens and cost."""
        found = summary_of(self.transcripts, self.header["cells"]["trials"])
        return {**found, "ledger": Ledger(self.prices, self.attempts).to_json()}

    def plot(self) -> "Figure":
        """Draw success by level with 95% intervals, a panel per environment."""
        from ecomlab.evaluation.report_plots import success_by_level

        return success_by_level({self.name: self.cells})

    def more(self) -> Iterator[Html]:
        """Yield the plot, and failures that open."""
        if self.cells.success.notna().any():
            yield picture(self.plot(), f"success of {self.name} by environment and level, with 95% intervals")
        shown = self.failures[:FAILURES]
        if shown:
            rest = f" (the first {FAILURES} of {len(self.failures)}; ecomlab.watch shows more)"
            yield element("h5", f"failures{rest if len(self.failures) > FAILURES else ''}")
        for one in shown:
            job = one.job
            title = f"{job.env} d = {job.d}, seed {job.seed}: {one.score.why}"
            record = Record.of(title, one.messages, one.end, one.score, one.score.weights)
            yield element("details", element("summary", title), conversation.episode(record))

    @property
    def title(self) -> str:
        return f"{self.name}: held-out success"

    @property
    def table(self) -> Table:
        return table_of(self.to_json())

    @property
    def lines(self) -> list[str]:
        return lines_of(self.to_json())

    def to_json(self) -> dict[str, Any]:
        header = {**self.header, "cells": dict(self.header["cells"])}
        if self.plan and self.plan["tasks"] > header["cells"]["tasks"]:  # extended later
            header["cells"]["tasks"] = self.plan["tasks"]
        return {"folder": str(self.folder or ""), "header": header, **self.summary}


def _frame_row(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Turn a cell's lists and counts into numbers."""
    row = {n: value for n, value in cell.items() if n not in ("pass_k", "ends", "faults", "unscored")}
    several = {f"pass^{k}": share for k, share in enumerate(cell["pass_k"], 1) if k > 1}
    counted = {"format_errors": "faults", "unscored": "unscored"}
    return {**row, **several, **{name: sum(cell[field].values()) for name, field in counted.items()}}


def table_of(found: Mapping[str, Any]) -> Table:
    """Lay out a report's JSON object as a table, with pass^k and flips if there are several trials."""
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
        number(group["success"]),
        interval(group["low"], group["high"]),
        number(group["success_of_all"]),
        number(group["reward"]),
        *(number(group[name], 1) for name in ("turns", "questions", "learned")),
        number(group["tokens"], 0),
        f"{sum(group['unscored'].values())}/{group['episodes']}",
        *map(number, several),
    ]


def lines_of(found: Mapping[str, Any]) -> list[str]:
    """List the lines under a report's table: facts as "name: value", then fixed warnings."""
    whole = found["all"]
    lost = [f"unscored, {kind}: {why.removeprefix(f'{kind}: ')}" for kind, why in found["reasons"].items()]
    if sum(whole["unscored"].values()) == whole["episodes"]:
        said = [NOTHING, *lost]
    else:
        said = [COLUMNS, *_scored_lines(found), *lost]
    doubts = [f"{name}: {found[key]} episodes" for key, name in DOUBTS.items() if found.get(key)]
    used = [*_customer_lines(found), *ledger_lines(found["ledger"])]
    return [*said, *doubts, *used, *_warnings(found, bool(lost))]


def _scored_lines(found: Mapping[str, Any]) -> list[str]:
    whole, parts = found["all"], ("task", "efficiency", "hallucination")
    in_cells = [cell["detectable"] for cell in found["cells"] if cell["detectable"] is not None]
    overall, in_cell = gap(whole["detectable"]), gap(max(in_cells, default=None))
    rewards = {name: number(whole[f"reward_{name}"]) for name in parts}
    return [
        "reward by parts: "
        + (", ".join(f"{name} {value}" for name, value in rewards.items() if value) or "none"),
        f"ends: {counts(whole['ends'])}",
        f"format errors: {counts(whole['faults'])}",
        f"smallest difference to another player that this sample detects (80% power): {overall} in all, "
        f"{in_cell} in the smallest cell",
    ]


def _customer_lines(found: Mapping[str, Any]) -> list[str]:
    customer = found["customer"]
    if not customer["exchanges"]:
        return []
    said = [f"customer's endpoint: {customer['exchanges']} requests, refused: {counts(customer['refused'])}"]
    if why := customer.get("no_answer"):
        said.append(f"customer's endpoint, no answer: {why}")
    return said


def ledger_lines(ledger: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Write the usage of each role's model, a line each; seconds are summed over concurrent episodes."""
    return [
        f"{role}: {used['requests']:,} requests, {_tokens(used)}, {used['retries']:,} retries, "
        f"{used['seconds']:,.0f} s of waiting"
        + (f", {used['cost']:.2f} {used['currency']}" if "cost" in used else "")
        for role, used in ledger.items()
    ]


def _tokens(used: Mapping[str, Any]) -> str:
    if used["requests"] and not used["prompt_tokens"]:
        return "tokens not reported"
    prompt, cached = used["prompt_tokens"], used["cached_tokens"]
    return f"{prompt:,} prompt tokens ({cached:,} cached), {used['completion_tokens']:,} sampled"


def _warnings(found: Mapping[str, Any], lost: bool) -> list[str]:
    """Choose the warnings that apply."""
    whole, customer = found["all"], found["customer"]
    cut = sum(count for name, count in whole["faults"].items() if name in ("length", "context"))
    refused = customer["refused"]
    silent = refused.keys() <= {FAILED, UNASKED} and sum(refused.values()) >= customer["exchanges"] > 0
    scored = sum(whole["unscored"].values()) < whole["episodes"]
    apply = {
        LOOK: scored and any(cell["tasks"] < SMALL for cell in found["cells"]),
        CUT: cut > FEW_CUT * whole["episodes"],
        CALLS: bool(found["calls_in_text"]),
        REASONING: bool(found.get("only_reasoning")),
        FILTERED: bool(found.get("filtered")),
        ALIKE: whole["ends"].get("invalid", 0) == whole["episodes"] >= MOST_ALIKE,
        SILENT: silent,
        AGAIN: lost,
    }
    return [sentence for sentence, applies in apply.items() if applies]
