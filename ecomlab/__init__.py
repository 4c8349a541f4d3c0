"""ecomlab: shopping agents trained with reinforcement learning from verifiable rewards."""

__version__ = "0.1.0"

from ecomlab.catalog import Catalog, Shop, load_shop
from ecomlab.core import ENVIRONMENTS, Environment, Task, TaskError
from ecomlab.difficulty import Difficulty
from ecomlab.episode import Episode, Trajectory, Turn, make_task
from ecomlab.reward import Score
from ecomlab.rollout import play, replay

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
