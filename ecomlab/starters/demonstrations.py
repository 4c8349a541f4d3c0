"""Demonstrations: the fair player with a policy's habits and seeded mistakes, as token sequences.

Habits that a tiny model needs (measured): before its first call it restates the order in one canonical form,
and it quotes the row it chose before using the row's id. It sees what the policy sees: titles, not attributes.
Mistakes leave reinforcement learning something to do.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ecomlab.catalog.lexicon import Lexicon, lexicon_of
from ecomlab.customer.nlu import Mention
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode
from ecomlab.models.renderer import Renderer
from ecomlab.players.base import Perturbation
from ecomlab.players.cart import CartPlayer, Wish
from ecomlab.players.goal_player import bounds
from ecomlab.players.journey import JourneyPlayer
from ecomlab.seeding import rng
from ecomlab.starters.compact_renderer import ShortLines, visible
from ecomlab.starters.narrator import narrated
from ecomlab.task import Message, Player, Task

if TYPE_CHECKING:
    from ecomlab.catalog import Shop

ASK = {
    "question": "Anything else?",
    "about": ["brand", "feature", "details", "option", "price", "rating", "delivery"],
}

ANY = "any"


class Demonstrator(CartPlayer):
    """A fair player that thinks aloud in the way the laptop policy shall."""

    def __init__(self, lexicon: Lexicon, slips: Perturbation | None = None) -> None:
        super().__init__(ENVIRONMENTS["CART"].phrases, lexicon, perturbation=slips)
        self._restated: dict[int, str] = {}
        self._quoted: dict[int, str | None] = {}

    def hear(self, text: str, opening: bool) -> None:
        super().hear(text, opening)
        for wish in self.wishes if opening else ():
            if self.slip():
                wish.slots["quantity"] = wish.quantity + 1  # misread

    def plan(self) -> Message:
        message = super().plan()
        calls = message["tool_calls"]
        if calls[0]["function"]["name"] == "ask_user":
            return {**message, "tool_calls": [self.call("ask_user", None, **ASK)]}
        message["tool_calls"] = list(self._with_purchase(calls))
        if calls[0]["function"]["name"] != "submit":
            message["content"] = "\n".join(self._thoughts())
        return message

    def _with_purchase(self, calls: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Put a product into the cart in the turn that looks up its variants: the wanted option is known."""
        for call in calls:
            yield call
            if call["function"]["name"] == "catalog_get_variants":
                wish = self._asked_for[call["id"]]
                assert isinstance(wish, Wish)
                line = {"product_id": wish.choice, "variant_id": wish.option}
                quantity = wish.quantity if wish.quantity > 1 else None
                yield self.call("cart_add", (wish.choice, wish.option), **line, quantity=quantity)

    def _thoughts(self) -> Iterator[str]:
        """Restate the order as understood, where that is news, then quote the rows chosen, where they are."""
        for wish in self.wishes:
            words = canonical(wish)
            if self._restated.get(id(wish)) != words:
                self._restated[id(wish)] = words
                yield words
        for wish in self.wishes:
            if wish.choice is not None and self._quoted.get(id(wish)) != wish.choice:
                self._quoted[id(wish)] = wish.choice
                title = next(r["title"] for r in wish.found if r["product_id"] == wish.choice)
                yield f" {title} {wish.choice}"

    def _choose(self, wish: Wish) -> None:
        """Choose by what the policy can see: the first row whose title fits, else the first; slipping, another."""
        if wish.choice is not None:
            return
        rows = [r for r in visible(wish.found) if r["product_id"] not in wish.refused]
        if not rows:
            return
        words = [wish.type, *(wish.slots[name] for name in ("brand", "feature") if name in wish.slots)]
        fitting = [r for r in rows if all(word in r["title"] for word in words)] or rows
        if self.slip():
            fitting = [r for r in rows if r is not fitting[0]] or fitting
        wish.choice = fitting[0]["product_id"]

    def _slipped(self, slots: dict[str, Any]) -> dict[str, Any]:
        """Understand the slots: each may be lost."""
        if self.perturbation is None:
            return dict(slots)
        return {name: value for name, value in slots.items() if not self.slip()}

    def _take(self, mention: Mention) -> None:
        before = [(wish, wish.choice, set(wish.refused)) for wish in self.wishes]
        super()._take(mention)
        for wish, choice, refused in before:
            if wish.choice is None and choice is not None and wish.found:
                wish.refused = refused | {choice}  # told that it is wrong, and nothing new to search by

    def _search(self, wish: Wish) -> dict[str, Any]:
        """Search by the words that a title may show, and bounds on what it does not."""
        wish.pages, wish.more = 99, False
        return self.call("catalog_search", wish, query=_query(wish).strip(), **bounds(wish.slots))

    def _cart_calls(self, wanted: dict[tuple[str, str | None], int]) -> list[dict[str, Any]]:
        calls = super()._cart_calls(wanted)
        return [self._shortened(call) for call in calls]

    def _shortened(self, call: dict[str, Any]) -> dict[str, Any]:
        """Leave out a quantity of one, which is the default."""
        function = call["function"]
        if function["name"] == "cart_add":
            function = {**function, "arguments": function["arguments"].replace(', "quantity": 1}', "}")}
        return {**call, "function": function}


def canonical(wish: Wish) -> str:
    """Write a wish in one form, whatever the customer's words: " Watering Can, any, SproutLane, 7 L, 2".

    Type, feature, brand, details if there are any, option, quantity. The type comes first because everything else about
    one of several things hangs on it; what is not known is `any`, so that every place is decided once: without fixed
    places, reinforcement learning found endless repetitions of names that search tolerates.
    """
    return ", ".join([_query(wish), wish.option or ANY, str(wish.quantity)])


def _query(wish: Wish) -> str:
    """Write the part of it that is searched for."""
    details = [str(value) for name, value in wish.slots.items() if name.startswith("attr:")]
    return " " + ", ".join(
        [wish.type, wish.slots.get("feature", ANY), wish.slots.get("brand", ANY), *details]
    )


@dataclass(frozen=True)
class Demonstration:
    """One played episode as tokens; `mask` is 1 where the demonstrator spoke."""

    ids: list[int]
    mask: list[int]
    correct: bool
    difficulty: int
    env: str = "CART"

    @classmethod
    def of(
        cls,
        pieces: Sequence[str],
        renderer: Renderer,
        correct: bool,
        env: str,
        difficulty: int = 0,
        sound: Sequence[bool] | None = None,
    ) -> "Demonstration":
        """Make one of texts heard and said in turn; of what was said only what is `sound` is imitated, else all."""
        ids: list[int] = []
        mask: list[int] = []
        for number, piece in enumerate(pieces):
            new = renderer.encode(piece)
            ids += new
            said = number % 2
            mask += [int(said and (sound is None or sound[number // 2]))] * len(new)
        return cls(ids, mask, correct, difficulty, env)


@dataclass(frozen=True)
class Transcript:
    """One played episode as text, piece by piece: what was heard first, then what was said and heard in turn."""

    pieces: list[str]
    correct: bool
    sound: list[bool]
    """Of what was said, turn by turn: True for what a good player would say there. Not so from a mistake on until the
    customer speaks up again; what follows shows how a mistake is put right."""


def demonstrator(env: str, shop: "Shop", slips: Perturbation | None, knows: Callable[[str], bool]) -> Player:
    """Make the player that is imitated: in CART by what a title shows, elsewhere the environment's fair player."""
    if env == "CART":
        return Demonstrator(lexicon_of(shop.catalog), slips)
    if env == "JOURNEY":
        intros = {name: environment.phrases.intros for name, environment in ENVIRONMENTS.items()}
        return JourneyPlayer(intros, lambda part: demonstrator(part, shop, slips, knows))
    return narrated(env, ENVIRONMENTS[env].reference_player(shop, slips), knows)


def transcribe(task: Task, shop: "Shop", slips: Perturbation | None = None) -> Transcript:
    """Play a task with its demonstrator and write it down as the laptop policy sees it."""
    episode, dialogue = Episode(task, shop), ShortLines()
    player = demonstrator(task.env, shop, slips, dialogue.aliases.knows)
    pieces = [dialogue.opening(episode.messages, episode.tools)]
    sound: list[bool] = []
    astray = False
    while True:
        mistakes = slips.count if slips else 0
        message = player(list(episode.messages), episode.tools)
        astray = astray or (slips is not None and slips.count > mistakes)
        sound.append(not astray)
        calls = [
            (c["function"]["name"], json.loads(c["function"]["arguments"])) for c in message["tool_calls"]
        ]
        pieces.append(dialogue.write(message["content"], calls))
        turn = episode.act(message)
        if turn.done:
            return Transcript(pieces, episode.score().correct, sound)
        astray = astray and not any(message["role"] == "user" for message in turn.messages)
        pieces.append(dialogue.answer(turn.messages))


def demonstrate(
    task: Task, shop: "Shop", renderer: Renderer, slips: Perturbation | None = None
) -> Demonstration:
    """Play a task with its demonstrator and write it down through the policy's renderer."""
    played = transcribe(task, shop, slips)
    return Demonstration.of(played.pieces, renderer, played.correct, task.env, task.difficulty)


def slips_for(rate: float, *key: Any) -> Perturbation | None:
    """Make a named stream of mistakes at `rate` per decision; None when there are to be none."""
    return Perturbation(rng("slips", *key), rate) if rate > 0 else None
