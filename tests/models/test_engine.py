"""An engine that answers request by request: no row waits for another, and what is played does not depend on delays."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from qwen3_helper import vllm_stands_in

from ecomlab import Shop, make_task
from ecomlab.models.batch import play_batch
from ecomlab.models.load import load_policy
from ecomlab.models.policy import Policy
from ecomlab.models.samplers.cached import Limits, Sampled, SamplerError
from ecomlab.models.samplers.engine import ColocatedSampler, EngineSampler, VllmEngine
from ecomlab.seeding import rng

SUBMIT = '<tool_call>\n{"name": "submit", "arguments": {"done": true}}\n</tool_call><|im_end|>'
VIEW = '<tool_call>\n{"name": "cart_view", "arguments": {}}\n</tool_call><|im_end|>'
SAYS = (SUBMIT, VIEW, VIEW, "Anything else?<|im_end|>", "<tool_call>\nnot json\n</tool_call><|im_end|>")
ROWS = 8


@pytest.fixture(scope="module")
def policy(shop: Shop) -> Policy:
    return load_policy("novice", shop, ["CART"])


def says(policy: Policy, ids: Sequence[int]) -> tuple[list[int], list[float]]:
    """What a deterministic model answers to a conversation."""
    said = policy.renderer.encode(SAYS[int(rng("says", list(ids)).integers(len(SAYS)))])
    return said, [-0.5] * len(said)


class Fake:
    """An engine of that model; `fate` sees a conversation and how many requests came before, and may wait or raise."""

    def __init__(self, policy: Policy, fate: Callable[[Sequence[int], int], Any]) -> None:
        self.policy, self.fate, self.asked = policy, fate, 0
        self.stopped: list[int] = []
        self.closed = False

    async def generate(self, ids: Sequence[int], most: int) -> Any:
        number, self.asked = self.asked, self.asked + 1
        try:
            await self.fate(ids, number)
        except asyncio.CancelledError:
            self.stopped.append(number)
            raise
        return says(self.policy, ids)

    async def close(self) -> None:
        self.closed = True


class Lockstep:
    """The same model, all rows in every turn."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def start(self, streams: Sequence[np.random.Generator]) -> None:
        self.ids: list[list[int]] = [[] for _ in streams]

    def turn(self, rows: Sequence[int], inputs: Sequence[Sequence[int]]) -> list[Sampled]:
        answers = []
        for row, new in zip(rows, inputs, strict=True):
            self.ids[row] += new
            answers.append(Sampled(*says(self.policy, self.ids[row]), truncated=False))
            self.ids[row] += answers[-1].ids
        return answers


def played(policy: Policy, shop: Shop, sampler: Any) -> list[Any]:
    tasks = [make_task("CART", i % 3, 70 + i, shop) for i in range(ROWS)]
    return play_batch(tasks, [rng(i) for i in range(ROWS)], shop, sampler, policy.renderer)


def sampler_of(policy: Policy, fate: Callable[[Sequence[int], int], Any]) -> tuple[EngineSampler, Fake]:
    fake = Fake(policy, fate)
    return EngineSampler(fake, policy.renderer.stop_ids), fake


def test_delays_change_nothing(policy: Policy, shop: Shop) -> None:
    delays = rng("delays")

    async def wait(ids: Sequence[int], number: int) -> None:
        await asyncio.sleep(float(delays.random()) / 100)

    sampler, fake = sampler_of(policy, wait)
    expected = played(policy, shop, Lockstep(policy))
    for _ in range(2):  # a sampler plays one batch after another
        assert played(policy, shop, sampler) == expected
    assert len({r.turns for r in expected}) > 1 and fake.asked == 2 * sum(r.turns for r in expected)
    sampler.close()
    assert fake.closed


def test_no_row_waits_for_the_turn_of_another(policy: Policy, shop: Shop) -> None:
    """The first row's first answer comes when all others have ended. With a barrier it would never come."""
    expected = played(policy, shop, Lockstep(policy))
    turns = [r.turns for r in expected]
    assert max(turns[1:]) > 1
    others, over = [0], asyncio.Event()

    async def wait(ids: Sequence[int], number: int) -> None:
        if number == 0:
            await asyncio.wait_for(over.wait(), 120)
        others[0] += number > 0
        if others[0] == sum(turns[1:]):
            over.set()

    sampler, _ = sampler_of(policy, wait)
    assert played(policy, shop, sampler) == expected
    sampler.close()


def test_a_request_that_fails_costs_its_row_alone(policy: Policy, shop: Shop) -> None:
    async def fail(ids: Sequence[int], number: int) -> None:
        if number == 2:
            raise ValueError("out of pages")

    sampler, _ = sampler_of(policy, fail)
    rollouts = played(policy, shop, sampler)
    expected = played(policy, shop, Lockstep(policy))
    assert rollouts[2].score.unscored and "ValueError: out of pages" in rollouts[2].score.why
    assert [r for i, r in enumerate(rollouts) if i != 2] == [r for i, r in enumerate(expected) if i != 2]
    sampler.close()


def test_an_engine_that_is_gone_ends_the_batch_and_no_request_goes_on(policy: Policy, shop: Shop) -> None:
    async def fail(ids: Sequence[int], number: int) -> None:
        if number == 3:
            raise SamplerError("gone")
        await asyncio.sleep(600)

    sampler, fake = sampler_of(policy, fail)
    with pytest.raises(SamplerError, match="gone"):
        played(policy, shop, sampler)
    sampler.close()
    assert len(fake.stopped) == fake.asked - 1, "of those that had begun"


def test_an_interruption_stops_all_requests(
    policy: Policy, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(ids: Sequence[int], number: int) -> None:
        await asyncio.sleep(600)

    def interrupted(requests: Sequence[Future[Any]], **_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(futures, "wait", interrupted)
    sampler, fake = sampler_of(policy, never)
    with pytest.raises(KeyboardInterrupt):
        played(policy, shop, sampler)
    sampler.close()
    assert len(fake.stopped) == fake.asked, "of those that had begun"


def test_every_row_has_its_own_limit(policy: Policy) -> None:
    class Rambling(Fake):
        async def generate(self, ids: Sequence[int], most: int) -> Any:
            return [5] * 8, [-0.5] * 8

    fake = Rambling(policy, lambda ids, number: None)
    sampler = EngineSampler(fake, policy.renderer.stop_ids, Limits(turn=3, episode=5, context=20))
    sampler.start([rng(0), rng(1)])
    said = said_by(sampler, [0, 1], [[5] * 4, [5] * 20])
    assert len(said[0].ids) == 3 and said[0].truncated and not said[0].failure
    assert said[1] == Sampled([], [], truncated=True)
    assert len(said_by(sampler, [0], [[5]])[0].ids) == 2
    sampler.close()


def test_after_a_cancel_nothing_is_asked_until_the_rows_are_opened_anew(policy: Policy) -> None:
    async def once(ids: Sequence[int], number: int) -> None:
        await asyncio.sleep(0)

    sampler, _ = sampler_of(policy, once)
    sampler.start([rng(0)])
    sampler.cancel()
    with pytest.raises(SamplerError, match="stopped"):
        sampler.turn([0], [[5]])
    sampler.start([rng(0)])
    assert said_by(sampler, [0], [[5]])
    sampler.close()


def said_by(sampler: EngineSampler, rows: Sequence[int], inputs: Sequence[Sequence[int]]) -> dict[int, Any]:
    """Turn until each row has its answer."""
    said: dict[int, Any] = {}
    given = dict(zip(rows, inputs, strict=True))
    while left := [row for row in rows if row not in said]:
        answers = sampler.turn(left, [given.pop(row, []) for row in left])
        said |= {row: answer for row, answer in zip(left, answers, strict=True) if answer}
    return said


# A vLLM in this process, as far as its engine goes.


class Stepped:
    """An engine that samples one token of every request in a step, and begins new ones beside those under way."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.llm_engine = self
        self.under_way: dict[str, list[Any]] = {}
        self.steps, self.beside, self.aborted = 0, set[int](), list[str]()

    def add_request(self, name: str, prompt: Any, asked: Any) -> None:
        assert prompt["type"] == "token" and asked.temperature == 1.0 and asked.top_k == 0
        ids, logprobs = says(self.policy, prompt["prompt_token_ids"])
        self.under_way[name] = [ids[: asked.max_tokens], logprobs, 0]

    def step(self) -> list[Any]:
        self.steps += 1
        self.beside.add(len(self.under_way))
        ended = []
        for name, request in list(self.under_way.items()):
            ids, logprobs, request[2] = request[0], request[1], request[2] + 1
            if request[2] == len(ids):
                del self.under_way[name]
                told = [{i: SimpleNamespace(logprob=p)} for i, p in zip(ids, logprobs, strict=False)]
                answer = SimpleNamespace(token_ids=ids, logprobs=told)
                ended.append(SimpleNamespace(request_id=name, finished=True, outputs=[answer]))
        return ended

    def abort_request(self, names: list[str]) -> None:
        self.aborted += names
        self.under_way.clear()


@pytest.fixture
def stepped(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> tuple[Stepped, ColocatedSampler]:
    """The engine, and a sampler on it."""
    vllm_stands_in(monkeypatch)
    engine = Stepped(policy)
    return engine, ColocatedSampler(engine, policy.renderer.stop_ids)


def test_a_colocated_vllm_samples_rows_beside_each_other_and_none_waits(
    policy: Policy, shop: Shop, stepped: tuple[Stepped, ColocatedSampler]
) -> None:
    """What lockstep plays, in as many steps as the row that says most: with a barrier a turn there would be more."""
    engine, sampler = stepped
    expected = played(policy, shop, Lockstep(policy))
    for times in (1, 2):
        assert played(policy, shop, sampler) == expected
        assert engine.steps == times * max(r.sampled for r in expected)
    assert max(engine.beside) == ROWS and not engine.under_way and not engine.aborted


def test_what_breaks_a_colocated_vllm_is_said_in_words_and_nothing_goes_on(
    policy: Policy, stepped: tuple[Stepped, ColocatedSampler], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, sampler = stepped

    def broken() -> Any:
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setattr(engine, "step", broken)
    sampler.start([rng(0), rng(1)])
    with pytest.raises(
        SamplerError, match=r"colocated vLLM failed \(RuntimeError: CUDA out .*lower vllm_memory"
    ):
        sampler.turn([0, 1], [[5], [6]])
    assert engine.aborted == ["ecomlab-0", "ecomlab-1"]
    monkeypatch.undo()


@pytest.mark.parametrize("answers", [False, True], ids=["none", "the last"])
def test_a_turn_of_a_colocated_vllm_ends_where_another_thread_gives_up(
    policy: Policy, stepped: tuple[Stepped, ColocatedSampler], monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    """While the engine is in a step, which may still answer."""
    engine, sampler = stepped
    ended = SimpleNamespace(
        request_id="ecomlab-0", finished=True, outputs=[SimpleNamespace(token_ids=[5], logprobs=None)]
    )
    steps = iter(range(100))

    def step() -> list[Any]:
        assert next(steps) == 0, "it goes on"
        threading.Thread(target=sampler.cancel).start()
        while not sampler._cancelled:
            pass
        return [ended] if answers else []

    monkeypatch.setattr(engine, "step", step)
    sampler.start([rng(0)])
    (said,) = sampler.turn([0], [[5]])
    assert (said is not None) == answers
    with pytest.raises(SamplerError):
        sampler.turn([0], [[6]])
    assert engine.aborted == ["ecomlab-0"]


# A vLLM server, as far as its completions go.


@pytest.fixture
def server(policy: Policy) -> Iterator[tuple[str, list[Any], threading.Event]]:
    """Its address, what it was asked, and whether a client has hung up. Conversations beginning with 7 fail, those with
    9 take for ever."""
    asked: list[Any] = []
    hung_up = threading.Event()

    async def complete(request: web.Request) -> web.Response:
        given = await request.json()
        asked.append(given)
        if given["prompt"][0] == 7:
            return web.Response(status=400, text="too long")
        if given["prompt"][0] == 9:
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                hung_up.set()
                raise
        ids, logprobs = says(policy, given["prompt"])
        cut = slice(given["max_tokens"])
        choice = {"token_ids": ids[cut], "logprobs": {"token_logprobs": logprobs[cut]}}
        return web.json_response({"choices": [choice]})

    loop, app = asyncio.new_event_loop(), web.Application()
    app.router.add_post("/v1/completions", complete)
    runner = web.AppRunner(app, handler_cancellation=True)
    loop.run_until_complete(runner.setup())
    site = web.TCPSite(runner, "127.0.0.1", 0, shutdown_timeout=0)
    loop.run_until_complete(site.start())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    host, port = runner.addresses[0][:2]
    yield f"http://{host}:{port}", asked, hung_up
    asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(30)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


def test_a_vllm_server_plays_what_the_model_behind_it_plays(
    policy: Policy, shop: Shop, server: tuple[str, list[Any], threading.Event]
) -> None:
    url, asked, _ = server
    stops = policy.renderer.stop_ids
    sampler = EngineSampler(VllmEngine(url, "served", stops), stops)
    assert played(policy, shop, sampler) == played(policy, shop, Lockstep(policy))
    assert {(a["model"], a["temperature"], a["top_p"], a["n"]) for a in asked} == {("served", 1.0, 1.0, 1)}
    sampler.start([rng(0), rng(1)])
    said = said_by(sampler, [0, 1], [[7, 1], [8, 1]])
    assert "vLLM answered 400: too long" in said[0].failure and not said[1].failure
    sampler.close()


def test_a_server_is_hung_up_on_and_one_that_is_not_there_stops_the_run_in_words(
    policy: Policy, server: tuple[str, list[Any], threading.Event]
) -> None:
    url, _, hung_up = server
    sampler = EngineSampler(VllmEngine(url, "served", (1,)), (1,))
    sampler.start([rng(0), rng(1)])
    while 1 not in (said := dict(enumerate(sampler.turn([0, 1], [[9], [8]])))):
        pass
    assert said[0] is None and said[1]
    sampler.close()
    assert hung_up.wait(30), "the server goes on for nobody"
    slow = EngineSampler(VllmEngine(url, "served", (1,), patience=0.05), (1,))
    nowhere = EngineSampler(VllmEngine("http://127.0.0.1:9", "served", (1,)), (1,))
    for sampler in (slow, nowhere):
        sampler.start([rng(0)])
        with pytest.raises(SamplerError, match=r"vLLM server at http.*goes on from its last checkpoint"):
            sampler.turn([0], [[9]])
        sampler.close()
