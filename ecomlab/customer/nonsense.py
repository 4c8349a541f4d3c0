"""Signs that words are no sentence, or none of a shop: `SentenceReader` asks back what they say."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from ecomlab.customer.clauses import FUNCTION, REPEATED
from ecomlab.customer.words import Token

OFTEN = 3
"""Times from which on a word of a sentence may be too many."""
FOREIGN = 2
"""Words foreign to a shop that make nonsense of what names nothing."""
STRANGE = 3
"""Words foreign to a shop that make nonsense of a report or a remark, whatever else it says."""
SHARE = 4
"""One in so many words of a strange remark is foreign."""


def content(tokens: Sequence[Token]) -> list[str]:
    """List the stems of the words that mean something by themselves."""
    return [one.stem for one in tokens if not one.means and one.stem.isalpha() and one.stem not in FUNCTION]


def repeats(tokens: Sequence[Token]) -> bool:
    """Tell whether words come again and again: "the list lists the list", "best best", "the out that sold is sold
    out"."""
    if any(one.stem == other.stem and _is_word(one) for one, other in pairwise(tokens)):
        return True
    counts = Counter(content(tokens))
    total = counts.total()
    often = max(counts.values(), default=0)
    return (often >= OFTEN and 2 * often > total) or (total > OFTEN and min(counts.values()) > 1)


def _is_word(token: Token) -> bool:
    return not token.means and token.stem.isalpha() and token.stem not in FUNCTION | REPEATED


def strange(foreign: int, words: int, says_something: bool) -> bool:
    """Tell whether so many foreign words among all those of a remark make it one that no shop makes."""
    enough = foreign >= (STRANGE if says_something else FOREIGN)
    return enough and SHARE * foreign >= words
