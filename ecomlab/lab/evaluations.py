"""`ecomlab.evaluate` and `ecomlab.frontier`; the command line is a thin layer over both."""

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from ecomlab.catalog import Shop, load_shop
from ecomlab.catalog.shop import loaded_shops
from ecomlab.customer.llm import Chat
from ecomlab.evaluation import frontier as search
from ecomlab.evaluation.evaluation import (
    EVALUATION,
    FRONTIER,
    Cells,
    Contestant,
    OnProgress,
    Rescored,
    header_of,
    rescore,
    run_evaluation,
)
from ecomlab.evaluation.frontier import Frontier
from ecomlab.evaluation.players import Playing, contestant_of, name_of
from ecomlab.evaluation.report import Report
from ecomlab.evaluation.summary import Ledger
from ecomlab.evaluation.tasks import Axes, check_axes, environments_named, held_out_seeds
from ecomlab.evaluation.transcripts import path_of, read, read_header
from ecomlab.files import write_json
from ecomlab.lab.paths import resolve, shown
from ecomlab.lab.provenance import commit, versions
from ecomlab.lab.shops import catalog_named, environments_on, record_of, recorded_shop
from ecomlab.reward import PUBLISHED, Weights
from ecomlab.suggest import whole

RUNS = "experiments/runs/eval"
"""Default parent folder of the command line's evaluations."""
RESCORED = "rescored.json"
Watching = Callable[[Path, Mapping[str, Any]], AbstractContextManager[OnProgress]]
"""Makes the callback `on_progress` of a run from its folder and its prices by role."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """Everything that determines an evaluation or a search for a frontier."""

    player: Any
    """Anything of `contestant_of`."""
    cells: Cells
    """The tasks; a frontier uses only the environments and the block."""
    playing: Playing = field(default_factory=Playing)
    shop: Shop | str | int | None = None
    """A shop, or a catalog: a folder or a number of generated products. Default: 20,000."""
    leave_out: bool = False
    """Leave out environments that the catalog cannot carry instead of rejecting them."""
    out: Path | None = None
    """Folder of the transcripts. None: a temporary one, so that a killed run cannot resume."""
    weights: Weights = PUBLISHED
    """Weights of the reward."""
    name: str = ""
    """The player's name in tables. Default: its own."""
    retry_unscored: bool = False


def evaluate(
    player: Any,
    env: str | Sequence[str] = "CART",
    difficulty: int | Iterable[int] = 0,
    tasks: int = 20,
    trials: int = 1,
    *,
    block: int = 0,
    axes: Axes | None = None,
    decoding: str | None = None,
    settings: Mapping[str, Any] | None = None,
    shop: Shop | str | int | None = None,
    customer: Chat | None = None,
    weights: Weights | Mapping[str, float] = PUBLISHED,
    name: str = "",
    out: str | Path | None = None,
    retry_unscored: bool = False,
    on_progress: OnProgress | None = None,
) -> Report:
    """Measure a player's success on held-out tasks, which training never draws; every player gets the same ones.

    `player` is a name, a path or an object, as `ecomlab.evaluation.players.contestant_of` lists them: "novice", a TOML
    file with an endpoint's settings, or any function of messages and tools that returns a message. `env` names
    environments or collections, `difficulty` one level or several, `tasks` the tasks of each environment and level,
    `trials` the episodes of each task, `block` another set of tasks. `axes` overrides axes of difficulty. `decoding`
    ("sampled" or "greedy") applies to local weights, `settings` are the player's other settings, `weights` those of
    the reward's parts, `name` is the player's in tables. With `out`, a folder, the same call resumes a killed
    evaluation. `on_progress` is called with each episode. Raises ValueError for unknown names.
    """
    config = Config(
        player=player,
        cells=cells_of(env, difficulty, tasks, trials, block, axes or {}),
        playing=Playing(decoding=decoding, settings=settings or {}, customer=customer),
        shop=shop,
        weights=weights if isinstance(weights, Weights) else Weights.of(weights),
        name=name,
        out=Path(out).expanduser().absolute() if out is not None else None,
        retry_unscored=retry_unscored,
    )
    return run(config, _watched(on_progress))


def frontier(
    player: Any,
    env: str | Sequence[str] = "CART",
    *,
    decoding: str | None = None,
    settings: Mapping[str, Any] | None = None,
    shop: Shop | str | int | None = None,
    out: str | Path | None = None,
    retry_unscored: bool = False,
    on_progress: OnProgress | None = None,
) -> Frontier:
    """Find the highest difficulty at which a player succeeds in 90% and in 50% of its episodes, by environment.

    Arguments are those of `evaluate`. At most 400 episodes an environment are played. Raises TranscriptError if more
    than 2% of an environment's episodes are unscored.
    """
    config = Config(
        player=player,
        cells=cells_of(env, 0, 1),
        playing=Playing(decoding=decoding, settings=settings or {}),
        shop=shop,
        out=Path(out).expanduser().absolute() if out is not None else None,
        retry_unscored=retry_unscored,
    )
    return find(config, _watched(on_progress))


def cells_of(
    env: str | Sequence[str],
    difficulty: int | Iterable[int],
    tasks: int,
    trials: int = 1,
    block: int = 0,
    axes: Axes | None = None,
) -> Cells:
    """Choose the tasks of an evaluation. Raises ValueError for unknown names, and for axes that move nothing."""
    envs = environments_named([env] if isinstance(env, str) else env)
    given = [difficulty] if not isinstance(difficulty, Iterable) else difficulty
    levels = [whole(level, "a difficulty") for level in given]
    if not envs or not levels or whole(tasks, "tasks") < 1 or whole(trials, "trials") < 1:
        raise ValueError("name at least one environment, one difficulty, one task and one trial")
    check_axes(axes or {}, envs)
    held_out_seeds(block, tasks)
    return Cells(tuple(envs), tuple(dict.fromkeys(levels)), tasks, block, trials, dict(axes or {}))


def _watched(on_progress: OnProgress | None) -> Watching:
    return lambda folder, prices: nullcontext(on_progress or (lambda _: None))


def run(config: Config, watching: Watching, say: Callable[[str], None] = lambda _: None) -> Report:
    """Run or resume an evaluation. `say` is called with each warning."""
    with ExitStack() as stack:
        made = _make(config, EVALUATION, stack, say)
        cells = replace(config.cells, envs=made.envs)
        with watching(made.folder, made.prices) as on_progress:
            run_evaluation(
                made.contestant, cells, made.shop, made.folder, made.header(EVALUATION, config),
                software(made.contestant), weights=config.weights, retry_unscored=config.retry_unscored,
                on_progress=on_progress,
            )  # fmt: skip
        report = Report.read(made.folder, made.prices)
        return replace(report, folder=made.folder if config.out else None)


def find(config: Config, watching: Watching, say: Callable[[str], None] = lambda _: None) -> Frontier:
    """Search a frontier, or resume the search."""
    with ExitStack() as stack:
        made = _make(config, FRONTIER, stack, say)
        with watching(made.folder, made.prices) as on_progress:
            found = search.find_frontier(
                made.contestant, made.envs, made.shop, made.folder, made.header(FRONTIER, config),
                software(made.contestant), block=config.cells.block, retry_unscored=config.retry_unscored,
                on_progress=on_progress,
            )  # fmt: skip
        ledger = Ledger(made.prices, read(made.folder, every=True)).to_json()
        return Frontier(read_header(made.folder), found, ledger, made.folder if config.out else None)


@dataclass(frozen=True)
class _Made:
    """A player that is ready to play, with its shop and folder."""

    name: str
    contestant: Contestant
    shop: Shop
    catalog: Mapping[str, Any]
    """Source of the shop."""
    folder: Path
    envs: tuple[str, ...]

    def header(self, kind: str, config: Config) -> dict[str, Any]:
        axes, weights = config.cells.axes, config.weights
        return header_of(
            kind, self.name, self.contestant.identity, self.envs, axes, self.shop, self.catalog, weights
        )

    @property
    def prices(self) -> dict[str, Any]:
        return prices_of(self.contestant)


def _make(config: Config, kind: str, stack: ExitStack, say: Callable[[str], None]) -> _Made:
    shop, catalog = _shop_of(config.shop)
    envs, told = environments_on(shop, config.cells.envs, config.leave_out)
    for line in (*check_axes(config.cells.axes, envs), *told):
        say(line)
    contestant = contestant_of(config.player, shop, envs, config.playing)
    folder = config.out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ecomlab-eval-")))
    name = config.name or name_of(config.player, contestant)
    return _Made(name, contestant, shop, catalog, folder, tuple(envs))


def _shop_of(given: Shop | str | int | None) -> tuple[Shop, dict[str, Any]]:
    """Load a shop, and describe its source, as far as it is known for a given shop."""
    if not isinstance(given, Shop):
        place = catalog_named(given)
        return load_shop(place), record_of(place)
    known = (record_of(*origin) for origin, shop in loaded_shops() if shop is given)
    return given, next(known, {})


def prices_of(contestant: Contestant) -> dict[str, Any]:
    """Return the prices by role from the settings of the player's and the customer's endpoint."""
    asked = {"agent": contestant, "customer": getattr(contestant, "customer", None)}
    prices = {role: getattr(getattr(one, "settings", None), "prices", None) for role, one in asked.items()}
    return {role: price for role, price in prices.items() if price}


def folder_of(player: str, kind: str, out: Path | None) -> Path:
    """Return the folder of a command's run: the given one, or one named after the player."""
    parts = Path(player.removesuffix(".toml")).parts[-2:]
    name = "-".join(part for part in parts if part not in ("/", "."))
    default = name.replace(" ", "-").replace(":", "-") + ("" if kind == EVALUATION else f"-{kind}")
    return resolve(out or f"{RUNS}/{default}")


def software(contestant: Contestant | None = None) -> dict[str, Any]:
    """Describe the software (commit and libraries) and the device of a player's weights. A run may resume with
    others."""
    device = getattr(contestant, "device", None)
    return {"commit": commit(), "libraries": versions(), **({"device": device} if device else {})}


def score_again(folder: Path, console: Console, catalog: str | None = None) -> int:
    """Score an evaluation's transcripts again, print the changes and write them to rescored.json; return the number of
    changed scores. `catalog` is the recorded catalog's folder now, if it has moved."""
    shop = recorded_shop(read_header(folder)["conditions"]["catalog"], catalog)
    episodes, changed = 0, []
    for found in rescore(folder, shop):
        episodes += 1
        if found is not None:
            changed.append(found)
            console.print(escape(_worded(found)))
    file = path_of(folder).parent / RESCORED
    rows = [{"job": vars(one.job), "was": one.was, "now": one.now} for one in changed]
    write_json(file, {"episodes": episodes, "changed": rows, "made_with": software()})
    console.print(
        f"{episodes} episodes scored again, {len(changed)} changed; written to {shown(file)}", soft_wrap=True
    )
    return len(changed)


def _worded(found: Rescored) -> str:
    job = found.job
    now = found.now.get("differs") or f"{found.now['value']:.3f}, {found.now['why']}"
    return (
        f"{job.env} d = {job.d}, seed {job.seed}, trial {job.trial}: was {found.was['value']:.3f}, now {now}"
    )
