"""Short names for long ids, which the laptop policy reads and writes in their place."""

import hashlib
import re
from typing import Any

ALIASES = tuple(f" #{letter}{digit}" for letter in "abcdefghijklmnopqrstuvwxyz" for digit in range(10))[:256]
"""Aliases of an episode; each is one token, its leading space included."""


class Aliases:
    """Short names of ids of products, orders, lines and clauses within one episode.

    A name depends on the id alone (a hash, with probing where two fall together), not on the order of appearance, so
    that there is nothing to guess: the right name can only be copied from the row that shows it.
    """

    def __init__(self) -> None:
        self._of: dict[str, str] = {}
        self._real: dict[str, str] = {}

    def of(self, product_id: str) -> str:
        """Give the alias of an id, leading space included; new when first asked for. A 257th id stays itself."""
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
        """Give the id behind an alias, in a list too; anything else, an alias never given out included, as it is."""
        if isinstance(value, list):
            return [self.real(entry) for entry in value]
        return self._real.get(value, value) if isinstance(value, str) else value

    def knows(self, known_id: Any) -> bool:
        """Tell whether this id has an alias, that is, was shown."""
        return isinstance(known_id, str) and known_id in self._of

    def in_text(self, text: str) -> str:
        """Replace every known id in a text, where it stands alone, by its alias."""
        if not self._of:
            return text
        return re.sub(r"[\w-]+", lambda found: self._of.get(found[0], found[0]).strip(), text)
