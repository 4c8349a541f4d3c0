"""DAPO with TRL's `GRPOTrainer` over our own rollouts; the only module of ecomlab that imports TRL.

TRL provides the loss (`loss_type="dapo"`: token-level, clip 0.2 / 0.28, no KL), minibatches, accelerate, optimizer and
checkpoints. We provide the rollouts, through its `rollout_func`, and the advantages (`objective.step_advantages`). One
collection of `prompts x group_size` rollouts is one step of ours and `minibatches` optimizer steps of TRL's.
"""

import logging
import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import trl.trainer.utils
from accelerate import PartialState
from accelerate.utils import is_peft_model
from datasets import Dataset
from torch import Tensor
from torch.distributed.tensor import DTensor
from transformers import PrinterCallback, TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
from transformers.utils.logging import disable_progress_bar, enable_progress_bar, is_progress_bar_enabled
from trl import GRPOConfig, GRPOTrainer

from ecomlab.models.batch import Clock
from ecomlab.models.load import SHARDS
from ecomlab.models.policy import Policy
from ecomlab.models.process_group import SINGLE_PROCESS, ProcessGroup
from ecomlab.models.samplers.merged import send_merged
from ecomlab.models.samplers.vllm import Sleep, insist_on_resets, limit_patience
from ecomlab.seeding import rng
from ecomlab.training import objective
from ecomlab.training.config import RunError, TrainConfig
from ecomlab.training.rollouts import Collection
from ecomlab.training.update_metrics import UpdateMetrics

ROWS_AT_ONCE = 8
"""Rows forwarded together in one process; they are of similar length, so that little is padded."""


@dataclass(frozen=True)
class Step:
    """The outcome of one step, for its metrics row."""

    number: int
    """From 1."""
    collection: Collection
    update: dict[str, float]
    """`UpdateMetrics.total`."""
    seconds: dict[str, float]
    """By phase so far: model, environment, waiting, logprobs, update, sync."""
    began: float
    """`time.perf_counter()` at the end of the step before."""
    broken: str = ""
    """Why the run stops in this step, if it does."""


@dataclass(frozen=True)
class Hooks:
    """The loop's callbacks in a trainer's steps."""

    collect: Callable[[int], Collection]
    """Plays the rollouts of a step (counted from 0) with the current policy."""
    after: Callable[[Step], None]
    """Takes each step, before its checkpoint."""
    save_extra: Callable[[Path], None]
    """Completes a checkpoint in its folder."""
    before: Callable[[], None] = lambda: None
    """Called ahead of the first step, when the model is on its device."""
    stops: Callable[[], bool] = lambda: False
    """Tells after a step whether the run is to be saved and left. Every process calls this."""


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the logs and bars of TRL and transformers: a run shows its own progress, and transformers would warn that
    a checkpoint lacks tied weights, which are not saved."""
    logs, bars = list(map(logging.getLogger, ("trl", "transformers.trainer"))), is_progress_bar_enabled()
    levels = [log.level for log in logs]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="`\\w*gradient_checkpointing\\w*` is deprecated")
        warnings.filterwarnings("ignore", message="You are using 'rollout_func'")  # experimental
        for log in logs:
            log.setLevel(logging.ERROR)
        disable_progress_bar()
        try:
            yield
        finally:
            for log, level in zip(logs, levels, strict=True):
                log.setLevel(level)
            if bars:
                enable_progress_bar()


class DapoTrainer(GRPOTrainer):
    """TRL's trainer on our rollouts: prompts are drawn inside the rollout, advantages are ours."""

    def __init__(
        self, policy: Policy, config: TrainConfig, hooks: Hooks, processes: ProcessGroup = SINGLE_PROCESS
    ) -> None:
        self.config = config
        self.hooks = hooks
        self.processes = processes
        self.collection: Collection | None = None
        self.clock = Clock()
        self._last_loaded_step: int = -1  # TRL's: the step whose weights vLLM has
        self.began = self.rolled = time.perf_counter()
        rows = config.prompts_per_step * config.steps
        with _quiet():
            super().__init__(
                model=policy.model,
                reward_funcs=_reward,
                args=_arguments(config),
                train_dataset=Dataset.from_dict(
                    {"prompt": [""] * rows}
                ),  # placeholders: the schedule draws tasks
                processing_class=policy.tokenizer,
                rollout_func=lambda prompts, trainer: trainer.roll_out(len(prompts)),
                callbacks=[_Bookkeeping(self, hooks)],
            )
        self.remove_callback(PrinterCallback)
        self.vllm_sleep = None
        if config.with_vllm:
            limit_patience(self.vllm_generation)
            if self.args.vllm_enable_sleep_mode:
                self.vllm_sleep = Sleep(self.vllm_generation)
            insist_on_resets(self.vllm_generation)
            if is_peft_model(self.model):
                send_merged(self.vllm_generation, getattr(torch, config.dtype))
        plugin = getattr(self.accelerator.state, "fsdp_plugin", None)
        if plugin is not None and getattr(plugin.mixed_precision_policy, "output_dtype", None) is not None:
            # log-probabilities must leave the model as float32: bfloat16 is too coarse for their differences
            plugin.mixed_precision_policy = replace(plugin.mixed_precision_policy, output_dtype=None)

    def train(self, resume: Path | None = None) -> Any:
        """Train, from a checkpoint if one is given."""
        plugin = getattr(self.accelerator.state, "fsdp_plugin", None)
        if (
            plugin is not None
            and not self.config.lora_rank
            and (resume is None or (resume / SHARDS).is_dir())
        ):
            # Every process writes its shard: gathered, weights and moments of an 8B are 98 GB of one's memory. A run
            # that began with whole checkpoints, as older ones did, goes on with them.
            plugin.state_dict_config = plugin.optim_state_dict_config = None
            plugin.set_state_dict_type("SHARDED_STATE_DICT")
        with _quiet():
            return super().train(resume_from_checkpoint=str(resume) if resume else None)

    def create_model_card(self, *_: Any, **__: Any) -> None:
        """Disable TRL's model card, which would claim base model None."""

    @property
    def number(self) -> int:
        """Number of finished steps, which is the number of the current one, from 0."""
        return int(self.state.global_step) // self.config.minibatches

    @property
    def groups(self) -> list[int]:
        """The groups of the batch that this process trains on, by number, minibatch after minibatch.

        Every minibatch and process has equally many whole groups. Which of them share a minibatch does not depend on
        the number of processes.
        """
        config, rank = self.config, self.accelerator.process_index
        order = rng("minibatches", config.seed, self.number).permutation(config.prompts_per_step).tolist()
        size = config.prompts_per_step // config.minibatches
        mine = size // self.accelerator.num_processes
        starts = range(rank * mine, config.prompts_per_step, size)
        return [group for start in starts for group in order[start : start + mine]]

    def roll_out(self, count: int) -> dict[str, list[Any]]:
        """Collect what TRL's `rollout_func` returns: ids, masks and log-probabilities as sampled, groups in order."""
        self.clock = Clock()
        self.clock.seconds["sync"] = time.perf_counter() - self.asked
        self.update_metrics = UpdateMetrics(self.args.epsilon, self.args.epsilon_high)
        collection = self.collection = self.hooks.collect(self.number)
        self.rest()
        self.rolled = time.perf_counter()
        batch, kept = collection.batch, len(collection.kept)
        self.rollouts = [r for number in self.groups for r in batch[number].rollouts]
        if len(self.rollouts) != count:
            raise RuntimeError(f"a step has {len(self.rollouts)} rollouts where TRL expects {count}")
        # Groups that fill the batch are not in the loss, and not in its denominator either.
        trained = [number < kept for number in self.groups for _ in batch[number].rollouts]
        return {
            "prompt_ids": [r.prompt_ids for r in self.rollouts],
            "completion_ids": [r.completion_ids for r in self.rollouts],
            "logprobs": [r.logprobs for r in self.rollouts],
            "env_mask": [
                objective.loss_mask(r, self.config.mask_truncated) if t else [0] * len(r.mask)
                for r, t in zip(self.rollouts, trained, strict=True)
            ],
            "reward": [r.score.value for r in self.rollouts],
        }

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        """Return the next micro-batch as TRL does, without its shuffling of rows: `groups` shuffles whole groups, alike
        for any number of processes."""
        steps: int = self.args.steps_per_generation
        if self._step % steps == 0 or self._buffered_inputs is None:
            batch = self._generate_and_score_completions(generation_batch)
            self._buffered_inputs: Any = trl.trainer.utils.split_tensor_dict(batch, steps)
        return self._buffered_inputs[self._step % steps]

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        """Make TRL's batch, with our advantages and the sampler's log-probabilities as the old ones."""
        self.asked = time.perf_counter()
        batch = super()._generate_and_score_completions(inputs)
        batch["old_per_token_logps"] = self._as_sampled(batch["completion_ids"].shape[1])
        assert self.collection is not None
        config = self.config
        advantages_PG = objective.step_advantages(
            self.collection, config.episode_tokens, config.overlong_buffer, config.mask_truncated,
            turn=(config.turn_tokens, config.turn_buffer),
        )  # fmt: skip
        mine = torch.from_numpy(advantages_PG[self.groups].ravel())
        batch["advantages"] = mine.to(self.accelerator.device, torch.float32)
        return batch

    def _compute_loss(self, model: Any, inputs: Any) -> Tensor:
        """Compute TRL's loss and store the positions it needs: rows without an advantage have no gradient."""
        sampled = (inputs["completion_mask"] * inputs["tool_mask"]).bool()
        advantages = inputs["advantages"][:, None]
        self._trained = sampled & (advantages != 0)
        self._sampled = inputs["sampling_per_token_logps"]
        self._old = inputs["old_per_token_logps"]
        self._raised = (advantages > 0).expand_as(sampled)
        return super()._compute_loss(model, inputs)

    def _get_per_token_logps_and_entropies(
        self, model: Any, input_ids: Tensor, attention_mask: Tensor, logits_to_keep: int,
        batch_size: int | None = None, compute_entropy: bool = False, **_: Any,
    ) -> tuple[Tensor, Tensor | None, None]:  # fmt: skip
        """Compute log-probabilities and entropies (B, completion) at the trained positions.

        Elsewhere they are the sampler's and zero: rows without an advantage are not forwarded. The old
        log-probabilities are the sampler's too: nothing is computed twice. Positions are counted from each row's first
        token, as the sampler counts them.
        """
        if not torch.is_grad_enabled():
            return self._as_sampled(logits_to_keep), None, None
        with self.clock.phase("logprobs"):
            logps, entropies = self._forward(model, input_ids, attention_mask, logits_to_keep)
            if input_ids.is_cuda:
                torch.cuda.synchronize()
        assert self.collection is not None
        trained = self._trained
        change = (logps.detach() - self._old)[trained]
        self.update_metrics.add(change, entropies.detach()[trained], self._raised[trained])
        return logps, entropies, None

    def _clip_grad_norm(self, model: Any) -> Any:
        """Clip as TRL does, and note the norm. Raises RunError before the optimizer's step if it is not finite (under
        DeepSpeed, which clips and steps by itself, after it)."""
        norm = super()._clip_grad_norm(model)
        if norm is not None:
            self.update_metrics.norms.append(float(norm))
            if not math.isfinite(float(norm)):
                self.end_step(self.number + 1, f"the gradient's norm is {float(norm)}")
        return norm

    def end_step(self, number: int, broken: str = "") -> None:
        """Pass step `number` to `after`, for its row; raise RunError if it is `broken`. Every process calls this."""
        assert self.collection is not None
        seconds = {**self.collection.seconds, **self.clock.seconds}
        seconds["update"] = time.perf_counter() - self.rolled - seconds.get("logprobs", 0.0)
        update = self.update_metrics.total(self.processes)
        if broken:
            update["grad_norm"] = math.nan  # if the weights are broken, the gradient before them need not be
        self.hooks.after(Step(number, self.collection, update, seconds, self.began, broken))
        if broken:
            raise RunError(
                f"step {number}: {broken}: the policy diverges. The last checkpoint in {self.config.out} is sound: "
                "train from that in another out with a lower lr (--set starter=CHECKPOINT --set out=... --set lr=...)"
            )
        self.began = time.perf_counter()

    def weights_are_finite(self) -> bool:
        """Tell whether all trained weights are finite, in all processes, which all call this."""
        trained = (p for p in self.model.parameters() if p.requires_grad)
        mine = all(bool(torch.isfinite(held(p)).all()) for p in trained)
        return all(self.processes.all_gather(mine))

    def _forward(
        self, model: Any, input_ids: Tensor, attention_mask: Tensor, logits_to_keep: int
    ) -> tuple[Tensor, Tensor]:
        """Forward rows of similar length together; the output layer sees trained positions only, a chunk at a time."""
        labels = torch.full_like(input_ids, -100)
        labels[:, -logits_to_keep:][self._trained] = input_ids[:, -logits_to_keep:][self._trained]
        positions = (attention_mask.cumsum(dim=1) - 1).clamp(min=0)
        logps = torch.zeros(input_ids.shape, device=input_ids.device)
        entropies = torch.zeros_like(logps)
        useful = self._trained.any(dim=1)
        if not useful.any():  # without a forward pass this process would keep the others waiting
            useful[0] = True
        order = attention_mask.sum(dim=1).argsort()
        size = ROWS_AT_ONCE if self.accelerator.num_processes == 1 else len(input_ids)
        for rows in order[useful[order]].split(size):
            used = attention_mask[rows].any(dim=0).nonzero()
            columns = slice(int(used.min()), int(used.max()) + 1)
            # TRL's output layer skips unlabelled positions only where Triton runs; elsewhere it scores all padding,
            # which costs a tiny model on a CPU more than everything else.
            labelled_only = patch.object(trl.trainer.utils, "_use_triton", lambda device: True)
            with self.accelerator.autocast(), labelled_only:
                output = model(
                    input_ids=input_ids[rows, columns],
                    attention_mask=attention_mask[rows, columns],
                    position_ids=positions[rows, columns],
                    labels=labels[rows, columns],
                    fused_lm_head=True,
                )
            where = (rows[:, None], torch.arange(columns.start + 1, columns.stop, device=rows.device))
            logps = logps.index_put(where, output.log_probs)
            entropies = entropies.index_put(where, output.entropy)
        logps, entropies = logps[:, -logits_to_keep:], entropies[:, -logits_to_keep:]
        return torch.where(self._trained, logps, self._sampled), entropies

    def sync(self) -> None:
        """Send vLLM the current weights if it has others. Every process calls this."""
        if self.state.global_step != self._last_loaded_step:
            self.vllm_generation.sync_weights()
            self._last_loaded_step = self.state.global_step

    def rest(self) -> None:
        """Let a colocated vLLM give back its memory until the next sync, if it may. Every process calls this."""
        if self.vllm_sleep:
            self.vllm_sleep.sleep()
            self._last_loaded_step = -1

    def _as_sampled(self, width: int) -> Tensor:
        """Return the sampler's log-probabilities, (rollouts, width), padded with zeros."""
        padded = [r.logprobs + [0.0] * (width - len(r.logprobs)) for r in self.rollouts]
        return torch.tensor(padded, dtype=torch.float32, device=self.accelerator.device)


def held(parameter: Tensor) -> Tensor:
    """Return the part of a parameter that this process holds: its shard under FSDP2, and under ZeRO-3, where the
    parameter itself is empty between forward passes; otherwise all of it."""
    local = getattr(parameter, "ds_tensor", parameter).detach()
    return local.to_local() if isinstance(local, DTensor) else local


def can_sleep() -> bool:
    """Tell whether a colocated vLLM can give its memory back here, which one on a CPU refuses."""
    return torch.cuda.is_available()


def _reward(prompts: list[Any], completions: list[Any], reward: list[float], **_: Any) -> list[float]:
    """Return the rewards, for TRL's own log; the advantages used are those of `step_advantages`."""
    return reward


class _Bookkeeping(TrainerCallback):
    """Calls the hooks."""

    def __init__(self, trainer: DapoTrainer, hooks: Hooks) -> None:
        self.trainer = trainer
        self.hooks = hooks

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.hooks.before()  # only now is the model on its device
        self.trainer.began = time.perf_counter()

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **_: Any
    ) -> None:
        trainer = self.trainer
        if trainer.collection is None or logs is None or "train_runtime" in logs:
            return
        trainer.end_step(trainer.number, "" if trainer.weights_are_finite() else "the weights are not finite")
        if self.hooks.stops():
            control.should_save = control.should_training_stop = True

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Drop the gradients if nothing was trained: momentum alone would move the weights."""
        if not self.trainer.update_metrics.trained(self.trainer.processes):
            for parameter in self.trainer.model.parameters():
                parameter.grad = None

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        folder = Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"
        self.trainer.accelerator.wait_for_everyone()  # each process writes its own random state
        if state.is_world_process_zero:
            self.hooks.save_extra(folder)
        self.trainer.accelerator.wait_for_everyone()


def _arguments(config: TrainConfig) -> GRPOConfig:
    processes = PartialState().num_processes
    rows = config.rollouts_per_step // processes // config.minibatches
    micro_batch = config.micro_batch or rows
    accumulation = rows // micro_batch
    arguments: dict[str, Any] = {
        "output_dir": str(Path(config.out).absolute() / "checkpoints"),
        "seed": config.seed,
        "loss_type": "dapo",
        "beta": 0.0,
        "epsilon": 0.2,
        "epsilon_high": 0.28,
        "num_iterations": 1,
        "num_generations": config.group_size,
        "temperature": 1.0,
        "top_p": 1.0,
        "steps_per_generation": config.minibatches * accumulation,
        "gradient_accumulation_steps": accumulation,
        "per_device_train_batch_size": micro_batch,
        "max_completion_length": config.episode_tokens,
        "mask_truncated_completions": False,  # would drop episodes that end on a tool result; loss_mask can mask
        "disable_dropout": True,
        "shuffle_dataset": False,
        "learning_rate": config.lr,
        "adam_beta2": config.adam_beta2,
        "lr_scheduler_type": "constant_with_warmup" if config.warmup else "constant",
        "warmup_steps": config.warmup * config.minibatches,
        "weight_decay": 0.0,
        "max_grad_norm": config.max_grad_norm,
        "max_steps": config.steps * config.minibatches,
        "logging_steps": config.minibatches,
        "logging_nan_inf_filter": False,
        "save_strategy": "steps",
        "save_steps": config.checkpoint_every * config.minibatches,
        "ignore_data_skip": True,  # the data are placeholders
        "use_cpu": not torch.cuda.is_available(),
        "bf16": False,
        "activation_checkpointing": False,
        "dataloader_pin_memory": False,
        "report_to": "none",
        "disable_tqdm": True,
    }
    trl = config.trl
    if "vllm_enable_sleep_mode" in trl:
        trl["vllm_enable_sleep_mode"] &= can_sleep()
    return GRPOConfig(**{**arguments, **trl})
