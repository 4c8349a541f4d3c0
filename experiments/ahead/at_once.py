"""The runs of both sweeps at once, without Jupyter, on a machine with many cores.

    python experiments/ahead/at_once.py --processes 12 [--steps 2]       # goes on where it stopped
    ecomlab sweep experiments/ahead/off/sweep.toml                       # then joins the tables; likewise `on`

The evaluation before training is the same in every run: it is played first, in parts, and kept where the runs look for
it. Each run has one thread; `ahead` has a second one.
"""

import argparse
import itertools
import os
import time
import tomllib
from collections.abc import Iterator
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from ecomlab.files import write_json
from ecomlab.lab import provenance
from ecomlab.models.load import load_policy
from ecomlab.training import untrained
from ecomlab.training.loop import Run, TrainConfig, train

HERE = Path(__file__).resolve().parent
RUNS = HERE / "runs"
"""Where the sweeps look for their runs, a folder each; an evaluation before training is kept in the folder of each."""


def configurations(steps: int | None) -> Iterator[TrainConfig]:
    """Read the configuration of every run; `steps` in place of their own, for a check."""
    for arm in ("on", "off"):  # the longer ones first
        sweep = tomllib.loads((HERE / arm / "sweep.toml").read_text("utf-8"))
        given = {**sweep["fixed"], **sweep["fixed"]["more"]}
        del given["more"]
        if steps:
            given |= {"steps": steps, "eval_episodes": 2}
        (given["schedule"],) = sweep["grid"]["schedule"]
        for seed in sweep["seeds"]:
            out = RUNS / arm / f"{given['schedule']}-seed{seed}"
            yield TrainConfig(**given, seed=seed, out=str(out))


def play_part(config: TrainConfig, part: tuple[int, str, int]) -> untrained.Evaluation:
    """Play the held-out episodes of one block, decoding and level before training."""
    block, decoding, d = part
    config = config.replace(eval_block=(block,), eval_decodings=(decoding,), eval_difficulties=(d,))
    shop = config.load_shop()
    policy = load_policy(config.starter, shop, config.played)
    return Run(config, Path(config.out), shop, policy, lambda _: None)._play_held_out(0)


def run(config: TrainConfig) -> str:
    """Train, or go on, and say that it is finished as a sweep's worker does."""
    began, folder = time.monotonic(), Path(config.out)
    record: dict[str, Any] = {
        "id": folder.name,
        **provenance.provenance(
            config.to_json(),
            catalog=config.load_shop().fingerprint,
            made_with=provenance.made_with(config.starter, config.played),
        ),
    }
    train(config)
    write_json(folder / "finished.json", {**record, "seconds": round(time.monotonic() - began, 1)})
    return f"{folder.parent.name}/{folder.name}: {time.monotonic() - began:.0f} s"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--steps", type=int, help="of each run, with two held-out episodes a cell: a check")
    chosen = parser.parse_args()
    for library in ("OMP", "MKL", "OPENBLAS", "RAYON"):
        os.environ[f"{library}_NUM_THREADS"] = "1"  # of the processes that are started
    every = list(configurations(chosen.steps))
    one = every[0]
    shop = one.load_shop()
    policy = load_policy(one.starter, shop, one.played)
    files = [untrained.file_of(each, policy, shop.fingerprint) for each in every]
    with get_context("spawn").Pool(chosen.processes) as pool:
        if not all(file.exists() for file in files):
            parts = itertools.product(one.eval_block, one.eval_decodings, one.eval_difficulties)
            found = pool.map(partial(play_part, one), parts, 1)
            whole = untrained.Evaluation(
                [row for part in found for row in part.episodes],
                [failure for part in found for failure in part.failures],
            )
            for file in {*files}:
                untrained.keep(file, whole)
        for line in pool.imap_unordered(run, every):
            print(line, flush=True)


if __name__ == "__main__":
    main()
