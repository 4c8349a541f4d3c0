"""The report on one evaluation: its episodes and cells as data frames, its failures, a table and a plot."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecomlab.customer.llm import FAILED, UNASKED
from ecomlab.evaluation.result import Result, Table, counts, gap, interval, number
from ecomlab.evaluation.summary import Ledger, Prices, summary_of
from ecomlab.evaluation.transcript import Transcript, flat
from ecomlab.evaluation.transcripts import FILE, player_of, read, read_header, read_plan, write

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

HEADINGS = (
    "env", "d", "success", "95%", "of all", "reward", "turns", "questions", "learned", "tokens", "unscored",
)  # fmt: skip
SMALL = 50
"""Fewer tasks than these in a cell are a look at a player, not a measurement."""
FEW_CUT = 0.02
"""Share of episodes that may end at a token limit without a warning."""

COLUMNS = (
    "of all: success with unscored episodes as failures; questions: asked in an episode; learned: slots a question; "
    "tokens: sampled in an episode; 95%: of this player, over tasks"
)
LOOK = f"cells of fewer than {SMALL} tasks are a look, not a measurement"
NOTHING = "nothing was scored"
AGAIN = "--retry-unscored plays unscored episodes again"
CUT = (
    "many episodes ended at a token limit: raise --set turn_tokens, episode_tokens, context_tokens (weights) or "
    "max_tokens, context (endpoint)"
)
CALLS = (
    "answers hold tool calls as text, which the customer reads as words: use the server's parser of tool calls, or "
    "--set tools=text, or another --set template; `ecomlab view` shows them"
)
REASONING = "answers hold reasoning alone: the server's parser of reasoning may take the answer with it"
FILTERED = "the endpoint's content filter ended answers, which count as refusals"
SILENT = (
    "the customer's endpoint never answered, so that all words are the templates': check its url, model and key, and "
    "evaluate again with another --out"
)


@dataclass(frozen=True, eq=False, repr=False)
class Report(Result):
    """What an evaluation came to."""

    header: Mapping[str, Any]
    attempts: Sequence[Transcript]
    """Every episode that was played, in order; of one that was tried several times, each try."""
    plan: Mapping[str, Any] | None = None
    prices: Mapping[str, Prices] = field(default_factory=dict)
    """By role; nothing in a report that was read from a file."""
    folder: Path | None = None
    """Where the transcripts are; None for an evaluation that was not kept."""

    @classmethod
    def read(cls, path: str | Path, prices: Mapping[str, Prices] | None = None) -> "Report":
        """Read what `ecomlab eval`, `evaluate` or `save` wrote. Raises TranscriptError."""
        path = Path(path).expanduser()
        folder = path if path.is_dir() else path.parent
        return cls(
            read_header(path), list(read(path, every=True)), read_plan(path), dict(prices or {}), folder
        )

    def save(self, path: str | Path) -> Path:
        """Write the transcripts into a folder, from which `read` makes this report again. Raises TranscriptError where
        there are some."""
        header = {name: value for name, value in self.header.items() if name != "format"}
        write(Path(path).expanduser() / FILE, header, self.attempts, self.plan)
        return Path(path)

    @property
    def name(self) -> str:
        """Name of the player."""
        return player_of(self.header)

    @cached_property
    def transcripts(self) -> list[Transcript]:
        """The last try of every episode, by environment, level, task and trial."""
        places = {env: place for place, env in enumerate(self.header["cells"]["envs"])}
        last = {transcript.key: transcript for transcript in self.attempts}
        return sorted(last.values(), key=lambda one: (places.get(one.job.env, len(places)), *one.key))

    @cached_property
    def episodes(self) -> "pd.DataFrame":
        """A row an episode, without its messages (`transcript.flat`)."""
        import pandas as pd

        return pd.DataFrame(map(flat, self.transcripts))

    @cached_property
    def cells(self) -> "pd.DataFrame":
        """A row an environment and level: success with its 95% interval, pass^k, means, counts."""
        import pandas as pd

        return pd.DataFrame([_frame_row(cell) for cell in self.summary["cells"]])

    @property
    def failures(self) -> list[Transcript]:
        """Scored episodes that were not correct; `ecomlab.watch` opens them."""
        return [one for one in self.transcripts if not one.unscored and not one.score.correct]

    @cached_property
    def summary(self) -> dict[str, Any]:
        """All numbers: by cell, by environment, of all, and the ledger of requests, tokens and cost."""
        ledger = Ledger(self.prices)
        for transcript in self.attempts:
            ledger.add(transcript)
        found = summary_of(self.transcripts, self.header["cells"]["trials"])
        return {**found, "ledger": ledger.to_json()}

    def plot(self) -> "Figure":
        """Draw success by level with 95% intervals, a line an environment."""
        import matplotlib.pyplot as plt

        figure, ax = plt.subplots(figsize=(4.8, 3.2), layout="constrained")
        for env, mine in self.cells.groupby("env", sort=False):
            reach = [mine.success - mine.low, mine.high - mine.success]
            ax.errorbar(mine.d, mine.success, yerr=reach, marker="o", markersize=4, capsize=2, label=env)
        ax.set(xlabel="difficulty", ylabel="success", ylim=(-0.02, 1.02), title=self.name)
        ax.set_xticks(sorted(set(self.cells.d)))
        ax.legend(frameon=False)
        plt.close(figure)  # a notebook draws what is returned
        return figure

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
        if self.plan and self.plan["tasks"] > header["cells"]["tasks"]:  # more were asked for later
            header["cells"]["tasks"] = self.plan["tasks"]
        return {"folder": str(self.folder or ""), "header": header, **self.summary}


def _frame_row(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Make numbers of a cell's lists and counts."""
    row = {
        name: value for name, value in cell.items() if name not in ("pass_k", "ends", "faults", "unscored")
    }
    several = {f"pass^{k}": share for k, share in enumerate(cell["pass_k"], 1) if k > 1}
    counted = {"format_errors": "faults", "unscored": "unscored"}
    return {**row, **several, **{name: sum(cell[field].values()) for name, field in counted.items()}}


def table_of(found: Mapping[str, Any]) -> Table:
    """Lay out a report's JSON object as a table, with pass^k and flips where there are several trials."""
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
    """List what stands under a report's table: facts as "name: value", then fixed warnings."""
    whole = found["all"]
    lost = [f"unscored, {kind}: {why.removeprefix(f'{kind}: ')}" for kind, why in found["reasons"].items()]
    if sum(whole["unscored"].values()) == whole["episodes"]:
        said = [NOTHING, *lost]
    else:
        said = [COLUMNS, *_scored_lines(found), *lost]
    doubts = [f"{name}: {found[key]} episodes" for key, name in DOUBTS.items() if found.get(key)]
    return [
        *said,
        *doubts,
        *_customer_lines(found),
        *ledger_lines(found["ledger"]),
        *_warnings(found, bool(lost)),
    ]


DOUBTS = {
    "calls_in_text": "calls in text",
    "only_reasoning": "reasoning alone",
    "filtered": "ended by a content filter",
    "unasked": "cut off by their opening alone",
}


def _scored_lines(found: Mapping[str, Any]) -> list[str]:
    whole, parts = found["all"], ("task", "efficiency", "hallucination")
    shows = [cell["shows"] for cell in found["cells"] if cell["shows"] is not None]
    rewards = {name: number(whole[f"reward_{name}"]) for name in parts}
    return [
        "reward by parts: "
        + (", ".join(f"{name} {value}" for name, value in rewards.items() if value) or "none"),
        f"ends: {counts(whole['ends'])}",
        f"format errors: {counts(whole['faults'])}",
        f"difference to another player that this sample shows (80% power): {gap(whole['shows'])} in all, "
        f"{gap(max(shows, default=None))} in the smallest cell",
    ]


def _customer_lines(found: Mapping[str, Any]) -> list[str]:
    customer = found["customer"]
    if not customer["exchanges"]:
        return []
    said = [f"customer's endpoint: {customer['exchanges']} requests, refused: {counts(customer['refused'])}"]
    return (
        [*said, f"customer's endpoint, no answer: {customer['no_answer']}"]
        if customer.get("no_answer")
        else said
    )


def ledger_lines(ledger: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Write what was asked of each role's model, a line each; seconds are added up over episodes side by side."""
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
    """Choose the fixed sentences that apply."""
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
        SILENT: silent,
        AGAIN: lost,
    }
    return [sentence for sentence, applies in apply.items() if applies]
