"""The viewer's first page: each run's model, settings and cost, and its success by environment and level."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from ecomlab.analysis.tables import in_order
from ecomlab.evaluation.evaluation import EVALUATION
from ecomlab.evaluation.report import LOOK, SMALL
from ecomlab.evaluation.summary import Ledger, summary_of
from ecomlab.evaluation.transcript import Transcript
from ecomlab.lab.view.sources import Source
from ecomlab.markup.elements import Html, element, pairs

SHADES = 5
"""Steps of the cells' grounds, from nothing correct to everything."""


def overview(sources: Sequence[Source]) -> Html:
    """Show a card for each run."""
    return element("div", *(_card(source) for source in sources), class_="runs")


def _card(source: Source) -> Html:
    played = list(source.read())
    about = [
        str(source.header.get("kind", "")),
        time.strftime("%Y-%m-%d %H:%M", time.localtime(source.path.stat().st_mtime)),
        str((source.header.get("made_with") or {}).get("commit", ""))[:12],
    ]
    named = element("p", " · ".join(filter(None, about)), class_="quiet")
    shown = [element("header", element("h2", source.player), named)]
    if source.header.get("kind") != EVALUATION:
        return element("section", *shown, pairs(_facts(source, played)), class_="run")
    summary = summary_of(played)
    tasks = [cell["tasks"] for cell in summary["cells"]]
    facts = _facts(source, played)
    facts["tasks per cell"] = " to ".join(map(str, sorted({min(tasks), max(tasks)})))
    look = element("p", LOOK, class_="quiet") if min(tasks) < SMALL else None
    matrix = _matrix(source.player, played, summary)
    return element("section", *shown, matrix, pairs(facts), look, class_="run")


def _facts(source: Source, played: Sequence[Transcript]) -> dict[str, str]:
    header = source.header
    identity, conditions = header.get("identity", {}), header.get("conditions", {})
    named = {name: identity.get(name) for name in ("model", "decoding", "temperature", "schedule", "seed")}
    limits = conditions.get("limits") or {}
    usage = Ledger(transcripts=played).to_json().get("agent", {})
    return {
        "folder": str(source.path.parent),
        **{name: str(value) for name, value in named.items() if value not in (None, "")},
        "catalog": _catalog(conditions.get("catalog") or {}),
        **({"axes": _listed(conditions["axes"])} if conditions.get("axes") else {}),
        **({"token limits": _listed(limits)} if any(limits.values()) else {}),
        "episodes": f"{len(played):,}, {sum(bool(one.unscored) for one in played)} unscored",
        **({"tokens": f"{usage['completion_tokens']:,} sampled"} if usage.get("prompt_tokens") else {}),
        **({"waiting": f"{usage['seconds']:,.0f} s"} if usage.get("seconds", 0) >= 1 else {}),
    }


def _catalog(known: Mapping[str, Any]) -> str:
    place = known.get("folder") or f"{known.get('size', 0):,} generated products"
    return f"{place}, {str(known.get('fingerprint', ''))[:8]}"


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items() if value is not None)


def _matrix(player: str, played: Sequence[Transcript], summary: Mapping[str, Any]) -> Html:
    """Show success by environment and level, and over all of each; a cell filters the table below."""
    levels = sorted({one.job.d for one in played})
    found = [*summary["cells"], *summary["environments"], summary["all"]]
    found += [{**summary_of(one for one in played if one.job.d == d)["all"], "d": d} for d in levels]
    cells = {(one["env"], one["d"]): one for one in found}
    names = ("", *(f"d = {d}" for d in levels), "all")
    head = element("tr", *(element("th", name, scope="col") for name in names))
    body = [
        element(
            "tr",
            element("th", env, scope="row"),
            *(_cell(player, cells.get((env, d))) for d in (*levels, None)),
        )
        for env in (*in_order(one["env"] for one in summary["environments"]), "all")
    ]
    return element("table", element("thead", head), element("tbody", *body), class_="matrix")


def _cell(player: str, cell: Mapping[str, Any] | None) -> Html:
    if cell is None or cell["success"] != cell["success"]:
        return element("td")
    success, low, high = (f"{100 * cell[name]:.0f}" for name in ("success", "low", "high"))
    button = element(
        "button",
        element("b", f"{success}%"),
        element("span", f"{low}–{high}"),
        type="button",
        title=f"{cell['tasks']} tasks, {cell['episodes']} episodes",
        data_player=player,
        data_env=None if cell["env"] == "all" else cell["env"],
        data_d=cell["d"],
    )
    return element("td", button, class_=f"s{round(SHADES * cell['success'])}")
