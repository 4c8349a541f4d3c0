"""Options that commands share, read and checked before anything runs."""

import re
import tempfile
import tomllib
from enum import StrEnum
from importlib.metadata import requires
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, BadParameter, Context, Option, secho

from ecomlab import ENVIRONMENTS

if TYPE_CHECKING:
    from ecomlab.evaluation.evaluation import Cells
    from ecomlab.lab.evaluations import Config


def writable(path: Path | None) -> Path | None:
    """Check that `path` can be written. Raises BadParameter."""
    folder = path.resolve().parent if path else Path()
    if not folder.is_dir():
        raise BadParameter(f"there is no folder {folder}; make it first")
    try:
        if path and path.is_dir():
            raise IsADirectoryError
        if path:  # by trying: permissions do not tell of every file system
            tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        raise BadParameter(f"{path} cannot be written; choose another place") from None
    return path


def player_known(name: str | None) -> str | None:
    """Spell a player's name as it is known, whatever its case; "human" too."""
    from ecomlab.evaluation.players import as_known

    return name if name is None else "human" if name.casefold() == "human" else as_known(name)


class Kind(StrEnum):
    slurm = "slurm"
    local = "local"


class Decodings(StrEnum):
    sampled = "sampled"
    greedy = "greedy"


Change = Annotated[
    list[str] | None,
    Option("--set", help="A setting over the file's; may be repeated.", metavar="NAME=VALUE"),
]
CatalogSource = Annotated[
    str,
    Argument(
        help="File or folder (CSV, JSONL, Parquet, a saved dataset), or owner/name of a dataset on the hub."
    ),
]
MappingFile = Annotated[
    Path | None,
    Option(
        "--mapping",
        help="TOML file that says which column holds what. Default: guessed, and asked.",
        metavar="FILE",
    ),
]
Catalog = Annotated[
    str | None,
    Option(
        "--catalog",
        metavar="FOLDER",
        help="Folder that `ecomlab catalog build` made, or a number of generated products. Default: 20,000 of these.",
    ),
]
CatalogNow = Annotated[
    str | None,
    Option(
        "--catalog", metavar="FOLDER", help="Folder where the recorded catalog is now. Default: where it was."
    ),
]
LeaveOut = Annotated[
    bool,
    Option(
        "--leave-out",
        help="Leave out environments that the catalog cannot carry, and say which; they are refused otherwise.",
        metavar="",
    ),
]
Customer = Annotated[
    Path | None,
    Option(
        "--customer",
        help="TOML file of an endpoint that words the customer. Default: templates.",
        metavar="FILE",
    ),
]
Cluster = Annotated[
    Kind | None,
    Option(case_sensitive=False, help="Submit what is left and return; local: run such jobs here."),
]
Axis = Annotated[
    list[str] | None,
    Option(
        "--axis",
        help="A difficulty axis, of those that `ecomlab envs` lists; may be repeated.",
        metavar="NAME=VALUE",
    ),
]
Block = Annotated[int, Option(min=0, help="Block of held-out tasks; blocks share no task.", metavar="N")]
Budget = Annotated[
    str | None,
    Option(
        help="Time to keep to, such as 1h or 30m; decides how many tasks are played, equally many in every cell.",
        metavar="TIME",
    ),
]
Decoding = Annotated[
    Decodings | None,
    Option(case_sensitive=False, help="Of local weights; sampled, the default, is at temperature 1."),
]
Device = Annotated[
    str | None,
    Option(
        metavar="DEVICE",
        help="Of local weights: cpu, cuda, cuda:1, ... Default: cuda, if any, for ordinary models, cpu for starters.",
    ),
]
Evaluations = Annotated[list[Path], Argument(help="Folders that `ecomlab eval` wrote to, two or more.")]
Anyway = Annotated[
    bool, Option("--anyway", help="Compare under different conditions too, and name them.", metavar="")
]
FigureFile = Annotated[
    Path | None, Option(callback=writable, help="Draw a figure: FILE.pdf, .png and .json.", metavar="FILE")
]
MarkdownFile = Annotated[
    Path | None,
    Option("--markdown", callback=writable, help="Write the table as Markdown here.", metavar="FILE"),
]
PageFile = Annotated[
    Path | None,
    Option(
        "--out",
        callback=writable,
        help="The file to write. Default: view.html beside the transcripts.",
        metavar="FILE",
    ),
]
ParquetFile = Annotated[
    Path | None,
    Option(
        "--parquet", callback=writable, help="Write the transcripts here, for `datasets`.", metavar="FILE"
    ),
]
Key = Annotated[
    str | None,
    Option(
        "--key",
        help="Key of somebody's episode, between quotes, in place of --env, --difficulty and so on.",
        metavar="KEY",
    ),
]
PlayFolder = Annotated[
    Path | None,
    Option(
        "--out", help="Folder of saved episodes of yours. Default: experiments/runs/play.", metavar="FOLDER"
    ),
]
Watched = Annotated[
    str,
    Option(
        "--player",
        callback=player_known,
        help="human, or whatever `ecomlab eval` takes: reference, a starter, a TOML file.",
        metavar="PLAYER",
    ),
]
Player = Annotated[
    str | None,
    Argument(
        callback=player_known,
        help="reference, a starter, a folder with weights, owner/name, my_agent.py:agent, or an endpoint's TOML file.",
    ),
]
PlayerChange = Annotated[
    list[str] | None,
    Option("--set", help="A setting of the endpoint or the weights; may be repeated.", metavar="NAME=VALUE"),
]
PlayerEnvs = Annotated[
    list[str] | None,
    Option(
        "--env",
        help="Environment, or collection (C4; CART,PD). Repeatable. Default: those it was made for.",
        metavar="ENV",
    ),
]
Rescore = Annotated[
    Path | None,
    Option(
        help="Score this folder's transcripts again, without playing; code 1 if any differ.", metavar="FOLDER"
    ),
]
Retry = Annotated[bool, Option("--retry-unscored", help="Play unscored episodes again.", metavar="")]
RunFolder = Annotated[
    Path | None,
    Option(
        "--out", help="Folder for the transcripts. Default: experiments/runs/eval/PLAYER.", metavar="FOLDER"
    ),
]
Trials = Annotated[int, Option(min=1, help="Times that each task is played, for pass^k.", metavar="N")]
Episodes = Annotated[int, Option(min=1, help="Held-out tasks a level.", metavar="N")]
Embedder = Annotated[
    str,
    Option(
        help="lexical, minilm, a model id or a folder with a model, or a TOML file with its settings.",
        metavar="NAME",
    ),
]
AllowLowRecall = Annotated[
    bool,
    Option("--allow-low-recall", help="Keep an index that finds less than 95% of the best 20.", metavar=""),
]
Repeat = Annotated[
    int, Option("--episodes", min=1, help="Episodes a repeat, of which there are five.", metavar="N")
]
Env = Annotated[
    str,
    Option(
        callback=lambda name: name.upper(), help="Environment, as `ecomlab envs` lists them.", metavar="ENV"
    ),
]
Envs = Annotated[
    list[str] | None,
    Option(
        "--env", help="Environment, or collection (C4; CART,PD). Repeatable. Default: all.", metavar="ENV"
    ),
]
EpisodeFile = Annotated[
    Path | None,
    Option(
        "--json", callback=writable, help="Write the episode here: task, messages, score.", metavar="FILE"
    ),
]
EpisodesFile = Annotated[
    Path | None, Option("--csv", callback=writable, help="Write a row per episode here.", metavar="FILE")
]
MistakesFile = Annotated[
    Path | None,
    Option(
        "--csv",
        callback=writable,
        help="Write a row per mistake here. Default: beside the transcripts.",
        metavar="FILE",
    ),
]
Figures = Annotated[bool, Option("--figures", help="Draw the sweep's figures too.", metavar="")]
File = Annotated[Path, Argument(help="The sweep's file.")]
Full = Annotated[
    bool, Option("--full", help="As many for all players as for oracle and reference.", metavar="")
]
JsonFile = Annotated[
    Path | None, Option("--json", callback=writable, help="Write the results here.", metavar="FILE")
]
Leaks = Annotated[int, Option(min=0, help="Tasks a level for the search for leaks; 0: none.", metavar="N")]
Questions = Annotated[
    int, Option(min=0, help="Customers each question of the banks is asked of; 0: none.", metavar="N")
]
Limit = Annotated[
    int, Option(min=1, help="Most episodes in the file, of both folders together.", metavar="N")
]
Level = Annotated[int, Option(parser=lambda text: one_level(text), help="Level, from 0 up.", metavar="LEVEL")]
Levels = Annotated[str, Option(help="Levels A:B, both included, or one level.", metavar="A:B")]
LevelList = Annotated[list[int], Option(min=0, help="Level; may be repeated.", metavar="LEVEL")]
Others = Annotated[int, Option(min=1, help="Tasks a level for the other players.", metavar="N")]
OtherTranscripts = Annotated[
    Path | None,
    Argument(metavar="OTHER", help="A second one, to read its episodes beside those of the first."),
]
Out = Annotated[Path, Option(help="Folder for the figures.", metavar="FOLDER")]
Plan = Annotated[
    bool, Option("--dry-run", help="Print what would be done and its cost; start nothing.", metavar="")
]
Processes = Annotated[
    int | None, Option(min=1, help="Runs at a time. Default: what the sweep says.", metavar="N")
]
Seed = Annotated[int, Option(help="Seed of the task.", metavar="N")]
Seeds = Annotated[
    int, Option(min=1, help="Tasks a level for oracle, reference and perturbed player.", metavar="N")
]
Sizes = Annotated[list[int], Option("--size", help="Products; may be repeated.", metavar="N")]
Transcripts = Annotated[
    Path,
    Argument(help="Folder with transcripts.jsonl, of `ecomlab eval` or of a training run; or such a file."),
]
WithoutState = Annotated[
    bool,
    Option("--plain", help="Do not act episodes out again: no cart, no reward by turn; faster.", metavar=""),
]
Workers = Annotated[int | None, Option(min=1, help="Processes. Default: the machine's cores.", metavar="N")]


def environment(name: str) -> str:
    """Check that `--env` names one environment, where several would not do. Raises BadParameter for several."""
    from ecomlab.envs.registry import COLLECTIONS
    from ecomlab.evaluation.tasks import environments_of

    if name in ENVIRONMENTS or not (name in COLLECTIONS or "," in name):
        return name
    raise BadParameter(f"an episode is of one environment, such as {environments_of(name)[0]}, not of {name}")


def environments(names: list[str] | None) -> list[str]:
    """List the environments that `--env` names, each once; without any, all. Raises ValueError."""
    from ecomlab.evaluation.tasks import environments_named

    return environments_named(names or ENVIRONMENTS)


def axes(texts: list[str] | None) -> dict[str, float]:
    """Read what `--axis` names. Raises ValueError, also for an axis given twice."""
    from ecomlab.evaluation.tasks import read_axis

    found = [read_axis(text) for text in texts or ()]
    if twice := sorted({name for name, _ in found if [n for n, _ in found].count(name) > 1}):
        raise BadParameter(f"--axis {twice[0]} is given twice; give one value")
    return dict(found)


def player_environments(player: str | None, names: list[str] | None) -> list[str]:
    """List the environments that `--env` names; by default those that the player was made for, or all. Raises
    BadParameter without a player."""
    from ecomlab.models.load import made_for_environments

    if player is None:
        raise BadParameter(
            "name a player: reference, a starter such as novice, weights, my_agent.py:agent, or an endpoint's TOML file"
        )
    return environments(names or made_for_environments(player))


def warn_of_axes(axes: dict[str, float], envs: list[str]) -> None:
    """Warn of axes that move nothing in some environments. Raises ValueError where they move none."""
    from ecomlab.evaluation.tasks import check_axes

    for words in check_axes(axes, envs):
        secho(f"warning  {words}", err=True)


def evaluation(
    player: str | None,
    cells: "Cells",
    *,
    kind: str,
    decoding: Decodings | None,
    device: str | None,
    change: list[str] | None,
    customer: Path | None,
    catalog: str | None,
    leave_out: bool,
    folder: Path | None,
    retry_unscored: bool,
    budget: str | None = None,
) -> "Config":
    """Read the options of eval and frontier. Raises ValueError and BadParameter."""
    from ecomlab.evaluation.players import Playing
    from ecomlab.lab.evaluations import Config, folder_of

    playing = Playing(
        decoding=decoding and decoding.value,
        device=device,
        settings=settings(change),
        customer=customer_of(customer),
    )
    return Config(
        player=player,
        cells=cells,
        playing=playing,
        shop=catalog,
        leave_out=leave_out,
        out=folder_of(str(player), kind, folder),
        budget=seconds(budget),
        retry_unscored=retry_unscored,
    )


def check_saved(player: str, folder: Path | None) -> None:
    """Check that a folder of saved episodes is given for a person's only. Raises BadParameter."""
    if folder is not None and player != "human":
        raise BadParameter("only an episode of yours is saved; leave out --out; `ecomlab eval` keeps others'")


def check_apart(figure: Path | None, json_file: Path | None) -> None:
    """Check that a figure's provenance does not take the place of the results. Raises BadParameter."""
    if figure and json_file and figure.with_suffix(".json").resolve() == json_file.resolve():
        raise BadParameter(f"--figure writes {json_file} too; give --json another name")


def check_alone(context: Context, option: str, *others: str) -> None:
    """Check that nothing but `others`, parameters by name, is given beside an option that does without it.

    Raises BadParameter.
    """
    allowed = {option, *others}
    flags = {str(one.name): one.opts[0] for one in context.command.params}
    sources = {name: context.get_parameter_source(name) for name in context.params if name not in allowed}
    # by name: the enumeration is click's, or that of the copy of click that typer may hold
    given = [flags[name] for name, source in sources.items() if source and source.name != "DEFAULT"]
    if given:
        raise BadParameter(
            f"--{option} takes nothing beside it but {', '.join(flags[name] for name in others)}; "
            f"leave out {', '.join(given)}"
        )


def seconds(text: str | None) -> float | None:
    """Read a time such as 1.5h, 30m or 90s. Raises BadParameter."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|h)", text.strip())
    if not found or not float(found[1]):
        raise BadParameter(f"a budget is a time such as 1h, 30m or 90s, not {text!r}")
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]


def levels(text: str) -> list[int]:
    """Read A:B, both included, or one level. Raises BadParameter."""
    found = re.fullmatch(r"(\d+)(?::(\d+))?", text)
    if not found:
        raise BadParameter(f"difficulty is A:B or one level from 0 up, such as 0:12, not {text!r}")
    low, high = int(found[1]), int(found[2] or found[1])
    if low > high:
        raise BadParameter(f"difficulty runs from a lower to a higher level, not {text!r}")
    return list(range(low, high + 1))


def one_level(text: str) -> int:
    """Read one level. Raises BadParameter, also for several levels, which other commands take."""
    if re.fullmatch(r"-?\d+", str(text)):
        return int(text)
    raise BadParameter(f"one episode has one level, a whole number from 0 up such as 4, not {text!r}")


def settings(texts: list[str] | None) -> dict[str, Any]:
    """Read NAME=VALUE with a value in TOML; a bare word is a string. Raises BadParameter."""
    found: dict[str, Any] = {}
    for text in texts or ():
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise BadParameter(f"--set takes NAME=VALUE, such as seed=1, not {text!r}")
        try:
            found[name] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[name] = value
    return found


def customer_of(path: Path | None) -> Any:
    """Make the endpoint that `--customer` names; None where the templates are said. Raises ConfigError."""
    if path is None:
        return None
    from ecomlab.evaluation.endpoint.chat import customer_from_toml

    return customer_from_toml(path)


def worded(error: Exception) -> str:
    """Word an error: without a system error's number; for a missing package, with the extra that brings it."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}; give another path"
    if not isinstance(error, ModuleNotFoundError):
        return str(error)
    package = (error.name or "").partition(".")[0]
    lines = [line for line in requires("ecomlab") or () if re.match(rf"{re.escape(package)}\b", line)]
    extras = [found[1] for line in lines if (found := re.search(r"extra == .(\w+)", line))]
    extra = next(
        (e for e in extras if e not in ("all", "dev")), next(iter(extras), "")
    )  # the smallest that will do
    return f"{package!r} is not installed; pip install 'ecomlab{f'[{extra}]' if extra else ''}' brings it"
