"""Shared shops: made once a test process, immutable."""

import os
import tempfile
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


@pytest.fixture(scope="session")
def shop() -> Shop:
    """A small shop: a thousand products."""
    return load_shop(1_000)


@pytest.fixture(scope="session")
def big_shop() -> Shop:
    """The embedded default: twenty thousand products."""
    return load_shop()
