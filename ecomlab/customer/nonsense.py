"""Signs that words are no sentence, or none of a shop: `SentenceReader` asks back what they say."""

from collections import Counter
from collections.abc import Container, Sequence
from itertools import pairwise

from ecomlab.customer.clause_kinds import ASK, STATEMENT
from ecomlab.customer.clauses import Clause
from ecomlab.customer.naming import Naming
from ecomlab.customer.phrasing import ELSEWHERE
from ecomlab.customer.word_classes import FUNCTION, REPEATED
from ecomlab.customer.words import DATE, DAYS, ITEM, MARKS, MONEY, STARS, VALUE, Token

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
    if any(one.word == other.word and _is_word(one) for one, other in pairwise(tokens)):
        return True
    counts = Counter(content(tokens))
    total = counts.total()
    often = max(counts.values(), default=0)
    chooses = any(one.stem == "or" for one in tokens)  # "Price before rating, or rating before price?"
    again = total > OFTEN and not chooses and min(counts.values()) > 1
    return again or (often >= OFTEN and 2 * often > total)


def _is_word(token: Token) -> bool:
    return not token.means and token.stem.isalpha() and token.stem not in FUNCTION | REPEATED


def strange(foreign: int, words: int, says_something: bool) -> bool:
    """Tell whether so many foreign words among all those of a remark make it one that no shop makes."""
    enough = foreign >= (STRANGE if says_something else FOREIGN)
    return enough and SHARE * foreign >= words


_REPORTS = frozenset({"says:done", "says:unavailable", "says:agree"})
"""What a remark of a shop does."""


class Judging(Naming):
    """Tells what in a sentence nobody in a shop says."""

    def _is_gibberish(self) -> bool:
        """Tell whether the sentence says words again and again, or holds no word of a shop but names of items."""
        others = [token for token in self.tokens if token.stem != ITEM]
        if repeats(self.tokens):
            return True
        unknown = self._count_foreign(others)
        if (
            unknown >= STRANGE
            and 2 * unknown >= len(content(others))
            and self._count_foreign(others, self.vocabulary.shop) >= STRANGE
        ):
            return True  # another language
        foreign = all(not one.means and one.stem.isalpha() for one in others)
        return foreign and len(self.tokens) > 1 and unknown == len(others) > 0

    def _is_strange(self) -> bool:
        """Tell whether a sentence that asks nothing tells what nobody in a shop does: "The parcel ate a Tuesday."."""
        if {VALUE, MONEY, STARS, DAYS, DATE} & set(self.stems):
            return False
        said = self._finds(Clause(0, len(self.stems), STATEMENT))
        foreign = self._count_foreign(self.tokens, self.vocabulary.shop)
        known = self.vocabulary.is_familiar  # a word that is foreign is counted already
        foreign += sum(
            len(one.pattern.row) ** 2 if one.end - one.start > 1 else known(self.stems[one.start])
            for one in said
            if one.meaning == ELSEWHERE
        )
        reports = any(one.meaning in _REPORTS for one in said)
        return strange(foreign, len(content(self.tokens)), reports)

    def _is_nonsense(self, asking: Sequence[Clause], said: set[str]) -> bool:
        """Tell whether nobody in a shop asks this: it is of another topic, or in several words foreign to shops
        and none that names what is asked for."""
        if ELSEWHERE in said:
            return True
        if not self._is_sure(asking) and ITEM not in self.stems:
            return False
        if "says:which" in said and ITEM in self.stems and not any(map(self._leads, asking)):
            return False  # "Do you mean the Acme Tea Kettle?": a name that this customer may not know
        return self._foreign(asking) >= FOREIGN and "says:agree" not in said and not self._is_plain(asking)

    def _is_sure(self, some: Sequence[Clause]) -> bool:
        """Tell whether a sentence surely asks: what has no verb and no question mark may be a remark."""
        asking = [clause for clause in some if clause.kind == ASK]
        return self.sentence.mark == "?" or any(not one.guessed or self._leads(one) for one in asking)

    def _speaks(self) -> bool:
        """Tell whether the sentence begins with "I" or "we"."""
        return bool({"i", "we"} & set(self.stems[:2]))

    def _foreign(self, some: Sequence[Clause]) -> int:
        """Count the words of clauses that are foreign to shops."""
        return self._count_foreign(
            [token for clause in some for token in self.tokens[clause.start : clause.end]]
        )

    def _count_foreign(self, tokens: Sequence[Token], known: Container[str] = frozenset()) -> int:
        words = {token.stem for token in tokens if not token.means and token.stem.isalpha()}
        return sum(word not in known and not self.vocabulary.is_familiar(word) for word in words)

    def _is_plain(self, some: Sequence[Clause]) -> bool:
        """Tell whether clauses name a value, ask for more, or name a slot and a wish, or in more than one word."""
        found = [one for clause in some for one in self._finds(clause)]
        if any(one.meaning == "open:adds" for one in found) or (set(MARKS) - {ITEM}) & set(self.stems):
            return True
        slots = [one.pattern for one in found if self.vocabulary.slot_of(one.meaning)]
        wishes = any(one.meaning == "open:alone" for one in found)
        return any(one.strong for one in slots) and (wishes or len(slots) > 1 or slots[0].weight > 1)
