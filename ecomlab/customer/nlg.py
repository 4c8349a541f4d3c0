"""Natural language generation: one form for each act, a noun phrase for each item, then noise."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ecomlab.catalog.lexicon import Lexicon
from ecomlab.customer.acts import Act
from ecomlab.customer.noise import Piece, noised
from ecomlab.customer.templates import BOUNDS, Phrases, common_file
from ecomlab.seeding import pick, rng
from ecomlab.task import Goal


class Speaker:
    """Words one customer's acts in one episode; `key` and the number of messages so far name the randomness."""

    def __init__(self, phrases: Phrases, lexicon: Lexicon, p_noise: float, key: Sequence[Any]) -> None:
        self.phrases = phrases
        self.lexicon = lexicon
        self.p_noise = p_noise
        self.key = tuple(key)
        self.said = 0

    def opening(self, goal: Goal, leads: Sequence[str], greet: bool = True) -> str:
        """Word the request: the items that `goal` states, put where a lead has {}, then its other slots. With `greet`
        it may begin with a greeting."""
        random, common = rng("words", *self.key, "opening"), common_file()
        told = [slot for slot in goal.slots.items() if slot[0] not in goal.withheld]
        said = [(name, value) for (_, name), value in told if name in self.phrases.slots]
        typed = dict.fromkeys(item for (item, name), _ in told if name == "type")
        items = [
            {name: value for (i, name), value in told if i == item and name not in self.phrases.slots}
            for item in typed
        ]
        for slots, place in zip(items, typed, strict=True):
            if (place, "quantity") in goal.withheld:  # "a Kettle" would say that one will do
                slots["quantity"] = None
        as_list = len(items) > 1 and random.random() < 0.4
        lead = pick(random, self.phrases.lists if as_list else leads)
        greeting = pick(random, common.greetings) if greet else ""
        in_lines = as_list and random.random() < 0.5
        join, last = ("\n- ", "\n- ") if in_lines else pick(random, self.phrases.joins)
        closing = pick(random, self.phrases.closings if goal.withheld else common.complete)
        body: list[Piece] = [Piece(join, "fixed")] if in_lines else []
        for number, item in enumerate(items):
            if number:
                body.append(Piece(join if number < len(items) - 1 else last, "fixed"))
            # Where items are joined by commas, the articles tell where the next one begins.
            body += self.item(item, random, "" if as_list and last != " and " else "a")
        if in_lines:
            lead = lead.replace(" {}.", "{}\n")
        if greeting.endswith(", ") and not lead.startswith("I"):
            lead = lead[:1].lower() + lead[1:]
        else:
            lead = _capital(lead)
        before, _, after = (greeting + lead).partition("{}")
        text = [Piece(before), *body, Piece(after)]
        for name, value in said:
            gap = Piece("" if text[-1].text.endswith("\n") else " ")
            text += [gap, Piece(_capital(self.phrases.slots[name].say(value, random)), "fixed")]
            after = ""
        if closing:
            gap = Piece("" if after.endswith("\n") else " ")
            text += [gap, Piece(closing, "free" if goal.withheld else "fixed")]
        return noised(text, self.p_noise, self.lexicon, random).strip()

    def say(self, acts: Sequence[Act]) -> str:
        """Word these acts, in order, as one message."""
        random = rng("words", *self.key, self.said)
        self.said += 1
        return " ".join(self._sentence(act, random) for act in acts)

    def item(self, slots: Mapping[str, Any], random: np.random.Generator, article: str) -> list[Piece]:
        """Word an item as a noun phrase: "3 Tank Tops by PixelVault in size XS"; `article` is a, the or "". A quantity
        of None is several, without saying how many: "some Tank Tops"."""
        kind, brand, feature = slots["type"], slots.get("brand"), slots.get("feature")
        quantity = slots.get("quantity", 1)
        several = quantity is None or quantity > 1
        form = int(random.integers(3)) if quantity and several else 0
        name = self.lexicon.types[kind].plural if several and form == 0 else kind
        head: list[Piece] = []
        if feature:
            head += [Piece(feature, "feature"), Piece(" ")]
        by = brand is not None and random.random() < 0.4
        if brand and not by:
            head += [Piece(brand, "brand"), Piece(" ")]
        head.append(Piece(name, "type"))
        if by:
            head += [Piece(" by "), Piece(str(brand), "brand")]
        if quantity is None:
            head.insert(0, Piece("some ", "fixed"))
        elif several:
            count = (f"{quantity} ", f"{quantity} x ", "")[form]
            head = [Piece(count, "fixed"), *head, Piece(f" ({quantity})" if form == 2 else "", "fixed")]
        elif article:
            vowel = article == "a" and head[0].text[0].lower() in "aeiou"
            head.insert(0, Piece("an " if vowel else f"{article} ", "fixed"))
        details = self.details(
            {k: v for k, v in slots.items() if k not in ("brand", "feature")}, kind, random
        )
        return head + ([Piece(" "), *details] if details else [])

    def details(self, slots: Mapping[str, Any], kind: str, random: np.random.Generator) -> list[Piece]:
        """Word slots as phrases after the noun, joined by commas: "in size XS, for $30 or less"."""
        phrases: list[list[Piece]] = []
        for name, value in slots.items():
            if name in ("type", "quantity"):
                continue
            if name == "brand":
                phrases.append([Piece("by "), Piece(str(value), "brand")])
            elif name == "feature":
                phrases.append([Piece("the "), Piece(str(value), "feature"), Piece(" kind")])
            elif name in BOUNDS:
                form = pick(random, common_file().bounds[name])
                phrases.append([Piece(form.format(BOUNDS[name].write(value)), "fixed")])
            else:
                phrases.append([Piece(self.lexicon.phrase(kind, name, value), "fixed")])
        joined: list[Piece] = []
        for phrase in phrases:
            joined += [Piece(", "), *phrase] if joined else phrase
        return joined

    def _sentence(self, act: Act, random: np.random.Generator) -> str:
        templates = self.phrases.slots
        spoken = [(name, value) for name, value in act.slots.items() if name in templates]
        if spoken:
            said = [_capital(templates[name].say(value, random)) for name, value in spoken]
            others = {name: value for name, value in act.slots.items() if name not in templates}
            if others:
                said.insert(0, self._sentence(replace(act, slots=others), random))
            elif self.phrases.before.get(act.kind):
                said.insert(0, pick(random, self.phrases.before[act.kind]))
            return " ".join(said)
        forms = list(self.phrases.acts[act.kind])
        if "quantity" in act.slots:  # details leave it out
            forms = [form for form in forms if {("field", "item"), ("field", "wanted")} & set(form.runs)]
        form = pick(random, forms)
        fields = {name for run, name in form.runs if run == "field"}
        filled: dict[str, list[Piece]] = {
            "type": [Piece(self._named(act), "type")],
            "plural": [Piece(self.lexicon.types[act.type].plural if act.type else "", "type")],
            "seen": [Piece(act.seen, "fixed")],
            "number": [Piece(str(act.number), "fixed")],
            "details": self.details(act.slots, act.type, random) if act.type else [],
        }
        for name, article in (("item", "a"), ("wanted", "the")):
            if name in fields:
                filled[name] = self.item({"type": act.type, **act.slots}, random, article)
        pieces: list[Piece] = []
        for run, text in form.runs:
            pieces += filled[text] if run == "field" else [Piece(text, "fixed" if run == "cue" else "free")]
        text = noised(pieces, 0.0 if act.clean else self.p_noise, self.lexicon, random)
        return _capital(" ".join(text.split()).replace(" .", ".").replace(" ,", ","))

    def _named(self, act: Act) -> str:
        return self.lexicon.types[act.type].plural if act.number > 1 and act.type else act.type


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
