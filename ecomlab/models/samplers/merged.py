"""LoRA weights for vLLM and for our sampler on a GPU: adapters added to copies of the base's tensors, rounded so that
small updates count.

TRL merges adapters into the bfloat16 base, sends it and subtracts them again. An update smaller than half a unit in an
entry's last place is then rounded away, which is most of it for many steps, and the subtraction leaves the base changed
a little more every time. Here the base is only read, and a sum is rounded up or down with the probability that makes
its mean exact. An entry draws once and for all: the same adapters give the same weights, and none give the base's.
"""

from collections.abc import Iterator
from copy import deepcopy
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.nn import Parameter

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
                down, up = (_whole(factor, value.device) for factor in factors)
                value = _added(layer, value, down, up, plain, dtype)
            yield plain.replace(BASE, ""), value.to(dtype)


def plain_copy(model: Any) -> Any:
    """Copy a PEFT model without its adapters. Adapted layers get weights of their own, which `merge` sets; all other
    tensors are the model's."""
    base = model.get_base_model()
    plain = deepcopy(base, {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())})
    for name in _adapted(base):
        layer = plain.get_submodule(name).base_layer
        layer.weight = Parameter(torch.empty_like(layer.weight), requires_grad=False)
        plain.set_submodule(name, layer)
    plain.__dict__.pop("forward", None)  # TRL's is bound to the copy: a cycle that would keep it in memory
    return plain


@torch.no_grad()
def merge(model: Any, plain: Any) -> None:
    """Set the weights of a `plain_copy`, in place, to the model's current ones with the adapters added."""
    for name, layer in _adapted(model.get_base_model()).items():
        down, up = (factor[_adapter(layer)].weight for factor in (layer.lora_A, layer.lora_B))
        value, weight = layer.base_layer.weight, plain.get_submodule(name).weight
        weight.copy_(_added(layer, value, down, up, f"{name}{BASE}.weight", weight.dtype))


def _adapted(base: Any) -> dict[str, Any]:
    return {name: layer for name, layer in base.named_modules() if hasattr(layer, "lora_A")}


def _added(layer: Any, weight: Tensor, down: Tensor, up: Tensor, name: str, dtype: torch.dtype) -> Tensor:
    """Add a layer's adapter to its weight; rounded if it is to be bfloat16, otherwise in float32."""
    value = weight.float() + layer.scaling[_adapter(layer)] * (up.float() @ down.float())
    return rounded(value, name) if dtype == torch.bfloat16 else value


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
