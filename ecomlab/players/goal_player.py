"""Base of players that work from slots: an oracle takes them from the goal, others from what the customer says."""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ecomlab.customer import nlu
from ecomlab.customer.meaning import called
from ecomlab.players.asking import Asking
from ecomlab.slots import filters_of
from ecomlab.task import Message, Place
from ecomlab.wishes import Wish, without
from ecomlab.world.policy_book import places


class GoalPlayer(Asking):
    """Keeps `known` slots by place and starts its work again whenever they, or the stock, have changed.

    With `truth` it is the oracle: it knows the goal and acts through the tools alone. With a `perturbation` it makes
    mistakes.
    """

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.known: dict[Place, Any] = {}
        self._basis: dict[Place, Any] | None = None
        self.unknown: list[str] = []
        """Facts that the customer asked where to look up, and was not told."""
        self.places: dict[str, str] | None = None
        """Words of the places where facts can be looked up, once the book's section was asked for."""

    def get(self, name: str, default: Any = None, item: int = 0) -> Any:
        """Look up the value of a slot, as far as it is known."""
        return self.known.get((item, name), default)

    @property
    def slots(self) -> dict[str, Any]:
        """Known slots of the only item, without those that have no value."""
        return {name: value for (_, name), value in self.known.items() if value is not None}

    def heard_of(self) -> Collection[str]:
        return {name for _, name in self.known}

    def read_opening(self, text: str) -> dict[Place, Any]:
        """Read every slot that the opening states, types included."""
        read = self._told(text, opening=True)
        for item, mention in enumerate(nlu.read_opening(text, self.phrases, self.lexicon)):
            slots = {"type": mention.type, **mention.slots}
            read |= {(item, name): value for name, value in slots.items()}
        return self._bound(read)

    def _bound(self, slots: dict[Place, Any]) -> dict[Place, Any]:
        """Find what the words of slots with sentences of their own say of the type that is wanted."""
        kind = slots.get((0, "type"), self.get("type"))
        if not kind:
            return slots
        return {at: nlu.bound(kind, value, self.phrases, self.lexicon) for at, value in slots.items()}

    def read_later(self, text: str) -> dict[Place, Any]:
        """Read the slots that a later message states; those of a product belong to the item of its type."""
        read = self._told(text)
        for mention in nlu.read_message(text, self.phrases, self.lexicon):
            for (item, name), value in self.known.items():
                if name == "type" and value == mention.type:
                    read |= {(item, slot): new for slot, new in mention.slots.items()}
        return self._bound(read)

    def read_renamed(self, text: str, keeps: Collection[str] = ()) -> dict[Place, Any]:
        """Read a later message of a customer who may turn to an entirely different item: the slots that described the
        old one no longer hold, except those that such a change `keeps`."""
        read: dict[Place, Any] = {}
        for mention in nlu.read_message(text, self.phrases, self.lexicon):
            if mention.effect == "anew":
                read = {place: None for place in self.known if place[1] not in keeps}
            if mention.type and (read or mention.type == self.get("type")):
                slots = {"type": mention.type, **mention.slots}
                read |= {(0, name): value for name, value in slots.items() if self.phrases.describe(name)}
        return read | self._told(text)

    def _told(self, text: str, opening: bool = False) -> dict[Place, Any]:
        """Read the slots that have sentences of their own."""
        told = nlu.read_slots(text, self.phrases, self.lexicon, opening)
        return {(0, name): value for name, value in told}

    def hear(self, text: str, opening: bool) -> None:
        if self.truth is not None:
            return
        if opening:
            read = self.read_opening(text)
            self.begin(text)
        else:
            read = self.read_later(text)
            self.told(text)
        for said in nlu.read_acts(text, self.phrases, self.lexicon):
            if said.kind == "ask where":
                named = [name for name in places.FACTS if called(name) in said.fields["seen"]]
                self.unknown += [name for name in named if name not in self.unknown and not self.slip()]
        read = {place: value for place, value in read.items() if place[1] not in self.asks}
        self.known |= {place: value for place, value in read.items() if place[1] == "type" or not self.slip()}
        for item in {item for item, _ in self.known} if self.lacks else ():
            slots = {name: value for (i, name), value in self.known.items() if i == item}
            self.known = {place: value for place, value in self.known.items() if place[0] != item}
            self.known |= {(item, name): value for name, value in without(slots, self.lacks).items()}

    def search(
        self,
        about: Any,
        kind: str,
        slots: Mapping[str, Any],
        sort: str | None = None,
        page: int = 1,
        further: Mapping[str, float] = MappingProxyType({}),
    ) -> dict[str, Any]:
        """Make the call that finds products of a type that are in stock and satisfy these slots and `further` filters,
        ordered by one key."""
        said = {
            name: value for name, value in slots.items() if not isinstance(value, Wish)
        }  # no filter takes these
        attributes = {name[5:]: value for name, value in said.items() if name.startswith("attr:")}
        return self.call(
            "catalog_search",
            about,
            category=kind,
            brand=said.get("brand"),
            attributes=attributes or None,
            in_stock=True,
            sort=sort,
            **{**filters_of(said), **further},
            page=page if page > 1 else None,
        )

    def plan(self) -> Message:
        question = self.question()
        if question:
            return question
        if self.unknown and "looking" not in self.lacks:
            return self._say_where()
        if self.truth is not None:
            self.known = dict(self.truth().slots)
        if self._basis != self.known:
            self._basis = dict(self.known)
            self.restart()
        return self.work()

    def _say_where(self) -> Message:
        """Tell the customer where to look up what they do not know, as the book says."""
        if self.places is None:
            return self.turn(self.call("policy_search", places.TITLE, query=places.TITLE))
        known = self.places
        said = " ".join(places.tell(name, known[name]) for name in self.unknown if name in known)
        self.unknown = []
        return {"role": "assistant", "content": said or "I am afraid I do not know."}

    def read_places(self, sections: Sequence[Mapping[str, str]]) -> None:
        """Read where facts can be looked up."""
        self.places = places.read_places(" ".join(section["text"] for section in sections))

    def notice(self, text: str) -> None:
        if "sold out" in text:
            self._basis = None
            self.stock_changed()

    def stock_changed(self) -> None:
        """Forget results about products in stock."""

    def restart(self) -> None:
        """Forget all results, because the wishes have changed or products may be sold out."""

    def work(self) -> Message:
        """Make the next message towards the known wishes."""
        raise NotImplementedError
