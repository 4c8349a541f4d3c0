"""verl: its data set draws from a stream, its agent loop plays token by token, and its trainer reports the outcomes.

    data.custom_cls.path=pkg://ecomlab.bridges.verl data.custom_cls.name=StreamDataset data.dataloader_num_workers=0
    data.shuffle=False +data.ecomlab.envs=C8 +data.ecomlab.schedule=adaptive +data.ecomlab.groups_per_step=64
    actor_rollout_ref.rollout.multi_turn.enable=True    # and calculate_log_probs=True for exact ratios

`groups_per_step` is the trainer's `train_batch_size`. Restoring verl's data loader restores the stream.
"""

import json
from functools import lru_cache
from typing import Any
from uuid import uuid4

import torch
from torch.utils.data import Dataset
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput, register

from ecomlab.models.qwen3 import ChatRenderer
from ecomlab.models.samplers.sampled import Sampled
from ecomlab.training.stream import Stream, Ticket

LOOP = "ecomlab"
"""Name of the agent loop."""


class StreamDataset(Dataset[dict[str, Any]]):
    """A row for each group, drawn when the loader asks for it, whatever its number. Its loader has no worker processes,
    because they would not hear of outcomes."""

    def __init__(
        self, data_files: Any, tokenizer: Any, config: Any, processor: Any = None, max_samples: int = -1
    ) -> None:
        """`config.ecomlab` has arguments of `Stream`, and `groups`: how many the run draws."""
        if config.get("dataloader_num_workers", 0):
            raise ValueError(
                "set data.dataloader_num_workers=0: a worker process would draw without hearing of outcomes"
            )
        given = dict(config.ecomlab)
        self.groups = int(given.pop("groups", 100_000))
        self.stream = Stream(**given)

    def __len__(self) -> int:
        return self.groups

    def __getitem__(self, number: int) -> dict[str, Any]:
        ticket = self.stream.next_group()
        return {
            "raw_prompt": [{"role": "user", "content": str(ticket.draw)}],  # the loop makes the prompt
            "ticket": json.dumps(ticket.to_json()),
            "agent_name": LOOP,
            "data_source": f"ecomlab/{ticket.draw.env}",
            "reward_model": {"style": "rule", "ground_truth": ""},
            "index": number,
            "dummy_tensor": torch.tensor([0], dtype=torch.uint8),
        }

    def on_batch_end(self, batch: Any) -> None:
        """Report a batch's outcomes; verl's trainer calls this after every step."""
        outcomes: dict[str, list[bool | None]] = {}
        rows = batch.non_tensor_batch
        for ticket, correct in zip(rows["ticket"], rows["correct"], strict=True):
            outcomes.setdefault(ticket, []).append(None if correct is None else bool(correct))
        for ticket, found in outcomes.items():
            self.stream.report(Ticket.from_json(json.loads(ticket)), found)

    def state_dict(self) -> dict[str, Any]:
        return self.stream.state()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.stream.restore(state)


@lru_cache(1)
def _stream(given: str) -> Stream:
    """Make the stream that opens a worker's episodes; it draws nothing."""
    return Stream(**json.loads(given))


@register(LOOP)
class ShoppingLoop(AgentLoopBase):
    """Plays one rollout. An unscored one has reward 0, an empty mask and no outcome."""

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> AgentLoopOutput:
        given = {name: value for name, value in dict(self.data_config.ecomlab).items() if name != "groups"}
        stream = _stream(json.dumps(given))
        ticket = Ticket.from_json(json.loads(kwargs["ticket"]))
        episode, name = stream.open_tokens(ticket, ChatRenderer(self.tokenizer)), uuid4().hex
        longest = self.rollout_config.prompt_length + self.rollout_config.response_length
        while not episode.done:
            room = min(longest, self.rollout_config.response_length + len(episode.prompt)) - len(
                episode.context
            )
            if room <= 0:
                episode.act(Sampled([], [], truncated=True))
                break
            more = {**sampling_params, "max_tokens": room}
            said = await self.server_manager.generate(name, prompt_ids=episode.context, sampling_params=more)
            ids = said.token_ids[:room]
            cut = not ids or ids[-1] not in episode.renderer.stop_ids
            episode.act(Sampled(ids, (said.log_probs or [0.0] * len(ids))[:room], cut))
        over = episode.rollout
        assert over is not None
        unscored = over.score.unscored
        return AgentLoopOutput(
            prompt_ids=over.prompt_ids[-self.rollout_config.prompt_length :],
            response_ids=over.completion_ids,
            response_mask=[0] * len(over.mask) if unscored else over.mask,
            response_logprobs=over.logprobs if sampling_params.get("logprobs") else None,
            reward_score=0.0 if unscored else over.score.value,
            num_turns=over.turns,
            metrics=AgentLoopMetrics(),
            extra_fields={"correct": None if unscored else over.score.correct},
        )
