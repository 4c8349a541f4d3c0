"""The commands eval and frontier: they make a player, run it, and score its transcripts again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import Field
from rich.console import Console
from rich.markup import escape

from ecomlab.catalog import Shop, load_shop
from ecomlab.customer.llm import Chat
from ecomlab.evaluation import frontier as search
from ecomlab.evaluation.evaluation import (
    EVALUATION,
    FRONTIER,
    Cells,
    Contestant,
    Rescored,
    header_of,
    rescore,
    run_evaluation,
)
from ecomlab.evaluation.local import check_decoding
from ecomlab.evaluation.summary import Ledger, report
from ecomlab.evaluation.transcripts import path_of, read, read_header, read_plan
from ecomlab.files import write_json
from ecomlab.lab.evaluation_progress import progress_of
from ecomlab.lab.paths import resolve, shown
from ecomlab.lab.provenance import commit, versions
from ecomlab.lab.shops import catalog_named, environments_on, record_of, recorded_shop
from ecomlab.settings import ConfigError, Settings

RUNS = "experiments/runs/eval"
"""Folder of evaluations that were not told where to go."""
RESCORED = "rescored.json"

LIMITS = {"turn_tokens": "turn", "episode_tokens": "episode", "context_tokens": "context"}
"""Names of a training run for limits of tokens, and those of `Limits`."""


class LocalSettings(Settings):
    """Settings of a local model. Those that are not given are the player's own."""

    temperature: float | None = Field(None, gt=0)
    batch: int | None = Field(None, ge=1)
    strict: bool | None = None
    dtype: str | None = None
    lora_rank: int | None = Field(None, ge=0)
    thinking: bool | None = None
    turn_tokens: int | None = Field(None, ge=1)
    episode_tokens: int | None = Field(None, ge=1)
    context_tokens: int | None = Field(None, ge=1)


def make_contestant(
    player: str,
    shop: Shop,
    envs: Sequence[str],
    decoding: str | None,
    changes: Mapping[str, Any],
    customer: Chat | None = None,
    device: str | None = None,
) -> Contestant:
    """Make a player by name, with settings: an endpoint's, over its file, or a local model's. Raises ValueError.

    `customer` is the endpoint that words the customer, if any; `device` is that of a local model.
    """
    from ecomlab.evaluation.players import contestant_of

    if Path(player).suffix == ".toml":
        if decoding:
            raise ValueError(
                "an endpoint has no --decoding; use --set temperature=0 for the most likely answers"
            )
        if device:
            raise ValueError("an endpoint has no --device, for its model runs elsewhere; leave it out")
        return contestant_of(player, shop, envs, changes, customer)
    local: dict[str, Any] = {"decoding": decoding} if decoding else {}
    try:
        given = LocalSettings(**changes).model_dump(exclude_unset=True)
    except ConfigError as error:
        raise ValueError(f"--set: {error}") from None
    if limits := {LIMITS[name]: given.pop(name) for name in LIMITS if name in given}:
        local["limits"] = limits
    local |= given
    local |= {"device": device} if device else {}
    if decoding == "greedy" and "temperature" in changes:
        raise ValueError(
            "greedy decoding has no temperature; leave out --decoding greedy, or --set temperature"
        )
    made = contestant_of(player, shop, envs, customer=customer, **local)
    if made.identity["kind"] == "script" and (decoding or changes or device):
        raise ValueError(
            f"{player} is a script, which has no settings; leave out --set, --decoding and --device"
        )
    return made


def folder_of(player: str, kind: str, out: Path | None) -> Path:
    """Return the folder of a run: the one given, or one that is named after the player."""
    parts = Path(player.removesuffix(".toml")).parts[-2:]
    name = "-".join(part for part in parts if part not in ("/", "."))
    default = name.replace(" ", "-") + ("" if kind == EVALUATION else f"-{kind}")
    return resolve(out or f"{RUNS}/{default}")


def software(contestant: Contestant | None = None) -> dict[str, Any]:
    """Name the software: commit and versions of the libraries; and the device of a player's weights, on which a run may
    go on that another began."""
    device = getattr(contestant, "device", None)
    return {"commit": commit(), "libraries": versions(), **({"device": device} if device else {})}


def evaluate(
    player: str | None,
    cells: Cells,
    console: Console,
    *,
    decoding: str | None = None,
    device: str | None = None,
    changes: Mapping[str, Any] | None = None,
    catalog: str | int | None = None,
    leave_out: bool = False,
    out: Path | None = None,
    customer: Chat | None = None,
    budget: float | None = None,
    retry_unscored: bool = False,
) -> dict[str, Any]:
    """Run or continue an evaluation, with a bar; return its report, and under "folder" where the transcripts are.

    `catalog` is a folder or a number of generated products. Environments that it cannot carry are refused, or with
    `leave_out` left out and told.
    """
    made = _make(
        player, cells.envs, EVALUATION, decoding, device, changes, catalog, leave_out, out, console, customer
    )
    cells = replace(cells, envs=made.envs)
    header = header_of(
        EVALUATION, made.name, made.contestant, cells.envs, cells.axes, made.shop, made.catalog
    )
    with progress_of(made.folder, _prices(made.contestant), console) as tell:
        run_evaluation(
            made.contestant, cells, made.shop, made.folder, header, software(made.contestant),
            budget=budget, retry_unscored=retry_unscored, tell=tell,
        )  # fmt: skip
    return report_of(made.folder, _prices(made.contestant))


def find_frontier(
    player: str | None,
    envs: Sequence[str],
    console: Console,
    *,
    decoding: str | None = None,
    device: str | None = None,
    changes: Mapping[str, Any] | None = None,
    catalog: str | int | None = None,
    leave_out: bool = False,
    out: Path | None = None,
    block: int = 0,
    retry_unscored: bool = False,
) -> dict[str, Any]:
    """Search a player's frontier, or go on with it, with a bar; return what was found. The catalog is chosen as for
    `evaluate`."""
    made = _make(player, envs, FRONTIER, decoding, device, changes, catalog, leave_out, out, console)
    header = header_of(FRONTIER, made.name, made.contestant, made.envs, {}, made.shop, made.catalog)
    with progress_of(made.folder, _prices(made.contestant), console) as tell:
        found = search.find_frontier(
            made.contestant, made.envs, made.shop, made.folder, header, software(made.contestant),
            block=block, retry_unscored=retry_unscored, tell=tell,
        )  # fmt: skip
    return {
        "header": read_header(made.folder),
        "environments": [one.to_json() for one in found],
        "ledger": ledger_of(made.folder, _prices(made.contestant)),
    }


@dataclass(frozen=True)
class Made:
    """A player that is ready, with its shop and its folder."""

    name: str
    contestant: Contestant
    shop: Shop
    catalog: Mapping[str, Any]
    """How the shop is loaded."""
    folder: Path
    envs: tuple[str, ...]


def _make(
    player: str | None,
    envs: Sequence[str],
    kind: str,
    decoding: str | None,
    device: str | None,
    changes: Mapping[str, Any] | None,
    catalog: str | int | None,
    leave_out: bool,
    out: Path | None,
    console: Console,
    customer: Chat | None = None,
) -> Made:
    assert player is not None, "options check it"
    if decoding:
        check_decoding(decoding)
    place = catalog_named(catalog)
    shop = load_shop(place)
    envs, told = environments_on(shop, envs, leave_out)
    for line in told:
        console.print(escape(line), soft_wrap=True)
    contestant = make_contestant(player, shop, envs, decoding, changes or {}, customer, device)
    return Made(player, contestant, shop, record_of(place), folder_of(player, kind, out), tuple(envs))


def report_of(folder: Path, prices: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Report what an evaluation's transcripts come to, with its header and its ledger."""
    header, plan = read_header(folder), read_plan(folder)
    if plan and plan["tasks"] > header["cells"]["tasks"]:  # more were asked for later
        header["cells"]["tasks"] = plan["tasks"]
    found = report(read(folder), header["cells"]["trials"])
    return {"folder": str(folder), "header": header, **found, "ledger": ledger_of(folder, prices)}


def ledger_of(folder: Path, prices: Mapping[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    """Count what every episode of a folder asked of each role's model, and its cost where there are prices."""
    ledger = Ledger(prices)
    for transcript in read(folder, every=True):
        ledger.add(transcript)
    return ledger.to_json()


def score_again(folder: Path, console: Console, catalog: str | None = None) -> int:
    """Score an evaluation's transcripts anew, print what changed and write it to rescored.json; return the number of
    changed scores. `catalog` is the folder where the recorded catalog is now, if it is another."""
    shop = recorded_shop(read_header(folder)["conditions"]["catalog"], catalog)
    episodes, changed = 0, []
    for found in rescore(folder, shop):
        episodes += 1
        if found is not None:
            changed.append(found)
            console.print(escape(_worded(found)))
    file = path_of(folder).parent / RESCORED
    rows = [{"job": vars(one.job), "was": one.was, "now": one.now} for one in changed]
    write_json(file, {"episodes": episodes, "changed": rows, "made_with": software()})
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
    """Prices by role, of a player (and its first request) and of an endpoint that words the customer, whose settings
    have them."""
    asked = {"agent": contestant, "probe": contestant, "customer": getattr(contestant, "customer", None)}
    prices = {role: getattr(getattr(one, "settings", None), "prices", None) for role, one in asked.items()}
    return {role: price for role, price in prices.items() if price}
