"""What a sampler returns, apart from samplers, so that environment workers import no torch."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sampled:
    """One turn of the policy, exactly as sampled."""

    ids: list[int]
    """Token ids, including the stop token."""
    logprobs: list[float]
    """Log-probability of each id under the sampling distribution; under greedy decoding the model's own."""
    truncated: bool
    """True if a token limit cut the turn off before its stop token."""
    failure: str = ""
    """The reason why the backend failed on this row, which makes its episode unscored."""
