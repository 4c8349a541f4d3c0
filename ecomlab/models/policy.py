"""The policy: a model with its renderer and a record of what it was made for."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ecomlab.models.renderer import Renderer
from ecomlab.suggest import unknown

if TYPE_CHECKING:
    from ecomlab.models.samplers.cached import CachedSampler, Limits

MADE_FOR, CONFIG = "made_for.json", "config.json"
"""Files in a policy's folder: the record of what it was made for, and its model's dimensions."""


DTYPES = ("float32", "bfloat16")
"""Types in which the weights of an ordinary model can be loaded."""


class PolicyError(ValueError):
    """A policy that cannot be used here; the message states the reason and the way out."""


def device_of(name: str | None, ordinary: bool) -> str:
    """Return the named device; None selects a GPU for an ordinary model if there is one, and the CPU for a small
    policy, which is no faster elsewhere. Raises PolicyError for a device that this machine lacks."""
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name is None:
        return "cuda" if count and ordinary else "cpu"
    known = ["cpu", *(["cuda"] if count else []), *(f"cuda:{number}" for number in range(count))]
    if name.startswith("cuda") and not count:
        raise PolicyError(f"no GPU for {name!r} here; use 'cpu'")
    if name not in known:
        raise PolicyError(unknown("device", name, known))
    return name


def serve_it(name: str) -> str:
    """Name the way out for a model that only a server plays."""
    return (
        f"serve it (`vllm serve {name}` or `transformers serve`) and evaluate that endpoint: docs/players.md has the "
        "TOML file"
    )


@dataclass(frozen=True)
class Policy:
    """A model with its renderer."""

    model: Any
    renderer: Renderer
    made_for: dict[str, Any]
    """The renderer and whatever else the policy depends on; written to made_for.json."""

    @property
    def tokenizer(self) -> Any:
        return self.renderer.tokenizer

    def sampler(self, limits: "Limits | None" = None, greedy: bool = False) -> "CachedSampler":
        """Make a sampler that always uses this policy's current weights."""
        from ecomlab.models.samplers.graphed import sampler_kind

        return sampler_kind(self.model)(self.model, self.renderer.stop_ids, limits, greedy=greedy)
