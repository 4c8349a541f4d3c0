"""Resolve every extra of pyproject.toml for Linux, with its constraints.

    make extras                        # writes resolved.json; exit code 1 if one of them does not resolve
    make extras ARGS=--relock          # first makes constraints-vllm.txt and constraints-loggers.txt anew

Nothing is installed: uv reads the packages' metadata from PyPI, regardless of this machine's index. The outcome
is committed with its date, so that `make test` can check offline that ranges, constraints and this log agree.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LOG = HERE / "resolved.json"
TESTED = "constraints.txt"
INDEX = "https://pypi.org/simple"
PYTHON, PLATFORM = "3.11.0", "x86_64-manylinux_2_28"
"""The oldest Python that pyproject.toml accepts, and a Linux that has wheels of every package."""
LIFTED = {"vllm": ("lark", "llvmlite", "numba", "numpy", "pillow"), "loggers": ("pillow",)}
"""Extras that contradict constraints.txt, in order of precedence, and the pins that they contradict: vLLM needs older
versions of lark, numba and numpy, trackio of pillow."""
WHOLE = {"vllm": "all,gpu,vllm,loggers,dev", "loggers": "all,loggers,dev"}
"""Installations from which the constraints of such an extra are made."""
TOGETHER = ("all,dev", "all,gpu,dev", *WHOLE.values())
"""Extras that `make venv` installs together."""
HEADER = """\
# For [{extra}], on Linux with Python 3.11: the pins of constraints.txt but for {lifted}, which it contradicts, and
# those of what it brings. Resolved, not tested (`make extras ARGS=--relock`).
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--relock", action="store_true", help="make the constraints of vllm and loggers anew")
    if parser.parse_args().relock:
        for extra in LIFTED:
            relock(extra)
    found = {extras: resolution(extras) for extras in installations()}
    log = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "resolver": f"uv {version('uv')}",
        "index": INDEX,
        "python": PYTHON,
        "platform": PLATFORM,
        "installations": found,
    }
    LOG.write_text(json.dumps(log, indent=1) + "\n")
    for extras, one in found.items():
        print(f"{extras}: {one.get('error') or str(len(one['packages'].split())) + ' packages'}")
    sys.exit(any("error" in one for one in found.values()))


def installations() -> list[str]:
    """List what is resolved: each extra alone, and those that are installed together."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    return [*(name for name in extras if name not in ("all", "dev")), *TOGETHER]


def constraints_of(extras: str) -> Path:
    """Find the file that pins an installation: a bridge has its own."""
    bridge = HERE.parent / "bridges" / f"{extras.replace('-', '_')}.lock.txt"
    if bridge.is_file():
        return bridge
    return ROOT / next((own_file(extra) for extra in LIFTED if extra in extras.split(",")), TESTED)


def own_file(extra: str) -> str:
    """Name the constraints of an extra that contradicts those that were tested."""
    return f"constraints-{extra}.txt"


def resolution(extras: str) -> dict[str, Any]:
    """Resolve an installation: its packages, name==version with spaces between, or the reason why there are none."""
    constraints = constraints_of(extras)
    found: dict[str, Any] = {"constraints": str(constraints.relative_to(ROOT))}
    try:
        return found | {"packages": " ".join(resolved(extras, constraints))}
    except subprocess.CalledProcessError as error:
        return found | {"packages": "", "error": " ".join(error.stderr.split())}


def resolved(extras: str, constraints: Path) -> list[str]:
    """Ask uv for the packages of ecomlab with these extras. Raises CalledProcessError where there is no solution."""
    command = [
        str(Path(sys.executable).with_name("uv")), "pip", "compile",
        "--quiet", "--no-config", "--no-header", "--no-annotate", "--no-progress", "--default-index", INDEX,
        "--python-version", PYTHON, "--python-platform", PLATFORM, "--constraint", str(constraints),
        str(ROOT / "pyproject.toml"),
    ]  # fmt: skip
    for extra in extras.split(","):
        command += ["--extra", extra]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if re.fullmatch(r"[A-Za-z0-9._-]+==\S+", line)]


def relock(extra: str) -> None:
    """Write the constraints of an extra: what it resolves to, with all that is used beside it pinned as tested."""
    pins = (ROOT / TESTED).read_text().splitlines()
    kept = [line for line in pins if line.partition("==")[0] not in LIFTED[extra]]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(kept))
        file.flush()
        found = resolved(WHOLE[extra], Path(file.name))
    header = HEADER.format(extra=extra, lifted=", ".join(LIFTED[extra]))
    (ROOT / own_file(extra)).write_text(header + "\n".join(sorted(found, key=str.lower)) + "\n")


if __name__ == "__main__":
    main()
