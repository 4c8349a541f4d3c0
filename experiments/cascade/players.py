"""Players of the cascade's experiments, as the command line names them, and the record of what made their rows."""

from pathlib import Path
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.episode.episode import Episode
from ecomlab.evaluation.planting import Play, by_player, by_policy
from ecomlab.evaluation.scripted import RATE
from ecomlab.files import read_json, write_json
from ecomlab.lab.provenance import made_with, provenance
from ecomlab.models.load import load_policy
from ecomlab.players.base import Perturbation
from ecomlab.task import Player


def named(given: str) -> tuple[str, str]:
    """Read a player's name and its weights or script: "NAME=FOLDER", or one word for both."""
    name, _, weights = given.rpartition("=")
    return name or weights, weights


def play_of(weights: str, envs: list[str], shop: Shop) -> Play:
    """Make the player: the script reference or perturbed, or weights with their usual limits."""
    if weights in ("reference", "perturbed"):
        return by_player(_perturbed if weights == "perturbed" else _reference, shop)
    return by_policy(load_policy(weights, shop, envs), shop)


def _reference(episode: Episode, given: int) -> Player:
    player: Player = episode.env.reference_player(episode.shop)
    return player


def _perturbed(episode: Episode, given: int) -> Player:
    slips: Any = _Slips(episode, given)  # it has what is used of a generator
    player: Player = episode.env.reference_player(episode.shop, Perturbation(slips, RATE))
    return player


class _Slips:
    """Random numbers by turn: as in the whole episode in the given turns, other ones after them."""

    def __init__(self, episode: Episode, given: int) -> None:
        self.episode, self.given, self.turn = episode, given, -1

    def random(self) -> float:
        """Draw a number in [0, 1)."""
        turn = sum(message["role"] == "assistant" for message in self.episode.messages)
        if turn != self.turn:
            anew = 0 < self.given <= turn
            self.turn, self.stream = turn, self.episode.task.key.rng("slips", turn, anew)
        return float(self.stream.random())


def note(table: Path, name: str, weights: str, envs: list[str], shop: Shop, **parameters: Any) -> None:
    """Write beside a table, in its JSON, what a player's rows were made with, at which commits."""
    path = table.with_suffix(".json")
    there = read_json(path) or {}
    known = {"player": Path(weights).name, **parameters}
    record = provenance(known, catalog=shop.fingerprint, made_with=made_with(weights, envs))
    commits = [*there.get(name, {}).get("commit", "").split(), record["commit"]]
    write_json(path, {**there, name: {**record, "commit": " ".join(dict.fromkeys(commits))}})
