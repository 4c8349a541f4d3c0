"""An agent of one's own: a function of the messages so far and the tools. It searches, takes the first hit, submits."""

import json


def agent(messages, tools):
    """Return the next assistant message, in the format of OpenAI's chat API."""
    results = [message for message in messages if message["role"] == "tool"]
    if not results:
        return call("catalog_search", query=messages[1]["content"][:200])
    hits = json.loads(results[0]["content"]).get("results", [])
    if len(results) == 1 and hits:
        return call("cart_add", product_id=hits[0]["product_id"], quantity=1)
    return call("submit", done=True)


def call(name, **arguments):
    """Write a message with one call."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "1", "type": "function", "function": function}],
    }
