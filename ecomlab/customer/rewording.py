"""The check of a rewording: it must say exactly what the template says, to the reader that reference players have, and
hold no number, name, value or word of weight beyond it."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from functools import lru_cache
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
from ecomlab.customer.nlu import is_complete, plain, understand
from ecomlab.customer.noise import SLANG
from ecomlab.customer.reading.words import stem
from ecomlab.customer.templates import SENTENCE_BREAK, Phrases, common_file
from ecomlab.other_words import WORDS

LONGER, MARGIN = 2, 120
"""A rewording has at most `LONGER` times the characters of the template, and `MARGIN` more."""
_PLAIN = frozenset(" \n.,;:!?'\"-&$%/+")
"""Characters that any message may hold beside letters and digits of ASCII; brackets and markup are none of them."""
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


class Check:
    """Checks rewordings for one kind of customer. `reserved` are sentences that have a meaning of their own: those with
    which the subtasks of a journey begin."""

    def __init__(self, phrases: Phrases, lexicon: Lexicon, reserved: Collection[str] = ()) -> None:
        self.phrases = phrases
        self.lexicon = lexicon
        self.reserved = reserved

    def refusal(
        self, rewrite: object, template: str, opening: bool = False, verbatim: Sequence[str] = ()
    ) -> Refusal | None:
        """Find out why `rewrite`, as `tidy` returns it, cannot stand for `template`; None where it can. `verbatim`
        texts of the template must be in it as they are."""
        if not isinstance(rewrite, str):
            return Refusal("not text", type(rewrite).__name__)
        if not rewrite:
            return Refusal("empty")
        if len(rewrite) > LONGER * len(template) + MARGIN:
            return Refusal("too long", f"{len(rewrite)} characters")
        if strange := sorted({c for c in rewrite if not _is_plain(c)} - set(template)):
            return Refusal("characters", " ".join(map(repr, strange[:5])))
        if began := [text for text in self.reserved if text in rewrite and text not in template]:
            return Refusal("another subtask", began[0])
        try:
            words = self._of_words(rewrite, template, opening, verbatim)
        except _UNREADABLE as error:
            return Refusal("read otherwise", f"it cannot be read: {error}")
        return words or self.misread(rewrite, template, opening)

    def _of_words(
        self, rewrite: str, template: str, opening: bool, verbatim: Sequence[str]
    ) -> Refusal | None:
        given, said = self._free(template, opening), self._free(rewrite, opening)
        known = {*words_of(template), *words_of(plain(template, self.phrases, self.lexicon, opening))}
        known |= self._read_names(template, opening)
        stems, own = {stem(word) for word in known}, _names(self.lexicon)
        for word in WORD.findall(without_courtesies(" . ".join(said))):
            fixed = word in own or word in _NUMBERS or word in SLANG or any(map(str.isdigit, word))
            if word in known or stem(word) in ADDABLE or (not fixed and stem(word) in stems):
                continue
            named = "number" if word in _NUMBERS or any(map(str.isdigit, word)) else "name"
            return Refusal(f"adds a {named}" if fixed and word not in SLANG else "adds words", word)
        before, after = " ".join(given), " ".join(said)
        called, there = _called(self.lexicon), set(words_of(rewrite))
        lost = sorted(w for w in set(words_of(before)) & called - there if stem(w) not in FILLERS)
        lost += [text for text in self._names(before) if text not in rewrite]
        lost += [text for text in verbatim if text in template and text.lower() not in rewrite.lower()]
        if lost:
            return Refusal("drops words", ", ".join(lost))
        if differ := _difference(_numbers(before), _numbers(after)):
            return Refusal("changes a number", differ)
        if differ := _difference(bound(before), bound(after)):
            return Refusal("changes a word that decides", differ)
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
        return None if now == was else Refusal("read otherwise", f"{now} for {was}")

    def _free(self, text: str, opening: bool) -> list[str]:
        """List the sentences of a text that are neither courtesies nor forms without names: whatever is said by such a
        form is known by its reading."""
        phrases, found, at = self.phrases, list[str](), 0
        text = plain(text, phrases, self.lexicon, opening)
        while at < len(text):
            end = SENTENCE_BREAK.search(text, at)
            stop = end.start() if end else len(text)
            act = None if opening else phrases.recognised(text, at)
            ends = [told for slot in phrases.slots.values() if (told := slot.end(text, at))]
            if act and not act[1].groupdict():
                ends.append(act[1].end())
            if opening and self._is_end(text[at:stop]):
                ends.append(stop)
            if ends:
                stop = max(ends)
            elif act and not is_courtesy(act[1].group()):
                stop = act[1].end()
                found.append(text[at:stop])
            elif not is_courtesy(text[at:stop]):
                found.append(text[at:stop])
            at = max(stop, at + 1)
        return found

    def _is_end(self, sentence: str) -> bool:
        """Tell whether a sentence of an opening only greets, thanks, or says that this is all."""
        said = sentence.strip()
        return said in self.phrases.closings or said in common_file().complete or is_complete(said)

    def _names(self, text: str) -> list[str]:
        """List the names of product types in a text, as they are written there."""
        return [match.group() for match in _types(self.lexicon).finditer(text)]

    def _read_names(self, template: str, opening: bool) -> set[str]:
        """Collect the words of the names that are read from a template, whatever noise did to them."""
        read = understand(template, self.phrases, self.lexicon, opening)
        return {word for _, kind, slots in read.mentions for word in WORD.findall(f"{kind} {slots}".lower())}


def tidy(text: object, template: str, lexicon: Lexicon) -> object:
    """Tidy what an endpoint wrote: typographic marks, white space, quotation marks around all of it, names and
    values in another case than in the template, and a final "please" where the template has none."""
    if not isinstance(text, str):
        return text
    said = plain_quotes(text).strip()
    for word in dict.fromkeys(_WRITTEN.findall(template)):
        low = word.lower()
        if word != low and low in _names(lexicon) and stem(low) not in FILLERS:
            said = re.sub(rf"(?<![\w-]){re.escape(word)}(?![\w-])", word, said, flags=re.IGNORECASE)
    if len(said) > 1 and said[0] == said[-1] == '"' and said.count('"') == 2 and template[:1] != '"':
        said = said[1:-1].strip()
    lines = [" ".join(line.split()) for line in said.splitlines()]
    said = ("\n" if "\n" in template else " ").join(line for line in lines if line)
    said = re.sub(r" +([.,!?;])", r"\1", said)
    return said if _PLEASE.search(template) else _PLEASE.sub("", said)


def _is_plain(character: str) -> bool:
    return character in _PLAIN or (character.isascii() and character.isalnum())


@lru_cache(maxsize=64)
def _names(lexicon: Lexicon) -> frozenset[str]:
    """Words of the names and values of a shop, as `words_of` splits them."""
    return frozenset(part for word in lexicon.words for part in WORD.findall(word))


@lru_cache(maxsize=64)
def _types(lexicon: Lexicon) -> re.Pattern[str]:
    """Pattern of the name of a type, one or several of it."""
    names = {name for kind in lexicon.types.values() for name in (kind.name, kind.plural)}
    alternatives = "|".join(map(re.escape, sorted(names, key=lambda name: (-len(name), name))))
    return re.compile(rf"(?<![\w-])(?:{alternatives})(?![\w-])")


def _numbers(text: str) -> Counter[str]:
    """Count the numbers in digits."""
    return Counter(word for word in words_of(text) if any(map(str.isdigit, word)))


@lru_cache(maxsize=64)
def _called(lexicon: Lexicon) -> frozenset[str]:
    """Words of the names of types, brands and features."""
    return frozenset(
        part for names in lexicon.names.values() for name in names for part in WORD.findall(name)
    )


def _difference(was: Counter[str], now: Counter[str]) -> str:
    """Word which of the words that decide were dropped and added; "" where none was."""
    dropped, added = sorted((was - now).elements()), sorted((now - was).elements())
    return " and ".join(
        f"{what} {', '.join(some)}" for what, some in (("drops", dropped), ("adds", added)) if some
    )
