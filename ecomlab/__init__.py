"""ecomlab: shopping agents trained with reinforcement learning from verifiable rewards."""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ecomlab.catalog import Catalog, Shop, load_shop
    from ecomlab.difficulty import Difficulty
    from ecomlab.envs.base import Environment
    from ecomlab.envs.registry import ENVIRONMENTS
    from ecomlab.episode.episode import Episode, Trajectory, Turn, make_task
    from ecomlab.episode.play import play, replay
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
    "Run": "ecomlab.training.run",
    "Score": "ecomlab.reward",
    "Shop": "ecomlab.catalog",
    "Task": "ecomlab.task",
    "TaskError": "ecomlab.task",
    "TrainConfig": "ecomlab.training.config",
    "Trajectory": "ecomlab.episode.episode",
    "Turn": "ecomlab.episode.episode",
    "load_shop": "ecomlab.catalog",
    "make_task": "ecomlab.episode.episode",
    "play": "ecomlab.episode.play",
    "replay": "ecomlab.episode.play",
    "train": "ecomlab.training.run",
}

__all__ = [
    "ENVIRONMENTS",
    "Catalog",
    "Difficulty",
    "Environment",
    "Episode",
    "Run",
    "Score",
    "Shop",
    "Task",
    "TaskError",
    "TrainConfig",
    "Trajectory",
    "Turn",
    "__version__",
    "load_shop",
    "make_task",
    "play",
    "replay",
    "train",
]
