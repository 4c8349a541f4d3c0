"""The recipe for the laptop policy's starter: a tokenizer from the shop's words, then imitation of imperfect shoppers.

    python -m ecomlab.train.warmstart --out ecomlab/train/starters/novice

Minutes on one core, the same result from the same settings on the same machine. Demonstrations slip at a fixed rate per
decision, so that reinforcement learning has something to do: clean ones reach 1.0 and leave it nothing (FACTS §2).
Muon trains the matrices, AdamW the rest.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ecomlab.catalog import Shop, load_shop
from ecomlab.collector import TRAINING_SEEDS
from ecomlab.core import Task
from ecomlab.customer.lexicon import lexicon_of
from ecomlab.episode import Episode, make_task
from ecomlab.seeding import rng
from ecomlab.train import tiny
from ecomlab.train.demonstrations import ANY, ASK, Demonstration, Demonstrator, demonstrate, slips_for
from ecomlab.train.policy import STARTERS, Policy, made_for, save_policy
from ecomlab.train.renderer import RESULTS, Renderer, ShortRenderer, call_text

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


@dataclass(frozen=True)
class Phase:
    """A stretch of imitation: which difficulties, how many mistakes, how many tokens."""

    difficulties: tuple[int, ...]
    slip_rate: float
    """Mistakes per decision in an order of one thing; for n things divided by n squared: more decisions, each of which
    must go right, and a starter that never succeeds learns nothing."""
    tokens: int
    """Tokens to train on, counted with the customer's and the tools'."""
    episodes: int
    """Different demonstrations to draw them from."""


@dataclass(frozen=True)
class Recipe:
    """What makes a starter; recorded beside it."""

    phases: tuple[Phase, ...] = (
        Phase((0, 1, 2), 0.0, 900_000, 8_000),
        Phase((0, 1, 2, 3, 4), 0.0, 3_000_000, 14_000),
        Phase((0, 1, 2, 3, 4), 0.5, 700_000, 6_000),
    )
    """First without mistakes, so that copying comes quickly, then with them."""
    tokens_per_batch: int = 4_000
    muon_lr: float = 0.008
    adamw_lr: float = 2e-3
    cooldown: float = 0.3
    """The last share of the steps, over which both rates fall to zero."""
    corpus_episodes: int = 2_000
    """Conversations from which the byte pairs are learned."""
    longest: int = 400
    """Longer demonstrations are left out."""
    seed: int = 0


def make_novice(shop: Shop, recipe: Recipe, tell: Callable[[str], None] = lambda _: None) -> Policy:
    """Make a starter from nothing. Deterministic in (shop, recipe) for one build of torch on one kind of machine."""
    torch.set_num_threads(1)
    renderer = ShortRenderer(make_tokenizer(shop, recipe))
    tokenizer = renderer.tokenizer
    model = tiny.build_model(len(tokenizer), tokenizer.pad_token_id, tokenizer.eos_token_id, recipe.seed)
    batches: list[list[Demonstration]] = []
    for number, phase in enumerate(recipe.phases):
        started = time.perf_counter()
        played = list(play_demonstrations(shop, renderer, recipe, number))
        share = np.mean([d.correct for d in played])
        tell(f"{len(played)} demonstrations, {share:.0%} correct, {time.perf_counter() - started:.0f} s")
        batches += list(batches_of(played, recipe.tokens_per_batch, phase.tokens, (recipe.seed, number)))
    imitate(model, batches, recipe, tell)
    return Policy(model.eval(), renderer, made_for(tokenizer, shop, ["CART"]))


def make_tokenizer(shop: Shop, recipe: Recipe) -> "PreTrainedTokenizerFast":
    """The tokenizer of the shop's words, its byte pairs learned from conversations."""
    levels = recipe.phases[-1].difficulties
    tasks = [draw_task(shop, levels, "corpus", recipe.seed, i) for i in range(recipe.corpus_episodes)]
    tools = Episode(tasks[0], shop).tools
    texts = [text for i, task in enumerate(tasks) for text in _conversation(task, shop, i)]
    spaced = {**ASK, "question": f" {ASK['question']}"}
    whole = [call_text("ask_user", spaced), *RESULTS, f" {ANY}"]
    return tiny.build_tokenizer(shop.catalog, tools, texts, whole=whole)


def play_demonstrations(
    shop: Shop, renderer: Renderer, recipe: Recipe, number: int
) -> Iterator[Demonstration]:
    """The episodes of one phase, difficulties and mistakes drawn by name; too long ones are left out."""
    phase = recipe.phases[number]
    for i in range(phase.episodes):
        task = draw_task(shop, phase.difficulties, "demonstration", recipe.seed, number, i)
        things = len(task.truth["items"])
        slips = slips_for(phase.slip_rate / things**2, "demonstration", recipe.seed, number, i)
        demonstration = demonstrate(task, shop, renderer, slips)
        if len(demonstration.ids) <= recipe.longest:
            yield demonstration


def imitate(
    model: Any,
    batches: Sequence[Sequence[Demonstration]],
    recipe: Recipe,
    tell: Callable[[str], None] = lambda _: None,
) -> None:
    """Train `model` to say what the demonstrators said: cross-entropy on their tokens alone, a step a batch."""
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    chosen = {id(p) for p in matrices}
    others = [p for p in model.parameters() if id(p) not in chosen]
    muon = torch.optim.Muon(matrices, lr=recipe.muon_lr, weight_decay=0.0)
    adamw = torch.optim.AdamW(others, lr=recipe.adamw_lr, weight_decay=0.0, betas=(0.9, 0.98))
    model.train()
    started = time.perf_counter()
    for step, batch in enumerate(batches):
        left = (len(batches) - step) / max(1.0, recipe.cooldown * len(batches))
        for optimizer, rate in ((muon, recipe.muon_lr), (adamw, recipe.adamw_lr)):
            optimizer.param_groups[0]["lr"] = rate * min(1.0, left)
        loss = imitation_loss(model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in (muon, adamw):
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        if step % 100 == 0 or step == len(batches) - 1:
            tell(
                f"step {step} of {len(batches)}: loss {loss.item():.3f}, {time.perf_counter() - started:.0f} s"
            )
    model.eval()


def imitation_loss(model: Any, batch: Sequence[Demonstration]) -> Tensor:
    """Mean cross-entropy over the demonstrators' tokens; only their positions go through the output layer."""
    longest = max(len(d.ids) for d in batch)
    ids_BL = torch.zeros(len(batch), longest, dtype=torch.long)
    spoken_BL = torch.zeros(len(batch), longest, dtype=torch.bool)
    for b, d in enumerate(batch):
        ids_BL[b, : len(d.ids)] = torch.tensor(d.ids)
        spoken_BL[b, : len(d.ids)] = torch.tensor(d.mask, dtype=torch.bool)
    hidden = model.get_decoder()(input_ids=ids_BL[:, :-1], use_cache=False).last_hidden_state
    spoken = spoken_BL[:, 1:]
    logits = model.get_output_embeddings()(hidden[spoken])
    return torch.nn.functional.cross_entropy(logits, ids_BL[:, 1:][spoken])


def batches_of(
    demonstrations: Sequence[Demonstration], size: int, tokens: int, key: Sequence[Any]
) -> Iterator[list[Demonstration]]:
    """Batches of up to `size` tokens and similar lengths, epoch after epoch, until `tokens` are reached."""
    lengths = np.array([len(d.ids) for d in demonstrations])
    given = epoch = 0
    while given < tokens:
        random = rng("batches", *key, epoch)
        order = np.argsort(lengths + random.uniform(0, 16, len(lengths)), kind="stable")
        batches: list[list[int]] = [[]]
        longest = 0
        for i in order:
            longest = max(longest, int(lengths[i]))
            if batches[-1] and (len(batches[-1]) + 1) * longest > size:
                batches.append([])
                longest = int(lengths[i])
            batches[-1].append(int(i))
        for b in random.permutation(len(batches)):
            if given >= tokens:
                return
            given += int(lengths[batches[b]].sum())
            yield [demonstrations[i] for i in batches[b]]
        epoch += 1


def draw_task(shop: Shop, difficulties: Sequence[int], *key: Any) -> Task:
    """A training task of one of these difficulties, named by `key`."""
    random = rng("warm start", *key)
    d = difficulties[int(random.integers(len(difficulties)))]
    seed = int(random.integers(TRAINING_SEEDS.start, TRAINING_SEEDS.stop))
    return make_task("CART", difficulty=d, seed=seed, shop=shop)


def _conversation(task: Task, shop: Shop, number: int) -> list[str]:
    """What the customer says in one imperfect episode."""
    episode = Episode(task, shop)
    player = Demonstrator(lexicon_of(shop.catalog), slips_for(0.3, "corpus", number))
    while not episode.done:
        episode.act(player(list(episode.messages), episode.tools))
    return [str(m["content"]) for m in episode.messages if m["role"] == "user"]


def main() -> None:
    """Make the starter and write it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=STARTERS / "novice")
    arguments = parser.parse_args()
    recipe = Recipe()
    policy = make_novice(load_shop(), recipe, print)
    save_policy(arguments.out, policy, recipe=asdict(recipe))
    print(f"written to {arguments.out}")


if __name__ == "__main__":
    main()
