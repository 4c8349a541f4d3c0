"""A reference player as a policy in token ids: its turn in every state of a ticket's episode, by all ids before it."""

import json
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


def one_at_a_time(player: Any) -> Any:
    """The player as loops of single calls let it speak: one call a message, and to the customer by `ask_user`."""
    waiting: list[dict[str, Any]] = []
    issued: list[str] = []

    def one(messages: Any, tools: Any) -> Any:
        if not waiting:
            ids = iter(
                issued
            )  # such loops have none of its own: the player knows results by those that it gave
            heard = [{**m, "tool_call_id": next(ids)} if m["role"] == "tool" else m for m in messages]
            message = player(heard, tools)
            question = {"name": "ask_user", "arguments": json.dumps({"question": message["content"]})}
            asked = {"id": f"a{len(messages)}", "type": "function", "function": question}
            waiting.extend(message.get("tool_calls") or [asked])
            issued.extend(call["id"] for call in waiting)
        return {"role": "assistant", "content": "", "tool_calls": [waiting.pop(0)]}

    return one
