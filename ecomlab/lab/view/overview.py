"""The viewer's first page: each run's model, settings and cost, and its success by environment and level."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ecomlab.analysis.tables import in_order
from ecomlab.evaluation.evaluation import EVALUATION
from ecomlab.evaluation.result import interval, number
from ecomlab.evaluation.summary import Ledger, summary_of
from ecomlab.evaluation.transcript import Transcript
from ecomlab.lab.view.sources import Source
from ecomlab.markup.elements import Html, element, joined, pairs

SHADES = 5
"""Steps of the cells' grounds, from nothing correct to everything."""


def overview(sources: Sequence[Source]) -> Html:
    """Show a card for each run."""
    return element("div", *(_card(source) for source in sources), class_="runs")


def _card(source: Source) -> Html:
    played = list(source.read())
    facts = pairs(_facts(source, played))
    shown = [element("h2", source.player), facts]
    if source.header.get("kind") == EVALUATION:
        shown.append(
            _matrix(source.player, summary_of(played, (source.header.get("cells") or {}).get("trials", 1)))
        )
    return element("section", *shown, class_="run")


def _facts(source: Source, played: Sequence[Transcript]) -> dict[str, str]:
    header = source.header
    identity, conditions = header.get("identity", {}), header.get("conditions", {})
    named = {name: identity.get(name) for name in ("model", "decoding", "temperature", "schedule", "seed")}
    limits = conditions.get("limits") or {}
    usage = Ledger(transcripts=played).to_json().get("agent", {})
    return {
        "run": f"{header.get('kind', '')}, {source.path.parent}",
        **{name: str(value) for name, value in named.items() if value not in (None, "")},
        "catalog": _catalog(conditions.get("catalog") or {}),
        **({"axes": _listed(conditions["axes"])} if conditions.get("axes") else {}),
        **({"token limits": _listed(limits)} if any(limits.values()) else {}),
        "episodes": f"{len(played):,}, {sum(bool(one.unscored) for one in played)} unscored",
        **({"tokens": f"{usage['completion_tokens']:,} sampled"} if usage.get("prompt_tokens") else {}),
        **({"waiting": f"{usage['seconds']:,.0f} s"} if usage.get("seconds", 0) >= 1 else {}),
        "date": time.strftime("%Y-%m-%d %H:%M", time.localtime(source.path.stat().st_mtime)),
        "commit": str((header.get("made_with") or {}).get("commit", ""))[:12],
    }


def _catalog(known: Mapping[str, Any]) -> str:
    place = known.get("folder") or f"{known.get('size', 0):,} generated products"
    return f"{place}, {str(known.get('fingerprint', ''))[:8]}"


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items() if value is not None)


def _matrix(player: str, summary: Mapping[str, Any]) -> Html:
    """Show success by environment and level; a cell filters the table below."""
    cells = {(one["env"], one["d"]): one for one in summary["cells"]}
    levels = sorted({d for _, d in cells})
    wholes = {one["env"]: one for one in summary["environments"]}
    wholes = {env: wholes[env] for env in in_order(wholes)}
    head = element(
        "tr", *(element("th", name, scope="col") for name in ("", *(f"d = {d}" for d in levels), "all"))
    )
    body = [
        element(
            "tr",
            element("th", env, scope="row"),
            *(_cell(player, cells.get((env, d))) for d in levels),
            _cell(player, wholes[env]),
        )
        for env in wholes
    ]
    whole = summary["all"]
    last = element(
        "tr",
        element("th", "all", scope="row"),
        *_levels(player, levels, summary["cells"]),
        _cell(player, whole),
    )
    return element("table", element("thead", head), element("tbody", *body, last), class_="matrix")


def _levels(player: str, levels: Iterable[int], cells: Sequence[Mapping[str, Any]]) -> list[Html]:
    """Show the mean over environments at each level."""
    found = []
    for d in levels:
        mine = [one["success"] for one in cells if one["d"] == d and one["success"] == one["success"]]
        found.append(element("td", number(sum(mine) / len(mine), 2) if mine else "", class_="mean"))
    return found


def _cell(player: str, cell: Mapping[str, Any] | None) -> Html:
    if cell is None or cell["success"] != cell["success"]:
        return element("td")
    shade = round(SHADES * cell["success"])
    bounds = interval(cell["low"], cell["high"], 2)
    inner = joined([element("b", number(cell["success"], 2)), element("span", bounds)])
    chosen = {"data-player": player, "data-env": cell["env"], "data-d": cell["d"]}
    button = element(
        "button", inner, type="button", title=f"{cell['episodes']} episodes", **_attributes(chosen)
    )
    return element("td", button, class_=f"s{shade}")


def _attributes(given: Mapping[str, Any]) -> dict[str, str]:
    return {name.replace("-", "_"): str(value) for name, value in given.items() if value is not None}
