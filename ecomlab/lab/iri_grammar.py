"""nbformat without the seconds that jsonschema, which it imports, takes to compile a grammar of IRIs.

No notebook has an IRI to check. The grammar is compiled where one is checked for the first time.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

GRAMMAR, USER = "rfc3987_syntax", "jsonschema._format"


@contextmanager
def compiled_on_demand() -> Iterator[None]:
    """Let what imports jsonschema in this block get a grammar that is compiled when it is first used."""
    if GRAMMAR in sys.modules or USER in sys.modules:
        yield
        return
    standing_in = ModuleType(GRAMMAR)
    standing_in.is_valid_syntax = _is_valid_syntax  # type: ignore[attr-defined]
    sys.modules[GRAMMAR] = standing_in
    try:
        yield
    finally:
        del sys.modules[GRAMMAR]


def _is_valid_syntax(term: str, value: str) -> bool:
    """Tell whether a text is such a term of RFC 3987, by the library itself."""
    from rfc3987_syntax import is_valid_syntax

    return bool(is_valid_syntax(term, value))
