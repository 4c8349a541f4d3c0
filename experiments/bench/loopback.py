"""A chat endpoint on loopback that answers every request with the same call after a fixed time: `loopback.py SECONDS`.

It prints its port, and runs until its standard input is closed. It does as little as possible, and so does the tool
that it calls, so that a benchmark measures whoever asks.
"""

import asyncio
import json
import sys

CALL = {"id": "call_0", "type": "function", "function": {"name": "cart_view", "arguments": "{}"}}
ANSWER = json.dumps(
    {
        "id": "x",
        "object": "chat.completion",
        "model": "loopback",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {"role": "assistant", "content": None, "tool_calls": [CALL]},
            }
        ],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 12, "total_tokens": 1012},
    }
).encode()
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(ANSWER)


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
    """Answer the requests of one connection."""
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
            await reader.readexactly(length)
            if seconds:
                await asyncio.sleep(seconds)
            writer.write(HEAD + ANSWER)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main(seconds: float) -> None:
    """Serve until standard input is closed."""
    server = await asyncio.start_server(lambda r, w: answer(r, w, seconds), "127.0.0.1", 0, limit=2**22)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))
