"""Devices by name."""

from ecomlab.models.policy import PolicyError
from ecomlab.suggest import unknown


def device_of(name: str | None, ordinary: bool) -> str:
    """Return the named device; None selects a GPU for an ordinary model if there is one, and the CPU for a small
    policy, which is no faster elsewhere. Raises PolicyError for a device that this machine lacks."""
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name is None:
        return "cuda" if count and ordinary else "cpu"
    known = ["cpu", *(["cuda"] if count else []), *(f"cuda:{number}" for number in range(count))]
    if name not in known:
        raise PolicyError(unknown("device", name, known))
    return name
