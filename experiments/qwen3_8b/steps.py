"""A step of training the 8B by `ecomlab train`'s own code on one GPU: does it fit, and where do its seconds go.

    python experiments/qwen3_8b/steps.py --out $OUT                            # on a GPU of 141 GB, some minutes
    python experiments/qwen3_8b/steps.py --size small --out /tmp/steps         # anywhere: a check, some minutes

Weights are random. Their output layer is set so that a turn ends by itself now and then, after about `MEAN` tokens in a
small model, more rarely in the 8B: a turn is then a message of random words, to which the customer answers, until the
episode ends. So prompts and tools are the environments' own in Qwen's tokens, rollouts are uneven, and those whose turn
is cut off have another reward, so that groups are kept and an update follows; that the words mean nothing changes no
time. Each case is a process of its own;
steps.csv gets its row as soon as it ends, even one that runs out of memory, and cases that have one are left out.
"""

import argparse
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import torch

from ecomlab import assets
from ecomlab.models.qwen_tokenizer import QWEN, qwen_renderer
from ecomlab.training import metrics
from ecomlab.training.config import TrainConfig
from ecomlab.training.estimate import KNOWN

HERE = Path(__file__).resolve().parent
MEAN = 48
"""Tokens of a mean turn."""
LOUD = 1_000.0
"""The first entry of every embedding: it outweighs all others, so that the output layer's first column decides."""
SMALL = {
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16,
}  # fmt: skip
FULL = {"lora_rank": 0, "optimizer": "adamw-8bit", "lr": 1e-6}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "CART at d = 6, LoRA": ("train.toml", {}),
    "C8 at d = 6, LoRA": ("c8.toml", {"generation": "own"}),
    "CART at d = 6, all weights": ("train.toml", FULL),
}
"""The file of a case's settings, and what is changed."""
SETTINGS: dict[str, Any] = {
    "schedule": "static-6-6", "keep": "reward", "rounds": 1, "steps": 1, "warmup": 0, "checkpoint_every": 100,
    "eval_every": 0, "eval_episodes": 1, "eval_difficulties": (0,), "eval_decodings": ("sampled",),
    "eval_collection": "POLICY", "turn_tokens": 128, "turn_buffer": 64,
}  # fmt: skip
COLUMNS = (
    "case", "device", "size", "torch", "kept", "rollouts", "turns", "sampled", "longest", "peak_gb", "reserved_gb",
    "seconds", *(f"seconds_{phase}" for phase in metrics.PHASES), "note",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=("8b", "small"), default="8b")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, help="for weights and runs, 40 GB; default: OUT/work")
    parser.add_argument("--tokenizer", type=Path, help="qwen.tiktoken; by default the cache's")
    parser.add_argument("--only", choices=CASES, help="this case alone")
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)  # in this process
    chosen = parser.parse_args()
    if chosen.size == "8b" and not torch.cuda.is_available():
        parser.error("no GPU is here for the 8B; --size small is a check that the script runs")
    work = (chosen.work or chosen.out / "work").resolve()
    file = chosen.out.resolve() / "steps.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    if chosen.case:
        run(chosen.case, chosen.size, work, file)
        return
    if not (work / "model" / "config.json").exists():
        try:
            tokenizer = chosen.tokenizer or assets.find(QWEN)
        except assets.AssetError as error:
            parser.error(str(error))
        save_model(chosen.size, tokenizer, work / "model")
    done = {row["case"] for row in metrics.read(file)}
    for case in CASES:
        if case not in done and chosen.only in (None, case):
            again = ["--case", case, "--size", chosen.size, "--out", chosen.out, "--work", work]
            subprocess.run([sys.executable, __file__, *map(str, again)], check=False)


def save_model(size: str, tokenizer: Path, folder: Path) -> None:
    """Save a model of random weights that ends its turns, with Qwen's tokens."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    dimensions = {**KNOWN["Qwen/Qwen3-8B"], **(SMALL if size == "small" else {})}
    renderer = qwen_renderer(tokenizer)
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16 if size == "8b" else torch.float32)
    try:
        with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
            model = Qwen3ForCausalLM(Qwen3Config(**dimensions, max_position_embeddings=40_960))
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.no_grad():
        model.model.embed_tokens.weight[:, 0] = LOUD
        head = model.lm_head.weight
        heard = dimensions["hidden_size"] ** 0.5  # what a norm makes of one loud entry
        head[:, 0] = 0
        head[len(renderer.tokenizer) :, 0] = -40 / heard  # no tokens
        others = float(torch.logsumexp(torch.zeros(len(renderer.tokenizer)), 0))
        head[renderer.end_id, 0] = (others - torch.log(torch.tensor(float(MEAN)))) / heard
    model.save_pretrained(folder)
    renderer.tokenizer.save_pretrained(folder)


def run(case: str, size: str, work: Path, file: Path) -> None:
    """Train one step, and write its row."""
    from ecomlab.training.run import train

    name, changed = CASES[case]
    out = work / "".join(letter if letter.isalnum() else "_" for letter in case)
    given = tomllib.loads((HERE / name).read_text()) | SETTINGS | changed
    given |= {"starter": str(work / "model"), "out": str(out)}
    if size == "small":
        given |= {"dtype": "float32", "optimizer": "adamw", "lora_rank": 4 if given["lora_rank"] else 0}
        given |= {"group_size": 4, "prompts_per_step": 4}
    config = TrainConfig(**given)
    note, began = "", time.monotonic()
    cuda = torch.cuda.is_available()
    try:
        train(config, lambda event: print(round(time.monotonic() - began, 1), event["kind"], flush=True))
    except torch.OutOfMemoryError as error:
        note = f"out of memory: {str(error).partition('.')[0]}"
    row = {
        "case": case,
        "device": torch.cuda.get_device_name() if cuda else "CPU",
        "size": size,
        "torch": torch.__version__,
        "peak_gb": f"{torch.cuda.max_memory_allocated() / 1e9:.4g}" if cuda else "",
        "reserved_gb": f"{torch.cuda.max_memory_reserved() / 1e9:.4g}" if cuda else "",
        "note": note,
        **played(metrics.read(out / "train.csv")),
    }
    print(row, flush=True)
    metrics.append(file, [dict.fromkeys(COLUMNS, "") | row], COLUMNS)


def played(step: list[dict[str, str]]) -> dict[str, Any]:
    """Pool the rows of a step over environments; nothing where it did not end."""
    if not step:
        return {}
    total = {name: sum(int(row[name]) for row in step) for name in ("kept", "rollouts", "tokens_generated")}
    some = [
        row for row in step if int(row["rollouts"])
    ]  # an environment of which nothing was drawn has no mean
    turns = sum(float(row["turns_per_episode"]) * int(row["rollouts"]) for row in some) / total["rollouts"]
    seconds = {name: step[0][name] for name in ("seconds", *(f"seconds_{phase}" for phase in metrics.PHASES))}
    longest = max(int(row["sampled_longest"]) for row in step)
    sampled = total.pop("tokens_generated")
    return {**total, "turns": f"{turns:.3g}", "sampled": sampled, "longest": longest, **seconds}


if __name__ == "__main__":
    main()
