"""A subtask: one goal of the customer, and either a whole task or a part of a journey."""

from typing import Any

from ecomlab.catalog import Shop
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.customer.customer import Customer
from ecomlab.customer.dialogue import Reply
from ecomlab.customer.goal_state import Progress
from ecomlab.customer.llm import Wording
from ecomlab.customer.nlg import Speaker
from ecomlab.customer.reactions import Person
from ecomlab.customer.utterances import Manner
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.reward import Talk, Verdict, free_turns
from ecomlab.task import Goal, Need, SellOut, Task, TaskKey
from ecomlab.world.plain import plain
from ecomlab.world.state import World

ASKS = frozenset(("ask back", "ask where"))
"""Kinds of acts by which the customer asks the agent something."""
TELL_AND_TAKE = Need(turns=2, calls=1)
"""Part of a sell-out's need that is no look-up where there is a cart: to tell of it, and to take what is wanted
instead. Elsewhere all of it is look-ups."""


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
            Person.of(task.key),
            wording,
            reserved=begins,
            questions=self.env.questions,
        )
        self.progress = Progress()
        self.held_back = False
        """True once submit was rejected because something happened."""
        self.answer: dict[str, Any] | None = None
        self.verdict: Verdict | None = None
        """The verdict at the time of submit."""
        self.talk: dict[int, Talk] = {}
        """Turns in which the customer heard the agent, by number."""
        self.looked: set[tuple[str, str]] = set()
        """Calls that looked up alternatives after a stock notice, each once: tool and arguments."""
        self.look_turns = 0
        """Number of turns that did nothing else."""
        self.format_errors = 0
        """Number of messages with a format error."""

    @property
    def goal(self) -> Goal:
        """The goal that the verifier expects as the world is now."""
        return plain(self.customer.wanted(self.world), self.world)

    @property
    def first(self) -> Goal:
        """The goal at the start, worked out over the world as it is now."""
        return plain(self.customer.first, self.world)

    def verify(self) -> Verdict:
        """Judge the world as it stands."""
        return self.env.judge(self.goal, self.world, self.answer or {}, self.first)

    def submit(self, answer: dict[str, Any]) -> None:
        """Take the agent's answer and judge it."""
        self.answer = answer
        self.verdict = self.verify()

    def needed(self) -> Need:
        """Count what the reference player needs for this goal as it unfolded: events that happened earn their turns."""
        return self.task.need.plus(self.customer.fired)

    def heard(self, reply: Reply, turn: int, alone: bool) -> None:
        """Record what the agent's message did in this turn; `alone`: the turn calls no tool but `ask_user`."""
        before = self.talk.get(turn, Talk())
        asked = any(act.kind in ASKS for act in reply.acts)
        self.talk[turn] = Talk(before.did | reply.did, before.useful or reply.revealed, asked, alone)

    @property
    def sold_out(self) -> list[SellOut]:
        """Sell-outs that have happened."""
        return [event for event in self.customer.fired if isinstance(event, SellOut)]

    @property
    def excused(self) -> Need:
        """Turns and calls that do not count: free talk, and look-ups of alternatives beyond those that the sell-outs
        earn as events."""
        other = TELL_AND_TAKE if "cart" in self.env.acts_on else Need(0, 0)
        turns = self.look_turns - sum(max(0, event.turns - other.turns) for event in self.sold_out)
        calls = len(self.looked) - sum(max(0, event.calls - other.calls) for event in self.sold_out)
        return Need(free_turns(self.talk.values(), self.task.asks) + max(0, turns), max(0, calls))


def speaker_of(env: str, key: TaskKey, shop: Shop, p_noise: float, part: bool) -> Speaker:
    """Make the customer's speaker; in a journey its randomness is named by the journey's key and the environment."""
    named = (*key, env) if part else tuple(key)
    return Speaker(ENVIRONMENTS[env].phrases, lexicon_of(shop.catalog), p_noise, named, Manner.of(key))
