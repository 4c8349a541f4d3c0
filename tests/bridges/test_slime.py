"""slime is in no package registry: its classes stand in here, with the fields and calls that its main branch had on
2026-08-21 (slime/utils/types.py, rollout/data_source.py, rollout/sglang_rollout.py)."""

import asyncio
import importlib
import json
import sys
import types
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")

from qwen3_helper import small
from transformers import AutoTokenizer

from bridges.scripts import Script, script
from ecomlab import Shop
from ecomlab.models.qwen3 import ChatRenderer
from ecomlab.training.stream import Ticket


@dataclass
class Sample:
    group_index: int | None = None
    index: int | None = None
    tokens: list[int] = field(default_factory=list)
    response: str = ""
    response_length: int = 0
    reward: float | None = None
    loss_mask: list[int] | None = None
    rollout_log_probs: list[float] | None = None
    remove_sample: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)

    class Status(Enum):
        PENDING = "pending"
        COMPLETED = "completed"
        TRUNCATED = "truncated"
        ABORTED = "aborted"

    status: Status = Status.PENDING


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory, bridge_shop: Shop) -> Any:
    return AutoTokenizer.from_pretrained(small(tmp_path_factory.mktemp("qwen3"), bridge_shop))


class Server:
    """SGLang's router: answers by a script, `length` tokens at most a request, and aborts what it is told to."""

    def __init__(self) -> None:
        self.script: Script = {}
        self.aborts = 0

    async def post(self, url: str, payload: dict[str, Any]) -> dict[str, Any]:
        if self.aborts:
            self.aborts -= 1
            return {"meta_info": {"finish_reason": {"type": "abort"}}}
        whole = self.script[tuple(payload["input_ids"])]
        said = whole[: payload["sampling_params"]["max_new_tokens"]]
        how = "stop" if said == whole else "length"
        return {
            "meta_info": {"finish_reason": {"type": how}, "output_token_logprobs": [[-0.5, i] for i in said]}
        }


@pytest.fixture
def slime(monkeypatch: pytest.MonkeyPatch, tokenizer: Any) -> tuple[Any, Server]:
    server = Server()
    modules: dict[str, dict[str, Any]] = {
        "slime.rollout.data_source": {"DataSource": type("DataSource", (), {})},
        "slime.rollout.sglang_rollout": {
            "GenerateState": lambda args: types.SimpleNamespace(tokenizer=tokenizer),
            "get_model_url": lambda args, name: f"http://{name}/generate",
        },
        "slime.utils.http_utils": {"post": server.post},
        "slime.utils.types": {"Sample": Sample},
    }
    for name, given in modules.items():
        module = types.ModuleType(name)
        vars(module).update(given)
        monkeypatch.setitem(sys.modules, name, module)
    for name in ("slime", "slime.rollout", "slime.utils"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.delitem(sys.modules, "ecomlab.bridges.slime", raising=False)
    return importlib.import_module("ecomlab.bridges.slime"), server


def args_of(folder: Path) -> Any:
    stream = {"envs": "CART", "schedule": "adaptive", "groups_per_step": 2, "tau_num": 8}
    given = {
        "ecomlab": stream,
        "n_samples_per_prompt": 4,
        "rollout_batch_size": 2,
        "save": str(folder),
        "load": str(folder),
    }
    return types.SimpleNamespace(**given)


def test_a_step_reports_and_a_resumed_source_draws_alike(slime: Any, tokenizer: Any, tmp_path: Path) -> None:
    bridge, server = slime
    args, renderer = args_of(tmp_path), ChatRenderer(tokenizer)
    source = bridge.StreamSource(args)
    drawn: list[Any] = []
    for step in range(12):
        groups = source.get_samples(2)
        drawn.append([group[0].metadata[bridge.TICKET] for group in groups])
        for group in groups:
            ticket = Ticket.from_json(json.loads(group[0].metadata[bridge.TICKET]))
            server.script |= script(source.stream, ticket, renderer)
            for sample in group:
                asyncio.run(bridge.generate(args, sample, {"max_new_tokens": 20_000}))
                assert sample.status is Sample.Status.COMPLETED and sample.reward > 0.8
                assert len(sample.loss_mask) == sample.response_length == len(sample.rollout_log_probs)
                said = [
                    i
                    for i, m in zip(sample.tokens[-sample.response_length :], sample.loss_mask, strict=True)
                    if m
                ]
                assert "<tool_response>" not in renderer.decode(said)
        bridge.report(args, groups, source.get_samples)
        source.save(step)
    assert source.stream.schedule.window("CART")[1] >= 2
    again = bridge.StreamSource(args)
    again.load(5)
    assert [group[0].metadata[bridge.TICKET] for group in again.get_samples(2)] == drawn[6]


def test_limits_truncate_and_aborted_groups_are_played_again(
    slime: Any, tokenizer: Any, tmp_path: Path
) -> None:
    bridge, server = slime
    args = args_of(tmp_path)
    source = bridge.StreamSource(args)
    (group,) = source.get_samples(1)
    ticket = Ticket.from_json(json.loads(group[0].metadata[bridge.TICKET]))
    server.script = script(source.stream, ticket, ChatRenderer(tokenizer))
    cut = asyncio.run(bridge.generate(args, group[0], {"max_new_tokens": 5}))
    assert (
        cut.status is Sample.Status.TRUNCATED
        and cut.metadata[bridge.CORRECT] is False
        and sum(cut.loss_mask) == 5
    )
    server.aborts = 1
    assert (
        asyncio.run(bridge.generate(args, group[1], {"max_new_tokens": 9_000})).status
        is Sample.Status.ABORTED
    )
    source.add_samples([group])
    assert source.get_samples(1) == [group]
