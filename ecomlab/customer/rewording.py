"""The check of a rewording: it must say exactly what the template says, to the reader that reference players have, and
hold no number, name, value or word of weight beyond it."""

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from ecomlab.catalog.lexicon import Lexicon
from ecomlab.customer.fillers import (
    ADDABLE,
    FILLERS,
    WORD,
    bound,
    full,
    is_courtesy,
    plain_quotes,
    telling,
    without_courtesies,
    words_of,
)
from ecomlab.customer.nlu import is_complete, plain, read, understand
from ecomlab.customer.noise import SLANG
from ecomlab.customer.reading.words import stem
from ecomlab.customer.templates import SENTENCE_BREAK, Phrases
from ecomlab.other_words import WORDS
from ecomlab.wishes import ELSE

LONGER, MARGIN = 2, 120
"""A rewording has at most `LONGER` times the characters of the template, and `MARGIN` more."""
_PLAIN = re.compile(r"""[A-Za-z0-9 \n.,;:!?'"&$%/+-]""")
"""A character that any message may hold; brackets and markup are none of them."""
_WRITTEN = re.compile(r"[A-Za-z0-9]+")
_TURNED = re.compile(
    r"(?<!could )(?<!can )(?<!would )(?<!will )(?<!may )(?<!might )(?<!should )(?<!do )(?<!did )(?<!are )"
    r"\byou (?:are|were|want|need|would|will|have|had|should|must|may|might|like|love|prefer|wish|hope|get|got|do)\b"
)
"""What somebody says of the other: "You're looking for a kettle" for "I'm looking for a kettle"."""
_PLEASE = re.compile(r",? please(?=[.!](?:\s|$))")
"""The end of a sentence that says "that one" in some forms: "I'd like the Tea Kettle, please."."""
_UNREADABLE = (ValueError, KeyError, IndexError)
"""What the reader raises for values that no template writes."""
_NUMBERS = WORDS - {"a", "and", "one"}
"""Words of numbers and units; "one" may stand for a thing."""


class Refusal(NamedTuple):
    """Why a rewording was refused, in words that a record keeps ("adds a number"), and what is wrong."""

    reason: str
    detail: str = ""


@dataclass(frozen=True)
class Check:
    """Checks rewordings for one kind of customer."""

    phrases: Phrases
    lexicon: Lexicon
    reserved: Collection[str] = ()
    """Sentences that have a meaning of their own: those with which the subtasks of a journey begin."""

    def refusal(
        self, rewrite: object, template: str, opening: bool = False, verbatim: str = ""
    ) -> Refusal | None:
        """Find out why `rewrite`, as `tidy` returns it, cannot stand for `template`; None where it can. The `verbatim`
        text must be in it as it is, if it is in the template."""
        if not isinstance(rewrite, str):
            return Refusal("not text", type(rewrite).__name__)
        if not rewrite:
            return Refusal("empty")
        if len(rewrite) > LONGER * len(template) + MARGIN:
            return Refusal("too long", f"{len(rewrite)} characters")
        if strange := sorted({c for c in rewrite if not _PLAIN.match(c)} - set(template)):
            return Refusal("characters", " ".join(map(repr, strange[:5])))
        if began := [text for text in self.reserved if text in rewrite and text not in template]:
            return Refusal("another subtask", began[0])
        try:
            words = self._of_words(rewrite, template, opening, verbatim)
        except _UNREADABLE as error:
            return Refusal("read otherwise", f"it cannot be read: {error}")
        return words or self.misread(rewrite, template, opening)

    def _of_words(self, rewrite: str, template: str, opening: bool, verbatim: str) -> Refusal | None:
        given, said = self._free(template, opening), self._free(rewrite, opening)
        known = {*words_of(template), *words_of(plain(template, self.phrases, self.lexicon, opening))}
        # Names as they are read, whatever noise did to them.
        meant = understand(template, self.phrases, self.lexicon, opening)
        known |= {*WORD.findall(" ".join(meant).lower())}
        stems, own = {stem(word) for word in known}, self.lexicon.parts
        for word in WORD.findall(without_courtesies(" . ".join(said))):
            fixed = word in own or word in _NUMBERS or word in SLANG or any(map(str.isdigit, word))
            if word in known or stem(word) in ADDABLE or (not fixed and stem(word) in stems):
                continue
            named = "number" if word in _NUMBERS or any(map(str.isdigit, word)) else "name"
            return Refusal(f"adds a {named}" if fixed and word not in SLANG else "adds words", word)
        before, after = " ".join(given), " ".join(said)
        called, there = self.lexicon.spoken, set(words_of(rewrite))
        lost = sorted(w for w in set(words_of(before)) - there if w in called and stem(w) not in FILLERS)
        types = (name for kind in self.lexicon.types.values() for name in (kind.name, kind.plural))
        lost = lost or [name for name in types if name in before and name not in rewrite]
        lost += [verbatim] if verbatim in template and verbatim.lower() not in rewrite.lower() else []
        lost += [text for text in ELSE.values() if text in template and text not in rewrite]
        if lost:
            return Refusal("drops words", ", ".join(lost))
        for reason, counted in (("changes a number", _numbers), ("changes a word that decides", bound)):
            if differ := _difference(counted(before), counted(after)):
                return Refusal(reason, differ)
        turned = _TURNED.search(full(after))
        if turned and turned.group() not in full(template):
            return Refusal("turns the roles", turned.group())
        whole = [words_of(sentence) for sentence in SENTENCE_BREAK.split(template)]
        for sentence in said:
            if not telling(sentence) and words_of(sentence) not in whole:
                return Refusal("says something else", sentence)
        return None

    def misread(self, rewrite: str, template: str, opening: bool = False) -> Refusal | None:
        """Find out what a reader takes from `rewrite` that differs from what they take from `template`."""
        was = understand(template, self.phrases, self.lexicon, opening)
        try:
            now = understand(rewrite, self.phrases, self.lexicon, opening)
        except _UNREADABLE as error:
            return Refusal("read otherwise", f"it cannot be read: {error}")
        return None if now == was else Refusal("read otherwise", f"{'; '.join(now)} for {'; '.join(was)}")

    def _free(self, text: str, opening: bool) -> list[str]:
        """List the sentences of a text, but no courtesies, no forms without names, whose meaning is read, and no end of
        an opening."""
        return [
            said.text
            for said in read(text, self.phrases, self.lexicon, opening)
            if not (said.slot or (said.kind and not said.fields) or is_courtesy(said.text))
            and not (opening and is_complete(said.text))
        ]


def tidy(text: object, template: str, lexicon: Lexicon) -> object:
    """Tidy what an endpoint wrote: typographic marks, white space, quotation marks around all of it, names and
    values in another case than in the template, and a final "please" where the template has none."""
    if not isinstance(text, str):
        return text
    said = plain_quotes(text).strip()
    for word in dict.fromkeys(_WRITTEN.findall(template)):
        low = word.lower()
        if word != low and low in lexicon.parts and stem(low) not in FILLERS:
            said = re.sub(rf"(?<![\w'-]){re.escape(word)}(?![\w-])", word, said, flags=re.IGNORECASE)
    if len(said) > 1 and said[0] == said[-1] == '"' and said.count('"') == 2 and template[:1] != '"':
        said = said[1:-1].strip()
    lines = [" ".join(line.split()) for line in said.splitlines()]
    said = ("\n" if "\n" in template else " ").join(line for line in lines if line)
    said = re.sub(r" +([.,!?;])", r"\1", said)
    return said if _PLEASE.search(template) else _PLEASE.sub("", said)


def _numbers(text: str) -> Counter[str]:
    """Count the numbers in digits."""
    return Counter(word for word in words_of(text) if any(map(str.isdigit, word)))


def _difference(was: Counter[str], now: Counter[str]) -> str:
    """Word which of the words that decide were dropped and added; "" where none was."""
    dropped, added = sorted((was - now).elements()), sorted((now - was).elements())
    return " and ".join(
        f"{what} {', '.join(some)}" for what, some in (("drops", dropped), ("adds", added)) if some
    )
