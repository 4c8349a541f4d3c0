"""Understanding of a message to the customer: what it asks for, of which item, naming which values.

Phrases are data (`questions.toml`, `messages.toml`, `word_classes.toml`) and match by stems. Nothing here knows what
the customer wants: a `Reader` is made from the slots that such a customer may have, the names of the items and the
shop's vocabulary. `ecomlab.laws.understanding` measures it.
"""

from collections.abc import Container, Iterable, Mapping, Sequence

from ecomlab.customer.heard import Heard, Question, Reading
from ecomlab.customer.sentence_reader import SentenceReader
from ecomlab.customer.vocabulary import vocabulary
from ecomlab.customer.words import Names, sentences

__all__ = ["Question", "Reader", "Reading"]


class Reader:
    """Reads messages to a customer who may have these `slots`.

    `items` are the names that each item is called by, `values` the words of values by slot, and `called` other names of
    slots, such as an option's ("size"). `shop` are the stems of the names of what is sold, `has` the slots that each
    item can have, and `last` those that are asked for only where no other one is meant. `written` are further values by
    slot, which may be ordinary words: they are values only where they have a capital.
    """

    def __init__(
        self,
        slots: Iterable[str],
        items: Sequence[Sequence[str]],
        values: Mapping[str, Iterable[str] | Names],
        called: Mapping[str, Iterable[str]],
        shop: Container[str] = frozenset(),
        has: Sequence[frozenset[str]] = (),
        last: frozenset[str] = frozenset(),
        written: Iterable[tuple[str, tuple[str, ...] | Names]] = (),
    ) -> None:
        self._vocabulary = vocabulary(slots, items, values, called, shop, tuple(has), last, written)

    @property
    def slots(self) -> tuple[str, ...]:
        """The slots that may be asked for, in order."""
        return tuple(self._vocabulary.rank)

    def read(self, text: str) -> Reading:
        """Understand a message."""
        heard = Heard()
        for sentence in sentences(text, self._vocabulary.known):
            SentenceReader(self._vocabulary, sentence, text, heard).read()
        return heard.reading()
