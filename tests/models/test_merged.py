"""vLLM gets the weights that LoRA trained: small updates count in the mean, and the base stays as it was."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from qwen3_helper import move, reached, small_qwen3, trained
from trl.distributed import DistributedBackend
from trl.generation.vllm_generation import VLLMGeneration

from ecomlab.models.qwen3 import load_chat_policy
from ecomlab.models.samplers.merged import send_merged


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_qwen3(tmp_path_factory.mktemp("qwen3") / "small")


def generation_of(model: Any) -> Any:
    """TRL's `VLLMGeneration` around a model, without an engine."""
    from accelerate import Accelerator

    made = VLLMGeneration.__new__(VLLMGeneration)
    made.model, made.accelerator = model, SimpleNamespace(device=torch.device("cpu"))
    made._dist = DistributedBackend(Accelerator(cpu=True))
    return made


def taken(generation: Any) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in generation._iter_named_params()}


def test_two_small_steps_reach_vllm_in_bfloat16_and_by_trls_own_merge_they_do_not(folder: Path) -> None:
    model = load_chat_policy(folder, dtype="bfloat16", lora_rank=8).model
    base = {n: p.detach().clone() for n, p in model.named_parameters() if "lora_" not in n}
    ours, theirs = generation_of(model), generation_of(model)
    send_merged(ours, torch.bfloat16)
    before = taken(ours)
    move(model, 2)
    assert 0.9 < reached(before, taken(ours), trained(model)) < 1.1
    assert all(torch.equal(p, base[n]) for n, p in model.named_parameters() if n in base)
    assert reached(before, taken(theirs), trained(model)) < 0.5, "rounding to the nearest loses it"


def test_the_base_is_what_it_was_after_300_rounds(folder: Path) -> None:
    model = load_chat_policy(folder, dtype="bfloat16", lora_rank=8).model
    base = {n: p.detach().clone() for n, p in model.named_parameters() if "lora_" not in n}
    generation = generation_of(model)
    send_merged(generation, torch.bfloat16)
    for _ in range(300):
        move(model, 1, lr=1e-3)
        for _ in generation._iter_named_params():
            pass
    assert all(torch.equal(p, base[n]) for n, p in model.named_parameters() if n in base)


def test_without_an_update_vllm_gets_the_base_and_the_same_adapters_give_the_same_weights(
    folder: Path,
) -> None:
    model = load_chat_policy(folder, dtype="bfloat16", lora_rank=8).model
    plain = load_chat_policy(folder, dtype="bfloat16").model
    generation = generation_of(model)
    send_merged(generation, torch.bfloat16)
    sent = taken(generation)
    assert sent.keys() == dict(plain.named_parameters()).keys()
    assert all(torch.equal(sent[name], value) for name, value in plain.named_parameters())
    move(model, 1, lr=1e-2)
    one, two = taken(generation), taken(generation)
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not torch.equal(
        one["model.layers.0.mlp.up_proj.weight"], sent["model.layers.0.mlp.up_proj.weight"]
    )


def test_in_float32_vllm_gets_the_policy_that_the_trainer_has(folder: Path) -> None:
    policy = load_chat_policy(folder, lora_rank=8)
    generation = generation_of(policy.model)
    send_merged(generation, torch.float32)
    move(policy.model, 2, lr=1e-2)
    copy = load_chat_policy(folder).model
    with torch.no_grad():
        for name, value in taken(generation).items():
            copy.get_parameter(name).copy_(value)
        ids = torch.arange(20, 60)[None]
        assert torch.allclose(copy(ids).logits, policy.model(ids).logits, atol=1e-5)
