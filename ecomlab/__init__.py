"""ecomlab: shopping agents trained with reinforcement learning from verifiable rewards."""

import os
from importlib import import_module
from importlib.util import find_spec
from logging import getLogger
from typing import TYPE_CHECKING

__version__ = "0.2.0"

# Let OpenBLAS's idle threads sleep: they would spin for 2**26 cycles, .1 s of a core at import and 20 ms a search.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
# A notebook would show matplotlib's "building the font cache", once, as a pink box in its first cell.
getLogger("matplotlib.font_manager").addFilter(lambda record: "font cache" not in str(record.msg))

if TYPE_CHECKING:
    from ecomlab import reward as reward
    from ecomlab import style as style
    from ecomlab.analysis.tables import load_runs as load_runs
    from ecomlab.catalog import Catalog as Catalog
    from ecomlab.catalog import Shop as Shop
    from ecomlab.catalog import load_shop as load_shop
    from ecomlab.difficulty import Difficulty as Difficulty
    from ecomlab.envs.base import Environment as Environment
    from ecomlab.envs.registry import ENVIRONMENTS as ENVIRONMENTS
    from ecomlab.episode.episode import Episode as Episode
    from ecomlab.episode.episode import Turn as Turn
    from ecomlab.episode.episode import make_task as make_task
    from ecomlab.episode.play import play as play
    from ecomlab.episode.play import replay as replay
    from ecomlab.episode.record import Trajectory as Trajectory
    from ecomlab.evaluation.compare import compare as compare
    from ecomlab.evaluation.report import Report as Report
    from ecomlab.lab.evaluations import evaluate as evaluate
    from ecomlab.lab.evaluations import frontier as frontier
    from ecomlab.lab.view.notebook import watch as watch
    from ecomlab.reward import Score as Score
    from ecomlab.task import Task as Task
    from ecomlab.task import TaskError as TaskError
    from ecomlab.training.config import TrainConfig as TrainConfig
    from ecomlab.training.run import Run as Run
    from ecomlab.training.run import train as train
    from ecomlab.training.stream import Stream as Stream
else:  # when it is used: the command line starts before numpy is imported

    def __getattr__(name):
        if name not in _PARTS and name not in _MODULES:
            raise AttributeError(f"module 'ecomlab' has no attribute {name!r}")
        try:
            if name in _PARTS:
                return import_module(f"ecomlab.{name}")
            globals()[name] = found = getattr(import_module(_MODULES[name]), name)
        except ModuleNotFoundError as error:
            from ecomlab.suggest import worded

            raise ModuleNotFoundError(f"ecomlab.{name}: {worded(error)}", name=error.name) from error
        return found

    def __dir__():  # so that a notebook completes what is not imported yet, and `help` skips what cannot be
        absent = {name for name, package in _EXTRA.items() if find_spec(package) is None}
        return sorted({*globals(), *__all__, *_PARTS} - absent)


_PARTS = ("reward", "style")
"""Modules whose names are said after `ecomlab`."""
_EXTRA = {"Run": "torch", "train": "torch", "load_runs": "pandas", "style": "seaborn"}
"""Packages of extras without which a name cannot be imported."""
_MODULES = {
    "ENVIRONMENTS": "ecomlab.envs.registry",
    "Catalog": "ecomlab.catalog",
    "Difficulty": "ecomlab.difficulty",
    "Environment": "ecomlab.envs.base",
    "Episode": "ecomlab.episode.episode",
    "Report": "ecomlab.evaluation.report",
    "Run": "ecomlab.training.run",
    "Score": "ecomlab.reward",
    "Shop": "ecomlab.catalog",
    "Stream": "ecomlab.training.stream",
    "Task": "ecomlab.task",
    "TaskError": "ecomlab.task",
    "TrainConfig": "ecomlab.training.config",
    "Trajectory": "ecomlab.episode.record",
    "Turn": "ecomlab.episode.episode",
    "compare": "ecomlab.evaluation.compare",
    "evaluate": "ecomlab.lab.evaluations",
    "frontier": "ecomlab.lab.evaluations",
    "load_runs": "ecomlab.analysis.tables",
    "load_shop": "ecomlab.catalog",
    "make_task": "ecomlab.episode.episode",
    "play": "ecomlab.episode.play",
    "replay": "ecomlab.episode.play",
    "train": "ecomlab.training.run",
    "watch": "ecomlab.lab.view.notebook",
}

__all__ = ["__version__", *_MODULES]
