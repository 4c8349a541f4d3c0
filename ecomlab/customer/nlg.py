"""Natural language generation: one form for each act, a noun phrase for each item, then noise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np

from ecomlab.catalog.lexicon import Lexicon
from ecomlab.customer.acts import Act
from ecomlab.customer.noise import Piece, noised
from ecomlab.customer.templates import Phrases
from ecomlab.customer.utterances import ANYBODY, Form, Manner
from ecomlab.other_words import in_letters
from ecomlab.seeding import pick, rng
from ecomlab.slots import PRICE, slot_type
from ecomlab.task import Goal
from ecomlab.values import in_speech, with_article
from ecomlab.wishes import (
    AnyBut,
    Earlier,
    Of,
    OneOf,
    Packs,
    Taste,
    Wish,
    at_most,
    delivery_words,
    of_phrase,
    or_list,
    packs_phrase,
    taste_phrase,
)  # fmt: skip
from ecomlab.world.substitutes import noun

IN_A_ROW = (", ", ", and ")
"""Separators of items in a sentence, and before the last of them."""
MOST_IN_A_SENTENCE = 8
"""Slots of items, types among them, that an opening tells in a sentence where there are several items."""
MOST_IN_A_ROW = 12
"""Slots of a list that is not in lines, at most."""
P_LIST = 0.4
"""Share of openings that are a list, where there are several items."""
P_GREETING, P_CURT_GREETING = 0.6, 0.2
"""Shares of openings with a greeting, and of those of customers who are terse or impatient."""
P_CLOSING = 0.6
"""Share of openings with a closing word, of those that leave something out."""
_NAY = ("no,", "nope,", "nah,", "it's fine,")
"""Beginnings of forms that answer a question whether there is more."""


@dataclass(eq=False)
class Speaker:
    """Words one customer's acts in one episode, in their manner; `key` and the number of messages so far name the
    randomness."""

    phrases: Phrases
    lexicon: Lexicon
    p_noise: float
    key: Sequence[Any]
    manner: Manner = ANYBODY
    said: int = 0
    """Messages so far."""

    def opening(
        self,
        goal: Goal,
        leads: str = "default",
        greet: bool = True,
        gaps: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        """Word the request: the items that `goal` states, in one of the phrases' `leads` and what goes on from it, then
        its other slots. With `greet` it may begin with a greeting; `gaps` are words for what frames name beside
        {items}."""
        random = self._begin("opening")
        told = [slot for slot in goal.slots.items() if slot[0] not in goal.withheld]
        said = [(self.phrases.slots[name], value) for (_, name), value in told if name in self.phrases.slots]
        said += [(self.phrases.slots[name], value) for name, value in goal.asks.items()]
        typed = dict.fromkeys(item for (item, name), _ in told if name == "type")
        items = [
            {name: value for (i, name), value in told if i == item and name not in self.phrases.slots}
            for item in typed
        ]
        for slots, place in zip(items, typed, strict=True):
            if (place, "quantity") in goal.withheld:  # "a kettle" would say that one will do
                slots["quantity"] = None
        sentences = self._request(items, leads, gaps)
        for slot, value in said:
            form = self._pick(slot.telling(value))
            sentences.append(_begun(slot.word(form.text, value)))
        if not goal.withheld:
            complete = self._pick(self.phrases.leads["complete"])
            sentences.append([Piece(complete.text, "fixed")])
        elif random.random() < P_CLOSING:
            sentences.append([Piece(self._pick(self.phrases.leads["closing"]).text)])
        curt = self.manner.registers & {"terse", "impatient"}
        if greet and random.random() < (P_CURT_GREETING if curt else P_GREETING):
            greeting = self._pick(self.phrases.leads["greeting"]).text
            if greeting.endswith(","):
                sentences[0] = _within(sentences[0])
            sentences.insert(0, [Piece(greeting)])
        text: list[Piece] = []
        for sentence in sentences:
            text += [*([] if not text or text[-1].text.endswith("\n") else [Piece(" ")]), *sentence]
        return _joined(self._noised(text, "opening")).strip()

    def _begin(self, message: int | str) -> np.random.Generator:
        """Begin a message, in which no form has been used yet."""
        self._random, self._used = rng("words", *self.key, message), set[str]()
        return self._random

    def _request(
        self, items: Sequence[Mapping[str, Any]], leads: str, gaps: Mapping[str, str]
    ) -> list[list[Piece]]:
        """Word what is asked for, as sentences: a list, or as many items a sentence as are not too many words."""
        random = self._random
        further, groups = self.phrases.leads.get("also", ()), _grouped(items)
        if len(items) > 1 and (random.random() < P_LIST or (len(groups) > 1 and not further)):
            form = self._pick(self.phrases.leads["list"])
            if sum(map(len, items)) > MOST_IN_A_ROW or random.random() < 0.5:
                form = replace(form, text=form.text.replace(" {items}.", "{items}\n"))
                joins = ("\n- ", "\n- ")
            else:
                joins = pick(random, (IN_A_ROW, ("; ", "; ")))
            return [_filled(form, gaps, self._row_of(items, joins, listed=True))]
        sentences: list[list[Piece]] = []
        for group in groups or [[]]:
            form = self._pick(further if sentences else self.phrases.leads[leads])
            sentences.append(_filled(form, gaps, self._row_of(group, IN_A_ROW)))
        return sentences

    def _row_of(
        self, items: Sequence[Mapping[str, Any]], joins: tuple[str, str], listed: bool = False
    ) -> list[Piece]:
        """Word a row of items. Where they are joined by commas, the articles tell where the next one begins."""
        join, last = joins
        article = "a" if joins == IN_A_ROW else ""
        worded = [self.item(item, self._random, article, listed) for item in items]
        if joins == IN_A_ROW and len(worded) == 2 and not any("," in piece.text for piece in worded[0]):
            last = " and "
        row = _row(worded, join, last)
        return [Piece(join, "fixed"), *row] if "\n" in join else row

    def say(self, acts: Sequence[Act]) -> str:
        """Word these acts, in order, as one message."""
        return " ".join(self.sentences(acts))

    def sentences(self, acts: Sequence[Act]) -> list[str]:
        """Word these acts, in order, for one message: a text for each."""
        self._begin(self.said)
        tells = any(one.slots for one in acts)
        sentences = [_begun(self._sentence(act, tells and act.kind == "nothing")) for act in acts]
        pieces, ends = [], []
        for act, sentence in zip(acts, sentences, strict=True):
            pieces += [Piece(piece.text, "fixed") for piece in sentence] if act.clean else sentence
            ends.append(len(pieces))
        noisy = self._noised(pieces, self.said)
        self.said += 1
        said = [_joined(noisy[start:end]) for start, end in pairwise((0, *ends))]
        return [" ".join(text.split()).replace(" .", ".").replace(" ,", ",") for text in said]

    def item(
        self, slots: Mapping[str, Any], random: np.random.Generator, article: str, listed: bool = False
    ) -> list[Piece]:
        """Word an item as a noun phrase: "3 tank tops by PixelVault in size XS"; `article` is a, the or "". On a list
        it may be "3 x tank top". A quantity of None is several, without saying how many: "some tank tops"."""
        kind, feature = slots["type"], self.lexicon.said(slots.get("feature", ""))
        brand = None if isinstance(slots.get("brand"), Wish) else slots.get("brand")
        quantity = None if isinstance(slots.get("quantity"), Wish) else slots.get("quantity")
        unsaid = "quantity" in slots and quantity is None
        times = listed and random.random() < 0.5 and not unsaid
        several = unsaid or (quantity is not None and quantity > 1)
        name = in_speech(self.lexicon.types[kind].plural if several and not times else kind)
        by = brand is not None and random.random() < 0.4
        before = [(feature, "feature"), ("" if by else brand, "brand")]
        if self.lexicon.is_real:  # "a Targus Urban Backpack", as its listing has it
            before.reverse()
        pack, of, held = name.rpartition(" of ")  # "a bag of Alder rice"
        named = [Piece(pack + of, "fixed")] if of else []
        for text, meant in before:
            named += [Piece(text, meant), Piece(" ", "fixed")] if text else []
        named.append(Piece(held, "type"))
        if by:
            named += [Piece(" by ", "fixed"), Piece(str(brand), "brand")]
        if quantity and several and not times:
            head = [_number(quantity), Piece(" ", "fixed")]
        else:
            a = with_article(named[0].text).split()[0] if article == "a" else article
            count = "some" if unsaid else f"{quantity} x" if several else "just one" if quantity else a
            head = [Piece(f"{count} ", "fixed")] if count else []
        others = {name: value for name, value in slots.items() if name not in ("brand", "feature")}
        others |= {"brand": slots["brand"]} if isinstance(slots.get("brand"), Wish) else {}
        details = self.details(others, kind, random, several)
        return [*head, *named, *([Piece(" ", "fixed"), *details] if details else [])]

    def details(
        self, slots: Mapping[str, Any], kind: str, random: np.random.Generator, several: bool = False
    ) -> list[Piece]:
        """Word slots as phrases after the noun, joined by commas: "in size XS, for $30 or less"; the price of `several`
        is "for $30 each or less"."""
        phrases: list[list[Piece]] = []
        limits_last = sorted(slots.items(), key=lambda slot: slot_type(slot[0]).is_limit)
        for name, value in limits_last:
            if name == "type" or (name == "quantity" and not isinstance(value, Packs)):
                continue
            if isinstance(value, Wish):
                phrases.append([Piece(wish_phrase(kind, name, value, self.lexicon), "fixed")])
            elif name == "brand":
                phrases.append([Piece("by ", "fixed"), Piece(str(value), "brand")])
            elif name == "feature":
                said = self.lexicon.said(value)
                phrases.append([Piece("the ", "fixed"), Piece(said, "feature"), Piece(" kind", "fixed")])
            elif (bound := slot_type(name).format) and slot_type(name).is_limit:
                of_each = f"{name} each" if several else name
                form = pick(random, self.phrases.bounds.get(of_each, self.phrases.bounds[name]))
                others = tuple(form.format(text) for text in bound.others(value))
                phrases.append([Piece(form.format(bound.write(value)), "fixed", others)])
            else:
                texts = (self.lexicon.said(value), *self.lexicon.in_other_words(kind, name, value))
                said, *otherwise = [self.lexicon.phrase(kind, name, text) for text in texts]
                if several:  # "headsets that works with laptops" is no English
                    said = said.replace("that works with ", "for use with ", 1)
                phrases.append([Piece(said, "fixed", tuple(otherwise))])
        return _row(phrases, ", ", ", ")

    def _noised(self, pieces: Sequence[Piece], about: int | str) -> Sequence[Piece]:
        if self.p_noise <= 0:
            return pieces
        random = rng("noise", *self.key, about)
        return noised(pieces, self.p_noise, self.phrases.words, self.lexicon, random)

    def _sentence(self, act: Act, tells: bool = False) -> list[Piece]:
        """Word an act by a form that no other act of the message has used; where these tell something, it is no
        answer: "Red, please. That's all.", not "No, that's all."."""
        templates = self.phrases.slots
        spoken = [(name, value) for name, value in act.slots.items() if name in templates]
        if spoken:
            said: list[Piece] = []
            others = {name: value for name, value in act.slots.items() if name not in templates}
            if others:
                said = _begun(self._sentence(replace(act, slots=others)))
            elif self.phrases.before.get(act.kind):
                said = [Piece(self._pick(self.phrases.before[act.kind]).text)]
            for name, value in spoken:
                forms = templates[name].telling(value, again=act.clean)
                sentence = templates[name].word(self._pick(forms).text, value)
                inside = bool(said) and said[-1].text.endswith(":")
                said += [Piece(" ")] if said else []
                said += _within(sentence) if inside else _begun(sentence)
            return said
        form = self._form(act, tells)
        plural = in_speech(self.lexicon.types[act.type].plural) if act.type else ""
        filled: dict[str, list[Piece]] = {
            "type": [Piece(plural if act.number > 1 else in_speech(act.type), "type")],
            "plural": [Piece(plural, "type")],
            "seen": [Piece(act.seen, "fixed")],
            "number": [_number(act.number)],
            "details": self.details(act.slots, act.type, self._random) if act.type else [],
        }
        for name, article in (("item", "a"), ("wanted", self.phrases.article)):
            if name in form.fields:
                filled[name] = self.item({"type": act.type, **act.slots}, self._random, article)
        pieces: list[Piece] = []
        for run, text in form.runs:
            if run != "field":
                pieces.append(Piece(text, "fixed" if run == "cue" else "free"))
            else:
                begins = pieces and pieces[-1].text.endswith((". ", "? ", "! "))
                pieces += _begun(filled[text]) if begins else filled[text]
        return pieces

    def _form(self, act: Act, tells: bool) -> Form:
        """Pick a form that has something to put into each of its fields."""
        forms = [form for form in self.phrases.acts[act.kind] if act.seen or "seen" not in form.fields]
        forms = forms or list(self.phrases.acts[act.kind])
        if "quantity" in act.slots:  # details leave it out, unless it must be worked out
            worked_out = isinstance(act.slots["quantity"], Packs)
            fields = {"item", "wanted", "details" if worked_out else "number"}
            forms = [form for form in forms if fields & form.fields] or forms
            forms = [form for form in forms if not worked_out or "number" not in form.fields] or forms
        if tells:
            forms = [form for form in forms if not form.lead.startswith(_NAY)] or forms
        return self._pick(forms)

    def _pick(self, forms: Sequence[Form]) -> Form:
        """Pick a form that fits the manner, and was not used yet if there is one."""
        forms = self.manner.fitting(forms)
        form = pick(self._random, [form for form in forms if form.text not in self._used] or forms)
        self._used.add(form.text)
        return form


def thing_phrase(by: Mapping[str, Any], lexicon: Lexicon, several: bool = False) -> str:
    """Word the thing, or `several`, that slots describe as a noun phrase without an article."""
    kind = lexicon.types[by["type"]]
    pack, of, held = in_speech(kind.plural if several else kind.name).rpartition(" of ")
    names = [by.get("brand", ""), lexicon.said(by.get("feature", "")), held]
    attributes = ((name, value) for name, value in by.items() if name.startswith("attr:"))
    names += [lexicon.phrase(kind.name, name, lexicon.said(value)) for name, value in attributes]
    return pack + of + " ".join(filter(None, names))


def wish_phrase(kind: str, name: str, wish: Wish, lexicon: Lexicon) -> str:
    """Word a wish for a slot of a product of this type as a phrase after its noun; one for a limit stands alone."""
    if isinstance(wish, Of):
        thing = thing_phrase(wish.described, lexicon)
        if slot_type(name).is_limit:
            return f"the {thing} that I looked at"
        return of_phrase(noun(name.removeprefix("attr:")), thing, wish)
    if isinstance(wish, Packs):
        return packs_phrase(wish)
    if isinstance(wish, Taste):
        return taste_phrase(name.removeprefix("attr:"))
    if isinstance(wish, Earlier):
        return f"for {at_most(wish)}" if name == PRICE.name else f"no later than {delivery_words(wish)}"
    assert isinstance(wish, OneOf | AnyBut)
    values = or_list(wish.values if name == "brand" else tuple(map(lexicon.said, wish.values)))
    said = f"by {values}" if name == "brand" else lexicon.phrase(kind, name, values)
    return said if isinstance(wish, OneOf) else f"but not {said}"


def _number(count: int) -> Piece:
    return Piece(str(count) if count != 1 else "one", "fixed", in_letters(count))


def _row(phrases: Sequence[Sequence[Piece]], join: str, last: str) -> list[Piece]:
    """Join phrases; `last` stands before the last of them."""
    made: list[Piece] = []
    for number, phrase in enumerate(phrases, 1):
        made += [Piece(join if number < len(phrases) else last, "fixed"), *phrase] if made else phrase
    return made


def _filled(form: Form, gaps: Mapping[str, str], items: Sequence[Piece]) -> list[Piece]:
    """Fill in a frame of an opening."""
    pieces: list[Piece] = []
    for run, text in form.runs:
        if run != "field":
            pieces.append(Piece(text))
        else:
            pieces += items if text == "items" else [Piece(gaps[text], "fixed")]
    return _begun(pieces)


def _grouped(items: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Group items, in order, by sentence."""
    groups: list[list[Mapping[str, Any]]] = []
    for item in items:
        if groups and sum(map(len, groups[-1])) + len(item) <= MOST_IN_A_SENTENCE:
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def _joined(pieces: Sequence[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


def _begun(pieces: Sequence[Piece]) -> list[Piece]:
    """Begin a sentence with a capital, whichever words its first value is put in."""
    first = next((at for at, piece in enumerate(pieces) if piece.text), 0)
    return [
        piece._replace(text=_capital(piece.text), others=tuple(map(_capital, piece.others)))
        if at == first
        else piece
        for at, piece in enumerate(pieces)
    ]


def _within(pieces: Sequence[Piece]) -> list[Piece]:
    """Go on after a colon: in small letters, but for "I" and values."""
    first, *rest = pieces
    if first.kind != "free" or first.text.split(" ")[0].partition("'")[0] in ("I", ""):
        return list(pieces)
    return [first._replace(text=first.text[:1].lower() + first.text[1:]), *rest]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
