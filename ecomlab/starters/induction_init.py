"""Induction heads by construction: a fresh laptop model predicts what followed the last occurrence of a token.

Every environment asks a policy to find words again and copy what follows. Models of Qwen3-8B's size learn that in
pre-training (Olsson et al. 2022, "In-context Learning and Induction Heads"); half a million parameters do not learn it
within the tokens that a laptop has time for. Nothing is frozen: training continues as from any other weights.
"""

import math
from typing import Any

import torch
from torch import Tensor

ANGLES = (0.5, 0.25, 0.15, 0.1)
"""Shares of the fastest rotary angles in looking one token back; together they peak at that distance alone."""
SLOW = 0.01
"""Maximum radians per token of the rotary angles that compare contents: 100 tokens hardly weaken a match."""
SHARPNESS = 2.0
"""Gain of queries and keys."""
LOUDNESS = 4.0
"""Scale of the noted token, in embeddings, so that the output of other heads does not drown it."""


@torch.no_grad()
def give_induction(model: Any, seed: int = 0) -> None:
    """Set the first heads of layers 0 and 1 of a freshly initialised Qwen3ForCausalLM in place.

    Layer 0's head looks one token back and notes that token in a subspace of its own (`noted`). Layer 1's head looks
    for the position whose note equals the current token and adds the token there to its output: with tied embeddings,
    that raises the logit of the next token. To look back without a bias, which Qwen3's heads lack, all embeddings get a
    shared part, which adds the same number to every logit. Raises ValueError below two layers or a width of twice the
    heads' size.
    """
    generator = torch.Generator().manual_seed(seed)
    embedding = model.get_input_embeddings().weight
    scale, width = embedding.std().item(), embedding.shape[1]
    size = model.config.head_dim
    if width <= 2 * size or len(model.model.layers) < 2:
        raise ValueError(f"induction needs two layers and a width above {2 * size}, twice the heads' size")
    first, second = (layer.self_attn for layer in model.model.layers[:2])
    directions = torch.linalg.qr(torch.randn(width, width, generator=generator))[0]
    shared, own, noted = directions[:, 0], directions[:, 1 : size + 1], directions[:, -size:]
    embedding += scale * math.sqrt(width) * shared

    query, key = _one_back(model.model.rotary_emb.inv_freq)
    first.q_proj.weight[:size] = torch.outer(query, shared)
    first.k_proj.weight[:size] = torch.outer(key, shared)
    first.v_proj.weight[:size] = own.T
    first.o_proj.weight[:, :size] = LOUDNESS * scale * noted

    compared = _slow(model.model.rotary_emb.inv_freq, generator)
    second.q_proj.weight[:size] = compared @ own.T
    second.k_proj.weight[:size] = compared @ noted.T
    copied = torch.linalg.qr(torch.randn(width, size, generator=generator))[0]
    second.v_proj.weight[:size] = copied.T
    second.o_proj.weight[:, :size] = copied / 2
    for norm in (first.q_norm, first.k_norm, second.q_norm, second.k_norm):
        norm.weight.fill_(SHARPNESS)


def _one_back(angles: Tensor) -> tuple[Tensor, Tensor]:
    """Make a query and a key, each (2 * angles,), whose product after rotation is largest one token back."""
    query, key = torch.zeros(2, len(angles)), torch.zeros(2, len(angles))
    fast = angles[: len(ANGLES)]
    share = torch.tensor(ANGLES).sqrt()
    query[0, : len(fast)] = share
    key[0, : len(fast)], key[1, : len(fast)] = share * fast.cos(), share * fast.sin()
    return query.flatten(), key.flatten()


def _slow(angles: Tensor, generator: torch.Generator) -> Tensor:
    """Draw a (size, size) map of a head's entries onto those that rotate slowly."""
    slow = (angles < SLOW).nonzero().flatten()
    kept = torch.cat([slow, slow + len(angles)])
    size = 2 * len(angles)
    rows = torch.linalg.qr(torch.randn(size, size, generator=generator))[0][: len(kept)]
    onto = torch.zeros(size, size)
    onto[kept] = rows
    return onto
