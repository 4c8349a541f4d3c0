"""A starter, such as *base*, behind OpenAI's chat completions on loopback: to try out what plays through an endpoint.

    make serve-base                                   # base, port 8125
    make serve-base ARGS="novice --port 9000"

The chat completions of `transformers serve` cannot do this. They render messages by a chat template in Jinja, and the
starters' renderer shows ids as aliases that hang on a hash, reads tool results as JSON, and translates aliases in the
answer back into ids. So the starter's own renderer and sampler answer here, a request at a time, without further
packages; or, with `--backend`, the renderer and the `/v1/completions` of a `transformers serve` (`make serve-check`):

    python experiments/serve_base/serve.py base --export FOLDER
    transformers serve FOLDER --port 8124 --device cpu --dtype float32
    python experiments/serve_base/serve.py base --backend http://127.0.0.1:8124
"""

import argparse
import copy
import json
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

from ecomlab import ENVIRONMENTS, load_shop
from ecomlab.lab.provenance import sha256
from ecomlab.models.load import load_policy, made_for_environments, policy_folder
from ecomlab.models.policy import Policy
from ecomlab.models.renderer import BREAK
from ecomlab.models.samplers.cached import CachedSampler, Limits, Sampled
from ecomlab.seeding import digest, rng

LONGEST = 1 << 22
"""Most bytes of a request."""
CONTEXT = 2048
"""Tokens of a conversation, the answer included; the starters were made for as many."""
REMEMBERED = 10_000
"""Answers whose token ids are kept."""
BACKEND = "backend_error"
"""Code of an error that is the backend's."""
PATIENCE = 120.0
"""Seconds that an answer of a backend may take."""
TURN = 256
"""Most tokens of an answer, unless a request asks for fewer."""


class RequestError(ValueError):
    """An error of the client's: its message, and OpenAI's code for it."""

    def __init__(self, message: str, code: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.code = code


class Answerer:
    """A policy that answers requests, one at a time."""

    def __init__(self, name: str, policy: Policy, backend: str = "", fingerprint: str = "") -> None:
        """`backend` is the address of a `transformers serve` before /v1, which samples in place of `policy`;
        `fingerprint` names the weights, so that a record tells which of those called `name` answered."""
        self.name, self.policy, self.backend = name, policy, backend.rstrip("/")
        self.fingerprint = fingerprint
        self._one_at_a_time = threading.Lock()
        self._numbers = count()
        self._sampled: dict[str, list[int]] = {}

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a chat completion's request. Raises RequestError."""
        if request.get("stream") or request.get("n", 1) != 1:
            raise RequestError("stream and n are not supported; leave them out")
        if request.get("top_p", 1) != 1:
            raise RequestError("top_p is not supported; leave it out")
        with self._one_at_a_time:
            number = next(self._numbers)
            prompt, dialogue = self._render(request.get("messages"), request.get("tools") or [])
            limits = Limits(self._room(request, len(prompt)), TURN, CONTEXT)
            sampler = self._sampler(limits, float(request.get("temperature", 1.0)))
            seed = request.get("seed")
            sampler.start([rng("serve", number) if seed is None else rng("serve", "seed", int(seed))])
            [said] = sampler.turn([0], [prompt])
            assert said is not None
            if said.truncated:
                shown = {"role": "assistant", "content": self.policy.renderer.decode(said.ids)}
            else:
                shown = as_openai(dialogue.read(said.ids), number)
                self._remember(request["messages"], shown, said.ids)
        reason = "length" if said.truncated else "tool_calls" if shown.get("tool_calls") else "stop"
        return {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": self.name,
            "system_fingerprint": self.fingerprint,
            "choices": [{"index": 0, "message": shown, "finish_reason": reason}],
            "usage": {
                "prompt_tokens": len(prompt),
                "completion_tokens": len(said.ids),
                "total_tokens": len(prompt) + len(said.ids),
            },
        }

    def _render(self, messages: Any, tools: Sequence[Mapping[str, Any]]) -> tuple[list[int], Any]:
        """Render a conversation and return its dialogue too: answers of ours with the ids that were sampled, those
        of others as the starter would write them."""
        try:
            turns = split(messages)
            dialogue: Any = self.policy.renderer.dialogue()
            ids = list(dialogue.open(turns[0][1], tools))
            for number, (said, heard) in enumerate(turns[1:], 1):
                sampled = self._sampled.get(key_of(turns[:number], said))
                if sampled is None:
                    ids += self.policy.renderer.encode(
                        dialogue.write(said.get("content") or "", calls_of(said))
                    )
                else:
                    dialogue.read(sampled)  # it remembers which results come next
                    ids += sampled
                ids += dialogue.follow(heard)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise RequestError(
                f"messages or tools are not in OpenAI's shape ({type(error).__name__}: {error})"
            ) from error
        return ids, dialogue

    def _remember(self, messages: Any, shown: Mapping[str, Any], ids: list[int]) -> None:
        """Keep an answer's ids for the requests that go on from it: text alone does not say how it was sampled."""
        self._sampled[key_of(split(messages), shown)] = ids
        while len(self._sampled) > REMEMBERED:
            self._sampled.pop(next(iter(self._sampled)))

    def _room(self, request: Mapping[str, Any], prompt: int) -> int:
        most = request.get("max_completion_tokens") or request.get("max_tokens") or TURN
        if prompt >= CONTEXT:
            raise RequestError(
                f"This model's maximum context length is {CONTEXT} tokens; the messages have {prompt}",
                "context_length_exceeded",
            )
        return min(int(most), TURN)

    def _text(self, ids: Sequence[int]) -> str:
        """Write a prompt for the backend."""
        return separated(self.policy.renderer, ids)

    def _sampler(self, limits: Limits, temperature: float) -> "CachedSampler | Completions":
        greedy = temperature <= 0
        if self.backend:
            if not greedy:
                raise RequestError("the backend is asked for the likeliest answers alone; send temperature 0")
            return Completions(self.backend, self.policy.renderer, limits, self._text)
        policy = self.policy
        return CachedSampler(
            policy.model,
            policy.renderer.stop_ids,
            limits,
            temperature=1.0 if greedy else temperature,
            greedy=greedy,
        )


class Completions:
    """The part of a sampler that `Answerer` needs, by a server that completes text: the real `transformers serve`.

    It makes the prompt's text into tokens by itself, and returns the answer's text without the stop token.
    """

    def __init__(self, url: str, renderer: Any, limits: Limits, text: Callable[[Sequence[int]], str]) -> None:
        """`text` writes a prompt."""
        self.url, self.renderer, self.limits, self.text = url, renderer, limits, text

    def start(self, streams: Sequence[Any]) -> None:
        """Open rows; greedy answers need no randomness."""

    def turn(self, rows: Sequence[int], inputs: Sequence[Sequence[int]]) -> list[Sampled | None]:
        """Complete the one input. Raises RequestError where the backend does not."""
        [prompt] = inputs
        asked = {
            "prompt": self.text(prompt),
            "temperature": 0,
            "max_tokens": min(self.limits.turn, self.limits.context - len(prompt)),
        }
        request = urllib.request.Request(
            f"{self.url}/v1/completions", json.dumps(asked).encode(), {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                [choice] = json.loads(answer.read())["choices"]
        except (OSError, ValueError, KeyError) as error:
            raise RequestError(f"the backend at {self.url} gave no completion ({error})", BACKEND) from error
        cut = choice["finish_reason"] == "length"
        ids = [*self.renderer.encode(choice["text"]), *([] if cut else self.renderer.stop_ids[:1])]
        return [Sampled(ids, [0.0] * len(ids), cut)]


def separated(renderer: Any, ids: Sequence[int]) -> str:
    """Write ids as text with a BREAK between pieces that are these very tokens again; where pieces meet, the text alone
    would make others."""
    pieces: list[list[int]] = [[]]
    for token in ids:
        pieces[-1].append(token)
        if renderer.encode(renderer.decode(pieces[-1])) == pieces[-1]:
            pieces.append([])
    return BREAK.join(renderer.decode(piece) for piece in pieces if piece)


def export(policy: Policy, folder: Path) -> None:
    """Save a starter as transformers reads it, with a tokenizer that leaves out every BREAK."""
    from tokenizers.pre_tokenizers import Sequence as InTurn
    from tokenizers.pre_tokenizers import Split

    policy.model.save_pretrained(folder)
    tokenizer = copy.deepcopy(policy.tokenizer)
    ours = tokenizer.backend_tokenizer
    ours.pre_tokenizer = InTurn([Split(BREAK, "removed"), ours.pre_tokenizer])
    tokenizer.save_pretrained(folder)


def split(messages: Any) -> list[tuple[Mapping[str, Any], list[Mapping[str, Any]]]]:
    """Split a conversation into turns: what the assistant said, and what it heard then. The first has said nothing."""
    turns: list[tuple[Mapping[str, Any], list[Mapping[str, Any]]]] = [({}, [])]
    names: dict[str, str] = {}
    for message in messages:
        if message["role"] == "assistant":
            names |= {call["id"]: call["function"]["name"] for call in message.get("tool_calls") or ()}
            turns.append((message, []))
        elif message["role"] == "tool":  # OpenAI's carry the call's id, the renderer wants the tool's name
            turns[-1][1].append({"name": names.get(message.get("tool_call_id", ""), ""), **message})
        else:
            turns[-1][1].append(message)
    return turns


def key_of(
    turns: Sequence[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]], said: Mapping[str, Any]
) -> str:
    """Name an answer by its text and calls, and by all that came before."""
    before = [[_said(one), [[m["role"], m.get("content")] for m in heard]] for one, heard in turns]
    return digest([before, _said(said)])


def _said(message: Mapping[str, Any]) -> list[Any]:
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    return [message.get("content") or "", [[one["name"], one["arguments"]] for one in functions]]


def calls_of(message: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the tool calls of an assistant message with their arguments read."""
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    return [(one["name"], json.loads(one["arguments"])) for one in functions]


def as_openai(message: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Write an answer in OpenAI's shape. Malformed output is a call whose arguments are that text, which is no JSON: so
    the client finds the call malformed, as it is."""
    calls = list(message.get("tool_calls") or ())
    content = message["content"]
    if message.get("invalid"):
        calls = [{"type": "function", "function": {"name": "malformed", "arguments": content}}]
        content = None
    shown: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        shown["tool_calls"] = [{**call, "id": f"call_{number}_{i}"} for i, call in enumerate(calls)]
    return shown


def server_of(answerer: Answerer, port: int) -> ThreadingHTTPServer:
    """Make the server on loopback; port 0 takes a free one."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path == "/health":
                self._send(200, {"status": "ok"})
            elif self.path == "/v1/models":
                self._send(200, {"object": "list", "data": [{"id": answerer.name, "object": "model"}]})
            else:
                self._refuse(
                    404, f"nothing is at {self.path}; there are /health, /v1/models, /v1/chat/completions"
                )

        def do_POST(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            if size > LONGEST:
                self.close_connection = True
                self._refuse(413, f"a request has at most {LONGEST} bytes")
                return
            body = self.rfile.read(size)
            if self.path != "/v1/chat/completions":
                self._refuse(404, f"nothing is at {self.path}; post to /v1/chat/completions")
                return
            try:
                request = json.loads(body)
                if not isinstance(request, dict):
                    raise RequestError("a request is a JSON object")
                if request.get("model", answerer.name) != answerer.name:
                    self._refuse(
                        404, f"no model {request['model']!r}; there is {answerer.name!r}", "model_not_found"
                    )
                    return
                self._send(200, answerer.answer(request))
            except ValueError as error:  # RequestError among them
                code = getattr(error, "code", "invalid_request_error")
                self._refuse(502 if code == BACKEND else 400, str(error), code)

        def _refuse(self, status: int, message: str, code: str = "invalid_request_error") -> None:
            self._send(status, {"error": {"message": message, "code": code}})

        def _send(self, status: int, value: Mapping[str, Any]) -> None:
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def answerer_of(name: str, products: int = 20_000, backend: str = "") -> Answerer:
    """Load a starter, for every environment that it was made for. Raises PolicyError."""
    envs = made_for_environments(name) or list(ENVIRONMENTS)
    policy = load_policy(name, load_shop(products), envs)
    return Answerer(name, policy, backend, fingerprint_of(policy_folder(name)))


def fingerprint_of(folder: Path) -> str:
    """Name the weights in a policy's folder by the SHA-256 of their files."""
    return ",".join(f"sha256:{sha256(path)}" for path in sorted(folder.glob("*.safetensors")))


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?", default="base", help="a starter's name or folder")
    parser.add_argument("--port", type=int, default=8125)
    parser.add_argument("--backend", default="", help="address of a `transformers serve` that samples")
    parser.add_argument("--export", type=Path, help="only save the starter there, for `transformers serve`")
    chosen = parser.parse_args()
    try:
        answerer = answerer_of(chosen.name, backend=chosen.backend)
        if chosen.export:
            return export(answerer.policy, chosen.export)
        server = server_of(answerer, chosen.port)
    except (ValueError, OSError) as error:
        sys.exit(f"{chosen.name} is not served: {error}")
    with server:
        print(f"http://127.0.0.1:{chosen.port}/v1 answers as {answerer.name!r}; Ctrl-C ends it", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("ended")


if __name__ == "__main__":
    main()
