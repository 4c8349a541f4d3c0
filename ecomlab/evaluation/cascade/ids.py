"""Ids that the agent used before any tool had shown them."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ecomlab.envs.base import Environment
from ecomlab.evaluation.cascade.mistakes import Mistake
from ecomlab.laws.surface import ids_of, records, taken
from ecomlab.tool import Tool
from ecomlab.world.state import World

Pair = tuple[str, str]


class Shown:
    """What tools had shown, and the customer had said, when the agent last spoke."""

    def __init__(self, env: Environment) -> None:
        self._fields = ids_of(env)
        self._tools: dict[str, Tool] = {**env.offered, env.submit.name: env.submit}
        self._takes = {name: taken(tool, env) for name, tool in self._tools.items()}
        self.ids: set[str] = set()
        self.texts: list[str] = []
        """Everything that tools have returned, as text."""
        self.products: set[str] = set()
        self.pairs: set[Pair] = set()
        self.said = ""
        self._blamed: set[str | Pair] = set()

    def read(self, results: Sequence[str], said: Sequence[str], world: World) -> None:
        """Take in what came back from a turn: tools' results as JSON text, and what the customer said."""
        self.texts += results
        for result in map(json.loads, results):
            for record in records(result):
                self.ids |= {str(record[name]) for name in self._fields & record.keys()}
        self.products |= world.shown
        own = {(product_id, variant) for product_id, variant in world.cart if variant is not None}
        self.pairs |= world.shown_pairs | own
        self.said += "\n" + "\n".join(said).lower()

    def any_of(self, ids: Collection[str]) -> bool:
        """Tell whether a tool has shown one of these ids, in whatever text."""
        return any(one in text for text in self.texts for one in ids)

    def unseen(
        self, calls: Sequence[tuple[str, Mapping[str, Any]]], turn: int, job: int, world: World
    ) -> Iterator[Mistake]:
        """Find the ids, and the pairs of a product and a variant, that these calls use too early, each once an episode.

        A variant that the customer named is likely to exist, but nobody has seen it: that is a pair, with a cause.
        """
        for name, arguments in calls:
            for field, value in self._used(name, arguments, world):
                known = self.products if field == "product_id" else self.ids
                if value not in known and value not in self._blamed:
                    self._blamed.add(value)
                    words = f"{name} was called with {value}, which no tool had shown"
                    yield Mistake(turn, "unseen id", value, job=job, thing=value, words=words)
            product_id, variant = arguments.get("product_id"), arguments.get("variant_id")
            if not (isinstance(product_id, str) and isinstance(variant, str) and product_id in self.products):
                continue
            if (pair := (product_id, variant)) not in self.pairs | self._blamed:
                self._blamed.add(pair)
                cause = "said by the customer" if variant.lower() in self.said else ""
                words = f"{name} was called with {product_id} in {variant}, which no tool had shown"
                yield Mistake(
                    turn,
                    "unseen pair",
                    product_id,
                    cause,
                    job=job,
                    thing=f"{product_id} {variant}",
                    words=words,
                )

    def _used(self, name: str, arguments: Mapping[str, Any], world: World) -> Iterator[tuple[str, str]]:
        """Yield (field, id) of each id among the arguments: of those that take one, and any text that is a product's
        id."""
        takes = self._takes.get(name, {})
        for argument, value in arguments.items():
            field = takes.get(argument, "")
            for one in value if isinstance(value, list) else [value]:
                if not isinstance(one, str) or not one or field == "variant_id":
                    continue
                if field or (
                    name in self._tools and argument != "query" and world.catalog.row(one) is not None
                ):
                    yield field or "product_id", one
