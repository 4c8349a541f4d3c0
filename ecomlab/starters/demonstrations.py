"""Demonstrations: token sequences of reference players with a tiny policy's habits and with seeded mistakes.

Measured, a tiny model needs two habits: restating the order in a canonical form before its first call, and quoting the
chosen row before using its id. Demonstrators see what the policy sees: titles, not attributes. Mistakes leave
reinforcement learning something to improve.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ecomlab.catalog.lexicon import Lexicon, lexicon_of
from ecomlab.customer import nlu
from ecomlab.customer.nlu import Mention
from ecomlab.envs.cart.player import CartPlayer, Wish
from ecomlab.envs.journey.player import JourneyPlayer
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode
from ecomlab.models.renderer import Renderer
from ecomlab.players.asking import QUESTIONS
from ecomlab.players.base import Perturbation
from ecomlab.seeding import rng
from ecomlab.slots import filters_of
from ecomlab.starters.compact_renderer import ShortLines, visible
from ecomlab.starters.narrator import asked, narrated
from ecomlab.starters.questions import Questions
from ecomlab.starters.sorted_rows import OrderedDiscovery
from ecomlab.task import Message, Player, Task
from ecomlab.wishes import AnyBut, OneOf, Taste, or_list

if TYPE_CHECKING:
    from ecomlab.catalog import Shop

ANY = "any"


class Demonstrator(CartPlayer):
    """The demonstrator in CART: a reference player that adds the thoughts the laptop policy is to learn."""

    def __init__(self, lexicon: Lexicon, perturbation: Perturbation | None = None) -> None:
        super().__init__(ENVIRONMENTS["CART"].phrases, lexicon, perturbation=perturbation)
        self.questions = Questions("CART")
        self._restated: dict[int, str] = {}
        self._quoted: dict[int, str | None] = {}
        self.refused: dict[int, set[str]] = {}
        """Product ids that the customer or the shop refused, by wish."""

    def hear(self, text: str, opening: bool) -> None:
        super().hear(text, opening)
        for wish in self.wishes if opening else ():
            if self.slip():
                wish.slots["quantity"] = wish.quantity + 1  # misread
        if nlu.says("not told yet", text, self.phrases, self.lexicon):
            self.wants_more = True

    def plan(self) -> Message:
        message = super().plan()
        if not message.get("tool_calls"):
            return asked(message)
        calls = message["tool_calls"]
        if _asks(calls[0]):
            question = self.questions.next(self.heard_of())
            return {**message, "tool_calls": [self.call("ask_user", None, question=question)]}
        message["tool_calls"] = list(self._with_lookups(calls))
        if calls[0]["function"]["name"] != "submit":
            message["content"] = "\n".join(self._thoughts())
        return message

    def _with_lookups(self, calls: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Look up a product's variants in the turn that adds one of them: the wanted option is known."""
        for call in calls:
            added = json.loads(call["function"]["arguments"])
            if call["function"]["name"] == "cart_add" and added.get("variant_id"):
                yield self.call("catalog_get_variants", None, product_id=added["product_id"])
            yield call

    def _thoughts(self) -> Iterator[str]:
        """Restate the order and quote the chosen rows, where either is new."""
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
        """Choose by what the policy can see: the first row that fits and has enough left; by mistake, another."""
        if wish.choice is not None and self._left(wish.choice, wish) >= wish.quantity:
            return
        wish.choice = None
        fitting = [r for r in self._fitting(wish) if self._left(r["product_id"], wish) >= wish.quantity]
        if not fitting:
            return
        if self.slip():
            fitting = [r for r in self._rows(wish) if r is not fitting[0]] or fitting
        wish.choice = fitting[0]["product_id"]

    def _fitting(self, wish: Wish) -> list[dict[str, Any]]:
        """List the visible rows whose titles hold what is known of the title, or all if none does."""
        rows = self._rows(wish)
        words = [wish.type, *(wish.slots[name] for name in ("brand", "feature") if name in wish.slots)]
        return [r for r in rows if all(word in r["title"] for word in words)] or rows

    def _rows(self, wish: Wish) -> list[dict[str, Any]]:
        gone = self.refused.get(id(wish), set())
        return [r for r in visible(wish.found) if r["product_id"] not in gone]

    def result(self, about: Any, result: dict[str, Any]) -> None:
        """Take in a result; what sells out does so with all products of its title. A product that does not come in the
        wanted variant is not the one."""
        if isinstance(about, tuple) and "has no variant" in result.get("error", ""):
            for wish in self.wishes:
                if wish.choice == about[0]:
                    self.refused.setdefault(id(wish), set()).add(about[0])
                    wish.choice = None
            return
        super().result(about, result)
        if "error" in result and isinstance(about, tuple):
            product_id, option = about
            rows = {row["product_id"]: row["title"] for wish in self.wishes for row in wish.found}
            alike = [other for other, title in rows.items() if title == rows.get(product_id)]
            self.units |= {(other, option): self.units[about] for other in alike}

    def _may_be_elsewhere(self, wish: Wish) -> bool:
        """Look again only where the customer, told of a shortage, still wants the same."""
        return wish.told and not wish.again

    def _slipped(self, slots: dict[str, Any]) -> dict[str, Any]:
        """Drop slots by mistake."""
        if self.perturbation is None:
            return dict(slots)
        return {name: value for name, value in slots.items() if not self.slip()}

    def _take(self, mention: Mention) -> None:
        wish = next((w for w in self.wishes if w.type == mention.type), None)
        before = dict(wish.slots) if wish else {}
        super()._take(mention)
        if wish is None or wish.choice is None or mention.effect != "set" or wish.slots != before:
            return
        if (
            any(line[0] == wish.choice for line in self.cart)
            and not {"option", "quantity"} & mention.slots.keys()
        ):
            # told that it is wrong, with nothing new to search by
            self.refused.setdefault(id(wish), set()).add(wish.choice)
            wish.choice = None

    def _search(self, wish: Wish, filters: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Search by the words that titles show and by bounds on everything else."""
        wish.pages, wish.more = 99, False
        return self.call("catalog_search", wish, query=_query(wish).strip(), **filters_of(wish.slots))

    def _additions(self, wanted: dict[tuple[str, str | None], int]) -> list[dict[str, Any]]:
        calls = super()._additions(wanted)
        return [self._shortened(call) for call in calls]

    def _shortened(self, call: dict[str, Any]) -> dict[str, Any]:
        """Leave out a quantity of one, which is the default."""
        function = call["function"]
        if function["name"] == "cart_add":
            function = {**function, "arguments": function["arguments"].replace(', "quantity": 1}', "}")}
        return {**call, "function": function}


def _asks(call: Mapping[str, Any]) -> bool:
    """Tell whether a call asks for what is withheld; it might tell of a shortage instead."""
    return json.loads(call["function"]["arguments"]).get("question") in QUESTIONS


def canonical(wish: Wish) -> str:
    """Write a wish in a canonical form: " Watering Can, any, SproutLane, 7 L, 2".

    Type, feature, brand, details if any, option, quantity. The type comes first because it identifies the item; what is
    unknown is `any`, so that each place is filled once: without fixed places, reinforcement learning found endless
    repetitions of names, which search tolerates.
    """
    return ", ".join([_query(wish), wish.option or ANY, str(wish.quantity)])


def _detail(value: Any) -> str:
    """Write what is known of an attribute, in the order in which it was said."""
    if isinstance(value, Taste):
        return or_list(value.values) or "to see"
    if isinstance(value, OneOf | AnyBut):
        return f"{'not ' if isinstance(value, AnyBut) else ''}{or_list(value.values)}"
    return str(value)


def _query(wish: Wish) -> str:
    """Write the part of a wish that is searched for."""
    details = [_detail(value) for name, value in wish.slots.items() if name.startswith("attr:")]
    return " " + ", ".join(
        [wish.type, wish.slots.get("feature", ANY), wish.slots.get("brand", ANY), *details]
    )


@dataclass(frozen=True)
class Demonstration:
    """One played episode as tokens; `mask` is 1 where the policy learns to speak."""

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
        """Tokenise texts heard and said in turn; of those said, only `sound` ones are imitated (default: all)."""
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
    """One played episode as texts, heard and said in turn."""

    pieces: list[str]
    correct: bool
    sound: list[bool]
    """True for each turn that is worth imitating: all but those from a mistake until the customer's next message, after
    which the mistake is corrected."""


def demonstrator(
    env: str, shop: "Shop", perturbation: Perturbation | None, knows: Callable[[str], bool]
) -> Player:
    """Make the player to imitate: in CART a `Demonstrator`, elsewhere the narrated reference player."""
    if env == "CART":
        return Demonstrator(lexicon_of(shop.catalog), perturbation)
    if env == "JOURNEY":
        intros = {name: environment.phrases.intros for name, environment in ENVIRONMENTS.items()}
        return JourneyPlayer(intros, lambda env: demonstrator(env, shop, perturbation, knows))
    if env == "PD":
        phrases, lexicon = ENVIRONMENTS["PD"].phrases, lexicon_of(shop.catalog)
        return narrated(env, OrderedDiscovery(phrases, lexicon, perturbation=perturbation), knows)
    return narrated(env, ENVIRONMENTS[env].reference_player(shop, perturbation), knows)


def teacher(
    env: str, shop: "Shop", knows: Callable[[str], bool], perturbation: Perturbation | None = None
) -> Player:
    """Make the demonstrator that puts everything it says to the customer as a question, as starters imitate it."""
    player = demonstrator(env, shop, perturbation, knows)

    def turn(messages: list[Message], tools: list[dict[str, Any]]) -> Message:
        message = player(messages, tools)
        return message if message.get("tool_calls") else asked(message)

    return turn


def transcribe(task: Task, shop: "Shop", perturbation: Perturbation | None = None) -> Transcript:
    """Play a task with its demonstrator and transcribe it as the laptop policy sees it."""
    episode, dialogue = Episode(task, shop), ShortLines()
    player = teacher(task.env, shop, dialogue.aliases.knows, perturbation)
    pieces = [dialogue.opening(episode.messages, episode.tools)]
    sound: list[bool] = []
    astray = False
    while True:
        mistakes = perturbation.count if perturbation else 0
        message = player(list(episode.messages), episode.tools)
        astray = astray or (perturbation is not None and perturbation.count > mistakes)
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
    task: Task, shop: "Shop", renderer: Renderer, perturbation: Perturbation | None = None
) -> Demonstration:
    """Play a task with its demonstrator and tokenise it with the policy's renderer."""
    played = transcribe(task, shop, perturbation)
    return Demonstration.of(played.pieces, renderer, played.correct, task.env, task.difficulty)


def slips_for(rate: float, *key: Any) -> Perturbation | None:
    """Make a named stream of mistakes at `rate` per decision, None at 0."""
    return Perturbation(rng("slips", *key), rate) if rate > 0 else None
