"""slime: a data source that draws from a stream, a generate function that plays in token ids, and outcomes back to it.

    --data-source-path ecomlab.bridges.slime.StreamSource --custom-generate-function-path ecomlab.bridges.slime.generate
    --rollout-all-samples-process-path ecomlab.bridges.slime.report --custom-config-path ecomlab.yaml

`ecomlab.yaml` has arguments of `Stream` under the name `ecomlab`: {envs: C8, schedule: adaptive, groups_per_step: 32}.
RLVE, whose schedule ours is, plugs into slime the same way. slime is in no package registry: this was tested
against stand-ins of its classes alone.
"""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from slime.rollout.data_source import DataSource
from slime.rollout.sglang_rollout import GenerateState, get_model_url
from slime.utils.http_utils import post
from slime.utils.types import Sample

from ecomlab.models.qwen3 import ChatRenderer
from ecomlab.models.samplers.sampled import Sampled
from ecomlab.training.stream import Stream, Ticket

TICKET, CORRECT = "ecomlab_ticket", "ecomlab_correct"
"""Keys of a sample's metadata."""


@lru_cache(1)
def _stream(given: str) -> Stream:
    """Make the stream that opens episodes; it draws nothing."""
    return Stream(**json.loads(given))


class StreamSource(DataSource):
    """Groups of samples without end."""

    def __init__(self, args: Any) -> None:
        self.args, self.stream = args, Stream(**args.ecomlab)
        self.returned: list[list[Sample]] = []
        self.groups = 0

    def get_samples(self, num_samples: int) -> list[list[Sample]]:
        """Return so many groups: those that were aborted, then new ones."""
        groups, self.returned = self.returned[:num_samples], self.returned[num_samples:]
        while len(groups) < num_samples:
            ticket = json.dumps(self.stream.next_group().to_json())
            size = self.args.n_samples_per_prompt
            groups.append(
                [
                    Sample(group_index=self.groups, index=self.groups * size + i, metadata={TICKET: ticket})
                    for i in range(size)
                ]
            )
            self.groups += 1
        return groups

    def add_samples(self, samples: list[list[Sample]]) -> None:
        """Take groups back that slime aborted: they are played again from their beginning."""
        self.returned += samples

    def save(self, rollout_id: int) -> None:
        path = self._file(self.args.save, rollout_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"stream": self.stream.state(), "groups": self.groups}))

    def load(self, rollout_id: int | None = None) -> None:
        """Go on from a checkpoint, if there is one. Aborted groups were waiting then, and are drawn again."""
        if self.args.load and (path := self._file(self.args.load, rollout_id)).exists():
            state = json.loads(path.read_text())
            self.stream.restore(state["stream"])
            self.groups = state["groups"]

    def _file(self, folder: str, rollout_id: int | None) -> Path:
        return Path(folder) / f"rollout/ecomlab_stream_{rollout_id}.json"

    def __len__(self) -> int:
        return self.args.rollout_batch_size  # an epoch; it has no end


async def generate(args: Any, sample: Sample, sampling_params: dict[str, Any]) -> Sample:
    """Play one rollout. An unscored one is left out of the loss, and has no outcome."""
    stream, tokenizer = _stream(json.dumps(args.ecomlab)), GenerateState(args).tokenizer
    ticket = Ticket.from_json(json.loads(sample.metadata[TICKET]))
    episode, url = stream.open_tokens(ticket, ChatRenderer(tokenizer)), get_model_url(args, "default")
    first = len(episode.context)
    while not episode.done:
        room = sampling_params["max_new_tokens"] - (len(episode.context) - first)
        if room <= 0:
            episode.act(Sampled([], [], truncated=True))
            break
        more = {**sampling_params, "max_new_tokens": room, "stop_token_ids": list(episode.renderer.stop_ids)}
        asked = {"input_ids": episode.context, "sampling_params": more, "return_logprob": True}
        output = await post(url, asked)
        how = output["meta_info"]["finish_reason"]["type"]
        if how == "abort":
            sample.status = Sample.Status.ABORTED
            return sample
        said = output["meta_info"]["output_token_logprobs"]
        episode.act(Sampled([item[1] for item in said], [item[0] for item in said], how == "length"))
    over = episode.rollout
    assert over is not None
    sample.tokens = over.prompt_ids + over.completion_ids
    sample.response_length, sample.response = len(over.completion_ids), tokenizer.decode(over.completion_ids)
    sample.loss_mask, sample.rollout_log_probs = over.mask, over.logprobs
    sample.remove_sample = over.score.unscored
    sample.reward = 0.0 if over.score.unscored else over.score.value
    sample.metadata[CORRECT] = None if over.score.unscored else bool(over.score.correct)
    truncated = over.end == "truncated"
    sample.status = Sample.Status.TRUNCATED if truncated else Sample.Status.COMPLETED
    return sample


def report(args: Any, all_samples: list[list[Sample]], data_source: Any) -> None:
    """Report the groups that a step has played, those that slime's filter left out too."""
    source: StreamSource = data_source.__self__  # slime passes its method get_samples
    for group in all_samples:
        ticket = Ticket.from_json(json.loads(group[0].metadata[TICKET]))
        source.stream.report(ticket, [sample.metadata[CORRECT] for sample in group])
