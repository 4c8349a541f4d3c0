"""A small Qwen3 folder for tests, and vLLM's interface without vLLM."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import requests
import torch

from ecomlab import ENVIRONMENTS, Episode, Shop, make_task
from ecomlab.episode.play import play
from ecomlab.models.qwen3 import ALSO_TOKENS, PAD, template
from ecomlab.models.qwen_tokenizer import WORDS
from ecomlab.models.renderer import END, START


def small_qwen3(folder: Path, corpus: Iterable[str] = (), seed: int = 0, head_dim: int = 16) -> Path:
    """Write a random-initialised Qwen3 of 0.3M parameters as an ordinary Hugging Face folder; it takes the very path
    that "Qwen/Qwen3-8B" takes.

    Its tokenizer has Qwen3's markers, word cutting and chat template, and byte pairs learned from `corpus`.
    """
    import torch
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    core = Tokenizer(models.BPE())
    words = pre_tokenizers.Split(Regex(WORDS), "isolated")
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [words, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    core.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    core.train_from_iterator(
        [template(), *corpus],
        trainers.BpeTrainer(vocab_size=2000, initial_alphabet=alphabet, show_progress=False),
    )
    core.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in (PAD, START, END)])
    core.add_tokens([AddedToken(text, normalized=False) for text in ALSO_TOKENS])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token=PAD, eos_token=END, clean_up_tokenization_spaces=False
    )
    tokenizer.chat_template = template("qwen3")
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=head_dim,
        max_position_embeddings=8192,
        tie_word_embeddings=False,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen3ForCausalLM(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return Path(folder)


def small(folder: Path, shop: Shop, head_dim: int = 16) -> Path:
    """A small Qwen3 whose byte pairs were learned from a few played episodes."""
    player = ENVIRONMENTS["CART"].reference_player
    corpus = [
        str(message["content"])
        for d in range(4)
        for message in play(player(shop), make_task("CART", d, 1, shop), shop).messages
    ]
    tools = json.dumps(Episode(make_task("CART", 0, 1, shop), shop).tools)  # schemas, most of a prompt
    return small_qwen3(folder, [*corpus, tools, tools], head_dim=head_dim)


def talkative(folder: Path, shop: Shop, head_dim: int = 16) -> Path:
    """A small Qwen3 that babbles a few tokens and ends its turn, as a random one hardly ever does."""
    from transformers import Qwen3ForCausalLM

    small(folder, shop, head_dim)
    model = Qwen3ForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        model.model.embed_tokens.weight += 0.05  # one direction that every position shares ...
        model.lm_head.weight[model.config.eos_token_id] = 0.12  # ... and that speaks for the end
    model.save_pretrained(folder)
    return folder


def lottery() -> None:
    """Let what was said decide by lot whether an episode is correct: a babbling policy earns different rewards."""
    from ecomlab.reward import Score
    from ecomlab.seeding import digest

    def score(self: Episode) -> Score:
        won = int(digest([m["content"] for m in self.messages]), 16) % 2 == 1
        return Score(1.0 if won else -1.0, won, "by lot")

    Episode.score = score  # type: ignore[method-assign]


def move(model: Any, steps: int, lr: float = 1e-5) -> None:
    """Take `steps` of Adam on the adapters, all one way: the largest update that these steps can make."""
    adapters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(adapters, lr=lr)
    for _ in range(steps):
        for parameter in adapters:
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()


def trained(model: Any) -> dict[str, torch.Tensor]:
    """The update of each adapted weight, exactly."""
    return {
        f"{name.removeprefix('base_model.model.')}.weight": layer.get_delta_weight("default")
        .detach()
        .double()
        for name, layer in model.named_modules()
        if hasattr(layer, "lora_A") and hasattr(layer, "get_delta_weight")
    }


def reached(
    before: dict[str, torch.Tensor], after: dict[str, torch.Tensor], update: dict[str, torch.Tensor]
) -> float:
    """The share of the update that arrived: what arrived, projected on it."""
    moved = {name: after[name].double() - before[name].double() for name in update}
    return float(
        sum((moved[n] * update[n]).sum() for n in update) / sum((u * u).sum() for u in update.values())
    )


class FakeVllm:
    """TRL's `VLLMGeneration` as far as a sampler sees it, on a real small model, one prompt at a time."""

    def __init__(self, model: Any, mode: str = "server", twist: Callable[[Any], Any] = lambda answer: answer):
        self.model, self.mode, self.twist = model, mode, twist
        self.server_base_url = "http://fake:8000"
        self.generation_kwargs: dict[str, Any] = {}
        self.base_url = self.server_base_url
        self.vllm_client = self.llm = self
        self.session = requests.Session()
        self.random = torch.Generator().manual_seed(0)
        self.synced = 0
        self.asked: list[dict[str, Any]] = []
        self.enable_sleep_mode = False
        self.resting: set[str] = set()
        """What it has given back, by vLLM's tags."""
        self.slept = 0

    def sleep(self, level: int) -> None:
        assert level == 2 and not self.resting
        self.resting, self.slept = {"weights", "kv_cache"}, self.slept + 1

    def wake_up(self, tags: list[str]) -> None:
        assert self.resting >= set(tags)
        self.resting -= set(tags)

    def generate(self, prompts: Sequence[list[int]], **given: Any) -> Any:
        assert not self.resting and not self.enable_sleep_mode, "it would sleep after every turn"
        if self.mode == "server":
            assert given["n"] == 1 and given["top_p"] == 1.0 and given["logprobs"] == 0
            given |= given.pop("generation_kwargs")
        else:
            assert given == {"images": None, "num_generations": 1}
            given = dict(self.generation_kwargs)
        self.asked.append(given)
        assert given["temperature"] in (0.0, 1.0)
        answers = [
            self._one(prompt, given["max_tokens"], given["stop_token_ids"], given["temperature"])
            for prompt in prompts
        ]
        ids, logprobs = [a[0] for a in answers], [a[1] for a in answers]
        if self.mode == "server":
            return self.twist({"completion_ids": ids, "logprobs": logprobs})
        return self.twist((list(prompts), ids, logprobs, None))

    @torch.no_grad()
    def _one(
        self, prompt: list[int], most: int, stops: Sequence[int], temperature: float
    ) -> tuple[list[int], list[list[float]]]:
        ids: list[int] = []
        logprobs: list[list[float]] = []
        cache, new = None, prompt
        while len(ids) < most and not (ids and ids[-1] in stops):
            output = self.model(torch.tensor([new]), past_key_values=cache, use_cache=True)
            logp = torch.log_softmax(output.logits[0, -1].float(), dim=-1)
            drawn = logp.argmax() if not temperature else logp.exp().multinomial(1, generator=self.random)
            cache, new = output.past_key_values, [int(drawn)]
            ids += new
            logprobs.append([float(logp[new[0]])])
        return ids, logprobs

    def reset_prefix_cache(self) -> bool:
        return True

    def sync_weights(self) -> None:
        assert "weights" not in self.resting
        self.synced += 1
