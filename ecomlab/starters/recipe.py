"""The recipes for the laptop policy's starters: a tokenizer from the shop's words, then imitation of fair players.

    python -m ecomlab.starters.recipe make novice           # into ecomlab/starters/weights/novice
    python -m ecomlab.starters.recipe make base
    python -m ecomlab.starters.recipe evaluate base --episodes 200

`make` writes its log and a checkpoint into `--work` as it goes; the same command goes on where a killed one stopped.
The same result from the same recipe on the same machine. The novice's demonstrations slip, so that reinforcement
learning has something to do: clean ones reach 1.0 and leave it nothing (FACTS §2).
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ecomlab.catalog import Shop, load_shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import make_task
from ecomlab.models.load import STARTERS
from ecomlab.models.policy import Policy, made_for, save_policy
from ecomlab.models.renderer import Renderer
from ecomlab.seeding import digest, rng
from ecomlab.starters import tiny_qwen3
from ecomlab.starters.added_tokens import tools_of, whole_texts
from ecomlab.starters.compact_renderer import ShortRenderer
from ecomlab.starters.copy_drills import drill
from ecomlab.starters.demonstrations import Demonstration, slips_for, transcribe
from ecomlab.starters.induction_init import give_induction
from ecomlab.starters.sft import Checkpoint, batches_of, imitate
from ecomlab.task import Task
from ecomlab.train.rollouts import TRAINING_SEEDS

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

DRILL = "DRILL"
"""In an environment's place: exercises in copying."""
EASY, MIXED = (0,), (0, 0, 0, 1, 2, 3)
CART_LEVELS = (0, 1, 2, 3, 4)


@dataclass(frozen=True)
class Cell:
    """One kind of demonstration in a phase's mix."""

    env: str
    difficulties: tuple[int, ...] = MIXED
    weight: float = 1.0
    slips: bool = True
    """Whether the phase's mistakes are made in it."""


ALL = (
    Cell("CART", CART_LEVELS, 2.0),
    Cell("STATUS"),
    Cell("RETURN"),
    Cell("SUB"),
    Cell("POLICY"),
    Cell("PD"),
    Cell("BUNDLE"),
    Cell("JOURNEY", EASY, 0.7),
)
CORRECTED = tuple(replace(cell, slips=cell.env == "JOURNEY") for cell in ALL if cell.env != "CART")
"""The others; only in a journey does the customer see often enough what goes wrong, and say so."""


@dataclass(frozen=True)
class Phase:
    """A stretch of imitation: what is demonstrated, with how many mistakes, for how many tokens."""

    cells: tuple[Cell, ...]
    slip_rate: float
    """Mistakes per decision. In CART, of n things, divided by n squared: more decisions, each of which must go right,
    and a starter that never succeeds learns nothing."""
    tokens: int
    """Tokens to train on, counted with the customer's and the tools'."""
    episodes: int
    """Different demonstrations to draw them from."""
    imitate_slips: bool = True
    """Else mistakes are only seen, and what is learned is how they are put right once the customer says so."""


@dataclass(frozen=True)
class Recipe:
    """What makes a starter; recorded beside it."""

    phases: tuple[Phase, ...]
    size: tiny_qwen3.Size = field(default_factory=tiny_qwen3.Size)
    tokens_per_batch: int = 2_000
    muon_lr: float = 0.02
    adamw_lr: float = 4e-3
    cooldown: float = 0.3
    """The last share of the steps, over which both rates fall to zero."""
    corpus_episodes: int = 2_400
    """Conversations from which the byte pairs are learned."""
    longest: int = 700
    """Longer demonstrations are left out."""
    seed: int = 0

    @property
    def environments(self) -> list[str]:
        """What its policy can play."""
        return list(dict.fromkeys(c.env for phase in self.phases for c in phase.cells if c.env != DRILL))


DRILLS = Phase((Cell(DRILL, EASY),), 0.0, 1_000_000, 8_000)
"""First of all: copying, by itself."""
RECIPES: Mapping[str, Recipe] = {
    "novice": Recipe(
        (
            DRILLS,
            Phase((*ALL, Cell(DRILL, EASY, 2.0)), 0.0, 12_000_000, 24_000),
            Phase(ALL, 0.5, 3_000_000, 10_000),
        ),
    ),
    "base": Recipe(
        (
            DRILLS,
            Phase((*ALL, Cell(DRILL, EASY, 2.0)), 0.0, 25_000_000, 50_000),
            Phase((Cell("CART", (0, 1, 2, 3, 3, 4, 4), 5.0), *CORRECTED), 0.15, 20_000_000, 50_000, False),
        ),
        tiny_qwen3.Size(hidden=128, layers=3, heads=4, feed_forward=352),
    ),
}
"""First without mistakes, so that copying comes quickly; then with them: the novice takes them on, *base* learns what a
customer's correction asks of it, which clean demonstrations never show."""


def make_starter(
    shop: Shop,
    recipe: Recipe,
    tell: Callable[[str], None] = lambda _: None,
    work: Path | None = None,
    device: str = "cpu",
) -> Policy:
    """Make a starter from nothing, or from what a killed run left in `work`; it stays on `device`.

    Deterministic in (shop, recipe) for one build of torch on one kind of machine.
    """
    torch.set_num_threads(1)
    renderer = ShortRenderer(make_tokenizer(shop, recipe))
    tokenizer = renderer.tokenizer
    model = tiny_qwen3.build_model(
        len(tokenizer), tokenizer.pad_token_id, tokenizer.eos_token_id, recipe.seed, recipe.size
    )
    give_induction(model, recipe.seed)
    model.to(device)
    tell(f"{sum(p.numel() for p in model.parameters()):,} parameters, {len(tokenizer):,} tokens")
    batches: list[list[Demonstration]] = []
    for number, phase in enumerate(recipe.phases):
        started = time.perf_counter()
        played = drawn(work, recipe, number) or list(play_demonstrations(shop, renderer, recipe, number))
        keep(work, recipe, number, played)
        for env in dict.fromkeys(c.env for c in phase.cells):
            mine = [d for d in played if d.env == env]
            tell(
                f"phase {number}, {env}: {len(mine)} demonstrations, {np.mean([d.correct for d in mine]):.0%} correct, "
                f"{np.mean([len(d.ids) for d in mine]):.0f} tokens on average, {max(len(d.ids) for d in mine)} at most"
            )
        batches += list(batches_of(played, recipe.tokens_per_batch, phase.tokens, (recipe.seed, number)))
        tell(f"phase {number} drawn in {time.perf_counter() - started:.0f} s")
    kept = Checkpoint(work, digest(asdict(recipe), size=8)) if work else None
    imitate(model, batches, recipe.muon_lr, recipe.adamw_lr, recipe.cooldown, tell, kept)
    return Policy(model.eval(), renderer, made_for(tokenizer, shop, recipe.environments))


def make_tokenizer(shop: Shop, recipe: Recipe) -> "PreTrainedTokenizerFast":
    """The tokenizer of the shop's words, its byte pairs learned from conversations of every kind."""
    cells = [c for c in recipe.phases[-1].cells if c.env != DRILL]
    texts: list[str] = []
    for i in range(recipe.corpus_episodes):
        cell = cells[i % len(cells)]
        task = draw_task(shop, cell, "corpus", recipe.seed, i)
        texts += transcribe(task, shop, slips_for(0.2, "corpus", i)).pieces
    return tiny_qwen3.build_tokenizer(
        shop.catalog, tools_of(recipe.environments), texts, whole=whole_texts(shop.catalog)
    )


def play_demonstrations(
    shop: Shop, renderer: Renderer, recipe: Recipe, number: int, part: int = 0, parts: int = 1
) -> Iterator[Demonstration]:
    """The episodes of one phase, kinds, difficulties and mistakes drawn by name; too long ones are left out.

    Several processes may play a part each.
    """
    phase = recipe.phases[number]
    weights = np.array([c.weight for c in phase.cells])
    random = rng("cells", recipe.seed, number)
    for i, chosen in enumerate(
        random.choice(len(weights), size=phase.episodes, p=weights / weights.sum()).tolist()
    ):
        if i % parts != part:
            continue
        cell, key = phase.cells[chosen], ("demonstration", recipe.seed, number, i)
        if cell.env == DRILL:
            demonstration = Demonstration.of(drill(shop.catalog, rng("drill", *key)), renderer, True, DRILL)
        else:
            task = draw_task(shop, cell, *key)
            rate = slip_rate(phase, task) if cell.slips else 0.0
            played = transcribe(task, shop, slips_for(rate, *key))
            sound = None if phase.imitate_slips else played.sound
            demonstration = Demonstration.of(
                played.pieces, renderer, played.correct, cell.env, task.difficulty, sound
            )
        if len(demonstration.ids) <= recipe.longest:
            yield demonstration


def drawn(work: Path | None, recipe: Recipe, number: int) -> list[Demonstration]:
    """A phase's demonstrations as a killed run of the same recipe left them."""
    if work is None or not _file(work, recipe, number).exists():
        return []
    with np.load(_file(work, recipe, number)) as kept:
        ends = np.cumsum(kept["lengths"]).tolist()
        ids, mask = kept["ids"].tolist(), kept["mask"].tolist()
        rows = zip(kept["correct"].tolist(), kept["difficulty"].tolist(), kept["env"].tolist(), strict=True)
        return [
            Demonstration(ids[start:end], mask[start:end], *row)
            for start, end, row in zip([0, *ends[:-1]], ends, rows, strict=True)
        ]


def keep(work: Path | None, recipe: Recipe, number: int, played: Sequence[Demonstration]) -> None:
    """Leave a phase's demonstrations for `drawn`."""
    if work is None or _file(work, recipe, number).exists():
        return
    new = work / "new.npz"
    np.savez_compressed(
        new,
        ids=np.concatenate([np.array(d.ids, np.uint16) for d in played]),
        mask=np.concatenate([np.array(d.mask, np.uint8) for d in played]),
        lengths=np.array([len(d.ids) for d in played]),
        correct=np.array([d.correct for d in played]),
        difficulty=np.array([d.difficulty for d in played]),
        env=np.array([d.env for d in played]),
    )
    new.replace(_file(work, recipe, number))


def _file(work: Path, recipe: Recipe, number: int) -> Path:
    return work / f"phase-{number}-{digest(asdict(recipe), size=8)}.npz"


def slip_rate(phase: Phase, task: Task) -> float:
    """Mistakes per decision in this task's demonstration; a clerk decides more often than a shopper."""
    return phase.slip_rate / (len(task.truth["items"]) ** 2 if task.env == "CART" else 2)


def draw_task(shop: Shop, cell: Cell, *key: Any) -> Task:
    """A training task of one of a cell's difficulties, named by `key`."""
    random = rng("warm start", *key)
    d = cell.difficulties[int(random.integers(len(cell.difficulties)))]
    seed = int(random.integers(TRAINING_SEEDS.start, TRAINING_SEEDS.stop))
    return make_task(cell.env, difficulty=d, seed=seed, shop=shop)


def main() -> None:
    """Make a starter and write it, or play with one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make", help="make a starter")
    making.add_argument("name", choices=RECIPES)
    making.add_argument("--out", type=Path, help="folder of the starter; default: among the shipped ones")
    making.add_argument(
        "--work", type=Path, help="folder of log and checkpoint; default: experiments/runs/warmstart/NAME"
    )
    making.add_argument(
        "--only", help="demonstrate these environments alone, such as STATUS,RETURN (a trial)"
    )
    making.add_argument("--tokens", type=float, help="millions of tokens in all (a trial)")
    trying = commands.add_parser(
        "evaluate", help="held-out success, beside the best blind or positional player"
    )
    trying.add_argument("name")
    trying.add_argument("--episodes", type=int, default=200)
    trying.add_argument("--env", action="append", help="may be repeated; default: all eight")
    trying.add_argument(
        "--difficulty", type=int, action="append", help="may be repeated; default: 0, in CART 0 to 3"
    )
    trying.add_argument("--out", type=Path, help="JSON file for the rows")
    arguments = parser.parse_args()
    shop = load_shop()
    if arguments.command == "make":
        _make(arguments, shop)
    else:
        _evaluate(arguments, shop)


def _make(arguments: Any, shop: Shop) -> None:
    recipe = shrunk(RECIPES[arguments.name], arguments.only, arguments.tokens)
    work = arguments.work or Path("experiments/runs/warmstart") / arguments.name
    work.mkdir(parents=True, exist_ok=True)
    with (work / "log.txt").open("a", buffering=1) as log:

        def tell(line: str) -> None:
            print(line, flush=True)
            log.write(line + "\n")

        policy = make_starter(shop, recipe, tell, work)
        out = arguments.out or STARTERS / arguments.name
        save_policy(out, policy, recipe=asdict(recipe))
        tell(f"written to {out}")


def shrunk(recipe: Recipe, only: str | None, millions: float | None) -> Recipe:
    """A recipe for a trial: some environments alone, fewer tokens."""
    names = [ENVIRONMENTS[name].id for name in only.split(",")] if only else recipe.environments
    share = 1.0 if millions is None else 1e6 * millions / sum(phase.tokens for phase in recipe.phases)
    phases = tuple(
        replace(
            phase,
            cells=tuple(c for c in phase.cells if c.env in (DRILL, *names)),
            tokens=round(phase.tokens * share),
            episodes=max(100, round(phase.episodes * share)),
        )
        for phase in recipe.phases
    )
    return replace(recipe, phases=phases)


def _evaluate(arguments: Any, shop: Shop) -> None:
    from ecomlab.starters.compare import gauge

    names = [ENVIRONMENTS[name].id for name in arguments.env or ENVIRONMENTS]
    cells = [(n, d) for n in names for d in arguments.difficulty or ((0, 1, 2, 3) if n == "CART" else (0,))]
    rows = list(gauge(arguments.name, cells, arguments.episodes, shop, print))
    if arguments.out:
        arguments.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
