"""The configuration of a training run: one frozen object, checked before anything runs."""

import math
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, NonNegativeInt, PositiveInt, model_validator

from ecomlab.catalog import Shop, load_shop
from ecomlab.catalog.synthetic import too_few
from ecomlab.evaluation.local import DECODINGS
from ecomlab.evaluation.tasks import check_axes, environments_of, held_out_seeds
from ecomlab.models.load import is_ordinary, policy_folder
from ecomlab.models.policy import DTYPES
from ecomlab.reward import PUBLISHED, Weights
from ecomlab.settings import ConfigError as ConfigError
from ecomlab.settings import Settings, checked_by, load_toml, one_of
from ecomlab.training.loggers import LOGGERS
from ecomlab.training.schedule import CHECKS, Schedule, factory_of, make_schedule, settings_of

OPTIMIZERS = ("adamw", "adamw-8bit")
GENERATIONS = ("own", "vllm-server", "vllm-colocate")
MOST_FOR_ALL = 3e-6
"""Learning rate above which a run that trains all weights of a large model is warned: DAPO uses 1e-6, LoRA ten times
that."""
KEEPS = ("correct", "reward")
SCHEDULE_SETTINGS = ("tau_acc", "tau_num", "d_delta", "initial_difficulty", "check_every")
"""Settings that are passed to a schedule whose factory has parameters of these names."""


CONSTRAINTS = {"vllm": "constraints-vllm.txt", "loggers": "constraints-loggers.txt"}
"""Pins of the extras that contradict constraints.txt (experiments/extras)."""


class RunError(RuntimeError):
    """A run that cannot continue; the work finished so far is on disk."""

    code = 2
    """Exit code of a command."""


def _passes(check: Callable[[Any], Any]) -> AfterValidator:
    """Accept a value for which `check` raises no ValueError."""

    def checked(value: Any) -> Any:
        check(value)
        return value

    return AfterValidator(checked)


def _check_starter(name: str) -> None:
    if not is_ordinary(name):
        policy_folder(name)


def _weights(given: Any) -> Any:
    """Make weights from a table of TOML or JSON."""
    return Weights.of(given) if isinstance(given, Mapping) else given


def _flat(axes: Any) -> Any:
    """Flatten nested TOML tables to names of axes: {"cart": {"items": 2}} to {"cart.items": 2}."""
    if not isinstance(axes, Mapping):
        return axes
    found: dict[Any, Any] = {}
    for name, value in axes.items():
        found |= {f"{name}.{n}": v for n, v in value.items()} if isinstance(value, Mapping) else {name: value}
    return found


Decoding = Annotated[str, one_of("decoding", DECODINGS)]
AxisValues = Annotated[Mapping[str, float], BeforeValidator(_flat)]
Blocks = Annotated[
    tuple[Annotated[NonNegativeInt, _passes(lambda block: held_out_seeds(block, 0))], ...],
    Field(strict=False, min_length=1),
    BeforeValidator(lambda given: (given,) if isinstance(given, int) else given),
]


class TrainConfig(Settings):
    """Everything that decides a run. The defaults suit a laptop; wrong values are rejected before anything runs."""

    out: Annotated[str, checked_by(lambda out: None if out else "is empty; name the folder to write to")] = (
        "experiments/runs/default"
    )
    schedule: Annotated[str, _passes(factory_of)] = "adaptive"
    """adaptive, static-low, static-high, static-A-B, or FILE.py:NAME: a class or function in a file of your own. It is
    called with the environments, and with each of `SCHEDULE_SETTINGS` for which it has a parameter."""
    schedule_settings: Mapping[str, Any] = Field(default_factory=dict)
    """Further keywords for a schedule of your own."""
    collection: Annotated[str, _passes(environments_of)] = "C1"
    """C1, C2, C4, C8, or environments, as in "CART,PD"."""
    axes: AxisValues = Field(default_factory=dict)
    """Overridden axes of all training tasks, such as {"p_missing": 0}; `difficulty.Difficulty` lists them. In a
    collection, environments that an axis does not move are played without the override."""
    eval_axes: AxisValues = Field(default_factory=dict)
    """The same for held-out tasks."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    """Below 2**32, because transformers seeds NumPy's legacy generator with it."""
    steps: PositiveInt = 60
    starter: Annotated[str, _passes(_check_starter)] = "novice"
    """A shipped starter's name or a folder with a saved policy."""
    eval_every: NonNegativeInt = 20
    """Steps between evaluations. There is always one before training and one at the end; with 0 there are no others."""
    eval_at: Annotated[tuple[PositiveInt, ...], Field(strict=False)] = ()
    """Further steps after which the policy is evaluated."""
    eval_difficulties: Annotated[tuple[NonNegativeInt, ...], Field(strict=False)] = (0, 1, 2, 3, 4)
    eval_episodes: PositiveInt = 40
    """Held-out episodes per environment, difficulty, block and decoding."""
    eval_block: Blocks = (0,)
    """One or several blocks of held-out tasks; blocks share no task and serve as evaluation seeds."""
    eval_collection: Annotated[str, _passes(lambda name: name and environments_of(name))] = ""
    """Environments to evaluate, in the format of `collection`; by default those of `collection`."""
    eval_decodings: Annotated[tuple[Decoding, ...], Field(strict=False)] = DECODINGS
    prompts_per_step: PositiveInt = 8
    group_size: Annotated[int, Field(ge=2)] = 8
    rounds: PositiveInt = 3
    """Maximum number of rounds of drawing tasks per step, including the first."""
    keep: Annotated[str, one_of("way to keep groups", KEEPS)] = "correct"
    """Which groups are kept: groups with different verdicts (correct) or with different rewards (reward)."""
    reward: Annotated[Weights, BeforeValidator(_weights)] = PUBLISHED
    """Weights of the reward's parts, in training and in evaluation."""
    minibatches: PositiveInt = 2
    """Optimizer steps per training step, each on an equal share of its groups."""
    lr: Annotated[float, Field(gt=0, lt=1)] = 3e-4
    """Learning rate; 3e-4 suits the laptop policy. All weights of a large model need about a tenth of LoRA's learning
    rate."""
    adam_beta2: Annotated[float, Field(gt=0, lt=1)] = 0.999
    """Decay of Adam's second moment; .98, as in RLVE, forgets the first steps in 50 instead of 1,000."""
    warmup: NonNegativeInt = 0
    """Linear warmup steps (Adam's first updates are full-size regardless of gradient scale)."""
    max_grad_norm: Annotated[float, Field(gt=0)] = 1.0
    micro_batch: NonNegativeInt = 0
    """Rollouts per backward pass and process; 0: a whole minibatch. Affects memory and speed, not the gradient."""
    checkpoint_every: PositiveInt = 10
    turn_tokens: PositiveInt = 256
    episode_tokens: PositiveInt = 512
    """Limits of sampled tokens per turn and per episode; an episode beyond them is truncated."""
    mask_truncated: bool = False
    """False: truncated episodes are trained with reward -1. True: they are left out of the loss, as in DAPO's overlong
    filtering. In runs with masking, truncated episodes became more frequent, but it was never tested whether masking is
    the cause: the runs with and without it had different starters."""
    overlong_buffer: NonNegativeInt = 128
    """Number of tokens before `episode_tokens` over which the soft overlong penalty falls from 0 to -1."""
    turn_buffer: NonNegativeInt = 0
    """The same for `turn_tokens` and the longest turn; 0: no penalty per turn."""
    tau_acc: Annotated[float, Field(gt=0, le=1)] = 0.9
    tau_num: NonNegativeInt = 0
    """Minimum number of rollouts at the window's upper edge for a decision; 0 means 8 x group_size."""
    d_delta: PositiveInt = 4
    """Maximum number of levels in the adaptive window."""
    initial_difficulty: NonNegativeInt = 0
    """Upper edge of the adaptive window at the start. The window spans d_delta levels down from it, but not below 0."""
    check_every: Annotated[str, one_of("time to check", CHECKS)] = "step"
    """When adaptive decides whether to move up: at the end of a step, as in RLVE, or after every group."""
    catalog: str = ""
    """Folder of a catalog made by `ecomlab catalog build`; empty: a generated catalog of `catalog_size` products."""
    catalog_size: Annotated[int, checked_by(too_few)] = 20_000
    logger: Annotated[str, one_of("logger", LOGGERS)] = "none"
    """Destination of the metrics beside the tables: none, tensorboard, trackio or wandb."""
    transcripts_every: NonNegativeInt = 50
    """Interval, in steps, at which the transcripts of two groups are written; 0: never."""
    dtype: Annotated[str, one_of("dtype", DTYPES)] = "float32"
    """Type of a Hugging Face model's weights: float32 or bfloat16. LoRA adapters are float32 either way."""
    lora_rank: NonNegativeInt = 0
    """Rank of LoRA adapters on all linear layers; 0: every weight is trained."""
    optimizer: Annotated[str, one_of("optimizer", OPTIMIZERS)] = "adamw"
    """adamw, or adamw-8bit: 8-bit moments, and stochastic rounding of bfloat16 weights, so that small updates count."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass instead of keeping them."""
    thinking: bool = False
    """True if a Hugging Face model may think before it answers."""
    context_tokens: PositiveInt = 2048
    """Limit of all tokens of an episode, prompt, tools and customer included; beyond it, the episode is truncated."""
    generation: Annotated[str, one_of("generation", GENERATIONS)] = "own"
    """Sampler: own, vllm-server (on separate GPUs), or vllm-colocate (on the training GPUs)."""
    environment_workers: NonNegativeInt = 0
    """Processes that play the environments, for each training process that samples. 0: up to eight cores with a GPU,
    which would wait for a single one; else 1, as the policy needs the cores. The rollouts do not depend on it."""
    vllm_address: str = "http://localhost:8000"
    """Address of the vLLM server."""
    vllm_memory: Annotated[float, Field(gt=0, lt=1)] = 0.3
    """Share of each GPU's memory for a colocated vLLM, its copy of the weights included."""
    vllm_sleep: bool = True
    """Free a colocated vLLM's memory during the update, and after an evaluation; it wakes with the next weights. Only
    on a GPU."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if wrong := list(self._contradictions()):
            raise ValueError("; ".join(wrong))
        return self

    def _contradictions(self) -> Iterator[str]:
        if self.dtype == "bfloat16" and not self.lora_rank and self.optimizer == "adamw":
            yield (
                "adamw on bfloat16 weights rounds small updates away; choose optimizer = 'adamw-8bit', which rounds "
                "stochastically, or lora_rank above 0, or dtype = 'float32'"
            )
        if self.context_tokens <= self.episode_tokens:
            yield (
                f"context_tokens {self.context_tokens} leaves no room for a prompt beside episode_tokens "
                f"{self.episode_tokens}; choose more"
            )
        if self.prompts_per_step % self.minibatches:
            yield (
                f"{self.prompts_per_step} groups do not split into {self.minibatches} equal minibatches; choose a "
                "divisor of prompts_per_step"
            )
        for buffer, limit in (("overlong_buffer", "episode_tokens"), ("turn_buffer", "turn_tokens")):
            if getattr(self, buffer) > getattr(self, limit):
                yield f"{buffer} {getattr(self, buffer)} exceeds {limit} {getattr(self, limit)}; choose a smaller one"
        checks: dict[str, Callable[[], Any]] = {
            "axes": lambda: check_axes(self.axes, self.envs),
            "eval_axes": lambda: check_axes(self.eval_axes, self.eval_envs),
            "schedule": self.make_schedule,
            "eval_episodes": lambda: held_out_seeds(0, self.eval_episodes),
        }
        for name, check in checks.items():
            try:
                check()
            except (ValueError, TypeError) as error:
                yield f"{name}: {error}"
        if late := [step for step in self.eval_at if step > self.steps]:
            yield f"eval_at names steps after the last, {self.steps}: {late}"
        if len(set(self.eval_block)) < len(self.eval_block):
            yield f"eval_block names a block twice: {list(self.eval_block)}"

    @property
    def envs(self) -> tuple[str, ...]:
        return environments_of(self.collection)

    @property
    def eval_steps(self) -> list[int]:
        """The steps after which the policy is evaluated, 0 being before training."""
        every = range(0, self.steps, self.eval_every) if self.eval_every else ()
        return sorted({0, *every, *self.eval_at, self.steps})

    @property
    def eval_envs(self) -> tuple[str, ...]:
        return environments_of(self.eval_collection or self.collection)

    @property
    def evaluation_episodes(self) -> int:
        """Number of held-out episodes of one evaluation."""
        cells = (self.eval_envs, self.eval_difficulties, self.eval_block, self.eval_decodings)
        return math.prod(map(len, cells)) * self.eval_episodes

    @property
    def played(self) -> tuple[str, ...]:
        """The environments that are trained or evaluated."""
        return tuple(dict.fromkeys((*self.envs, *self.eval_envs)))

    @property
    def warnings(self) -> list[str]:
        """Warnings about the run, which do not stop it."""
        found = check_axes(self.axes, self.envs)
        if is_ordinary(self.starter) and not self.lora_rank and self.lr > MOST_FOR_ALL:
            found.append(
                f"lr {self.lr:g} would suit LoRA; for all weights of a large model a tenth is usual: --set lr=1e-6"
            )
        return list(dict.fromkeys(found))

    @property
    def rollouts_per_step(self) -> int:
        return self.prompts_per_step * self.group_size

    @property
    def with_vllm(self) -> bool:
        return self.generation != "own"

    @property
    def trl(self) -> dict[str, Any]:
        """Arguments of TRL for optimizer, memory and vLLM; none at the defaults."""
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
                "vllm_enable_sleep_mode": self.vllm_sleep and self.generation == "vllm-colocate",
                "vllm_max_model_length": self.context_tokens + self.turn_tokens,
                "vllm_importance_sampling_correction": False,  # the loss takes vLLM's log-probabilities as the old ones
            }
        return arguments

    def load_shop(self) -> Shop:
        """Load the catalog, once per process. Raises CatalogError for a folder that holds none."""
        return load_shop(self.catalog or self.catalog_size)

    @property
    def catalog_place(self) -> dict[str, Any]:
        """How to load the catalog; recorded beside its fingerprint."""
        if self.catalog:
            return {"folder": self.catalog}
        return {"size": self.catalog_size, "seed": 0}

    def make_schedule(self, which: Any = None) -> Schedule:
        """Make the schedule at its start: `which`, as `schedule.make_schedule` takes it, or that of the settings."""
        which = self.schedule if which is None else which
        tau_num = self.tau_num or 8 * self.group_size
        known = {name: getattr(self, name) for name in SCHEDULE_SETTINGS} | {"tau_num": tau_num}
        settings = {**settings_of(which, known), **self.schedule_settings}
        return make_schedule(which, self.envs, **settings)


def check_model(config: TrainConfig) -> None:
    """Check that the configuration fits the model. Raises ConfigError."""
    if not is_ordinary(config.starter):
        plain = TrainConfig()
        for name in ("dtype", "thinking", "generation"):
            if getattr(config, name) != getattr(plain, name):
                raise ConfigError(
                    f"{name} = {getattr(config, name)!r} is for Hugging Face models; the starter {config.starter} "
                    f"takes only {getattr(plain, name)!r}: leave it out, or choose a starter such as Qwen/Qwen3-8B"
                )


def lacking(config: TrainConfig) -> Iterator[str]:
    """Describe each missing package that the run needs."""
    for package, needed, extra in (
        ("torchao", config.optimizer == "adamw-8bit", "gpu"),
        ("vllm", config.with_vllm, "vllm"),
        (config.logger, config.logger != "none", "loggers"),
    ):
        if needed and find_spec(package) is None:
            yield (
                f"this configuration needs {package}, which is not installed; "
                f"pip install -c {CONSTRAINTS.get(extra, 'constraints.txt')} -e '.[{extra}]' brings it"
            )


def check_split(config: TrainConfig, processes: int) -> None:
    """Check that groups can be split over the processes, whole and evenly. Raises ConfigError."""
    if config.prompts_per_step % (processes * config.minibatches):
        raise ConfigError(
            f"{config.prompts_per_step} groups in {config.minibatches} minibatches do not split over {processes} "
            f"processes; choose prompts_per_step as a multiple of {processes * config.minibatches}"
        )
    rows = config.rollouts_per_step // processes // config.minibatches
    if config.micro_batch and rows % config.micro_batch:
        raise ConfigError(
            f"micro_batch {config.micro_batch} does not divide the {rows} rollouts of a process's minibatch; choose a "
            f"divisor of {rows}"
        )


def from_toml(path: Path | None, changes: Mapping[str, Any] | None = None) -> TrainConfig:
    """Read `TrainConfig` from a TOML file of its fields, or the defaults without a file, overridden by `changes`, which
    messages call --set. A name such as "reward.task" changes one entry of a table. Raises ConfigError.
    """
    given = load_toml(path, "experiments/*/train.toml are examples") if path else {}
    if "notebook" in given:
        raise ConfigError(f"{path} is a sweep's file, not a run's; `ecomlab sweep {path}` executes it")
    for name, value in (changes or {}).items():
        table, _, entry = name.partition(".")
        given[table] = {**given.get(table, {}), entry: value} if entry else value
    try:
        return TrainConfig(**given)
    except ConfigError as error:
        sources = [*([str(path)] if path else []), *(["--set"] if changes else [])]
        raise ConfigError(f"{' with '.join(sources)}: {error}") from None
