"""One job of a customer's: what they want, how far it has come, and what they say to it."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.customer.acts import Act
from ecomlab.customer.dialogue import Kernel, Reply
from ecomlab.customer.goal_state import Ledger
from ecomlab.customer.nlg import Words
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.reward import Verdict
from ecomlab.task import Event, Task
from ecomlab.world.state import World


class Job:
    """What the customer wants of one environment and how far it has come: all of a plain task, a part of a journey.

    Environments work on jobs; a job knows nothing of the episode around it, so that a finished one is freed at once.
    """

    def __init__(self, task: Task, shop: Shop, world: World, journey: Sequence[Any] = ()) -> None:
        self.task, self.shop, self.world = task, shop, world
        self.env = ENVIRONMENTS[task.env]
        self.state = self.env.begin(task, shop)
        topics = {name: saying.topic for name, saying in self.env.sayings.items()}
        ledger = Ledger(*self.env.slots(task), topics=topics, which=self.env.which)
        lexicon = lexicon_of(shop.catalog)
        self.kernel = Kernel(ledger, partial(self.env.type_name, task, self.state), lexicon.called)
        named = (*task.key, *journey)
        self.words = Words(lexicon, task.axes.p_noise, named, self.env.sayings, self.env.acts)
        self.turn = 0
        self.answer: dict[str, Any] | None = None
        self.verdict: Verdict | None = None
        """At the time of handing in."""
        self.useful_asks = 0
        self.fired: list[tuple[int, Event]] = []
        """Events that changed something, with the turn after which they were heard."""
        self._pending = list(task.events)
        self._silent: list[Event] = []

    def hand_in(self, answer: dict[str, Any]) -> None:
        """The agent says that this is it."""
        self.answer = answer
        self.verdict = self.env.verify(self)

    def needed(self) -> tuple[int, int]:
        """(turns, calls) that a fair player needs for this job as it went, handing in included."""
        need = self.task.need
        return need.with_events(self.fired, min(self.useful_asks, need.asks))

    def hear(self, text: str) -> list[Act]:
        """The customer's answer to a message without a tool call."""
        lowered = text.lower()
        mentioned = set()
        for product_id in self.world.shown:
            row = self.world.row(product_id)
            if product_id.lower() in lowered or self.world.catalog.title(row).lower() in lowered:
                mentioned.add(self.world.catalog.type_of(row).name)
        reply: Reply | None = self.kernel.presented(sorted(mentioned)) if mentioned else None
        if reply is None:
            claims = self.kernel.claims_done(text)
            reply = self.kernel.told_done(self.env.missing(self)) if claims else self.kernel.told(text)
        self.useful_asks += reply.revealed
        return reply.acts

    def corrections(self) -> list[Act]:
        """What the customer says about what they see is wrong."""
        skipped = self.kernel.skipped
        return self.kernel.corrections([f for f in self.env.faults(self) if f.subject not in skipped])

    def events(self) -> list[Act]:
        """Let what is due happen, and let the customer hear of it."""
        acts: list[Act] = []
        due = [event for event in self._pending if event.turn <= self.turn]
        heard = [event for event in self._silent if self.env.heard(self, event)]
        for event in due:
            self._pending.remove(event)
            self.env.occur(self, event)
            if event.silent:
                self._silent.append(event)
            else:
                heard.append(event)
        for event in heard:
            if event in self._silent:
                self._silent.remove(event)
            if event.subject in self.kernel.skipped:
                continue  # they have given it up and do not come back to it
            said = self.env.fire(self, event)
            if said is not None:
                self.fired.append((self.turn, event))
                acts += said
        return acts
