"""Lenient readers of what came of a return: its outcome, its order line and its replacement."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from ecomlab.answers.dates import says_none
from ecomlab.catalog import Catalog

_OUTCOME = re.compile(
    r"(?P<no>declin\w*|reject\w*|refus\w*|denied|deny|ineligible|non-?\s?returnable|"
    r"(?:\b(?:not|never|unable to|no longer)|cannot|n't)(?: \w+){0,2}? (?:return\w*|accept\w*|approv\w*|eligible)|"
    r"(?:outside|after|past) (?:of )?the (?:return )?(?:window|period)|"
    r"(?:window|period) (?:is|has) (?:over|closed|expired|passed|ended)|expired|too late)|"
    r"(?P<yes>returned|accepted|approved|refunded|exchanged|replaced|sent back|taken back|"
    r"return(?: \w+){0,2} (?:initiated|started)|^\W*return\W*$)",
    re.IGNORECASE,
)


def read_outcome(said: Any) -> str | None:
    """Read the outcome that a text names first, "returned" or "declined"."""
    match = _OUTCOME.search(said[:200].replace("_", " ")) if isinstance(said, str) else None
    return None if match is None else "declined" if match["no"] else "returned"


Outcome = Annotated[Literal["returned", "declined"], BeforeValidator(lambda said: read_outcome(said) or said)]
"""What came of a return, also in other words for it."""


def read_replacement(said: str | None, catalog: Catalog) -> str | None:
    """Read the id submitted as a replacement; None if the text says that there is none."""
    token = (said or "").strip()
    return None if says_none(token) and catalog.row(token) is None else token


def is_named(answer: Mapping[str, Any], order: Mapping[str, Any], line: Mapping[str, Any]) -> bool:
    """Tell whether the submitted ids are those of this order and line, in any case."""
    ids = {"order_id": order["order_id"], "line_id": line["line_id"]}
    return all(str(answer.get(name)).strip().upper() == token for name, token in ids.items())
