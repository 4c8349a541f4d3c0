"""Short aliases of long ids, which the laptop policy reads and writes instead."""

import hashlib
import re
from typing import Any

ALIASES = tuple(f" #{letter}{digit}" for letter in "abcdefghijklmnopqrstuvwxyz" for digit in range(10))[:256]
"""Aliases of an episode; each is a single token, including its leading space."""


class Aliases:
    """Aliases of ids of products, orders, lines and clauses within one episode.

    An alias depends on the id alone (a hash, with probing on collisions), not on the order of appearance, so it cannot
    be guessed, only copied from the row that shows it.
    """

    def __init__(self) -> None:
        self._of: dict[str, str] = {}
        self._real: dict[str, str] = {}

    def of(self, product_id: str) -> str:
        """Return the alias of an id, with its leading space, assigned on first use. The 257th id keeps its name."""
        known = self._of.get(product_id)
        if known is not None:
            return known
        start = int.from_bytes(hashlib.blake2b(product_id.encode(), digest_size=8).digest()) % len(ALIASES)
        for step in range(len(ALIASES)):
            alias = ALIASES[(start + step) % len(ALIASES)]
            if alias.strip() not in self._real:
                self._of[product_id] = alias
                self._real[alias.strip()] = product_id
                return alias
        return " " + product_id

    def real(self, value: Any) -> Any:
        """Replace an alias by its id, in lists too; return anything else, including unassigned aliases, unchanged."""
        if isinstance(value, list):
            return [self.real(entry) for entry in value]
        return self._real.get(value, value) if isinstance(value, str) else value

    def knows(self, known_id: Any) -> bool:
        """Tell whether an id has an alias, that is, has been shown."""
        return isinstance(known_id, str) and known_id in self._of

    def in_text(self, text: str) -> str:
        """Replace every known id that stands alone in a text by its alias."""
        if not self._of:
            return text
        return re.sub(r"[\w-]+", lambda found: self._of.get(found[0], found[0]).strip(), text)
