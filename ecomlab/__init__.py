"""ecomlab: shopping agents trained with reinforcement learning from verifiable rewards."""

__version__ = "0.1.0"

from ecomlab.catalog import Catalog, Shop, load_shop
from ecomlab.difficulty import Difficulty
from ecomlab.envs.base import Environment
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode, Trajectory, Turn, make_task
from ecomlab.episode.play import play, replay
from ecomlab.reward import Score
from ecomlab.task import Task, TaskError

__all__ = [
    "ENVIRONMENTS",
    "Catalog",
    "Difficulty",
    "Environment",
    "Episode",
    "Score",
    "Shop",
    "Task",
    "TaskError",
    "Trajectory",
    "Turn",
    "__version__",
    "load_shop",
    "make_task",
    "play",
    "replay",
]
