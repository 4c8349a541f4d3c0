"""A subtask: one goal of the customer, and either a whole task or a part of a journey."""

from typing import Any

from ecomlab.catalog import Shop
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.customer.customer import Customer
from ecomlab.customer.llm import Wording
from ecomlab.customer.nlg import Speaker
from ecomlab.customer.progress import Progress
from ecomlab.customer.utterances import Manner
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.reward import Verdict
from ecomlab.task import COURTESY, Goal, Need, Task, TaskKey
from ecomlab.world.state import World


class Subtask:
    """The customer of one goal, and the agent's progress. It does not refer to its episode, so that a finished one is
    freed at once."""

    def __init__(
        self, task: Task, shop: Shop, world: World, part: bool = False, wording: Wording | None = None
    ) -> None:
        self.task, self.shop, self.world = task, shop, world
        self.env = ENVIRONMENTS[task.env]
        speaker = speaker_of(task.env, task.key, shop, task.axes.p_noise, part)
        lexicon = lexicon_of(shop.catalog)
        begins = [intro for env in ENVIRONMENTS for intro in ENVIRONMENTS[env].phrases.intros] if part else ()
        self.customer = Customer(
            task.goal,
            task.events,
            self.env.phrases,
            lexicon,
            speaker,
            self.env.acts_on,
            self.env.opinion,
            wording,
            reserved=begins,
        )
        self.progress = Progress()
        self.held_back = False
        """True once submit was rejected because something happened."""
        self.answer: dict[str, Any] | None = None
        self.verdict: Verdict | None = None
        """The verdict at the time of submit."""
        self.useful_asks = 0
        """Number of turns in which a question revealed something."""
        self.confirmed = 0
        """Number of messages to which the customer had nothing to add: a confirmation, a word when the work is done."""
        self.format_errors = 0
        """Number of messages with a format error."""

    @property
    def goal(self) -> Goal:
        """The goal that the verifier expects as the world is now."""
        return self.customer.wanted(self.world)

    def verify(self) -> Verdict:
        """Judge the world as it stands."""
        return self.env.verify(self.goal, self.world, self.answer or {}, self.customer.first)

    def submit(self, answer: dict[str, Any]) -> None:
        """Take the agent's answer and judge it."""
        self.answer = answer
        self.verdict = self.verify()

    def needed(self) -> Need:
        """Count what the reference player needs for this goal as it unfolded: events that happened earn their turns."""
        return self.task.need.plus(self.customer.fired)

    @property
    def excused(self) -> int:
        """Number of turns that do not count: useful questions, as many as a courteous agent asks, and courtesies."""
        return min(self.useful_asks, self.task.asks) + min(self.confirmed, COURTESY)


def speaker_of(env: str, key: TaskKey, shop: Shop, p_noise: float, part: bool) -> Speaker:
    """Make the customer's speaker; in a journey its randomness is named by the journey's key and the environment."""
    named = (*key, env) if part else tuple(key)
    return Speaker(ENVIRONMENTS[env].phrases, lexicon_of(shop.catalog), p_noise, named, Manner.of(key))
