"""The GPU's sampler, its steps uncaptured on a CPU: `CachedSampler`'s tokens, at addresses that a graph could keep."""

from typing import Any

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from ecomlab.models.samplers import graphed
from ecomlab.models.samplers.cached import CachedSampler, Limits
from ecomlab.models.samplers.graphed import GraphedSampler
from ecomlab.seeding import rng

ROWS, TURNS, VOCABULARY = 13, 5, 300
LIMITS, STOPS = Limits(turn=60, episode=200, context=300), range(7, 13)


def made(rank: int) -> Any:
    """A model of random weights whose distributions are not flat, with adapters that matter if `rank` is not 0."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = Qwen3Config(
            vocab_size=VOCABULARY, hidden_size=64, intermediate_size=128, num_hidden_layers=3, head_dim=16,
            num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=False,
        )  # fmt: skip
        model = Qwen3ForCausalLM(config).eval()
        with torch.no_grad():
            model.lm_head.weight.mul_(4)
        if not rank:
            return model
        from peft import LoraConfig, get_peft_model

        lora = LoraConfig(r=rank, target_modules="all-linear", task_type="CAUSAL_LM", init_lora_weights=False)
        return get_peft_model(model, lora).eval()


def played(sampler: CachedSampler) -> list[list[Any]]:
    """Play `ROWS` conversations with replies of uneven lengths until all have ended; return what each sampled."""
    sampler.start([rng("graphed", row) for row in range(ROWS)])
    heard = rng("heard").integers(20, VOCABULARY, (TURNS, ROWS, 40)).tolist()
    said: list[list[Any]] = [[] for _ in range(ROWS)]
    pending = dict(enumerate(heard[0]))
    while pending:
        for row, answer in zip(
            list(pending), sampler.turn(list(pending), list(pending.values())), strict=True
        ):
            pending[row] = []
            if answer is not None:
                said[row].append(answer)
                if answer.truncated or len(said[row]) == TURNS:
                    del pending[row]
                else:
                    pending[row] = heard[len(said[row])][row][: 2 + 3 * row]
    return said


class Fixed(graphed._Step):
    """A step that, as a graph would, reads the addresses that it was made with."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.addresses = self.now()

    def now(self) -> list[int]:
        return [t.data_ptr() for t in (*sum(self.cache.layers, ()), *self.model.parameters())]

    def run(self) -> torch.Tensor:
        assert self.now() == self.addresses
        return super().run()


@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("rank", [0, 4])
def test_steps_at_fixed_addresses_sample_the_same_tokens(
    rank: int, greedy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With stragglers, stops, all three limits and a growing cache; then anew, after updates of the weights."""
    monkeypatch.setattr(graphed, "WIDTH", 16)
    monkeypatch.setattr(graphed, "FIRST", 64)
    monkeypatch.setattr(graphed, "SMALL", 0 if greedy else 2**28)
    monkeypatch.setattr(graphed, "_Step", Fixed)
    model = made(rank)
    reference = CachedSampler(model, STOPS, LIMITS, greedy=greedy)
    sampler = GraphedSampler(model, STOPS, LIMITS, greedy=greedy)
    graphs: list[dict[tuple[int, int], Any]] = []
    for _ in range(3):
        for one, other in zip(played(reference), played(sampler), strict=True):
            assert [s.ids for s in one] == [s.ids for s in other]
            assert [s.truncated for s in one] == [s.truncated for s in other]
            logprobs = [p for s in one for p in s.logprobs]
            assert [p for s in other for p in s.logprobs] == pytest.approx(logprobs, abs=2e-5)
        graphs.append(sampler._steps)
        with torch.no_grad():
            for parameter in (p for p in model.parameters() if p.requires_grad):
                parameter.add_(0.05 * parameter.std())
    assert sampler._cache.capacity > 64
    assert {rows for rows, _ in graphs[0]} <= {1, 2, 4, 8, ROWS}
    assert all(width % 16 == 0 or width == 300 for _, width in graphs[0])
    assert greedy or graphs[1] is graphs[2], "a cache that has grown stays, and weights change in place"


def test_a_finished_row_beside_others_has_room_behind_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest row stops where the cache ends; in a graph for four rows it still writes while three go on."""
    model, prompts = made(0), [list(range(20, 62)), [21], [22], [23]]
    streams, limits = [rng("end", row) for row in range(4)], Limits(turn=12)
    sampler = CachedSampler(model, (), limits, greedy=True)
    sampler.start(streams)
    third = sampler.turn(range(4), prompts)[0].ids[2]  # type: ignore[union-attr]
    monkeypatch.setattr(graphed, "WIDTH", 1)
    monkeypatch.setattr(graphed, "FIRST", len(prompts[0]) + 2)
    answers = []
    for kind in (CachedSampler, GraphedSampler):
        sampler = kind(model, [third], limits, greedy=True)
        sampler.start(streams)
        answers.append([s.ids for s in sampler.turn(range(4), prompts) if s is not None])
    assert answers[0] == answers[1]
    assert [len(ids) for ids in answers[0]] == [3, 12, 12, 12]


def test_widths_are_few_and_waste_little() -> None:
    sampler = GraphedSampler(made(0), (), Limits(context=10_000))
    widths = [sampler._width(columns) for columns in range(1, 10_001)]
    assert len(set(widths)) <= 8 * 5 and widths[-1] == 10_000
    assert all(need <= width <= max(need + 127, 1.125 * need) for need, width in enumerate(widths, 1))
