"""Shared shops: made once a test process, immutable."""

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

# Before ecomlab is imported: tests never write into a real cache or the home directory, and use no network.
_SCRATCH = Path(tempfile.gettempdir()) / f"ecomlab-tests-{os.getuid()}"
os.environ.setdefault("ECOMLAB_CACHE", str(_SCRATCH))
os.environ.setdefault("MPLCONFIGDIR", str(_SCRATCH / "matplotlib"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

import pytest

pytest.register_assert_rewrite("runs", "ecomlab.audit.contract")  # their assertions say what they compared

from ecomlab.catalog import Shop, load_shop

STALE = re.compile(r"base was made for (?:renderer|\w+ version) \d+")
"""What the refusal of a starter says that was made before the environments' words or versions last changed."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    return (yield from _skipping_stale_starters())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    return (yield from _skipping_stale_starters())


def _skipping_stale_starters() -> Iterator[None]:
    """Skip what needs a starter until it is made anew for these environments."""
    try:
        return (yield)
    except Exception as error:  # a PolicyError, or what a notebook or a command makes of it
        if found := STALE.search(f"{error} {error.__cause__}"):
            pytest.skip(f"to be made anew for these environments: {found.group()}")
        raise


@pytest.fixture(scope="session")
def shop() -> Shop:
    """A small shop: a thousand products."""
    return load_shop(1_000)


@pytest.fixture(scope="session")
def big_shop() -> Shop:
    """The embedded default: twenty thousand products."""
    return load_shop()
