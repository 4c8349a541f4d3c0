"""Players of the cascade's experiments, as the command line names them, and the record of what made their rows."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecomlab.evaluate.cascade.forced import LocalRunner, Runner, ScriptedRunner
from ecomlab.evaluate.scripted import PLAYERS
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


def note(table: Path, name: str, weights: str, envs: list[str], shop: "Shop", **parameters: Any) -> None:
    """Say beside a table, in its JSON, what a player's rows were made with."""
    record = table.with_suffix(".json")
    write_json(record, {**(read_json(record) or {}), name: record_of(weights, envs, shop, **parameters)})
