"""An endpoint as the customer's words: settings from a file, threads, failures that raise, and contestants."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from chat_server import MODEL, Reply, completion, serving

from ecomlab import Shop
from ecomlab.customer.llm import NoAnswerError
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.endpoint.chat import QUICK, customer_from_toml
from ecomlab.evaluation.endpoint.client import EndpointFailure
from ecomlab.evaluation.scripted import ScriptedContestant
from ecomlab.settings import ConfigError


def file(folder: Path, url: str, **more: Any) -> Path:
    """Write the settings of a customer's endpoint."""
    path = folder / "customer.toml"
    lines = [f"{name} = {json.dumps(value)}" for name, value in {"url": url, "model": MODEL, **more}.items()]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def echo(body: dict[str, Any], _: int) -> Reply:
    """Say the line with a greeting."""
    return completion({"content": "Hi! " + body["messages"][-1]["content"].rpartition("words:\n")[2]})


def test_a_file_names_the_endpoint_and_a_customer_waits_less_than_a_player(tmp_path: Path) -> None:
    chat = customer_from_toml(file(tmp_path, "http://127.0.0.1:9/v1", retries=3))
    assert chat.settings.retries == 3
    assert chat.settings.timeout == QUICK["timeout"]
    assert chat.settings.max_tokens == QUICK["max_tokens"]
    with pytest.raises(ConfigError, match="NO_SUCH_KEY is not set"):
        customer_from_toml(file(tmp_path, "http://127.0.0.1:9/v1", key="NO_SUCH_KEY"))


def test_it_answers_several_threads_at_once_and_says_what_each_answer_cost(tmp_path: Path) -> None:
    with serving(lambda body, n: completion({"content": body["messages"][0]["content"]})) as server:
        chat = customer_from_toml(file(tmp_path, server.url))
        texts = [f"line {n}" for n in range(16)]
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda text: chat([{"role": "user", "content": text}]), texts))
        chat.close()
    assert [one.text for one in found] == texts
    assert [(one.usage["requests"], one.usage["completion_tokens"]) for one in found] == [(1, 10)] * 16


@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=500),
        Reply(b"no JSON"),
        Reply(hang_up=True),
    ],
)
def test_an_answer_that_is_none_raises(tmp_path: Path, reply: Reply) -> None:
    with serving(lambda body, n: reply) as server:
        chat = customer_from_toml(file(tmp_path, server.url, retries=0))
        with pytest.raises(NoAnswerError) as told:
            chat([{"role": "user", "content": "Hello."}])
        chat.close()
    assert isinstance(told.value.__cause__, EndpointFailure)


def test_requests_that_fail_are_counted_with_their_retries(tmp_path: Path, shop: Shop) -> None:
    """Three failures in a row, of three tries each; then the endpoint is not asked again."""
    with serving(lambda body, n: Reply(status=500)) as server:
        chat = customer_from_toml(file(tmp_path, server.url, retries=2, backoff=0.001))
        (played,) = ScriptedContestant("reference", customer=chat).play([Job("JOURNEY", 4, 1)], shop)
        chat.close()
        assert len(server.bodies) == 9
    used = played.usage["customer"]
    assert (used.requests, used.retries, used.is_reported) == (9, 6, False)


def test_a_contestant_plays_with_a_customer_so_worded_and_says_so(tmp_path: Path, shop: Shop) -> None:
    with serving(echo) as server:
        chat = customer_from_toml(file(tmp_path, server.url))
        contestant = ScriptedContestant("reference", customer=chat)
        (played,) = contestant.play([Job("CART", 4, 1)], shop)
        chat.close()
    assert contestant.identity["customer"]["model"] == MODEL
    assert played.messages[1]["content"].startswith("Hi! ")
    asked = len(played.wording)
    used = played.usage["customer"]
    assert used.requests == asked == played.notes["customer"]["rewrite"] + 1
    assert (used.prompt_tokens, used.completion_tokens) == (100 * asked, 10 * asked)
    assert played.notes["customer"]["refused"] == {}


def test_a_contestant_whose_customers_endpoint_is_down_plays_with_templates(
    tmp_path: Path, shop: Shop
) -> None:
    chat = customer_from_toml(file(tmp_path, "http://127.0.0.1:9/v1", retries=0))
    job = Job("CART", 4, 1)
    (worded,) = ScriptedContestant("reference", customer=chat).play([job], shop)
    (plain,) = ScriptedContestant("reference").play([job], shop)
    assert worded.messages == plain.messages
    assert not worded.unscored
    assert set(worded.notes["customer"]["refused"]) <= {"no answer", "not asked"}
