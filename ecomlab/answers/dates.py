"""Lenient readers of days as a person writes them: "March 9", "2026-03-09", "9 March 2026", "never"."""

import re
from datetime import date, timedelta
from typing import Any

from ecomlab.values import MONTHS, WEEKDAYS

MOST = 200
"""Most characters of a text that may name a day."""
_NONE = re.compile(
    r"(?:na|n a|nil|null|none|no|nothing)?|"
    r".*\b(?:never|none|nothing|not at all|not applicable|cancell?ed|no returns?|no replacement|"
    r"no (?:[a-z]+ )?(?:day|date)|(?:not|non|cannot be|can not be|can t be) return(?:able|ed))\b.*"
)
"""Ways to say that there is no day, alone or within a sentence."""
_MONTH = {name[:3].lower(): number for number, name in enumerate(MONTHS, 1)}
_NAMES = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in MONTHS) + "|Sept"
_ISO = re.compile(r"(?<!\d)(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?!\d)", re.ASCII)
_US = re.compile(r"(?<!\d)(?P<m>\d{1,2})/(?P<d>\d{1,2})/(?P<y>\d{4})(?!\d)", re.ASCII)
_TAIL = r"(?:,?\s+(?P<y>\d{4}))?(?!\d)"
_NAMED = (
    re.compile(rf"\b(?P<n>{_NAMES})\.?\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b{_TAIL}", re.I | re.ASCII),
    re.compile(
        rf"(?<!\d)(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<n>{_NAMES})\b\.?{_TAIL}", re.I | re.ASCII
    ),
)


def read_day(text: Any, today: date) -> date | None:
    """Read the one day that `text` names, without a year the nearest to today; None for no day or several."""
    if not isinstance(text, str) or len(text) > MOST:
        return None
    found = {day for _, day in days_in(text, today)}
    return found.pop() if len(found) == 1 else None


def days_in(text: str, today: date) -> list[tuple[int, date | None]]:
    """List the days that a text names, each after its place; None for one that does not exist."""
    found = [match for pattern in (_ISO, _US) for match in pattern.finditer(text)]
    # In "9 March 20" the day is March 9 and not March 20: what one form has read, the other does not read again.
    rest = _ISO.sub(lambda one: " " * len(one[0]), _US.sub(lambda one: " " * len(one[0]), text))
    first, second = (list(pattern.finditer(rest)) for pattern in _NAMED)
    taken = [match.span() for match in second]
    first = [m for m in first if not any(m.start() < end and start < m.end() for start, end in taken)]
    matches = sorted((*found, *first, *second), key=lambda match: match.start())
    return [(match.start(), _day(match, today)) for match in matches]


def day_of(deadline: str, today: date) -> date | None:
    """Compute the next day that a weekday or a day of the year ("03-09") names; None for other words."""
    days = (today + timedelta(days=ahead) for ahead in range(1, 366))
    return next((day for day in days if deadline in (WEEKDAYS[day.weekday()], day.isoformat()[5:])), None)


def says_none(text: Any) -> bool:
    """Tell whether a text says that there is no day or no replacement: nothing, "N/A", "never returnable"."""
    if text is None:
        return True
    if not isinstance(text, str) or len(text) > MOST:
        return False
    words = " ".join(re.findall(r"[a-z]+|\d+", text.lower().replace("/", "")))
    return not re.search(r"\d", words) and _NONE.fullmatch(words) is not None


def _day(match: re.Match[str], today: date) -> date | None:
    said = match.groupdict()
    month = int(said["m"]) if said.get("m") else _MONTH[said["n"][:3].lower()]
    years = [int(said["y"])] if said["y"] else [today.year - 1, today.year, today.year + 1]
    days = [made for year in years if (made := _made(year, month, int(said["d"]))) is not None]
    return min(days, key=lambda day: abs(day - today), default=None)


def _made(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def before(today: date, days: int) -> str:
    """Compute the day so many days ago (ahead, if negative), as tools write it."""
    return (today - timedelta(days=days)).isoformat()
