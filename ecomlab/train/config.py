"""The configuration of a training run: every choice in one frozen object, checked before anything runs."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ecomlab.envs.registry import COLLECTIONS, ENVIRONMENTS
from ecomlab.suggest import unknown
from ecomlab.train.loggers import LOGGERS
from ecomlab.train.schedule import Schedule, make_schedule

DECODINGS = ("sampled", "greedy")
DTYPES = ("float32", "bfloat16")
OPTIMIZERS = ("adamw", "adamw-8bit")
GENERATIONS = ("own", "vllm-server", "vllm-colocate")


class ConfigError(ValueError):
    """A configuration that cannot run; the message names the way out."""


class RunError(RuntimeError):
    """A run that cannot go on; the work finished so far is on disk."""


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides a run. The defaults run on a laptop; wrong values stop before anything happens."""

    out: str = "experiments/runs/default"
    schedule: str = "adaptive"
    """adaptive, static-low, static-high, or static-A-B."""
    collection: str = "C1"
    seed: int = 0
    steps: int = 60
    starter: str = "novice"
    """A shipped starter's name or a folder with a saved policy."""
    eval_every: int = 20
    eval_difficulties: tuple[int, ...] = (0, 1, 2, 3, 4)
    eval_episodes: int = 40
    """Held-out episodes per environment, difficulty and decoding."""
    eval_decodings: tuple[str, ...] = DECODINGS
    prompts_per_step: int = 8
    group_size: int = 8
    rounds: int = 3
    """At most so many rounds of drawing a step, the first included."""
    keep: str = "correct"
    """Which groups teach: those whose verdicts differ (correct) or whose rewards do (reward)."""
    minibatches: int = 2
    """Optimizer steps per step, each on as many groups."""
    lr: float = 3e-4
    max_grad_norm: float = 1.0
    micro_batch: int = 0
    """Rollouts per backward pass and process; 0: a whole minibatch. Changes memory and speed, not the gradient."""
    checkpoint_every: int = 10
    turn_tokens: int = 256
    episode_tokens: int = 512
    """Sampled tokens per turn and per episode; beyond, the episode is truncated and masked."""
    overlong_buffer: int = 128
    """The soft overlong penalty grows from 0 to -1 over the last so many of `episode_tokens`."""
    tau_acc: float = 0.9
    tau_num: int = 0
    """Rollouts at the window's upper edge before a check; 0 means 8 x group_size."""
    d_delta: int = 4
    catalog_size: int = 20_000
    catalog_seed: int = 0
    logger: str = "none"
    """Where figures go beside the tables: none, tensorboard, trackio or wandb."""
    dtype: str = "float32"
    """Of an ordinary model's weights: float32 or bfloat16. LoRA adapters are float32 either way."""
    lora_rank: int = 0
    """Rank of LoRA adapters on all linear layers; 0: every weight is trained."""
    optimizer: str = "adamw"
    """adamw, or adamw-8bit: 8-bit moments, and bfloat16 weights rounded stochastically, so that no update is lost."""
    gradient_checkpointing: bool = False
    """Compute activations twice instead of keeping them."""
    thinking: bool = False
    """Whether an ordinary model may think before it speaks."""
    context_tokens: int = 2048
    """All tokens of an episode, prompt, tools and customer included; beyond, it is truncated and masked."""
    generation: str = "own"
    """Who samples: own, vllm-server (on GPUs of its own), or vllm-colocate (on the training GPUs)."""
    vllm_address: str = "http://localhost:8000"
    """Of a vLLM server."""
    vllm_memory: float = 0.3
    """Share of each GPU's memory that a colocated vLLM takes, its copy of the weights included."""

    def __post_init__(self) -> None:
        for name in ("eval_difficulties", "eval_decodings"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not str(self.out):
            raise ConfigError("out is empty; name the folder that the run writes to")
        if self.collection not in COLLECTIONS:
            raise ConfigError(unknown("collection", self.collection, COLLECTIONS))
        if absent := [env for env in self.envs if env not in ENVIRONMENTS]:
            raise ConfigError(
                f"collection {self.collection} needs {', '.join(absent)}, which this version does not have; "
                f"there are {', '.join(ENVIRONMENTS)}: choose a collection of those"
            )
        _at_least(self, 0, "seed", "eval_every", "tau_num", "catalog_seed", "overlong_buffer", "micro_batch")
        _at_least(
            self, 1, "steps", "eval_episodes", "prompts_per_step", "rounds", "minibatches", "checkpoint_every"
        )
        _at_least(self, 1, "turn_tokens", "episode_tokens", "context_tokens", "d_delta", "catalog_size")
        _at_least(self, 0, "lora_rank")
        _at_least(self, 2, "group_size")
        if not (isinstance(self.lr, int | float) and 0 < self.lr < 1):
            raise ConfigError(
                f"lr is a learning rate between 0 and 1, not {self.lr!r}; 3e-4 suits the laptop policy"
            )
        if not (isinstance(self.max_grad_norm, int | float) and self.max_grad_norm > 0):
            raise ConfigError(f"max_grad_norm is a positive number, not {self.max_grad_norm!r}")
        if self.keep not in ("correct", "reward"):
            raise ConfigError(unknown("way to keep groups", self.keep, ("correct", "reward")))
        if self.logger not in LOGGERS:
            raise ConfigError(unknown("logger", self.logger, LOGGERS))
        for what, known in (("dtype", DTYPES), ("optimizer", OPTIMIZERS), ("generation", GENERATIONS)):
            if getattr(self, what) not in known:
                raise ConfigError(unknown(what, str(getattr(self, what)), known))
        for name in ("gradient_checkpointing", "thinking"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"{name} is true or false, not {getattr(self, name)!r}")
        if self.dtype == "bfloat16" and not self.lora_rank and self.optimizer == "adamw":
            raise ConfigError(
                "adamw on bfloat16 weights rounds small updates away; choose optimizer = 'adamw-8bit', which rounds "
                "stochastically, or lora_rank above 0, or dtype = 'float32'"
            )
        if self.context_tokens <= self.episode_tokens:
            raise ConfigError(
                f"context_tokens {self.context_tokens} leaves no room for a prompt beside episode_tokens "
                f"{self.episode_tokens}; choose more"
            )
        if not (isinstance(self.vllm_memory, int | float) and 0 < self.vllm_memory < 1):
            raise ConfigError(f"vllm_memory is a share between 0 and 1, not {self.vllm_memory!r}")
        for decoding in self.eval_decodings:
            if decoding not in DECODINGS:
                raise ConfigError(unknown("decoding", decoding, DECODINGS))
        if any(isinstance(d, bool) or not isinstance(d, int) or d < 0 for d in self.eval_difficulties):
            raise ConfigError(f"eval_difficulties are whole numbers from 0 up, not {self.eval_difficulties}")
        if self.prompts_per_step % self.minibatches:
            raise ConfigError(
                f"{self.prompts_per_step} groups do not split into {self.minibatches} equal minibatches; choose a "
                "divisor of prompts_per_step"
            )
        if self.overlong_buffer > self.episode_tokens:
            raise ConfigError(
                f"overlong_buffer {self.overlong_buffer} exceeds episode_tokens {self.episode_tokens}; "
                "choose a smaller one, 0 for no penalty"
            )
        try:
            self.make_schedule()
        except ValueError as error:
            raise ConfigError(str(error)) from None

    @property
    def envs(self) -> tuple[str, ...]:
        return COLLECTIONS[self.collection]

    @property
    def rollouts_per_step(self) -> int:
        return self.prompts_per_step * self.group_size

    @property
    def with_vllm(self) -> bool:
        return self.generation != "own"

    @property
    def trl(self) -> dict[str, Any]:
        """TRL's arguments for optimizer, memory and vLLM; none for the laptop policy."""
        arguments: dict[str, Any] = {}
        if self.optimizer == "adamw-8bit":
            arguments |= {"optim": "adamw_torch_8bit", "optim_args": "bf16_stochastic_round=True"}
        if self.gradient_checkpointing:
            arguments |= {"activation_checkpointing": True}
        if self.with_vllm:
            arguments |= {
                "use_vllm": True,
                "vllm_mode": self.generation.removeprefix("vllm-"),
                "vllm_server_base_url": self.vllm_address,
                "vllm_gpu_memory_utilization": self.vllm_memory,
                "vllm_max_model_length": self.context_tokens + self.turn_tokens,
                "vllm_importance_sampling_correction": False,  # vLLM's are the old log-probabilities of the loss
            }
        return arguments

    def make_schedule(self) -> Schedule:
        """The schedule at its start."""
        tau_num = self.tau_num or 8 * self.group_size
        return make_schedule(
            self.schedule, self.envs, tau_acc=self.tau_acc, tau_num=tau_num, d_delta=self.d_delta
        )

    def to_json(self) -> dict[str, Any]:
        """JSON values; `TrainConfig(**value)` gives an equal configuration."""
        return json.loads(json.dumps(asdict(self)))


def from_toml(path: Path, changes: Mapping[str, Any] | None = None) -> TrainConfig:
    """The configuration in a TOML file of `TrainConfig`'s fields, with `changes` on top. Raises ConfigError."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8")) | dict(changes or {})
    except FileNotFoundError:
        raise ConfigError(f"no file {path}; experiments/*/train.toml are examples") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    known = [field.name for field in fields(TrainConfig)]
    for name in given:
        if name not in known:
            raise ConfigError(f"{path}: {unknown('setting', name, known)}")
    return TrainConfig(**given)


def _at_least(config: TrainConfig, least: int, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ConfigError(f"{name} is a whole number from {least} up, not {value!r}")
