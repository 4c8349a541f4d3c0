"""The commands that start a run: on one GPU, on several of a machine, and a vLLM server's beside it."""

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ecomlab.training.config import ConfigError, TrainConfig, check_split, from_toml

SHARDED = "fsdp.yaml"
"""Launch configuration beside a run's file, for weights that are sharded over a machine's GPUs."""


@dataclass(frozen=True)
class Launch:
    """One way to start a run."""

    where: str
    """What it runs on, in words."""
    lines: tuple[str, ...]
    """Commands in the order in which they are given, the training's last."""
    processes: int


def launches(
    config: TrainConfig, file: Path, fits: Callable[[TrainConfig], bool] = lambda config: True
) -> list[Launch]:
    """List the ways to start the run of `config`, read from `file`; `fits` tells whether one GPU holds it.

    Our own sampler needs all weights in every process, so sharding (`SHARDED` beside `file`) is only for runs with
    vLLM, over as many of the processes that it names as the groups split over. Where one GPU is the only way and does
    not hold the run, that is said. Raises ConfigError for a configuration
    that cannot be started with one process either.
    """
    check_split(config, 1)
    train = ["ecomlab", "train", *_arguments(config, file)]
    remote = config.generation == "vllm-server"
    server = (f"{serving(config)}   # on separate GPUs, left running",) if remote else ()
    beside = " beside the server's" if server else ""
    found = []
    many = split_over(config, _processes(file)) if config.with_vllm else 1
    if many == 1 or fits(config):
        small = "" if fits(config) else ", which does not hold it on paper"
        found.append(Launch(f"on one GPU{beside}{small}", (*server, shlex.join(train)), 1))
    if many > 1:
        sharded = ["accelerate", "launch", "--config_file", str(file.parent / SHARDED)]
        sharded += ["--num_processes", str(many)] if many != _processes(file) else []
        line = shlex.join([*sharded, "-m", *train])
        found.append(Launch(f"on {many} GPUs{beside}, weights sharded", (*server, line), many))
    return found


def split_over(config: TrainConfig, most: int) -> int:
    """Count the processes that a run can have: `most`, or the next smaller number over which its groups split."""
    for processes in range(most, 1, -1):
        try:
            check_split(config, processes)
        except ConfigError:
            continue
        return processes
    return 1


def _processes(file: Path) -> int:
    """Count the processes that the launch configuration beside the file starts; 1 without one."""
    sharded = file.parent / SHARDED
    if not sharded.exists():
        return 1
    from accelerate.commands.config.config_args import load_config_from_file

    return int(load_config_from_file(str(sharded)).num_processes)


def _arguments(config: TrainConfig, file: Path) -> list[str]:
    """List the arguments of `ecomlab train` that give `config`: the file, and --set where it differs."""
    arguments = ["--config", str(file)]
    before = from_toml(file).to_json() if file.exists() else TrainConfig().to_json()
    for name, value in config.to_json().items():
        if value != before[name]:
            text = value if isinstance(value, str) else _toml(value)
            arguments += ["--set", f"{name}={text}"]
    return arguments


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


def _toml(value: Any) -> str:
    """Write a setting's value for --set: as JSON, but for tables, which TOML writes with equals signs."""
    if not isinstance(value, dict):
        return json.dumps(value)
    return "{" + ", ".join(f"{json.dumps(name)} = {json.dumps(inner)}" for name, inner in value.items()) + "}"
