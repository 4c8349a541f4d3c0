"""Contestants by name: scripts, weights, endpoints; what each says of itself, and that it plays what it is asked."""

import json
import math
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from qwen3_helper import small_qwen3
from transformers import AutoModelForCausalLM, AutoTokenizer, GraniteConfig

from ecomlab import ENVIRONMENTS, Shop, make_task, play, replay
from ecomlab.evaluation import local
from ecomlab.evaluation.contestant import Job, Usage
from ecomlab.evaluation.endpoint.contestant import EndpointContestant
from ecomlab.evaluation.evaluation import (
    EVALUATION,
    Cells,
    header_of,
    run_evaluation,
    trajectory_of,
)
from ecomlab.evaluation.faults import FAULTS
from ecomlab.evaluation.heldout import play_held_out
from ecomlab.evaluation.local import LocalContestant, weights_digest
from ecomlab.evaluation.players import LIMITS, Playing, contestant_of
from ecomlab.evaluation.scripted import ScriptedContestant
from ecomlab.evaluation.tasks import held_out_seeds
from ecomlab.evaluation.transcripts import TranscriptError, read
from ecomlab.models.batch import Rollout
from ecomlab.models.load import load_policy
from ecomlab.models.policy import Policy, PolicyError
from ecomlab.models.samplers.cached import Limits
from ecomlab.models.samplers.tiny import CHOICE
from ecomlab.reward import Score

SEEDS = held_out_seeds(0, 4)
JOBS = [Job("CART", d, seed) for d in (0, 2) for seed in SEEDS]
MIXED = [Job("CART", d, SEEDS[0]) for d in (0, 2, 4, 6)]
"""Episodes of different length."""


@pytest.fixture(scope="module")
def novice(shop: Shop) -> Policy:
    return load_policy("novice", shop, ["CART"])


# --- scripts ---


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_scripts_play_every_environment_as_the_players_they_name(env: str, shop: Shop) -> None:
    job = Job(env, 2, SEEDS[0])
    expected = play(ENVIRONMENTS[env].reference_player(shop), make_task(env, 2, job.seed, shop), shop)
    (found,) = ScriptedContestant("reference").play([job], shop)
    assert (found.score, found.messages) == (expected.score, expected.messages)
    said = sum(message["role"] == "assistant" for message in expected.messages)
    assert (found.faults, found.unscored, found.usage["agent"].requests) == ((), "", said)
    (oracle,) = ScriptedContestant("oracle").play([job], shop)
    assert oracle.score.correct
    (silent,) = ScriptedContestant("say nothing").play([job], shop)
    assert set(silent.faults) == {"empty answer"}
    assert not silent.score.correct


def test_a_task_that_cannot_be_drawn_is_unscored(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ecomlab.models.batch.make_task", lambda *_: 1 / 0)
    (found,) = ScriptedContestant("reference").play(JOBS[:1], shop)
    assert (found.unscored, found.task) == ("task", "")
    assert "ZeroDivisionError" in found.notes["why"]


# --- weights ---


def test_weights_play_as_in_held_out_evaluation_and_keep_what_was_said(novice: Policy, shop: Shop) -> None:
    """The same tasks, streams and outcomes as `play_held_out`; every transcript replays to its score."""
    rows = play_held_out(novice, JOBS, shop)
    found = {(p.job.d, p.job.seed): p for p in LocalContestant("novice", novice, batch=3).play(JOBS, shop)}
    for row in rows:
        one = found[row["d"], row["task_seed"]]
        assert one.unscored == ""
        score = one.score
        assert (score.value, score.correct, one.end) == (row["reward"], row["correct"], row["end"])
        assert replay(trajectory_of(one, shop), shop) == score
        usage = one.usage["agent"]
        assert usage.completion_tokens == row["tokens"]
        assert usage.prompt_tokens + usage.completion_tokens >= row["context_tokens"]
        assert set(one.faults) <= set(FAULTS)


def test_strict_episodes_of_weights_are_recorded_as_such(novice: Policy, shop: Shop) -> None:
    strict = LocalContestant("novice", novice, strict=True)
    assert strict.identity["strict"] and not LocalContestant("novice", novice).identity["strict"]
    for found in strict.play(JOBS[:3], shop):
        assert found.strict
        assert replay(trajectory_of(found, shop), shop) == found.score


def test_another_trial_is_another_stream(novice: Policy, shop: Shop) -> None:
    jobs = [Job("CART", 2, SEEDS[0], trial) for trial in (0, 1, 2, 0)]
    found = list(LocalContestant("novice", novice).play(jobs, shop))
    said = {(p.job.trial, json.dumps(p.messages)) for p in found}
    assert len(found) == 4 and len(said) == 3  # trial 0 is the same twice
    assert len({messages for _, messages in said}) > 1


def test_tokens_are_counted_as_an_endpoint_would() -> None:
    """Two turns: 3 tokens of prompt and 2 said; then 2 more read, of 7 in all 5 were known, and 1 said."""
    mask = [1, 1, 0, 0, 1]
    rollout = Rollout(
        None, [1] * 3, [2] * 5, mask, [0.0] * 5, Score(0.0, False, ""), "submit", 2, seconds=(0.2, 0.3)
    )
    assert local._turns(rollout) == [Usage(1, 3, 0, 2, 0, 0.2), Usage(1, 7, 5, 1, 0, 0.3)]


def test_a_token_limit_is_the_models_own_and_said_to_be_which(novice: Policy, shop: Shop) -> None:
    for limits, fault in ((Limits(turn=2), "length"), (Limits(context=40), "context")):
        for found in LocalContestant("novice", novice, limits=limits).play(JOBS[:2], shop):
            assert (found.faults[-1:], found.unscored) == ((fault,), "")
            assert found.end == "truncated"


def breaking(one: LocalContestant, turns: int, error: BaseException, patch: pytest.MonkeyPatch) -> None:
    """Let the sampler of a contestant raise in place of its turn number `turns`, from 0."""
    turn, left = one.sampler.turn, iter(range(turns))

    def broken(rows: Any, inputs: Any) -> Any:
        if next(left, None) is None:
            raise error
        return turn(rows, inputs)

    patch.setattr(one.sampler, "turn", broken)


def test_a_sampler_that_breaks_costs_what_is_left_of_its_batch_and_no_score(
    novice: Policy, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = LocalContestant("novice", novice, batch=2)
    breaking(one, 0, torch.OutOfMemoryError("full"), monkeypatch)
    found = list(one.play(JOBS[:3], shop))
    assert [(p.job, p.unscored, p.task) for p in found] == [(job, "sampler", "") for job in JOBS[:3]]


def test_an_episode_is_handed_over_as_soon_as_it_is_over(
    novice: Policy, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sampler breaks when the first of the batch are over: these are what they would have been."""
    whole = {p.job.d: p for p in LocalContestant("novice", novice).play(MIXED, shop)}
    one = LocalContestant("novice", novice)
    playing = one.play(MIXED, shop)
    found = [next(playing)]
    breaking(one, 0, torch.OutOfMemoryError("full"), monkeypatch)
    found += playing
    scored = [p for p in found if not p.unscored]
    assert sorted(p.job.d for p in found) == sorted(whole) and 0 < len(scored) < len(MIXED)
    for p in scored:
        assert (p.faults, p.messages) == (whole[p.job.d].faults, whole[p.job.d].messages)


def test_killed_within_a_batch_it_keeps_what_was_over_and_goes_on(
    novice: Policy, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the same episodes, none twice, as in one go."""
    cells = Cells(("CART",), (0, 2, 4), 4)

    def run(folder: Path, broken: int | None = None) -> set[tuple[Any, ...]]:
        one = LocalContestant("novice", novice, batch=12)
        if broken is not None:
            breaking(one, broken, KeyboardInterrupt(), monkeypatch)
        header = header_of(
            EVALUATION, "novice", one.identity, cells.envs, {}, shop, {"size": 1000, "seed": 0}
        )
        with pytest.raises(KeyboardInterrupt) if broken is not None else nullcontext():
            run_evaluation(one, cells, shop, folder, header, {"commit": "abc"})
        found = [(t.key, json.dumps(t.messages), repr(t.score), t.faults) for t in read(folder, every=True)]
        assert len(found) == len({key for key, *_ in found})
        return set(found)

    whole = run(tmp_path / "whole")
    kept = run(tmp_path / "killed", broken=4)
    assert 0 < len(kept) < 12 and kept < whole  # within the first batch
    assert run(tmp_path / "killed") == whole and len(whole) == 12


def test_an_evaluation_does_not_go_on_with_another_sampler(
    novice: Policy, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> None:
        one = LocalContestant("novice", novice)
        header = header_of(EVALUATION, "novice", one.identity, ("CART",), {}, shop, {"size": 1000, "seed": 0})
        run_evaluation(one, Cells(("CART",), (0,), 2), shop, tmp_path, header, {"commit": "abc"})

    run()
    monkeypatch.setenv(CHOICE, "torch")
    with pytest.raises(TranscriptError, match='identity.sampler is "tiny-1" there'):
        run()


def test_the_identity_changes_with_one_number_of_the_weights(novice: Policy) -> None:
    before = weights_digest(novice.model)
    assert before == weights_digest(novice.model)
    weight = next(iter(novice.model.parameters()))
    kept = weight.detach().clone()
    with torch.no_grad():
        weight[0, 0] += 1
    assert weights_digest(novice.model) != before
    with torch.no_grad():
        weight.copy_(kept)
    identity = LocalContestant("novice", novice, "greedy").identity
    assert identity["weights"] == before
    assert identity["limits"] == {"turn": 256, "episode": 512, "context": 2048}
    json.dumps(identity)


def test_a_bug_of_ours_leaves_an_episode_unscored(
    novice: Policy, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ecomlab.episode.episode.Episode.act", lambda *_: 1 / 0)
    (found,) = LocalContestant("novice", novice).play(JOBS[:1], shop)
    assert found.unscored == "bug" and math.isnan(found.score.value)


# --- ordinary models ---


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small random Qwen3, made for 8,192 tokens."""
    return str(small_qwen3(tmp_path_factory.mktemp("players") / "qwen3"))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, Limits(2_048, 8_192, 8_192)),
        ({"context_tokens": 1_000}, Limits(1_000, 1_000, 1_000)),
        ({"turn_tokens": 9, "episode_tokens": 99}, Limits(9, 99, 8_192)),
    ],
)
def test_an_ordinary_model_may_say_what_it_was_made_for_and_a_starter_what_it_was_trained_on(
    given: dict[str, int], expected: Limits, ordinary: str, shop: Shop
) -> None:
    made: list[Any] = [
        contestant_of(name, shop, ["STATUS"], Playing(settings=given)) for name in (ordinary, "novice")
    ]
    starters = Limits(**{LIMITS[name]: count for name, count in given.items()})
    assert [one.identity["limits"] for one in made] == [asdict(expected), asdict(starters)]
    assert made[0].batch == 16


def test_an_episode_is_not_longer_than_the_model_was_made_for(ordinary: str, shop: Shop) -> None:
    with pytest.raises(PolicyError, match="context_tokens=8192"):
        contestant_of(ordinary, shop, ["STATUS"], Playing(settings={"context_tokens": 8_193}))


def test_a_model_that_our_sampler_does_not_sample_exactly_is_refused_with_the_way_out(
    ordinary: str, shop: Shop, tmp_path: Path
) -> None:
    """Granite scales its logits behind the output layer."""
    tokenizer = AutoTokenizer.from_pretrained(ordinary)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = GraniteConfig(vocab_size=len(tokenizer), logits_scaling=8.0, **sizes)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3 if parameter.dim() > 1 else 1)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(PolicyError, match=r"exactly.*vllm serve.*docs/players\.md"):
        contestant_of(str(tmp_path), shop, ["STATUS"])


# --- names ---


def test_an_endpoint_needs_none_of_the_heavy_libraries(tmp_path: Path) -> None:
    file = tmp_path / "there.toml"
    file.write_text('url = "http://127.0.0.1:8000/v1"\nmodel = "m"\n')
    code = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(['torch', 'transformers', 'trl', 'pandas', 'datasets']))\n"
        "from ecomlab.evaluation.players import contestant_of\n"
        f"print(contestant_of({str(file)!r}, None, ['CART']).identity['kind'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("endpoint", "")


def test_a_name_is_a_script_weights_or_an_endpoint(shop: Shop, tmp_path: Path) -> None:
    file = tmp_path / "there.toml"
    file.write_text('url = "http://127.0.0.1:8000/v1"\nmodel = "m"\n')
    for name, kind in (("reference", "script"), ("say nothing", "script"), ("novice", "local")):
        found: Any = contestant_of(name, shop, ["CART"])
        assert found.identity["kind"] == kind
    endpoint = contestant_of(str(file), shop, ["CART"], Playing(settings={"temperature": 0.5}))
    assert isinstance(endpoint, EndpointContestant) and endpoint.identity["temperature"] == 0.5


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("referense", "did you mean 'reference'.*TOML"),
        ("novise", "did you mean 'novice'"),
        ("nobody/there", "cannot be loaded"),
        ("./step-3", "there is no folder ./step-3"),
        ("none.toml", "no file none.toml"),
    ],
)
def test_a_name_of_nothing_is_met_with_the_way_out(name: str, words: str, shop: Shop) -> None:
    with pytest.raises(ValueError, match=words):
        contestant_of(name, shop, ["CART"])
