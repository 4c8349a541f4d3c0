"""A chat endpoint on loopback for tests, which answers as a function says: rightly, wrongly or not at all."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "tested"


@dataclass(frozen=True)
class Reply:
    """What the server sends back."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    """Promise more bytes than are sent, and close the connection."""
    hang_up: bool = False
    """Close the connection without a word."""
    silent: bool = False
    """Say nothing until the server is stopped."""


def completion(message: dict[str, Any], finish: str = "stop", model: Any = MODEL, **more: Any) -> Reply:
    """An ordinary chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 40}}
    found = {"object": "chat.completion", "model": model, "choices": [choice], "usage": usage, **more}
    return Reply(json.dumps(found).encode())


HELLO = completion({"content": "Hello."})


class ChatServer(ThreadingHTTPServer):
    """Answers request n, counted from 0, with `answer(body, n)`."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, answer: Callable[[dict[str, Any], int], Reply]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.bodies: list[dict[str, Any]] = []
        self.heads: list[dict[str, str]] = []
        self.lock, self.stopped = threading.Lock(), threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def reply(self, body: dict[str, Any], head: dict[str, str]) -> Reply:
        with self.lock:
            number = len(self.bodies)
            self.bodies.append(body)
            self.heads.append(head)
        return self.answer(body, number)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ChatServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = self.server.reply(body, {**dict(self.headers), "path": self.path})
        if reply.silent:
            self.server.stopped.wait()
        if reply.hang_up or reply.silent:
            self.close_connection = True
            return
        try:
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body) + 100 * reply.cut))
            self.end_headers()
            self.wfile.write(reply.body)
        except ConnectionError:  # whoever asked has gone
            self.close_connection = True
        if reply.cut:
            self.close_connection = True

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving(answer: Callable[[dict[str, Any], int], Reply]) -> Iterator[ChatServer]:
    """Run a server while the block runs."""
    server = ChatServer(answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopped.set()
        server.shutdown()
        server.server_close()
