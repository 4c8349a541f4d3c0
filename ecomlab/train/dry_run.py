"""Estimates of a run before it starts: memory by part, tokens per step, the bottleneck, and the commands to launch it.

Nothing is trained or downloaded. The numbers are arithmetic on the model's dimensions and on the assumptions printed
with them; they show whether a run can fit and where its bottleneck lies, not how long a step will take. How far up its
token limits reach is counted, not estimated.
"""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ecomlab.audit.tokens import TABLE
from ecomlab.models.load import is_ordinary, policy_folder
from ecomlab.models.policy import CONFIG, PolicyError
from ecomlab.train import reach
from ecomlab.train.config import TrainConfig, from_toml

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
LAUNCH = 0.03
"""Least seconds of one decoding step of an eager Hugging Face model: kernel launches of 36 layers."""
OWN_LAG, VLLM_LAG = 3.0, 2.0
"""Decoding steps per sampled token of a mean episode: rows wait for the batch's longest turn, in vLLM less so."""
VLLM_EFFICIENCY = 0.6
"""Share of the memory bandwidth that vLLM's decoding reaches."""
TOKENS, SAMPLED = 2_000, 1_000
"""Tokens of a mean episode, prompt and tools included, and those sampled by the policy; fewer if limits are lower."""
TILE = 32_768
"""Vocabulary entries of one tile of the output layer (trl.kernels)."""
TILE_TOKENS = 4_096
"""Most positions per tile."""


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

    def activations(self, tokens: int, checkpointing: bool, width: int = 2) -> float:
        """Estimate the bytes kept for the backward pass.

        Per token and layer: inputs and outputs of the norms (4 hidden), of the attention (3 inner + 4 kv) and of the
        feed-forward (4 of its width); no scores, which fused attention does not keep. With checkpointing: one layer
        of that, and the input of every layer.
        """
        inner, kv = self.heads * self.head, self.kv_heads * self.head
        layer = 4 * self.hidden + 3 * inner + 4 * kv + 4 * self.feed_forward
        if checkpointing:
            return tokens * width * (layer + self.layers * self.hidden)
        return tokens * width * layer * self.layers


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
    activations     of `micro_batch` episodes of `context_tokens` (`Size.activations`)
    logits          one tile of the output layer, and the float32 gradient of the layer where it is trained
    keys, values    all rollouts of a process at `context_tokens`, the cache's length doubled as it grows
    vLLM            the share given to it; on a server, nothing here

    Our own sampler frees its cache before the update, so "peak" counts the larger of the two phases.
    """
    width = 2 if config.dtype == "bfloat16" else 4
    trained = size.adapters(config.lora_rank) if config.lora_rank else size.parameters
    trained_width = 4 if config.lora_rank or (processes > 1) else width
    frozen = size.parameters * width if config.lora_rank else 0
    moments = (2 + 2 * 4 / 256) if config.optimizer == "adamw-8bit" else 2 * trained_width
    rows = config.rollouts_per_step // processes
    micro = config.micro_batch or max(1, rows // config.minibatches)
    compute = 2 if config.dtype == "bfloat16" or processes > 1 else 4
    positions = min(TILE_TOKENS, micro * config.episode_tokens)
    head = 4 * size.vocabulary * size.hidden if not config.lora_rank else 0
    capacity = min(c for c in (256 * 2**k for k in range(20)) if c >= config.context_tokens)
    parts = {
        "weights": (frozen + trained * trained_width) / processes,
        "gradients": trained * trained_width / processes,
        "optimizer": trained * moments / processes,
        "activations": size.activations(
            micro * config.context_tokens, config.gradient_checkpointing, compute
        ),
        "logits": positions * min(TILE, size.vocabulary) * compute + head,
        "keys, values": rows * capacity * size.kv_bytes(width) if not config.with_vllm else 0.0,
        "vLLM": config.vllm_memory * GPU_GB * 1e9 if config.generation == "vllm-colocate" else 0.0,
    }
    gb = {name: value / 1e9 for name, value in parts.items()}
    standing = gb["weights"] + gb["optimizer"] + gb["vLLM"]
    gb["peak"] = standing + max(gb["gradients"] + gb["activations"] + gb["logits"], gb["keys, values"])
    return gb


def tokens_a_step(config: TrainConfig) -> tuple[int, int]:
    """Estimate the tokens of a step's rollouts, and the sampled ones among them; first round only."""
    whole = min(TOKENS, config.context_tokens)
    return config.rollouts_per_step * whole, config.rollouts_per_step * min(
        SAMPLED, config.episode_tokens, whole
    )


def seconds(config: TrainConfig, size: Size, processes: int = 1) -> dict[str, float]:
    """Estimate the seconds of a step by phase.

    - prefill: 2 N FLOP for every token that is not sampled
    - decoding: sampled tokens of a mean episode x lag steps, each reading all weights and the rollouts' keys and values
      once; own: not under `LAUNCH`; vLLM: at its share of the bandwidth
    - update: forward 2 N, backward 4 N (2 N with LoRA: frozen weights have no gradient), with gradient checkpointing
      2 N more, for every token of the batch

    at `MFU` of the peak where FLOP count. Attention's own FLOP are left out: 4% at 2,000 tokens of the 8B.
    """
    whole, sampled = tokens_a_step(config)
    rows = config.rollouts_per_step
    rate = MFU * PEAK * processes
    flop = 2 * size.parameters
    width = 2 if config.dtype == "bfloat16" else 4
    read = size.parameters * width + rows / processes * TOKENS / 2 * size.kv_bytes(width)
    if config.with_vllm:
        decoding = sampled / rows * VLLM_LAG * read / (BANDWIDTH * VLLM_EFFICIENCY)
    else:
        decoding = sampled / rows * OWN_LAG * max(read / BANDWIDTH, LAUNCH)
    passes = (2 if config.lora_rank else 3) + config.gradient_checkpointing
    return {
        "prefill": (whole - sampled) * flop / rate,
        "decoding": decoding,
        "update": whole * flop * passes / rate,
    }


def launch_lines(config: TrainConfig, file: Path) -> list[str]:
    """List the commands that start this run: the vLLM server's, if it uses one, and the training's.

    Our own sampler needs all weights in every process, so FSDP (fsdp.yaml beside `file`) is only for runs with vLLM.
    """
    arguments = ["--config", str(file)]
    before = from_toml(file).to_json() if file.exists() else TrainConfig().to_json()
    for name, value in config.to_json().items():
        if value != before[name]:
            text = value if isinstance(value, str) else _toml(value)
            arguments += ["--set", f"{name}={text}"]
    lines = []
    if config.generation == "vllm-server":
        port = config.vllm_address.rpartition(":")[2].strip("/")
        serve = [
            "vllm", "serve", config.starter, "--port", port if port.isdigit() else "8000",
            "--max-model-len", str(config.context_tokens + config.turn_tokens),
            "--weight-transfer-config", '{"backend": "nccl"}',
            "--logprobs-mode", "processed_logprobs", "--max-logprobs", "-1",
        ]  # fmt: skip
        lines.append("VLLM_SERVER_DEV_MODE=1 " + shlex.join(serve) + "   # on separate GPUs, left running")
    sharded = file.parent / "fsdp.yaml"
    if config.with_vllm and sharded.exists():
        lines.append(
            shlex.join(
                ["accelerate", "launch", "--config_file", str(sharded), "-m", "ecomlab", "train", *arguments]
            )
        )
    else:
        lines.append(shlex.join(["ecomlab", "train", *arguments]))
    return lines


def _toml(value: Any) -> str:
    """Write a setting's value for --set: as JSON, but for tables, which TOML writes with equals signs."""
    if not isinstance(value, dict):
        return json.dumps(value)
    return "{" + ", ".join(f"{json.dumps(name)} = {json.dumps(inner)}" for name, inner in value.items()) + "}"


def show_plan(config: TrainConfig, file: Path, console: Console, counts: Path = TABLE) -> None:
    """Print the plan of `config`, read from `file`; `counts` is the table of the tokens of chat policies' episodes."""
    size = size_of(config.starter)
    trained = size.adapters(config.lora_rank) if config.lora_rank else size.parameters
    how = f"LoRA of rank {config.lora_rank}" if config.lora_rank else "all weights"
    console.print(
        escape(
            f"{config.starter}: {_count(size.parameters)} parameters in {config.dtype}, "
            f"{_count(trained)} trained ({how})"
        )
    )
    whole, sampled = tokens_a_step(config)
    console.print(
        f"{config.steps} steps of {config.prompts_per_step} prompts x {config.group_size} rollouts, learning rate "
        f"{config.lr:g}, {config.minibatches} optimizer steps each"
    )
    many = _processes(file)
    console.print(_memory_table(config, size, many))
    console.print(
        f"tokens per step: about {whole:,}, {sampled:,} of them sampled; up to {config.rounds} times that where groups "
        "teach nothing"
    )
    if is_ordinary(config.starter):
        _show_seconds(config, size, console)
    else:
        console.print(
            "bottleneck: not estimated for the laptop policy; the tables of its runs have seconds by phase"
        )
    console.print()
    for words in reach.lines(config, list(reach.reaches(config, counts))):
        console.print(escape(words), soft_wrap=True, style="yellow" if words.startswith("warning") else None)
    for words in config.warnings:
        console.print(escape(f"warning: {words}"), soft_wrap=True, style="yellow")
    console.print("\nlaunch:")
    for line in launch_lines(config, file):
        console.print(f"  {escape(line)}", soft_wrap=True)
    console.print("nothing was trained")


def _memory_table(config: TrainConfig, size: Size, many: int) -> Table:
    columns = [memory(config, size)]
    headings = ["GB per GPU, at the limits", "1 process"]
    if many > 1 and config.rollouts_per_step % many == 0:
        sharded = config if config.with_vllm else config.replace(generation="vllm-colocate")
        columns.append(memory(sharded, size, many))
        headings.append(f"{many}, sharded, {sharded.generation}")
    table = Table(*headings)
    for part in columns[0]:
        table.add_row(part, *(_gb(column[part]) for column in columns))
    if is_ordinary(config.starter) and columns[0]["peak"] > GPU_GB:
        table.caption = f"one process does not fit into {GPU_GB:.0f} GB"
    return table


def _show_seconds(config: TrainConfig, size: Size, console: Console) -> None:
    phases = seconds(config, size)
    slowest = max(phases, key=lambda phase: phases[phase])
    parts = ", ".join(f"{phase} {value:.0f}" for phase, value in phases.items())
    flop = 2 * size.parameters / 1e9
    console.print(
        f"per token: {flop:.1f} GFLOP in a forward pass, {size.kv_bytes() / 1e3:.0f} KB of keys and values"
    )
    console.print(f"seconds per step on one GPU: {parts}; expected bottleneck: {slowest}")
    sampler, lag = ("vLLM", VLLM_LAG) if config.with_vllm else ("our own sampler", OWN_LAG)
    console.print(
        f"assumed: {GPU}, {PEAK / 1e12:.0f} TFLOP/s of which {MFU:.0%} reached, {BANDWIDTH / 1e12:.1f} TB/s; "
        f"episodes of {min(TOKENS, config.context_tokens):,} tokens; {sampler} takes {lag:g} steps for each token "
        "of a mean episode"
        + ("" if config.with_vllm else f", at least {LAUNCH * 1e3:.0f} ms each")
        + "; memory without CUDA's context and fragmentation (some GB)"
    )


def _processes(file: Path) -> int:
    """Count the processes that the launch configuration beside the file starts; 1 without one."""
    sharded = file.parent / "fsdp.yaml"
    if not sharded.exists():
        return 1
    from accelerate.commands.config.config_args import load_config_from_file

    return int(load_config_from_file(str(sharded)).num_processes)


def _count(number: int) -> str:
    return f"{number / 1e9:.2f}e9" if number >= 1e9 else f"{number / 1e6:.2f}e6"


def _gb(value: float) -> str:
    return "-" if value == 0 else f"{value:,.1f}" if value >= 0.05 else f"{value:.3f}"
