"""verl: its data loader, its agent loop worker and its hook at the end of a batch, around a scripted policy."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

verl = pytest.importorskip("verl")

from hydra import compose, initialize_config_dir
from omegaconf import open_dict
from qwen3_helper import small
from torchdata.stateful_dataloader import StatefulDataLoader
from transformers import AutoTokenizer
from verl import DataProto
from verl.experimental.agent_loop.agent_loop import AgentLoopWorker
from verl.trainer.ppo.utils import create_rl_dataset, create_rl_sampler
from verl.utils.dataset.rl_dataset import collate_fn
from verl.workers.rollout.replica import TokenOutput

from bridges.scripts import Script, script
from ecomlab import Shop
from ecomlab.models.qwen3 import ChatRenderer
from ecomlab.training.stream import Ticket


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, bridge_shop: Shop) -> Path:
    return small(tmp_path_factory.mktemp("qwen3"), bridge_shop)


@pytest.fixture(scope="module")
def config(folder: Path) -> Any:
    """verl's own configuration of its PPO trainer, with what the bridge's docstring sets."""
    with initialize_config_dir(str(Path(verl.__file__).parent / "trainer/config"), version_base=None):
        made = compose(
            "ppo_trainer", [f"actor_rollout_ref.model.path={folder}", "actor_rollout_ref.rollout.name=vllm"]
        )
    with open_dict(made):
        made.data.custom_cls.path, made.data.custom_cls.name = "pkg://ecomlab.bridges.verl", "StreamDataset"
        made.data.dataloader_num_workers, made.data.shuffle = 0, False
        made.data.ecomlab = {
            "envs": "CART,PD",
            "schedule": "adaptive",
            "groups_per_step": 2,
            "seed": 1,
            "tau_num": 4,
        }
        rollout = made.actor_rollout_ref.rollout
        rollout.prompt_length, rollout.response_length, rollout.n = 8_000, 8_000, 4
        rollout.multi_turn.enable, rollout.calculate_log_probs = True, True
    return made


class Scripted:
    """verl's client of its servers."""

    def __init__(self) -> None:
        self.script: Script = {}

    async def generate(
        self, request_id: str, *, prompt_ids: list[int], sampling_params: Any, **_: Any
    ) -> TokenOutput:
        ids = self.script[tuple(prompt_ids)]
        return TokenOutput(token_ids=ids, log_probs=[-0.5] * len(ids), stop_reason="completed")


def loader_of(config: Any, tokenizer: Any) -> StatefulDataLoader:
    data = create_rl_dataset([], config.data, tokenizer, None)
    sampler = create_rl_sampler(config.data, data)
    return StatefulDataLoader(
        data, batch_size=2, num_workers=0, drop_last=True, collate_fn=collate_fn, sampler=sampler
    )


def test_its_loop_moves_the_window_and_a_restored_loader_draws_alike(
    folder: Path, config: Any, tell_versions: Any, log: dict[str, Any]
) -> None:
    tell_versions("verl")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    loader, client = loader_of(config, tokenizer), Scripted()
    worker, renderer = AgentLoopWorker(config, client), ChatRenderer(tokenizer)
    data: Any = loader.dataset
    windows, drawn = [], []
    saved = before = loader.state_dict()
    for number, row in zip(range(12), loader, strict=False):
        if number == 6:
            saved = json.loads(json.dumps(before))
        drawn.append(list(row["ticket"]))
        tickets = [Ticket.from_json(json.loads(ticket)) for ticket in row["ticket"]]
        for ticket in tickets:
            client.script |= script(data.stream, ticket, renderer, right=number != 2)
        batch = DataProto.from_single_dict(row).repeat(4)
        output = asyncio.run(worker.generate_sequences(batch))
        assert output.non_tensor_batch["correct"].tolist() == [number != 2] * 8
        rewards = output.batch["rm_scores"].sum(-1)
        assert bool((rewards > 0.8).all()) == (number != 2)
        mask, responses = output.batch["response_mask"], output.batch["responses"]
        said = renderer.decode(responses[0][mask[0].bool()].tolist())
        assert "<tool_response>" not in said and "tool_call" in said
        data.on_batch_end(batch.union(output))
        windows.append(data.stream.schedule.window(tickets[0].draw.env))
        before = loader.state_dict()
    log["windows"] = windows
    assert max(high for _, high in windows) >= 2 and data.stream.state()["waiting"] == []

    again = loader_of(config, tokenizer)
    again.load_state_dict(saved)
    (row,) = (row for row, _ in zip(again, range(1), strict=False))
    assert list(row["ticket"]) == drawn[6]


def test_worker_processes_of_the_loader_are_refused(config: Any, folder: Path) -> None:
    with_workers = config.data.copy()
    with_workers.dataloader_num_workers = 2
    with pytest.raises(ValueError, match="dataloader_num_workers=0"):
        create_rl_dataset([], with_workers, AutoTokenizer.from_pretrained(folder), None)
