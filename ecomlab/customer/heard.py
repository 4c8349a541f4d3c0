"""What a message to the customer asks for, and what else it does."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

NO_ITEM = 1_000
"""From here on, numbers in place of an item's for things on a list that no wish is about."""


@dataclass(frozen=True)
class Question:
    """A slot that is asked for, of one item or of any (-1), and its values that are named beside it.

    One value makes a yes-or-no question, more an either-or. A value is spelt as the Reader's vocabulary or the file of
    phrases has it, an amount as in the message. `scope`: it is asked whether a price is for each or in total.
    """

    slot: str
    item: int = -1
    values: tuple[str, ...] = ()
    scope: bool = False


@dataclass(frozen=True)
class Reading:
    """What a message asks for, and what else it does."""

    questions: tuple[Question, ...] = ()
    """In the order of asking, a slot once an item."""
    open: bool = False
    """Whatever else there is, or all there is, is asked for."""
    open_items: tuple[int, ...] = ()
    """The items that the open part names."""
    asks: bool = False
    """Anything is asked at all."""
    unclear: tuple[str, ...] = ()
    """Words of the asking sentences in which nothing was recognised."""
    done: bool = False
    """It is said that the work is done, or an answer or a result is given."""
    agree: bool = False
    """Only agreement is asked for."""
    unavailable: tuple[int, ...] = ()
    """Items that are said to be sold out, or of which only some are left; (-1,) where none is named."""
    which: bool = False
    """It is asked which one it is."""


@dataclass
class Heard:
    """What has been heard of a message so far."""

    asked: dict[tuple[str, int], Question] = field(default_factory=dict)
    open: bool = False
    open_items: tuple[int, ...] = ()
    announced: bool = False
    """Questions were announced: all there is is asked for, if nothing else is."""
    asks: bool = False
    agree: bool = False
    done: bool = False
    which: bool = False
    unclear: list[str] = field(default_factory=list)
    unavailable: list[int] = field(default_factory=list)
    lost: bool = False
    """Nonsense was heard."""
    strange: str = ""
    """A remark that no shop makes: it is asked back where the message does nothing else."""
    reports: bool = False
    """The last sentence only named things or amounts."""
    line: bool = False
    """It did so in a line of a list that goes on."""
    lists: bool = False
    """The items of a list come that was asked for."""
    waiting: list[Question] = field(default_factory=list)
    """What the sentence before named without asking for it."""
    before: list[Question] = field(default_factory=list)
    """What the last sentence that asked asked for."""
    topics: tuple[int, ...] = ()
    """The item that was last spoken of, or those that the last sentence named and said nothing else."""

    def opened(self, items: Iterable[int]) -> None:
        """Take note of what is asked for, whatever there is, of these items."""
        self.open = True
        named = (item for item in items if item >= 0)
        self.open_items = tuple(dict.fromkeys((*self.open_items, *named)))

    def add(self, questions: Iterable[Question]) -> None:
        """Add questions; one for a slot of any item joins the one before it for the same slot."""
        for one in questions:
            if one.item >= 0 and (one.slot, -1) in self.asked:  # "When is it? When do you need the kettle?"
                before = self.asked.pop((one.slot, -1))
                one = replace(one, values=(*before.values, *one.values), scope=before.scope or one.scope)
            items = [item for slot, item in self.asked if slot == one.slot]
            if items and one.item < 0:
                one = replace(one, item=items[-1])
            before = self.asked.get((one.slot, one.item), one)
            values = tuple(dict.fromkeys((*before.values, *one.values)))
            self.asked[one.slot, one.item] = replace(one, values=values, scope=before.scope or one.scope)

    def reading(self) -> Reading:
        """Sum up the message."""
        asked = tuple(self.asked.values())
        is_open = self.open or (self.announced and not asked)
        if self.strange and not (
            asked or is_open or self.agree or self.which or self.unavailable or self.done
        ):
            self.asks = True
            self.unclear = self.unclear or [self.strange]
        return Reading(
            questions=asked,
            open=is_open,
            open_items=self.open_items if is_open else (),
            asks=self.asks,
            unclear=tuple(self.unclear),
            done=self.done,
            agree=self.agree and not asked and not is_open and not self.unclear,
            unavailable=tuple(dict.fromkeys(self.unavailable)),
            which=self.which,
        )
