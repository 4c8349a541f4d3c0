"""Paths within a project, and the environment variables of processes that execute notebooks."""

import os
import sys
import tomllib
from pathlib import Path

from ecomlab.catalog.store import cache_folder
from ecomlab.files import read_json, write_json

MARK = ".ecomlab"
"""File at the root of a folder that `ecomlab init` laid out."""


def project_root() -> Path:
    """Find the project: the nearest folder upwards that is a clone or was laid out by `ecomlab init`, else the clone
    that this package is in, else the working directory."""
    here = Path.cwd()
    for folder in (here, *here.parents, Path(__file__).resolve().parents[2]):
        if (folder / MARK).is_file():
            return folder
        try:
            if tomllib.loads((folder / "pyproject.toml").read_text())["project"]["name"] == "ecomlab":
                return folder
        except (OSError, KeyError, ValueError):
            continue
    return here


def resolve(path: str | Path) -> Path:
    """Make a path absolute; a relative one starts at the project's root, not at the working directory."""
    return (project_root() / Path(path).expanduser()).resolve()


def shown(path: str | Path) -> str:
    """Shorten `path` for display: relative to the working directory or the project's root if it lies there."""
    path = Path(path)
    for base in (Path.cwd(), project_root()):
        if path.is_relative_to(base):
            return str(path.relative_to(base))
    return str(path)


def kernel_environment(threads: int = 1) -> dict[str, str]:
    """Make the environment variables of a process that executes notebooks.

    Numeric libraries use `threads` threads; Jupyter, IPython and matplotlib keep their files in the cache, not in the
    home directory; the kernel `python3` is this interpreter and imports this `ecomlab`, whatever else is installed;
    there is no telemetry, and no network for models.
    """
    cache = cache_folder().absolute()
    kernels = cache / "jupyter" / "kernels-of" / Path(sys.prefix).as_posix().strip("/").replace("/", "-")
    kernel = ["-Xfrozen_modules=off", "-m", "ipykernel_launcher", "-f", "{connection_file}", "--log-level=40"]
    spec = {
        "argv": [sys.executable, *kernel],
        "display_name": "Python 3 (ecomlab)",
        "language": "python",
    }
    spec_file = kernels / "kernels" / "python3" / "kernel.json"
    if read_json(spec_file) != spec:
        write_json(spec_file, spec)
    packages = str(Path(__file__).absolute().parents[2])
    count = str(threads)
    defaults = {
        "IPYTHONDIR": str(cache / "ipython"),
        "JUPYTER_CONFIG_DIR": str(cache / "jupyter" / "config"),
        "JUPYTER_DATA_DIR": str(cache / "jupyter" / "data"),
        "JUPYTER_RUNTIME_DIR": str(cache / "jupyter" / "runtime"),
        "MPLCONFIGDIR": str(cache / "matplotlib"),
        "HF_HOME": str(cache / "huggingface"),
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "DO_NOT_TRACK": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    forced = {
        "ECOMLAB_CACHE": str(cache),
        "ECOMLAB_BATCH": "1",  # no live curves
        "JUPYTER_PATH": os.pathsep.join(filter(None, [str(kernels), os.environ.get("JUPYTER_PATH")])),
        "PYTHONPATH": os.pathsep.join(filter(None, [packages, os.environ.get("PYTHONPATH")])),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "OMP_NUM_THREADS": count,
        "MKL_NUM_THREADS": count,
        "OPENBLAS_NUM_THREADS": count,
    }
    return {**defaults, **os.environ, **forced}
