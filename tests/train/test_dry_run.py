"""The dry run: figures that were worked out by hand, launch lines, and files that accelerate accepts."""

import io
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console

from ecomlab import options
from ecomlab.models.policy import PolicyError
from ecomlab.train.config import TrainConfig, from_toml
from ecomlab.train.dry_run import KNOWN, launch_lines, memory, seconds, show_plan, size_of, tokens_a_step

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "experiments" / "qwen3_8b" / "train.toml"
LORA = from_toml(FILE)
FULL = LORA.replace(lora_rank=0, optimizer="adamw-8bit")
MASTER = LORA.replace(lora_rank=0, dtype="float32")
SIZE = size_of("Qwen/Qwen3-8B")


def test_the_articles_figures_are_in_the_file() -> None:
    assert (LORA.group_size, LORA.lr, LORA.steps) == (8, 1e-5, 300)
    assert (LORA.dtype, LORA.lora_rank, LORA.starter) == ("bfloat16", 64, "Qwen/Qwen3-8B")


def test_the_models_size_is_the_published_one() -> None:
    assert (
        SIZE.parameters == 8_190_735_360
    )  # the index of Qwen3-8B's safetensors: 16,381,470,720 bytes of bfloat16
    assert SIZE.kv_bytes() == 147_456
    assert 2 * SIZE.parameters / 1e9 == pytest.approx(16.4, abs=0.05)


def test_a_model_that_is_here_is_counted_from_its_own_config(tmp_path: Path) -> None:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    small = {
        **KNOWN["Qwen/Qwen3-8B"],
        "vocab_size": 90,
        "hidden_size": 24,
        "intermediate_size": 40,
        "head_dim": 6,
    }
    for tied in (True, False):
        config = Qwen3Config(**{**small, "num_hidden_layers": 3, "tie_word_embeddings": tied})
        config.save_pretrained(tmp_path)
        model = Qwen3ForCausalLM(config)
        assert size_of(str(tmp_path)).parameters == sum(p.numel() for p in model.parameters())
    from peft import LoraConfig, get_peft_model

    lora = get_peft_model(model, LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM"))
    trained = sum(p.numel() for p in lora.parameters() if p.requires_grad)
    assert size_of(str(tmp_path)).adapters(4) == trained
    with pytest.raises(PolicyError, match="hf download Qwen/Qwen3-80B config.json"):
        size_of("Qwen/Qwen3-80B")


@pytest.mark.parametrize(("config", "gb"), [(LORA, 19), (FULL, 49), (MASTER, 131)])
def test_weights_gradients_and_optimizer_are_what_they_were_by_hand(config: TrainConfig, gb: float) -> None:
    parts = memory(config, SIZE)
    assert parts["weights"] + parts["gradients"] + parts["optimizer"] == pytest.approx(gb, rel=0.02)
    shared = memory(config.replace(generation="vllm-server"), SIZE, 8)
    assert shared["peak"] < parts["peak"] / 2


def test_the_cache_of_64_rollouts_of_2000_tokens() -> None:
    """19 GB at 2,000 tokens; the cache's length is a power of two."""
    parts = memory(LORA.replace(context_tokens=2_048, episode_tokens=1_000), SIZE)
    assert parts["keys, values"] == pytest.approx(19 * 2_048 / 2_000, rel=0.02)


def test_checkpointing_saves_most_activations() -> None:
    with_it, without = (
        memory(LORA.replace(gradient_checkpointing=on), SIZE)["activations"] for on in (True, False)
    )
    assert without > 10 * with_it
    assert memory(FULL, SIZE)["peak"] < 141 < memory(MASTER, SIZE)["peak"], "an H200"


def test_a_step_takes_what_was_worked_out() -> None:
    assert tokens_a_step(FULL) == (128_000, 64_000)
    own, vllm = seconds(FULL, SIZE), seconds(FULL.replace(generation="vllm-colocate"), SIZE)
    assert own["update"] == pytest.approx(20, rel=0.1)
    assert 95 < sum(own.values()) < 150
    assert sum(vllm.values()) == pytest.approx(50, rel=0.2)
    assert seconds(LORA, SIZE)["update"] < own["update"]


@pytest.fixture(autouse=True)
def few_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ecomlab.train.reach.TASKS", 2)


def plan(config: TrainConfig, file: Path = FILE) -> str:
    said = io.StringIO()
    show_plan(config, file, Console(width=120, file=said))
    return said.getvalue()


def test_the_plan_prints_memory_bottleneck_and_the_line_and_trains_nothing(tmp_path: Path) -> None:
    text = plan(LORA.replace(out=str(tmp_path / "run")))
    for words in (
        "8.19e9 parameters",
        "174.59e6 trained (LoRA of rank 64)",
        "keys, values",
        "expected bottleneck",
    ):
        assert words in text
    assert "assumed: H200" in text and "128,000" in text and "nothing was trained" in text
    assert not (tmp_path / "run").exists()


def test_the_laptops_plan_is_small() -> None:
    file = ROOT / "experiments" / "laptop" / "train.toml"
    assert "0.55e6 parameters in float32" in plan(from_toml(file), file)


def test_the_plan_says_how_far_the_limits_reach_and_what_goes_beyond() -> None:
    text = plan(LORA.replace(collection="CART,PD,JOURNEY", schedule="static-0-12", axes={"cart.items": 1}))
    assert "limits (turn 512, episode 2048, context 8192 tokens) hold 99%" in text
    assert "CART: up to d = 12, the highest level counted" in text
    assert "warning: JOURNEY: the schedule (d = 0 to 12)" in text
    assert "warning: axis 'cart.items' does not move PD" in text


def test_a_launch_line_with_axes_is_read_back_as_the_same_run() -> None:
    config = LORA.replace(axes={"cart.items": 1, "p_missing": 0}, eval_block=(1, 2))
    (line,) = launch_lines(config, FILE)
    words = shlex.split(line)
    given = [word for before, word in pairwise(words) if before == "--set"]
    assert from_toml(FILE, options.settings(given)) == config


def test_the_launch_lines_are_exact() -> None:
    (alone,) = launch_lines(LORA, FILE)
    assert shlex.split(alone) == ["ecomlab", "train", "--config", str(FILE)]
    server, training = launch_lines(MASTER.replace(generation="vllm-server", seed=3), FILE)
    assert server.startswith(
        "VLLM_SERVER_DEV_MODE=1 vllm serve Qwen/Qwen3-8B --port 8000 --max-model-len 8704"
    )
    words = shlex.split(training)
    assert words[:4] == ["accelerate", "launch", "--config_file", str(FILE.parent / "fsdp.yaml")]
    assert words[4:7] == ["-m", "ecomlab", "train"]
    changed = {word for before, word in pairwise(words) if before == "--set"}
    assert changed == {"generation=vllm-server", "seed=3", "lora_rank=0", "dtype=float32"}


@pytest.mark.parametrize("name", ["fsdp", "deepspeed_zero3"])
def test_accelerate_accepts_the_launch_configurations(name: str) -> None:
    from accelerate.commands.config.config_args import ClusterConfig, load_config_from_file

    config = load_config_from_file(str(FILE.parent / f"{name}.yaml"))  # raises on keys it does not know
    assert (
        isinstance(config, ClusterConfig) and config.num_processes == 8 and config.mixed_precision == "bf16"
    )
    assert config.fsdp_config.get("fsdp_version") == 2 or config.deepspeed_config.get("zero_stage") == 3


@pytest.mark.slow
def test_the_benchmark_runs_anywhere_and_goes_on(tmp_path: Path) -> None:
    script = [sys.executable, str(FILE.parent / "bench.py"), "--size", "small", "--out", str(tmp_path)]
    subprocess.run(script, check=True, capture_output=True, timeout=200)
    table = (tmp_path / "bench.csv").read_text().splitlines()
    assert len(table) == 5
    (tmp_path / "bench.csv").write_text("\n".join(table[:-1]) + "\n")
    subprocess.run(script, check=True, capture_output=True, timeout=200)
    again = (tmp_path / "bench.csv").read_text().splitlines()
    assert again[:-1] == table[:-1] and len(again) == 5
