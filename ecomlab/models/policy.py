"""A policy: a model with its way of writing conversations, and what it was made for."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ecomlab.models.renderer import Renderer

if TYPE_CHECKING:
    from ecomlab.models.samplers.cached import CachedSampler, Limits

MADE_FOR, CONFIG = "made_for.json", "config.json"
"""Files of a policy's folder: what it was made for, and its model's dimensions."""


class PolicyError(ValueError):
    """A policy that cannot be used here; the message says why and what to do."""


@dataclass(frozen=True)
class Policy:
    """A model with its way of writing conversations."""

    model: Any
    renderer: Renderer
    made_for: dict[str, Any]
    """The renderer, and what else the policy depends on; written to made_for.json."""

    @property
    def tokenizer(self) -> Any:
        return self.renderer.tokenizer

    def sampler(self, limits: "Limits | None" = None, greedy: bool = False) -> "CachedSampler":
        """Make a sampler on this policy's weights as they are at each moment."""
        from ecomlab.models.samplers.cached import CachedSampler

        return CachedSampler(self.model, self.renderer.stop_ids, limits, greedy=greedy)
