"""Any local model is played by its own chat template: random tiny ones with templates like Llama 3's, Mistral's and
Gemma's."""

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

from ecomlab import ENVIRONMENTS, Shop, make_task, play, replay
from ecomlab.episode.episode import Episode
from ecomlab.evaluation.chat_format import ChatFormat, Style
from ecomlab.evaluation.chat_model import ChatModelContestant, load_chat_model
from ecomlab.evaluation.contestant import Job, Played
from ecomlab.evaluation.evaluation import EVALUATION, Cells, header_of, rescore, run_evaluation
from ecomlab.evaluation.generation import Row, generate, shows_padding
from ecomlab.evaluation.local import LocalContestant
from ecomlab.evaluation.players import contestant_of
from ecomlab.evaluation.tasks import held_out_seeds
from ecomlab.evaluation.transcripts import read
from ecomlab.models.load import load_policy
from ecomlab.models.policy import EvaluationOnlyError, PolicyError
from ecomlab.models.qwen3 import MARKERS, template
from ecomlab.models.renderer import TAGS
from ecomlab.models.samplers.cached import CachedSampler, Limits, drawn
from ecomlab.seeding import rng
from ecomlab.task import Message

TEMPLATES = Path(__file__).parent / "chat_templates"
SPECIAL = {
    "llama3": ("<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|end_of_text|>"),
    "mistral": (
        "<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
        "[TOOL_RESULTS]", "[/TOOL_RESULTS]",
    ),
    "gemma": ("<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"),
}  # fmt: skip
"""Special tokens of each kind of model; the first two are named to the tokenizer as its begin and end."""
KINDS = tuple(SPECIAL)
STYLES = {
    "llama3": Style("json", system=True, apart=True, several=False),
    "mistral": Style("json", system=False, apart=False, several=True),
    "gemma": Style("", system=False, apart=False, several=True),
}
ENDS = {"llama3": "<|eot_id|>", "mistral": "</s>", "gemma": "<end_of_turn>"}
LIMITS = Limits(turn=16, episode=20, context=16_384)
JOBS = [Job("STATUS", d, seed) for d in (0, 2) for seed in held_out_seeds(0, 2)][:3]


def tokenizer_of(kind: str) -> Any:
    """A tokenizer with the special tokens of this kind, and byte pairs of the tools' schemas, most of a prompt."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=900, initial_alphabet=letters, show_progress=False)
    schemas = [tool.schema for tool in ENVIRONMENTS["STATUS"].offered.values()]
    core.train_from_iterator([json.dumps(schemas), json.dumps(schemas, indent=4)] * 2, trainer)
    core.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL[kind]])
    begin, end = SPECIAL[kind][:2]
    made = PreTrainedTokenizerFast(tokenizer_object=core, bos_token=begin, eos_token=end)
    made.chat_template = (TEMPLATES / f"{kind}.jinja").read_text("utf-8")
    return made


def saved(kind: str, folder: Path, **settings: Any) -> Path:
    """A random Llama of this kind, with `settings` of its own for generation, that babbles and ends its turn."""
    tokenizer = tokenizer_of(kind)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    ids = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = LlamaConfig(vocab_size=len(tokenizer), max_position_embeddings=16_384, **sizes, **ids)
        model = LlamaForCausalLM(config)
    with torch.no_grad():
        model.model.norm.weight *= 3
        model.model.embed_tokens.weight += 0.05
        model.lm_head.weight[tokenizer.convert_tokens_to_ids(ENDS[kind])] += 0.1
        for marker in set(SPECIAL[kind]) - {ENDS[kind]}:
            model.lm_head.weight[tokenizer.convert_tokens_to_ids(marker)] -= 1.0
    model.generation_config = GenerationConfig(**ids, **settings)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {kind: saved(kind, tmp_path_factory.mktemp(kind)) for kind in KINDS}


@pytest.fixture(scope="module")
def formats() -> dict[str, ChatFormat]:
    return {kind: ChatFormat(tokenizer_of(kind)) for kind in KINDS}


def contestant(folder: Path, limits: Limits = LIMITS, **more: Any) -> ChatModelContestant:
    return ChatModelContestant("tiny", load_chat_model(folder), limits=limits, **more)


def changed(folder: Path, to: Path, **config: Any) -> Path:
    """A copy of a model whose config.json says something else."""
    shutil.copytree(folder, to)
    known = json.loads((to / "config.json").read_text())
    (to / "config.json").write_text(json.dumps(known | config))
    return to


def test_a_model_that_lacks_weights_is_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    """transformers would make them up."""
    with pytest.raises(PolicyError, match=r"lacks 9 tensors, such as model\.layers\.1\..*random numbers"):
        load_chat_model(changed(folders["llama3"], tmp_path / "deeper", num_hidden_layers=2))


def test_a_tokenizer_of_another_model_is_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    """One that makes more tokens than there are embeddings, by itself or in the template; others do no harm."""
    tokenizer = AutoTokenizer.from_pretrained(folders["llama3"])

    def with_token(token: str, name: str, chat_template: str = tokenizer.chat_template) -> Path:
        made = AutoTokenizer.from_pretrained(folders["llama3"])
        made.add_special_tokens({"additional_special_tokens": [token]})
        made.chat_template = chat_template
        shutil.copytree(folders["llama3"], tmp_path / name)
        made.save_pretrained(tmp_path / name)
        return tmp_path / name

    load_chat_model(with_token("<image>", "harmless"))
    with pytest.raises(PolicyError, match="1 tokens beyond them, such as '<image>'; put the tokenizer"):
        load_chat_model(with_token("<image>", "harmful", tokenizer.chat_template + "<image>"))


def said_in(played: Sequence[Played]) -> dict[Any, Any]:
    """What every job came to: messages, end, faults and tokens."""
    return {
        (p.job.env, p.job.d, p.job.seed): (
            json.dumps(p.trajectory.messages), p.trajectory.end, p.faults, p.usage["agent"].completion_tokens,
        )
        for p in played
        if p.trajectory
    }  # fmt: skip


# --- the format ---


@pytest.mark.parametrize("kind", KINDS)
def test_the_template_s_own_calls_are_taken_where_they_can_be_read(
    kind: str, formats: dict[str, ChatFormat]
) -> None:
    known = formats[kind]
    assert known.style == STYLES[kind]
    assert ENDS[kind] in {known.text([i]) for i in known.stop_ids}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("env", ["CART", "JOURNEY"])
def test_a_whole_episode_is_written_and_its_calls_are_read_back(
    kind: str, env: str, formats: dict[str, ChatFormat], shop: Shop
) -> None:
    """At every turn the prompt holds all that was said, and the reference player's message, as the template writes it,
    is read back as that message."""
    known, task = formats[kind], make_task(env, 1, 1, shop)
    episode = Episode(task, shop)
    messages = play(ENVIRONMENTS[env].reference_player(shop, courteous=True), task, shop).messages
    for number, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        prompt = known.text(known.prompt(messages[:number], episode.tools))
        heard = [m["content"].strip() for m in messages[:number] if m["role"] == "user"]
        assert all(text in prompt for text in heard)
        assert "submit" in prompt and messages[0]["content"] in prompt
        for one in alone(message) if not known.style.several else [message]:
            ids = written(known, messages[:2], one, episode.tools)
            found = known.read(ids)
            assert found["content"] == one["content"].strip()
            assert calls_of(found) == calls_of(one)


def alone(message: Message) -> list[Message]:
    """A message for each call."""
    calls = message.get("tool_calls") or []
    return [{**message, "tool_calls": [call]} for call in calls] if calls else [dict(message)]


def written(known: ChatFormat, before: Sequence[Message], message: Message, tools: Any) -> list[int]:
    """Ids of an assistant's message as the template writes it, the end of the turn included."""
    asked = known.prompt(before, tools)
    results = [
        {"role": "tool", "tool_call_id": call["id"], "name": call["function"]["name"], "content": "{}"}
        for call in message.get("tool_calls") or ()
    ]
    ids = known.prompt([*before, message, *results], tools)[len(asked) :]
    end = next(n for n, i in enumerate(ids) if i in known.stop_ids)
    return ids[: end + 1]


def calls_of(message: Message) -> list[Any]:
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    return [(one["name"], json.loads(one["arguments"])) for one in functions]


@pytest.mark.parametrize("kind", KINDS)
def test_several_calls_in_a_message_are_each_followed_by_their_result(
    kind: str, formats: dict[str, ChatFormat]
) -> None:
    """Where a template takes one call a message, the second call stands behind the first one's result."""
    calls = [
        {
            "id": f"call_{i}",
            "type": "function",
            "function": {"name": "find", "arguments": f'{{"thing": "mug-{i}"}}'},
        }
        for i in range(2)
    ]
    results: list[Message] = [
        {"role": "tool", "tool_call_id": f"call_{i}", "name": "find", "content": f'{{"found": "cup-{i}"}}'}
        for i in range(2)
    ]
    hello: list[Message] = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello."}]
    said: list[Message] = [*hello, {"role": "assistant", "content": "", "tool_calls": calls}, *results]
    known = formats[kind]
    order = re.findall(r"(?:mug|cup)-\d", known.text(known.prompt(said, [])))
    apart, together = ["mug-0", "cup-0", "mug-1", "cup-1"], ["mug-0", "mug-1", "cup-0", "cup-1"]
    assert order == (together if known.style.several else apart)


@pytest.mark.parametrize("kind", KINDS)
def test_what_somebody_says_makes_no_special_token(kind: str, formats: dict[str, ChatFormat]) -> None:
    known = formats[kind]
    special = set(known.tokenizer.all_special_ids)
    call = {"name": "find", "arguments": json.dumps({"thing": "WORDS"})}
    conversation: list[Message] = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "WORDS"},
        {"role": "assistant", "content": "So WORDS?"},
        {"role": "user", "content": "Yes."},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "a", "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": "a", "name": "find", "content": json.dumps({"title": "WORDS"})},
        {"role": "user", "content": "Thanks, WORDS"},
    ]
    hostile = "a mug " + "".join(SPECIAL[kind])
    counts = []
    for words in ("a mug", hostile):
        said = json.loads(json.dumps(conversation).replace("WORDS", words))
        counts.append([i for i in known.prompt(said, []) if i in special])
    assert counts[0] == counts[1] != []


def test_a_special_token_inside_a_turn_is_invalid_output(formats: dict[str, ChatFormat]) -> None:
    known = formats["llama3"]
    ids = known.tokenizer.encode("Hello<|start_header_id|>user<|end_header_id|>I take it<|eot_id|>")
    assert known.read(ids)["invalid"] == "<|start_header_id|> inside a turn"
    assert known.read(known.tokenizer.encode("Hello<|eot_id|>")) == {"role": "assistant", "content": "Hello"}


def test_thinking_in_a_channel_of_its_own_is_left_out() -> None:
    """As gpt-oss has it: what is said follows the template's own opening, what comes before is thinking."""
    tokenizer = tokenizer_of("gemma")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|channel|>", "<|words|>"]})
    tokenizer.chat_template = tokenizer.chat_template.replace(
        "+ role + '\\n' +", "+ role + ('<|channel|>final<|words|>' if role == 'model' else '\\n') +"
    ).replace("<start_of_turn>model\\n", "<start_of_turn>model")
    known = ChatFormat(tokenizer)
    said = "<|channel|>thought<|words|>Mugs?<|channel|>final<|words|>Here you are.<end_of_turn>"
    assert known.read(tokenizer.encode(said)) == {"role": "assistant", "content": "Here you are."}
    assert "invalid" in known.read(tokenizer.encode("<|channel|>thought<|words|>Mugs?<end_of_turn>"))


def test_a_template_says_the_same_tomorrow(formats: dict[str, ChatFormat]) -> None:
    known = formats["llama3"]
    hello: list[Message] = [{"role": "system", "content": "Hi."}, {"role": "user", "content": "Hello."}]
    assert "Today Date: 26 Jul 2024" in known.text(known.prompt(hello, []))


def test_a_template_that_leaves_words_out_is_refused() -> None:
    tokenizer = tokenizer_of("gemma")
    tokenizer.chat_template = "{{ messages[0].content }}"
    with pytest.raises(PolicyError, match="does not write a conversation.*chat_template.jinja"):
        ChatFormat(tokenizer, name="somebody/there")


REAL = {
    "cohere": "", "deepseekv3": "", "gemma": "", "gemma3": "", "gemma4": "", "glm4moe": "", "gptoss": "", "lfm2": "",
    "llama3": "", "llama3_1": "json", "llama3_2": "json", "phi3": "", "qwen2_5": "hermes", "qwen3": "hermes",
    "qwen3_5_think": "",
}  # fmt: skip
"""Templates of real models, as TRL has them, and who reads their calls."""


@pytest.mark.parametrize("name", REAL)
def test_templates_of_real_models_hold_a_whole_conversation(name: str, shop: Shop) -> None:
    """With their special tokens, as far as the template's text has them, in a tokenizer of ours."""
    text = template(name)
    tokenizer = tokenizer_of("mistral")
    marks = set(re.findall(r"<\|?[a-z_/]+\|?>|<｜[^｜]+｜>|<\|[^|]+\|>", text)) - set(TAGS)
    tokenizer.add_special_tokens({"additional_special_tokens": sorted(marks)})
    tokenizer.chat_template = text
    known = ChatFormat(tokenizer)
    assert known.style.tools == REAL[name]
    task = make_task("JOURNEY", 0, 1, shop)
    messages = play(ENVIRONMENTS["JOURNEY"].reference_player(shop), task, shop).messages
    prompt = known.text(known.prompt(messages[:-1], Episode(task, shop).tools))
    assert all(m["content"].strip() in prompt for m in messages[:-1] if m["role"] in ("system", "user"))
    calls = [one for m in messages[:-1] for one in m.get("tool_calls") or ()]
    assert all(prompt.count(one["function"]["name"]) > 1 for one in calls)  # its schema, and the call


# --- drawing ---


def test_tokens_are_those_of_our_own_sampler(folders: dict[str, Path]) -> None:
    """From the same weights and streams; `generate` reads prompts of different length side by side."""
    chat = load_chat_model(folders["llama3"])
    stops, prompts = chat.format.stop_ids, [[5, 6, 7], [8] * 40, [9, 10]]
    sampler = CachedSampler(chat.model, sorted(stops), Limits(turn=30, episode=30, context=200))
    sampler.start([rng("drawn", i) for i in range(3)])
    ours: dict[int, list[int]] = {}
    left, inputs = [0, 1, 2], prompts
    while left:
        answers = sampler.turn(left, inputs)
        ours |= {i: said.ids for i, said in zip(left, answers, strict=True) if said}
        left = [i for i in left if i not in ours]
        inputs = [[] for _ in left]
    rows = [Row(prompt, 30, rng("drawn", i)) for i, prompt in enumerate(prompts)]
    generate(chat.model, rows, stops, chat.format.pad_id)
    assert [row.said for row in rows] == [ours[i] for i in range(3)]
    assert len({len(row.said) for row in rows}) > 1


SIZES = {
    "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 120,
    "num_key_value_heads": 1, "max_position_embeddings": 512, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
SLIDING = {"head_dim": 16, "sliding_window": 16}
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "Gemma2": SLIDING | {"final_logit_softcapping": 2.0}, "GPT2": {"n_head": 2}, "Mamba": {"state_size": 4},
    "Rwkv": {}, "Gemma": {"head_dim": 16}, "Gemma3Text": SLIDING, "Mistral": {"sliding_window": 16}, "Phi": {},
    "Phi3": {}, "Granite": {"logits_scaling": 8.0}, "Cohere": {}, "Cohere2": {"sliding_window": 16}, "Olmo2": {},
    "Mixtral": {"num_local_experts": 4}, "GptOss": SLIDING | {"num_local_experts": 4}, "GPTNeoX": {}, "OPT": {},
    "Bloom": {"n_head": 2}, "Falcon": {}, "Mpt": {"d_model": 32, "n_heads": 2, "n_layers": 2}, "StableLm": {},
    "Mamba2": {"state_size": 8, "num_heads": 4, "head_dim": 16, "n_groups": 1}, "Lfm2": {"full_attn_idxs": [1]},
    "FalconH1": {"mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 8},
    "Glm4": {"head_dim": 16}, "DeepseekV3": {
        "num_key_value_heads": 2, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1,
        "first_k_dense_replace": 1, "moe_intermediate_size": 16, "kv_lora_rank": 8, "q_lora_rank": 8,
        "qk_rope_head_dim": 8, "v_head_dim": 8, "qk_nope_head_dim": 8,
    }, "Qwen3Next": {
        "num_hidden_layers": 4, "linear_num_value_heads": 2, "linear_num_key_heads": 2, "linear_key_head_dim": 8,
        "linear_value_head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2, "head_dim": 16,
        "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16,
    },
    "RecurrentGemma": {"attention_window_size": 16, "num_hidden_layers": 3}, "SmolLM3": {}, "Llama": {},
    "Jamba": {"num_experts": 2, "use_mamba_kernels": False, "attn_layer_period": 2, "attn_layer_offset": 1},
}  # fmt: skip
"""What configurations need beside SIZES: caps of logits, windows, scales, experts, recurrences for attention."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if n > 3 else ()) for n, name in enumerate(ARCHITECTURES)],
)
def test_every_architecture_is_sampled_as_it_is(name: str) -> None:
    """Each token is drawn from what the model itself says of the whole conversation before it, with other conversations
    beside it or, for one that reads its padding, alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = getattr(transformers, f"{name}Config")(**{**SIZES, **ARCHITECTURES[name]})
        model = AutoModelForCausalLM.from_config(config).eval().float()
    with torch.no_grad():
        for parameter in model.parameters():  # otherwise nearly every token is as likely as every other
            parameter.mul_(3 if parameter.dim() > 1 else 1)
    prompts = [[5, 6, 7], list(range(3, 40)), [9, 10] * 6]
    rows = [Row(prompt, 8, rng(name, i)) for i, prompt in enumerate(prompts)]
    alone = shows_padding(model, 0)
    assert alone == (name == "Rwkv")
    for some in [[row] for row in rows] if alone else [rows]:
        generate(model, some, frozenset({2}), 0)
    for i, row in enumerate(rows):
        stream, ids = rng(name, i), list(row.prompt)
        for token in row.said:
            with torch.no_grad():
                logp = torch.log_softmax(model(torch.tensor([ids])).logits[:, -1].float(), dim=-1)
            assert drawn(logp, [stream.random()]).item() == token
            ids.append(token)
        assert len(row.said) == 8 or row.said[-1] == 2


# --- playing ---


@pytest.mark.parametrize("kind", KINDS)
def test_episodes_repeat_and_do_not_depend_on_their_batch(
    kind: str, folders: dict[str, Path], shop: Shop
) -> None:
    together = list(contestant(folders[kind]).play(JOBS, shop))
    assert [p.unscored for p in together] == [""] * len(JOBS)
    assert said_in(contestant(folders[kind]).play(JOBS, shop)) == said_in(together)  # type: ignore[arg-type]
    alone = list(contestant(folders[kind], batch=1).play(list(reversed(JOBS)), shop))
    assert said_in(alone) == said_in(together)
    assert len({messages for messages, *_ in said_in(together).values()}) == len(JOBS)
    assert max(p.usage["agent"].requests for p in together) > 1
    for one in together:
        assert one.trajectory is not None and replay(one.trajectory, shop) == one.trajectory.score
        usage = one.usage["agent"]
        assert usage.told and usage.completion_tokens <= LIMITS.episode


def test_a_models_own_settings_for_generation_change_nothing(
    folders: dict[str, Path], tmp_path: Path, shop: Shop
) -> None:
    settings = {"do_sample": True, "temperature": 0.01, "top_p": 0.1, "top_k": 2, "repetition_penalty": 9.0}
    own = saved("llama3", tmp_path, **settings, max_new_tokens=3, min_new_tokens=2)
    assert load_chat_model(own).format.stop_ids == load_chat_model(folders["llama3"]).format.stop_ids
    theirs = said_in(list(contestant(own).play(JOBS[:3], shop)))
    assert theirs == said_in(list(contestant(folders["llama3"]).play(JOBS[:3], shop)))


def test_every_token_that_ends_a_turn_somewhere_ends_one_here(tmp_path: Path) -> None:
    folder = saved("llama3", tmp_path)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [7, 8]}))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"eos_token_id": 9}))
    known = load_chat_model(folder).format
    tokenizer = tokenizer_of("llama3")
    assert known.stop_ids == {7, 8, 9, tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids("<|eot_id|>")}


def test_an_evaluation_goes_on_after_a_kill(folders: dict[str, Path], tmp_path: Path, shop: Shop) -> None:
    """The episodes of a run that was broken off and went on are those of one that was not."""
    cells = Cells(("STATUS",), (0, 2), 2)

    class Killed(Exception):
        pass

    def run(folder: Path, most: int = 99) -> None:
        player, heard = contestant(folders["llama3"], batch=2), iter(range(most))

        def tell(news: Any) -> None:
            if news["kind"] == "episode" and next(heard, None) is None:
                raise Killed

        header = header_of(EVALUATION, "tiny", player, cells.envs, {}, shop, {"size": 1000})
        run_evaluation(player, cells, shop, folder, header, {}, tell=tell)

    with pytest.raises(Killed):
        run(tmp_path / "broken", 1)
    run(tmp_path / "broken")
    run(tmp_path / "whole")
    broken, whole = ({t.key: t.messages for t in read(tmp_path / name)} for name in ("broken", "whole"))
    assert broken == whole and len(whole) == 4
    assert list(rescore(tmp_path / "broken", shop)) == [None] * 4


def test_greedy_episodes_take_no_random_number(folders: dict[str, Path], shop: Shop) -> None:
    player = contestant(folders["gemma"], decoding="greedy")
    trials = [Job("STATUS", 0, JOBS[0].seed, trial) for trial in (0, 1)]
    one, two = (p.trajectory.messages for p in player.play(trials, shop) if p.trajectory)
    assert one == two and "temperature" not in player.identity
    sampled = [p.trajectory.messages for p in contestant(folders["gemma"]).play(trials, shop) if p.trajectory]
    assert sampled[0] != sampled[1]


@pytest.mark.parametrize(
    ("limits", "fault"),
    [
        (Limits(turn=1, episode=60, context=16_384), "length"),
        (Limits(turn=24, episode=1, context=16_384), "length"),
        (Limits(turn=24, episode=60, context=100), "context"),
    ],
)
def test_a_limit_of_tokens_is_the_models_own(
    limits: Limits, fault: str, folders: dict[str, Path], shop: Shop
) -> None:
    found = list(contestant(folders["llama3"], limits).play(JOBS[:3], shop))
    cut = [p for p in found if p.trajectory and p.trajectory.end == "truncated"]
    assert cut and all(p.faults[-1] == fault and not p.unscored for p in cut)
    assert all("cut_off" in p.notes for p in cut)


def test_a_model_that_fails_leaves_its_episodes_unscored(folders: dict[str, Path], shop: Shop) -> None:
    player = contestant(folders["llama3"])
    with torch.no_grad():
        player.chat.model.lm_head.weight[0] = torch.nan
    found = list(player.play(JOBS[:2], shop))
    assert [p.unscored for p in found] == ["sampler"] * 2
    assert "another dtype" in found[0].notes["why"]


# --- names ---


def test_a_name_is_played_that_cannot_be_trained(folders: dict[str, Path], shop: Shop) -> None:
    folder = str(folders["mistral"])
    made = contestant_of(folder, shop, ["STATUS"], strict=True)
    assert isinstance(made, ChatModelContestant)
    assert made.identity["made_for"]["tools"] == "json" and made.identity["strict"]
    assert "device" not in json.dumps(made.identity) and made.device == "cpu"
    with pytest.raises(EvaluationOnlyError, match="can be evaluated, not trained: its tokenizer lacks"):
        load_policy(folder, shop, ["STATUS"])
    with pytest.raises(EvaluationOnlyError, match="can be evaluated, not trained"):
        contestant_of(folder, shop, ["STATUS"], lora_rank=4)


@pytest.mark.parametrize(
    ("name", "more", "expected"),
    [
        ("Llama", {}, LocalContestant),
        ("Granite", {"logits_scaling": 8.0}, ChatModelContestant),  # which our own sampler would leave out
        (
            "Lfm2",
            {"full_attn_idxs": [1]},
            ChatModelContestant,
        ),  # whose convolutions keep more than keys and values
    ],
)
def test_a_model_that_our_sampler_does_not_fit_is_played_by_its_template_though_it_has_our_markers(
    name: str, more: dict[str, Any], expected: type, tmp_path: Path, shop: Shop
) -> None:
    tokenizer = tokenizer_of("gemma")
    tokenizer.add_special_tokens({"additional_special_tokens": list(MARKERS)})
    tokenizer.chat_template = template("qwen3")
    tokenizer.save_pretrained(tmp_path)
    sizes = {**SIZES, **more, "vocab_size": len(tokenizer), "max_position_embeddings": 4096}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(getattr(transformers, f"{name}Config")(**sizes))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3 if parameter.dim() > 1 else 1)
    model.save_pretrained(tmp_path)
    made = contestant_of(str(tmp_path), shop, ["STATUS"])
    assert type(made) is expected and made.at_once == 16
    if expected is ChatModelContestant:
        assert made.identity["made_for"]["tools"] == "hermes"
        with pytest.raises(EvaluationOnlyError, match="our own sampler does not fit"):
            contestant_of(str(tmp_path), shop, ["STATUS"], lora_rank=2)


def test_weights_are_moved_to_the_device(folders: dict[str, Path], shop: Shop) -> None:
    """On the device "meta", which every machine has, weights are only shapes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ecomlab.evaluation.players.device_of", lambda name, ordinary: name)
        patch.setattr("ecomlab.evaluation.generation.shows_padding", lambda model, pad_id: False)
        patch.setattr("ecomlab.evaluation.local.weights_digest", lambda model: "")
        made = [
            contestant_of(name, shop, ["STATUS"], device="meta") for name in (str(folders["gemma"]), "novice")
        ]
    assert [one.device for one in made] == ["meta", "meta"]  # type: ignore[attr-defined]


def test_an_episode_is_not_longer_than_the_model_was_made_for(folders: dict[str, Path], shop: Shop) -> None:
    with pytest.raises(PolicyError, match="made for 16384 tokens.*may have 16385.*context_tokens=16384"):
        contestant_of(str(folders["gemma"]), shop, ["STATUS"], limits={"context": 16_385})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, Limits(2_048, 16_384, 16_384)),
        ({"context": 1_000}, Limits(1_000, 1_000, 1_000)),
        ({"turn": 9, "episode": 99}, Limits(9, 99, 16_384)),
    ],
)
def test_an_ordinary_model_may_say_what_it_was_made_for_and_a_starter_what_it_was_trained_on(
    given: dict[str, int], expected: Limits, folders: dict[str, Path], shop: Shop
) -> None:
    made = [contestant_of(name, shop, ["STATUS"], limits=given) for name in (str(folders["gemma"]), "novice")]
    assert [one.identity["limits"] for one in made] == [asdict(expected), asdict(Limits(**given))]


def test_a_model_without_a_chat_template_is_refused(
    folders: dict[str, Path], tmp_path: Path, shop: Shop
) -> None:
    for file in folders["gemma"].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "chat_template.jinja").unlink()
    with pytest.raises(PolicyError, match="no chat template.*choose its instruct version"):
        contestant_of(str(tmp_path), shop, ["STATUS"])


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"dtype": "float33"}, "no dtype 'float33'; did you mean 'float32'"),
        ({"device": "cudaa"}, "no device 'cudaa'.*there are cpu"),
        ({"device": "cuda:99"}, "no device 'cuda:99'.*there are cpu"),
        ({"decoding": "gredy"}, "did you mean 'greedy'"),
        ({"temperature": 0}, "temperature must be positive"),
    ],
)
def test_a_wrong_setting_gets_a_sentence(
    setting: dict[str, Any], words: str, folders: dict[str, Path], shop: Shop
) -> None:
    with pytest.raises(ValueError, match=words):
        contestant_of(str(folders["llama3"]), shop, ["STATUS"], **setting)
