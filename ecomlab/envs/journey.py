"""JOURNEY: a conversation that chains two to five of the other jobs in one world (SPEC §7).

The jobs share one cart, one order history, one clock and one customer. The next job comes when the agent hands in the
present one, right or wrong; the customer may also turn to the next job in the middle of one and come back.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from ecomlab.catalog import Shop
from ecomlab.catalog.lexicon import Lexicon
from ecomlab.customer.acts import Slot
from ecomlab.customer.goals import describe, draw_row, draw_visits, half_gone
from ecomlab.difficulty import AXES, Difficulty
from ecomlab.envs.base import Environment
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode, task_of
from ecomlab.players.base import Slips
from ecomlab.players.journey import Traveller
from ecomlab.reward import Verdict
from ecomlab.seeding import rng
from ecomlab.task import Draft, Need, Player, Task, TaskError
from ecomlab.tool import InvalidCallError, RefusedError, Tool, tool
from ecomlab.world.orders.history import STATUSES, draw_history
from ecomlab.world.policy_book.book import draw_book
from ecomlab.world.state import World

if TYPE_CHECKING:
    from ecomlab.episode.subtask import Job

LOOKING = ("CART", "SUB")
"""Jobs to which the customer's visits belong."""
PARTS = ("CART", "PD", "SUB", "RETURN", "STATUS", "POLICY", "BUNDLE")
"""What a journey may consist of, each at most once."""
FIRST = (
    "I have a few things today. ",
    "There are several things I need help with. ",
    "I came for more than one thing. ",
)
NEXT = ("Thanks. ", "Okay. ", "Good, that's that. ", "All right. ", "Great. ", "So much for that. ")
INTERRUPT = (
    "Hold on, something else before that. ",
    "One moment, first another thing. ",
    "Oh, that can wait, something came up. ",
)
BACK = ("Now back to {}.", "Back to {}, then.", "Okay, let's go on with {}.")
OF = {
    "CART": "my cart",
    "PD": "the recommendations",
    "SUB": "the substitute",
    "RETURN": "my return",
    "STATUS": "the order I asked about",
    "POLICY": "my question about your rules",
    "BUNDLE": "my shopping list",
}
"""What a job is called that the customer comes back to."""
KINDS = {
    "CART": "A cart",
    "PD": "Recommendations",
    "SUB": "Substitutes",
    "RETURN": "A return",
    "STATUS": "Order status",
    "POLICY": "A question about policy",
    "BUNDLE": "A shopping list",
}
"""What a job is called in the brief, so that one reads where the next begins."""


@tool
def submit(
    world: World,
    done: Annotated[bool | None, Field(description="A cart: it is as the customer wants it.")] = None,
    product_ids: Annotated[
        list[str] | None, Field(description="Recommendations, substitutes, a list.")
    ] = None,
    order_id: Annotated[str | None, Field(description="Returns and order status: which order.")] = None,
    line_id: Annotated[str | None, Field(description="Returns: which line of it.")] = None,
    outcome: Annotated[str | None, Field(description='Returns: "returned" or "declined".')] = None,
    last_return_day: Annotated[
        str | None,
        Field(description='Declined returns: the last day on which it is or was possible, or "never".'),
    ] = None,
    replacement: Annotated[str | None, Field(description="Returns: the product id of a replacement.")] = None,
    status: Annotated[str | None, Field(description=f"Order status, one of: {', '.join(STATUSES)}.")] = None,
    date: Annotated[
        str | None,
        Field(description="Order status: the day on which its last parcel was delivered or is expected."),
    ] = None,
    answer: Annotated[
        str | float | int | None,
        Field(description="Questions about policy: a number with its unit, yes or no, or a name."),
    ] = None,
    clause: Annotated[str | None, Field(description="Questions about policy: the deciding clause.")] = None,
) -> dict[str, Any]:
    """Hand in the job at hand with the fields that belong to it; the customer then says what is next."""
    raise AssertionError("a journey hands in by the part's own submit")


@dataclass(frozen=True)
class Part(Task):
    """A journey's part: a task in the journey's world, its randomness named by the journey's key."""

    within: tuple[Any, ...] = ()

    @property
    def key(self) -> tuple[Any, ...]:
        return self.within


class Journey(Environment):
    id = "JOURNEY"
    version = 1
    golden = "8b2eef8a3199ac8a7cece8066fe1d2ff"
    axes = AXES
    submit = submit

    @property
    def brief(self) -> str:  # type: ignore[override]
        return " ".join(
            (
                "The customer has several jobs, one after the other; call submit when one is done, with the fields "
                "that belong to it. Each is one of these.",
                *(f"{KINDS[part]}: {ENVIRONMENTS[part].brief}" for part in PARTS),
            )
        )

    @property
    def tools(self) -> Mapping[str, Tool]:  # type: ignore[override]
        """Those of every part that a journey may have, whichever it has: what is offered gives nothing away."""
        return {name: found for part in PARTS for name, found in ENVIRONMENTS[part].tools.items()}

    def draw(self, key: tuple[Any, ...], axes: Difficulty, shop: Shop) -> Draft:
        random, level = rng("journey", *key), key[2]
        count = min(5, 2 + level // 4)
        order = [PARTS[i] for i in random.permutation(len(PARTS)).tolist()]
        for first in range(len(order)):  # hardly ever does the first agree with no other
            chosen, taken, visited = _agreeing(order[first:] + order[:first], count, key, axes, shop)
            if len(chosen) > 1:
                break
        else:
            raise TaskError("the parts of this journey are all about the same products; take another seed")
        interrupted = int(random.integers(len(chosen) - 1))
        switching = bool(random.random() < axes.p_switch)
        turn = int(random.integers(1, chosen[interrupted].need.turns + 1))
        turns = sum(part.turns - axes.turn_slack for part in chosen)
        calls = sum(part.calls - axes.tool_slack for part in chosen)
        truth = {
            "parts": [replace(part, world={}).to_json() for part in chosen],
            "interrupts": [[interrupted, turn]] if switching else [],
        }
        opening = _pick(FIRST, random) + _begun(chosen[0], random)
        # The world holds what any job might need: what tools show must not tell which jobs will not come.
        absent = [env for env in LOOKING if env not in {part.env for part in chosen}]
        book = {"policies": draw_book(key, axes, shop)}
        phantoms = _phantom_visits(absent, taken | visited, key, axes, shop)
        parts = (part.world for part in chosen)
        world = _merged([draw_history(key, axes, shop), book, *parts, *phantoms], key)
        return Draft((), True, world, truth, Need(turns - 1, 0, calls), (), opening=opening)

    def parts(self, task: Task) -> list[Task]:
        shared = {"world": task.world, "overrides": task.overrides}
        made = [Task.from_json({**part, **shared}) for part in task.truth["parts"]]
        return [Part(**_fields_of(part), within=task.key) for part in made]

    def begin(self, task: Task, shop: Shop) -> None:
        return None

    def slots(self, task: Task) -> tuple[list[Slot], list[Slot]]:
        """Those of the part that the journey opens with; the others come with theirs."""
        first = self.parts(task)[0]
        return ENVIRONMENTS[first.env].slots(first)

    def read_opening(self, text: str, lexicon: Lexicon) -> dict[tuple[int, str], Any]:
        found = _recognised(text)
        return ENVIRONMENTS[found[0]].read_opening(found[1], lexicon) if found else {}

    def next_part(self, task: Task, under_way: Sequence[int], opened: int, turn: int) -> int | None:
        if opened == len(task.truth["parts"]):
            return None
        if not under_way:
            return opened
        return (
            opened
            if [under_way[-1], turn] in task.truth["interrupts"] and opened == under_way[-1] + 1
            else None
        )

    def turning(self, task: Task, part: int | None, interrupts: bool = False) -> str:
        random = rng("turning", *task.key, part)
        if part is None:
            ((interrupted, _),) = task.truth["interrupts"]
            return _pick(BACK, random).replace("{}", OF[task.truth["parts"][interrupted]["env"]])
        turn = NEXT[int(rng("next", *task.key).permutation(len(NEXT))[part])]  # none of them twice
        return (_pick(INTERRUPT, random) if interrupts else turn) + _begun(self.parts(task)[part], random)

    def answer_of(self, task: Task, values: dict[str, Any]) -> dict[str, Any]:
        own = ENVIRONMENTS[task.env].submit
        expected = own.arguments.model_fields
        given = {name: values[name] for name in expected if values[name] is not None}
        belongs = f"the job at hand is handed in with {', '.join(expected)}"
        if not given and any(value is not None for value in values.values()):
            raise RefusedError(f"{belongs}; nothing of that was given")  # another job was meant
        try:
            return own.parse(json.dumps(given))
        except InvalidCallError as error:
            raise RefusedError(f"{belongs}: {error}") from None

    def verify(self, episode: "Job") -> Verdict:
        raise AssertionError("a journey is judged by its parts")

    def judge(self, episode: "Episode") -> Verdict:
        """The mean of the parts' verdicts, each as of its handing in; what later turns undid counts as undone."""
        verdicts = []
        for number, job in enumerate(episode.jobs):
            if number >= episode.opened:
                verdicts.append(Verdict(-1.0, False, "never begun"))
                continue
            now = job.verdict if job.verdict and not job.env.in_world else job.env.verify(job)
            verdicts.append(min(now, job.verdict or now, key=lambda v: (v.correct, v.credit)))
        why = "; ".join(f"{job.task.env}: {v.why}" for job, v in zip(episode.jobs, verdicts, strict=True))
        return Verdict(
            sum(v.credit for v in verdicts) / len(verdicts),
            all(v.correct for v in verdicts),
            why,
            tuple(claim for v in verdicts for claim in v.claims),
        )

    def solver(self, episode: "Job | Episode") -> Player:
        by_id = {job.task.env: job for job in episode.jobs}  # type: ignore[union-attr]
        return Traveller(lambda part: ENVIRONMENTS[part].solver(by_id[part]))

    def fair_player(self, shop: Shop, slips: Slips | None = None) -> Player:
        return Traveller(lambda part: ENVIRONMENTS[part].fair_player(shop, slips))

    def twin(self, task: Task, shop: Shop, random: np.random.Generator) -> Task | None:
        """The journey with one part's twin in its place."""
        parts = self.parts(task)
        for i in random.permutation(len(parts)).tolist():
            other = ENVIRONMENTS[parts[i].env].twin(parts[i], shop, random)
            if other is not None:
                told = [dict(part) for part in task.truth["parts"]]
                told[i] = {**told[i], "truth": other.truth}
                return replace(task, truth={**task.truth, "parts": told})
        return None


def _recognised(text: str) -> tuple[str, str] | None:
    """(environment, what was said after the introduction) where a customer's message turns to a job."""
    for part in PARTS:
        for intro in ENVIRONMENTS[part].intros:
            if intro in text:
                return part, text.partition(intro)[2].strip()
    return None


def _begun(part: Task, random: np.random.Generator) -> str:
    return f"{_pick(ENVIRONMENTS[part.env].intros, random)} {part.opening}"


def _pick(options: Sequence[str], random: np.random.Generator) -> str:
    return options[int(random.integers(len(options)))]


def _types(task: Task, shop: Shop) -> set[str]:
    """Every product type that a task's truth and events name, or of which it makes something sold out."""

    def walk(value: Any) -> Iterator[str]:
        if isinstance(value, Mapping):
            value = list(value.values())
        if isinstance(value, str):
            yield value
        elif isinstance(value, list | tuple):
            for entry in value:
                yield from walk(entry)

    data = [task.truth, [event.data for event in task.events]]
    return _types_of(task.world.get("gone", ()), shop) | {
        name for name in walk(data) if name in shop.catalog.type_codes
    }


def _types_of(product_ids: Sequence[str], shop: Shop) -> set[str]:
    rows = map(shop.catalog.row, product_ids)
    return {shop.catalog.type_of(row).name for row in rows if row is not None}


def _phantom_visits(
    absent: Sequence[str], taken: set[str], key: tuple[Any, ...], axes: Difficulty, shop: Shop
) -> Iterator[dict[str, Any]]:
    """The visits that these jobs would have brought, each time around a wish that nobody has: a look at the visits
    must not tell which jobs cannot come. None is of a type that a job of this journey is about."""
    for env in absent:
        named = (*key, "phantom", env)
        random = rng(*named)
        order = random.permutation(len(shop.catalog.types)).tolist()
        kinds = [kind for kind in (shop.catalog.types[i].name for i in order) if kind not in taken]
        rows = (draw_row(shop.catalog.type_rows(kind), shop, random) for kind in kinds)
        row = next((row for row in rows if row is not None), None)
        if row is None:
            continue
        slots = describe(shop, row, axes.constraints, random)
        stated = [name for name in slots if name == "type" or random.random() >= axes.p_missing]
        others = [kind for kind in kinds if kind != slots["type"]]
        visits = draw_visits([{"row": row, "slots": slots}], [stated], others, axes, named, shop)
        taken = taken | _types_of(visits, shop)
        yield (
            {"visits": visits, "gone": half_gone(visits, named, shop)} if env == "SUB" else {"visits": visits}
        )


def _agreeing(
    order: Sequence[str], count: int, key: tuple[Any, ...], axes: Difficulty, shop: Shop
) -> tuple[list[Task], set[str], set[str]]:
    """The first `count` jobs that touch no product types of one another, with the types they are about and the types
    visited for them."""
    chosen: list[Task] = []
    taken: set[str] = set()
    visited: set[str] = set()
    for name in order:
        if len(chosen) == count:
            break
        environment = ENVIRONMENTS[name]
        part = task_of(environment, environment.draw(key, axes, shop), key, axes, shop, part=True)
        types, seen = _types(part, shop), _types_of(part.world.get("visits", ()), shop)
        # Two jobs about one kind of thing could not be told apart; a kind visited for two jobs stands out.
        if not types & taken and not seen & visited:
            chosen.append(part)
            taken |= types
            visited |= seen
    return chosen, taken, visited


def _merged(worlds: Sequence[Mapping[str, Any]], key: tuple[Any, ...]) -> dict[str, Any]:
    """The parts' worlds as one: what they have in common once, lists that differ shuffled together."""
    merged: dict[str, Any] = {}
    for world in worlds:
        for name, value in world.items():
            if name in merged and merged[name] != value:
                both = list(dict.fromkeys([*merged[name], *value]))
                value = [both[i] for i in rng("merged", name, *key).permutation(len(both)).tolist()]
            merged[name] = value
    return merged


def _fields_of(task: Task) -> dict[str, Any]:
    """A task's fields by name."""
    return {f.name: getattr(task, f.name) for f in fields(Task)}
