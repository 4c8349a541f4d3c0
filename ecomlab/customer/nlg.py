"""The customer's words: typed acts through a grammar with real variety, then noise (SPEC §6)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ecomlab.catalog.lexicon import Lexicon
from ecomlab.customer.acts import Act
from ecomlab.customer.noise import SLANG, Piece, noised
from ecomlab.customer.templates import Saying
from ecomlab.seeding import rng
from ecomlab.values import money

GREETINGS = ("Hi! ", "Hello, ", "Good morning. ", "Hey, ", "Hi there. ", "Good evening, ", "", "", "", "")
LEADS = (
    "I would like to order {}.",
    "could you please add {} to my cart?",
    "I want to buy {}.",
    "I'm looking for {}.",
    "please put {} in my cart.",
    "can you get me {}?",
    "I'd love to have {}.",
    "what I'm after is {}.",
    "my partner asked me to get {}.",
    "please order {} for me.",
    "I am going to take {}.",
    "could you help me find {}?",
    "it's time to replace some things, I'd take {}.",
    "a friend told me about this shop, I'd like {}.",
    "for our new place we could use {}.",
    "before the weekend I should get {}.",
)
LISTS = (
    "Shopping list: {}.",
    "Please add the following to my cart: {}.",
    "My order: {}.",
    "To buy: {}.",
    "On my list: {}.",
)
COMPLETE = (
    "That's all.",
    "That's everything.",
    "Nothing else.",
    "That is all I need.",
    "Nothing more, thanks.",
)
OPEN = ("", "", "", "Can you help?", "Thanks!", "What do you have?", "Please help me out.")
JOINS = (("; ", "; "), (", plus ", ", plus "), (" and also ", " and also "))
"""What stands between wanted things, and before the last of them."""

ACTS: Mapping[str, tuple[str, ...]] = {
    "elaborate": (
        "The {type} should be {details}.",
        "For the {type}: {details}.",
        "About the {type}: {details}.",
    ),
    "remind": ("As I said, the {type} should be {details}.",),
    "change": (
        "Actually, the {type} should be {details}.",
        "I changed my mind: the {type} should be {details}.",
    ),
    "wrong option": (
        "That's the {seen} version of the {type}, but I need {wanted}.",
        "You took {seen}, but I need {wanted}.",
    ),
    "no option": ("You did not pick an option there, but I need {wanted}.",),
    "wrong product": (
        "That's not the right one, but I need {wanted}.",
        "{seen} is the wrong one, but I need {wanted}.",
    ),
    "wrong quantity": (
        "The cart has {seen} of those, but I need {number} {type}.",
        "You put in {seen}, but I need {number} {type}.",
    ),
    "not wanted": ("I did not ask for the {seen}.", "The {seen} in the cart, I did not ask for it."),
    "quantity": ("Actually, make it {number} {type}.", "Wait, I need {number} {type} now."),
    "option": ("I changed my mind, I want {wanted}.", "Actually, I want {wanted} now."),
    "drop": ("Actually, skip the {type}.", "I changed my mind, skip the {type}."),
    "give up": ("Skip the {type} then.",),
    "settle option": ("I take {wanted} then.", "I'm fine with {wanted} then."),
    "settle quantity": ("Make it {number} {type} then.", "{number} {type} will do."),
    "add": ("Also add {item}, please.", "One more thing: also add {item}."),
    "replace": (
        "Get {item} instead, the rest does not matter.",
        "I'd rather have {item} instead, the rest does not matter.",
    ),
    "exchange": (
        "I changed my mind, get {item} instead, the rest does not matter.",
        "Actually, I'd rather have {item} instead, the rest does not matter.",
    ),
    "sold out": ("The shop says {wanted} is sold out now.", "I see that {wanted} just sold out."),
    "only left": ("The shop has only {number} {type} left.", "I see only {number} {type} left."),
    "missing": ("The {type} is not in the cart yet.", "I still miss the {type}."),
    "nothing": ("I don't mind about the rest.", "No other wishes.", "The rest is up to you."),
    "indifferent": ("I have no preference about that.", "That is all the same to me."),
    "clarify": ("Sorry, I don't follow.", "I'm not sure what you mean."),
    "wrong line": (
        "I did not mean the {seen}; I want to send back {wanted}.",
        "Not the {seen}, please: I want to send back {wanted}.",
    ),
    "another line": (
        "Actually, I'd rather send back {wanted} instead.",
        "Sorry, I mixed things up. Please take back {wanted} instead.",
        "Wait, I'll keep that one. I'll send back {wanted} instead.",
    ),
    "another order": (
        "Sorry, I'm asking about another order.",
        "Oh, I mixed things up, I meant another order.",
        "Actually, I'd rather know about another order.",
    ),
    "this order": ("It's the one with {wanted}.", "I mean the one with {wanted} in it."),
    "check stock": (
        "I hear that many {plural} are going fast; some may be sold out by now.",
        "The shop just told me that some {plural} are sold out now.",
        "I just read that several {plural} have sold out.",
        "It looks like some {plural} are sold out by now.",
    ),
    "check list": (
        "The shop just told me that some things on my list are sold out now.",
        "I hear that some things on the list are sold out by now.",
        "I just read that some of what we need has sold out.",
        "It looks like some things for the list are sold out by now.",
    ),
    "hand in": (
        "Okay, then please hand it in.",
        "Fine, go ahead and hand it in.",
        "Good, please hand it in.",
    ),
    "confirm": ("Yes, that looks right, please finish.", "The cart looks right to me, go on."),
    "continue": ("Okay, go on.", "Fine, go ahead."),
    "dissatisfied": ("This is taking long.", "We are going in circles."),
    "quit": ("I'll come back another time.", "Leave it, I'll try elsewhere."),
}
"""Sentences per kind of act. Words that tell the acts apart have four letters or fewer, or are fixed below."""
ANSWERS: Mapping[str, tuple[str, ...]] = {
    "elaborate": ("I want {item}.", "I need {item}.", "I'd like {item}."),
    "remind": ("As I said, I want {item}.", "As I said, I'd like {item}."),
    "change": ("Actually, I want {item}.", "Actually, I'd like {item}."),
    "clarify": (
        "Sorry, what do you need from me?",
        "Please go on, or ask me what you need to know.",
        "I'm not sure what to say to that. What do you need to know?",
    ),
}
"""The same where the work is an answer: CART's words above are those of trained models and stay as they are."""

BEFORE: Mapping[str, tuple[str, ...]] = {
    "remind": ("As I said before:", "Once more:", "I've said that already:"),
    "change": ("I changed my mind.", "One thing has changed.", "Wait."),
    "wrong line": ("That's not the one I meant.", "You took the wrong one."),
    "wrong units": ("That's not the right number.", "You got the number wrong."),
}
"""What comes before a saying that stands alone."""

FIXED = (
    "instead",
    "the rest does not matter",
    "sold out",
    "did not ask",
    "version of",
    "but I need",
    "send back",
    "another order",
)


def filler() -> frozenset[str]:
    """Every word of the grammar itself, in lower case: what a reader of English does not take for a name."""
    templates = (
        *GREETINGS,
        *LEADS,
        *LISTS,
        *COMPLETE,
        *OPEN,
        *(text for join in JOINS for text in join),
        *(t for ts in (*ACTS.values(), *ANSWERS.values(), *BEFORE.values()) for t in ts),
    )
    extra = " by kind for or less up to at most with stars better least delivered within day days here in"
    return frozenset(re.findall(r"[a-z][a-z'-]*", (" ".join(templates) + extra).lower())) | frozenset(
        SLANG.values()
    )


class Words:
    """Renders acts for one episode; its randomness is named by `key` and the number of messages said before."""

    def __init__(
        self,
        lexicon: Lexicon,
        p_noise: float,
        key: Sequence[Any],
        sayings: Mapping[str, Saying] | None = None,
        acts: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.acts: Mapping[str, Sequence[str]] = {**ACTS, **(acts or {})}
        self.lexicon = lexicon
        self.p_noise = p_noise
        self.key = tuple(key)
        self.sayings = sayings or {}
        self.said = 0

    def opening(
        self,
        items: Sequence[Mapping[str, Any]],
        complete: bool,
        leads: Sequence[str] = LEADS,
        lists: Sequence[str] = LISTS,
        said: Sequence[tuple[str, Any]] = (),
        closings: Sequence[str] = OPEN,
        greet: bool = True,
        joins: Sequence[tuple[str, str]] = JOINS,
    ) -> str:
        """The request. `items` are slots by name, put where a lead has {}; `said` are sayings that follow it, by name;
        `complete`: nothing is withheld, else one of `closings` is said; `greet`: it may begin with a greeting."""
        random = rng("words", *self.key, "opening")
        as_list = len(items) > 1 and random.random() < 0.4
        lead = _pick(random, lists if as_list else leads)
        greeting = _pick(random, GREETINGS) if greet else ""
        in_lines = as_list and random.random() < 0.5
        join, last = ("\n- ", "\n- ") if in_lines else joins[int(random.integers(len(joins)))]
        closing = _pick(random, COMPLETE if complete else closings)
        body: list[Piece] = []
        if in_lines:
            body.append(Piece(join, "fixed"))
        for number, item in enumerate(items):
            if number:
                body.append(Piece(join if number < len(items) - 1 else last, "fixed"))
            # Between commas, the articles tell where the next thing begins.
            body += self.item(item, random, "" if as_list and last != " and " else "a")
        if in_lines:
            lead = lead.replace(" {}.", "{}\n")
        lead = (
            lead[:1].lower() + lead[1:]
            if greeting.endswith(", ") and not lead.startswith("I")
            else _capital(lead)
        )
        before, _, after = (greeting + lead).partition("{}")
        text = [Piece(before), *body, Piece(after)]
        for name, value in said:
            gap = Piece("" if text[-1].text.endswith("\n") else " ")
            text += [gap, Piece(_capital(self.sayings[name].say(value, random)), "fixed")]
            after = ""
        if closing:
            text += [
                Piece("" if after.endswith("\n") else " "),
                Piece(closing, "fixed" if complete else "free"),
            ]
        return noised(text, self.p_noise, self.lexicon, random).strip()

    def say(self, acts: Sequence[Act]) -> str:
        """One message for these acts, in order."""
        random = rng("words", *self.key, self.said)
        self.said += 1
        return " ".join(self._sentence(act, random) for act in acts)

    def item(self, slots: Mapping[str, Any], random: np.random.Generator, article: str) -> list[Piece]:
        """A wanted thing as a noun phrase: "3 Tank Tops by PixelVault in size XS"; `article`: a, the or ""."""
        kind, brand, feature = slots["type"], slots.get("brand"), slots.get("feature")
        quantity = slots.get("quantity", 1)
        form = int(random.integers(3)) if quantity > 1 else 0
        name = self.lexicon.types[kind].plural if quantity > 1 and form == 0 else kind
        head: list[Piece] = []
        if feature:
            head += [Piece(feature, "feature"), Piece(" ")]
        by = brand is not None and random.random() < 0.4
        if brand and not by:
            head += [Piece(brand, "brand"), Piece(" ")]
        head.append(Piece(name, "type"))
        if by:
            head += [Piece(" by "), Piece(str(brand), "brand")]
        if quantity > 1:
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
        """Slots as phrases behind the noun, joined by commas: "in size XS, for $30 or less"."""
        phrases: list[list[Piece]] = []
        for name, value in slots.items():
            if name in ("type", "quantity"):
                continue
            if name == "brand":
                phrases.append([Piece("by "), Piece(str(value), "brand")])
            elif name == "feature":
                phrases.append([Piece("the "), Piece(str(value), "feature"), Piece(" kind")])
            elif name == "price":
                form = _pick(random, ("for {} or less", "for up to {}", "for at most {}"))
                phrases.append([Piece(form.format(money(value)), "fixed")])
            elif name == "rating":
                form = _pick(random, ("with {} stars or better", "with at least {} stars"))
                phrases.append([Piece(form.format(f"{value / 10:.1f}"), "fixed")])
            elif name == "days":
                form = _pick(random, ("delivered within {}", "here in {} at most"))
                days = "1 day" if value == 1 else f"{value} days"
                phrases.append([Piece(form.format(days), "fixed")])
            else:
                phrases.append([Piece(self.lexicon.phrase(kind, name, value), "fixed")])
        joined: list[Piece] = []
        for phrase in phrases:
            joined += [Piece(", "), *phrase] if joined else phrase
        return joined

    def _sentence(self, act: Act, random: np.random.Generator) -> str:
        spoken = [(name, value) for name, value in act.slots.items() if name in self.sayings]
        if spoken:
            said = [_capital(self.sayings[name].say(value, random)) for name, value in spoken]
            others = {name: value for name, value in act.slots.items() if name not in self.sayings}
            if others:
                said.insert(0, self._sentence(replace(act, slots=others), random))
            elif act.kind in BEFORE:
                said.insert(0, _pick(random, BEFORE[act.kind]))
            return " ".join(said)
        template = _pick(random, self.acts[act.kind])
        filled: dict[str, list[Piece]] = {
            "type": [Piece(self._named(act), "type")],
            "plural": [Piece(self.lexicon.types[act.type].plural if act.type else "", "type")],
            "seen": [Piece(act.seen, "fixed")],
            "number": [Piece(str(act.number), "fixed")],
            "details": self.details(act.slots, act.type, random) if act.type else [],
        }
        if "{item}" in template:
            filled["item"] = self.item({"type": act.type, **act.slots}, random, "a")
        if "{wanted}" in template:
            filled["wanted"] = self.item({"type": act.type, **act.slots}, random, "the")
        pieces: list[Piece] = []
        for text, name in _split(template):
            pieces += _fix(text)
            if name:
                pieces += filled[name]
        text = noised(pieces, 0.0 if act.clean else self.p_noise, self.lexicon, random)
        return _capital(" ".join(text.split()).replace(" .", ".").replace(" ,", ","))

    def _named(self, act: Act) -> str:
        if act.number > 1 and act.type:
            return self.lexicon.types[act.type].plural
        return act.type


def _pick(random: np.random.Generator, options: Sequence[str]) -> str:
    return options[int(random.integers(len(options)))]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _split(template: str) -> list[tuple[str, str]]:
    """("text before", "field") pairs of a template; the last has no field."""
    parts = template.replace("}", "{").split("{")
    return [(parts[i], parts[i + 1] if i + 1 < len(parts) else "") for i in range(0, len(parts), 2)]


def _fix(text: str) -> list[Piece]:
    """Filler text with its telling words fixed."""
    for telling in FIXED:
        before, found, after = text.partition(telling)
        if found:
            return [*_fix(before), Piece(telling, "fixed"), *_fix(after)]
    return [Piece(text)] if text else []
