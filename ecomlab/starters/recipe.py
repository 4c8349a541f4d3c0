"""Recipes of the starters: a tokenizer made from the shop's words, then imitation of reference players.

    python -m ecomlab.starters.recipe make novice           # into ecomlab/starters/weights/novice; ten minutes
    python -m ecomlab.starters.recipe make singles
    python -m ecomlab.starters.recipe make base

`make` writes its log and checkpoints into `--work`; the same command resumes where a killed one stopped. The same
recipe gives the same result on the same machine.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import torch
import typer
from pydantic import Field, NonNegativeInt, PositiveInt
from typer import Option

from ecomlab.catalog import Shop, load_shop
from ecomlab.difficulty import COMPOSED
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import make_task
from ecomlab.models.policy import Policy
from ecomlab.models.renderer import Renderer
from ecomlab.seeding import TRAINING_SEEDS, digest, rng
from ecomlab.settings import Settings
from ecomlab.starters import tiny_qwen3
from ecomlab.starters.added_tokens import tools_of, whole_texts
from ecomlab.starters.compact_renderer import ShortRenderer
from ecomlab.starters.copy_drills import copy_drill
from ecomlab.starters.demonstrations import Demonstration, slips_for, transcribe
from ecomlab.starters.induction_init import give_induction
from ecomlab.starters.policy import STARTERS, made_for, save_policy
from ecomlab.starters.sft import Checkpoint, batches_of, imitate
from ecomlab.suggest import unknown
from ecomlab.task import Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

COPY_DRILL = "DRILL"
"""Value of `Cell.env` for copy drills."""
EASY, MIXED = (0,), (0, 0, 0, 1, 2, 3)


class Cell(Settings):
    """One kind of demonstration in a phase's mix."""

    env: str
    difficulties: tuple[NonNegativeInt, ...] = MIXED
    weight: Annotated[float, Field(gt=0)] = 1.0
    slips: bool = True
    """True if its demonstrations contain the phase's mistakes."""
    slip_rate: Annotated[float, Field(ge=0, le=1)] | None = None
    """Mistakes per decision, whatever the task's size; None: the phase's, divided as that says."""
    axes: Mapping[str, float] = Field(default_factory=dict)
    """Overridden axes of its tasks."""


ALL = (
    Cell(env="CART", difficulties=(0, 1, 2, 3, 4), weight=2.0),
    *(Cell(env=env) for env in ("STATUS", "RETURN", "SUB", "POLICY", "PD", "BUNDLE")),
    Cell(env="JOURNEY", difficulties=EASY, weight=0.7),
)
CORRECTED = tuple(cell.replace(slips=cell.env == "JOURNEY") for cell in ALL if cell.env != "CART")
"""All but CART, with mistakes only in journeys: elsewhere the customer sees and corrects too few of them."""


class Phase(Settings):
    """A phase of imitation: the mix of demonstrations, their rate of mistakes, and the tokens to train on."""

    cells: tuple[Cell, ...]
    slip_rate: Annotated[float, Field(ge=0, le=1)]
    """Mistakes per decision, divided by 2, in CART by the number of items squared, in SUB by 4: all of their decisions
    must be right, and a starter that never succeeds learns nothing."""
    tokens: NonNegativeInt
    """Tokens to train on, including those of the customer and the tools."""
    episodes: PositiveInt
    """Number of different demonstrations."""
    imitate_slips: bool = True
    """False if mistakes are only context, from which to learn how they are corrected once the customer objects."""


class Recipe(Settings):
    """Everything that determines a starter; saved with it."""

    phases: tuple[Phase, ...]
    size: tiny_qwen3.Size = tiny_qwen3.Size()
    tokens_per_batch: PositiveInt = 2_000
    muon_lr: Annotated[float, Field(gt=0)] = 0.02
    adamw_lr: Annotated[float, Field(gt=0)] = 4e-3
    decay: Annotated[float, Field(ge=0)] = 0.0
    """Weight decay of the matrices, times the learning rate a step. Without it their size, and so what a learning rate
    means to them later, depends on how long they were trained."""
    cooldown: Annotated[float, Field(gt=0, le=1)] = 0.3
    """Share of the steps, at the end, over which both learning rates fall to zero."""
    corpus_episodes: PositiveInt = 2_400
    """Number of conversations from which the byte pairs are learned."""
    longest: PositiveInt = 700
    """Maximum number of tokens of a demonstration; longer ones are left out."""
    seed: NonNegativeInt = 0

    @property
    def environments(self) -> list[str]:
        """Environments that its policy can play."""
        return list(dict.fromkeys(c.env for phase in self.phases for c in phase.cells if c.env != COPY_DRILL))


COPYING = Cell(env=COPY_DRILL, difficulties=EASY)
COPY_DRILLS = Phase(cells=(COPYING,), slip_rate=0.0, tokens=1_000_000, episodes=8_000)
"""The first phase: copying alone."""
MIX = (*ALL, COPYING.replace(weight=2.0))
BASE_CART = Cell(env="CART", difficulties=(0, 1, 2, 3, 3, 4, 4), weight=5.0)
LOOKED_UP = {"CART": 3.0, "STATUS": 3.0, "RETURN": 2.0, "JOURNEY": 2.0}
"""Weights of *base*'s last phase: what it got wrong was the id among many lines of an order that it had looked up."""
OTHERS = tuple(
    Cell(env=env, difficulties=EASY, weight=0.8, slips=env != "JOURNEY")
    for env in ENVIRONMENTS
    if env != "CART"
)
"""No mistakes in journeys: all their jobs must be right, and a starter that never succeeds learns nothing."""


def _carts(
    weight: float, difficulties: tuple[int, ...] = EASY, slip_rate: float | None = None, **axes: float
) -> Cell:
    """Make a cell of carts on the axes on which a level says how many steps they compose."""
    chosen = {f"cart.{name}": value for name, value in axes.items()}
    return Cell(
        env="CART", difficulties=difficulties, weight=weight, slip_rate=slip_rate, axes={**COMPOSED, **chosen}
    )


SINGLES = (
    _carts(1.3),
    *(_carts(1.3, items=count) for count in (2, 3, 4, 5)),
    _carts(1.7, p_option=1),
    _carts(1.2, p_quantity=1),
)
"""Each step of a cart alone."""
PAIRS = (
    _carts(0.4, p_option=1, p_quantity=1),
    _carts(0.4, items=2, p_option=0.5),
    _carts(0.4, items=2, p_quantity=0.5),
)
"""One cart in ten holds two or three steps: a trial without any solved one in a hundred that holds two, so that no
schedule had where to begin."""


def _composed(slip_rate: float) -> tuple[Cell, ...]:
    return (
        _carts(6.0, tuple(range(7)), slip_rate),
        Cell(env="CART", difficulties=(0, 1, 2, 3), weight=1.5, slip_rate=slip_rate),
        *(cell.replace(weight=1.1) for cell in OTHERS),
    )


RECIPES: Mapping[str, Recipe] = {
    "singles": Recipe(
        phases=(
            COPY_DRILLS,
            Phase(
                cells=(*SINGLES, *PAIRS, *OTHERS, COPYING), slip_rate=0.0, tokens=11_000_000, episodes=30_000
            ),
        ),
        decay=0.02,
    ),
    "novice": Recipe(
        phases=(
            COPY_DRILLS,
            Phase(cells=(*_composed(0.0), COPYING), slip_rate=0.0, tokens=9_000_000, episodes=10_000),
            Phase(cells=_composed(0.1), slip_rate=0.3, tokens=3_000_000, episodes=3_500),
        ),
        decay=0.02,
    ),
    "base": Recipe(
        phases=(
            COPY_DRILLS,
            Phase(cells=MIX, slip_rate=0.0, tokens=4_000_000, episodes=7_000),
            Phase(
                cells=tuple(c.replace(weight=LOOKED_UP.get(c.env, 1.0)) for c in (BASE_CART, *CORRECTED)),
                slip_rate=0.15,
                tokens=2_500_000,
                episodes=5_000,
                imitate_slips=False,
            ),
        ),
        size=tiny_qwen3.Size(hidden=128, layers=3, heads=4, feed_forward=352),
    ),
}
"""*singles* knows the steps of a cart one at a time. *novice* composes them and makes a mistake in a tenth of its
decisions, so that success falls smoothly with their number. *base* learns to act on a customer's corrections, which
clean demonstrations never show."""


def make_starter(
    shop: Shop,
    recipe: Recipe,
    on_progress: Callable[[str], None] = lambda _: None,
    work: Path | None = None,
    device: str = "cpu",
) -> Policy:
    """Make a starter from scratch, or from what a killed run left in `work`; it stays on `device`.

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
    on_progress(f"{sum(p.numel() for p in model.parameters()):,} parameters, {len(tokenizer):,} tokens")
    policy = Policy(model, renderer, made_for(tokenizer, shop, recipe.environments))
    _train(policy, shop, recipe, on_progress, work)
    for weights in model.parameters():  # as they are saved
        weights.data = weights.data.half().float()
    model.eval()
    return policy


def _train(
    policy: Policy, shop: Shop, recipe: Recipe, on_progress: Callable[[str], None], work: Path | None
) -> None:
    """Draw the demonstrations of a recipe's phases and train on them."""
    batches: list[list[Demonstration]] = []
    for number, phase in enumerate(recipe.phases):
        started = time.perf_counter()
        played = drawn(work, recipe, number) or list(
            play_demonstrations(shop, policy.renderer, recipe, number)
        )
        keep(work, recipe, number, played)
        for env in dict.fromkeys(c.env for c in phase.cells):
            mine = [d for d in played if d.env == env]
            on_progress(
                f"phase {number}, {env}: {len(mine)} demonstrations, {np.mean([d.correct for d in mine]):.0%} correct, "
                f"{np.mean([len(d.ids) for d in mine]):.0f} tokens on average, {max(len(d.ids) for d in mine)} at most"
            )
        batches += list(batches_of(played, recipe.tokens_per_batch, phase.tokens, (recipe.seed, number)))
        on_progress(f"phase {number} drawn in {time.perf_counter() - started:.0f} s")
    kept = Checkpoint(work, digest(recipe.to_json(), size=8)) if work else None
    imitate(
        policy.model, batches, recipe.muon_lr, recipe.adamw_lr, recipe.cooldown, on_progress, kept, decay=recipe.decay
    )  # fmt: skip


def make_tokenizer(shop: Shop, recipe: Recipe) -> "PreTrainedTokenizerFast":
    """Make the tokenizer from the shop's words, with byte pairs learned from conversations of every environment."""
    cells = [c for c in recipe.phases[-1].cells if c.env != COPY_DRILL]
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
    """Play the demonstrations of a phase, drawn from named randomness, without those that are too long.

    Several processes may play one of `parts` each.
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
        if cell.env == COPY_DRILL:
            demonstration = Demonstration.of(
                copy_drill(shop.catalog, rng("drill", *key)), renderer, True, COPY_DRILL
            )
        else:
            task = draw_task(shop, cell, *key)
            rate = slip_rate(phase, cell, task) if cell.slips else 0.0
            played = transcribe(task, shop, slips_for(rate, *key))
            sound = None if phase.imitate_slips else played.sound
            demonstration = Demonstration.of(
                played.pieces, renderer, played.correct, cell.env, task.difficulty, sound
            )
        if len(demonstration.ids) <= recipe.longest:
            yield demonstration


def drawn(work: Path | None, recipe: Recipe, number: int) -> list[Demonstration]:
    """Read the demonstrations of a phase that a killed run of the same recipe left."""
    if work is None or not _file(work, recipe, number).exists():
        return []
    return [Demonstration(**kept) for kept in torch.load(_file(work, recipe, number), weights_only=True)]


def keep(work: Path | None, recipe: Recipe, number: int, played: Sequence[Demonstration]) -> None:
    """Save a phase's demonstrations for `drawn`."""
    if work is None or _file(work, recipe, number).exists():
        return
    new = work / "new.pt"
    torch.save([vars(demonstration) for demonstration in played], new)
    new.replace(_file(work, recipe, number))


def _file(work: Path, recipe: Recipe, number: int) -> Path:
    return work / f"phase-{number}-{digest(recipe.to_json(), size=8)}.pt"


def slip_rate(phase: Phase, cell: Cell, task: Task) -> float:
    """Compute the mistakes per decision in a task's demonstration."""
    if cell.slip_rate is not None:
        return cell.slip_rate
    if task.env == "CART":
        return phase.slip_rate / len(task.goal.items) ** 2
    return phase.slip_rate / (4 if task.env == "SUB" else 2)


def draw_task(shop: Shop, cell: Cell, *key: Any) -> Task:
    """Draw a training task at one of a cell's difficulties, named by `key`."""
    random = rng("warm start", *key)
    d = cell.difficulties[int(random.integers(len(cell.difficulties)))]
    seed = int(random.integers(TRAINING_SEEDS.start, TRAINING_SEEDS.stop))
    return make_task(cell.env, difficulty=d, seed=seed, shop=shop, overrides=cell.axes)


def shrunk(recipe: Recipe, only: str | None, millions: float | None) -> Recipe:
    """Shrink a recipe for a trial: fewer environments, fewer tokens."""
    names = [ENVIRONMENTS[name].id for name in only.split(",")] if only else recipe.environments
    share = 1.0 if millions is None else 1e6 * millions / sum(phase.tokens for phase in recipe.phases)
    return recipe.replace(
        phases=tuple(
            phase.replace(
                cells=tuple(c for c in phase.cells if c.env in (COPY_DRILL, *names)),
                tokens=round(phase.tokens * share),
                episodes=max(100, round(phase.episodes * share)),
            )
            for phase in recipe.phases
        )
    )


app = typer.Typer(help=__doc__, rich_markup_mode=None, add_completion=False)


@app.callback()
def main() -> None:
    """Keep `make` a command of its own."""


@app.command("make")
def make_command(
    name: str,
    out: Annotated[
        Path | None, Option(help="Folder for the starter; default: with the shipped ones.")
    ] = None,
    work: Annotated[
        Path | None, Option(help="Folder for log and checkpoints; default: experiments/runs/warmstart/NAME.")
    ] = None,
    only: Annotated[str | None, Option(help="Environments of a trial, such as STATUS,RETURN.")] = None,
    tokens: Annotated[float | None, Option(help="Millions of tokens of a trial.")] = None,
) -> None:
    """Make a starter."""
    if name not in RECIPES:
        raise typer.BadParameter(unknown("recipe", name, RECIPES))
    recipe = shrunk(RECIPES[name], only, tokens)
    work = work or Path("experiments/runs/warmstart") / name
    work.mkdir(parents=True, exist_ok=True)
    with (work / "log.txt").open("a", buffering=1) as log:

        def on_progress(line: str) -> None:
            print(line, flush=True)
            log.write(line + "\n")

        policy = make_starter(load_shop(), recipe, on_progress, work)
        save_policy(out or STARTERS.folder / name, policy, recipe=recipe.to_json())
        on_progress(f"written to {out or STARTERS.folder / name}")


if __name__ == "__main__":
    app()
