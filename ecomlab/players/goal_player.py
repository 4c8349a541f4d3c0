"""A clerk works from slots: the solver takes them from the truth, the fair player from what the customer says."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ecomlab.catalog.lexicon import Lexicon
from ecomlab.customer.goal_state import TOPICS
from ecomlab.customer.nlu import is_complete
from ecomlab.players.base import Planner, Slips
from ecomlab.players.cart import bounds
from ecomlab.task import Message

if TYPE_CHECKING:
    from ecomlab.envs.answering import Answering

_SOLD_OUT = re.compile("sold out")
QUESTION = "Is there anything else I should know before I start?"


class Clerk(Planner):
    """Keeps `known` slots by (subject, name) and starts its work anew whenever they, or the stock, have changed."""

    def __init__(
        self,
        env: "Answering",
        lexicon: Lexicon,
        truth: Callable[[], Mapping[tuple[int, str], Any]] | None = None,
        slips: Slips | None = None,
    ) -> None:
        super().__init__(slips)
        self.env = env
        self.lexicon = lexicon
        self.truth = truth
        self.known: dict[tuple[int, str], Any] = {}
        self._basis: dict[tuple[int, str], Any] | None = None
        self._ask = False

    def get(self, name: str, default: Any = None, subject: int = 0) -> Any:
        """What is known of a slot."""
        return self.known.get((subject, name), default)

    def hear(self, text: str, opening: bool) -> None:
        if _SOLD_OUT.search(text) and not opening:
            self._basis = None
        if self.truth is not None:
            return
        if opening:
            read = self.env.read_opening(text, self.lexicon)
            self._ask = not is_complete(text)
        else:
            read = self.env.read_later(text, self.lexicon, self.known)
        self.known |= {slot: value for slot, value in read.items() if slot[1] == "type" or not self.slip()}

    def search(
        self,
        about: Any,
        kind: str,
        slots: Mapping[str, Any],
        sort: Sequence[str] | None = None,
        page: int = 1,
    ) -> dict[str, Any]:
        """The call that finds what is in stock of a type and like these slots."""
        attributes = {name[5:]: value for name, value in slots.items() if name.startswith("attr:")}
        return self.call(
            "catalog_search",
            about,
            query=kind,
            category=kind,
            brand=slots.get("brand"),
            attributes=attributes or None,
            in_stock=True,
            sort=sort,
            **bounds(slots),
            page=page if page > 1 else None,
        )

    def plan(self) -> Message:
        if self._ask:
            self._ask = False
            if not self.slip():
                return self.turn(self.call("ask_user", None, question=QUESTION, about=list(TOPICS)))
        if self.truth is not None:
            self.known = dict(self.truth())
        if self._basis != self.known:
            self._basis = dict(self.known)
            self.restart()
        return self.work()

    def restart(self) -> None:
        """Forget what was found: it was looked for under other wishes, or is sold out by now."""

    def work(self) -> Message:
        """The next message towards what is known to be wanted."""
        raise NotImplementedError
