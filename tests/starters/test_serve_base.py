"""A starter behind an endpoint plays the very episodes that it plays here."""

import hashlib
import importlib.util
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from chat_server import Reply, serving
from transformers import AutoTokenizer

from ecomlab import load_shop, make_task
from ecomlab.episode.play import play
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.endpoint.contestant import EndpointContestant
from ecomlab.evaluation.endpoint.settings import EndpointSettings
from ecomlab.models.batch import play_batch
from ecomlab.models.renderer import BREAK
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


def said_in(trajectory: Any) -> list[Any]:
    """Messages without the ids of calls, and the score."""
    calls = [[call["function"] for call in m.get("tool_calls", ())] for m in trajectory.messages]
    return [[m["content"] for m in trajectory.messages], calls, trajectory.score]


def own(env: str, d: int, answerer: Any) -> Any:
    """The greedy episode of our own sampler, of more than one turn."""
    shop, sampler = load_shop(20_000), answerer.policy.sampler(Limits(), greedy=True)
    task = make_task(env, d, 2**31, shop)
    [episode] = play_batch([task], [rng("own")], shop, sampler, answerer.policy.renderer)
    assert episode.trajectory is not None and episode.turns > 1
    return episode.trajectory


def played(env: str, d: int, answer: Callable[[dict[str, Any]], Any]) -> Any:
    """The episode of a greedy policy that answers requests."""

    def player(messages: Any, tools: Any) -> dict[str, Any]:
        request = {"messages": messages, "tools": tools, "temperature": 0}
        return dict(answer(request)["choices"][0]["message"])

    shop = load_shop(20_000)
    return play(player, make_task(env, d, 2**31, shop), shop)


@pytest.mark.parametrize(
    ("env", "d"), [("CART", 0), ("CART", 2), ("STATUS", 0), ("RETURN", 1), ("POLICY", 0)]
)
def test_greedy_episodes_are_those_of_our_own_sampler(url: str, answerer: Any, env: str, d: int) -> None:
    """The same messages, whether the episode's cache is kept here or the server renders every request anew."""
    assert said_in(played(env, d, partial(post, url))) == said_in(own(env, d, answerer))


@pytest.fixture(scope="module")
def backend(answerer: Any, serve: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server that completes text as `transformers serve` does: with the saved tokenizer, without special tokens."""
    folder = tmp_path_factory.mktemp("exported")
    serve.export(answerer.policy, folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)

    def answer(body: dict[str, Any], number: int) -> Reply:
        if "mug" in body["prompt"].replace(BREAK, ""):
            return Reply(b"out of memory", 500)
        sampler = answerer.policy.sampler(Limits(turn=body["max_tokens"]), greedy=True)
        sampler.start([rng("backend")])
        [said] = sampler.turn([0], [tokenizer(body["prompt"])["input_ids"]])
        text = tokenizer.decode(said.ids, skip_special_tokens=True)
        choice = {"text": text, "finish_reason": "length" if said.truncated else "stop"}
        return Reply(json.dumps({"choices": [choice]}).encode())

    with serving(answer) as server:
        yield server


@pytest.mark.parametrize(("env", "d"), [("CART", 2), ("RETURN", 1), ("POLICY", 0)])
def test_greedy_episodes_through_a_backend_are_those_of_our_own_sampler(
    serve: ModuleType, answerer: Any, backend: Any, env: str, d: int
) -> None:
    served = serve.Answerer("base", answerer.policy, backend.url.removesuffix("/v1"))
    assert said_in(played(env, d, served.answer)) == said_in(own(env, d, answerer))


def test_a_backend_is_asked_for_the_likeliest_answer_alone_and_its_failure_is_said_to_be_its_own(
    serve: ModuleType, answerer: Any, backend: Any
) -> None:
    served = serve.Answerer("base", answerer.policy, backend.url.removesuffix("/v1"))
    opening = {"messages": [{"role": "user", "content": "Hello, I am looking for a mug."}]}
    with pytest.raises(serve.RequestError, match="temperature"):
        served.answer(opening)
    server = serve.server_of(served, 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with pytest.raises(urllib.error.HTTPError, match="502"):
        post(f"http://127.0.0.1:{server.server_port}/v1/chat/completions", {**opening, "temperature": 0})
    server.shutdown()
    server.server_close()


def test_separated_text_makes_the_same_tokens_again_where_text_alone_does_not(
    serve: ModuleType, answerer: Any
) -> None:
    """A scaffold token spans the end of a turn and the beginning of the next, which are tokenised apart."""
    renderer = answerer.policy.renderer
    ids = [*renderer.encode("A mug.<|im_end|>"), *renderer.encode("\n<|im_start|>user\nYes é.<|im_end|>")]
    assert renderer.encode(renderer.decode(ids)) != ids
    assert renderer.encode(serve.separated(renderer, ids)) == ids


def test_an_answer_names_the_weights_that_gave_it(
    url: str, serve: ModuleType, answerer: Any, tmp_path: Path
) -> None:
    """By what `sha256sum` prints, and so does the record of an evaluation through the endpoint."""
    shipped = SCRIPT.parents[2] / "ecomlab" / "starters" / "weights" / "base" / "model.safetensors"
    expected = f"sha256:{hashlib.sha256(shipped.read_bytes()).hexdigest()}"
    assert post(url, {"messages": [{"role": "user", "content": "A mug."}]})["system_fingerprint"] == expected
    settings = EndpointSettings(url=url.removesuffix("/chat/completions"), model="base", max_tokens=5)
    (played,) = EndpointContestant(settings).play([Job("CART", 0, 2**31)], load_shop(20_000))
    assert played.notes["fingerprints"] == [expected]
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    assert serve.fingerprint_of(tmp_path) not in ("", expected)
