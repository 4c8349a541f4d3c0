"""Options that commands share, read and checked before anything runs."""

import re
import tempfile
import tomllib
from enum import StrEnum
from importlib.metadata import requires
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, BadParameter, Option

from ecomlab import ENVIRONMENTS


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


class Kind(StrEnum):
    slurm = "slurm"
    local = "local"


Change = Annotated[list[str] | None, Option("--set", help="NAME=VALUE over the file's; may be repeated.")]
Customer = Annotated[
    Path | None,
    Option("--customer", help="TOML file of an endpoint that words the customer. Default: templates."),
]
Cluster = Annotated[Kind | None, Option(help="Submit what is left and return; local: run such jobs here.")]
Axis = Annotated[list[str] | None, Option("--axis", help="NAME=VALUE of a difficulty axis; may be repeated.")]
Block = Annotated[int, Option(min=0, help="Block of held-out tasks; blocks share no task.")]
Decodings = Annotated[
    list[str] | None, Option("--decoding", help="sampled (temperature 1) or greedy. Default: both.")
]
Episodes = Annotated[int, Option(min=1, help="Episodes a level, held out.")]
Repeat = Annotated[int, Option("--episodes", min=1, help="Episodes a repeat, of which there are five.")]
Env = Annotated[str, Option(help="Environment id.")]
Envs = Annotated[
    list[str] | None,
    Option("--env", help="Environment, or collection (C4; CART,PD). Repeatable. Default: all."),
]
EpisodesFile = Annotated[
    Path | None, Option("--csv", callback=writable, help="Write a row per episode here.")
]
PolicyEnvs = Annotated[
    list[str] | None,
    Option(
        "--env", help="Environment, or collection (C4; CART,PD). Repeatable. Default: those it was made for."
    ),
]
Figures = Annotated[bool, Option("--figures", help="Draw the sweep's figures too.")]
File = Annotated[Path, Argument(help="The sweep's file.")]
Full = Annotated[bool, Option("--full", help="As many for all players as for oracle and reference.")]
JsonFile = Annotated[Path | None, Option("--json", callback=writable, help="Write the results here.")]
Leaks = Annotated[int, Option(min=0, help="Tasks a level for the search for leaks; 0: none.")]
Questions = Annotated[int, Option(min=0, help="Customers each question of the banks is asked of; 0: none.")]
Level = Annotated[int, Option(help="Level, from 0 up.")]
Levels = Annotated[str, Option(help="Levels A:B, both included, or one level.")]
LevelList = Annotated[list[int], Option(help="Level; may be repeated.")]
Others = Annotated[int, Option(min=1, help="Tasks a level for the other players.")]
Out = Annotated[Path, Option(help="Folder for the figures.")]
Plan = Annotated[bool, Option("--dry-run", help="Print what would be done and its cost; start nothing.")]
Policy = Annotated[str, Argument(help="A starter's name, a saved policy, or a checkpoint's folder.")]
Processes = Annotated[int | None, Option(min=1, help="Runs at a time. Default: what the sweep says.")]
Seed = Annotated[int, Option(help="Seed of the task.")]
Seeds = Annotated[int, Option(min=1, help="Tasks a level for oracle, reference and perturbed player.")]
Size = Annotated[int, Option(help="Products in the generated catalog.")]
Sizes = Annotated[list[int], Option("--size", help="Products; may be repeated.")]
Workers = Annotated[int | None, Option(min=1, help="Processes. Default: the machine's cores.")]


def environments(names: list[str] | None) -> list[str]:
    """List the environments that `--env` names, each once; without any, all. Raises ValueError."""
    from ecomlab.evaluate.tasks import environments_of

    return list(dict.fromkeys(env for name in names or ENVIRONMENTS for env in environments_of(name)))


def axes(texts: list[str] | None) -> dict[str, float]:
    """Read what `--axis` names. Raises ValueError, also for an axis given twice."""
    from ecomlab.evaluate.tasks import read_axis

    found = [read_axis(text) for text in texts or ()]
    if twice := sorted({name for name, _ in found if [n for n, _ in found].count(name) > 1}):
        raise BadParameter(f"--axis {twice[0]} is given twice; give one value")
    return dict(found)


def levels(text: str) -> list[int]:
    """Read A:B, both included, or one level. Raises BadParameter."""
    found = re.fullmatch(r"(\d+)(?::(\d+))?", text)
    if not found:
        raise BadParameter(f"difficulty is A:B or one level from 0 up, such as 0:12, not {text!r}")
    low, high = int(found[1]), int(found[2] or found[1])
    if low > high:
        raise BadParameter(f"difficulty runs from a lower to a higher level, not {text!r}")
    return list(range(low, high + 1))


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


def customer(path: Path | None) -> Any:
    """Make the endpoint that `--customer` names; None where the templates are said. Raises ConfigError."""
    if path is None:
        return None
    from ecomlab.evaluate.endpoint.chat import customer_from_toml

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
