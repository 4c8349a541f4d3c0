"""Errors for names that do not exist: the fact, the likely meaning, the choice."""

import difflib
from collections.abc import Iterable

MOST = 60
"""Names that a message lists."""


def unknown(what: str, name: object, known: Iterable[str]) -> str:
    """`no environment 'CRAT'; did you mean 'CART'? there are BUNDLE, CART`."""
    names = list(known)
    folded = {n.casefold(): n for n in names}
    close = difflib.get_close_matches(str(name).casefold(), folded, n=1, cutoff=0.5)
    hint = f"; did you mean {folded[close[0]]!r}?" if close else ";"
    listed = ", ".join(sorted(names)[:MOST]) or "none"
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return f"no {what} {name!r}{hint} there are {listed}{more}"
