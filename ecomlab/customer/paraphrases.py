"""Sentences in other words than the forms': each is put into the form that says the same, so that a reader knows it."""

import re
from collections.abc import Iterator

from ecomlab.customer.fillers import FILLERS, after_courtesy, contracted, is_courtesy, telling, trimmed
from ecomlab.customer.reading.words import stem
from ecomlab.customer.templates import SENTENCE_BREAK, Phrases

_EXCLAIMED = re.compile(r"!(?=\s|$)")
_NAME = re.compile(r"[A-Z][\w&'./-]*(?: [A-Z0-9&][\w&'./-]*)*")
"""A row of words that begin with capitals, as names of products do."""


def straightened(text: str, phrases: Phrases, opening: bool = False) -> str:
    """Put every sentence that no form fits into the form that says the same: fillers, courtesies, contractions and the
    order of words aside. One that may say two things stays as it is; so do an opening's, but for those of slots."""
    made, at = "", 0
    calm = _EXCLAIMED.sub(".", text)  # as long as the text
    while at < len(text):
        if text[at].isspace():
            made, at = made + text[at], at + 1
            continue
        found = SENTENCE_BREAK.search(text, at)
        end = found.start() if found else len(text)
        starts = [(text, at)]
        if not is_courtesy(text[at:end]):
            starts += [(calm, at), (calm, after_courtesy(calm, at))]
        ends = ((some, start, _known(some, start, phrases, opening)) for some, start in starts)
        known = next((one for one in ends if one[2]), None)
        if known:
            some, start, at = known
            made += some[start:at]
            continue
        made, at = made + _form_of(text[at:end], phrases, opening), end
    return made


def _known(text: str, at: int, phrases: Phrases, opening: bool) -> int:
    """Find the end of the form that begins at a place of a text; 0 where none does."""
    found = None if opening else phrases.recognised(text, at)
    if found:
        return found[1].end()
    led = phrases.lead_in.match(text, at)
    return max([led.end() if led else 0, *(slot.end(text, at) for slot in phrases.slots.values())])


def _form_of(sentence: str, phrases: Phrases, opening: bool) -> str:
    """Find the form that says what a sentence says; the sentence itself where there is none."""
    said = trimmed(sentence)
    for text in dict.fromkeys((said, contracted(said))):
        if text and text != sentence and _known(text, 0, phrases, opening) == len(text):
            return text
    found = set(_alike(said, phrases, opening)) if said else set()
    return min(text for _, text in found) if len({meaning for meaning, _ in found}) == 1 else sentence


def _alike(sentence: str, phrases: Phrases, opening: bool) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield (meaning, text) of the forms that say what a sentence says: those that say all of it, else those with a
    gap."""
    whole = False
    for meaning, text in phrases.sentences_by_telling.get(telling(sentence), ()):
        if len(meaning) > 1 or not opening:
            yield (meaning if len(meaning) > 1 else (phrases.effects.get(*meaning, *meaning),)), text
            whole = True
    if whole:
        return
    for start, end in _names(sentence) if not opening else ():
        named = phrases.named_by_telling.get(telling(f"{sentence[:start]} {sentence[end:]}"), ())
        for kind, form in named:
            yield (phrases.effects.get(kind, kind),), form.replace("{}", sentence[start:end])
    for name, template in phrases.slots.items():
        for value in template.delimited.finditer(sentence) if template.delimited else ():
            rest = telling(f"{sentence[: value.start()]} {sentence[value.end() :]}")
            around = phrases.forms_by_telling.get((name, rest))
            if around and (not opening or around in template.forms):
                yield (name, value.group()), around.replace("{}", value.group())


def _names(sentence: str) -> list[tuple[int, int]]:
    """Find the only name in a sentence, without the words before it that are none; nothing where there are several."""
    found = []
    for match in _NAME.finditer(sentence):
        start, end = match.start(), match.end()
        if start == 0:  # every sentence begins with a capital
            first, _, rest = match.group().partition(" ")
            if stem(first.lower()) in FILLERS:
                start = end - len(rest)
        if start < end and match.group() != "I":
            found.append((start, start + len(sentence[start:end].rstrip(".,"))))
    if len(found) > 1 and found[0][0] == 0 and " " not in sentence[: found[0][1]]:
        found = found[1:]  # "Skip the Tea Kettle."
    return found if len(found) == 1 else []
