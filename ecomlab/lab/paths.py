"""Project folders, paths within them, and the environment variables of processes that execute notebooks."""

import os
import shutil
import sys
import tempfile
import tomllib
from importlib import resources
from pathlib import Path

from ecomlab.files import cache_folder, read_json, write_json, write_text

MARK = ".ecomlab"
"""File at the root of a folder that `ecomlab init` laid out."""
CPUINFO = Path("/proc/cpuinfo")
FILES = (
    "notebooks/*.ipynb",
    "notebooks/*.py",
    "docs/*.md",
    "experiments/*/*.md",
    "experiments/*/*.toml",
    "experiments/*/*.yaml",
    "experiments/qwen3_8b/nodes.sh",
    "experiments/qwen3_8b/bench.csv",
    "experiments/tokens/tokens.csv",
)
"""Files of a project folder, the tables being those that the plan of a run reads; the wheel holds them under
ecomlab/_layout."""


def project_of(place: Path) -> Path | None:
    """Find the nearest folder, from `place` upwards, that is a clone or was laid out by `ecomlab init`."""
    for folder in (place, *place.parents):
        if (folder / MARK).is_file():
            return folder
        try:
            if tomllib.loads((folder / "pyproject.toml").read_text())["project"]["name"] == "ecomlab":
                return folder
        except (OSError, KeyError, ValueError):
            continue
    return None


def project_root() -> Path:
    """Find the project that the working directory lies in; outside of any, it is the working directory itself, so that
    no command writes to a clone that nobody named."""
    return project_of(Path.cwd()) or Path.cwd()


def resolve(path: str | Path, root: Path | None = None) -> Path:
    """Make a path absolute; a relative one starts at `root`, by default the project's, not at the working directory."""
    return ((root or project_root()) / Path(path).expanduser()).resolve()


def check_writable(folder: Path) -> None:
    """Check, and leave nothing behind, that a folder can be written to, or made. Raises ValueError."""
    try:
        there = next(path for path in (folder, *folder.parents) if path.exists())
        tempfile.TemporaryFile(dir=there).close()  # by trying: permissions do not tell of every file system
    except OSError:
        raise ValueError(f"nothing can be saved in {folder}; choose another folder") from None


def shown(path: str | Path) -> str:
    """Shorten `path` for display: relative to the working directory if it lies there, else absolute."""
    path = Path(path).absolute()
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def library_environment() -> dict[str, str]:
    """Make the environment variables of a process that computes: no telemetry, no network for models, one thread, and
    the same sums on any x86 processor (`same_kernels`). Libraries read them when they are imported."""
    return {
        **dict.fromkeys(
            ("HF_HUB_OFFLINE", "HF_HUB_DISABLE_TELEMETRY", "DO_NOT_TRACK", "OMP_NUM_THREADS"), "1"
        ),
        "TOKENIZERS_PARALLELISM": "false",
        "OMP_WAIT_POLICY": "PASSIVE",
        **same_kernels(),
    }


def kernel_environment(threads: int = 1) -> dict[str, str]:
    """Make the environment variables of a process that executes notebooks.

    Those of `library_environment`, but with `threads` threads; Jupyter, IPython and matplotlib keep their files in the
    cache, not in the home directory; the kernel `python3` is this interpreter and imports this `ecomlab`, whatever else
    is installed.
    """
    cache = cache_folder().absolute()
    kernels = cache / "jupyter" / "kernels-of" / Path(sys.prefix).as_posix().strip("/").replace("/", "-")
    kernel = ["-Xfrozen_modules=off", "-m", "ipykernel_launcher", "-f", "{connection_file}", "--log-level=40"]
    argv = [sys.executable, *kernel]
    spec = {"argv": argv, "display_name": "Python 3 (ecomlab)", "language": "python"}
    spec_file = kernels / "kernels" / "python3" / "kernel.json"
    if read_json(spec_file) != spec:
        write_json(spec_file, spec)
    folders = {
        "IPYTHONDIR": "ipython",
        "JUPYTER_CONFIG_DIR": "jupyter/config",
        "JUPYTER_DATA_DIR": "jupyter/data",
        "JUPYTER_RUNTIME_DIR": "jupyter/runtime",
        "MPLCONFIGDIR": "matplotlib",
        "HF_HOME": "huggingface",
    }
    forced = {
        **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads)),
        "ECOMLAB_CACHE": str(cache),
        "ECOMLAB_BATCH": "1",  # no live curves
        "JUPYTER_PATH": _first(str(kernels), "JUPYTER_PATH"),
        "PYTHONPATH": _first(str(Path(__file__).absolute().parents[2]), "PYTHONPATH"),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    kept = {name: str(cache / folder) for name, folder in folders.items()}
    return {**library_environment(), **kept, **os.environ, **forced}


def _first(folder: str, variable: str) -> str:
    """Put a folder before those that an environment variable names."""
    return os.pathsep.join(filter(None, [folder, os.environ.get(variable)]))


def same_kernels() -> dict[str, str]:
    """Name the environment variables that keep PyTorch and MKL to AVX2 where there is AVX-512; none elsewhere.

    Left alone, each takes the widest vectors that there are, sums in another order, and a run's tokens differ from
    another machine's after a few steps. Both are read once, when torch is imported.
    """
    try:
        with CPUINFO.open(encoding="utf-8", errors="replace") as file:
            first = file.read(20_000)  # one processor's entry; a large machine has hundreds
    except OSError:
        return {}
    if "avx512f" not in first:
        return {}
    return {"ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}


def source() -> Path:
    """Find the files in the installed wheel, or the clone that this package is in."""
    package = Path(str(resources.files("ecomlab")))
    return package / "_layout" if (package / "_layout").is_dir() else package.parent


def lay_out(folder: Path, given: Path | None = None) -> list[Path]:
    """Copy the project's files into `folder`, which must be new or empty, and return their paths.

    Raises FileExistsError rather than overwrite anything, and FileNotFoundError when there is nothing to copy.
    """
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise FileExistsError(f"{folder} exists and is not empty; name a new folder")
    given = given or source()
    found = [path for pattern in FILES for path in sorted(given.glob(pattern))]
    if not found:
        raise FileNotFoundError(f"nothing to lay out in {given}; install ecomlab again, or clone it")
    made = [folder / path.relative_to(given) for path in found]
    for path, copy in zip(found, made, strict=True):
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)  # with its mode: one of them is a program
    for made_later in ("figures", "experiments/certificate"):
        (folder / made_later).mkdir(parents=True)
    write_text(folder / MARK, "The root of an ecomlab project: relative paths start here.\n")
    return made
