"""Natural language understanding of the customer's messages, as by a careful reader: the inverse of `nlg`.

A message is read sentence by sentence (`read`): an act and a slot are recognised by the forms of their sentences, or by
the form that says the same in other words. An item is recognised by the shop's names, its properties by how values are
written.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

from ecomlab.catalog import ProductType
from ecomlab.catalog.lexicon import Lexicon, windows
from ecomlab.customer import noise
from ecomlab.customer.fillers import (
    FILLERS,
    after_courtesy,
    contracted,
    is_courtesy,
    telling,
    trimmed,
    words_of,
)
from ecomlab.customer.reading.words import stem
from ecomlab.customer.replacements import REPLACEMENT, resolved
from ecomlab.customer.templates import SENTENCE_BREAK, Phrases
from ecomlab.customer.utterances import Form, frames_of
from ecomlab.other_words import SPELLED, is_number, read_number
from ecomlab.slots import DAYS, PRICE, SlotType
from ecomlab.values import FORMATS
from ecomlab.wishes import (
    AMOUNT,
    DELIVERY,
    NO_MORE,
    PACKS,
    SAME,
    SEEN_FIRST,
    AnyBut,
    Demand,
    Earlier,
    If,
    Of,
    OneOf,
    Packs,
    Taste,
    Visited,
    Wish,
    read_amount,
    read_delivery,
    steps_of,
    where_of,
)
from ecomlab.world.joint import GiveWay, Joint
from ecomlab.world.ranking import Worth
from ecomlab.world.substitutes import noun

_NUMBER = re.compile(r"(?<![\w.$])(\d+)(?![\w.]*\w)")
_ITEM_BREAK = re.compile(rf"(; |\n- ?|(?:,? and |, )(?=(?:an?|some|just one|(?:\d+|{SPELLED})(?: x)?) ))")
"""Separators between the items of a request: semicolons, lines, or commas and "and" before a word that counts."""
COURTESIES = frozenset(("thanks", "greet", "welcome", "no problem", "thanks for sympathy", "goodbye"))
"""Acts that say nothing beside anything else."""
_SPELLED_BEFORE = re.compile(
    rf"(?<![\w'-])({SPELLED})(?: x)? (?:(?!(?:an?|the|some|of|to) )[\w&'./+-]+ ){{0,4}}$", re.IGNORECASE
)
"""A number in words before the name of a type, with other names between them."""


_OF_TYPES = [FORMATS[name] for name in ("type", "a type", "types")]
CHAINED = re.compile(rf"for no more than (?P<money>{AMOUNT})|no later than (?P<day>{DELIVERY})")
"""Limits that stand on earlier jobs of a journey, after a product's name."""
_BRANDS = re.compile(r"(?P<no>not )?\bby (?P<brands>[^,;!?\n]+)")
"""Phrase of brands that will do, or will not."""
_EXCLAIMED = re.compile(r"!(?=\s|$)")
_NAME = re.compile(r"[A-Z][\w&'./-]*(?: [A-Z0-9&][\w&'./-]*)*")
"""A row of words that begin with capitals, as names of products do."""


@dataclass(frozen=True)
class Said:
    """A sentence or two that do one thing: the kind of act and what its fields hold, or the slot and its value; a
    sentence that no form fits has neither."""

    text: str
    kind: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    slot: str = ""
    value: Any = None
    space: str = ""
    """White space that follows."""

    @property
    def item(self) -> str:
        """The words in which the customer speaks of an item, or all where no form fits."""
        if not self.kind:
            return self.text
        about = ("number", "item", "wanted", "type", "plural", "details")
        return " ".join(self.fields[name] for name in about if name in self.fields)


@dataclass
class Mention:
    """An item as a message mentions it: the effect of the act on it, and the slots that were said."""

    effect: str
    """set, add, drop, replace, or anew: nothing that was said before still holds."""
    type: str = ""
    slots: dict[str, Any] = field(default_factory=dict)


def is_complete(message: str) -> bool:
    """Tell whether the customer says that this is all."""
    told = any(form.text in message for form in _complete())
    return told or any(map(_is_end, SENTENCE_BREAK.split(message)))


def _complete() -> tuple[Form, ...]:
    return frames_of("", False)["opening complete"]


def _is_end(sentence: str) -> bool:
    return _gist(sentence) in _ends()


@cache
def _ends() -> frozenset[tuple[str, ...]]:
    return frozenset(_gist(form.text) for form in _complete())


def _gist(sentence: str) -> tuple[str, ...]:
    """List what tells in a sentence, or else all its words."""
    return telling(sentence) or tuple(words_of(sentence))


@lru_cache(maxsize=1_000)
def read(message: str, phrases: Phrases, lexicon: Lexicon, opening: bool = False) -> tuple[Said, ...]:
    """Read a message sentence by sentence, once its noise is undone: slang is written out, and typos are corrected. Who
    asks again gets the same values: leave them as they are."""
    told = sentences(noise.plain(message, phrases.words, lexicon), phrases, opening)
    return tuple(replace(said, value=_named(said, phrases, lexicon)) if said.slot else said for said in told)


def _named(said: Said, phrases: Phrases, lexicon: Lexicon) -> Any:
    """Name types and values in what a slot's sentence says as the shop does."""
    if isinstance(said.value, If):
        return _bound(said.value, lexicon)
    if isinstance(said.value, Visited):
        return replace(said.value, by=_described(said.value.words, phrases, lexicon))
    if isinstance(said.value, Joint | GiveWay):
        return replace(
            said.value, items=tuple(lexicon.exact("type", name) or name for name in said.value.items)
        )
    if isinstance(said.value, Worth):
        return replace(said.value, type=lexicon.exact("type", said.value.type or "") or said.value.type)
    if phrases.slots[said.slot].format is REPLACEMENT:
        return resolved(said.value, lexicon)
    if phrases.slots[said.slot].format not in _OF_TYPES:
        return said.value
    if isinstance(said.value, list):
        return [lexicon.exact("type", name) or name for name in said.value]
    return lexicon.exact("type", said.value) or said.value


def _bound(wish: If, lexicon: Lexicon) -> If:
    """Find the type and the values that the words of a conditional wish name."""
    wish = replace(wish, type=lexicon.exact("type", wish.type) or wish.type)
    found = [next(iter(lexicon.values(wish.type, words)), None) for words in wish.words]
    slot, first, _ = found[0] or ("", "", None)
    other = found[1][1] if len(found) > 1 and found[1] else None
    return replace(wish, slot=slot, first=first, other=other)


def plain(message: str, phrases: Phrases, lexicon: Lexicon, opening: bool = False) -> str:
    """Undo the noise of a message, and put what is said in other words than the forms' into the form that says the
    same."""
    return "".join(said.text + said.space for said in read(message, phrases, lexicon, opening))


def sentences(text: str, phrases: Phrases, opening: bool = False) -> Iterator[Said]:
    """Read a text without noise. A sentence that no form fits is put into the form that says the same: fillers,
    courtesies, contractions and the order of words aside. One that may say two things stays as it is; so do an
    opening's, but for those of slots."""
    text = text.strip()
    at, calm = 0, _EXCLAIMED.sub(".", text)  # as long as the text
    while at < len(text):
        found = SENTENCE_BREAK.search(text, at)
        end = found.start() if found else len(text)
        starts = [(text, at)]
        if not is_courtesy(text[at:end]):
            starts += [(calm, at), (calm, after_courtesy(calm, at))]
        start, said = at, None
        for some, place in starts:
            if (known := _known(some, place, phrases, opening)) and (not said or known.kind != said.kind):
                start, said = place, known
                if not after_courtesy(known.fields.get("items") or "", 0):
                    break  # else nobody asks for "Hello, quickly"
        if said:
            end = start + len(said.text)
        else:
            said = Said(text[at:end])
            if "\n" not in said.text:  # the lines of a list are no sentence
                said = _in_other_words(said.text, phrases, opening) or said
        at = len(text) - len(text[end:].lstrip())
        yield replace(said, space=text[end:at])


def _known(text: str, at: int, phrases: Phrases, opening: bool) -> Said | None:
    """Read what a form says at a place of a text; None where no form fits."""
    if slot := _slot(text, at, phrases):
        return slot
    led = phrases.lead_in.match(text, at)
    if led and _slot(text, led.end() + 1, phrases):
        return Said(led.group())
    if act := phrases.recognised(text, at, opening):
        return Said(act[1].group(), act[0], act[1].groupdict())
    return Said(led.group()) if led else None


def _slot(text: str, at: int, phrases: Phrases) -> Said | None:
    """Read the longest sentence that tells a slot at a place of a text."""
    told = ((match, name) for name, slot in phrases.slots.items() if (match := slot.match(text, at)))
    (end, value), name = max(told, key=lambda found: found[0][0], default=((at, None), ""))
    return Said(text[at:end], slot=name, value=value) if name else None


def _in_other_words(sentence: str, phrases: Phrases, opening: bool) -> Said | None:
    """Read a sentence by the forms that say the same; None where there is none, or they have several meanings."""
    said = trimmed(sentence)
    for texts in ({said, contracted(said)}, *_alike(said, phrases)) if said else ():
        found: dict[tuple[str, str, str], Said] = {}
        for text in sorted(texts):
            known = _known(text, 0, phrases, opening)
            if known and known.text == text:
                effect = phrases.effects.get(known.kind, known.kind)
                found.setdefault((effect, known.slot, repr(known.value)), known)
        if found:
            return found.popitem()[1] if len(found) == 1 else None
    return None


def _alike(sentence: str, phrases: Phrases) -> Iterator[set[str]]:
    """Yield the texts of forms that say all of a sentence, and then those whose gap holds a name or value of it."""
    yield {text for text in phrases.by_telling.get(("", telling(sentence)), ()) if "{}" not in text}
    gaps = [("", *span) for span in _names(sentence)]
    for name, slot in phrases.slots.items():
        values = slot.delimited.finditer(sentence) if slot.delimited else ()
        gaps += [(name, *value.span()) for value in values]
    yield {
        form.replace("{}", sentence[start:end])
        for name, start, end in gaps
        for form in phrases.by_telling.get((name, telling(f"{sentence[:start]} {sentence[end:]}")), ())
        if "{}" in form
    }


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


def read_slots(
    message: str, phrases: Phrases, lexicon: Lexicon, opening: bool = False
) -> list[tuple[str, Any]]:
    """Read (name, value) of the slots that a message tells by sentences of their own, in order."""
    return [(said.slot, said.value) for said in read(message, phrases, lexicon, opening) if said.slot]


def read_opening(message: str, phrases: Phrases, lexicon: Lexicon) -> list[Mention]:
    """Read the items that a request asks for, in order."""
    described = [
        read_item(segment, lexicon, phrases)
        for said in read(message, phrases, lexicon, opening=True)
        if not (said.slot or _is_end(said.text))  # "That covers everything." is about no Cover.
        for segment in _segments(said.fields.get("items", "" if said.kind else said.text), lexicon)
    ]
    return [Mention("add", slots.pop("type"), slots) for slots in described if "type" in slots]


def _segments(text: str, lexicon: Lexicon) -> list[str]:
    """Split what is asked for into its items: where a separator stands, and the name of a type follows before any
    detail: not "two and a half liters, with ...". What stands before a list is no item."""
    parts, made = ["", *_ITEM_BREAK.split(text)], list[str]()
    for separator, part in zip(parts[::2], parts[1::2], strict=True):
        words = [match.group() for match in lexicon.token.finditer(re.split(",| with ", part)[0])]
        named = any(
            lexicon.exact("type", " ".join(words[i:j])) for i, j in windows(words, lexicon.type_words)
        )
        if named or not made:
            made.append(part)
        else:
            made[-1] += separator + part
    return made[1:] if made[1:] and "\n" in text else made


def read_acts(message: str, phrases: Phrases, lexicon: Lexicon) -> list[Said]:
    """Read what a message does beside telling slots, act by act; what no form fits is read sentence by sentence."""
    return [said for said in read(message, phrases, lexicon) if not said.slot]


def read_message(message: str, phrases: Phrases, lexicon: Lexicon) -> list[Mention]:
    """Read the changes that a later message makes, act by act."""
    found = []
    for said in read_acts(message, phrases, lexicon):
        effect = phrases.effects.get(said.kind, "" if said.kind else "set")
        slots = read_item(said.item, lexicon, phrases) if effect else {}
        if slots or effect == "anew":
            found.append(Mention(effect, slots.pop("type", ""), slots))
    return found


def says(kind: str, message: str, phrases: Phrases, lexicon: Lexicon | None = None) -> bool:
    """Tell whether a message holds a sentence of an act; with a lexicon, whatever noise did to it."""
    told = read(message, phrases, lexicon) if lexicon else sentences(message, phrases)
    return any(said.kind == kind for said in told)


def understand(message: str, phrases: Phrases, lexicon: Lexicon, opening: bool = False) -> list[str]:
    """Read everything that a message says, as reference players do: acts by their effect on the goal or else their
    kind, items in order, slots with sentences of their own. Two messages that are equal in it say the same."""
    slots = read_slots(message, phrases, lexicon, opening)
    sought: list[str] = []
    if opening:
        mentions, kinds, complete = read_opening(message, phrases, lexicon), set[str](), is_complete(message)
    else:
        mentions = read_message(message, phrases, lexicon)
        acts = read_acts(message, phrases, lexicon)
        kinds = {phrases.effects.get(act.kind, act.kind) for act in acts}
        sought = [f"where is {act.fields['seen']}" for act in acts if act.kind == "ask where"]
        kinds -= {"", "set"}
        if mentions or slots or kinds - COURTESIES:
            kinds -= COURTESIES
        complete = says("nothing", message, phrases, lexicon)
    return [
        *sorted(kinds),
        *sought,
        *(f"{one.effect} {one.type} {sorted(one.slots.items())}" for one in mentions),
        *sorted(f"{name} = {value!r}" for name, value in slots),
        *(["complete"] if complete else []),
    ]


@cache
def _pattern(limit: SlotType) -> re.Pattern[str]:
    """Pattern of a limit's values."""
    assert limit.format is not None
    return re.compile(rf"(?<!\w)(?:{limit.format.pattern})(?!\w)", re.IGNORECASE)


def read_item(text: str, lexicon: Lexicon, phrases: Phrases) -> dict[str, Any]:
    """Read the slots of a noun phrase and what surrounds it; none when it names no product type. The words of the
    phrases are not taken for misspelt names."""
    plain = phrases.words
    same = list(SAME.finditer(text)) if " same " in text else []
    chained = list(CHAINED.finditer(text))
    unseen = list(SEEN_FIRST.finditer(text))
    for found in (*same, *chained, *unseen):
        text = text[: found.start()] + " " * len(found.group()) + text[found.end() :]
    if packs := PACKS.search(text):
        text = text[: packs.start()] + " " * len(packs.group()) + text[packs.end() :]
    words = [(m.group(), m.span()) for m in lexicon.token.finditer(text)]
    kind = _name(words, lexicon, "type", plain, longest=lexicon.type_words)
    if kind is None:
        return {}
    name, start, end = kind
    slots: dict[str, Any] = {"type": name}
    taken = [(words[start][1][0], words[end - 1][1][1])]
    pack, of, _ = lexicon.types[name].plural.lower().partition(" of ")
    wrapping = (pack, name.lower().partition(" of ")[0], "of") if of else ()
    rest = [word for word in words[:start] if word[0].lower() not in wrapping] + words[end:]
    for found in same:
        slots |= _read_same(found, lexicon.types[name], lexicon, phrases)
    for found in _BRANDS.finditer(text):
        brands = [lexicon.exact("brand", one) for one in found["brands"].removesuffix(".").split(" or ")]
        if all(brands) and (found["no"] or len(brands) > 1):
            slots["brand"] = (AnyBut if found["no"] else OneOf)(tuple(map(str, brands)))
            taken.append(found.span())
    slots |= dict(map(read_chained, chained)) | {f"attr:{found['noun']}": Taste() for found in unseen}
    before: tuple[str, tuple[int, int]] = ("", (0, 0))
    for slot, value, span in lexicon.values(name, text):
        if not _overlaps(span, taken):
            alternative = before[0] == slot and text[before[1][1] : span[0]] == " or "
            denied = not alternative and _is_denied(lexicon.types[name], slot, text[: span[0]])
            first = AnyBut((value,)) if denied else value
            slots[slot] = _either(slots[slot], value) if alternative else first
            taken.append(span)
            before = (slot, span)
    rest = [word for word in rest if not _overlaps(word[1], taken[1:])]
    # In a real catalog a word that is a name is no misspelling of another name, nor is one of a bound.
    if lexicon.is_real:
        bounds = [match.span() for limit in phrases.limits for match in _pattern(limit).finditer(text)]
        rest = [word for word in rest if not _overlaps(word[1], bounds)]
        for wanted, names in lexicon.within(name).items():
            at = next((i for i, word in enumerate(rest) if _is_name(word[0], names)), None)
            if at is not None:
                word, span = rest.pop(at)
                slots[wanted] = names[word.lower()]
                taken.append(span)  # its digits are no quantity
    for wanted in ("brand", "feature"):
        of = name if lexicon.is_real else ""
        hit = _name(rest, lexicon, wanted, plain, longest=1, of=of) if wanted not in slots else None
        if hit is not None:
            slots[wanted] = hit[0]
            rest = rest[: hit[1]] + rest[hit[2] :]
    for limit in phrases.limits:
        match = _pattern(limit).search(text)
        if match and limit.format and not _overlaps(match.span(), taken):
            slots[limit.name] = limit.format.read(match.group())
            taken.append(match.span())
    counts = [_SPELLED_BEFORE.search(text[: taken[0][0]]), *_NUMBER.finditer(text)]
    number = next((match for match in counts if match and not _overlaps(match.span(1), taken)), None)
    if packs:
        slots["quantity"] = Packs(int(packs[1]))
    elif number:
        slots["quantity"] = read_number(number[1])
    return slots


def read_chained(match: re.Match[str]) -> tuple[str, Earlier]:
    """Read a limit that stands on earlier jobs: its slot, and the wish."""
    if match["money"]:
        return PRICE.name, read_amount(match["money"])
    return DAYS.name, read_delivery(match["day"])


def _read_same(match: re.Match[str], kind: ProductType, lexicon: Lexicon, phrases: Phrases) -> dict[str, Any]:
    """Read the phrase of a reference: the slot that is to be the same, and the thing."""
    named = {noun(one.name): f"attr:{one.name}" for one in kind.attributes} | {"brand": "brand"}
    by = _described(match["thing"], phrases, lexicon)
    if match["noun"] not in named or not by:
        return {}
    return {named[match["noun"]]: Of(where_of(match["tail"]), by, steps_of(match))}


def _described(text: str, phrases: Phrases, lexicon: Lexicon) -> tuple[tuple[str, Any], ...]:
    """Read the slots that describe a thing by its noun phrase, its type first; none where it names no type."""
    by = read_item(text, lexicon, phrases)
    names = ("type", "brand", "feature", *sorted(name for name in by if name.startswith("attr:")))
    return tuple((name, by[name]) for name in names if name in by) if "type" in by else ()


def demand_on(kind: str, said: Demand, phrases: Phrases, lexicon: Lexicon) -> Demand:
    """Find what a demand's words say of a product of this type: the slot, and its value."""
    if match := NO_MORE.fullmatch(said.words):
        return replace(said, slot=PRICE.name, value=Of("visits", _described(match[1], phrases, lexicon)))
    brands = [lexicon.exact("brand", name) for name in said.words.removeprefix("by ").split(" or ")]
    if said.words.startswith("by ") and all(brands):
        return replace(said, slot="brand", value=OneOf(tuple(map(str, brands))))
    read = read_item(f"{kind} {said.words}", lexicon, phrases)
    slot, value = next(((n, v) for n, v in read.items() if n == "brand" or n.startswith("attr:")), ("", None))
    return replace(said, slot=slot, value=OneOf((value,)) if isinstance(value, str) else value)


def bound(kind: str, value: Any, phrases: Phrases, lexicon: Lexicon) -> Any:
    """Find what the words of a slot's value say of a product of this type."""
    if isinstance(value, Demand) and value.words and not value.slot:
        return demand_on(kind, value, phrases, lexicon)
    if isinstance(value, Worth) and value.bonuses:
        found = [demand_on(kind, Demand("", None, words), phrases, lexicon) for words in value.words]
        named = [(one.slot, getattr(one.value, "values", ("",))[0]) for one in found]
        bonuses = ((*what, cents) for what, (*_, cents) in zip(named, value.bonuses, strict=True))
        return replace(value, bonuses=tuple(bonuses))
    return value


def _is_denied(kind: ProductType, slot: str, before: str) -> bool:
    """Tell whether the words before a slot's value say that it is not wanted: "not in"."""
    if "not " not in before:
        return False
    attribute = next((one for one in kind.attributes if f"attr:{one.name}" == slot), kind.option)
    said = attribute.phrase.partition("{}")[0]
    return before.endswith((f"not {said}", f"not {said.removesuffix('a ')}an "))


def _either(before: Any, value: str) -> Wish:
    """Add a value to those before it: "in Red or Blue"."""
    if isinstance(before, AnyBut | OneOf):
        return replace(before, values=(*before.values, value))
    return OneOf((before, value))


def _is_name(word: str, names: Mapping[str, str]) -> bool:
    """Tell whether a word is one of these names; a number in words only where it is written as the name is."""
    name = names.get(word.lower())
    return name is not None and (name == word or not is_number(word.lower()))


def _overlaps(span: tuple[int, int], taken: list[tuple[int, int]]) -> bool:
    return any(span[0] < end and start < span[1] for start, end in taken)


def _name(
    words: list[tuple[str, tuple[int, int]]],
    lexicon: Lexicon,
    kind: str,
    plain: Collection[str],
    longest: int,
    of: str = "",
) -> tuple[str, int, int] | None:
    """Find the name of that kind among the words: an exact one first, else the nearest misspelling; only one `of` a
    type's products, if a type is given."""
    texts = [word for word, _ in words]
    best: tuple[float, str, int, int] | None = None
    spans = [(start, end) for start, end in windows(texts, longest) if _in_a_row(words[start:end])]
    for start, end in spans:
        exact = None if of else lexicon.exact(kind, " ".join(texts[start:end]))
        if exact is not None:
            return exact, start, end
    for start, end in spans:
        said = [word.lower() for word in texts[start:end]]
        if all(word in plain or word in lexicon.phrase_words or len(word) < 3 for word in said):
            continue
        near = lexicon.nearest(kind, " ".join(texts[start:end]), of)
        if near is not None and (best is None or near[1] > best[0]):
            best = (near[1], near[0], start, end)
    return None if best is None else best[1:]


def _in_a_row(words: list[tuple[str, tuple[int, int]]]) -> bool:
    """Tell whether single spaces separate the words: a name does not cross a full stop."""
    return all(before[1][1] + 1 == after[1][0] for before, after in pairwise(words))
