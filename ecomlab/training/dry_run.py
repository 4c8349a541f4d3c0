"""Estimates of a run before it starts: memory by part, tokens per step, the bottleneck, and the commands to launch it.

Nothing is trained or downloaded. The numbers are arithmetic on the model's dimensions and on the assumptions printed
with them: on paper, until `bench.csv` beside the run's file has what a GPU measured (`experiments/qwen3_8b/bench.py`).
They show whether a run can fit and where its bottleneck lies. How far up its token limits reach is counted, not
estimated.
"""

import csv
import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ecomlab.models.load import is_ordinary, policy_folder
from ecomlab.models.policy import CONFIG, PolicyError
from ecomlab.training import reach
from ecomlab.training.config import TrainConfig
from ecomlab.training.launch import Launch, launches
from ecomlab.training.loop import check_model, lacking
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

GPU = "H200 with 141 GB"
GPU_GB, BANDWIDTH, PEAK = 141.0, 4.8e12, 989e12
"""Memory in GB, bytes/s, and dense bfloat16 FLOP/s, from NVIDIA's data sheets."""
MFU = 0.4
"""Share of the peak FLOP/s that training and prefill reach."""
OWN_STEP = 0.1
"""Least seconds of one decoding step of our own sampler, measured on an H200 with the 8B: .0995 where 64 rows grow to
2,000 tokens (experiments/qwen3_8b/bench.csv); with LoRA's adapters apart .086 in CART and .118 in C8, if `OWN_LAG` is
right (steps.csv beside it). Reading the weights takes a thirtieth of that."""
OWN_LAG, VLLM_LAG = 3.6, 4.6
"""Decoding steps per sampled token of a mean episode: rows wait for the batch's longest turn, with vLLM in every turn.
As *novice* plays, on a laptop."""
ALONE = 0.46
"""Share of vLLM's that are left with `asynchronous`, where no row waits: experiments/bench/throughput.json."""
TURNS = 6
"""Turns of a mean episode."""
VLLM_WIDTH = 2
"""Bytes of vLLM's weights, keys and values, whatever `dtype`: TRL passes it none, so that it takes that of the model's
config.json, and a 16-bit type in place of float32."""
VLLM_EFFICIENCY = 0.6
"""Share of the memory bandwidth that vLLM's decoding reaches."""
WRITES = 0.5
"""Tokens that a policy is taken to write in a mean episode, for each that a courteous player writes in its longest."""
TILE = 32_768
"""Vocabulary entries of one tile of the output layer (trl.kernels)."""
TILE_TOKENS = 4_096
"""Most positions per tile."""
MEASURED = "bench.csv"
"""Table of a GPU's measurements beside a run's file."""


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
        return (
            *attention,
            (outer, self.feed_forward),
            (outer, self.feed_forward),
            (self.feed_forward, outer),
        )

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
        if checkpointing:
            return tokens * (layer + self.layers * self.hidden * width)
        return tokens * layer * self.layers


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


def memory(config: TrainConfig, size: Size, processes: int = 1) -> dict[str, float]:
    """Estimate GB per GPU by part, at the limits of the configuration, weights sharded over `processes`.

    weights         parameters x 2 or 4 bytes; trained ones x 4 under FSDP's mixed precision; adapters x 4
    gradients       trained parameters, in their type
    optimizer       AdamW: two moments, 8 bytes a trained parameter in float32; adamw-8bit: 2, and a scale per 256
    activations     of `micro_batch` episodes of `context_tokens`, or of `micro_tokens` (`Size.activations`), LoRA too
    logits          one tile of the output layer, and the float32 gradient of the layer where it is trained
    keys, values    all rollouts of a process at `context_tokens`
    copy            with `ahead` and our own sampler: the weights that play, in their type
    vLLM            the share given to it; on a server, nothing here

    Our own sampler frees its cache before the update, so "peak" counts the larger of the two phases; with `ahead` they
    are at the same time, and it counts both.
    """
    width = 2 if config.dtype == "bfloat16" else 4
    trained = size.adapters(config.lora_rank) if config.lora_rank else size.parameters
    trained_width = 4 if config.lora_rank or (processes > 1) else width
    frozen = size.parameters * width if config.lora_rank else 0
    moments = (2 + 2 * 4 / 256) if config.optimizer == "adamw-8bit" else 2 * trained_width
    rows = config.rollouts_per_step // processes
    micro = config.micro_batch or max(1, rows // config.minibatches)
    compute = 2 if config.dtype == "bfloat16" or processes > 1 else 4
    tokens = micro * config.context_tokens
    if config.micro_tokens:
        tokens = min(tokens, max(config.micro_tokens, config.context_tokens))
    positions = min(TILE_TOKENS, tokens, micro * config.episode_tokens)
    head = 4 * size.vocabulary * size.hidden if not config.lora_rank else 0
    parts = {
        "weights": (frozen + trained * trained_width) / processes,
        "gradients": trained * trained_width / processes,
        "optimizer": trained * moments / processes,
        "activations": size.activations(
            tokens,
            config.gradient_checkpointing,
            compute,
            adapters=config.lora_rank > 0 and compute == 2,
        ),
        "logits": positions * min(TILE, size.vocabulary) * compute + head,
        "keys, values": rows * config.context_tokens * size.kv_bytes(width) if not config.with_vllm else 0.0,
        "copy that plays ahead": size.parameters * width if config.ahead and not config.with_vllm else 0.0,
        "vLLM": config.vllm_memory * GPU_GB * 1e9 if config.generation == "vllm-colocate" else 0.0,
    }
    gb = {name: value / 1e9 for name, value in parts.items()}
    standing = gb["weights"] + gb["optimizer"] + gb["vLLM"] + gb["copy that plays ahead"]
    update, playing = gb["gradients"] + gb["activations"] + gb["logits"], gb["keys, values"]
    gb["peak"] = standing + (update + playing if config.ahead else max(update, playing))
    return gb


@dataclass(frozen=True)
class Mean:
    """Tokens of a mean episode, prompt and tools included, and those of them that the policy samples."""

    whole: int
    sampled: int

    def within(self, config: TrainConfig) -> "Mean":
        """Cut it at a configuration's limits."""
        whole = min(self.whole, config.context_tokens)
        return Mean(whole, min(self.sampled, config.episode_tokens, whole))


def mean_episode(config: TrainConfig, counts: Path) -> Mean:
    """Take a mean episode of the collection from the table of courteous players' tokens, over its levels."""
    rows = [row for row in read_table(counts) if row.env in config.envs] if counts.is_file() else []
    if not rows:
        return Mean(2_000, 1_000).within(config)
    whole, written = (statistics.mean(each) for each in zip(*((row.median, row.written) for row in rows)))
    return Mean(round(whole), round(WRITES * written)).within(config)


def evicted(config: TrainConfig, size: Size, mean: Mean, processes: int = 1) -> float:
    """Estimate the share of a step's keys and values for which a colocated vLLM has no room beside its weights."""
    if config.generation != "vllm-colocate":
        return 0.0
    room = (config.vllm_memory * GPU_GB * 1e9 - size.parameters * VLLM_WIDTH) / size.kv_bytes(VLLM_WIDTH)
    needed = config.rollouts_per_step / processes * mean.whole
    return min(1.0, max(0.0, 1 - room / needed))


def lag(config: TrainConfig) -> float:
    """Estimate the decoding steps per sampled token of a mean episode."""
    return VLLM_LAG * (ALONE if config.asynchronous else 1) if config.with_vllm else OWN_LAG


def seconds(config: TrainConfig, size: Size, mean: Mean, processes: int = 1) -> dict[str, float]:
    """Estimate the seconds of a step of one round by phase, given a mean episode.

    - prefill: 2 N FLOP for every token that is not sampled, and with vLLM for those that were evicted between turns:
      in each of `TURNS` half of an episode
    - decoding: sampled tokens of a mean episode x lag steps, each reading all weights and the rollouts' keys and values
      once; own: not under `OWN_STEP`; vLLM: at its share of the bandwidth
    - update: forward 2 N, backward 4 N (2 N with LoRA: frozen weights have no gradient), with gradient checkpointing
      2 N more, for every token of the batch

    at `MFU` of the peak where FLOP count. Attention's own FLOP are left out: 4% at 2,000 tokens of the 8B.
    """
    rows = config.rollouts_per_step
    rate = MFU * PEAK * processes
    flop = 2 * size.parameters
    width = VLLM_WIDTH if config.with_vllm else 2 if config.dtype == "bfloat16" else 4
    read = size.parameters * width + rows / processes * mean.whole / 2 * size.kv_bytes(width)
    if config.with_vllm:
        decoding = mean.sampled * lag(config) * read / (BANDWIDTH * VLLM_EFFICIENCY)
    else:
        decoding = mean.sampled * lag(config) * max(read / BANDWIDTH, OWN_STEP)
    again = evicted(config, size, mean, processes) * TURNS * mean.whole / 2
    passes = (2 if config.lora_rank else 3) + config.gradient_checkpointing
    return {
        "prefill": rows * (mean.whole - mean.sampled + again) * flop / rate,
        "decoding": decoding,
        "update": rows * mean.whole * flop * passes / rate,
    }


def show_plan(config: TrainConfig, file: Path, console: Console, counts: Path = TABLE) -> None:
    """Print the plan of `config`, read from `file`; `counts` is the table of the tokens of chat policies' episodes."""
    check_model(config)
    size = size_of(config.starter)
    trained = size.adapters(config.lora_rank) if config.lora_rank else size.parameters
    how = f"LoRA of rank {config.lora_rank}" if config.lora_rank else "all weights"
    console.print(
        escape(
            f"{config.starter}: {_count(size.parameters)} parameters in {config.dtype}, "
            f"{_count(trained)} trained ({how})"
        )
    )
    mean = mean_episode(config, counts)
    console.print(
        f"{config.steps} steps of {config.prompts_per_step} prompts x {config.group_size} rollouts, learning rate "
        f"{config.lr:g}, {config.minibatches} optimizer steps each"
    )
    times, each = len(config.eval_steps), config.evaluation_episodes
    console.print(
        f"episodes: {config.steps * config.rollouts_per_step:,} rollouts of training in a round a step; {times} "
        f"evaluations of {each:,} held-out episodes, {times * each:,} in all, whose seconds are not in those per step"
    )

    def fits(config: TrainConfig) -> bool:
        return memory(config, size)["peak"] <= GPU_GB

    ways = launches(config, file, fits)
    console.print(_memory_table(config, size, max(way.processes for way in ways)))
    rows = config.rollouts_per_step
    console.print(
        f"tokens per step: about {rows * mean.whole:,}, {rows * mean.sampled:,} of them sampled; up to {config.rounds} "
        "times that where groups teach nothing"
    )
    if is_ordinary(config.starter):
        _show_seconds(config, size, mean, ways[0].processes, console)
        _show_measured(file.parent / MEASURED, console)
    else:
        console.print(
            "bottleneck: not estimated for the laptop policy; the tables of its runs have seconds by phase"
        )
    console.print()
    for words in reach.lines(config, list(reach.reaches(config, counts))):
        console.print(escape(words), soft_wrap=True, style="yellow" if words.startswith("warning") else None)
    for words in (*config.warnings, *lacking(config)):
        console.print(escape(f"warning: {words}"), soft_wrap=True, style="yellow")
    if not config.with_vllm and is_ordinary(config.starter):
        ways += _with_vllm(config, size, mean, file, fits)
    for way in ways:
        console.print(f"\nlaunch {way.where}:")
        for line in way.lines:
            console.print(f"  {escape(line)}", soft_wrap=True)
    console.print("nothing was trained")


def _with_vllm(
    config: TrainConfig, size: Size, mean: Mean, file: Path, fits: Callable[[TrainConfig], bool]
) -> list[Launch]:
    """Find the way to start the run with vLLM on its one GPU, if that holds it and is faster."""
    other = config.replace(generation="vllm-colocate")
    ours, theirs = (sum(seconds(each, size, mean).values()) for each in (config, other))
    if not fits(other) or theirs >= ours:
        return []
    (alone, *_) = launches(other, file, fits)
    where = f"{alone.where} with vLLM, on paper in {theirs:.0f} s a step instead of {ours:.0f}"
    return [replace(alone, where=where)]


def _memory_table(config: TrainConfig, size: Size, many: int) -> Table:
    columns = [memory(config, size)]
    headings = ["GB per GPU at the limits, on paper", "1 process"]
    if many > 1:
        columns.append(memory(config, size, many))
        headings.append(f"{many}, sharded")
    table = Table(*headings)
    for part in columns[0]:
        table.add_row(part, *(_gb(column[part]) for column in columns))
    if is_ordinary(config.starter) and columns[0]["peak"] > GPU_GB:
        table.caption = f"one process does not fit into {GPU_GB:.0f} GB"
    return table


def _show_seconds(config: TrainConfig, size: Size, mean: Mean, processes: int, console: Console) -> None:
    phases = seconds(config, size, mean, processes)
    slowest = max(phases, key=lambda phase: phases[phase])
    parts = ", ".join(f"{phase} {value:.0f}" for phase, value in phases.items())
    flop = 2 * size.parameters / 1e9
    console.print(
        f"per token: {flop:.1f} GFLOP in a forward pass, {size.kv_bytes() / 1e3:.0f} KB of keys and values"
    )
    where = "one GPU" if processes == 1 else f"{processes} GPUs"
    more = (config.rounds - 1) * (phases["prefill"] + phases["decoding"])
    console.print(
        f"seconds per step on {where}, on paper: {parts}; up to {more:.0f} more where all {config.rounds} rounds are "
        f"played; expected bottleneck: {slowest}"
    )
    if lost := evicted(config, size, mean, processes):
        console.print(
            f"on {where}, vLLM's memory holds {1 - lost:.0%} of a step's keys and values: the rest is computed again "
            "in every turn; a larger vllm_memory holds more, if the peak above leaves room"
        )
    sampler = "vLLM" if config.with_vllm else "our own sampler"
    console.print(
        f"assumed: {GPU}, {PEAK / 1e12:.0f} TFLOP/s of which {MFU:.0%} reached, {BANDWIDTH / 1e12:.1f} TB/s; "
        f"episodes of {mean.whole:,} tokens, {mean.sampled:,} of them sampled, as a courteous player's are over all "
        f"levels; {sampler} takes {lag(config):.1f} steps for each token of a mean episode"
        + ("" if config.with_vllm else f", at least {OWN_STEP * 1e3:.0f} ms each, as measured")
        + "; memory without CUDA's context and fragmentation (some GB)"
    )


def _show_measured(file: Path, console: Console) -> None:
    """Print what GPUs have measured, with their names, or where it would stand."""
    rows = []
    if file.is_file():
        with file.open(newline="") as table:
            rows = [row for row in csv.DictReader(table) if row["device"] != "CPU"]
    if not rows:
        console.print(escape(f"no GPU's rows in {file}, which experiments/qwen3_8b/bench.py writes"))
    for row in rows:
        console.print(
            escape(f"measured on {row['device']}: {row['what']} ({row['size']}): {row['seconds']} s, peak ")
            + escape(f"{row['peak_gb']} GB, {row['tokens']} tokens {row['note']}".rstrip())
        )


def _count(number: int) -> str:
    return f"{number / 1e9:.2f}e9" if number >= 1e9 else f"{number / 1e6:.2f}e6"


def _gb(value: float) -> str:
    return "-" if value == 0 else f"{value:,.1f}" if value >= 0.05 else f"{value:.3f}"
