"""The objective: advantages of a group of rollouts, the overlong penalty, and DAPO's loss in six lines.

The trainer takes its masks, advantages and penalties from here. The loss it differentiates is TRL's
(`loss_type="dapo"`), which a test compares with `dapo_loss`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ecomlab.models.batch import Rollout
from ecomlab.reward import varies
from ecomlab.training.rollouts import TRUNCATED, is_trained

if TYPE_CHECKING:
    from ecomlab.training.rollouts import Collection


def group_advantages(rewards_G: Sequence[float]) -> np.ndarray:
    """Compute how far each rollout's reward lies above its group's mean, in standard deviations.

    NaN marks an unscored rollout: it is left out of the mean and its advantage is 0. All advantages are 0 in a group
    whose rewards are equal (max - min within `TOLERANCE`) or that has fewer than two scored rollouts.
    """
    rewards = np.asarray(rewards_G, dtype=np.float64)
    scored = rewards[~np.isnan(rewards)]
    if len(scored) < 2 or not varies(scored.tolist()):
        return np.zeros_like(rewards)
    return np.nan_to_num((rewards - scored.mean()) / (scored.std(ddof=1) + 1e-4), nan=0.0)


def overlong_penalty(sampled: int, limit: int, buffer: int) -> float:
    """Compute DAPO's soft penalty: 0 up to `limit - buffer` sampled tokens, then linearly down to -1 at `limit`.

    Tokens of tools and customer do not count. `buffer` 0 disables the penalty.
    """
    if buffer <= 0:
        return 0.0
    return -min(1.0, max(0.0, (sampled - (limit - buffer)) / buffer))


def loss_mask(rollout: Rollout, mask_truncated: bool = False) -> list[int]:
    """Mask the tokens that are trained, 1 each: those sampled by the policy, none in an unscored episode, and with
    `mask_truncated` none in one that a token limit cut off (DAPO's overlong filtering)."""
    return rollout.mask if is_trained(rollout, mask_truncated) else [0] * len(rollout.mask)


def longest_turn(rollout: Rollout) -> int:
    """Count the tokens that the policy sampled in its longest turn."""
    edges = np.diff([0, *rollout.mask, 0])
    return int((np.flatnonzero(edges < 0) - np.flatnonzero(edges > 0)).max(initial=0))


def shaped_reward(
    rollout: Rollout, limit: int, buffer: int, mask_truncated: bool = False, turn: tuple[int, int] = (0, 0)
) -> float:
    """Compute the reward that an episode is trained with, from -1 to 1; NaN when unscored.

    The overlong penalty is that of the episode's sampled tokens, or that of its longest turn if it is larger; `turn` is
    the limit of a turn and its buffer.

    A truncated episode has `TRUNCATED`, whatever it had achieved, in place of the overlong penalty. Any other has its
    score plus the penalty, but at least `TRUNCATED`, because truncation must never pay. With `mask_truncated` it is the
    score and the penalty for all, as DAPO has it; a truncated episode then counts only in the mean and the deviation of
    its group.
    """
    penalty = overlong_penalty(rollout.sampled, limit, buffer)
    if turn[1]:
        penalty = min(penalty, overlong_penalty(longest_turn(rollout), *turn))
    penalised = rollout.score.value + penalty
    if mask_truncated or rollout.score.unscored:
        return penalised
    return TRUNCATED if rollout.end == "truncated" else max(TRUNCATED, penalised)


def step_advantages(
    collection: "Collection",
    limit: int,
    buffer: int,
    mask_truncated: bool = False,
    turn: tuple[int, int] = (0, 0),
) -> np.ndarray:
    """Compute advantages of shaped rewards, (groups of `collection.batch`, group size); 0 in padding."""
    kept = [
        group_advantages([shaped_reward(r, limit, buffer, mask_truncated, turn) for r in group.rollouts])
        for group in collection.kept
    ]
    return np.stack(kept + [np.zeros(len(group.rollouts)) for group in collection.padding])


def completion_logps(model: Any, prompt_ids: Sequence[int], completion_ids: Sequence[int]) -> Tensor:
    """Compute the log-probability of each completion token, shape (T,), from one row without padding."""
    ids = torch.tensor([[*prompt_ids, *completion_ids]])
    logits = model(input_ids=ids).logits[0, len(prompt_ids) - 1 : -1]
    targets = ids[0, len(prompt_ids) :, None]
    return torch.log_softmax(logits, dim=-1).gather(1, targets)[:, 0]


def dapo_loss(
    logp_BT: Tensor,
    old_logp_BT: Tensor,
    advantage_B: Tensor,
    mask_BT: Tensor,
    low: float = 0.2,
    high: float = 0.28,
    tokens: float | None = None,
) -> Tensor:
    """Compute DAPO's token-level clipped objective, no KL: a sum over sampled tokens, divided by `tokens`."""
    ratio = torch.exp(logp_BT - old_logp_BT)
    advantage = advantage_B[:, None]
    surrogate = torch.min(ratio * advantage, ratio.clamp(1 - low, 1 + high) * advantage)
    total = mask_BT.sum().clamp(min=1) if tokens is None else tokens
    return -(surrogate * mask_BT).sum() / total
