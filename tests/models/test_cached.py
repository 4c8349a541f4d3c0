"""The own sampler's cache: it never exceeds its limit and gives rows back; no answer changes."""

from typing import Any

import pytest
import torch
import transformers

from ecomlab import Shop, make_task
from ecomlab.models.batch import play_batch
from ecomlab.models.load import load_policy
from ecomlab.models.policy import Policy
from ecomlab.models.samplers import cached
from ecomlab.models.samplers.cached import CachedSampler, Limits, is_sampled_exactly
from ecomlab.seeding import rng

TASKS = 8


@pytest.fixture(scope="module")
def novice(shop: Shop) -> Policy:
    """In float64: in another batch a row is rounded otherwise, and a tie might flip."""
    policy = load_policy("novice", shop, ["CART"])
    policy.model.double()
    return policy


def played(policy: Policy, shop: Shop, sampler: CachedSampler) -> list[Any]:
    """What is sampled in `TASKS` episodes."""
    tasks = [make_task("CART", i % 4, 900 + i, shop) for i in range(TASKS)]
    streams = [rng("cached", i) for i in range(TASKS)]
    rollouts = play_batch(tasks, streams, shop, sampler, policy.renderer)
    return [(r.prompt_ids, r.completion_ids, r.mask, r.end, r.score.correct) for r in rollouts]


def watched(sampler: CachedSampler, patch: pytest.MonkeyPatch) -> list[dict[str, int]]:
    """The cache's size at every reading, how many rows are alive, and how wide it would be with padding at its end."""
    seen: list[dict[str, int]] = []
    real = sampler._read

    def read(rows: Any, chunks: Any) -> Any:
        padded = int(sampler._length[: len(rows)].max()) + max(map(len, chunks))
        logits = real(rows, chunks)
        cache = sampler._cache
        seen.append(
            {
                "capacity": cache.capacity,
                "slots": cache.slots,
                "bytes": cache.bytes,
                "alive": len(sampler._row),
                "padded": padded,
            }
        )
        return logits

    patch.setattr(sampler, "_read", read)
    return seen


def test_the_cache_never_exceeds_its_limit(
    novice: Policy, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the longest row and the longest tool result together are beyond the limit, padding finds another place."""
    monkeypatch.setattr(cached, "FIRST", 64)
    for context in (120, 110, 100, 90, 80):  # until something has to be cut off
        sampler = novice.sampler(Limits(turn=60, episode=context, context=context))
        seen = watched(sampler, monkeypatch)
        together = played(novice, shop, sampler)
        assert max(s["capacity"] for s in seen) <= context
        if max(s["padded"] for s in seen) > context:
            break
    assert max(s["padded"] for s in seen) > max(s["capacity"] for s in seen) == context
    assert {end for *_, end, _ in together} >= {"truncated"}
    tasks = [make_task("CART", i % 4, 900 + i, shop) for i in range(TASKS)]
    for i, task in enumerate(tasks):
        (alone,) = play_batch(
            [task], [rng("cached", i)], shop, novice.sampler(sampler.limits), novice.renderer
        )
        assert (alone.prompt_ids, alone.completion_ids, alone.mask) == together[i][:3]


def test_a_large_cache_gives_rows_back(novice: Policy, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(turn=60, episode=200)
    whole = played(novice, shop, novice.sampler(limits))
    monkeypatch.setattr(cached, "SMALL", 0)
    monkeypatch.setattr(cached, "FIRST", 64)
    sampler = novice.sampler(limits)
    seen = watched(sampler, monkeypatch)
    assert played(novice, shop, sampler) == whole
    assert seen[0]["slots"] == TASKS and seen[-1]["slots"] <= 2
    assert all(s["slots"] < 2 * s["alive"] or s["slots"] == 1 for s in seen)
    assert seen[-1]["bytes"] < max(s["bytes"] for s in seen) < TASKS * seen[-1]["bytes"] / seen[-1]["slots"]


SIZES = {
    "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 120,
    "num_key_value_heads": 1, "max_position_embeddings": 512, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
EXACT: dict[str, tuple[dict[str, Any], bool]] = {
    "Llama": ({}, True), "Qwen2": ({}, True), "Qwen3": ({"head_dim": 16}, True), "SmolLM3": ({}, True),
    "Granite": ({"logits_scaling": 8.0}, False), "Gemma2": ({"head_dim": 16, "final_logit_softcapping": 2.0}, False),
    "Mistral": ({"sliding_window": 16}, False), "Lfm2": ({"full_attn_idxs": [1]}, False),
    "Mamba": ({"state_size": 4}, False),
}  # fmt: skip
"""Further settings of an architecture, and whether our sampler samples it exactly: not where logits are scaled or
capped, attention has a window, or layers are recurrent."""


@pytest.mark.parametrize("name", EXACT)
def test_a_model_is_sampled_exactly_or_known_not_to_be(name: str) -> None:
    """Log-probabilities of a conversation in turns beside others are those that the model has of the whole text."""
    more, exact = EXACT[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = getattr(transformers, f"{name}Config")(**{**SIZES, **more})
        model = transformers.AutoModelForCausalLM.from_config(config).eval().float()
    with torch.no_grad():
        for parameter in model.parameters():  # otherwise nearly every token is as likely as every other
            parameter.mul_(3 if parameter.dim() > 1 else 1)
    assert is_sampled_exactly(model, context=512) == exact
    if not exact:
        return
    sampler = CachedSampler(model, (), Limits(turn=8, episode=16, context=512))
    sampler.start([rng(name, i) for i in range(3)])
    texts: list[list[int]] = [[], [], []]
    for prompts in ([[5, 6, 7], list(range(3, 40)), [9, 10] * 6], [[11] * 20, [12], [13, 14]]):
        for text, prompt, said in zip(texts, prompts, sampler.turn([0, 1, 2], prompts), strict=True):
            assert said is not None
            text += prompt + said.ids
            with torch.no_grad():
                logp = torch.log_softmax(model(torch.tensor([text])).logits[0, -9:-1].float(), dim=-1)
            assert logp.gather(1, torch.tensor(said.ids)[:, None])[:, 0].tolist() == pytest.approx(
                said.logprobs, abs=1e-3
            )
