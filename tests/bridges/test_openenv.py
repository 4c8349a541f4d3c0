"""OpenEnv: a server and its clients over loopback play the twenty tasks to our scores, several sessions at a time."""

import asyncio
import json
import threading
import time
import urllib.request
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("openenv")

import uvicorn
from openenv.core.generic_client import GenericEnvClient
from openenv.core.harness import TrainableSession
from openenv.validation.parsers.openenv_yaml import OpenEnvYamlParser

import ecomlab
from bridges.scripts import one_at_a_time, script
from bridges.twenty import SHOP, sample_jobs, sample_player, write_message
from ecomlab import ENVIRONMENTS, Stream
from ecomlab.bridges import openenv as bridge
from ecomlab.bridges.common import score_from_json
from ecomlab.bridges.openenv_harness import StreamSessions
from ecomlab.models.samplers.sampled import Sampled
from ecomlab.reward import INVALID
from ecomlab.training.schedule import windows

JOBS = sample_jobs()
SESSIONS = 4


@contextmanager
def served(**settings):
    """Address of a server in a thread of its own."""
    config = uvicorn.Config(
        bridge.make_app(bridge.Settings(products=SHOP, sessions=SESSIONS, **settings)),
        host="127.0.0.1",
        port=0,
        log_level="warning",
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def url():
    with served() as address:
        yield address


def started(job):
    return {"env": job.env, "difficulty": job.d, "seed": job.seed}


async def play_job(client, job, shop):
    """Play a job in a client's session by OpenEnv's loop; return the last result."""
    player = sample_player(job, shop)
    result = await client.reset(**started(job))
    messages, tools = list(result.observation.messages), result.observation.tools
    while not result.done:
        message = player(list(messages), tools)
        result = await client.step(bridge.ShoppingAction(message=message))
        messages += [message, *result.observation.messages]
    return result


def test_the_twenty_tasks_score_as_in_our_own_loop(url, same, ours, log, tell_versions, bridge_shop):
    """Four clients, a session each, all at once; each plays its share one after another."""
    tell_versions("openenv", "fastapi", "uvicorn", "websockets")

    async def share(number):
        async with bridge.ShoppingClient(base_url=url, message_timeout_s=300) as client:
            return [(job, await play_job(client, job, bridge_shop)) for job in JOBS[number::SESSIONS]]

    async def everything():
        return await asyncio.gather(*map(share, range(SESSIONS)))

    played = {job.seed: result for part in asyncio.run(everything()) for job, result in part}
    for job in JOBS:
        seen = played[job.seed].observation
        same(job, score_from_json(seen.score))
        assert played[job.seed].reward == ours(job).score.value
        assert (seen.end, seen.turns, seen.calls) == (ours(job).end, ours(job).turns, ours(job).calls)
    log["sessions at a time"] = SESSIONS


def test_turns_of_two_sessions_do_not_meet(url, bridge_shop):
    """The same task in two sessions, the second one turn behind and with other words."""

    async def both():
        async with bridge.ShoppingClient(base_url=url) as one, bridge.ShoppingClient(base_url=url) as two:
            await one.reset(**started(JOBS[1]))
            first = await one.step(bridge.ShoppingAction(message="Any other details?"))
            await two.reset(**started(JOBS[1]))
            invalid = await two.step(bridge.ShoppingAction(message='{"tool_calls": ['))
            return first, invalid, await one.state(), await two.state()

    first, invalid, one, two = asyncio.run(both())
    assert not first.done and first.reward is None and first.observation.messages[-1]["role"] == "user"
    assert invalid.done and invalid.reward == INVALID and invalid.observation.end == "invalid"
    assert (one.done, two.done) == (False, True)
    assert one.step_count == 1 and one.task == two.task and one.task["env"] == JOBS[1].env


def test_a_generic_client_needs_nothing_of_ours(url, ours):
    job = JOBS[0]
    said = [message for message in ours(job).messages if message["role"] == "assistant"]
    with GenericEnvClient(base_url=url).sync() as client:
        client.reset(**started(job))
        for message in said:
            result = client.step({"message": write_message(message)})
    assert result.done and result.reward == ours(job).score.value


def test_mistakes_of_the_caller_are_told(url):
    with bridge.ShoppingClient(base_url=url).sync() as client:
        with pytest.raises(RuntimeError, match="'CART'"):
            client.reset(env="CRAT")
        with pytest.raises(RuntimeError, match="level"):
            client.reset(level=3)
        with pytest.raises(RuntimeError, match="reset"):
            client.step(bridge.ShoppingAction(message="Hello?"))


def test_the_manifest_is_one_that_openenv_reads_and_names_our_app():
    folder = Path(bridge.__file__).parent
    manifest = OpenEnvYamlParser().parse(folder)
    assert (manifest.name, manifest.version) == ("ecomlab", ecomlab.__version__)
    assert f"app: {bridge.__name__}:app" in (folder / "openenv.yaml").read_text()
    assert bridge.app.openapi()["paths"]["/reset"]


def counts(url):
    with urllib.request.urlopen(f"{url}/counts") as answer:
        return json.load(answer)


def test_idle_sessions_give_their_places_back():
    """All places are taken by clients that say nothing more; a newcomer gets one once their time is out."""
    with served(session_timeout=1.0) as url:

        async def crowd():
            idle = [bridge.ShoppingClient(base_url=url) for _ in range(SESSIONS)]
            for client in idle:
                await client.connect()
                await client.reset(env="CART", difficulty=0, seed=1)
            for attempt in range(40):
                try:
                    async with bridge.ShoppingClient(base_url=url) as newcomer:
                        return (await newcomer.reset(env="CART", difficulty=0, seed=2)).observation.messages
                except Exception:
                    if attempt == 39:
                        raise
                    await asyncio.sleep(0.5)

        assert asyncio.run(crowd())


def test_groups_are_drawn_by_the_servers_stream_and_move_its_window(bridge_shop, log):
    settings = {"schedule": "adaptive", "envs": "CART", "group": 4, "groups_per_step": 2}
    with served(**settings) as url:

        async def play(client, name):
            result = await client.reset(group=name)
            opening = result.observation.messages[1]["content"]
            task = (await client.state()).task
            player = ENVIRONMENTS[task["env"]].reference_player(bridge_shop)
            messages, tools = list(result.observation.messages), result.observation.tools
            while not result.done:
                message = player(list(messages), tools)
                result = await client.step(bridge.ShoppingAction(message=message))
                messages += [message, *result.observation.messages]
            return opening

        async def everything():
            clients = [bridge.ShoppingClient(base_url=url) for _ in range(SESSIONS)]
            for client in clients:
                await client.connect()
            tops = []
            for number in range(40):
                openings = await asyncio.gather(*(play(client, f"g{number}") for client in clients))
                assert len(set(openings)) == 1, "one task a group"
                tops.append(counts(url)["tops"]["CART"])
            with pytest.raises(RuntimeError, match="not both"):
                await clients[0].reset(group="x", env="CART")
            return tops

        tops = asyncio.run(everything())
        told = counts(url)
    log["tops"] = tops
    assert tops[0] == 0 and tops[-1] >= 2 and told["episodes"] == 160 and told["groups"] == 0


def test_a_server_without_a_schedule_has_no_groups(url):
    with bridge.ShoppingClient(base_url=url).sync() as client, pytest.raises(RuntimeError, match="SCHEDULE"):
        client.reset(group="a")


def test_sessions_of_its_harness_api_report_groups(bridge_shop):
    stream = Stream("adaptive", "CART", shop=bridge_shop, groups_per_step=1, tau_num=2)
    sessions = StreamSessions(stream, size=2)
    for number in range(6):
        pair = [sessions.create(f"group {number}") for _ in range(2)]
        assert pair[0].initial_messages() == pair[1].initial_messages()
        for session in pair:
            episode = session._episode
            player = one_at_a_time(ENVIRONMENTS["CART"].reference_player(bridge_shop))
            names = {tool.name for tool in session.list_tools()}
            while not episode.done:
                (call,) = player(list(episode.messages), episode.tools)["tool_calls"]
                assert call["function"]["name"] in names
                session.call_tool(call["function"]["name"], json.loads(call["function"]["arguments"]))
            assert session.verify([]).env_reward > 0.5
            session.close()
    assert windows(stream.schedule, ["CART"])["CART"][1] >= 2 and stream.state()["waiting"] == []
    left = sessions.create("left")
    left.close()
    assert sessions.create("left").verify([]).env_reward < 0


class Bytes:
    """A renderer in the bytes of JSON, for an environment without transformers."""

    tokenizer, stop_ids, pad_id = None, (10,), 0

    def dialogue(self):
        return self

    def encode(self, text):
        return list(text.encode())

    def decode(self, ids):
        return bytes(ids).decode()

    def open(self, messages, tools):
        return self.encode(json.dumps(list(messages)))

    def say(self, message):
        return [*self.encode(json.dumps(message)), 10]

    def read(self, ids):
        return json.loads(bytes(ids))

    def follow(self, messages):
        return self.encode(json.dumps(list(messages)))

    def teacher(self, env, shop):
        return None


def test_a_session_that_plays_its_own_loop_returns_what_is_trained(bridge_shop):
    stream, twin = (Stream("adaptive", "CART", shop=bridge_shop) for _ in range(2))
    said = script(twin, twin.next_group(), Bytes())

    def sample(ids):
        return Sampled(said[tuple(ids)], [-0.5] * len(said[tuple(ids)]), truncated=False)

    session = StreamSessions(stream, 1, Bytes(), sample).create("one")
    assert isinstance(session, TrainableSession) and session.wait_for_completion() == 0
    turns = session.fetch_training_trace().turns
    assert len(turns) == len(said)
    for one, after in pairwise(turns):
        whole = [*one.prompt_token_ids, *one.completion_token_ids]
        assert list(after.prompt_token_ids[: len(whole)]) == whole, "strictly appended"
    assert all(sum(turn.loss_mask) == len(turn.completion_token_ids) for turn in turns)
    assert session.verify([]).env_reward > 0.5 and stream.state()["waiting"] == []
