"""Memory and seconds of the 8B by phase on a GPU: LoRA and all weights, our sampler and plain `generate`.

    python experiments/qwen3_8b/bench.py --out $OUT     # random weights of the 8B's configuration, 64 rollouts x 2k
    python experiments/qwen3_8b/bench.py --size small --out /tmp/bench   # anywhere: a check, under a minute

Nothing is learned or downloaded: weights and conversations (four turns of random ids) are random. Every measurement is
written to bench.csv as soon as it is made, even one that runs out of memory; run again, the script makes those that are
missing.
"""

import argparse
import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ecomlab.models.samplers.cached import CachedSampler, Limits
from ecomlab.seeding import rng
from ecomlab.training import metrics
from ecomlab.training.estimate import KNOWN

SIZES: dict[str, dict[str, Any]] = {
    "8b": {**KNOWN["Qwen/Qwen3-8B"], "rollouts": 64, "tokens": 2_000, "turns": 4, "micro": 4, "rank": 64},
    "small": {
        **KNOWN["Qwen/Qwen3-8B"], "vocab_size": 1_000, "hidden_size": 64, "intermediate_size": 128,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
        "rollouts": 4, "tokens": 160, "turns": 4, "micro": 2, "rank": 4,
    },
}  # fmt: skip
COLUMNS = ("device", "size", "what", "seconds", "peak_gb", "tokens", "tokens_per_second", "note")
CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=SIZES, default="8b")
    parser.add_argument("--only", choices=WORK, help="this measurement alone")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    args = parser.parse_args()
    if args.size == "8b" and not CUDA:  # it would take hours, and tell nothing of a GPU
        parser.error("no GPU is here for the 8B; --size small is a check that the script runs")
    args.out.mkdir(parents=True, exist_ok=True)
    size = SIZES[args.size]
    file = args.out / "bench.csv"
    device = torch.cuda.get_device_name() if CUDA else "CPU"
    done = {(row["device"], row["size"], row["what"]) for row in metrics.read(file)}
    for what, measure in WORK.items():
        if (device, args.size, what) in done or args.only not in (None, what):
            continue
        row = {"device": device, "size": args.size, "what": what} | measured(measure, size)
        metrics.append(file, [row], COLUMNS)
        print(row, flush=True)


def measured(measure: Callable[..., tuple[float, int]], size: dict[str, Any]) -> dict[str, Any]:
    """Make one measurement and return its columns: seconds, tokens, and peak memory."""
    gc.collect()
    if CUDA:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    note, seconds, tokens = "", float("nan"), 0
    try:
        seconds, tokens = measure(size)
    except torch.OutOfMemoryError as error:
        note = f"out of memory: {str(error).partition('.')[0]}"
    except ImportError as error:
        note = f"left out: {error}"
    peak = torch.cuda.max_memory_allocated() / 1e9 if CUDA else float("nan")
    return {
        "seconds": f"{seconds:.4g}",
        "peak_gb": f"{peak:.4g}",
        "tokens": tokens,
        "tokens_per_second": f"{tokens / seconds:.4g}",
        "note": note,
    }


def model_of(size: dict[str, Any]) -> Any:
    """Make a model of random bfloat16 weights, directly on its device."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    names = KNOWN["Qwen/Qwen3-8B"]
    config = Qwen3Config(**{name: size[name] for name in names}, max_position_embeddings=40_960)
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(DEVICE):
            return Qwen3ForCausalLM(config)
    finally:
        torch.set_default_dtype(torch.float32)


def turns_of(size: dict[str, Any]) -> tuple[np.ndarray, int]:
    """Draw the tokens read before each turn, (turns, rollouts, tokens); the number sampled in each turn is the same."""
    each = size["tokens"] // size["turns"] // 2
    return rng("bench", "heard").integers(
        5, size["vocab_size"], (size["turns"], size["rollouts"], each)
    ), each


def timed(work: Callable[[], None]) -> float:
    """Measure the seconds of `work`."""
    began = time.perf_counter()
    work()
    if CUDA:
        torch.cuda.synchronize()
    return time.perf_counter() - began


def own_sampler(size: dict[str, Any]) -> tuple[float, int]:
    """Time our sampler: every turn to its limit, one cache for the whole episode."""
    read, each = turns_of(size)
    limits = Limits(each, size["tokens"], 2 * size["tokens"])
    sampler = CachedSampler(model_of(size).eval(), (), limits)

    def work() -> None:
        sampler.start([rng("bench", i) for i in range(size["rollouts"])])
        for turn in read:
            sampled = sampler.turn(range(size["rollouts"]), turn.tolist())
            assert all(s is not None and len(s.ids) == each for s in sampled)

    return timed(work), size["rollouts"] * each * size["turns"]


def plain_generate(size: dict[str, Any]) -> tuple[float, int]:
    """Time `model.generate` on the whole conversation in every turn, the obvious way without a cache across turns."""
    read, each = turns_of(size)
    model = model_of(size).eval()

    def work() -> None:
        ids = torch.empty(size["rollouts"], 0, dtype=torch.long, device=DEVICE)
        for turn in read:
            ids = torch.cat([ids, torch.from_numpy(turn).to(DEVICE)], dim=1)
            ids = model.generate(
                ids, attention_mask=torch.ones_like(ids), do_sample=True, top_k=0, top_p=1.0, temperature=1.0,
                min_new_tokens=each, max_new_tokens=each, eos_token_id=0, pad_token_id=0,
            )  # fmt: skip

    with torch.no_grad():
        return timed(work), size["rollouts"] * each * size["turns"]


def update(size: dict[str, Any], rank: int, mixed: bool = False) -> tuple[float, int]:
    """Time forward, backward and one optimizer step for all rollouts, in micro-batches as the trainer does: gradient
    checkpointing, half of the tokens scored by TRL's masked, tiled output layer. The second step is timed.

    With `mixed`, rollouts have from a quarter of the tokens to all of them."""
    from trl.trainer.utils import add_fused_lm_head

    model = model_of(size)
    add_fused_lm_head(model, outputs=("log_probs", "entropy"))
    if CUDA:
        torch.backends.cuda.matmul.allow_tf32 = True
    if rank:
        from peft import LoraConfig, get_peft_model

        lora = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")
        model = get_peft_model(model, lora)
        model.enable_input_require_grads()
        optimizer: Any = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-5)
    else:
        from torchao.optim import AdamW8bit

        optimizer = AdamW8bit(model.parameters(), lr=1e-5, weight_decay=0.0, bf16_stochastic_round=True)
    model.gradient_checkpointing_enable()
    model.train()
    shape = (size["rollouts"], size["tokens"])
    ids = torch.from_numpy(rng("bench", "ids").integers(5, size["vocab_size"], shape)).to(DEVICE)
    labels = ids.clone()
    labels[:, ::2] = -100
    whole, every = size["tokens"], range(size["rollouts"])
    lengths = (
        rng("bench", "lengths").integers(whole // 4, whole + 1, len(every)) if mixed else [whole] * len(every)
    )
    parts = [list(every[first : first + size["micro"]]) for first in every[:: size["micro"]]]
    mask = torch.zeros_like(ids)
    for row, length in enumerate(lengths):
        mask[row, :length] = 1
    labels[mask == 0] = -100

    def step() -> None:
        for rows in parts:
            wide = int(max(lengths[row] for row in rows))
            output = model(
                input_ids=ids[rows, :wide],
                attention_mask=mask[rows, :wide],
                labels=labels[rows, :wide],
                fused_lm_head=True,
            )
            (-output.log_probs.sum() / labels.numel()).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    step()  # allocates moments, compiles
    return timed(step), int(mask.sum())


WORK: dict[str, Callable[[dict[str, Any]], tuple[float, int]]] = {
    "own sampler": own_sampler,
    "plain generate, turn by turn": plain_generate,
    "update, LoRA": lambda size: update(size, size["rank"]),
    "update, all weights, 8-bit AdamW": lambda size: update(size, 0),
    "update, LoRA, mixed lengths": lambda size: update(size, size["rank"], mixed=True),
}
"""What is measured, by name: seconds, and tokens."""

if __name__ == "__main__":
    main()
