"""The kernel of tiny policies against the torch sampler: the same tokens and probabilities, recorded with the run."""

import copy
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from ecomlab.models.samplers import tiny
from ecomlab.models.samplers.cached import CachedSampler, Limits, Sampled
from ecomlab.models.samplers.tiny import CHOICE, TinySampler, plays, sampler_of
from ecomlab.seeding import rng
from ecomlab.training.config import ConfigError
from ecomlab.training.run import _same_sampler

SIZES = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 16,
    "num_key_value_heads": 2, "vocab_size": 300, "max_position_embeddings": 512, "pad_token_id": 0,
    "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
LIMITS = Limits(turn=20, episode=60, context=400)


@pytest.fixture(scope="module")
def model() -> transformers.PreTrainedModel:
    """A Qwen3 with shared key heads whose next tokens are far from uniform."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**SIZES)).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(8 if parameter.dim() > 1 else 1)
    return made


def asked(row: int, length: int) -> list[int]:
    """Tokens that a row is given before a turn."""
    return [3 + (row * 7 + j) % 290 for j in range(1 + row * length // 9)]


def conversation(sampler: CachedSampler, rows: range = range(9)) -> dict[int, list[Sampled]]:
    """Two turns of each row, after inputs of 1 to 150 tokens; rows end at different times."""
    sampler.start([rng("tiny", row) for row in rows])
    said: dict[int, list[Sampled]] = {row: [] for row in rows}
    for length in (150, 7):
        inputs = {i: asked(row, length) for i, row in enumerate(rows)}
        while inputs:
            answers = sampler.turn(list(inputs), list(inputs.values()))
            for i, answer in zip(inputs, answers, strict=True):
                if answer is not None:
                    said[rows[i]].append(answer)
            inputs = {i: [] for i, answer in zip(inputs, answers, strict=True) if answer is None}
    return said


@pytest.mark.parametrize("greedy", [False, True])
def test_the_kernel_samples_torchs_tokens(model: transformers.PreTrainedModel, greedy: bool) -> None:
    theirs, ours = (
        conversation(kind(model, (5, 6, 7), LIMITS, greedy=greedy)) for kind in (CachedSampler, TinySampler)
    )
    for row, turns in theirs.items():
        for a, b in zip(turns, ours[row], strict=True):
            assert (a.ids, a.truncated) == (b.ids, b.truncated)
            assert a.logprobs == pytest.approx(b.logprobs, abs=5e-5)


def test_the_kernel_draws_by_the_probabilities_of_exact_numbers(model: transformers.PreTrainedModel) -> None:
    """Where a draw falls within rounding of the border between two tokens, either is right."""
    exact = copy.deepcopy(model).double()
    for row, turns in conversation(TinySampler(model, (5, 6, 7), LIMITS, temperature=0.7)).items():
        ids, random = list[int](), rng("tiny", row)
        for length, said in zip((150, 7), turns, strict=False):
            ids += [*asked(row, length), *said.ids]
            with torch.no_grad():
                logits = exact(torch.tensor([ids])).logits[0, -len(said.ids) - 1 : -1]
            logp = torch.log_softmax(logits / 0.7, dim=-1)
            up_to = logp.exp().cumsum(dim=-1)
            for at, token in enumerate(said.ids):
                below = up_to[at, token - 1].item() if token else 0.0
                assert below - 1e-5 <= random.random() <= up_to[at, token].item() + 1e-5
                assert said.logprobs[at] == pytest.approx(logp[at, token].item(), abs=5e-5)


def test_a_row_of_the_kernel_has_the_same_bits_in_any_batch(model: transformers.PreTrainedModel) -> None:
    together = conversation(TinySampler(model, (5,), LIMITS))
    assert conversation(TinySampler(model, (5,), LIMITS), range(4, 5))[4] == together[4]


def test_pages_of_rows_that_ended_are_used_again(model: transformers.PreTrainedModel) -> None:
    sampler = TinySampler(model, (5,), LIMITS)
    first, pool = conversation(sampler), sampler._cache
    used = [page for row in range(9) for page in pool.pages[row, : pool.held[row]].tolist()]
    assert len(set(used)) == len(used)  # no two rows share a page
    size = len(pool.keys)
    sampler.turn([3], [[8]])
    assert pool.held.nonzero()[0].tolist() == [3]
    assert conversation(sampler) == first and len(pool.keys) == size


def test_two_threads_sample_what_each_samples_alone(model: transformers.PreTrainedModel) -> None:
    alone = conversation(TinySampler(model, (5,), LIMITS))
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: conversation(TinySampler(model, (5,), LIMITS)), range(4)))
    assert found == [alone] * 4


def test_logits_that_are_nan_raise(model: transformers.PreTrainedModel) -> None:
    sampler = TinySampler(model, (), LIMITS)
    sampler.start([rng("nan")])
    norm = np.full_like(sampler._weights.norm, np.nan)  # a copy: the weights are views of the model's
    sampler._weights = sampler._weights._replace(norm=norm)
    with pytest.raises(FloatingPointError, match="NaN"):
        sampler.turn([0], [[1, 2, 3]])


def test_torch_samples_what_the_kernel_does_not_play(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {**SIZES, "num_hidden_layers": 1}
    qwen3 = transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**small))
    llama = transformers.LlamaForCausalLM(transformers.LlamaConfig(**small))
    biased = transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**small, attention_bias=True))
    assert plays(qwen3) and sampler_of(qwen3, ()).name == TinySampler.name
    assert not plays(llama) and not plays(biased)
    monkeypatch.setenv(CHOICE, "torch")
    assert sampler_of(qwen3, ()).name == "torch"
    monkeypatch.delenv(CHOICE)
    assert not plays(qwen3.to(torch.bfloat16)) and sampler_of(qwen3, ()).name == "torch"


def test_without_numba_torch_samples_and_the_log_says_so_once(
    model: transformers.PreTrainedModel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tiny, "is_compiled_here", cache(tiny.is_compiled_here.__wrapped__))
    monkeypatch.setitem(sys.modules, "numba", None)
    assert [sampler_of(model, ()).name for _ in range(2)] == ["torch", "torch"]
    (record,) = caplog.records
    assert "numba" in record.getMessage()


@pytest.mark.parametrize(("recorded", "now"), [('"sampler": "tiny-1"', "torch"), ('"steps": 3', "tiny-1")])
def test_a_run_does_not_resume_with_another_sampler(tmp_path: Path, recorded: str, now: str) -> None:
    (tmp_path / "config.json").write_text(f"{{{recorded}}}")
    with pytest.raises(ConfigError, match="sampler"):
        _same_sampler(tmp_path, now)
