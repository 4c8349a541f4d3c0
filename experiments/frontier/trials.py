"""Runs of the gates and of the study: each trains, measures its final policy, and leaves its tables in a folder.

A run whose folder holds `end.csv` is done, whoever made it; one that was stopped goes on from its last checkpoint.
Nothing is committed here.
"""

import argparse
import json
import os
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from composition import by_steps, measured, played

from ecomlab.catalog import load_shop
from ecomlab.difficulty import COMPOSED
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import make_task
from ecomlab.evaluation.evaluation import Cells
from ecomlab.evaluation.heldout import play_held_out, summarize
from ecomlab.evaluation.local import DECODINGS
from ecomlab.evaluation.planting import by_policy, measure
from ecomlab.evaluation.tasks import held_out_seeds
from ecomlab.lab.provenance import made_with, provenance
from ecomlab.models.load import load_policy
from ecomlab.seeding import TRAINING_SEEDS, rng
from ecomlab.starters.demonstrations import Demonstration, demonstrate
from ecomlab.starters.recipe import RECIPES
from ecomlab.starters.sft import batches_of, imitate
from ecomlab.training.config import TrainConfig
from ecomlab.training.run import train

HERE = Path(__file__).resolve().parent
OWN = f"{HERE / 'schedules.py'}:"
SETTINGS: Mapping[str, Any] = {
    "collection": "C1", "axes": dict(COMPOSED), "eval_axes": dict(COMPOSED), "rounds": 1, "adam_beta2": 0.98,
    "eval_difficulties": (0, 2, 4, 6, 8), "eval_episodes": 64, "eval_decodings": ("sampled",), "eval_every": 0,
    "transcripts_every": 0, "checkpoint_every": 25,
}  # fmt: skip
"""Common to all runs; a run's own settings take precedence."""
NATURAL: Mapping[str, float] = {"steps.mean": 0.0}
"""Axes of runs over several environments: a level as it is, without steps of thought."""
KEPT = ("eval.csv", "config.json", "alarms.txt")
"""Files of a run's folder that are kept as they are."""
COLUMNS = (
    "step", "env", "d", "d_low", "d_high", "success", "reward", "groups", "kept", "rollouts", "unscored", "truncated",
    "invalid", "tokens_generated", "tokens_used", "entropy", "clip_share", "grad_norm", "logp_gap",
)  # fmt: skip
"""Columns of its train.csv that are kept, with five digits: 162 whole tables would be half of the repository."""


@dataclass(frozen=True)
class Run:
    """One run: the part of the study, arm, starter and seed, and its settings."""

    part: str
    arm: str
    starter: str
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    tasks: int = 192
    """Held-out tasks of a level and block at the end."""
    blocks: Sequence[int] = (0, 1)
    planted: int = 0
    """Tasks of a level in whose correct beginnings mistakes are planted at the end."""
    held_out: str = ""
    """An environment that is not trained, measured at the end beside the others; empty: measure composition."""

    imitate: tuple[Mapping[str, float], ...] = ()
    """Axes of the carts whose clean demonstrations are imitated, in place of reinforcement learning."""
    levels: Sequence[int] = (0,)
    """Levels of these demonstrations."""
    own_tokens: int = 0
    """Tokens of the demonstrator to imitate: as many as a policy samples in a run of `STEPS`."""

    @property
    def name(self) -> str:
        return f"{self.part}/{self.arm}-{self.starter}-{self.seed}"

    @property
    def config(self) -> dict[str, Any]:
        return {**SETTINGS, "starter": self.starter, "seed": self.seed, **self.settings}


def execute(runs: Iterable[Run], results: Path, work: Path) -> None:
    """Make what is not in `results` yet, one after another; running ones are kept in `work`."""
    shop = load_shop()
    for run in runs:
        if (results / run.name / "end.csv").exists():
            continue
        began, folder = time.process_time(), work / run.name
        resumed = (folder / "train.csv").exists()
        print(f"{time.strftime('%H:%M')} {run.name}", flush=True)
        if run.imitate:
            policy = imitated(run, folder, shop)
        else:
            policy = train(TrainConfig(out=str(folder), **run.config), lambda event: None).policy()
        trained = time.process_time() - began
        keep(run, policy, folder, results, shop)
        spent = time.process_time() - began
        if not resumed:  # what came before the interruption is not known
            seconds = {"train": round(trained, 1), "all": round(spent, 1)}
            (results / run.name / "seconds.json").write_text(json.dumps(seconds) + "\n")
        print(f"{time.strftime('%H:%M')} {run.name}: {spent:.0f} s of the processor", flush=True)
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)


def keep(run: Run, policy: Any, folder: Path, results: Path, shop: Any) -> None:
    """Measure a run's final policy, and put its tables in their place."""
    if run.held_out:
        others = {(env, run.blocks[0]): run.tasks // 4 for env in ENVIRONMENTS}
        held_out = {(run.held_out, block): run.tasks for block in run.blocks}
        tables = [environments(policy, shop, others | held_out)]
    else:
        tasks = {
            block: played(policy, shop, run.tasks, block, "d =" if i else "")
            for i, block in enumerate(run.blocks)
        }
        tables = [measured(found).assign(block=block) for block, found in tasks.items()]
        steps = pd.concat(by_steps(found).assign(block=block) for block, found in tasks.items())
    place = results / run.name
    new = place.with_name(f".{place.name}")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    for name in KEPT:
        if (folder / name).exists():
            (new / name).write_text((folder / name).read_text("utf-8"), "utf-8", newline="\n")
    if (folder / "train.csv").exists():
        columns = pd.read_csv(folder / "train.csv", usecols=list(COLUMNS))[list(COLUMNS)]
        columns.to_csv(new / "train.csv", index=False, lineterminator="\n", float_format="%.5g")
    record = provenance(
        {"arm": run.arm, **run.config},
        catalog=shop.fingerprint,
        made_with=made_with(run.starter, list(ENVIRONMENTS) if run.held_out else ["CART"]),
    )
    (new / "provenance.json").write_text(json.dumps(record, indent=1) + "\n")
    if not run.held_out:
        steps.to_csv(new / "steps.csv", index=False, lineterminator="\n")
    if run.planted:
        pairs = planted(policy, shop, run.planted)
        left_out = pairs[pairs.why != ""].groupby(["d", "kind", "why"]).size().rename("tasks").reset_index()
        left_out.to_csv(new / "left_out.csv", index=False, lineterminator="\n")
        pairs = pairs[pairs.why == ""].drop(columns=["env", "why"])
        pairs.to_csv(new / "planted.csv", index=False, lineterminator="\n")
    pd.concat(tables).to_csv(new / "end.csv", index=False, lineterminator="\n")
    shutil.rmtree(place, ignore_errors=True)
    new.rename(place)


def imitated(run: Run, folder: Path, shop: Any) -> Any:
    """Imitate clean demonstrations from training seeds, once through, with the recipe's optimizer and a tenth of its
    learning rates."""
    policy = load_policy(run.starter, shop, list(ENVIRONMENTS))
    random = rng("imitation", run.arm, run.seed)
    played: list[Demonstration] = []
    own = 0
    while own < run.own_tokens:
        level = int(random.choice(run.levels))
        axes = {**COMPOSED, **run.imitate[int(random.integers(len(run.imitate)))]}
        seed = int(random.integers(TRAINING_SEEDS.start, TRAINING_SEEDS.stop))
        played.append(demonstrate(make_task("CART", level, seed, shop, axes), shop, policy.renderer))
        own += sum(played[-1].mask)
    batches = list(batches_of(played, 2_000, sum(len(one.ids) for one in played), ("imitation", run.seed)))
    recipe = RECIPES["novice"]
    imitate(policy.model, batches, recipe.muon_lr / 10, recipe.adamw_lr / 10, 0.5, decay=recipe.decay)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"tokens": own, "demonstrations": len(played)}) + "\n")
    return policy


def environments(policy: Any, shop: Any, tasks: Mapping[tuple[str, int], int]) -> pd.DataFrame:
    """Measure environments, by both decodings at the two easiest levels, with so many tasks a level and block."""
    rows: list[Any] = []
    for (env, block), count in tasks.items():
        jobs = Cells((env,), (0, 1), count, block, axes=NATURAL).jobs()
        rows += summarize(play_held_out(policy, jobs, shop, decodings=DECODINGS))
    return pd.DataFrame(rows)


PLANTED: Mapping[str, float] = {**COMPOSED, "cart.p_option": 0.0}
"""Axes of carts in which mistakes are planted: with an option, a tiny policy adds the product in the message that asks
for its options, which is a mistake from its first act on."""


def planted(policy: Any, shop: Any, tasks: int, levels: Sequence[int] = (1, 4)) -> pd.DataFrame:
    """Plant mistakes in the policy's own correct beginnings: a row for each pair."""
    drawn = [make_task("CART", d, seed, shop, PLANTED) for d in levels for seed in held_out_seeds(0, tasks)]
    kinds = ("wrong quantity", "wrong product", "unwanted item")
    return pd.DataFrame([vars(pair) for pair in measure(by_policy(policy, shop), drawn, shop, kinds)])


def main(runs: Sequence[Run], about: str) -> None:
    """The command line of a list of runs."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], help="runs whose names contain one of these")
    parser.add_argument(
        "--dry-run", action="store_true", help="list runs and measured seconds, and start nothing"
    )
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--work", type=Path, default=HERE / "runs")
    given = parser.parse_args()
    chosen = [run for run in runs if any(word in run.name for word in given.only)]
    if given.dry_run:
        print(cost(chosen, given.results).to_string())
    else:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        execute(chosen, given.results, given.work)


def cost(runs: Sequence[Run], results: Path) -> pd.DataFrame:
    """Tabulate runs, runs done and hours by part and arm: an arm's runs cost the mean of those done, of all done of
    their part where none of its own is, and of the part's pilots where none is at all."""
    rows = []
    for run in runs:
        seconds = _seconds(results / run.name)
        rows.append({"part": run.part, "arm": run.arm, "starter": run.starter, "seconds": seconds})
    table = pd.DataFrame(rows)
    pilots = {
        part: np.mean([_seconds(folder) for folder in (results / f"pilot-{part}").glob("*")] or [np.nan])
        for part in table.part.unique()
    }
    known = table.groupby(["part", "arm", "starter"]).seconds.transform("mean")
    for wider in (["part", "arm"], ["part"]):
        known = known.fillna(table.groupby(wider).seconds.transform("mean"))
    table["hours"] = known.fillna(table.part.map(pilots)) / 3600
    found = table.groupby(["part", "arm"], sort=False).agg(
        runs=("hours", "size"), done=("seconds", "count"), hours=("hours", "sum")
    )
    found.loc[("all", ""), :] = found.sum()
    return found.round(2)


def _seconds(folder: Path) -> float:
    """Read the seconds that a run took; NaN if it is not done, or was interrupted."""
    file = folder / "seconds.json"
    return float(json.loads(file.read_text())["all"]) if file.exists() else np.nan
