"""Errors for names that do not exist: the fact, the likely meaning, the choice."""

import difflib
from collections.abc import Iterable


def unknown(what: str, name: object, known: Iterable[str]) -> str:
    """`no environment 'CRAT'; did you mean 'CART'? there are BUNDLE, CART`."""
    names = list(known)
    folded = {n.casefold(): n for n in names}
    close = difflib.get_close_matches(str(name).casefold(), folded, n=1, cutoff=0.5)
    hint = f"; did you mean {folded[close[0]]!r}?" if close else ";"
    return f"no {what} {name!r}{hint} there are {', '.join(sorted(names)) or 'none'}"
