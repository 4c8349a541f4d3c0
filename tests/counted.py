"""Work counted in calls of functions, which a busy machine does not change."""

import sys
from collections.abc import Callable
from typing import Any


def calls_in(action: Callable[[], Any]) -> int:
    """Functions that `action` calls, of Python and of libraries."""
    count = 0

    def tell(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(tell)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count
