"""A lenient reader of the status of an order."""

import re
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator

StatusName = Literal[
    "processing", "shipped", "delayed", "delivered", "cancelled", "partly shipped", "partly delivered"
]
STATUSES: tuple[str, ...] = get_args(StatusName)
_SAID = (
    ("partly delivered", r"part\w*[ -]+(?:delivered|arrived)|(?:delivered|arrived) (?:in )?part\w*"),
    ("partly shipped", r"part\w*[ -]+(?:shipped|sent)|(?:shipped|sent) (?:in )?part\w*"),
    ("cancelled", r"cancell?ed"),
    ("delayed", r"delayed|late"),
    ("delivered", r"delivered|arrived"),
    ("shipped", r"shipped|in transit|on (?:its|the) way"),
    ("processing", r"processing|being processed|in process"),
)

_DENIED = re.compile(r"(?:\b(?:not|never|no)\b|n't\b)[^,.;:]*|\b(?:to|will) be \w+")


def read_status(said: Any) -> str | None:
    """Read the one status that a text names; None for none or several. What it denies or expects does not count
    ("shipped, not yet delivered"), nor do the single parcels of an order that is partly shipped or delivered."""
    if not isinstance(said, str) or len(said) > 200:
        return None
    text, found = said.lower().replace("_", " "), []
    text = re.sub(r"\([^()]*\)", " ", text).strip() or text  # "partly delivered (1 of 2 delivered)"
    text = _DENIED.sub(" ", text)
    for status, pattern in _SAID:
        text, count = re.subn(rf"\b(?:{pattern})\b", " ", text)
        found += [status] if count else []
    partly = [status for status in found if status.startswith("partly")]
    return (partly or found)[0] if len(partly or found) == 1 else None


Status = Annotated[StatusName, BeforeValidator(lambda said: read_status(said) or said)]
"""The status of an order, also in other words for it."""
