"""ecomlab: shopping agents trained with reinforcement learning from verifiable rewards."""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ecomlab.catalog import Catalog, Shop, load_shop
    from ecomlab.difficulty import Difficulty
    from ecomlab.envs.base import Environment
    from ecomlab.envs.registry import ENVIRONMENTS
    from ecomlab.episode.episode import Episode, Turn, make_task
    from ecomlab.episode.play import play, replay
    from ecomlab.episode.record import Trajectory
    from ecomlab.evaluation.compare import compare
    from ecomlab.evaluation.report import Report
    from ecomlab.lab.evaluations import evaluate, frontier
    from ecomlab.lab.view.notebook import watch
    from ecomlab.reward import Score
    from ecomlab.task import Task, TaskError
    from ecomlab.training.config import TrainConfig
    from ecomlab.training.run import Run, train
else:  # when it is used: the command line starts before numpy is imported

    def __getattr__(name):
        if name not in _MODULES:
            raise AttributeError(f"module 'ecomlab' has no attribute {name!r}")
        globals()[name] = found = getattr(import_module(_MODULES[name]), name)
        return found

    def __dir__():  # so that a notebook completes what is not imported yet
        return sorted({*globals(), *__all__})


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
    "Task": "ecomlab.task",
    "TaskError": "ecomlab.task",
    "TrainConfig": "ecomlab.training.config",
    "Trajectory": "ecomlab.episode.record",
    "Turn": "ecomlab.episode.episode",
    "compare": "ecomlab.evaluation.compare",
    "evaluate": "ecomlab.lab.evaluations",
    "frontier": "ecomlab.lab.evaluations",
    "load_shop": "ecomlab.catalog",
    "make_task": "ecomlab.episode.episode",
    "play": "ecomlab.episode.play",
    "replay": "ecomlab.episode.play",
    "train": "ecomlab.training.run",
    "watch": "ecomlab.lab.view.notebook",
}

__all__ = [
    "ENVIRONMENTS",
    "Catalog",
    "Difficulty",
    "Environment",
    "Episode",
    "Report",
    "Run",
    "Score",
    "Shop",
    "Task",
    "TaskError",
    "TrainConfig",
    "Trajectory",
    "Turn",
    "__version__",
    "compare",
    "evaluate",
    "frontier",
    "load_shop",
    "make_task",
    "play",
    "replay",
    "train",
    "watch",
]
