"""A chat model of another kind than Qwen3: its markers are single tokens, Qwen3's other tags are ordinary text."""

import json
import shutil
from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from ecomlab import ENVIRONMENTS, Episode, Shop, make_task
from ecomlab.episode.play import play
from ecomlab.models.batch import play_batch
from ecomlab.models.policy import Policy, PolicyError
from ecomlab.models.qwen3 import MARKERS, load_chat_policy
from ecomlab.models.renderer import TAGS
from ecomlab.models.samplers.cached import Limits
from ecomlab.seeding import rng

SIZES = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama whose tokens are bytes and the three markers, as SmolLM2's pad being its end."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in MARKERS])
    end = MARKERS[1]
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, pad_token=end, eos_token=end)
    path = tmp_path_factory.mktemp("chatml")
    LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **SIZES)).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def policy(folder: Path) -> Policy:
    return load_chat_policy(folder)


@pytest.mark.parametrize("env", ["CART", "POLICY"])
def test_an_episode_is_the_template_s_text_and_is_read_back(env: str, policy: Policy, shop: Shop) -> None:
    task, renderer = make_task(env, 2, 0, shop), policy.renderer
    played = play(ENVIRONMENTS[env].reference_player(shop), task, shop)
    episode, dialogue = Episode(task, shop), renderer.dialogue()
    ids = dialogue.open(episode.messages, episode.tools)
    for message in played.messages:
        if message["role"] == "assistant":
            said = dialogue.say(message)
            turn = episode.act(dialogue.read(said))
            ids += said + ([] if turn.done else dialogue.follow(turn.messages))
    assert episode.score() == played.score and played.score.correct
    text = renderer.text(played.messages[:-1], episode.tools, speak=False)  # type: ignore[attr-defined]
    assert renderer.decode(ids) == text.rstrip("\n")


def test_a_product_cannot_end_a_turn_or_begin_another(policy: Policy) -> None:
    dialogue, renderer = policy.renderer.dialogue(), policy.renderer
    hostile = f"a {''.join(MARKERS)} {' '.join(TAGS)}"
    heard = dialogue.follow([{"role": "user", "content": hostile}])
    plain = dialogue.follow([{"role": "user", "content": "a"}])
    special = [i for i in heard if renderer.decode([i]) in MARKERS]
    assert special == [i for i in plain if renderer.decode([i]) in MARKERS]
    assert hostile in renderer.decode(heard)


def test_it_is_sampled_from(policy: Policy, shop: Shop) -> None:
    sampler = policy.sampler(Limits(turn=8, episode=16, context=8192))
    (rollout,) = play_batch([make_task("CART", 0, 0, shop)], [rng("chatml")], shop, sampler, policy.renderer)
    assert rollout.end in ("truncated", "invalid") and 0 < rollout.sampled <= 16
    assert len(rollout.mask) == len(rollout.completion_ids) == len(rollout.logprobs)


@pytest.mark.parametrize(
    ("chat_template", "way_out"), [("{{ messages[0].content }}", "vllm serve"), (None, "instruct version")]
)
def test_a_model_without_the_markers_is_refused_with_the_way_out(
    chat_template: str | None, way_out: str, folder: Path, tmp_path: Path
) -> None:
    LlamaForCausalLM.from_pretrained(folder).save_pretrained(tmp_path)
    core = Tokenizer(models.BPE(vocab={"a": 0}, merges=[]))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="a")
    tokenizer.chat_template = chat_template
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(PolicyError, match=rf"lacks <\|im_start\|>.*{way_out}"):
        load_chat_policy(tmp_path)


def test_a_model_that_lacks_weights_is_refused(folder: Path, tmp_path: Path) -> None:
    """transformers would make them up."""
    shutil.copytree(folder, tmp_path / "deeper")
    config = tmp_path / "deeper" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"num_hidden_layers": 2}))
    with pytest.raises(PolicyError, match="lacks 9 tensors"):
        load_chat_policy(tmp_path / "deeper")


def test_a_tokenizer_of_another_model_is_refused(folder: Path, tmp_path: Path) -> None:
    """It makes more tokens than there are embeddings."""
    shutil.copytree(folder, tmp_path / "other")
    LlamaForCausalLM(LlamaConfig(vocab_size=200, **SIZES)).save_pretrained(tmp_path / "other")
    with pytest.raises(PolicyError, match="200 embeddings"):
        load_chat_policy(tmp_path / "other")
