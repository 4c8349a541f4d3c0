"""Turns of many conversations at once by `generate` of transformers, which every model has with all its peculiarities
(soft caps, scaled logits, caches of its own); only the choice of each token is ours, from each row's own stream."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessor, StoppingCriteria

from ecomlab.models.samplers.cached import drawn

ROUNDING = 0.02
"""Most that rounding moves of a distribution over tokens, bfloat16 included: the share of draws that would differ."""


@dataclass
class Row:
    """One conversation's next turn, which `generate` fills."""

    prompt: Sequence[int]
    room: int
    """Most tokens of this turn, at least 1."""
    stream: np.random.Generator
    """Random numbers, of which each sampled token takes one."""
    said: list[int] = field(default_factory=list)

    def over(self, stop_ids: frozenset[int]) -> bool:
        """Tell whether the turn has ended, or its room is used up."""
        return len(self.said) >= self.room or (bool(self.said) and self.said[-1] in stop_ids)


class _Choice(LogitsProcessor):
    """Chooses the next token of every row that speaks, and leaves `generate` no other."""

    def __init__(
        self, rows: Sequence[Row], stop_ids: frozenset[int], pad_id: int, temperature: float
    ) -> None:
        self.rows, self.stop_ids, self.pad_id, self.temperature = rows, stop_ids, pad_id, temperature

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        live = [i for i, row in enumerate(self.rows) if not row.over(self.stop_ids)]
        logp = torch.log_softmax(scores[live] / (self.temperature or 1.0), dim=-1)
        if torch.isnan(logp).any():
            raise FloatingPointError("the model's logits are NaN: its numbers overflow; try another dtype")
        uniforms = [self.rows[i].stream.random() for i in live] if self.temperature else []
        chosen = drawn(logp, uniforms) if self.temperature else logp.argmax(dim=-1)
        tokens = torch.full((len(self.rows),), self.pad_id, device=scores.device)
        tokens[live] = chosen
        for i, token in zip(live, chosen.tolist(), strict=True):
            self.rows[i].said.append(token)
        return torch.full_like(scores, -torch.inf).scatter_(1, tokens[:, None], 0.0)


class _Over(StoppingCriteria):
    """Ends every row by itself."""

    def __init__(self, rows: Sequence[Row], stop_ids: frozenset[int]) -> None:
        self.rows, self.stop_ids = rows, stop_ids

    def __call__(self, input_ids: Tensor, scores: Tensor, **_: Any) -> Tensor:
        return torch.tensor([row.over(self.stop_ids) for row in self.rows], device=input_ids.device)


@torch.no_grad()
def generate(
    model: Any, rows: Sequence[Row], stop_ids: frozenset[int], pad_id: int, temperature: float = 1.0
) -> None:
    """Sample a turn of each row into its `said`, or with `temperature` 0 take the likeliest tokens.

    Beyond floating-point rounding a row does not depend on the others: prompts are padded on the left, where they are
    masked (`shows_padding` tells of models that read it all the same). The model's own settings for generation
    (temperature, top_p, penalties) are not used.
    """
    model.generate(
        **_padded(model, [row.prompt for row in rows], pad_id),
        generation_config=_config(max(row.room for row in rows), pad_id),
        logits_processor=[_Choice(rows, stop_ids, pad_id, temperature)],
        stopping_criteria=[_Over(rows, stop_ids)],
    )


@torch.no_grad()
def shows_padding(model: Any, pad_id: int) -> bool:
    """Tell whether a model's next token depends on padding, as RWKV's does: it must play one conversation at a time."""
    short, long = [1, 2, 3], list(range(1, 25))

    def next_token(*prompts: Sequence[int]) -> Tensor:
        said = model.generate(
            **_padded(model, prompts, pad_id),
            generation_config=_config(1, pad_id, output_logits=True, return_dict_in_generate=True),
        )
        return torch.softmax(said.logits[0][0].float(), dim=-1)

    return bool((next_token(short) - next_token(short, long)).abs().sum() / 2 > ROUNDING)


def _padded(model: Any, prompts: Sequence[Sequence[int]], pad_id: int) -> dict[str, Tensor]:
    width = max(map(len, prompts))
    ids = torch.full((len(prompts), width), pad_id)
    mask = torch.zeros(len(prompts), width, dtype=torch.long)
    for i, prompt in enumerate(prompts):
        ids[i, width - len(prompt) :] = torch.tensor(prompt)
        mask[i, width - len(prompt) :] = 1
    return {"input_ids": ids.to(model.device), "attention_mask": mask.to(model.device)}


def _config(most: int, pad_id: int, **more: Any) -> GenerationConfig:
    return GenerationConfig(do_sample=False, max_new_tokens=most, pad_token_id=pad_id, **more)
