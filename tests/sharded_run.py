"""Train with FSDP2 on CPUs: `accelerate launch --config_file FILE tests/sharded_run.py CONFIG.json`.

accelerate shards on accelerators only, so this one tells it that it has some. In place of vLLM there is a whole copy of
the model, which gets its weights by TRL's own walk over the sharded ones.
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from accelerate.utils import DistributedType
from qwen3_helper import FakeVllm, lottery

started = PartialState.__init__


def start(self: Any, *args: Any, **kwargs: Any) -> None:
    started(self, *args, **kwargs)
    if self.distributed_type == DistributedType.MULTI_CPU:
        self.distributed_type = DistributedType.MULTI_GPU


PartialState.__init__ = start

import trl.trainer.grpo_trainer as grpo  # noqa: E402
from transformers import Qwen3ForCausalLM  # noqa: E402
from trl.generation.vllm_generation import VLLMGeneration  # noqa: E402

from ecomlab.training import config as settings  # noqa: E402
from ecomlab.training import trl_trainer  # noqa: E402
from ecomlab.training.config import TrainConfig  # noqa: E402
from ecomlab.training.run import train  # noqa: E402

config = TrainConfig(**json.loads(Path(sys.argv[1]).read_text()))


class Copy(VLLMGeneration):
    def _init_vllm(self) -> None:
        self.copy = Qwen3ForCausalLM.from_pretrained(config.starter)
        self.vllm_client = self.llm = FakeVllm(self.copy, self.mode)
        if self.enable_sleep_mode:
            self.llm.sleep(level=2)

    @torch.no_grad()
    def sync_weights(self) -> None:
        kinds = {type(p).__name__ for p in self.model.parameters()}
        assert kinds == {"DTensor"}, f"the weights are not sharded: {kinds}"
        given = {name: self.copy.get_parameter(name).copy_(p) for name, p in self._iter_named_params()}
        assert len(given) == len(list(self.copy.parameters()))
        bits = torch.cat([p.flatten().view(torch.int32) for p in self.copy.parameters()])
        self.llm.random.manual_seed(
            int(bits.sum())
        )  # a run that goes on with these weights draws as this one

    def generate(self, prompts: list[list[int]], images: Any, num_generations: int) -> Any:
        self.vllm_client.generation_kwargs = self.generation_kwargs
        return self.vllm_client.generate(prompts, images=images, num_generations=num_generations)


grpo.VLLMGeneration = Copy
vars(settings).update(find_spec=lambda name: object())  # there is no vLLM to find
vars(trl_trainer).update(can_sleep=lambda: True)
lottery()
train(config)
