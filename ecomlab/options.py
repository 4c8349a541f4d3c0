"""Options that several commands share, and how their values are read."""

import re
import tempfile
import tomllib
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from typer import Argument, BadParameter, Context, Option

import ecomlab


def _axes() -> list[str]:
    from ecomlab.difficulty import RANGES

    return [f"{axis}=" for axis in RANGES]


def players() -> list[str]:
    """List the players that have names."""
    from ecomlab.evaluation.players import known_starters
    from ecomlab.evaluation.scripted import PLAYERS

    return [*known_starters(), *PLAYERS]


def training_settings() -> list[str]:
    """List the settings of training, to be completed."""
    from ecomlab.training.config import TrainConfig

    return [f"{name}=" for name in TrainConfig.model_fields]


COMPLETED = {
    "--env": lambda: list(ecomlab.ENVIRONMENTS),
    "--axis": _axes,
    "--player": lambda: ["human", *players()],
}
"""Values that a shell's tab completes, by flag."""


def opt(default: Any, flag: str, about: str, **more: Any) -> Any:
    """Declare an option, with a placeholder after its flag: `opt(None, "--json FILE", "Write the results here.")`."""
    name, _, metavar = flag.partition(" ")
    more.setdefault("autocompletion", COMPLETED.get(name))
    return Option(default, name, metavar=metavar, help=about, case_sensitive=False, **more)


def writable(path: Path | None) -> Path | None:
    """Check before any work that a file can be written, and make its folder. Raises BadParameter."""
    if path is not None:
        try:
            if path.is_dir():
                raise IsADirectoryError
            if path.name == "transcripts.jsonl":
                raise BadParameter("transcripts.jsonl is the name of the record itself; choose another")
            path.absolute().parent.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=path.absolute().parent).close()  # permissions alone do not tell
        except OSError:
            raise BadParameter(f"{path} cannot be written; choose another place") from None
    return path


def need(package: str, *files: Path | None) -> None:
    """Import what writing these files takes before anything is played. Raises ModuleNotFoundError."""
    if any(files):
        import_module(package)


def spelled(player: str | None) -> str | None:
    """Spell a player's name as it is known, whatever its case."""
    from ecomlab.evaluation.players import as_known

    return player and as_known(player)


def environments(names: list[str] | None, player: str = "") -> list[str]:
    """List the environments that `--env` names; by default those that the player was made for, or all.

    Raises ValueError.
    """
    from ecomlab.evaluation.tasks import environments_named
    from ecomlab.models.load import made_for_environments

    return environments_named(names or (player and made_for_environments(player)) or ecomlab.ENVIRONMENTS)


def levels(text: str) -> list[int]:
    """Read levels, each one alone or A:B, both included, with commas between. Raises BadParameter."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?::(\d+))?", part)
        if not match:
            raise BadParameter(
                f"difficulty must be A:B or one level, such as 0:12 or 0:12,16,20, not {text!r}"
            )
        low, high = int(match[1]), int(match[2] or match[1])
        if low > high or low <= max(found, default=-1):
            raise BadParameter(f"difficulty must run from a lower to a higher level, not {text!r}")
        found += range(low, high + 1)
    return found


def settings(texts: list[str] | None, flag: str = "--set") -> dict[str, Any]:
    """Read NAME=VALUE with a value in TOML, where a bare word is a string; of two with a name the last one holds.

    Raises BadParameter.
    """
    found: dict[str, Any] = {}
    for text in texts or ():
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise BadParameter(f"{flag} takes NAME=VALUE, not {text!r}")
        found[name] = value
        for read in (lambda written: tomllib.loads(f"value = {written}")["value"], float):
            with suppress(ValueError):
                found[name] = read(value)
                break
    return found


def axes(texts: list[str] | None) -> dict[str, Any]:
    """Read what `--axis` overrides; names and values are checked where tasks are drawn. Raises BadParameter."""
    found = settings(texts, "--axis")
    if len(found) < len(texts or ()):
        raise BadParameter("--axis names an axis twice; give one value")
    return found


def customer_of(path: Path | None) -> Any:
    """Make the endpoint that `--customer` names; None where templates speak. Raises ConfigError."""
    if path is None:
        return None
    from ecomlab.evaluation.endpoint.chat import customer_from_toml

    return customer_from_toml(path)


def check_without(context: Context, flag: str, *others: str) -> None:
    """Check that none of `others`, which are flags, is given beside an option that fixes them. Raises BadParameter."""
    if more := sorted(_given(context) & set(others)):
        raise BadParameter(f"{flag} fixes {', '.join(others)}; leave out {', '.join(more)}")


def check_alone(context: Context, flag: str, *others: str) -> None:
    """Check that only `others`, which are flags, are given beside an option that leaves no room for more.

    Raises BadParameter.
    """
    if more := sorted(_given(context) - {flag, *others}):
        raise BadParameter(f"{flag} takes only {', '.join(others)} beside it; leave out {', '.join(more)}")


def _given(context: Context) -> set[str]:
    """Return the flags of the options that a command line gives."""
    flags = {str(one.name): one.opts[0] for one in context.command.params}
    sources = {flags[name]: context.get_parameter_source(name) for name in context.params}
    # by name: the enumeration is click's, or that of the copy of click that typer may hold
    return {name for name, source in sources.items() if source and source.name != "DEFAULT"}


ENVS = opt(
    None,
    "--env ENV",
    "Environment or collection (C4; CART,PD); repeatable. Default: all, or those the player was made for.",
)
AXIS = opt(None, "--axis NAME=VALUE", "An axis of difficulty, as `ecomlab envs` lists them; repeatable.")
CATALOG = opt(
    None, "--catalog FOLDER", "Folder of a catalog, or a number of generated products. Default: 20,000."
)
CATALOG_NOW = opt(None, "--catalog FOLDER", "The recorded catalog's folder now. Default: where it was.")
CUSTOMER = opt(None, "--customer FILE", "TOML file of an endpoint that words the customer.")
CHANGE = opt(None, "--set NAME=VALUE", "A setting of the run, the endpoint or the weights; repeatable.")
DRY_RUN = opt(False, "--dry-run", "Print what would be done and its cost; start nothing.")

# of eval and frontier
PLAYER = "reference, a starter, weights, owner/name, my_agent.py:agent, or an endpoint's TOML file."
DECODING = opt(None, "--decoding sampled|greedy", "Of local weights. Default: sampled, at temperature 1.")
DEVICE = opt(None, "--device DEVICE", "Of local weights. Default: cuda, if any, but cpu for starters.")
BLOCK = opt(0, "--block N", "Block of held-out tasks; blocks share no task.", min=0)
LEAVE_OUT = opt(False, "--leave-out", "Leave out, and name, environments that the catalog cannot support.")
RUN_FOLDER = opt(None, "--out FOLDER", "Folder for the transcripts. Default: one in experiments/runs/eval.")
RETRY = opt(False, "--retry-unscored", "Play unscored episodes again.")

# of results
JSON = opt(None, "--json FILE", "Write the results here.", callback=writable)
CSV = opt(None, "--csv FILE", "Write a row per episode or mistake here.", callback=writable)
MARKDOWN = opt(None, "--markdown FILE", "Write the table as Markdown here.", callback=writable)
HTML = opt(None, "--html FILE", "Write the report with its pictures as a page here.", callback=writable)
FIGURES = opt(Path("figures"), "--out FOLDER", "Folder for the figures.")
TRANSCRIPTS = Argument(help="Folder of `ecomlab eval` or of a training run, or its transcripts.jsonl.")
