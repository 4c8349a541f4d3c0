"""A process killed in the midst of its work, at a call that a test names."""

import os
import signal
from collections.abc import Callable
from typing import Any


def killed_at(where: Any, name: str, call: int, action: Callable[[], object]) -> None:
    """Run an action in a child process that is killed at this call, from 1 on, of a function of a module."""
    child = os.fork()
    if not child:
        real, calls = getattr(where, name), []

        def dying(*given: Any) -> Any:
            calls.append(given)
            if len(calls) == call:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*given)

        try:
            setattr(where, name, dying)
            action()
        finally:
            os._exit(0)  # not reached: a finished action is no test
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
