"""An annotated episode of each environment: one task as it is played well and with mistakes, by turns, beside each turn
what it left behind, what it earned, and the mistakes that code found in it."""

import re
from functools import cache
from pathlib import Path

from ecomlab.catalog import Shop, load_shop
from ecomlab.envs.registry import COLLECTIONS
from ecomlab.episode.record import Trajectory
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.evaluation import trajectory_of
from ecomlab.evaluation.scripted import RATE, ScriptedContestant
from ecomlab.lab.view.acting import record_of_trajectory
from ecomlab.markup.conversation import episode
from ecomlab.markup.elements import element
from ecomlab.markup.record import Record

DIFFICULTY = 4
SEEDS = range(200)
MOST_TURNS = 14
"""A longer episode is not shown."""
TABS = {
    "perturbed": ("with mistakes", f"the reference player with mistakes at a rate of {RATE:g} a decision"),
    "reference": ("played well", "the reference player, which sees what a model sees"),
}


def write(folder: Path) -> None:
    """Write a page for each environment, and one that lists them."""
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    shop, rows = load_shop(), []
    for env in COLLECTIONS["C8"]:
        seed, records = _chosen(env, shop)
        for player, record in records.items():
            shown = element("div", episode(record), class_="ecomlab")
            (folder / f"{env}-{player}.html").write_text(shown, "utf-8")
        (folder / f"{env}.md").write_text(_page(env, seed, list(records)), "utf-8")
        wrong = records["perturbed"]
        kinds = ", ".join(dict.fromkeys(label.kind for label in wrong.labels))
        rows.append(f"| [{env}]({env}.md) | {_works()[env]} | {kinds} | {wrong.reward:.3f} |")
    (folder / "index.md").write_text("\n".join([*_HEAD, *rows, *_CONTENTS]), "utf-8")


def _chosen(env: str, shop: Shop) -> tuple[int, dict[str, Record]]:
    """Find the first seed that shows something, and the records of both players by name. Raises LookupError."""
    for seed in SEEDS:
        job = Job(env, DIFFICULTY, seed)
        wrong = _played("perturbed", job, shop)
        if wrong.score.correct or wrong.turns > MOST_TURNS:
            continue
        record = record_of_trajectory(wrong, shop)
        if record.labels:
            well = _played("reference", job, shop)
            return seed, {"perturbed": record, "reference": record_of_trajectory(well, shop)}
    raise LookupError(f"no seed below {SEEDS.stop} of {env} shows mistakes in {MOST_TURNS} turns")


def _played(player: str, job: Job, shop: Shop) -> Trajectory:
    (played,) = ScriptedContestant(player).play([job], shop)
    return trajectory_of(played, shop)


@cache
def _works() -> dict[str, str]:
    """Read what the agent must do in each environment, as docs/environments.md says it."""
    text = (Path(__file__).parent / "environments.md").read_text("utf-8")
    return dict(re.findall(r"^\| ([A-Z]+) \| (.+) \|$", text, re.MULTILINE))


def _page(env: str, seed: int, players: list[str]) -> str:
    tabs = []
    for player in players:
        name, about = TABS[player]
        tabs += [
            f":::{{tab-item}} {name}",
            f"By {about}.",
            "",
            "```{raw} html",
            f":file: {env}-{player}.html",
        ]
        tabs += ["```", ":::", ""]
    return "\n".join(
        [
            f"# {env}, annotated",
            "",
            f"The agent must {_works()[env]}.",
            "",
            f"One task (d = {DIFFICULTY}, seed {seed}, the generated catalog of 20,000 products), twice. Calls unfold "
            "into their results. Beside each turn stands what no player sees: what the customer stated, revealed or "
            "still withholds, the cart, which part of the reward the turn gained or lost, and the mistakes "
            "that code found in it ([how](../cascade.md)).",
            "",
            "::::{tab-set}",
            *tabs,
            "::::",
            "",
            f"In a terminal: `ecomlab play --env {env} --difficulty {DIFFICULTY} --seed {seed} --player perturbed`; "
            f"or play it yourself, with `--player human` ([how](../play.md)).",
            "",
        ]
    )


_HEAD = [
    "# Annotated episodes",
    "",
    f"An episode of each environment, acted out when this site was built: the first seed at d = {DIFFICULTY} in which "
    f"the perturbed player (the reference player with mistakes at a rate of {RATE:g} a decision) fails within "
    f"{MOST_TURNS} turns, beside the same task played well. "
    "[`ecomlab view`](../view.md) writes such pages of any transcripts, a trained policy's or a model's.",
    "",
    "| environment | the agent must | mistakes that code found | reward |",
    "|---|---|---|--:|",
]
_CONTENTS = ["", "```{toctree}", ":hidden:", ":glob:", "", "[A-Z]*", "```", ""]
