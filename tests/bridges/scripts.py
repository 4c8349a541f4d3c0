"""A reference player as a policy in token ids: its turn in every state of a ticket's episode, by all ids before it."""

from typing import Any

from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.play import play
from ecomlab.models.batch import Start
from ecomlab.models.renderer import Renderer
from ecomlab.models.samplers.sampled import Sampled
from ecomlab.training.stream import Stream, Ticket

Script = dict[tuple[int, ...], list[int]]


def script(stream: Stream, ticket: Ticket, renderer: Renderer, right: bool = True) -> Script:
    """Play the ticket, and remember each turn; not `right`: submit at once."""
    start = stream.start(ticket)
    assert isinstance(start, Start)
    player: Any = ENVIRONMENTS[ticket.draw.env].reference_player(stream.shop)
    messages = [m for m in play(player, start.task, stream.shop).messages if m["role"] == "assistant"]
    episode, found = stream.open_tokens(ticket, renderer), {}
    for message in messages if right else messages[-1:]:
        ids = renderer.dialogue().say(message)
        found[tuple(episode.context)] = ids
        episode.act(Sampled(ids, [0.0] * len(ids), truncated=False))
        if episode.done:
            break
    return found
