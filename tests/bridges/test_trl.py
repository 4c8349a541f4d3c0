"""TRL: its own GRPOTrainer, tool loop and reward, on our environments; a short run in which it learns from them."""

import json
import math
import pickle
from typing import Any

import pytest

trl = pytest.importorskip("trl")
torch = pytest.importorskip("torch")

from datasets import Dataset, Features
from qwen3_helper import small
from transformers import AutoTokenizer, Qwen3ForCausalLM
from transformers.utils import get_json_schema
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

from bridges.scripts import one_at_a_time
from bridges.twenty import sample_jobs, sample_player
from ecomlab import ENVIRONMENTS, Episode, Stream
from ecomlab.bridges import trl as bridge
from ecomlab.bridges.common import task_of
from ecomlab.bridges.datasets import TRANSCRIPTS, transcript_dataset
from ecomlab.episode.play import finish
from ecomlab.evaluation.contestant import Job

JOBS = sample_jobs()
IMITATED = 80
"""Steps of imitation: so many that some rollouts succeed and some do not."""
REINFORCED = 5
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory, bridge_shop):
    """A random Qwen3 of 0.3M parameters with Qwen3's chat template."""
    return small(tmp_path_factory.mktemp("qwen3"), bridge_shop)


def trainer_for(folder, out, shop, jobs, kind=GRPOTrainer, **settings):
    """TRL's trainer on some tasks."""
    config = GRPOConfig(
        output_dir=str(out), use_cpu=True, report_to="none", save_strategy="no", disable_tqdm=True, logging_steps=1,
        chat_template_kwargs={"enable_thinking": False}, **settings,
    )  # fmt: skip
    model = Qwen3ForCausalLM.from_pretrained(folder, max_position_embeddings=200_000)
    return kind(
        model=model,
        processing_class=AutoTokenizer.from_pretrained(folder),
        args=config,
        train_dataset=bridge.prompt_dataset(jobs, shop),
        environment_factory=bridge.factories(sorted({job.env for job in jobs}), shop),
    )


class Replaying(GRPOTrainer):
    """The trainer, with the reference player's words in place of the model's: TRL decodes, parses and runs them."""

    player_of: Any = None
    """Makes the player of a rollout's environment."""

    def _generate_single_turn(self, prompt_ids, *given, **named):
        texts = [self._said(environment) for environment in self.environments[: len(prompt_ids)]]
        return [self._tokenizer(text)["input_ids"] for text in texts], None

    def _said(self, environment):
        episode = environment._episode
        if episode.done:
            return "Goodbye.<|im_end|>"
        if episode.turn == 0 and len(episode.messages) == 2:
            environment.player = self.player_of(episode)
        [call] = environment.player(list(episode.messages), episode.tools)["tool_calls"]
        name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
        return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call><|im_end|>"


def test_the_twenty_tasks_score_as_in_our_own_loop(same, log, tell_versions, bridge_shop, folder, tmp_path):
    """With one call a message on both sides, for TRL knows no message of several."""
    tell_versions("trl", "transformers", "torch", "datasets")
    log["player"] = "the reference player with one call a message, and ask_user for what it says"
    trainer = trainer_for(
        folder, tmp_path, bridge_shop, JOBS, kind=Replaying, num_generations=2, per_device_train_batch_size=2,
        max_completion_length=150_000,
    )  # fmt: skip

    def player(job):
        return one_at_a_time(sample_player(job, bridge_shop))

    by_opening = {task_of(job, bridge_shop).opening: job for job in JOBS}
    trainer.player_of = lambda episode: player(by_opening[episode.task.opening])
    for job, row in zip(JOBS, trainer.train_dataset, strict=True):
        trainer._generate_and_score_completions([row, row])
        mine = finish(player(job), Episode(task_of(job, bridge_shop), bridge_shop))
        first, second = trainer.environments
        same(job, first._episode.score(), mine)
        assert first.get_reward() == second.get_reward() == mine.score.value
        assert (first._episode.end, first._episode.turn) == (mine.end, mine.turns)


def streaming(folder, out, shop, **settings):
    """TRL's trainer on a stream of carts, with the reference player's words."""
    stream = Stream("adaptive", "CART", shop=shop, groups_per_step=1, tau_num=2)
    config = GRPOConfig(
        output_dir=str(out), use_cpu=True, report_to="none", disable_tqdm=True, num_generations=2,
        per_device_train_batch_size=2, max_completion_length=150_000, logging_steps=1,
        chat_template_kwargs={"enable_thinking": False}, **{"save_strategy": "no", **settings},
    )  # fmt: skip
    trainer = Replaying(
        model=Qwen3ForCausalLM.from_pretrained(folder, max_position_embeddings=200_000),
        processing_class=AutoTokenizer.from_pretrained(folder),
        args=config,
        train_dataset=bridge.stream_dataset(stream, 2, ahead=8),
        environment_factory=bridge.factories("CART", shop),
        callbacks=[bridge.SaveStream(stream)],
    )
    trainer.player_of = lambda episode: one_at_a_time(ENVIRONMENTS["CART"].reference_player(shop))
    return stream, trainer


def test_a_streams_window_rises_in_its_trainer(log, bridge_shop, folder, tmp_path):
    stream, trainer = streaming(folder, tmp_path, bridge_shop, max_steps=8, shuffle_dataset=False)
    trainer.train()
    log["window"] = stream.schedule.window("CART")
    assert log["window"][1] >= 2 and len(stream.state()["waiting"]) <= 2


def test_a_resumed_trainer_draws_what_it_would_have_drawn(bridge_shop, folder, tmp_path):
    saving = {"max_steps": 4, "shuffle_dataset": False, "ignore_data_skip": True, "save_strategy": "steps"}
    whole, trainer = streaming(folder, tmp_path, bridge_shop, save_steps=2, **saving)
    trainer.train()
    again, trainer = streaming(folder, tmp_path, bridge_shop, save_steps=9, **saving)
    bridge.SaveStream(again).resume(tmp_path / "checkpoint-2")
    trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert again.windows() == whole.windows() and again.state()["place"] == whole.state()["place"]


def test_one_of_several_processes_is_refused(bridge_shop, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(RuntimeError, match="one process"):
        bridge.stream_dataset(Stream("adaptive", "CART", shop=bridge_shop), 2)


def test_a_shuffled_stream_is_refused(bridge_shop, folder, tmp_path):
    _, trainer = streaming(folder, tmp_path, bridge_shop, max_steps=2)
    with pytest.raises(Exception, match="shuffle_dataset=False"):
        trainer.train()


def test_its_environments_can_be_pickled(bridge_shop):
    made = pickle.loads(pickle.dumps(bridge.factories(["CART"], bridge_shop)))["CART"]()
    made.reset(difficulty=0, seed=5)
    assert made.get_reward() < 0 and type(made).__name__ == "CartRollout"


@pytest.mark.parametrize("env", list(ENVIRONMENTS))
def test_the_methods_have_the_tools_names_words_and_arguments(env, bridge_shop):
    [job] = [job for job in JOBS if job.env == env][:1]
    made = bridge.rollout_class(env, bridge_shop)()
    for schema in Episode(task_of(job, bridge_shop), bridge_shop).tools:
        ours = schema["function"]
        theirs = get_json_schema(getattr(made, ours["name"]))["function"]
        assert (theirs["name"], theirs["description"]) == (ours["name"], ours["description"])
        given = ours["parameters"].get("properties", {})
        assert set(theirs["parameters"]["properties"]) == set(given)
        assert theirs["parameters"].get("required", []) == ours["parameters"].get("required", [])
        for name, about in theirs["parameters"]["properties"].items():
            assert about["description"] == given[name].get("description", name)


def test_a_rollout_that_stops_is_truncated_and_one_that_we_broke_has_no_reward(bridge_shop, monkeypatch):
    rollout: Any = bridge.rollout_class("CART", bridge_shop)()
    with pytest.raises(RuntimeError, match="reset"):
        rollout.cart_view()
    rollout.reset(difficulty=0, seed=5)
    assert "error" in json.loads(rollout.cart_add(colour="red"))
    assert rollout.get_reward() < 0 and rollout._episode.end == "truncated"
    assert "over" in rollout.cart_view()
    rollout.reset(difficulty=0, seed=5)
    monkeypatch.setattr(Episode, "_note", lambda *given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        rollout.cart_view()
    assert math.isnan(rollout.get_reward())


def test_trls_own_trainers_imitate_and_then_reinforce(log, bridge_shop, folder, tmp_path):
    """SFTTrainer on a transcript, until the tiny model half knows it; then GRPOTrainer, whose rewards vary and whose
    gradient is not zero."""
    job = Job("POLICY", 0, JOBS[0].seed)
    task = task_of(job, bridge_shop)
    player = one_at_a_time(ENVIRONMENTS[job.env].reference_player(bridge_shop))
    taught = transcript_dataset([finish(player, Episode(task, bridge_shop))], bridge_shop)
    made = bridge.rollout_class(job.env, bridge_shop)()
    [[prompt]] = [bridge.prompt_dataset([job], bridge_shop)["prompt"]]
    names = [schema["function"]["name"] for schema in Episode(task, bridge_shop).tools]
    tools = [get_json_schema(getattr(made, name)) for name in names]
    rows = [{"messages": [*prompt, *row["messages"][2:]], "tools": tools} for row in taught]
    features = Features({name: TRANSCRIPTS[name] for name in ("messages", "tools")})
    sft = SFTTrainer(
        model=Qwen3ForCausalLM.from_pretrained(folder),
        processing_class=AutoTokenizer.from_pretrained(folder),
        train_dataset=Dataset.from_list(rows, features=features),
        args=SFTConfig(
            output_dir=str(tmp_path / "sft"), use_cpu=True, report_to="none", save_strategy="no", disable_tqdm=True,
            max_steps=IMITATED, learning_rate=5e-3, lr_scheduler_type="constant", per_device_train_batch_size=1,
            max_length=None, assistant_only_loss=True, logging_steps=10, bf16=False, gradient_checkpointing=False,
        ),
    )  # fmt: skip
    sft.train()
    losses = [entry["loss"] for entry in sft.state.log_history if "loss" in entry]
    assert losses[-1] < losses[0] / 2
    sft.model.save_pretrained(tmp_path / "taught")
    AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path / "taught")
    trainer = trainer_for(
        tmp_path / "taught", tmp_path, bridge_shop, [job] * 4, num_generations=8, per_device_train_batch_size=8,
        max_completion_length=400, max_steps=REINFORCED, learning_rate=1e-4, bf16=False,
        gradient_checkpointing=False, max_tool_calling_iterations=6,
    )  # fmt: skip
    before = {name: value.clone() for name, value in trainer.model.named_parameters()}
    trainer.train()
    steps = [entry for entry in trainer.state.log_history if "reward" in entry]
    kept = (
        "step",
        "reward",
        "reward_std",
        "grad_norm",
        "loss",
        "tools/call_frequency",
        "completions/mean_length",
    )
    log["imitation: loss"] = losses
    log["reinforcement"] = [{name: entry[name] for name in kept} for entry in steps]
    assert len(steps) == REINFORCED
    learned = [entry for entry in steps if entry["reward_std"] > 0]
    assert learned and all(entry["grad_norm"] > 0 for entry in learned)
    assert any(entry["tools/call_frequency"] > 0 for entry in steps)
    assert any(not torch.equal(value, before[name]) for name, value in trainer.model.named_parameters())
