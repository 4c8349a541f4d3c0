"""LoRA weights for vLLM: adapters added to copies of the base's tensors, rounded so that small updates count.

TRL merges adapters into the bfloat16 base, sends it and subtracts them again. An update smaller than half a unit in an
entry's last place is then rounded away, which is most of it for many steps, and the subtraction leaves the base changed
a little more every time. Here the base is only read, and a sum is rounded up or down with the probability that makes
its mean exact. An entry draws once and for all: the same adapters give the same weights, and none give the base's.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from ecomlab.seeding import rng

PEFT = "base_model.model."
"""Prefix of the names of a PEFT model's parameters."""
BASE = ".base_layer"
"""Part of the names of parameters in a layer with an adapter."""


def send_merged(generation: Any, dtype: torch.dtype) -> None:
    """Make a `VLLMGeneration` of TRL that has a PEFT model send the weights of `merged`, in `dtype`."""
    generation._iter_named_params = partial(merged, generation, dtype)


@torch.no_grad()
def merged(generation: Any, dtype: torch.dtype) -> Iterator[tuple[str, Tensor]]:
    """Yield the names of the plain model's parameters and their values with the adapters added, one at a time.

    Takes part in the collectives of FSDP2 and ZeRO-3, as TRL's own walk does: every process must finish it.
    """
    model = generation.model
    for name, parameter in model.named_parameters():
        if model.prefix in name:
            continue
        plain = name.removeprefix(PEFT)
        inner, adapted, _ = name.partition(f"{BASE}.weight")
        layer = model.get_submodule(inner) if adapted else None
        factors = [] if layer is None else [f[_adapter(layer)].weight for f in (layer.lora_A, layer.lora_B)]
        with generation._dist.gather_params([parameter, *factors]):
            value = _whole(parameter, generation.accelerator.device)
            if layer is not None:
                down, up = (_whole(factor, value.device).float() for factor in factors)
                value = value.float() + layer.scaling[_adapter(layer)] * (up @ down)
                value = rounded(value, plain) if dtype == torch.bfloat16 else value
            yield plain.replace(BASE, ""), value.to(dtype)


def rounded(value: Tensor, name: str) -> Tensor:
    """Round float32 to bfloat16, up with a probability equal to the discarded fraction; `name` names the draws."""
    seed = int(rng("rounding", name).integers(2**31))
    draws = torch.Generator(value.device).manual_seed(seed)
    cut = torch.randint(0, 2**16, value.shape, dtype=torch.int32, device=value.device, generator=draws)
    bits = value.contiguous().view(torch.int32) + cut
    return (bits & -(2**16)).view(torch.float32).to(torch.bfloat16)


def _adapter(layer: Any) -> str:
    (name,) = layer.active_adapters
    return str(name)


def _whole(parameter: Tensor, device: torch.device) -> Tensor:
    """Gather a parameter that FSDP2 has sharded; its collectives want it on the `device`."""
    there = parameter.to(device) if isinstance(parameter, DTensor) else parameter
    return there.full_tensor() if isinstance(there, DTensor) else there
