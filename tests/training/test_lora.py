"""LoRA on a shipped policy: its base stays, a kill loses nothing, and its checkpoint is a whole policy. The committed
sweeps of two arms begin, and what compares their tables counts as a reader would."""

from pathlib import Path
from typing import Any

import pytest
import torch
from runs import SECONDS, Killed, kill_at, rows_of, run_to_end
from safetensors.torch import load_file

from ecomlab import Shop
from ecomlab.lab import sweep
from ecomlab.models.load import load_policy
from ecomlab.training import checkpoints
from ecomlab.training.config import TrainConfig

ROOT = Path(__file__).resolve().parents[2]
TINY: dict[str, Any] = {
    "prompts_per_step": 2, "group_size": 4, "rounds": 1, "minibatches": 1, "eval_every": 0,
    "eval_difficulties": (0,), "eval_episodes": 2, "eval_decodings": ("sampled",), "eval_block": (0,),
    "checkpoint_every": 1, "catalog_size": 1_000,
}  # fmt: skip
LORA = {**TINY, "steps": 3, "schedule": "static-0-3", "lora_rank": 4, "lr": 1e-2}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_to_end(TrainConfig(out=str(tmp_path_factory.mktemp("lora") / "run"), **LORA))


def last(run: Path) -> Path:
    found = checkpoints.newest(run / "checkpoints")
    assert found is not None and found.step == 3
    return found.folder


def test_a_checkpoint_of_adapters_is_a_whole_policy(run: Path, shop: Shop, tmp_path: Path) -> None:
    """The starter's weights and what the adapters add: W + 2 B A, with alpha twice the rank."""
    adapters = load_file(last(run) / "adapter_model.safetensors")
    base = load_policy("novice", shop, ["CART"]).model
    policy = load_policy(last(run), shop, ["CART"])
    moved = 0.0
    for name, weight in policy.model.state_dict().items():
        before = base.state_dict()[name]
        key = f"base_model.model.{name.removesuffix('.weight')}.lora_"
        if f"{key}A.weight" in adapters:
            added = 2 * adapters[f"{key}B.weight"] @ adapters[f"{key}A.weight"]
            assert torch.allclose(weight, before + added, atol=1e-6), name
            moved = max(moved, float(added.abs().max()))
        else:
            assert torch.equal(weight, before), name
    assert moved > 1e-4, "it has learned something"
    assert checkpoints.export(last(run), tmp_path / "shipped")
    load_policy(tmp_path / "shipped", shop, ["CART"])
    assert run_to_end(
        TrainConfig(out=str(tmp_path / "on"), **{**TINY, "steps": 1, "starter": str(last(run))})
    )


def test_killed_it_goes_on_bit_for_bit(run: Path, tmp_path: Path) -> None:
    with pytest.raises(Killed):
        run_to_end(TrainConfig(out=str(tmp_path / "run"), **LORA), kill_at(2))
    again = run_to_end(TrainConfig(out=str(tmp_path / "run"), **LORA))
    assert rows_of(again / "train.csv", *SECONDS) == rows_of(run / "train.csv", *SECONDS)
    one, two = ((last(each) / "adapter_model.safetensors").read_bytes() for each in (again, run))
    assert one == two


@pytest.mark.parametrize("name", ["quick", "collections"])
def test_a_committed_sweep_begins(name: str, tmp_path: Path) -> None:
    """One step of its first run, made small."""
    plan = sweep.load(ROOT / "experiments" / name / "sweep.toml")
    plan.check()
    given = dict(plan.runs()[0].given)
    more = given.pop("more")
    eval_blocks = {"eval_block": tuple(given["eval_block"])} if "eval_block" in given else {}
    small = {**TINY, "eval_at": (), "steps": 1, "out": str(tmp_path / "run")}
    config = TrainConfig(**{**given, **more, **eval_blocks, **small})
    run_to_end(config)
    assert (tmp_path / "run" / "done.json").exists()
