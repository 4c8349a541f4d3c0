"""Estimate a run before it starts: memory and seconds by part, the reach of its token limits, and the launch commands.

Nothing is trained or downloaded. Memory and seconds are arithmetic on the model's dimensions and on `ASSUMED`;
measurements of GPUs are in `bench.csv` beside the run's file (`experiments/qwen3_8b/bench.py`). Limits are compared
with the tokens of a courteous player's episodes, which `experiments/tokens/count.py` counted.
"""

import json
import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from ecomlab.models.load import is_ordinary, policy_folder
from ecomlab.models.policy import CONFIG, PolicyError
from ecomlab.training.config import ConfigError, TrainConfig, check_model, check_split, from_toml, lacking
from ecomlab.training.schedule import windows
from ecomlab.training.tokens import TABLE, read_table

KNOWN = {  # config.json of the repositories on huggingface.co
    "Qwen/Qwen3-8B": {
        "vocab_size": 151_936,
        "hidden_size": 4096,
        "intermediate_size": 12_288,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "tie_word_embeddings": False,
    }
}
"""Models whose dimensions are known without their files, in the order of `Size`'s fields."""
MFU, EFFICIENCY = 0.4, 0.6
"""Shares of the peak FLOP/s that training and prefill reach, and of the bandwidth that vLLM's decoding reaches."""


class Card(NamedTuple):
    """A GPU, by NVIDIA's data sheet."""

    gb: float
    bandwidth: float
    """Bytes/s of its memory."""
    peak: float
    """Dense bfloat16 FLOP/s."""


CARDS = {
    "A100": Card(40.0, 1.555e12, 312e12),
    "H100": Card(80.0, 3.35e12, 989e12),
    "H200": Card(141.0, 4.8e12, 989e12),
}
"""The GPUs that a plan is made for."""
SHOWN = {name: f"{card.gb:.0f} GB" for name, card in CARDS.items()}
OWN_KERNELS = 1.5e-4
"""Seconds a layer in a decoding step of our own sampler besides reading weights, keys and values: some 65 replayed
kernels of 2 microseconds, and sampling. Worked out, not measured; without graphs a step of the 8B took 0.0995 s on an
H200, and 0.15 with unmerged LoRA. Captures are not counted."""
OWN_LAG, VLLM_LAG = 3.6, 4.6
"""Decoding steps per sampled token of a mean episode: rows wait for the longest turn of the batch, with vLLM in every
turn. As *novice* plays, on a laptop."""
WRITES = 0.5
"""Tokens of a policy's mean episode per token of the courteous player's longest."""
VLLM_OWN = 2.5
"""GB of a vLLM besides weights, keys and values: graphs, workspaces, activations. They stay while it sleeps."""
VLLM_WIDTH = 2
"""Bytes per number in vLLM's weights and KV cache, whatever `dtype`."""
TILE, TILE_TOKENS = 32_768, 4_096
"""Vocabulary entries and most positions of a tile of the output layer (trl.kernels)."""
MEASURED, SHARDED = "bench.csv", "fsdp.yaml"
"""Files beside a run's: measurements of GPUs, and the launch configuration for a machine's GPUs."""
ASSUMED = (
    "Assumed: 40% of a GPU's FLOP/s, 60% of its bandwidth with vLLM; episodes of the token table's length."
)


@dataclass(frozen=True)
class Size:
    """A Qwen3's dimensions."""

    vocabulary: int
    hidden: int
    feed_forward: int
    layers: int
    heads: int
    kv_heads: int
    head: int
    tied: bool

    @property
    def maps(self) -> tuple[tuple[int, int], ...]:
        """(in, out) of a layer's seven linear maps."""
        inner, outer, kv = self.heads * self.head, self.hidden, self.kv_heads * self.head
        attention = ((outer, inner), (outer, kv), (outer, kv), (inner, outer))
        return (*attention, *((outer, self.feed_forward),) * 2, (self.feed_forward, outer))

    @property
    def parameters(self) -> int:
        """Linear maps, four norms a layer, a last norm, embedding and output layer (one where tied)."""
        layer = sum(a * b for a, b in self.maps) + 2 * self.hidden + 2 * self.head
        return self.layers * layer + self.hidden + (1 if self.tied else 2) * self.vocabulary * self.hidden

    def adapters(self, rank: int) -> int:
        """Count the parameters of LoRA on all linear maps: rank (in + out) each."""
        return self.layers * rank * sum(a + b for a, b in self.maps)

    def kv_bytes(self, width: int = 2) -> int:
        """Count the bytes of one token's keys and values in all layers."""
        return 2 * self.layers * self.kv_heads * self.head * width

    def activations(self, tokens: int, checkpointing: bool, width: int = 2, adapters: bool = False) -> float:
        """Estimate the bytes kept for the backward pass.

        Per token and layer: inputs and outputs of the norms (4 hidden), of the attention (3 inner + 4 kv) and of the
        feed-forward (4 of its width); no scores, which fused attention does not keep. With LoRA's float32 `adapters`:
        copies of every linear map's input and output in float32 as well. With checkpointing: one layer of that, and
        the input of every layer.
        """
        inner, kv = self.heads * self.head, self.kv_heads * self.head
        layer = width * (4 * self.hidden + 3 * inner + 4 * kv + 4 * self.feed_forward)
        layer += 4 * sum(a + b for a, b in self.maps) * adapters
        kept = layer + self.layers * self.hidden * width if checkpointing else layer * self.layers
        return tokens * kept


def size_of(starter: str) -> Size:
    """Read dimensions from the model's config.json, in its folder or the Hugging Face cache, else from `KNOWN`.

    Raises PolicyError when none of them has the model.
    """
    given: dict[str, Any]
    if not is_ordinary(starter):
        given = json.loads((policy_folder(starter) / CONFIG).read_text())
    else:
        try:
            from transformers import AutoConfig

            given = AutoConfig.from_pretrained(starter, local_files_only=True).to_dict()
        except Exception as error:
            if starter not in KNOWN:
                raise PolicyError(
                    f"the dimensions of {starter} are not known here; `hf download {starter} config.json` fetches them"
                ) from error
            given = KNOWN[starter]
    try:
        dimensions: list[Any] = [given[name] for name in KNOWN["Qwen/Qwen3-8B"]]
        return Size(*dimensions)
    except KeyError as error:
        raise PolicyError(f"the config.json of {starter} has no {error}; choose a Qwen3 model") from None


def memory(config: TrainConfig, size: Size, processes: int = 1, card: str = "H200") -> dict[str, float]:
    """Estimate GB per GPU of `CARDS` by part, at the limits of the configuration, weights sharded over `processes`.

    weights         parameters x 2 or 4 bytes; trained ones x 4 under FSDP's mixed precision; adapters x 4
    gradients       trained parameters, in their type
    optimizer       AdamW: two moments, 8 bytes a trained parameter in float32; adamw-8bit: 2, and a scale per 256
    activations     of `micro_batch` episodes of `context_tokens` (`Size.activations`), LoRA too
    logits          one tile of the output layer, and the float32 gradient of the layer where it is trained
    merged          the copy of layers with adapters that our own sampler reads
    keys, values    all rollouts of a process at `context_tokens`
    vLLM            the share given to it; on a server, nothing here

    Before the update our own sampler frees its cache and copy, and a vLLM that sleeps its share, so "peak" counts the
    larger of the two phases.
    """
    width = 2 if config.dtype == "bfloat16" else 4
    trained = size.adapters(config.lora_rank) if config.lora_rank else size.parameters
    trained_width = 4 if config.lora_rank or (processes > 1) else width
    frozen = size.parameters * width if config.lora_rank else 0
    moments = (2 + 2 * 4 / 256) if config.optimizer == "adamw-8bit" else 2 * trained_width
    rows = config.rollouts_per_step // processes
    micro = config.micro_batch or max(1, rows // config.minibatches)
    compute = 2 if config.dtype == "bfloat16" or processes > 1 else 4
    tokens, adapters = micro * config.context_tokens, config.lora_rank > 0 and compute == 2
    positions = min(TILE_TOKENS, tokens, micro * config.episode_tokens)
    head = 4 * size.vocabulary * size.hidden if not config.lora_rank else 0
    merges = config.lora_rank > 0 and not config.with_vllm
    parts = {
        "weights": (frozen + trained * trained_width) / processes,
        "gradients": trained * trained_width / processes,
        "optimizer": trained * moments / processes,
        "activations": size.activations(tokens, config.gradient_checkpointing, compute, adapters),
        "logits": positions * min(TILE, size.vocabulary) * compute + head,
        "merged": size.layers * sum(a * b for a, b in size.maps) * width if merges else 0.0,
        "keys, values": rows * config.context_tokens * size.kv_bytes(width) if not config.with_vllm else 0.0,
        "vLLM": config.vllm_memory * CARDS[card].gb * 1e9 if config.generation == "vllm-colocate" else 0.0,
    }
    gb = {name: value / 1e9 for name, value in parts.items()}
    asleep = VLLM_OWN if config.generation == "vllm-colocate" else 0.0
    standing = ["weights", "optimizer"]
    sampling, update = ["merged", "keys, values"], ["gradients", "activations", "logits"]
    (sampling if config.vllm_sleep else standing).append("vLLM")
    phases = [sum(gb[name] for name in names) for names in (sampling, update)]
    phases[1] += asleep if config.vllm_sleep else 0.0
    gb["peak"] = sum(gb[name] for name in standing) + max(phases)
    return gb


def fits(config: TrainConfig, size: Size, processes: int = 1, card: str = "H200") -> bool:
    """Tell whether a GPU of `CARDS` holds the run on paper, and vLLM's share its weights and its longest row."""
    longest = (config.context_tokens + config.turn_tokens) * size.kv_bytes(VLLM_WIDTH) / 1e9
    starts = config.generation != "vllm-colocate" or room(config, size, card) >= longest
    return starts and memory(config, size, processes, card)["peak"] <= CARDS[card].gb


def room(config: TrainConfig, size: Size, card: str = "H200") -> float:
    """Estimate the GB that a colocated vLLM has for keys and values; below 0 it does not start."""
    return config.vllm_memory * CARDS[card].gb - VLLM_WIDTH * size.parameters / 1e9 - VLLM_OWN


class Mean(NamedTuple):
    """Tokens of a mean episode, prompt and tools included, and those of them that the policy samples."""

    whole: int
    sampled: int


def mean_episode(config: TrainConfig, counts: Path = TABLE) -> Mean:
    """Take a mean episode of the collection over the token table's levels, cut at the configuration's limits."""
    rows = [row for row in read_table(counts) if row.env in config.envs]
    whole, sampled = 2_000, 1_000
    if rows:
        whole = round(np.mean([row.median for row in rows]))
        sampled = round(WRITES * np.mean([row.written for row in rows]))
    whole = min(whole, config.context_tokens)
    return Mean(whole, min(sampled, config.episode_tokens, whole))


def seconds(
    config: TrainConfig, size: Size, mean: Mean, processes: int = 1, card: str = "H200"
) -> dict[str, float]:
    """Estimate the seconds of a step of one round by phase on GPUs of `CARDS`, given a mean episode.

    "evaluation" is that of the whole run over its steps; a held-out episode takes what a rollout takes.

    - prefill: 2 N FLOP for every token that is not sampled
    - decoding: sampled tokens of a mean episode x lag steps, each reading all weights and the rollouts' keys and values
      once; own: and `OWN_KERNELS` a layer; vLLM: at its share of the bandwidth
    - update: forward 2 N, backward 4 N (2 N with LoRA: frozen weights have no gradient), with gradient checkpointing
      2 N more, for every token of the batch

    at `MFU` of the peak where FLOP count. Left out are attention's own FLOP (4% at 2,000 tokens of the 8B), and
    prefixes for which vLLM has no `room` and which it reads again.
    """
    rows = config.rollouts_per_step
    rate = MFU * CARDS[card].peak * processes
    flop = 2 * size.parameters
    width = VLLM_WIDTH if config.with_vllm else 2 if config.dtype == "bfloat16" else 4
    read = size.parameters * width + rows / processes * mean.whole / 2 * size.kv_bytes(width)
    own, bandwidth = OWN_KERNELS * size.layers, CARDS[card].bandwidth
    step = read / (bandwidth * EFFICIENCY) if config.with_vllm else read / bandwidth + own
    passes = (2 if config.lora_rank else 3) + config.gradient_checkpointing
    prefill = rows * (mean.whole - mean.sampled) * flop / rate
    decoding = mean.sampled * (VLLM_LAG if config.with_vllm else OWN_LAG) * step
    return {
        "prefill": prefill,
        "decoding": decoding,
        "update": rows * mean.whole * flop * passes / rate,
        "evaluation": held_out_share(config) * (prefill + decoding),
    }


def held_out_share(config: TrainConfig) -> float:
    """Return the held-out episodes of a run for each rollout of its steps of one round."""
    held_out = len(config.eval_steps) * config.evaluation_episodes
    return held_out / (config.steps * config.rollouts_per_step)


# --- how far the token limits reach ---


class Reach(NamedTuple):
    """Levels of one environment at which 99% of courteous episodes fit the token limits."""

    env: str
    holds: int | None
    """Highest counted level up to which they fit; None if they fit at no level."""
    breaks: int | None
    """Lowest counted level at which they do not fit; None if they fit at every level."""
    played: int | None
    """Highest level that the schedule can draw at the start, or that is evaluated."""


def reaches(config: TrainConfig, counts: Path = TABLE) -> Iterator[Reach]:
    """Find the reach of a chat policy's token limits in each environment of the token table."""
    rows = read_table(counts) if is_ordinary(config.starter) else []
    limits = np.array([config.context_tokens, config.episode_tokens, config.turn_tokens])
    drawn = windows(config.make_schedule(), config.envs)
    for env in config.played:
        fits = {
            row.d: bool((limits >= (row.p99, row.written, row.turn)).all()) for row in rows if row.env == env
        }
        breaks = min((d for d in fits if not fits[d]), default=None)
        holds = max((d for d in fits if breaks is None or d < breaks), default=None)
        evaluated = config.eval_difficulties if env in config.eval_envs else ()
        played = max([*evaluated, *drawn.get(env, ())], default=None)
        if fits:
            yield Reach(env, holds, breaks, played)


# --- the commands that start a run ---


class Launch(NamedTuple):
    """One way to start a run: the number of processes, and the commands in order, training last."""

    processes: int
    lines: tuple[str, ...]


def launches(config: TrainConfig, file: Path | None) -> list[Launch]:
    """List the ways to start the run of `config`, read from `file` if there is one: in one process, and sharded over
    the GPUs of the launch configuration beside the file, as far as the groups divide evenly.

    Our own sampler needs all weights in every process, so only runs with vLLM can be sharded. Raises ConfigError if the
    configuration cannot be started even with one process.
    """
    check_split(config, 1)
    train = ["ecomlab", "train", *_arguments(config, file)]
    server = (serving(config),) if config.generation == "vllm-server" else ()
    found = [Launch(1, (*server, shlex.join(train)))]
    launch = _folder(file) / SHARDED
    most = _processes(launch) if config.with_vllm and launch.exists() else 1
    if (many := split_over(config, most)) > 1:
        sharded = ["accelerate", "launch", "--config_file", str(launch)]
        sharded += ["--num_processes", str(many)] if many != most else []
        found.append(Launch(many, (*server, shlex.join([*sharded, "-m", *train]))))
    return found


def split_over(config: TrainConfig, most: int) -> int:
    """Find the largest number of processes, at most `most`, over which the run's groups divide evenly."""
    for processes in range(most, 1, -1):
        with suppress(ConfigError):
            check_split(config, processes)
            return processes
    return 1


def serving(config: TrainConfig) -> str:
    """Write the command of the vLLM server that a run samples from, its environment before it."""
    port = config.vllm_address.rpartition(":")[2].strip("/")
    serve = [
        "vllm", "serve", config.starter, "--port", port if port.isdigit() else "8000",
        "--max-model-len", str(config.context_tokens + config.turn_tokens),
        "--weight-transfer-config", '{"backend": "nccl"}',
        "--logprobs-mode", "processed_logprobs", "--max-logprobs", "-1",
    ]  # fmt: skip
    return "VLLM_SERVER_DEV_MODE=1 " + shlex.join(serve)


def _folder(file: Path | None) -> Path:
    return file.parent if file else Path()


def _processes(launch: Path) -> int:
    """Count the processes that a launch configuration starts."""
    from accelerate.commands.config.config_args import load_config_from_file

    return int(load_config_from_file(str(launch)).num_processes)


def _arguments(config: TrainConfig, file: Path | None) -> list[str]:
    """List the arguments of `ecomlab train` that give `config`: the file, and --set where it differs."""
    arguments = ["--config", str(file)] if file else []
    before = from_toml(file).to_json()
    for name, value in config.to_json().items():
        if value != before[name]:
            arguments += ["--set", f"{name}={value if isinstance(value, str) else _toml(value)}"]
    return arguments


def _toml(value: Any) -> str:
    """Write a setting's value for --set: as JSON, but for tables, which TOML writes with equals signs."""
    if not isinstance(value, dict):
        return json.dumps(value)
    return "{" + ", ".join(f"{json.dumps(name)} = {_toml(inner)}" for name, inner in value.items()) + "}"


# --- the report ---


def show_plan(config: TrainConfig, file: Path | None, console: Console, counts: Path = TABLE) -> None:
    """Print the estimate for a run of `config`, read from `file` if there is one; `counts` is the token table."""
    check_model(config)
    size, mean, ways = size_of(config.starter), mean_episode(config, counts), launches(config, file)
    for table in (
        _run_table(config, size, mean),
        _memory_table(config, size, ways),
        *([_seconds_table(config, size, mean, ways)] if is_ordinary(config.starter) else []),
        *_measured_tables(_folder(file) / MEASURED),
        *_reach_tables(config, counts),
    ):
        console.print(table)
    for words in (*config.warnings, *lacking(config)):
        console.print(f"warning: {words}", soft_wrap=True, style="yellow", markup=False)
    for way in ways:
        less = [name for card, name in SHOWN.items() if not fits(config, size, way.processes, card)]
        console.print(f"\n{_where(way)}{f', more than {less[-1]}' if less else ''}:")
        for line in way.lines:
            console.print(f"  {line}", soft_wrap=True, markup=False)
    console.print("nothing was trained")


def _where(way: Launch) -> str:
    return "1 process" if way.processes == 1 else f"{way.processes} processes, sharded"


def _run_table(config: TrainConfig, size: Size, mean: Mean) -> Table:
    trained = size.adapters(config.lora_rank) if config.lora_rank else size.parameters
    evaluations, rows = len(config.eval_steps), config.rollouts_per_step
    table = Table("run", config.starter)
    for name, value in {
        "parameters": f"{size.parameters:,} in {config.dtype}",
        "trained parameters": f"{trained:,}",
        "steps": f"{config.steps:,}",
        "rollouts a round": f"{rows:,}",
        "rounds a step": f"1 to {config.rounds}",
        "tokens a round": f"{rows * mean.whole:,}",
        "sampled tokens a round": f"{rows * mean.sampled:,}",
        "evaluations": f"{evaluations:,}",
        "held-out episodes": f"{evaluations * config.evaluation_episodes:,}, {held_out_share(config):.0%} of a "
        "round's rollouts",
    }.items():
        table.add_row(name, value)
    return table


def _memory_table(config: TrainConfig, size: Size, ways: list[Launch]) -> Table:
    """Show each part, and apart for each card what depends on it."""
    table = Table("GB per GPU at the limits, on paper", *map(_where, ways))
    for part in memory(config, size):
        rows = {
            name: [memory(config, size, way.processes, card)[part] for way in ways]
            for card, name in SHOWN.items()
        }
        alike = len(set(map(tuple, rows.values()))) == 1
        for name, values in list(rows.items())[: 1 if alike else None]:
            table.add_row(part if alike else f"{part}, {name}", *(f"{value:,.1f}" for value in values))
    return table


def _seconds_table(config: TrainConfig, size: Size, mean: Mean, ways: list[Launch]) -> Table:
    """Show each way to start it, and for our own sampler also vLLM on the one GPU, which may be faster."""
    shown = {_where(way): (config, way.processes) for way in ways}
    if not config.with_vllm:
        shown["1 process, vllm-colocate"] = (config.replace(generation="vllm-colocate"), 1)
    found = {
        f"{way}, {name}": seconds(each, size, mean, processes, card)
        for way, (each, processes) in shown.items()
        for card, name in SHOWN.items()
    }
    phases = next(iter(found.values()))
    table = Table("seconds a round, on paper", *phases, "hours", caption=ASSUMED)
    for way, spent in found.items():
        hours = config.steps * sum(spent.values()) / 3600
        table.add_row(way, *(f"{value:,.0f}" for value in spent.values()), f"{hours:,.1f}")
    return table


def _measured_tables(file: Path) -> Iterator[Table]:
    """Show the measurements of GPUs, by their names."""
    if not file.is_file():
        return
    measured = pd.read_csv(file, dtype=str, keep_default_na=False).query("device != 'CPU'")
    table = Table("measured on", "what", "size", "seconds", "peak GB", "tokens")
    for row in measured[["device", "what", "size", "seconds", "peak_gb", "tokens"]].itertuples(index=False):
        table.add_row(*row)
    yield table


def _reach_tables(config: TrainConfig, counts: Path) -> Iterator[Table]:
    table = Table("token limits", "hold up to d", "not at d", "played up to d")
    for one in reaches(config, counts):
        levels = ["-" if d is None else str(d) for d in (one.holds, one.breaks, one.played)]
        beyond = one.breaks is not None and one.played is not None and one.played > (one.holds or -1)
        table.add_row(one.env, *levels, style="yellow" if beyond else None)
    if table.row_count:
        yield table
