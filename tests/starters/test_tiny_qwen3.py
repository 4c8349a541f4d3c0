"""The laptop policy: its tokenizer, its view of messages, its starter and the recipe for it."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ecomlab import Shop, make_task
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.messages import parse_output
from ecomlab.evaluation.evaluation import Cells
from ecomlab.evaluation.heldout import play_held_out, summarize
from ecomlab.models.load import load_policy
from ecomlab.models.policy import Policy, PolicyError
from ecomlab.starters import recipe, sft, tiny_qwen3
from ecomlab.starters.compact_renderer import ShortDialogue
from ecomlab.starters.demonstrations import demonstrate
from ecomlab.starters.id_aliases import ALIASES, Aliases
from ecomlab.starters.induction_init import give_induction
from ecomlab.starters.policy import STARTERS, made_for
from ecomlab.starters.recipe import Cell, Phase, Recipe

SMALL = Recipe(
    phases=(), size=tiny_qwen3.Size(hidden=72, layers=2, heads=1, feed_forward=64), tokens_per_batch=1_000
)


@pytest.fixture(scope="module")
def novice(shop: Shop) -> Policy:
    return load_policy("novice", shop, ["CART"])


@pytest.fixture
def dialogue(novice: Policy) -> ShortDialogue:
    made = novice.renderer.dialogue()
    assert isinstance(made, ShortDialogue)
    return made


def test_names_and_aliases_are_single_tokens(novice: Policy, shop: Shop) -> None:
    names = [f" {name}" for kind in tiny_qwen3.vocabulary(shop.catalog).values() for name in kind]
    for text in [*names, *ALIASES, "<|im_end|>\n<|im_start|>assistant\n"]:
        assert len(novice.renderer.encode(text)) == 1, text


# The tokenizer.


# The renderer.


def test_the_text_is_qwen3s_own_format(novice: Policy, shop: Shop) -> None:
    """Each turn reads as Qwen3 writes calls, and parses to the same calls but for aliases and outer spaces."""
    task = make_task("CART", 3, 4, shop)
    played = demonstrate(task, shop, novice.renderer)
    text = novice.renderer.decode(played.ids)
    assert text.startswith("<|im_start|>user\n" + task.opening + "<|im_end|>\n<|im_start|>assistant\n")
    assert "<|im_end|>\n<|im_start|>user\n<tool_response>\n" in text
    turns = [turn.partition("<|im_end|>")[0] for turn in text.split("<|im_start|>assistant\n")[1:]]
    assert all("invalid" not in parse_output(turn) and parse_output(turn)["tool_calls"] for turn in turns)


def test_malformed_output_is_marked_not_raised(dialogue: ShortDialogue) -> None:
    for text in ("<tool_call>\n{", "<tool_call>\n[]\n</tool_call>", '<tool_call>\n{"name": 3}\n</tool_call>'):
        assert dialogue.read(dialogue._renderer.encode(text + "<|im_end|>"))["invalid"]
    plain = dialogue.read(dialogue._renderer.encode("Which size?<|im_end|>"))
    assert plain == {"role": "assistant", "content": "Which size?"}


def test_an_alias_depends_on_the_id_not_on_the_order() -> None:
    ids = [f"P{i:06d}" for i in range(40)]
    forward, backward = Aliases(), Aliases()
    ours = {i: forward.of(i) for i in ids}
    theirs = {i: backward.of(i) for i in reversed(ids)}
    assert sum(ours[i] == theirs[i] for i in ids) >= 30, "all but those that fall together"
    assert len(set(ours.values())) == 40 and set(ours.values()) <= set(ALIASES)
    assert all(forward.real(alias.strip()) == i for i, alias in ours.items())


def test_unknown_aliases_pass_through_and_a_full_pool_does_not_break() -> None:
    aliases = Aliases()
    assert aliases.real("#k7") == "#k7" and aliases.real(7) == 7
    given = {aliases.of(f"P{i}") for i in range(len(ALIASES))}
    assert given == set(ALIASES)
    assert aliases.of("Pone-too-many") == " Pone-too-many"
    assert aliases.in_text("no P5 here") == f"no {aliases.of('P5').strip()} here"


# The starter.


def test_the_starter_is_small_and_says_what_it_was_made_for(novice: Policy, shop: Shop) -> None:
    files = list((STARTERS.folder / "novice").iterdir())
    assert sum(f.stat().st_size for f in files) <= 2_000_000
    record = json.loads((STARTERS.folder / "novice" / "made_for.json").read_text())
    assert {"catalog", "recipe", "libraries"} <= set(record) and set(record["environments"]) == set(
        ENVIRONMENTS
    )
    here = made_for(novice.tokenizer, shop, list(record["environments"]))
    for name in ("renderer", "tokenizer", "vocabulary", "environments"):
        assert record[name] == here[name]


@pytest.mark.parametrize("name", list(recipe.RECIPES))
def test_a_shipped_starter_is_of_the_committed_recipe(name: str, shop: Shop) -> None:
    record = load_policy(name, shop, ["CART"]).made_for
    made = {
        **Recipe(phases=()).to_json(),
        **record["recipe"],
    }  # settings that there were not yet, at their defaults
    del made["finish"], made["finish_rate"]  # of a second stage, which none had
    assert made == json.loads(json.dumps(recipe.RECIPES[name].to_json()))


@pytest.mark.slow
def test_the_novice_has_something_to_learn(novice: Policy, big_shop: Shop) -> None:
    """Sampled, success falls from some .8 at d = 0 (docs/composition.md) with each level, to above zero at d = 3;
    greedy it is better at each. With room for chance."""
    jobs = Cells(("CART",), (0, 1, 2, 3), 96).jobs()
    sampled, greedy = (
        [row["success"] for row in summarize(play_held_out(novice, jobs, big_shop, decodings=(decoding,)))]
        for decoding in ("sampled", "greedy")
    )
    assert 0.65 < sampled[0] < 0.9
    assert sampled == sorted(sampled, reverse=True) and 0 < sampled[3] < 0.2
    assert all(best > share for best, share in zip(greedy, sampled, strict=True))


def copied(folder: Path, **changes: Any) -> Path:
    shutil.copytree(STARTERS.folder / "novice", folder / "novice")
    record = json.loads((folder / "novice" / "made_for.json").read_text())
    (folder / "novice" / "made_for.json").write_text(json.dumps({**record, **changes}))
    return folder / "novice"


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"renderer": 0}, "renderer"),
        ({"tokenizer": "feed"}, "tokenizer"),
        ({"vocabulary": "feed"}, "generated"),
        ({"vocabulary": "feed", "renderer": 3}, "renderer 3"),  # of an earlier version, whatever the catalog
        ({"environments": {"CART": {"version": 0, "tasks": "feed"}}}, "CART"),
        ({"environments": {}}, "CART"),
    ],
)
def test_a_starter_made_for_something_else_is_refused(
    tmp_path: Path, shop: Shop, changes: Any, word: str
) -> None:
    with pytest.raises(PolicyError, match=word):
        load_policy(copied(tmp_path, **changes), shop, ["CART"])
    with pytest.raises(PolicyError, match="'novice'"):
        load_policy("novic", shop, ["CART"])


def test_a_damaged_starter_says_how_to_mend_it(tmp_path: Path, shop: Shop) -> None:
    folder = copied(tmp_path)
    (folder / "model.safetensors").write_bytes(b"\x00" * 100)
    with pytest.raises(PolicyError, match="ecomlab.starters.recipe"):
        load_policy(folder, shop, ["CART"])
    (folder / "tokenizer.json").unlink()
    with pytest.raises(PolicyError, match="readable"):
        load_policy(folder, shop, ["CART"])


# The recipe, shrunk.


@pytest.mark.parametrize("size", [tiny_qwen3.Size(), recipe.RECIPES["base"].size])
def test_a_fresh_starter_looks_for_what_followed_a_word_the_last_time(size: tiny_qwen3.Size) -> None:
    """Of 200 tokens in a row it looks, from one that is repeated, at the one that came next the first time."""
    shares = {}
    for given in (False, True):
        model = tiny_qwen3.build_model(3_000, 0, 1, seed=3, size=size)
        if given:
            give_induction(model, seed=3)
        random = torch.Generator().manual_seed(5)
        row = torch.randperm(3_000, generator=random)[:200]
        asked = torch.randperm(199, generator=random)[:50]
        model.set_attn_implementation("eager")
        with torch.no_grad():
            seen = model(torch.cat([row, row[asked]])[None], output_attentions=True).attentions
        back = seen[0][0, 0].diagonal(-1)[1:].mean()
        found = seen[1][0, 0][torch.arange(200, 250), asked + 1].mean()
        shares[given] = back.item(), found.item()
    assert shares[True][0] > 0.8 and shares[False][0] < 0.05
    assert shares[True][1] > 0.05 and shares[False][1] < 0.02
    with pytest.raises(ValueError, match="width"):
        give_induction(tiny_qwen3.build_model(300, 0, 1, size=tiny_qwen3.Size(hidden=64)))


def test_batches_hold_the_tokens_asked_for(novice: Policy, shop: Shop) -> None:
    cells = (Cell(env="CART", difficulties=(0, 2)),)
    small = SMALL.replace(phases=(Phase(cells=cells, slip_rate=0.2, tokens=0, episodes=50),))
    played = list(recipe.play_demonstrations(shop, novice.renderer, small, 0))
    batches = list(sft.batches_of(played, 2_000, 30_000, ("x",)))
    assert sum(len(d.ids) for batch in batches for d in batch) >= 30_000
    assert all(len(batch) * max(len(d.ids) for d in batch) <= 2_000 for batch in batches)
    assert batches == list(sft.batches_of(played, 2_000, 30_000, ("x",)))


def test_imitation_learns_the_demonstrators_tokens_alone(novice: Policy, shop: Shop) -> None:
    """Changing a token that the demonstrator did not say, at the very end of a row, does not change the loss."""
    played = demonstrate(make_task("CART", 0, 1, shop), shop, novice.renderer)
    longer = replace(played, ids=[*played.ids, 5], mask=[*played.mask, 0])
    other = replace(played, ids=[*played.ids, 9], mask=[*played.mask, 0])
    losses = [sft.imitation_loss(novice.model, [d]).item() for d in (played, longer, other)]
    assert losses[0] == pytest.approx(losses[1]) == pytest.approx(losses[2])
