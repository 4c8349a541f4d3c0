"""A starter behind an endpoint plays the very episodes that it plays here."""

import importlib.util
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ecomlab import Shop, make_task
from ecomlab.episode.play import play
from ecomlab.models.batch import play_batch
from ecomlab.models.samplers.cached import Limits
from ecomlab.seeding import rng

SCRIPT = Path(__file__).resolve().parents[2] / "experiments" / "serve_base" / "serve.py"


@pytest.fixture(scope="module")
def serve() -> ModuleType:
    spec = importlib.util.spec_from_file_location("serve_base", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def answerer(serve: ModuleType) -> Any:
    return serve.answerer_of("base")


@pytest.fixture(scope="module")
def url(serve: ModuleType, answerer: Any) -> Iterator[str]:
    server = serve.server_of(answerer, 0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1/chat/completions"
    server.shutdown()
    thread.join()
    server.server_close()


def post(url: str, request: Any) -> dict[str, Any]:
    body = request if isinstance(request, bytes) else json.dumps(request).encode()
    with urllib.request.urlopen(urllib.request.Request(url, body), timeout=120) as answer:
        found: dict[str, Any] = json.loads(answer.read())
    return found


@pytest.mark.parametrize(
    ("env", "d"), [("CART", 0), ("CART", 2), ("STATUS", 0), ("RETURN", 1), ("POLICY", 0)]
)
def test_greedy_episodes_are_those_of_our_own_sampler(url: str, answerer: Any, env: str, d: int) -> None:
    """The same messages, whether the episode's cache is kept here or the server renders every request anew."""
    from ecomlab import load_shop

    shop = load_shop(20_000)
    task = make_task(env, d, 2**31, shop)

    def player(messages: Any, tools: Any) -> dict[str, Any]:
        return dict(
            post(url, {"messages": messages, "tools": tools, "temperature": 0})["choices"][0]["message"]
        )

    theirs = play(player, task, shop)
    sampler = answerer.policy.sampler(Limits(), greedy=True)
    [own] = play_batch([task], [rng("own")], shop, sampler, answerer.policy.renderer)
    assert own.turns > 1
    assert (theirs.end, theirs.turns, theirs.score) == (own.end, own.turns, own.score)


def test_a_seed_repeats_an_answer_and_another_one_does_not(url: str, shop: Shop) -> None:
    opening = {
        "messages": [{"role": "user", "content": "Hello, I am looking for a mug."}],
        "temperature": 2.0,
    }
    said = [post(url, {**opening, "seed": seed})["choices"][0]["message"] for seed in (1, 1, 2, 3, 4)]
    texts = [json.dumps([m["content"], [c["function"] for c in m.get("tool_calls", ())]]) for m in said]
    assert texts[0] == texts[1] and len(set(texts)) > 1


def test_malformed_output_arrives_as_a_malformed_call(serve: ModuleType) -> None:
    text = '<tool_call>\n{"name": '
    shown = serve.as_openai({"role": "assistant", "content": text, "invalid": "not closed"}, 0)
    [call] = shown["tool_calls"]
    with pytest.raises(ValueError):
        json.loads(call["function"]["arguments"])
    assert call["function"]["arguments"] == text


def test_a_token_limit_is_said_to_be_one(url: str) -> None:
    request = {"messages": [{"role": "user", "content": "Hello, I am looking for a mug."}], "max_tokens": 1}
    answer = post(url, request)
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 1


@pytest.mark.parametrize(
    ("request_", "status", "words"),
    [
        (b"not JSON", 400, "Expecting value"),
        ({"messages": "hello"}, 400, "OpenAI's shape"),
        (
            {"messages": [{"role": "user", "content": "mug " * 3000}]},
            400,
            "maximum context length is 2048 tokens",
        ),
        ({"messages": [], "stream": True}, 400, "stream"),
        ({"messages": [], "model": "gpt"}, 404, "there is 'base'"),
    ],
)
def test_a_request_that_cannot_be_answered_is_refused_in_words(
    url: str, request_: Any, status: int, words: str
) -> None:
    with pytest.raises(urllib.error.HTTPError) as told:
        post(url, request_)
    assert told.value.code == status
    assert words in json.loads(told.value.read())["error"]["message"]
