"""What our sampler and an update of the 8B take on a GPU, variant by variant: at most five minutes, one table.

    python experiments/bench/gpu.py --out $OUT              # random bfloat16 weights of the 8B, made on the card
    python experiments/bench/gpu.py --small --out /tmp/gpu  # anywhere, seconds: a check that the script runs

Decoding steps of 64 rows that have 250, 1,000 and 2,000 tokens (zeros, for their time is the same): today's sampler,
without cuDNN's attention, with widths rounded up, with graphs, with graphs and compiled norms, rotary embeddings and
feed-forward; each without adapters and with LoRA, which graphs merge. A profile of the first and the fourth. Whole
conversations of 4 turns of 250 tokens with graphs, and as many of today's as time is left for: the tokens of both, and
the distance of their log-probabilities from one forward pass. Forward and backward passes with cuDNN's attention on and
off. Every line of gpu.csv is written when it is measured; what does not fit into `--minutes` or fails is noted there.
"""

import argparse
import csv
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ecomlab.models.samplers.cached import CachedSampler, Limits
from ecomlab.models.samplers.graphed import GraphedSampler
from ecomlab.seeding import rng
from ecomlab.training.estimate import KNOWN

BIG: dict[str, Any] = {**KNOWN["Qwen/Qwen3-8B"], "rows": 64, "lengths": (250, 1_000, 2_000), "steps": 20, "turn": 250,
                       "rank": 64, "micro": 4}  # fmt: skip
SMALL: dict[str, Any] = {
    **BIG, "vocab_size": 1_000, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "head_dim": 16,
    "num_attention_heads": 4, "num_key_value_heads": 2, "rows": 4, "lengths": (25, 100), "steps": 3, "turn": 20,
    "rank": 4, "micro": 2,
}  # fmt: skip
SHARP = 8
"""Factor of the output layer: otherwise every token of a random model is as likely as every other, and any rounding
changes it."""
COLUMNS = ("card", "torch", "transformers", "what", "adapters", "tokens", "seconds", "gb", "note")
CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"


class Rounded(CachedSampler):
    """The eager sampler with the widths of the one with graphs."""

    _width = GraphedSampler._width


class Report:
    """The table: printed and appended to a file row by row, until the time is up."""

    def __init__(self, file: Path, minutes: float) -> None:
        import transformers

        self.ends = time.monotonic() + 60 * minutes
        self.head = {"card": torch.cuda.get_device_name() if CUDA else "CPU", "torch": torch.__version__,
                     "transformers": transformers.__version__}  # fmt: skip
        print(self.head)
        self.file = file.open("w", newline="")
        self.table = csv.DictWriter(self.file, COLUMNS)
        self.table.writeheader()

    @property
    def left(self) -> float:
        """Seconds until the end."""
        return self.ends - time.monotonic()

    def measure(
        self, what: str, adapters: bool, tokens: int, work: Callable[[], tuple[float, str]], need: float = 5
    ) -> None:
        """Write the seconds and the note that `work` returns, unless fewer than `need` seconds are left."""
        seconds, note = float("nan"), f"left out: {self.left:.0f} s left"
        if CUDA:
            torch.cuda.reset_peak_memory_stats()
        if self.left > need:
            try:
                seconds, note = work()
            except Exception as error:  # one variant that fails must not cost the others
                note = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        gb = torch.cuda.max_memory_allocated() / 1e9 if CUDA else float("nan")
        row = {
            "what": what,
            "adapters": adapters,
            "tokens": tokens,
            "seconds": f"{seconds:.5f}",
            "gb": f"{gb:.1f}",
        }
        self.table.writerow({**self.head, **row, "note": note})
        self.file.flush()
        print(
            f"{what:32} {'LoRA' if adapters else '':5} {tokens:6} {seconds:10.5f} s {gb:6.1f} GB  {note}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--minutes", type=float, default=4.8)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    args = parser.parse_args()
    if not (CUDA or args.small):
        parser.error("no GPU is here for the 8B; --small is a check that the script runs")
    args.out.mkdir(parents=True, exist_ok=True)
    report, size = Report(args.out / "gpu.csv", args.minutes), SMALL if args.small else BIG
    if CUDA:
        torch.backends.cuda.matmul.allow_tf32 = True
    model = model_of(size)
    steps(report, model, size, False)
    whole(report, model, size)
    try:
        model = with_adapters(model, size["rank"])
    except ImportError as error:
        print(f"no LoRA: {error}")
    else:
        steps(report, model, size, True)
        updates(report, model, size)
    for name in ("today", "graphs"):
        if report.left > 5:
            profile(args.out / f"profile_{name}.txt", VARIANTS[name], model, size)
    compiled(report, model, size)
    print(f"{60 * args.minutes - report.left:.0f} s in all")


def model_of(size: dict[str, Any]) -> Any:
    """Make a model of random weights on its device, in bfloat16 on a GPU."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        **{name: size[name] for name in KNOWN["Qwen/Qwen3-8B"]}, max_position_embeddings=40_960
    )
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16 if CUDA else torch.float32)
    try:
        with torch.device(DEVICE):
            model = Qwen3ForCausalLM(config).eval()
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.no_grad():
        model.lm_head.weight.mul_(SHARP)
    return model


def with_adapters(model: Any, rank: int) -> Any:
    """Add LoRA as `ecomlab train` does, in float32, but with small random factors on both sides."""
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(0)
    lora = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")
    adapted = get_peft_model(model, lora)
    for name, parameter in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=1e-4)
    return adapted.eval()


def synchronized() -> float:
    """Return the time once the card has done everything."""
    if CUDA:
        torch.cuda.synchronize()
    return time.perf_counter()


@contextmanager
def cudnn(on: bool) -> Iterator[None]:
    """Switch cuDNN's attention."""
    before = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(on)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)


VARIANTS: dict[str, tuple[type[CachedSampler], bool]] = {
    "today": (CachedSampler, True),
    "cuDNN off": (CachedSampler, False),
    "widths rounded, cuDNN on": (Rounded, True),
    "widths rounded, cuDNN off": (Rounded, False),
    "graphs": (GraphedSampler, False),
}
"""The sampler of a variant, and whether cuDNN's attention is on."""


def opened(kind: type[CachedSampler], model: Any, size: dict[str, Any], length: int) -> CachedSampler:
    """Make a sampler whose rows have `length` tokens, of which only one was read."""
    sampler = kind(model, (), Limits(10_000, 10_000, length + 1_000))
    sampler.start([rng("gpu", row) for row in range(size["rows"])])
    every = list(range(size["rows"]))
    with torch.no_grad():
        sampler._next(every, [[5, 6]] * size["rows"])
        sampler._make_room(sampler._width(length + 2 * size["steps"]))
        sampler._length[:] = length
        sampler._next(every, [[5]] * size["rows"])  # captures, plans, compiles
    return sampler


def decode(sampler: CachedSampler, size: dict[str, Any], count: int) -> None:
    """Take `count` decoding steps."""
    every, tokens = list(range(size["rows"])), [5] * size["rows"]
    with torch.no_grad():
        for _ in range(count):
            tokens, _ = sampler._next(every, [[token] for token in tokens])


def step(
    kind: type[CachedSampler], on: bool, model: Any, size: dict[str, Any], length: int
) -> tuple[float, str]:
    """Time a decoding step; the note has the seconds of opening, captures included."""
    gc.collect()
    with cudnn(on):
        began = synchronized()
        sampler = opened(kind, model, size, length)
        middle = synchronized()
        decode(sampler, size, size["steps"])
        return (synchronized() - middle) / size["steps"], f"opened in {middle - began:.2f} s"


def steps(report: Report, model: Any, size: dict[str, Any], adapters: bool) -> None:
    """Time a step of all variants at all lengths."""
    for length in size["lengths"]:
        for name, (kind, on) in VARIANTS.items():
            report.measure(
                name, adapters, length, lambda k=kind, o=on, n=length: step(k, o, model, size, n), need=10
            )


def converse(
    sampler: CachedSampler, size: dict[str, Any], until: Callable[[], bool] = lambda: True
) -> list[list[tuple[list[int], list[int], list[float]]]]:
    """Play 4 turns, or fewer: what each row reads, samples, and its log-probabilities, by turn."""
    heard = rng("gpu", "heard").integers(5, size["vocab_size"], (4, size["rows"], size["turn"])).tolist()
    sampler.start([rng("gpu", row) for row in range(size["rows"])])
    turns = []
    for read in heard:
        if not until():
            break
        said = sampler.turn(range(size["rows"]), read)
        turns.append([(r, s.ids, s.logprobs) for r, s in zip(read, said, strict=True) if s is not None])
    return turns


def whole(report: Report, model: Any, size: dict[str, Any]) -> None:
    """Compare whole conversations with graphs and today's."""
    limits = Limits(size["turn"], 4 * size["turn"], 8 * size["turn"] + 1)
    played: dict[str, Any] = {}

    def play(name: str, seconds: float) -> tuple[float, str]:
        kind, on = VARIANTS[name]
        with cudnn(on):
            began = synchronized()
            ends = time.monotonic() + seconds
            turns = played[name] = converse(kind(model, (), limits), size, lambda: time.monotonic() < ends)
            took = synchronized() - began
        apart = distance(model, turns)
        return took, f"{len(turns)} turns; logp from one pass: mean {apart.mean():.2g}, max {apart.max():.2g}"

    report.measure("whole, graphs", False, 4 * size["turn"], lambda: play("graphs", 100), need=40)
    # A turn of today's takes 25 s on an H200; half of what is left is for the others.
    report.measure("whole, today", False, 4 * size["turn"], lambda: play("today", report.left / 4), need=60)
    if len(played) == 2:
        report.measure(
            "equal tokens, graphs and today", False, 0, lambda: (float("nan"), compared(*played.values()))
        )


@torch.no_grad()
def distance(model: Any, turns: Any, rows: int = 2) -> np.ndarray:
    """Compute |logp - logp of one forward pass| of the tokens that the first rows sampled."""
    apart: list[np.ndarray] = []
    for row in range(rows):
        text = [token for turn in turns for part in turn[row][:2] for token in part]
        hidden = model.get_decoder()(input_ids=torch.tensor([text], device=DEVICE)).last_hidden_state
        at = 0
        for read, said, logprobs in (turn[row] for turn in turns):
            first, at = at + len(read), at + len(read) + len(said)
            logits = model.get_output_embeddings()(hidden[0, first - 1 : at - 1]).float()
            logp = torch.log_softmax(logits, -1).gather(1, torch.tensor(said, device=DEVICE)[:, None])[:, 0]
            apart.append(np.abs(logp.cpu().numpy() - np.array(logprobs)))
    return np.concatenate(apart)


def compared(one: Any, other: Any) -> str:
    """Say how many tokens of two plays are equal before a row's first difference, and how far their logp are apart."""
    equal, total, apart = 0, 0, [0.0]
    for row in range(len(one[0])):
        pairs = [
            pair
            for a, b in zip(one, other, strict=False)
            for pair in zip(a[row][1], b[row][1], a[row][2], b[row][2], strict=True)
        ]
        same = next((i for i, (x, y, _, _) in enumerate(pairs) if x != y), len(pairs))
        equal, total = equal + same, total + len(pairs)
        apart += [abs(p - q) for _, _, p, q in pairs[:same]]
    said = f"their logp: mean {np.mean(apart):.2g}, max {max(apart):.2g}"
    return f"{equal} of {total} before a row's first difference; {said}"


def updates(report: Report, model: Any, size: dict[str, Any]) -> None:
    """Time forward and backward passes of micro-batches of new shapes, as an update has them."""
    model.enable_input_require_grads()
    model.gradient_checkpointing_enable()
    model.train()
    longest = size["lengths"][-1]
    lengths = [longest - 37 * (i + 1) % (longest // 3) for i in range(6)]

    def update(which: list[int]) -> tuple[float, str]:
        began = synchronized()
        for length in which:
            ids = torch.randint(5, size["vocab_size"], (size["micro"], length), device=DEVICE)
            mask = torch.ones_like(ids)
            mask[0, length // 2 :] = 0  # rows are of unequal lengths, so that attention gets a mask
            hidden = (
                model.get_base_model().get_decoder()(input_ids=ids, attention_mask=mask).last_hidden_state
            )
            logits = model.get_output_embeddings()(hidden[:, : length // 4]).float()
            torch.log_softmax(logits, -1)[..., 5].mean().backward()
        model.zero_grad(set_to_none=True)
        return (synchronized() - began) / len(which), "a micro-batch, forward and backward"

    report.measure("update, warm up", True, lengths[0], lambda: update(lengths[:1]))
    for on in (False, True):
        with cudnn(on):
            chosen = lengths[on::2]  # no shape twice
            report.measure(
                f"update, cuDNN {'on' if on else 'off'}", True, longest, lambda c=chosen: update(c)
            )
    model.gradient_checkpointing_disable()
    model.eval()


def profile(file: Path, variant: tuple[type[CachedSampler], bool], model: Any, size: dict[str, Any]) -> None:
    """Write a table of where three decoding steps go, and print its head."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiled

    kinds = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if CUDA else [])]
    with cudnn(variant[1]):
        sampler = opened(variant[0], model, size, size["lengths"][1])
        with profiled(activities=kinds) as found:
            decode(sampler, size, 3)
    by = "self_cuda_time_total" if CUDA else "self_cpu_time_total"
    text = found.key_averages().table(sort_by=by, row_limit=25, max_name_column_width=70)
    file.write_text(text)
    print("\n".join(line[:150] for line in text.splitlines()[:12]))


def compiled(report: Report, model: Any, size: dict[str, Any]) -> None:
    """Time graphs over compiled norms, rotary embeddings and feed-forward: whole layers would compile once a layer,
    since each has its number in the cache."""
    from transformers.models.qwen3 import modeling_qwen3

    merged = GraphedSampler(model, (), Limits(4, 4, 64))
    merged.start([rng("gpu")])
    plain, length = merged.model, size["lengths"][1]
    for module in plain.modules():
        if isinstance(module, (modeling_qwen3.Qwen3RMSNorm, modeling_qwen3.Qwen3MLP)):
            module.compile()
    rotate = modeling_qwen3.apply_rotary_pos_emb
    modeling_qwen3.apply_rotary_pos_emb = torch.compile(rotate)
    try:
        for length in size["lengths"]:
            report.measure(
                "graphs, compiled", model is not plain, length,
                lambda n=length: step(GraphedSampler, False, plain, size, n), need=20,
            )  # fmt: skip
    finally:
        modeling_qwen3.apply_rotary_pos_emb = rotate


if __name__ == "__main__":
    main()
