"""Players of the cascade's experiments, as the command line names them, and the record of what made their rows."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecomlab.evaluation.cascade.forced import LocalRunner, Runner, ScriptedRunner
from ecomlab.evaluation.scripted import PLAYERS
from ecomlab.files import read_json, write_json
from ecomlab.lab.provenance import made_with, provenance
from ecomlab.models.load import load_policy

if TYPE_CHECKING:
    from ecomlab.catalog import Shop


def named(given: str) -> tuple[str, str]:
    """Read a player's name and its weights or script: "NAME=FOLDER", or one word for both."""
    name, _, weights = given.rpartition("=")
    return name or weights, weights


def runner_of(weights: str, envs: list[str], shop: "Shop") -> Runner:
    """Make the player: a script, such as reference or perturbed, or weights with their usual limits."""
    return ScriptedRunner(weights) if weights in PLAYERS else LocalRunner(load_policy(weights, shop, envs))


def record_of(weights: str, envs: list[str], shop: "Shop", **parameters: Any) -> dict[str, Any]:
    """Say what a player's episodes were made with."""
    known = {"player": Path(weights).name, **parameters}
    return provenance(known, catalog=shop.fingerprint, made_with=made_with(weights, envs))


def check_record(table: Path, name: str, weights: str, shop: "Shop") -> None:
    """Exit where a player's rows in a table were made with other weights, other environments or another shop than are
    here now, as its JSON says."""
    was = (read_json(table.with_suffix(".json")) or {}).get(name)
    if was is None:
        return
    envs, now = was["made_with"]["environments"], made_with(weights, was["made_with"]["environments"])
    differ = [env for env in envs if envs[env] != now["environments"][env]]
    differ += ["the weights"] if was["made_with"]["starter"] != now["starter"] else []
    differ += ["the shop"] if was["catalog"] != shop.fingerprint else []
    if differ:
        raise SystemExit(
            f"{table} has rows of {name} made with what is another now: {', '.join(differ)}; give another name or --out"
        )


def note(table: Path, name: str, weights: str, envs: list[str], shop: "Shop", **parameters: Any) -> None:
    """Say beside a table, in its JSON, what a player's rows were made with. The commits are all at which any were."""
    path = table.with_suffix(".json")
    there, record = read_json(path) or {}, record_of(weights, envs, shop, **parameters)
    commits = [*there.get(name, {}).get("commit", "").split(), record["commit"]]
    record["commit"] = " ".join(dict.fromkeys(commits))
    write_json(path, {**there, name: record})
