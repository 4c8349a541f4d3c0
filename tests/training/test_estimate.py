"""The estimate: figures that were worked out by hand, launch lines, and files that accelerate accepts."""

import io
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ecomlab import options
from ecomlab.models.policy import PolicyError
from ecomlab.training.config import ConfigError, TrainConfig, check_split, from_toml
from ecomlab.training.estimate import (
    CARDS,
    KNOWN,
    Mean,
    Reach,
    fits,
    held_out_share,
    launches,
    mean_episode,
    memory,
    reaches,
    seconds,
    show_plan,
    size_of,
)
from ecomlab.training.tokens import Count, write_table

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "experiments" / "qwen3_8b" / "train.toml"
LORA = from_toml(FILE)
FULL = LORA.replace(lora_rank=0, optimizer="adamw-8bit")
MASTER = LORA.replace(lora_rank=0, dtype="float32")
SIZE = size_of("Qwen/Qwen3-8B")
C8 = from_toml(FILE.with_name("c8.toml"))


def test_the_models_size_is_the_published_one() -> None:
    assert 2 * SIZE.parameters == 16_381_470_720, "bytes, in the index of Qwen3-8B's safetensors"
    assert SIZE.kv_bytes() == 147_456


def test_a_model_that_is_here_is_counted_from_its_own_config(tmp_path: Path) -> None:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    small = {**KNOWN["Qwen/Qwen3-8B"], "vocab_size": 90, "hidden_size": 24, "head_dim": 6}
    small["intermediate_size"] = 40
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
    kept = [memory(config.replace(gradient_checkpointing=on), SIZE)["activations"] for on in (True, False)]
    assert 10 * kept[0] < kept[1]


EVEN = Mean(2_000, 1_000)


def test_a_step_takes_what_was_worked_out() -> None:
    """Of 64 x 2,000 tokens: an update of 20 s; a decoding step reads 26 GB, and our own sampler's kernels take 5.4 ms
    on any card: 11 ms on an H200, 13 on an H100."""
    own, vllm = seconds(FULL, SIZE, EVEN), seconds(FULL.replace(generation="vllm-colocate"), SIZE, EVEN)
    assert own["update"] == pytest.approx(20, rel=0.1)
    assert own["decoding"] == pytest.approx(1_000 * 3.6 * (0.0054 + 25.8e9 / 4.8e12), rel=0.01)
    slower = seconds(FULL, SIZE, EVEN, card="H100")
    assert slower["decoding"] == pytest.approx(1_000 * 3.6 * (0.0054 + 25.8e9 / 3.35e12), rel=0.01)
    assert vllm["decoding"] == pytest.approx(1_000 * 4.6 * 25.8e9 / (0.6 * 4.8e12), rel=0.01)
    a_tenth = seconds(FULL.replace(eval_every=60), SIZE, EVEN)
    assert a_tenth["evaluation"] == pytest.approx(0.1 * (own["prefill"] + own["decoding"])), (
        "6 x 320 of 19,200"
    )
    lora = seconds(LORA, SIZE, EVEN)
    assert lora["update"] < own["update"] and lora["decoding"] == own["decoding"]


def test_a_mean_episode_is_that_of_the_collections_table() -> None:
    counts = ROOT / "experiments" / "tokens" / "tokens.csv"
    cart, all_of_them = (mean_episode(C8.replace(collection=name), counts) for name in ("C1", "C8"))
    assert 3_000 < cart.whole < all_of_them.whole < 8_000 and cart.sampled < cart.whole / 4
    tight = LORA.replace(context_tokens=1_500, episode_tokens=300, overlong_buffer=0)
    assert mean_episode(tight, counts) == Mean(1_500, 300)
    assert mean_episode(LORA, counts / "gone") == EVEN


def plan(config: TrainConfig, file: Path = FILE) -> str:
    said = io.StringIO()
    show_plan(config, file, Console(width=120, file=said))
    return said.getvalue()


def row_of(text: str, name: str) -> list[str]:
    """The cells of a printed table's row."""
    (line,) = [line for line in text.splitlines() if line.startswith(f"│ {name} ")]
    return [cell.strip() for cell in line.split("│")[2:-1]]


def test_the_plan_shows_memory_seconds_and_the_line_and_trains_nothing(tmp_path: Path) -> None:
    file = tmp_path / "train.toml"  # no table of measurements lies beside it
    shutil.copy(FILE, file)
    text = plan(LORA.replace(out=str(tmp_path / "run")), file)
    assert row_of(text, "trained parameters") == ["174,587,904"]
    for name, gb in memory(LORA, SIZE).items():
        assert row_of(text, name) == [f"{gb:,.1f}"]
    mean = mean_episode(LORA, ROOT / "experiments" / "tokens" / "tokens.csv")
    assert row_of(text, "tokens a round") == [f"{64 * mean.whole:,}"] == ["328,256"]
    colocated = LORA.replace(generation="vllm-colocate")
    for name, config in (("1 process", LORA), ("1 process, vllm-colocate", colocated)):
        for card, (gb, *_) in CARDS.items():
            spent = seconds(config, SIZE, mean, card=card)
            hours = f"{300 * sum(spent.values()) / 3600:,.1f}"
            assert row_of(text, f"{name}, {gb:.0f} GB") == [*(f"{s:,.0f}" for s in spent.values()), hours]
    assert "measured on" not in text and text.rstrip().endswith("nothing was trained")
    assert not (tmp_path / "run").exists()


def test_the_plan_refuses_what_no_run_takes_and_warns_of_what_this_machine_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run may be planned where it will not be trained, so that a missing package does not stop the plan."""
    with pytest.raises(ConfigError, match="generation = 'vllm-colocate' is for Hugging Face models"):
        plan(TrainConfig(generation="vllm-colocate"))
    asked = LORA.replace(logger="wandb", optimizer="adamw-8bit", generation="vllm-colocate")
    for there in (None, object()):
        monkeypatch.setattr("ecomlab.training.config.find_spec", lambda name, there=there: there)
        text = plan(asked)
        for package in ("torchao", "vllm", "wandb"):
            assert (f"needs {package}, which is not installed" in text) == (there is None)
        assert "\n1 process, more than 40 GB:" in text


ROW = Count("CART", 0, 100, 50, 400, 900, 950, 1000, 1.0, 0.96, 1.0, written=150, turn=80)


@pytest.mark.parametrize("over", [{"p99": 1001}, {"written": 201}, {"turn": 101}])
def test_limits_reach_as_far_as_the_token_table_says(over: dict[str, Any], tmp_path: Path) -> None:
    table = tmp_path / "tokens.csv"
    beyond = [replace(ROW, d=8, **over), replace(ROW, env="PD", d=0, **over)]
    write_table([ROW, replace(ROW, d=4, max=2000), *beyond], table)
    limits: dict[str, Any] = {"turn_tokens": 100, "episode_tokens": 200, "context_tokens": 1000}
    chat = TrainConfig(starter="Qwen/Qwen3-8B", collection="CART,PD,SUB", schedule="static-0-6", **limits)
    assert list(reaches(chat, table)) == [Reach("CART", 4, 8, 6), Reach("PD", None, 0, 6)]
    assert list(reaches(chat, tmp_path / "gone.csv")) == []
    assert list(reaches(TrainConfig(), table)) == [], "starters have lines of their own"


def given(line: str) -> TrainConfig:
    """The configuration that a printed line trains."""
    words = shlex.split(line)
    file = Path(words[words.index("--config") + 1]) if "--config" in words else None
    changes = [word for before, word in pairwise(words) if before == "--set"]
    return from_toml(file, options.settings(changes))


@pytest.mark.parametrize("name", ["train", "c4", "c8"])
@pytest.mark.parametrize("generation", ["own", "vllm-colocate", "vllm-server"])
def test_every_printed_line_splits_over_its_processes_and_accelerate_takes_it(
    name: str, generation: str
) -> None:
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser

    config = from_toml(FILE.with_name(f"{name}.toml")).replace(generation=generation)
    ways = launches(config, FILE.with_name(f"{name}.toml"))
    assert len(ways) == 1 + config.with_vllm
    for way in ways:
        line = way.lines[-1]
        assert given(line) == config
        check_split(config, way.processes)
        words = shlex.split(line)
        if words[0] == "accelerate":
            chosen, *_ = _validate_launch_command(launch_command_parser().parse_args(words[2:]))
            asked = (chosen.num_processes, chosen.use_fsdp, chosen.mixed_precision)
            assert asked == (way.processes, True, "bf16")
            assert (chosen.module, chosen.training_script) == (True, "ecomlab")


@pytest.mark.parametrize("name", ["fsdp", "deepspeed_zero3"])
def test_the_line_in_a_launch_configuration_splits_over_its_processes(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from accelerate.commands.launch import launch_command_parser

    monkeypatch.chdir(ROOT)
    comments = FILE.with_name(f"{name}.yaml").read_text().split("compute_environment")[0]
    joined = re.sub(r"\\\n#\s*", "", comments)
    (line,) = re.findall(r"^# (accelerate launch .*)$", joined, flags=re.MULTILINE)
    chosen = launch_command_parser().parse_args(shlex.split(line)[2:])
    assert Path(chosen.config_file).exists() and chosen.training_script == "ecomlab"
    check_split(given(line), chosen.num_processes)


TELL = """#!/bin/sh
printf '%s\\n' "$*" >> "{log}"
"""
SRUN = """#!/bin/sh
many=$SLURM_NNODES
while [ "${{1#--}}" != "$1" ]; do
  case $1 in --nodes=*) many=${{1#--nodes=}} ;; esac
  printf '%s ' "$1" >> "{log}.srun"
  shift
done
echo "cpus=$SRUN_CPUS_PER_TASK bind=$SLURM_CPU_BIND" >> "{log}.srun"
[ "$many" = 1 ] && exec env SLURM_NODEID=0 "$@"
for node in $(seq 0 $((many - 1))); do SLURM_NODEID=$node "$@"; done
"""
PYTHON = """#!/bin/sh
exec "{python}" "$@"
"""
SCONTROL = """#!/bin/sh
printf 'node-a\\nnode-b\\n127.0.0.1\\n'
"""


def stand_in(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Put commands into PATH that write down what they are asked."""
    for name, script in (
        ("accelerate", TELL), ("srun", SRUN), ("scontrol", SCONTROL), ("vllm", TELL), ("python", PYTHON),
    ):  # fmt: skip
        (folder / name).write_text(script.format(log=folder / "log", python=sys.executable))
        (folder / name).chmod(0o755)
    patch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    patch.chdir(ROOT)


def allocated(nodes: int) -> dict[str, str]:
    """What SLURM tells a batch script."""
    known = {"SLURM_JOB_NODELIST": "node-[a-b]", "SLURM_NNODES": str(nodes), "SLURM_CPUS_ON_NODE": "96"}
    return {**os.environ, **known, "PAUSE": ".1"}


@pytest.mark.parametrize("nodes", [2, 4])
@pytest.mark.parametrize("slurm", [True, False])
def test_a_machines_line_splits_over_all_gpus_and_accelerate_takes_it(
    nodes: int, slurm: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """nodes.sh, with stand-ins for accelerate and SLURM's commands that write down what they are asked."""
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser

    stand_in(tmp_path, monkeypatch)
    command = ["bash", str(FILE.parent / "nodes.sh"), "--set", "seed=3"]
    if slurm:
        subprocess.run(command, check=True, env=allocated(nodes))
        assert (tmp_path / "log.srun").read_text() == "cpus=96 bind=none\n", "not one core for all"
    else:
        for rank in range(nodes):
            known = {"RANK": str(rank), "NODES": str(nodes), "HEAD": "node-a"}
            subprocess.run(command, check=True, env={**os.environ, **known})
    lines = (tmp_path / "log").read_text().splitlines()
    ranks = []
    for line in lines:
        chosen, *_ = _validate_launch_command(launch_command_parser().parse_args(shlex.split(line)[1:]))
        asked = (chosen.num_machines, chosen.num_processes, chosen.main_process_ip)
        assert asked == (nodes, 8 * nodes, "node-a")
        assert chosen.use_fsdp and (chosen.module, chosen.training_script) == (True, "ecomlab")
        check_split(given(line), chosen.num_processes)
        config = given(line)
        assert (config.seed, config.generation, config.prompts_per_step) == (3, "vllm-colocate", 64)
        ranks.append(chosen.machine_rank)
    assert ranks == list(range(nodes))


LAUNCHER = """#!/bin/sh
"{python}" -c "
import os, signal, sys, time
if os.fork():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
def told(*_):
    with open('{log}', 'a') as file:
        print('told', file=file)
    os._exit(0)
signal.signal(signal.SIGUSR1, told)
open('{log}.up', 'w').close()
time.sleep(60)"
"""


def test_a_signal_to_the_machines_shell_reaches_the_processes_that_train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SLURM signals its task, the shell; the launcher between it and the trainers passes on no SIGUSR1."""
    stand_in(tmp_path, monkeypatch)
    (tmp_path / "accelerate").write_text(
        LAUNCHER.format(python=sys.executable, log=tmp_path / "log").replace(
            '#!/bin/sh\n"', '#!/bin/sh\nexec "'
        )
    )
    known = {"RANK": "0", "NODES": "1", "HEAD": "node-a"}
    with subprocess.Popen(["bash", str(FILE.parent / "nodes.sh")], env={**os.environ, **known}) as shell:
        while not (tmp_path / "log.up").exists():
            assert shell.poll() is None
            time.sleep(0.05)
        shell.send_signal(signal.SIGUSR1)
        assert shell.wait(30) == 0
    assert (tmp_path / "log").read_text() == "told\n"


def test_a_machine_that_serves_has_an_engine_on_each_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch)
    command = ["bash", str(FILE.parent / "nodes.sh"), "--set", "context_tokens=9000"]
    subprocess.run(command, check=True, env={**os.environ, "SERVER": "1", "GPUS": "4"})
    line = (tmp_path / "log").read_text().split()
    asked = dict(pairwise(line))
    assert line[:2] == ["serve", "Qwen/Qwen3-8B"] and asked["--data-parallel-size"] == "4"
    assert asked["--max-model-len"] == str(9000 + LORA.turn_tokens) and "--tensor-parallel-size" not in line


@pytest.mark.parametrize("name", ["train", "c4", "c8"])
def test_every_file_fits_the_gpu_that_it_is_for(name: str) -> None:
    file = FILE.with_name(f"{name}.toml")
    config = from_toml(file)
    assert [fits(config, SIZE, card=card) for card in CARDS] == [False, name != "train", True]
    assert "more than 141 GB" not in plan(config, file)
    assert held_out_share(config) <= 0.1, "evaluation costs at most a tenth of the training's rollouts"


def test_a_vllm_that_sleeps_shares_its_memory_with_the_update() -> None:
    awake = memory(C8.replace(vllm_sleep=False), SIZE)
    asleep = memory(C8, SIZE)
    update = sum(awake[name] for name in ("gradients", "activations", "logits"))
    assert asleep["peak"] == pytest.approx(awake["peak"] - update) and update < awake["vLLM"]
    assert not fits(C8.replace(vllm_memory=0.2), SIZE, card="H100"), "its own weights and one row are 20 GB"


@pytest.mark.parametrize(("name", "collections"), [("train", ["C1"]), ("c4", ["C2", "C4"]), ("c8", ["C8"])])
def test_the_limits_of_a_collections_file_hold_up_to_eight(name: str, collections: list[str]) -> None:
    config, counts = from_toml(FILE.with_name(f"{name}.toml")), ROOT / "experiments" / "tokens" / "tokens.csv"
    assert config.collection == collections[-1]
    for collection in collections:
        found = list(reaches(config.replace(collection=collection), counts))
        assert found and all(one.breaks is None or one.breaks > 8 for one in found)


@pytest.mark.slow
def test_the_benchmark_runs_anywhere_and_goes_on(tmp_path: Path) -> None:
    script = [sys.executable, str(FILE.parent / "bench.py"), "--size", "small", "--out", str(tmp_path)]
    subprocess.run(script, check=True, capture_output=True, timeout=200)
    table = (tmp_path / "bench.csv").read_text().splitlines()
    assert len(table) == 6
    (tmp_path / "bench.csv").write_text("\n".join(table[:-1]) + "\n")
    subprocess.run(script, check=True, capture_output=True, timeout=200)
    again = (tmp_path / "bench.csv").read_text().splitlines()
    assert again[:-1] == table[:-1] and len(again) == 6
