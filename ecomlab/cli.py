"""The command line: play, certify, bench, train, eval, sweep, ablation, figures."""

import json
import os
import platform
import tomllib
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

# Before any library is imported that would read them: no telemetry, no network, one thread a process.
for _name, _value in {
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
}.items():
    os.environ.setdefault(_name, _value)

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ecomlab import __version__

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="ecomlab: shopping agents trained with reinforcement learning from verifiable rewards.\n\n"
    "Example: [cyan]ecomlab play --env CART --difficulty 4[/cyan]",
)
console = Console(highlight=False)

EnvOption = Annotated[
    list[str] | None, typer.Option("--env", help="Environment id; may be repeated. Default: all.")
]


def _version(value: bool) -> None:
    if value:
        console.print(f"ecomlab {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of the command itself."""


@app.command()
def play(
    env: Annotated[str, typer.Option(help="Environment id.")] = "CART",
    difficulty: Annotated[int, typer.Option(help="Level, from 0 up.")] = 4,
    seed: Annotated[int, typer.Option(help="Seed of the task.")] = 0,
    size: Annotated[int, typer.Option(help="Products in the generated catalog.")] = 20_000,
) -> None:
    """Watch the fair player play one episode.

    Example: [cyan]ecomlab play --env CART --difficulty 8 --seed 3[/cyan]
    """
    from ecomlab import ENVIRONMENTS, load_shop, make_task
    from ecomlab.episode.play import play as play_episode

    shop = load_shop(size)
    trajectory = play_episode(
        ENVIRONMENTS[env].fair_player(shop), make_task(env, difficulty, seed, shop), shop
    )
    for message in trajectory.messages[1:]:
        text = message["content"] if len(message["content"]) < 400 else message["content"][:400] + " …"
        calls = [
            f"{c['function']['name']}({c['function']['arguments']})" for c in message.get("tool_calls", [])
        ]
        for line in [text] * bool(text) + calls:
            console.print(f"[bold]{message['role']:>9}[/bold]  {escape(line)}")
    score = trajectory.score
    console.print(
        f"\nreward {score.value:.3f}, {'correct' if score.correct else 'not correct'}: {escape(score.why)}"
    )
    console.print("  ".join(f"{name} {part:.3f}" for name, part in score.parts.items()))


@app.command()
def certify(
    env: EnvOption = None,
    difficulty: Annotated[str, typer.Option(help="Levels A:B, both included, or one level.")] = "0:12",
    seeds: Annotated[int, typer.Option(min=1, help="Tasks a level for solver, fair and noisy player.")] = 500,
    others: Annotated[int, typer.Option(min=1, help="Tasks a level for everybody else.")] = 100,
    full: Annotated[
        bool, typer.Option("--full", help="As many for everybody as for solver and fair.")
    ] = False,
    leaks: Annotated[int, typer.Option(min=0, help="Tasks a level for the search for leaks; 0: none.")] = 120,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes. Default: the machine's cores.")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the certificate here.")] = None,
) -> None:
    """Measure the laws on solvability, fairness, gaming, difficulty and leaks; exit code 1 when one is broken.

    Example: [cyan]ecomlab certify --env CART --difficulty 0:12 --seeds 500 --json certificate.json[/cyan]
    """
    from ecomlab.audit import certificate as module
    from ecomlab.catalog import load_shop

    envs, levels = _environments(env), _levels(difficulty)
    if json_file is not None:
        _writable(json_file)
    rows = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("certifying", total=len(envs) * len(levels))
        kept = json_file.with_suffix(".kept.jsonl") if json_file else None
        for row in module.certify(
            envs, levels, seeds, seeds if full else min(others, seeds), workers=workers, kept=kept
        ):
            rows.append(row)
            progress.update(bar, advance=1, description=f"{row.env} d = {row.d} done")
        found = []
        if leaks:
            bar = progress.add_task("looking for leaks", total=None)
            found = module.find_leaks(envs, leaks, workers)
    rows.sort(key=lambda row: (envs.index(row.env), row.d))
    broken = module.broken_laws(rows)
    broken += [
        f"law 8: {leak.kind} tells what is wanted in {leak.env}: AUC {leak.auc:.2f}, 99% above {leak.low:.2f}"
        for leak in found
        if leak.leaks
    ]
    # The best of those that ignore the customer, and of those that pick by place.
    table = Table(box=None, pad_edge=False)
    for heading in ("env", "d", "solver", "fair", "noisy", "naive", "blind", "posit.", "chance", "turns"):
        table.add_column(heading, no_wrap=True, justify="left" if heading == "env" else "right")
    for row in rows:
        shares = (row.solver, row.fair, row.noisy, row.naive)
        worst = [max(group.values(), default=0.0) for group in (row.blind, row.positional)]
        table.add_row(
            row.env, str(row.d), *(f"{s:.3f}" for s in (*shares, *worst, row.chance)), f"{row.turns:.1f}"
        )
    console.print(table)
    if found:
        told = Table("env", "tool: field", "lists", "AUC", "99%")
        for leak in found:
            told.add_row(
                leak.env, leak.kind, str(leak.lists), f"{leak.auc:.3f}", f"{leak.low:.3f} to {leak.high:.3f}"
            )
        console.print(told)
    misses = [f"{row.env} d = {row.d}: {miss}" for row in rows for miss in row.misses]
    for line in misses:
        console.print(escape(line))
    if json_file is not None:
        module.write(json_file, rows, broken, load_shop(), found)
        console.print(f"written to {json_file}")
    for line in broken:
        console.print(f"[red]broken[/red]  {escape(line)}")
    console.print(f"{len(broken)} broken" if broken else "No law is broken.")
    raise typer.Exit(1 if broken else 0)


bench_app = typer.Typer(
    no_args_is_help=True, help="Benchmarks.\n\nExample: [cyan]ecomlab bench env --json bench.json[/cyan]"
)
app.add_typer(bench_app, name="bench")


@bench_app.command("env")
def bench_env(
    env: EnvOption = None,
    size: Annotated[
        list[int] | None, typer.Option(help="Products; may be repeated. Default: 1,000 and 20,000.")
    ] = None,
    difficulty: Annotated[
        list[int] | None, typer.Option(help="Levels; may be repeated. Default: 0, 4, 12.")
    ] = None,
    episodes: Annotated[int, typer.Option(min=1, help="Episodes a repeat; there are five.")] = 100,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the timings here.")] = None,
) -> None:
    """Time reset, verify and the fair player's whole episode, with and without search, on one thread.

    Example: [cyan]ecomlab bench env --env CART --json experiments/bench/env.json[/cyan]
    """
    from ecomlab.audit import benchmark as module

    if json_file is not None:
        _writable(json_file)
    table = Table(
        "env", "products", "d", "reset ms", "verify ms", "episode ms", "without search ms", "episodes/s"
    )

    def report(t: module.Timing) -> None:
        spreads = (t.reset_ms, t.verify_ms, t.episode_ms, t.without_search_ms)
        cells = [f"{middle:.2f} ({low:.2f}-{high:.2f})" for low, middle, high in spreads]
        table.add_row(t.env, f"{t.products:,}", str(t.d), *cells, f"{t.episodes_per_second:,.0f}")

    timings = module.bench(
        _environments(env), size or [1_000, 20_000], difficulty or [0, 4, 12], episodes, report
    )
    console.print(table)
    console.print("median (lowest-highest) of five repeats; episodes/s without search, one core")
    if json_file is not None:
        machine = {"machine": platform.machine(), "python": platform.python_version(), "ecomlab": __version__}
        document = {**machine, "timings": [t.to_json() for t in timings]}
        json_file.write_text(json.dumps(document, indent=1) + "\n")
        console.print(f"written to {json_file}")


@app.command()
def train(
    config: Annotated[Path, typer.Option(help="A TOML file with the run's settings.")],
    change: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE in TOML, over the file's; may be repeated.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print the plan, the memory it needs and the launch line; train nothing."
        ),
    ] = False,
) -> None:
    """Train one policy, or go on where the run stopped. For several GPUs: accelerate launch -m ecomlab train ...

    Example: [cyan]ecomlab train --config experiments/laptop/train.toml --set seed=1 --dry-run[/cyan]
    """
    from ecomlab.train.config import from_toml

    settings = from_toml(config, dict(_setting(text) for text in change or []))
    if dry_run:
        from ecomlab.train.dry_run import show_plan

        show_plan(settings, config, console)
        return
    from ecomlab.lab.live import watch
    from ecomlab.lab.paths import resolve
    from ecomlab.train.loop import RunError
    from ecomlab.train.loop import train as run

    settings = settings.replace(out=str(resolve(settings.out)))
    try:
        folder = run(settings, watch(settings.out, live=False))
    except RunError as error:
        console.print(f"[red]error[/red]  {escape(str(error))}")
        raise typer.Exit(1) from None
    if os.environ.get("RANK", "0") == "0":
        console.print(f"finished: {folder}")


@app.command("eval")
def evaluate(
    policy: Annotated[
        str, typer.Argument(help="A starter's name, a saved policy, or a checkpoint's folder.")
    ],
    env: EnvOption = None,
    difficulty: Annotated[str, typer.Option(help="Levels A:B, both included, or one level.")] = "0:4",
    episodes: Annotated[int, typer.Option(min=1, help="Held-out episodes a level.")] = 200,
    decoding: Annotated[str, typer.Option(help="sampled (temperature 1) or greedy.")] = "sampled",
    size: Annotated[int, typer.Option(help="Products in the generated catalog.")] = 20_000,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the rows here.")] = None,
) -> None:
    """Held-out success of a policy at fixed difficulties, on tasks that no training draws.

    Without --env, in the environments that it was made for.

    Example: [cyan]ecomlab eval novice --env CART --difficulty 0:4 --episodes 200[/cyan]
    """
    from scipy.stats import binomtest

    import ecomlab.starters  # noqa: F401  without an installed entry point this registers them
    from ecomlab import load_shop
    from ecomlab.evaluate.heldout import evaluate as run
    from ecomlab.models.load import load_policy, made_for_environments

    envs, levels = _environments(env or made_for_environments(policy)), _levels(difficulty)
    if json_file is not None:
        _writable(json_file)
    shop = load_shop(size)
    loaded = load_policy(policy, shop, envs)
    rows = [row for name in envs for row in run(loaded, shop, name, levels, episodes, decoding)]
    table = Table("env", "d", f"success, {decoding}", "95% of it", "reward", "unscored")
    for row in rows:
        scored = row["episodes"] - row["unscored"]
        spread = binomtest(round(row["success"] * scored), scored).proportion_ci() if scored else None
        within = f"{spread.low:.3f}-{spread.high:.3f}" if spread else ""
        table.add_row(
            row["env"],
            str(row["d"]),
            f"{row['success']:.3f}",
            within,
            f"{row['reward']:.3f}",
            str(row["unscored"]),
        )
    console.print(table)
    console.print(
        f"{episodes} episodes a level; the interval is the binomial one, of this policy on such tasks"
    )
    if json_file is not None:
        json_file.write_text(json.dumps({"policy": policy, "rows": rows}, indent=1) + "\n")
        console.print(f"written to {json_file}")


class ClusterKind(StrEnum):
    slurm = "slurm"
    local = "local"


@app.command("sweep")
def sweep_command(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The sweep's file.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the grid and its cost; start and write nothing.")
    ] = False,
    cluster: Annotated[
        ClusterKind | None,
        typer.Option(help="Submit what is left and return: a SLURM array, or local jobs to try that."),
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Runs at a time. Default: what the file says.")
    ] = None,
) -> None:
    """Show what of a sweep is done, left and what it costs; then run what is left and gather the tables.

    Example: [cyan]ecomlab sweep experiments/paper/sweep.toml --dry-run[/cyan]
    """
    from ecomlab.lab.batch import run_sweep

    raise typer.Exit(run_sweep(file, dry_run=dry_run, on=cluster or "", processes=processes))


@app.command()
def ablation(
    sweep: Annotated[Path, typer.Argument(help="The sweep's TOML file.")] = Path(
        "experiments/quick/sweep.toml"
    ),
    processes: Annotated[
        int | None, typer.Option(min=1, help="Runs at a time. Default: what the sweep says.")
    ] = None,
    figures: Annotated[Path, typer.Option(help="Folder for the figures.")] = Path("figures"),
) -> None:
    """Run what is left of an ablation, gather its tables, draw its figures.

    Example: [cyan]ecomlab ablation experiments/quick/sweep.toml[/cyan]
    """
    from ecomlab.lab.ablation import run_ablation

    raise typer.Exit(run_ablation(sweep, processes=processes, figures=figures))


@app.command()
def figures(
    sweep: Annotated[
        Path | None, typer.Argument(help="One sweep's TOML file. Default: every figure.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the figures.")] = Path("figures"),
) -> None:
    """Redraw figures from committed tables; nothing is trained.

    Example: [cyan]ecomlab figures experiments/quick/sweep.toml[/cyan]
    """
    from ecomlab.lab.ablation import draw_figures

    raise typer.Exit(draw_figures(sweep, figures=out))


def _environments(names: list[str] | None) -> list[str]:
    from ecomlab import ENVIRONMENTS

    return [ENVIRONMENTS[name].id for name in names] if names else list(ENVIRONMENTS)


def _setting(text: str) -> tuple[str, Any]:
    """NAME=VALUE, the value as TOML has it; a bare word is a string."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise typer.BadParameter(f"--set takes NAME=VALUE, such as seed=1, not {text!r}")
    try:
        return name.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name.strip(), value.strip()


def _levels(text: str) -> list[int]:
    first, _, last = text.partition(":")
    try:
        low, high = int(first), int(last or first)
    except ValueError:
        raise typer.BadParameter(f"difficulty is A:B or one level, such as 0:12, not {text!r}") from None
    if not 0 <= low <= high:
        raise typer.BadParameter(f"difficulty runs from a lower to a higher level, from 0 up, not {text!r}")
    return list(range(low, high + 1))


def _writable(path: Path) -> None:
    """Complain before anything runs, not after."""
    folder = path.resolve().parent
    if not folder.is_dir():
        raise typer.BadParameter(f"there is no folder {folder}; make it first")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise typer.BadParameter(f"{path} cannot be written; choose another place")


EXTRAS = {
    "faiss": "cpu",
    "torchao": "gpu",
    "vllm": "vllm",
    "submitit": "cluster",
    "pytest": "dev",
}


def main() -> None:
    """Entry point: errors that name the fact are printed as they are; bugs keep their traceback."""
    from ecomlab.envs.registry import UnknownEnvironmentError
    from ecomlab.task import TaskError

    complain = Console(stderr=True, highlight=False, soft_wrap=True)  # commands are copied whole
    try:
        app()
    except (UnknownEnvironmentError, TaskError, ValueError, OSError) as error:
        complain.print(f"[red]error[/red]  {escape(str(error))}")
        raise SystemExit(2) from None
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        extra = EXTRAS.get(package, "cpu,dev")
        install = escape(f"pip install -c constraints.txt -e '.[{extra}]'")
        complain.print(f"[red]error[/red]  {package!r} is not installed; {install}, or make venv, brings it")
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        complain.print("interrupted; what was finished is where it was written")
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
